/* Tables of placements: as many as brute force finds orbits of, each valid, no two alike; placements of tables name
 * every device at most once and keep cells inside pools. Deals of microbatches equal the best of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "search/method/placement.h"
#include "search/method/placement_score.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"

enum { MOST_POOLS = 4, MOST_STAGES = 3 };

typedef struct shape {
  uint32_t n_stages, n_replicas, cell, n_pools;
  uint32_t room[MOST_POOLS];
  const pl_pools *pools;
} shape;

/* Whether no exchange of alike pools gives a table that comes before this one in the order of the enumeration. */
static bool is_first(const shape *own, const uint16_t *cells) {
  for (uint32_t p = 1; p < own->n_pools; p++) {
    if (own->pools->pools[p].kind != own->pools->pools[p - 1].kind) continue;
    for (uint32_t s = 0; s < own->n_stages; s++) {
      uint16_t before = cells[s * own->n_pools + p - 1], after = cells[s * own->n_pools + p];
      if (before > after) break;
      if (before < after) return false;
    }
  }
  return true;
}

/* Every matrix of small numbers. */
static uint32_t count_by_force(const shape *own) {
  uint32_t n_cells = own->n_stages * own->n_pools, n = 0, base = own->n_replicas + 1;
  uint64_t n_matrices = 1;
  for (uint32_t i = 0; i < n_cells; i++)
    n_matrices *= base;
  for (uint64_t code = 0; code < n_matrices; code++) {
    uint16_t cells[MOST_STAGES * MOST_POOLS];
    uint64_t rest = code;
    for (uint32_t i = 0; i < n_cells; i++, rest /= base)
      cells[i] = (uint16_t)(rest % base);
    bool valid = is_first(own, cells);
    for (uint32_t s = 0; s < own->n_stages && valid; s++) {
      uint32_t sum = 0;
      for (uint32_t p = 0; p < own->n_pools; p++)
        sum += cells[s * own->n_pools + p];
      valid = sum == own->n_replicas;
    }
    for (uint32_t p = 0; p < own->n_pools && valid; p++) {
      uint32_t sum = 0;
      for (uint32_t s = 0; s < own->n_stages; s++)
        sum += cells[s * own->n_pools + p];
      valid = sum <= own->room[p];
    }
    n += valid;
  }
  return n;
}

static void check_placement(const shape *own, const pl_cluster *cluster, const pl_placement_table *table,
                            pl_arena *arena) {
  pl_strategy strategy = {.pp = (int32_t)own->n_stages,
                          .dp = (int32_t)own->n_replicas,
                          .tmp = (int32_t)own->cell,
                          .vpp = 1,
                          .mbs = 1,
                          .order = "tdp"};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_placement_take(own->pools, table, &strategy, arena, &strategy.placement, &error), PL_OK);
  if (pl_strategy_check_placement(&strategy, cluster->n_devices, &error) != PL_OK) fail_msg("%s", error.message);
  for (int32_t s = 0; s < strategy.pp; s++)
    for (int32_t r = 0; r < strategy.dp; r++)
      for (int32_t t = 1; t < strategy.tmp; t++) {
        const pl_device *a = &cluster->devices[pl_strategy_device(&strategy, s, r, 0)];
        const pl_device *b = &cluster->devices[pl_strategy_device(&strategy, s, r, t)];
        assert_true(a->node == b->node && a->profile == b->profile);
      }
}

static uint32_t try_case(uint64_t *random) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = random_between(random, 1, 4);
  options.gpus_per_node = 4;
  options.nics_per_node = 1;
  pl_cluster *cluster = synthetic_cluster_create(&options);
  uint32_t slow = random_below(random, options.n_nodes + 1);
  for (uint32_t d = 0; d < 4 && slow < options.n_nodes; d++)
    synthetic_cluster_set_profile(cluster, 4 * slow + d, 1);
  static const double slowness[2] = {1, 3};
  pl_pools pools;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_pools_take(cluster, slowness, &arena, &pools, &error), PL_OK);
  assert_int_equal(pools.n_pools, options.n_nodes);
  uint32_t n_kinds = 1;
  for (uint32_t p = 1; p < pools.n_pools; p++)
    n_kinds += pools.pools[p].kind != pools.pools[p - 1].kind;
  assert_int_equal(n_kinds, slow < options.n_nodes && options.n_nodes > 1 ? 2 : 1);
  shape own = {.n_stages = random_between(random, 1, MOST_STAGES),
               .n_replicas = random_between(random, 1, 2),
               .cell = 1u << random_below(random, 3),
               .n_pools = pools.n_pools,
               .pools = &pools};
  for (uint32_t p = 0; p < pools.n_pools; p++)
    own.room[p] = pools.pools[p].n / own.cell;
  pl_placement_tables tables;
  assert_int_equal(
      pl_placement_tables_take(&pools, own.n_stages, own.n_replicas, own.cell, 1000000, &arena, &tables, &error),
      PL_OK);
  assert_true(tables.complete);
  assert_int_equal(tables.n, count_by_force(&own));
  size_t size = own.n_stages * own.n_pools * sizeof *tables.tables->cells;
  for (uint32_t i = 0; i < tables.n; i++) {
    assert_true(is_first(&own, tables.tables[i].cells));
    for (uint32_t j = 0; j < i; j++)
      assert_memory_not_equal(tables.tables[i].cells, tables.tables[j].cells, size);
    check_placement(&own, cluster, &tables.tables[i], &arena);
  }
  if (tables.n > 1) {
    pl_placement_tables some;
    assert_int_equal(
        pl_placement_tables_take(&pools, own.n_stages, own.n_replicas, own.cell, tables.n - 1, &arena, &some, &error),
        PL_OK);
    assert_true(!some.complete && some.n == tables.n - 1);
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
  return tables.n;
}

static void tables_are_all_orbits(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  uint32_t n = 0;
  for (int i = 0; i < 150; i++)
    n += try_case(&random);
  print_message("%u tables\n", n);
  assert_true(n > 300);
}

/* ---- dealing microbatches ---- */

/* Smallest time at which the last replica is done, over all ways to deal `left` units to replicas r.. */
static double best_deal_s(const double *pace_s, int32_t n, int32_t r, int32_t left) {
  if (r == n - 1) return left * pace_s[r];
  double best = INFINITY;
  for (int32_t units = 1; units <= left - (n - 1 - r); units++)
    best = fmin(best, fmax(units * pace_s[r], best_deal_s(pace_s, n, r + 1, left - units)));
  return best;
}

static void deals_are_the_best(void **state) {
  (void)state;
  uint64_t random = test_seed(1);
  for (int i = 0; i < 500; i++) {
    int32_t n = (int32_t)random_between(&random, 1, 5), n_units = n + (int32_t)random_below(&random, 14), split[5];
    int32_t unit = 1 + (int32_t)random_below(&random, 3), sum = 0;
    double pace_s[5], last_s = 0;
    for (int32_t r = 0; r < n; r++)
      pace_s[r] = random_log(&random, 1e-3, 2e-2);
    assert_true(pl_placement_deal(n, pace_s, n_units, unit, split));
    for (int32_t r = 0; r < n; r++) {
      assert_true(split[r] >= unit && split[r] % unit == 0);
      sum += split[r];
      int32_t units = split[r] / unit;
      last_s = fmax(last_s, units * pace_s[r]);
    }
    assert_int_equal(sum, n_units * unit);
    assert_true(last_s == best_deal_s(pace_s, n, 0, n_units));
    assert_false(pl_placement_deal(n, pace_s, n - 1, unit, split));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_all_orbits), cmocka_unit_test(deals_are_the_best)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
