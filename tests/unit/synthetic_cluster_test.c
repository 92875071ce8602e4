/* The synthetic cluster itself: shapes, routes, determinism, hooks, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

static void check_all_routes(const pl_cluster *cluster) {
  pl_error error = PL_ERROR_INIT;
  for (uint32_t a = 0; a < cluster->n_devices; a++)
    for (uint32_t b = 0; b < cluster->n_devices; b++) {
      pl_route route;
      if (a == b) continue;
      assert_int_equal(pl_cluster_route(cluster, a, b, &route, &error), PL_OK);
      assert_true(route.n_links >= 1);
      pl_ticks latency = 0;
      for (uint32_t i = 0; i < route.n_links; i++) {
        assert_true(route.links[i] < cluster->n_links);
        for (uint32_t j = 0; j < i; j++)
          assert_true(route.links[i] != route.links[j]);
        latency += cluster->links[route.links[i]].latency;
      }
      assert_int_equal(latency, route.latency);
    }
}

static void nvswitch_route_is_two_ports(void **state) {
  (void)state;
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = 4;
  options.leaf_nodes = 2;
  pl_cluster *cluster = synthetic_cluster_create(&options);
  pl_error error = PL_ERROR_INIT;
  pl_route route;
  assert_int_equal(pl_cluster_route(cluster, 1, 3, &route, &error), PL_OK);
  assert_int_equal(route.n_links, 2);
  assert_int_equal(route.links[0], synthetic_cluster_link(cluster, "n0_g1_nv_up"));
  assert_int_equal(route.links[1], synthetic_cluster_link(cluster, "n0_g3_nv_down"));
  assert_int_equal(pl_cluster_route(cluster, 1, 8 * 3 + 2, &route, &error), PL_OK);
  const char *names[] = {"n0_g1_pcie_up", "n0_nic1_up", "leaf0_up", "leaf1_down", "n3_nic2_down", "n3_g2_pcie_down"};
  assert_int_equal(route.n_links, 6);
  for (uint32_t i = 0; i < 6; i++)
    assert_string_equal(cluster->links[route.links[i]].name, names[i]);
  check_all_routes(cluster);
  assert_int_equal(pl_cluster_route(cluster, 1, 1, &route, &error), PL_BAD_INPUT);
  synthetic_cluster_release(cluster);
}

static void hooks_change_one_link(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 2, .gpus_per_node = 4});
  uint32_t link = synthetic_cluster_link(cluster, "n1_nic2_up");
  assert_int_not_equal(link, PL_NONE);
  double before = cluster->links[link].capacity_Bps;
  synthetic_cluster_scale_link(cluster, link, 0.25);
  synthetic_cluster_set_policy(cluster, link, PL_LINK_FATPIPE);
  synthetic_cluster_set_latency(cluster, link, 5e-6);
  synthetic_cluster_set_profile(cluster, 3, 1);
  assert_true(cluster->links[link].capacity_Bps == before / 4);
  assert_int_equal(cluster->links[link].policy, PL_LINK_FATPIPE);
  assert_string_equal(pl_cluster_profile(cluster, 3)->name, "SYN-B");
  pl_route route;
  assert_int_equal(pl_cluster_route(cluster, 6, 0, &route, NULL), PL_OK);
  assert_int_equal(route.latency, pl_ticks_from_s(5e-6)); /* every other latency is 0 */
  synthetic_cluster_release(cluster);
}

static void random_clusters_repeat(void **state) {
  (void)state;
  uint64_t seed = test_seed(1);
  for (uint64_t i = 0; i < 200; i++) {
    pl_cluster *a = synthetic_cluster_random(seed + i, 64), *b = synthetic_cluster_random(seed + i, 64);
    assert_true(a->n_devices >= 1 && a->n_devices <= 64);
    assert_int_equal(a->n_devices, b->n_devices);
    assert_int_equal(a->n_links, b->n_links);
    for (uint32_t link = 0; link < a->n_links; link++) {
      assert_true(a->links[link].capacity_Bps == b->links[link].capacity_Bps);
      assert_string_equal(a->links[link].name, b->links[link].name);
    }
    check_all_routes(a);
    synthetic_cluster_release(a);
    synthetic_cluster_release(b);
  }
}

static void *ask_all(void *cluster) {
  check_all_routes(cluster);
  return NULL;
}

static void threads_share_it(void **state) {
  (void)state;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 8});
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, ask_all, cluster), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nvswitch_route_is_two_ports),
      cmocka_unit_test(hooks_change_one_link),
      cmocka_unit_test(random_clusters_repeat),
      cmocka_unit_test(threads_share_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
