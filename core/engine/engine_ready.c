/* Ready streams: whatever is ready starts first, the lowest task id on each free stream (as Proteus's executor does).
 *
 * A task of several streams needs them all free; while one is busy the task waits and does not hold the others back.
 * The rule of a round is thus: go through all waiting tasks by increasing id and start each whose streams are all free.
 * It is done without looking at all of them: a task can only have become startable if one of its streams was freed or
 * if it is new, so a cursor walks the list of each freed stream, and the cursor at the lowest id moves next.
 */
#include "core/engine/engine_state.h"

#include <string.h>

static bool take_streams(pl_ready_streams *streams, uint32_t n_streams, pl_arena *arena) {
  streams->busy = PL_TAKE(arena, bool, n_streams);
  streams->is_freed = PL_TAKE(arena, bool, n_streams);
  streams->head = PL_TAKE(arena, uint32_t, n_streams);
  streams->tail = PL_TAKE(arena, uint32_t, n_streams);
  streams->freed = PL_TAKE(arena, uint32_t, n_streams);
  streams->cursor = PL_TAKE(arena, uint32_t, n_streams);
  return streams->busy != NULL && streams->is_freed != NULL && streams->head != NULL && streams->tail != NULL &&
         streams->freed != NULL && streams->cursor != NULL && pl_event_heap_init(&streams->cursors, n_streams, arena);
}

bool pl_ready_streams_take(pl_engine *engine) {
  const pl_graph *graph = engine->graph;
  pl_ready_streams *streams = PL_TAKE(engine->arena, pl_ready_streams, 1);
  if (streams == NULL || !take_streams(streams, graph->n_streams, engine->arena)) return false;
  streams->next = PL_TAKE(engine->arena, uint32_t, graph->n_task_streams);
  streams->previous = PL_TAKE(engine->arena, uint32_t, graph->n_task_streams);
  streams->task = PL_TAKE(engine->arena, uint32_t, graph->n_task_streams);
  if (streams->next == NULL || streams->previous == NULL || streams->task == NULL) return false;
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    streams->head[stream] = streams->tail[stream] = PL_NONE;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    for (uint32_t at = 0; at < graph->tasks[task].n_streams; at++)
      streams->task[graph->tasks[task].first_stream + at] = task;
  engine->streams = streams;
  return true;
}

void pl_ready_streams_free(pl_engine *engine, uint32_t task) {
  pl_ready_streams *streams = engine->streams;
  const pl_task *record = pl_engine_task(engine, task);
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    streams->busy[stream] = false;
    if (streams->head[stream] == PL_NONE || streams->is_freed[stream]) continue;
    streams->is_freed[stream] = true;
    streams->freed[streams->n_freed++] = stream;
  }
}

/* ---- the waiting lists ---- */

/* The node behind which `node` belongs, PL_NONE = none. Looked for from the end whose id is nearer: a pipeline's
 * forwards all wait from the start with ascending ids, and its backwards arrive with ids near the first. */
static uint32_t find_place(const pl_ready_streams *streams, uint32_t stream, uint32_t node) {
  uint32_t after = streams->tail[stream], before = streams->head[stream], id = streams->task[node];
  if (after == PL_NONE || streams->task[after] < id) return after;
  if (streams->task[before] > id) return PL_NONE;
  if (id - streams->task[before] > streams->task[after] - id) {
    while (streams->task[after] > id)
      after = streams->previous[after];
    return after;
  }
  while (streams->task[streams->next[before]] < id)
    before = streams->next[before];
  return before;
}

static void insert(pl_ready_streams *streams, uint32_t stream, uint32_t node) {
  uint32_t after = find_place(streams, stream, node);
  uint32_t before = after == PL_NONE ? streams->head[stream] : streams->next[after];
  streams->previous[node] = after;
  streams->next[node] = before;
  *(after == PL_NONE ? &streams->head[stream] : &streams->next[after]) = node;
  *(before == PL_NONE ? &streams->tail[stream] : &streams->previous[before]) = node;
}

static void unlink_node(pl_ready_streams *streams, uint32_t stream, uint32_t node) {
  uint32_t after = streams->previous[node], before = streams->next[node];
  *(after == PL_NONE ? &streams->head[stream] : &streams->next[after]) = before;
  *(before == PL_NONE ? &streams->tail[stream] : &streams->previous[before]) = after;
}

/* The stream's cursor goes to `node`, unless it is at a lower task already. */
static void point(pl_ready_streams *streams, uint32_t stream, uint32_t node) {
  uint32_t at = streams->cursors.position[stream];
  if (at != PL_NONE && streams->cursors.events[at].order <= streams->task[node]) return;
  streams->cursor[stream] = node;
  pl_event_heap_put(&streams->cursors, stream, 0, streams->task[node]);
}

/* ---- one round ---- */

static void enter_new(pl_engine *engine, pl_ticks now) {
  pl_ready_streams *streams = engine->streams;
  uint32_t n_ready = engine->n_ready;
  engine->n_ready = 0;
  for (uint32_t at = 0; at < n_ready; at++) {
    uint32_t task = engine->ready[at];
    const pl_task *record = pl_engine_task(engine, task);
    if (record->n_streams == 0) pl_engine_start_task(engine, task, now);
    for (uint32_t member = 0; member < record->n_streams; member++) {
      uint32_t stream = pl_task_streams(engine, record)[member];
      insert(streams, stream, record->first_stream + member);
      if (!streams->busy[stream]) point(streams, stream, record->first_stream + member);
    }
  }
}

static bool are_all_free(const pl_engine *engine, const pl_task *record) {
  for (uint32_t member = 0; member < record->n_streams; member++)
    if (engine->streams->busy[pl_task_streams(engine, record)[member]]) return false;
  return true;
}

static void occupy(pl_engine *engine, const pl_task *record) {
  for (uint32_t member = 0; member < record->n_streams; member++) {
    uint32_t stream = pl_task_streams(engine, record)[member];
    unlink_node(engine->streams, stream, record->first_stream + member);
    engine->streams->busy[stream] = true;
    pl_event_heap_remove(&engine->streams->cursors, stream);
  }
}

void pl_ready_streams_start(pl_engine *engine, pl_ticks now) {
  pl_ready_streams *streams = engine->streams;
  for (uint32_t at = 0; at < streams->n_freed; at++) {
    uint32_t stream = streams->freed[at];
    streams->is_freed[stream] = false;
    if (!streams->busy[stream] && streams->head[stream] != PL_NONE) point(streams, stream, streams->head[stream]);
  }
  streams->n_freed = 0;
  enter_new(engine, now);
  while (streams->cursors.count > 0) {
    pl_event first = pl_event_heap_pop(&streams->cursors);
    uint32_t node = streams->cursor[first.id];
    const pl_task *record = pl_engine_task(engine, first.order);
    if (are_all_free(engine, record)) {
      occupy(engine, record);
      pl_engine_start_task(engine, first.order, now);
    } else if (streams->next[node] != PL_NONE) {
      point(streams, first.id, streams->next[node]);
    }
  }
}
