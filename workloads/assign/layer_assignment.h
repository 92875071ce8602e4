/* Layer assignment: the exact optimum of the pipeline objective over contiguous assignments of layers to stages.
 *
 * Layers 0 .. L-1 are cut at boundary[0] = 0 < boundary[1] < ... < boundary[k] = L; stage i runs the layers in
 * [boundary[i], boundary[i+1]), at least one. What is minimised is AMP's equation 5 (Li et al. 2022, section 3.4) with
 * the synchronisation of equation 4 inside:
 *
 *   rounds * period  +  sum_i t_i  +  sum_i e_i  +  max_i s_i        rounds = microbatches - 1, period = max_i t_i
 *
 * t_i: time of one microbatch on stage i; e_i: sending across the cut behind stage i; s_i: what stage i does once
 * behind the pipeline (data-parallel reduction, optimizer). Where a schedule lets only n_i microbatches be under way
 * from stage i on (1F1B: k - i), the period is also at least that of their round trip, sum over j >= i of (t_j + e_j),
 * over n_i. Each stage has prices of its own, for its own devices and links, and a limit of memory of its own, at its
 * own place in the schedule. Paper and published code take one price for all stages, no memory, and s_i from the
 * assignment that they chose without it.
 *
 * It lives here, and not in search/, because `simulate --strategy assign=optimal` needs it and workloads may not use
 * search. It knows no model: workloads/assign/stage_costs.h makes the prices.
 */
#ifndef PL_WORKLOADS_LAYER_ASSIGNMENT_H
#define PL_WORKLOADS_LAYER_ASSIGNMENT_H

#include "core/base/arena.h"
#include "core/base/status.h"

/* Prefix sums: row[b] - row[a] is the price of layers a .. b-1; rows have n_layers + 1 entries, do not decrease and may
 * be shared by stages. Arrays of the caller, read only. */
typedef struct pl_assignment_problem {
  int32_t n_layers, n_stages; /* 1 <= n_stages <= n_layers */
  double rounds;              /* >= 0 */
  const double *const *time_s;
  const double *const *cut_s;        /* [n_stages - 1][n_layers + 1]: [i][b] is e_i when stage i ends at layer b, no
                                        prefix sums; NULL: sending takes no time */
  const double *const *sync_s;       /* NULL: nothing behind the pipeline */
  const double *const *sync_slack_s; /* [n_stages][n_layers + 1], no prefix sums, not decreasing: s_i of a stage that
                                        starts at layer a is less by [i][a], and not below 0; NULL: none (equation 4) */
  const double *in_flight;           /* n_i per stage, INFINITY: no limit; NULL: none has one (equation 5) */
  const double *sync_constant_s;     /* per stage, beside its layers; NULL: none */
  const double *const *memory_bytes; /* NULL: no limits */
  const double *memory_room_bytes;   /* per stage: what its layers may take */
} pl_assignment_problem;

typedef struct pl_assignment {
  int32_t *boundary;                      /* n_stages + 1 entries, storage of the caller */
  bool feasible;                          /* false: no assignment keeps to the memory, nothing else is set */
  double time_s;                          /* of the objective, and its parts */
  double period_s, largest_sync_s, sum_s; /* sum_s: of stages and cuts */
  uint64_t n_solves;                      /* inner problems solved, each O(n_stages * n_layers) */
} pl_assignment;

/* The best assignment; among those with its sum and no larger maxima the one whose stages' times have the least sum of
 * squares. Exact up to rounding of the sums (exact for whole numbers below 2^53). Cost: O(n_stages * n_layers) per
 * inner problem, of which 10 to 60 are usual (README.md here has the table); at most one per pair of distinct values
 * of t_i and s_i; the last step O(n_stages * n_layers^2) at most. Scratch from `arena`, given back. */
pl_code pl_layer_assignment_solve(const pl_assignment_problem *problem, pl_arena *arena, pl_assignment *assignment,
                                  pl_error *error);

/* Fills time_s and its parts from the boundaries. */
void pl_layer_assignment_price(const pl_assignment_problem *problem, pl_assignment *assignment);

/* Without memory in time: the least number of bytes by which every stage's room would have to grow for an assignment to
 * exist; 0 when there is one. */
pl_code pl_layer_assignment_shortfall(const pl_assignment_problem *problem, pl_arena *arena, double *bytes,
                                      pl_error *error);

#endif
