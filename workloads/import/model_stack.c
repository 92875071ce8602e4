/* See workloads/import/model_stack.h. */
#include "workloads/import/model_stack.h"

#include <string.h>

#include "workloads/import/program_build.h"
#include "workloads/language/ir_parameters.h"

const pl_stack_family pl_stack_families[] = {
    {"vit", "pictures in patches", {"ViTForImageClassification", "ViTModel"}, pl_stack_read_vit},
    {"mamba2", "a state space in every layer", {"Mamba2ForCausalLM", "Mamba2Model"}, pl_stack_read_mamba2},
    {"bamba", "state spaces between layers of attention", {"BambaForCausalLM", "BambaModel"}, pl_stack_read_bamba},
    {"nemotron_h",
     "state spaces between layers of attention",
     {"NemotronHForCausalLM", "NemotronHModel"},
     pl_stack_read_nemotron_h},
    {"falcon_h1",
     "a state space and attention side by side",
     {"FalconH1ForCausalLM", "FalconH1Model"},
     pl_stack_read_falcon_h1},
    {"qwen3_next",
     "a gated delta rule between layers of attention",
     {"Qwen3NextForCausalLM", "Qwen3NextModel"},
     pl_stack_read_qwen3_next},
    {"qwen3_5_text",
     "a gated delta rule between layers of attention",
     {"Qwen3_5ForCausalLM", "Qwen3_5TextModel"},
     pl_stack_read_qwen3_next},
    {"qwen3_5_moe_text",
     "a gated delta rule between layers of attention",
     {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextModel"},
     pl_stack_read_qwen3_next},
    {"t5", "an encoder with a decoder", {"T5ForConditionalGeneration", "T5WithLMHeadModel"}, pl_stack_read_t5},
    {"mt5", "an encoder with a decoder", {"MT5ForConditionalGeneration", "MT5WithLMHeadModel"}, pl_stack_read_t5}};
const size_t pl_stack_n_families = sizeof pl_stack_families / sizeof pl_stack_families[0];

const pl_stack_family *pl_stack_family_find(const char *type) {
  for (size_t i = 0; i < pl_stack_n_families; i++)
    if (strcmp(pl_stack_families[i].type, type) == 0) return &pl_stack_families[i];
  return NULL;
}

/* ---- keys that several have ---- */

pl_code pl_stack_read_number(const pl_model_reader *in, const char *key, double least, double most, double *value) {
  if (!pl_reader_has(in, key)) return PL_OK;
  PL_TRY(pl_node_number(in->document, in->root, key, value, in->error));
  if (*value >= least && *value <= most) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, key), in->error,
                          "'%s' is %g: a number from %g to %g is needed", key, *value, least, most);
}

pl_code pl_stack_read_widths(const pl_model_reader *in, bool vocabulary, bool tied, pl_model *model) {
  const int64_t layers_max = 4096; /* a program has a function call for each */
  int64_t layers;
  PL_TRY(pl_reader_integer(in, "hidden_size", PL_MODEL_WIDTH_MAX, &model->width.hidden));
  PL_TRY(pl_reader_integer(in, "num_hidden_layers", layers_max, &layers));
  model->n_layers = (int32_t)layers;
  if (!vocabulary) return PL_OK;
  model->ends.tied_embeddings = tied;
  PL_TRY(pl_reader_integer(in, "vocab_size", PL_MODEL_VOCAB_MAX, &model->width.vocab));
  return pl_reader_optional_boolean(in, "tie_word_embeddings", &model->ends.tied_embeddings);
}

static pl_code does_not_divide(const pl_model_reader *in, const char *key, int64_t value, const char *of,
                               int64_t whole) {
  return pl_document_fail(in->document, pl_node_get(in->root, key), in->error, "'%s' = %lld does not divide %s = %lld",
                          key, (long long)value, of, (long long)whole);
}

pl_code pl_stack_read_heads(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_reader_integer(in, "num_attention_heads", PL_MODEL_HEADS_MAX, &model->attention.n_heads));
  model->attention.n_kv_heads = model->attention.n_heads;
  PL_TRY(pl_reader_optional_integer(in, "num_key_value_heads", PL_MODEL_HEADS_MAX, &model->attention.n_kv_heads));
  if (model->attention.n_heads % model->attention.n_kv_heads != 0)
    return does_not_divide(in, "num_key_value_heads", model->attention.n_kv_heads, "'num_attention_heads'",
                           model->attention.n_heads);
  if (pl_reader_has(in, "head_dim")) {
    PL_TRY(pl_reader_integer(in, "head_dim", PL_MODEL_WIDTH_MAX, &model->attention.head_size));
  } else if (model->width.hidden % model->attention.n_heads != 0) {
    return does_not_divide(in, "num_attention_heads", model->attention.n_heads, "'hidden_size'", model->width.hidden);
  } else {
    model->attention.head_size = model->width.hidden / model->attention.n_heads;
  }
  model->attention.value_size = model->attention.head_size;
  return PL_OK;
}

/* ---- the class, and what it has ---- */

static pl_code read_class(const pl_model_reader *in, const pl_stack_family *family, pl_model *model) {
  const char *name;
  const pl_node *list = pl_node_get(in->root, "architectures");
  model->architecture = family->classes[0];
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) == 0) return PL_OK;
  PL_TRY(pl_node_as_string(in->document, pl_node_at(list, 0), &name, in->error));
  for (int i = 0; i < 3 && family->classes[i] != NULL; i++)
    if (strcmp(family->classes[i], name) == 0) {
      model->architecture = family->classes[i];
      return PL_OK;
    }
  return pl_document_fail(in->document, pl_node_at(list, 0), in->error,
                          "architecture '%.64s' is not supported for model_type '%s'; supported are %s, %s", name,
                          family->type, family->classes[0], family->classes[1]);
}

/* A bare class lacks what is behind the final norm, but for a pooler. */
static double beyond_class(const pl_model *model, const pl_ir_module *module, pl_arena *arena) {
  if (model->program.stack->kind == PL_STACK_ENCODER_DECODER)
    return 0; /* all have a head (T5WithLMHeadModel: an old name) */
  if (strcmp(model->architecture + strlen(model->architecture) - 5, "Model") != 0) return 0;
  double head = pl_ir_parameters_count(module, pl_ir_function_find(module, "head"), arena);
  if (model->program.stack->kind == PL_STACK_PATCHES) /* the pooler is the class's */
    return (double)model->program.stack->classes * (double)(model->width.hidden + 1);
  return model->ends.tied_embeddings ? 0 : head;
}

/* By the program: there is no other account of what a layer has. */
static pl_code count_parameters(pl_model *model, pl_error *error) {
  pl_arena scratch;
  pl_ir_module module;
  const pl_model_program_options options = pl_model_program_defaults(1, 1, model->positions.max_positions == 1 ? 1 : 2);
  pl_arena_init(&scratch, 0);
  pl_code code = pl_model_program_build(model, &options, &scratch, &module, error);
  if (code == PL_OK) {
    model->count.trained_parameters = pl_ir_parameters_count(&module, module.n_functions - 1, &scratch);
    model->count.parameters = model->count.trained_parameters - beyond_class(model, &module, &scratch);
    if (scratch.failed) code = pl_fail_memory(error, "the parameters of a model");
  }
  pl_arena_release(&scratch);
  return code;
}

pl_code pl_model_stack_read(const pl_model_reader *in, const pl_stack_family *family, pl_arena *arena,
                            pl_model *model) {
  pl_stack *stack = PL_TAKE(arena, pl_stack, 1);
  if (stack == NULL) return pl_fail_memory(in->error, "a model");
  stack->title = family->title;
  model->family = family->type;
  model->norms.norm = PL_NORM_RMS;
  model->attention.causal = model->norms.final_norm = true;
  model->attention.head_size = model->attention.value_size = 1;
  model->moe.capacity_factor = 1;
  model->moe.expert_layer_step = 1;
  model->mlp.activation = "silu";
  model->numbers =
      (pl_model_numbers){.norm_epsilon = 1e-5, .rotary_base = 10000, .rotary_share = 1, .routing_scale = 1};
  model->program.stack = stack;
  PL_TRY(read_class(in, family, model));
  PL_TRY(family->read(in, arena, model, stack));
  return count_parameters(model, in->error);
}
