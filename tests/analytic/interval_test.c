/* Prediction intervals against what they are defined as: every second that devices are busy is doubted once, shares are
 * those of the breakdown, squares add up, and nothing of it changes the run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "tests/support/model_file.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/cost/op_cost.h"
#include "workloads/lower/block_program.h"
#include "workloads/run/simulate.h"

static pl_arena arena;
static pl_model model;
static pl_cluster *cluster;
static pl_framework framework;

static int set_up(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  model = load_model("workloads/models", "gpt2-345m", &arena);
  if (pl_framework_load("megatron-core", &arena, &framework, &error) != PL_OK) fail_msg("%s", error.message);
  const synthetic_options options = {.n_nodes = 2, .gpus_per_node = 4, .nics_per_node = 4};
  cluster = synthetic_cluster_create(&options);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
  return 0;
}

static pl_residuals all_at(double half) {
  pl_residuals residuals = {.centre = 0};
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    residuals.half[i] = half;
  return residuals;
}

typedef struct outcome {
  pl_simulate_report report;
  pl_feature_values features;
} outcome;

static outcome simulate(const char *text, const pl_residuals *residuals, pl_explanation *explanation) {
  outcome out;
  pl_error error = PL_ERROR_INIT;
  pl_job job = {.gbs = 16, .seq = 512, .dtype = PL_DTYPE_FP16};
  pl_framework_apply(&framework, &job);
  pl_strategy strategy;
  double *features = PL_TAKE(&arena, double, PL_N_FEATURES + PL_N_STAGE_FEATURES * 8);
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.residuals = residuals;
  options.explanation = explanation;
  if (explanation == NULL) {
    options.features = features;
    options.n_feature_stages = 8;
  }
  assert_non_null(features);
  if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, cluster, &arena, &error) != PL_OK ||
      pl_strategy_check(&strategy, &model, &job, cluster->n_devices, &error) != PL_OK ||
      pl_simulate(cluster, &model, &job, &strategy, &options, &arena, &out.report, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  memcpy(&out.features, features, sizeof out.features);
  return out;
}

static const char *const strategies[] = {
    "pp=1,dp=8,tmp=1,mbs=1,overlap=1", "pp=1,dp=2,tmp=4,mbs=2,overlap=0",
    "pp=4,dp=2,tmp=1,mbs=1,overlap=1", "pp=2,dp=1,tmp=4,mbs=1,sp=1,recompute=full",
    "pp=1,dp=8,tmp=1,mbs=1,zero=3",    "pp=2,dp=2,tmp=2,mbs=1,schedule=interleaved,vpp=2"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

static double sum_of_kinds(const pl_interval *interval) {
  double sum = 0;
  for (int kind = 0; kind < PL_DOUBT_RUN; kind++)
    sum += interval->half[kind];
  return sum;
}

/* With the same residual r for everything, the kinds come to r; but for collectives inside fused passes, which an
 * overlap may slow down unseen. */
static void all_time_is_doubted_once(void **state) {
  (void)state;
  const pl_residuals residuals = all_at(0.3);
  for (int i = 0; i < STRATEGIES; i++) {
    outcome out = simulate(strategies[i], &residuals, NULL);
    double sum = sum_of_kinds(&out.report.interval);
    if (fabs(sum - 0.3) > 1e-3 * 0.3) fail_msg("%s: kinds add up to %.9g of 0.3", strategies[i], sum);
  }
}

static void shares_are_those_of_the_breakdown(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    pl_residuals residuals = all_at(0);
    residuals.half[PL_RESIDUAL_gemm_roofline] = 0.5;
    residuals.half[PL_RESIDUAL_host] = 0.7;
    residuals.half[PL_RESIDUAL_source] = 0.1;
    residuals.centre = 0.05;
    outcome out = simulate(strategies[i], &residuals, NULL);
    const pl_interval *interval = &out.report.interval;
    double time_s = out.report.row.iter_time_s, busy_s = time_s - out.report.row.bubble_s;
    double gemm = 0.5 * out.features.gemm_s / busy_s, host = 0.7 * out.features.host_s / busy_s;
    if (fabs(interval->half[PL_DOUBT_GEMM] - gemm) > 1e-6 || fabs(interval->half[PL_DOUBT_HOST] - host) > 1e-6)
      fail_msg("%s: products %g, breakdown %g; host %g, breakdown %g", strategies[i], interval->half[PL_DOUBT_GEMM],
               gemm, interval->half[PL_DOUBT_HOST], host);
    assert_true(gemm > 0 && host > 0);
    double source = 0.1 * sqrt(1.0 + interval->unseen.n);
    double half = sqrt(gemm * gemm + host * host + source * source);
    assert_true(fabs(interval->low_s / (time_s * exp(0.05 - half)) - 1) < 1e-6);
    assert_true(fabs(interval->high_s / (time_s * exp(0.05 + half)) - 1) < 1e-6);
  }
}

static double seconds_of(const pl_op_list *list, const pl_device_profile *profile, pl_op_kind kind) {
  double sum_s = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    if (list->ops[i].kind == kind) sum_s += pl_op_cost(profile, &list->ops[i]).time_s;
  return sum_s;
}

/* The share of matrix products worked out from the ops themselves, by none of what the simulation keeps of its parts:
 * one device, ideal software, so that nothing waits, hides or is late, and an iteration is M times the ops of all
 * blocks and one step of the optimizer. With r for products and nothing else,
 *
 *   half = r * M * (products of all blocks, forward and backward) / iteration time */
static void share_of_products_is_that_of_the_ops(void **state) {
  (void)state;
  const synthetic_options options = {.n_nodes = 1, .gpus_per_node = 1, .nics_per_node = 1};
  pl_cluster *one = synthetic_cluster_create(&options);
  const int64_t n_microbatches = 3;
  const pl_job job = {.gbs = n_microbatches, .seq = 512, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 25e6};
  pl_residuals residuals = all_at(0);
  residuals.half[PL_RESIDUAL_gemm_roofline] = 0.5;
  pl_simulate_options asked = PL_SIMULATE_OPTIONS_DEFAULT;
  asked.residuals = &residuals;
  pl_strategy strategy;
  pl_simulate_report report;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse("pp=1,dp=1,tmp=1,mbs=1", &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, one, &arena, &error) != PL_OK ||
      pl_simulate(one, &model, &job, &strategy, &asked, &arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  const pl_device_profile *profile = pl_cluster_profile(one, 0);
  const pl_block_shard shard = pl_strategy_shard(&strategy, &job);
  double products_s = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(&model); block++) {
    pl_block_program program;
    if (pl_block_program_take(&model, pl_model_block_kind(&model, block), &shard, &arena, &program, &error) != PL_OK)
      fail_msg("%s", error.message);
    products_s +=
        seconds_of(&program.forward, profile, PL_OP_GEMM) + seconds_of(&program.backward, profile, PL_OP_GEMM);
  }
  double share = (double)n_microbatches * products_s / report.row.iter_time_s;
  assert_true(share > 0.3 && share < 1);
  if (fabs(report.interval.half[PL_DOUBT_GEMM] / (0.5 * share) - 1) > 1e-6)
    fail_msg("half %.9g, by the ops %.9g", report.interval.half[PL_DOUBT_GEMM], 0.5 * share);
  assert_true(fabs(report.interval.high_s / (report.row.iter_time_s * exp(0.5 * share)) - 1) < 1e-6);
  synthetic_cluster_release(one);
}

/* explain and simulate say the same, and asking changes nothing. */
static void asking_changes_nothing(void **state) {
  (void)state;
  const pl_residuals residuals = all_at(0.2);
  for (int i = 0; i < STRATEGIES; i++) {
    pl_explanation explanation;
    outcome plain = simulate(strategies[i], NULL, NULL), asked = simulate(strategies[i], &residuals, NULL),
            explained = simulate(strategies[i], &residuals, &explanation);
    assert_true(isnan(plain.report.interval.low_s) && isnan(plain.report.interval.high_s));
    assert_true(plain.report.row.run_digest == asked.report.row.run_digest);
    double apart = explained.report.interval.high_s / asked.report.interval.high_s - 1;
    if (fabs(apart) > 1e-3) fail_msg("%s: explain's upper end is off by %g", strategies[i], apart);
  }
}

static bool is_unseen(const pl_interval *interval, const char *aspect) {
  for (uint32_t i = 0; i < interval->unseen.n; i++)
    if (strcmp(interval->unseen.text[i], aspect) == 0) return true;
  return false;
}

static void what_was_never_seen_counts_once_each(void **state) {
  (void)state;
  const char *const seen[] = {"framework megatron-core", "schedule interleaved"};
  pl_residuals residuals = all_at(0);
  residuals.half[PL_RESIDUAL_source] = 0.1;
  outcome none = simulate(strategies[5], &residuals, NULL);
  const pl_interval *interval = &none.report.interval;
  assert_true(is_unseen(interval, "framework megatron-core") && is_unseen(interval, "schedule interleaved"));
  assert_true(is_unseen(interval, "tensor parallelism") && !is_unseen(interval, "experts"));
  uint32_t n = interval->unseen.n;
  assert_true(fabs(interval->half[PL_DOUBT_SOURCE] - 0.1 * sqrt(1.0 + n)) < 1e-12);
  residuals.seen = seen;
  residuals.n_seen = 2;
  outcome some = simulate(strategies[5], &residuals, NULL);
  assert_int_equal(some.report.interval.unseen.n, n - 2);
  assert_true(some.report.interval.high_s < none.report.interval.high_s);
}

/* All that takes time is in the profile's table. */
static void tables_leave_nothing_to_doubt(void **state) {
  (void)state;
  attention_job own;
  attention_job_build(
      &own, &(attention_shape){
                .n_layers = 2, .forward_s = 0x1p-8, .backward_s = 0x1p-7, .n_nodes = 1, .gpus_per_node = 1, .gbs = 2});
  const pl_residuals residuals = all_at(1);
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.residuals = &residuals;
  pl_strategy strategy;
  pl_simulate_report report;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse("pp=1,dp=1,tmp=1,mbs=1", &own.model, &own.arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own.model, &own.job, own.cluster, &own.arena, &error) != PL_OK ||
      pl_simulate(own.cluster, &own.model, &own.job, &strategy, &options, &own.arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  assert_true(sum_of_kinds(&report.interval) < 1e-6);
  attention_job_release(&own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_time_is_doubted_once),
      cmocka_unit_test(shares_are_those_of_the_breakdown),
      cmocka_unit_test(share_of_products_is_that_of_the_ops),
      cmocka_unit_test(asking_changes_nothing),
      cmocka_unit_test(what_was_never_seen_counts_once_each),
      cmocka_unit_test(tables_leave_nothing_to_doubt),
  };
  return cmocka_run_group_tests_name("interval", tests, set_up, tear_down);
}
