/* Heads of graphs: alike whatever their tails are, and unlike as soon as one thing of a head differs. Two devices, each
 * with a list of three steps, of which the last is the tail; a transfer leads from the first device to the second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/graph/graph_heads.h"
#include "tests/support/arena_fixture.h"

enum { N_STEPS = 3, TAIL = 2, N_LANES = 2, N_SPECS = 2 };

/* What a graph has otherwise than the first. */
typedef enum change {
  CHANGE_NOTHING = 0,
  CHANGE_TAIL,    /* its ticks */
  CHANGE_LONGER,  /* a task more in a tail, so that ids of the second lane differ */
  CHANGE_SEGMENT, /* one more that no head has, so that indices differ */
  CHANGE_RESIDENT,
  LAST_ALIKE = CHANGE_RESIDENT,
  CHANGE_TICKS,
  CHANGE_CATEGORY,
  CHANGE_COMPUTES,
  CHANGE_PARTS,
  CHANGE_PART_SPEC,
  CHANGE_EFFECT,
  CHANGE_BYTES,
  CHANGE_LATENCY,
  CHANGE_CAP,
  CHANGE_SHARE,
  CHANGE_LINK,
  CHANGE_WEIGHT,
  CHANGE_CAPACITY,
  CHANGE_POLICY,
  CHANGE_RIVALS,
  CHANGE_STREAM,
  CHANGE_EDGE,
  CHANGE_WAITS_FOR_TAIL,
  CHANGE_STEP,
  CHANGE_GAMMA,
  N_CHANGES
} change;

typedef struct headed {
  pl_graph graph;
  pl_graph_heads heads;
  pl_headed_graph of;
  pl_lane lanes[N_LANES];
  uint32_t first_task[N_LANES * (N_STEPS + 1) + 1];
  double capacity_Bps[2];
  uint8_t policy[2];
  pl_transfer_spec specs[N_SPECS];
  pl_link_use uses[N_SPECS];
  uint32_t rival_offset[N_SPECS + 1], rivals[1];
} headed;

static void make_table(headed *own, change changed, pl_transfer_table *table) {
  for (int link = 0; link < 2; link++)
    own->capacity_Bps[link] = changed == CHANGE_CAPACITY && link == 0 ? 2e9 : 1e9;
  own->policy[0] = changed == CHANGE_POLICY ? 1 : 0;
  for (uint32_t spec = 0; spec < N_SPECS; spec++) {
    own->uses[spec] = (pl_link_use){.link = changed == CHANGE_LINK ? 1 : 0, .weight = changed == CHANGE_WEIGHT ? 2 : 1};
    own->specs[spec] = (pl_transfer_spec){.first_use = spec,
                                          .n_uses = 1,
                                          .rate_cap_Bps = changed == CHANGE_CAP ? 5e8 : 1e9,
                                          .share_weight = changed == CHANGE_SHARE ? 2 : 1,
                                          .latency = changed == CHANGE_LATENCY ? 6 : 5,
                                          .source = PL_NONE,
                                          .destination = PL_NONE};
  }
  *table = (pl_transfer_table){.link_capacity_Bps = own->capacity_Bps,
                               .link_policy = own->policy,
                               .n_links = 2,
                               .specs = own->specs,
                               .n_specs = N_SPECS,
                               .uses = own->uses,
                               .n_uses = N_SPECS};
  own->rival_offset[1] = own->rival_offset[2] = changed == CHANGE_RIVALS ? 1 : 0;
}

static uint32_t add_segment(pl_graph_builder *builder, change changed) {
  const pl_part parts[2] = {{.ticks = 10,
                             .category = changed == CHANGE_CATEGORY ? PL_CATEGORY_BACKWARD : PL_CATEGORY_FORWARD,
                             .computes = changed != CHANGE_COMPUTES,
                             .name = PL_NONE},
                            {.ticks = changed == CHANGE_TICKS ? 21 : 20,
                             .category = PL_CATEGORY_TENSOR,
                             .name = PL_NONE,
                             .transfers = true,
                             .spec = 1,
                             .size_bytes = changed == CHANGE_PART_SPEC ? 7 : 8}};
  return pl_graph_builder_segment(builder, parts, changed == CHANGE_PARTS ? 1 : 2);
}

static void make(change changed, headed *own) {
  pl_transfer_table table;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  uint32_t streams[N_LANES], first[N_LANES] = {0}, last[N_LANES] = {0}, n_entries = 0;
  *own = (headed){.lanes = {{.first = 0, .n_steps = N_STEPS}, {.first = N_STEPS, .n_steps = N_STEPS}}};
  make_table(own, changed, &table);
  for (uint32_t device = 0; device < N_LANES; device++)
    pl_graph_builder_device(builder, &(pl_graph_device){.device = device,
                                                        .multiplicity = 1,
                                                        .overlap_compute = changed == CHANGE_GAMMA ? 0.1 : 0,
                                                        .resident_bytes = changed == CHANGE_RESIDENT ? 9 : 0});
  if (changed == CHANGE_SEGMENT) add_segment(builder, CHANGE_PARTS);
  uint32_t segment = add_segment(builder, changed), other = add_segment(builder, CHANGE_TICKS);
  uint32_t effect = pl_graph_builder_effect(builder, changed == CHANGE_EFFECT ? 5 : 4, 3);
  uint32_t sent = PL_NONE;
  for (uint32_t lane = 0; lane < N_LANES; lane++) {
    streams[lane] = pl_graph_builder_stream(builder, lane, PL_STREAM_COMPUTE);
    for (uint32_t step = 0; step < N_STEPS; step++) {
      own->first_task[n_entries++] = pl_graph_builder_n_tasks(builder);
      bool differs = step == TAIL && changed == CHANGE_TAIL;
      last[lane] = pl_graph_builder_work(builder, differs ? other : segment, streams[lane], effect, PL_NONE, 0);
      if (step == 0) first[lane] = last[lane];
      if (step == TAIL && changed == CHANGE_LONGER)
        pl_graph_builder_work(builder, segment, streams[lane], effect, PL_NONE, 0);
      if (step == 0 && changed == CHANGE_STEP)
        pl_graph_builder_work(builder, segment, streams[lane], effect, PL_NONE, 0);
      if (step != 0 || lane != 0) continue;
      uint32_t stream =
          pl_graph_builder_stream(builder, lane, changed == CHANGE_STREAM ? PL_STREAM_SEND_UP : PL_STREAM_SEND_DOWN);
      sent = pl_graph_builder_transfer(builder, 0, changed == CHANGE_BYTES ? 101 : 100, PL_CATEGORY_PIPELINE, &stream,
                                       1, PL_NONE, 0);
      pl_graph_builder_edge(builder, last[lane], sent);
    }
  }
  own->first_task[n_entries] = pl_graph_builder_n_tasks(builder);
  pl_graph_builder_edge(builder, sent, changed == CHANGE_EDGE ? first[1] + 1 : first[1]);
  if (changed == CHANGE_WAITS_FOR_TAIL) pl_graph_builder_edge(builder, last[0], first[1] + 1);
  pl_graph_builder_transfers(builder, &table);
  pl_graph_builder_rivals(builder, own->rival_offset, own->rivals);
  pl_error error = PL_ERROR_INIT;
  if (pl_graph_builder_freeze(builder, &own->graph, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_lanes lanes = {.lanes = own->lanes, .n_lanes = N_LANES, .first_task = own->first_task};
  const uint32_t tails[N_LANES] = {TAIL, TAIL};
  assert_true(pl_graph_heads_take(&own->graph, &lanes, tails, &arena, &own->heads));
  own->of = (pl_headed_graph){&own->graph, &own->heads, own->capacity_Bps, own->policy};
}

static void test_heads_are_compared(void **state) {
  (void)state;
  static headed first, other;
  make(CHANGE_NOTHING, &first);
  for (int changed = 0; changed < N_CHANGES; changed++) {
    make((change)changed, &other);
    bool alike = pl_graph_heads_alike(&first.of, &other.of, &arena);
    if (alike != (changed <= LAST_ALIKE)) fail_msg("change %d: %s", changed, alike ? "not seen" : "seen");
    assert_int_equal(pl_graph_heads_alike(&other.of, &first.of, &arena), alike);
  }
}

static void test_tasks_move_with_their_lanes(void **state) {
  (void)state;
  static headed first, longer;
  make(CHANGE_NOTHING, &first);
  make(CHANGE_LONGER, &longer);
  for (uint32_t lane = 0; lane < N_LANES; lane++) {
    const pl_lane_head *from = &first.heads.lanes[lane], *to = &longer.heads.lanes[lane];
    assert_int_equal(from->end - from->first, to->end - to->first);
    assert_int_equal(to->behind - to->end, 2);
    assert_int_equal(pl_graph_heads_moved(&first.graph, &first.heads, &longer.heads, from->end - 1), to->end - 1);
  }
  assert_int_equal(longer.heads.lanes[1].first, first.heads.lanes[1].first + 1);
  assert_int_equal(pl_graph_heads_moved(&first.graph, &first.heads, &longer.heads, PL_NONE), PL_NONE);
}

/* The last task of a head, and none before it. */
static void test_edges_are_what_leads_to_tails(void **state) {
  (void)state;
  static headed own;
  make(CHANGE_NOTHING, &own);
  for (uint32_t lane = 0; lane < N_LANES; lane++)
    for (uint32_t row = own.heads.lanes[lane].first_row; row < own.heads.lanes[lane].behind_row; row++)
      assert_int_equal(own.heads.is_edge[row], row + 1 == own.heads.lanes[lane].end_row);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_heads_are_compared, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_tasks_move_with_their_lanes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_edges_are_what_leads_to_tails, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
