/* The table of machines: NVLink meshes, relays, NIC maps, paths. Expected values are those of the published listings,
 * not of the code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "netmodel/make/node_kind.h"

static const pl_node_kind *find(const char *name) {
  const pl_node_kind *kind = pl_node_kind_find(name);
  assert_non_null(kind);
  return kind;
}

static uint32_t links_of(const pl_node_kind *kind, uint32_t gpu) {
  uint32_t n = 0;
  for (uint32_t peer = 0; peer < kind->n_gpus; peer++)
    n += kind->pair_links[gpu][peer];
  return n;
}

/* A V100 has six; p3.8xlarge is half of a cube mesh, without the links to the other half. A GH200 has 18. */
static uint32_t links_wanted(const pl_node_kind *kind, uint32_t gpu) {
  if (strncmp(kind->device, "GH200", 5) == 0) return 18;
  return kind->n_gpus == 8 ? 6 : gpu < 2 ? 4 : 5;
}

static void test_meshes_are_symmetric_and_complete(void **state) {
  (void)state;
  for (uint32_t i = 0; pl_node_kind_at(i) != NULL; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    for (uint32_t a = 0; a < kind->n_gpus && kind->pair_links != NULL; a++) {
      assert_int_equal(kind->pair_links[a][a], 0);
      assert_int_equal(links_of(kind, a), links_wanted(kind, a));
      for (uint32_t b = 0; b < kind->n_gpus; b++)
        assert_int_equal(kind->pair_links[a][b], kind->pair_links[b][a]);
    }
    assert_non_null(pl_device_speed(kind->device));
  }
}

/* nvidia-smi topo -m of a DGX-1V. */
static void test_dgx_1v_pairs(void **state) {
  (void)state;
  const pl_node_kind *kind = find("dgx-1v");
  static const struct {
    uint8_t a, b, links;
  } pairs[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
               {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  uint32_t seen[8][8] = {{0}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    seen[pairs[i].a][pairs[i].b] = pairs[i].links;
  for (uint32_t a = 0; a < 8; a++)
    for (uint32_t b = a + 1; b < 8; b++)
      assert_int_equal(kind->pair_links[a][b], seen[a][b]);
}

static void test_relays(void **state) {
  (void)state;
  const pl_node_kind *kind = find("dgx-1v");
  assert_int_equal(pl_node_kind_relay(kind, 0, 7), 4); /* two links on both sides; GPU 3 has one on one side */
  assert_int_equal(pl_node_kind_relay(kind, 7, 0), 4);
  assert_int_equal(pl_node_kind_relay(kind, 0, 5), 1); /* GPUs 1 and 4 tie with one and two links: the lower */
  assert_int_equal(pl_node_kind_relay(find("hc1"), 0, 5), PL_NODE_GPUS_MAX);
  pl_hop hops[PL_NODE_HOPS_MAX];
  assert_int_equal(pl_node_kind_path(kind, 7, 0, hops), 2);
  assert_true(hops[0].wire == PL_WIRE_NVLINK && hops[0].a == 4 && hops[0].b == 7 && !hops[0].up);
  assert_true(hops[1].wire == PL_WIRE_NVLINK && hops[1].a == 0 && hops[1].b == 4 && !hops[1].up);
}

static void test_every_mesh_pair_has_nvlink(void **state) {
  (void)state;
  for (uint32_t i = 0; pl_node_kind_at(i) != NULL; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    pl_hop hops[PL_NODE_HOPS_MAX];
    for (uint32_t a = 0; a < kind->n_gpus && kind->pair_links != NULL; a++)
      for (uint32_t b = 0; b < kind->n_gpus; b++)
        if (a != b) {
          uint32_t n = pl_node_kind_path(kind, a, b, hops);
          assert_in_range(n, 1, 2);
          assert_int_equal(hops[0].wire, PL_WIRE_NVLINK);
        }
  }
}

/* The way back crosses the same wires in the other direction, in the other order. */
static void test_paths_reverse(void **state) {
  (void)state;
  for (uint32_t i = 0; pl_node_kind_at(i) != NULL; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    for (uint32_t a = 0; a < kind->n_gpus; a++)
      for (uint32_t b = 0; b < kind->n_gpus; b++) {
        pl_hop there[PL_NODE_HOPS_MAX], back[PL_NODE_HOPS_MAX];
        if (a == b) continue;
        uint32_t n = pl_node_kind_path(kind, a, b, there);
        assert_int_equal(pl_node_kind_path(kind, b, a, back), n);
        for (uint32_t h = 0; h < n; h++) {
          pl_hop forward = there[h], backward = back[n - 1 - h];
          assert_true(forward.wire == backward.wire && forward.a == backward.a && forward.b == backward.b);
          if (forward.wire != PL_WIRE_MEMORY) assert_int_equal(forward.up, !backward.up); /* memory: both at once */
        }
      }
  }
}

static void test_sockets(void **state) {
  (void)state;
  pl_hop hops[PL_NODE_HOPS_MAX];
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 1, hops), 2); /* one switch */
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 2, hops), 5); /* one socket, through its memory */
  assert_true(hops[2].wire == PL_WIRE_MEMORY && hops[2].a == 0);
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 4, hops), 6); /* both, through that of the second */
  assert_int_equal(hops[2].wire, PL_WIRE_SOCKETS);
  assert_true(hops[2].up);
  assert_true(hops[3].wire == PL_WIRE_MEMORY && hops[3].a == 1);
  assert_int_equal(pl_node_kind_path(find("g4dn.12xlarge"), 0, 3, hops), 3); /* no switch: always */
  assert_int_equal(hops[1].wire, PL_WIRE_MEMORY);
  assert_int_equal(pl_node_kind_path_out(find("g4dn.12xlarge"), 0, hops), 2); /* only between GPUs */
  /* The NIC of HC2 is beside GPUs 2 and 3. */
  assert_int_equal(pl_node_kind_path_out(find("hc2"), 3, hops), 2);
  assert_int_equal(pl_node_kind_path_out(find("hc2"), 0, hops), 4);
  assert_int_equal(pl_node_kind_path_out(find("hc2"), 5, hops), 5);
  assert_true(hops[2].wire == PL_WIRE_SOCKETS && !hops[2].up);
}

static void test_dgx_nics_need_no_uplink(void **state) {
  (void)state;
  static const char *const names[] = {"dgx-1v", "dgx-2", "dgx-a100", "dgx-h100"};
  static const uint32_t gpus_per_nic[] = {2, 2, 1, 1};
  pl_hop hops[PL_NODE_HOPS_MAX];
  for (uint32_t i = 0; i < 4; i++) {
    const pl_node_kind *kind = find(names[i]);
    for (uint32_t g = 0; g < kind->n_gpus; g++) {
      assert_int_equal(pl_node_kind_path_out(kind, g, hops), 2);
      assert_true(hops[1].wire == PL_WIRE_NIC && hops[1].a == g / gpus_per_nic[i]);
    }
  }
}

static uint32_t count_wires(const pl_hop *hops, uint32_t n, pl_wire wire) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    count += hops[i].wire == wire;
  return count;
}

/* nvidia-smi topo -m: which GPUs are on which socket (CPU or NUMA affinity), and NODE, PHB or SYS to the others. */
static void test_gpus_near_sockets(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t n_sockets, first_far_gpu, hops_near;
  } cases[] = {{"dgx-1v", 2, 4, 2},   {"dgx-2", 2, 8, 3},      {"dgx-a100", 2, 4, 2},
               {"dgx-h100", 2, 4, 2}, {"p3.8xlarge", 1, 4, 1}, {"g4dn.12xlarge", 1, 4, 1},
               {"hc1", 2, 4, 2},      {"hc2", 2, 4, 2},        {"hc3", 2, 4, 2}};
  pl_hop hops[PL_NODE_HOPS_MAX];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const pl_node_kind *kind = find(cases[i].name);
    assert_int_equal(kind->n_sockets, cases[i].n_sockets);
    for (uint32_t g = 0; g < kind->n_gpus; g++)
      for (uint32_t s = 0; s < kind->n_sockets; s++) {
        bool far = (g >= cases[i].first_far_gpu) != (s == 1);
        uint32_t n = pl_node_kind_path_to_socket(kind, g, s, hops);
        assert_int_equal(n, cases[i].hops_near + far);
        assert_true(hops[0].wire == PL_WIRE_PCIE && hops[0].a == g && hops[0].up);
        assert_int_equal(count_wires(hops, n, PL_WIRE_SOCKETS), far);
        if (far) assert_true(hops[n - 1].wire == PL_WIRE_SOCKETS && hops[n - 1].up == (s == 1));
      }
  }
}

/* DGX-2: neighbours under one upper switch are PXB, the other pair of the socket NODE: up to the socket and back. */
static void test_two_levels_of_switches(void **state) {
  (void)state;
  pl_node_kind kind = *find("dgx-2");
  pl_hop hops[PL_NODE_HOPS_MAX];
  kind.port_GBps = 0; /* without NVLink, to see the way over PCIe */
  assert_int_equal(pl_node_kind_path(&kind, 0, 1, hops), 2);
  assert_int_equal(pl_node_kind_path(&kind, 0, 2, hops), 4);
  uint32_t n = pl_node_kind_path(&kind, 0, 4, hops);
  assert_true(n == 6 && count_wires(hops, n, PL_WIRE_TRUNK) == 2 && count_wires(hops, n, PL_WIRE_SOCKETS) == 0);
  n = pl_node_kind_path(&kind, 12, 3, hops);
  assert_true(n == 7 && count_wires(hops, n, PL_WIRE_TRUNK) == 2);
  assert_true(hops[1].wire == PL_WIRE_UPLINK && hops[1].a == 6 && hops[1].up);
  assert_true(hops[2].wire == PL_WIRE_TRUNK && hops[2].a == 3 && hops[2].up);
  assert_true(hops[3].wire == PL_WIRE_SOCKETS && !hops[3].up);
  assert_true(hops[4].wire == PL_WIRE_TRUNK && hops[4].a == 0 && !hops[4].up);
  assert_true(hops[5].wire == PL_WIRE_UPLINK && hops[5].a == 1 && !hops[5].up);
}

static void test_sockets_leave_by_their_own_nic(void **state) {
  (void)state;
  pl_hop hops[PL_NODE_HOPS_MAX];
  assert_int_equal(pl_node_kind_socket_nic(find("dgx-a100"), 0), 0);
  assert_int_equal(pl_node_kind_socket_nic(find("dgx-a100"), 1), 4);
  assert_int_equal(pl_node_kind_path_socket_out(find("dgx-a100"), 1, hops), 2);
  assert_true(hops[0].wire == PL_WIRE_UPLINK && hops[0].a == 2 && !hops[0].up);
  assert_true(hops[1].wire == PL_WIRE_NIC && hops[1].a == 4 && hops[1].up);
  /* The only NIC of HC2 is on socket 0. */
  assert_int_equal(pl_node_kind_path_socket_out(find("hc2"), 0, hops), 2);
  assert_int_equal(pl_node_kind_path_socket_out(find("hc2"), 1, hops), 3);
  assert_true(hops[0].wire == PL_WIRE_SOCKETS && !hops[0].up && hops[1].a == 1);
  assert_int_equal(pl_node_kind_path_socket_out(find("p3.8xlarge"), 0, hops), 1);
  assert_int_equal(pl_node_kind_path_sockets(0, 1, hops), 1);
  assert_true(hops[0].up);
  assert_int_equal(pl_node_kind_path_sockets(1, 1, hops), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_meshes_are_symmetric_and_complete),
      cmocka_unit_test(test_dgx_1v_pairs),
      cmocka_unit_test(test_relays),
      cmocka_unit_test(test_every_mesh_pair_has_nvlink),
      cmocka_unit_test(test_paths_reverse),
      cmocka_unit_test(test_sockets),
      cmocka_unit_test(test_dgx_nics_need_no_uplink),
      cmocka_unit_test(test_gpus_near_sockets),
      cmocka_unit_test(test_two_levels_of_switches),
      cmocka_unit_test(test_sockets_leave_by_their_own_nic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
