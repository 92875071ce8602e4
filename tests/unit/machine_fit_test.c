/* Profiles of this machine: the fit finds coefficients that samples were made of, never below zero, and what it writes
 * is read back as the times of programs' ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "netmodel/collective/collective_profile.h"
#include "netmodel/device/device_profile.h"
#include "validation/fit/machine_write.h"
#include "workloads/cost/ir_cost.h"
#include "workloads/language/ir_text.h"

static void three_coefficients_are_found(void **state) {
  (void)state;
  const double made_of[][3] = {{2e-6, 1e-9, 3e-10}, {0, 1e-9, 3e-10}, {2e-6, 0, 3e-10}, {2e-6, 1e-9, 0}, {5e-6, 0, 0}};
  for (size_t i = 0; i < sizeof made_of / sizeof made_of[0]; i++) {
    double rows[60][3], c[3];
    for (int r = 0; r < 60; r++) {
      double terms[] = {1, pow(10, 2 + r % 7), pow(7, 1 + r % 9)}, time_s = 0;
      for (int k = 0; k < 3; k++)
        time_s += made_of[i][k] * terms[k];
      for (int k = 0; k < 3; k++)
        rows[r][k] = terms[k] / time_s;
    }
    pl_fit_three((const double(*)[3])rows, 60, c);
    for (int k = 0; k < 3; k++)
      assert_true(fabs(c[k] - made_of[i][k]) <= 1e-6 * made_of[i][k] + 1e-15);
  }
}

/* Times that fall with size would need a coefficient below zero. */
static void none_is_below_zero(void **state) {
  (void)state;
  double rows[8][3], c[3];
  for (int r = 0; r < 8; r++) {
    double size = 1 + r, time_s = 1 / size;
    rows[r][0] = 1 / time_s;
    rows[r][1] = size / time_s;
    rows[r][2] = size * size / time_s;
  }
  pl_fit_three((const double(*)[3])rows, 8, c);
  assert_true(c[0] >= 0 && c[1] >= 0 && c[2] >= 0 && c[0] + c[1] + c[2] > 0);
}

/* 1 us + flops / 1 GFLOP/s + bytes / 2 GB/s for gelu, 3 us + bytes / 4 GB/s for add; products and moves to be complete.
 */
static void take_samples(pl_arena *arena, pl_machine_samples *samples) {
  *samples =
      (pl_machine_samples){.ops = PL_TAKE(arena, pl_op_sample, 120), .moves = PL_TAKE(arena, pl_move_sample, 80)};
  for (int i = 0; i < 40; i++) {
    double flops = 1000.0 * (1 + i % 8), bytes = 4000.0 * (1 + i / 3);
    samples->ops[samples->n_ops++] =
        (pl_op_sample){pl_ir_row_of("gelu"), flops, bytes, 1e-6 + flops / 1e9 + bytes / 2e9};
    samples->ops[samples->n_ops++] = (pl_op_sample){pl_ir_row_of("add"), flops, bytes, 3e-6 + bytes / 4e9};
    samples->ops[samples->n_ops++] = (pl_op_sample){pl_ir_row_of("product"), 1e4 * flops, bytes, 1e4 * flops / 50e9};
    double size = 256 << (i % 16);
    samples->moves[samples->n_moves++] = (pl_move_sample){PL_ALL_REDUCE, i < 20 ? 2 : 4, size,
                                                          (i < 20 ? 2 : 6) * 5e-6 + size * (i < 20 ? 1 : 1.5) / 1e9};
    samples->moves[samples->n_moves++] = (pl_move_sample){PL_SEND, 2, size, 2e-6 + size / 2e9};
  }
}

static char *written(const pl_machine_text *text, void (*write)(const pl_machine_text *, FILE *), size_t *size) {
  char *bytes = NULL;
  FILE *stream = open_memstream(&bytes, size);
  write(text, stream);
  fclose(stream);
  return bytes;
}

static const char program[] = "plir 1 model \"one\"\nfunc @main() {\n"
                              "  %x = input \"x\"() : fp32[b=64, h=32]\n"
                              "  %y = gelu(%x) : fp32[b=64, h=32]\n"
                              "  %z = tanh(%y) : fp32[b=64, h=32]\n"
                              "  keep \"z\"(%z)\n}\n"
                              "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n";

static void what_is_written_is_read(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_machine_samples samples;
  pl_machine_fit fit;
  pl_error error = PL_ERROR_INIT;
  take_samples(&arena, &samples);
  assert_int_equal(pl_machine_fit_take(&samples, &arena, &fit, &error), PL_OK);
  assert_int_equal(fit.n_ops, 3);
  assert_string_equal(fit.ops[1].op, "gelu");
  assert_true(fit.ops[1].held_out.n == 10 && fit.ops[1].held_out.p90_error < 1e-6);
  assert_true(fabs(fit.ring.step_s / 5e-6 - 1) < 1e-6 && fabs(fit.ring.rate_Bps / 1e9 - 1) < 1e-6);
  assert_true(fabs(fit.direct.rate_Bps / 2e9 - 1) < 1e-6);

  const pl_machine_text text = {&fit, "test-core", "made up", 4, 2, 1e9};
  size_t size;
  char *device = written(&text, pl_machine_write_device, &size);
  pl_device_profile profile;
  assert_int_equal(pl_device_profile_parse("device", device, size, &arena, &profile, &error), PL_OK);
  free(device);
  char *collectives = written(&text, pl_machine_write_collectives, &size);
  pl_collective_profile moves;
  assert_int_equal(pl_collective_profile_parse("moves", collectives, size, &arena, &moves, &error), PL_OK);
  free(collectives);
  assert_true(moves.n_inside == 1 && moves.inside[0].cost[PL_TUNED_RING][PL_PROTOCOL_SIMPLE].known);

  /* gelu by its name: 1 us + 2048 FLOPs and 16 KiB at those rates; tanh, which is not listed, as on other devices. */
  pl_ir_module module;
  pl_op kernel;
  pl_op_time time;
  assert_int_equal(pl_ir_parse("program", program, strlen(program), &arena, &module, &error), PL_OK);
  const pl_ir_function *f = module.functions[0];
  assert_true(pl_ir_op_time(&profile, &module.mesh, f, &f->ops[1], PL_CATEGORY_FORWARD, &kernel, &time));
  assert_true(fabs(time.time_s / (1e-6 + 2048 / 1e9 + 16384 / 2e9) - 1) < 1e-3);
  assert_true(pl_ir_op_time(&profile, &module.mesh, f, &f->ops[2], PL_CATEGORY_FORWARD, &kernel, &time));
  assert_true(time.time_s == pl_op_cost(&profile, &kernel).time_s);
  assert_false(pl_ir_op_time(&profile, &module.mesh, f, &f->ops[3], PL_CATEGORY_FORWARD, &kernel, &time));
  pl_arena_release(&arena);
}

static void wrong_sections_are_refused(void **state) {
  (void)state;
  static const char form[] =
      "{\"name\": \"x\", \"architecture\": \"cpu\", \"memory\": 1, \"bandwidth\": 1, \"peak_flops\": "
      "{\"fp32\": 1}, \"efficiency\": {\"compute\": 1, \"attention\": 1, \"bandwidth\": 1}, "
      "\"launch_overhead\": 0, \"overlap\": {\"compute\": 0, \"communication\": 0}, \"programs\": %s}";
  static const char *const wrong[][2] = {{"[]", "'programs' must be an object"},
                                         {"{\"gelu\": {}}", "'gelu' needs an overhead, flops or a bandwidth"},
                                         {"{\"gelu\": {\"rate\": 1}}", "rate"},
                                         {"{\"gelu\": {\"flops\": 0}}", "flops"},
                                         {"{\"\": {\"flops\": 1}}", "is not the name of an op"}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char text[1024];
    pl_arena arena;
    pl_arena_init(&arena, 0);
    pl_device_profile profile;
    pl_error error = PL_ERROR_INIT;
    snprintf(text, sizeof text, form, wrong[i][0]);
    assert_int_equal(pl_device_profile_parse("device", text, strlen(text), &arena, &profile, &error), PL_BAD_INPUT);
    assert_non_null(strstr(error.message, wrong[i][1]));
    pl_arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(three_coefficients_are_found),
                                     cmocka_unit_test(none_is_below_zero), cmocka_unit_test(what_is_written_is_read),
                                     cmocka_unit_test(wrong_sections_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
