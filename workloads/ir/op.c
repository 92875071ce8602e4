/* See workloads/ir/op.h: the names that tables, traces and messages use; shapes of products. */
#include "workloads/ir/op.h"

#include "workloads/ir/chain.h"

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

void pl_op_set_product(pl_op *op, int64_t batch, int64_t m, int64_t n, int64_t k, double element_bytes,
                       double out_bytes) {
  op->kind = PL_OP_GEMM;
  op->batch = batch;
  op->m = m;
  op->n = n;
  op->k = k;
  op->flops = 2.0 * (double)batch * (double)m * (double)n * (double)k;
  op->bytes = (double)batch *
              (element_bytes * ((double)m * (double)k + (double)k * (double)n) + out_bytes * (double)m * (double)n);
}

void pl_op_set_convolution(pl_op *op, const pl_chain_step *step, int64_t pictures, pl_convolution_pass pass) {
  int64_t rows, out, depth, turned;
  pl_chain_step_product(step, pictures, &rows, &out, &depth);
  turned = out * step->filter_height * step->filter_width / ((int64_t)step->stride * step->stride);
  op->kind = PL_OP_CONVOLUTION;
  op->convolution = step;
  op->convolution_pass = (uint8_t)pass;
  op->batch = 1;
  op->m = pass == PL_CONVOLUTION_DATA     ? pictures * pl_picture_points(&step->in)
          : pass == PL_CONVOLUTION_WEIGHT ? depth
                                          : rows;
  op->n = pass == PL_CONVOLUTION_DATA ? step->in.channels : out;
  op->k = pass == PL_CONVOLUTION_DATA ? (turned > 0 ? turned : 1) : pass == PL_CONVOLUTION_WEIGHT ? rows : depth;
  op->flops = 2 * (double)rows * (double)out * (double)depth;
}

uint32_t pl_op_tensors(const pl_op *op, uint32_t tensors[PL_OP_TENSORS]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < PL_OP_INPUTS; i++)
    if (op->inputs[i] != PL_NONE) tensors[n++] = op->inputs[i];
  if (op->output != PL_NONE) tensors[n++] = op->output;
  if (op->auxiliary != PL_NONE) tensors[n++] = op->auxiliary;
  if (op->third != PL_NONE) tensors[n++] = op->third;
  return n;
}
