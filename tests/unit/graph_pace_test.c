/* Paces: computing parts take their ticks times the factor of who runs them, rounded; communication and the host's
 * parts do not; what several kinds of devices run is copied; a set starts from factor 1, not from the last set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/graph/graph_pace.h"
#include "tests/support/arena_fixture.h"

/* Two devices run one segment: 10 ticks of computing, 7 of communication, 5 of the host. */
static pl_graph make(pl_graph_builder *builder) {
  const pl_part parts[] = {
      {.ticks = 10, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
      {.ticks = 7, .category = PL_CATEGORY_TENSOR, .name = PL_NONE},
      {.ticks = 5, .category = PL_CATEGORY_HOST, .computes = true, .name = PL_NONE},
  };
  uint32_t segment = pl_graph_builder_segment(builder, parts, 3);
  for (uint32_t device = 0; device < 2; device++) {
    pl_graph_builder_device(builder, &(pl_graph_device){.device = device, .multiplicity = 1});
    uint32_t stream = pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE);
    pl_graph_builder_work(builder, segment, stream, PL_NONE, PL_NONE, -1);
  }
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  return graph;
}

static void each_device_has_its_factor(void **state) {
  (void)state;
  pl_graph base = make(pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER));
  pl_graph_pace pace;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_pace_take(&base, NULL, &arena, &pace, &error), PL_OK);
  assert_int_equal(pace.graph.n_segments, 2);
  assert_int_equal(pace.graph.n_parts, 6);
  for (uint32_t p = 0; p < 6; p++)
    assert_int_equal(pace.part_of[p], p % 3);
  for (int again = 0; again < 2; again++) {
    pl_graph_pace_set(&pace, (const double[]){1.26, 0.5});
    assert_int_equal(pace.graph.tasks[0].ticks, 13 + 7 + 5);
    assert_int_equal(pace.graph.tasks[1].ticks, 5 + 7 + 5);
  }
  assert_true(pl_graph_is_valid(&pace.graph));
  assert_int_equal(base.tasks[0].ticks, 22);
  pl_graph_pace_set(&pace, (const double[]){1, 1});
  assert_true(pace.graph.tasks[0].ticks == 22 && pace.graph.tasks[1].ticks == 22);
}

static void devices_of_one_kind_share(void **state) {
  (void)state;
  pl_graph base = make(pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER));
  pl_graph_pace pace;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_pace_take(&base, (const uint32_t[]){4, 4}, &arena, &pace, &error), PL_OK);
  assert_int_equal(pace.graph.n_segments, 1);
  assert_int_equal(pace.graph.n_parts, 3);
  pl_graph_pace_set(&pace, (const double[]){2, 2});
  assert_int_equal(pace.graph.tasks[1].ticks, 20 + 7 + 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(each_device_has_its_factor, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(devices_of_one_kind_share, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
