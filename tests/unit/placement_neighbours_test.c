/* The neighbours of a placed strategy: all of them, each once, whatever their number, and none that is no strategy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "search/method/placement_neighbours.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"

enum { NODES = 8, GPUS = 4, DEVICES = NODES * GPUS, PP = 8, DP = 4, LAYERS = 24, MOST = 2000 };

static bool is_same(const pl_strategy *a, const pl_strategy *b) {
  if (a->recipe != b->recipe || (a->boundary == NULL) != (b->boundary == NULL)) return false;
  if (a->boundary != NULL && memcmp(a->boundary, b->boundary, (PP + 1) * sizeof *a->boundary) != 0) return false;
  if (memcmp(a->split, b->split, DP * sizeof *a->split) != 0) return false;
  for (uint32_t rank = 0; rank < DEVICES; rank++)
    if (pl_strategy_device_of_rank(a, rank) != pl_strategy_device_of_rank(b, rank)) return false;
  return true;
}

/* Boundaries both ways: 2 (PP - 1), all of which move. One microbatch from each run's end to another's start: runs 5,
 * 3 3, 1: from the 5 to two starts, from the second 3 to the 5, to its own run's start and to the 1, and none from the
 * 1, which would have none left. Cells of a node are neighbours in a stage: 32 cells, 4 of them in each node. */
static void all_neighbours_once(void **state) {
  (void)state;
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":24,\"n_head\":4,\"n_positions\":64,"
                               "\"vocab_size\":500}";
  static const int32_t split[DP] = {5, 3, 3, 1};
  const uint32_t n_boundaries = 2 * (PP - 1), n_splits = 2 + 3;
  const uint32_t n_exchanges = DEVICES * (DEVICES - 1) / 2 - NODES * GPUS * (GPUS - 1) / 2;
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = NODES;
  options.gpus_per_node = GPUS;
  pl_cluster *cluster = synthetic_cluster_create(&options);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_model model;
  assert_int_equal(pl_model_parse("m.json", config, strlen(config), &arena, &model, &error), PL_OK);
  const pl_job job = {.gbs = 12, .seq = 64, .dtype = PL_DTYPE_FP16, .bucket_bytes = 1e6};
  const pl_simulate_options simulate = PL_SIMULATE_OPTIONS_DEFAULT;
  const pl_search_problem problem = {.cluster = cluster, .model = &model, .job = &job, .options = &simulate};
  pl_strategy strategy = {.pp = PP, .dp = DP, .tmp = 1, .mbs = 1, .vpp = 1, .order = "tdp", .split = split};
  assert_int_equal(pl_strategy_check(&strategy, &model, &job, DEVICES, &error), PL_OK);
  pl_placement_neighbours neighbours;
  strategy.recipe = PL_ASSIGN_UNIFORM;
  assert_int_equal(pl_placement_neighbours_init(&neighbours, &problem, &strategy, &arena, &error), PL_OK);
  static pl_strategy all[MOST];
  uint32_t n = 0;
  while (pl_placement_neighbours_next(&neighbours, &arena, &all[n])) {
    assert_int_equal(pl_strategy_check(&all[n], &model, &job, DEVICES, &error), PL_OK);
    assert_false(is_same(&all[n], &neighbours.from));
    for (uint32_t before = 0; before < n; before++)
      assert_false(is_same(&all[n], &all[before]));
    assert_true(++n < MOST);
  }
  assert_int_equal(n, n_boundaries + n_splits + 2 * n_exchanges);
  assert_true(n > 256);
  pl_arena_release(&arena);
  synthetic_cluster_release(cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_neighbours_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
