/* The quotient of a fold: weights of classes, which links can be contended, which links others imply; and what odd
 * links and devices, planted in a symmetric cluster, do to the classes of a real program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/fold/quotient.h"
#include "tests/support/play.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/compile/communication.h"
#include "workloads/import/model_file.h"

/* ---- hand-made problems: no devices, only transfers over links ---- */

enum { MOST = 64 };

typedef struct wiring {
  uint32_t n_links, n_transfers, n_uses;
  double capacity_Bps[MOST];
  pl_fold_transfer transfers[MOST];
  pl_link_use uses[MOST * MOST];
  uint64_t link_colour[MOST];
} wiring;

static void add_transfer(wiring *own, const pl_link_use *uses, uint32_t n) {
  own->transfers[own->n_transfers++] = (pl_fold_transfer){.first_use = own->n_uses, .n_uses = n};
  for (uint32_t i = 0; i < n; i++)
    own->uses[own->n_uses++] = uses[i];
}

static pl_fold_problem problem_of(wiring *own) {
  for (uint32_t l = 0; l < own->n_links; l++)
    memcpy(&own->link_colour[l], &own->capacity_Bps[l], sizeof(uint64_t));
  return (pl_fold_problem){.n_links = own->n_links,
                           .n_transfers = own->n_transfers,
                           .link_colour = own->link_colour,
                           .transfers = own->transfers,
                           .uses = own->uses};
}

static pl_quotient take_quotient(wiring *own, bool fold, const uint32_t *serial, pl_arena *arena) {
  pl_fold_problem problem = problem_of(own);
  pl_fold classes;
  pl_quotient quotient;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal((fold ? pl_fold_refine : pl_fold_identity)(&problem, arena, &classes, &error), PL_OK);
  assert_int_equal(pl_quotient_take(&problem, &classes, own->capacity_Bps, serial, arena, &quotient, &error), PL_OK);
  return quotient;
}

#define USES(...) ((const pl_link_use[]){__VA_ARGS__}), sizeof((pl_link_use[]){__VA_ARGS__}) / sizeof(pl_link_use)

/* Four transfers, each over its own NIC with weight 2 and all over one uplink with weight 1: the class takes 2 of a NIC
 * and 4 of the uplink. */
static void the_weight_of_a_class_is_what_crosses_one_link(void **state) {
  (void)state;
  wiring own = {.n_links = 5, .capacity_Bps = {1e9, 1e9, 1e9, 1e9, 3e9}};
  for (uint32_t t = 0; t < 4; t++)
    add_transfer(&own, USES({t, 2}, {4, 1}));
  pl_arena arena;
  pl_arena_init(&arena, 0);
  static const uint32_t serial[4] = {7, 7, 7, 7};
  pl_quotient folded = take_quotient(&own, true, serial, &arena);
  assert_int_equal(folded.n_links, 2);
  assert_int_equal(folded.n_transfers, 1);
  assert_true(folded.link_capacity_Bps[0] == 1e9 && folded.link_capacity_Bps[1] == 3e9);
  assert_int_equal(folded.transfers[0].serial, 7);
  assert_int_equal(folded.transfers[0].n_full, 2);
  for (uint32_t u = 0; u < 2; u++)
    assert_true(folded.full_uses[u].weight == (folded.full_uses[u].link == 0 ? 2 : 4));
  pl_quotient whole = take_quotient(&own, false, serial, &arena);
  assert_int_equal(whole.n_links, 5);
  assert_int_equal(whole.n_transfers, 4);
  assert_int_equal(whole.n_uses, 8);
  for (uint32_t u = 0; u < 8; u++)
    assert_true(whole.full_uses[u].link == own.uses[u].link && whole.full_uses[u].weight == own.uses[u].weight);
  pl_arena_release(&arena);
}

/* ---- rivals ---- */

typedef struct rivals {
  pl_quotient quotient;
  pl_arena arena;
} rivals;

static rivals find_rivals(wiring *own, const uint32_t *serial, const double *bound_Bps) {
  rivals found;
  pl_arena_init(&found.arena, 0);
  found.quotient = take_quotient(own, false, serial, &found.arena);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_quotient_rivals(&found.quotient, bound_Bps, &found.arena, &error), PL_OK);
  return found;
}

static const double unbounded[8] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};

/* Three collectives of one stream over one NVLink take turns: none has a rival, the link only caps them. */
static void a_link_of_one_stream_has_no_rivals(void **state) {
  (void)state;
  wiring own = {.n_links = 1, .capacity_Bps = {300e9}};
  add_transfer(&own, USES({0, 1}));
  add_transfer(&own, USES({0, 2}));
  add_transfer(&own, USES({0, 3}));
  static const uint32_t serial[] = {4, 4, 4};
  rivals found = find_rivals(&own, serial, unbounded);
  assert_int_equal(found.quotient.n_uses, 0);
  for (uint32_t t = 0; t < 3; t++) {
    assert_int_equal(found.quotient.transfers[t].n_uses, 0);
    assert_int_equal(found.quotient.transfers[t].n_full, 1);
    assert_true(found.quotient.transfers[t].rate_cap_Bps == 300e9 / (t + 1));
  }
  pl_arena_release(&found.arena);
}

/* A data-parallel ring and pipeline sends meet on a NIC; the NVLink that the ring alone crosses stays a cap. */
static void a_nic_of_two_streams_makes_rivals(void **state) {
  (void)state;
  wiring own = {.n_links = 2, .capacity_Bps = {25e9, 300e9}};
  add_transfer(&own, USES({0, 1}, {1, 4})); /* ring */
  add_transfer(&own, USES({0, 1}));         /* send */
  static const uint32_t serial[] = {0, 1};
  rivals found = find_rivals(&own, serial, unbounded);
  assert_int_equal(found.quotient.transfers[0].n_uses, 1);
  assert_int_equal(found.quotient.transfers[1].n_uses, 1);
  assert_int_equal(found.quotient.uses[0].link, 0);
  assert_true(found.quotient.transfers[0].rate_cap_Bps == 300e9 / 4);
  assert_true(found.quotient.transfers[1].rate_cap_Bps == INFINITY);
  pl_arena_release(&found.arena);
}

/* Two streams on one link, each held to at most half of it by a link of its own or by its bound: they fit together. A
 * little more, and they do not. */
static void streams_that_fit_together_have_no_rivals(void **state) {
  (void)state;
  for (int too_much = 0; too_much < 2; too_much++) {
    wiring own = {.n_links = 2, .capacity_Bps = {100e9, too_much ? 50.1e9 : 50e9}};
    add_transfer(&own, USES({0, 1}, {1, 1}));
    add_transfer(&own, USES({0, 2}));
    static const uint32_t serial[] = {0, 1};
    const double bound_Bps[] = {INFINITY, 25e9}; /* twice 25 on the link */
    rivals found = find_rivals(&own, serial, bound_Bps);
    assert_int_equal(found.quotient.transfers[0].n_uses, too_much);
    assert_int_equal(found.quotient.transfers[1].n_uses, too_much);
    pl_arena_release(&found.arena);
  }
}

/* What one stream takes at most is its fastest transfer, not the sum, whatever the order in which they come. */
static void one_stream_counts_once(void **state) {
  (void)state;
  wiring own = {.n_links = 1, .capacity_Bps = {100e9}};
  for (uint32_t t = 0; t < 6; t++)
    add_transfer(&own, USES({0, 1}));
  static const uint32_t serial[] = {0, 1, 0, 1, 0, 1};
  const double fits_Bps[] = {10e9, 70e9, 30e9, 50e9, 20e9, 60e9}; /* 30 + 70 */
  rivals found = find_rivals(&own, serial, fits_Bps);
  assert_int_equal(found.quotient.n_uses, 0);
  pl_arena_release(&found.arena);
  const double clash_Bps[] = {10e9, 70e9, 30.1e9, 50e9, 20e9, 60e9};
  found = find_rivals(&own, serial, clash_Bps);
  assert_int_equal(found.quotient.n_uses, 6);
  pl_arena_release(&found.arena);
}

/* ---- implied links ---- */

static uint32_t drop(wiring *own) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t n_dropped = 0;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_quotient_drop_implied_links(own->n_links, own->capacity_Bps, own->transfers, own->n_transfers,
                                                  own->uses, &arena, &n_dropped, &error),
                   PL_OK);
  pl_arena_release(&arena);
  return n_dropped;
}

static bool crosses(const wiring *own, uint32_t transfer, uint32_t link) {
  for (uint32_t u = 0; u < own->transfers[transfer].n_uses; u++)
    if (own->uses[own->transfers[transfer].first_use + u].link == link) return true;
  return false;
}

/* Four NICs of 25 GB/s under one uplink. */
static wiring leaf(double uplink_Bps, double weight_on_uplink) {
  wiring own = {.n_links = 5, .capacity_Bps = {25e9, 25e9, 25e9, 25e9, uplink_Bps}};
  for (uint32_t t = 0; t < 4; t++)
    add_transfer(&own, USES({t, 1}, {4, weight_on_uplink}));
  return own;
}

static void an_uplink_that_carries_the_sum_of_its_nics_is_dropped(void **state) {
  (void)state;
  wiring exactly = leaf(100e9, 1), more = leaf(101e9, 1), less = leaf(99.9e9, 1);
  assert_int_equal(drop(&exactly), 1);
  assert_int_equal(drop(&more), 1);
  assert_int_equal(drop(&less), 0); /* oversubscribed */
  for (uint32_t t = 0; t < 4; t++) {
    assert_false(crosses(&exactly, t, 4));
    assert_true(crosses(&exactly, t, t));
    assert_true(crosses(&less, t, 4));
  }
  wiring twice = leaf(100e9, 2), twice_as_wide = leaf(200e9, 2); /* each byte crosses the uplink twice */
  assert_int_equal(drop(&twice), 0);
  assert_int_equal(drop(&twice_as_wide), 1);
}

/* A transfer that reaches the uplink without a NIC could fill it. */
static void an_uplink_with_a_way_around_the_nics_stays(void **state) {
  (void)state;
  wiring own = leaf(1000e9, 1);
  add_transfer(&own, USES({4, 1}));
  assert_int_equal(drop(&own), 0);
}

/* GPU port 50, PCIe switch of two GPUs 64, NIC 25: both wider links are implied by the NIC alone. */
static void a_chain_keeps_its_narrowest_link(void **state) {
  (void)state;
  wiring own = {.n_links = 4, .capacity_Bps = {50e9, 50e9, 64e9, 25e9}};
  add_transfer(&own, USES({0, 1}, {2, 1}, {3, 1}));
  add_transfer(&own, USES({1, 1}, {2, 1}, {3, 1}));
  assert_int_equal(drop(&own), 3);
  for (uint32_t t = 0; t < 2; t++) {
    assert_int_equal(own.transfers[t].n_uses, 1);
    assert_true(crosses(&own, t, 3));
  }
}

/* Receivers 0 to 2, senders 3 and 4, uplink 5: two of the four transfers vote for a receiver that they have in common,
 * and the senders alone are enough. A link of the same capacity that stays (7) keeps the uplink, too. */
static void votes_that_fall_to_both_sides_are_made_up(void **state) {
  (void)state;
  for (int stays = 0; stays < 2; stays++) {
    wiring own = {.n_links = 8, .capacity_Bps = {25e9, 25e9, 25e9, 25e9, 25e9, 50e9, 25e9, stays ? 50e9 : 75e9}};
    for (uint32_t t = 0; t < 4; t++)
      add_transfer(&own, USES({t % 3, 1}, {3 + t / 2, 1}, {5, 1}));
    add_transfer(&own, USES({6, 1}, {7, 3}));
    assert_int_equal(drop(&own), stays ? 0 : 2);
  }
}

/* ---- leaving out implied links changes no date ---- */

static pl_ticks makespan_of(const wiring *own, const double *size_bytes, const pl_ticks *delay, pl_ticks *finish) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_transfer_spec *specs = PL_TAKE(&arena, pl_transfer_spec, own->n_transfers);
  uint8_t *policy = PL_TAKE(&arena, uint8_t, own->n_links);
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  uint32_t task[MOST];
  for (uint32_t t = 0; t < own->n_transfers; t++) {
    specs[t] = (pl_transfer_spec){.first_use = own->transfers[t].first_use,
                                  .n_uses = own->transfers[t].n_uses,
                                  .rate_cap_Bps = INFINITY,
                                  .share_weight = 1,
                                  .source = PL_NONE,
                                  .destination = PL_NONE};
    uint32_t wait = pl_graph_builder_delay(builder, delay[t], PL_CATEGORY_OTHER, NULL, 0, PL_NONE, -1);
    task[t] = pl_graph_builder_transfer(builder, t, size_bytes[t], PL_CATEGORY_DATA, NULL, 0, PL_NONE, -1);
    pl_graph_builder_edge(builder, wait, task[t]);
  }
  pl_transfer_table table = {.link_capacity_Bps = own->capacity_Bps,
                             .link_policy = policy,
                             .n_links = own->n_links,
                             .specs = specs,
                             .n_specs = own->n_transfers,
                             .uses = own->uses,
                             .n_uses = own->n_uses};
  pl_graph_builder_transfers(builder, &table);
  pl_engine_result result = freeze_and_play(builder, &arena);
  for (uint32_t t = 0; t < own->n_transfers; t++)
    finish[t] = result.finish[task[t]];
  pl_ticks makespan = result.makespan;
  pl_arena_release(&arena);
  return makespan;
}

/* Nodes with a PCIe link and a NIC each under leaves of random width, and transfers that cross two or (rings, beyond
 * what votes) all of the nodes. Links of a transfer sorted, as fluid collectives have them. */
static wiring random_wiring(uint64_t *random) {
  wiring own = {.n_links = 0};
  uint32_t n_nodes = random_between(random, 2, 20), n_leaves = random_between(random, 1, 4);
  for (uint32_t n = 0; n < n_nodes; n++) {
    own.capacity_Bps[2 * n] = 1e9 * random_between(random, 1, 4);
    own.capacity_Bps[2 * n + 1] = 1e9 * random_between(random, 1, 4);
  }
  for (uint32_t l = 0; l < n_leaves; l++)
    own.capacity_Bps[2 * n_nodes + l] = 1e9 * random_between(random, 2, 40);
  own.n_links = 2 * n_nodes + n_leaves;
  uint32_t n_transfers = random_between(random, 1, 12);
  for (uint32_t t = 0; t < n_transfers; t++) {
    bool ring = random_below(random, 4) == 0;
    pl_link_use uses[MOST];
    uint32_t n = 0;
    double on_leaf[4] = {0}, weight = random_between(random, 1, 3);
    for (uint32_t node = 0; node < n_nodes; node++) {
      if (!ring && random_below(random, n_nodes) > 1) continue;
      uses[n++] = (pl_link_use){2 * node, weight};
      uses[n++] = (pl_link_use){2 * node + 1, weight};
      on_leaf[node % n_leaves] += weight;
    }
    for (uint32_t l = 0; l < n_leaves; l++)
      if (on_leaf[l] > 0) uses[n++] = (pl_link_use){2 * n_nodes + l, on_leaf[l]};
    if (n > 0) add_transfer(&own, uses, n);
  }
  return own;
}

static void dropping_changes_no_date(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  uint32_t n_dropped = 0, n_kept = 0, n_large = 0;
  for (int i = 0; i < 2000; i++) {
    wiring own = random_wiring(&random), less = own;
    double size_bytes[MOST];
    pl_ticks delay[MOST], exact[MOST], made[MOST];
    for (uint32_t t = 0; t < own.n_transfers; t++) {
      size_bytes[t] = 1e6 * random_between(&random, 1, 50);
      delay[t] = pl_ticks_from_s(1e-3 * random_below(&random, 20));
      n_large += own.transfers[t].n_uses > 32;
    }
    uint32_t dropped = drop(&less);
    n_dropped += dropped;
    n_kept += own.n_links - dropped;
    makespan_of(&own, size_bytes, delay, exact);
    makespan_of(&less, size_bytes, delay, made);
    for (uint32_t t = 0; t < own.n_transfers; t++) /* a rate may round the other way when fewer links bind */
      if (made[t] - exact[t] > 4 || exact[t] - made[t] > 4)
        fail_msg("case %d: transfer %u ends at %lld instead of %lld", i, t, (long long)made[t], (long long)exact[t]);
  }
  print_message("%u links dropped, %u kept, %u transfers beyond the vote\n", n_dropped, n_kept, n_large);
  assert_true(n_dropped > 5000 && n_kept > 5000 && n_large > 500);
}

/* ---- a program on a symmetric cluster, and one thing planted ---- */

enum { N_NODES = 4, N_GPUS = 8 };

typedef struct plan_counts {
  uint32_t devices, transfers, implied;
} plan_counts;

static plan_counts plan(const pl_cluster *cluster, int32_t pp, int32_t dp, int32_t tmp) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":1024,\"n_layer\":8,\"n_head\":16,"
                               "\"n_positions\":1024,\"vocab_size\":50257,\"tie_word_embeddings\":false}";
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("m.json", config, sizeof config - 1, &arena, &model, &error), PL_OK);
  pl_strategy strategy = {.pp = pp, .dp = dp, .tmp = tmp, .mbs = 1, .vpp = 1, .overlap = true, .order = "tdp"};
  strategy.schedule = PL_SCHEDULE_1F1B;
  strategy.recipe = PL_ASSIGN_UNIFORM;
  pl_job job = {
      .gbs = 8 * dp, .seq = 1024, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e12}; /* one bucket */
  assert_int_equal(pl_strategy_assign(&strategy, &model, &job, cluster, &arena, &error), PL_OK);
  pl_program program;
  pl_communication_plan made;
  pl_communication_options options = {.collective = {.algorithm = PL_ALGORITHM_RING}, .fold = true};
  assert_int_equal(pl_program_take(&model, &job, &strategy, &arena, &program, &error), PL_OK);
  if (pl_communication_plan_take(cluster, &program, &options, &arena, &made, &error) != PL_OK)
    fail_msg("%s", error.message);
  uint32_t total = 0;
  for (uint32_t c = 0; c < made.n_device_classes; c++)
    total += made.device_classes[c].multiplicity;
  assert_int_equal(total, cluster->n_devices);
  plan_counts counts = {made.n_device_classes, made.n_transfer_classes, made.n_implied_links};
  pl_arena_release(&arena);
  return counts;
}

static pl_cluster *symmetric_cluster(uint32_t leaf_nodes, double oversubscription, double fabric_latency_s) {
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = N_NODES;
  options.gpus_per_node = options.nics_per_node = N_GPUS;
  options.leaf_nodes = leaf_nodes;
  options.oversubscription = oversubscription;
  options.fabric_latency_s = fabric_latency_s;
  return synthetic_cluster_create(&options);
}

static uint32_t link_named(const pl_cluster *cluster, const char *name) {
  uint32_t link = synthetic_cluster_link(cluster, name);
  if (link == PL_NONE) fail_msg("no link %s", name);
  return link;
}

static void assert_plan(pl_cluster *cluster, int32_t pp, int32_t dp, int32_t tmp, uint32_t devices,
                        uint32_t transfers) {
  plan_counts counts = plan(cluster, pp, dp, tmp);
  if (counts.devices != devices || counts.transfers != transfers)
    fail_msg("pp=%d,dp=%d,tmp=%d: %u device and %u transfer classes instead of %u and %u", pp, dp, tmp, counts.devices,
             counts.transfers, devices, transfers);
}

/* dp=4 over the nodes, tmp=8 inside them: all 32 GPUs are one class, with two kinds of transfers. With pp=4 over the
 * nodes: a class per stage, a tensor collective each, three sends down and three up. */
static void a_symmetric_cluster_folds_fully(void **state) {
  (void)state;
  pl_cluster *cluster = symmetric_cluster(0, 1, 0);
  assert_plan(cluster, 1, 4, 8, 1, 2);
  assert_plan(cluster, 4, 1, 8, 4, 10);
  assert_plan(cluster, 1, 32, 1, 1, 1);
  assert_plan(cluster, 2, 16, 1, 2, 4);
  synthetic_cluster_release(cluster);
}

/* Node 0's tensor collective is slower than the other three: its 8 devices against 24; the eight data-parallel rings
 * are still alike, each with one member here and three there. */
static void one_slow_link_splits_its_node_from_the_others(void **state) {
  (void)state;
  pl_cluster *cluster = symmetric_cluster(0, 1, 0);
  synthetic_cluster_scale_link(cluster, link_named(cluster, "n0_g3_nv_up"), 0.5);
  assert_plan(cluster, 1, 4, 8, 2, 3);
  synthetic_cluster_release(cluster);
}

/* The same through its latency alone: the derived latency of node 0's collective. */
static void one_other_latency_splits_likewise(void **state) {
  (void)state;
  pl_cluster *cluster = symmetric_cluster(0, 1, 0);
  synthetic_cluster_set_latency(cluster, link_named(cluster, "n0_g3_nv_up"), 20e-6);
  assert_plan(cluster, 1, 4, 8, 2, 3);
  synthetic_cluster_release(cluster);
}

/* A FATPIPE link among shared ones: a cap on node 0's collective that the others do not have. */
static void one_fatpipe_link_splits_likewise(void **state) {
  (void)state;
  pl_cluster *cluster = symmetric_cluster(0, 1, 0);
  synthetic_cluster_set_policy(cluster, link_named(cluster, "n0_g3_nv_up"), PL_LINK_FATPIPE);
  assert_plan(cluster, 1, 4, 8, 2, 3);
  synthetic_cluster_release(cluster);
}

/* GPU 3 of node 0: itself, the 7 beside it, the 3 in its data-parallel group, the 21 others. Tensor collectives: with
 * it and without; rings: with it and without. */
static void one_slow_gpu_splits_four_ways(void **state) {
  (void)state;
  pl_cluster *cluster = symmetric_cluster(0, 1, 0);
  synthetic_cluster_set_profile(cluster, 3, 1);
  assert_plan(cluster, 1, 4, 8, 4, 4);
  synthetic_cluster_release(cluster);
}

/* Leaves of three nodes, so that the job straddles them 3 + 1. Wide enough uplinks are implied by the NICs and nothing
 * shatters; oversubscribed ones really make the node on the second leaf another one. */
static void straddling_leaves_shatter_only_when_oversubscribed(void **state) {
  (void)state;
  pl_cluster *wide = symmetric_cluster(3, 1, 0);
  plan_counts counts = plan(wide, 1, 4, 8);
  assert_int_equal(counts.devices, 1);
  assert_int_equal(counts.transfers, 2);
  assert_true(counts.implied >= 4); /* at least the two leaves' up and down links */
  assert_plan(wide, 2, 2, 8, 2, 6); /* a class per stage: tensor, data and sends of two stages */
  synthetic_cluster_release(wide);
  pl_cluster *narrow = symmetric_cluster(3, 8, 0);
  counts = plan(narrow, 1, 4, 8);
  assert_int_equal(counts.devices, 1); /* every ring crosses both leaves alike */
  assert_int_equal(counts.transfers, 2);
  /* Stage 0 lies on leaf 0, stage 1 on both, and one replica's sends cross leaves: four classes of 8 devices. */
  assert_plan(narrow, 2, 2, 8, 4, 10);
  synthetic_cluster_release(narrow);
  /* Uplinks that take time make them differ whatever they carry. */
  pl_cluster *far = symmetric_cluster(3, 1, 1e-6);
  assert_plan(far, 2, 2, 8, 4, 10);
  synthetic_cluster_release(far);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_weight_of_a_class_is_what_crosses_one_link),
      cmocka_unit_test(a_link_of_one_stream_has_no_rivals),
      cmocka_unit_test(a_nic_of_two_streams_makes_rivals),
      cmocka_unit_test(streams_that_fit_together_have_no_rivals),
      cmocka_unit_test(one_stream_counts_once),
      cmocka_unit_test(an_uplink_that_carries_the_sum_of_its_nics_is_dropped),
      cmocka_unit_test(an_uplink_with_a_way_around_the_nics_stays),
      cmocka_unit_test(a_chain_keeps_its_narrowest_link),
      cmocka_unit_test(votes_that_fall_to_both_sides_are_made_up),
      cmocka_unit_test(dropping_changes_no_date),
      cmocka_unit_test(a_symmetric_cluster_folds_fully),
      cmocka_unit_test(one_slow_link_splits_its_node_from_the_others),
      cmocka_unit_test(one_other_latency_splits_likewise),
      cmocka_unit_test(one_fatpipe_link_splits_likewise),
      cmocka_unit_test(one_slow_gpu_splits_four_ways),
      cmocka_unit_test(straddling_leaves_shatter_only_when_oversubscribed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
