/* Joined graphs: valid, each job's iterations one after another from its offset on, nothing shared but the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine/engine.h"
#include "core/graph/graph_join.h"
#include "tests/support/arena_fixture.h"

/* A chain of two tasks on one device and one on another that nothing waits for: 2 `ticks` long. */
static pl_graph make(pl_ticks ticks) {
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  const pl_part part = {.ticks = ticks, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  for (uint32_t device = 0; device < 2; device++)
    pl_graph_builder_device(builder, &(pl_graph_device){.device = device, .multiplicity = 1, .resident_bytes = 5});
  uint32_t segment = pl_graph_builder_segment(builder, &part, 1), name = pl_graph_builder_name(builder, "op");
  uint32_t effect = pl_graph_builder_effect(builder, 7, 0);
  uint32_t stream = pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE);
  uint32_t other = pl_graph_builder_stream(builder, 1, PL_STREAM_COMPUTE);
  pl_graph_builder_work(builder, segment, stream, effect, name, 0);
  pl_graph_builder_work(builder, segment, stream, effect, name, 1);
  pl_graph_builder_work(builder, segment, other, PL_NONE, PL_NONE, -1);
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  return graph;
}

static void iterations_follow_each_other(void **state) {
  (void)state;
  const pl_graph first = make(10), second = make(3);
  pl_joined_job jobs[] = {{.graph = &first, .devices = (const uint32_t[]){4, 5}, .n_iterations = 1},
                          {.graph = &second, .devices = (const uint32_t[]){0, 9}, .offset = 100, .n_iterations = 3}};
  pl_graph joined;
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_join(jobs, 2, &arena, &joined, &error), PL_OK);
  assert_true(pl_graph_is_valid(&joined));
  assert_int_equal(joined.n_tasks, 4 + 3 * 4);
  assert_int_equal(joined.n_devices, 4);
  assert_int_equal(joined.devices[3].device, 9);
  const pl_engine_options options = {.record_parts = false};
  assert_int_equal(pl_engine_run(&joined, NULL, &options, &arena, &result, &error), PL_OK);
  assert_int_equal(result.makespan, 100 + 3 * 6);
  pl_ticks begin, end;
  pl_joined_span(&jobs[0], 0, result.finish, &begin, &end);
  assert_true(begin == 0 && end == 20);
  for (uint32_t i = 0; i < 3; i++) {
    pl_joined_span(&jobs[1], i, result.finish, &begin, &end);
    assert_true(begin == 100 + 6 * i && end == begin + 6);
  }
  assert_true(result.peak_bytes[0] == 12 && result.peak_bytes[2] == 12 && result.peak_bytes[3] == 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(iterations_follow_each_other, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
