/* Mixed precision by torch.autocast against closed forms. A layer of GPT-2 on n = b s h elements, FlashAttention, all
 * else fused, 16-bit weights of h^2 elements times 12. Around weights in fp32 (`all`) the residual stream is fp32 and
 * moves
 *
 *   forward   two norms 4 n each, their casts for three products and for one 6 n each, two sums 4 n each,
 *             weights 6 bytes an element                                                         40 n + 72 h^2
 *   back      two norms 6 n, four casts 6 n and the sums of three gradients in fp32 2 x 12 n, two dropouts read
 *             2 n more, two sums of gradients 6 n each                                           76 n
 *
 * more than without, around weights in 16 bits (`norms`) only norms are fp32, on casts of what comes in:
 *
 *   forward   casts in front of and behind two norms 2 x 6 n + 24 n, norms 2 x 4 n               44 n
 *   back      as much for the casts, and 24 n for sums, norms 2 x 6 n                            72 n
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"
#include "workloads/program/program.h"

enum { SEQ = 512, MBS = 2, HIDDEN = 1024 };
static const double n_elements = (double)MBS * SEQ * HIDDEN;

static pl_block_program block_of(const char *name, pl_block_kind kind, const pl_framework *framework, pl_dtype dtype,
                                 bool flash) {
  pl_model model = load_model("workloads/models", name, &arena);
  const pl_block_shard shard = {
      .tmp = 1, .mbs = MBS, .seq = SEQ, .dtype = dtype, .flash = flash, .framework = framework};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

static const pl_framework *with(pl_autocast_form form) {
  pl_framework *framework = PL_TAKE(&arena, pl_framework, 1);
  *framework = pl_framework_ideal;
  framework->update.weights = PL_WEIGHTS_FP32;
  framework->kernels.autocast = form;
  return framework;
}

static double moved(const pl_op_list *list) {
  double bytes = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    bytes += list->ops[i].bytes;
  return bytes;
}

static pl_block_program layer(pl_autocast_form form, pl_dtype dtype, bool flash) {
  return block_of("gpt2-345m", PL_BLOCK_LAYER, with(form), dtype, flash);
}

static void layers_move_more(void **state) {
  (void)state;
  static const double forward[] = {0, 44, 40}, back[] = {0, 72, 84};
  /* Cast weights. Back, what queries, keys and values read has a gradient each, cast to fp32, and autograd adds them up
   * two by two: 3 x 6 + 2 x 12 bytes an element of the 84. */
  const double weights = 72.0 * HIDDEN * HIDDEN;
  /* weights and biases of two norms are read in fp32 forward, weights back; buffers of small gradients */
  const double norms = 8.0 * HIDDEN, norms_back = 4.0 * HIDDEN, buffers = 16.0 * HIDDEN;
  pl_block_program off = layer(PL_AUTOCAST_OFF, PL_DTYPE_FP16, true);
  for (int form = PL_AUTOCAST_NORMS; form <= PL_AUTOCAST_ALL; form++) {
    pl_block_program on = layer((pl_autocast_form)form, PL_DTYPE_FP16, true);
    double cast = form == PL_AUTOCAST_ALL ? weights : 0;
    double more = moved(&on.forward) - moved(&off.forward), more_back = moved(&on.backward) - moved(&off.backward);
    if (fabs(more - forward[form] * n_elements - cast - norms) > 0.5 ||
        fabs(more_back - back[form] * n_elements - norms_back) > buffers)
      fail_msg("form %d: %g n forward, %g n back", form, (more - cast) / n_elements, more_back / n_elements);
  }
}

/* In fp32 there is nothing to cast. */
static void only_of_16_bits(void **state) {
  (void)state;
  pl_block_program off = layer(PL_AUTOCAST_OFF, PL_DTYPE_FP32, true), on = layer(PL_AUTOCAST_ALL, PL_DTYPE_FP32, true);
  assert_true(moved(&on.forward) == moved(&off.forward) && moved(&on.backward) == moved(&off.backward));
  assert_true(on.saved_bytes == off.saved_bytes);
}

/* What two norms read is kept in fp32, and a copy in 16 bits for each product that reads one; what norms give is not.
 */
static void what_is_kept(void **state) {
  (void)state;
  double off = layer(PL_AUTOCAST_OFF, PL_DTYPE_FP16, true).saved_bytes,
         on = layer(PL_AUTOCAST_ALL, PL_DTYPE_FP16, true).saved_bytes;
  assert_true(fabs((on - off) / n_elements - (2 * (4 - 2) + 2 * (3 - 1))) < 1e-9);
}

/* Scores: to fp32 and back around the softmax, which moves twice as much. */
static void softmax_is_wide(void **state) {
  (void)state;
  const double scores = (double)MBS * 16 * SEQ * SEQ;
  pl_framework *steps[2];
  double more[2];
  for (int i = 0; i < 2; i++) {
    steps[i] = PL_TAKE(&arena, pl_framework, 1);
    *steps[i] = *with(i == 0 ? PL_AUTOCAST_OFF : PL_AUTOCAST_NORMS);
    steps[i]->kernels.fuses_softmax = false;
    pl_block_program with_scores = block_of("gpt2-345m", PL_BLOCK_LAYER, steps[i], PL_DTYPE_FP16, false),
                     without = block_of("gpt2-345m", PL_BLOCK_LAYER, steps[i], PL_DTYPE_FP16, true);
    more[i] = moved(&with_scores.forward) - moved(&without.forward);
  }
  assert_true(fabs((more[1] - more[0]) / scores - (6 + 4 + 6)) < 1e-9);
}

/* Logits of v words: 6 bytes to fp32 and 8 for their log-softmax, for each metric. */
static void metrics_read_logits(void **state) {
  (void)state;
  pl_framework metrics = pl_framework_ideal;
  metrics.kernels.loss = PL_LOSS_COPIES;
  pl_block_program none = block_of("gpt2-345m", PL_BLOCK_LOSS, &metrics, PL_DTYPE_BF16, true);
  metrics.kernels.loss_metrics = 2;
  pl_block_program two = block_of("gpt2-345m", PL_BLOCK_LOSS, &metrics, PL_DTYPE_BF16, true);
  double logits = none.tensors[none.input].size_bytes / 2;
  assert_true(moved(&two.forward) - moved(&none.forward) == 2 * 14 * logits);
  assert_true(moved(&two.backward) == moved(&none.backward));
}

/* Weights in fp32 are gathered as they are. */
static void gathers_are_wide(void **state) {
  (void)state;
  static const double bytes[] = {2, 2, 4};
  for (int form = PL_AUTOCAST_OFF; form <= PL_AUTOCAST_ALL; form++) {
    pl_job job = {.gbs = 8, .seq = SEQ, .dtype = PL_DTYPE_BF16, .framework = with((pl_autocast_form)form)};
    assert_true(pl_training_state_of(&job, 8).gathered_bytes == bytes[form]);
  }
}

static void profiles_say_so(void **state) {
  (void)state;
  static const struct {
    const char *name;
    pl_autocast_form form;
    double metrics;
  } profiles[] = {{"torch-ddp", PL_AUTOCAST_ALL, 0},
                  {"fsdp-composer-2022", PL_AUTOCAST_ALL, 2},
                  {"fsdp-composer-2023", PL_AUTOCAST_OFF, 0},
                  {"torch-fsdp", PL_AUTOCAST_OFF, 0}};
  for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
    pl_framework framework;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_framework_load(profiles[i].name, &arena, &framework, &error), PL_OK);
    assert_int_equal(framework.kernels.autocast, profiles[i].form);
    assert_true((double)framework.kernels.loss_metrics == profiles[i].metrics);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(layers_move_more, set_up, tear_down),
      cmocka_unit_test_setup_teardown(only_of_16_bits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_is_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(softmax_is_wide, set_up, tear_down),
      cmocka_unit_test_setup_teardown(metrics_read_logits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(gathers_are_wide, set_up, tear_down),
      cmocka_unit_test_setup_teardown(profiles_say_so, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
