/* The k-th request to the arena fails, for every k: builder, freeze and engine say so, and nothing else happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/fixed_network.h"
#include "tests/support/plan.h"
#include "tests/support/random.h"

/* Many small arrays in play: names, backward edges, parts. */
static pl_code build_rich(pl_arena *arena, pl_error *error) {
  pl_graph_builder *builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  if (builder == NULL) return pl_fail_memory(error, "a builder");
  uint32_t device = pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  pl_part part = {.ticks = 1, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  uint32_t first = PL_NONE;
  for (uint32_t at = 0; at < 500; at++) {
    char name[16];
    snprintf(name, sizeof name, "%u", at);
    part.name = pl_graph_builder_name(builder, name);
    uint32_t segment = pl_graph_builder_segment(builder, &part, 1);
    uint32_t stream = pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE);
    uint32_t task =
        pl_graph_builder_work(builder, segment, stream, pl_graph_builder_effect(builder, 1, 1), part.name, 0);
    uint32_t alone = pl_graph_builder_delay(builder, 1, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
    pl_graph_builder_edge(builder, alone, task); /* backward: the search for cycles runs */
    pl_graph_builder_set_effect(builder, task, PL_NONE);
    if (at == 0) first = task;
    pl_graph_builder_edge(builder, first, alone + 1);
  }
  pl_graph_builder_delay(builder, 1, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  pl_graph graph;
  return pl_graph_builder_freeze(builder, &graph, error);
}

static void builder_survives(void **state) {
  (void)state;
  pl_code code = PL_NO_MEMORY;
  int64_t k = 0;
  for (; code != PL_OK && k < 1000; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_error error = PL_ERROR_INIT;
    code = build_rich(&arena, &error);
    assert_true((code != PL_OK) == arena.failed);
    if (code != PL_OK) assert_int_equal(code, PL_NO_MEMORY);
    pl_arena_release(&arena);
  }
  assert_true(k > 20 && k < 1000);
}

static void engine_survives(void **state) {
  (void)state;
  uint64_t random = test_seed(5);
  test_plan *plan = malloc(sizeof *plan);
  pl_arena graph_arena;
  pl_arena_init(&graph_arena, 0);
  uint32_t task_of[PLAN_TASKS];
  for (uint32_t round = 0; round < 20; round++) {
    plan_options options = {
        .policy = round % 2 == 0 ? PL_STREAMS_IN_ORDER : PL_STREAMS_READY, .overlap = true, .transfers = true};
    pl_graph graph;
    pl_error error = PL_ERROR_INIT;
    pl_arena_reset(&graph_arena);
    plan_make(plan, &options, &random);
    assert_int_equal(plan_build(plan, false, NULL, &graph_arena, &graph, task_of, &error), PL_OK);
    pl_code code = PL_NO_MEMORY;
    int64_t k = 0;
    for (; code != PL_OK && k < 200; k++) {
      pl_arena arena;
      pl_arena_init(&arena, 0);
      pl_network *network = fixed_network_take(&graph.transfers, PLAN_TASKS, &arena);
      arena.fail_after = k;
      pl_engine_result result;
      pl_error failure = PL_ERROR_INIT;
      code = pl_engine_run(&graph, network, &(pl_engine_options){.record_parts = true}, &arena, &result, &failure);
      assert_true((code != PL_OK) == arena.failed); /* no failure is passed over */
      if (code != PL_OK) assert_int_equal(code, PL_NO_MEMORY);
      if (code != PL_OK) assert_string_not_equal(failure.message, "");
      pl_arena_release(&arena);
    }
    assert_true(k > 20 && k < 200);
  }
  pl_arena_release(&graph_arena);
  free(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(builder_survives),
      cmocka_unit_test(engine_survives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
