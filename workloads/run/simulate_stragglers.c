/* See workloads/run/simulate_state.h: the compiled graph at paces of its own, and how the paces of the draws turn out.
 *
 * The draws have graphs of their own, one per number of microbatches that are left to leaps: a run at other paces may
 * need more microbatches to recur than the undisturbed one. What was enough for one run is where the next begins; leaps
 * are exact, so no result depends on that. */
#include "core/graph/graph_pace.h"
#include "workloads/run/simulate_state.h"

static double *take_factors(const pl_simulation *state) {
  return PL_TAKE(state->arena, double, state->plan.n_device_classes);
}

/* Per device class: those of one mark always have one factor. */
static uint32_t *take_kinds(const pl_simulation *state) {
  uint32_t *kinds = PL_TAKE(state->arena, uint32_t, state->plan.n_device_classes);
  for (uint32_t c = 0; kinds != NULL && c < state->plan.n_device_classes; c++)
    kinds[c] = state->options->stragglers->marks[state->plan.device_classes[c].device];
  return kinds;
}

/* Of the device classes, from those of the cluster's devices. */
static void factors_of_classes(const pl_simulation *state, const double *factor, double *of_class) {
  for (uint32_t c = 0; c < state->plan.n_device_classes; c++)
    of_class[c] = factor[state->plan.device_classes[c].device];
}

pl_code pl_simulation_slow_down(pl_simulation *state) {
  double *of_class = take_factors(state), *factor = PL_TAKE(state->arena, double, state->cluster->n_devices);
  if (state->arena->failed) return pl_fail_memory(state->error, "the paces of the devices");
  pl_graph_pace pace;
  pl_graph base = state->compiled.graph;
  pl_stragglers_named(state->options->stragglers, state->cluster->n_devices, factor);
  factors_of_classes(state, factor, of_class);
  PL_TRY(pl_graph_pace_take(&base, take_kinds(state), state->arena, &pace, state->error));
  pl_graph_pace_set(&pace, of_class);
  state->compiled.graph = pace.graph;
  return PL_OK;
}

/* ---- draws ---- */

typedef struct level {
  int32_t leapt;
  pl_compiled compiled;
  pl_graph_pace pace;
} level;

enum { MOST_LEVELS = 64 };

typedef struct straggling {
  pl_simulation *state;
  pl_compile_options compile;
  level *levels[MOST_LEVELS];
  uint32_t n_levels;
  pl_leap_search first; /* where the next run begins */
  uint32_t *kinds;
  double *of_class;
} straggling;

static pl_code find_level(straggling *own, int32_t leapt, level **found) {
  const pl_simulation *state = own->state;
  for (uint32_t i = 0; i < own->n_levels; i++)
    if (own->levels[i]->leapt == leapt) {
      *found = own->levels[i];
      return PL_OK;
    }
  PL_ASSERT(own->n_levels < MOST_LEVELS);
  level *made = PL_TAKE(state->arena, level, 1);
  if (made == NULL) return pl_fail_memory(state->error, "the graph");
  made->leapt = own->compile.leapt = leapt;
  PL_TRY(pl_compile(state->cluster, &state->program, &state->plan, &own->compile, state->arena, &made->compiled,
                    state->error));
  PL_TRY(pl_graph_pace_take(&made->compiled.graph, own->kinds, state->arena, &made->pace, state->error));
  *found = own->levels[own->n_levels++] = made;
  return PL_OK;
}

static pl_code run_level(const straggling *own, const level *on, bool drifts, pl_engine_result *result,
                         pl_error *error) {
  const pl_simulation *state = own->state;
  const pl_engine_options options = {
      .lanes = on->leapt > 0 ? &on->compiled.lanes : NULL, .n_more = on->compiled.n_more, .drifts = drifts};
  return pl_simulate_graph(&on->pace.graph, state->options, &options, state->arena, result, error);
}

static pl_code play(void *context, const double *factor, pl_ticks *makespan, pl_error *error) {
  straggling *own = context;
  factors_of_classes(own->state, factor, own->of_class);
  for (pl_leap_search search = own->first;; own->first = search) {
    level *on = NULL;
    pl_engine_result result;
    PL_TRY(find_level(own, search.leapt, &on));
    pl_graph_pace_set(&on->pace, own->of_class);
    pl_arena_mark mark = pl_arena_mark_here(own->state->arena);
    pl_code code = run_level(own, on, search.drifts, &result, error);
    *makespan = result.makespan;
    bool is_whole = search.leapt == 0 || (code == PL_OK && result.is_whole);
    if (code == PL_OK && !is_whole) pl_leap_search_go_on(&search, &result);
    pl_arena_release_to(own->state->arena, mark);
    if (code != PL_OK || is_whole) return code;
  }
}

pl_code pl_simulation_straggle(pl_simulation *state) {
  const pl_simulate_options *options = state->options;
  pl_arena *arena = state->arena;
  uint32_t n = pl_strategy_n_ranks(state->strategy), *devices = PL_TAKE(arena, uint32_t, n);
  straggling own = {
      .state = state, .compile = state->compile, .kinds = take_kinds(state), .of_class = take_factors(state)};
  if (arena->failed) return pl_fail_memory(state->error, "the draws");
  for (uint32_t rank = 0; rank < n; rank++)
    devices[rank] = pl_strategy_device_of_rank(state->strategy, rank);
  own.compile.names = false;
  own.compile.origins = NULL;
  own.first = pl_leap_search_begin(&state->program, options->leap && options->executor == PL_EXECUTOR_ENGINE &&
                                                        options->network != PL_NETWORK_SIMGRID);
  const pl_straggler_player player = {.context = &own,
                                      .play = play,
                                      .devices = devices,
                                      .n_devices = n,
                                      .n_cluster_devices = state->cluster->n_devices,
                                      .remains_factor = pl_simulation_remains_factor(state)};
  return pl_stragglers_measure(options->stragglers, &player, arena, options->straggling, state->error);
}
