/* What disturbs a segment (engine_overlap.c): the room for it, and which tasks concern it at all. */
#include "core/engine/engine_state.h"

/* Of what has the stream: of work and of others. */
static uint8_t concerns_of_stream(const pl_walker *walkers, const pl_stream *stream) {
  const pl_walker *walker = &walkers[stream->device];
  const bool *crowded = walker->is_crowded;
  int which = pl_crowding_stream(stream);
  if (stream->kind == PL_STREAM_COMPUTE)
    return walker->acts || crowded[PL_CROWDING_EXPERT] || crowded[PL_CROWDING_TENSOR] || walker->contends
               ? PL_CONCERN_WORK
               : 0;
  if (which >= 0) return crowded[which] ? PL_CONCERN_CROWD : 0;
  return pl_gradient_stream(stream) >= 0 && walker->acts ? PL_CONCERN_GRADIENT : 0;
}

static uint8_t concerns_of(const pl_graph *graph, const uint8_t *of_streams, const pl_task *record) {
  const uint32_t *streams = graph->task_streams + record->first_stream;
  uint8_t concerns = 0;
  for (uint32_t member = 0; member < record->n_streams; member++)
    concerns |= of_streams[streams[member]];
  if (record->kind == PL_TASK_WORK) return concerns;
  concerns &= (uint8_t)~PL_CONCERN_WORK;
  if (record->kind == PL_TASK_TRANSFER && graph->rivals != NULL &&
      graph->rival_offset[record->index] < graph->rival_offset[record->index + 1])
    concerns |= PL_CONCERN_RIVAL;
  return concerns;
}

static bool take_concerns(pl_overlap *overlap, const pl_graph *graph, pl_arena *arena) {
  uint8_t *of_streams = pl_arena_take(arena, graph->n_streams, 1);
  overlap->concerns = pl_arena_take(arena, pl_graph_n_rows(graph), 1);
  if (of_streams == NULL || overlap->concerns == NULL) return false;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    of_streams[stream] = concerns_of_stream(overlap->walkers, &graph->streams[stream]);
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++)
    overlap->concerns[row] = concerns_of(graph, of_streams, &graph->tasks[row]);
  return true;
}

bool pl_overlap_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_arena *arena = engine->arena;
  pl_overlap *overlap = PL_TAKE(arena, pl_overlap, 1);
  if (overlap == NULL) return false;
  overlap->walkers = PL_TAKE(arena, pl_walker, graph->n_devices);
  overlap->dirty = PL_TAKE(arena, uint32_t, graph->n_devices);
  overlap->transfers = PL_TAKE(arena, pl_gradient_transfer, graph->n_streams);
  overlap->changed = PL_TAKE(arena, uint32_t, graph->n_streams);
  overlap->extra = PL_TAKE(arena, pl_ticks, (size_t)graph->n_devices * PL_CATEGORY_COUNT);
  overlap->waiting = PL_TAKE(arena, pl_ticks, graph->n_devices);
  overlap->elapsed = pl_arena_take(arena, ((size_t)graph->n_parts + 1) * sizeof *overlap->elapsed, 64);
  overlap->next_transfer = pl_arena_take(arena, ((size_t)graph->n_parts + 1) * sizeof *overlap->next_transfer, 64);
  if (overlap->walkers == NULL || overlap->dirty == NULL || overlap->transfers == NULL || overlap->changed == NULL ||
      overlap->extra == NULL || overlap->waiting == NULL || overlap->elapsed == NULL || overlap->next_transfer == NULL)
    return false;
  uint64_t elapsed = 0;
  for (uint32_t part = 0; part < graph->n_parts; part++) {
    overlap->elapsed[part] = elapsed;
    elapsed += (uint64_t)graph->parts[part].ticks;
  }
  overlap->elapsed[graph->n_parts] = elapsed;
  overlap->next_transfer[graph->n_parts] = graph->n_parts;
  for (uint32_t part = graph->n_parts; part-- > 0;)
    overlap->next_transfer[part] = graph->parts[part].transfers ? part : overlap->next_transfer[part + 1];
  overlap->uniform = true;
  for (uint32_t at = 0; at < graph->n_devices; at++) {
    const pl_graph_device *device = &graph->devices[at];
    overlap->walkers[at] = (pl_walker){.task = PL_NONE,
                                       .gradient = {PL_NONE, PL_NONE},
                                       .crowd = {PL_NONE, PL_NONE},
                                       .is_crowded = {device->overlap_exchange > 0, device->overlap_tensor > 0},
                                       .acts = device->overlap_compute > 0 || device->overlap_communication > 0};
    overlap->uniform &= device->overlap_communication == graph->devices[0].overlap_communication;
  }
  for (uint32_t at = 0; graph->rivals != NULL && at < graph->rival_offset[graph->transfers.n_specs]; at++)
    overlap->walkers[graph->rivals[at]].contends = true;
  overlap->uniform_speed = 1 / (1 + graph->devices[0].overlap_communication);
  engine->overlap = overlap;
  return take_concerns(overlap, graph, arena);
}
