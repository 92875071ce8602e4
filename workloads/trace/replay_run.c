/* Runs of a step's graph (see workloads/trace/replay.h): one pass in topological order, or only where dates move. */
#include "workloads/trace/replay.h"

static pl_ticks start_of(const pl_trace_replay *replay, const pl_ticks *finish, uint32_t task) {
  pl_ticks start = 0;
  for (uint32_t e = replay->pred_offset[task]; e < replay->pred_offset[task + 1]; e++)
    if (finish[replay->preds[e]] > start) start = finish[replay->preds[e]];
  return start;
}

static pl_ticks makespan_of(const pl_trace_replay *replay, const pl_ticks *finish) {
  pl_ticks makespan = 0;
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++)
    if (finish[t] > makespan) makespan = finish[t];
  return makespan;
}

pl_ticks pl_trace_replay_run(const pl_trace_replay *replay, const pl_ticks *ticks, pl_ticks *finish) {
  pl_ticks makespan = 0;
  for (uint32_t k = 0; k < replay->graph.n_tasks; k++) {
    uint32_t task = replay->order[k];
    finish[task] = pl_ticks_sum(start_of(replay, finish, task), ticks[task]);
    if (finish[task] > makespan) makespan = finish[task];
  }
  return makespan;
}

/* ---- partial: a heap of places in the order ---- */

static void push(uint32_t *heap, uint32_t *n, uint32_t place) {
  uint32_t at = (*n)++;
  while (at > 0 && heap[(at - 1) / 2] > place) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = place;
}

static uint32_t pop(uint32_t *heap, uint32_t *n) {
  uint32_t top = heap[0], last = heap[--*n], at = 0;
  for (uint32_t child; (child = 2 * at + 1) < *n; at = child) {
    if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

static void queue(const pl_trace_replay *replay, uint32_t task, uint32_t *heap, uint32_t *n, uint8_t *queued) {
  if (queued[task]) return;
  queued[task] = 1;
  push(heap, n, replay->place[task]);
}

pl_ticks pl_trace_replay_update(const pl_trace_replay *replay, const pl_ticks *ticks, const uint32_t *changed,
                                uint32_t n_changed, uint32_t *heap, uint8_t *queued, pl_ticks *finish) {
  const pl_graph *graph = &replay->graph;
  uint32_t n = 0;
  for (uint32_t k = 0; k < n_changed; k++)
    queue(replay, changed[k], heap, &n, queued);
  while (n > 0) {
    uint32_t task = replay->order[pop(heap, &n)];
    queued[task] = 0;
    pl_ticks date = pl_ticks_sum(start_of(replay, finish, task), ticks[task]);
    if (date == finish[task]) continue;
    finish[task] = date;
    for (uint32_t e = graph->successor_offset[task]; e < graph->successor_offset[task + 1]; e++)
      queue(replay, graph->successors[e], heap, &n, queued);
  }
  return makespan_of(replay, finish);
}

uint32_t pl_trace_replay_critical(const pl_trace_replay *replay, const pl_ticks *ticks, const pl_ticks *finish,
                                  uint32_t *path) {
  uint32_t n = 0, task = PL_NONE;
  pl_ticks makespan = makespan_of(replay, finish);
  for (uint32_t t = 0; t < replay->graph.n_tasks && task == PL_NONE; t++)
    if (finish[t] == makespan) task = t;
  while (task != PL_NONE) {
    pl_ticks start = finish[task] - ticks[task];
    path[n++] = task;
    uint32_t before = PL_NONE;
    for (uint32_t e = replay->pred_offset[task]; e < replay->pred_offset[task + 1] && before == PL_NONE; e++)
      if (start > 0 && finish[replay->preds[e]] == start) before = replay->preds[e];
    task = before;
  }
  for (uint32_t a = 0, b = n; a + 1 < b;) { /* first to last */
    uint32_t swap = path[a];
    path[a++] = path[--b];
    path[b] = swap;
  }
  return n;
}
