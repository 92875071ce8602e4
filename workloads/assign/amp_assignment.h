/* AMP's own dynamic program for the layer assignment (Li et al. 2022, section 3.5, equations 6 to 8), for comparison
 * with workloads/assign/layer_assignment.h.
 *
 * It minimises rounds * max_i t_i + sum_i t_i + sum_i e_i over contiguous assignments, with one price of a layer for
 * all stages, no memory and no synchronisation: a table over (layers done, stages, tolerance m), in which m runs over
 * all times that consecutive layers can take together. */
#ifndef PL_WORKLOADS_AMP_ASSIGNMENT_H
#define PL_WORKLOADS_AMP_ASSIGNMENT_H

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_amp_problem {
  int32_t n_layers, n_stages; /* 1 <= n_stages <= n_layers */
  double rounds;              /* microbatches - 1 */
  const double *time_s;       /* prefix sums, n_layers + 1 */
  const double *const *cut_s; /* [n_stages - 1][n_layers + 1]: e_i when stage i ends at that layer; NULL: none */
  /* As AMP's published program has it: a cut is weighed when the last stage's start is chosen, and left out of the cost
   * that is handed on. False: equation 8. */
  bool forgets_cuts;
} pl_amp_problem;

/* Fills `boundary` (n_stages + 1 entries). Among equals the first start of a later stage. `n_steps` (may be NULL):
 * steps of the innermost loop. Cost: n_stages * n_layers^2 / 2 * M steps and n_stages * n_layers * M cells, M the
 * number of distinct times (to 1e-12), at most n_layers * (n_layers + 1) / 2 + 1. PL_UNSUPPORTED beyond 2^27 cells: the
 * message names `optimal`. Scratch from `arena`, given back. */
pl_code pl_amp_assignment_solve(const pl_amp_problem *problem, pl_arena *arena, int32_t *boundary, uint64_t *n_steps,
                                pl_error *error);

#endif
