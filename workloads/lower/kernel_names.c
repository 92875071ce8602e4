/* See workloads/lower/lowering.h. Literals, so that programs of blocks copy no text. */
#include <string.h>

#include "workloads/lower/lowering.h"

const pl_tape_names *pl_kernel_names_of(pl_block_kind kind, const char *path) {
  static const struct {
    pl_block_kind kind;
    const char *path;
    pl_tape_names names;
  } known[] = {
      {PL_BLOCK_EMBEDDING, "norm", PL_OP_NAMES("embedding_norm")},
      {PL_BLOCK_EMBEDDING, "x", PL_OP_NAMES("embedding_dropout")},
      {PL_BLOCK_EMBEDDING, "table", PL_LINEAR_NAMES("embedding")},
      {PL_BLOCK_EMBEDDING, "positions", PL_OP_NAMES("positions")},
      {PL_BLOCK_EMBEDDING, "segments", PL_OP_NAMES("segments")},
      {PL_BLOCK_LOSS, "logits.fp32", PL_OP_NAMES("logits_fp32")},
      {PL_BLOCK_LOSS, "greatest", PL_LINEAR_NAMES("loss_maximum")},
      {PL_BLOCK_LOSS, "shifted", PL_OP_NAMES("loss_shift")},
      {PL_BLOCK_LOSS, "exponentials", PL_OP_NAMES("loss_exponentials")},
      {PL_BLOCK_LOSS, "sum", PL_LINEAR_NAMES("loss_sum")},
      {PL_BLOCK_LOSS, "target", PL_LINEAR_NAMES("loss_target")},
      {PL_BLOCK_LOSS, "mean", PL_OP_NAMES("loss")},
      {PL_BLOCK_LAYER, "norm1", PL_OP_NAMES("norm1")},
      {PL_BLOCK_LAYER, "norm2", PL_OP_NAMES("norm2")},
      {PL_BLOCK_LAYER, "attention.q", PL_LINEAR_NAMES("qkv")},
      {PL_BLOCK_LAYER, "attention.k", PL_LINEAR_NAMES("qkv")},
      {PL_BLOCK_LAYER, "attention.v", PL_LINEAR_NAMES("qkv")},
      {PL_BLOCK_LAYER, "scores", {.forward = "scores", .backward = "scores_dq", .wgrad = "scores_dk"}},
      {PL_BLOCK_LAYER, "scaled", PL_OP_NAMES("scores_scale")},
      {PL_BLOCK_LAYER, "masked", PL_OP_NAMES("mask")},
      {PL_BLOCK_LAYER, "probabilities", PL_OP_NAMES("softmax")},
      {PL_BLOCK_LAYER, "dropped", PL_OP_NAMES("attention_dropout")},
      {PL_BLOCK_LAYER, "context", {.forward = "context", .backward = "context_dprobabilities", .wgrad = "context_dv"}},
      {PL_BLOCK_LAYER, "attention.q_norm", PL_OP_NAMES("qk_norm")},
      {PL_BLOCK_LAYER, "attention.k_norm", PL_OP_NAMES("qk_norm")},
      {PL_BLOCK_LAYER, "attention.out", PL_LINEAR_NAMES("attention_out")},
      {PL_BLOCK_LAYER, "attention.post_norm", PL_OP_NAMES("attention_post_norm")},
      {PL_BLOCK_LAYER, "attended", PL_OP_NAMES("attention_residual")},
      {PL_BLOCK_LAYER, "mlp.up", PL_LINEAR_NAMES("mlp_up")},
      {PL_BLOCK_LAYER, "mlp.gate", PL_LINEAR_NAMES("mlp_up")},
      {PL_BLOCK_LAYER, "mlp.active", PL_OP_NAMES("activation")},
      {PL_BLOCK_LAYER, "mlp.down", PL_LINEAR_NAMES("mlp_down")},
      {PL_BLOCK_LAYER, "mlp.post_norm", PL_OP_NAMES("mlp_post_norm")},
      {PL_BLOCK_LAYER, "y", PL_OP_NAMES("mlp_residual")},
      {PL_BLOCK_LAYER, "sum", PL_OP_NAMES("parallel_add")},
      {PL_BLOCK_LAYER, "router", PL_LINEAR_NAMES("router")},
      {PL_BLOCK_LAYER, "routing", PL_OP_NAMES("routing")},
      {PL_BLOCK_LAYER, "dispatch", PL_OP_NAMES("permute")},
      {PL_BLOCK_LAYER, "experts.up", PL_LINEAR_NAMES("expert_up")},
      {PL_BLOCK_LAYER, "experts.gate", PL_LINEAR_NAMES("expert_up")},
      {PL_BLOCK_LAYER, "weighted", PL_OP_NAMES("expert_activation")},
      {PL_BLOCK_LAYER, "experts.down", PL_LINEAR_NAMES("expert_down")},
      {PL_BLOCK_LAYER, "combined", PL_OP_NAMES("unpermute")},
      {PL_BLOCK_LAYER, "shared.up", PL_LINEAR_NAMES("shared_up")},
      {PL_BLOCK_LAYER, "shared.active", PL_OP_NAMES("shared_activation")},
      {PL_BLOCK_LAYER, "shared.down", PL_LINEAR_NAMES("shared_down")},
      {PL_BLOCK_LAYER, "shared.expert_gate", PL_LINEAR_NAMES("shared_gate")},
      {PL_BLOCK_LAYER, "shared", PL_OP_NAMES("shared_scale")},
      {PL_BLOCK_EXPERT_LAYER, "sum", PL_OP_NAMES("experts_add")},
      {PL_BLOCK_LATENT, "latent", PL_LINEAR_NAMES("latent")},
      {PL_BLOCK_PIXELS, "pixels", PL_LINEAR_NAMES("pixels")},
      {PL_BLOCK_CHAIN, "shortcut", PL_OP_NAMES("shortcut_add")},
      {PL_BLOCK_DENSE_OUT, "dense", PL_LINEAR_NAMES("dense")},
      {PL_BLOCK_DENSE_IN, "dense", PL_LINEAR_NAMES("dense")},
      {PL_BLOCK_FINAL_NORM, "norm", PL_OP_NAMES("final_norm")},
      {PL_BLOCK_HEAD, "pooler", PL_LINEAR_NAMES("pooler")},
      {PL_BLOCK_HEAD, "pooled", PL_OP_NAMES("pooler_tanh")},
      {PL_BLOCK_HEAD, "next_sentence", PL_LINEAR_NAMES("next_sentence")},
      {PL_BLOCK_HEAD, "transform", PL_LINEAR_NAMES("transform")},
      {PL_BLOCK_HEAD, "active", PL_OP_NAMES("transform_activation")},
      {PL_BLOCK_HEAD, "transform_norm", PL_OP_NAMES("transform_norm")},
      {PL_BLOCK_HEAD, "logits", PL_LINEAR_NAMES("logits")}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].kind == kind && strcmp(known[i].path, path) == 0) return &known[i].names;
  return kind == PL_BLOCK_EXPERT_LAYER ? pl_kernel_names_of(PL_BLOCK_LAYER, path) : NULL;
}
