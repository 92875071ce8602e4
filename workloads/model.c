/* See workloads/model.h: what follows from a model's dimensions alone. Parameters are counted as the Hugging Face class
 * builds them, tensor by tensor; buffers (rotary frequencies, causal masks) are not parameters. */
#include "workloads/model.h"

#include "workloads/block_tape.h"

pl_block_kind pl_model_block_kind(const pl_model *model, int32_t block) {
  PL_ASSERT(block >= 0 && block < pl_model_n_blocks(model));
  if (block == 0) return PL_BLOCK_EMBEDDING;
  int32_t behind = block - (model->n_layers + 2);
  if (block == 1 || behind == 0) return PL_BLOCK_IDENTITY;
  if (behind < 0) return PL_BLOCK_LAYER;
  return behind == 1 ? PL_BLOCK_FINAL_NORM : behind == 2 ? PL_BLOCK_HEAD : PL_BLOCK_LOSS;
}

static double linear(double in, double out, bool bias) {
  return in * out + (bias ? out : 0);
}

static double norm(const pl_model *model) {
  return (double)model->hidden * (model->norm_bias ? 2 : 1);
}

static double layer_parameters(const pl_model *model) {
  double h = (double)model->hidden, f = (double)model->ffn_hidden, d = (double)model->head_size;
  double wide = (double)model->n_heads * d, narrow = (double)model->n_kv_heads * d;
  double attention = linear(h, wide + 2 * narrow, model->attention_bias) + linear(wide, h, model->output_bias);
  double mlp = linear(h, model->gated_mlp ? 2 * f : f, model->mlp_bias) + linear(f, h, model->mlp_bias);
  return attention + mlp + 2 * norm(model);
}

static double embedding_parameters(const pl_model *model) {
  double rows = (double)model->vocab;
  if (model->learned_positions) rows += (double)model->max_positions + (double)model->type_vocab;
  return rows * (double)model->hidden + (model->embedding_norm ? norm(model) : 0);
}

static double head_parameters(const pl_model *model) {
  double h = (double)model->hidden, count = 0;
  if (!model->tied_embeddings) count += h * (double)model->vocab;
  if (model->pooler) count += linear(h, h, true);
  if (model->next_sentence) count += linear(h, 2, true);
  if (model->lm_transform) count += linear(h, h, true) + norm(model) + (double)model->vocab;
  return count;
}

double pl_model_block_parameters(const pl_model *model, int32_t block) {
  switch (pl_model_block_kind(model, block)) {
  case PL_BLOCK_EMBEDDING:
    return embedding_parameters(model);
  case PL_BLOCK_LAYER:
    return layer_parameters(model);
  case PL_BLOCK_FINAL_NORM:
    return model->final_norm ? norm(model) : 0;
  case PL_BLOCK_HEAD:
    return head_parameters(model);
  case PL_BLOCK_IDENTITY:
  case PL_BLOCK_LOSS:
  case PL_BLOCK_KIND_COUNT:
    break;
  }
  return 0;
}

double pl_model_flops_per_sequence(const pl_model *model, int64_t seq) {
  const pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = seq, .dtype = PL_DTYPE_FP16, .flash = true};
  pl_tape tape;
  pl_tape_init(&tape, model, &shard);
  pl_block_layer_forward(&tape);
  double forward = tape.model_flops * (double)model->n_layers;
  pl_tape_init(&tape, model, &shard);
  pl_block_head_forward(&tape);
  return 3 * (forward + tape.model_flops);
}
