/* See workloads/run/simulate_program.h. */
#include "workloads/run/simulate_program.h"

#include "core/engine/engine.h"
#include "core/engine/timeline.h"

static pl_code run(const pl_graph *graph, const pl_simulate_options *options, pl_arena *arena, pl_engine_result *result,
                   pl_error *error) {
  const pl_engine_options engine = {.record_parts = options->trace != NULL};
  pl_network *network = options->network == PL_NETWORK_ANALYTIC ? pl_analytic_network_take(&graph->transfers, arena)
                                                                : pl_flow_network_take(&graph->transfers, arena);
  if (network == NULL) return pl_fail_memory(error, "the network");
  pl_code code = pl_engine_run(graph, network, &engine, arena, result, error);
  network->ops->destroy(network);
  return code;
}

static pl_code write_trace(const pl_ir_module *module, const pl_ir_graph *made, const pl_engine_result *result,
                           FILE *trace, pl_arena *arena, pl_error *error) {
  const char **names = PL_TAKE(arena, const char *, made->graph.n_devices);
  if (names == NULL) return pl_fail_memory(error, "the timeline");
  for (uint32_t device = 0; device < made->graph.n_devices; device++) {
    const char *name = "";
    for (int32_t c = 0; c < module->n_classes; c++)
      if (pl_ir_class_has(module, &module->classes[c], device)) name = module->classes[c].name;
    names[device] = pl_arena_printf(arena, "device %u: %s", device, name);
    if (names[device] == NULL) return pl_fail_memory(error, "the timeline");
  }
  const pl_timeline_view view = {.device = names};
  pl_timeline_write_chrome(trace, &made->graph, result, &view);
  return PL_OK;
}

pl_code pl_simulate_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_simulate_options *options,
                            pl_arena *arena, pl_program_report *report, pl_error *error) {
  const pl_ir_graph_options graphing = {.collective = {.sharing = options->sharing,
                                                       .algorithm = options->algorithm,
                                                       .profile = options->collective_profile},
                                        .names = options->trace != NULL,
                                        .no_overlap_factor = options->no_overlap_factor};
  pl_ir_graph made;
  pl_engine_result result;
  PL_TRY(pl_ir_graph_take(cluster, module, &graphing, arena, &made, error));
  PL_TRY(run(&made.graph, options, arena, &result, error));
  *report = (pl_program_report){.iter_time_s = pl_ticks_to_s(result.makespan),
                                .n_devices = made.graph.n_devices,
                                .n_classes = (uint32_t)module->n_classes,
                                .n_kernels = made.n_kernels,
                                .n_collectives = made.n_collectives,
                                .n_sends = made.n_sends,
                                .n_tasks = made.graph.n_tasks,
                                .run_digest = result.digest,
                                .flops = made.flops};
  for (uint32_t d = 0; d < made.graph.n_devices; d++) {
    report->idle_s += pl_ticks_to_s(result.idle[d]) / made.graph.n_devices;
    for (int category = 0; category < PL_CATEGORY_COUNT; category++)
      report->spent_s[category] +=
          pl_ticks_to_s(result.spent[(size_t)d * PL_CATEGORY_COUNT + (size_t)category]) / made.graph.n_devices;
  }
  return options->trace != NULL ? write_trace(module, &made, &result, options->trace, arena, error) : PL_OK;
}
