/* Gradients of training programs against differences of the loss, per family of models and per parameter of each of
 * their functions, in fp64; and that recomputation and the two halves of a backward pass change no bit of them.
 *
 * A parameter w is moved along a direction u: its op `param` becomes w + step u, where u is a parameter of its own,
 * made from the seed as all are. (L(w + step u) - L(w - step u)) / (2 step) is then the sum over the instances of the
 * function of <dL/dw, u>, up to step^2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/arena_fixture.h"
#include "workloads/derive/differentiate.h"
#include "workloads/execute/executor.h"
#include "workloads/import/model_file.h"
#include "workloads/import/program_build.h"
#include "workloads/language/ir_parameters.h"
#include "workloads/language/ir_table.h"

static const double step = 1e-5, tolerance = 1e-6;

#define GPT                                                                                                            \
  "\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 2, \"n_head\": 2, \"n_positions\": 8, \"vocab_size\": 11"
#define WIDTHS                                                                                                         \
  "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 12, "              \
  "\"vocab_size\": 11, \"max_position_embeddings\": 8"
#define EXPERTS ", \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6"
#define LATENT                                                                                                         \
  ", \"kv_lora_rank\": 4, \"qk_nope_head_dim\": 4, \"qk_rope_head_dim\": 2, \"v_head_dim\": 3, "                       \
  "\"n_routed_experts\": 4, \"n_shared_experts\": 2, \"first_k_dense_replace\": 1"

static const char *const families[] = {
    "{" GPT "}",
    "{" GPT ", \"tie_word_embeddings\": false, \"activation_function\": \"relu\", \"resid_pdrop\": 0}",
    "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 1, " WIDTHS "}",
    "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 1, \"use_parallel_residual\": false, " WIDTHS "}",
    "{\"model_type\": \"bert\", " WIDTHS "}",
    "{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"], " WIDTHS "}",
    "{\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"], \"max_predictions_per_seq\": 2, " WIDTHS
    "}",
    "{\"model_type\": \"llama\", \"num_key_value_heads\": 2, \"attention_bias\": true, \"mlp_bias\": true, " WIDTHS "}",
    "{\"model_type\": \"mistral\", \"num_key_value_heads\": 1, \"sliding_window\": 2, " WIDTHS "}",
    "{\"model_type\": \"mixtral\", \"num_key_value_heads\": 2, \"num_local_experts\": 4, " WIDTHS EXPERTS "}",
    "{\"model_type\": \"qwen2\", \"num_key_value_heads\": 2, \"tie_word_embeddings\": true, " WIDTHS "}",
    "{\"model_type\": \"qwen2_moe\", \"num_key_value_heads\": 2, \"num_experts\": 4, "
    "\"shared_expert_intermediate_size\": 6, " WIDTHS EXPERTS "}",
    "{\"model_type\": \"qwen3\", \"num_key_value_heads\": 2, \"head_dim\": 6, " WIDTHS "}",
    "{\"model_type\": \"qwen3_moe\", \"num_key_value_heads\": 2, \"head_dim\": 4, \"num_experts\": 4, " WIDTHS EXPERTS
    "}",
    "{\"model_type\": \"gemma\", \"num_key_value_heads\": 1, \"head_dim\": 4, " WIDTHS "}",
    "{\"model_type\": \"gemma2\", \"num_key_value_heads\": 2, \"head_dim\": 4, \"sliding_window\": 2, " WIDTHS "}",
    "{\"model_type\": \"nemotron\", \"head_dim\": 4, \"num_key_value_heads\": 2, " WIDTHS "}",
    "{\"model_type\": \"deepseek_v2\", \"q_lora_rank\": null, " WIDTHS EXPERTS LATENT "}",
    "{\"model_type\": \"deepseek_v3\", \"q_lora_rank\": 5, " WIDTHS EXPERTS LATENT "}",
    "{\"model_type\": \"cnn\", \"image\": [2, 6, 6], \"norm\": \"batch\", \"blocks\": [\"conv 3 3x3/2, max 3/2\", "
    "\"[conv 2 1x1, conv 4 3x3/2]\", \"(conv 2 1x1 | average 3, conv 3 1x1 | max 3, conv 2 2x3)\", \"[conv 3 1x1, conv "
    "7 3x1]*2\", "
    "\"mean\", \"dropout, linear 5\"]}",
    "{\"model_type\": \"cnn\", \"image\": [2, 7, 5], \"norm\": \"none\", \"blocks\": [\"conv 3 3x3v\", \"conv 2 "
    "2x2/2\", "
    "\"max 2\", \"relu\", \"dropout\", \"linear 4, relu, linear 3\"]}",
    "{\"model_type\": \"mlp\", \"num_hidden_layers\": 2, \"hidden_size\": 8}",
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static void must(pl_code code, const pl_error *error, const char *what) {
  if (code != PL_OK) fail_msg("%s: %s", what, error->message);
}

static pl_ir_module forward_of(const char *text) {
  pl_model model;
  pl_ir_module module;
  pl_error error = PL_ERROR_INIT;
  must(pl_model_parse("tiny.json", text, strlen(text), &arena, &model, &error), &error, text);
  pl_model_program_options job = pl_model_program_defaults(4, 2, 4);
  job.element = PL_IR_F32;
  must(pl_model_program_build(&model, &job, &arena, &module, &error), &error, text);
  return module;
}

static pl_execution *run(const pl_ir_module *module) {
  const pl_execution_options options = {.seed = 7, .iterations = 1};
  pl_execution *execution = NULL;
  pl_error error = PL_ERROR_INIT;
  must(pl_execute(module, &options, &execution, &error), &error, module->name);
  return execution;
}

static pl_ir_module training_of(const pl_ir_module *forward, pl_differentiate_options options) {
  pl_ir_module training;
  pl_error error = PL_ERROR_INIT;
  must(pl_ir_differentiate(forward, &options, &arena, &training, &error), &error, forward->name);
  return training;
}

/* ---- moved programs ---- */

/* Parameters of the embedding that the head reads have their whole path there. */
static const char *direction_path(const char *path) {
  const char *embedding = "embedding.";
  return strncmp(path, embedding, strlen(embedding)) == 0
             ? pl_arena_printf(&arena, "embedding.direction.%s", path + strlen(embedding))
             : pl_arena_printf(&arena, "direction.%s", path);
}

static void copy_op(pl_ir_module *to, pl_ir_function *made, const pl_ir_function *from, const pl_ir_op *op,
                    int32_t *map) {
  int32_t inputs[16];
  const char *names[8];
  pl_ir_type types[8];
  for (int32_t i = 0; i < op->n_inputs; i++)
    inputs[i] = map[op->inputs[i]];
  for (int32_t i = 0; i < op->n_outputs; i++) {
    names[i] = from->values[op->first_output + i].name;
    types[i] = from->values[op->first_output + i].type;
  }
  int32_t first = pl_ir_op_add(to, made,
                               &(pl_ir_making){.row = op->row,
                                               .n_inputs = op->n_inputs,
                                               .n_outputs = op->n_outputs,
                                               .n_attributes = op->n_attributes,
                                               .inputs = inputs,
                                               .attributes = op->attributes,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = op->path,
                                               .callee = op->callee});
  for (int32_t i = 0; i < op->n_outputs; i++)
    map[op->first_output + i] = first + i;
}

static int32_t moved(pl_ir_module *to, pl_ir_function *made, const char *path, int32_t w, double by) {
  const pl_ir_attribute attribute = pl_ir_real("by", by);
  const pl_ir_type type = made->values[w].type;
  int32_t u = pl_ir_op_typed(to, made, "param", "u", direction_path(path), 0, NULL, &type, 0, NULL);
  u = pl_ir_op_infer(to, made, "scale", "u", 1, &u, 1, &attribute);
  return pl_ir_op_infer(to, made, "add", "w", 2, (const int32_t[]){w, u}, 0, NULL);
}

/* The program whose parameters with path `path` in function `of`, or in any function if it is the same whole path,
 * are moved. */
static pl_ir_module moved_program(const pl_ir_module *from, const char *path, int32_t of, double by) {
  pl_ir_module to;
  pl_ir_module_init(&to, &arena, from->name, from->level);
  to.n_microbatches = from->n_microbatches;
  to.classes = from->classes;
  to.n_classes = from->n_classes;
  for (int32_t f = 0; f < from->n_functions; f++) {
    const pl_ir_function *function = from->functions[f];
    pl_ir_function *made = pl_ir_function_add(&to, function->name);
    int32_t *map = PL_TAKE(&arena, int32_t, function->n_values + 1);
    for (int32_t i = 0; i < function->n_arguments; i++)
      map[i] = pl_ir_argument(&to, made, function->values[i].name, &function->values[i].type);
    for (int32_t i = 0; i < function->n_ops; i++) {
      const pl_ir_op *op = &function->ops[i];
      copy_op(&to, made, function, op, map);
      if (strcmp(pl_ir_row_at(op->row)->name, "param") != 0) continue;
      bool is_tied = strcmp(path, "table") == 0 && strcmp(op->path, "embedding.table") == 0;
      if ((f == of && strcmp(op->path, path) == 0) || is_tied)
        map[op->first_output] = moved(&to, made, op->path, map[op->first_output], by);
    }
    int32_t *results = PL_TAKE(&arena, int32_t, function->n_results + 1);
    for (int32_t i = 0; i < function->n_results; i++)
      results[i] = map[function->results[i]];
    pl_ir_results_set(&to, made, function->n_results, results);
  }
  return to;
}

/* ---- the two derivatives ---- */

/* Sum of <gradient, direction> over the parameters of the list that come from this op. */
static double along(const pl_ir_parameter_list *list, int32_t function, int32_t op, const char *path,
                    const pl_execution *training, const pl_execution *with_direction) {
  double sum = 0;
  for (int32_t i = 0; i < list->n; i++) {
    const pl_ir_parameter *is = &list->items[i];
    if (is->function != function || is->op != op) continue;
    pl_ir_type type, other;
    double differs;
    const char *direction = pl_ir_path_join(&arena, is->instance, direction_path(path));
    double *g = pl_execution_whole(training, PL_EXECUTION_GRADIENT, is->path, &type, &differs);
    double *u = pl_execution_whole(with_direction, PL_EXECUTION_PARAMETER, direction, &other, &differs);
    if (u == NULL) fail_msg("no direction %s", direction);
    for (int64_t k = 0; g != NULL && k < (int64_t)pl_ir_type_elements(&type); k++)
      sum += g[k] * u[k];
    if (g != NULL) assert_true(pl_ir_type_same_shape(&type, &other));
    free(g);
    free(u);
  }
  return sum;
}

static void check_parameter(const pl_ir_module *forward, const pl_ir_parameter_list *list, int32_t function, int32_t op,
                            const pl_execution *training) {
  const char *path = forward->functions[function]->ops[op].path;
  pl_arena_mark mark = pl_arena_mark_here(&arena);
  pl_ir_module up = moved_program(forward, path, function, step), down = moved_program(forward, path, function, -step);
  pl_execution *above = run(&up), *below = run(&down);
  double measured = (pl_execution_loss(above, 0) - pl_execution_loss(below, 0)) / (2 * step);
  double derived = along(list, function, op, path, training, above);
  if (!(fabs(measured - derived) <= tolerance * fmax(fabs(measured), 1e-3)))
    fail_msg("%s of @%s: %.12g by differences, %.12g by the program", path, forward->functions[function]->name,
             measured, derived);
  pl_execution_destroy(above);
  pl_execution_destroy(below);
  pl_arena_release_to(&arena, mark);
}

static void test_differences(void **state) {
  (void)state;
  int n = 0;
  for (int f = 0; f < N_FAMILIES; f++) {
    pl_arena_reset(&arena);
    pl_ir_module forward = forward_of(families[f]), training = training_of(&forward, pl_differentiate_defaults());
    pl_ir_parameter_list list;
    assert_int_equal(pl_ir_parameters_of(&forward, forward.classes[0].chunks[0].forward, &arena, &list, NULL), PL_OK);
    pl_execution *run_once = run(&training);
    for (int32_t i = 0; i < list.n; i++) {
      bool first = true; /* of its op: one check serves all instances */
      for (int32_t k = 0; k < i; k++)
        first = first && (list.items[k].function != list.items[i].function || list.items[k].op != list.items[i].op);
      if (!first) continue;
      check_parameter(&forward, &list, list.items[i].function, list.items[i].op, run_once);
      n++;
    }
    pl_execution_destroy(run_once);
  }
  print_message("%d parameters of %d models\n", n, N_FAMILIES);
}

/* ---- variants ---- */

static void same_gradients(const pl_ir_parameter_list *list, const pl_execution *a, const pl_execution *b,
                           const char *what) {
  for (int32_t i = 0; i < list->n; i++) {
    pl_ir_type type;
    double differs;
    double *first = pl_execution_whole(a, PL_EXECUTION_GRADIENT, list->items[i].path, &type, &differs);
    double *second = pl_execution_whole(b, PL_EXECUTION_GRADIENT, list->items[i].path, &type, &differs);
    assert_int_equal(first != NULL, second != NULL);
    if (first != NULL && memcmp(first, second, (size_t)pl_ir_type_elements(&type) * sizeof *first) != 0)
      fail_msg("%s: another gradient of %s", what, list->items[i].path);
    free(first);
    free(second);
  }
}

static const struct {
  const char *name;
  uint8_t recompute;
  bool splits;
} variants[] = {{"selective", PL_RECOMPUTE_SELECTIVE, false}, {"full", PL_RECOMPUTE_FULL, false},
                {"alternate", PL_RECOMPUTE_ALTERNATE, false}, {"halves", PL_RECOMPUTE_NONE, true},
                {"full, halves", PL_RECOMPUTE_FULL, true},    {"alternate, halves", PL_RECOMPUTE_ALTERNATE, true}};

/* All functions recompute, the head too. */
static void test_variants(void **state) {
  (void)state;
  for (int f = 0; f < N_FAMILIES; f++) {
    pl_arena_reset(&arena);
    pl_ir_module forward = forward_of(families[f]), plain = training_of(&forward, pl_differentiate_defaults());
    pl_ir_parameter_list list;
    assert_int_equal(pl_ir_parameters_of(&forward, forward.classes[0].chunks[0].forward, &arena, &list, NULL), PL_OK);
    pl_execution *expected = run(&plain);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
      pl_recompute_choice choices[16];
      pl_differentiate_options options = pl_differentiate_defaults();
      options.choices = choices;
      options.splits_weights = variants[v].splits;
      for (int32_t i = 0; i < forward.n_functions; i++)
        choices[options.n_choices++] =
            (pl_recompute_choice){.function = forward.functions[i]->name, .recompute = variants[v].recompute};
      pl_ir_module other = training_of(&forward, options);
      pl_execution *execution = run(&other);
      same_gradients(&list, expected, execution, pl_arena_printf(&arena, "%s of %s", variants[v].name, families[f]));
      pl_execution_destroy(execution);
    }
    pl_execution_destroy(expected);
  }
}

/* ---- the optimizer ---- */

/* Plain descent: w - rate dw, once for each parameter, the shared ones too. */
static void test_update(void **state) {
  (void)state;
  for (int f = 0; f < N_FAMILIES; f++) {
    pl_arena_reset(&arena);
    pl_differentiate_options options = pl_differentiate_defaults();
    options.sgd = true;
    options.rate = 0.25;
    pl_ir_module forward = forward_of(families[f]), training = training_of(&forward, options);
    pl_ir_parameter_list list;
    assert_int_equal(pl_ir_parameters_of(&forward, forward.classes[0].chunks[0].forward, &arena, &list, NULL), PL_OK);
    pl_execution *before = run(&forward), *after = run(&training);
    for (int32_t i = 0; i < list.n; i++) {
      pl_ir_type type;
      double differs;
      double *w = pl_execution_whole(before, PL_EXECUTION_PARAMETER, list.items[i].path, &type, &differs);
      double *g = pl_execution_whole(after, PL_EXECUTION_GRADIENT, list.items[i].path, &type, &differs);
      double *updated = pl_execution_whole(after, PL_EXECUTION_PARAMETER, list.items[i].path, &type, &differs);
      for (int64_t k = 0; g != NULL && k < (int64_t)pl_ir_type_elements(&type); k++)
        assert_true(updated[k] == w[k] - options.rate * g[k]);
      free(w);
      free(g);
      free(updated);
    }
    pl_execution_destroy(before);
    pl_execution_destroy(after);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_differences, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_variants, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_update, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
