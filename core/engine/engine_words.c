/* The engine's state, written out (core/graph/run_state.h); what is under way on the network, the network writes
 * itself. */
#include "core/engine/engine_state.h"

/* ---- tasks ---- */

/* Leaves out what has started, and sorts. */
static void tidy_touched(const pl_engine *engine, pl_watched *own) {
  uint32_t n = 0;
  for (uint32_t at = 0; at < own->n_touched; at++)
    if (engine->wait[own->touched[at]].pending > 0) own->touched[n++] = own->touched[at];
  own->n_touched = n;
  pl_sort_tasks(own->touched, n);
}

static void write_tasks(pl_engine *engine, pl_run_state *state) {
  pl_watched *own = &engine->watch->watched[state->island];
  tidy_touched(engine, own);
  pl_run_state_put(state, PL_STATE_WAITING, own->n_touched);
  for (uint32_t at = 0; at < own->n_touched; at++) {
    uint32_t task = own->touched[at];
    pl_run_state_put_task(state, PL_STATE_WAITING, task);
    pl_run_state_put(state, PL_STATE_PENDING, engine->wait[task].pending);
  }
}

/* Of the tasks without streams that are under way the least from `least` on: their slots have no meaning, so they are
 * written by tasks, which recur in the order of their lanes. */
static const pl_event *next_streamless(const pl_engine *engine, const pl_run_state *state, uint32_t least) {
  const pl_event_heap *heap = &engine->heap;
  const pl_event *found = NULL;
  for (uint32_t at = 0; at < heap->count; at++) {
    const pl_event *event = &heap->events[at];
    if (event->id < engine->graph->n_streams || event->order < least || !pl_run_state_is_of(state, event->order))
      continue;
    if (found == NULL || event->order < found->order) found = event;
  }
  return found;
}

static void write_timers(const pl_engine *engine, pl_run_state *state) {
  const pl_event_heap *heap = &engine->heap;
  uint32_t n = 0;
  for (uint32_t stream = 0; stream < engine->graph->n_streams; stream++) {
    uint32_t at = heap->position[stream];
    if (at == PL_NONE || !pl_run_state_is_of(state, heap->events[at].order)) continue;
    n++;
    pl_run_state_put(state, PL_STATE_TIMER, stream);
    pl_run_state_put_task(state, PL_STATE_TIMER, heap->events[at].order);
    pl_run_state_put_date(state, PL_STATE_TIMER_DATE, heap->events[at].time);
  }
  pl_run_state_put(state, PL_STATE_TIMER, n);
  const pl_event *event = next_streamless(engine, state, 0);
  for (; event != NULL; event = next_streamless(engine, state, event->order + 1)) {
    pl_run_state_put_task(state, PL_STATE_TIMER, event->order);
    pl_run_state_put_date(state, PL_STATE_TIMER_DATE, event->time);
  }
}

/* The lists of waiting tasks; a stream is busy while a task on it is under way, which the timers and the network say.
 */
static void write_ready(const pl_engine *engine, pl_run_state *state) {
  const pl_ready_streams *streams = engine->streams;
  for (uint32_t stream = 0; stream < engine->graph->n_streams; stream++) {
    if (streams->head[stream] == PL_NONE) continue;
    pl_run_state_put(state, PL_STATE_READY, stream);
    for (uint32_t node = streams->head[stream]; node != PL_NONE; node = streams->next[node])
      pl_run_state_put_task(state, PL_STATE_READY, streams->task[node]);
  }
  pl_run_state_put(state, PL_STATE_READY, UINT64_MAX);
}

/* ---- what is disturbed ---- */

/* In a run of parts the device is where it was when it was looked at last; that, since when and how fast say where it
 * is, and sums of it are behind by as much whenever that is the same. What makes the engine look are starts and ends of
 * tasks, of which pl_watch_leap asks that they recur, so that looking once more at each mark would find no recurrence
 * earlier. */
static void write_walk(const pl_walker *walker, pl_run_state *state) {
  pl_run_state_put(state, PL_STATE_WALKER_PART, walker->part);
  pl_run_state_put_date(state, PL_STATE_WALKER_START, walker->part_start);
  pl_run_state_put_date(state, PL_STATE_WALKER_FINISH, walker->part_finish);
  pl_run_state_put_date(state, PL_STATE_WALKER_KEY, walker->key);
  pl_run_state_put(state, PL_STATE_WALKER_ARRIVALS, walker->n_waiting);
  if (walker->n_waiting > 0) pl_run_state_put_date(state, PL_STATE_WALKER_ARRIVALS, walker->last_arrival);
  if (walker->flows || walker->waits) return;
  pl_run_state_put_date(state, PL_STATE_WALKER_UPDATED, walker->updated);
  pl_run_state_put_double(state, PL_STATE_WALKER_REMAINING, walker->remaining);
  pl_run_state_put_double(state, PL_STATE_WALKER_SLOWDOWN, walker->slowdown);
}

static void write_gradient(const pl_engine *engine, const pl_walker *walker, int which, pl_run_state *state) {
  uint32_t task = walker->gradient[which];
  pl_run_state_put_task(state, PL_STATE_WALKER_GRADIENT, task);
  if (task == PL_NONE) return;
  pl_run_state_put(state, PL_STATE_WALKER_FLAGS, walker->slows[which]);
  if (engine->tasks[task].kind != PL_TASK_TRANSFER) return;
  const pl_gradient_transfer *transfer = &engine->overlap->transfers[*pl_task_streams(engine, &engine->tasks[task])];
  pl_run_state_put(state, PL_STATE_GRADIENT_SLOWING, transfer->n_slowing);
  pl_run_state_put_double(state, PL_STATE_GRADIENT_SPEED, transfer->speed);
}

static void write_walkers(const pl_engine *engine, pl_run_state *state) {
  const pl_watched *own = &engine->watch->watched[state->island];
  for (uint32_t at = 0; at < own->n_devices; at++) {
    const pl_walker *walker = &engine->overlap->walkers[own->devices[at]];
    pl_run_state_put_task(state, PL_STATE_WALKER, walker->task);
    for (int which = 0; which < PL_GRADIENT_STREAMS; which++)
      write_gradient(engine, walker, which, state);
    for (int which = 0; which < PL_CROWDING_STREAMS; which++)
      if (walker->is_crowded[which]) pl_run_state_put_task(state, PL_STATE_WALKER_GRADIENT, walker->crowd[which]);
    pl_run_state_put(state, PL_STATE_WALKER_RIVALS, walker->n_rivals);
    pl_run_state_put(state, PL_STATE_WALKER_FLAGS,
                     (uint64_t)(walker->walked | walker->flows << 1 | walker->waits << 2));
    if (walker->task != PL_NONE && walker->walked) write_walk(walker, state);
  }
}

/* ---- all ---- */

void pl_watch_write_state(pl_engine *engine, pl_run_state *state) {
  state->n = 0;
  state->outside = false;
  write_tasks(engine, state);
  write_timers(engine, state);
  if (engine->streams != NULL) write_ready(engine, state);
  if (engine->overlap != NULL) write_walkers(engine, state);
  if (engine->network == NULL) return;
  if (engine->network->ops->write_state == NULL) {
    state->outside = true;
  } else {
    engine->network->ops->write_state(engine->network, state);
  }
}
