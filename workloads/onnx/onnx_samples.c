/* Files that were exported for one sample, with more of them: what Reshape makes of those
 * (workloads/onnx/onnx_shape.h).
 *
 * Where the samples are in a value is seen in its shape: the dimension that is larger than in the file. Of [tokens *
 * samples, ...] the shape does not say which of the two is outside; `outside` does. In a Reshape samples stay between
 * the elements that were outside of them and those that were inside. Where a dimension of the target begins just there
 * they may be its outermost part, or the innermost part of the one before: the latter only where it would be the last
 * one, which has features, and the target has no dimension of its own for them.
 */
#include <string.h>

#include "workloads/onnx/onnx_shape.h"

/* The dimension of a value that has samples; its rank: none. */
static int32_t with_samples(const pl_onnx_abstract *was, const pl_onnx_abstract *is) {
  int32_t at = 0;
  while (at < is->rank && at < was->rank && is->dims[at] == was->dims[at])
    at++;
  return at < was->rank ? at : is->rank;
}

static const pl_onnx_abstract *exported(const pl_onnx_op *op, int32_t value) {
  return value != PL_ONNX_NONE ? &op->own->exported[value] : NULL;
}

static int64_t outside_of(const pl_onnx_abstract *value) {
  return value->outside > 0 ? value->outside : 1;
}

/* Whether the target follows from the operand's shape: then it has the samples already. */
static bool follows(const pl_onnx_op *op) {
  if (op->n_in < 2 || op->in[1] == NULL) return false;
  const double *then = exported(op, op->node->inputs[1])->numbers;
  return then == NULL || memcmp(then, op->in[1]->numbers, (size_t)pl_onnx_elements(op->in[1]) * sizeof *then) != 0;
}

bool pl_onnx_samples_reshaped(pl_onnx_op *op, int64_t *dims, int32_t *n) {
  const pl_onnx_abstract *in = op->in[0];
  if (op->own->exported == NULL || op->node->n_outputs == 0 || op->node->outputs[0] == PL_ONNX_NONE) return false;
  const pl_onnx_abstract *was = exported(op, op->node->inputs[0]), *made = exported(op, op->node->outputs[0]);
  int32_t at = with_samples(was, in), to = 0;
  if (follows(op) || at == in->rank || was->dims[at] == 0 || in->dims[at] % was->dims[at] != 0) return false;
  int64_t before = outside_of(in), outer = 1;
  for (int32_t i = 0; i < at; i++)
    before *= was->dims[i];
  while (to < made->rank && outer * made->dims[to] <= before && outer != before)
    outer *= made->dims[to++];
  if (to == made->rank || outer == 0 || before % outer != 0) return false;
  if (outer == before && to > 0 && to + 1 == made->rank && made->dims[to] > 1) outer /= made->dims[--to];
  if (made->dims[to] % (before / outer) != 0) return false;
  *n = made->rank;
  memcpy(dims, made->dims, (size_t)*n * sizeof *dims);
  dims[to] *= in->dims[at] / was->dims[at];
  op->out.outside = before / outer;
  return true;
}

void pl_onnx_samples_follow(pl_onnx_op *op) {
  if (op->own->exported == NULL || op->out.outside > 0 || op->node->n_outputs == 0) return;
  const pl_onnx_abstract *was = exported(op, op->node->outputs[0]);
  if (was == NULL || was->rank != op->out.rank) return;
  int32_t at = with_samples(was, &op->out);
  for (int32_t k = 0; at < op->out.rank && k < op->n_in; k++) {
    const pl_onnx_abstract *then = op->in[k] != NULL ? exported(op, op->node->inputs[k]) : NULL;
    int32_t of = then != NULL && then->rank == op->in[k]->rank ? with_samples(then, op->in[k]) : 0;
    if (then == NULL || op->in[k]->outside < 1 || of >= then->rank || then->dims[of] != was->dims[at]) continue;
    op->out.outside = op->in[k]->outside;
    return;
  }
}
