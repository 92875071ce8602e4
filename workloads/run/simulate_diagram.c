/* The drawing of a simulation (core/engine/timeline_svg.h): rows are stages, chunks are told by their blocks. */
#include <inttypes.h>

#include "core/base/units.h"
#include "core/engine/timeline_svg.h"
#include "workloads/run/simulate_state.h"

/* Which chunk of its stage each segment is of, by the first of its parts that has a block; NULL: no memory. */
static const uint8_t *chunks_of_segments(const pl_simulation *state) {
  const pl_graph *graph = &state->compiled.graph;
  const pl_strategy *strategy = state->strategy;
  uint8_t *chunk_of = PL_TAKE(state->arena, uint8_t, graph->n_segments + 1);
  for (uint32_t s = 0; chunk_of != NULL && s < graph->n_segments; s++) {
    const pl_segment *segment = &graph->segments[s];
    int32_t at = -1, chunk = 0;
    for (uint32_t i = 0; at < 0 && i < segment->n_parts && segment->first_part + i < state->origins.n_parts; i++)
      at = state->origins.parts[segment->first_part + i].at;
    while (chunk + 1 < pl_strategy_n_chunks(strategy) && strategy->boundary[chunk + 1] <= at)
      chunk++;
    chunk_of[s] = (uint8_t)(chunk / strategy->pp); /* the first of every stage, then the second, also in a V */
  }
  return chunk_of;
}

/* Of each stage the first class of devices. */
pl_code pl_simulation_draw(pl_simulation *state, const pl_simulate_report *report) {
  uint32_t n_stages = (uint32_t)state->strategy->pp, *devices = PL_TAKE(state->arena, uint32_t, n_stages);
  const char **labels = PL_TAKE(state->arena, const char *, n_stages);
  char time[PL_UNIT_TEXT_BYTES];
  pl_format_time(pl_ticks_to_s(state->result.makespan), time);
  const char *subtitle = pl_arena_printf(state->arena, "%s per iteration of %" PRId32 " microbatches: %s", time,
                                         state->program.n_microbatches, state->options->diagram_subtitle);
  for (uint32_t stage = 0; !state->arena->failed && stage < n_stages; stage++) {
    devices[stage] = 0;
    for (uint32_t c = state->plan.n_device_classes; c-- > 0;)
      if ((uint32_t)state->plan.device_classes[c].stage == stage) devices[stage] = c;
    labels[stage] = pl_arena_printf(state->arena, "stage %" PRIu32, stage);
  }
  if (state->arena->failed) return pl_fail_memory(state->error, "the diagram");
  const uint8_t *chunk_of = state->strategy->vpp > 1 ? chunks_of_segments(state) : NULL;
  if (state->arena->failed) return pl_fail_memory(state->error, "the diagram");
  const pl_diagram diagram = {.devices = devices,
                              .chunk_of = chunk_of,
                              .n_chunks = state->strategy->vpp,
                              .labels = labels,
                              .n_rows = n_stages,
                              .title = state->options->diagram_title,
                              .subtitle = subtitle,
                              .n_microbatches = state->program.n_microbatches,
                              .usable_bytes = (double)report->row.mem_capacity_bytes};
  pl_timeline_write_svg(state->options->diagram, &state->compiled.graph, &state->result, &diagram);
  return PL_OK;
}
