/* Reads T5 and mT5 (Raffel et al. 2020; Xue et al. 2021): keys and defaults of transformers' T5Config and MT5Config,
 * parameters of T5ForConditionalGeneration (models/t5/modeling_t5.py). */
#include <string.h>

#include "workloads/import/model_stack.h"

/* "relu", "gated-gelu": an activation, and whether a second projection is multiplied by it. */
static pl_code read_feed(const pl_model_reader *in, const char *otherwise, pl_arena *arena, pl_model *model) {
  static const char gated[] = "gated-";
  PL_TRY(pl_reader_text(in, "feed_forward_proj", otherwise, arena, &model->mlp.activation));
  model->mlp.gated_mlp = strncmp(model->mlp.activation, gated, strlen(gated)) == 0;
  if (!model->mlp.gated_mlp) return PL_OK;
  model->mlp.activation += strlen(gated);
  if (strcmp(model->mlp.activation, "gelu") == 0) model->mlp.activation = "gelu_new";
  return PL_OK;
}

static pl_code read_layers(const pl_model_reader *in, pl_model *model, pl_stack *stack) {
  const int64_t layers_max = 2048; /* a program has a function call for each */
  int64_t encoder, decoder;
  PL_TRY(pl_reader_integer(in, "num_layers", layers_max, &encoder));
  decoder = encoder;
  PL_TRY(pl_reader_optional_integer(in, "num_decoder_layers", layers_max, &decoder));
  stack->n_encoder = (int32_t)encoder;
  model->n_layers = (int32_t)(encoder + decoder);
  return PL_OK;
}

static pl_code read_positions(const pl_model_reader *in, pl_model *model, pl_stack *stack) {
  stack->buckets = 32;
  stack->max_distance = 128;
  model->positions.max_positions = 512; /* what T5 and mT5 were trained on; the class has no limit */
  PL_TRY(pl_reader_optional_integer(in, "relative_attention_num_buckets", 1 << 16, &stack->buckets));
  PL_TRY(pl_reader_optional_integer(in, "relative_attention_max_distance", 1 << 24, &stack->max_distance));
  PL_TRY(pl_reader_optional_integer(in, "n_positions", pl_model_positions_max, &model->positions.max_positions));
  if (stack->buckets >= 4 && stack->buckets % 2 == 0 && stack->max_distance > stack->buckets / 2) return PL_OK;
  return pl_document_fail(in->document, in->root, in->error,
                          "'relative_attention_num_buckets' = %lld must be even, at least 4, and below twice "
                          "'relative_attention_max_distance' = %lld",
                          (long long)stack->buckets, (long long)stack->max_distance);
}

pl_code pl_stack_read_t5(const pl_model_reader *in, pl_arena *arena, pl_model *model, pl_stack *stack) {
  bool multilingual = strcmp(model->family, "mt5") == 0;
  stack->kind = PL_STACK_ENCODER_DECODER;
  PL_TRY(pl_reader_integer(in, "d_model", PL_MODEL_WIDTH_MAX, &model->width.hidden));
  PL_TRY(pl_reader_integer(in, "d_ff", PL_MODEL_WIDTH_MAX, &model->width.ffn_hidden));
  PL_TRY(pl_reader_integer(in, "num_heads", PL_MODEL_HEADS_MAX, &model->attention.n_heads));
  PL_TRY(pl_reader_integer(in, "d_kv", PL_MODEL_WIDTH_MAX, &model->attention.head_size));
  PL_TRY(pl_reader_integer(in, "vocab_size", PL_MODEL_VOCAB_MAX, &model->width.vocab));
  model->attention.n_kv_heads = model->attention.n_heads;
  model->attention.value_size = model->attention.head_size;
  PL_TRY(read_layers(in, model, stack));
  PL_TRY(read_feed(in, multilingual ? "gated-gelu" : "relu", arena, model));
  PL_TRY(read_positions(in, model, stack));
  model->ends.tied_embeddings = !multilingual;
  PL_TRY(pl_reader_optional_boolean(in, "tie_word_embeddings", &model->ends.tied_embeddings));
  double dropout = 0.1;
  model->numbers.norm_epsilon = 1e-6;
  PL_TRY(pl_stack_read_number(in, "layer_norm_epsilon", 0, 1, &model->numbers.norm_epsilon));
  PL_TRY(pl_stack_read_number(in, "dropout_rate", 0, 0.999, &dropout));
  model->numbers.hidden_dropout = model->numbers.attention_dropout = model->numbers.embedding_dropout = dropout;
  model->dropout.hidden_dropout = model->dropout.attention_dropout = model->dropout.embedding_dropout = dropout > 0;
  return PL_OK;
}
