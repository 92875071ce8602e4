/* Folding: expected classes of hand-made problems, what the exact check refuses, and the four rules without which the
 * folded time is wrong. The latter are shown on toy clusters that are run twice through the real engine and network:
 * unfolded, and folded with one rule left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/digest.h"
#include "netmodel/fold/quotient.h"
#include "tests/support/play.h"

/* ---- toys: every device works, takes part in its transfers, and works again ---- */

enum { MOST_DEVICES = 64, MOST_LINKS = 64, MOST_TRANSFERS = 64, MOST_USES = 4 };

typedef struct toy_transfer {
  uint32_t members[4], n_members;
  bool directed; /* member 0 sends to member 1; else all are alike */
  uint32_t links[MOST_USES], n_links;
  double size_bytes;
  pl_ticks latency;
} toy_transfer;

typedef struct toy {
  uint32_t n_devices, n_links, n_transfers;
  pl_ticks work[MOST_DEVICES];
  double capacity_Bps[MOST_LINKS];
  pl_link_policy policy[MOST_LINKS];
  toy_transfer transfers[MOST_TRANSFERS];
} toy;

/* Rules that may be left out. */
enum rules { RULE_LATENCY = 1, RULE_FATPIPE = 2, RULE_DURATION = 4, RULE_ROLE = 8, ALL_RULES = 15 };

typedef struct folded_toy {
  pl_fold_problem problem;
  pl_fold fold;
  double rate_cap_Bps[MOST_TRANSFERS];
  uint64_t device_colour[MOST_DEVICES], link_colour[MOST_LINKS];
  pl_fold_transfer transfers[MOST_TRANSFERS];
  pl_fold_member members[4 * MOST_TRANSFERS];
  pl_link_use uses[MOST_USES * MOST_TRANSFERS];
} folded_toy;

static void fill_transfer(const toy *own, uint32_t t, uint32_t rules, folded_toy *made, uint32_t *n_members,
                          uint32_t *n_uses) {
  const toy_transfer *transfer = &own->transfers[t];
  pl_fold_transfer *fold = &made->transfers[t];
  *fold = (pl_fold_transfer){.first_member = *n_members, .n_members = transfer->n_members, .first_use = *n_uses};
  for (uint32_t i = 0; i < transfer->n_members; i++)
    made->members[(*n_members)++] =
        (pl_fold_member){transfer->members[i], transfer->directed && (rules & RULE_ROLE) ? i : 0};
  made->rate_cap_Bps[t] = INFINITY;
  for (uint32_t i = 0; i < transfer->n_links; i++) {
    uint32_t link = transfer->links[i];
    if (own->policy[link] == PL_LINK_FATPIPE && (rules & RULE_FATPIPE)) {
      made->rate_cap_Bps[t] = fmin(made->rate_cap_Bps[t], own->capacity_Bps[link]);
    } else {
      made->uses[(*n_uses)++] = (pl_link_use){link, 1};
      fold->n_uses++;
    }
  }
  pl_digest colour;
  pl_digest_init(&colour);
  pl_digest_f64(&colour, transfer->size_bytes);
  pl_digest_f64(&colour, made->rate_cap_Bps[t]);
  if (rules & RULE_LATENCY) pl_digest_u64(&colour, (uint64_t)transfer->latency);
  fold->colour = colour.value;
}

static void fold_toy(const toy *own, uint32_t rules, bool identity, pl_arena *arena, folded_toy *made) {
  uint32_t n_members = 0, n_uses = 0;
  memset(made, 0, sizeof *made);
  for (uint32_t d = 0; d < own->n_devices; d++)
    made->device_colour[d] = rules & RULE_DURATION ? (uint64_t)own->work[d] : 0;
  for (uint32_t l = 0; l < own->n_links; l++) {
    pl_digest colour;
    pl_digest_init(&colour);
    pl_digest_f64(&colour, own->capacity_Bps[l]);
    made->link_colour[l] = colour.value;
  }
  for (uint32_t t = 0; t < own->n_transfers; t++)
    fill_transfer(own, t, rules, made, &n_members, &n_uses);
  made->problem = (pl_fold_problem){.n_devices = own->n_devices,
                                    .n_links = own->n_links,
                                    .n_transfers = own->n_transfers,
                                    .device_colour = made->device_colour,
                                    .link_colour = made->link_colour,
                                    .transfers = made->transfers,
                                    .members = made->members,
                                    .uses = made->uses};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal((identity ? pl_fold_identity : pl_fold_refine)(&made->problem, arena, &made->fold, &error), PL_OK);
  assert_true(pl_fold_is_equitable(&made->problem, &made->fold, arena));
}

static pl_transfer_table quotient_table(const toy *own, const folded_toy *made, pl_arena *arena) {
  pl_quotient quotient;
  uint32_t serial[MOST_TRANSFERS] = {0};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_quotient_take(&made->problem, &made->fold, own->capacity_Bps, serial, arena, &quotient, &error),
                   PL_OK);
  pl_transfer_spec *specs = PL_TAKE(arena, pl_transfer_spec, quotient.n_transfers);
  for (uint32_t c = 0; c < quotient.n_transfers; c++) {
    uint32_t t = made->fold.transfers.first[c];
    specs[c] = (pl_transfer_spec){.first_use = quotient.transfers[c].first_use,
                                  .n_uses = quotient.transfers[c].n_uses,
                                  .rate_cap_Bps = made->rate_cap_Bps[t],
                                  .share_weight = 1,
                                  .latency = own->transfers[t].latency,
                                  .source = PL_NONE,
                                  .destination = PL_NONE};
  }
  return (pl_transfer_table){.link_capacity_Bps = quotient.link_capacity_Bps,
                             .link_policy = quotient.link_policy,
                             .n_links = quotient.n_links,
                             .specs = specs,
                             .n_specs = quotient.n_transfers,
                             .uses = quotient.uses,
                             .n_uses = quotient.n_uses};
}

static uint32_t add_work(pl_graph_builder *builder, uint32_t device, pl_ticks ticks) {
  pl_part part = {.ticks = ticks, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  return pl_graph_builder_work(builder, pl_graph_builder_segment(builder, &part, 1),
                               pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, -1);
}

/* One task per class: works, then the transfers, then the works of those that wait (who sends does not). */
static pl_ticks run_toy(const toy *own, uint32_t rules, bool identity) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(own, rules, identity, &arena, &made);
  pl_transfer_table table = quotient_table(own, &made, &arena);
  const pl_partition *devices = &made.fold.devices, *transfers = &made.fold.transfers;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  uint32_t before[MOST_DEVICES], after[MOST_DEVICES], moved[MOST_TRANSFERS];
  for (uint32_t c = 0; c < devices->n_classes; c++)
    pl_graph_builder_device(builder, &(pl_graph_device){.device = devices->first[c], .multiplicity = devices->size[c]});
  for (uint32_t c = 0; c < devices->n_classes; c++)
    before[c] = add_work(builder, c, own->work[devices->first[c]]);
  for (uint32_t c = 0; c < transfers->n_classes; c++) {
    const toy_transfer *transfer = &own->transfers[transfers->first[c]];
    moved[c] = pl_graph_builder_transfer(builder, c, transfer->size_bytes, PL_CATEGORY_DATA, NULL, 0, PL_NONE, -1);
    for (uint32_t i = 0; i < transfer->n_members; i++)
      pl_graph_builder_edge(builder, before[devices->class_of[transfer->members[i]]], moved[c]);
  }
  for (uint32_t c = 0; c < devices->n_classes; c++)
    after[c] = add_work(builder, c, own->work[devices->first[c]]);
  for (uint32_t t = 0; t < own->n_transfers; t++)
    for (uint32_t i = own->transfers[t].directed ? 1 : 0; i < own->transfers[t].n_members; i++) {
      uint32_t member = own->transfers[t].members[i], class = devices->class_of[member];
      if (devices->first[class] == member) /* what the representative does is what all do */
        pl_graph_builder_edge(builder, moved[transfers->class_of[t]], after[class]);
    }
  pl_graph_builder_transfers(builder, &table);
  pl_engine_result result = freeze_and_play(builder, &arena);
  pl_ticks makespan = result.makespan;
  pl_arena_release(&arena);
  return makespan;
}

/* Exact with all rules; off by `error` (of the true time) without `rule`. */
static void assert_rule_matters(const toy *own, uint32_t rule, double error) {
  pl_ticks exact = run_toy(own, ALL_RULES, true);
  assert_true(run_toy(own, ALL_RULES, false) == exact);
  double wrong = (double)run_toy(own, ALL_RULES & ~rule, false);
  assert_true(fabs(fabs(wrong / (double)exact - 1) - error) < 1e-6);
}

/* Two pairs over links of their own, alike but for the latency: 920 us on the wire, 80 us of latency for the second. */
static void without_latency_in_the_colour_8_percent(void **state) {
  (void)state;
  toy own = {.n_devices = 4, .n_links = 2, .n_transfers = 2, .capacity_Bps = {1e9, 1e9}};
  for (uint32_t t = 0; t < 2; t++)
    own.transfers[t] = (toy_transfer){.members = {2 * t, 2 * t + 1},
                                      .n_members = 2,
                                      .links = {t},
                                      .n_links = 1,
                                      .size_bytes = 920e3,
                                      .latency = t == 0 ? 0 : pl_ticks_from_s(80e-6)};
  assert_rule_matters(&own, RULE_LATENCY, 0.08);
}

/* 32 transfers over one FATPIPE link that gives each of them all it has. As a sum the class would take 32 times what
 * the link has: 1/32 of the rate, 97 % too slow, in time 31 times more. */
static void fatpipe_folded_as_a_sum_97_percent(void **state) {
  (void)state;
  toy own = {.n_devices = 64, .n_links = 33, .n_transfers = 32};
  own.capacity_Bps[32] = 1e9;
  own.policy[32] = PL_LINK_FATPIPE;
  for (uint32_t t = 0; t < 32; t++) {
    own.capacity_Bps[t] = 4e9;
    own.transfers[t] = (toy_transfer){
        .members = {2 * t, 2 * t + 1}, .n_members = 2, .links = {t, 32}, .n_links = 2, .size_bytes = 1e6};
  }
  assert_rule_matters(&own, RULE_FATPIPE, 31);
  double slowed = (double)run_toy(&own, ALL_RULES, true) / (double)run_toy(&own, ALL_RULES & ~RULE_FATPIPE, false);
  assert_true(fabs(1 - slowed - 0.97) < 0.005);
}

/* Two devices with one program but 80 and 100 us of work, alone in their groups. */
static void without_durations_of_devices_20_percent(void **state) {
  (void)state;
  toy own = {.n_devices = 2, .work = {pl_ticks_from_s(80e-6), pl_ticks_from_s(100e-6)}};
  assert_rule_matters(&own, RULE_DURATION, 0.2);
}

/* One sends to the other, the same work before and after: who sends goes on, who receives waits. Without roles the two
 * are one class that goes on: 100 + max(100, 100) instead of 100 + 100 + 100 us. */
static void without_roles_sender_and_receiver_merge(void **state) {
  (void)state;
  toy own = {.n_devices = 2, .n_links = 1, .n_transfers = 1, .capacity_Bps = {1e9}};
  own.work[0] = own.work[1] = pl_ticks_from_s(100e-6);
  own.transfers[0] = (toy_transfer){
      .members = {0, 1}, .n_members = 2, .directed = true, .links = {0}, .n_links = 1, .size_bytes = 100e3};
  assert_rule_matters(&own, RULE_ROLE, 1.0 / 3);
}

/* ---- classes ---- */

/* `n` devices in a ring of sends, each over a link of its own. */
static toy ring_of_sends(uint32_t n) {
  toy own = {.n_devices = n, .n_links = n, .n_transfers = n};
  for (uint32_t i = 0; i < n; i++) {
    own.capacity_Bps[i] = 1e9;
    own.transfers[i] = (toy_transfer){
        .members = {i, (i + 1) % n}, .n_members = 2, .directed = true, .links = {i}, .n_links = 1, .size_bytes = 1e6};
  }
  return own;
}

static void assert_classes(const toy *own, uint32_t n_devices, uint32_t n_links, uint32_t n_transfers) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(own, ALL_RULES, false, &arena, &made);
  assert_int_equal(made.fold.devices.n_classes, n_devices);
  assert_int_equal(made.fold.links.n_classes, n_links);
  assert_int_equal(made.fold.transfers.n_classes, n_transfers);
  assert_true(run_toy(own, ALL_RULES, false) == run_toy(own, ALL_RULES, true));
  pl_arena_release(&arena);
}

static void a_symmetric_ring_is_one_class(void **state) {
  (void)state;
  toy own = ring_of_sends(12);
  assert_classes(&own, 1, 1, 1);
}

/* Planted in a directed ring, anything odd gives every device its own distance from it. */
static void one_odd_thing_unfolds_a_ring(void **state) {
  (void)state;
  toy slow_link = ring_of_sends(12), other_latency = slow_link, slow_device = slow_link, longer = slow_link;
  slow_link.capacity_Bps[5] = 0.5e9;
  assert_classes(&slow_link, 12, 12, 12);
  other_latency.transfers[5].latency = 1;
  assert_classes(&other_latency, 12, 12, 12);
  slow_device.work[5] = 1;
  assert_classes(&slow_device, 12, 12, 12);
  longer.transfers[5].size_bytes *= 2;
  assert_classes(&longer, 12, 12, 12);
}

/* Two odd links opposite each other: half a turn is a symmetry again. */
static void opposite_odd_links_leave_half_the_ring(void **state) {
  (void)state;
  toy own = ring_of_sends(12);
  own.capacity_Bps[2] = own.capacity_Bps[8] = 0.5e9;
  assert_classes(&own, 6, 6, 6);
}

/* Eight pairs, four on each of two shared uplinks; then one pair moves over to the other uplink. */
static void unequal_shares_of_a_link_split(void **state) {
  (void)state;
  toy own = {.n_devices = 16, .n_links = 2, .n_transfers = 8, .capacity_Bps = {1e9, 1e9}};
  for (uint32_t t = 0; t < 8; t++)
    own.transfers[t] = (toy_transfer){
        .members = {2 * t, 2 * t + 1}, .n_members = 2, .links = {t / 4}, .n_links = 1, .size_bytes = 1e6};
  assert_classes(&own, 1, 1, 1);
  own.transfers[3].links[0] = 1; /* three there, five here */
  assert_classes(&own, 2, 2, 2);
}

/* Who is in how many groups tells devices apart, and roles tell them apart within one. */
static void membership_and_roles_split_devices(void **state) {
  (void)state;
  toy own = {.n_devices = 5, .n_links = 1, .n_transfers = 2, .capacity_Bps = {1e9}};
  own.transfers[0] = (toy_transfer){.members = {0, 1, 2}, .n_members = 3, .links = {0}, .n_links = 1, .size_bytes = 1};
  own.transfers[1] = (toy_transfer){.members = {2, 3, 4}, .n_members = 3, .links = {0}, .n_links = 1, .size_bytes = 1};
  assert_classes(&own, 2, 1, 1); /* {0, 1, 3, 4} and {2} */
  toy pair = {.n_devices = 2, .n_links = 1, .n_transfers = 1, .capacity_Bps = {1e9}};
  pair.transfers[0] = (toy_transfer){.members = {0, 1}, .n_members = 2, .links = {0}, .n_links = 1, .size_bytes = 1};
  assert_classes(&pair, 1, 1, 1);
  pair.transfers[0].directed = true;
  assert_classes(&pair, 2, 1, 1);
}

static void nothing_at_all_folds(void **state) {
  (void)state;
  toy own = {.n_devices = 3};
  assert_classes(&own, 1, 0, 0);
  own.n_links = 2; /* links that nothing crosses are one class per colour */
  own.capacity_Bps[0] = own.capacity_Bps[1] = 1;
  assert_classes(&own, 1, 1, 0);
  toy none = {.n_devices = 0};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(&none, ALL_RULES, false, &arena, &made);
  assert_int_equal(made.fold.devices.n_classes, 0);
  pl_arena_release(&arena);
}

static void classes_are_numbered_by_first_member(void **state) {
  (void)state;
  toy own = ring_of_sends(12);
  own.capacity_Bps[2] = own.capacity_Bps[8] = 0.5e9;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(&own, ALL_RULES, false, &arena, &made);
  for (uint32_t d = 0; d < 12; d++)
    assert_int_equal(made.fold.devices.class_of[d], d % 6);
  for (uint32_t c = 0; c < 6; c++) {
    assert_int_equal(made.fold.devices.first[c], c);
    assert_int_equal(made.fold.devices.size[c], 2);
  }
  pl_arena_release(&arena);
}

/* ---- the exact check ---- */

static void put_partition(pl_partition *partition, const uint32_t *class_of, uint32_t n) {
  partition->n_classes = 0;
  for (uint32_t i = 0; i < n; i++) {
    partition->class_of[i] = class_of[i];
    if (class_of[i] == partition->n_classes) {
      partition->first[partition->n_classes] = i;
      partition->size[partition->n_classes++] = 0;
    }
    partition->size[class_of[i]]++;
  }
}

static void wrong_partitions_are_refused(void **state) {
  (void)state;
  toy own = ring_of_sends(4);
  own.capacity_Bps[0] = own.capacity_Bps[2] = 2e9; /* fast and slow links in turn */
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(&own, ALL_RULES, false, &arena, &made);
  static const uint32_t one[] = {0, 0, 0, 0}, turns[] = {0, 1, 0, 1}, halves[] = {0, 0, 1, 1}, all[] = {0, 1, 2, 3};
  static const uint32_t odd[] = {0, 1, 0, 2};
  static const struct {
    const uint32_t *devices, *links, *transfers;
    bool equitable;
  } cases[] = {
      {turns, turns, turns, true},   {all, all, all, true},      /* the coarsest and the finest */
      {one, turns, turns, false},    {turns, one, turns, false}, /* devices merged; links of two capacities merged */
      {turns, turns, one, false},    {halves, turns, turns, false},
      {turns, halves, turns, false}, {turns, turns, halves, false},
      {odd, turns, turns, false},    {turns, odd, turns, false}, /* a split that its neighbours do not follow */
      {turns, turns, odd, false},    {one, one, one, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put_partition(&made.fold.devices, cases[i].devices, 4);
    put_partition(&made.fold.links, cases[i].links, 4);
    put_partition(&made.fold.transfers, cases[i].transfers, 4);
    if (pl_fold_is_equitable(&made.problem, &made.fold, &arena) != cases[i].equitable) fail_msg("case %zu", i);
  }
  pl_arena_release(&arena);
}

/* Starts that differ must not share a class, whatever the incidences say. */
static void start_colours_are_checked(void **state) {
  (void)state;
  toy own = ring_of_sends(4);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(&own, ALL_RULES, false, &arena, &made);
  made.device_colour[3] ^= 1;
  assert_false(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  made.device_colour[3] ^= 1;
  made.link_colour[3] ^= 1;
  assert_false(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  made.link_colour[3] ^= 1;
  made.transfers[3].colour ^= 1;
  assert_false(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  made.transfers[3].colour ^= 1;
  made.uses[3].weight = 2;
  assert_false(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  made.uses[3].weight = 1;
  made.members[7].role = 0;
  assert_false(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  made.members[7].role = 1;
  assert_true(pl_fold_is_equitable(&made.problem, &made.fold, &arena));
  pl_arena_release(&arena);
}

static void every_take_may_fail(void **state) {
  (void)state;
  toy own = ring_of_sends(12);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  folded_toy made;
  fold_toy(&own, ALL_RULES, false, &arena, &made);
  pl_code code = PL_NO_MEMORY;
  for (int64_t k = 0; code != PL_OK; k++) {
    assert_true(k < 100);
    pl_arena_reset(&arena);
    arena.fail_after = k;
    pl_error error = PL_ERROR_INIT;
    code = pl_fold_refine(&made.problem, &arena, &made.fold, &error);
    assert_int_equal(code, code == PL_OK ? PL_OK : PL_NO_MEMORY);
    assert_int_equal(code, error.code);
  }
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_latency_in_the_colour_8_percent),
      cmocka_unit_test(fatpipe_folded_as_a_sum_97_percent),
      cmocka_unit_test(without_durations_of_devices_20_percent),
      cmocka_unit_test(without_roles_sender_and_receiver_merge),
      cmocka_unit_test(a_symmetric_ring_is_one_class),
      cmocka_unit_test(one_odd_thing_unfolds_a_ring),
      cmocka_unit_test(opposite_odd_links_leave_half_the_ring),
      cmocka_unit_test(unequal_shares_of_a_link_split),
      cmocka_unit_test(membership_and_roles_split_devices),
      cmocka_unit_test(nothing_at_all_folds),
      cmocka_unit_test(classes_are_numbered_by_first_member),
      cmocka_unit_test(wrong_partitions_are_refused),
      cmocka_unit_test(start_colours_are_checked),
      cmocka_unit_test(every_take_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
