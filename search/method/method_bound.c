/* Bound and prune: every candidate of the space gets a lower bound (search/bound/lower_bound.h); those that certainly
 * do not fit are dropped, the others are simulated in the order of their bounds until the next bound is not below the
 * best time (where N best are wanted, the N-th best). What is left then cannot be faster, so the best is that of all
 * candidates. At any moment the bound of the next
 * candidate is a bound on everything that is not simulated.
 *
 * Rounds are short, and the first ones shortest: a best that is found in a round prunes from the next one on. What must
 * be simulated in any case are the candidates whose bound is below the best there is, so order and length of the rounds
 * cost little.
 *
 * On unlike devices or nodes, unless the user gives their order or the layers' assignment, other placements come first:
 * those of search/method/placement_search.h, best estimate first, each simulated only if its own bound is below the
 * best, until PLACED_MOST are simulated, as many bounded as placed_work allows, or none is left. What they find prunes
 * the space. The proof covers the space and, when none is left, the placements that were ranked; of all others only
 * pl_lower_bound_anywhere is known.
 *
 * Where nothing can fit, the candidate that misses by least is simulated all the same, so that there is a row that says
 * what it lacks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/bound/lower_bound.h"
#include "search/method/method_space.h"
#include "search/method/methods.h"
#include "search/method/placement_search.h"
#include "workloads/assign/assign.h"

enum { FIRST_ROUND = 16, MOST_ROUND = 64, PLACED_ROUND = 64, PLACED_MOST = 200, PLACED_LEAST_LOOKS = 16 };
/* Bounds of placements times devices squared, which one costs about: as many as of AMP's 16 devices take some 10 s. */
static const double placed_work = 1 << 23;

typedef struct ranked {
  double bound_s;
  uint32_t index;
} ranked;

typedef struct bound {
  pl_space space;
  ranked *order; /* by bound */
  uint32_t n, next, round;
  uint64_t n_memory;
  uint32_t nearest; /* of those that do not fit the one that misses by least */
  double *best_s;   /* the n_best best times so far, sorted; INFINITY where there are fewer */
  uint32_t n_best;
  /* The boundaries found last, and for what: neighbours in the space differ in ZeRO and overlap only. */
  pl_strategy assigned;
  pl_simulate_options options; /* the problem's, while candidates are ranked with a cache of blocks */
  const pl_search_problem *problem;
  pl_placement_search *placing;   /* NULL: devices and nodes are alike, or their order is given */
  uint64_t n_placed, most_placed; /* bounded, and how many may be */
  uint32_t n_placed_simulated;
  bool placed_all;   /* nothing is left of them */
  double anywhere_s; /* 0: not known */
} bound;

/* ZeRO and overlap count for the assignments that know what synchronisation costs. */
static bool same_assignment(const pl_strategy *a, const pl_strategy *b) {
  bool prices_synchronisation = a->recipe == PL_ASSIGN_OPTIMAL || a->recipe == PL_ASSIGN_AMP;
  if (prices_synchronisation && (a->zero != b->zero || a->overlap != b->overlap)) return false;
  return a->boundary != NULL && a->recipe == b->recipe && a->pp == b->pp && a->vpp == b->vpp && a->tmp == b->tmp &&
         a->dp == b->dp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp && a->ep_overlap == b->ep_overlap &&
         a->mbs == b->mbs && a->sp == b->sp && a->schedule == b->schedule && a->recompute == b->recompute &&
         strcmp(a->order, b->order) == 0;
}

static pl_code assign(const pl_search_problem *problem, bound *own, pl_strategy *strategy, pl_arena *scratch,
                      pl_error *error) {
  if (same_assignment(&own->assigned, strategy)) {
    strategy->boundary = own->assigned.boundary;
    return PL_OK;
  }
  own->assigned.boundary = NULL;
  pl_arena_reset(scratch);
  PL_TRY(pl_assign(strategy, problem->model, problem->job, problem->cluster, &own->options, scratch, error));
  own->assigned = *strategy;
  return PL_OK;
}

/* What cannot be assigned (AMP's program has a limit) is proposed all the same: the row says why it failed. */
static pl_code bound_one(const pl_search_problem *problem, bound *own, pl_lower_bounds *bounds, uint32_t index,
                         pl_arena *scratch, pl_lower_bound *found, pl_error *error) {
  pl_strategy strategy;
  pl_error refused = PL_ERROR_INIT;
  *found = (pl_lower_bound){.shortfall_bytes = 0};
  pl_space_strategy(&own->space, index, &strategy);
  pl_code code = assign(problem, own, &strategy, scratch, &refused);
  if (code == PL_OK) return pl_lower_bound_of(bounds, &strategy, found, error);
  return code == PL_NO_MEMORY ? pl_fail(error, code, "%s", refused.message) : PL_OK;
}

static pl_code bound_anywhere(bound *own, pl_lower_bounds *bounds, uint32_t index, pl_error *error) {
  pl_strategy strategy;
  double time_s;
  if (own->placing == NULL) return PL_OK;
  pl_space_strategy(&own->space, index, &strategy);
  PL_TRY(pl_lower_bound_anywhere(bounds, &strategy, &time_s, error));
  if (index == 0 || time_s < own->anywhere_s) own->anywhere_s = time_s;
  return PL_OK;
}

static pl_code bound_all(const pl_search_problem *problem, bound *own, pl_lower_bounds *bounds, pl_arena *scratch,
                         pl_error *error) {
  double least = INFINITY;
  for (uint32_t i = 0; i < own->space.n_candidates; i++) {
    pl_lower_bound found;
    PL_TRY(bound_anywhere(own, bounds, i, error));
    PL_TRY(bound_one(problem, own, bounds, i, scratch, &found, error));
    if (found.shortfall_bytes <= 0) {
      own->order[own->n++] = (ranked){found.time_s, i};
      continue;
    }
    own->n_memory++;
    if (found.shortfall_bytes >= least) continue;
    least = found.shortfall_bytes;
    own->nearest = i;
  }
  return PL_OK;
}

static int by_bound(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  if (a->bound_s != b->bound_s) return a->bound_s < b->bound_s ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static pl_code rank(const pl_search_problem *problem, bound *own, pl_arena *arena, pl_error *error) {
  pl_arena kept, scratch;
  pl_arena_init(&kept, 0);
  pl_arena_init(&scratch, 0);
  own->order = PL_TAKE(arena, ranked, own->space.n_candidates);
  pl_lower_bounds *bounds = pl_lower_bounds_take(problem->cluster, problem->model, problem->job, &own->options, &kept);
  pl_code code = own->order == NULL || bounds == NULL ? pl_fail_memory(error, "the bounds of the candidates")
                                                      : bound_all(problem, own, bounds, &scratch, error);
  pl_lower_bounds_release(bounds);
  pl_arena_release(&scratch);
  pl_arena_release(&kept);
  own->assigned.boundary = NULL;
  PL_TRY(code);
  if (own->n == 0) {
    own->order[own->n++] = (ranked){0, own->nearest};
    own->n_memory--;
  }
  qsort(own->order, own->n, sizeof *own->order, by_bound);
  return PL_OK;
}

static pl_code open_placing(const pl_search_problem *problem, bound *own, pl_arena *arena, pl_error *error) {
  if (problem->choices->order_is_given || !pl_placement_matters(problem->cluster)) return PL_OK;
  double n_devices = problem->cluster->n_devices;
  own->most_placed = (uint64_t)fmax(PLACED_LEAST_LOOKS, placed_work / n_devices / n_devices);
  own->placing = PL_TAKE(arena, pl_placement_search, 1);
  if (own->placing == NULL) return pl_fail_memory(error, "the search");
  return pl_placement_search_init(own->placing, problem, arena, error);
}

/* The space asks for balanced assignments, and so do bounds: of the same blocks. */
static pl_code walk_and_rank(const pl_search_problem *problem, bound *own, pl_arena *arena, pl_error *error) {
  pl_block_cache blocks;
  pl_search_problem with_blocks = *problem;
  pl_block_cache_init(&blocks, PL_BLOCK_CACHE_ALL);
  own->options = *problem->options;
  own->options.blocks = &blocks;
  with_blocks.options = &own->options;
  pl_code code = pl_method_space_take(&with_blocks, arena, &own->space, error);
  if (code == PL_OK) code = open_placing(problem, own, arena, error);
  if (code == PL_OK) code = rank(problem, own, arena, error);
  own->options.blocks = NULL;
  pl_block_cache_release(&blocks);
  return code;
}

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  bound *own = PL_TAKE(arena, bound, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  own->problem = problem;
  own->round = FIRST_ROUND;
  own->n_best = problem->n_top > 1 ? problem->n_top : 1;
  own->best_s = PL_TAKE(arena, double, own->n_best);
  if (own->best_s == NULL) return pl_fail_memory(error, "the search");
  for (uint32_t i = 0; i < own->n_best; i++)
    own->best_s[i] = INFINITY;
  return walk_and_rank(problem, own, arena, error);
}

/* What a candidate has to beat. */
static double target_s(const bound *own) {
  return own->best_s[own->n_best - 1];
}

/* ---- other placements ---- */

/* Those of the `n` proposals that may be faster than the best and fit, with their bounds. */
static pl_code keep_promising(const bound *own, const pl_simulate_options *options, pl_lower_bounds *bounds,
                              pl_arena *scratch, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  const pl_search_problem *p = own->problem;
  uint32_t n_kept = 0;
  for (uint32_t i = 0; i < *n; i++) {
    pl_strategy strategy = proposals[i].strategy;
    pl_lower_bound found = {.shortfall_bytes = 0};
    pl_error refused = PL_ERROR_INIT;
    pl_arena_reset(scratch);
    pl_code code = strategy.boundary != NULL
                       ? PL_OK
                       : pl_assign(&strategy, p->model, p->job, p->cluster, options, scratch, &refused);
    if (code == PL_NO_MEMORY) return pl_fail(error, code, "%s", refused.message);
    if (code == PL_OK) PL_TRY(pl_lower_bound_of(bounds, &strategy, &found, error));
    if (found.shortfall_bytes > 0 || found.time_s >= target_s(own)) continue;
    proposals[n_kept] = proposals[i];
    proposals[n_kept++].bound_s = found.time_s;
  }
  *n = n_kept;
  return PL_OK;
}

static pl_code propose_placed(bound *own, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  pl_arena kept, scratch;
  pl_block_cache blocks;
  const pl_search_problem *p = own->problem;
  pl_simulate_options options = *p->options;
  pl_block_cache_init(&blocks, PL_BLOCK_CACHE_ALL);
  options.blocks = &blocks;
  pl_arena_init(&kept, 0);
  pl_arena_init(&scratch, 0);
  pl_lower_bounds *bounds = pl_lower_bounds_take(p->cluster, p->model, p->job, &options, &kept);
  pl_code code = bounds == NULL ? pl_fail_memory(error, "the bounds of the placements") : PL_OK;
  for (*n = 0; code == PL_OK && *n == 0 && !own->placed_all && own->n_placed < own->most_placed;) {
    uint64_t left = own->most_placed - own->n_placed;
    code =
        pl_placement_search_propose(own->placing, left < max ? (uint32_t)left : max, PLACED_ROUND, proposals, n, error);
    own->placed_all = *n == 0;
    own->n_placed += *n;
    if (code == PL_OK) code = keep_promising(own, &options, bounds, &scratch, proposals, n, error);
  }
  own->n_placed_simulated += *n;
  pl_lower_bounds_release(bounds);
  pl_arena_release(&scratch);
  pl_arena_release(&kept);
  pl_block_cache_release(&blocks);
  return code;
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  bound *own = state;
  *n = 0;
  uint32_t most = max < own->round ? max : own->round;
  if (own->round < MOST_ROUND) own->round *= 2;
  if (own->placing != NULL && own->n_placed_simulated < PLACED_MOST)
    PL_TRY(propose_placed(own, most, proposals, n, error));
  if (*n > 0) return PL_OK;
  for (; *n < most && own->next < own->n && own->order[own->next].bound_s < target_s(own); own->next++) {
    proposals[*n] = pl_method_space_proposal(&own->space, own->order[own->next].index);
    proposals[(*n)++].bound_s = own->order[own->next].bound_s;
  }
  return PL_OK;
}

static void learn(void *state, const pl_proposal *proposal, const pl_result_row *row) {
  bound *own = state;
  if (own->placing != NULL) pl_placement_search_learn(own->placing, proposal, row);
  if (own->placing != NULL && own->placing->improved) own->placed_all = false;
  if (row->status != PL_RESULT_DONE || row->iter_time_s >= target_s(own)) return;
  uint32_t at = own->n_best - 1;
  for (; at > 0 && row->iter_time_s < own->best_s[at - 1]; at--)
    own->best_s[at] = own->best_s[at - 1];
  own->best_s[at] = row->iter_time_s;
}

static void account(const void *state, pl_search_account *account) {
  const bound *own = state;
  account->enumerated = own->space.n_candidates;
  account->memory_away = own->n_memory;
  account->space = &own->space;
  account->placed = own->n_placed;
  account->placed_all = own->placed_all;
  account->anywhere_s = own->anywhere_s;
  account->bound_s = own->next < own->n ? own->order[own->next].bound_s : own->best_s[0];
  for (uint32_t i = own->n; i > own->next && own->order[i - 1].bound_s >= target_s(own); i--)
    account->bounded_away++;
}

const pl_method pl_method_bound = {
    .name = "bound",
    .description = "the best of the space, proven by lower bounds; on unlike devices or nodes placements, too",
    .open = open,
    .propose = propose,
    .learn = learn,
    .account = account};
