/* Reads a ViT (Dosovitskiy et al. 2021): keys and defaults of transformers' ViTConfig, parameters of its
 * ViTForImageClassification and ViTModel (models/vit/modeling_vit.py): a convolution whose windows touch, a token of
 * the class, learned positions, pre-norm encoder layers, a last norm, and classes read off the first token. */
#include "workloads/import/model_stack.h"

/* One number, or two of them: height and width. */
static pl_code read_size(const pl_model_reader *in, const char *key, int64_t otherwise, int64_t *height,
                         int64_t *width) {
  const int64_t most = 1 << 16;
  const pl_node *node = pl_node_get(in->root, key);
  *height = *width = otherwise;
  if (node == NULL || !pl_node_is_sequence(node)) {
    PL_TRY(pl_reader_optional_integer(in, key, most, height));
    *width = *height;
    return PL_OK;
  }
  int64_t *both[] = {height, width};
  if (pl_node_count(node) != 2)
    return pl_document_fail(in->document, node, in->error, "'%s' must be a number, or height and width", key);
  for (size_t i = 0; i < 2; i++) {
    double value;
    PL_TRY(pl_node_as_number(in->document, pl_node_at(node, i), &value, in->error));
    if (!(value >= 1 && value <= (double)most) || value != (double)(int64_t)value)
      return pl_document_fail(in->document, node, in->error, "'%s': %g is not from 1 to %lld", key, value,
                              (long long)most);
    *both[i] = (int64_t)value;
  }
  return PL_OK;
}

/* As many as id2label has names for; PretrainedConfig's default is two. */
static pl_code read_classes(const pl_model_reader *in, pl_stack *stack) {
  const pl_node *names = pl_node_get(in->root, "id2label");
  stack->classes = 2;
  if (names != NULL && pl_node_is_mapping(names) && pl_node_count(names) > 0)
    stack->classes = (int64_t)pl_node_count(names);
  return pl_reader_optional_integer(in, "num_labels", PL_MODEL_WIDTH_MAX, &stack->classes);
}

static pl_code check_sizes(const pl_model_reader *in, const pl_stack *stack) {
  if (stack->height % stack->patch_height == 0 && stack->width % stack->patch_width == 0) return PL_OK;
  return pl_document_fail(in->document, pl_node_get(in->root, "patch_size"), in->error,
                          "'patch_size' = %lldx%lld does not divide 'image_size' = %lldx%lld",
                          (long long)stack->patch_height, (long long)stack->patch_width, (long long)stack->height,
                          (long long)stack->width);
}

pl_code pl_stack_read_vit(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  stack->kind = PL_STACK_PATCHES;
  PL_TRY(pl_stack_read_widths(in, false, false, model));
  PL_TRY(pl_stack_read_heads(in, model));
  PL_TRY(pl_reader_integer(in, "intermediate_size", PL_MODEL_WIDTH_MAX, &model->width.ffn_hidden));
  PL_TRY(read_size(in, "image_size", 224, &stack->height, &stack->width));
  PL_TRY(read_size(in, "patch_size", 16, &stack->patch_height, &stack->patch_width));
  PL_TRY(check_sizes(in, stack));
  stack->channels = 3;
  PL_TRY(pl_reader_optional_integer(in, "num_channels", 1 << 16, &stack->channels));
  PL_TRY(read_classes(in, stack));
  model->norms.norm = PL_NORM_LAYER;
  model->norms.norm_bias = model->attention.attention_bias = model->attention.output_bias = model->mlp.mlp_bias = true;
  model->attention.causal = false;
  PL_TRY(pl_reader_optional_boolean(in, "qkv_bias", &model->attention.attention_bias));
  PL_TRY(pl_reader_text(in, "hidden_act", "gelu", arena, &model->mlp.activation));
  model->numbers.norm_epsilon = 1e-12;
  PL_TRY(pl_stack_read_number(in, "layer_norm_eps", 0, 1, &model->numbers.norm_epsilon));
  PL_TRY(pl_stack_read_number(in, "hidden_dropout_prob", 0, 1, &model->numbers.hidden_dropout));
  PL_TRY(pl_stack_read_number(in, "attention_probs_dropout_prob", 0, 1, &model->numbers.attention_dropout));
  model->numbers.embedding_dropout = model->numbers.hidden_dropout;
  model->dropout.hidden_dropout = model->dropout.embedding_dropout = model->numbers.hidden_dropout > 0;
  model->dropout.attention_dropout = model->numbers.attention_dropout > 0;
  model->positions.max_positions = pl_stack_patches(stack) + 1;
  model->positions.learned_positions = true;
  stack->pooler = model->architecture[3] == 'M'; /* ViTModel */
  pl_stack_layer *layers = PL_TAKE(arena, pl_stack_layer, model->n_layers);
  if (layers == NULL) return pl_fail_memory(in->error, "a model");
  for (int32_t i = 0; i < model->n_layers; i++)
    layers[i] = (pl_stack_layer){PL_MIXER_ATTENTION, PL_FEED_MLP};
  stack->layers = layers;
  return PL_OK;
}
