/* See workloads/block/block_tape.h: what is written down. */
#include "workloads/block/block_tape.h"

#include <string.h>

#include "core/cluster/cluster.h"

void pl_tape_init(pl_tape *tape, const pl_block_shard *shard) {
  tape->shard = shard;
  tape->framework = pl_framework_or_ideal(shard->framework);
  tape->mbs = shard->mbs;
  tape->cp = shard->cp > 1 ? shard->cp : 1;
  tape->model_seq = shard->seq;
  tape->seq = shard->seq / tape->cp;
  tape->layer = tape->overlaps = tape->overlaps_split = tape->writes_for_inputs = false;
  tape->n_tensors = tape->n_forward = tape->n_backward = 0;
  tape->input = tape->output = tape->output_gradient = tape->input_gradient = PL_NONE;
  tape->data = tape->tied = PL_NONE;
  pl_autocast_form form = pl_framework_autocast(tape->framework, shard->dtype);
  tape->stream = form == PL_AUTOCAST_ALL ? PL_DTYPE_FP32 : shard->dtype;
}

void pl_tape_retype(pl_tape *tape, uint32_t tensor, pl_dtype dtype) {
  tape->tensors[tensor].size_bytes *= pl_dtype_bytes(dtype) / pl_dtype_bytes((pl_dtype)tape->tensors[tensor].dtype);
  tape->tensors[tensor].dtype = (uint8_t)dtype;
}

uint32_t pl_tape_tensor(pl_tape *tape, const char *name, pl_tensor_kind kind, pl_dtype dtype, const char *dims,
                        const int64_t *extent) {
  PL_ASSERT(tape->n_tensors < PL_TAPE_TENSORS);
  pl_tensor *tensor = &tape->tensors[tape->n_tensors];
  *tensor = (pl_tensor){.name = name, .kind = (uint8_t)kind, .dtype = (uint8_t)dtype};
  tensor->size_bytes = pl_dtype_bytes(dtype);
  for (; dims[tensor->rank] != '\0'; tensor->rank++) {
    PL_DEBUG_ASSERT(tensor->rank < PL_TENSOR_RANK);
    tensor->dims[tensor->rank] = dims[tensor->rank];
    tensor->extent[tensor->rank] = extent[tensor->rank];
    tensor->size_bytes *= (double)extent[tensor->rank];
  }
  return tape->n_tensors++;
}

uint32_t pl_tape_like(pl_tape *tape, uint32_t tensor, const char *name, pl_tensor_kind kind, pl_dtype dtype) {
  PL_ASSERT(tape->n_tensors < PL_TAPE_TENSORS);
  pl_tensor *copy = &tape->tensors[tape->n_tensors];
  *copy = tape->tensors[tensor];
  copy->name = name;
  copy->kind = (uint8_t)kind;
  copy->dtype = (uint8_t)dtype;
  copy->size_bytes = pl_tape_elements(tape, tensor) * pl_dtype_bytes(dtype);
  copy->remade_bytes = 0;
  copy->pieces = 0;
  copy->unread = false;
  return tape->n_tensors++;
}

uint32_t pl_tape_parameter(pl_tape *tape, const char *name, const char *dims, int64_t first, int64_t second) {
  const int64_t extent[] = {first, second};
  return pl_tape_tensor(tape, name, PL_TENSOR_PARAMETER, tape->shard->dtype, dims, extent);
}

double pl_tape_elements(const pl_tape *tape, uint32_t tensor) {
  const pl_tensor *entry = &tape->tensors[tensor];
  double elements = 1;
  for (uint8_t i = 0; i < entry->rank; i++)
    elements *= (double)entry->extent[i];
  return elements;
}

static pl_op *append(pl_tape *tape, bool backward) {
  if (!backward) {
    PL_ASSERT(tape->n_forward < PL_TAPE_FORWARD_OPS);
    return &tape->forward[tape->n_forward++];
  }
  PL_ASSERT(tape->n_backward < PL_TAPE_BACKWARD_OPS);
  tape->for_inputs[tape->n_backward] = tape->writes_for_inputs;
  return &tape->backward[tape->n_backward++];
}

/* What the output of a library's kernel has written to it beforehand in deterministic runs: all of a new tensor,
 * nothing of a buffer that is added to. */
static double filled(const pl_tape *tape, uint32_t output) {
  if (output == PL_NONE || tape->tensors[output].kind == PL_TENSOR_PARAMETER_GRADIENT) return 0;
  return tape->tensors[output].size_bytes;
}

pl_op *pl_tape_op(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, uint32_t first,
                  uint32_t second, uint32_t third, uint32_t output) {
  pl_op *op = append(tape, category != PL_CATEGORY_FORWARD);
  bool deterministic = pl_framework_or_ideal(tape->shard->framework)->kernels.deterministic;
  *op = (pl_op){.name = name,
                .kind = (uint8_t)kind,
                .category = (uint8_t)category,
                .dtype = (uint8_t)tape->shard->dtype,
                .batch = 1,
                .deterministic = deterministic,
                .inputs = {first, second, third, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE},
                .output = output,
                .auxiliary = PL_NONE,
                .third = PL_NONE};
  if (deterministic && pl_op_allocates(op)) op->filled_bytes = filled(tape, output);
  return op;
}

static double size_of(const pl_tape *tape, uint32_t tensor) {
  return tensor == PL_NONE ? 0 : tape->tensors[tensor].size_bytes;
}

pl_op *pl_tape_sweep(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, double flops_per_element,
                     uint32_t first, uint32_t second, uint32_t third, uint32_t output, uint32_t auxiliary) {
  pl_op *op = pl_tape_op(tape, name, kind, category, first, second, third, output);
  const pl_tensor *widest = &tape->tensors[first]; /* reductions have small outputs */
  double elements = pl_tape_elements(tape, first);
  op->n = widest->extent[widest->rank - 1];
  op->m = (int64_t)(elements / (double)op->n);
  op->flops = flops_per_element * elements;
  op->auxiliary = auxiliary;
  op->bytes = size_of(tape, first) + size_of(tape, second) + size_of(tape, third) + size_of(tape, output) +
              size_of(tape, auxiliary);
  return op;
}

static pl_category category_of(pl_group_role group) {
  return group == PL_GROUP_CONTEXT  ? PL_CATEGORY_CONTEXT
         : group == PL_GROUP_EXPERT ? PL_CATEGORY_EXPERT
                                    : PL_CATEGORY_TENSOR;
}

void pl_tape_group_collective(pl_tape *tape, const char *name, pl_collective_kind kind, pl_group_role group,
                              bool backward, double size_bytes, uint32_t input, uint32_t output) {
  pl_op *op = append(tape, backward);
  *op = (pl_op){.name = name,
                .kind = PL_OP_COLLECTIVE,
                .category = (uint8_t)category_of(group),
                .dtype = tape->tensors[input].dtype,
                .collective = (uint8_t)kind,
                .group = (uint8_t)group,
                .size_bytes = size_bytes,
                .inputs = {input, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE},
                .output = output,
                .auxiliary = PL_NONE,
                .third = PL_NONE};
}
