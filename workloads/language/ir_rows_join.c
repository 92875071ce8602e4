/* Rows of ops that put values together, and one dimension as several. Values: ir_join.c. */
#include <inttypes.h>

#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_join.h"
#include "workloads/language/ir_operands.h"

/* ---- shapes ---- */

static pl_code infer_concatenate(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  pl_ir_name over = pl_ir_one_name_of(op, "over");
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  int64_t *extent = &outputs[0].dims[pl_ir_type_find(&inputs[0], over)].extent;
  for (int32_t k = 1; k < op->n_inputs; k++) {
    PL_TRY(pl_ir_operand_has_names(op, inputs, k, "over", error));
    const pl_ir_type rests[] = {pl_ir_type_without(&inputs[0], op, "over"), pl_ir_type_without(&inputs[k], op, "over")};
    char first[PL_IR_SHAPE_TEXT_BYTES], text[PL_IR_SHAPE_TEXT_BYTES];
    if (pl_ir_written_matches(op, &rests[0], &rests[1], NULL) != PL_OK)
      return pl_fail(error, PL_BAD_INPUT, "operand %d of concatenate is %s: but for %s it is to be like operand 1, %s",
                     k + 1, pl_ir_shape_text(&inputs[k], text), over.text, pl_ir_shape_text(&inputs[0], first));
    *extent += inputs[k].dims[pl_ir_type_find(&inputs[k], over)].extent;
    if (*extent > PL_IR_EXTENT_MAX)
      return pl_fail(error, PL_BAD_INPUT, "concatenate makes dimension %s too large to count", over.text);
  }
  return PL_OK;
}

/* `apart` has the dimensions that `many` names where `joined` has `one`; extents multiply to that one's. */
static pl_code check_parts(const pl_ir_op *op, const pl_ir_type *joined, const char *one, const pl_ir_type *apart,
                           const char *many, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  const pl_ir_type rests[] = {pl_ir_type_without(joined, op, one), pl_ir_type_without(apart, op, many)};
  const pl_ir_attribute *names = pl_ir_attribute_find(op, many);
  double product = 1;
  bool fits = pl_ir_written_matches(op, &rests[0], &rests[1], NULL) == PL_OK && joined->element == apart->element;
  for (int32_t i = 0; fits && i < names->n_names; i++) {
    int32_t at = pl_ir_type_find(apart, names->names[i]);
    fits = at >= 0;
    if (fits) product *= (double)apart->dims[at].extent;
  }
  double whole = (double)joined->dims[pl_ir_type_find(joined, pl_ir_one_name_of(op, one))].extent;
  if (fits && apart->rank == rests[1].rank + names->n_names && product == whole) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s of %s and %s: %s, and nothing else, is made of the dimensions `%s` names",
                 pl_ir_op_name(op), pl_ir_shape_text(joined, text), pl_ir_shape_text(apart, other),
                 pl_ir_one_name_of(op, one).text, many);
}

static pl_code infer_split(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "from", error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "from", error));
  PL_TRY(check_parts(op, &inputs[0], "from", &outputs[0], "to", error));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  return PL_OK;
}

/* The joined dimension stands where the outermost of its parts stood. */
static pl_code infer_join(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "to", error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "from", error));
  pl_ir_name outermost = pl_ir_attribute_find(op, "from")->names[0], to = pl_ir_one_name_of(op, "to");
  pl_ir_type joined = pl_ir_type_of((pl_ir_element)inputs[0].element, 0, NULL);
  int64_t product = 1;
  int32_t at = 0;
  for (int32_t i = 0; i < inputs[0].rank; i++) {
    const pl_ir_dim *dim = &inputs[0].dims[i];
    bool is_part = pl_ir_op_has_name(op, "from", dim->name);
    if (is_part && (__builtin_mul_overflow(product, dim->extent, &product) || product > PL_IR_EXTENT_MAX))
      return pl_fail(error, PL_BAD_INPUT, "join makes dimension %s too large to count", to.text);
    if (pl_ir_name_equal(dim->name, outermost)) at = joined.rank;
    if (!is_part && pl_ir_name_equal(dim->name, to))
      return pl_fail(error, PL_BAD_INPUT, "operand 1 of join has a dimension %s already", to.text);
    if (!is_part || pl_ir_name_equal(dim->name, outermost)) joined.dims[joined.rank++] = *dim;
  }
  joined.dims[at] = (pl_ir_dim){.name = to, .extent = product};
  outputs[0] = joined;
  return PL_OK;
}

/* Elements below the diagonal of n x n, or up to it. */
static int64_t below_diagonal(const pl_ir_op *op, int64_t n) {
  return pl_ir_integer_of(op, "itself", 0) != 0 ? n * (n + 1) / 2 : n * (n - 1) / 2;
}

/* `square` with one dimension in place of the rows and columns that `from` names. */
static pl_code triangle_of(const pl_ir_op *op, const pl_ir_type *square, pl_ir_type *triangle, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  const pl_ir_attribute *from = pl_ir_attribute_find(op, "from");
  PL_TRY(pl_ir_op_has_one_name(op, "to", error));
  PL_TRY(pl_ir_operand_has_names(op, square, 0, "from", error));
  int32_t rows = pl_ir_type_find(square, from->names[0]);
  int32_t columns = from->n_names == 2 ? pl_ir_type_find(square, from->names[1]) : -1;
  int64_t extent = square->dims[rows].extent;
  if (columns < 0 || square->dims[columns].extent != extent || below_diagonal(op, extent) < 1)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s: `from` names two dimensions, of one extent and with elements below",
                   pl_ir_op_name(op), pl_ir_shape_text(square, text));
  *triangle = pl_ir_type_without_dim(square, from->names[1]);
  int32_t at = pl_ir_type_find(triangle, from->names[0]);
  triangle->dims[at] = (pl_ir_dim){.name = pl_ir_one_name_of(op, "to"), .extent = below_diagonal(op, extent)};
  for (int32_t i = 0; i < triangle->rank; i++)
    if (i != at && pl_ir_name_equal(triangle->dims[i].name, triangle->dims[at].name))
      return pl_fail(error, PL_BAD_INPUT, "operand 1 of %s has a dimension %s already", pl_ir_op_name(op),
                     triangle->dims[at].name.text);
  return PL_OK;
}

static pl_code infer_triangle(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  return triangle_of(op, &inputs[0], &outputs[0], error);
}

static pl_code infer_triangle_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                       pl_error *error) {
  pl_ir_type triangle;
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  outputs[0] = pl_ir_type_whole(&outputs[0]);
  PL_TRY(triangle_of(op, &outputs[0], &triangle, error));
  return pl_ir_written_matches(op, &triangle, &inputs[0], error);
}

/* Of the piece that a result of deal or an operand of interleave is: extents divide by how many there are. */
static pl_code infer_deal(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  pl_ir_type dealt = pl_ir_type_whole(&inputs[0]);
  pl_ir_dim *over = &dealt.dims[pl_ir_type_find(&dealt, pl_ir_one_name_of(op, "over"))];
  if (op->n_outputs == 0 || over->extent % op->n_outputs != 0)
    return pl_fail(error, PL_BAD_INPUT, "deal has %d results, which do not divide %s=%" PRId64, op->n_outputs,
                   over->name.text, over->extent);
  over->extent /= op->n_outputs;
  for (int32_t i = 0; i < op->n_outputs; i++)
    outputs[i] = dealt;
  return PL_OK;
}

static pl_code infer_interleave(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  for (int32_t k = 0; k < op->n_inputs; k++) {
    char first[PL_IR_SHAPE_TEXT_BYTES], text[PL_IR_SHAPE_TEXT_BYTES];
    PL_TRY(pl_ir_operand_has_names(op, inputs, k, "over", error));
    const pl_ir_type is = pl_ir_type_whole(&inputs[k]), should = pl_ir_type_whole(&inputs[0]);
    if (pl_ir_written_matches(op, &should, &is, NULL) != PL_OK || is.element != should.element)
      return pl_fail(error, PL_BAD_INPUT, "operand %d of interleave is %s: it is to be like operand 1, %s", k + 1,
                     pl_ir_shape_text(&inputs[k], text), pl_ir_shape_text(&inputs[0], first));
  }
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  int64_t *extent = &outputs[0].dims[pl_ir_type_find(&inputs[0], pl_ir_one_name_of(op, "over"))].extent;
  if (*extent <= PL_IR_EXTENT_MAX / op->n_inputs) {
    *extent *= op->n_inputs;
    return PL_OK;
  }
  return pl_fail(error, PL_BAD_INPUT, "interleave makes dimension %s too large to count",
                 pl_ir_one_name_of(op, "over").text);
}

/* ---- layouts ---- */

/* Parts of the outermost dimension are parts of the joined one; of the inner ones they are not. */
static bool is_inner(const pl_ir_op *op, const char *attribute, pl_ir_name dim) {
  const pl_ir_attribute *names = pl_ir_attribute_find(op, attribute);
  for (int32_t i = 1; i < names->n_names; i++)
    if (pl_ir_name_equal(names->names[i], dim)) return true;
  return false;
}

static bool split_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  return is_inner(op, "to", dim) && !pl_ir_op_has_name(op, "from", dim);
}

static bool join_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  return is_inner(op, "from", dim);
}

static bool triangle_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  (void)inputs;
  return pl_ir_op_has_name(op, "from", dim) || pl_ir_op_has_name(op, "to", dim);
}

/* Of split and join: what the outputs call the one, or the outermost of the many. */
static pl_ir_name called(const pl_ir_op *op, pl_ir_name dim) {
  if (!pl_ir_name_equal(pl_ir_attribute_find(op, "from")->names[0], dim)) return dim;
  return pl_ir_attribute_find(op, "to")->names[0];
}

/* ---- derivatives ---- */

static pl_code derive_concatenate(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE) return PL_OK;
  pl_ir_name over = pl_ir_one_name_of(op, "over");
  int64_t first = 0;
  for (int32_t k = 0; k < op->n_inputs; k++) {
    const pl_ir_type *own = &differ->forward->values[op->inputs[k]].type;
    pl_ir_type part = differ->backward->values[dy].type; /* in the order of dy */
    int64_t extent = own->dims[pl_ir_type_find(own, over)].extent;
    part.dims[pl_ir_type_find(&part, over)].extent = extent;
    const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_integer("first", first)};
    if (pl_ir_differ_wants(differ, op, k))
      pl_ir_differ_give(
          differ, op, k,
          pl_ir_op_typed(differ->module, differ->backward, "part", "da", NULL, 1, &dy, &part, 2, attributes));
    first += extent;
  }
  return PL_OK;
}

/* Pieces that nothing depends on have a gradient of zero. */
static pl_code derive_deal(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t gradients[PL_IR_OPERANDS_MAX];
  const pl_ir_attribute zero = pl_ir_real("value", 0);
  if (!pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  for (int32_t k = 0; k < op->n_outputs; k++) {
    gradients[k] = pl_ir_differ_gradient(differ, op, k);
    if (gradients[k] != PL_IR_NONE) continue;
    const pl_ir_type *type = &differ->forward->values[op->first_output + k].type;
    gradients[k] = pl_ir_op_typed(differ->module, differ->backward, "constant", "zero", NULL, 0, NULL, type, 1, &zero);
    if (gradients[k] == PL_IR_NONE) return PL_OK; /* no memory: the caller looks */
  }
  pl_ir_differ_give(
      differ, op, 0,
      pl_ir_differ_op(differ, "interleave", "da", op->n_outputs, gradients, op->n_attributes, op->attributes));
  return PL_OK;
}

static pl_code derive_interleave(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  if (dy == PL_IR_NONE) return PL_OK;
  for (int32_t k = 0; k < op->n_inputs; k++) {
    names[k] = "da";
    types[k] = differ->backward->values[dy].type; /* in the order of dy */
    types[k].dims[pl_ir_type_find(&types[k], pl_ir_one_name_of(op, "over"))].extent /= op->n_inputs;
  }
  int32_t first = pl_ir_op_add(differ->module, differ->backward,
                               &(pl_ir_making){.row = pl_ir_row_of("deal"),
                                               .n_inputs = 1,
                                               .n_outputs = op->n_inputs,
                                               .n_attributes = op->n_attributes,
                                               .inputs = &dy,
                                               .attributes = op->attributes,
                                               .output_names = names,
                                               .output_types = types,
                                               .callee = PL_IR_NONE});
  for (int32_t k = 0; first != PL_IR_NONE && k < op->n_inputs; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, first + k);
  return PL_OK;
}

/* `from` and `to` of the other op of the two. */
static void turned(const pl_ir_op *op, pl_ir_attribute attributes[2]) {
  const pl_ir_attribute *from = pl_ir_attribute_find(op, "from"), *to = pl_ir_attribute_find(op, "to");
  attributes[0] = pl_ir_names("from", to->n_names, to->names);
  attributes[1] = pl_ir_names("to", from->n_names, from->names);
}

static pl_code derive_split(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  pl_ir_attribute attributes[2];
  turned(op, attributes);
  pl_ir_differ_give(differ, op, 0, pl_ir_differ_op(differ, "join", "da", 1, &dy, 2, attributes));
  return PL_OK;
}

static pl_code derive_join(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  pl_ir_attribute attributes[2];
  turned(op, attributes);
  const pl_ir_type *type = &differ->forward->values[op->inputs[0]].type;
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_op_typed(differ->module, differ->backward, "split", "da", NULL, 1, &dy, type, 2, attributes));
  return PL_OK;
}

static pl_code derive_triangle(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const pl_ir_type *type = &differ->forward->values[op->inputs[0]].type;
  pl_ir_differ_give(differ, op, 0,
                    pl_ir_op_typed(differ->module, differ->backward, "triangle_backward", "da", NULL, 1, &dy, type,
                                   op->n_attributes, op->attributes));
  return PL_OK;
}

static pl_code derive_triangle_backward(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  pl_ir_differ_give(differ, op, 0, pl_ir_differ_op(differ, "triangle", "da", 1, &dy, op->n_attributes, op->attributes));
  return PL_OK;
}

/* ---- rows ---- */

#define NAMES(attribute, text)                                                                                         \
  { .name = attribute, .kind = PL_IR_NAMES, .required = true, .meaning = text }
#define MOVES .least_inputs = 1, .most_inputs = 1, .n_outputs = 1, .linear = PL_IR_LINEAR_JOINT, .flops = pl_ir_no_flops
#define TRIANGLE                                                                                                       \
  .attributes = {NAMES("from", "rows and columns of the square"),                                                      \
                 NAMES("to", "what they become"),                                                                      \
                 {.name = "itself", .kind = PL_IR_INTEGER, .meaning = "1: the diagonal too"}},                         \
  .opaque = triangle_opaque

const pl_ir_row pl_ir_rows_join[] = {
    {.name = "concatenate",
     .meaning = "operands one behind the other along `over`",
     .least_inputs = 1,
     .most_inputs = -1,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {NAMES("over", "the dimension whose extents add up")},
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_concatenate,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_concatenate,
     .derive = derive_concatenate,
     .onnx = "Concat"},
    {.name = "deal",
     .meaning = "elements of `over` in turn to the n results: result i has those at i, i + n ...",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = -1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {NAMES("over", "the dimension that is dealt out")},
     .infer = infer_deal,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_deal,
     .derive = derive_deal},
    {.name = "interleave",
     .meaning = "elements of `over` of the n operands in turn: what deal gave, whole again",
     .least_inputs = 1,
     .most_inputs = -1,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_JOINT,
     .attributes = {NAMES("over", "the dimension along which they take turns")},
     .infer = infer_interleave,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_interleave,
     .derive = derive_interleave},
    {.name = "split",
     .meaning = "dimension `from` as the dimensions `to`, outermost first, in the written type",
     MOVES,
     .typed = true,
     .attributes = {NAMES("from", "the dimension of a"), NAMES("to", "what it becomes")},
     .called = called,
     .opaque = split_opaque,
     .infer = infer_split,
     .compute = pl_ir_compute_split,
     .derive = derive_split,
     .onnx = "Reshape"},
    {.name = "join",
     .meaning = "dimensions `from`, outermost first, as the one dimension `to`",
     MOVES,
     .attributes = {NAMES("from", "dimensions of a"), NAMES("to", "what they become")},
     .called = called,
     .opaque = join_opaque,
     .infer = infer_join,
     .compute = pl_ir_compute_join,
     .derive = derive_join,
     .onnx = "Reshape Flatten"},
    {.name = "triangle",
     .meaning = "elements of the square a[..., i, k] with k < i, row by row, as dimension `to`",
     MOVES,
     TRIANGLE,
     .infer = infer_triangle,
     .compute = pl_ir_compute_triangle,
     .derive = derive_triangle},
    {.name = "triangle_backward",
     .meaning = "a square of zeros but for the elements that triangle takes",
     MOVES,
     .typed = true,
     TRIANGLE,
     .infer = infer_triangle_backward,
     .compute = pl_ir_compute_triangle,
     .derive = derive_triangle_backward},
    {.name = NULL},
};
_Static_assert(sizeof pl_ir_rows_join / sizeof pl_ir_rows_join[0] == PL_IR_N_ROWS_JOIN + 1, "as ir_table.h counts");
