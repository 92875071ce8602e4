/* The table of machines: NVLink meshes, relays, NIC maps, paths. Expected values are those of the published listings,
 * not of the code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "netmodel/node_kind.h"

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

static void test_meshes_are_symmetric_and_complete(void **state) {
  (void)state;
  for (uint32_t i = 0; pl_node_kind_at(i) != NULL; i++) {
    const pl_node_kind *kind = pl_node_kind_at(i);
    for (uint32_t a = 0; a < kind->n_gpus && kind->pair_links != NULL; a++) {
      assert_int_equal(kind->pair_links[a][a], 0);
      /* A V100 has six; p3.8xlarge is half of a cube mesh, without the links to the other half. */
      assert_int_equal(links_of(kind, a), kind->n_gpus == 8 ? 6 : a < 2 ? 4 : 5);
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
          assert_int_equal(forward.up, !backward.up);
        }
      }
  }
}

static void test_sockets(void **state) {
  (void)state;
  pl_hop hops[PL_NODE_HOPS_MAX];
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 1, hops), 2); /* one switch */
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 2, hops), 4); /* one socket */
  assert_int_equal(pl_node_kind_path(find("hc1"), 0, 4, hops), 5); /* both */
  assert_int_equal(hops[2].wire, PL_WIRE_SOCKETS);
  assert_true(hops[2].up);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_meshes_are_symmetric_and_complete),
      cmocka_unit_test(test_dgx_1v_pairs),
      cmocka_unit_test(test_relays),
      cmocka_unit_test(test_every_mesh_pair_has_nvlink),
      cmocka_unit_test(test_paths_reverse),
      cmocka_unit_test(test_sockets),
      cmocka_unit_test(test_dgx_nics_need_no_uplink),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
