/* Lists that do not recur as they say they do are not rolled (core/graph/graph_roll.h). Two lanes of seven steps with a
 * task each, of which five recur. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/graph/graph_roll.h"
#include "tests/support/arena_fixture.h"

enum { STEPS = 7, LANES = 2, FROM = 1, TO = 6, REPEATED = 3, N_MORE = 4 };

/* What is not as it should be. */
typedef struct fault {
  uint32_t longer;        /* this task takes longer; PL_NONE: none */
  uint32_t before, after; /* one edge more; PL_NONE: none */
  uint32_t to;            /* where the phases end */
} fault;

static const fault no_fault = {PL_NONE, PL_NONE, PL_NONE, TO};

static bool roll(fault wrong, pl_graph *rolled) {
  static const uint32_t first_task[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const pl_lane lane[LANES] = {{.first = 0, .n_steps = STEPS, .phases = {{FROM, wrong.to}}},
                               {.first = STEPS, .n_steps = STEPS, .phases = {{FROM, wrong.to}}}};
  const pl_lanes lanes = {.lanes = lane, .n_lanes = LANES, .first_task = first_task, .n_phases = 1, .period = {1}};
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  const pl_graph_device device = {.multiplicity = 1};
  for (uint32_t at = 0; at < LANES; at++) {
    uint32_t stream = pl_graph_builder_stream(builder, pl_graph_builder_device(builder, &device), PL_STREAM_COMPUTE);
    for (uint32_t step = 0; step < STEPS; step++) {
      uint32_t task = pl_graph_builder_n_tasks(builder);
      pl_graph_builder_delay(builder, task == wrong.longer ? 20 : 10, PL_CATEGORY_FORWARD, &stream, 1, PL_NONE, -1);
      if (at > 0) pl_graph_builder_edge(builder, step, task);
    }
  }
  if (wrong.before != PL_NONE) pl_graph_builder_edge(builder, wrong.before, wrong.after);
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  return pl_graph_roll(&graph, &lanes, N_MORE, &arena, rolled);
}

static void test_recurring_lists_are_rolled(void **state) {
  (void)state;
  pl_graph rolled;
  assert_true(roll(no_fault, &rolled));
  assert_int_equal(rolled.n_tasks, LANES * (STEPS + N_MORE));
  assert_int_equal(pl_graph_n_rows(&rolled), LANES * STEPS);
  assert_int_equal(pl_graph_row_count(&rolled, REPEATED), 1 + N_MORE);
  for (uint32_t task = 0; task < STEPS + N_MORE; task++) { /* the next of the lane, and that of the other lane */
    uint32_t last = task == STEPS + N_MORE - 1;
    assert_int_equal(pl_graph_task(&rolled, task)->n_successors, 2 - last);
    if (!last) assert_int_equal(pl_graph_successor(&rolled, task, 0), task + 1);
    assert_int_equal(pl_graph_successor(&rolled, task, 1 - last), STEPS + N_MORE + task);
  }
}

static void test_others_are_not(void **state) {
  (void)state;
  pl_graph rolled;
  fault wrong = no_fault;
  wrong.longer = REPEATED + 1;
  assert_false(roll(wrong, &rolled)); /* periods unlike */
  wrong = no_fault;
  wrong.longer = FROM;
  assert_true(roll(wrong, &rolled)); /* far from what is repeated; the graph is that of the lists as they are */
  wrong = no_fault;
  wrong.to = FROM + 2;
  assert_false(roll(wrong, &rolled));                            /* too few */
  const uint32_t edges[][2] = {{0, 2 * STEPS - 1},               /* from before to behind */
                               {FROM, 2 * STEPS - 1},            /* from the phase to behind it */
                               {REPEATED, STEPS + REPEATED + 1}, /* in one period only */
                               {0, STEPS + TO - 1}};             /* to the end of the phase */
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    wrong = no_fault;
    wrong.before = edges[i][0];
    wrong.after = edges[i][1];
    assert_false(roll(wrong, &rolled));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_recurring_lists_are_rolled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_others_are_not, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
