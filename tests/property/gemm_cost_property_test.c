/* Matrix products on every shipped profile, random shapes: never faster than the arithmetic at peak or the bytes at the
 * nominal bandwidth of the memory, finite, not much faster when there is more to do, and not much slower than it was in
 * two halves. PACELINE_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/random.h"
#include "workloads/cost/gemm_cost.h"

enum { SHAPES = 4000 };

/* Aligned, from 64 to 2^16 by each dimension, now and then a batch. */
static pl_gemm_shape random_shape(uint64_t *state, pl_dtype dtype) {
  pl_gemm_shape shape = {.dtype = dtype, .batch = 1};
  shape.m = (int64_t)random_log(state, 4, 4096) * 16;
  shape.n = (int64_t)random_log(state, 4, 4096) * 16;
  shape.k = (int64_t)random_log(state, 4, 4096) * 16;
  if (random_below(state, 4) == 0) shape.batch = random_between(state, 2, 64);
  return shape;
}

static double time_of(const pl_device_profile *profile, const pl_gemm_fit *fit, pl_gemm_shape shape) {
  return pl_gemm_cost(profile, fit, &shape).time_s;
}

static void expect(bool holds, const char *what, const pl_device_profile *profile, const pl_gemm_shape *s) {
  if (!holds)
    fail_msg("%s: %s: %s, %lld x %lld x %lld x %lld", what, profile->name, pl_dtype_name(s->dtype), (long long)s->batch,
             (long long)s->m, (long long)s->n, (long long)s->k);
}

/* Twice as much of one dimension. Libraries do run some larger products faster (another kernel, fewer idle
 * multiprocessors), and the fits follow them, but not by much: a fifth is the most that was seen. */
static void check_growth(const pl_device_profile *profile, const pl_gemm_fit *fit, const pl_gemm_shape *shape,
                         int dimension) {
  pl_gemm_shape larger = *shape;
  *(dimension == 0 ? &larger.m : dimension == 1 ? &larger.n : &larger.k) *= 2;
  double time_s = time_of(profile, fit, *shape), larger_s = time_of(profile, fit, larger);
  expect(larger_s > 0.75 * time_s, "twice as much is much faster", profile, shape);
  expect(larger_s < 3.2 * time_s, "twice as much takes more than three times as long", profile, shape);
}

static void check_profile(const pl_device_profile *profile, uint64_t *state) {
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++) {
    const pl_gemm_fit *fit = pl_gemm_fit_for(profile, (pl_dtype)dtype);
    for (int i = 0; fit != NULL && i < SHAPES; i++) {
      pl_gemm_shape shape = random_shape(state, (pl_dtype)dtype);
      double time_s = time_of(profile, fit, shape), least_bytes = pl_gemm_least_bytes(&shape);
      double flops = 2 * (double)shape.batch * (double)shape.m * (double)shape.n * (double)shape.k;
      expect(isfinite(time_s), "not finite", profile, &shape);
      expect(time_s * profile->peak_flops[dtype] >= flops * (1 - 1e-12), "faster than peak", profile, &shape);
      expect(time_s * profile->bandwidth_Bps >= least_bytes * (1 - 1e-12), "faster than memory", profile, &shape);
      for (int dimension = 0; dimension < 3; dimension++)
        check_growth(profile, fit, &shape, dimension);
      pl_gemm_shape unaligned = shape;
      unaligned.k -= 1;
      expect(time_of(profile, fit, unaligned) > 0.9 * time_s, "unaligned is faster", profile, &shape);
    }
  }
}

static void test_shipped(void **state) {
  (void)state;
  uint64_t random = test_seed(20);
  DIR *dir = opendir("platforms/devices");
  assert_non_null(dir);
  uint32_t n_fitted = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    if (strstr(entry->d_name, ".json") == NULL) continue;
    char path[512];
    snprintf(path, sizeof path, "platforms/devices/%s", entry->d_name);
    pl_device_profile profile;
    pl_error error = PL_ERROR_INIT;
    if (pl_device_profile_load(path, &arena, &profile, &error) != PL_OK) fail_msg("%s", error.message);
    n_fitted += profile.gemm.n_fits > 0;
    check_profile(&profile, &random);
  }
  closedir(dir);
  assert_true(n_fitted >= 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_shipped, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
