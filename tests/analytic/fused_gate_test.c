/* An activation and its product with the other half, as one kernel or as two, against closed forms. A microbatch of b
 * sequences of s tokens, an MLP of width f, 16 bits: in two kernels the activation's result is a tensor of 2 b s f
 * bytes that the product's derivative reads, so that it is kept; ungated MLPs have no such product.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/framework/framework.h"
#include "workloads/lower/block_program.h"

enum { SEQ = 512, MBS = 2 };

static pl_block_program layer_of(const char *name, const pl_framework *framework, int32_t tmp) {
  pl_model model = load_model("workloads/models", name, &arena);
  const pl_block_shard shard = {
      .tmp = tmp, .mbs = MBS, .seq = SEQ, .dtype = PL_DTYPE_BF16, .flash = true, .framework = framework};
  pl_block_program program;
  pl_error error = PL_ERROR_INIT;
  if (pl_block_program_take(&model, PL_BLOCK_LAYER, &shard, &arena, &program, &error) != PL_OK)
    fail_msg("%s", error.message);
  return program;
}

static pl_block_program layer(const char *name, bool activation, bool gate, int32_t tmp) {
  pl_framework framework = pl_framework_ideal;
  framework.kernels.fuses_activation = activation;
  framework.kernels.fuses_gate = gate;
  return layer_of(name, &framework, tmp);
}

static double moved_back(const pl_block_program *program) {
  double bytes = 0;
  for (uint32_t i = 0; i < program->backward.n_ops; i++)
    if (program->backward.ops[i].kind == PL_OP_ELEMENTWISE) bytes += program->backward.ops[i].bytes;
  return bytes;
}

/* Gate and up projection as one weight: both halves of its gradient, 2 b s f bytes each, are read and written once
 * more, where they are no kernel's. */
static void one_weight_packs_its_gradients(void **state) {
  (void)state;
  const double half = 2.0 * MBS * SEQ * 11008;
  pl_framework framework = pl_framework_ideal;
  pl_block_program fused = layer_of("llama-2-7b", &framework, 1);
  framework.kernels.packs_gate = false;
  pl_block_program still = layer_of("llama-2-7b", &framework, 1);
  framework.kernels.fuses_activation = false;
  pl_block_program two = layer_of("llama-2-7b", &framework, 1);
  framework.kernels.packs_gate = true;
  pl_block_program one = layer_of("llama-2-7b", &framework, 1);
  assert_true(moved_back(&one) - moved_back(&two) == 4 * half);
  assert_int_equal(one.backward.n_ops, two.backward.n_ops + 1);
  assert_true(one.saved_bytes == two.saved_bytes);
  assert_true(moved_back(&fused) == moved_back(&still));
}

static void gated_ones_keep_the_activation(void **state) {
  (void)state;
  for (int32_t tmp = 1; tmp <= 2; tmp++) {
    const double half = 2.0 * MBS * SEQ * 11008 / tmp;
    pl_block_program one = layer("llama-2-7b", true, true, tmp), two = layer("llama-2-7b", true, false, tmp),
                     none = layer("llama-2-7b", false, true, tmp);
    assert_true(two.saved_bytes - one.saved_bytes == half);
    assert_true(two.saved_bytes == none.saved_bytes);
    assert_int_equal(two.forward.n_ops, one.forward.n_ops + 1);
    assert_int_equal(two.forward.n_ops, none.forward.n_ops);
    assert_int_equal(two.backward.n_ops, none.backward.n_ops);
    assert_true(two.backward.n_ops > one.backward.n_ops);
  }
}

static void ungated_ones_do_not_care(void **state) {
  (void)state;
  pl_block_program one = layer("gpt2-345m", true, true, 1), two = layer("gpt2-345m", true, false, 1);
  assert_true(two.saved_bytes == one.saved_bytes);
  assert_int_equal(two.forward.n_ops, one.forward.n_ops);
  assert_int_equal(two.backward.n_ops, one.backward.n_ops);
}

static void profiles_say_so(void **state) {
  (void)state;
  static const char text[] = "{\"name\": \"x\", \"kernels\": {\"fused_activation\": true, \"fused_gate\": false}}";
  pl_framework framework;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_framework_parse("x.json", text, strlen(text), &arena, &framework, &error), PL_OK);
  assert_true(framework.kernels.fuses_activation && !pl_framework_fuses_gate(&framework));
  assert_true(pl_framework_fuses_gate(&pl_framework_ideal));
  assert_int_equal(pl_framework_load("megatron-lm-2023", &arena, &framework, &error), PL_OK);
  assert_true(framework.kernels.fuses_activation && !pl_framework_fuses_gate(&framework));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(gated_ones_keep_the_activation, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(one_weight_packs_its_gradients, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(ungated_ones_do_not_care, set_up, tear_down),
                                     cmocka_unit_test_setup_teardown(profiles_say_so, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
