/* Known facts about real machines, asked of the cluster that the loader makes of the files in platforms/ and of
 * generated files: which wires a route crosses, their capacity and latency. SimGrid holds one platform per process,
 * hence a child per platform. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/digest.h"
#include "netmodel/make/platform_make.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/route_cache.h"
#include "netmodel/show/node_wiring.h"

enum { TEXT_BYTES = 1024 };

static pl_platform *platform; /* lives as long as the child */

static const pl_cluster *load(const char *path) {
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, "platforms/devices", &platform, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  return pl_platform_cluster(platform);
}

static void expect(bool condition, const char *what, const char *detail) {
  if (condition) return;
  fprintf(stderr, "not so: %s (%s)\n", what, detail);
  exit(1);
}

static uint32_t device(const pl_cluster *cluster, const char *name) {
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    if (strcmp(cluster->devices[d].name, name) == 0) return d;
  expect(false, "device exists", name);
  return 0;
}

static pl_route find_route(const pl_cluster *cluster, const char *from, const char *to) {
  pl_route route = {0};
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_cluster_route(cluster, device(cluster, from), device(cluster, to), &route, &error);
  expect(code == PL_OK, "route exists", error.message);
  return route;
}

/* `links` are the expected names in order, separated by blanks. */
static void expect_route(const pl_cluster *cluster, const char *from, const char *to, const char *links,
                         double latency_s) {
  char found[TEXT_BYTES] = "";
  pl_route route = find_route(cluster, from, to);
  for (uint32_t i = 0; i < route.n_links; i++) {
    size_t used = strlen(found);
    snprintf(found + used, sizeof found - used, "%s%s", i == 0 ? "" : " ", cluster->links[route.links[i]].name);
  }
  expect(strcmp(found, links) == 0, links, found);
  snprintf(found, sizeof found, "%s to %s: %.12g s", from, to, pl_ticks_to_s(route.latency));
  expect(fabs(pl_ticks_to_s(route.latency) - latency_s) < 1e-11, "latency", found);
}

/* From a GPU to a CPU socket. */
static void expect_socket_route(const pl_cluster *cluster, const char *from, const char *to, const char *links) {
  char found[TEXT_BYTES] = "";
  uint32_t n_sockets, socket = 0, crossed[PL_ROUTE_LINKS_MAX], n;
  const pl_platform_socket *sockets = pl_platform_sockets(platform, &n_sockets);
  while (socket < n_sockets && strcmp(sockets[socket].name, to) != 0)
    socket++;
  expect(socket < n_sockets, "socket exists", to);
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_platform_socket_route(platform, device(cluster, from), socket, crossed, &n, &error);
  expect(code == PL_OK, "route to a socket", error.message);
  for (uint32_t i = 0; i < n; i++) {
    size_t used = strlen(found);
    snprintf(found + used, sizeof found - used, "%s%s", i == 0 ? "" : " ", cluster->links[crossed[i]].name);
  }
  expect(strcmp(found, links) == 0, links, found);
}

static void expect_sockets(uint32_t n_expected, const char *cpu, uint32_t n_cores) {
  uint32_t n_sockets;
  const pl_platform_socket *sockets = pl_platform_sockets(platform, &n_sockets);
  expect(n_sockets == n_expected, "number of sockets", cpu);
  for (uint32_t s = 0; s < n_sockets; s++)
    expect(strcmp(sockets[s].cpu, cpu) == 0 && sockets[s].n_cores == n_cores, cpu, sockets[s].name);
}

static void expect_link(const pl_cluster *cluster, const char *name, double capacity_Bps, pl_link_kind kind,
                        pl_link_policy policy) {
  for (uint32_t l = 0; l < cluster->n_links; l++)
    if (strcmp(cluster->links[l].name, name) == 0) {
      const pl_link *link = &cluster->links[l];
      expect(link->capacity_Bps == capacity_Bps && link->kind == kind && link->policy == policy,
             "capacity, kind, policy", name);
      return;
    }
  expect(false, "link exists", name);
}

static void expect_sizes(const pl_cluster *cluster, uint32_t n_nodes, uint32_t gpus_per_node, const char *profile) {
  expect(cluster->n_nodes == n_nodes && cluster->n_devices == n_nodes * gpus_per_node, "sizes", profile);
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    expect(strcmp(pl_cluster_profile(cluster, d)->name, profile) == 0, "profile", cluster->devices[d].name);
}

static void check_dgx_a100(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/dgx-a100.xml");
  expect_sizes(c, 1, 8, "A100-SXM4-80GB");
  expect_route(c, "n0g0", "n0g1", "n0nv0_UP n0nv1_DOWN", 0.5e-6);
  expect_route(c, "n0g7", "n0g2", "n0nv7_UP n0nv2_DOWN", 0.5e-6);
  expect_link(c, "n0nv0_UP", 300e9, PL_LINK_NVLINK, PL_LINK_SHARED);
  expect_link(c, "n0pcie0_DOWN", 26e9, PL_LINK_PCIE, PL_LINK_SHARED);
  expect_link(c, "n0nic7_UP", 25e9, PL_LINK_NIC, PL_LINK_SHARED);
  expect_sockets(2, "EPYC 7742", 64);
  expect_socket_route(c, "n0g3", "n0cpu0", "n0pcie3_UP n0psw1_UP");
  expect_socket_route(c, "n0g3", "n0cpu1", "n0pcie3_UP n0psw1_UP n0qpi_UP");
  expect_link(c, "n0psw3_DOWN", 26e9, PL_LINK_PCIE, PL_LINK_SHARED);
  expect_link(c, "n0qpi_UP", 16e9, PL_LINK_CPU, PL_LINK_SHARED);
}

static void check_dgx_a100_16(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/dgx-a100-16.xml");
  expect_sizes(c, 16, 8, "A100-SXM4-80GB");
  expect_route(c, "n0g3", "n9g3", "n0pcie3_UP n0nic3_UP p0xbar n9nic3_DOWN n9pcie3_DOWN", 2.69e-6);
  expect_link(c, "p0xbar", 16 * 8 * 25e9, PL_LINK_FABRIC, PL_LINK_FATPIPE);
  expect_sockets(32, "EPYC 7742", 64);
  for (uint32_t l = 0; l < c->n_links; l++)
    expect(strstr(c->links[l].name, "leaf") == NULL, "16 nodes stay below their leaves", c->links[l].name);
}

static void check_dgx_h100_16(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/dgx-h100-16.xml");
  expect_sizes(c, 16, 8, "H100-SXM5-80GB");
  expect_route(c, "n15g0", "n0g0", "n15pcie0_UP n15nic0_UP p0xbar n0nic0_DOWN n0pcie0_DOWN", 2.69e-6);
  expect_link(c, "n15nv0_UP", 450e9, PL_LINK_NVLINK, PL_LINK_SHARED);
  expect_link(c, "n15nic0_UP", 50e9, PL_LINK_NIC, PL_LINK_SHARED);
  expect_sockets(32, "Xeon Platinum 8480C", 56);
  expect_socket_route(c, "n15g6", "n15cpu0", "n15pcie6_UP n15psw6_UP n15qpi_DOWN");
  expect_link(c, "n15qpi_UP", 22e9, PL_LINK_CPU, PL_LINK_SHARED);
}

static void check_dgx_1v(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/dgx-1v.xml");
  expect_sizes(c, 1, 8, "V100-SXM2-32GB");
  expect_route(c, "n0g0", "n0g3", "n0nv0-3_UP", 0.5e-6);
  expect_route(c, "n0g3", "n0g0", "n0nv0-3_DOWN", 0.5e-6);
  expect_route(c, "n0g0", "n0g7", "n0nv0-4_UP n0nv4-7_UP", 1e-6);
  expect_link(c, "n0nv0-3_UP", 50e9, PL_LINK_NVLINK, PL_LINK_SHARED);
  expect_link(c, "n0nv0-1_DOWN", 25e9, PL_LINK_NVLINK, PL_LINK_SHARED);
  expect_link(c, "n0nic3_UP", 12.5e9, PL_LINK_NIC, PL_LINK_SHARED);
  expect_sockets(2, "Xeon E5-2698 v4", 20);
  expect_socket_route(c, "n0g5", "n0cpu1", "n0pcie5_UP n0psw2_UP");
  expect_link(c, "n0qpi_DOWN", 6e9, PL_LINK_CPU, PL_LINK_SHARED);
}

static void check_dgx_2(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/dgx-2.xml");
  expect_sizes(c, 1, 16, "V100-SXM3-32GB");
  expect_route(c, "n0g0", "n0g15", "n0nv0_UP n0nv15_DOWN", 0.5e-6);
  expect_link(c, "n0nv15_UP", 150e9, PL_LINK_NVLINK, PL_LINK_SHARED);
  expect_sockets(2, "Xeon Platinum 8168", 24);
  expect_socket_route(c, "n0g0", "n0cpu0", "n0pcie0_UP n0psw0_UP n0ptop0_UP");
  expect_socket_route(c, "n0g0", "n0cpu1", "n0pcie0_UP n0psw0_UP n0ptop0_UP n0qpi_UP");
  expect_socket_route(c, "n0g3", "n0cpu0", "n0pcie3_UP n0psw1_UP n0ptop0_UP");
  expect_link(c, "n0ptop3_UP", 12e9, PL_LINK_PCIE, PL_LINK_SHARED);
}

static void check_hc1(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/hc1.xml");
  expect_sizes(c, 1, 8, "TitanXp");
  expect_route(c, "n0g0", "n0g1", "n0pcie0_UP n0pcie1_DOWN", 1e-6);
  expect_route(c, "n0g1", "n0g2", "n0pcie1_UP n0psw0_UP n0mem0 n0psw1_DOWN n0pcie2_DOWN", 1.2e-6);
  expect_route(c, "n0g7", "n0g0", "n0pcie7_UP n0psw3_UP n0mem1 n0qpi_DOWN n0psw0_DOWN n0pcie0_DOWN", 1.4e-6);
  expect_link(c, "n0qpi_UP", 38.4e9, PL_LINK_CPU, PL_LINK_SHARED);
  expect_link(c, "n0mem1", 38.4e9, PL_LINK_CPU, PL_LINK_SHARED); /* half of 76.8: written and read */
}

static void check_hc2(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/hc2.xml");
  expect_sizes(c, 4, 8, "V100-SXM2-32GB");
  expect_route(c, "n0g2", "n3g3", "n0pcie2_UP n0nic0_UP switch n3nic0_DOWN n3pcie3_DOWN", 2.69e-6);
  expect_route(c, "n0g4", "n1g2",
               "n0pcie4_UP n0psw2_UP n0qpi_DOWN n0psw1_DOWN n0nic0_UP switch n1nic0_DOWN n1pcie2_DOWN", 3.09e-6);
}

static void check_hc3(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/hc3.xml");
  expect_sizes(c, 2, 8, "A100-SXM4-40GB");
  expect_route(c, "n0g1", "n1g0", "n0pcie1_UP n0nic0_UP switch n1nic0_DOWN n1pcie0_DOWN", 2.69e-6);
}

static void check_amp(const char *path) {
  (void)path;
  const pl_cluster *c = load("platforms/amp-hetero-cluster.xml");
  expect(c->n_nodes == 4 && c->n_devices == 16 && c->n_profiles == 2, "sizes", "amp-hetero-cluster");
  expect(strcmp(pl_cluster_profile(c, 11)->name, "V100-SXM2-16GB") == 0, "profile", "last V100");
  expect(strcmp(pl_cluster_profile(c, 12)->name, "T4") == 0, "profile", "first T4");
  expect_route(c, "n0g0", "n0g3", "n0nv0-3_UP", 0.5e-6);
  expect_route(c, "n3g0", "n3g3", "n3pcie0_UP n3mem0 n3pcie3_DOWN", 1e-6);
  expect_route(c, "n0g0", "n3g1", "n0pcie0_UP n0nic0_UP switch n3nic0_DOWN n3pcie1_DOWN", 31e-6);
  expect_link(c, "n2nic0_UP", 1.25e9, PL_LINK_NIC, PL_LINK_SHARED);
  expect_link(c, "n3nic0_UP", 6.25e9, PL_LINK_NIC, PL_LINK_SHARED);
  expect_socket_route(c, "n0g3", "n0cpu0", "n0pcie3_UP");
  expect_socket_route(c, "n3g3", "n3cpu0", "n3pcie3_UP");
}

static void check_amp_homogeneous(const char *path) {
  (void)path;
  expect_sizes(load("platforms/amp-homogeneous.xml"), 4, 4, "T4");
}

static void check_amp_p3(const char *path) {
  (void)path;
  expect_sizes(load("platforms/amp-p3-4.xml"), 4, 4, "V100-SXM2-16GB");
}

/* Which socket is the nearest, as drawings have it. */
static void check_wiring(const char *path) {
  (void)path;
  load("platforms/dgx-2.xml");
  pl_node_wiring wiring;
  pl_error error = PL_ERROR_INIT;
  expect(pl_node_wiring_find(platform, 0, &wiring, &error) == PL_OK, "wiring", error.message);
  expect(wiring.n_sockets == 2 && wiring.bus_Bps == 9e9, "two sockets with UPI between them", "dgx-2");
  for (uint32_t g = 0; g < 16; g++)
    expect(wiring.socket[g] == g / 8, "nearest socket", "dgx-2");
}

static void make(const char *path, const char *kind, uint32_t n_nodes, pl_fabric fabric, uint32_t pod_nodes,
                 double oversubscription) {
  pl_platform_plan plan = {
      .n_parts = 1, .fabric = fabric, .pod_nodes = pod_nodes, .oversubscription = oversubscription, .command = "test"};
  plan.parts[0].kind = pl_node_kind_find(kind);
  plan.parts[0].n_nodes = n_nodes;
  pl_error error = PL_ERROR_INIT;
  expect(pl_platform_plan_check(&plan, &error) == PL_OK, "plan", error.message);
  expect(pl_platform_make_file(&plan, path, true, &error) == PL_OK, "file", error.message);
}

/* Every device, and of every pair the links of its route by name, capacity and kind. */
static uint64_t digest_of_routes(const pl_cluster *cluster) {
  pl_digest digest;
  pl_digest_init(&digest);
  for (uint32_t a = 0; a < cluster->n_devices; a++)
    for (uint32_t b = 0; b < cluster->n_devices; b++) {
      pl_route route;
      pl_error error = PL_ERROR_INIT;
      if (a == b) continue;
      expect(pl_cluster_route(cluster, a, b, &route, &error) == PL_OK, "route exists", error.message);
      pl_digest_bytes(&digest, cluster->devices[a].name, strlen(cluster->devices[a].name));
      pl_digest_u64(&digest, (uint64_t)route.latency);
      for (uint32_t l = 0; l < route.n_links; l++) {
        const pl_link *link = &cluster->links[route.links[l]];
        pl_digest_bytes(&digest, link->name, strlen(link->name));
        pl_digest_f64(&digest, link->capacity_Bps);
        pl_digest_u64(&digest, (uint64_t)link->kind << 8 | link->policy);
      }
    }
  return digest.value;
}

/* CPU sockets change nothing for GPUs: same devices, same routes. */
static void check_sockets_apart(const char *path) {
  for (uint32_t k = 0; pl_node_kind_at(k) != NULL; k++) {
    uint64_t digests[2];
    for (int with = 0; with < 2; with++) {
      const pl_node_kind *kind = pl_node_kind_at(k);
      pl_platform_plan plan = {.n_parts = 1,
                               .fabric = kind->pod_nodes > 0 ? PL_FABRIC_RAIL : PL_FABRIC_SINGLE,
                               .pod_nodes = 1,
                               .oversubscription = 1,
                               .sockets = with ? PL_SOCKETS_ALWAYS : PL_SOCKETS_NEVER,
                               .command = "test"};
      plan.parts[0].kind = kind;
      plan.parts[0].n_nodes = kind->n_nics > 0 ? 2 : 1;
      pl_error error = PL_ERROR_INIT;
      expect(pl_platform_make_file(&plan, path, true, &error) == PL_OK, "file", error.message);
      digests[with] = digest_of_routes(load(path));
      expect_sockets(with ? plan.parts[0].n_nodes * kind->n_sockets : 0, kind->cpu, kind->cpu_cores);
      pl_platform_destroy(platform);
    }
    expect(digests[0] == digests[1], "same routes with and without sockets", pl_node_kind_at(k)->name);
  }
}

/* Three pods of two nodes, leaves oversubscribed 2 to 1. */
static void check_pods(const char *path) {
  make(path, "dgx-a100", 6, PL_FABRIC_RAIL, 2, 2);
  const pl_cluster *c = load(path);
  expect_sizes(c, 6, 8, "A100-SXM4-80GB");
  expect_route(c, "n0g3", "n1g3", "n0pcie3_UP n0nic3_UP p0xbar n1nic3_DOWN n1pcie3_DOWN", 2.69e-6);
  expect_route(c, "n0g3", "n1g5", "n0pcie3_UP n0nic3_UP p0xbar n1nic5_DOWN n1pcie5_DOWN", 2.69e-6);
  expect_route(c, "n0g3", "n5g3",
               "n0pcie3_UP n0nic3_UP p0leaf3_UP p0xbar spine p2xbar p2leaf3_DOWN n5nic3_DOWN n5pcie3_DOWN", 2.95e-6);
  expect_route(c, "n5g1", "n2g6",
               "n5pcie1_UP n5nic1_UP p2leaf1_UP p2xbar spine p1xbar p1leaf6_DOWN n2nic6_DOWN n2pcie6_DOWN", 2.95e-6);
  expect_link(c, "p0leaf3_UP", 25e9, PL_LINK_FABRIC, PL_LINK_SHARED); /* two NICs of 25 GB/s, halved */
  expect_link(c, "spine", 48 * 25e9, PL_LINK_FABRIC, PL_LINK_FATPIPE);
}

/* NICs shared by two GPUs: both are on the rail of their NIC. */
static void check_shared_rails(const char *path) {
  make(path, "dgx-2", 3, PL_FABRIC_RAIL, 1, 1);
  const pl_cluster *c = load(path);
  expect_route(c, "n0g5", "n1g4",
               "n0pcie5_UP n0nic2_UP p0leaf2_UP p0xbar spine p1xbar p1leaf2_DOWN n1nic2_DOWN n1pcie4_DOWN", 2.95e-6);
  expect_link(c, "p0leaf2_DOWN", 12.5e9, PL_LINK_FABRIC, PL_LINK_SHARED);
}

static void check_fat_tree(const char *path) {
  make(path, "dgx-a100", 8, PL_FABRIC_FAT_TREE, 4, 4);
  const pl_cluster *c = load(path);
  expect_route(c, "n0g0", "n7g7",
               "n0pcie0_UP n0nic0_UP p0leaf0_UP p0xbar spine p1xbar p1leaf0_DOWN n7nic7_DOWN n7pcie7_DOWN", 2.95e-6);
  expect_link(c, "p1leaf0_UP", 4 * 8 * 25e9 / 4, PL_LINK_FABRIC, PL_LINK_SHARED);
}

/* Zones of 32 nodes only shorten the file: the latency is that of one switch. */
static void check_single_in_groups(const char *path) {
  make(path, "g4dn.12xlarge", 70, PL_FABRIC_SINGLE, 32, 1);
  const pl_cluster *c = load(path);
  expect_sizes(c, 70, 4, "T4");
  expect_route(c, "n0g1", "n1g0", "n0pcie1_UP n0nic0_UP switch n1nic0_DOWN n1pcie0_DOWN", 31e-6);
  expect_route(c, "n0g1", "n69g0", "n0pcie1_UP n0nic0_UP p0xbar switch p2xbar n69nic0_DOWN n69pcie0_DOWN", 31e-6);
}

/* 16,384 GPUs: 103 pods of 20, the last of 8. */
static void check_2048_nodes(const char *path) {
  make(path, "dgx-a100", 2048, PL_FABRIC_RAIL, 20, 1);
  const pl_cluster *c = load(path);
  expect_sizes(c, 2048, 8, "A100-SXM4-80GB");
  expect_route(c, "n0g0", "n0g7", "n0nv0_UP n0nv7_DOWN", 0.5e-6);
  expect_route(c, "n2040g4", "n2047g4", "n2040pcie4_UP n2040nic4_UP p102xbar n2047nic4_DOWN n2047pcie4_DOWN", 2.69e-6);
  expect_route(c, "n19g2", "n20g2",
               "n19pcie2_UP n19nic2_UP p0leaf2_UP p0xbar spine p1xbar p1leaf2_DOWN n20nic2_DOWN n20pcie2_DOWN",
               2.95e-6);
  expect_route(c, "n2047g7", "n0g0",
               "n2047pcie7_UP n2047nic7_UP p102leaf7_UP p102xbar spine p0xbar p0leaf0_DOWN n0nic0_DOWN n0pcie0_DOWN",
               2.95e-6);
  expect_sockets(0, "none above 256 nodes", 0);
  expect_link(c, "p102leaf0_UP", 20 * 25e9, PL_LINK_FABRIC, PL_LINK_SHARED);
}

static void in_child(void (*check)(const char *path)) {
  char path[] = "/tmp/paceline_facts_XXXXXX.xml";
  int file = mkstemps(path, 4), status;
  assert_true(file >= 0);
  close(file);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    check(path);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  unlink(path);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name)                                                                                                     \
  static void test_##name(void **state) {                                                                              \
    (void)state;                                                                                                       \
    in_child(check_##name);                                                                                            \
  }
TEST(dgx_a100)
TEST(dgx_a100_16)
TEST(dgx_h100_16)
TEST(dgx_1v)
TEST(dgx_2)
TEST(hc1)
TEST(hc2)
TEST(hc3)
TEST(amp)
TEST(amp_homogeneous)
TEST(amp_p3)
TEST(wiring)
TEST(sockets_apart)
TEST(pods)
TEST(shared_rails)
TEST(fat_tree)
TEST(single_in_groups)
TEST(2048_nodes)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dgx_a100),
      cmocka_unit_test(test_dgx_a100_16),
      cmocka_unit_test(test_dgx_h100_16),
      cmocka_unit_test(test_dgx_1v),
      cmocka_unit_test(test_dgx_2),
      cmocka_unit_test(test_hc1),
      cmocka_unit_test(test_hc2),
      cmocka_unit_test(test_hc3),
      cmocka_unit_test(test_amp),
      cmocka_unit_test(test_amp_homogeneous),
      cmocka_unit_test(test_amp_p3),
      cmocka_unit_test(test_wiring),
      cmocka_unit_test(test_sockets_apart),
      cmocka_unit_test(test_pods),
      cmocka_unit_test(test_shared_rails),
      cmocka_unit_test(test_fat_tree),
      cmocka_unit_test(test_single_in_groups),
      cmocka_unit_test(test_2048_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
