/* The section "convolutions" of a device profile (netmodel/device/device_profile.h describes the file): a fit per pass
 * and group of data types, by the formula of workloads/cost/convolution_cost.h. It may be left out, and so may passes
 * and types: they are costed by the roofline.
 *
 *   "convolutions": [{"dtypes": ["fp32"], "pass": "forward", "multiprocessors": 80, "tile": [128, 32],
 *                     "efficiency": 0.85, "efficiency_3x3": 1.5, "bandwidth": 0.9, "overhead": "25us", "depth": 20,
 *                     "waves": 0.5, "held_out": {"calls": 18, "median_error": 0.11, "p90_error": 0.4}}]
 *
 * "pass" is forward, data (gradient of the pictures) or weight (gradient of the filters).
 */
#ifndef PL_NETMODEL_DEVICE_CONVOLUTIONS_H
#define PL_NETMODEL_DEVICE_CONVOLUTIONS_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/device_profile.h"
#include "core/text/document.h"

/* Reads the section of the mapping `root` into `profile`, whose other fields it leaves alone. PL_BAD_INPUT with file
 * and line: keys, ranges, two fits for one type and pass. */
pl_code pl_device_convolutions_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                                    pl_device_profile *profile, pl_error *error);

#endif
