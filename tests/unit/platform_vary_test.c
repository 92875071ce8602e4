/* Variations of a platform: what is read, what is changed and what is not, and what is refused. On two-nodes.xml: a
 * pair of Toy-8GB (with measured ops) on NVLink behind a NIC, and a Toy-16GB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_vary.h"

enum { NVLINK_UP = 0, NVLINK_DOWN, NIC_UP, NIC_DOWN, PCIE, BACKBONE, N_LINKS };

typedef struct fixture {
  pl_arena arena;
  pl_platform *platform;
  const pl_cluster *base;
} fixture;

static fixture *begin(void **state) {
  fixture *own = *state;
  pl_arena_reset(&own->arena);
  return own;
}

static int set_up(void **state) {
  static fixture own; /* a test program's */
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&own.arena, 0);
  if (pl_platform_load("tests/unit/platforms/two-nodes.xml", NULL, &own.platform, &error) != PL_OK)
    fail_msg("%s", error.message);
  own.base = pl_platform_cluster(own.platform);
  *state = &own;
  return 0;
}

static int tear_down(void **state) {
  fixture *own = *state;
  pl_platform_destroy(own->platform);
  pl_arena_release(&own->arena);
  return 0;
}

static pl_vary_grid grid_of(fixture *own, const char *const *texts, uint32_t n) {
  pl_error error = PL_ERROR_INIT;
  pl_vary_grid grid;
  if (pl_vary_grid_parse(texts, n, &own->arena, &grid, &error) != PL_OK) fail_msg("%s", error.message);
  return grid;
}

static const pl_cluster *point_of(fixture *own, const pl_vary_grid *grid, uint32_t point) {
  pl_error error = PL_ERROR_INIT;
  const pl_cluster *cluster;
  if (pl_vary_cluster_take(grid, point, own->base, &own->arena, &cluster, &error) != PL_OK)
    fail_msg("%s", error.message);
  return cluster;
}

static const pl_cluster *varied(fixture *own, const char *text) {
  pl_vary_grid grid = grid_of(own, &text, 1);
  return point_of(own, &grid, 0);
}

/* All links but those of the mask are the base's. */
static void expect_others(const fixture *own, const pl_cluster *cluster, uint32_t mask) {
  assert_int_equal(cluster->n_links, N_LINKS);
  for (uint32_t i = 0; i < N_LINKS; i++) {
    const pl_link *link = &cluster->links[i], *was = &own->base->links[i];
    bool same = link->capacity_Bps == was->capacity_Bps && link->latency == was->latency;
    assert_int_equal(same, (mask >> i & 1) == 0);
    assert_string_equal(link->name, was->name);
    assert_int_equal(link->kind, was->kind);
    assert_int_equal(link->policy, was->policy);
  }
}

static void links_by_kind_and_name(void **state) {
  fixture *own = begin(state);
  const pl_cluster *cluster = varied(own, "link:nic.bandwidth=400Gbps");
  expect_others(own, cluster, 1 << NIC_UP | 1 << NIC_DOWN);
  assert_true(cluster->links[NIC_UP].capacity_Bps == 50e9);
  expect_others(own, varied(own, "link:nic10.bandwidth=x3"), 1 << NIC_UP | 1 << NIC_DOWN);
  expect_others(own, varied(own, "link:nic10_UP.bandwidth=x3"), 1 << NIC_UP);
  expect_others(own, varied(own, "link:n*.bandwidth=x3"),
                1 << NIC_UP | 1 << NIC_DOWN | 1 << NVLINK_UP | 1 << NVLINK_DOWN);
  /* What two parts name is varied once. */
  cluster = varied(own, "link:pcie+pc*+fabric.bandwidth=x2");
  expect_others(own, cluster, 1 << PCIE | 1 << BACKBONE);
  assert_true(cluster->links[PCIE].capacity_Bps == 32e9);
  assert_true(own->base->links[PCIE].capacity_Bps == 16e9); /* the base is left alone */
}

static void latencies_reach_routes(void **state) {
  fixture *own = begin(state);
  const pl_cluster *cluster = varied(own, "link:fabric.latency=30us");
  pl_route route, was;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_cluster_route(own->base, 0, 2, &was, &error), PL_OK);
  assert_int_equal(pl_cluster_route(cluster, 0, 2, &route, &error), PL_OK);
  assert_int_equal(route.n_links, was.n_links);
  assert_memory_equal(route.links, was.links, was.n_links * sizeof *was.links);
  assert_int_equal(route.latency - was.latency, pl_ticks_from_s(30e-6) - pl_ticks_from_s(3e-6));
  assert_int_equal(pl_cluster_route(varied(own, "link:nic.latency=0s"), 0, 2, &route, &error), PL_OK);
  assert_int_equal(was.latency - route.latency, pl_ticks_from_s(2e-6));
}

static void devices(void **state) {
  fixture *own = begin(state);
  const pl_cluster *cluster = varied(own, "device:Toy-8GB.memory=32GiB");
  assert_true(pl_cluster_profile(cluster, 0)->memory_bytes == 32 * 0x1p30);
  assert_true(pl_cluster_profile(cluster, 2)->memory_bytes == pl_cluster_profile(own->base, 2)->memory_bytes);
  assert_int_equal(pl_cluster_profile(cluster, 2)->digest, pl_cluster_profile(own->base, 2)->digest);
  assert_int_not_equal(pl_cluster_profile(cluster, 0)->digest, pl_cluster_profile(own->base, 0)->digest);
  cluster = varied(own, "device:Toy-16GB.peak=x2");
  const pl_device_profile *profile = pl_cluster_profile(cluster, 2), *was = pl_cluster_profile(own->base, 2);
  for (int t = 0; t < PL_DTYPE_COUNT; t++)
    assert_true(profile->peak_flops[t] == 2 * was->peak_flops[t]);
  assert_true(profile->bandwidth_Bps == was->bandwidth_Bps);
  assert_true(pl_cluster_profile(varied(own, "device:Toy-16GB.bandwidth=x2"), 2)->bandwidth_Bps ==
              2 * was->bandwidth_Bps);
}

static void another_type_takes_the_place(void **state) {
  fixture *own = begin(state);
  const pl_cluster *cluster = varied(own, "device:Toy-8GB=Toy-16GB");
  assert_int_equal(cluster->n_profiles, 1); /* the two have become one */
  for (uint32_t d = 0; d < 3; d++)
    assert_string_equal(pl_cluster_profile(cluster, d)->name, "Toy-16GB");
  /* An exchange: each axis finds its type as the file names it. */
  const char *const texts[] = {"device:Toy-8GB=Toy-16GB", "device:Toy-16GB=Toy-8GB"};
  pl_vary_grid grid = grid_of(own, texts, 2);
  cluster = point_of(own, &grid, 0);
  assert_int_equal(cluster->n_profiles, 2);
  assert_string_equal(pl_cluster_profile(cluster, 1)->name, "Toy-16GB");
  assert_string_equal(pl_cluster_profile(cluster, 2)->name, "Toy-8GB");
}

static void fewer_nodes(void **state) {
  fixture *own = begin(state);
  const pl_cluster *cluster = varied(own, "nodes=1");
  assert_int_equal(cluster->n_nodes, 1);
  assert_int_equal(cluster->n_devices, 2);
  assert_int_equal(cluster->n_profiles, 1);
}

static void grids(void **state) {
  fixture *own = begin(state);
  const char *const texts[] = {"link:nic.bandwidth=x1,100Gbps,x2", "nodes=1,2"};
  pl_vary_grid grid = grid_of(own, texts, 2);
  assert_int_equal(grid.n_points, 6);
  char text[PL_VARY_LABEL_BYTES];
  pl_vary_format(&grid, 3, text, sizeof text);
  assert_string_equal(text, "link:nic.bandwidth=100Gbps nodes=2");
  assert_int_equal(pl_vary_format(&grid, 3, text, 8), strlen("link:nic.bandwidth=100Gbps nodes=2"));
  assert_string_equal(text, "link:ni");
  /* The NIC has 100 Gb/s already: points 1 and 3 are the base, the others differ from it and from each other. */
  uint64_t digests[6];
  for (uint32_t p = 0; p < 6; p++)
    digests[p] = point_of(own, &grid, p)->digest;
  assert_int_equal(digests[1], own->base->digest);
  assert_int_equal(digests[3], own->base->digest);
  assert_int_equal(digests[0], digests[2]);
  for (uint32_t a = 0; a < 6; a++)
    for (uint32_t b = 0; b < a; b++)
      assert_int_equal(digests[a] == digests[b], (a == 3 && b == 1) || (a == 2 && b == 0));
  assert_int_not_equal(varied(own, "link:nic.bandwidth=x2")->digest, varied(own, "link:nic.bandwidth=x3")->digest);
  /* Later axes act on what earlier ones made. */
  const char *const both[] = {"link:nic.bandwidth=200Gbps", "link:nic*.bandwidth=x2"};
  grid = grid_of(own, both, 2);
  assert_true(point_of(own, &grid, 0)->links[NIC_UP].capacity_Bps == 50e9);
}

static void refuse(fixture *own, const char *text, const char *says) {
  pl_error error = PL_ERROR_INIT;
  pl_vary_grid grid;
  const pl_cluster *cluster = NULL;
  pl_code code = pl_vary_grid_parse(&text, 1, &own->arena, &grid, &error);
  if (code == PL_OK) code = pl_vary_cluster_take(&grid, 0, own->base, &own->arena, &cluster, &error);
  if (code != PL_BAD_INPUT || strstr(error.message, says) == NULL || cluster != NULL)
    fail_msg("'%s': code %d, '%s' without '%s'", text, code, error.message, says);
}

static void mistakes(void **state) {
  fixture *own = begin(state);
  refuse(own, "link:nic.bandwidth", "no '='");
  refuse(own, "=3", "no '='");
  refuse(own, "nic.bandwidth=x2", "write link:KIND.bandwidth=");
  refuse(own, "link:.bandwidth=x2", "which link?");
  refuse(own, "link:nic.speed=x2", "a link has no 'speed': it has bandwidth and latency");
  refuse(own, "link:nic=x2", "a link has no ''");
  refuse(own, "link:nic.bandwidth=100", "'100' has no unit: write 100Gbps");
  refuse(own, "link:nic.bandwidth=100Gb", "100Gb");
  refuse(own, "link:nic.bandwidth=0Gbps", "must be more than zero");
  refuse(own, "link:nic.bandwidth=x0", "must be more than zero");
  refuse(own, "link:nic.bandwidth=x-1", "-1");
  refuse(own, "link:nic.bandwidth=x2,,x3", "a value is empty");
  refuse(own, "link:nic.bandwidth=x2,x2", "there twice");
  refuse(own, "link:nic.latency=20000000s", "out of range");
  refuse(own, "link:nic.bandwidth=x1e300", "out of range");
  refuse(own, "link:cpu.bandwidth=x2", "no link of the kind 'cpu'; its kinds are: nvlink, pcie, nic, fabric");
  refuse(own, "link:infiniband.bandwidth=x2", "no link named 'infiniband'; its kinds are: nvlink, pcie, nic, fabric");
  refuse(own, "link:nic+eth*.bandwidth=x2", "no link named 'eth*'");
  refuse(own, "device:Toy-16GB.speed=x2", "a device has no 'speed'");
  refuse(own, "device:Toy-16GB.peak=40Tf", "'40Tf' has no factor");
  refuse(own, "device:Toy-16GB.memory=100MB", "is not more than");
  refuse(own, "device:A100.memory=x2", "no device of the type 'A100'; its types are: Toy-8GB, Toy-16GB");
  refuse(own, "device:Toy-16GB=A1000", "unknown device 'A1000'; known are: A10");
  refuse(own, "device:Toy-16GB=../x", "is not the name of a device profile");
  refuse(own, "device:Toy-8GB.peak=x2", "measured times of 3 ops");
  refuse(own, "nodes=3", "has 2");
  refuse(own, "nodes=0", "nodes");
  refuse(own, "nodes=x2", "nodes");
}

static void too_many(void **state) {
  fixture *own = begin(state);
  pl_error error = PL_ERROR_INIT;
  pl_vary_grid grid;
  const char *texts[PL_VARY_AXES_MAX + 1], *const twice[] = {"nodes=1", "nodes=2"};
  for (int i = 0; i <= PL_VARY_AXES_MAX; i++)
    texts[i] = "nodes=1";
  assert_int_equal(pl_vary_grid_parse(texts, PL_VARY_AXES_MAX + 1, &own->arena, &grid, &error), PL_BAD_INPUT);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_vary_grid_parse(twice, 2, &own->arena, &grid, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "there twice"));
  assert_int_equal(pl_vary_grid_parse(NULL, 0, &own->arena, &grid, NULL), PL_OK);
  assert_int_equal(grid.n_points, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(links_by_kind_and_name),
      cmocka_unit_test(latencies_reach_routes),
      cmocka_unit_test(devices),
      cmocka_unit_test(another_type_takes_the_place),
      cmocka_unit_test(fewer_nodes),
      cmocka_unit_test(grids),
      cmocka_unit_test(mistakes),
      cmocka_unit_test(too_many),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
