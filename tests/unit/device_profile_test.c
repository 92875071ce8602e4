/* Reading of one device profile: every field, its units, and each way to get it wrong, named with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"

#define GOOD "tests/unit/platforms/devices/Toy-8GB.json"

enum { TEXT_BYTES = 4096 };

static void read_good(char text[TEXT_BYTES]) {
  FILE *file = fopen(GOOD, "r");
  assert_non_null(file);
  memset(text, 0, TEXT_BYTES);
  assert_true(fread(text, 1, TEXT_BYTES - 1, file) > 0);
  fclose(file);
}

static void test_fields(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile p;
  pl_error error = PL_ERROR_INIT;
  if (pl_device_profile_load(GOOD, &arena, &p, &error) != PL_OK) fail_msg("%s", error.message);
  assert_string_equal(p.name, "Toy-8GB");
  assert_string_equal(p.architecture, "toy");
  assert_true(p.memory_bytes == 8.0 * 0x1p30 && p.reserved_bytes == 512.0 * 0x1p20);
  assert_true(p.communicator_bytes == 64.0 * 0x1p20);
  assert_true(p.switch_bytes == 3.0 * 0x1p20);
  assert_true(p.bandwidth_Bps == 400e9);
  assert_true(p.peak_flops[PL_DTYPE_FP32] == 10e12 && p.peak_flops[PL_DTYPE_FP16] == 40e12);
  assert_true(p.peak_flops[PL_DTYPE_BF16] == 0 && p.peak_flops[PL_DTYPE_FP8] == 0);
  assert_true(p.compute_efficiency == 0.5 && p.attention_efficiency == 0.25 && p.bandwidth_efficiency == 0.75);
  assert_true(p.launch_overhead_s == 5e-6 || p.launch_overhead_s == 5 * 1e-6);
  assert_true(p.overlap_compute == 0.1 && p.overlap_communication == 0.2);
  assert_true(p.channels == 0 && !p.fills_device);
  assert_true(p.sustained_compute == 0);
  assert_true(p.digest != 0);
  /* Sorted by kind, data type, pass, dims; dims that are not given are zero. */
  assert_int_equal(p.n_ops, 3);
  assert_string_equal(p.ops[0].kind, "attention");
  assert_true(p.ops[0].dims[1] == 16 && p.ops[0].dims[2] == 0);
  assert_string_equal(p.ops[1].pass, "");
  assert_true(p.ops[1].dims[1] == 32);
  assert_string_equal(p.ops[2].pass, "forward");
  assert_true(p.ops[2].dtype == PL_DTYPE_FP16 && p.ops[2].time_s > 11.9e-6 && p.ops[2].time_s < 12.1e-6);
  pl_arena_release(&arena);
}

/* The good file with the first `from` replaced by `to`, parsed. */
static pl_code parse_edited(const char *from, const char *to, int64_t fail_after,
                            char message[PL_ERROR_MESSAGE_BYTES]) {
  char text[TEXT_BYTES], edited[TEXT_BYTES + 256];
  read_good(text);
  char *found = strstr(text, from);
  if (found == NULL) fail_msg("no '%s' in the good file", from);
  snprintf(edited, sizeof edited, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
  pl_arena arena;
  pl_arena_init(&arena, 0);
  arena.fail_after = fail_after;
  pl_device_profile profile;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_device_profile_parse("toy.json", edited, strlen(edited), &arena, &profile, &error);
  assert_int_equal(code, error.code);
  pl_arena_release(&arena);
  memcpy(message, error.message, sizeof error.message);
  return code;
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"\"bandwidth\": \"400", "\"bandwith\": \"400", "toy.json:6:15: unknown key 'bandwith'"},
      {"\"fp32\"", "\"fp31\"", "toy.json:7:26: unknown key 'fp31' in peak_flops"},
      {"\"compute\": 0.5", "\"compute\": 1.5", "toy.json:8:29: compute is 1.5: it must be more than 0 and at most 1"},
      {"\"compute\": 0.5", "\"compute\": 0", "compute is 0"},
      {"\"attention\": 0.25, ", "", "the key 'attention' is missing"},
      {"\"compute\": 0.1", "\"compute\": -0.1", "compute is -0.1: it must be at least 0"},
      {"\"8GiB\"", "\"8Gi\"", "toy.json:4:13: memory: '8Gi' is not a size"},
      {"\"8GiB\"", "0", "memory must be more than zero"},
      {"\"8GiB\"", "-1", "memory: -1 is negative"},
      {"512MiB", "9GiB", "reserved leaves nothing of memory"},
      {"64MiB", "8GiB", "communicator leaves nothing of memory"},
      {"3MiB", "1e30GiB", "switch_buffers leaves nothing of memory"},
      {"3MiB", "-1MiB", "switch_buffers: '-1MiB' is not a size"},
      {"400GBps", "400", ""}, /* a bare number in text is in base units */
      {"400GBps", "400GB/s", "toy.json:6:16: bandwidth: '400GB/s' is not a rate"},
      {"{\"fp32\": \"10Tf\", \"fp16\": \"40Tf\"}", "{}", "peak_flops names no data type"},
      {"\"5us\"", "\"5 us\"", "launch_overhead: '5 us'"},
      {"\"invented for tests\"", "3", "'memory' must be a string"},
      {"\"kind\": \"gemm\"", "\"kind\": \"a kind of far too long a name\"", "longer than 15 bytes"},
      {"\"forward\"", "\"sideways\"", "pass 'sideways' is none of forward, backward"},
      {"[1, 64, 64, 64]", "[1, 64, 64, 64, 64]", "'dims' must be a list of one to four integers"},
      {"[1, 64, 64, 64]", "[1, 64, 64, 6.5]", "dimension 6.5 is not a whole number"},
      {"\"12us\"", "\"0s\"", "time must be more than zero"},
      {"\"dtype\": \"fp16\"", "\"dtype\": \"int4\"", "unknown data type 'int4'"},
      {"\"pass\": \"forward\", \"dtype\": \"fp16\", \"dims\": [1, 64, 64, 64]",
       "\"pass\": \"\", \"dtype\": \"fp16\", \"dims\": [1, 32, 64, 64]", "two entries for gemm fp16 [1, 32, 64, 64]"},
      {"\"communication\": 0.2", "\"communication\": 0.2, \"channels\": 24, \"products_fill\": true", ""},
      {"\"communication\": 0.2", "\"communication\": 0.2, \"channels\": -1", "'channels' is -1, out of the range"},
      {"\"communication\": 0.2", "\"communication\": 0.2, \"channels\": 2.5", "'channels'"},
      {"\"communication\": 0.2", "\"communication\": 0.2, \"products_fill\": 1", "'products_fill'"},
      {"\"overlap\":", "\"sustained\": {\"compute\": 0.9}, \"overlap\":", ""},
      {"\"overlap\":", "\"split_accumulation\": 1.2, \"overlap\":", ""},
      {"\"overlap\":", "\"split_accumulation\": 0.5, \"overlap\":",
       "split_accumulation is 0.5; it is a time over a time"},
      {"\"overlap\":", "\"split_accumulation\": 2.5, \"overlap\":", "1 to 2"},
      {"\"overlap\":", "\"sustained\": {\"compute\": 0}, \"overlap\":", "compute is 0"},
      {"\"overlap\":", "\"sustained\": {\"compute\": 1.1}, \"overlap\":", "compute is 1.1"},
      {"\"overlap\":", "\"sustained\": {}, \"overlap\":", "the key 'compute' is missing"},
      {"\"overlap\":", "\"sustained\": {\"clock\": 1}, \"overlap\":", "unknown key 'clock'"},
      {"{\n  \"name\"", "[\n  \"name\"", "toy.json:"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char message[PL_ERROR_MESSAGE_BYTES];
    pl_code code = parse_edited(cases[i].from, cases[i].to, -1, message);
    bool good = cases[i].expected[0] == '\0';
    if (good ? code != PL_OK : code != PL_BAD_INPUT || strstr(message, cases[i].expected) == NULL)
      fail_msg("'%s' for '%s': code %d: %s", cases[i].to, cases[i].from, (int)code, message);
  }
}

/* An A100 has 108 multiprocessors. */
static void test_channels(void **state) {
  (void)state;
  static const char path[] = "platforms/devices/A100-SXM4-80GB.json", said[] = "\"channels\": 24";
  static const struct {
    const char *channels;
    bool good;
  } cases[] = {{"24", true}, {"107", true}, {"108", false}, {"65536", false}};
  enum { MOST = 1 << 20 };
  char *text = test_malloc(MOST), *edited = test_malloc(MOST);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, MOST - 1, file)] = '\0';
  fclose(file);
  const char *at = strstr(text, said);
  assert_non_null(at);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_arena arena;
    pl_device_profile profile;
    pl_error error = PL_ERROR_INIT;
    pl_arena_init(&arena, 0);
    int n =
        snprintf(edited, MOST, "%.*s\"channels\": %s%s", (int)(at - text), text, cases[i].channels, at + strlen(said));
    pl_code code = pl_device_profile_parse("a100.json", edited, (size_t)n, &arena, &profile, &error);
    if (cases[i].good != (code == PL_OK)) fail_msg("%s: %s", cases[i].channels, error.message);
    if (!cases[i].good) assert_non_null(strstr(error.message, "leaves none of the 108 multiprocessors"));
    pl_arena_release(&arena);
  }
  test_free(text);
  test_free(edited);
}

/* Every allocation fails once: an error each time, nothing else. */
static void test_no_memory(void **state) {
  (void)state;
  char message[PL_ERROR_MESSAGE_BYTES];
  int64_t k = 0;
  while (parse_edited("toy", "toy", k, message) == PL_NO_MEMORY)
    k++;
  assert_string_equal(message, "");
  assert_true(k >= 3); /* name, architecture, ops */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_channels), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
