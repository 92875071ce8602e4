/* See workloads/run/simulate_program.h. */
#include "workloads/run/simulate_program.h"

#include <inttypes.h>
#include <math.h>

#include "core/base/units.h"
#include "core/engine/engine.h"
#include "core/engine/timeline_perfetto.h"
#include "core/engine/timeline_svg.h"
#include "core/graph/graph_pace.h"
#include "workloads/run/explain_program.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/simulate_state.h"
#include "workloads/run/tree_prices.h"

static bool has_interval(const pl_simulate_options *options) {
  return options->residuals != NULL && options->program_aspects != NULL;
}

static pl_engine_options engine_options_of(const pl_simulate_options *options) {
  bool explains = options->of_program != NULL;
  return (pl_engine_options){.record_parts = options->trace != NULL || explains,
                             .record_charges = explains || has_interval(options),
                             .left_out = options->left_out};
}

static pl_code write_trace(const pl_ir_module *module, const pl_ir_graph *made, const pl_engine_result *result,
                           const pl_simulate_options *options, pl_arena *arena, pl_error *error) {
  const char **names = PL_TAKE(arena, const char *, made->graph.n_devices);
  if (names == NULL) return pl_fail_memory(error, "the timeline");
  for (uint32_t device = 0; device < made->graph.n_devices; device++) {
    const char *name = "";
    for (int32_t c = 0; c < module->n_classes; c++)
      if (pl_ir_class_has(module, &module->classes[c], device)) name = module->classes[c].name;
    names[device] = pl_arena_printf(arena, "device %u: %s", device, name);
    if (names[device] == NULL) return pl_fail_memory(error, "the timeline");
  }
  pl_timeline_view view = options->view != NULL ? *options->view : (pl_timeline_view){0};
  view.device = names;
  return pl_timeline_write(options->trace, &made->graph, result, &view, error);
}

/* Of each list its first device. */
static pl_code write_diagram(const pl_ir_module *module, const pl_ir_graph *made, const pl_engine_result *result,
                             const pl_simulate_options *options, pl_arena *arena, pl_error *error) {
  uint32_t n = (uint32_t)module->n_classes, *devices = PL_TAKE(arena, uint32_t, n);
  const char **labels = PL_TAKE(arena, const char *, n);
  char time[PL_UNIT_TEXT_BYTES];
  pl_format_time(pl_ticks_to_s(result->makespan), time);
  const char *subtitle = pl_arena_printf(arena, "%s per iteration of %" PRId32 " microbatches: %s", time,
                                         module->n_microbatches, options->diagram_subtitle);
  for (uint32_t c = 0; !arena->failed && c < n; c++) {
    devices[c] = 0;
    for (uint32_t d = made->graph.n_devices; d-- > 0;)
      if (pl_ir_class_has(module, &module->classes[c], d)) devices[c] = d;
    labels[c] = module->classes[c].name;
  }
  if (arena->failed) return pl_fail_memory(error, "the diagram");
  const pl_diagram diagram = {.devices = devices,
                              .labels = labels,
                              .n_rows = n,
                              .title = options->diagram_title,
                              .subtitle = subtitle,
                              .n_microbatches = module->n_microbatches,
                              .usable_bytes = (double)INFINITY};
  pl_timeline_write_svg(options->diagram, &made->graph, result, &diagram);
  return PL_OK;
}

/* ---- devices at paces of their own ---- */

typedef struct straggling {
  const pl_simulate_options *options;
  pl_arena *arena;
  pl_graph_pace pace;
} straggling;

/* Devices of the graph are numbered as those of the cluster, which may have more. */
static pl_code play(void *context, const double *factor, pl_ticks *makespan, pl_error *error) {
  straggling *own = context;
  pl_engine_result result;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  pl_graph_pace_set(&own->pace, factor);
  pl_simulate_options options = *own->options;
  options.trace = NULL;
  options.diagram = NULL;
  options.of_program = NULL;
  options.residuals = NULL;
  const pl_engine_options engine = engine_options_of(&options);
  pl_code code = pl_simulate_graph(&own->pace.graph, &options, &engine, own->arena, &result, error);
  *makespan = result.makespan;
  pl_arena_release_to(own->arena, mark);
  return code;
}

static pl_code straggle(const pl_cluster *cluster, const pl_simulate_options *options, pl_graph *graph, pl_arena *arena,
                        pl_error *error) {
  const pl_stragglers *stragglers = options->stragglers;
  straggling own = {.options = options, .arena = arena};
  pl_graph base = *graph;
  double *factor = PL_TAKE(arena, double, cluster->n_devices);
  uint32_t *devices = PL_TAKE(arena, uint32_t, base.n_devices);
  if (arena->failed) return pl_fail_memory(error, "the paces of the devices");
  for (uint32_t d = 0; d < base.n_devices; d++)
    devices[d] = base.devices[d].device;
  PL_TRY(pl_graph_pace_take(&base, NULL, arena, &own.pace, error));
  const pl_straggler_player player = {.context = &own,
                                      .play = play,
                                      .devices = devices,
                                      .n_devices = base.n_devices,
                                      .n_cluster_devices = cluster->n_devices};
  if (options->straggling != NULL)
    PL_TRY(pl_stragglers_measure(stragglers, &player, arena, options->straggling, error));
  pl_stragglers_named(stragglers, cluster->n_devices, factor);
  pl_graph_pace_set(&own.pace, factor);
  *graph = own.pace.graph;
  return PL_OK;
}

static pl_code note_memory(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                           pl_arena *arena, pl_program_report *report, pl_error *error) {
  pl_class_memory *memory;
  PL_TRY(pl_program_memory_take(cluster, module, framework, arena, &memory, error));
  report->memory = memory;
  report->fits = true;
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_class_memory *fullest = &memory[report->fullest];
    if (memory[c].capacity - memory[c].peak < fullest->capacity - fullest->peak) report->fullest = c;
    report->fits = report->fits && memory[c].peak <= memory[c].capacity;
  }
  return PL_OK;
}

/* As tuples are; what is told of single devices, and networks without contention, need all of them. */
static bool folds(const pl_simulate_options *options) {
  return options->fold && options->executor == PL_EXECUTOR_ENGINE && options->streams == PL_STREAMS_IN_ORDER &&
         options->network == PL_NETWORK_FLOW && options->stragglers == NULL && options->trace == NULL &&
         options->diagram == NULL && options->of_program == NULL;
}

/* ---- microbatches that are not played (workloads/run/leap.h) ---- */

typedef struct playing {
  const pl_cluster *cluster;
  const pl_ir_module *module;
  const pl_simulate_options *options;
  pl_ir_graph_options graphing;
  pl_ir_recurrence recurrence;
  pl_leap_search leaps;
  pl_ir_graph_maker *maker;
  pl_ir_graph made;
  pl_engine_result result;
  pl_arena *arena;
  pl_error *error;
} playing;

/* Not with paces of single devices, nor where every microbatch is shown. */
static bool leaps(const pl_simulate_options *options) {
  return options->leap && options->executor == PL_EXECUTOR_ENGINE && options->streams == PL_STREAMS_IN_ORDER &&
         options->network != PL_NETWORK_SIMGRID && options->stragglers == NULL && options->trace == NULL &&
         options->diagram == NULL;
}

static pl_code begin(playing *own) {
  bool may_leap = leaps(own->options);
  own->recurrence = (pl_ir_recurrence){.fewest = own->module->n_microbatches};
  if (may_leap && !pl_ir_recurrence_find(own->module, own->arena, &own->recurrence))
    return pl_fail_memory(own->error, "what recurs in a program");
  const pl_ir_recurrence *found = &own->recurrence;
  const pl_leap_outlook outlook = {.recurs = found->n_phases > 0,
                                   .by_halves = found->n_phases > 1,
                                   .fewest = found->fewest,
                                   .round = found->n_phases > 0 ? found->round : 1,
                                   .filling = found->filling,
                                   .carried = PL_IR_CARRIED_PERIODS * found->round};
  own->leaps = pl_leap_search_of(&outlook, may_leap);
  return PL_OK;
}

/* Of the program without the microbatches that own->leaps leaves out. */
static pl_code play_some(playing *own) {
  const pl_simulate_options *options = own->options;
  pl_ir_played played;
  bool is_possible = own->leaps.leapt > 0;
  if (is_possible &&
      !pl_ir_recurrence_shorten(own->module, &own->recurrence, own->leaps.leapt, own->arena, &played, &is_possible))
    return pl_fail_memory(own->error, "a program of fewer microbatches");
  if (!is_possible) own->leaps.leapt = 0;
  PL_TRY(pl_ir_graph_make(own->maker, is_possible ? &played : NULL, &own->made, own->error));
  if (options->stragglers != NULL) PL_TRY(straggle(own->cluster, options, &own->made.graph, own->arena, own->error));
  pl_engine_options engine = engine_options_of(options);
  engine.lanes = is_possible ? &own->made.lanes : NULL;
  engine.n_more = own->made.n_more;
  engine.drifts = own->leaps.drifts;
  return pl_simulate_graph(&own->made.graph, options, &engine, own->arena, &own->result, own->error);
}

/* What attempts have made is given back before all is played. */
static pl_code play_program(playing *own) {
  PL_TRY(begin(own));
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  for (bool is_fresh = true;; is_fresh = false) {
    bool is_last = own->leaps.leapt == 0;
    if (is_last) pl_arena_release_to(own->arena, mark);
    if (is_fresh || is_last)
      PL_TRY(pl_ir_graph_maker_take(own->cluster, own->module, &own->graphing, own->arena, &own->maker, own->error));
    PL_TRY(play_some(own));
    if (own->leaps.leapt == 0 || own->result.is_whole) return PL_OK;
    pl_leap_search_go_on(&own->leaps, &own->result);
  }
}

pl_code pl_simulate_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                            const pl_simulate_options *options, pl_arena *arena, pl_program_report *report,
                            pl_error *error) {
  playing own = {.cluster = cluster,
                 .module = module,
                 .options = options,
                 .graphing = {.collective = pl_program_collectives(options),
                              .framework = framework,
                              .names = options->trace != NULL || options->of_program != NULL,
                              .fold = folds(options),
                              .no_overlap_factor = options->no_overlap_factor,
                              .spendings = has_interval(options)},
                 .arena = arena,
                 .error = error};
  PL_TRY(play_program(&own));
  const pl_ir_graph *made = &own.made;
  const pl_engine_result *result = &own.result;
  *report = (pl_program_report){.iter_time_s = pl_ticks_to_s(result->makespan),
                                .n_devices = pl_ir_module_devices(module),
                                .n_classes = (uint32_t)module->n_classes,
                                .n_kernels = made->n_kernels,
                                .n_collectives = made->n_collectives,
                                .n_sends = made->n_sends,
                                .n_offloads = made->n_offloads,
                                .offloaded_bytes = made->offloaded_bytes,
                                .host_updates = made->host_updates,
                                .n_tasks = made->graph.n_tasks,
                                .run_digest = result->digest,
                                .n_played = module->n_microbatches - own.leaps.leapt,
                                .flops = made->flops,
                                .interval = pl_interval_none()};
  PL_TRY(note_memory(cluster, module, framework, arena, report, error));
  const uint32_t *places = pl_ir_places_take(module, arena);
  if (places == NULL) return pl_fail_memory(error, "a report");
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&module->mesh); d++) {
    uint32_t number = made->device_class != NULL ? made->device_class[d] : d;
    if (places[d] == PL_IR_NOWHERE) continue;
    report->idle_s += pl_ticks_to_s(result->idle[number]) / report->n_devices;
    for (int category = 0; category < PL_CATEGORY_COUNT; category++)
      report->spent_s[category] +=
          pl_ticks_to_s(result->spent[(size_t)number * PL_CATEGORY_COUNT + (size_t)category]) / report->n_devices;
  }
  if (has_interval(options))
    PL_TRY(pl_program_interval_take(cluster, module, made, result, options->residuals, options->program_aspects, arena,
                                    &report->interval, error));
  if (options->of_program != NULL)
    PL_TRY(pl_program_explanation_take(module, &made->graph, result, arena, options->of_program, error));
  if (options->diagram != NULL) PL_TRY(write_diagram(module, made, result, options, arena, error));
  return options->trace != NULL ? write_trace(module, made, result, options, arena, error) : PL_OK;
}
