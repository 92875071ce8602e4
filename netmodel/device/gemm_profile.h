/* The section "gemm" of a device profile (netmodel/device/device_profile.h describes the file), which may be left out:
 *
 *   "gemm": {"multiprocessors": 108, "fits": [{
 *     "dtypes": ["fp16", "bf16"], "overhead": "0.9us", "split_overhead": "1.2us", "tile_overhead": "5us",
 *     "memory_efficiency": 0.72, "cache_rate": "4153GBps", "wave_quantisation": 0.64,
 *     "tile_efficiency": {"256x128": 0.92, "128x128": 0.9, "128x64": 0.9, "64x64": 0.86},
 *     "unaligned_time": {"4B": 1.7, "2B": 3.4},
 *     "residual": {"log2_m": [4, 15], "log2_n": [5, 16], "log2_k": [5, 16], "milli": [[[-12, 3, ...], ...], ...]},
 *     "held_out": {"shapes": 4227, "median_error": 0.03, "p90_error": 0.1}}]}
 *
 * "residual" (nothing left over) and "held_out" may be left out. A data type may be named in one fit only. What the
 * numbers mean: core/cluster/gemm_profile.h; what is made of them: workloads/cost/gemm_cost.h.
 */
#ifndef PL_NETMODEL_GEMM_PROFILE_H
#define PL_NETMODEL_GEMM_PROFILE_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/gemm_profile.h"
#include "core/text/document.h"

/* Reads the section from the mapping `root`; without it *gemm is empty. Lists in the arena. */
pl_code pl_gemm_profile_read(const pl_document *document, const pl_node *root, pl_arena *arena, pl_gemm_profile *gemm,
                             pl_error *error);

#endif
