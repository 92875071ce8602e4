/* Numbers of tensors: few of them while shapes are inferred, all of them where weights are asked for. */
#ifndef PL_WORKLOADS_ONNX_DATA_H
#define PL_WORKLOADS_ONNX_DATA_H

#include "workloads/onnx/onnx_file.h"

/* Elements `first` ... first + n - 1 as doubles. PL_BAD_INPUT: the file has fewer, or a file that they are said to lie
 * in is missing or too short; PL_UNSUPPORTED: a type without a value here. */
pl_code pl_onnx_tensor_read(const pl_onnx_graph *graph, const pl_onnx_tensor *tensor, int64_t first, int64_t n,
                            double *values, pl_error *error);

#endif
