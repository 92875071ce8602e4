/* AMP's randomised search (Li et al. 2022, section 6.3, algorithm 2): simulated annealing over degrees, microbatch and
 * device placement, guided by AMP's cost model; what it accepted is then run, best estimate first. Here a run is a
 * simulation.
 *
 * A neighbour has the same dp and another tmp, or the same tmp and another dp, a microbatch size drawn anew and a new
 * domino tiling of the mesh (search/method/domino.h). Layers are assigned exactly by AMP's costs, which is what its
 * dynamic program finds. A worse neighbour is accepted with probability exp(-(next / cost - 1) / t); the paper has the
 * difference in seconds, which makes t = 1 hot for fast jobs and cold for slow ones. t falls geometrically from 1 to
 * 0.001; the paper does not say how.
 *
 * Every number is drawn from (seed, iteration), so that the sequence is the same wherever it runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/method/amp_candidate.h"
#include "search/method/domino.h"
#include "search/method/method_space.h"
#include "search/method/methods.h"

enum { MOST_ITERATIONS = 1000, LEAST_ITERATIONS = 100, DEVICES_AT_MOST = 64 };

typedef struct state_point {
  uint32_t candidate;
  pl_proposal proposal;
} state_point;

typedef struct anneal {
  const pl_search_problem *problem;
  pl_arena *arena;
  pl_space space;
  pl_domino_mesh mesh;
  uint32_t *picked; /* candidates that a move may lead to */
  pl_proposal *accepted;
  uint32_t n_accepted, next, n_iterations;
} anneal;

/* The state of the numbers of an iteration. */
static uint64_t numbers_of(const anneal *own, uint32_t iteration) {
  uint64_t state = own->problem->seed, mixed = pl_domino_draw(&state) ^ iteration;
  return pl_domino_draw(&mixed);
}

static double draw_unit(uint64_t *random) {
  return (double)(pl_domino_draw(random) >> 11) * 0x1p-53;
}

/* A candidate with this value of one degree, the other degree and the microbatch drawn: first the degree, so that one
 * with many microbatch sizes is not likelier. */
static uint32_t neighbour(anneal *own, uint32_t from, bool keeps_dp, uint64_t *random) {
  const pl_candidate *all = own->space.candidates, *here = &all[from];
  uint32_t n = 0;
  for (uint32_t i = 0; i < own->space.n_candidates; i++) {
    bool fits = keeps_dp ? all[i].dp == here->dp : all[i].tmp == here->tmp;
    bool is_new = true; /* degrees stand for themselves once */
    for (uint32_t j = 0; j < n && is_new; j++)
      is_new = all[own->picked[j]].tmp != all[i].tmp || all[own->picked[j]].dp != all[i].dp;
    if (fits && is_new) own->picked[n++] = i;
  }
  const pl_candidate *degrees = &all[own->picked[pl_domino_draw_below(random, n)]];
  int32_t tmp = degrees->tmp, dp = degrees->dp;
  n = 0;
  for (uint32_t i = 0; i < own->space.n_candidates; i++)
    if (all[i].tmp == tmp && all[i].dp == dp) own->picked[n++] = i;
  return own->picked[pl_domino_draw_below(random, n)];
}

static bool is_identity(const uint32_t *devices, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (devices[i] != i) return false;
  return true;
}

/* A tiling as a placement of ranks; none when the mesh has no tiling: rank i on device i. */
static pl_code place(anneal *own, pl_strategy *strategy, uint64_t *random, pl_error *error) {
  uint32_t n = pl_strategy_n_ranks(strategy);
  uint32_t *placement = PL_TAKE(own->arena, uint32_t, n), *devices = PL_TAKE(own->arena, uint32_t, n);
  strategy->placement = NULL;
  if (own->arena->failed) return pl_fail_memory(error, "the placement");
  bool tiled = n == own->problem->cluster->n_devices &&
               pl_domino_tile(&own->mesh, strategy->tmp, pl_strategy_replicas(strategy), random, own->arena, devices);
  if (own->arena->failed) return pl_fail_memory(error, "the placement");
  if (!tiled) return PL_OK;
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++)
        placement[pl_strategy_rank(strategy, stage, r, t)] =
            devices[(stage * pl_strategy_replicas(strategy) + r) * strategy->tmp + t];
  if (!is_identity(placement, n)) strategy->placement = placement;
  return PL_OK;
}

static pl_code make_point(anneal *own, uint32_t candidate, uint64_t *random, state_point *point, pl_error *error) {
  *point = (state_point){.candidate = candidate, .proposal = pl_method_space_proposal(&own->space, candidate)};
  pl_strategy *strategy = &point->proposal.strategy;
  PL_TRY(place(own, strategy, random, error));
  return pl_amp_candidate_price(own->problem, strategy, false, own->arena, &point->proposal.estimate_s, error);
}

static bool is_same(const pl_strategy *a, const pl_strategy *b) {
  if (a->pp != b->pp || a->dp != b->dp || a->tmp != b->tmp || a->mbs != b->mbs) return false;
  if (a->placement == NULL || b->placement == NULL) return a->placement == b->placement;
  return memcmp(a->placement, b->placement, pl_strategy_n_ranks(a) * sizeof *a->placement) == 0;
}

static void record(anneal *own, const pl_proposal *proposal) {
  for (uint32_t i = 0; i < own->n_accepted; i++)
    if (is_same(&own->accepted[i].strategy, &proposal->strategy)) return;
  own->accepted[own->n_accepted++] = *proposal;
}

/* Equals in the order in which they were found: bounds are not known, their place is free until all are sorted. */
static void rank(anneal *own) {
  for (uint32_t i = 0; i < own->n_accepted; i++)
    own->accepted[i].bound_s = i;
  qsort(own->accepted, own->n_accepted, sizeof *own->accepted, pl_proposal_by_estimate);
  for (uint32_t i = 0; i < own->n_accepted; i++)
    own->accepted[i].bound_s = 0;
}

static pl_code cool(anneal *own, pl_error *error) {
  uint64_t random = numbers_of(own, 0);
  state_point now, next;
  PL_TRY(make_point(own, pl_domino_draw_below(&random, own->space.n_candidates), &random, &now, error));
  record(own, &now.proposal);
  for (uint32_t i = 1; i <= own->n_iterations; i++) {
    double temperature = pow(1e-3, (double)i / own->n_iterations);
    random = numbers_of(own, i);
    bool keeps_dp = pl_domino_draw_below(&random, 2) == 0;
    uint32_t candidate = neighbour(own, now.candidate, keeps_dp, &random);
    double chance = draw_unit(&random);
    pl_arena_mark before = pl_arena_mark_here(own->arena);
    PL_TRY(make_point(own, candidate, &random, &next, error));
    double worse = next.proposal.estimate_s / now.proposal.estimate_s - 1;
    if (chance < exp(-fmax(worse, 0) / temperature)) {
      now = next;
      record(own, &now.proposal);
    } else {
      pl_arena_release_to(own->arena, before);
    }
  }
  rank(own);
  return PL_OK;
}

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  anneal *own = PL_TAKE(arena, anneal, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  uint32_t n_devices = problem->cluster->n_devices, n = MOST_ITERATIONS;
  if (n_devices > DEVICES_AT_MOST) n = MOST_ITERATIONS * DEVICES_AT_MOST / n_devices;
  *own = (anneal){.problem = problem, .arena = arena, .mesh = pl_domino_mesh_of(problem->cluster)};
  own->n_iterations = n < LEAST_ITERATIONS ? LEAST_ITERATIONS : n;
  const pl_space_choices choices = pl_amp_choices(problem);
  pl_search_problem narrowed = *problem;
  narrowed.choices = &choices;
  PL_TRY(pl_method_space_take(&narrowed, arena, &own->space, error));
  own->picked = PL_TAKE(arena, uint32_t, own->space.n_candidates);
  own->accepted = PL_TAKE(arena, pl_proposal, own->n_iterations + 1);
  if (arena->failed) return pl_fail_memory(error, "the search");
  return cool(own, error);
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  anneal *own = state;
  (void)error;
  for (*n = 0; *n < max && own->next < own->n_accepted; (*n)++)
    proposals[*n] = own->accepted[own->next++];
  return PL_OK;
}

static void account(const void *state, pl_search_account *account) {
  const anneal *own = state;
  account->enumerated = own->n_accepted;
  account->space = &own->space;
}

const pl_method pl_method_anneal = {.name = "anneal",
                                    .description = "AMP's annealing over placements by domino tiling (--seed)",
                                    .open = open,
                                    .propose = propose,
                                    .account = account};
