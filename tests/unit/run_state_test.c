/* The state of a run, written out: whatever decides the future is in it. An engine that stands still is changed in one
 * place; the words must differ, and must be the same again when that field is left out, so that no field goes missing
 * unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine/engine_state.h"

enum { N_TASKS = 6, NOW = 1000 };

/* A device with a disturbed task on its compute stream, a transfer on its gradient stream, one task that waits for two
 * others and one whose stream is not free. */
typedef struct still {
  pl_arena arena;
  pl_stream streams[2];
  uint32_t task_streams[2];
  pl_task tasks[N_TASKS];
  pl_graph graph;
  pl_wait wait[N_TASKS];
  pl_walker walker;
  pl_gradient_transfer transfers[2];
  pl_overlap overlap;
  uint32_t head[2], next[2], node_task[2];
  pl_ready_streams ready;
  uint32_t touched[N_TASKS], first_task[N_TASKS + 1];
  pl_lane lane;
  uint32_t device;
  pl_watched watched;
  pl_watch watch;
  pl_engine engine;
} still;

static void make(still *own) {
  *own = (still){.streams = {{.kind = PL_STREAM_COMPUTE}, {.kind = PL_STREAM_GRADIENT}}, .task_streams = {0, 1}};
  pl_arena_init(&own->arena, 0);
  own->tasks[0] = (pl_task){.kind = PL_TASK_WORK, .n_streams = 1};
  own->tasks[1] = (pl_task){.kind = PL_TASK_TRANSFER, .first_stream = 1, .n_streams = 1};
  own->tasks[5] = own->tasks[1];
  own->graph = (pl_graph){.tasks = own->tasks,
                          .n_tasks = N_TASKS,
                          .streams = own->streams,
                          .n_streams = 2,
                          .task_streams = own->task_streams,
                          .n_devices = 1};
  own->wait[2].pending = 2;
  own->wait[3].pending = 2;
  own->walker = (pl_walker){.task = 0,
                            .gradient = {1, PL_NONE},
                            .n_rivals = 1,
                            .walked = true,
                            .part_start = 900,
                            .part_finish = 1100,
                            .key = 1100,
                            .updated = 950,
                            .remaining = 150,
                            .slowdown = 1.5};
  own->transfers[1] = (pl_gradient_transfer){.task = 1, .speed = 0.5};
  own->overlap = (pl_overlap){.walkers = &own->walker, .transfers = own->transfers};
  own->head[0] = 0;
  own->head[1] = own->next[0] = own->next[1] = PL_NONE;
  own->node_task[0] = 4;
  own->ready = (pl_ready_streams){.head = own->head, .next = own->next, .task = own->node_task};
  own->touched[0] = 2;
  for (uint32_t step = 0; step <= N_TASKS; step++)
    own->first_task[step] = step;
  own->lane = (pl_lane){.n_steps = N_TASKS, .phases = {{0, N_TASKS}}};
  own->watched = (pl_watched){.devices = &own->device, .n_devices = 1, .touched = own->touched, .n_touched = 1};
  own->watch = (pl_watch){.islands = {.n = 1}, .watched = &own->watched};
  own->watch.lanes =
      (pl_lanes){.lanes = &own->lane, .n_lanes = 1, .first_task = own->first_task, .n_phases = 1, .period = {1}};
  own->engine = (pl_engine){.graph = &own->graph,
                            .tasks = own->tasks,
                            .wait = own->wait,
                            .overlap = &own->overlap,
                            .streams = &own->ready,
                            .watch = &own->watch,
                            .arena = &own->arena};
  assert_true(pl_event_heap_init(&own->engine.heap, 2, &own->arena));
  pl_event_heap_put(&own->engine.heap, 0, 1100, 0);
}

static void change(still *own, pl_state_field field) {
  switch (field) {
  case PL_STATE_WAITING:
    own->touched[0] = 3;
    break;
  case PL_STATE_PENDING:
    own->wait[2].pending = 1;
    break;
  case PL_STATE_READY:
    own->node_task[0] = 3;
    break;
  case PL_STATE_TIMER:
    pl_event_heap_put(&own->engine.heap, 0, 1100, 3);
    break;
  case PL_STATE_TIMER_DATE:
    pl_event_heap_put(&own->engine.heap, 0, 1101, 0);
    break;
  case PL_STATE_WALKER:
    own->walker.task = 3;
    break;
  case PL_STATE_WALKER_GRADIENT:
    own->walker.gradient[0] = 5;
    break;
  case PL_STATE_WALKER_RIVALS:
    own->walker.n_rivals = 2;
    break;
  case PL_STATE_WALKER_FLAGS:
    own->walker.slows[0] = true;
    break;
  case PL_STATE_WALKER_PART:
    own->walker.part = 1;
    break;
  case PL_STATE_WALKER_START:
    own->walker.part_start = 901;
    break;
  case PL_STATE_WALKER_FINISH:
    own->walker.part_finish = 1101;
    break;
  case PL_STATE_WALKER_KEY:
    own->walker.key = 1101;
    break;
  case PL_STATE_WALKER_UPDATED:
    own->walker.updated = 951;
    break;
  case PL_STATE_WALKER_REMAINING:
    own->walker.remaining = 150 * (1 + 0x1p-52);
    break;
  case PL_STATE_WALKER_SLOWDOWN:
    own->walker.slowdown = 1.5 * (1 + 0x1p-52);
    break;
  case PL_STATE_WALKER_ARRIVALS:
    own->walker.n_waiting = 1;
    break;
  case PL_STATE_GRADIENT_SLOWING:
    own->transfers[1].n_slowing = 1;
    break;
  case PL_STATE_GRADIENT_SPEED:
    own->transfers[1].speed = 0.5 * (1 + 0x1p-52);
    break;
  default:
    fail_msg("no change for field %d", (int)field);
  }
}

static pl_run_state write(still *own, uint64_t left_out) {
  pl_run_state state = {.lanes = &own->watch.lanes, .now = NOW, .left_out = left_out, .arena = &own->arena};
  pl_watch_write_state(&own->engine, &state);
  assert_false(state.outside);
  return state;
}

static bool same(const pl_run_state *a, const pl_run_state *b) {
  return a->n == b->n && memcmp(a->words, b->words, a->n * sizeof *a->words) == 0;
}

static bool is_of_the_network(int field) {
  return field >= PL_STATE_FLOW && field <= PL_STATE_FLOW_SPEED;
}

static void each_field_tells_states_apart(void **unused) {
  (void)unused;
  for (int field = 0; field < PL_STATE_N_FIELDS; field++) {
    if (is_of_the_network(field)) continue;
    still one, other;
    make(&one);
    make(&other);
    pl_run_state before = write(&one, 0), unchanged = write(&other, 0);
    assert_true(same(&before, &unchanged));
    change(&other, (pl_state_field)field);
    pl_run_state after = write(&other, 0);
    if (same(&before, &after)) fail_msg("field %d is not in the state", field);
    uint64_t left_out = UINT64_C(1) << field;
    pl_run_state without = write(&one, left_out), changed = write(&other, left_out);
    if (!same(&without, &changed)) fail_msg("field %d says what another one says", field);
    pl_arena_release(&one.arena);
    pl_arena_release(&other.arena);
  }
}

static void a_task_outside_the_phase_makes_the_state_useless(void **unused) {
  (void)unused;
  still own;
  make(&own);
  own.lane.phases[0].to = 2;
  pl_run_state state = {.lanes = &own.watch.lanes, .now = NOW, .arena = &own.arena};
  pl_watch_write_state(&own.engine, &state);
  assert_true(state.outside);
  pl_arena_release(&own.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_field_tells_states_apart),
                                     cmocka_unit_test(a_task_outside_the_phase_makes_the_state_useless)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
