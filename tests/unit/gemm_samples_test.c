/* Timings of matrix products: columns and units as people have them, pooling, and every refusal with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "validation/fit/gemm_samples.h"

static const pl_gemm_filter everything = {.dtypes = (1u << PL_DTYPE_COUNT) - 1};

static pl_code take(const char *text, const pl_gemm_filter *filter, pl_gemm_samples *samples, pl_error *error) {
  *error = PL_ERROR_INIT;
  pl_csv csv;
  PL_TRY(pl_csv_parse("t.csv", text, strlen(text), &arena, &csv, error));
  return pl_gemm_samples_take(&csv, 1, filter, &arena, samples, error);
}

static void expect(const pl_gemm_sample *s, pl_dtype dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                   double time_s) {
  assert_int_equal(s->shape.dtype, dtype);
  assert_true(s->shape.batch == batch && s->shape.m == m && s->shape.n == n && s->shape.k == k);
  if (!(fabs(s->time_s - time_s) <= 1e-12 * time_s)) fail_msg("%.17g s, not %.17g s", s->time_s, time_s);
}

static void test_units(void **state) {
  (void)state;
  static const struct {
    const char *header, *cell;
    double time_s;
  } cases[] = {{"time", "12.5us", 12.5e-6}, {"time", "3ms", 3e-3},        {"time", "2.5e-5", 2.5e-5},
               {"time_s", "1e-4", 1e-4},    {"time_ms", "0.25", 0.25e-3}, {"time_us", "7", 7e-6}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, "dtype,m,n,k,%s\nbf16,64,32,16,%s\n", cases[i].header, cases[i].cell);
    pl_gemm_samples samples;
    pl_error error;
    if (take(text, &everything, &samples, &error) != PL_OK) fail_msg("%s", error.message);
    assert_int_equal(samples.n, 1);
    expect(&samples.rows[0], PL_DTYPE_BF16, 1, 64, 32, 16, cases[i].time_s);
    assert_true(samples.gpu[0] == '\0' && samples.multiprocessors == 0);
  }
}

/* The published collection's columns; sorted; medians of 1, 2 and 3 rows; small m counted and left out. */
static void test_pooling(void **state) {
  (void)state;
  pl_gemm_samples samples;
  pl_error error;
  const char *text = "gpu,gemm_dtype,m,n,k,time_ms,tflops_derived,batch,multiprocessors\n"
                     "A,bfloat16,256,64,64,5,9,,108\nA,bfloat16,64,64,64,3,9,1,108\nA,float16,64,64,64,8,9,2,108\n"
                     "A,bfloat16,64,64,64,1,9,1.0,108\nA,bfloat16,64,64,64,2,9,,108\nA,half,64,64,64,4,9,2,108\n"
                     "A,bfloat16,15,64,64,2,9,,108\n";
  if (take(text, &everything, &samples, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(samples.n, 3);
  assert_int_equal(samples.n_read, 7);
  assert_int_equal(samples.n_small, 1);
  assert_int_equal(samples.multiprocessors, 108);
  assert_string_equal(samples.gpu, "A");
  expect(&samples.rows[0], PL_DTYPE_FP16, 2, 64, 64, 64, 6e-3);
  expect(&samples.rows[1], PL_DTYPE_BF16, 1, 64, 64, 64, 2e-3);
  expect(&samples.rows[2], PL_DTYPE_BF16, 1, 256, 64, 64, 5e-3);
  pl_gemm_samples_rename(&samples, PL_DTYPE_FP16, PL_DTYPE_BF16);
  assert_int_equal(samples.n, 3);
  expect(&samples.rows[2], PL_DTYPE_BF16, 2, 64, 64, 64, 6e-3);
}

static void test_filter(void **state) {
  (void)state;
  const char *text = "gpu,dtype,m,n,k,time\nA,bf16,64,64,64,1us\nB,bf16,64,64,64,2us\nB,fp8,64,64,64,3us\n";
  pl_gemm_samples samples;
  pl_error error;
  assert_int_equal(take(text, &everything, &samples, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "t.csv:3: GPU 'B' after 'A': a profile is of one; choose with --gpu");
  pl_gemm_filter filter = {.gpu = "B", .dtypes = 1u << PL_DTYPE_FP8};
  if (take(text, &filter, &samples, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(samples.n, 1);
  expect(&samples.rows[0], PL_DTYPE_FP8, 1, 64, 64, 64, 3e-6);
  filter.gpu = "C";
  assert_int_equal(take(text, &filter, &samples, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "t.csv: no row of the GPU 'C'; --gpu and --dtype say which are taken"));
}

static void test_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"dtype,m,n,time\nbf16,1,1,1\n", "t.csv: no column 'k'; needed are dtype, m, n, k and time"},
      {"m,n,k,time\n16,1,1,1\n", "t.csv: no column 'dtype'"},
      {"dtype,m,n,k\nbf16,16,1,1\n", "t.csv: no column 'time'"},
      {"dtype,m,n,k,time\nint8,16,16,16,1us\n", "t.csv:2: unknown data type 'int8'; known are fp32, tf32"},
      {"dtype,m,n,k,time\nbf16,16,16,16,1us\nbf16,0,16,16,1us\n", "t.csv:3: column 'm': '0' is no whole number"},
      {"dtype,m,n,k,time\nbf16,16,1.5,16,1us\n", "column 'n': '1.5' is no whole number from 1 to 2^24"},
      {"dtype,m,n,k,time\nbf16,16,16,,1us\n", "column 'k': '' is no whole number"},
      {"dtype,m,n,k,time\nbf16,16,16,99999999,1us\n", "'99999999'"},
      {"dtype,m,n,k,time\nbf16,16,16,abc,1us\n", "t.csv:2: column 'k': 'abc' is not a number"},
      {"dtype,m,n,k,batch,time\nbf16,16,16,16,-1,1us\n", "column 'batch': '-1'"},
      {"dtype,m,n,k,time\nbf16,16,16,16,1 us\n", "t.csv:2: time: '1 us'"},
      {"dtype,m,n,k,time\nbf16,16,16,16,\n", "t.csv:2: time: ''"},
      {"dtype,m,n,k,time_ms\nbf16,16,16,16,0\n", "column 'time_ms': '0' is no time that a matrix product takes"},
      {"dtype,m,n,k,time_ms\nbf16,16,16,16,-3\n", "'-3' is no time"},
      {"dtype,m,n,k,time_s\nbf16,16,16,16,100000\n", "'100000' is no time"},
      {"dtype,m,n,k,time,multiprocessors\nbf16,16,16,16,1us,8\nbf16,16,16,16,1us,9\n",
       "t.csv:3: 9 multiprocessors after 8"},
      {"dtype,m,n,k,time\nbf16,15,16,16,1us\n", "t.csv: all 1 rows have m below 16"},
      {"dtype,m,n,k,time\n", "t.csv: no row; --gpu and --dtype say which are taken"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_gemm_samples samples;
    pl_error error;
    pl_code code = take(cases[i][0], &everything, &samples, &error);
    if (code != PL_BAD_INPUT || strstr(error.message, cases[i][1]) == NULL)
      fail_msg("case %zu: code %d: %s", i, (int)code, error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_units, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pooling, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_filter, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
