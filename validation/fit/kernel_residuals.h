/* How far kernels' times lie from what shipped device profiles say, on rows that no fit has seen: on the device itself,
 * with what was fitted on another one, and without a fit.
 *
 * Transferred: leave one device out, as shipped profiles take figures over. A device's products are predicted with the
 * fits of another of its architecture (as `calibrate --transfer` does), its attention with the curve that another of
 * its architecture has of the same kernel, its memory-bound kernels with the share of the bandwidth that others of its
 * architecture reach, or all others if none of it was measured. Every pair of devices, kernel and pass counts the same.
 *
 * Products from 1 GFLOP, attention and memory-bound kernels from 100 us: what training spends its time on, and what no
 * host held back.
 */
#ifndef PL_VALIDATION_KERNEL_RESIDUALS_H
#define PL_VALIDATION_KERNEL_RESIDUALS_H

#include "core/cluster/device_profile.h"
#include "core/text/csv.h"
#include "validation/fit/residual_pool.h"
#include "workloads/run/residuals.h"

/* Fills the entries gemm_*, attention_* and kernel_* from `folder` (gemm_NAME.csv.gz, attention.csv.gz, kernels.csv.gz)
 * and the shipped profiles. */
pl_code pl_kernel_residuals_take(const char *folder, pl_arena *arena, pl_residuals *residuals, pl_error *error);

/* Where errors of attention go: by the curve of the device itself, by others', by none. */
typedef struct pl_attention_pools {
  pl_residual_pool *fitted, *transferred, *roofline;
} pl_attention_pools;

/* Held-out calls of `device` in the table, a group per kernel and pass; `from`: other devices of the table. What the
 * serving stack's cache took is as fitted on the device. validation/fit/attention_fit.c. */
pl_code pl_attention_residuals(const pl_csv *csv, const pl_device_profile *device, const pl_device_profile *const *from,
                               uint32_t n_from, pl_arena *arena, const pl_attention_pools *pools, pl_error *error);

#endif
