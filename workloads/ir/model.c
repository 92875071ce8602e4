/* See workloads/ir/model.h: what follows from a model's dimensions alone. Parameters are counted as the Hugging Face
 * class builds them, tensor by tensor; buffers (rotary frequencies, causal masks) are not parameters. */
#include "workloads/ir/model.h"

#include "core/base/multiple.h"
#include "workloads/ir/chain.h"

pl_block_kind pl_model_class_kind(const pl_model *model, int32_t class_of_blocks) {
  return model->unlike.parts != NULL ? model->unlike.parts[class_of_blocks].kind : (pl_block_kind)class_of_blocks;
}

int32_t pl_model_count_class(const pl_model *model, int32_t class_of_blocks) {
  int32_t count = 0;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    count += pl_model_block_class(model, block) == class_of_blocks;
  return count;
}

int32_t pl_model_count_blocks(const pl_model *model, pl_block_kind kind) {
  int32_t count = 0;
  if (kind == PL_BLOCK_LAYER && model->unlike.parts == NULL && model->moe.n_experts == 0) return model->n_layers;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
    count += pl_model_block_kind(model, block) == kind;
  return count;
}

static bool has_dense_layers(const pl_model *model) {
  return model->moe.n_experts == 0 || model->moe.first_expert_layer > 0 || model->moe.expert_layer_step > 1;
}

bool pl_model_splits_mlp(const pl_model *model, int32_t tmp, int64_t *width) {
  const int64_t widths[] = {has_dense_layers(model) ? model->width.ffn_hidden : 0, model->moe.shared_ffn};
  for (int i = 0; i < 2; i++)
    if (widths[i] % tmp != 0) {
      *width = widths[i];
      return false;
    }
  return true;
}

double pl_model_relative_positions(const pl_model *model) {
  double side = 2 * (double)model->positions.relative_window - 1;
  return model->positions.relative_window > 0 ? side * side : 0;
}

int32_t pl_model_head_sharers(const pl_model *model, int32_t tmp) {
  int64_t heads = model->attention.n_kv_heads;
  if (heads <= 0 || model->attention.n_heads % tmp != 0)
    return 1; /* uneven heads are computed as ones with keys each */
  return tmp / (int32_t)pl_common_divisor((uint64_t)heads, (uint64_t)tmp);
}

static double linear(double in, double out, bool bias) {
  return in * out + (bias ? out : 0);
}

static double norm(const pl_model *model) {
  if (model->norms.norm == PL_NORM_PIXEL) return 0;
  return (double)model->width.hidden * (model->norms.norm_bias ? 2 : 1);
}

static double mlp_parameters(const pl_model *model, int64_t width) {
  double h = (double)model->width.hidden, f = (double)width;
  return linear(h, model->mlp.gated_mlp ? 2 * f : f, model->mlp.mlp_bias) + linear(f, h, model->mlp.mlp_bias);
}

static double attention_parameters(const pl_model *model) {
  double h = (double)model->width.hidden, d = (double)model->attention.head_size,
         heads = (double)model->attention.n_heads;
  double wide = heads * d, narrow = (double)model->attention.n_kv_heads * d;
  double normed = !model->attention.qk_norm ? 0 : model->attention.qk_norm_whole ? wide + narrow : 2 * d;
  normed += model->attention.attention_sinks ? heads : 0;
  normed += pl_model_relative_positions(model) * heads;
  if (model->attention.kv_rank == 0)
    return linear(h, wide + 2 * narrow, model->attention.attention_bias) +
           linear(wide, h, model->attention.output_bias) + normed;
  double q = (double)model->attention.q_rank, kv = (double)model->attention.kv_rank,
         rope = (double)model->attention.rope_size;
  double value = (double)model->attention.value_size;
  double queries = q > 0 ? h * q + q + q * wide : h * wide;
  return queries + h * (kv + rope) + kv + kv * heads * (d - rope + value) + heads * value * h;
}

/* What all tokens of a layer with experts meet: router, shared experts and their gate. */
static double shared_parameters(const pl_model *model) {
  double h = (double)model->width.hidden;
  double shared = model->moe.shared_ffn > 0 ? mlp_parameters(model, model->moe.shared_ffn) : 0;
  return linear(h, (double)model->moe.n_experts, model->moe.router_bias) + shared + (model->moe.shared_gate ? h : 0);
}

static double layer_parameters(const pl_model *model, bool experts) {
  double mlp =
      experts ? shared_parameters(model) + (double)model->moe.n_experts * mlp_parameters(model, model->moe.expert_ffn)
              : mlp_parameters(model, model->width.ffn_hidden);
  double norms = model->norms.sandwich_norms ? 4 : model->norms.parallel_residual && model->norms.shared_norm ? 1 : 2;
  return attention_parameters(model) + mlp + norms * norm(model);
}

/* Three norms, a projection of two vectors to one, and a layer like the last (DeepSeek-V3, section 2.2). */
double pl_model_prediction_parameters(const pl_model *model) {
  if (model->ends.n_predictions == 0) return 0;
  double h = (double)model->width.hidden,
         layer = layer_parameters(model, pl_model_has_experts(model, model->n_layers - 1));
  return model->ends.n_predictions * (3 * norm(model) + linear(2 * h, h, false) + layer);
}

double pl_model_active_parameters(const pl_model *model) {
  double idle = (double)(model->moe.n_experts - model->moe.topk) * mlp_parameters(model, model->moe.expert_ffn);
  return model->count.parameters - idle * pl_model_count_blocks(model, PL_BLOCK_EXPERT_LAYER);
}

static double embedding_parameters(const pl_model *model) {
  double rows = (double)model->width.vocab;
  if (model->positions.learned_positions)
    rows += (double)model->positions.max_positions + (double)model->positions.position_offset +
            (double)model->width.type_vocab;
  return rows * (double)model->width.hidden + (model->norms.embedding_norm ? norm(model) : 0);
}

static double head_parameters(const pl_model *model) {
  double h = (double)model->width.hidden, count = 0;
  if (!model->ends.tied_embeddings) count += h * (double)model->width.vocab;
  if (model->ends.pooler) count += linear(h, h, true);
  if (model->ends.next_sentence) count += linear(h, 2, true);
  if (model->ends.lm_transform) count += linear(h, h, true) + norm(model) + (double)model->width.vocab;
  if (model->ends.head_bias) count += (double)model->width.vocab;
  return count;
}

static double part_parameters(const pl_model_part *part) {
  double in = (double)part->model->width.hidden, out = (double)part->out_width;
  switch (part->kind) {
  case PL_BLOCK_LAYER:
    return layer_parameters(part->model, false);
  case PL_BLOCK_POSITIONS:
    return (double)part->rows * in;
  case PL_BLOCK_LATENT:
  case PL_BLOCK_PIXELS:
    return linear(in, out, true);
  case PL_BLOCK_DENSE_OUT:
  case PL_BLOCK_DENSE_IN:
    return linear(in, out, false);
  case PL_BLOCK_CHAIN:
    return pl_chain_parameters(part->chain);
  default:
    return 0;
  }
}

double pl_model_block_parameters(const pl_model *model, int32_t block) {
  if (model->unlike.parts != NULL) return part_parameters(&model->unlike.parts[model->unlike.part_of[block]]);
  switch (pl_model_block_kind(model, block)) {
  case PL_BLOCK_EMBEDDING:
    return embedding_parameters(model);
  case PL_BLOCK_LAYER:
  case PL_BLOCK_EXPERT_LAYER:
    return layer_parameters(model, pl_model_block_kind(model, block) == PL_BLOCK_EXPERT_LAYER);
  case PL_BLOCK_FINAL_NORM:
    return model->norms.final_norm ? norm(model) : 0;
  case PL_BLOCK_HEAD:
    return head_parameters(model);
  default:
    return 0;
  }
}

double pl_model_expert_load(const pl_model *model, int32_t ep) {
  if (ep < 2) return 1;
  if (model->moe.expert_loads == NULL) return model->moe.expert_load > 0 ? model->moe.expert_load : 1;
  int64_t each = model->moe.n_experts / ep;
  double all = 0, most = 0, own = 0;
  for (int64_t i = 0; i < model->moe.n_experts; i++) {
    own = i % each == 0 ? model->moe.expert_loads[i] : own + model->moe.expert_loads[i];
    all += model->moe.expert_loads[i];
    if (own > most) most = own;
  }
  return most * ep / all;
}
