/* Whether those that contend are moved alike, and those that do not are kept apart (core/engine/engine_drift.h).
 *
 * Transfers contend where they share a link. Work contends with what the overlap factor couples it to, the gradient
 * streams of its device, and with transfers that disturb the segments of its device. All that contends at a place, a
 * link or a device, is gone through by start. Who meets must be moved alike, and must not be copied unless all who meet
 * are in the region at one pace. Whoever comes later without meeting must not be moved by less.
 */
#include <stdlib.h>

#include "core/engine/engine_drift.h"
#include "core/engine/engine_state.h"

enum { MOST_UNDER_WAY = 16 };

/* What has started so far at a place. */
typedef struct side {
  pl_ticks most_shift;             /* of those in no region */
  uint32_t member[PL_LANE_PHASES]; /* per region one of those in it; PL_NONE: nobody is */
  uint32_t under_way[MOST_UNDER_WAY], n_under_way;
} side;

/* Work contends with the disturbers of its device, and neither with its like. */
typedef struct device_sides {
  bool counts;
  side work, disturbers;
} device_sides;

typedef struct dated {
  pl_ticks start;
  uint32_t task;
} dated;

typedef struct rivalry {
  const pl_engine *engine;
  const pl_graph *graph;
  const pl_drift *drift;
  side *links;
  device_sides *devices;
  dated *order;
  uint32_t n;
} rivalry;

static void begin(side *own) {
  *own = (side){.n_under_way = 0};
  for (int phase = 0; phase < PL_LANE_PHASES; phase++)
    own->member[phase] = PL_NONE;
}

/* ---- two tasks ---- */

/* They overlap. In a region they may, for one period is as the other. */
static bool may_meet(const pl_drift *drift, uint32_t a, uint32_t b) {
  const pl_drift_place *first = &drift->places[a], *second = &drift->places[b];
  if (pl_drift_together(drift, a, b)) return true;
  if (pl_drift_is_copied(drift, a) || pl_drift_is_copied(drift, b)) return false;
  return pl_drift_seen(drift, a, second) == pl_drift_seen(drift, b, first);
}

/* `task` comes after those of `own`. */
static bool may_follow(const rivalry *state, const side *own, uint32_t task) {
  const pl_drift *drift = state->drift;
  if (own->most_shift > drift->shift[task]) return false;
  for (int phase = 0; phase < PL_LANE_PHASES; phase++) {
    uint32_t member = own->member[phase];
    if (member == PL_NONE) continue;
    bool keeps = drift->places[task].region == phase ? pl_drift_together(drift, member, task)
                                                     : drift->last_shift[member] <= drift->shift[task];
    if (!keeps) return false;
  }
  for (uint32_t at = 0; at < own->n_under_way; at++)
    if (state->engine->finish[own->under_way[at]] > state->engine->start[task] &&
        !may_meet(drift, own->under_way[at], task))
      return false;
  return true;
}

/* False: too many at once. */
static bool note(const rivalry *state, side *own, uint32_t task) {
  const pl_engine *engine = state->engine;
  int8_t region = state->drift->places[task].region;
  if (region >= 0) {
    own->member[region] = task;
  } else if (state->drift->shift[task] > own->most_shift) {
    own->most_shift = state->drift->shift[task];
  }
  uint32_t n = 0;
  for (uint32_t at = 0; at < own->n_under_way; at++)
    if (engine->finish[own->under_way[at]] > engine->start[task]) own->under_way[n++] = own->under_way[at];
  own->n_under_way = n;
  if (n == MOST_UNDER_WAY) return false;
  own->under_way[own->n_under_way++] = task;
  return true;
}

/* ---- places ---- */

static bool disturb(const rivalry *state, uint32_t device, uint32_t task) {
  device_sides *own = &state->devices[device];
  return !own->counts || (may_follow(state, &own->work, task) && note(state, &own->disturbers, task));
}

static bool cross_links(const rivalry *state, uint32_t task) {
  const pl_transfer_table *table = &state->graph->transfers;
  uint32_t index = state->graph->tasks[task].index;
  const pl_transfer_spec *spec = &table->specs[index];
  for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++) {
    side *own = &state->links[table->uses[use].link];
    if (!may_follow(state, own, task) || !note(state, own, task)) return false;
  }
  if (state->graph->rivals == NULL) return true;
  for (uint32_t at = state->graph->rival_offset[index]; at < state->graph->rival_offset[index + 1]; at++)
    if (!disturb(state, state->graph->rivals[at], task)) return false;
  return true;
}

static bool use_streams(const rivalry *state, uint32_t task) {
  const pl_graph *graph = state->graph;
  const pl_task *record = &graph->tasks[task];
  for (uint32_t member = 0; member < record->n_streams; member++) {
    const pl_stream *stream = &graph->streams[graph->task_streams[record->first_stream + member]];
    device_sides *own = &state->devices[stream->device];
    if (record->kind == PL_TASK_WORK) {
      if (own->counts && !(may_follow(state, &own->disturbers, task) && note(state, &own->work, task))) return false;
    } else if (stream->kind == PL_STREAM_GRADIENT || stream->kind == PL_STREAM_EXPERT_GRADIENT) {
      if (!disturb(state, stream->device, task)) return false;
    }
  }
  return true;
}

/* ---- all ---- */

static int compare(const void *a, const void *b) {
  const dated *first = a, *second = b;
  if (first->start != second->start) return first->start < second->start ? -1 : 1;
  return (first->task > second->task) - (first->task < second->task);
}

static bool take(rivalry *state) {
  const pl_graph *graph = state->graph;
  pl_arena *arena = state->engine->arena;
  state->links = PL_TAKE(arena, side, graph->transfers.n_links);
  state->devices = PL_TAKE(arena, device_sides, graph->n_devices);
  state->order = PL_TAKE(arena, dated, graph->n_tasks);
  if (arena->failed) return false;
  for (uint32_t link = 0; link < graph->transfers.n_links; link++)
    begin(&state->links[link]);
  for (uint32_t device = 0; device < graph->n_devices; device++) {
    device_sides *own = &state->devices[device];
    begin(&own->work);
    begin(&own->disturbers);
    own->counts = graph->devices[device].overlap_compute > 0 || graph->devices[device].overlap_communication > 0 ||
                  graph->devices[device].overlap_exchange > 0 || graph->devices[device].overlap_tensor > 0;
  }
  for (uint32_t at = 0; graph->rivals != NULL && at < graph->rival_offset[graph->transfers.n_specs]; at++)
    state->devices[graph->rivals[at]].counts = true;
  return true;
}

/* Delays without streams and work of devices that nothing disturbs are alone wherever they are. */
static void list(rivalry *state) {
  const pl_graph *graph = state->graph;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (graph->tasks[task].kind == PL_TASK_TRANSFER || graph->tasks[task].n_streams > 0)
      state->order[state->n++] = (dated){state->engine->start[task], task};
  if (state->n > 1) qsort(state->order, state->n, sizeof *state->order, compare);
}

bool pl_drift_rivals_keep_apart(const pl_engine *engine, const pl_drift *drift) {
  if (engine->overlap == NULL && engine->graph->n_transfer_tasks == 0) return true;
  rivalry state = {.engine = engine, .graph = engine->graph, .drift = drift};
  if (!take(&state)) return false;
  list(&state);
  for (uint32_t at = 0; at < state.n; at++) {
    uint32_t task = state.order[at].task;
    if (engine->graph->tasks[task].kind == PL_TASK_TRANSFER && !cross_links(&state, task)) return false;
    if (engine->graph->tasks[task].n_streams > 0 && !use_streams(&state, task)) return false;
  }
  return true;
}
