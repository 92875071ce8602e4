/* The flow network's share of a run's state (core/graph/run_state.h): as run_state_test.c has it for the engine's. Two
 * transfers share a link; one of them is changed in one place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "netmodel/flow/flow_network.c" /* its transfers are its own business */

enum { N_TASKS = 4, NOW = 1000 };

typedef struct still {
  pl_arena arena;
  pl_link_use use;
  pl_transfer_spec specs[2];
  double capacity_Bps;
  uint8_t policy;
  pl_transfer_table table;
  uint32_t first_task[N_TASKS + 1];
  pl_lane lane;
  pl_lanes lanes;
  flow_network *network;
  uint32_t slot; /* of task 1 */
} still;

static void make(still *own) {
  *own = (still){.use = {.link = 0, .weight = 1}, .capacity_Bps = 1e9, .policy = PL_LINK_SHARED};
  pl_arena_init(&own->arena, 0);
  for (int spec = 0; spec < 2; spec++)
    own->specs[spec] = (pl_transfer_spec){
        .n_uses = 1, .rate_cap_Bps = INFINITY, .share_weight = 1, .source = PL_NONE, .destination = PL_NONE};
  own->table = (pl_transfer_table){.link_capacity_Bps = &own->capacity_Bps,
                                   .link_policy = &own->policy,
                                   .n_links = 1,
                                   .specs = own->specs,
                                   .n_specs = 2,
                                   .uses = &own->use,
                                   .n_uses = 1};
  for (uint32_t step = 0; step <= N_TASKS; step++)
    own->first_task[step] = step;
  own->lane = (pl_lane){.n_steps = N_TASKS, .phases = {{0, N_TASKS}}};
  own->lanes =
      (pl_lanes){.lanes = &own->lane, .n_lanes = 1, .first_task = own->first_task, .n_phases = 1, .period = {1}};
  pl_network *network = pl_flow_network_take(&own->table, &own->arena);
  assert_non_null(network);
  network->ops->start(network, 0, 0, 0, 1e6);
  own->slot = network->ops->start(network, 0, 1, 1, 2e6);
  assert_true(network->ops->settle(network, 0) > NOW);
  own->network = self(network);
}

static void change(still *own, pl_state_field field) {
  flow *f = &own->network->flows[own->slot];
  switch (field) {
  case PL_STATE_FLOW:
    f->task = 2;
    break;
  case PL_STATE_FLOW_PHASE:
    f->phase = PHASE_ENDING;
    break;
  case PL_STATE_FLOW_DATE:
    pl_flow_heap_set(&own->network->ends, own->slot, f->task, PL_TICKS_MAX - 1);
    break;
  case PL_STATE_FLOW_REST:
    f->rest_bytes *= 1 + 0x1p-52;
    break;
  case PL_STATE_FLOW_SINCE:
    f->since++;
    break;
  case PL_STATE_FLOW_PACE:
    f->pace_Bps *= 1 + 0x1p-52;
    break;
  case PL_STATE_FLOW_SPEED:
    f->speed *= 1 + 0x1p-52;
    break;
  default:
    fail_msg("no change for field %d", (int)field);
  }
}

static pl_run_state write(still *own, uint64_t left_out) {
  pl_run_state state = {.lanes = &own->lanes, .now = NOW, .left_out = left_out, .arena = &own->arena};
  flow_write_state(&own->network->base, &state);
  assert_false(state.outside);
  return state;
}

static bool same(const pl_run_state *a, const pl_run_state *b) {
  return a->n == b->n && memcmp(a->words, b->words, a->n * sizeof *a->words) == 0;
}

static void each_field_tells_states_apart(void **unused) {
  (void)unused;
  for (int field = PL_STATE_FLOW; field <= PL_STATE_FLOW_SPEED; field++) {
    still one, other;
    make(&one);
    make(&other);
    pl_run_state before = write(&one, 0), unchanged = write(&other, 0);
    assert_true(same(&before, &unchanged));
    change(&other, (pl_state_field)field);
    pl_run_state after = write(&other, 0);
    if (same(&before, &after)) fail_msg("field %d is not in the state", field);
    uint64_t left_out = UINT64_C(1) << field;
    pl_run_state without = write(&one, left_out), changed = write(&other, left_out);
    if (!same(&without, &changed)) fail_msg("field %d says what another one says", field);
    pl_arena_release(&one.arena);
    pl_arena_release(&other.arena);
  }
}

/* What counts is the time from now: the same transfers later are the same state. */
static void dates_are_relative(void **unused) {
  (void)unused;
  still own;
  make(&own);
  pl_run_state now = write(&own, 0);
  pl_run_state later_on = {.lanes = &own.lanes, .now = NOW + 1, .arena = &own.arena};
  flow_write_state(&own.network->base, &later_on);
  assert_false(same(&now, &later_on));
  pl_arena_release(&own.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_field_tells_states_apart),
                                     cmocka_unit_test(dates_are_relative)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
