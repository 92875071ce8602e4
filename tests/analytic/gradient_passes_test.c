/* What goes over gradients around their reduction, in closed form. P parameters of one rank, n replicas, B bytes/s, k
 * bytes a gradient, r as it is reduced: a step takes longer by
 *
 *   clears_gradients     k P / B, with ZeRO 2 of its share alone
 *   gradient_passes p    p r P / B where there are replicas and gradients are kept whole (ZeRO 0 and 1)
 *   unscales_gradients   8 P / B of what the rank updates, in fp16 alone
 *
 * and the update of a program, which reads what was whole before it was reduced, moves as much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/attention_job.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/launched_program.h"

enum { RANKS = 4 };
static const double rate_Bps = 1e9;

static void build(attention_job *own, uint32_t ranks) {
  attention_job_build(own, &(attention_shape){.n_layers = 2,
                                              .forward_s = 0x1p-10,
                                              .backward_s = 0x1p-9,
                                              .n_nodes = 1,
                                              .gpus_per_node = ranks,
                                              .gbs = RANKS});
  ((pl_device_profile *)&own->cluster->profiles[0])->bandwidth_Bps = rate_Bps;
}

static double time_of(attention_job *own, const pl_framework *framework, const char *text) {
  own->job.framework = framework;
  return attention_job_simulate(own, text).row.iter_time_s;
}

static void a_step_takes_longer(void **state) {
  (void)state;
  attention_job own;
  static const struct {
    const char *text;
    uint32_t ranks;
    double clears, passes, unscales; /* elements, of all parameters */
  } cases[] = {{"pp=1,dp=4,tmp=1,mbs=1", RANKS, 1, 1, 1},
               {"pp=1,dp=4,tmp=1,mbs=1,zero=1", RANKS, 1, 1, 0.25},
               {"pp=1,dp=4,tmp=1,mbs=1,zero=2", RANKS, 0.25, 0, 0.25},
               {"pp=1,dp=1,tmp=1,mbs=4", 1, 1, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    build(&own, cases[i].ranks);
    double parameters = attention_job_all_gradient_bytes(&own) / 2;
    pl_framework plain = pl_framework_ideal, with = plain;
    double before_s = time_of(&own, &plain, cases[i].text);
    with.gradients.clears = true;
    expect_time("cleared", time_of(&own, &with, cases[i].text) - before_s, cases[i].clears * 2 * parameters / rate_Bps,
                3);
    with = plain;
    with.gradients.passes = 3;
    expect_time("passes", time_of(&own, &with, cases[i].text) - before_s, cases[i].passes * 6 * parameters / rate_Bps,
                3);
    with = plain;
    with.update.unscales_gradients = true;
    expect_time("unscaled", time_of(&own, &with, cases[i].text) - before_s,
                cases[i].unscales * 8 * parameters / rate_Bps, 3);
    attention_job_release(&own);
  }
}

#define UPDATE(axis)                                                                                                   \
  "plir 1 distributed \"one\"\nmesh dp=4, tp=2\n"                                                                      \
  "func @main() {\n"                                                                                                   \
  "  %w = param \"w\"() : bf16[h=64, f=32]\n"                                                                          \
  "  %x = input \"x\"() : bf16[b=8/dp, h=64]\n"                                                                        \
  "  %y = product(%x, %w) {over=h} : bf16[b=8/dp, f=32]\n"                                                             \
  "  keep \"y\"(%y)\n"                                                                                                 \
  "}\n"                                                                                                                \
  "func @update() {\n"                                                                                                 \
  "  %w = param \"w\"() : bf16[h=64, f=32]\n"                                                                          \
  "  %g = gradient \"w\"() : fp32[h=64, f=32] partial(" axis ")\n"                                                     \
  "  %m = state \"w\"() {slot=\"m\"} : fp32[h=64/" axis ", f=32]\n"                                                    \
  "  %v = state \"w\"() {slot=\"v\"} : fp32[h=64/" axis ", f=32]\n"                                                    \
  "  %s = cut(%w) {over=" axis ", dim=h} : bf16[h=64/" axis ", f=32]\n"                                                \
  "  %r = reduce_scatter(%g) {over=" axis ", dim=h} : fp32[h=64/" axis ", f=32]\n"                                     \
  "  %new, %m2, %v2 = adam(%s, %r, %m, %v) {rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08} : bf16[h=64/" axis      \
  ", f=32], fp32[h=64/" axis ", f=32], fp32[h=64/" axis ", f=32]\n"                                                    \
  "  %all = all_gather(%new) {over=" axis ", dim=h} : bf16[h=64, f=32]\n"                                              \
  "  store \"w\"(%all)\n"                                                                                              \
  "  store \"w\"(%m2) {slot=\"m\"}\n"                                                                                  \
  "  store \"w\"(%v2) {slot=\"v\"}\n"                                                                                  \
  "}\n"                                                                                                                \
  "class all {\n  chunk 0 forward @main\n  steps F0.0\n  update @update\n}\n"

static double moved_by(const char *text, const pl_framework *framework) {
  pl_arena arena;
  pl_ir_module module, made;
  pl_error error = PL_ERROR_INIT;
  double moves = 0;
  pl_arena_init(&arena, 0);
  if (pl_ir_parse("program", text, strlen(text), &arena, &module, &error) != PL_OK ||
      pl_ir_check(&module, &error) != PL_OK || pl_program_kernels(&module, framework, &arena, &made, &error) != PL_OK)
    fail_msg("%s", error.message);
  for (int32_t f = 0; f < made.n_functions; f++)
    for (int32_t i = 0; i < made.functions[f]->n_ops; i++)
      moves += pl_ir_real_of(&made.functions[f]->ops[i], "moves", 0);
  pl_arena_release(&arena);
  return moves;
}

/* Per element of what is updated: four devices reduce what was four times as large; two tensor ranks sum up what was
 * twice as large, which no framework counts as a reduction over replicas, but which is kept whole. */
static void programs_move_as_much(void **state) {
  (void)state;
  pl_framework plain = pl_framework_ideal, with = plain;
  double before = moved_by(UPDATE("dp"), &plain);
  with.gradients.clears = true;
  assert_true(moved_by(UPDATE("dp"), &with) == before + 4 * 4);
  assert_true(moved_by(UPDATE("tp"), &with) == before + 2 * 4);
  with.gradients.passes = 3;
  assert_true(moved_by(UPDATE("dp"), &with) == before + 4 * (4 + 3 * 4));
  assert_true(moved_by(UPDATE("tp"), &with) == before + 2 * 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_step_takes_longer),
      cmocka_unit_test(programs_move_as_much),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
