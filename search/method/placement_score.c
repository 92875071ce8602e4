/* See search/method/placement_score.h. */
#include "search/method/placement_score.h"

#include <math.h>
#include <string.h>

#include "workloads/assign/stage_costs.h"
#include "workloads/lower/block_cache.h"

enum { MOST_DEALS = 4 };

typedef struct scoring {
  const pl_search_problem *problem;
  pl_strategy *strategy;
  pl_arena *arena;
  int32_t *cut;       /* of layers, as the best assignment so far has them */
  double *pace_s;     /* per data rank */
  pl_program program; /* of the last solve */
  pl_error *error;
} scoring;

/* ---- dealing ---- */

/* Shares in proportion, rounded down, are at most what the best deal has; then one unit at a time to the replica that
 * would be done with it first. */
bool pl_placement_deal(int32_t n_replicas, const double *pace_s, int64_t n_units, int32_t unit, int32_t *split) {
  double speed = 0;
  int64_t left = n_units;
  if (n_units < n_replicas) return false;
  for (int32_t r = 0; r < n_replicas; r++)
    speed += 1 / pace_s[r];
  for (int32_t r = 0; r < n_replicas; r++) {
    /* each keeps one for every other, so that all get one */
    double share = floor((double)(n_units - n_replicas) / (pace_s[r] * speed));
    split[r] = 1 + (int32_t)fmax(0, share - 1);
    left -= split[r];
  }
  for (; left > 0; left--) {
    int32_t first = 0;
    for (int32_t r = 1; r < n_replicas; r++)
      if ((split[r] + 1) * pace_s[r] < (split[first] + 1) * pace_s[first]) first = r;
    split[first]++;
  }
  for (int32_t r = 0; r < n_replicas; r++)
    split[r] *= unit;
  return true;
}

/* ---- paces ---- */

static uint32_t profile_of(const scoring *state, int32_t stage, int32_t replica, int32_t tensor) {
  return state->problem->cluster->devices[pl_strategy_device(state->strategy, stage, replica, tensor)].profile;
}

static bool has_unlike_replicas(const scoring *state) {
  const pl_strategy *strategy = state->strategy;
  for (int32_t s = 0; s < strategy->pp; s++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++)
        if (profile_of(state, s, r, t) != profile_of(state, s, 0, 0)) return true;
  return false;
}

static double block_s(const scoring *state, const pl_block_prices *prices, int32_t block_class) {
  double time_s = 0;
  for (int pass = PL_PASS_FORWARD; pass <= PL_PASS_BACKWARD; pass++) {
    const pl_op_list *list = pl_block_ops(&state->program.blocks[block_class], (pl_block_pass)pass);
    for (uint32_t i = 0; i < list->n_ops; i++)
      if (list->ops[i].kind != PL_OP_COLLECTIVE) time_s += prices->times[block_class][pass][i].time_s;
  }
  return time_s;
}

/* Per profile and stage: computing of one microbatch. */
static pl_code time_stages(const scoring *state, const pl_device_profile *profile, double *stage_s) {
  const pl_model *model = state->problem->model;
  const pl_block_prices *prices;
  PL_TRY(pl_block_cache_prices(state->problem->options->blocks, model, state->program.blocks, profile, state->arena,
                               &prices, state->error));
  const pl_strategy *strategy = state->strategy;
  const int32_t first = PL_MODEL_BLOCKS_BEFORE_LAYERS, end = first + model->n_layers;
  double class_s[PL_MODEL_CLASSES_MAX] = {0};
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    class_s[c] = block_s(state, prices, c);
  for (int32_t c = 0; c < pl_strategy_n_chunks(strategy); c++)
    for (int32_t layer = state->cut[c]; layer < state->cut[c + 1]; layer++)
      stage_s[pl_strategy_stage_of(strategy, c)] += class_s[pl_model_block_class(model, layer + first)];
  for (int32_t block = 0; block < first; block++)
    stage_s[0] += class_s[pl_model_block_class(model, block)];
  for (int32_t block = end; block < pl_model_n_blocks(model); block++)
    stage_s[strategy->pp - 1] += class_s[pl_model_block_class(model, block)];
  return PL_OK;
}

/* A replica goes at the pace of its slowest stage. */
static pl_code find_paces(scoring *state) {
  const pl_strategy *strategy = state->strategy;
  const pl_cluster *cluster = state->problem->cluster;
  pl_arena_mark scratch = pl_arena_mark_here(state->arena);
  double *stage_s = PL_TAKE(state->arena, double, (size_t)cluster->n_profiles *(size_t)strategy->pp);
  if (stage_s == NULL) return pl_fail_memory(state->error, "the paces of replicas");
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    PL_TRY(time_stages(state, &cluster->profiles[p], &stage_s[(size_t)p * (size_t)strategy->pp]));
  int32_t cp = pl_strategy_cp(strategy);
  memset(state->pace_s, 0, (size_t)strategy->dp * sizeof *state->pace_s);
  for (int32_t s = 0; s < strategy->pp; s++)
    for (int32_t r = 0; r < pl_strategy_replicas(strategy); r++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        size_t row = (size_t)profile_of(state, s, r, t) * (size_t)strategy->pp;
        state->pace_s[r / cp] = fmax(state->pace_s[r / cp], stage_s[row + (size_t)s]);
      }
  pl_arena_release_to(state->arena, scratch);
  return PL_OK;
}

/* ---- the objective ---- */

/* The program is valid until the next one is solved (its blocks are of the cache) or the caller gives its memory back.
 */
static pl_code solve(scoring *state, int32_t *cut, double *time_s) {
  const pl_search_problem *problem = state->problem;
  const pl_collective_options collective = {.sharing = problem->options->sharing,
                                            .algorithm = problem->options->algorithm,
                                            .profile = problem->options->collective_profile};
  pl_stage_costs costs;
  PL_TRY(pl_stage_costs_take(problem->cluster, problem->model, problem->job, state->strategy, &collective,
                             problem->options->blocks, state->arena, &costs, state->error));
  pl_assignment found = {.boundary = cut};
  PL_TRY(pl_layer_assignment_solve(&costs.problem, state->arena, &found, state->error));
  *time_s = found.feasible ? found.time_s : (double)INFINITY;
  state->program = costs.program;
  return PL_OK;
}

static bool may_split(const pl_strategy *strategy) {
  return strategy->dp > 1 && strategy->zero < 2 && pl_strategy_ep(strategy) == 1;
}

/* One more deal; *gains: the objective became smaller, and strategy, cut and *best_s are those of the new one. */
static pl_code deal_again(scoring *state, int32_t *cut, double *best_s, bool *gains) {
  pl_strategy *strategy = state->strategy;
  const pl_job *job = state->problem->job;
  int32_t unit = strategy->vpp > 1 ? strategy->pp : 1, n_chunks = pl_strategy_n_chunks(strategy);
  const int32_t *before = strategy->split;
  *gains = false;
  int32_t *split = PL_TAKE(state->arena, int32_t, strategy->dp);
  if (split == NULL) return pl_fail_memory(state->error, "a split");
  int64_t n_units = job->gbs / strategy->mbs / unit;
  if (job->gbs % ((int64_t)strategy->mbs * unit) != 0) return PL_OK;
  if (!pl_placement_deal(strategy->dp, state->pace_s, n_units, unit, split)) return PL_OK;
  if (before != NULL && memcmp(before, split, (size_t)strategy->dp * sizeof *split) == 0) return PL_OK;
  pl_arena_mark scratch = pl_arena_mark_here(state->arena);
  double time_s;
  strategy->split = split;
  PL_TRY(solve(state, cut, &time_s));
  *gains = time_s < *best_s;
  if (*gains) {
    *best_s = time_s;
    memcpy(state->cut, cut, ((size_t)n_chunks + 1) * sizeof *cut);
    PL_TRY(find_paces(state));
  } else {
    strategy->split = before;
  }
  pl_arena_release_to(state->arena, scratch);
  return PL_OK;
}

pl_code pl_placement_score(const pl_search_problem *problem, pl_strategy *strategy, pl_arena *arena, double *estimate_s,
                           pl_error *error) {
  pl_error refused = PL_ERROR_INIT;
  *estimate_s = (double)NAN;
  if (pl_strategy_check(strategy, problem->model, problem->job, problem->cluster->n_devices, &refused) != PL_OK)
    return refused.code == PL_NO_MEMORY ? pl_fail(error, refused.code, "%s", refused.message) : PL_OK;
  int32_t n_chunks = pl_strategy_n_chunks(strategy);
  scoring state = {.problem = problem, .strategy = strategy, .arena = arena, .error = error};
  int32_t *splits = PL_TAKE(arena, int32_t, strategy->dp); /* what stays of the scratch below */
  pl_arena_mark scratch = pl_arena_mark_here(arena);
  state.cut = PL_TAKE(arena, int32_t, n_chunks + 1);
  state.pace_s = PL_TAKE(arena, double, strategy->dp);
  int32_t *cut = PL_TAKE(arena, int32_t, n_chunks + 1);
  if (arena->failed) return pl_fail_memory(error, "a score");
  PL_TRY(solve(&state, state.cut, estimate_s));
  bool gains = may_split(strategy) && has_unlike_replicas(&state);
  if (gains) PL_TRY(find_paces(&state));
  for (int i = 0; i < MOST_DEALS && gains; i++)
    PL_TRY(deal_again(&state, cut, estimate_s, &gains));
  if (strategy->split != NULL) {
    memcpy(splits, strategy->split, (size_t)strategy->dp * sizeof *splits);
    strategy->split = splits;
  }
  pl_arena_release_to(arena, scratch);
  return PL_OK;
}
