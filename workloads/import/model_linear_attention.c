/* Reads Qwen3-Next and Qwen 3.5: a gated delta rule in most layers, gated attention in the others. Keys, defaults and
 * parameters are those of transformers' Qwen3NextConfig and Qwen3NextForCausalLM (models/qwen3_next/
 * modular_qwen3_next.py) and of their descendants; what Qwen 3.5 projects apart has the same parameters. The layer for
 * multi-token prediction is left out, as there. */
#include <string.h>

#include "workloads/import/model_stack.h"

static pl_code read_delta_rule(const pl_model_reader *in, pl_stack *stack) {
  stack->taps = 4;
  stack->chunk = 64; /* of the kernels (fla); no key says it */
  stack->key_heads = 16;
  stack->value_heads = 32;
  stack->key_size = stack->value_size = 128;
  stack->gated_attention = true;
  PL_TRY(pl_reader_optional_integer(in, "linear_conv_kernel_dim", 1024, &stack->taps));
  PL_TRY(pl_reader_optional_integer(in, "linear_num_key_heads", PL_MODEL_HEADS_MAX, &stack->key_heads));
  PL_TRY(pl_reader_optional_integer(in, "linear_num_value_heads", PL_MODEL_HEADS_MAX, &stack->value_heads));
  PL_TRY(pl_reader_optional_integer(in, "linear_key_head_dim", PL_MODEL_WIDTH_MAX, &stack->key_size));
  PL_TRY(pl_reader_optional_integer(in, "linear_value_head_dim", PL_MODEL_WIDTH_MAX, &stack->value_size));
  if (stack->value_heads % stack->key_heads == 0) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "linear_num_key_heads"), in->error,
                          "'linear_num_key_heads' = %lld does not divide 'linear_num_value_heads' = %lld",
                          (long long)stack->key_heads, (long long)stack->value_heads);
}

static pl_code read_attention(const pl_model_reader *in, pl_model *model) {
  PL_TRY(pl_stack_read_heads(in, model));
  model->attention.qk_norm = model->positions.rotary = true;
  PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  model->attention.output_bias = model->attention.attention_bias;
  PL_TRY(pl_stack_read_number(in, "attention_dropout", 0, 1, &model->numbers.attention_dropout));
  model->dropout.attention_dropout = model->numbers.attention_dropout > 0;
  model->numbers.norm_epsilon = 1e-6;
  PL_TRY(pl_stack_read_number(in, "rms_norm_eps", 0, 1, &model->numbers.norm_epsilon));
  model->numbers.rotary_share = 0.25;
  const pl_node *group = pl_node_get(in->root, "rope_parameters"); /* since transformers 5 */
  const pl_model_reader rope = {in->document, group != NULL && pl_node_is_mapping(group) ? group : in->root, in->error,
                                NULL};
  PL_TRY(pl_stack_read_number(&rope, "partial_rotary_factor", 0, 1, &model->numbers.rotary_share));
  PL_TRY(pl_stack_read_number(&rope, "rope_theta", 1e-6, 1e12, &model->numbers.rotary_base));
  return pl_reader_optional_integer(in, "max_position_embeddings", pl_model_positions_max,
                                    &model->positions.max_positions);
}

/* layer_types, or every so many-th layer attends. */
static pl_code read_mixers(const pl_model_reader *in, const pl_model *model, pl_stack_layer *layers) {
  const char *key = "layer_types";
  const pl_node *list = pl_node_get(in->root, key);
  int64_t interval = 4;
  PL_TRY(pl_reader_optional_integer(in, "full_attention_interval", PL_MODEL_LAYERS_MAX, &interval));
  if (list != NULL && (!pl_node_is_sequence(list) || pl_node_count(list) != (size_t)model->n_layers))
    return pl_document_fail(in->document, list, in->error, "'%s' must be a list of %d names, one a layer", key,
                            model->n_layers);
  for (int32_t i = 0; i < model->n_layers; i++) {
    const char *name = (i + 1) % interval == 0 ? "full_attention" : "linear_attention";
    if (list != NULL) PL_TRY(pl_node_as_string(in->document, pl_node_at(list, (size_t)i), &name, in->error));
    bool attends = strcmp(name, "full_attention") == 0;
    if (!attends && strcmp(name, "linear_attention") != 0)
      return pl_document_fail(in->document, pl_node_at(list, (size_t)i), in->error,
                              "'%s': '%.64s' is neither full_attention nor linear_attention", key, name);
    layers[i].mixer = attends ? PL_MIXER_ATTENTION : PL_MIXER_DELTA_RULE;
  }
  return PL_OK;
}

static pl_code read_experts(const pl_model_reader *in, pl_model *model, pl_stack_layer *layers) {
  const int64_t experts_max = 1 << 16;
  int64_t step = 1;
  const pl_node *dense = pl_node_get(in->root, "mlp_only_layers");
  PL_TRY(pl_reader_optional_integer(in, "num_experts", experts_max, &model->moe.n_experts));
  if (model->moe.n_experts == 0) return PL_OK;
  if (dense != NULL && pl_node_is_sequence(dense) && pl_node_count(dense) > 0)
    return pl_document_fail(in->document, dense, in->error,
                            "'mlp_only_layers' must be empty: dense layers in between are not supported");
  PL_TRY(pl_reader_integer(in, "num_experts_per_tok", model->moe.n_experts, &model->moe.topk));
  PL_TRY(pl_reader_integer(in, "moe_intermediate_size", PL_MODEL_WIDTH_MAX, &model->moe.expert_ffn));
  PL_TRY(pl_reader_integer(in, "shared_expert_intermediate_size", PL_MODEL_WIDTH_MAX, &model->moe.shared_ffn));
  PL_TRY(pl_reader_optional_integer(in, "decoder_sparse_step", PL_MODEL_LAYERS_MAX, &step));
  model->moe.shared_gate = true;
  model->numbers.normalises_routing = true;
  PL_TRY(pl_reader_optional_boolean(in, "norm_topk_prob", &model->numbers.normalises_routing));
  for (int32_t i = 0; i < model->n_layers; i++)
    if ((i + 1) % step == 0) layers[i].feed = PL_FEED_EXPERTS;
  return PL_OK;
}

pl_code pl_stack_read_qwen3_next(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  stack->kind = PL_STACK_MIXERS;
  PL_TRY(pl_stack_read_widths(in, true, false, model));
  PL_TRY(read_attention(in, model));
  PL_TRY(read_delta_rule(in, stack));
  pl_stack_layer *layers = PL_TAKE(arena, pl_stack_layer, model->n_layers);
  if (layers == NULL) return pl_fail_memory(in->error, "a model");
  for (int32_t i = 0; i < model->n_layers; i++)
    layers[i].feed = PL_FEED_MLP;
  stack->layers = layers;
  model->mlp.gated_mlp = true;
  PL_TRY(pl_reader_text(in, "hidden_act", "silu", arena, &model->mlp.activation));
  PL_TRY(read_mixers(in, model, layers));
  PL_TRY(read_experts(in, model, layers));
  for (int32_t i = 0; i < model->n_layers; i++)
    if (layers[i].feed == PL_FEED_MLP)
      return pl_reader_integer(in, "intermediate_size", PL_MODEL_WIDTH_MAX, &model->width.ffn_hidden);
  return PL_OK;
}
