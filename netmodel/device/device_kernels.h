/* The sections "attention" and "kernels" of a device profile (netmodel/device/device_profile.h describes the file):
 * speeds of fused attention and of memory-bound kernels. Both may be left out.
 *
 *   "attention": [{"kernel": "flash2", "multiprocessors": 108, "query_tile": 128, "key_tile": 64,
 *                  "efficiency": {"64": 0.6, "128": 0.65}, "prologue_keys": 31, "tail": 0.5, "overhead": "8us",
 *                  "backward": {"ratio": 2.7, "prologue_keys": 60, "overhead": "15us"},
 *                  "held_out": {"forward": {"calls": 53, "median_error": 0.013, "p90_error": 0.041}}}]
 *   "kernels": {"norm": {"forward": {"bandwidth": 0.55, "overhead": "4us"}, "backward": {...}}, "optimizer": ...}
 *
 * "held_out" of an attention kernel by pass, and of a kind and pass of "kernels", is how far the figures are off on
 * measurements of this very device; without it they are taken for another device's, and prediction intervals are wider.
 *
 * The first entry of "attention" is what runs unless the framework asks for another. Sizes of heads ascend. A kind of
 * kernel or a pass that is left out is costed by the roofline.
 */
#ifndef PL_NETMODEL_DEVICE_KERNELS_H
#define PL_NETMODEL_DEVICE_KERNELS_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/device_profile.h"
#include "core/text/document.h"

/* Reads both sections of the mapping `root` into `profile`, whose other fields it leaves alone. */
pl_code pl_device_kernels_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                               pl_device_profile *profile, pl_error *error);

#endif
