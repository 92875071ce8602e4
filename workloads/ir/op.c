/* See workloads/ir/op.h: the names that tables, traces and messages use. */
#include "workloads/ir/op.h"

const char *pl_op_kind_name(pl_op_kind kind) {
  static const char *const names[PL_OP_KIND_COUNT] = {
      [PL_OP_GEMM] = "gemm",
      [PL_OP_ATTENTION] = "attention",
      [PL_OP_NORM] = "norm",
      [PL_OP_SOFTMAX] = "softmax",
      [PL_OP_ELEMENTWISE] = "elementwise",
      [PL_OP_EMBEDDING] = "embedding",
      [PL_OP_CROSS_ENTROPY] = "cross_entropy",
      [PL_OP_CONVOLUTION] = "convolution",
      [PL_OP_COLLECTIVE] = "collective",
  };
  return (unsigned)kind < PL_OP_KIND_COUNT ? names[kind] : "unknown";
}

const char *pl_block_kind_name(pl_block_kind kind) {
  static const char *const names[PL_BLOCK_KIND_COUNT] = {
      [PL_BLOCK_EMBEDDING] = "embedding",
      [PL_BLOCK_IDENTITY] = "identity",
      [PL_BLOCK_LAYER] = "layer",
      [PL_BLOCK_EXPERT_LAYER] = "expert_layer",
      [PL_BLOCK_FINAL_NORM] = "final_norm",
      [PL_BLOCK_HEAD] = "head",
      [PL_BLOCK_LOSS] = "loss",
      [PL_BLOCK_LATENT] = "latent",
      [PL_BLOCK_POSITIONS] = "positions",
      [PL_BLOCK_RESHAPE] = "reshape",
      [PL_BLOCK_PIXELS] = "pixels",
      [PL_BLOCK_DENSE_OUT] = "dense_out",
      [PL_BLOCK_DENSE_IN] = "dense_in",
      [PL_BLOCK_CHAIN] = "chain",
      [PL_BLOCK_MEAN] = "mean",
  };
  return (unsigned)kind < PL_BLOCK_KIND_COUNT ? names[kind] : "unknown";
}

pl_dtype pl_gradient_dtype(pl_dtype dtype) {
  return dtype == PL_DTYPE_FP16 ? PL_DTYPE_FP16 : PL_DTYPE_FP32;
}

uint32_t pl_op_tensors(const pl_op *op, uint32_t tensors[PL_OP_TENSORS]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < PL_OP_INPUTS; i++)
    if (op->inputs[i] != PL_NONE) tensors[n++] = op->inputs[i];
  if (op->output != PL_NONE) tensors[n++] = op->output;
  if (op->auxiliary != PL_NONE) tensors[n++] = op->auxiliary;
  return n;
}
