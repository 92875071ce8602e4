/* HTAE's rules in closed form: rounds, sharing by round and link, what overlaps between the kinds, the overlap factor
 * on the whole of what starts under it, memory, and where the time went. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/engine/htae.h"
#include "tests/support/arena_fixture.h"

static pl_ticks ms(double time) {
  return pl_ticks_from_s(1e-3 * time);
}

/* One link of 1 GB/s that every transfer crosses. */
static const double capacity_Bps[] = {1e9};
static const uint8_t policy[] = {PL_LINK_SHARED};
static const pl_link_use use[] = {{.link = 0, .weight = 1}};
static const pl_transfer_spec spec[] = {
    {.n_uses = 1, .rate_cap_Bps = INFINITY, .share_weight = 1, .source = PL_NONE, .destination = PL_NONE}};
static const pl_transfer_table table = {.link_capacity_Bps = capacity_Bps,
                                        .link_policy = policy,
                                        .n_links = 1,
                                        .specs = spec,
                                        .n_specs = 1,
                                        .uses = use,
                                        .n_uses = 1};

static pl_graph_builder *begin(uint32_t n_devices) {
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_READY);
  for (uint32_t d = 0; d < n_devices; d++)
    pl_graph_builder_device(builder, &(pl_graph_device){.device = d,
                                                        .multiplicity = 1,
                                                        .overlap_compute = 0.5,
                                                        .overlap_communication = 0.25,
                                                        .resident_bytes = 100});
  pl_graph_builder_transfers(builder, &table);
  return builder;
}

static uint32_t work(pl_graph_builder *builder, uint32_t device, double time) {
  const pl_part part = {.ticks = ms(time), .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  return pl_graph_builder_work(builder, pl_graph_builder_segment(builder, &part, 1),
                               pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE),
                               pl_graph_builder_effect(builder, 10, 0), PL_NONE, -1);
}

/* Of `time` alone, between two devices. */
static uint32_t transfer(pl_graph_builder *builder, uint32_t first, pl_stream_kind kind, double time) {
  const uint32_t streams[] = {pl_graph_builder_stream(builder, first, kind),
                              pl_graph_builder_stream(builder, first + 1, kind)};
  pl_category category = kind == PL_STREAM_GRADIENT ? PL_CATEGORY_DATA : PL_CATEGORY_TENSOR;
  return pl_graph_builder_transfer(builder, 0, 1e6 * time, category, streams, 2, PL_NONE, -1);
}

static pl_engine_result run(pl_graph_builder *builder, bool sharing, bool overlap) {
  pl_graph graph;
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  const pl_htae_options options = {.sharing = sharing, .overlap = overlap};
  assert_int_equal(pl_htae_run(&graph, &options, &arena, &result, &error), PL_OK);
  for (uint32_t d = 0; d < graph.n_devices; d++) {
    pl_ticks sum = result.idle[d];
    for (int c = 0; c < PL_CATEGORY_COUNT; c++)
      sum += result.spent[(size_t)d * PL_CATEGORY_COUNT + (size_t)c];
    assert_true(sum == result.makespan);
  }
  return result;
}

static bool is_near(pl_ticks a, double time) {
  return llabs(a - ms(time)) <= 4;
}

static void groups_of_a_round_share_a_link(void **state) {
  (void)state;
  for (int sharing = 0; sharing < 2; sharing++) {
    pl_graph_builder *builder = begin(4);
    transfer(builder, 0, PL_STREAM_FEATURE, 3);
    transfer(builder, 2, PL_STREAM_FEATURE, 2);
    pl_engine_result result = run(builder, sharing, false);
    assert_true(is_near(result.finish[0], sharing ? 6 : 3));
    assert_true(is_near(result.finish[1], sharing ? 4 : 2));
    assert_true(is_near(result.spent[PL_CATEGORY_TENSOR], sharing ? 6 : 3));
  }
}

/* Messages that are on no stream, as programs have them, take their time and share by round like others. */
static void messages_without_streams_are_communication(void **state) {
  (void)state;
  for (int sharing = 0; sharing < 2; sharing++) {
    pl_graph_builder *builder = begin(2);
    uint32_t before = work(builder, 0, 1), message[2];
    for (int i = 0; i < 2; i++) {
      message[i] = pl_graph_builder_transfer(builder, 0, 1e6 * 3, PL_CATEGORY_PIPELINE, NULL, 0, PL_NONE, -1);
      pl_graph_builder_edge(builder, before, message[i]);
    }
    uint32_t behind = work(builder, 1, 2);
    pl_graph_builder_edge(builder, message[0], behind);
    pl_engine_result result = run(builder, sharing, false);
    assert_true(is_near(result.finish[message[0]], sharing ? 7 : 4));
    assert_true(is_near(result.makespan, sharing ? 9 : 6));
  }
}

/* The second starts a round later, while the first is under way: neither knows of the other. */
static void groups_of_different_rounds_do_not(void **state) {
  (void)state;
  pl_graph_builder *builder = begin(4);
  transfer(builder, 0, PL_STREAM_FEATURE, 3);
  uint32_t first = work(builder, 2, 1), second = work(builder, 2, 1);
  uint32_t late = transfer(builder, 2, PL_STREAM_FEATURE, 3);
  pl_graph_builder_edge(builder, first, second);
  pl_graph_builder_edge(builder, second, late);
  pl_engine_result result = run(builder, true, true);
  assert_true(is_near(result.finish[late], 2 + 3));
}

/* A gradient transfer from 1 to 5 ms; a feature one of 3 ms that starts at 2 is beside it for 3. */
static void kinds_share_as_long_as_they_overlap(void **state) {
  (void)state;
  pl_graph_builder *builder = begin(4);
  uint32_t one = work(builder, 0, 1), gradient = transfer(builder, 0, PL_STREAM_GRADIENT, 4);
  uint32_t two = work(builder, 2, 2), feature = transfer(builder, 2, PL_STREAM_FEATURE, 3);
  pl_graph_builder_edge(builder, one, gradient);
  pl_graph_builder_edge(builder, two, feature);
  pl_engine_result result = run(builder, true, false);
  pl_ticks end_of_first =
      result.finish[gradient] < result.finish[feature] ? result.finish[gradient] : result.finish[feature];
  assert_true(end_of_first > ms(4));
  assert_true(is_near(result.makespan, 2 + 3 + 3) || is_near(result.makespan, 1 + 4 + 3));
}

/* What starts while a gradient is reduced takes half as long again, all of it, though the reduction ends soon. */
static void overlap_factor_acts_on_the_whole(void **state) {
  (void)state;
  for (int overlap = 0; overlap < 2; overlap++) {
    pl_graph_builder *builder = begin(2);
    uint32_t first = work(builder, 0, 2), gradient = transfer(builder, 0, PL_STREAM_GRADIENT, 1),
             second = work(builder, 0, 8);
    pl_graph_builder_edge(builder, first, gradient);
    pl_graph_builder_edge(builder, first, second);
    pl_engine_result result = run(builder, true, overlap);
    assert_true(is_near(result.finish[gradient], 3));
    assert_true(is_near(result.finish[second], overlap ? 2 + 12 : 2 + 8));
    assert_int_equal(result.peak_bytes[0], 110);
    assert_int_equal(result.peak_bytes[1], 100);
    assert_true(is_near(result.idle[0], 0));
    assert_true(is_near(result.spent[PL_CATEGORY_COUNT + PL_CATEGORY_DATA], 1));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(groups_of_a_round_share_a_link, set_up, tear_down),
      cmocka_unit_test_setup_teardown(messages_without_streams_are_communication, set_up, tear_down),
      cmocka_unit_test_setup_teardown(groups_of_different_rounds_do_not, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kinds_share_as_long_as_they_overlap, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlap_factor_acts_on_the_whole, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
