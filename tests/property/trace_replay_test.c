/* The replay of random traces: the pass over the tasks gives what the engine gives, tick for tick; a partial replay
 * what a whole one gives; the critical path is as long as the step; without clock errors the recording comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/random.h"
#include "workloads/trace/replay.h"
#include "workloads/trace/what_if.h"

enum { RANKS = 3, STREAMS = 4, ROUNDS = 12, WINDOW_NS = 1000000 };

static uint32_t name(pl_trace *trace, const char *text) {
  return pl_trace_name(trace, text, strlen(text));
}

/* Ops of a rank on three streams, each round within its window, and a collective at the end of each on a fourth. */
static void add_rank(pl_trace *trace, uint64_t *random, uint32_t r, uint32_t group) {
  uint32_t first_edge = trace->n_edges, first_op = trace->n_ops;
  pl_trace_add_rank(trace, (pl_trace_rank){.number = r,
                                           .host = name(trace, "h"),
                                           .file = name(trace, "f"),
                                           .first_op = first_op,
                                           .first_step = trace->n_steps});
  uint32_t streams[STREAMS];
  for (uint32_t s = 0; s < STREAMS; s++)
    streams[s] = pl_trace_add_stream(trace, r, name(trace, "s"), s == 0 ? PL_TRACE_HOST : PL_TRACE_DEVICE);
  pl_trace_add_op(trace, pl_trace_op_of(0, 0, name(trace, "begin"), streams[0], PL_NONE, PL_NONE, PL_TRACE_COMPUTE));
  for (int64_t round = 0; round < ROUNDS; round++) {
    uint32_t latest[STREAMS - 1];
    for (uint32_t s = 0; s < STREAMS - 1; s++) {
      int64_t date = round * WINDOW_NS + 1 + (int64_t)random_below(random, 1000);
      for (uint32_t n = 1 + random_below(random, 4); n > 0; n--) {
        int64_t length = (int64_t)random_below(random, 100000);
        bool calls = s == 0 && n == 1;
        latest[s] =
            pl_trace_add_op(trace, pl_trace_op_of(date, length, name(trace, s == 0 ? "call" : "kernel"), streams[s],
                                                  PL_NONE, PL_NONE, calls ? PL_TRACE_CALL : PL_TRACE_COMPUTE));
        date += length + (int64_t)random_below(random, 20000);
      }
    }
    pl_trace_message message = {PL_TRACE_ALL_REDUCE, group, -1, PL_NONE, -1, 1000 * (1 + round % 3)};
    int64_t start = round * WINDOW_NS + 600000 + (int64_t)random_below(random, 100000);
    uint32_t op =
        pl_trace_add_op(trace, pl_trace_op_of(start, (round + 1) * WINDOW_NS - start, name(trace, "reduce"), streams[3],
                                              pl_trace_add_message(trace, message), PL_NONE, PL_TRACE_COLLECTIVE));
    for (uint32_t s = 0; s < STREAMS - 1; s++)
      if (random_below(random, 2) == 0) pl_trace_add_edge(trace, latest[s], op, s == 0);
  }
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_trace_end_rank(trace, r, first_edge, &error), PL_OK);
}

typedef struct played {
  pl_trace trace;
  pl_trace_meetings meetings;
  pl_trace_clocks clocks;
  pl_trace_step_list steps;
  pl_arena arena;
  pl_trace_replay replay;
  pl_ticks *ticks, *finish;
  uint32_t n;
} played;

static void set_up(played *own, uint64_t *random) {
  pl_error error = PL_ERROR_INIT;
  int64_t members[RANKS];
  pl_trace_init(&own->trace);
  pl_arena_init(&own->arena, 0);
  for (uint32_t r = 0; r < RANKS; r++)
    members[r] = r;
  uint32_t group = pl_trace_add_group(&own->trace, name(&own->trace, "all"), members, RANKS);
  for (uint32_t r = 0; r < RANKS; r++)
    add_rank(&own->trace, random, r, group);
  assert_true(pl_trace_is_valid(&own->trace));
  assert_int_equal(pl_trace_meetings_make(&own->trace, &own->meetings, &error), PL_OK);
  assert_int_equal(own->meetings.n_collectives, ROUNDS);
  assert_int_equal(pl_trace_clocks_make(&own->trace, &own->meetings, &own->clocks, &error), PL_OK);
  assert_int_equal(pl_trace_steps_make(&own->trace, &own->clocks, &own->steps, &error), PL_OK);
  assert_int_equal(pl_trace_replay_take(&own->trace, &own->meetings, &own->clocks, &own->steps, 0, &own->arena,
                                        &own->replay, &error),
                   PL_OK);
  own->n = own->replay.graph.n_tasks;
  own->ticks = PL_TAKE(&own->arena, pl_ticks, own->n);
  own->finish = PL_TAKE(&own->arena, pl_ticks, own->n);
  memcpy(own->ticks, own->replay.ticks, own->n * sizeof *own->ticks);
}

static void tear_down(played *own) {
  pl_trace_steps_release(&own->steps);
  pl_trace_clocks_release(&own->clocks);
  pl_trace_meetings_release(&own->meetings);
  pl_trace_release(&own->trace);
  pl_arena_release(&own->arena);
}

static void check_engine(played *own) {
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  const pl_engine_options options = {.record_parts = false};
  pl_ticks makespan = pl_trace_replay_run(&own->replay, own->ticks, own->finish);
  assert_int_equal(pl_engine_run(&own->replay.graph, NULL, &options, &own->arena, &result, &error), PL_OK);
  assert_true(result.makespan == makespan);
  assert_memory_equal(result.finish, own->finish, own->n * sizeof *own->finish);
  assert_true(llabs(makespan - pl_trace_replay_measured(&own->replay)) <= (pl_ticks)own->n); /* half a tick each */
}

static void check_critical(played *own, pl_ticks makespan) {
  uint32_t *path = PL_TAKE(&own->arena, uint32_t, own->n);
  uint32_t n = pl_trace_replay_critical(&own->replay, own->ticks, own->finish, path);
  pl_ticks length = 0;
  for (uint32_t k = 0; k < n; k++) {
    assert_true(own->finish[path[k]] == length + own->ticks[path[k]]);
    length += own->ticks[path[k]];
  }
  assert_true(length == makespan);
}

static void check_partial(played *own, uint64_t *random) {
  uint32_t *heap = PL_TAKE(&own->arena, uint32_t, own->n), changed[8];
  uint8_t *queued = PL_TAKE(&own->arena, uint8_t, own->n);
  pl_ticks *whole = PL_TAKE(&own->arena, pl_ticks, own->n);
  for (int round = 0; round < 20; round++) {
    uint32_t n = (uint32_t)(1 + random_below(random, 8));
    for (uint32_t k = 0; k < n; k++) {
      changed[k] = (uint32_t)random_below(random, own->n);
      own->ticks[changed[k]] = (pl_ticks)random_below(random, 200000000);
    }
    pl_ticks partial = pl_trace_replay_update(&own->replay, own->ticks, changed, n, heap, queued, own->finish);
    assert_true(partial == pl_trace_replay_run(&own->replay, own->ticks, whole));
    assert_memory_equal(whole, own->finish, own->n * sizeof *whole);
    check_critical(own, partial);
  }
}

static void test_random_traces(void **state) {
  (void)state;
  uint64_t seed = test_seed(20261122);
  for (uint64_t k = 0; k < 30; k++) {
    uint64_t random = seed + k;
    played own = {.n = 0};
    set_up(&own, &random);
    check_engine(&own);
    check_critical(&own, pl_trace_replay_run(&own.replay, own.ticks, own.finish));
    check_partial(&own, &random);
    tear_down(&own);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_traces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
