/* The section "gemm" of a device profile: every field, and each way to get it wrong, named with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"

static const char good[] =
    "{\"name\": \"Toy\", \"architecture\": \"toy\", \"memory\": \"8GiB\", \"bandwidth\": \"400GBps\",\n"
    "\"peak_flops\": {\"fp16\": \"40Tf\"}, \"efficiency\": {\"compute\": 0.5, \"attention\": 0.2, \"bandwidth\": "
    "0.7},\n"
    "\"launch_overhead\": \"5us\", \"overlap\": {\"compute\": 0, \"communication\": 0},\n"
    "\"gemm\": {\"multiprocessors\": 108, \"fits\": [{\"dtypes\": [\"fp16\", \"bf16\"],\n"
    "\"overhead\": \"1us\", \"split_overhead\": \"2us\", \"tile_overhead\": \"4us\", \"memory_efficiency\": 0.75,\n"
    "\"cache_rate\": \"4000GBps\", \"wave_quantisation\": 0.25,\n"
    "\"tile_efficiency\": {\"256x128\": 0.9, \"128x128\": 0.8, \"128x64\": 0.7, \"64x64\": 0.6},\n"
    "\"unaligned_time\": {\"4B\": 1.5, \"2B\": 3.5},\n"
    "\"residual\": {\"log2_m\": [4, 5], \"log2_n\": [6, 8], \"log2_k\": [9, 10],\n"
    "\"milli\": [[[1, -2], [3, -4], [5, -6]], [[7, -8], [9, -10], [11, -12]]]},\n"
    "\"held_out\": {\"shapes\": 42, \"median_error\": 0.03, \"p90_error\": 0.1}},\n"
    "{\"dtypes\": [\"fp8\"], \"overhead\": 0, \"split_overhead\": 0, \"tile_overhead\": 0, \"memory_efficiency\": 1,\n"
    "\"cache_rate\": 1, \"wave_quantisation\": 1, \"unaligned_time\": {\"4B\": 1, \"2B\": 1},\n"
    "\"tile_efficiency\": {\"256x128\": 1, \"128x128\": 1, \"128x64\": 1, \"64x64\": 1}}]}}\n";

static pl_code parse(const char *text, int64_t fail_after, pl_arena *arena, pl_device_profile *profile,
                     pl_error *error) {
  pl_arena_init(arena, 0);
  arena->fail_after = fail_after;
  *error = PL_ERROR_INIT;
  return pl_device_profile_parse("toy.json", text, strlen(text), arena, profile, error);
}

static void test_fields(void **state) {
  (void)state;
  pl_arena arena;
  pl_device_profile p;
  pl_error error;
  if (parse(good, -1, &arena, &p, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(p.gemm.multiprocessors, 108);
  assert_int_equal(p.gemm.n_fits, 2);
  const pl_gemm_fit *fit = p.gemm.fits;
  assert_int_equal(fit->dtypes, 1u << PL_DTYPE_FP16 | 1u << PL_DTYPE_BF16);
  assert_true(fit->overhead_s == 1 * 1e-6 && fit->split_overhead_s == 2 * 1e-6 && fit->tile_overhead_s == 4 * 1e-6);
  assert_true(fit->memory_efficiency == 0.75 && fit->cache_rate_Bps == 4e12 && fit->wave_quantisation == 0.25);
  assert_true(fit->tile_efficiency[PL_GEMM_TILE_256X128] == 0.9 && fit->tile_efficiency[PL_GEMM_TILE_128X128] == 0.8);
  assert_true(fit->tile_efficiency[PL_GEMM_TILE_128X64] == 0.7 && fit->tile_efficiency[PL_GEMM_TILE_64X64] == 0.6);
  assert_true(fit->unaligned_time[PL_GEMM_ALIGNED_4] == 1.5 && fit->unaligned_time[PL_GEMM_ALIGNED_2] == 3.5);
  assert_true(fit->residual.first[1] == 6 && fit->residual.last[1] == 8 && fit->residual.last[2] == 10);
  for (int i = 0; i < 12; i++)
    assert_int_equal(fit->residual.milli[i], i % 2 ? -1 - i : 1 + i);
  assert_true(fit->n_held_out == 42 && fit->median_error == 0.03 && fit->p90_error == 0.1);
  assert_true(p.gemm.fits[1].dtypes == 1u << PL_DTYPE_FP8 && p.gemm.fits[1].residual.milli == NULL);
  assert_int_equal(p.gemm.fits[1].n_held_out, 0);
  pl_arena_release(&arena);
}

/* The good text with the first `from` replaced by `to`. */
static pl_code parse_edited(const char *from, const char *to, pl_error *error) {
  char edited[sizeof good + 256];
  const char *found = strstr(good, from);
  if (found == NULL) fail_msg("no '%s' in the good text", from);
  snprintf(edited, sizeof edited, "%.*s%s%s", (int)(found - good), good, to, found + strlen(from));
  pl_arena arena;
  pl_device_profile profile;
  pl_code code = parse(edited, -1, &arena, &profile, error);
  pl_arena_release(&arena);
  return code;
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"\"multiprocessors\": 108, ", "", "toy.json:4:9: the key 'multiprocessors' is missing"},
      {"108", "0", "toy.json:4:29: 'multiprocessors' is 0"},
      {"\"gemm\": {", "\"gemm\": {\"kernels\": 1, ", "unknown key 'kernels'"},
      {"[\"fp16\", \"bf16\"]", "[]", "'dtypes' must be a list of data types"},
      {"\"bf16\"", "\"int8\"", "toy.json:4:63: unknown data type 'int8'"},
      {"\"fp8\"", "\"bf16\"", "'bf16' has a fit already"},
      {"\"2us\"", "\"2 us\"", "toy.json:5:38: split_overhead: '2 us'"},
      {"4000GBps", "0GBps", "cache_rate must be more than zero"},
      {"\"wave_quantisation\": 0.25", "\"wave_quantisation\": 1.25", "wave_quantisation is 1.25"},
      {"\"128x64\": 0.7", "\"64x128\": 0.7", "unknown key '64x128'"},
      {"\"64x64\": 0.6", "\"64x64\": 1.6", "64x64 is 1.6"},
      {"\"4B\": 1.5", "\"4B\": 0", "4B is 0"},
      {"[4, 5]", "[5, 5]", "'log2_m' must be two whole numbers"},
      {"[6, 8]", "[6, 25]", "'log2_n' must be two whole numbers, [first, last], from 0 to 24"},
      {"[9, 10]", "[9.5, 10]", "'log2_k' must be"},
      {"[9, 10]", "9", "'log2_k' must be"},
      {"[[1, -2], [3, -4], [5, -6]]", "[[1, -2], [3, -4]]", "expected a list of 3 rows"},
      {"[1, -2]", "[1, -2, 3]", "expected a list of 2 numbers, one for each k"},
      {"[1, -2]", "[1, 4001]", "residual 4001 is no whole number from -4000 to 4000"},
      {"[1, -2]", "[1, 0.5]", "residual 0.5"},
      {"\"milli\"", "\"micro\"", "unknown key 'micro'"},
      {"\"shapes\": 42", "\"shapes\": 0", "shapes"},
      {"\"p90_error\": 0.1", "\"p90\": 0.1", "unknown key 'p90'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_error error;
    pl_code code = parse_edited(cases[i].from, cases[i].to, &error);
    if (code != PL_BAD_INPUT || strstr(error.message, cases[i].expected) == NULL)
      fail_msg("'%s' for '%s': code %d: %s", cases[i].to, cases[i].from, (int)code, error.message);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  pl_arena arena;
  pl_device_profile profile;
  pl_error error;
  int64_t k = 0;
  for (; parse(good, k, &arena, &profile, &error) == PL_NO_MEMORY; k++)
    pl_arena_release(&arena);
  pl_arena_release(&arena);
  assert_string_equal(error.message, "");
  assert_true(k >= 4); /* name, architecture, fits, residuals */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
