/* Reads Mamba 2 and models that have its state space between, or beside, layers of attention. Keys, defaults and
 * parameters are those of transformers' Mamba2Config, BambaConfig, NemotronHConfig and FalconH1Config and of the mixers
 * of the classes (models/mamba2/modeling_mamba2.py, Mamba2Mixer, and its descendants): one projection to gate, x, B, C
 * and steps, a causal convolution over x, B and C, the scan, a gated norm, one projection back. */
#include <string.h>

#include "workloads/import/model_stack.h"

/* How classes call the same things. */
typedef struct state_keys {
  const char *heads, *head_size, *groups, *state, *taps, *chunk, *in_bias, *out_bias, *convolution_bias, *inner;
  int64_t heads_default, head_size_default, groups_default, state_default, chunk_default;
} state_keys;

static pl_code fail_widths(const pl_model_reader *in, const state_keys *keys, const pl_stack *stack, int64_t inner) {
  return pl_document_fail(in->document, pl_node_get(in->root, keys->heads), in->error,
                          "'%s' = %lld heads of '%s' = %lld are not the %lld channels of the state space", keys->heads,
                          (long long)stack->state_heads, keys->head_size, (long long)stack->state_head_size,
                          (long long)inner);
}

/* `inner`: the channels that the class has by other keys; 0: those of the heads. "auto" (Bamba): they are divided. */
static pl_code read_state_heads(const pl_model_reader *in, const state_keys *keys, int64_t inner, pl_stack *stack) {
  const char *text = NULL;
  stack->state_heads = keys->heads_default;
  stack->state_head_size = keys->head_size_default;
  PL_TRY(pl_reader_optional_integer(in, keys->heads, PL_MODEL_HEADS_MAX, &stack->state_heads));
  const pl_node *size = pl_node_get(in->root, keys->head_size);
  bool is_auto =
      size != NULL && pl_node_as_string(in->document, size, &text, NULL) == PL_OK && strcmp(text, "auto") == 0;
  if (is_auto || (size == NULL && keys->head_size_default == 0))
    stack->state_head_size = inner / stack->state_heads;
  else
    PL_TRY(pl_reader_optional_integer(in, keys->head_size, PL_MODEL_WIDTH_MAX, &stack->state_head_size));
  if (inner > 0 && inner != stack->state_heads * stack->state_head_size) return fail_widths(in, keys, stack, inner);
  return PL_OK;
}

static pl_code read_state_space(const pl_model_reader *in, const state_keys *keys, int64_t inner, pl_stack *stack) {
  PL_TRY(read_state_heads(in, keys, inner, stack));
  stack->state_groups = keys->groups_default;
  stack->state_size = keys->state_default;
  stack->chunk = keys->chunk_default;
  stack->taps = 4;
  stack->convolution_bias = true;
  stack->gated_norm = true;
  PL_TRY(pl_reader_optional_integer(in, keys->groups, PL_MODEL_HEADS_MAX, &stack->state_groups));
  PL_TRY(pl_reader_optional_integer(in, keys->state, PL_MODEL_WIDTH_MAX, &stack->state_size));
  PL_TRY(pl_reader_optional_integer(in, keys->taps, 1024, &stack->taps));
  PL_TRY(pl_reader_optional_integer(in, keys->chunk, PL_MODEL_WIDTH_MAX, &stack->chunk));
  PL_TRY(pl_reader_optional_boolean(in, keys->convolution_bias, &stack->convolution_bias));
  PL_TRY(pl_reader_optional_boolean(in, keys->in_bias, &stack->in_bias));
  stack->out_bias = stack->in_bias;
  PL_TRY(pl_reader_optional_boolean(in, keys->out_bias, &stack->out_bias));
  if (stack->state_heads % stack->state_groups == 0) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, keys->groups), in->error,
                          "'%s' = %lld does not divide '%s' = %lld", keys->groups, (long long)stack->state_groups,
                          keys->heads, (long long)stack->state_heads);
}

static pl_code take_layers(const pl_model_reader *in, pl_arena *arena, const pl_model *model, pl_stack *stack,
                           pl_stack_layer all, pl_stack_layer **layers) {
  *layers = PL_TAKE(arena, pl_stack_layer, model->n_layers);
  if (*layers == NULL) return pl_fail_memory(in->error, "a model");
  for (int32_t i = 0; i < model->n_layers; i++)
    (*layers)[i] = all;
  stack->kind = PL_STACK_MIXERS;
  stack->layers = *layers;
  return PL_OK;
}

/* expand x hidden_size. */
static pl_code read_inner(const pl_model_reader *in, const char *key, const pl_model *model, int64_t *inner) {
  double expand = 2;
  PL_TRY(pl_stack_read_number(in, key, 1.0 / 64, 64, &expand));
  *inner = (int64_t)(expand * (double)model->width.hidden);
  return PL_OK;
}

static pl_code read_positions(const pl_model_reader *in, pl_model *model) {
  return pl_reader_optional_integer(in, "max_position_embeddings", pl_model_positions_max,
                                    &model->positions.max_positions);
}

/* transformers' Mamba2Config. */
static const state_keys mamba2_keys = {.heads = "num_heads",
                                       .head_size = "head_dim",
                                       .groups = "n_groups",
                                       .state = "state_size",
                                       .taps = "conv_kernel",
                                       .chunk = "chunk_size",
                                       .in_bias = "use_bias",
                                       .out_bias = "use_bias",
                                       .convolution_bias = "use_conv_bias",
                                       .inner = "expand",
                                       .heads_default = 128,
                                       .head_size_default = 64,
                                       .groups_default = 8,
                                       .state_default = 128,
                                       .chunk_default = 256};

pl_code pl_stack_read_mamba2(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  pl_stack_layer *layers;
  int64_t inner;
  PL_TRY(pl_stack_read_widths(in, true, false, model));
  PL_TRY(read_inner(in, mamba2_keys.inner, model, &inner));
  PL_TRY(read_state_space(in, &mamba2_keys, inner, stack));
  PL_TRY(pl_stack_read_number(in, "layer_norm_epsilon", 0, 1, &model->numbers.norm_epsilon));
  PL_TRY(read_positions(in, model)); /* the class has none: what it was trained on */
  model->attention.n_heads = stack->state_heads;
  return take_layers(in, arena, model, stack, (pl_stack_layer){PL_MIXER_STATE_SPACE, PL_FEED_NONE}, &layers);
}

/* ---- hybrids ---- */

/* Llama's, but for the share of a head that is turned. */
static pl_code read_attention(const pl_model_reader *in, const char *epsilon, pl_model *model) {
  PL_TRY(pl_stack_read_heads(in, model));
  PL_TRY(pl_reader_optional_boolean(in, "attention_bias", &model->attention.attention_bias));
  model->attention.output_bias = model->attention.attention_bias;
  PL_TRY(pl_stack_read_number(in, "attention_dropout", 0, 1, &model->numbers.attention_dropout));
  model->dropout.attention_dropout = model->numbers.attention_dropout > 0;
  PL_TRY(pl_stack_read_number(in, epsilon, 0, 1, &model->numbers.norm_epsilon));
  PL_TRY(pl_stack_read_number(in, "rope_theta", 1e-6, 1e12, &model->numbers.rotary_base));
  return read_positions(in, model);
}

static pl_code read_mlp(const pl_model_reader *in, const char *activation, bool gated, pl_arena *arena,
                        pl_model *model) {
  model->mlp.gated_mlp = gated;
  PL_TRY(pl_reader_integer(in, "intermediate_size", PL_MODEL_WIDTH_MAX, &model->width.ffn_hidden));
  PL_TRY(pl_reader_optional_boolean(in, "mlp_bias", &model->mlp.mlp_bias));
  return pl_reader_text(in, activation, gated ? "silu" : "relu2", arena, &model->mlp.activation);
}

/* attn_layer_indices: which layers attend. */
static pl_code set_attention_layers(const pl_model_reader *in, const pl_model *model, pl_stack_layer *layers) {
  const char *key = "attn_layer_indices";
  const pl_node *list = pl_node_get(in->root, key);
  if (list == NULL) return PL_OK;
  if (!pl_node_is_sequence(list))
    return pl_document_fail(in->document, list, in->error, "'%s' must be a list of numbers of layers", key);
  for (size_t i = 0; i < pl_node_count(list); i++) {
    double index;
    PL_TRY(pl_node_as_number(in->document, pl_node_at(list, i), &index, in->error));
    if (!(index >= 0 && index < model->n_layers) || index != (double)(int64_t)index)
      return pl_document_fail(in->document, pl_node_at(list, i), in->error, "'%s': %g is no layer from 0 to %d", key,
                              index, model->n_layers - 1);
    layers[(int64_t)index].mixer = PL_MIXER_ATTENTION;
  }
  return PL_OK;
}

static const state_keys prefixed = {.heads = "mamba_n_heads",
                                    .head_size = "mamba_d_head",
                                    .groups = "mamba_n_groups",
                                    .state = "mamba_d_state",
                                    .taps = "mamba_d_conv",
                                    .chunk = "mamba_chunk_size",
                                    .in_bias = "mamba_proj_bias",
                                    .out_bias = "mamba_proj_bias",
                                    .convolution_bias = "mamba_conv_bias",
                                    .inner = "mamba_expand",
                                    .heads_default = 128,
                                    .head_size_default = 0,
                                    .groups_default = 1,
                                    .state_default = 256,
                                    .chunk_default = 256};

pl_code pl_stack_read_bamba(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  pl_stack_layer *layers;
  int64_t inner;
  PL_TRY(pl_stack_read_widths(in, true, false, model));
  PL_TRY(read_attention(in, "rms_norm_eps", model));
  model->positions.rotary = true;
  model->numbers.rotary_share = 0.5;
  PL_TRY(pl_stack_read_number(in, "partial_rotary_factor", 0, 1, &model->numbers.rotary_share));
  PL_TRY(read_mlp(in, "hidden_act", true, arena, model));
  PL_TRY(read_inner(in, prefixed.inner, model, &inner));
  PL_TRY(read_state_space(in, &prefixed, inner, stack));
  PL_TRY(take_layers(in, arena, model, stack, (pl_stack_layer){PL_MIXER_STATE_SPACE, PL_FEED_MLP}, &layers));
  return set_attention_layers(in, model, layers);
}

/* mamba_d_ssm channels, or mamba_expand times the hidden size. Multipliers of activations (muP) are left out: no time
 * depends on them. */
pl_code pl_stack_read_falcon_h1(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  pl_stack_layer *layers;
  int64_t inner;
  PL_TRY(pl_stack_read_widths(in, true, false, model));
  PL_TRY(read_attention(in, "rms_norm_eps", model));
  model->positions.rotary = true;
  PL_TRY(read_mlp(in, "hidden_act", true, arena, model));
  PL_TRY(read_inner(in, prefixed.inner, model, &inner));
  PL_TRY(pl_reader_optional_integer(in, "mamba_d_ssm", PL_MODEL_WIDTH_MAX, &inner));
  PL_TRY(read_state_space(in, &prefixed, inner, stack));
  stack->out_bias = false;
  PL_TRY(pl_reader_optional_boolean(in, "projectors_bias", &stack->out_bias));
  stack->gated_norm = false;
  stack->norm_by_group = true;
  PL_TRY(pl_reader_optional_boolean(in, "mamba_rms_norm", &stack->gated_norm));
  return take_layers(in, arena, model, stack, (pl_stack_layer){PL_MIXER_BESIDE, PL_FEED_MLP}, &layers);
}

/* Of layers E (Nemotron 3): experts without gates, and a shared one. */
static pl_code read_experts(const pl_model_reader *in, pl_model *model) {
  const int64_t experts_max = 1 << 16;
  int64_t shared = 0;
  PL_TRY(pl_reader_integer(in, "n_routed_experts", experts_max, &model->moe.n_experts));
  PL_TRY(pl_reader_integer(in, "num_experts_per_tok", model->moe.n_experts, &model->moe.topk));
  PL_TRY(pl_reader_integer(in, "moe_intermediate_size", PL_MODEL_WIDTH_MAX, &model->moe.expert_ffn));
  if (pl_reader_has(in, "n_shared_experts"))
    PL_TRY(pl_node_integer(in->document, in->root, "n_shared_experts", 0, experts_max, &shared, in->error));
  if (shared > 0)
    PL_TRY(pl_reader_integer(in, "moe_shared_expert_intermediate_size", PL_MODEL_WIDTH_MAX, &model->moe.shared_ffn));
  model->moe.shared_ffn *= shared;
  model->numbers.normalises_routing = true;
  PL_TRY(pl_reader_optional_boolean(in, "norm_topk_prob", &model->numbers.normalises_routing));
  return pl_stack_read_number(in, "routed_scaling_factor", 1e-6, 1e6, &model->numbers.routing_scale);
}

/* "M-M*E": a state space, an MLP, attention or experts, each a layer of its own. */
static pl_code set_pattern(const pl_model_reader *in, pl_model *model, pl_stack_layer *layers) {
  bool experts = false;
  const char *key = "hybrid_override_pattern", *pattern;
  PL_TRY(pl_node_string(in->document, in->root, key, &pattern, in->error));
  const pl_node *node = pl_node_get(in->root, key);
  if (strlen(pattern) != (size_t)model->n_layers)
    return pl_document_fail(in->document, node, in->error, "'%s' has %zu letters, and 'num_hidden_layers' is %d", key,
                            strlen(pattern), model->n_layers);
  for (int32_t i = 0; i < model->n_layers; i++) {
    if (strchr("M*-E", pattern[i]) == NULL)
      return pl_document_fail(
          in->document, node, in->error,
          "'%s': letter %d is '%c'; supported are M (state space), * (attention), - (MLP) and E (experts)", key, i + 1,
          pattern[i] > ' ' && pattern[i] < 0x7f ? pattern[i] : '?');
    layers[i] = (pl_stack_layer){.mixer = pattern[i] == 'M'   ? PL_MIXER_STATE_SPACE
                                          : pattern[i] == '*' ? PL_MIXER_ATTENTION
                                                              : PL_MIXER_NONE,
                                 .feed = pattern[i] == '-'   ? PL_FEED_MLP
                                         : pattern[i] == 'E' ? PL_FEED_EXPERTS
                                                             : PL_FEED_NONE};
    experts = experts || pattern[i] == 'E';
  }
  return experts ? read_experts(in, model) : PL_OK;
}

pl_code pl_stack_read_nemotron_h(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  state_keys keys = mamba2_keys;
  keys.heads = "mamba_num_heads";
  keys.head_size = "mamba_head_dim";
  keys.state = "ssm_state_size";
  pl_stack_layer *layers;
  PL_TRY(pl_stack_read_widths(in, true, false, model));
  PL_TRY(read_attention(in, "layer_norm_epsilon", model)); /* without positions */
  PL_TRY(pl_reader_optional_integer(in, "attention_head_dim", PL_MODEL_WIDTH_MAX, &model->attention.head_size));
  model->attention.value_size = model->attention.head_size;
  PL_TRY(read_mlp(in, "mlp_hidden_act", false, arena, model));
  PL_TRY(read_state_space(in, &keys, 0, stack));
  stack->norm_by_group = true;
  PL_TRY(take_layers(in, arena, model, stack, (pl_stack_layer){0}, &layers));
  return set_pattern(in, model, layers);
}
