/* An RMS norm in PyTorch ops against closed forms: of n = b s h elements in 16 bits with rows of h, forward
 *
 *   cast 2 + 4, squares 4 + 4, mean 4, product with 1 / rms 4 + 4, cast back 4 + 2, weight 2 + 2           36 n
 *
 * and back, as autograd runs it (lower/backward_norm.c)
 *
 *   product for the weight 2 + 2 + 2, its sum 2, product with the weight 2 + 2, cast 2 + 4, product with 1 / rms 4 + 4,
 *   product with x 4 + 4 + 4, its sum 4, spread 4, power 4 + 4, twice 4 + 4, product 4 + 4 + 4, sum 4 + 4 + 4,
 *   cast 4 + 2                                                                                             92 n
 *
 * where one kernel moves 4 n and 6 n; beside these numbers of rows and the weights themselves. They are as fast
 * as the memory: fits are of activation functions.
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
#include "workloads/cost/op_cost.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

enum { SEQ = 512, MBS = 2, HIDDEN = 4096 };

static pl_block_program block_of(const char *model_name, pl_block_kind kind, bool fuses, double launch_s) {
  pl_framework *framework = PL_TAKE(&arena, pl_framework, 1);
  *framework = pl_framework_ideal;
  framework->kernels.fuses_norm = fuses;
  framework->launch.launch_s = framework->launch.backward_launch_s = launch_s;
  pl_model model = load_model("workloads/models", model_name, &arena);
  const pl_block_shard shard = {
      .tmp = 1, .mbs = MBS, .seq = SEQ, .dtype = PL_DTYPE_BF16, .flash = true, .framework = framework};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, kind, &shard, &arena, &program, &error) != PL_OK) fail_msg("%s", error.message);
  return program;
}

typedef struct sum {
  double bytes;
  uint32_t launched;
} sum;

static sum of(const pl_op_list *list) {
  sum all = {0};
  for (uint32_t i = 0; i < list->n_ops; i++) {
    all.bytes += list->ops[i].bytes;
    all.launched += !list->ops[i].host_free;
  }
  return all;
}

static void steps_move(void **state) {
  (void)state;
  const double n = (double)MBS * SEQ * HIDDEN, row = 4.0 * MBS * SEQ, weight = 2.0 * HIDDEN;
  pl_block_program one = block_of("llama-2-7b", PL_BLOCK_FINAL_NORM, true, 0);
  pl_block_program steps = block_of("llama-2-7b", PL_BLOCK_FINAL_NORM, false, 0);
  assert_true(of(&one.forward).bytes == 4 * n + weight);
  assert_true(of(&steps.forward).bytes == 36 * n + weight + 6 * row);
  /* the weight once and its gradient's buffer, in fp32, read and written, either way; a sum is of rows in 16 bits */
  assert_true(of(&one.backward).bytes == 6 * n + weight + 8.0 * HIDDEN);
  assert_true(of(&steps.backward).bytes == 92 * n + weight + 8.0 * HIDDEN + 9.5 * row);
  assert_int_equal(steps.forward.n_ops, 8);
  assert_int_equal(steps.backward.n_ops, 15);
}

/* Layer norm is one kernel, norms of heads are not. */
static void which_norms(void **state) {
  (void)state;
  pl_block_program one = block_of("gpt2-345m", PL_BLOCK_LAYER, true, 0);
  pl_block_program still = block_of("gpt2-345m", PL_BLOCK_LAYER, false, 0);
  assert_true(of(&one.backward).bytes == of(&still.backward).bytes);
  one = block_of("qwen3-8b", PL_BLOCK_LAYER, true, 0);
  still = block_of("qwen3-8b", PL_BLOCK_LAYER, false, 0);
  /* two of the stream, one of queries and one of keys */
  assert_int_equal(still.forward.n_ops - one.forward.n_ops, 4 * 7);
}

/* In software whose figure is a module's, a norm is one launch, else as many as it has ops. */
static void the_host_launches(void **state) {
  (void)state;
  pl_block_program ops = block_of("llama-2-7b", PL_BLOCK_FINAL_NORM, false, 25e-6);
  pl_block_program modules = block_of("llama-2-7b", PL_BLOCK_FINAL_NORM, false, 82e-6);
  assert_int_equal(of(&ops.forward).launched, 8);
  assert_int_equal(of(&modules.forward).launched, 1);
  assert_int_equal(of(&ops.backward).launched, 15);
  assert_int_equal(of(&modules.backward).launched, 1);
}

/* By the bandwidth that the device reaches, whatever its activation functions do. */
static void as_fast_as_memory(void **state) {
  (void)state;
  pl_device_profile profile = {.bandwidth_Bps = 1e12, .bandwidth_efficiency = 0.8};
  profile.kernels[PL_KERNEL_ELEMENTWISE][0].bandwidth_efficiency = 0.3;
  profile.kernels[PL_KERNEL_ELEMENTWISE][1].bandwidth_efficiency = 0.3;
  pl_block_program steps = block_of("llama-2-7b", PL_BLOCK_FINAL_NORM, false, 0);
  const pl_op_list *lists[] = {&steps.forward, &steps.backward};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; i < lists[l]->n_ops; i++) {
      const pl_op *op = &lists[l]->ops[i];
      assert_true(fabs(pl_op_cost(&profile, op).time_s - op->bytes / 0.8e12) < 1e-15);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(steps_move, set_up, tear_down),
      cmocka_unit_test_setup_teardown(which_norms, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_host_launches, set_up, tear_down),
      cmocka_unit_test_setup_teardown(as_fast_as_memory, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
