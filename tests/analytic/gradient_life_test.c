/* Gradients that are there only while they are needed, losses that need less of the logits, and an optimizer with small
 * moments, against closed forms. b sequences of s tokens, V words; P parameters, g bytes of a gradient.
 *
 * - made: where the loss makes the peak, no gradient is there yet: g P less than where they stay; where the optimizer
 *   makes it, all are: as much. Told from the steps it is what the run finds, to the byte.
 * - consumed: as made at the loss; and at the end of the backward pass no more than the one that head and embedding
 *   share.
 * - fused: logits of 16 bits are kept, and their gradient beside them: 2 b s V + 2 b s V.
 * - fused_fp32: logits of 32 bits, and their gradient: 4 b s V + 4 b s V.
 * - chunked: logits of 16 bits, and an eighth of their gradient: 2 b s V + 2 b s V / 8.
 * - 8 bits: two moments of a byte and the scales of 256 each: 2 (1 + 4 / 256) bytes instead of 2 x 4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/attention_job.h"
#include "tests/support/model_file.h"
#include "tests/support/op_list.h"
#include "workloads/lower/block_program.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"

static pl_framework living(pl_gradient_life life) {
  pl_framework framework = pl_framework_ideal;
  framework.gradients.life = life;
  framework.kernels.fuses_accumulation = false;
  return framework;
}

/* ---- the run ---- */

static const pl_gradient_life lives[] = {PL_GRADIENTS_STAY, PL_GRADIENTS_MADE, PL_GRADIENTS_CONSUMED};

static void told_is_found(const char *text, const pl_framework *framework, uint32_t n_devices, int64_t gbs) {
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = 8, .n_nodes = 1, .gpus_per_node = n_devices, .gbs = gbs});
  own.job.framework = framework;
  pl_strategy strategy;
  pl_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_strategy_parse(text, &own.model, &own.arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &own.model, &own.job, own.cluster, &own.arena, &error) != PL_OK ||
      pl_program_take(&own.model, &own.job, &strategy, &own.arena, &program, &error) != PL_OK)
    fail_msg("%s: %s", text, error.message);
  pl_simulate_report report = attention_job_simulate(&own, text);
  for (int32_t stage = 0; stage < strategy.pp; stage++) {
    double told = pl_stage_peak_bytes(&program, stage, true), found = report.stages[stage].peak;
    if ((int64_t)told != (int64_t)found)
      fail_msg("%s, life %d, stage %d: %.0f bytes, told %.0f", text, (int)framework->gradients.life, stage, found,
               told);
    const pl_stage_memory *memory = &report.stages[stage];
    double sum = memory->parameters + memory->gradients + memory->optimizer + memory->activations + memory->buffers;
    if (fabs(sum - found) > 2) fail_msg("%s, stage %d: parts of %.0f bytes, %.0f in all", text, stage, sum, found);
  }
  attention_job_release(&own);
}

static void peaks_are_told_to_the_byte(void **state) {
  (void)state;
  static const char *const schedules[] = {"1f1b", "gpipe", "fifo"}, *const recomputes[] = {"none", "full"};
  for (size_t life = 0; life < 3; life++)
    for (int s = 0; s < 3; s++)
      for (int r = 0; r < 2; r++) {
        const pl_framework framework = living(lives[life]);
        char text[128];
        snprintf(text, sizeof text, "pp=4,dp=1,tmp=1,mbs=1,schedule=%s,recompute=%s", schedules[s], recomputes[r]);
        told_is_found(text, &framework, 4, 1);
        snprintf(text, sizeof text, "pp=1,dp=1,tmp=1,mbs=2,schedule=%s,recompute=%s", schedules[s], recomputes[r]);
        told_is_found(text, &framework, 1, 2);
        snprintf(text, sizeof text, "pp=1,dp=4,tmp=1,mbs=2,zero=3,schedule=%s,recompute=%s", schedules[s],
                 recomputes[r]);
        told_is_found(text, &framework, 4, 8);
        if (lives[life] == PL_GRADIENTS_CONSUMED) continue; /* wants one microbatch, and no buckets */
        snprintf(text, sizeof text, "pp=2,dp=2,tmp=1,mbs=1,schedule=%s,recompute=%s", schedules[s], recomputes[r]);
        told_is_found(text, &framework, 4, 16);
        snprintf(text, sizeof text, "pp=1,dp=4,tmp=1,mbs=2,zero=1,schedule=%s,recompute=%s", schedules[s],
                 recomputes[r]);
        told_is_found(text, &framework, 4, 8);
      }
}

/* ---- closed forms ---- */

static double peak_of(const pl_framework *framework, int64_t seq, int64_t mbs, int64_t n_microbatches,
                      double *parameters) {
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  const pl_job job = {
      .gbs = mbs * n_microbatches, .seq = seq, .dtype = PL_DTYPE_BF16, .flash = true, .framework = framework};
  pl_strategy strategy;
  pl_program program;
  pl_error error = PL_ERROR_INIT;
  char text[96];
  snprintf(text, sizeof text, "pp=1,dp=1,tmp=1,mbs=%d,assign=uniform,recompute=full", (int)mbs);
  if (pl_strategy_parse(text, &model, &arena, &strategy, &error) != PL_OK ||
      pl_strategy_assign(&strategy, &model, &job, NULL, &arena, &error) != PL_OK ||
      pl_program_take(&model, &job, &strategy, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  if (parameters != NULL) *parameters = program.stages[0].parameters;
  return pl_stage_peak_bytes(&program, 0, true);
}

static void at_the_loss_no_gradient_is_there(void **state) {
  (void)state;
  const pl_framework stay = living(PL_GRADIENTS_STAY), made = living(PL_GRADIENTS_MADE),
                     consumed = living(PL_GRADIENTS_CONSUMED);
  double parameters, stays = peak_of(&stay, 1024, 16, 1, &parameters), gradients = 4 * parameters;
  assert_true(stays - peak_of(&made, 1024, 16, 1, NULL) == gradients);
  assert_true(stays - peak_of(&consumed, 1024, 16, 1, NULL) == gradients);
  /* Sums over two microbatches stay. */
  assert_true(peak_of(&made, 1024, 16, 2, NULL) == peak_of(&stay, 1024, 16, 2, NULL));
}

/* With one token next to nothing lies beside them. */
static void at_the_end_all_made_ones_are_there_and_of_consumed_ones_the_tied(void **state) {
  (void)state;
  const pl_framework stay = living(PL_GRADIENTS_STAY), made = living(PL_GRADIENTS_MADE),
                     consumed = living(PL_GRADIENTS_CONSUMED);
  double parameters, stays = peak_of(&stay, 1, 1, 1, &parameters);
  /* The table that head and embedding share, the 16 bits that its gradient is made in, and about a layer. */
  double tied = 4 * 50304.0 * 1024, narrow = tied / 2, layer = 4 * 12.7e6;
  double all = peak_of(&made, 1, 1, 1, NULL), few = peak_of(&consumed, 1, 1, 1, NULL);
  assert_true(all > stays - narrow - layer && all < stays + layer);
  assert_true(all - few > 4 * parameters - tied - narrow - layer && all - few < 4 * parameters - tied + layer);
}

static pl_block_program block(pl_block_kind kind, pl_loss_form form) {
  pl_model model = load_model("workloads/models", "gpt2-345m", &arena);
  pl_framework framework = pl_framework_ideal;
  framework.kernels.loss = form;
  const pl_block_shard shard = {
      .tmp = 1, .mbs = 2, .seq = 1024, .dtype = PL_DTYPE_BF16, .flash = true, .framework = &framework};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

static void losses_keep_what_they_read(void **state) {
  (void)state;
  const double tokens = 2 * 1024, logits = tokens * 50304, sums = 4 * tokens;
  pl_block_program fused = block(PL_BLOCK_LOSS, PL_LOSS_FUSED), wide = block(PL_BLOCK_LOSS, PL_LOSS_FUSED_FP32),
                   chunked = block(PL_BLOCK_LOSS, PL_LOSS_CHUNKED);
  double small = fused.saved_bytes - 2 * logits; /* numbers per token */
  assert_true(small >= 0 && small <= 4 * sums);
  assert_true(fused.backward_peak_bytes == 2 * logits); /* on top of what is kept */
  assert_true(wide.saved_bytes == 4 * logits + small && wide.backward_peak_bytes == 4 * logits);
  assert_true(chunked.saved_bytes == fused.saved_bytes && chunked.backward_peak_bytes == 2 * logits / 8);
  /* Read once and written once less: 16 bits are cast to 32 and back. */
  assert_true(op_list_bytes(&chunked.forward) == op_list_bytes(&fused.forward));
  assert_true(op_list_bytes(&chunked.backward) == op_list_bytes(&fused.backward));
  assert_true(op_list_bytes(&wide.forward) - op_list_bytes(&fused.forward) == (2 + 4 + 4 - 2) * logits);
  assert_true(op_list_bytes(&wide.backward) - op_list_bytes(&fused.backward) == (4 + 4 + 4 + 2 - 2 - 2) * logits);
  /* The head takes the gradient in as many pieces. */
  pl_block_program head = block(PL_BLOCK_HEAD, PL_LOSS_FUSED), pieces = block(PL_BLOCK_HEAD, PL_LOSS_CHUNKED);
  assert_true(head.backward_peak_bytes - pieces.backward_peak_bytes == 2 * logits * 7 / 8);
  assert_true(op_list_bytes(&head.backward) == op_list_bytes(&pieces.backward));
}

static void small_moments(void **state) {
  (void)state;
  pl_framework framework = pl_framework_ideal;
  framework.update.optimizer = PL_OPTIMIZER_FUSED_8BIT;
  const pl_job job = {.dtype = PL_DTYPE_BF16, .framework = &framework};
  const double moment = 1 + 4.0 / 256;
  pl_training_state with_master = pl_training_state_of(&job, 1);
  assert_true(with_master.optimizer_bytes == 4 + 2 * moment);
  assert_true(with_master.update_traffic_bytes ==
              3 * 4 + 4 * moment + 2); /* p twice, g once, m and v twice; the cast */
  framework.update.weights = PL_WEIGHTS_ALONE;
  framework.gradients.gradient_dtype = PL_DTYPE_BF16;
  pl_training_state alone = pl_training_state_of(&job, 1);
  assert_true(alone.optimizer_bytes == 2 * moment && alone.update_traffic_bytes == 3 * 2 + 4 * moment);
}

/* ---- what cannot be ---- */

static void refuses(const char *text, uint32_t n_devices, int64_t gbs, const char *says) {
  const pl_framework framework = living(PL_GRADIENTS_CONSUMED);
  attention_job own;
  attention_job_build(&own, &(attention_shape){.n_layers = 4, .n_nodes = 1, .gpus_per_node = n_devices, .gbs = gbs});
  own.job.framework = &framework;
  pl_strategy strategy;
  pl_program program;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_strategy_parse(text, &own.model, &own.arena, &strategy, &error), PL_OK);
  assert_int_equal(pl_strategy_assign(&strategy, &own.model, &own.job, own.cluster, &own.arena, &error), PL_OK);
  assert_int_equal(pl_program_take(&own.model, &own.job, &strategy, &own.arena, &program, &error), PL_BAD_INPUT);
  if (strstr(error.message, says) == NULL) fail_msg("'%s' lacks '%s'", error.message, says);
  attention_job_release(&own);
}

static void what_a_step_in_the_backward_pass_cannot_do(void **state) {
  (void)state;
  refuses("pp=1,dp=1,tmp=1,mbs=1", 1, 4, "one microbatch per step; here are 4");
  refuses("pp=1,dp=4,tmp=1,mbs=1", 4, 4, "needs dp=1 or zero=2 or 3");
  static const char text[] = "{\"name\": \"x\", \"state\": {\"gradients\": \"consumed\", \"clips_gradients\": true}}";
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_framework_parse("x.json", text, strlen(text), &arena, &framework, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "clips_gradients must be false"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(peaks_are_told_to_the_byte, set_up, tear_down),
      cmocka_unit_test_setup_teardown(at_the_loss_no_gradient_is_there, set_up, tear_down),
      cmocka_unit_test_setup_teardown(at_the_end_all_made_ones_are_there_and_of_consumed_ones_the_tied, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(losses_keep_what_they_read, set_up, tear_down),
      cmocka_unit_test_setup_teardown(small_moments, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_a_step_in_the_backward_pass_cannot_do, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
