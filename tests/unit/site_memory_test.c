/* Memory beside tensors, as peaks tell it (validation/fit/site_memory.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "validation/fit/site_memory.h"

static void near(double a, double b, double off) {
  if (!(fabs(a - b) <= off)) fail_msg("%.12g, expected %.12g", a, b);
}

static const pl_site PRIOR = {.memory_sd_bytes = 4, .memory_scatter_bytes = 1, .memory_degrees = 1};

static pl_site learnt(const pl_site *prior, const double *bytes, uint32_t n) {
  pl_site site = {.n_runs = 0};
  pl_site_memory_learn(prior, bytes, n, &site);
  return site;
}

/* Without peaks the prior; with a scatter that is known for certain two Gaussians: variance 1 / (1/16 + 2/1), mean that
 * times the sum of 3 and 5. */
static void certain(void **state) {
  (void)state;
  const double bytes[] = {3, 5};
  pl_site prior = PRIOR;
  near(learnt(&PRIOR, bytes, 0).memory_sd_bytes, 4, 0);
  near(learnt(&PRIOR, bytes, 0).memory_scatter_bytes, 1, 0);
  prior.memory_degrees = 0;
  pl_site site = learnt(&prior, bytes, 2);
  near(site.memory_bytes, 8 / (1 / 16.0 + 2), 1e-12);
  near(site.memory_sd_bytes, sqrt(1 / (1 / 16.0 + 2)), 1e-12);
  near(site.memory_scatter_bytes, 1, 0);
  assert_int_equal(site.n_peaks, 2);
}

/* Where mean field settles: the mean is that of Gaussians with the scatter, the scatter's square the prior's and the
 * peaks', (degrees * scatter^2 + sum (b - m)^2 + n * sd^2) / (degrees + n). */
static void scatter(void **state) {
  (void)state;
  const double tight[] = {10, 10.1, 9.9, 10}, far[] = {4, 16, 7, 13};
  const double *const lists[] = {tight, far};
  for (int l = 0; l < 2; l++) {
    pl_site site = learnt(&PRIOR, lists[l], 4);
    double inside = pow(site.memory_scatter_bytes, 2), variance = 1 / (1 / 16.0 + 4 / inside), squares = 4 * variance;
    for (int i = 0; i < 4; i++)
      squares += pow(lists[l][i] - site.memory_bytes, 2);
    near(site.memory_bytes, 40 / inside * variance, 1e-3);
    near(site.memory_sd_bytes, sqrt(variance), 1e-3);
    near(inside, (1 + squares) / 5, 0.01 * inside);
  }
  assert_true(learnt(&PRIOR, tight, 4).memory_scatter_bytes < 0.6);
  assert_true(learnt(&PRIOR, far, 4).memory_scatter_bytes > 4);
}

enum { SITES = 12, PEAKS = 5 };

/* Sites of peaks that are as far from each other as `wide` says of each, around +-3. */
static pl_site prior_of(const double wide[SITES], uint32_t without) {
  static const double shape[PEAKS] = {-1, -0.5, 0, 0.5, 1};
  pl_site_row rows[SITES * PEAKS] = {{.memory_bytes = 0}};
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_site prior = {.n_runs = 0};
  pl_arena_init(&arena, 0);
  for (uint32_t i = 0; i < SITES * PEAKS; i++) {
    uint32_t site = i / PEAKS;
    rows[i].site = rows[i].source = site;
    rows[i].memory_bytes = (site % 2 == 0 ? 3 : -3) + wide[site] * shape[i % PEAKS];
    rows[i].peak_bytes = 100;
  }
  const pl_site_rows all = {.rows = rows, .n = SITES * PEAKS, .n_sources = SITES, .n_sites = SITES};
  assert_int_equal(pl_site_memory_prior(&all, without, &arena, &prior, &error), PL_OK);
  pl_arena_release(&arena);
  return prior;
}

static void usual_sites(void **state) {
  (void)state;
  double even[SITES], uneven[SITES];
  for (int s = 0; s < SITES; s++) {
    even[s] = 1;
    uneven[s] = pow(4, s - SITES / 2); /* a 4,000th to 1,000 */
  }
  pl_site prior = prior_of(even, UINT32_MAX);
  near(prior.memory_sd_bytes, 3 / 0.6745, 1e-6);
  near(prior.memory_scatter_bytes, sqrt(2.5 / 4), 1e-6);
  near(prior.memory_degrees, 32, 0);
  near(prior_of(uneven, UINT32_MAX).memory_degrees, 0.5, 0);
  even[3] = 1000; /* of a source that is left out */
  near(prior_of(even, 3).memory_degrees, 32, 0);
}

/* Peaks that all lie 3 above: those that are left are hit the nearer the more are known, and lie in the intervals. */
static void leaving_out(void **state) {
  (void)state;
  pl_site_row rows[8] = {{.memory_bytes = 0}};
  pl_error error = PL_ERROR_INIT;
  pl_arena arena;
  pl_peaks_left_out one, three;
  pl_arena_init(&arena, 0);
  for (int i = 0; i < 8; i++) {
    rows[i].memory_bytes = i % 2 == 0 ? 2.9 : 3.1;
    rows[i].peak_bytes = 100;
  }
  const pl_site_rows all = {.rows = rows, .n = 8, .n_sources = 1, .n_sites = 1};
  assert_int_equal(pl_site_memory_leave_out(&all, &PRIOR, 1, &arena, &one, &error), PL_OK);
  assert_int_equal(pl_site_memory_leave_out(&all, &PRIOR, 3, &arena, &three, &error), PL_OK);
  assert_int_equal(one.n_sites, 1);
  near(one.without_pct, 3, 0.02);
  assert_true(three.with_pct < one.with_pct && one.with_pct < 1);
  assert_true(three.coverage_pct > 99);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(certain), cmocka_unit_test(scatter),
                                     cmocka_unit_test(usual_sites), cmocka_unit_test(leaving_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
