/* Collectives under a profile, on random clusters and groups: what runs is the least of all that could, its time alone
 * is the profile's, it grows with size, it keeps to its algorithm's links, and nothing depends on who the members are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/collective/collective_internal.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/collective_profile.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

static void assert_near(double value, double wanted, double tolerance) {
  if (!(fabs(value - wanted) <= tolerance)) fail_msg("%.17g instead of %.17g", value, wanted);
}

enum { MOST_DEVICES = 48, N_SIZES = 40 };

static pl_collective_group *random_group(uint64_t *state, const pl_cluster *cluster, pl_collective_options options) {
  uint32_t members[MOST_DEVICES], n = random_between(state, 2, cluster->n_devices);
  for (uint32_t i = 0; i < cluster->n_devices; i++)
    members[i] = i;
  bool ordered = random_below(state, 2);
  for (uint32_t i = 0; i < n && !ordered; i++) {
    uint32_t j = random_between(state, i, cluster->n_devices - 1), keep = members[i];
    members[i] = members[j];
    members[j] = keep;
  }
  pl_collective_group *group;
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_group_take(cluster, members, n, &options, &arena, &group, &error) != PL_OK)
    fail_msg("%s", error.message);
  return group;
}

static double total_us(pl_tuned_time time) {
  return time.latency_us + time.transfer_us;
}

static void check_choice(const pl_collective_group *group, pl_collective_kind kind, double size_bytes) {
  pl_collective_weighing weighing;
  pl_fluid_collective fluid;
  pl_collective_algorithm algorithm;
  assert_int_equal(pl_collective_weigh(group, kind, size_bytes, &arena, &weighing, NULL), PL_OK);
  assert_int_equal(pl_collective_fluid(group, kind, size_bytes, &arena, &fluid, NULL), PL_OK);
  assert_int_equal(pl_collective_group_algorithm(group, kind, size_bytes, &arena, &algorithm, NULL), PL_OK);
  if (weighing.n_works == 0) return; /* forced to what the profile does not price */
  for (uint32_t i = 0; i < weighing.n_works; i++)
    assert_true(total_us(pl_tuned_time_of(weighing.inside, weighing.between, &weighing.works[i])) >=
                total_us(weighing.time));
  double alone_us =
      1e6 * (pl_ticks_to_s(fluid.spec.latency) + fluid.progress_bytes / pl_fluid_alone_Bps(group->cluster, &fluid));
  if (fabs(alone_us - total_us(weighing.time)) > 1e-5 + 1e-9 * alone_us)
    fail_msg("%s of %g bytes: %.9g us alone, %.9g us by the profile", pl_collective_name(kind), size_bytes, alone_us,
             total_us(weighing.time));
}

static void check_growth(const pl_collective_group *group, pl_collective_kind kind) {
  double before_us = 0, size_bytes = 8;
  for (int i = 0; i < N_SIZES; i++, size_bytes *= 2) {
    pl_collective_weighing weighing;
    assert_int_equal(pl_collective_weigh(group, kind, size_bytes, &arena, &weighing, NULL), PL_OK);
    if (weighing.n_works == 0) return;
    if (total_us(weighing.time) < before_us)
      fail_msg("%s of %g bytes takes %g us, of half as many %g us", pl_collective_name(kind), size_bytes,
               total_us(weighing.time), before_us);
    before_us = total_us(weighing.time);
  }
}

static void the_least_time_runs_and_grows_with_size(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(31);
  const pl_collective_profile *profile = shipped_collective_profile(&arena);
  uint32_t n_priced = 0;
  for (uint64_t i = 0; i < 200; i++) {
    uint64_t state = seed + i;
    pl_cluster *cluster = synthetic_cluster_random(seed + i, MOST_DEVICES);
    pl_arena_mark mark = pl_arena_mark_here(&arena);
    if (cluster->n_devices > 1) {
      pl_collective_options options = {.profile = profile};
      if (random_below(&state, 3) == 0)
        options.algorithm = (pl_collective_algorithm)random_below(&state, PL_ALGORITHM_COUNT);
      pl_collective_group *group = random_group(&state, cluster, options);
      n_priced += group->tuning.inside != NULL || group->tuning.between != NULL;
      for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++) {
        for (int k = 0; k < 6; k++)
          check_choice(group, (pl_collective_kind)kind, random_log(&state, 1, 1e10));
        check_growth(group, (pl_collective_kind)kind);
      }
    }
    pl_arena_release_to(&arena, mark);
    synthetic_cluster_release(cluster);
  }
  assert_in_range(n_priced, 100, 200);
}

/* Every rank of one node on a regular cluster, node by node: the same time to the bit, the same figures of the flow. */
static void like_groups_cost_alike(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(32);
  const pl_collective_profile *profile = shipped_collective_profile(&arena);
  for (uint64_t i = 0; i < 60; i++) {
    uint64_t state = seed + i;
    pl_cluster *cluster = synthetic_cluster_random_regular(seed + i, MOST_DEVICES);
    uint32_t per_node = cluster->nodes[0].n_devices, members[MOST_DEVICES];
    double size_bytes = random_log(&state, 1, 1e10);
    pl_collective_options options = {.profile = profile};
    pl_fluid_collective first = {0}, other;
    for (uint32_t node = 0; node < cluster->n_nodes && per_node > 1; node++) {
      pl_collective_group *group;
      for (uint32_t k = 0; k < per_node; k++)
        members[k] = cluster->nodes[node].first_device + k;
      assert_int_equal(pl_collective_group_take(cluster, members, per_node, &options, &arena, &group, NULL), PL_OK);
      assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, size_bytes, &arena, &other, NULL), PL_OK);
      if (node == 0) first = other;
      assert_true(first.spec.latency == other.spec.latency && first.progress_bytes == other.progress_bytes);
      assert_true(first.spec.rate_cap_Bps == other.spec.rate_cap_Bps && first.spec.n_uses == other.spec.n_uses);
    }
    synthetic_cluster_release(cluster);
  }
}

/* NVLS on 4 nodes of 8: each port carries S + S / 8 each way; NICs what two trees over 4 nodes carry of S / 8 in
 * halves. */
static void nvls_moves_what_it_should(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(
      &(synthetic_options){.n_nodes = 4, .nics_per_node = 8, .nvlink_Bps = 450e9, .nic_Bps = 50e9, .pcie_Bps = 52e9});
  uint32_t members[32];
  for (uint32_t i = 0; i < 32; i++)
    members[i] = i;
  for (uint32_t n = 8; n <= 32; n += 24) {
    pl_collective_options options = {.profile = shipped_collective_profile(&arena), .algorithm = PL_ALGORITHM_NVLS};
    pl_collective_group *group;
    pl_fluid_collective fluid;
    pl_collective_algorithm algorithm;
    double size_bytes = 1e9, nic_bytes = 0;
    assert_int_equal(pl_collective_group_take(cluster, members, n, &options, &arena, &group, NULL), PL_OK);
    assert_int_equal(pl_collective_group_algorithm(group, PL_ALL_REDUCE, size_bytes, &arena, &algorithm, NULL), PL_OK);
    assert_int_equal(algorithm, PL_ALGORITHM_NVLS);
    assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, size_bytes, &arena, &fluid, NULL), PL_OK);
    for (uint32_t i = 0; i < fluid.spec.n_uses; i++) {
      const pl_link *link = &cluster->links[fluid.uses[i].link];
      double bytes = fluid.uses[i].weight * fluid.progress_bytes;
      if (link->kind == PL_LINK_NVLINK) assert_near(bytes, size_bytes * 9 / 8, 1);
      if (link->kind == PL_LINK_NIC) nic_bytes += bytes;
    }
    /* 2 trees with 3 edges, up and down, each end a NIC, 8 ranks: 2 * 3 * 2 * 2 * 8 halves of shards */
    assert_near(nic_bytes, n == 8 ? 0 : 2 * 3 * 2 * 2 * 8 * size_bytes / 16, 10);
  }
  synthetic_cluster_release(cluster);
}

/* 8 GPUs on 300 GB/s ports with 1 us per hop: the closed form of netmodel/collective/CALIBRATED.md, small and large. */
static void closed_form_on_one_node(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(
      &(synthetic_options){.n_nodes = 1, .gpus_per_node = 8, .nvlink_Bps = 300e9, .nvlink_latency_s = 0.5e-6});
  const pl_collective_profile *profile = shipped_collective_profile(&arena);
  const pl_wiring *port = &profile->inside[2];
  assert_string_equal(port->name, "nvswitch-nvlink3");
  uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7};
  pl_collective_options options = {.profile = profile};
  pl_collective_group *group;
  assert_int_equal(pl_collective_group_take(cluster, members, 8, &options, &arena, &group, NULL), PL_OK);
  for (double size_bytes = 1024; size_bytes < 2e9; size_bytes *= 1024) {
    double least_us = INFINITY;
    for (int p = 0; p < PL_PROTOCOL_COUNT; p++) {
      const pl_protocol_cost *cost = &port->cost[PL_TUNED_RING][p];
      double factor = p == PL_PROTOCOL_LL ? 2 : p == PL_PROTOCOL_LL128 ? 128.0 / 120 : 1;
      double wire_us = factor * 2 * 7 / 8.0 * size_bytes / 300e3 / cost->rate;
      double local_us = port->local * size_bytes / 8 / 300e3;
      least_us = fmin(least_us, port->launch_us + cost->start_us + 14 * (1 + cost->step_us) + wire_us +
                                    cost->ramp * sqrt(wire_us) + local_us);
    }
    pl_fluid_collective fluid;
    assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, size_bytes, &arena, &fluid, NULL), PL_OK);
    double alone_us =
        1e6 * (pl_ticks_to_s(fluid.spec.latency) + fluid.progress_bytes / pl_fluid_alone_Bps(cluster, &fluid));
    assert_near(alone_us, least_us, 1e-5 + 1e-9 * least_us);
  }
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_least_time_runs_and_grows_with_size), cmocka_unit_test(like_groups_cost_alike),
      cmocka_unit_test(nvls_moves_what_it_should), cmocka_unit_test(closed_form_on_one_node)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
