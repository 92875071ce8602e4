/* Intervals of programs: every second that devices are busy is doubted once, a kernel and a collective by the residual
 * of their kind, and a strategy's program has the interval that the strategy has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/model_file.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/run/program_row.h"

static pl_arena arena;
static pl_model model;
static pl_cluster *cluster;
static pl_framework framework;
static pl_job job;

static int set_up(void **state) {
  (void)state;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  model = load_model("workloads/models", "tiny-gpt2", &arena);
  if (pl_framework_load("megatron-core", &arena, &framework, &error) != PL_OK) fail_msg("%s", error.message);
  job = (pl_job){.gbs = 16, .seq = 16, .dtype = PL_DTYPE_FP16};
  pl_framework_apply(&framework, &job);
  const synthetic_options options = {.n_nodes = 1, .gpus_per_node = 4, .nics_per_node = 4};
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

static pl_strategy strategy_of(const char *text) {
  pl_strategy strategy;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_check(&strategy, &model, &job, cluster->n_devices, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, cluster, &arena, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  return strategy;
}

static pl_result_row row_of(const char *text, const pl_residuals *residuals, uint64_t *digest) {
  const pl_strategy strategy = strategy_of(text);
  const pl_program_candidate candidate = {.cluster = cluster, .model = &model, .job = &job, .strategy = &strategy};
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.residuals = residuals;
  options.no_overlap_factor = true;
  pl_program_cache cache;
  pl_result_row row = {0};
  pl_error error = PL_ERROR_INIT;
  pl_program_cache_init(&cache);
  if (pl_program_row_take(&candidate, &options, &cache, &arena, &row, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  pl_program_cache_release(&cache);
  if (digest != NULL) *digest = row.run_digest;
  return row;
}

/* ln of the upper end over the time. */
static double half_of(const pl_result_row *row) {
  return log(row->iter_time_high_s / row->iter_time_s);
}

static const char *const strategies[] = {"pp=1,dp=4,tmp=1,mbs=1,overlap=1", "pp=1,dp=1,tmp=4,mbs=2,overlap=1",
                                         "pp=2,dp=2,tmp=1,mbs=1,overlap=1", "pp=2,dp=1,tmp=2,mbs=1,sp=1,overlap=1",
                                         "pp=1,dp=4,tmp=1,mbs=2,zero=3,overlap=1"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

/* One kind after the other with residual 0.3, all others with none: their half-widths add up to 0.3. The residuals of a
 * kind are several, of which one applies. */
static void all_time_is_doubted_once(void **state) {
  (void)state;
  static const pl_residual kinds[][4] = {
      {PL_RESIDUAL_gemm_roofline, PL_RESIDUAL_gemm_transferred},
      {PL_RESIDUAL_attention_roofline, PL_RESIDUAL_attention_fitted, PL_RESIDUAL_attention_transferred},
      {PL_RESIDUAL_kernel_roofline, PL_RESIDUAL_kernel_fitted, PL_RESIDUAL_kernel_transferred},
      {PL_RESIDUAL_host},
      {PL_RESIDUAL_overlap},
      {PL_RESIDUAL_ideal}};
  enum { KINDS = sizeof kinds / sizeof kinds[0] };
  for (int i = 0; i < STRATEGIES; i++) {
    double sum = 0, shares[KINDS];
    for (size_t k = 0; k < KINDS; k++) {
      pl_residuals residuals = all_at(0);
      for (size_t r = 0; r < 4 && (r == 0 || kinds[k][r] != 0); r++)
        residuals.half[kinds[k][r]] = 0.3;
      const pl_result_row row = row_of(strategies[i], &residuals, NULL);
      sum += shares[k] = half_of(&row);
    }
    if (fabs(sum - 0.3) > 1e-5) fail_msg("%s: kinds add up to %.9g of 0.3", strategies[i], sum);
    assert_true(shares[4] == 0); /* nothing is slowed down */
    if (shares[0] <= 0 || shares[2] <= 0 || shares[5] <= 0)
      fail_msg("%s: products %g, kernels %g, communication %g", strategies[i], shares[0], shares[2], shares[5]);
  }
}

/* And as much of a kind as the strategy's own simulation says. */
static void programs_have_the_interval_of_their_strategies(void **state) {
  (void)state;
  pl_residuals residuals = all_at(0);
  residuals.half[PL_RESIDUAL_gemm_roofline] = 0.3;
  residuals.half[PL_RESIDUAL_kernel_roofline] = 1.1;
  residuals.half[PL_RESIDUAL_attention_roofline] = 0.8;
  residuals.half[PL_RESIDUAL_ideal] = 1.7;
  residuals.half[PL_RESIDUAL_source] = 0.1;
  residuals.centre = 0.05;
  for (int i = 0; i < STRATEGIES; i++) {
    const pl_result_row row = row_of(strategies[i], &residuals, NULL);
    const pl_strategy strategy = strategy_of(strategies[i]);
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    options.residuals = &residuals;
    options.no_overlap_factor = true;
    pl_simulate_report report;
    pl_error error = PL_ERROR_INIT;
    if (pl_simulate(cluster, &model, &job, &strategy, &options, &arena, &report, &error) != PL_OK)
      fail_msg("%s", error.message);
    double program = half_of(&row), own = log(report.row.iter_time_high_s / report.row.iter_time_s);
    if (fabs(program - own) > 0.1 * own) fail_msg("%s: half-width %g, the strategy's %g", strategies[i], program, own);
    assert_true(row.iter_time_low_s < row.iter_time_s && row.iter_time_s < row.iter_time_high_s);
  }
}

static void asking_changes_nothing(void **state) {
  (void)state;
  const pl_residuals residuals = all_at(0.2);
  for (int i = 0; i < STRATEGIES; i++) {
    uint64_t plain, asked;
    const pl_result_row row = row_of(strategies[i], NULL, &plain);
    assert_true(isnan(row.iter_time_low_s) && isnan(row.iter_time_high_s));
    (void)row_of(strategies[i], &residuals, &asked);
    assert_true(plain == asked);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_time_is_doubted_once),
                                     cmocka_unit_test(programs_have_the_interval_of_their_strategies),
                                     cmocka_unit_test(asking_changes_nothing)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
