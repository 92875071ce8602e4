/* The sections "attention" and "kernels" of a device profile: fields, and each way to get them wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/device/device_profile.h"

#define HEAD                                                                                                           \
  "{\"name\": \"Toy\", \"architecture\": \"toy\", \"memory\": \"8GiB\", \"bandwidth\": \"400GBps\",\n"                 \
  "\"peak_flops\": {\"fp16\": \"40Tf\"}, \"efficiency\": {\"compute\": 0.5, \"attention\": 0.25, \"bandwidth\": "      \
  "0.75},\n\"launch_overhead\": \"5us\", \"overlap\": {\"compute\": 0, \"communication\": 0}"
#define FLASH                                                                                                          \
  "{\"kernel\": \"flash2\", \"multiprocessors\": 10, \"query_tile\": 128, \"key_tile\": 64, \"efficiency\": {\"64\": " \
  "0.5, \"128\": 0.6}, \"prologue_keys\": 30, \"tail\": 0.5, \"overhead\": \"8us\", \"backward\": {\"ratio\": 2.7, "   \
  "\"prologue_keys\": 60, \"overhead\": 0.00002}}"
#define GOOD                                                                                                           \
  HEAD ",\n\"attention\": [" FLASH "],\n\"kernels\": {\"norm\": {\"forward\": {\"bandwidth\": 0.55, \"overhead\": "    \
       "\"4us\"}}}}"

enum { TEXT_BYTES = 4096 };

static pl_code parse(const char *text, pl_arena *arena, pl_device_profile *profile, pl_error *error) {
  return pl_device_profile_parse("toy.json", text, strlen(text), arena, profile, error);
}

static void test_fields(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile p;
  pl_error error = PL_ERROR_INIT;
  if (parse(GOOD, &arena, &p, &error) != PL_OK) fail_msg("%s", error.message);
  assert_int_equal(p.n_attention, 1);
  const pl_attention_profile *a = p.attention;
  assert_int_equal(a->kernel, PL_ATTENTION_FLASH2);
  assert_int_equal(a->n_head_sizes, 2);
  assert_true(a->head_size[0] == 64 && a->head_size[1] == 128);
  assert_true(a->efficiency[0] == 0.5 && a->efficiency[1] == 0.6);
  assert_true(a->multiprocessors == 10 && a->query_tile == 128 && a->key_tile == 64);
  assert_true(a->prologue_keys == 30 && a->tail == 0.5 && a->backward_ratio == 2.7);
  assert_true(a->backward_prologue_keys == 60 && a->backward_overhead_s == 2e-5);
  assert_true(a->overhead_s > 7.99e-6 && a->overhead_s < 8.01e-6);
  assert_true(p.kernels[PL_KERNEL_NORM][0].bandwidth_efficiency == 0.55);
  assert_true(p.kernels[PL_KERNEL_NORM][1].bandwidth_efficiency == 0);
  assert_true(p.kernels[PL_KERNEL_OPTIMIZER][0].bandwidth_efficiency == 0);
  pl_arena_release(&arena);
}

static void test_left_out(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile p;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(parse(HEAD "}", &arena, &p, &error), PL_OK);
  assert_int_equal(p.n_attention, 0);
  for (int kind = 0; kind < PL_KERNEL_KIND_COUNT; kind++)
    assert_true(p.kernels[kind][0].bandwidth_efficiency == 0 && p.kernels[kind][1].bandwidth_efficiency == 0);
  pl_arena_release(&arena);
}

static void refuse(const char *from, const char *to, const char *expected) {
  char text[TEXT_BYTES];
  const char *found = strstr(GOOD, from);
  if (found == NULL) fail_msg("no '%s' in the good text", from);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(found - GOOD), GOOD, to, found + strlen(from));
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_device_profile p;
  pl_error error = PL_ERROR_INIT;
  assert_int_not_equal(parse(text, &arena, &p, &error), PL_OK);
  if (strstr(error.message, expected) == NULL || strstr(error.message, "toy.json:") == NULL)
    fail_msg("'%s' is not in '%s'", expected, error.message);
  pl_arena_release(&arena);
}

static void test_refused(void **state) {
  (void)state;
  refuse("\"flash2\"", "\"flash9\"", "kernel 'flash9' is none of");
  refuse("\"flash2\"", "\"any\"", "kernel 'any' is none of");
  refuse("\"multiprocessors\": 10", "\"multiprocessors\": 0", "multiprocessors is 0");
  refuse("\"key_tile\": 64", "\"key_tile\": 48", "key_tile 48");
  refuse("\"key_tile\": 64", "\"key_tile\": 0.5", "key_tile is 0.5");
  refuse("\"64\": 0.5, \"128\"", "\"128\": 0.5, \"64\"", "head size '64'");
  refuse("\"64\": 0.5", "\"x\": 0.5", "head size 'x'");
  refuse("\"64\": 0.5", "\"64\": 1.5", "64 is 1.5");
  refuse("{\"64\": 0.5, \"128\": 0.6}", "{}", "'efficiency' must be an object");
  refuse("\"tail\": 0.5", "\"tail\": -1", "tail is -1");
  refuse("\"8us\"", "\"8 parsecs\"", "8 parsecs");
  refuse("\"8us\"", "-1", "overhead is -1");
  refuse("\"ratio\": 2.7", "\"ratio\": 0", "ratio is 0");
  refuse("\"tail\"", "\"tale\"", "unknown key 'tale'");
  refuse("[" FLASH "]", "{}", "'attention' must be a list");
  refuse("[" FLASH "]", "[" FLASH ", " FLASH "]", "two entries for the kernel 'flash2'");
  refuse("\"norm\"", "\"nrom\"", "unknown kind of kernel 'nrom'");
  refuse("\"bandwidth\": 0.55", "\"bandwidth\": 1.5", "bandwidth is 1.5");
  refuse("\"forward\": {\"band", "\"forwards\": {\"band", "unknown key 'forwards'");
}

static void test_memory(void **state) {
  (void)state;
  pl_code code = PL_NO_MEMORY;
  for (int64_t k = 0; code == PL_NO_MEMORY && k < 100; k++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    arena.fail_after = k;
    pl_device_profile p;
    pl_error error = PL_ERROR_INIT;
    code = parse(GOOD, &arena, &p, &error);
    assert_int_equal(code, error.code);
    pl_arena_release(&arena);
  }
  assert_int_equal(code, PL_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_left_out),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
