/* Channels and conservation, on random clusters and groups and on the machines of platforms/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/platform/platform.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

enum { MOST_DEVICES = 64 };

static uint32_t random_group(uint64_t *state, const pl_cluster *cluster, uint32_t *members) {
  uint32_t n = random_between(state, 1, cluster->n_devices);
  for (uint32_t i = 0; i < cluster->n_devices; i++)
    members[i] = i;
  if (random_below(state, 2)) return n; /* the first n, in order */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = random_between(state, i, cluster->n_devices - 1), keep = members[i];
    members[i] = members[j];
    members[j] = keep;
  }
  return n;
}

static pl_collective_group *take_group(const pl_cluster *cluster, const uint32_t *members, uint32_t n,
                                       const pl_collective_options *options, pl_arena *arena) {
  pl_collective_group *group;
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_group_take(cluster, members, n, options, arena, &group, &error) != PL_OK)
    fail_msg("%s", error.message);
  return group;
}

static void check_rings(const pl_cluster *cluster, const pl_collective_group *group, const uint32_t *members,
                        uint32_t n) {
  assert_true(pl_collective_group_channels(group) >= 1);
  for (uint32_t c = 0; c < pl_collective_group_channels(group); c++) {
    const uint32_t *ring = pl_collective_group_ring(group, c);
    uint32_t visits[MOST_DEVICES] = {0}, changes = 0, nodes = 0;
    bool seen[MOST_DEVICES] = {0};
    for (uint32_t i = 0; i < n; i++) {
      uint32_t node = cluster->devices[ring[i]].node;
      visits[ring[i]]++;
      changes += node != cluster->devices[ring[(i + 1) % n]].node;
      nodes += !seen[node];
      seen[node] = true;
    }
    for (uint32_t i = 0; i < n; i++)
      assert_int_equal(visits[members[i]], 1);
    assert_int_equal(changes, nodes == 1 ? 0 : nodes); /* each node is entered once */
  }
}

static void every_ring_visits_every_member_once(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(11);
  for (uint64_t i = 0; i < 400; i++) {
    uint64_t state = seed + i;
    uint32_t members[MOST_DEVICES];
    pl_cluster *cluster = synthetic_cluster_random(seed + i, MOST_DEVICES);
    uint32_t n = random_group(&state, cluster, members);
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_collective_options options = {0};
    pl_collective_group *group = take_group(cluster, members, n, &options, &arena), *again;
    check_rings(cluster, group, members, n);
    again = take_group(cluster, members, n, &options, &arena);
    assert_int_equal(pl_collective_group_channels(group), pl_collective_group_channels(again));
    assert_memory_equal(pl_collective_group_ring(group, 0), pl_collective_group_ring(again, 0), n * sizeof(uint32_t));
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

/* ---- volume per link: fluid = chunked ---- */

static void add_fluid_volume(const pl_fluid_collective *fluid, bool merged, double *volume) {
  for (; fluid != NULL; fluid = fluid->next)
    for (uint32_t i = 0; i < fluid->spec.n_uses; i++) {
      double weight = fluid->uses[i].weight;
      assert_true(weight > 0 && (merged || weight == floor(weight)));
      assert_true(i == 0 || fluid->uses[i].link > fluid->uses[i - 1].link);
      volume[fluid->uses[i].link] += weight * fluid->progress_bytes;
    }
}

static void add_chunked_volume(const pl_cluster *cluster, const pl_chunked_collective *chunked, double *volume) {
  for (uint32_t s = 0; s < chunked->n_steps; s++) {
    const pl_collective_step *step = &chunked->steps[s];
    pl_route route;
    assert_int_equal(pl_cluster_route(cluster, step->source, step->destination, &route, NULL), PL_OK);
    for (uint32_t i = 0; i < route.n_links; i++)
      if (cluster->links[route.links[i]].policy == PL_LINK_SHARED) volume[route.links[i]] += step->size_bytes;
    for (uint32_t d = 0; d < step->n_dependencies; d++)
      assert_true(chunked->dependencies[step->first_dependency + d] < s);
  }
}

static void compare_volumes(const pl_cluster *cluster, const pl_collective_group *group, pl_collective_kind kind,
                            double size_bytes, uint32_t chunks, bool merged, pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_fluid_collective fluid;
  pl_chunked_collective chunked;
  assert_int_equal(pl_collective_fluid(group, kind, size_bytes, arena, &fluid, &error), PL_OK);
  assert_int_equal(pl_collective_chunked(group, kind, size_bytes, chunks, arena, &chunked, &error), PL_OK);
  double *flowing = calloc(cluster->n_links + 1, sizeof *flowing), *cut = calloc(cluster->n_links + 1, sizeof *cut);
  assert_true(flowing != NULL && cut != NULL);
  if (merged) assert_int_equal(pl_fluid_collective_merge(cluster, arena, &fluid, &error), PL_OK);
  add_fluid_volume(&fluid, merged, flowing);
  add_chunked_volume(cluster, &chunked, cut);
  for (uint32_t link = 0; link < cluster->n_links; link++)
    if (fabs(flowing[link] - cut[link]) > 1e-9 * fmax(flowing[link], cut[link]))
      fail_msg("%s, link %s: fluid carries %.17g bytes, chunked %.17g", pl_collective_name(kind),
               cluster->links[link].name, flowing[link], cut[link]);
  free(flowing);
  free(cut);
}

static void fluid_and_chunked_carry_the_same_bytes(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(12);
  for (uint64_t i = 0; i < 300; i++) {
    uint64_t state = seed + i;
    uint32_t members[MOST_DEVICES];
    pl_cluster *cluster = synthetic_cluster_random(seed + 1000 + i, 32);
    uint32_t n = random_group(&state, cluster, members);
    pl_arena arena;
    pl_arena_init(&arena, 0);
    for (int algorithm = 0; algorithm < PL_ALGORITHM_COUNT; algorithm++) {
      pl_collective_options options = {.algorithm = (pl_collective_algorithm)algorithm, .step_overhead_s = 1e-6};
      pl_collective_group *group = take_group(cluster, members, n, &options, &arena);
      for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++) {
        double size_bytes = random_log(&state, 1, 1e9);
        uint32_t chunks = random_between(&state, 1, 5);
        compare_volumes(cluster, group, (pl_collective_kind)kind, size_bytes, chunks, random_below(&state, 2), &arena);
      }
    }
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

static void one_member_or_no_bytes_is_nothing(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.n_nodes = 2});
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t members[3] = {3, 9, 4};
  for (int algorithm = 0; algorithm < PL_ALGORITHM_COUNT; algorithm++)
    for (uint32_t n = 1; n <= 3; n++) {
      pl_collective_options options = {.algorithm = (pl_collective_algorithm)algorithm, .step_overhead_s = 1e-6};
      pl_collective_group *group = take_group(cluster, members, n, &options, &arena);
      for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++)
        for (int size = 0; size < 2; size++) {
          pl_fluid_collective fluid;
          pl_chunked_collective chunked;
          assert_int_equal(pl_collective_fluid(group, (pl_collective_kind)kind, size, &arena, &fluid, NULL), PL_OK);
          assert_int_equal(pl_collective_chunked(group, (pl_collective_kind)kind, size, 2, &arena, &chunked, NULL),
                           PL_OK);
          bool nothing = n == 1 || size == 0;
          assert_true(nothing == (fluid.progress_bytes <= 0) && nothing == (chunked.n_steps == 0));
          assert_true(nothing == (fluid.spec.latency == 0) && nothing == (fluid.spec.n_uses == 0));
        }
    }
  pl_arena_release(&arena);
  synthetic_cluster_release(cluster);
}

/* ---- symmetry ---- */

/* A group that takes the same local ranks of every node of a regular cluster: every node's links must be used alike. */
static void check_like_nodes(const pl_cluster *cluster, const pl_fluid_collective *fluid) {
  uint32_t per_node = 0;
  double *weight = calloc(cluster->n_links + 1, sizeof *weight);
  assert_true(weight != NULL);
  for (uint32_t i = 0; i < fluid->spec.n_uses; i++)
    weight[fluid->uses[i].link] = fluid->uses[i].weight;
  while (per_node < cluster->n_links && strncmp(cluster->links[per_node].name, "n0_", 3) == 0)
    per_node++;
  for (uint32_t node = 1; node < cluster->n_nodes; node++)
    for (uint32_t link = 0; link < per_node; link++)
      if (weight[link] != weight[node * per_node + link])
        fail_msg("%s has weight %g, %s has %g", cluster->links[link].name, weight[link],
                 cluster->links[node * per_node + link].name, weight[node * per_node + link]);
  free(weight);
}

/* A group that was made ready for all-to-alls gives those that it gave before, of any size. */
static void check_prepared(pl_collective_group *group, double size_bytes, pl_arena *arena) {
  static const pl_collective_kind kinds[] = {PL_ALL_TO_ALL, PL_ALL_GATHER, PL_ALL_REDUCE, PL_BROADCAST};
  enum { N = sizeof kinds / sizeof *kinds };
  pl_fluid_collective before[N], after;
  for (size_t i = 0; i < N; i++)
    assert_int_equal(pl_collective_fluid(group, kinds[i], size_bytes, arena, &before[i], NULL), PL_OK);
  assert_int_equal(pl_collective_group_prepare(group, PL_ALL_TO_ALL, arena, NULL), PL_OK);
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(pl_collective_fluid(group, kinds[i], size_bytes, arena, &after, NULL), PL_OK);
    assert_int_equal(after.spec.n_uses, before[i].spec.n_uses);
    assert_true(after.spec.latency == before[i].spec.latency && after.progress_bytes == before[i].progress_bytes);
    assert_true(after.spec.rate_cap_Bps == before[i].spec.rate_cap_Bps);
    for (uint32_t use = 0; use < after.spec.n_uses; use++)
      assert_true(after.uses[use].link == before[i].uses[use].link &&
                  after.uses[use].weight == before[i].uses[use].weight);
  }
}

static void prepared_groups_give_the_same(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(17);
  for (uint64_t i = 0; i < 200; i++) {
    uint64_t state = seed + i;
    uint32_t members[MOST_DEVICES], n = 0;
    pl_cluster *cluster = synthetic_cluster_random_regular(seed + i, MOST_DEVICES);
    for (uint32_t device = 0; device < cluster->n_devices; device++)
      if (random_below(&state, 3) > 0) members[n++] = device;
    pl_collective_options options = {.algorithm = i % 2 == 0 ? PL_ALGORITHM_DIRECT : PL_ALGORITHM_AUTO};
    pl_arena arena;
    pl_arena_init(&arena, 0);
    if (n > 1) check_prepared(take_group(cluster, members, n, &options, &arena), 1e6 * (double)(1 + i), &arena);
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

static void like_nodes_are_used_alike(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(13);
  for (uint64_t i = 0; i < 400; i++) {
    uint64_t state = seed + i;
    uint32_t members[MOST_DEVICES], n = 0;
    pl_cluster *cluster = synthetic_cluster_random_regular(seed + i, MOST_DEVICES);
    uint32_t g = cluster->nodes[0].n_devices, mask = 1 + random_below(&state, (1u << g) - 1);
    for (uint32_t node = 0; node < cluster->n_nodes; node++)
      for (uint32_t gpu = 0; gpu < g; gpu++)
        if (mask >> gpu & 1) members[n++] = node * g + gpu;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
    pl_collective_group *group = take_group(cluster, members, n, &options, &arena);
    pl_fluid_collective fluid;
    assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, 1e9, &arena, &fluid, NULL), PL_OK);
    check_like_nodes(cluster, &fluid);
    assert_int_equal(pl_collective_fluid(group, PL_ALL_TO_ALL, 1e9, &arena, &fluid, NULL), PL_OK);
    check_like_nodes(cluster, &fluid);
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

/* ---- known machines ---- */

typedef struct expected_channels {
  synthetic_options options;
  uint32_t n; /* members: the first n devices */
  uint32_t channels;
  double total_Bps; /* of all channels */
} expected_channels;

static double total_rate(const pl_cluster *cluster, const pl_collective_group *group, pl_arena *arena) {
  pl_fluid_collective fluid;
  assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, 1e9, arena, &fluid, NULL), PL_OK);
  double rate_Bps = fluid.spec.rate_cap_Bps;
  for (uint32_t i = 0; i < fluid.spec.n_uses; i++)
    rate_Bps = fmin(rate_Bps, cluster->links[fluid.uses[i].link].capacity_Bps / fluid.uses[i].weight);
  return rate_Bps * pl_collective_group_channels(group);
}

static void channels_of_known_shapes(void **unused) {
  (void)unused;
  const expected_channels cases[] = {
      {{.n_nodes = 1, .nvlink_Bps = 300e9}, 8, 1, 300e9},
      {{.n_nodes = 1, .wiring = SYNTHETIC_CUBE_MESH, .nvlink_Bps = 25e9}, 8, 6, 150e9},
      {{.n_nodes = 1, .wiring = SYNTHETIC_CUBE_MESH, .nvlink_Bps = 25e9}, 4, 4, 100e9},
      {{.n_nodes = 1, .wiring = SYNTHETIC_CUBE_MESH, .nvlink_Bps = 25e9}, 2, 1, 25e9},
      {{.n_nodes = 1, .gpus_per_node = 4, .wiring = SYNTHETIC_MESH, .nvlink_Bps = 50e9}, 4, 2, 100e9},
      {{.n_nodes = 1, .gpus_per_node = 4, .wiring = SYNTHETIC_PCIE, .pcie_Bps = 12e9, .cpu_Bps = 9e9}, 4, 1, 9e9},
      {{.n_nodes = 4, .nvlink_Bps = 300e9, .nic_Bps = 25e9}, 32, 8, 200e9},
      {{.n_nodes = 4, .nvlink_Bps = 300e9, .nic_Bps = 25e9, .nics_per_node = 4}, 32, 4, 100e9},
      {{.n_nodes = 4, .nvlink_Bps = 300e9, .nic_Bps = 25e9, .nics_per_node = 1}, 32, 1, 25e9},
      {{.n_nodes = 4, .wiring = SYNTHETIC_CUBE_MESH, .nvlink_Bps = 25e9, .nic_Bps = 12.5e9, .nics_per_node = 4},
       32,
       4,
       50e9},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_cluster *cluster = synthetic_cluster_create(&cases[i].options);
    uint32_t members[MOST_DEVICES];
    for (uint32_t m = 0; m < cases[i].n; m++)
      members[m] = m;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
    pl_collective_group *group = take_group(cluster, members, cases[i].n, &options, &arena);
    double total_Bps = total_rate(cluster, group, &arena);
    if (pl_collective_group_channels(group) != cases[i].channels || fabs(total_Bps / cases[i].total_Bps - 1) > 1e-12)
      fail_msg("case %zu: %u channels, %g B/s instead of %u, %g", i, pl_collective_group_channels(group), total_Bps,
               cases[i].channels, cases[i].total_Bps);
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

/* A PCIe box with two sockets, members named across them: the ring goes by the bus, 9 GB/s between sockets instead of
 * half. Members named in a good order keep it. */
static void bus_order_beats_a_bad_order(void **unused) {
  (void)unused;
  synthetic_options shape = {.gpus_per_node = 4, .wiring = SYNTHETIC_PCIE, .pcie_Bps = 12e9, .cpu_Bps = 9e9};
  pl_cluster *cluster = synthetic_cluster_create(&shape);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
  const uint32_t bad[4] = {0, 2, 1, 3}, good[4] = {1, 0, 2, 3}, bus[4] = {0, 1, 2, 3};
  pl_collective_group *group = take_group(cluster, bad, 4, &options, &arena);
  assert_memory_equal(pl_collective_group_ring(group, 0), bus, sizeof bus);
  assert_true(total_rate(cluster, group, &arena) == 9e9);
  group = take_group(cluster, good, 4, &options, &arena);
  assert_memory_equal(pl_collective_group_ring(group, 0), good, sizeof good);
  pl_arena_release(&arena);
  synthetic_cluster_release(cluster);
}

/* On rails an even number of nodes never leaves them; an odd number keeps like nodes alike instead. */
static void rings_stay_on_their_rails(void **unused) {
  (void)unused;
  for (uint32_t nodes = 2; nodes <= 6; nodes++) {
    pl_cluster *cluster =
        synthetic_cluster_create(&(synthetic_options){.n_nodes = nodes, .leaf_nodes = 8, .rails = true});
    uint32_t members[MOST_DEVICES];
    for (uint32_t i = 0; i < 8 * nodes; i++)
      members[i] = i;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
    pl_collective_group *group = take_group(cluster, members, 8 * nodes, &options, &arena);
    pl_fluid_collective fluid;
    assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, 1e9, &arena, &fluid, NULL), PL_OK);
    double crossings = 0;
    for (uint32_t i = 0; i < fluid.spec.n_uses; i++)
      if (cluster->links[fluid.uses[i].link].kind == PL_LINK_FABRIC) crossings += fluid.uses[i].weight;
    assert_int_equal(pl_collective_group_channels(group), 8);
    assert_true(crossings == (nodes % 2 == 0 ? 0 : 2.0 * 8 * nodes));
    check_like_nodes(cluster, &fluid);
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

/* Rings over direct links are never slower together than one ring in the caller's order. */
static void search_never_loses(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(14);
  for (uint64_t i = 0; i < 200; i++) {
    uint64_t state = seed + i;
    synthetic_options shape = {.wiring = random_below(&state, 2) ? SYNTHETIC_MESH : SYNTHETIC_CUBE_MESH,
                               .gpus_per_node = random_between(&state, 3, 8)};
    pl_cluster *cluster = synthetic_cluster_create(&shape);
    uint32_t members[MOST_DEVICES], n = cluster->n_devices;
    uint32_t slow = random_below(&state, cluster->n_links);
    synthetic_cluster_scale_link(cluster, slow, random_below(&state, 2) ? 0.5 : 0.3);
    for (uint32_t m = 0; m < n; m++)
      members[m] = m;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_collective_options options = {.algorithm = PL_ALGORITHM_RING};
    pl_collective_group *group = take_group(cluster, members, n, &options, &arena);
    double caller_Bps = INFINITY;
    for (uint32_t m = 0; m < n; m++) {
      pl_route route;
      assert_int_equal(pl_cluster_route(cluster, m, (m + 1) % n, &route, NULL), PL_OK);
      for (uint32_t l = 0; l < route.n_links; l++)
        caller_Bps = fmin(caller_Bps, cluster->links[route.links[l]].capacity_Bps);
    }
    double total_Bps = total_rate(cluster, group, &arena);
    if (total_Bps < caller_Bps * (1 - 1e-12))
      fail_msg("seed %llu: %u channels carry %.17g B/s, one ring in the caller's order %.17g",
               (unsigned long long)(seed + i), pl_collective_group_channels(group), total_Bps, caller_Bps);
    pl_arena_release(&arena);
    synthetic_cluster_release(cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_ring_visits_every_member_once),
      cmocka_unit_test(fluid_and_chunked_carry_the_same_bytes),
      cmocka_unit_test(one_member_or_no_bytes_is_nothing),
      cmocka_unit_test(like_nodes_are_used_alike),
      cmocka_unit_test(prepared_groups_give_the_same),
      cmocka_unit_test(channels_of_known_shapes),
      cmocka_unit_test(bus_order_beats_a_bad_order),
      cmocka_unit_test(rings_stay_on_their_rails),
      cmocka_unit_test(search_never_loses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
