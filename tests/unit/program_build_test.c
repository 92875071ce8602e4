/* Models as programs: every model of the repository has the parameters that its class has, and what is wrong or cannot
 * be said is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/import/program_build.h"
#include "workloads/language/ir_parameters.h"
#include "workloads/language/ir_table.h"

static pl_code build(const pl_model *model, int64_t seq, pl_ir_module *module, pl_error *error) {
  pl_model_program_options options = pl_model_program_defaults(8, 2, seq);
  *error = PL_ERROR_INIT;
  return pl_model_program_build(model, &options, &arena, module, error);
}

static double parameters(const pl_ir_module *module) {
  return pl_ir_parameters_count(module, module->classes[0].chunks[0].forward, &arena);
}

/* 1 for a model with the parameters that it should have; 0 for one that cannot be said. */
static int check_parameters(const char *folder, const char *name, void *n_refused) {
  pl_model model = load_model(folder, name, &arena);
  pl_ir_module module;
  pl_error error;
  pl_code code = build(&model, 16, &module, &error);
  if (code == PL_UNSUPPORTED) {
    assert_non_null(strstr(error.message, model.family));
    (*(int *)n_refused)++;
    return 0;
  }
  if (code != PL_OK) fail_msg("%s: %s", name, error.message);
  double wanted = model.count.trained_parameters + pl_model_prediction_parameters(&model);
  if (parameters(&module) != wanted)
    fail_msg("%s: %.0f parameters in the program, %.0f in the model", name, parameters(&module), wanted);
  return 1;
}

static void test_parameters(void **state) {
  (void)state;
  int n_refused = 0;
  int n = visit_models("workloads/models", check_parameters, &n_refused);
  n += visit_models("tests/unit/models", check_parameters, &n_refused);
  print_message("%d models, %d refused\n", n, n_refused);
  assert_true(n >= 50);
  assert_int_equal(n_refused, 0);
}

/* DeepSeek-V3's module: 11.5e9 parameters of its own (README_WEIGHTS of its repository, in billions, cut off), three
 * norms, 14336 x 7168, and a layer of 256 experts: 7168 (1536 + 576) + 1536 128 192 + 512 128 256 + 128 128 7168
 * + 1536 + 512 of attention, 257 3 7168 2048 + 256 7168 of experts, 2 7168 of norms. */
static void test_predictions(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "deepseek-v3", &arena);
  pl_ir_module module;
  pl_error error;
  double attention = 7168.0 * (1536 + 576) + 1536.0 * 128 * 192 + 512.0 * 128 * 256 + 128.0 * 128 * 7168 + 1536 + 512;
  double own = 5 * 7168.0 + 2 * 7168.0 * 7168 + attention + 257.0 * 3 * 7168 * 2048 + 256.0 * 7168;
  model.ends.n_predictions = 1;
  assert_true(pl_model_prediction_parameters(&model) == own);
  assert_int_equal(build(&model, 16, &module, &error), PL_OK);
  print_message("%.0f and %.0f\n", model.count.trained_parameters, own);
  assert_true(parameters(&module) == model.count.trained_parameters + own);
  /* The file with the module. What the published checkpoint counts besides: the module's copies of the table and the
   * head, and the biases of 59 routers. */
  pl_model whole = load_model("workloads/models", "deepseek-v3-mtp", &arena);
  assert_true(whole.ends.n_predictions == 1 && whole.count.parameters == model.count.parameters);
  assert_int_equal(build(&whole, 16, &module, &error), PL_OK);
  assert_true(parameters(&module) + 2.0 * 129280 * 7168 + 59 * 256 == 684489845504);
  pl_model other = load_model("workloads/models", "gpt2-345m", &arena);
  other.ends.n_predictions = 1;
  assert_int_equal(build(&other, 16, &module, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "num_nextn_predict_layers = 1"));
}

/* Layers are one function that is called again and again. */
static void test_functions(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt3-175b", &arena);
  pl_ir_module module;
  pl_error error;
  assert_int_equal(build(&model, 2048, &module, &error), PL_OK);
  const char *const names[] = {"embedding", "layer", "final_norm", "head", "loss", "main"};
  assert_int_equal(module.n_functions, 6);
  for (int32_t i = 0; i < 6; i++)
    assert_string_equal(module.functions[i]->name, names[i]);
  assert_int_equal(module.functions[5]->n_ops, 96 + 4);
  assert_string_equal(module.functions[5]->ops[4].path, "h.3");
  assert_int_equal(module.classes[0].n_steps, 2);
}

static const pl_ir_function *function_of(const pl_ir_module *module, const char *name) {
  int32_t found = pl_ir_function_find(module, name);
  assert_true(found >= 0);
  return module->functions[found];
}

static const pl_ir_op *op_of(const pl_ir_function *function, const char *row) {
  for (int32_t i = 0; i < function->n_ops; i++)
    if (strcmp(pl_ir_row_at(function->ops[i].row)->name, row) == 0) return &function->ops[i];
  return NULL;
}

/* Gemma 2 sees a window in every other layer, where the sequence is longer than it. */
static void test_window(void **state) {
  (void)state;
  pl_model model = load_model("tests/unit/models", "gemma-2-9b", &arena);
  pl_ir_module module;
  pl_error error;
  assert_int_equal(build(&model, 8192, &module, &error), PL_OK);
  assert_int_equal(pl_ir_integer_of(op_of(function_of(&module, "window_layer"), "attention"), "window", 0), 4096);
  assert_null(pl_ir_attribute_find(op_of(function_of(&module, "layer"), "attention"), "window"));
  assert_int_equal(build(&model, 4096, &module, &error), PL_OK);
  assert_int_equal(pl_ir_function_find(&module, "window_layer"), PL_IR_NONE);
}

static void test_refused(void **state) {
  (void)state;
  pl_model model = load_model("workloads/models", "gpt2-117m", &arena);
  pl_ir_module module;
  pl_error error;
  assert_int_equal(build(&model, 4096, &module, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "4096 tokens, but its table of positions has 1024 rows"));
  pl_model_program_options options = pl_model_program_defaults(9, 2, 128);
  error = PL_ERROR_INIT;
  assert_int_equal(pl_model_program_build(&model, &options, &arena, &module, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "2 microbatches of 4 sequences are not the 9 sequences of an iteration");
  model.mlp.activation = "mish";
  assert_int_equal(build(&model, 128, &module, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "activation 'mish'"));
}

static pl_code parse(const char *text, pl_model *model, pl_error *error) {
  *error = PL_ERROR_INIT;
  return pl_model_parse("config.json", text, strlen(text), &arena, model, error);
}

#define NEOX                                                                                                           \
  "{\"model_type\": \"gpt_neox\", \"hidden_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "         \
  "\"intermediate_size\": 16, \"vocab_size\": 11"

/* What the file says of its numbers, or its class's defaults. */
static void test_numbers(void **state) {
  (void)state;
  pl_model model;
  pl_ir_module module;
  pl_error error;
  assert_int_equal(parse(NEOX ", \"rotary_pct\": 0.5, \"layer_norm_eps\": 0.25, \"rotary_emb_base\": 500, "
                              "\"hidden_dropout\": 0.125}",
                         &model, &error),
                   PL_OK);
  assert_int_equal(build(&model, 16, &module, &error), PL_OK);
  const pl_ir_function *layer = function_of(&module, "layer");
  assert_true(pl_ir_real_of(op_of(layer, "rotary"), "share", 1) == 0.5);
  assert_true(pl_ir_real_of(op_of(layer, "rotary"), "base", 0) == 500);
  assert_true(pl_ir_real_of(op_of(layer, "layer_norm"), "epsilon", 0) == 0.25);
  assert_true(pl_ir_real_of(op_of(layer, "dropout"), "p", 0) == 0.125);
  assert_null(pl_ir_attribute_find(op_of(layer, "attention"), "p"));
  model = load_model("workloads/models", "qwen3-8b", &arena);
  assert_true(model.numbers.norm_epsilon == 1e-6 && model.numbers.rotary_base == 1e6);
  model = load_model("workloads/models", "mixtral-8x7b", &arena);
  assert_true(model.numbers.normalises_routing && model.numbers.routing_scale == 1);
  assert_int_equal(parse(NEOX ", \"layer_norm_eps\": -1}", &model, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "'layer_norm_eps' is -1: a number from 0 to 1 is needed"));
}

/* Of a head of twelve a share of a quarter is three, which is no pair and a half. */
static void test_pairs(void **state) {
  (void)state;
  pl_model model;
  pl_ir_module module;
  pl_error error;
  assert_int_equal(parse(NEOX "}", &model, &error), PL_OK);
  assert_int_equal(build(&model, 16, &module, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "turn 3 of the 12 elements of a head"));
  assert_int_equal(parse(NEOX ", \"hidden_dropout\": 1}", &model, &error), PL_OK);
  model.numbers.rotary_share = 1;
  assert_int_equal(build(&model, 16, &module, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "a dropout probability of 1"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_parameters, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_predictions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_functions, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_window, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_pairs, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
