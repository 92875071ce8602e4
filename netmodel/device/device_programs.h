/* The section "programs" of a device profile: what ops of programs take, by the names of their rows.
 *
 *   {"programs": {"gelu": {"overhead": "2us", "flops": "3.1Gf", "bandwidth": "2.4GBps", "held_out": {...}}, ...}}
 *
 * time = overhead + flops / FLOPS + bytes / BANDWIDTH; each of the three may be left out, not all of them. Ops that are
 * not listed are priced as on devices without the section.
 */
#ifndef PL_NETMODEL_DEVICE_PROGRAMS_H
#define PL_NETMODEL_DEVICE_PROGRAMS_H

#include "core/base/arena.h"
#include "core/cluster/device_profile.h"
#include "core/text/document.h"

pl_code pl_device_programs_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                                pl_device_profile *profile, pl_error *error);

#endif
