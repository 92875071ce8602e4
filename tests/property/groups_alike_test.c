/* Rows of groups that are said to be alike take the same to the bit: every collective of every group alone, and what
 * the busiest link carries of all groups of a row at once. On generated clusters of all fabrics some of whose links
 * were slowed down; and rows on whole machines of one kind are found to be alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/collective/collective_profile.h"
#include "netmodel/collective/groups_alike.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/node_shape.h"
#include "netmodel/platform/platform.h"
#include "tests/support/collective_profile.h"
#include "tests/support/random.h"

#define DEVICES PACELINE_SOURCE_DIR "/platforms/devices"

static const char *const kinds[] = {"hc2", "dgx-1v", "dgx-a100", "dgx-h100", "hc3", "p3.8xlarge", "g4dn.12xlarge"};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MOST_DEVICES = 512 };

static pl_platform *make(const pl_platform_plan *plan) {
  char path[] = "/tmp/groups_alike_test.XXXXXX";
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  if (pl_platform_make_file(plan, path, true, &error) != PL_OK) fail_msg("%s", error.message);
  if (pl_platform_load(path, DEVICES, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  unlink(path);
  return platform;
}

static pl_platform *random_platform(uint64_t *state) {
  pl_platform_plan plan = {.command = "test", .oversubscription = random_between(state, 1, 2)};
  plan.n_parts = random_between(state, 1, 2);
  plan.fabric = plan.n_parts > 1 ? PL_FABRIC_SINGLE : (pl_fabric)random_below(state, 3);
  plan.pod_nodes = random_between(state, 2, 6);
  for (uint32_t p = 0; p < plan.n_parts; p++) {
    plan.parts[p].kind = pl_node_kind_find(kinds[random_below(state, N_KINDS)]);
    plan.parts[p].n_nodes = random_between(state, 1, 8);
  }
  return make(&plan);
}

/* ---- what a row takes ---- */

static double sum_of_links(const pl_cluster *cluster, const double *bytes) {
  double busiest_s = 0;
  for (uint32_t link = 0; link < cluster->n_links; link++)
    busiest_s = fmax(busiest_s, bytes[link] / cluster->links[link].capacity_Bps);
  return busiest_s;
}

typedef struct taken {
  double alone_s[MOST_DEVICES], busiest_s;
  pl_ticks latency[MOST_DEVICES];
} taken;

static void measure(const pl_cluster *cluster, const pl_group_row *row, const pl_collective_options *options,
                    pl_collective_kind kind, double size_bytes, pl_arena *arena, taken *made) {
  pl_error error = PL_ERROR_INIT;
  double *bytes = PL_TAKE(arena, double, cluster->n_links);
  assert_non_null(bytes);
  memset(made, 0, sizeof *made);
  for (uint32_t g = 0; g < row->n_groups; g++) {
    pl_collective_group *group;
    pl_fluid_collective fluid;
    assert_int_equal(
        pl_collective_group_take(cluster, row->members + g * row->size, row->size, options, arena, &group, &error),
        PL_OK);
    assert_int_equal(pl_collective_fluid(group, kind, size_bytes, arena, &fluid, &error), PL_OK);
    assert_int_equal(pl_fluid_collective_merge(cluster, arena, &fluid, &error), PL_OK);
    double rate_Bps = fluid.spec.rate_cap_Bps;
    for (uint32_t i = 0; i < fluid.spec.n_uses; i++) {
      rate_Bps = fmin(rate_Bps, cluster->links[fluid.uses[i].link].capacity_Bps / fluid.uses[i].weight);
      bytes[fluid.uses[i].link] += fluid.uses[i].weight * fluid.progress_bytes;
    }
    made->alone_s[g] = fluid.progress_bytes / rate_Bps;
    made->latency[g] = fluid.spec.latency;
  }
  made->busiest_s = sum_of_links(cluster, bytes);
}

static void compare(uint64_t *state, const pl_cluster *cluster, const pl_group_row rows[2],
                    const pl_collective_profile *profile, bool *differ) {
  pl_collective_options options = {.step_overhead_s = 1e-6};
  options.algorithm = (pl_collective_algorithm)random_below(state, PL_ALGORITHM_COUNT);
  options.sharing = random_below(state, 2) ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  options.profile = random_below(state, 2) ? profile : NULL;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  *differ = false;
  for (int kind = 0; kind < PL_SEND; kind++) {
    taken takes[2];
    double size_bytes = random_log(state, 1, 1e9);
    for (int r = 0; r < 2; r++)
      measure(cluster, &rows[r], &options, (pl_collective_kind)kind, size_bytes, &arena, &takes[r]);
    *differ = *differ || memcmp(&takes[0], &takes[1], sizeof takes[0]) != 0;
  }
  pl_arena_release(&arena);
}

/* ---- cases ---- */

/* Stages of a cluster: `each` devices from `first` on, in groups of `size` with `stride` between them. */
static void take_row(uint32_t first, uint32_t each, uint32_t size, uint32_t *members, pl_group_row *row) {
  uint32_t n_groups = each / size;
  for (uint32_t g = 0; g < n_groups; g++)
    for (uint32_t i = 0; i < size; i++)
      members[g * size + i] = first + g + i * n_groups;
  *row = (pl_group_row){.members = members, .n_groups = n_groups, .size = size};
}

static void alike_take_the_same(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(61), n_cases = test_number("PACELINE_CASES", 150), n_alike = 0, n_differ = 0;
  pl_arena keep;
  pl_arena_init(&keep, 0);
  pl_error error = PL_ERROR_INIT;
  const pl_collective_profile *profile = shipped_collective_profile(&keep);
  for (uint64_t i = 0; i < n_cases; i++) {
    uint64_t state = seed + 1000 * i;
    pl_platform *platform = random_platform(&state);
    pl_cluster cluster = *pl_platform_cluster(platform);
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_link *links = PL_TAKE(&arena, pl_link, cluster.n_links);
    memcpy(links, cluster.links, cluster.n_links * sizeof *links);
    uint32_t n_slow = random_below(&state, 4);
    for (uint32_t slow = 0; slow < n_slow; slow++)
      links[random_below(&state, cluster.n_links)].capacity_Bps /= 2;
    cluster.links = links;
    if (n_slow > 0 && random_below(&state, 2))
      cluster.shapes = NULL; /* not true any more */
    else if (n_slow > 0)
      assert_int_equal(
          pl_node_shape_vary(cluster.shapes, cluster.n_nodes, cluster.links, &arena, &cluster.shapes, &error), PL_OK);
    uint32_t size = random_between(&state, 2, 4), each = size * random_between(&state, 1, 4);
    if (random_below(&state, 2)) each = random_between(&state, 1, 2) * cluster.nodes[0].n_devices; /* whole machines */
    if (each % size != 0 || each == size) size = each;
    uint32_t members[2][MOST_DEVICES];
    pl_group_row rows[2];
    pl_groups_alike comparing = {0};
    take_row(0, each, size, members[0], &rows[0]);
    for (uint32_t first = each; first + each <= cluster.n_devices && first < 8 * each; first += each) {
      bool alike, differ;
      take_row(first, each, size, members[1], &rows[1]);
      assert_int_equal(pl_groups_are_alike(&comparing, &cluster, &rows[0], &rows[1], &arena, &alike, &error), PL_OK);
      compare(&state, &cluster, rows, profile, &differ);
      if (alike && differ)
        fail_msg("seed %llu: groups from device %u on", (unsigned long long)(seed + 1000 * i), first);
      n_alike += alike;
      n_differ += differ;
    }
    pl_arena_release(&arena);
    pl_platform_destroy(platform);
  }
  printf("%llu rows were alike, %llu differed\n", (unsigned long long)n_alike, (unsigned long long)n_differ);
  assert_true(n_alike > n_cases && n_differ > n_cases / 2);
  pl_arena_release(&keep);
}

static void equal_machines_are_alike(void **unused) {
  (void)unused;
  for (uint32_t kind = 0; kind < N_KINDS; kind++) {
    pl_platform_plan plan = {.command = "test", .n_parts = 1, .oversubscription = 1, .pod_nodes = 4};
    plan.fabric = PL_FABRIC_SINGLE;
    plan.parts[0].kind = pl_node_kind_find(kinds[kind]);
    plan.parts[0].n_nodes = 6;
    pl_platform *platform = make(&plan);
    const pl_cluster *cluster = pl_platform_cluster(platform);
    uint32_t g = cluster->nodes[0].n_devices, members[2][MOST_DEVICES];
    pl_group_row rows[2];
    pl_groups_alike comparing = {0};
    pl_error error = PL_ERROR_INIT;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    for (uint32_t size = 2; size <= 2 * g; size *= 2)
      for (uint32_t first = 2 * g; first < 6 * g; first += 2 * g) {
        bool alike;
        take_row(0, 2 * g, size, members[0], &rows[0]);
        take_row(first, 2 * g, size, members[1], &rows[1]);
        assert_int_equal(pl_groups_are_alike(&comparing, cluster, &rows[0], &rows[1], &arena, &alike, &error), PL_OK);
        assert_true(alike);
      }
    take_row(0, g, g, members[0], &rows[0]);
    take_row(g / 2, g, g, members[1], &rows[1]); /* half of one machine and half of the next */
    bool alike;
    assert_int_equal(pl_groups_are_alike(&comparing, cluster, &rows[0], &rows[1], &arena, &alike, &error), PL_OK);
    assert_false(alike);
    pl_arena_release(&arena);
    pl_platform_destroy(platform);
  }
}

/* Pairs that only send are what others are, for messages. */
static void check_pair(uint64_t *state, const pl_cluster *cluster, const pl_collective_profile *profile) {
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t pair[2] = {random_below(state, cluster->n_devices), random_below(state, cluster->n_devices - 1)};
  pair[1] += pair[1] >= pair[0];
  pl_collective_options options = {.step_overhead_s = 1e-6, .profile = random_below(state, 3) > 0 ? profile : NULL};
  options.algorithm = (pl_collective_algorithm)random_below(state, PL_ALGORITHM_COUNT);
  double size_bytes = random_log(state, 1, 1e9);
  pl_fluid_collective fluids[2];
  pl_collective_weighing weighings[2];
  for (int alone = 0; alone < 2; alone++) {
    pl_collective_group *group;
    options.sends_alone = alone;
    assert_int_equal(pl_collective_group_take(cluster, pair, 2, &options, &arena, &group, &error), PL_OK);
    assert_int_equal(pl_collective_fluid(group, PL_SEND, size_bytes, &arena, &fluids[alone], &error), PL_OK);
    assert_int_equal(pl_collective_weigh(group, PL_SEND, size_bytes, &arena, &weighings[alone], &error), PL_OK);
  }
  assert_int_equal(fluids[0].spec.latency, fluids[1].spec.latency);
  assert_int_equal(fluids[0].flight, fluids[1].flight);
  assert_true(fluids[0].spec.rate_cap_Bps == fluids[1].spec.rate_cap_Bps);
  assert_true(fluids[0].progress_bytes == fluids[1].progress_bytes);
  assert_int_equal(fluids[0].spec.n_uses, fluids[1].spec.n_uses);
  for (uint32_t use = 0; use < fluids[0].spec.n_uses; use++)
    assert_true(fluids[0].uses[use].link == fluids[1].uses[use].link &&
                fluids[0].uses[use].weight == fluids[1].uses[use].weight);
  assert_ptr_equal(weighings[0].inside, weighings[1].inside);
  assert_ptr_equal(weighings[0].between, weighings[1].between);
  assert_int_equal(weighings[0].n_works, weighings[1].n_works);
  pl_arena_release(&arena);
}

static void messages_are_the_same(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(62), n_cases = test_number("PACELINE_CASES", 100);
  pl_arena keep;
  pl_arena_init(&keep, 0);
  const pl_collective_profile *profile = shipped_collective_profile(&keep);
  for (uint64_t i = 0; i < n_cases; i++) {
    uint64_t state = seed + 1000 * i;
    pl_platform *platform = random_platform(&state);
    const pl_cluster *cluster = pl_platform_cluster(platform);
    for (int round = 0; round < 8 && cluster->n_devices > 1; round++)
      check_pair(&state, cluster, profile);
    pl_platform_destroy(platform);
  }
  pl_arena_release(&keep);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(messages_are_the_same), cmocka_unit_test(alike_take_the_same),
                                     cmocka_unit_test(equal_machines_are_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
