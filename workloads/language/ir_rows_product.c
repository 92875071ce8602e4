/* The product of named dimensions: every matrix product, batched or not. Its values come from OpenBLAS
 * (workloads/blas). */
#include <limits.h>

#include "core/system/library.h"
#include "workloads/blas/blas.h"
#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_product.h"

/* *element: what `attribute` says, unchanged where it is not there. */
static pl_code said_element(const pl_ir_op *op, const char *attribute, uint8_t *element, pl_error *error) {
  pl_ir_element said;
  if (pl_ir_attribute_find(op, attribute) == NULL) return PL_OK;
  if (!pl_ir_element_of(pl_ir_text_of(op, attribute), &said) || !pl_ir_element_is_number(said))
    return pl_fail(error, PL_BAD_INPUT,
                   "%s=\"%.32s\" of product is no type to compute in: fp32, tf32, fp16, bf16, fp8, fp4", attribute,
                   pl_ir_text_of(op, attribute));
  *element = (uint8_t)said;
  return PL_OK;
}

/* Products in 8 and 4 bits scale their operands on the way (workloads/fuse/kernel_narrow.h); what they give does not
 * follow from these. */
static pl_code check_narrow(const pl_ir_op *op, uint8_t in, pl_error *error) {
  if (pl_ir_attribute_find(op, PL_IR_PRODUCT_NARROW) == NULL) return PL_OK;
  if (!pl_ir_element_is_narrow(in))
    return pl_fail(error, PL_BAD_INPUT, "narrow=\"%s\" of product: fp8 or fp4; for another type cast its operands",
                   pl_ir_text_of(op, PL_IR_PRODUCT_NARROW));
  if (pl_ir_attribute_find(op, PL_IR_PRODUCT_AS) != NULL) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "narrow=\"%s\" of product without as=\"...\", the type of its result",
                 pl_ir_text_of(op, PL_IR_PRODUCT_NARROW));
}

/* Both are of one type; or one may be in the type that they are multiplied in already, and so may both. */
static pl_code check_elements(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error) {
  uint8_t in = inputs[0].element, as = PL_IR_ELEMENT_COUNT;
  PL_TRY(said_element(op, PL_IR_PRODUCT_NARROW, &in, error));
  PL_TRY(said_element(op, PL_IR_PRODUCT_AS, &as, error));
  PL_TRY(check_narrow(op, in, error));
  for (int32_t k = 0; k < 2; k++)
    PL_TRY(pl_ir_operand_is_number(op, inputs, k, error));
  bool mixed =
      pl_ir_attribute_find(op, PL_IR_PRODUCT_NARROW) != NULL && (inputs[0].element == in || inputs[1].element == in);
  return mixed ? PL_OK : pl_ir_operands_are_numbers(op, inputs, error);
}

/* Dimensions of a that are not summed over, then those of b that a lacks; `order` puts them otherwise. */
static pl_code product_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(check_elements(op, inputs, error));
  PL_TRY(pl_ir_operands_agree(op, inputs, error));
  for (int32_t k = 0; k < 2; k++)
    PL_TRY(pl_ir_operand_has_names(op, inputs, k, "over", error));
  pl_ir_type made = pl_ir_type_without(&inputs[0], op, "over");
  PL_TRY(said_element(op, PL_IR_PRODUCT_AS, &made.element, error));
  for (int32_t i = 0; i < inputs[1].rank; i++) {
    if (pl_ir_type_find(&inputs[0], inputs[1].dims[i].name) >= 0) continue;
    if (made.rank == PL_IR_RANK_MAX)
      return pl_fail(error, PL_BAD_INPUT, "result of product would have more than %d dimensions", PL_IR_RANK_MAX);
    made.dims[made.rank++] = inputs[1].dims[i];
  }
  outputs[0] = made;
  const pl_ir_attribute *order = pl_ir_attribute_find(op, "order");
  if (order == NULL) return PL_OK;
  char text[PL_IR_SHAPE_TEXT_BYTES];
  pl_ir_type ordered = pl_ir_type_of((pl_ir_element)made.element, 0, NULL);
  for (int32_t i = 0; i < order->n_names; i++) {
    int32_t at = pl_ir_type_find(&made, order->names[i]);
    if (at < 0 || pl_ir_type_find(&ordered, order->names[i]) >= 0)
      return pl_fail(error, PL_BAD_INPUT, "order of product names %s %s: the result has %s", order->names[i].text,
                     at < 0 ? "wrongly" : "twice", pl_ir_shape_text(&made, text));
    ordered.dims[ordered.rank++] = made.dims[at];
  }
  if (ordered.rank != made.rank)
    return pl_fail(error, PL_BAD_INPUT, "order of product names %d of the dimensions of the result, %s", ordered.rank,
                   pl_ir_shape_text(&made, text));
  outputs[0] = ordered;
  return PL_OK;
}

/* A multiplication and an addition for each pair. */
static double product_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  double flops = 2 * pl_ir_type_elements(&outputs[0]);
  for (int32_t i = 0; i < inputs[0].rank; i++)
    if (pl_ir_op_has_name(op, "over", inputs[0].dims[i].name)) flops *= (double)inputs[0].dims[i].extent;
  return flops;
}

/* ---- values ---- */

/* a [batch, rows, depth] times b [batch, depth, columns]. */
typedef struct pl_ir_matrices {
  int64_t batch, rows, depth, columns;
  pl_ir_tensor a, b, c; /* orders of dimensions; c: of the result */
} pl_ir_matrices;

static pl_ir_matrices matrices_of(const pl_ir_op *op, const pl_ir_tensor *a, const pl_ir_tensor *b) {
  pl_ir_matrices m = {.batch = 1, .rows = 1, .depth = 1, .columns = 1};
  m.a = m.b = m.c = pl_ir_order_empty();
  for (int32_t i = 0; i < a->type.rank; i++) {
    pl_ir_name dim = a->type.dims[i].name;
    if (pl_ir_type_find(&b->type, dim) < 0 || pl_ir_op_has_name(op, "over", dim)) continue;
    m.batch *= a->extent[i];
    pl_ir_order_push(&m.a, a, i);
    pl_ir_order_push(&m.b, a, i);
    pl_ir_order_push(&m.c, a, i);
  }
  for (int32_t i = 0; i < a->type.rank; i++) {
    if (pl_ir_type_find(&b->type, a->type.dims[i].name) >= 0) continue;
    m.rows *= a->extent[i];
    pl_ir_order_push(&m.a, a, i);
    pl_ir_order_push(&m.c, a, i);
  }
  m.depth = pl_ir_order_push_named(&m.a, a, op, "over", true);
  (void)pl_ir_order_push_named(&m.b, a, op, "over", true);
  for (int32_t i = 0; i < b->type.rank; i++) {
    if (pl_ir_type_find(&a->type, b->type.dims[i].name) >= 0) continue;
    m.columns *= b->extent[i];
    pl_ir_order_push(&m.b, b, i);
    pl_ir_order_push(&m.c, b, i);
  }
  return m;
}

static pl_code find_blas(const char *name, void *function, pl_error *error) {
  char reason[PL_ERROR_MESSAGE_BYTES];
  if (pl_library_find(PL_BLAS_LIBRARY, name, function, reason, sizeof reason)) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "OpenBLAS cannot be used: %s", reason);
}

static pl_code multiply_double(const pl_ir_matrices *m, const double *a, const double *b, double *c, pl_error *error) {
  __typeof__(&pl_blas_multiply_double) multiply;
  int rows = (int)m->rows, columns = (int)m->columns, depth = (int)m->depth;
  PL_TRY(find_blas("pl_blas_multiply_double", &multiply, error));
  for (int64_t i = 0; i < m->batch; i++)
    multiply(rows, depth, columns, a + i * m->rows * m->depth, b + i * m->depth * m->columns,
             c + i * m->rows * m->columns);
  return PL_OK;
}

static const float *as_single(pl_arena *scratch, const double *from, int64_t n) {
  float *to = PL_TAKE(scratch, float, n);
  for (int64_t i = 0; to != NULL && i < n; i++)
    to[i] = (float)from[i];
  return to;
}

static pl_code multiply_single(pl_arena *scratch, const pl_ir_matrices *m, const double *a, const double *b, double *c,
                               pl_error *error) {
  __typeof__(&pl_blas_multiply_single) multiply;
  int rows = (int)m->rows, columns = (int)m->columns, depth = (int)m->depth;
  const float *a_single = as_single(scratch, a, m->a.n), *b_single = as_single(scratch, b, m->b.n);
  float *part = PL_TAKE(scratch, float, m->rows * m->columns);
  if (a_single == NULL || b_single == NULL || part == NULL) return pl_fail_memory(error, "a product");
  PL_TRY(find_blas("pl_blas_multiply_single", &multiply, error));
  for (int64_t i = 0; i < m->batch; i++) {
    multiply(rows, depth, columns, a_single + i * m->rows * m->depth, b_single + i * m->depth * m->columns, part);
    for (int64_t k = 0; k < m->rows * m->columns; k++)
      *c++ = part[k];
  }
  return PL_OK;
}

static pl_code product_compute(const pl_ir_computing *computing, pl_error *error) {
  pl_arena *scratch = computing->scratch;
  pl_ir_matrices m = matrices_of(computing->op, &computing->inputs[0], &computing->inputs[1]);
  PL_ASSERT(m.rows <= INT_MAX && m.depth <= INT_MAX && m.columns <= INT_MAX);
  const double *a = pl_ir_arranged(scratch, &computing->inputs[0], &m.a);
  const double *b = pl_ir_arranged(scratch, &computing->inputs[1], &m.b);
  m.c.data = PL_TAKE(scratch, double, m.c.n);
  if (a == NULL || b == NULL || m.c.data == NULL) return pl_fail_memory(error, "a product");
  PL_TRY(computing->single ? multiply_single(scratch, &m, a, b, m.c.data, error)
                           : multiply_double(&m, a, b, m.c.data, error));
  pl_ir_arrange(&m.c, &computing->outputs[0], computing->outputs[0].data);
  return PL_OK;
}

/* ---- derivative ---- */

static void push_others(pl_ir_name *names, int32_t *n, const pl_ir_type *of, const pl_ir_type *lacking) {
  for (int32_t i = 0; i < of->rank; i++)
    if (pl_ir_type_find(lacking, of->dims[i].name) < 0) names[(*n)++] = of->dims[i].name;
}

/* What the product of `first` and `second` over `over` has, as product_infer puts it. */
static pl_ir_type natural_order(const pl_ir_type *first, const pl_ir_type *second, int32_t n_over,
                                const pl_ir_name *over) {
  const pl_ir_attribute attributes[] = {pl_ir_names("over", n_over, over)};
  const pl_ir_op op = {.row = (uint16_t)pl_ir_row_of("product"),
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .n_attributes = 1,
                       .attributes = attributes};
  const pl_ir_type inputs[] = {*first, *second};
  pl_ir_type made;
  PL_ASSERT(product_infer(&op, inputs, &made, NULL) == PL_OK);
  return made;
}

/* The gradient of operand k: the product of dc and the other operand over what only that has, in the order of k's own
 * dimensions. */
static int32_t gradient_of(pl_ir_differ *differ, const pl_ir_op *op, int32_t k) {
  const pl_ir_value *values = differ->forward->values;
  const pl_ir_type *own = &values[op->inputs[k]].type, *other = &values[op->inputs[1 - k]].type;
  const pl_ir_type *result = &values[op->first_output].type;
  pl_ir_name over[PL_IR_RANK_MAX], order[PL_IR_RANK_MAX];
  int32_t n_over = 0, n_attributes = 0;
  push_others(over, &n_over, other, own);
  for (int32_t i = 0; i < own->rank; i++)
    order[i] = own->dims[i].name;
  const pl_ir_attribute *narrow = pl_ir_attribute_find(op, PL_IR_PRODUCT_NARROW);
  int32_t dc = pl_ir_differ_gradient(differ, op, 0), factor = pl_ir_differ_value(differ, op->inputs[1 - k]);
  const int32_t factors[] = {k == 0 ? dc : factor, k == 0 ? factor : dc};
  pl_ir_type natural = k == 0 ? natural_order(result, other, n_over, over) : natural_order(other, result, n_over, over);
  pl_ir_attribute attributes[4];
  if (n_over > 0) attributes[n_attributes++] = pl_ir_names("over", n_over, over);
  if (!pl_ir_type_same_shape(&natural, own)) attributes[n_attributes++] = pl_ir_names("order", own->rank, order);
  if (narrow != NULL) {
    attributes[n_attributes++] = *narrow;
    attributes[n_attributes++] = pl_ir_text(PL_IR_PRODUCT_AS, pl_ir_element_name((pl_ir_element)own->element));
  }
  return pl_ir_differ_op(differ, "product", k == 0 ? "da" : "db", 2, factors, n_attributes, attributes);
}

static pl_code product_derive(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  for (int32_t k = 0; k < 2; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, gradient_of(differ, op, k));
  return PL_OK;
}

const pl_ir_row pl_ir_rows_product[] = {
    {.name = "product",
     .meaning = "sum over the dimensions `over` of a times b; the others that both have are matched, all others stay",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_EACH,
     .attributes = {{"over", PL_IR_NAMES, false, "dimensions of both that are summed over; without it none"},
                    {"order", PL_IR_NAMES, false, "dimensions of the result; without it those of a, then b's own"},
                    {PL_IR_PRODUCT_NARROW, PL_IR_TEXT, false,
                     "type that both are multiplied in: \"fp8\", \"fp4\"; an operand in a wider one has a copy in it"},
                    {PL_IR_PRODUCT_AS, PL_IR_TEXT, false, "type of the result; without it that of a"}},
     .infer = product_infer,
     .flops = product_flops,
     .compute = product_compute,
     .derive = product_derive,
     .onnx = "Gemm MatMul Einsum"},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_product / sizeof pl_ir_rows_product[0] == PL_IR_N_ROWS_PRODUCT + 1,
               "as ir_table.h counts");
