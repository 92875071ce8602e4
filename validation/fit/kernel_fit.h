/* Fits the sections "attention" and "kernels" of a device profile (netmodel/device/device_kernels.h) to measured times.
 *
 * Attention table, one row per timed call:
 *   device, multiprocessors, kernel (flash1, flash2, flash3, cudnn), pass (forward, backward), mask (causal, full),
 * window (0: none), batch, seq, heads, kv_heads, head_size, cached (1: the call also wrote keys and values into a
 * cache, as serving stacks do), time_us Kernel table: device, kind (norm, softmax, elementwise, embedding,
 * cross_entropy, optimizer), pass, bytes (read and written), host_bound (1: timed from a host that could not keep up
 * with small calls), time_us
 *
 * Rows of other devices than the profile's are passed over. Every fifth row, by a hash of its cells, is held out of the
 * fit; the report gives errors on both parts. The loss is the mean absolute logarithm of predicted over measured: a
 * median fit, that outliers do not bend. Deterministic.
 */
#ifndef PL_VALIDATION_KERNEL_FIT_H
#define PL_VALIDATION_KERNEL_FIT_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/device_profile.h"
#include "core/text/csv.h"

/* |predicted / measured - 1| of one part of the rows. */
typedef struct pl_fit_error {
  uint32_t n_rows;
  double median, p90; /* 0 without rows */
} pl_fit_error;

typedef struct pl_attention_fit {
  pl_attention_profile profile;
  uint32_t n_parameters;
  bool has_backward;      /* else the backward's figures are those of the base profile or defaults */
  double cache_copies;    /* passes over keys and values that the serving stack's cache costs: fitted, not shipped */
  pl_fit_error fitted[2]; /* by pass: rows of the fit */
  pl_fit_error held_out[2];
  pl_fit_error held_out_long[2]; /* of which: calls of 100 us and more, sequences of 512 and more */
} pl_attention_fit;

typedef struct pl_kernel_fit {
  pl_kernel_kind kind;
  bool backward;
  pl_kernel_profile profile;
  uint32_t n_parameters;
  double host_floor_s; /* what a call took at least where the host was the limit; 0: no such rows. Not shipped. */
  pl_fit_error fitted, held_out;
} pl_kernel_fit;

enum { PL_KERNEL_FITS = PL_KERNEL_KIND_COUNT * 2 };

/* One fit per kernel that has forward rows for `base`'s device, in the order of the kernels' names; 16-bit peak,
 * bandwidth and its efficiency are those of `base`. No row for this device: PL_BAD_INPUT. */
pl_code pl_attention_fit_take(const pl_csv *csv, const pl_device_profile *base, pl_arena *arena,
                              const pl_attention_fit **fits, uint32_t *n_fits, pl_error *error);

/* One fit per kind and pass with five rows or more. */
pl_code pl_kernel_fit_take(const pl_csv *csv, const pl_device_profile *base, pl_arena *arena,
                           const pl_kernel_fit **fits, uint32_t *n_fits, pl_error *error);

#endif
