/* Predictions that the sources themselves published for their measurements, beside ours; and orders of configurations,
 * where a source says which was faster and not how fast.
 *
 * `other_step_time_s` and `other_mem_gb` of a row are what another simulator said of it, `measured_rank` is its place
 * among the configurations of its group (1 = the most work per second) and `other_rank` the other simulator's place for
 * it. A group has one family, GPU, number of GPUs, software, precision, model and global batch.
 */
#ifndef PL_VALIDATION_BESIDE_H
#define PL_VALIDATION_BESIDE_H

#include "validation/rows/case.h"

/* [0] of ours, [1] of theirs. */
typedef struct pl_beside {
  const char *family;
  uint32_t n_times; /* measured, predicted by both */
  double mape_pct[2], bias_pct[2];
  double spearman[2]; /* of work per second; NaN for fewer than PL_BESIDE_RANKED */
  uint32_t n_memory;
  double memory_mape_pct[2];
} pl_beside;

enum { PL_BESIDE_RANKED = 5 };

typedef struct pl_order {
  const pl_case *const *cases; /* by measured rank */
  const uint32_t *predicted;   /* their places among those that could be expressed; 0: it could not */
  uint32_t n_cases, n_expressed;
  bool has_other;
  double spearman[2];
} pl_order;

typedef struct pl_besides {
  pl_beside *families; /* in the order of their first rows; those with something to compare */
  uint32_t n_families;
  pl_order *orders;
  uint32_t n_orders;
} pl_besides;

/* Everything in `arena`. */
pl_code pl_besides_take(const pl_cases *cases, pl_arena *arena, pl_besides *besides, pl_error *error);

#endif
