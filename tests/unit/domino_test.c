/* Domino tilings: every device once, every stage a rectangle of the right sides, all tilings of a small mesh found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "search/method/domino.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

enum { MOST = 256 };

/* Height of the rectangle that `devices` are on; fails when they are not one, or not numbered down its columns. */
static int32_t height_of(const pl_domino_mesh *mesh, const uint32_t *devices, int32_t n) {
  int32_t height = 1;
  while (height < n && devices[height] == devices[height - 1] + 1 && devices[height] % (uint32_t)mesh->rows != 0)
    height++;
  assert_int_equal(n % height, 0);
  for (int32_t i = 0; i < n; i++)
    assert_int_equal(devices[i], devices[0] + (uint32_t)(i / height * mesh->rows + i % height));
  return height;
}

static void check_tiling(const pl_domino_mesh *mesh, int32_t tmp, int32_t dp, const uint32_t *devices) {
  int32_t n = mesh->rows * mesh->columns, area = tmp * dp;
  bool fits = (tmp <= mesh->rows && dp <= mesh->columns) || (dp <= mesh->rows && tmp <= mesh->columns);
  bool seen[MOST] = {false};
  for (int32_t i = 0; i < n; i++) {
    assert_true(devices[i] < (uint32_t)n && !seen[devices[i]]);
    seen[devices[i]] = true;
  }
  for (int32_t stage = 0; stage < n / area; stage++) {
    int32_t height = height_of(mesh, devices + stage * area, area);
    /* of a column of the mesh that is all in the stage nothing tells whether it is one rectangle or two beside */
    if (fits && height < mesh->rows) assert_true(height == tmp || height == dp);
    if (stage > 0) assert_true(devices[stage * area] > devices[(stage - 1) * area]);
  }
}

static void random_meshes(void **state) {
  (void)state;
  uint64_t random = test_seed(4), numbers = 1;
  int n_found = 0;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  for (int trial = 0; trial < 2000; trial++) {
    pl_domino_mesh mesh = {1 << random_below(&random, 4), 1};
    mesh.columns = 1 << random_below(&random, 5);
    int32_t tmp = 1 << random_below(&random, 4), dp = 1 << random_below(&random, 5);
    uint32_t devices[MOST], again[MOST];
    uint64_t copy = numbers;
    bool found = pl_domino_tile(&mesh, tmp, dp, &numbers, &arena, devices);
    if (tmp * dp > mesh.rows * mesh.columns) assert_false(found);
    assert_int_equal(pl_domino_tile(&mesh, tmp, dp, &copy, &arena, again), found);
    assert_int_equal(copy, numbers);
    if (!found) continue;
    n_found++;
    assert_memory_equal(devices, again, (size_t)(mesh.rows * mesh.columns) * sizeof *devices);
    check_tiling(&mesh, tmp, dp, devices);
  }
  printf("%d of 2000 tiled\n", n_found);
  assert_true(n_found > 1000);
  pl_arena_release(&arena);
}

/* A mesh of 4 x 4 has 36 tilings with dominoes (Kasteleyn 1961), each drawn sooner or later. */
static void all_36_of_four_by_four(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  const pl_domino_mesh mesh = {4, 4};
  uint32_t seen[64][16];
  int n_seen = 0;
  uint64_t numbers = 1;
  for (int trial = 0; trial < 3000; trial++) {
    uint32_t devices[16];
    assert_true(pl_domino_tile(&mesh, 2, 1, &numbers, &arena, devices));
    int known = 0;
    while (known < n_seen && memcmp(seen[known], devices, sizeof devices) != 0)
      known++;
    assert_true(known < 64);
    if (known == n_seen) memcpy(seen[n_seen++], devices, sizeof devices);
  }
  assert_int_equal(n_seen, 36);
  pl_arena_release(&arena);
}

static void refuses_what_has_no_tiling(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t devices[MOST];
  uint64_t numbers = 1;
  assert_false(pl_domino_tile(&(pl_domino_mesh){3, 5}, 2, 1, &numbers, &arena, devices)); /* odd */
  assert_false(pl_domino_tile(&(pl_domino_mesh){6, 6}, 4, 1, &numbers, &arena, devices)); /* 4 does not tile 6 x 6 */
  /* 16 in a row do not fit a mesh of 4 x 4: all of it, as one rectangle */
  assert_true(pl_domino_tile(&(pl_domino_mesh){4, 4}, 1, 16, &numbers, &arena, devices));
  arena.fail_after = 0;
  assert_false(pl_domino_tile(&(pl_domino_mesh){4, 4}, 2, 2, &numbers, &arena, devices));
  assert_true(arena.failed);
  pl_arena_release(&arena);
}

static void columns_stay_inside_nodes(void **state) {
  (void)state;
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = 3;
  pl_cluster *cluster = synthetic_cluster_create(&options);
  pl_domino_mesh mesh = pl_domino_mesh_of(cluster);
  assert_int_equal(mesh.rows, 8);
  assert_int_equal(mesh.columns, 3);
  synthetic_cluster_release(cluster);
  options.n_nodes = 12;
  options.gpus_per_node = 1;
  cluster = synthetic_cluster_create(&options);
  mesh = pl_domino_mesh_of(cluster);
  assert_int_equal(mesh.rows, 3);
  assert_int_equal(mesh.columns, 4);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_meshes),
      cmocka_unit_test(all_36_of_four_by_four),
      cmocka_unit_test(refuses_what_has_no_tiling),
      cmocka_unit_test(columns_stay_inside_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
