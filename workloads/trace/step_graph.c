/* See workloads/trace/step_graph.h. */
#include "workloads/trace/step_graph.h"

#include <string.h>

bool pl_step_graph_take(uint32_t n, pl_ticks *ticks, uint32_t *claims, uint32_t *frees, uint32_t n_links,
                        const pl_step_arc *arcs, uint32_t n_arcs, pl_arena *arena, pl_step_graph *graph) {
  *graph = (pl_step_graph){.n = n, .n_links = n_links, .ticks = ticks, .claims = claims, .frees = frees};
  graph->next_offset = PL_TAKE(arena, uint32_t, (size_t)n + 3);
  graph->next = PL_TAKE(arena, uint32_t, (size_t)n_arcs + 1);
  graph->n_before = PL_TAKE(arena, uint32_t, (size_t)n + 1);
  if (graph->next_offset == NULL || graph->next == NULL || graph->n_before == NULL) return false;
  uint32_t *offset = graph->next_offset; /* filled two places ahead, so that filling `next` leaves it right */
  for (uint32_t a = 0; a < n_arcs; a++) {
    offset[arcs[a].before + 2]++;
    graph->n_before[arcs[a].after]++;
  }
  for (uint32_t t = 2; t <= n; t++)
    offset[t + 1] += offset[t];
  for (uint32_t a = 0; a < n_arcs; a++)
    graph->next[offset[arcs[a].before + 1]++] = arcs[a].after;
  return true;
}

/* ---- events ---- */

typedef struct event {
  pl_ticks date;
  uint32_t key; /* an end before a request of the same date; then by task */
} event;

#define REQUEST (UINT32_C(1) << 31)

typedef struct playing {
  const pl_step_graph *graph;
  pl_ticks *start, *finish;
  uint32_t *cause, *missing, done;
  event *heap;
  uint32_t n_heap;
  uint32_t *first, *last, *follows; /* per link who waits; per task who is behind it */
  bool *held;
} playing;

static bool is_before(event a, event b) {
  return a.date != b.date ? a.date < b.date : a.key < b.key;
}

static void push(playing *own, pl_ticks date, uint32_t key) {
  uint32_t at = own->n_heap++;
  event e = {date, key};
  while (at > 0 && is_before(e, own->heap[(at - 1) / 2])) {
    own->heap[at] = own->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  own->heap[at] = e;
}

static event pop(playing *own) {
  event top = own->heap[0], e = own->heap[--own->n_heap];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < own->n_heap; at = child) {
    if (child + 1 < own->n_heap && is_before(own->heap[child + 1], own->heap[child])) child++;
    if (!is_before(own->heap[child], e)) break;
    own->heap[at] = own->heap[child];
  }
  own->heap[at] = e;
  return top;
}

static void begin(playing *own, uint32_t task, pl_ticks date) {
  push(own, pl_ticks_sum(date, own->graph->ticks[task]), task);
}

static void is_ready(playing *own, uint32_t task) {
  if (own->graph->claims[task] != PL_NONE)
    push(own, own->start[task], task | REQUEST);
  else
    begin(own, task, own->start[task]);
}

static void request(playing *own, uint32_t task, pl_ticks date) {
  uint32_t link = own->graph->claims[task];
  if (!own->held[link]) {
    own->held[link] = true;
    begin(own, task, date);
    return;
  }
  own->follows[task] = PL_NONE;
  if (own->first[link] == PL_NONE)
    own->first[link] = task;
  else
    own->follows[own->last[link]] = task;
  own->last[link] = task;
}

static void give_back(playing *own, uint32_t task, pl_ticks date) {
  uint32_t link = own->graph->frees[task], next = own->first[link];
  own->held[link] = next != PL_NONE;
  if (next == PL_NONE) return;
  own->first[link] = own->follows[next];
  if (own->cause != NULL) own->cause[next] = task;
  begin(own, next, date);
}

/* `after` has one less to wait for; true: it waits for nothing more. Of causes at one date the lowest task. */
static bool release(playing *own, uint32_t before, uint32_t after) {
  pl_ticks date = own->finish[before];
  if (date > own->start[after] || own->missing[after] == own->graph->n_before[after]) {
    own->start[after] = date;
    if (own->cause != NULL) own->cause[after] = before;
  } else if (own->cause != NULL && date == own->start[after] && before < own->cause[after]) {
    own->cause[after] = before;
  }
  return --own->missing[after] == 0;
}

static void play_events(playing *own) {
  const pl_step_graph *graph = own->graph;
  for (uint32_t t = 0; t < graph->n; t++)
    if (graph->n_before[t] == 0) is_ready(own, t);
  while (own->n_heap > 0) {
    event e = pop(own);
    uint32_t task = e.key & ~REQUEST;
    if (e.key & REQUEST) {
      request(own, task, e.date);
      continue;
    }
    own->finish[task] = e.date;
    own->done++;
    for (uint32_t k = graph->next_offset[task]; k < graph->next_offset[task + 1]; k++)
      if (release(own, task, graph->next[k])) is_ready(own, graph->next[k]);
    if (graph->frees[task] != PL_NONE) give_back(own, task, e.date);
  }
}

/* Without links dates need no order: one pass, each task behind what it waits for. */
static void play_path(playing *own, uint32_t *order) {
  const pl_step_graph *graph = own->graph;
  uint32_t n = 0;
  for (uint32_t t = 0; t < graph->n; t++)
    if (graph->n_before[t] == 0) order[n++] = t;
  for (; own->done < n; own->done++) {
    uint32_t task = order[own->done];
    own->finish[task] = pl_ticks_sum(own->start[task], graph->ticks[task]);
    for (uint32_t k = graph->next_offset[task]; k < graph->next_offset[task + 1]; k++)
      if (release(own, task, graph->next[k])) order[n++] = graph->next[k];
  }
}

static bool take_scratch(playing *own, pl_arena *arena) {
  uint32_t n = own->graph->n, links = own->graph->n_links;
  own->start = PL_TAKE(arena, pl_ticks, (size_t)n + 1);
  own->missing = pl_arena_take(arena, ((size_t)n + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own->follows = pl_arena_take(arena, ((size_t)n + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  if (own->start == NULL || own->missing == NULL || own->follows == NULL) return false;
  memcpy(own->missing, own->graph->n_before, n * sizeof *own->missing);
  if (links == 0) return true;
  own->heap = pl_arena_take(arena, ((size_t)n + 1) * sizeof(event), _Alignof(event));
  own->first = pl_arena_take(arena, links * sizeof(uint32_t), _Alignof(uint32_t));
  own->last = pl_arena_take(arena, links * sizeof(uint32_t), _Alignof(uint32_t));
  own->held = PL_TAKE(arena, bool, links);
  if (own->heap == NULL || own->first == NULL || own->last == NULL || own->held == NULL) return false;
  memset(own->first, 0xff, links * sizeof *own->first);
  return true;
}

pl_ticks pl_step_graph_play(const pl_step_graph *graph, pl_arena *arena, pl_ticks *finish, uint32_t *cause) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  playing own = {.graph = graph, .finish = finish, .cause = cause};
  pl_ticks makespan = -1;
  if (cause != NULL) memset(cause, 0xff, graph->n * sizeof *cause);
  if (take_scratch(&own, arena)) {
    if (graph->n_links > 0)
      play_events(&own);
    else
      play_path(&own, own.follows);
    makespan = own.done < graph->n ? PL_TICKS_NEVER : 0;
    for (uint32_t t = 0; t < graph->n && own.done == graph->n; t++)
      if (finish[t] > makespan) makespan = finish[t];
  }
  pl_arena_release_to(arena, mark);
  return makespan;
}

uint32_t pl_step_graph_path(const pl_step_graph *graph, const pl_ticks *finish, const uint32_t *cause, uint32_t *path) {
  uint32_t n = 0, task = PL_NONE;
  for (uint32_t t = 0; t < graph->n; t++)
    if (task == PL_NONE || finish[t] > finish[task]) task = t;
  for (; task != PL_NONE; task = cause[task])
    path[n++] = task;
  for (uint32_t a = 0, b = n; a + 1 < b;) {
    uint32_t swap = path[a];
    path[a++] = path[--b];
    path[b] = swap;
  }
  return n;
}
