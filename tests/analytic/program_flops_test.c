/* Work of programs against the closed forms of the block programs (pl_model_flops_per_sequence: Narayanan et al. 2021,
 * eq. 3). With attention's masked halves counted, products and attention of a forward pass are the same number, to the
 * bit, for every model without experts (whose program computes all experts). A backward pass has two products for each
 * of the forward pass, by either operand, and attention's has 5 where the forward pass has 2: it makes the scores
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/derive/differentiate.h"
#include "workloads/import/program_build.h"
#include "workloads/language/ir_work.h"
#include "workloads/lower/block_program.h"

enum { SEQ = 16, GBS = 4, MICROBATCHES = 2 };

static bool is_causal(const pl_ir_module *module) {
  for (int32_t i = 0; i < module->n_functions; i++)
    for (int32_t k = 0; k < module->functions[i]->n_ops; k++)
      if (pl_ir_integer_of(&module->functions[i]->ops[k], "causal", 0) != 0) return true;
  return false;
}

/* Of products with ones at the places of what is picked (BERT's first and masked tokens, in functions that are called
 * once): no arithmetic of the model. */
static double picking_flops(const pl_ir_module *module) {
  double flops = 0;
  for (int32_t i = 0; i < module->n_functions; i++) {
    const pl_ir_function *function = module->functions[i];
    for (int32_t k = 0; k < function->n_ops; k++) {
      const pl_ir_op *op = &function->ops[k];
      int32_t first = op->row == pl_ir_row_of("product") ? function->values[op->inputs[0]].op : PL_IR_NONE;
      if (first != PL_IR_NONE && function->ops[first].row == pl_ir_row_of("place"))
        flops += pl_ir_op_flops(&module->mesh, function, op);
    }
  }
  return flops;
}

static void check(const pl_model *model, const pl_ir_module *module) {
  pl_ir_module training;
  pl_error error = PL_ERROR_INIT;
  const pl_ir_work forward = pl_ir_function_work(module, module->classes[0].chunks[0].forward);
  double attention = (is_causal(module) ? 2 : 1) * forward.attention_flops;
  double picking = picking_flops(module);
  double expected = pl_model_flops_per_sequence(model, SEQ) / 3 * GBS / MICROBATCHES;
  if (forward.product_flops - picking + attention != expected)
    fail_msg("%s: products %.0f, attention %.0f, closed form %.0f", model->name, forward.product_flops - picking,
             attention, expected);
  /* What is picked has one gradient, BERT's pooler without a classifier none, and data, which convolutions read, none.
   */
  if (model->ends.pooler || model->unlike.parts != NULL) return;
  const pl_differentiate_options options = pl_differentiate_defaults();
  if (pl_ir_differentiate(module, &options, &arena, &training, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_ir_work backward = pl_ir_function_work(&training, training.classes[0].chunks[0].backward);
  if (backward.product_flops != 2 * forward.product_flops)
    fail_msg("%s: products of the backward pass %.0f, of the forward pass %.0f", model->name, backward.product_flops,
             forward.product_flops);
  assert_true(2 * backward.attention_flops == 5 * forward.attention_flops);
}

/* 1; 0: it has experts, or no blocks, or cannot be said. */
static int check_file(const char *folder, const char *name, void *context) {
  (void)context;
  pl_arena_reset(&arena);
  const pl_model model = load_model(folder, name, &arena);
  const pl_model_program_options options = pl_model_program_defaults(GBS, MICROBATCHES, SEQ);
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  if (model.moe.n_experts > 0 || !pl_model_has_blocks(&model)) return 0;
  pl_code code = pl_model_program_build(&model, &options, &arena, &module, &error);
  if (code == PL_UNSUPPORTED) return 0;
  if (code != PL_OK) fail_msg("%s", error.message);
  check(&model, &module);
  return 1;
}

static void test_work_is_that_of_the_closed_form(void **state) {
  (void)state;
  int n = visit_models("workloads/models", check_file, NULL) + visit_models("tests/unit/models", check_file, NULL);
  print_message("%d models\n", n);
  assert_true(n >= 38);
}

/* By hand, in bytes and FLOPs: y[b, f] = x[b, h] w[h, f] in bf16, of which 3 devices each hold a third of h. */
static void test_work_of_a_device(void **state) {
  (void)state;
  pl_ir_module module;
  pl_ir_module_init(&module, &arena, "work", PL_IR_DISTRIBUTED);
  module.mesh = (pl_ir_mesh){.n_axes = 1, .axes = {{pl_ir_name_of("tp"), 3}}};
  pl_ir_function *function = pl_ir_function_add(&module, "f");
  const pl_ir_dim b = {pl_ir_name_of("b"), 4}, h = {pl_ir_name_of("h"), 6}, f = {pl_ir_name_of("f"), 5};
  pl_ir_type x = pl_ir_type_of(PL_IR_BF16, 2, (const pl_ir_dim[]){b, h});
  pl_ir_type w = pl_ir_type_of(PL_IR_BF16, 2, (const pl_ir_dim[]){h, f});
  x.on[0] = 1;
  w.on[0] = 0;
  const int32_t inputs[] = {pl_ir_argument(&module, function, "x", &x), pl_ir_argument(&module, function, "w", &w)};
  const pl_ir_attribute over = pl_ir_names("over", 1, &h.name);
  int32_t y = pl_ir_op_infer(&module, function, "product", "y", 2, inputs, 1, &over);
  function->values[y].type.on[0] = PL_IR_PARTIAL;
  (void)pl_ir_op_infer(&module, function, "scale", "z", 1, &y, 1, &(const pl_ir_attribute){0});
  const pl_ir_work work = pl_ir_function_work(&module, 0);
  assert_true(work.product_flops == 2 * 4 * 2 * 5);
  assert_true(work.other_flops == 4 * 5);
  assert_true(work.attention_flops == 0);
  assert_true(work.bytes == 2 * (4 * 2 + 2 * 5 + 4 * 5) + 2 * (4 * 5 + 4 * 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_work_is_that_of_the_closed_form, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_work_of_a_device, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
