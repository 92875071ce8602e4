/* See core/graph/graph_pace.h. */
#include "core/graph/graph_pace.h"

#include <math.h>
#include <string.h>

#include "core/base/hash_index.h"

/* A segment of the base as one kind of devices runs it; `device`: the first of them that does. */
typedef struct paced_segment {
  uint32_t of, kind, device, index;
} paced_segment;

typedef struct pacing {
  const pl_graph *base;
  const uint32_t *kind; /* NULL: every device is of its own */
  pl_arena *arena;
  paced_segment *first; /* per segment of the base: as the first device that runs it has it */
  pl_hash_index others; /* as others do */
  const paced_segment **copies;
  uint32_t n_copies, room_copies;
  uint32_t n_parts;
} pacing;

static uint32_t device_of(const pl_graph *graph, const pl_task *task) {
  return graph->streams[graph->task_streams[task->first_stream]].device;
}

static const paced_segment *find_copy(const pacing *own, uint32_t segment, uint32_t kind, uint64_t hash) {
  uint32_t probe = 0;
  for (const paced_segment *copy; (copy = pl_hash_index_find(&own->others, hash, &probe)) != NULL;)
    if (copy->of == segment && copy->kind == kind) return copy;
  return NULL;
}

/* Index, in the paced graph, of `segment` as `device` runs it. */
static uint32_t segment_for(pacing *own, uint32_t segment, uint32_t device) {
  paced_segment *first = &own->first[segment];
  uint32_t kind = own->kind == NULL ? device : own->kind[device];
  if (first->device == PL_NONE)
    *first = (paced_segment){.of = segment, .kind = kind, .device = device, .index = segment};
  if (first->kind == kind) return segment;
  uint64_t hash = pl_hash_word(segment, kind);
  const paced_segment *known = find_copy(own, segment, kind, hash);
  if (known != NULL) return known->index;
  paced_segment *made = PL_TAKE(own->arena, paced_segment, 1);
  const paced_segment **copies =
      pl_arena_grown(own->arena, (const void *)own->copies, own->n_copies, 1, sizeof(*own->copies), &own->room_copies);
  if (made == NULL || copies == NULL) return segment;
  *made =
      (paced_segment){.of = segment, .kind = kind, .device = device, .index = own->base->n_segments + own->n_copies};
  own->copies = copies;
  copies[own->n_copies++] = made;
  own->n_parts += own->base->segments[segment].n_parts;
  pl_hash_index_put(&own->others, hash, made, own->arena);
  return made->index;
}

static void name_tasks(pacing *own, pl_task *tasks) {
  for (uint32_t t = 0; t < own->base->n_tasks && !own->arena->failed; t++) {
    pl_task *task = &tasks[t];
    if (task->kind == PL_TASK_WORK) task->index = segment_for(own, task->index, device_of(own->base, task));
  }
}

/* Segments and parts of the base, then those of the copies. */
static void copy_segments(const pacing *own, pl_segment *segments, pl_part *parts, uint32_t *part_of, uint32_t *pacer) {
  const pl_graph *base = own->base;
  memcpy(segments, base->segments, base->n_segments * sizeof(*segments));
  memcpy(parts, base->parts, base->n_parts * sizeof(*parts));
  for (uint32_t s = 0; s < base->n_segments; s++)
    pacer[s] = own->first[s].device;
  for (uint32_t p = 0; p < base->n_parts; p++)
    part_of[p] = p;
  uint32_t n_parts = base->n_parts;
  for (uint32_t c = 0; c < own->n_copies; c++) {
    const paced_segment *copy = own->copies[c];
    const pl_segment *of = &base->segments[copy->of];
    segments[copy->index] = (pl_segment){.first_part = n_parts, .n_parts = of->n_parts, .ticks = of->ticks};
    memcpy(&parts[n_parts], &base->parts[of->first_part], of->n_parts * sizeof(*parts));
    for (uint32_t p = 0; p < of->n_parts; p++)
      part_of[n_parts + p] = of->first_part + p;
    pacer[copy->index] = copy->device;
    n_parts += of->n_parts;
  }
}

pl_code pl_graph_pace_take(const pl_graph *base, const uint32_t *kind, pl_arena *arena, pl_graph_pace *pace,
                           pl_error *error) {
  *pace = (pl_graph_pace){.graph = *base};
  pacing own = {.base = base, .kind = kind, .arena = arena, .n_parts = base->n_parts};
  own.first = PL_TAKE(arena, paced_segment, base->n_segments);
  pace->own_tasks = PL_TAKE(arena, pl_task, base->n_tasks);
  if (arena->failed) return pl_fail_memory(error, "the paces of the devices");
  for (uint32_t s = 0; s < base->n_segments; s++)
    own.first[s].device = PL_NONE;
  memcpy(pace->own_tasks, base->tasks, base->n_tasks * sizeof(*base->tasks));
  name_tasks(&own, pace->own_tasks);
  uint32_t n_segments = base->n_segments + own.n_copies;
  pace->own_segments = PL_TAKE(arena, pl_segment, n_segments);
  pace->own_parts = PL_TAKE(arena, pl_part, own.n_parts);
  uint32_t *pacer = PL_TAKE(arena, uint32_t, n_segments), *part_of = PL_TAKE(arena, uint32_t, own.n_parts);
  pl_ticks *ticks = PL_TAKE(arena, pl_ticks, own.n_parts);
  if (arena->failed) return pl_fail_memory(error, "the paces of the devices");
  copy_segments(&own, pace->own_segments, pace->own_parts, part_of, pacer);
  for (uint32_t p = 0; p < own.n_parts; p++)
    ticks[p] = pace->own_parts[p].ticks;
  pace->ticks = ticks;
  pace->part_of = part_of;
  pace->pacer = pacer;
  pace->graph.tasks = pace->own_tasks;
  pace->graph.segments = pace->own_segments;
  pace->graph.n_segments = n_segments;
  pace->graph.parts = pace->own_parts;
  pace->graph.n_parts = own.n_parts;
  return PL_OK;
}

void pl_graph_pace_set(pl_graph_pace *pace, const double *factor) {
  for (uint32_t s = 0; s < pace->graph.n_segments; s++) {
    pl_segment *segment = &pace->own_segments[s];
    if (pace->pacer[s] == PL_NONE) continue;
    double own = factor[pace->pacer[s]];
    segment->ticks = 0;
    for (uint32_t p = segment->first_part; p < segment->first_part + segment->n_parts; p++) {
      pl_part *part = &pace->own_parts[p];
      bool by_device = part->computes && part->category != PL_CATEGORY_HOST;
      part->ticks = by_device ? pl_ticks_scaled(pace->ticks[p], own) : pace->ticks[p];
      segment->ticks = pl_ticks_sum(segment->ticks, part->ticks);
    }
  }
  for (uint32_t t = 0; t < pace->graph.n_tasks; t++)
    if (pace->own_tasks[t].kind == PL_TASK_WORK)
      pace->own_tasks[t].ticks = pace->own_segments[pace->own_tasks[t].index].ticks;
}
