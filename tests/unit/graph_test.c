/* The graph builder: rows, merged duplicates, stream order, interned names, cycles by name, and every bad index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/graph/graph.h"
#include "tests/support/arena_fixture.h"

static pl_graph_builder *make_builder(pl_stream_policy policy, uint32_t n_devices) {
  pl_graph_builder *builder = pl_graph_builder_take(&arena, policy);
  for (uint32_t device = 0; device < n_devices; device++)
    pl_graph_builder_device(builder, &(pl_graph_device){.device = device, .multiplicity = 1});
  return builder;
}

static uint32_t add_work(pl_graph_builder *builder, uint32_t device, const char *name) {
  pl_part part = {.ticks = 10, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  return pl_graph_builder_work(builder, pl_graph_builder_segment(builder, &part, 1),
                               pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE), PL_NONE,
                               name == NULL ? PL_NONE : pl_graph_builder_name(builder, name), 3);
}

static pl_graph freeze(pl_graph_builder *builder) {
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_graph_builder_freeze(builder, &graph, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  assert_true(pl_graph_is_valid(&graph));
  return graph;
}

static void expect_failure(pl_graph_builder *builder, const char *message) {
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_BAD_INPUT);
  if (strstr(error.message, message) == NULL) fail_msg("'%s' is not in '%s'", message, error.message);
}

static void empty_graph_is_valid(void **state) {
  (void)state;
  pl_graph graph = freeze(make_builder(PL_STREAMS_IN_ORDER, 0));
  assert_int_equal(graph.n_tasks, 0);
  assert_int_equal(graph.n_edges, 0);
}

static void streams_become_edges_and_duplicates_merge(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 2);
  uint32_t a = add_work(builder, 0, "a"), b = add_work(builder, 0, "b"), c = add_work(builder, 1, "c");
  pl_graph_builder_edge(builder, a, c);
  pl_graph_builder_edge(builder, a, b); /* also the order of the stream */
  pl_graph_builder_edge(builder, a, c);
  pl_graph graph = freeze(builder);
  assert_int_equal(graph.n_edges, 2);
  assert_int_equal(graph.tasks[a].n_successors, 2);
  assert_int_equal(graph.successors[graph.tasks[a].first_successor], b);
  assert_int_equal(graph.successors[graph.tasks[a].first_successor + 1], c);
  assert_int_equal(graph.n_predecessors[b], 1);
  assert_int_equal(graph.n_predecessors[c], 1);
}

static void ready_streams_have_no_edges(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_READY, 1);
  add_work(builder, 0, NULL);
  add_work(builder, 0, NULL);
  assert_int_equal(freeze(builder).n_edges, 0);
}

static void long_rows_are_sorted(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_READY, 1);
  enum { COUNT = 300 };
  for (uint32_t task = 0; task <= COUNT; task++)
    add_work(builder, 0, NULL);
  for (uint32_t task = COUNT; task > 0; task--) {
    pl_graph_builder_edge(builder, 0, task);
    pl_graph_builder_edge(builder, 0, 1 + task / 2);
  }
  pl_graph graph = freeze(builder);
  assert_int_equal(graph.n_edges, COUNT);
  for (uint32_t at = 0; at < COUNT; at++)
    assert_int_equal(graph.successors[at], at + 1);
}

static void streams_and_names_are_interned(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 2);
  uint32_t stream = pl_graph_builder_stream(builder, 1, PL_STREAM_FEATURE);
  assert_int_equal(pl_graph_builder_stream(builder, 1, PL_STREAM_FEATURE), stream);
  assert_int_not_equal(pl_graph_builder_stream(builder, 0, PL_STREAM_FEATURE), stream);
  char name[32];
  for (int round = 0; round < 2; round++)
    for (uint32_t at = 0; at < 500; at++) {
      snprintf(name, sizeof name, "name %u", at);
      assert_int_equal(pl_graph_builder_name(builder, name), at);
    }
  pl_graph graph = freeze(builder);
  assert_int_equal(graph.n_names, 500);
  assert_string_equal(graph.names[321], "name 321");
}

static void segments_keep_parts_and_totals(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_part parts[] = {{.ticks = 5, .category = PL_CATEGORY_RECOMPUTE, .computes = true, .name = PL_NONE},
                     {.ticks = 7, .category = PL_CATEGORY_TENSOR, .name = PL_NONE}};
  uint32_t segment = pl_graph_builder_segment(builder, parts, 2);
  parts[0].ticks = 1000; /* copied */
  uint32_t task = pl_graph_builder_work(builder, segment, pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE),
                                        pl_graph_builder_effect(builder, 9, -4), PL_NONE, -1);
  pl_graph graph = freeze(builder);
  assert_int_equal(graph.tasks[task].ticks, 12);
  assert_int_equal(graph.tasks[task].category, PL_CATEGORY_RECOMPUTE);
  assert_int_equal(graph.effects[graph.tasks[task].memory].net_bytes, -4);
}

static void cycle_is_named(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_READY, 1);
  uint32_t a = add_work(builder, 0, "alpha"), b = add_work(builder, 0, "beta"), c = add_work(builder, 0, "gamma");
  uint32_t tail = add_work(builder, 0, "tail");
  pl_graph_builder_edge(builder, a, b);
  pl_graph_builder_edge(builder, b, c);
  pl_graph_builder_edge(builder, c, b);
  pl_graph_builder_edge(builder, c, tail);
  expect_failure(builder, "2 tasks wait for each other in a circle");
  builder = make_builder(PL_STREAMS_READY, 1);
  a = add_work(builder, 0, "alpha");
  b = add_work(builder, 0, "beta");
  pl_graph_builder_edge(builder, a, b);
  pl_graph_builder_edge(builder, b, a);
  expect_failure(builder, "(alpha)");
}

static void backward_edge_without_cycle_is_fine(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_READY, 1);
  uint32_t a = add_work(builder, 0, NULL), b = add_work(builder, 0, NULL);
  pl_graph_builder_edge(builder, b, a);
  assert_int_equal(freeze(builder).n_predecessors[a], 1);
}

static void stream_order_against_an_edge_is_a_cycle(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  uint32_t a = add_work(builder, 0, "first"), b = add_work(builder, 0, "second");
  pl_graph_builder_edge(builder, b, a);
  expect_failure(builder, "wait for each other");
}

static void bad_input_is_reported_once_at_freeze(void **state) {
  (void)state;
  pl_part part = {.ticks = 1, .category = PL_CATEGORY_OTHER, .name = PL_NONE};
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  assert_int_equal(pl_graph_builder_stream(builder, 5, PL_STREAM_COMPUTE), PL_NONE);
  assert_int_equal(add_work(builder, 0, NULL), PL_NONE); /* sticky */
  expect_failure(builder, "device 5, but there are 1");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_work(builder, 9, 0, PL_NONE, PL_NONE, 0);
  expect_failure(builder, "segment 9, but there are 0");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_work(builder, pl_graph_builder_segment(builder, &part, 1), 4, PL_NONE, PL_NONE, 0);
  expect_failure(builder, "stream 4, but there are 0");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  uint32_t stream = pl_graph_builder_stream(builder, 0, PL_STREAM_FEATURE), twice[] = {stream, stream};
  pl_graph_builder_delay(builder, 5, PL_CATEGORY_TENSOR, twice, 2, PL_NONE, 0);
  expect_failure(builder, "task 0 names the same stream twice");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_delay(builder, -1, PL_CATEGORY_TENSOR, NULL, 0, PL_NONE, 0);
  expect_failure(builder, "delay below zero");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_segment(builder, &part, 0);
  expect_failure(builder, "without parts");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  part.ticks = -3;
  pl_graph_builder_segment(builder, &part, 1);
  expect_failure(builder, "duration below zero");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_effect(builder, 3, 4);
  expect_failure(builder, "peak is below zero or below its net");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_transfer(builder, 2, 10, PL_CATEGORY_DATA, NULL, 0, PL_NONE, 0);
  expect_failure(builder, "spec 2, but there are 0");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_transfer(builder, 0, -1, PL_CATEGORY_DATA, NULL, 0, PL_NONE, 0);
  expect_failure(builder, "size below zero");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  pl_graph_builder_edge(builder, add_work(builder, 0, NULL), 12);
  expect_failure(builder, "from task 0 to task 12");

  builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  uint32_t barrier = pl_graph_builder_delay(builder, 0, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  pl_graph_builder_set_effect(builder, barrier, pl_graph_builder_effect(builder, 1, 1));
  expect_failure(builder, "no stream, hence no device");

  builder = make_builder(PL_STREAMS_IN_ORDER, 0);
  pl_graph_builder_device(builder, &(pl_graph_device){.overlap_compute = -0.5});
  expect_failure(builder, "overlap factor below zero");
}

static void validity_sees_damage(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 1);
  for (uint32_t task = 0; task < 4; task++)
    add_work(builder, 0, NULL);
  pl_graph graph = freeze(builder);
  ((uint32_t *)(uintptr_t)graph.successors)[0] = 3;
  assert_false(pl_graph_is_valid(&graph));
  ((uint32_t *)(uintptr_t)graph.successors)[0] = 1;
  assert_true(pl_graph_is_valid(&graph));
  ((pl_task *)(uintptr_t)graph.tasks)[2].ticks = 11;
  assert_false(pl_graph_is_valid(&graph));
}

static void digest_sees_content(void **state) {
  (void)state;
  uint64_t digest[3];
  for (uint32_t variant = 0; variant < 3; variant++) {
    pl_graph_builder *builder = make_builder(PL_STREAMS_IN_ORDER, 2);
    uint32_t a = add_work(builder, 0, "a"), b = add_work(builder, 1, "b");
    if (variant != 1) pl_graph_builder_edge(builder, a, b);
    if (variant == 2) add_work(builder, 1, "c");
    pl_graph graph = freeze(builder);
    digest[variant] = pl_graph_digest(&graph);
  }
  assert_true(digest[0] != digest[1] && digest[0] != digest[2]);
}

static void names_are_known(void **state) {
  (void)state;
  assert_string_equal(pl_category_name(PL_CATEGORY_DATA), "data");
  assert_string_equal(pl_stream_kind_name(PL_STREAM_RECEIVE_UP), "receive_up");
  assert_string_equal(pl_category_name(PL_CATEGORY_COUNT), "unknown");
  for (int kind = 0; kind < PL_STREAM_KIND_COUNT; kind++)
    assert_non_null(pl_stream_kind_name((pl_stream_kind)kind));
}

#define GRAPH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      GRAPH_TEST(empty_graph_is_valid),
      GRAPH_TEST(streams_become_edges_and_duplicates_merge),
      GRAPH_TEST(ready_streams_have_no_edges),
      GRAPH_TEST(long_rows_are_sorted),
      GRAPH_TEST(streams_and_names_are_interned),
      GRAPH_TEST(segments_keep_parts_and_totals),
      GRAPH_TEST(cycle_is_named),
      GRAPH_TEST(backward_edge_without_cycle_is_fine),
      GRAPH_TEST(stream_order_against_an_edge_is_a_cycle),
      GRAPH_TEST(bad_input_is_reported_once_at_freeze),
      GRAPH_TEST(validity_sees_damage),
      GRAPH_TEST(digest_sees_content),
      GRAPH_TEST(names_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
