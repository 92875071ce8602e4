/* The k-th request to the arena fails, for every k of a whole simulation (under a sanitizer for every third):
 * PL_NO_MEMORY with a message, no crash, and the next try with enough memory gives the same result as ever. Each way of
 * simulating has its own run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/run/simulate.h"

typedef struct subject {
  pl_cluster *cluster;
  pl_arena arena; /* of model and strategy */
  pl_model model;
  pl_job job;
  pl_strategy strategy;
} subject;

static void make_subject(subject *own, const char *text) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":6,\"n_head\":8,"
                               "\"n_positions\":128,\"vocab_size\":1000}";
  synthetic_options options = synthetic_cluster_defaults();
  options.n_nodes = 2;
  options.gpus_per_node = 4;
  own->cluster = synthetic_cluster_create(&options);
  pl_arena_init(&own->arena, 0);
  own->job = (pl_job){.gbs = 16, .seq = 128, .dtype = PL_DTYPE_FP16, .bucket_bytes = 1e5};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_parse("m.json", config, sizeof config - 1, &own->arena, &own->model, &error), PL_OK);
  assert_int_equal(pl_strategy_parse(text, &own->model, &own->arena, &own->strategy, &error), PL_OK);
  if (pl_strategy_check(&own->strategy, &own->model, &own->job, own->cluster->n_devices, &error) != PL_OK)
    fail_msg("%s", error.message);
  assert_int_equal(pl_strategy_assign(&own->strategy, &own->model, &own->job, own->cluster, &own->arena, &error),
                   PL_OK);
}

static void release_subject(subject *own) {
  pl_arena_release(&own->arena);
  synthetic_cluster_release(own->cluster);
}

static pl_code simulate(const subject *own, const pl_simulate_options *options, int64_t fail_after, uint64_t *digest) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  arena.fail_after = fail_after;
  pl_error error = PL_ERROR_INIT;
  pl_simulate_report report;
  pl_code code = pl_simulate(own->cluster, &own->model, &own->job, &own->strategy, options, &arena, &report, &error);
  assert_int_equal(code, error.code);
  if (code != PL_OK) {
    if (code != PL_NO_MEMORY || error.message[0] == '\0')
      fail_msg("take %lld: code %d, '%s'", (long long)fail_after, code, error.message);
  } else {
    *digest = report.row.run_digest;
  }
  pl_arena_release(&arena);
  return code;
}

/* Takes that a whole run makes: the smallest limit with which it succeeds. */
static int64_t count_takes(const subject *own, const pl_simulate_options *options, uint64_t *digest) {
  int64_t low = 0, high = 1 << 22; /* fails at low, succeeds at high */
  assert_int_equal(simulate(own, options, high, digest), PL_OK);
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (simulate(own, options, middle, digest) == PL_OK) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

static void survives(const char *strategy, const pl_simulate_options *options) {
  subject own;
  make_subject(&own, strategy);
  uint64_t digest = 0, again = 1;
  int64_t takes = count_takes(&own, options, &digest);
  for (int64_t k = 0; k < takes; k += TEST_IS_SANITIZED ? 3 : 1)
    if (simulate(&own, options, k, &again) == PL_OK) fail_msg("take %lld failed unnoticed", (long long)k);
  assert_int_equal(simulate(&own, options, takes, &again), PL_OK);
  assert_true(digest == again);
  print_message("%s: %lld takes\n", strategy, (long long)takes);
  release_subject(&own);
}

static void folded_and_fused(void **state) {
  (void)state;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  survives("pp=2,dp=2,tmp=2,mbs=1", &options);
  survives("pp=2,dp=2,tmp=2,mbs=1,vpp=2,sp=1,recompute=full,zero=1,order=pdt", &options);
  survives("pp=2,dp=2,tmp=2,mbs=1,schedule=zb-v,recompute=full", &options);
  survives("pp=1,dp=4,tmp=2,mbs=1,zero=3", &options);
}

static void whole(void **state) {
  (void)state;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.fold = options.fuse = false;
  options.algorithm = PL_ALGORITHM_HIERARCHICAL;
  survives("pp=1,dp=4,tmp=2,mbs=1,zero=2", &options);
}

static void chunked(void **state) {
  (void)state;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.chunked = true;
  survives("pp=2,dp=2,tmp=2,mbs=2", &options);
}

static void analytic_and_ready(void **state) {
  (void)state;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.network = PL_NETWORK_ANALYTIC;
  survives("pp=2,dp=4,tmp=1,mbs=1,schedule=gpipe", &options);
  options.network = PL_NETWORK_FLOW;
  options.streams = PL_STREAMS_READY;
  survives("pp=2,dp=2,tmp=2,mbs=1", &options);
}

static void with_a_timeline(void **state) {
  (void)state;
  FILE *nowhere = fopen("/dev/null", "w");
  assert_non_null(nowhere);
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.trace = nowhere;
  survives("pp=2,dp=2,tmp=2,mbs=1", &options);
  fclose(nowhere);
}

static void explained(void **state) {
  (void)state;
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  pl_explanation explanation;
  options.explanation = &explanation;
  survives("pp=2,dp=2,tmp=2,mbs=1", &options);
  options.chunked = true;
  survives("pp=2,dp=2,tmp=2,mbs=4", &options);
}

static void with_features(void **state) {
  (void)state;
  double features[PL_N_FEATURES + 3 * PL_N_STAGE_FEATURES];
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.features = features;
  options.n_feature_stages = 3;
  survives("pp=2,dp=2,tmp=2,mbs=1", &options);
  assert_true(pl_stage_feature(features, PL_FEATURE_stage_layers, 3)[1] == 3);
  assert_true(isnan(pl_stage_feature(features, PL_FEATURE_stage_layers, 3)[2]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folded_and_fused),   cmocka_unit_test(whole),           cmocka_unit_test(chunked),
      cmocka_unit_test(analytic_and_ready), cmocka_unit_test(with_a_timeline), cmocka_unit_test(explained),
      cmocka_unit_test(with_features),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
