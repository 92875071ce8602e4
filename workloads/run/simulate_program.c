/* See workloads/run/simulate_program.h. */
#include "workloads/run/simulate_program.h"

#include <inttypes.h>
#include <math.h>

#include "core/base/units.h"
#include "core/engine/engine.h"
#include "core/engine/timeline_svg.h"
#include "workloads/lower/block_program.h"
#include "workloads/run/explain_program.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/program_playing.h"
#include "workloads/run/program_timeline.h"
#include "workloads/run/site_remains.h"
#include "workloads/run/tree_prices.h"

static bool has_interval(const pl_simulate_options *options) {
  return options->residuals != NULL && options->program_aspects != NULL;
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

static pl_code note_memory(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                           const pl_ir_recurrence *recurrence, bool draws, pl_arena *arena, pl_program_report *report,
                           pl_error *error) {
  pl_class_memory *memory;
  PL_TRY(draws ? pl_program_memory_of_steps(cluster, module, framework, arena, &memory, error)
               : pl_program_memory_take(cluster, module, framework, recurrence, arena, &memory, error));
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
         options->network == PL_NETWORK_FLOW && !pl_stragglers_jitter(options->stragglers) && options->diagram == NULL;
}

double pl_program_remains_factor(const pl_simulate_options *options) {
  if (options->remains == NULL || options->program_configuration == NULL) return 1;
  return exp(pl_remaining_at(options->remains, options->program_configuration).mean);
}

/* Of each list the device that is idle least, the first among equals. */
static pl_code report_times(const pl_ir_module *module, const pl_ir_graph *made, const pl_engine_result *result,
                            pl_arena *arena, pl_program_report *report, pl_error *error) {
  pl_stage_times *times = PL_TAKE(arena, pl_stage_times, module->n_classes);
  if (times == NULL) return pl_fail_memory(error, "the times of the lists");
  for (int32_t c = 0; c < module->n_classes; c++) {
    uint32_t busiest = PL_NONE;
    for (uint32_t d = 0; d < pl_ir_mesh_devices(&module->mesh); d++) {
      uint32_t number = made->device_class != NULL ? made->device_class[d] : d;
      if (!pl_ir_class_has(module, &module->classes[c], d)) continue;
      if (busiest == PL_NONE || result->idle[number] < result->idle[busiest]) busiest = number;
    }
    PL_ASSERT(busiest != PL_NONE);
    times[c] = pl_stage_times_of(result->spent + (size_t)busiest * PL_CATEGORY_COUNT, result->idle[busiest]);
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      times[c].part_s[part] *= report->remains_factor;
  }
  report->times = times;
  return PL_OK;
}

/* As of tuples. */
static void report_remains(const pl_simulate_options *options, pl_program_report *report) {
  report->remains_factor = pl_program_remains_factor(options);
  report->iter_time_s *= report->remains_factor;
  report->idle_s *= report->remains_factor;
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    report->spent_s[category] *= report->remains_factor;
}

pl_code pl_simulate_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                            const pl_simulate_options *options, pl_arena *arena, pl_program_report *report,
                            pl_error *error) {
  pl_program_playing own = {.cluster = cluster,
                            .module = module,
                            .options = options,
                            .graphing = {.collective = pl_program_collectives(options),
                                         .framework = framework,
                                         .names = options->trace != NULL || options->of_program != NULL,
                                         .fold = folds(options),
                                         .fuse = options->fuse,
                                         .marks = options->stragglers != NULL ? options->stragglers->marks : NULL,
                                         .no_overlap_factor = options->no_overlap_factor,
                                         .spendings = has_interval(options)},
                            .arena = arena,
                            .error = error};
  PL_TRY(pl_program_play(&own));
  if (options->straggling != NULL) PL_TRY(pl_program_straggle(&own));
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
                                .whole = own.whole,
                                .flops = made->flops,
                                .remains_factor = 1,
                                .interval = pl_interval_none()};
  PL_TRY(note_memory(cluster, module, framework, options->recurrence, options->trace != NULL, arena, report, error));
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
    PL_TRY(pl_program_explanation_take(cluster, module, made, result, arena, options->of_program, error));
  if (options->diagram != NULL) PL_TRY(write_diagram(module, made, result, options, arena, error));
  if (options->trace != NULL)
    PL_TRY(pl_program_timeline_write(cluster, module, made, result, report->memory, options, arena, error));
  report_remains(options, report);
  return options->program_times ? report_times(module, made, result, arena, report, error) : PL_OK;
}

double pl_program_peak_flops(const pl_cluster *cluster, const pl_program_report *report, const pl_job *job,
                             double narrow_share) {
  double peak_flops = 0;
  for (uint32_t device = 0; device < report->n_devices; device++)
    peak_flops += pl_mixed_peak_flops(pl_cluster_profile(cluster, device), job->dtype, job->fp4, narrow_share);
  return peak_flops;
}
