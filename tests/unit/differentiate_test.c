/* Training programs: what is kept follows from what is read, what is made again stands in front, halves are cut where
 * they should be, and shared weights are updated once. Values: tests/property/gradients_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "tests/support/model_file.h"
#include "workloads/derive/differentiate.h"
#include "workloads/import/program_build.h"
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_table.h"
#include "workloads/language/ir_text.h"

static pl_ir_module training_of(const char *name, const pl_differentiate_options *options) {
  pl_model model = load_model("workloads/models", name, &arena);
  pl_model_program_options job = pl_model_program_defaults(8, 2, 64);
  job.dropout = false;
  pl_ir_module forward, training;
  pl_error error = PL_ERROR_INIT;
  if (pl_model_program_build(&model, &job, &arena, &forward, &error) != PL_OK) fail_msg("%s", error.message);
  if (pl_ir_differentiate(&forward, options, &arena, &training, &error) != PL_OK) fail_msg("%s", error.message);
  return training;
}

static const pl_ir_function *function_of(const pl_ir_module *module, const char *name) {
  int32_t found = pl_ir_function_find(module, name);
  if (found < 0) fail_msg("no function %s", name);
  return module->functions[found];
}

/* "norm1 queries ...": paths or names of what ops of this row read or write, in program order. */
static const char *all_of(const pl_ir_function *function, const char *row) {
  const char *all = "";
  for (int32_t i = 0; i < function->n_ops; i++)
    if (strcmp(pl_ir_row_at(function->ops[i].row)->name, row) == 0)
      all = pl_arena_printf(&arena, "%s%s%s", all, all[0] != '\0' ? " " : "", function->ops[i].path);
  return all;
}

static int count(const pl_ir_function *function, const char *row) {
  int n = 0;
  for (int32_t i = 0; i < function->n_ops; i++)
    n += strcmp(pl_ir_row_at(function->ops[i].row)->name, row) == 0;
  return n;
}

static int place(const pl_ir_function *function, const char *row) {
  for (int32_t i = 0; i < function->n_ops; i++)
    if (strcmp(pl_ir_row_at(function->ops[i].row)->name, row) == 0) return i;
  return -1;
}

/* Of a layer of GPT-2 without dropout: what norms, products, attention and gelu read. Biases and sums keep nothing. */
static void test_kept(void **state) {
  (void)state;
  pl_differentiate_options options = pl_differentiate_defaults();
  pl_ir_module training = training_of("gpt2-117m", &options);
  const pl_ir_function *layer = function_of(&training, "layer"), *backward = function_of(&training, "layer.backward");
  assert_string_equal(
      all_of(layer, "keep"),
      "x norm1 attention.q.2 attention.k.2 attention.v.2 context context.2 attended norm2 mlp.up.2 active");
  assert_int_equal(count(backward, "kept"), count(layer, "keep"));
  assert_int_equal(count(backward, "accumulate"), 16);
  assert_int_equal(backward->n_arguments, 1);
  assert_int_equal(backward->n_results, 1);
  assert_int_equal(training.classes[0].n_steps, 4);
}

static void test_tied(void **state) {
  (void)state;
  pl_differentiate_options options = pl_differentiate_defaults();
  pl_ir_module training = training_of("gpt2-117m", &options);
  assert_string_equal(all_of(function_of(&training, "head.backward"), "accumulate"), "embedding.table");
  assert_non_null(strstr(all_of(function_of(&training, "embedding.backward"), "accumulate"), "table"));
  assert_int_equal(pl_ir_function_find(&training, "head.update"), PL_IR_NONE);
  assert_string_equal(all_of(function_of(&training, "embedding.update"), "gradient"), "table positions");
  assert_string_equal(all_of(function_of(&training, "head"), "keep"), "head.x");
  assert_int_equal(function_of(&training, "update")->n_ops, 1 + 12 + 1);
}

/* Everything again keeps the argument alone; the ops that are made again come before any gradient. */
static void test_full(void **state) {
  (void)state;
  const pl_recompute_choice choice = {.function = "layer", .recompute = PL_RECOMPUTE_FULL};
  pl_differentiate_options options = pl_differentiate_defaults();
  options.choices = &choice;
  options.n_choices = 1;
  pl_ir_module training = training_of("llama-3-8b", &options);
  assert_string_equal(all_of(function_of(&training, "layer"), "keep"), "x");
  const pl_ir_function *backward = function_of(&training, "layer.backward");
  assert_int_equal(count(backward, "attention"), 1);
  assert_int_equal(count(backward, "silu"), 1);
  assert_true(place(backward, "silu_backward") > place(backward, "multiply"));
  assert_true(place(backward, "attention") < place(backward, "silu_backward"));
}

/* The core again: its log-sum-exp is not kept, its result is by the projection behind it, and it stands behind the
 * MLP's gradients. */
static void test_selective(void **state) {
  (void)state;
  const pl_recompute_choice choice = {.function = "layer", .recompute = PL_RECOMPUTE_SELECTIVE};
  pl_differentiate_options options = pl_differentiate_defaults();
  options.choices = &choice;
  options.n_choices = 1;
  pl_ir_module training = training_of("llama-3-8b", &options);
  const char *kept = all_of(function_of(&training, "layer"), "keep");
  assert_non_null(strstr(kept, "context"));
  assert_null(strstr(kept, "context.2"));
  const pl_ir_function *backward = function_of(&training, "layer.backward");
  assert_int_equal(count(backward, "attention"), 1);
  assert_true(place(backward, "attention") > place(backward, "silu_backward"));
}

/* B has no product that only a weight's gradient needs; W has no more than those. */
static void test_halves(void **state) {
  (void)state;
  pl_differentiate_options options = pl_differentiate_defaults();
  pl_ir_module whole = training_of("llama-3-8b", &options);
  options.splits_weights = true;
  pl_ir_module cut = training_of("llama-3-8b", &options);
  const pl_ir_function *backward = function_of(&cut, "layer.backward"), *weights = function_of(&cut, "layer.weights");
  assert_int_equal(count(backward, "product"), 7);
  assert_int_equal(count(weights, "product"), 7);
  assert_int_equal(count(function_of(&whole, "layer.backward"), "product"), 14);
  assert_string_equal(all_of(backward, "accumulate"), "norm2.scale norm1.scale");
  assert_int_equal(weights->n_arguments + weights->n_results, 0);
  assert_int_equal(count(backward, "keep"), 7);
  assert_int_equal(pl_ir_function_find(&cut, "final_norm.weights"), PL_IR_NONE);
  assert_int_equal(count(function_of(&cut, "main.weights"), "call"), 32 + 2); /* layers, head, embedding */
  assert_int_equal(cut.classes[0].n_steps, 6);
  assert_int_equal(cut.classes[0].steps[2].kind, PL_IR_STEP_W);
}

static void test_refused(void **state) {
  (void)state;
  const pl_recompute_choice choice = {.function = "layers", .recompute = PL_RECOMPUTE_FULL};
  pl_differentiate_options options = pl_differentiate_defaults();
  options.choices = &choice;
  options.n_choices = 1;
  pl_model model = load_model("workloads/models", "gpt2-117m", &arena);
  pl_model_program_options job = pl_model_program_defaults(8, 2, 64);
  pl_ir_module forward, training;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_model_program_build(&model, &job, &arena, &forward, &error), PL_OK);
  assert_int_equal(pl_ir_differentiate(&forward, &options, &arena, &training, &error), PL_BAD_INPUT);
  assert_string_equal(error.message, "recomputation of @layers: gpt2-117m has no such function");
}

static pl_code differentiated(const char *text, pl_ir_module *training, pl_error *error) {
  pl_ir_module forward;
  const pl_differentiate_options options = pl_differentiate_defaults();
  *error = PL_ERROR_INIT;
  if (pl_ir_parse("small.plir", text, strlen(text), &arena, &forward, error) != PL_OK) fail_msg("%s", error->message);
  return pl_ir_differentiate(&forward, &options, &arena, training, error);
}

#define LAYER                                                                                                          \
  "plir 1 model \"small\"\nmicrobatches 1\nfunc @layer(%x: fp32[h=4]) {\n  %w = param \"w\"() : fp32[h=4]\n"           \
  "  %y = multiply(%x, %w) : fp32[h=4]\n  return %y, %y\n}\n"
#define CLASS "class all {\n  chunk 0 forward @main\n  steps F0.0\n}\n"
#define MAIN(first, second)                                                                                            \
  "func @main() {\n  %x = input \"vectors\"() : fp32[h=4]\n"                                                           \
  "  %a, %b = call @layer \"" first "\"(%x) : fp32[h=4], fp32[h=4]\n"                                                  \
  "  %c, %d = call @layer \"" second "\"(%b) : fp32[h=4], fp32[h=4]\n"                                                 \
  "  %l = sum(%c) {over=h} : fp32[]\n  loss(%l)\n}\n"

/* A value that is handed back twice gets the sum of two gradients; one of them may be nobody's. */
static void test_handed_back_twice(void **state) {
  (void)state;
  pl_ir_module training;
  pl_error error;
  if (differentiated(LAYER MAIN("h.0", "h.1") CLASS, &training, &error) != PL_OK) fail_msg("%s", error.message);
  const pl_ir_function *backward = function_of(&training, "layer.backward");
  assert_int_equal(backward->n_arguments, 2);
  assert_int_equal(count(backward, "add"), 1);
  assert_int_equal(count(function_of(&training, "main.backward"), "constant"), 3); /* one; zeros for %d and %a */
  if (pl_ir_check(&training, &error) != PL_OK) fail_msg("%s", error.message);
}

static void test_called_twice(void **state) {
  (void)state;
  pl_ir_module training;
  pl_error error;
  assert_int_equal(differentiated(LAYER MAIN("h.0", "h.0") CLASS, &training, &error), PL_UNSUPPORTED);
  assert_non_null(strstr(error.message, "@main calls @layer twice as \"h.0\""));
}

static void test_no_derivative(void **state) {
  (void)state;
  pl_ir_module training;
  pl_error error;
  assert_int_equal(differentiated("plir 1 model \"small\"\nmicrobatches 1\nfunc @main() {\n"
                                  "  %w = param \"w\"() : fp32[h=4]\n  %y = relu_backward(%w, %w) : fp32[h=4]\n"
                                  "  %l = sum(%y) {over=h} : fp32[]\n  loss(%l)\n}\n" CLASS,
                                  &training, &error),
                   PL_BAD_INPUT);
  assert_string_equal(error.message, "%y of @main: a gradient comes back to it, but relu_backward has no derivative");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_tied, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_selective, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_halves, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_handed_back_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_called_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_no_derivative, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
