/* Latency and slope of messages: exact without noise, the line's where it stands out of the noise, a usual one where it
 * does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "workloads/trace/message_line.h"

/* Messages of `size` and three times that, their times off by parts of `noise` in turn. */
static pl_message_line line_of(double latency_s, double slope, double size, double noise, int n) {
  static const double signs[] = {1, -1, -0.5, 0.5};
  pl_message_sums sums = {.n = 0};
  for (int k = 0; k < n; k++) {
    double bytes = k % 2 == 0 ? size : 3 * size;
    pl_message_sums_add(&sums, bytes, latency_s + slope * bytes * (1 + noise * signs[k % 4]));
  }
  return pl_message_line_fit(&sums);
}

static void near(double value, double expected, double parts) {
  if (!(fabs(value - expected) <= parts * fabs(expected))) fail_msg("%.9g, not %.9g", value, expected);
}

static void without_noise(void **state) {
  (void)state;
  const double latencies_s[] = {1e-6, 20e-6, 3e-3};
  for (int k = 0; k < 3; k++) {
    pl_message_line line = line_of(latencies_s[k], 1e-10, 1e6, 0, 8);
    assert_true(line.is_line);
    near(line.latency_s, latencies_s[k], 1e-6);
    near(line.slope_s_per_byte, 1e-10, 1e-6);
  }
}

static void out_of_the_noise(void **state) {
  (void)state;
  pl_message_line line = line_of(1e-3, 1e-10, 1e6, 0.05, 400); /* 1 ms + 0.1 or 0.3 ms */
  near(line.latency_s, 1e-3, 0.02);
  assert_true(line.latency_sd_s > 0 && line.latency_sd_s < 20e-6);
}

/* 6 ms or more that stray by 5 %: the line at size 0 says nothing below some 0.1 ms. */
static void drowned(void **state) {
  (void)state;
  pl_message_line line = line_of(5e-6, 1e-10, 64e6, 0.05, 24);
  assert_true(line.latency_sd_s > 40e-6);
  assert_true(line.latency_s >= 0 && line.latency_s < 40e-6);
  near(line.slope_s_per_byte, 1e-10, 0.05);
}

static void one_size_and_none(void **state) {
  (void)state;
  pl_message_sums sums = {.n = 0};
  assert_false(pl_message_line_fit(&sums).is_line);
  pl_message_sums_add(&sums, 1000, 0);
  assert_true(sums.n == 0);
  pl_message_sums_add(&sums, 1000, 1e-3);
  pl_message_sums_add(&sums, 1000, 2e-3);
  assert_false(pl_message_line_fit(&sums).is_line);
  pl_message_sums_add(&sums, 9000, 1e-4); /* larger and faster: all is latency */
  pl_message_line line = pl_message_line_fit(&sums);
  assert_true(line.is_line && line.slope_s_per_byte == 0 && line.latency_s > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(without_noise), cmocka_unit_test(out_of_the_noise),
                                     cmocka_unit_test(drowned), cmocka_unit_test(one_size_and_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
