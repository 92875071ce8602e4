/* Groups over nodes that are wired unlike, against closed forms: each kind of node is priced by its own entries.
 *
 * Two machines (tests/unit/platforms/mixed-nodes.xml): a0 and a1 on NVLink of 100 GB/s, NIC of 5 GB/s; b0 and b1 on
 * PCIe of 8 GB/s, which is on the way to the NIC of 6 GB/s, too. One ring a0 a1 b0 b1, one protocol, S bytes per
 * member; for an all-reduce each link carries 3/2 S. With entries of rate r, steps t, launch L and start s
 *
 *   pace       the slowest of 100 r(nvlink), 8 r(pcie), 5 r(near), 6 r(far) GB/s
 *   latency    the larger L + s of near and far; two rounds of the hops' own latencies, 1, 16, 2 and 16 us, less the
 *              least two neighbours of them; two rounds of t(nvlink), t(pcie), t(near) and t(far), less two hops inside
 *              nodes of the kind that stands first
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/platform/platform.h"
#include "tests/support/arena_fixture.h"

typedef struct figures {
  double nvlink, pcie, near, far; /* rates */
} figures;

static const double nvlink_us = 3, pcie_us = 7, near_us = 20, far_us = 40;

static const pl_collective_profile *profile_of(const figures *rates) {
  static const char cost[] = "{\"Simple\":{\"start_us\":%g,\"step_us\":%g,\"rate\":%g,\"ramp\":0}}";
  char ring[4][128], text[2048];
  snprintf(ring[0], sizeof ring[0], cost, 1.0, nvlink_us, rates->nvlink);
  snprintf(ring[1], sizeof ring[1], cost, 1.0, pcie_us, rates->pcie);
  snprintf(ring[2], sizeof ring[2], cost, 2.0, near_us, rates->near);
  snprintf(ring[3], sizeof ring[3], cost, 5.0, far_us, rates->far);
  int size = snprintf(
      text, sizeof text,
      "{\"library\":\"toy\",\"inside\":[{\"name\":\"nvlink\",\"link\":\"nvlink\",\"launch_us\":1,\"local\":0,"
      "\"ring\":%s,\"direct\":%s},{\"name\":\"pcie\",\"link\":\"pcie\",\"launch_us\":1,\"local\":0,\"ring\":%s,"
      "\"direct\":%s}],\"between\":[{\"name\":\"near\",\"nic_GBps\":[0,5.5],\"launch_us\":10,\"ring\":%s,\"direct\":%s}"
      ","
      "{\"name\":\"far\",\"nic_GBps\":[5.5,9],\"launch_us\":30,\"ring\":%s,\"direct\":%s}]}",
      ring[0], ring[0], ring[1], ring[1], ring[2], ring[2], ring[3], ring[3]);
  pl_error error = PL_ERROR_INIT;
  pl_collective_profile *profile = PL_TAKE(&arena, pl_collective_profile, 1);
  if (profile == NULL || pl_collective_profile_parse("toy", text, (size_t)size, &arena, profile, &error) != PL_OK)
    fail_msg("%s", error.message);
  return profile;
}

static pl_platform *load(void) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load("tests/unit/platforms/mixed-nodes.xml", "platforms/devices", &platform, &error) != PL_OK)
    fail_msg("%s", error.message);
  return platform;
}

static pl_collective_group *group_of(const pl_platform *platform, uint32_t first, uint32_t n, const figures *rates) {
  const uint32_t members[] = {0, 1, 2, 3};
  const pl_collective_options options = {.algorithm = PL_ALGORITHM_RING, .profile = profile_of(rates)};
  pl_collective_group *group;
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_group_take(pl_platform_cluster(platform), members + first, n, &options, &arena, &group, &error) !=
      PL_OK)
    fail_msg("%s", error.message);
  return group;
}

static void each_kind_has_its_entries(void **state) {
  (void)state;
  const figures rates = {1, 1, 1, 1};
  pl_platform *platform = load();
  const pl_wiring *inside, *between;
  pl_collective_group *mixed = group_of(platform, 0, 4, &rates);
  assert_true(pl_collective_group_entries(mixed, 0, &inside, &between));
  assert_string_equal(inside->name, "nvlink");
  assert_string_equal(between->name, "near");
  assert_true(pl_collective_group_entries(mixed, 1, &inside, &between));
  assert_string_equal(inside->name, "pcie");
  assert_string_equal(between->name, "far");
  assert_false(pl_collective_group_entries(mixed, 2, &inside, &between));
  pl_collective_group *alone = group_of(platform, 2, 2, &rates);
  assert_true(pl_collective_group_entries(alone, 0, &inside, &between) && between == NULL);
  assert_string_equal(inside->name, "pcie");
  assert_false(pl_collective_group_entries(alone, 1, &inside, &between));
  pl_platform_destroy(platform);
}

static void a_ring_moves_at_its_slowest_hop(void **state) {
  (void)state;
  static const struct {
    figures rates;
    double pace_GBps;
  } cases[] = {{{0.9, 0.5, 0.9, 0.9}, 4},    /* PCIe: 8 * 0.5 */
               {{0.9, 0.9, 0.8, 0.9}, 4},    /* the NIC of the NVLink machine: 5 * 0.8 */
               {{0.9, 0.9, 0.9, 0.25}, 1.5}, /* the other NIC: 6 * 0.25 */
               {{0.02, 0.9, 0.9, 0.9}, 2}};  /* NVLink: 100 * 0.02 */
  const double size_bytes = 1e9;
  pl_platform *platform = load();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_collective_group *group = group_of(platform, 0, 4, &cases[i].rates);
    pl_fluid_collective fluid;
    assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, size_bytes, &arena, &fluid, NULL), PL_OK);
    double pace_Bps = fmin(fluid.spec.rate_cap_Bps, 5e9);
    if (fabs(pace_Bps - 1e9 * cases[i].pace_GBps) > 1) fail_msg("case %zu: %g B/s", i, pace_Bps);
    double routes_us = 2 * (1 + 16 + 2 + 16) - (1 + 16);
    double steps_us = 2 * (nvlink_us + pcie_us + near_us + far_us) - 2 * nvlink_us;
    double latency_us = 30 + 5 + routes_us + steps_us;
    double found_us = 1e6 * pl_ticks_to_s(fluid.spec.latency);
    if (fabs(found_us - latency_us) > 1e-3) fail_msg("case %zu: %g us, formula %g us", i, found_us, latency_us);
  }
  pl_platform_destroy(platform);
}

static void an_exchange_waits_for_the_slowest_nodes(void **state) {
  (void)state;
  const figures rates = {0.9, 0.9, 0.9, 0.9};
  pl_platform *platform = load();
  pl_collective_group *group = group_of(platform, 0, 4, &rates);
  pl_fluid_collective fluid;
  assert_int_equal(pl_collective_fluid(group, PL_ALL_TO_ALL, 4e6, &arena, &fluid, NULL), PL_OK);
  /* A peer inside, two outside, each priced by the node's own entries; the longest way is 16 us. */
  double latency_us = 30 + 5 + 16 + fmax(nvlink_us + 2 * near_us, pcie_us + 2 * far_us);
  double found_us = 1e6 * pl_ticks_to_s(fluid.spec.latency);
  if (fabs(found_us - latency_us) > 1e-3) fail_msg("%g us, formula %g us", found_us, latency_us);
  pl_platform_destroy(platform);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_kind_has_its_entries, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_ring_moves_at_its_slowest_hop, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_exchange_waits_for_the_slowest_nodes, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
