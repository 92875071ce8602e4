/* How far predictions are from measurements: over a set of cases, and within groups that can be compared. */
#ifndef PL_VALIDATION_CASE_STATISTICS_H
#define PL_VALIDATION_CASE_STATISTICS_H

#include "validation/rows/case.h"

typedef struct pl_statistics {
  uint32_t n_rows;                                        /* as in the files */
  uint32_t n_cases;                                       /* of different configuration */
  uint32_t n_expressed;                                   /* of these */
  uint32_t n_timed;                                       /* of these, with a measured time */
  double mape_pct, median_ape_pct, p90_ape_pct, bias_pct; /* over the timed; NaN for none */
  /* Over groups of the same model, GPU, GPU count, software and precision: mean of Spearman's rank correlation of MFU
   * in groups of PL_SPEARMAN_CASES or more, weighted by cases; and of how much slower the configuration with the best
   * prediction is than the best measured one, for the same sequence length, in groups of two or more. */
  double spearman, regret_pct;
  uint32_t n_ranked_groups, n_choice_groups;
  double coverage_pct; /* of the timed, how many lie in their prediction interval; NaN: there is none */
  /* Memory: timed or not. */
  uint32_t n_memory; /* with a measured peak */
  double memory_mape_pct, memory_median_ape_pct, memory_bias_pct;
  uint32_t verdict[2][2]; /* [ran out of memory or crashed][predicted not to fit] */
} pl_statistics;

enum { PL_SPEARMAN_CASES = 5 };

/* Over some[0 .. n). Scratch from `arena`, given back. */
pl_code pl_statistics_of(const pl_case *const *some, uint32_t n, pl_arena *arena, pl_statistics *statistics,
                         pl_error *error);

#endif
