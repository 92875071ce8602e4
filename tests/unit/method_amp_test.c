/* Methods amp and anneal without a driver: what they propose is whole, in the order of its estimates, the same again,
 * and no allocation may fail unnoticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "search/method/method.h"
#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"

typedef struct fixture {
  pl_cluster *cluster;
  pl_arena arena; /* of the model */
  pl_model model;
  pl_job job;
  pl_simulate_options options;
  pl_space_choices choices;
  pl_search_problem problem;
} fixture;

static void build(fixture *own, uint32_t n_nodes, int n_layers) {
  char config[256];
  int size = snprintf(config, sizeof config,
                      "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":%d,\"n_head\":8,\"n_positions\":128,"
                      "\"vocab_size\":1000}",
                      n_layers);
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = n_nodes;
  options.gpus_per_node = 4;
  *own = (fixture){.cluster = synthetic_cluster_create(&options), .options = PL_SIMULATE_OPTIONS_DEFAULT};
  synthetic_cluster_set_profile(own->cluster, 0, 1);
  pl_arena_init(&own->arena, 0);
  own->job = (pl_job){.gbs = 32, .seq = 128, .dtype = PL_DTYPE_FP16, .bucket_bytes = 1e5};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("m.json", config, (size_t)size, &own->arena, &own->model, &error), PL_OK);
  pl_space_choices_init(&own->choices);
  own->problem = (pl_search_problem){.cluster = own->cluster,
                                     .model = &own->model,
                                     .job = &own->job,
                                     .options = &own->options,
                                     .choices = &own->choices,
                                     .seed = 1,
                                     .budget = UINT64_MAX};
}

static void release(fixture *own) {
  synthetic_cluster_release(own->cluster);
  pl_arena_release(&own->arena);
}

enum { MOST = 2000 };

static uint32_t propose_all(const pl_method *method, const fixture *own, pl_arena *arena, pl_proposal *all) {
  void *state;
  pl_error error = PL_ERROR_INIT;
  uint32_t n = 0, more;
  if (method->open(&own->problem, arena, &state, &error) != PL_OK) fail_msg("%s", error.message);
  do {
    assert_true(n + 7 <= MOST);
    assert_int_equal(method->propose(state, 7, all + n, &more, &error), PL_OK);
    n += more;
  } while (more > 0);
  return n;
}

static void proposals_are_whole_and_ordered(void **state) {
  (void)state;
  static pl_proposal all[MOST], again[MOST];
  static const char *const names[] = {"amp", "anneal"};
  static const struct {
    uint32_t n_nodes;
    int n_layers;
  } shapes[] = {{4, 24}, {2, 70}}; /* 70 layers: too many for AMP's dynamic program in a search */
  for (int i = 0; i < 4; i++) {
    fixture own;
    pl_arena arena;
    pl_arena_init(&arena, 0);
    build(&own, shapes[i / 2].n_nodes, shapes[i / 2].n_layers);
    const pl_method *method = pl_method_find(names[i % 2]);
    uint32_t n = propose_all(method, &own, &arena, all), n_placed = 0;
    assert_true(n > 10);
    assert_int_equal(propose_all(method, &own, &arena, again), n);
    for (uint32_t p = 0; p < n; p++) {
      pl_error error = PL_ERROR_INIT;
      const pl_strategy *strategy = &all[p].strategy;
      assert_non_null(strategy->boundary);
      if (pl_strategy_check(strategy, &own.model, &own.job, own.cluster->n_devices, &error) != PL_OK)
        fail_msg("%s", error.message);
      assert_true(all[p].estimate_s > 0 && (p == 0 || all[p].estimate_s >= all[p - 1].estimate_s));
      assert_true(all[p].bound_s <= 0 && all[p].estimate_s == again[p].estimate_s);
      assert_memory_equal(strategy->boundary, again[p].strategy.boundary,
                          (size_t)(strategy->pp + 1) * sizeof *strategy->boundary);
      n_placed += strategy->placement != NULL;
    }
    assert_int_equal(n_placed > 0, i % 2);
    pl_arena_release(&arena);
    release(&own);
  }
}

static void memory_fails(void **state) {
  (void)state;
  static const char *const names[] = {"amp", "anneal"};
  fixture own;
  build(&own, 1, 6);
  own.choices.tmp = (pl_int_set){.n_ranges = 1, .lowest = {1}, .highest = {2}};
  for (int i = 0; i < 2; i++) {
    int64_t n_failed = 0;
    /* Each of the first, then ever fewer: a failure late in the search has all of it run before. */
    for (int64_t k = 0;; k += 1 + k / (i > 0 ? 4 : TEST_IS_SANITIZED ? 8 : 16), n_failed++) {
      pl_arena arena;
      pl_arena_init(&arena, 0);
      arena.fail_after = k;
      void *search;
      pl_error error = PL_ERROR_INIT;
      pl_code code = pl_method_find(names[i])->open(&own.problem, &arena, &search, &error);
      pl_arena_release(&arena);
      assert_int_equal(code, error.code);
      if (code == PL_OK) break;
      assert_int_equal(code, PL_NO_MEMORY);
    }
    assert_true(n_failed > 30);
  }
  release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(proposals_are_whole_and_ordered),
      cmocka_unit_test(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
