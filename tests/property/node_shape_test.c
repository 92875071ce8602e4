/* Nodes that are said to be wired alike (pl_node_shape) are: every route inside one is that of the other, counted from
 * its first link, over links of the same figures; and collectives that look at one of them in place of all are the same
 * to the bit as those that look at each. On generated clusters of all fabrics, their variations, and files in
 * platforms/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "netmodel/collective/collective.h"
#include "netmodel/collective/collective_profile.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_part.h"
#include "netmodel/platform/platform_vary.h"
#include "tests/support/random.h"

#define DEVICES PACELINE_SOURCE_DIR "/platforms/devices"

static const char *const kinds[] = {"hc2", "dgx-1v", "dgx-a100", "dgx-h100", "hc3", "p3.8xlarge", "g4dn.12xlarge"};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MOST_DEVICES = 512 };

static pl_platform *load(const char *path) {
  pl_platform *platform;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, DEVICES, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  return platform;
}

static pl_platform *make(const pl_platform_plan *plan) {
  char path[] = "/tmp/node_shape_test.XXXXXX";
  pl_error error = PL_ERROR_INIT;
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  if (pl_platform_make_file(plan, path, true, &error) != PL_OK) fail_msg("%s", error.message);
  pl_platform *platform = load(path);
  unlink(path);
  return platform;
}

/* One or two kinds of machine, small pods, above 32 nodes links in the first zone. */
static pl_platform *random_platform(uint64_t *state) {
  pl_platform_plan plan = {.command = "test", .oversubscription = 1};
  plan.n_parts = random_between(state, 1, 2);
  plan.fabric = plan.n_parts > 1 ? PL_FABRIC_SINGLE : (pl_fabric)random_below(state, 3);
  plan.sockets = random_below(state, 2) ? PL_SOCKETS_ALWAYS : PL_SOCKETS_NEVER;
  plan.pod_nodes = random_between(state, 2, 20);
  for (uint32_t p = 0; p < plan.n_parts; p++) {
    plan.parts[p].kind = pl_node_kind_find(kinds[random_below(state, N_KINDS)]);
    plan.parts[p].n_nodes = random_between(state, 1, 20);
  }
  return make(&plan);
}

/* ---- routes ---- */

static void check_pair(const pl_cluster *cluster, const pl_node_shape *a, const pl_node_shape *b, const pl_route *x,
                       const pl_route *y) {
  assert_int_equal(x->n_links, y->n_links);
  assert_int_equal(x->latency, y->latency);
  for (uint32_t l = 0; l < x->n_links; l++) {
    const pl_link *from = &cluster->links[x->links[l]], *to = &cluster->links[y->links[l]];
    assert_true(x->links[l] - a->first_link < a->n_links);
    assert_int_equal(x->links[l] - a->first_link, y->links[l] - b->first_link);
    assert_true(from->capacity_Bps == to->capacity_Bps && from->latency == to->latency);
    assert_true(from->policy == to->policy && from->kind == to->kind);
  }
}

/* Returns how many nodes are copies of others. */
static uint32_t check_shapes(const pl_cluster *cluster) {
  uint32_t first_of[MOST_DEVICES], n_kinds = 0, n_copies = 0;
  for (uint32_t k = 0; k < cluster->n_nodes; k++) {
    uint32_t at = 0;
    while (at < n_kinds && cluster->shapes[first_of[at]].kind != cluster->shapes[k].kind)
      at++;
    if (at == n_kinds) {
      first_of[n_kinds++] = k;
      continue;
    }
    const pl_node_info *a = &cluster->nodes[first_of[at]], *b = &cluster->nodes[k];
    assert_int_equal(a->n_devices, b->n_devices);
    for (uint32_t i = 0; i < a->n_devices; i++)
      for (uint32_t j = 0; j < a->n_devices; j++) {
        pl_route x, y;
        if (i == j) continue;
        assert_int_equal(pl_cluster_route(cluster, a->first_device + i, a->first_device + j, &x, NULL), PL_OK);
        assert_int_equal(pl_cluster_route(cluster, b->first_device + i, b->first_device + j, &y, NULL), PL_OK);
        check_pair(cluster, &cluster->shapes[first_of[at]], &cluster->shapes[k], &x, &y);
      }
    n_copies++;
  }
  return n_copies;
}

/* ---- collectives ---- */

static void compare_fluids(const pl_fluid_collective *a, const pl_fluid_collective *b) {
  for (; a != NULL && b != NULL; a = a->next, b = b->next) {
    assert_int_equal(a->spec.n_uses, b->spec.n_uses);
    assert_int_equal(a->spec.latency, b->spec.latency);
    assert_memory_equal(&a->spec.rate_cap_Bps, &b->spec.rate_cap_Bps, sizeof(double));
    assert_memory_equal(&a->spec.share_weight, &b->spec.share_weight, sizeof(double));
    assert_memory_equal(&a->progress_bytes, &b->progress_bytes, sizeof(double));
    for (uint32_t i = 0; i < a->spec.n_uses; i++) {
      assert_int_equal(a->uses[i].link, b->uses[i].link);
      assert_memory_equal(&a->uses[i].weight, &b->uses[i].weight, sizeof(double));
    }
  }
  assert_true(a == NULL && b == NULL);
}

static uint32_t random_group(uint64_t *state, const pl_cluster *cluster, uint32_t *members) {
  uint32_t stride = random_between(state, 1, 4), n = 0;
  for (uint32_t d = 0; d < cluster->n_devices; d += stride)
    members[n++] = d;
  if (random_below(state, 3) == 0) n = random_between(state, 1, n);
  for (uint32_t i = 0; i < n && random_below(state, 4) == 0; i++) {
    uint32_t j = random_between(state, i, n - 1), keep = members[i];
    members[i] = members[j];
    members[j] = keep;
  }
  return n;
}

static void compare_groups(uint64_t *state, const pl_cluster *cluster, const pl_collective_profile *profile) {
  pl_cluster plain = *cluster;
  uint32_t members[MOST_DEVICES], n = random_group(state, cluster, members);
  plain.shapes = NULL;
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_collective_options options = {.step_overhead_s = 1e-6};
  options.algorithm = (pl_collective_algorithm)random_below(state, PL_ALGORITHM_COUNT);
  options.sharing = random_below(state, 2) ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  options.profile = random_below(state, 2) ? profile : NULL;
  pl_collective_group *group, *each;
  assert_int_equal(pl_collective_group_take(cluster, members, n, &options, &arena, &group, &error), PL_OK);
  assert_int_equal(pl_collective_group_take(&plain, members, n, &options, &arena, &each, &error), PL_OK);
  assert_int_equal(pl_collective_group_channels(group), pl_collective_group_channels(each));
  for (uint32_t c = 0; c < pl_collective_group_channels(group); c++)
    assert_memory_equal(pl_collective_group_ring(group, c), pl_collective_group_ring(each, c), n * sizeof *members);
  for (int kind = 0; kind < PL_COLLECTIVE_COUNT; kind++) {
    if (kind == PL_ALL_TO_ALL && n > 64) continue;
    pl_fluid_collective a, b;
    double size_bytes = random_log(state, 1, 1e9);
    assert_int_equal(pl_collective_fluid(group, (pl_collective_kind)kind, size_bytes, &arena, &a, &error), PL_OK);
    assert_int_equal(pl_collective_fluid(each, (pl_collective_kind)kind, size_bytes, &arena, &b, &error), PL_OK);
    compare_fluids(&a, &b);
  }
  pl_arena_release(&arena);
}

/* ---- cases ---- */

static pl_collective_profile *load_profile(pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_collective_profile *profile = PL_TAKE(arena, pl_collective_profile, 1);
  assert_non_null(profile);
  if (pl_collective_profile_load(PACELINE_SOURCE_DIR "/platforms/collectives/nccl.json", arena, profile, &error) !=
      PL_OK)
    fail_msg("%s", error.message);
  return profile;
}

static void equal_machines_are_alike(void **unused) {
  (void)unused;
  uint64_t state = test_seed(41);
  for (uint32_t kind = 0; kind < N_KINDS; kind++)
    for (int fabric = 0; fabric < 3; fabric++) {
      pl_platform_plan plan = {.command = "test", .n_parts = 1, .oversubscription = 1, .pod_nodes = 5};
      plan.fabric = (pl_fabric)fabric;
      plan.parts[0].kind = pl_node_kind_find(kinds[kind]);
      plan.parts[0].n_nodes = random_below(&state, 2) ? 7 : 36;
      pl_platform *platform = make(&plan);
      assert_false(pl_platform_is_from_simgrid(platform));
      assert_int_equal(check_shapes(pl_platform_cluster(platform)), plan.parts[0].n_nodes - 1);
      pl_platform_destroy(platform);
    }
}

static void collectives_of_copies_are_those_of_each(void **unused) {
  (void)unused;
  uint64_t seed = test_seed(42), n_cases = test_number("PACELINE_CASES", 60), n_copies = 0;
  pl_arena keep;
  pl_arena_init(&keep, 0);
  const pl_collective_profile *profile = load_profile(&keep);
  for (uint64_t i = 0; i < n_cases; i++) {
    uint64_t state = seed + 1000 * i;
    pl_platform *platform = random_platform(&state);
    const pl_cluster *cluster = pl_platform_cluster(platform);
    n_copies += check_shapes(cluster);
    for (int round = 0; round < 6; round++)
      compare_groups(&state, cluster, profile);
    pl_platform_destroy(platform);
  }
  printf("%llu nodes were copies\n", (unsigned long long)n_copies);
  assert_true(n_copies > 5 * n_cases);
  pl_arena_release(&keep);
}

/* Nodes of three GPUs on direct links or behind a router. Of those that differ in one respect none is alike. */
static const char *const node_routes[] = {
    "<route src='NaG' dst='NbG'><link_ctn id='Nx'/></route><route src='NbG' dst='NcG'><link_ctn id='Ny'/></route>"
    "<route src='NaG' dst='NcG'><link_ctn id='Nz'/></route>",
    "<route src='NaG' dst='NbG'><link_ctn id='Ny'/></route><route src='NbG' dst='NcG'><link_ctn id='Nx'/></route>"
    "<route src='NaG' dst='NcG'><link_ctn id='Nz'/></route>", /* other links */
    "<route src='NaG' dst='NbG'><link_ctn id='Nx'/></route><route src='NaG' dst='NcG'><link_ctn id='Ny'/></route>"
    "<route src='NbG' dst='NcG'><link_ctn id='Nz'/></route>", /* other pairs */
    "<route src='NaG' dst='NbG'><link_ctn id='Nx'/></route><route src='NbG' dst='NcG'><link_ctn id='Ny'/></route>"
    "<route src='NaG' dst='NcG'><link_ctn id='Nz'/><link_ctn id='Nx'/></route>", /* longer */
    "<route src='NaG' dst='Nr'><link_ctn id='Nx'/></route><route src='NbG' dst='Nr'><link_ctn id='Ny'/></route>"
    "<route src='NcG' dst='Nr'><link_ctn id='Nz'/></route>", /* a star, by Floyd */
    "<route src='NaG' dst='Nr'><link_ctn id='Nx'/></route><route src='NbG' dst='Nr'><link_ctn id='Nz'/></route>"
    "<route src='NcG' dst='Nr'><link_ctn id='Ny'/></route>",
};
enum { N_ROUTES = sizeof node_routes / sizeof *node_routes, FIRST_FLOYD = 4 };

/* N stands for the node's name, G is left out. */
static void write_routes(FILE *file, const char *routes, uint32_t node) {
  for (const char *c = routes; *c != '\0'; c++) {
    if (*c == 'N')
      fprintf(file, "n%u", node);
    else if (*c != 'G')
      fputc(*c, file);
  }
}

static void write_node(FILE *file, uint32_t node, uint32_t way, const char *rate) {
  bool is_floyd = way >= FIRST_FLOYD;
  fprintf(file, "<zone id='n%u' routing='%s'>", node, is_floyd ? "Floyd" : "Full");
  for (const char *name = "abc"; *name != '\0'; name++)
    fprintf(file, "<host id='n%u%c' speed='1Gf'><prop id='device' value='V100-SXM2-32GB'/></host>", node, *name);
  fprintf(file, "<router id='n%ur'/>", node);
  for (const char *name = "xyz"; *name != '\0'; name++)
    fprintf(file, "<link id='n%u%c' bandwidth='%s' latency='1us'/>", node, *name, *name == 'y' ? rate : "10GBps");
  write_routes(file, node_routes[way], node);
  fprintf(file, "</zone>");
}

/* Two nodes of each way, the last ones once more with another rate. */
static void unlike_nodes_are_told_apart(void **unused) {
  (void)unused;
  char path[] = "/tmp/node_shape_test.XXXXXX";
  int descriptor = mkstemp(path);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  assert_non_null(file);
  fprintf(file, "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>"
                "<platform version='4.1'><zone id='all' routing='Full'>");
  uint32_t n_nodes = 2 * N_ROUTES + 2;
  for (uint32_t k = 0; k < n_nodes; k++)
    write_node(file, k, k < 2 * N_ROUTES ? k / 2 : N_ROUTES - 1, k < 2 * N_ROUTES ? "10GBps" : "5GBps");
  fprintf(file, "</zone></platform>\n");
  fclose(file);
  pl_platform *platform = load(path);
  unlink(path);
  const pl_cluster *cluster = pl_platform_cluster(platform);
  assert_non_null(cluster->shapes);
  assert_int_equal(cluster->n_nodes, n_nodes);
  for (uint32_t a = 0; a < n_nodes; a++)
    for (uint32_t b = 0; b < n_nodes; b++)
      assert_int_equal(cluster->shapes[a].kind == cluster->shapes[b].kind, a / 2 == b / 2);
  assert_int_equal(check_shapes(cluster), N_ROUTES + 1);
  pl_platform_destroy(platform);
}

/* A node whose links are varied by name is alike no more; one with the same change is. Parts keep what their nodes are.
 */
static void variations_and_parts(void **unused) {
  (void)unused;
  uint64_t state = test_seed(43);
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_collective_profile *profile = load_profile(&arena);
  pl_platform_plan plan = {.command = "test", .n_parts = 1, .oversubscription = 1, .pod_nodes = 8};
  plan.parts[0].kind = pl_node_kind_find("dgx-a100");
  plan.parts[0].n_nodes = 6;
  pl_platform *platform = make(&plan);
  const pl_cluster *base = pl_platform_cluster(platform), *varied, *part;
  static const char *const texts[] = {"link:n[14]nv*.bandwidth=x0.5", "link:n4nv2.latency=x3"};
  pl_vary_grid grid;
  assert_int_equal(pl_vary_grid_parse(texts, 2, &arena, &grid, &error), PL_OK);
  if (pl_vary_cluster_take(&grid, 0, base, &arena, &varied, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(check_shapes(base), 5);
  assert_int_equal(check_shapes(varied), 3); /* 0, 2, 3, 5; 1; 4 */
  uint32_t devices[40];
  for (uint32_t i = 0; i < 40; i++)
    devices[i] = 47 - i;
  assert_int_equal(pl_cluster_part_take(varied, devices, 40, &arena, &part, &error), PL_OK);
  assert_int_equal(part->shapes[0].kind, varied->shapes[5].kind);
  for (int round = 0; round < 20; round++) {
    compare_groups(&state, varied, profile);
    compare_groups(&state, part, profile);
  }
  pl_platform_destroy(platform);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_machines_are_alike),
      cmocka_unit_test(collectives_of_copies_are_those_of_each),
      cmocka_unit_test(unlike_nodes_are_told_apart),
      cmocka_unit_test(variations_and_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
