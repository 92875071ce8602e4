/* Statistics of predictions against numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "validation/rows/case_statistics.h"
#include "validation/statistics/statistics.h"

static void near(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-12 * fmax(1, fabs(expected)))) fail_msg("%.15g, not %.15g", value, expected);
}

static void medians_and_quantiles(void **state) {
  (void)state;
  double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, one[] = {7};
  near(pl_median(odd, 3), 2);
  near(pl_median(even, 4), 2.5);
  near(pl_quantile(ten, 10, 0.9), 9);
  near(pl_quantile(ten, 10, 0.91), 10);
  near(pl_quantile(one, 1, 0.9), 7);
  assert_true(isnan(pl_median(one, 0)) && isnan(pl_quantile(one, 0, 0.5)));
}

/* Without ties 1 - 6 sum d^2 / (n (n^2 - 1)); with ties Pearson's of mean ranks. */
static void spearman(void **state) {
  (void)state;
  double scratch[10];
  const double a[] = {1, 2, 3, 4, 5}, same[] = {10, 20, 30, 40, 1000}, back[] = {5, 4, 3, 2, 1};
  const double mixed[] = {2, 1, 4, 3, 5}, ties[] = {1, 1, 2, 3, 3}, flat[] = {4, 4, 4, 4, 4};
  near(pl_spearman(a, same, 5, scratch), 1);
  near(pl_spearman(a, back, 5, scratch), -1);
  near(pl_spearman(a, mixed, 5, scratch), 1 - 6.0 * 4 / (5 * 24));
  /* Ranks 1.5 1.5 3 4.5 4.5: covariance 9, variances 10 and 9. */
  near(pl_spearman(a, ties, 5, scratch), 9 / sqrt(90));
  assert_true(isnan(pl_spearman(a, flat, 5, scratch)));
}

typedef struct fixture {
  pl_measured_row rows[6];
  pl_case cases[6];
  const pl_case *some[6];
} fixture;

/* Six strategies for the same job: measured and predicted seconds. */
static void make(fixture *f, const double *measured, const double *predicted) {
  for (int i = 0; i < 6; i++) {
    f->rows[i] = (pl_measured_row){.family = "f", .gpu = "g", .framework = "w", .precision = "p", .n_gpus = 8};
    f->cases[i] = (pl_case){.row = &f->rows[i], .n_rows = 1, .measured_s = measured[i], .flops = 1e12};
    f->cases[i].result.iter_time_s = predicted[i];
    f->cases[i].result.fits = 1;
    f->cases[i].measured_mem_bytes = NAN;
    f->some[i] = &f->cases[i];
  }
}

static pl_statistics statistics(const fixture *f) {
  pl_statistics s;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_statistics_of(f->some, 6, &arena, &s, &error), PL_OK);
  return s;
}

static void errors_ranks_and_regret(void **state) {
  (void)state;
  fixture f;
  make(&f, (double[]){10, 20, 30, 40, 50, 60}, (double[]){11, 18, 30, 60, 45, 54});
  f.cases[5].n_rows = 3;
  pl_statistics s = statistics(&f);
  assert_true(s.n_rows == 8 && s.n_cases == 6 && s.n_expressed == 6 && s.n_timed == 6);
  /* +10, -10, 0, +50, -10, -10 %. */
  near(s.mape_pct, 15);
  near(s.bias_pct, 5);
  near(s.median_ape_pct, 10);
  near(s.p90_ape_pct, 50);
  /* Ranks of the predictions 1 2 3 6 4 5 against 1 to 6: d = 0 0 0 2 1 1. */
  near(s.spearman, 1 - 6.0 * 6 / (6 * 35));
  near(s.regret_pct, 0);
  f.cases[3].result.iter_time_s = 5; /* chosen although it takes 40 s instead of 10 */
  near(statistics(&f).regret_pct, 300);
}

static void other_jobs_are_not_compared(void **state) {
  (void)state;
  fixture f;
  make(&f, (double[]){10, 20, 30, 40, 50, 60}, (double[]){10, 20, 30, 40, 50, 1});
  f.rows[5].n_gpus = 16;
  pl_statistics s = statistics(&f);
  near(s.spearman, 1);
  near(s.regret_pct, 0);
  assert_true(s.n_ranked_groups == 1 && s.n_choice_groups == 1);
  f.rows[4].hidden = 5; /* four are left */
  s = statistics(&f);
  assert_true(isnan(s.spearman) && s.n_ranked_groups == 0 && s.n_choice_groups == 1);
}

static void reasons_and_crashes_are_counted_apart(void **state) {
  (void)state;
  fixture f;
  make(&f, (double[]){10, 20, 30, 40, 50, 60}, (double[]){10, 20, 30, 40, 50, 60});
  f.cases[0].reason = "precision: FP3";
  f.cases[1].crashed = true;
  f.cases[1].measured_s = NAN;
  f.cases[1].result.fits = 0;
  f.cases[2].crashed = true;
  f.cases[2].measured_s = NAN;
  f.cases[3].result.fits = 0;
  f.cases[4].measured_mem_bytes = 100;
  f.cases[4].predicted_mem_bytes = 80;
  pl_statistics s = statistics(&f);
  assert_true(s.n_expressed == 5 && s.n_timed == 3);
  assert_true(s.verdict[0][0] == 2 && s.verdict[0][1] == 1 && s.verdict[1][0] == 1 && s.verdict[1][1] == 1);
  assert_int_equal(s.n_memory, 1);
  near(s.memory_mape_pct, 20);
  near(s.memory_bias_pct, -20);
}

/* Which measurements lie in their prediction intervals; what has none does not count. */
static void coverage(void **state) {
  (void)state;
  pl_measured_row row = {.family = "f", .gpu = "g", .framework = "w", .precision = "p", .n_gpus = 8};
  pl_case all[5];
  const pl_case *some[5];
  for (int i = 0; i < 5; i++) {
    all[i] = (pl_case){.row = &row, .n_rows = 1, .measured_s = 1 + 0.1 * i, .interval = pl_interval_none()};
    all[i].result.iter_time_s = 1;
    if (i < 4) all[i].interval.low_s = 0.95, all[i].interval.high_s = 1.2;
    some[i] = &all[i];
  }
  pl_statistics s;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_statistics_of(some, 5, &arena, &s, &error), PL_OK);
  near(s.coverage_pct, 75);
  assert_int_equal(pl_statistics_of(some + 4, 1, &arena, &s, &error), PL_OK);
  assert_true(isnan(s.coverage_pct));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(medians_and_quantiles, set_up, tear_down),
      cmocka_unit_test_setup_teardown(spearman, set_up, tear_down),
      cmocka_unit_test_setup_teardown(errors_ranks_and_regret, set_up, tear_down),
      cmocka_unit_test_setup_teardown(other_jobs_are_not_compared, set_up, tear_down),
      cmocka_unit_test_setup_teardown(coverage, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reasons_and_crashes_are_counted_apart, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
