/* Rows of ops that tokens, their positions and their experts need. Values: ir_token.c. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_routing.h"
#include "workloads/language/ir_token.h"

/* ---- shapes ---- */

/* The written type of a result has dimension `over`, and else those of `rest`. */
static pl_code check_written(const pl_ir_op *op, pl_ir_type *written, const pl_ir_type *rest, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES];
  if (!pl_ir_element_is_number((pl_ir_element)written->element))
    return pl_fail(error, PL_BAD_INPUT, "result of %s is written as %s, which cannot be computed with",
                   pl_ir_op_name(op), pl_ir_element_name((pl_ir_element)written->element));
  pl_ir_name over = pl_ir_one_name_of(op, "over");
  if (pl_ir_type_find(written, over) < 0)
    return pl_fail(error, PL_BAD_INPUT, "over=%s of %s is no dimension of its result, which is %s", over.text,
                   pl_ir_op_name(op), pl_ir_shape_text(written, text));
  const pl_ir_type others = pl_ir_type_without_dim(written, over);
  PL_TRY(pl_ir_written_matches(op, rest, &others, error));
  *written = pl_ir_type_whole(written);
  return PL_OK;
}

/* Dimensions along which rows are added up (`sum`) are the ids' alone, and the one that they count along is the
 * table's.
 */
static pl_code check_ids(const pl_ir_op *op, const pl_ir_type *ids, const pl_ir_type *table, pl_error *error) {
  pl_ir_name over = pl_ir_one_name_of(op, "over");
  if (pl_ir_type_find(ids, over) >= 0)
    return pl_fail(error, PL_BAD_INPUT, "both operands of embedding have dimension %s: rename that of the ids",
                   over.text);
  if (pl_ir_attribute_find(op, "sum") == NULL) return PL_OK;
  PL_TRY(pl_ir_operand_has_names(op, ids, 0, "sum", error));
  for (int32_t i = 0; i < table->rank; i++)
    if (pl_ir_op_has_name(op, "sum", table->dims[i].name))
      return pl_fail(error, PL_BAD_INPUT, "sum=%s of %s: the table has it too, and only the ids' own are summed over",
                     table->dims[i].name.text, pl_ir_op_name(op));
  return PL_OK;
}

/* What is computed over: the dimensions of the result and those that are summed over. */
static pl_code check_rank(const pl_ir_op *op, const pl_ir_type *ids, const pl_ir_type *rows, pl_error *error) {
  int32_t rank = rows->rank + ids->rank - pl_ir_type_without(ids, op, "sum").rank;
  if (rank <= PL_IR_RANK_MAX) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s would go over %d dimensions, more than %d", pl_ir_op_name(op), rank,
                 PL_IR_RANK_MAX);
}

static pl_code infer_embedding(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_is_number(op, inputs, 1, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 1, "over", error));
  PL_TRY(check_ids(op, &inputs[0], &inputs[1], error));
  PL_TRY(pl_ir_operands_agree(op, inputs, error));
  const pl_ir_type row = pl_ir_type_without(&inputs[1], op, "over"), ids = pl_ir_type_without(&inputs[0], op, "sum");
  pl_ir_type out = pl_ir_type_of((pl_ir_element)row.element, ids.rank, ids.dims);
  for (int32_t i = 0; i < row.rank; i++) {
    if (pl_ir_type_find(&ids, row.dims[i].name) >= 0) continue; /* a table of its own for each */
    if (out.rank == PL_IR_RANK_MAX)
      return pl_fail(error, PL_BAD_INPUT, "result of embedding would have %d dimensions, more than %d",
                     ids.rank + row.rank, PL_IR_RANK_MAX);
    out.dims[out.rank++] = row.dims[i];
  }
  outputs[0] = out;
  return check_rank(op, &inputs[0], &out, error);
}

static pl_code infer_embedding_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                        pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_is_number(op, inputs, 1, error));
  PL_TRY(check_ids(op, &inputs[0], &outputs[0], error));
  PL_TRY(pl_ir_operands_agree(op, inputs, error));
  const pl_ir_type both[] = {pl_ir_type_without(&inputs[0], op, "sum"), inputs[1]};
  PL_TRY(pl_ir_operand_is_within(op, both, 0, 1, error));
  PL_TRY(check_rank(op, &inputs[0], &inputs[1], error));
  pl_ir_type rest = inputs[1];
  for (int32_t i = 0; i < both[0].rank; i++)
    if (pl_ir_type_find(&outputs[0], both[0].dims[i].name) < 0)
      rest = pl_ir_type_without_dim(&rest, both[0].dims[i].name);
  return check_written(op, &outputs[0], &rest, error);
}

static pl_code infer_pick(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 1, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  outputs[0] = pl_ir_type_without(&inputs[0], op, "over");
  bool has_over = pl_ir_type_find(&inputs[1], pl_ir_one_name_of(op, "over")) >= 0;
  if (inputs[1].rank == outputs[0].rank && !has_over) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand 2 of pick is %s; one id for each row of operand 1 is %s",
                 pl_ir_shape_text(&inputs[1], text), pl_ir_shape_text(&outputs[0], other));
}

static pl_code infer_place(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 1, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 0, 1, error));
  return check_written(op, &outputs[0], &inputs[0], error);
}

static pl_code infer_rotary(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_is_number(op, inputs, 0, error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 1, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  pl_ir_name over = pl_ir_one_name_of(op, "over");
  if (pl_ir_type_find(&inputs[1], over) >= 0)
    return pl_fail(error, PL_BAD_INPUT, "operand 2 of rotary has dimension %s, which is turned", over.text);
  double share = pl_ir_real_of(op, "share", 1), base = pl_ir_real_of(op, "base", 10000);
  if (!(share > 0 && share <= 1))
    return pl_fail(error, PL_BAD_INPUT, "share=%g of rotary: it is above 0 and at most 1", share);
  if (!(base > 0)) return pl_fail(error, PL_BAD_INPUT, "base=%g of rotary: it is above 0", base);
  int64_t extent = inputs[0].dims[pl_ir_type_find(&inputs[0], over)].extent, n = pl_ir_rotary_turned(op, extent);
  if (n % 2 != 0)
    return pl_fail(error, PL_BAD_INPUT, "rotary turns %" PRId64 " of %s=%" PRId64 " elements: they come in pairs", n,
                   over.text, extent);
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

static pl_code check_choice_of_groups(const pl_ir_op *op, int64_t k, int64_t of, pl_error *error) {
  int64_t groups = pl_ir_integer_of(op, "groups", 1), chosen = pl_ir_integer_of(op, "chosen_groups", 1);
  if (groups < 1 || of % groups != 0)
    return pl_fail(error, PL_BAD_INPUT, "groups=%" PRId64 " of %s: it divides %" PRId64, groups, pl_ir_op_name(op), of);
  if (chosen < 1 || chosen > groups || chosen * (of / groups) < k)
    return pl_fail(error, PL_BAD_INPUT,
                   "chosen_groups=%" PRId64 " of %s: it is at most groups=%" PRId64 ", and so many groups of %" PRId64
                   " hold k=%" PRId64,
                   chosen, pl_ir_op_name(op), groups, of / groups, k);
  int64_t best = pl_ir_integer_of(op, "best", 1);
  if (best < 1 || best > of / groups)
    return pl_fail(error, PL_BAD_INPUT, "best=%" PRId64 " of %s: it is from 1 to the %" PRId64 " of a group", best,
                   pl_ir_op_name(op), of / groups);
  return PL_OK;
}

/* `tokens`: a number for each expert. */
static pl_code check_tokens(const pl_ir_op *op, int64_t of, pl_error *error) {
  const char *text = pl_ir_text_of(op, "tokens");
  double sum = 0, tokens;
  int64_t n = 0;
  for (const char *at = text; *at != '\0'; n++) {
    const char *from = at;
    if (!pl_ir_loads_next(&at, &tokens) || !(tokens >= 0 && isfinite(tokens)))
      return pl_fail(error, PL_BAD_INPUT, "tokens of %s: '%.*s' is no number of tokens", pl_ir_op_name(op),
                     (int)strcspn(from, ","), from);
    sum += tokens;
  }
  if (n != of)
    return pl_fail(error, PL_BAD_INPUT, "tokens of %s has %" PRId64 " numbers: it is one for each of %" PRId64,
                   pl_ir_op_name(op), n, of);
  return sum > 0 ? PL_OK : pl_fail(error, PL_BAD_INPUT, "tokens of %s: no expert has any tokens", pl_ir_op_name(op));
}

/* How many rows there are: ir_routing.h. */
static pl_code check_rows(const pl_ir_op *op, int64_t of, pl_error *error) {
  double capacity = pl_ir_real_of(op, "capacity", 1), load = pl_ir_real_of(op, "load", 1);
  bool loaded = pl_ir_attribute_find(op, "load") != NULL, listed = pl_ir_attribute_find(op, "tokens") != NULL;
  if (!(capacity > 0 && capacity <= 1024))
    return pl_fail(error, PL_BAD_INPUT, "capacity=%g of %s: it is above 0, at most 1024", capacity, pl_ir_op_name(op));
  if (!(load >= 1 && load <= 1024))
    return pl_fail(error, PL_BAD_INPUT, "load=%g of %s: it is from 1 to 1024", load, pl_ir_op_name(op));
  if (loaded && listed)
    return pl_fail(error, PL_BAD_INPUT, "load and tokens of %s say the same: leave one of them out", pl_ir_op_name(op));
  if ((loaded || listed || pl_ir_attribute_find(op, "capacity") != NULL) && pl_ir_integer_of(op, "sparse", 0) == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s of %s: without sparse=1 all rows are there",
                   loaded   ? "load"
                   : listed ? "tokens"
                            : "capacity",
                   pl_ir_op_name(op));
  return listed ? check_tokens(op, of, error) : PL_OK;
}

static pl_code infer_top_k(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, 0, "over", error));
  for (int32_t i = 1; i < op->n_inputs; i++)
    PL_TRY(pl_ir_operands_match(op, inputs, 0, i, error));
  int32_t index = pl_ir_type_find(&inputs[0], pl_ir_one_name_of(op, "over"));
  int64_t k = pl_ir_integer_of(op, "k", 1), of = inputs[0].dims[index].extent;
  if (k < 1 || k > of)
    return pl_fail(error, PL_BAD_INPUT, "k=%" PRId64 " of %s: it is from 1 to %s=%" PRId64, k, pl_ir_op_name(op),
                   inputs[0].dims[index].name.text, of);
  PL_TRY(check_choice_of_groups(op, k, of, error));
  PL_TRY(check_rows(op, of, error));
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  return PL_OK;
}

/* ---- work ---- */

static double flops_of_first(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)op, (void)outputs;
  return pl_ir_type_elements(&inputs[1]);
}

/* Two products and a sum for each element that is turned. */
static double flops_rotary(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)outputs;
  return 3 * pl_ir_real_of(op, "share", 1) * pl_ir_type_elements(&inputs[0]);
}

/* ---- derivatives ---- */

/* What an op whose `values` is read or written at its `ids` does to the gradient of its result, dy: `row` takes both,
 * values first where the op has them first, and gives the gradient of the values, in their type where it is written. */
static pl_code derive_by_ids(pl_ir_differ *differ, const pl_ir_op *op, int32_t values, const char *row, bool typed) {
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, values)) return PL_OK;
  int32_t ids = pl_ir_differ_value(differ, op->inputs[1 - values]);
  const int32_t inputs[] = {values == 0 ? dy : ids, values == 0 ? ids : dy};
  const pl_ir_type *type = &differ->forward->values[op->inputs[values]].type;
  pl_ir_differ_give(differ, op, values,
                    typed ? pl_ir_op_typed(differ->module, differ->backward, row, "dvalues", NULL, 2, inputs, type,
                                           op->n_attributes, op->attributes)
                          : pl_ir_differ_op(differ, row, "dvalues", 2, inputs, op->n_attributes, op->attributes));
  return PL_OK;
}

static pl_code derive_embedding(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_by_ids(differ, op, 1, "embedding_backward", true);
}

static pl_code derive_embedding_backward(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_by_ids(differ, op, 1, "embedding", false);
}

static pl_code derive_pick(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_by_ids(differ, op, 0, "place", true);
}

static pl_code derive_place(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  return derive_by_ids(differ, op, 0, "pick", false);
}

static pl_code derive_rotary(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  pl_ir_attribute attributes[8];
  int32_t n = 0;
  for (int32_t i = 0; i < op->n_attributes; i++)
    if (!pl_ir_name_equal(op->attributes[i].name, pl_ir_name_of("inverse"))) attributes[n++] = op->attributes[i];
  attributes[n++] = pl_ir_integer("inverse", pl_ir_integer_of(op, "inverse", 0) == 0);
  const int32_t inputs[] = {dy, pl_ir_differ_value(differ, op->inputs[1])};
  pl_ir_differ_give(differ, op, 0, pl_ir_differ_op(differ, "rotary", "dx", 2, inputs, n, attributes));
  return PL_OK;
}

static pl_code derive_top_k(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  (void)error;
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy == PL_IR_NONE || !pl_ir_differ_wants(differ, op, 0)) return PL_OK;
  const int32_t inputs[] = {pl_ir_differ_value(differ, op->inputs[0]), pl_ir_differ_value(differ, op->first_output),
                            dy};
  pl_ir_differ_give(
      differ, op, 0,
      pl_ir_differ_op(differ, "top_k_backward", "dprobabilities", 3, inputs, op->n_attributes, op->attributes));
  return PL_OK;
}

/* ---- rows ---- */

#define OVER(text)                                                                                                     \
  { .name = "over", .kind = PL_IR_NAMES, .required = true, .meaning = text }
#define SUM                                                                                                            \
  { .name = "sum", .kind = PL_IR_NAMES, .meaning = "dimensions of the ids whose rows are added up" }
#define TOP_K                                                                                                          \
  {                                                                                                                    \
    OVER("the dimension to choose along"),                                                                             \
        {.name = "k", .kind = PL_IR_INTEGER, .required = true, .meaning = "how many are chosen"},                      \
        {.name = "normalise", .kind = PL_IR_INTEGER, .meaning = "1: the chosen add up to one"},                        \
        {.name = "sparse", .kind = PL_IR_INTEGER, .meaning = "1: kernels have the rows of the chosen alone"},          \
        {.name = "groups", .kind = PL_IR_INTEGER, .meaning = "of neighbours, some of which are chosen first; 1"},      \
        {.name = "chosen_groups", .kind = PL_IR_INTEGER, .meaning = "how many of them; 1"},                            \
        {.name = "best", .kind = PL_IR_INTEGER, .meaning = "of a group's largest the number that are its score; 1"},   \
        {.name = "capacity", .kind = PL_IR_REAL, .meaning = "sparse rows over those of an even choice; 1"},            \
        {.name = "load", .kind = PL_IR_REAL, .meaning = "sparse rows of the fullest device over the mean; 1"}, {       \
      .name = "tokens", .kind = PL_IR_TEXT, .meaning = "of each, for the fullest device to be found"                   \
    }                                                                                                                  \
  }

const pl_ir_row pl_ir_rows_token[] = {
    {.name = "embedding",
     .launches = PL_IR_LAUNCHES_LOOK_UP,
     .meaning = "rows of a table: y[..., h] = table[ids[...], h], summed over `sum`",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = {OVER("the table's dimension that ids count along"), SUM},
     .infer = infer_embedding,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_embedding,
     .derive = derive_embedding,
     .onnx = "Gather"},
    {.name = "embedding_backward",
     .launches = PL_IR_LAUNCHES_LOOK_UP,
     .meaning = "dtable[v, h] = sum of dy[..., h] where ids[...] = v",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .typed = true,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = {OVER("the table's dimension that ids count along"), SUM},
     .infer = infer_embedding_backward,
     .flops = flops_of_first,
     .compute = pl_ir_compute_embedding_backward,
     .derive = derive_embedding_backward},
    {.name = "pick",
     .meaning = "one element of each row: y[...] = a[..., ids[...]]",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .missing = PL_IR_MISSING_SUM,
     .linear = PL_IR_LINEAR_FIRST,
     .attributes = {OVER("the dimension that ids count along")},
     .infer = infer_pick,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_pick,
     .derive = derive_pick,
     .onnx = "GatherElements"},
    {.name = "place",
     .launches = PL_IR_LAUNCHES_LOSS,
     .meaning = "y[..., v] = da[...] where ids[...] = v, else 0",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .typed = true,
     .linear = PL_IR_LINEAR_FIRST,
     .attributes = {OVER("the new dimension, which ids count along")},
     .infer = infer_place,
     .flops = pl_ir_no_flops,
     .compute = pl_ir_compute_place,
     .derive = derive_place,
     .onnx = "ScatterElements"},
    {.name = "rotary",
     .meaning = "pairs (i, i + n/2) of n elements turned by position * base^(-2 i / n)",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_FIRST,
     .attributes = {OVER("the dimension whose elements are turned"),
                    {.name = "base", .kind = PL_IR_REAL, .meaning = "of the frequencies; 10000"},
                    {.name = "share", .kind = PL_IR_REAL, .meaning = "of the elements, from the first on; 1"},
                    {.name = "inverse", .kind = PL_IR_INTEGER, .meaning = "1: turned back"}},
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_rotary,
     .flops = flops_rotary,
     .compute = pl_ir_compute_rotary,
     .derive = derive_rotary,
     .onnx = "RotaryEmbedding"},
    {.name = "top_k",
     .meaning = "the k largest of each row (of equal ones the first), zero elsewhere",
     .least_inputs = 1,
     .most_inputs = 1,
     .n_outputs = 1,
     .attributes = TOP_K,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_top_k,
     .compute = pl_ir_compute_top_k,
     .derive = derive_top_k,
     .onnx = "TopK"},
    {.name = "top_k_backward",
     .meaning = "of probabilities, weights, dweights: dp = dw, or (dw - sum of w dw) / sum of p, of the chosen",
     .least_inputs = 3,
     .most_inputs = 3,
     .n_outputs = 1,
     .linear = PL_IR_LINEAR_LAST,
     .attributes = TOP_K,
     .opaque = pl_ir_over_is_opaque,
     .infer = infer_top_k,
     .compute = pl_ir_compute_top_k_backward},
    {.name = NULL},
};
_Static_assert(sizeof pl_ir_rows_token / sizeof pl_ir_rows_token[0] == PL_IR_N_ROWS_TOKEN + 1, "as ir_table.h counts");
