/* Closed forms of every algorithm, for the fluid form (solo ticks, and run on the flow network) and the chunked form
 * (run on the flow network), on clean clusters.
 *
 * In a node: NVSwitch ports of B = 300 GB/s, a hop crosses two of 1 us, so l = 2 us + overhead. Between nodes: PCIe 2 x
 * 1 us, NIC 2 x 2 us, L = 6 us + overhead, at most b = 25 GB/s. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/collective_run.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

enum { MOST_DEVICES = 128 };

static const double port_Bps = 300e9, nic_Bps = 25e9, overhead_s = 0.5e-6;
static const double inner_s = 2.5e-6, outer_s = 6.5e-6; /* l and L */
static const double sizes_bytes[] = {1, 4099, 65536, 1e6, 123456789, 1073741824};
enum { N_SIZES = sizeof sizes_bytes / sizeof *sizes_bytes };

typedef struct bench {
  pl_cluster *cluster;
  pl_arena arena;
  pl_collective_group *group;
} bench;

/* The first `per_node` GPUs of each of `n_nodes` nodes. */
static bench set_up(uint32_t n_nodes, uint32_t per_node, pl_collective_algorithm algorithm) {
  synthetic_options shape = synthetic_cluster_defaults();
  shape.n_nodes = n_nodes;
  bench made = {.cluster = synthetic_cluster_create(&shape)};
  pl_arena_init(&made.arena, 0);
  uint32_t members[MOST_DEVICES], n = 0;
  for (uint32_t node = 0; node < n_nodes; node++)
    for (uint32_t gpu = 0; gpu < per_node; gpu++)
      members[n++] = node * 8 + gpu;
  pl_collective_options options = {.algorithm = algorithm, .step_overhead_s = overhead_s};
  pl_error error = PL_ERROR_INIT;
  if (pl_collective_group_take(made.cluster, members, n, &options, &made.arena, &made.group, &error) != PL_OK)
    fail_msg("%s", error.message);
  return made;
}

static void tear_down(bench *b) {
  pl_arena_release(&b->arena);
  synthetic_cluster_release(b->cluster);
}

static void expect(const char *what, pl_ticks found, double expected_s, double tolerance_ticks) {
  double expected = expected_s * PL_TICKS_PER_S;
  if (fabs((double)found - expected) > tolerance_ticks + 1e-12 * expected)
    fail_msg("%s: %.17g s instead of %.17g s", what, pl_ticks_to_s(found), expected_s);
}

/* Fluid alone, fluid on the network, and (chunks > 0) chunked on the network all take `expected_s`. Each step may round
 * by a tick. */
static void expect_time(const bench *b, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        double expected_s) {
  pl_fluid_collective fluid;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  assert_int_equal(pl_collective_fluid(b->group, kind, size_bytes, &arena, &fluid, NULL), PL_OK);
  expect("fluid alone", collective_solo_ticks(b->cluster, &fluid), expected_s, 64);
  pl_ticks phases = collective_solo_ticks(b->cluster, &fluid);
  assert_int_equal(pl_fluid_collective_merge(b->cluster, &arena, &fluid, NULL), PL_OK);
  assert_null(fluid.next);
  expect("merged", collective_solo_ticks(b->cluster, &fluid), pl_ticks_to_s(phases), 64);
  pl_arena_release(&arena);
  collective_job job = {.group = b->group, .kind = kind, .size_bytes = size_bytes};
  collective_run(b->cluster, &job, 1);
  expect("fluid", job.finish, expected_s, 64);
  if (chunks == 0) return;
  job.chunks = chunks;
  collective_run(b->cluster, &job, 1);
  expect("chunked", job.finish, expected_s, 1024);
}

static double chunked_s(const bench *b, pl_collective_kind kind, double size_bytes, uint32_t chunks) {
  collective_job job = {.group = b->group, .kind = kind, .size_bytes = size_bytes, .chunks = chunks};
  collective_run(b->cluster, &job, 1);
  return pl_ticks_to_s(job.finish);
}

static double fluid_s(const bench *b, pl_collective_kind kind, double size_bytes) {
  return chunked_s(b, kind, size_bytes, 0);
}

/* n on one switch: steps of S / n over ports that carry one message each way. */
static void ring_in_a_node(void **unused) {
  (void)unused;
  for (uint32_t n = 2; n <= 8; n++) {
    bench b = set_up(1, n, PL_ALGORITHM_RING);
    for (int i = 0; i < N_SIZES; i++) {
      double size = sizes_bytes[i], steps = n - 1, moving_s = steps / n * size / port_Bps;
      expect_time(&b, PL_ALL_REDUCE, size, 1, 2 * (steps * inner_s + moving_s));
      expect_time(&b, PL_REDUCE_SCATTER, size, 1, steps * inner_s + moving_s);
      expect_time(&b, PL_ALL_GATHER, size, 1, steps * inner_s + moving_s);
      expect_time(&b, PL_BROADCAST, size, 0, steps * inner_s + size / port_Bps);
      /* P pieces: the last one leaves after P - 1 others and is stored and forwarded n - 1 times */
      for (uint32_t pieces = 1; pieces <= 16; pieces *= 4) {
        double piece_s = size / pieces / port_Bps;
        expect("broadcast", pl_ticks_from_s(chunked_s(&b, PL_BROADCAST, size, pieces)),
               steps * inner_s + (pieces - 1 + steps) * piece_s, 1024);
      }
    }
    tear_down(&b);
  }
}

/* One member per node: each hop crosses a NIC. */
static void ring_across_nodes(void **unused) {
  (void)unused;
  for (uint32_t n = 2; n <= 16; n += n < 5 ? 1 : 11) {
    bench b = set_up(n, 1, PL_ALGORITHM_RING);
    for (int i = 0; i < N_SIZES; i++) {
      double size = sizes_bytes[i], steps = n - 1, moving_s = steps / n * size / nic_Bps;
      expect_time(&b, PL_ALL_REDUCE, size, 1, 2 * (steps * outer_s + moving_s));
      expect_time(&b, PL_REDUCE_SCATTER, size, 1, steps * outer_s + moving_s);
      expect_time(&b, PL_ALL_GATHER, size, 1, steps * outer_s + moving_s);
      expect_time(&b, PL_BROADCAST, size, 0, steps * outer_s + size / nic_Bps);
    }
    tear_down(&b);
  }
}

/* N nodes of 8 with a NIC per GPU: 8 channels of b each. A message visits 2 (8 N - 1) consecutive hops; the two
 * neighbouring ones that it skips are inner ones, so 2 N of its hops cross nodes. */
static void ring_of_whole_nodes(void **unused) {
  (void)unused;
  for (uint32_t nodes = 2; nodes <= 4; nodes++) {
    bench b = set_up(nodes, 8, PL_ALGORITHM_RING);
    double n = 8 * nodes;
    assert_int_equal(pl_collective_group_channels(b.group), 8);
    for (int i = 0; i < N_SIZES; i++) {
      double size = sizes_bytes[i], latency_s = 2 * nodes * outer_s + (2 * (n - 1) - 2 * nodes) * inner_s;
      expect_time(&b, PL_ALL_REDUCE, size, 0, latency_s + 2 * (n - 1) / n * size / (8 * nic_Bps));
    }
    /* Hops inside a node have room to spare, so the chunked ring is held by the NICs alone. */
    double large = 1e10;
    assert_true(fabs(chunked_s(&b, PL_ALL_REDUCE, large, 1) / fluid_s(&b, PL_ALL_REDUCE, large) - 1) < 0.02);
    tear_down(&b);
  }
}

/* Two trees; each node is inner in one and leaf in the other, so a NIC carries 4 * S / 2 each way. Depth log2 N. */
static void double_tree(void **unused) {
  (void)unused;
  for (uint32_t levels = 2; levels <= 4; levels++) {
    uint32_t nodes = 1u << levels;
    bench b = set_up(nodes, 1, PL_ALGORITHM_TREE);
    for (int i = 0; i < N_SIZES; i++) {
      double size = sizes_bytes[i];
      expect_time(&b, PL_ALL_REDUCE, size, 0, 2 * levels * outer_s + 2 * size / nic_Bps);
      expect_time(&b, PL_BROADCAST, size, 0, levels * outer_s + 2 * size / nic_Bps);
    }
    /* Pieces fill the pipeline: the more, the nearer to the fluid form; never below the volume bound. */
    double large = 1e10, fluid = fluid_s(&b, PL_ALL_REDUCE, large);
    double coarse = chunked_s(&b, PL_ALL_REDUCE, large, 4), fine = chunked_s(&b, PL_ALL_REDUCE, large, 64);
    assert_true(fine < coarse && fine > 0.999 * fluid && fine < 1.15 * fluid);
    tear_down(&b);
  }
  /* Two nodes: each is root of one tree and leaf of the other: S / 2 up and S / 2 down on each. */
  bench b = set_up(2, 1, PL_ALGORITHM_TREE);
  expect_time(&b, PL_ALL_REDUCE, 1e9, 0, 2 * outer_s + 1e9 / nic_Bps);
  tear_down(&b);
  /* In one node: two chains in opposite directions; an inner member sends S / 2 four times. Latency: 3 hops up and 3
   * down. */
  b = set_up(1, 4, PL_ALGORITHM_TREE);
  expect_time(&b, PL_ALL_REDUCE, 1e9, 0, 6 * inner_s + 2 * 1e9 / port_Bps);
  tear_down(&b);
}

static void direct_exchange(void **unused) {
  (void)unused;
  for (uint32_t n = 2; n <= 8; n++) {
    bench b = set_up(1, n, PL_ALGORITHM_DIRECT);
    for (int i = 0; i < N_SIZES; i++) {
      double size = sizes_bytes[i], once_s = inner_s + (n - 1.0) / n * size / port_Bps;
      expect_time(&b, PL_ALL_TO_ALL, size, 1, once_s);
      expect_time(&b, PL_REDUCE_SCATTER, size, 1, once_s);
      expect_time(&b, PL_ALL_GATHER, size, 1, once_s);
      expect_time(&b, PL_ALL_REDUCE, size, 1, 2 * once_s);
      expect_time(&b, PL_BROADCAST, size, 1, inner_s + (n - 1) * size / port_Bps);
      expect_time(&b, PL_SEND, size, 1, inner_s + size / port_Bps);
    }
    tear_down(&b);
  }
  bench b = set_up(2, 1, PL_ALGORITHM_AUTO);
  expect_time(&b, PL_SEND, 1e6, 1, outer_s + 1e6 / nic_Bps);
  tear_down(&b);
  /* Across: each NIC carries the 8 (N - 1) pairs of its GPU, ports the 7 inner ones. */
  b = set_up(4, 8, PL_ALGORITHM_AUTO);
  expect_time(&b, PL_ALL_TO_ALL, 1e9, 0, outer_s + 24 * 1e9 / 32 / nic_Bps);
  assert_true(fabs(chunked_s(&b, PL_ALL_TO_ALL, 1e9, 1) / (outer_s + 24 * 1e9 / 32 / nic_Bps) - 1) < 1e-9);
  tear_down(&b);
}

/* Phases one after another, each a set of rings side by side. */
static void hierarchical(void **unused) {
  (void)unused;
  for (uint32_t nodes = 2; nodes <= 5; nodes++)
    for (uint32_t g = 2; g <= 8; g += 3) {
      bench b = set_up(nodes, g, PL_ALGORITHM_HIERARCHICAL);
      for (int i = 0; i < N_SIZES; i++) {
        double size = sizes_bytes[i], shard = size / g;
        double inside_s = (g - 1) * inner_s + (g - 1.0) / g * size / port_Bps;
        double across_s = (nodes - 1) * outer_s + (nodes - 1.0) / nodes * shard / nic_Bps;
        expect_time(&b, PL_ALL_REDUCE, size, 1, 2 * inside_s + 2 * across_s);
        expect_time(&b, PL_REDUCE_SCATTER, size, 1, inside_s + across_s);
        expect_time(&b, PL_ALL_GATHER, size, 1, inside_s + across_s);
      }
      tear_down(&b);
    }
}

static pl_collective_algorithm algorithm_of(bench *b, pl_collective_kind kind, double size_bytes) {
  pl_collective_algorithm algorithm;
  assert_int_equal(pl_collective_group_algorithm(b->group, kind, size_bytes, &b->arena, &algorithm, NULL), PL_OK);
  return algorithm;
}

/* AUTO takes the tree for small messages on many nodes and the ring for large ones. */
static void auto_by_size(void **unused) {
  (void)unused;
  bench b = set_up(16, 1, PL_ALGORITHM_AUTO);
  assert_int_equal(algorithm_of(&b, PL_ALL_REDUCE, 1024), PL_ALGORITHM_TREE);
  assert_int_equal(algorithm_of(&b, PL_ALL_REDUCE, 1e9), PL_ALGORITHM_RING);
  assert_int_equal(algorithm_of(&b, PL_REDUCE_SCATTER, 1024), PL_ALGORITHM_RING);
  assert_int_equal(algorithm_of(&b, PL_ALL_TO_ALL, 1024), PL_ALGORITHM_DIRECT);
  tear_down(&b);
  b = set_up(2, 8, PL_ALGORITHM_AUTO);
  assert_int_equal(algorithm_of(&b, PL_ALL_REDUCE, 1024), PL_ALGORITHM_RING);
  tear_down(&b);
}

static void never_slower(const pl_cluster *cluster, const uint32_t *members, uint32_t n, double size_bytes) {
  static const pl_collective_algorithm algorithms[] = {PL_ALGORITHM_AUTO, PL_ALGORITHM_RING, PL_ALGORITHM_TREE};
  for (int kind = PL_ALL_REDUCE; kind <= PL_BROADCAST; kind += PL_BROADCAST) {
    pl_ticks ticks[3];
    pl_arena arena;
    pl_arena_init(&arena, 0);
    for (int i = 0; i < 3; i++) {
      pl_collective_options options = {.algorithm = algorithms[i], .step_overhead_s = overhead_s};
      pl_collective_group *group;
      pl_fluid_collective fluid;
      assert_int_equal(pl_collective_group_take(cluster, members, n, &options, &arena, &group, NULL), PL_OK);
      assert_int_equal(pl_collective_fluid(group, (pl_collective_kind)kind, size_bytes, &arena, &fluid, NULL), PL_OK);
      ticks[i] = collective_solo_ticks(cluster, &fluid);
    }
    assert_true(ticks[0] <= ticks[1] + 1);
    assert_true(ticks[0] == ticks[1] || ticks[0] == ticks[2]);
    pl_arena_release(&arena);
  }
}

/* Never slower alone than the ring, on any cluster: small uplinks and slow links can make the tree the worse choice. */
static void auto_is_never_slower(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(15);
  for (uint64_t i = 0; i < 150; i++) {
    uint64_t state = seed + i;
    pl_cluster *cluster = synthetic_cluster_random(seed + i, MOST_DEVICES);
    uint32_t members[MOST_DEVICES], n = 0;
    for (uint32_t device = 0; device < cluster->n_devices; device++)
      if (device == 0 || random_below(&state, 4)) members[n++] = device;
    for (double size = 100; size < 1e9; size *= 25)
      never_slower(cluster, members, n, size);
    synthetic_cluster_release(cluster);
  }
}

/* One hop of a ring with a latency of its own: a message passes it twice in an all-reduce (2 (n - 1) hops skip two
 * neighbours, which are others), once in a reduce-scatter. Nearly no bytes, so that only latencies count, and they
 * overlap. */
static void unlike_latencies(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.nvlink_latency_s = 1e-6});
  uint32_t members[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  synthetic_cluster_set_latency(cluster, synthetic_cluster_link(cluster, "n0_g3_nv_up"), 31e-6);
  bench b = {.cluster = cluster};
  pl_arena_init(&b.arena, 0);
  pl_collective_options options = {.algorithm = PL_ALGORITHM_RING, .step_overhead_s = overhead_s};
  assert_int_equal(pl_collective_group_take(cluster, members, 8, &options, &b.arena, &b.group, NULL), PL_OK);
  expect_time(&b, PL_ALL_REDUCE, 1e-3, 1, 14 * inner_s + 2 * 30e-6);
  expect_time(&b, PL_REDUCE_SCATTER, 1e-3, 1, 7 * inner_s + 30e-6);
  expect_time(&b, PL_BROADCAST, 1e-3, 1, 7 * inner_s + 30e-6);
  tear_down(&b);
}

/* A FATPIPE link bounds each hop by itself; a slow shared link slows the whole ring; both forms agree. */
static void lopsided_links(void **unused) {
  (void)unused;
  bench b = set_up(1, 8, PL_ALGORITHM_RING);
  tear_down(&b);
  synthetic_options shape = synthetic_cluster_defaults();
  for (int fatpipe = 0; fatpipe < 2; fatpipe++) {
    pl_cluster *cluster = synthetic_cluster_create(&shape);
    uint32_t link = synthetic_cluster_link(cluster, "n0_g3_nv_up"), members[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    synthetic_cluster_scale_link(cluster, link, 0.25);
    if (fatpipe) synthetic_cluster_set_policy(cluster, link, PL_LINK_FATPIPE);
    b = (bench){.cluster = cluster};
    pl_arena_init(&b.arena, 0);
    pl_collective_options options = {.algorithm = PL_ALGORITHM_RING, .step_overhead_s = overhead_s};
    assert_int_equal(pl_collective_group_take(cluster, members, 8, &options, &b.arena, &b.group, NULL), PL_OK);
    expect_time(&b, PL_ALL_REDUCE, 1e9, 0, 14 * inner_s + 14 / 8.0 * 1e9 / (port_Bps / 4));
    tear_down(&b);
  }
}

/* RTT sharing: weight and window of the slowest hop (SimGrid's CM02). */
static void rtt_rule(void **unused) {
  (void)unused;
  pl_cluster *cluster = synthetic_cluster_create(&(synthetic_options){.nvlink_latency_s = 4e-4});
  uint32_t members[4] = {0, 1, 2, 3};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_collective_options options = {.sharing = PL_SHARING_RTT};
  pl_collective_group *group;
  pl_fluid_collective fluid;
  assert_int_equal(pl_collective_group_take(cluster, members, 4, &options, &arena, &group, NULL), PL_OK);
  assert_int_equal(pl_collective_fluid(group, PL_ALL_REDUCE, 1e9, &arena, &fluid, NULL), PL_OK);
  double hop_s = 2 * pl_ticks_to_s(pl_ticks_from_s(4e-4));
  assert_true(fabs(fluid.spec.share_weight * hop_s - 1) < 1e-12);
  assert_true(fabs(fluid.spec.rate_cap_Bps / (4194304 / (2 * hop_s)) - 1) < 1e-12);
  pl_chunked_collective chunked; /* every flow keeps its latency, as SimGrid charges it */
  assert_int_equal(pl_collective_chunked(group, PL_ALL_REDUCE, 1e9, 2, &arena, &chunked, NULL), PL_OK);
  assert_int_equal(chunked.n_steps, 2 * 6 * 4 * 2);
  for (uint32_t i = 0; i < chunked.n_steps; i++)
    assert_int_equal(chunked.steps[i].latency, chunked.steps[i].size_bytes > 0 ? 2 * pl_ticks_from_s(4e-4) : 0);
  pl_arena_release(&arena);
  synthetic_cluster_release(cluster);
}

static void bad_input_is_refused(void **unused) {
  (void)unused;
  bench b = set_up(1, 4, PL_ALGORITHM_AUTO);
  pl_collective_options options = {0};
  pl_collective_group *group = b.group;
  pl_fluid_collective fluid;
  pl_chunked_collective chunked;
  pl_error error = PL_ERROR_INIT;
  uint32_t outside = 99;
  assert_int_equal(pl_collective_group_take(b.cluster, &outside, 1, &options, &b.arena, &group, &error), PL_BAD_INPUT);
  assert_null(group);
  assert_string_equal(error.message, "member 0 of a collective is device 99, but the cluster has 8 devices");
  assert_int_equal(pl_collective_group_take(b.cluster, &outside, 0, &options, &b.arena, &group, NULL), PL_BAD_INPUT);
  assert_int_equal(pl_collective_fluid(b.group, PL_ALL_REDUCE, -1, &b.arena, &fluid, NULL), PL_BAD_INPUT);
  assert_int_equal(pl_collective_fluid(b.group, PL_ALL_REDUCE, NAN, &b.arena, &fluid, NULL), PL_BAD_INPUT);
  assert_int_equal(pl_collective_chunked(b.group, PL_ALL_REDUCE, 1, 0, &b.arena, &chunked, NULL), PL_BAD_INPUT);
  assert_int_equal(pl_collective_chunked(b.group, PL_ALL_REDUCE, 1, 1u << 30, &b.arena, &chunked, NULL),
                   PL_UNSUPPORTED);
  tear_down(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ring_in_a_node),
      cmocka_unit_test(ring_across_nodes),
      cmocka_unit_test(ring_of_whole_nodes),
      cmocka_unit_test(double_tree),
      cmocka_unit_test(direct_exchange),
      cmocka_unit_test(hierarchical),
      cmocka_unit_test(auto_by_size),
      cmocka_unit_test(auto_is_never_slower),
      cmocka_unit_test(unlike_latencies),
      cmocka_unit_test(lopsided_links),
      cmocka_unit_test(rtt_rule),
      cmocka_unit_test(bad_input_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
