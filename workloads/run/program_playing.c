/* See workloads/run/program_playing.h. */
#include "workloads/run/program_playing.h"

#include "core/graph/graph_pace.h"
#include "workloads/run/simulate_state.h"

typedef pl_program_playing playing;

/* Not where every microbatch is shown. */
static bool leaps(const pl_simulate_options *options) {
  return options->leap && options->executor == PL_EXECUTOR_ENGINE && options->streams == PL_STREAMS_IN_ORDER &&
         options->network != PL_NETWORK_SIMGRID && options->trace == NULL && options->diagram == NULL;
}

static pl_leap_search begin_search(const playing *own) {
  const pl_ir_recurrence *found = &own->recurrence;
  const pl_leap_outlook outlook = {.recurs = found->n_phases > 0,
                                   .by_halves = found->n_phases > 1,
                                   .fewest = found->fewest,
                                   .round = found->n_phases > 0 ? found->round : 1,
                                   .filling = found->filling,
                                   .cycle = found->under_way,
                                   .carried = found->carried * found->round};
  return pl_leap_search_of(&outlook, leaps(own->options));
}

static pl_code find_recurrence(playing *own, int32_t carried) {
  return pl_ir_recurrence_find(own->module, carried, own->arena, &own->recurrence)
             ? PL_OK
             : pl_fail_memory(own->error, "what recurs in a program");
}

/* The program without so many microbatches. *played NULL: they cannot be left out. */
static pl_code shorten(playing *own, int32_t leapt, pl_ir_played **played) {
  bool is_possible = leapt > 0;
  *played = PL_TAKE(own->arena, pl_ir_played, 1);
  if (*played == NULL || (is_possible && !pl_ir_recurrence_shorten(own->module, &own->recurrence, leapt, own->arena,
                                                                   *played, &is_possible)))
    return pl_fail_memory(own->error, "a program of fewer microbatches");
  if (!is_possible) *played = NULL;
  return PL_OK;
}

/* Its graph. *is_all: nothing is left out; what is left of lists that somebody has edited may wait for itself. */
static pl_code make_graph(playing *own, const pl_ir_played *played, pl_ir_graph *made, bool *is_all) {
  pl_error waits = PL_ERROR_INIT;
  pl_code code = played != NULL ? pl_ir_graph_make(own->maker, played, made, &waits) : PL_BAD_INPUT;
  *is_all = code == PL_BAD_INPUT;
  if (*is_all) return pl_ir_graph_make(own->maker, NULL, made, own->error);
  return code == PL_OK ? PL_OK : pl_fail(own->error, code, "%s", waits.message);
}

static pl_code take_maker(playing *own) {
  return pl_ir_graph_maker_take(own->cluster, own->module, &own->graphing, own->arena, &own->maker, own->error);
}

static void leap_with(pl_engine_options *engine, const pl_ir_graph *made, bool is_all, const pl_leap_search *search) {
  engine->lanes = is_all ? NULL : &made->lanes;
  engine->n_more = made->n_more;
  engine->drifts = search->drifts;
}

/* ---- the run ---- */

/* Of the devices of a graph, from those of the cluster's. */
static void factors_of(const pl_graph *graph, const double *factor, double *of_graph) {
  for (uint32_t d = 0; d < graph->n_devices; d++)
    of_graph[d] = factor[graph->devices[d].device];
}

/* Of the parts of a graph at paces of its own, from those of its base. */
static pl_code take_origins(playing *own, const pl_graph_pace *pace) {
  if (own->made.origins == NULL) return PL_OK;
  const pl_ir_origin **origins = PL_TAKE(own->arena, const pl_ir_origin *, pace->graph.n_parts + 1);
  if (origins == NULL) return pl_fail_memory(own->error, "the paces of the devices");
  for (uint32_t p = 0; p < pace->graph.n_parts; p++)
    origins[p] = own->made.origins[pace->part_of[p]];
  own->made.origins = origins;
  return PL_OK;
}

/* At the paces of devices by name. */
static pl_code slow_down(playing *own) {
  const uint32_t n = own->cluster->n_devices;
  double *factor = PL_TAKE(own->arena, double, n);
  double *of_graph = PL_TAKE(own->arena, double, own->made.graph.n_devices);
  pl_graph *base = PL_TAKE(own->arena, pl_graph, 1);
  pl_graph_pace pace;
  if (own->arena->failed) return pl_fail_memory(own->error, "the paces of the devices");
  *base = own->made.graph;
  PL_TRY(pl_graph_pace_take(base, NULL, own->arena, &pace, own->error));
  pl_stragglers_named(own->options->stragglers, n, factor);
  factors_of(base, factor, of_graph);
  pl_graph_pace_set(&pace, of_graph);
  own->made.graph = pace.graph;
  return take_origins(own, &pace);
}

/* What lists take longer than on the network alone may be as much of them: GPT-3 175B over 4 stages recurs by the list
 * that takes longest where the way is 0.20 % longer, and by the way where it is 0.27 % longer. */
static const double CONTENTION = 1.0 / 400;

/* What is played of the first attempt, looked at before its graph is made: of a program whose passes hand something on
 * phases begin later; a whole cycle, where the pace is that of a microbatch's way. */
static pl_code look_ahead(playing *own, pl_ir_played **played) {
  pl_error waits = PL_ERROR_INIT;
  pl_ir_pace pace;
  if (*played == NULL) return PL_OK;
  if (pl_ir_graph_prepare(own->maker, *played, &pace, &waits) != PL_OK) return PL_OK; /* as making it will say */
  if (pace.carries && own->recurrence.carried == 0) {
    PL_TRY(find_recurrence(own, PL_IR_CARRIED_PERIODS));
    own->leaps = begin_search(own);
    PL_TRY(shorten(own, own->leaps.leapt, played));
  }
  double cycle = own->recurrence.under_way;
  if (*played == NULL || own->recurrence.under_way <= own->recurrence.round || !pace.is_known ||
      (double)pace.way <= (1 + CONTENTION) * cycle * (double)pace.busiest)
    return PL_OK;
  pl_leap_search_by_cycle(&own->leaps);
  return shorten(own, own->leaps.leapt, played);
}

static pl_code play_some(playing *own, bool is_first) {
  const pl_simulate_options *options = own->options;
  bool is_all, explains = options->of_program != NULL,
               has_interval = options->residuals != NULL && options->program_aspects != NULL;
  pl_ir_played *played;
  PL_TRY(shorten(own, own->leaps.leapt, &played));
  if (is_first) PL_TRY(look_ahead(own, &played));
  PL_TRY(make_graph(own, played, &own->made, &is_all));
  if (is_all) own->leaps.leapt = 0;
  if (options->stragglers != NULL) PL_TRY(slow_down(own));
  pl_engine_options engine = {.record_parts = options->trace != NULL || explains,
                              .record_charges = explains || has_interval,
                              .left_out = options->left_out};
  leap_with(&engine, &own->made, is_all, &own->leaps);
  return pl_simulate_graph(&own->made.graph, options, &engine, own->arena, &own->result, own->error);
}

enum { MANY_MICROBATCHES = 32 };

static pl_whole_reason reason_of(const playing *own, bool is_first) {
  bool few = own->module->n_microbatches < MANY_MICROBATCHES;
  if (few || own->leaps.leapt > 0 || !leaps(own->options)) return PL_WHOLE_NO_REASON;
  if (own->recurrence.n_phases == 0) return PL_WHOLE_LISTS;
  return is_first ? PL_WHOLE_NO_REASON : PL_WHOLE_RUN;
}

/* What attempts have made is given back before all is played. */
pl_code pl_program_play(playing *own) {
  own->recurrence = (pl_ir_recurrence){.fewest = own->module->n_microbatches};
  if (leaps(own->options) && own->options->recurrence != NULL)
    own->recurrence = *own->options->recurrence;
  else if (leaps(own->options))
    PL_TRY(find_recurrence(own, 0));
  own->leaps = begin_search(own);
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  for (bool is_fresh = true;; is_fresh = false) {
    bool is_last = own->leaps.leapt == 0;
    if (is_last) pl_arena_release_to(own->arena, mark);
    if (is_last && own->recurrence.carried > 0)
      PL_TRY(find_recurrence(own, own->recurrence.carried)); /* was behind it */
    if (is_fresh || is_last) PL_TRY(take_maker(own));
    PL_TRY(play_some(own, is_fresh));
    own->whole = reason_of(own, is_fresh);
    if (own->leaps.leapt == 0 || own->result.is_whole) return PL_OK;
    pl_leap_search_go_on(&own->leaps, &own->result);
  }
}

/* ---- draws ----
 * Each has graphs of its own, one per number of microbatches that are left to leaps, as strategies have
 * (simulate_stragglers.c). */

typedef struct level {
  int32_t leapt;
  bool is_all;
  pl_ir_graph made;
  pl_graph_pace pace;
  double *factor; /* per device of the graph */
} level;

enum { MOST_LEVELS = 64 };

typedef struct straggling {
  playing *own;
  level *levels[MOST_LEVELS];
  uint32_t n_levels;
  pl_leap_search first; /* where the next run begins */
} straggling;

static pl_code find_level(straggling *draws, int32_t leapt, level **found) {
  for (uint32_t i = 0; i < draws->n_levels; i++)
    if (draws->levels[i]->leapt == leapt) {
      *found = draws->levels[i];
      return PL_OK;
    }
  PL_ASSERT(draws->n_levels < MOST_LEVELS);
  playing *own = draws->own;
  level *made = PL_TAKE(own->arena, level, 1);
  if (made == NULL) return pl_fail_memory(own->error, "the graph of the program");
  made->leapt = leapt;
  pl_ir_played *played;
  PL_TRY(shorten(own, leapt, &played));
  PL_TRY(make_graph(own, played, &made->made, &made->is_all));
  PL_TRY(pl_graph_pace_take(&made->made.graph, NULL, own->arena, &made->pace, own->error));
  made->factor = PL_TAKE(own->arena, double, made->made.graph.n_devices);
  if (made->factor == NULL) return pl_fail_memory(own->error, "the paces of the devices");
  *found = draws->levels[draws->n_levels++] = made;
  return PL_OK;
}

static pl_code play_draw(void *context, const double *factor, pl_ticks *makespan, pl_error *error) {
  straggling *draws = context;
  playing *own = draws->own;
  const pl_simulate_options quiet = pl_simulate_options_quiet(own->options);
  for (pl_leap_search search = draws->first;; draws->first = search) {
    level *on = NULL;
    pl_engine_result result;
    pl_engine_options engine = {.record_parts = false};
    PL_TRY(find_level(draws, search.leapt, &on));
    factors_of(&on->made.graph, factor, on->factor);
    pl_graph_pace_set(&on->pace, on->factor);
    leap_with(&engine, &on->made, on->is_all, &search);
    pl_arena_mark mark = pl_arena_mark_here(own->arena);
    pl_code code = pl_simulate_graph(&on->pace.graph, &quiet, &engine, own->arena, &result, error);
    *makespan = result.makespan;
    bool is_whole = on->is_all || (code == PL_OK && result.is_whole);
    if (code == PL_OK && !is_whole) pl_leap_search_go_on(&search, &result);
    pl_arena_release_to(own->arena, mark);
    if (code != PL_OK || is_whole) return code;
  }
}

pl_code pl_program_straggle(playing *own) {
  straggling draws = {.own = own, .first = begin_search(own)};
  const pl_graph *graph = &own->made.graph;
  uint32_t *devices = PL_TAKE(own->arena, uint32_t, graph->n_devices);
  if (devices == NULL) return pl_fail_memory(own->error, "the draws");
  for (uint32_t d = 0; d < graph->n_devices; d++)
    devices[d] = graph->devices[d].device;
  PL_TRY(take_maker(own));
  const pl_straggler_player player = {.context = &draws,
                                      .play = play_draw,
                                      .devices = devices,
                                      .n_devices = graph->n_devices,
                                      .n_cluster_devices = own->cluster->n_devices,
                                      .remains_factor = pl_program_remains_factor(own->options)};
  return pl_stragglers_measure(own->options->stragglers, &player, own->arena, own->options->straggling, own->error);
}
