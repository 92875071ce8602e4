/* What a program holds, against sums by hand. One list of two microbatches: the forward function makes %y of %x (both
 * 4 x 8 numbers of two bytes, 64 B) by a kernel of two ops, keeps %y and a mask of its dropout (32 B); the backward
 * function makes %dx of it. The weight has 8 numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/base/arena.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/memory/program_memory.h"

#define TYPE                              "bf16[b=4, h=8]"
#define PROGRAM(level, head, made, steps) PROGRAM_OF("2", level, head, made, steps)
#define PROGRAM_OF(n, level, head, made, steps)                                                                        \
  "plir 1 " level " m\nmicrobatches " n "\n" head "func @f(%x: " TYPE ") {\n  " made "  keep \"y\"(%y)\n"              \
  "  %s = sum(%y) {over=(b, h)} : bf16[]\n  return %s\n}\n"                                                            \
  "func @f.backward() {\n  %y = kept \"y\"() : " TYPE "\n  %dx = dropout(%y) {p=0.5, seed=1} : " TYPE "\n"             \
  "  %g = sum(%dx) {over=b} : bf16[h=8]\n  %w = cast(%g) : fp32[h=8]\n  accumulate \"w\"(%w)\n}\n"                     \
  "func @forward() {\n  %x = input \"vectors\"() : " TYPE "\n  %s = call @f \"f\"(%x) : bf16[]\n  loss(%s)\n}\n"       \
  "func @backward() {\n  call @f.backward \"f\"()\n}\n"                                                                \
  "func @update() {\n  %w = param \"f.w\"() : bf16[h=8]\n  %g = gradient \"f.w\"() : fp32[h=8]\n"                      \
  "  %m = state \"f.w\"() {slot=\"m\"} : fp32[h=8]\n  %v = state \"f.w\"() {slot=\"v\"} : fp32[h=8]\n"                 \
  "  %n, %n.2, %n.3 = adam(%w, %g, %m, %v) {rate=0.1, beta1=0.9, beta2=0.9, epsilon=1e-08} : bf16[h=8], fp32[h=8], "   \
  "fp32[h=8]\n  store \"f.w\"(%n)\n}\n"                                                                                \
  "class all {\n  chunk 0 forward @forward backward @backward\n  steps " steps "\n  update @update\n}\n"

#define OPS    "%a = relu(%x) : " TYPE "\n  %y = dropout(%a) {p=0.5, seed=1} : " TYPE "\n"
#define KERNEL "func @k(%x: " TYPE ") {\n  " OPS "  return %y\n}\n"

static pl_class_memory memory_of(const char *text) {
  pl_arena arena;
  pl_ir_module module;
  pl_class_memory *memory, found;
  pl_error error = PL_ERROR_INIT;
  pl_device_profile profile = {.memory_bytes = 10000, .reserved_bytes = 1000};
  pl_device device = {.profile = 0};
  const pl_cluster cluster = {.devices = &device, .n_devices = 1, .profiles = &profile, .n_profiles = 1};
  pl_arena_init(&arena, 0);
  pl_code code = pl_ir_parse("t", text, strlen(text), &arena, &module, &error);
  if (code == PL_OK) code = pl_ir_check(&module, &error);
  if (code == PL_OK) code = pl_program_memory_take(&cluster, &module, NULL, NULL, &arena, &memory, &error);
  if (code != PL_OK) fail_msg("%s", error.message);
  found = memory[0];
  pl_arena_release(&arena);
  return found;
}

/* Weight 2 B, gradient 4 B, master weight and two moments 12 B, each of 8. */
static void what_stays(void **state) {
  (void)state;
  const pl_class_memory is = memory_of(PROGRAM("distributed", "", OPS, "F0.0 B0.0 F0.1 B0.1"));
  assert_true(is.parameters == 16);
  assert_true(is.gradients == 32);
  assert_true(is.optimizer == 96);
  assert_true(is.peak == 16 + 32 + 96 + is.values);
}

/* The data loader holds %x. Forward at the most %a, %y and the mask: 160 B; backward as much, %y, the mask and %dx. A
 * second microbatch in flight adds what is kept of the first: %y and its mask, 96 B. */
static void what_lives(void **state) {
  (void)state;
  const pl_class_memory one = memory_of(PROGRAM("distributed", "", OPS, "F0.0 B0.0 F0.1 B0.1"));
  const pl_class_memory two = memory_of(PROGRAM("distributed", "", OPS, "F0.0 F0.1 B0.0 B0.1"));
  assert_true(one.values == 160);
  assert_true(two.values == 160 + 96);
}

/* Inside a kernel nothing is held: forward %y and the mask; the backward pass has the peak. */
static void what_a_kernel_holds(void **state) {
  (void)state;
  const pl_class_memory two =
      memory_of(PROGRAM("kernels", KERNEL, "%y = kernel @k(%x) : " TYPE "\n", "F0.0 F0.1 B0.0 B0.1"));
  assert_true(two.values == 160 + 96);
  assert_true(two.capacity == 9000);
}

/* Each microbatch in flight adds the same, whichever it is and in whatever order they come: 3 of 5 at the most, then 5
 * of 5, backwards. */
static void what_many_hold(void **state) {
  (void)state;
  const pl_class_memory three =
      memory_of(PROGRAM_OF("5", "distributed", "", OPS, "F0.0 B0.0 F0.3 F0.1 F0.2 B0.1 B0.3 F0.4 B0.2 B0.4"));
  const pl_class_memory five =
      memory_of(PROGRAM_OF("5", "distributed", "", OPS, "F0.0 F0.1 F0.2 F0.3 F0.4 B0.4 B0.3 B0.2 B0.1 B0.0"));
  assert_true(three.values == 160 + 2 * 96);
  assert_true(five.values == 160 + 4 * 96);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_stays), cmocka_unit_test(what_lives),
                                     cmocka_unit_test(what_a_kernel_holds), cmocka_unit_test(what_many_hold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
