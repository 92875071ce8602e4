/* What the files onnx_shape*.c share. Internal to workloads/onnx. */
#ifndef PL_WORKLOADS_ONNX_SHAPE_H
#define PL_WORKLOADS_ONNX_SHAPE_H

#include "workloads/onnx/onnx_infer.h"

/* That of the first operand. */
pl_code pl_onnx_shape_same(pl_onnx_op *op);
/* The first n operands are there. */
pl_code pl_onnx_shape_needs(const pl_onnx_op *op, int32_t n);
/* op->out becomes the shape that both spread to. */
pl_code pl_onnx_shape_spread(pl_onnx_op *op, const pl_onnx_abstract *with);

/* Of files that were exported for one sample (onnx_samples.c): the target of a Reshape whose target is written down,
 * with the samples; false: it has them, or there are none. Then where they are in what other ops make. */
bool pl_onnx_samples_reshaped(pl_onnx_op *op, int64_t *dims, int32_t *n);
void pl_onnx_samples_follow(pl_onnx_op *op);

/* Zeros in front of and behind axis `axis` of the picture's points, which has `in` of them, where a window of `kernel`
 * slides over it: those that `pads` lists or, with auto_pad=SAME_UPPER or SAME_LOWER, as many as make
 * ceil(in / stride) windows, the odd one behind or in front (ONNX, Conv-11). `points` axes. */
void pl_onnx_window_pads(const pl_onnx_node *node, int32_t axis, int32_t points, int64_t in, int64_t kernel,
                         int64_t pads[2]);

pl_code pl_onnx_shape_matmul(pl_onnx_op *op);
pl_code pl_onnx_shape_gemm(pl_onnx_op *op);
pl_code pl_onnx_shape_einsum(pl_onnx_op *op);
pl_code pl_onnx_shape_convolution(pl_onnx_op *op);
pl_code pl_onnx_shape_transposed(pl_onnx_op *op);
pl_code pl_onnx_shape_resize(pl_onnx_op *op); /* every element a whole number of times */
pl_code pl_onnx_shape_pool(pl_onnx_op *op);
pl_code pl_onnx_shape_global_pool(pl_onnx_op *op);

#endif
