/* Timings of matrix products from CSV files (core/text/csv.h), as users and published collections have them.
 *
 *   gpu              name of the device; may be left out if all rows are of one
 *   dtype            or gemm_dtype: bf16, fp16, fp8, fp32, tf32; bfloat16, float16, half, float32, float also
 *   m, n, k          batch x [m, k] x [k, n]
 *   batch            blank or left out: 1
 *   time             a duration with its unit ("12.5us", bare: seconds), or one of time_s, time_ms, time_us
 *   multiprocessors  of the device; may be left out
 *
 * Other columns are ignored. Rows of the same type and shape (repeats, several libraries) become one with their median
 * time. Rows with m below PL_GEMM_LEAST_M (decoding a token at a time: other kernels) are counted and left out.
 */
#ifndef PL_VALIDATION_GEMM_SAMPLES_H
#define PL_VALIDATION_GEMM_SAMPLES_H

#include "workloads/cost/gemm_cost.h"

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/text/csv.h"

enum { PL_GEMM_LEAST_M = 16 };

typedef struct pl_gemm_sample {
  pl_gemm_shape shape;
  double time_s;
} pl_gemm_sample;

typedef struct pl_gemm_filter {
  const char *gpu; /* NULL: whatever is there, if it is one */
  uint32_t dtypes; /* bits 1 << pl_dtype */
} pl_gemm_filter;

typedef struct pl_gemm_samples {
  pl_gemm_sample *rows; /* by dtype, batch, m, n, k; each shape once */
  uint32_t n;
  uint32_t n_read, n_small; /* rows that the filter takes; of these, with too small an m */
  const char *gpu;          /* "" if no file says */
  uint32_t multiprocessors; /* 0: no file says */
} pl_gemm_samples;

/* Everything in `arena`. PL_BAD_INPUT with file:line: a column that is missing, a value that is none, a dtype that is
 * unknown, GPUs or numbers of multiprocessors that differ, no row at all. O(rows log rows). */
pl_code pl_gemm_samples_load(const char *const *paths, uint32_t n_paths, const pl_gemm_filter *filter, pl_arena *arena,
                             pl_gemm_samples *samples, pl_error *error);

/* The same from tables that are read already; n_files > 0. */
pl_code pl_gemm_samples_take(const pl_csv *files, uint32_t n_files, const pl_gemm_filter *filter, pl_arena *arena,
                             pl_gemm_samples *samples, pl_error *error);

/* Calls the rows of one data type another, where a device treats both alike, and pools again. */
void pl_gemm_samples_rename(pl_gemm_samples *samples, pl_dtype from, pl_dtype to);

#endif
