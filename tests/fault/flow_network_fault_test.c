/* Every k-th request for memory fails once, in the flow network and in the max-min structure: no crash, no invalid
 * access (run under asan), the arena says `failed`, the network reports no further event; and without a fault the run
 * ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "netmodel/flow/networks.h"

enum { LINKS = 6, FLOWS = 300 };

static const double capacity_Bps[LINKS] = {1e9, 2e9, 3e9, 1e9, 2e9, 3e9};
static const uint8_t policy[LINKS] = {0};

/* Returns the number of transfers that ended. */
static uint32_t run(pl_network *network) {
  uint32_t ended = 0, started = 0;
  uint32_t slots[FLOWS];
  for (pl_ticks now = 0; now != PL_TICKS_NEVER;) {
    for (uint32_t task; (task = network->ops->advance(network, now)) != PL_NONE;)
      ended++;
    for (; started < FLOWS && (started + 1) * 1000 <= now + 100000; started++)
      slots[started] = network->ops->start(network, now, started, started % LINKS, 1000 + started);
    if (started > 3) network->ops->set_speed(network, now, slots[started - 1], 0.5);
    pl_ticks next = network->ops->settle(network, now);
    now = started < FLOWS && next != PL_TICKS_NEVER ? (now + 1000 < next ? now + 1000 : next) : next;
  }
  (void)network->ops->link_bytes(network);
  network->ops->destroy(network);
  return ended;
}

static void kth_take_fails(void **unused) {
  (void)unused;
  pl_link_use uses[2 * LINKS];
  pl_transfer_spec specs[LINKS];
  for (uint32_t i = 0; i < LINKS; i++) {
    uses[2 * i] = (pl_link_use){.link = i, .weight = 1};
    uses[2 * i + 1] = (pl_link_use){.link = (i + 1) % LINKS, .weight = 2};
    specs[i] = (pl_transfer_spec){
        .first_use = 2 * i, .n_uses = 2, .rate_cap_Bps = INFINITY, .share_weight = 1, .latency = i * 100};
  }
  const pl_transfer_table table = {capacity_Bps, policy, LINKS, specs, LINKS, uses, 2 * LINKS};
  typedef pl_network *network_take(const pl_transfer_table *, pl_arena *);
  static network_take *const takers[2] = {pl_flow_network_take, pl_analytic_network_take};
  for (uint32_t kind = 0; kind < 2; kind++) {
    bool failed = true;
    int64_t k = 0;
    for (; failed; k++) {
      pl_arena arena;
      pl_arena_init(&arena, 1 << 16);
      arena.fail_after = k;
      pl_network *network = takers[kind](&table, &arena);
      assert_true(network != NULL || arena.failed);
      uint32_t ended = network == NULL ? 0 : run(network);
      failed = arena.failed;
      if (!failed) assert_int_equal(ended, FLOWS);
      pl_arena_release(&arena);
    }
    print_message("%s: %d requests for memory\n", kind ? "analytic" : "flow", (int)k - 1);
    assert_true(k > 10);
  }
}

/* A whole run: each failing request ends in PL_NO_MEMORY and nothing else, wherever it strikes. */
static void kth_take_of_a_run_fails(void **unused) {
  (void)unused;
  pl_link_use uses[1] = {{.link = 0, .weight = 1}};
  pl_transfer_spec specs[1] = {{.n_uses = 1, .rate_cap_Bps = INFINITY, .share_weight = 1}};
  const pl_transfer_table table = {capacity_Bps, policy, LINKS, specs, 1, uses, 1};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_graph graph;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  for (uint32_t i = 0; i < FLOWS; i++)
    pl_graph_builder_transfer(builder, 0, 1000 + i, PL_CATEGORY_DATA, NULL, 0, PL_NONE, -1);
  pl_graph_builder_transfers(builder, &table);
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  pl_code code = PL_NO_MEMORY;
  int64_t k = 0;
  for (; code == PL_NO_MEMORY; k++) {
    pl_arena run_arena;
    pl_arena_init(&run_arena, 1 << 16);
    run_arena.fail_after = k;
    error = PL_ERROR_INIT;
    pl_engine_result result;
    pl_network *network = pl_flow_network_take(&graph.transfers, &run_arena);
    const pl_engine_options options = {.record_parts = false};
    if (network != NULL) code = pl_engine_run(&graph, network, &options, &run_arena, &result, &error);
    if (code != PL_OK && code != PL_NO_MEMORY) fail_msg("request %d: %s", (int)k, error.message);
    pl_arena_release(&run_arena);
  }
  print_message("a run: %d requests for memory\n", (int)k - 1);
  assert_true(k > 10);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kth_take_fails), cmocka_unit_test(kth_take_of_a_run_fails)};
  return cmocka_run_group_tests_name("flow_network_fault", tests, NULL, NULL);
}
