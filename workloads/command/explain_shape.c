/* See workloads/command/explain_shape.h. */
#include "workloads/command/explain_shape.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_matrix_product(const pl_op *op) {
  return op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION || op->kind == PL_OP_CONVOLUTION;
}

const char *pl_explain_format_shape(const pl_op *op, char text[PL_EXPLAIN_SHAPE_BYTES]) {
  if (op == NULL)
    snprintf(text, PL_EXPLAIN_SHAPE_BYTES, "-");
  else if (is_matrix_product(op))
    snprintf(text, PL_EXPLAIN_SHAPE_BYTES, "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64, op->batch, op->m, op->n,
             op->k);
  else
    snprintf(text, PL_EXPLAIN_SHAPE_BYTES, "%" PRId64 "x%" PRId64, op->m, op->n);
  return text;
}

void pl_explain_put_shape(pl_json *json, const pl_op *op) {
  pl_json_put_string(json, "dtype", pl_dtype_name((pl_dtype)op->dtype));
  if (is_matrix_product(op)) {
    pl_json_put_integer(json, "batch", op->batch);
    pl_json_put_integer(json, "m", op->m);
    pl_json_put_integer(json, "n", op->n);
    pl_json_put_integer(json, "k", op->k);
  } else {
    pl_json_put_integer(json, "rows", op->m);
    pl_json_put_integer(json, "width", op->n);
  }
}
