/* The engine on random training steps: equal to a naive simulator tick for tick, equal however the work is cut into
 * tasks, and equal whatever the order of edges and whoever drives it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/fixed_network.h"
#include "tests/support/plan.h"
#include "tests/support/random.h"

static pl_engine_result run_graph(const pl_graph *graph, bool record_parts, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_engine_result result;
  pl_engine_options options = {.record_parts = record_parts, .record_charges = record_parts};
  assert_true(pl_graph_is_valid(graph));
  pl_network *network = fixed_network_take(&graph->transfers, PLAN_TASKS, arena);
  pl_code code = pl_engine_run(graph, network, &options, arena, &result, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  return result;
}

static pl_graph build(const test_plan *plan, bool fused, uint64_t *shuffle, pl_arena *arena, uint32_t *task_of) {
  pl_error error = PL_ERROR_INIT;
  pl_graph graph;
  pl_code code = plan_build(plan, fused, shuffle, arena, &graph, task_of, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  return graph;
}

static void check_sums(const pl_graph *graph, const pl_engine_result *result) {
  for (uint32_t device = 0; device < graph->n_devices; device++) {
    pl_ticks sum = result->idle[device];
    assert_true(sum >= 0);
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++) {
      pl_ticks spent = result->spent[device * PL_CATEGORY_COUNT + category];
      assert_true(spent >= 0);
      sum += spent;
    }
    assert_int_equal(sum, result->makespan);
  }
}

/* Parts and charges are what is spent, category by category. */
static void check_charges(const pl_graph *graph, const pl_engine_result *result) {
  pl_ticks sums[PLAN_DEVICES][PL_CATEGORY_COUNT] = {{0}};
  for (uint32_t at = 0; at < result->n_part_spans; at++) {
    const pl_part_span *span = &result->part_spans[at];
    uint32_t stream = graph->task_streams[graph->tasks[span->task].first_stream + span->member];
    sums[graph->streams[stream].device][graph->parts[span->part].category] += span->finish - span->start;
  }
  for (uint32_t at = 0; at < result->n_charges; at++) {
    const pl_charge *charge = &result->charges[at];
    assert_true(charge->ticks > 0 && charge->ticks <= result->finish[charge->task] - result->start[charge->task]);
    sums[charge->device][graph->tasks[charge->task].category] += charge->ticks;
  }
  for (uint32_t device = 0; device < graph->n_devices; device++)
    for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
      assert_int_equal(sums[device][category], result->spent[device * PL_CATEGORY_COUNT + category]);
}

static void check_against_naive(const test_plan *plan, pl_arena *arena, uint32_t round) {
  uint32_t task_of[PLAN_TASKS];
  pl_graph graph = build(plan, false, NULL, arena, task_of);
  pl_engine_result result = run_graph(&graph, false, arena);
  plan_run *run = malloc(sizeof *run);
  plan_simulate(plan, arena, run);
  for (uint32_t task = 0; task < plan->n_tasks; task++)
    if (run->start[task] != result.start[task] || run->finish[task] != result.finish[task])
      fail_msg("plan %u: task %u of %u runs %lld..%lld, by the naive simulator %lld..%lld", round, task, plan->n_tasks,
               (long long)result.start[task], (long long)result.finish[task], (long long)run->start[task],
               (long long)run->finish[task]);
  assert_int_equal(result.makespan, run->makespan);
  assert_memory_equal(result.peak_bytes, run->peak_bytes, plan->n_devices * sizeof(int64_t));
  check_sums(&graph, &result);
  if (plan->n_tasks < 40) { /* the tick by tick account is slow */
    plan_account(plan, run);
    for (uint32_t device = 0; device < plan->n_devices; device++) {
      for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
        assert_int_equal(result.spent[device * PL_CATEGORY_COUNT + category], run->spent[device][category]);
      assert_int_equal(result.idle[device], run->idle[device]);
    }
  }
  free(run);
}

static void engine_equals_naive_simulator(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  test_plan *plan = malloc(sizeof *plan);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint32_t round = 0; round < 3000; round++) {
    plan_options options = {.policy = round % 2 == 0 ? PL_STREAMS_IN_ORDER : PL_STREAMS_READY,
                            .overlap = round % 4 < 3,
                            .transfers = round % 5 != 0};
    plan_make(plan, &options, &random);
    check_against_naive(plan, &arena, round);
    pl_arena_reset(&arena);
  }
  pl_arena_release(&arena);
  free(plan);
}

/* ---- fused ---- */

/* Each part of a fused task ran when the task ran that it stands for. */
static void check_parts(const test_plan *plan, const pl_engine_result *fused, const uint32_t *fused_of,
                        const pl_engine_result *unfused, const pl_graph *graph, uint32_t round) {
  uint32_t n_found = 0;
  for (uint32_t task = 0; task < plan->n_tasks; task++) {
    uint32_t id = fused_of[task];
    if (graph->tasks[id].kind != PL_TASK_WORK) continue;
    const plan_task *own = &plan->tasks[task];
    uint32_t part = graph->segments[graph->tasks[id].index].first_part + own->part;
    for (uint32_t at = 0; at < fused->n_part_spans; at++) {
      const pl_part_span *span = &fused->part_spans[at];
      if (span->task != id || span->part != part) continue;
      const pl_stream *stream = &graph->streams[graph->task_streams[graph->tasks[id].first_stream + span->member]];
      if (own->computes && stream->device != own->device[0]) continue;
      if (span->start != unfused->start[task] || span->finish != unfused->finish[task])
        fail_msg("plan %u: part %u of task %u runs %lld..%lld, as a task of its own %lld..%lld", round, own->part, id,
                 (long long)span->start, (long long)span->finish, (long long)unfused->start[task],
                 (long long)unfused->finish[task]);
      n_found++;
    }
  }
  uint32_t n_expected = 0;
  for (uint32_t id = 0; id < graph->n_tasks; id++)
    if (graph->tasks[id].kind == PL_TASK_WORK)
      n_expected += graph->segments[graph->tasks[id].index].n_parts * graph->tasks[id].n_streams;
  assert_int_equal(fused->n_part_spans, n_expected);
  assert_int_equal(n_found, n_expected);
  for (uint32_t at = 1; at < fused->n_part_spans; at++)
    assert_true(fused->part_spans[at - 1].start <= fused->part_spans[at].start);
}

static void check_fused(const test_plan *plan, pl_arena *arena, uint32_t round) {
  uint32_t unfused_of[PLAN_TASKS], fused_of[PLAN_TASKS];
  pl_graph unfused_graph = build(plan, false, NULL, arena, unfused_of);
  pl_graph fused_graph = build(plan, true, NULL, arena, fused_of);
  pl_engine_result unfused = run_graph(&unfused_graph, false, arena);
  pl_engine_result quiet = run_graph(&fused_graph, false, arena);
  pl_engine_result fused = run_graph(&fused_graph, true, arena);
  assert_int_equal(quiet.digest, fused.digest);
  for (uint32_t task = 0; task < plan->n_tasks; task++) {
    bool first = task == 0 || fused_of[task] != fused_of[task - 1];
    bool last = task + 1 == plan->n_tasks || fused_of[task] != fused_of[task + 1];
    if (first) assert_int_equal(unfused.start[task], fused.start[fused_of[task]]);
    if (last && unfused.finish[task] != fused.finish[fused_of[task]])
      fail_msg("plan %u: task %u ends at %lld, fused at %lld", round, task, (long long)unfused.finish[task],
               (long long)fused.finish[fused_of[task]]);
  }
  assert_int_equal(unfused.makespan, fused.makespan);
  check_parts(plan, &fused, fused_of, &unfused, &fused_graph, round);
  check_sums(&fused_graph, &fused);
  check_charges(&fused_graph, &fused);
  for (uint32_t at = 0; at < plan->n_devices * PL_CATEGORY_COUNT; at++)
    if (unfused.spent[at] != fused.spent[at])
      fail_msg("plan %u: device %u spends %lld ticks on %s, fused %lld", round, at / PL_CATEGORY_COUNT,
               (long long)unfused.spent[at], pl_category_name((pl_category)(at % PL_CATEGORY_COUNT)),
               (long long)fused.spent[at]);
  assert_memory_equal(unfused.idle, fused.idle, plan->n_devices * sizeof(pl_ticks));
}

static void fused_equals_unfused(void **state) {
  (void)state;
  uint64_t random = test_seed(2);
  test_plan *plan = malloc(sizeof *plan);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (uint32_t round = 0; round < 6000; round++) {
    plan_options options = {.fusable = true,
                            .joint = round % 7 != 0,
                            .on_compute = round % 3 == 0,
                            .overlap = round % 4 < 3,
                            .transfers = round % 5 != 0};
    plan_make(plan, &options, &random);
    check_fused(plan, &arena, round);
    pl_arena_reset(&arena);
  }
  pl_arena_release(&arena);
  free(plan);
}

/* ---- order of edges ---- */

static void edge_order_does_not_matter(void **state) {
  (void)state;
  uint64_t random = test_seed(3);
  test_plan *plan = malloc(sizeof *plan);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t task_of[PLAN_TASKS];
  for (uint32_t round = 0; round < 500; round++) {
    plan_options options = {
        .policy = round % 2 == 0 ? PL_STREAMS_IN_ORDER : PL_STREAMS_READY, .overlap = true, .transfers = true};
    plan_make(plan, &options, &random);
    pl_graph straight = build(plan, false, NULL, &arena, task_of);
    pl_graph shuffled = build(plan, false, &random, &arena, task_of);
    assert_int_equal(pl_graph_digest(&straight), pl_graph_digest(&shuffled));
    assert_int_equal(run_graph(&straight, false, &arena).digest, run_graph(&shuffled, false, &arena).digest);
    pl_arena_reset(&arena);
  }
  pl_arena_release(&arena);
  free(plan);
}

/* ---- a foreign loop ---- */

typedef struct test_loop {
  pl_ticks due[PLAN_TASKS];
  pl_network *network;
  uint32_t slot[PLAN_TASKS];
  bool touched;
} test_loop;

static void set_timer(void *data, uint32_t task, pl_ticks finish) {
  ((test_loop *)data)->due[task] = finish;
}

static void start_transfer(void *data, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes) {
  test_loop *loop = data;
  loop->slot[task] = loop->network->ops->start(loop->network, now, task, spec, size_bytes);
  loop->touched = true;
}

static void set_transfer_speed(void *data, pl_ticks now, uint32_t task, double speed) {
  test_loop *loop = data;
  loop->network->ops->set_speed(loop->network, now, loop->slot[task], speed);
  loop->touched = true;
}

/* Hands in completions in falling order of ids: the order inside a tick is the engine's business. */
static void drive(pl_engine *engine, test_loop *loop, uint32_t n_tasks) {
  pl_ticks network_next = PL_TICKS_NEVER;
  pl_engine_begin(engine);
  while (!pl_engine_is_done(engine)) {
    pl_ticks now;
    if (loop->touched) network_next = loop->network->ops->settle(loop->network, 0);
    loop->touched = false;
    now = network_next;
    for (uint32_t task = 0; task < n_tasks; task++)
      if (loop->due[task] < now) now = loop->due[task];
    assert_true(now < PL_TICKS_NEVER);
    for (uint32_t task = n_tasks; task-- > 0;)
      if (loop->due[task] == now) {
        loop->due[task] = PL_TICKS_NEVER;
        pl_engine_complete(engine, task, now);
      }
    if (network_next == now) {
      for (uint32_t task; (task = loop->network->ops->advance(loop->network, now)) != PL_NONE;)
        pl_engine_complete(engine, task, now);
      loop->touched = true;
    }
    pl_engine_flush(engine, now);
  }
}

static void foreign_loop_equals_native(void **state) {
  (void)state;
  uint64_t random = test_seed(4);
  test_plan *plan = malloc(sizeof *plan);
  test_loop *loop = malloc(sizeof *loop);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t task_of[PLAN_TASKS];
  const pl_engine_host host = {.timer = set_timer, .transfer = start_transfer, .transfer_speed = set_transfer_speed};
  for (uint32_t round = 0; round < 500; round++) {
    plan_options options = {.policy = round % 3 == 0 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER,
                            .fusable = round % 2 == 0,
                            .overlap = true,
                            .transfers = true};
    plan_make(plan, &options, &random);
    pl_graph graph = build(plan, options.policy == PL_STREAMS_IN_ORDER, NULL, &arena, task_of);
    pl_engine_result native = run_graph(&graph, true, &arena), foreign;
    for (uint32_t task = 0; task < PLAN_TASKS; task++)
      loop->due[task] = PL_TICKS_NEVER;
    loop->network = fixed_network_take(&graph.transfers, PLAN_TASKS, &arena);
    loop->touched = false;
    pl_error error = PL_ERROR_INIT;
    pl_engine *engine = pl_engine_take(&graph, &(pl_engine_options){.record_parts = true}, &host, loop, &arena);
    drive(engine, loop, graph.n_tasks);
    assert_int_equal(pl_engine_finish(engine, &foreign, &error), PL_OK);
    assert_int_equal(native.digest, foreign.digest);
    assert_int_equal(native.makespan, foreign.makespan);
    assert_int_equal(native.n_part_spans, foreign.n_part_spans);
    for (uint32_t at = 0; at < native.n_part_spans; at++)
      assert_int_equal(native.part_spans[at].finish, foreign.part_spans[at].finish);
    assert_memory_equal(native.spent, foreign.spent, plan->n_devices * PL_CATEGORY_COUNT * sizeof(pl_ticks));
    pl_arena_reset(&arena);
  }
  pl_arena_release(&arena);
  free(loop);
  free(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(engine_equals_naive_simulator),
      cmocka_unit_test(fused_equals_unfused),
      cmocka_unit_test(edge_order_does_not_matter),
      cmocka_unit_test(foreign_loop_equals_native),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
