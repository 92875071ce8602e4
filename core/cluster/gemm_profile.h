/* What was fitted to measured matrix products of one type of accelerator: parameters of the model of
 * workloads/cost/gemm_cost.h, which explains them, and a table of what that model leaves over. */
#ifndef PL_CORE_GEMM_PROFILE_H
#define PL_CORE_GEMM_PROFILE_H

#include <stdint.h>

/* Kinds of thread block tiles that share an efficiency; both orientations. */
typedef enum pl_gemm_tile {
  PL_GEMM_TILE_256X128 = 0,
  PL_GEMM_TILE_128X128,
  PL_GEMM_TILE_128X64, /* 256 x 64 too */
  PL_GEMM_TILE_64X64,
  PL_GEMM_TILE_COUNT
} pl_gemm_tile;

const char *pl_gemm_tile_name(pl_gemm_tile tile); /* "256x128" */

/* Rows that do not begin on 16 bytes are fetched in smaller pieces. */
typedef enum pl_gemm_alignment {
  PL_GEMM_ALIGNED_4 = 0, /* on 4 or 8 bytes */
  PL_GEMM_ALIGNED_2,     /* on 1 or 2 */
  PL_GEMM_ALIGNMENT_COUNT
} pl_gemm_alignment;

/* ln(measured / modelled) in thousandths at powers of two of m, n, k, from 2^first to 2^last; milli == NULL: none. Last
 * index fastest. */
enum { PL_GEMM_RESIDUAL_MILLI_MAX = 4000, PL_GEMM_LOG2_MAX = 24 };
typedef struct pl_gemm_residual {
  int32_t first[3], last[3];
  const int16_t *milli;
} pl_gemm_residual;

typedef struct pl_gemm_fit {
  uint32_t dtypes;                                /* bit 1 << pl_dtype for each type that it holds for */
  double overhead_s;                              /* of every kernel: launch on the device, first and last tile */
  double split_overhead_s;                        /* more when k is split: the second kernel that adds up */
  double tile_overhead_s;                         /* per wave: filling and draining the pipeline, storing the tile */
  double memory_efficiency;                       /* of the device memory's bandwidth */
  double cache_rate_Bps;                          /* at which tiles are loaded, all multiprocessors together */
  double wave_quantisation;                       /* 1: a last wave takes as long as a full one; 0: none does */
  double tile_efficiency[PL_GEMM_TILE_COUNT];     /* of the peak, inside the loop over k */
  double unaligned_time[PL_GEMM_ALIGNMENT_COUNT]; /* factor on the time of computing */
  pl_gemm_residual residual;
  /* On shapes of at least 1 GFLOP that were kept out of the fit: number, and the error that half of them and that 90 %
   * of them do not exceed, as a share of the measured time. 0 shapes: not tested. */
  uint32_t n_held_out;
  double median_error, p90_error;
} pl_gemm_fit;

typedef struct pl_gemm_profile {
  uint32_t multiprocessors;
  uint32_t n_fits; /* 0: nothing is known */
  const pl_gemm_fit *fits;
} pl_gemm_profile;

#endif
