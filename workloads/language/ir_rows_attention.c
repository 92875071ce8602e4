/* Rows of attention. Equations: ir_attention.h; values: ir_attention.c. */
#include <inttypes.h>

#include "workloads/language/ir_attention.h"
#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_layout.h"
#include "workloads/language/ir_operands.h"

/* ---- shapes ---- */

int32_t pl_ir_attention_n_before(const pl_ir_op *op) {
  /* attention: q k v [positions positions]; backward also y, log-sum-exp, dy [dlog-sum-exp] */
  return op->n_inputs == 3 || op->n_inputs == 6 || op->n_inputs == 7 ? 3 : 5;
}

/* The only dimension that some operands have and others lack. */
static pl_code only_dim(const pl_ir_op *op, const pl_ir_type *inputs, int32_t in, int32_t also, int32_t lacks,
                        pl_ir_dim *dim, pl_error *error) {
  int32_t n = 0;
  for (int32_t i = 0; i < inputs[in].rank; i++) {
    pl_ir_name name = inputs[in].dims[i].name;
    bool is = pl_ir_type_find(&inputs[also], name) >= 0 && pl_ir_type_find(&inputs[lacks], name) < 0;
    if (is) *dim = inputs[in].dims[i];
    n += is;
  }
  if (n == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operands %d and %d of %s share %d dimensions that operand %d lacks; it is one",
                 in + 1, also + 1, pl_ir_op_name(op), n, lacks + 1);
}

static pl_code find_value_dim(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_dim *e, pl_error *error) {
  int32_t n = 0;
  for (int32_t i = 0; i < inputs[2].rank; i++) {
    bool is = pl_ir_type_find(&inputs[0], inputs[2].dims[i].name) < 0 &&
              pl_ir_type_find(&inputs[1], inputs[2].dims[i].name) < 0;
    if (is) *e = inputs[2].dims[i];
    n += is;
  }
  if (n == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand 3 of %s has %d dimensions of its own; it is one", pl_ir_op_name(op), n);
}

/* Extents of what two operands share are the same. */
static pl_code check_shared(const pl_ir_op *op, const pl_ir_type *inputs, int32_t a, int32_t b, pl_error *error) {
  for (int32_t i = 0; i < inputs[a].rank; i++) {
    int32_t k = pl_ir_type_find(&inputs[b], inputs[a].dims[i].name);
    if (k < 0 || inputs[b].dims[k].extent == inputs[a].dims[i].extent) continue;
    return pl_fail(error, PL_BAD_INPUT,
                   "dimension '%s' of operand %d of %s is %" PRId64 ", that of operand %d %" PRId64,
                   inputs[a].dims[i].name.text, a + 1, pl_ir_op_name(op), inputs[a].dims[i].extent, b + 1,
                   inputs[b].dims[k].extent);
  }
  return PL_OK;
}

static pl_code sort_query_dims(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_attention_dims *dims,
                               pl_error *error) {
  for (int32_t i = 0; i < inputs[0].rank; i++) {
    pl_ir_dim dim = inputs[0].dims[i];
    bool in_k = pl_ir_type_find(&inputs[1], dim.name) >= 0, in_v = pl_ir_type_find(&inputs[2], dim.name) >= 0;
    if (in_k && in_v) dims->batch[dims->n_batch++] = dim;
    if (!in_k && !in_v) dims->rows[dims->n_rows++] = dim;
    if (!in_k && in_v)
      return pl_fail(error, PL_BAD_INPUT, "operands 1 and 3 of %s have dimension '%s', which operand 2 lacks",
                     pl_ir_op_name(op), dim.name.text);
  }
  for (int32_t i = 0; i < inputs[1].rank; i++)
    if (pl_ir_type_find(&inputs[0], inputs[1].dims[i].name) < 0 &&
        pl_ir_type_find(&inputs[2], inputs[1].dims[i].name) < 0)
      return pl_fail(error, PL_BAD_INPUT, "operand 2 of %s has dimension '%s', which operands 1 and 3 lack",
                     pl_ir_op_name(op), inputs[1].dims[i].name.text);
  return PL_OK;
}

static pl_code check_positions(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_attention_dims *dims,
                               pl_error *error) {
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 3, error));
  PL_TRY(pl_ir_operand_is_integer(op, inputs, 4, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 3, 0, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 4, 1, error));
  bool is_t = inputs[4].rank == 1 && pl_ir_name_equal(inputs[4].dims[0].name, dims->t.name);
  for (int32_t i = 0; i < dims->n_rows; i++)
    if (inputs[3].rank == 1 && pl_ir_name_equal(inputs[3].dims[0].name, dims->rows[i].name)) {
      dims->s = dims->rows[i];
      dims->has_positions = true;
    }
  if (dims->has_positions && is_t) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s are positions: of one dimension, which %s", is_t ? 4 : 5,
                 pl_ir_op_name(op), is_t ? "operand 1 has and operands 2 and 3 lack" : "counts the keys");
}

pl_code pl_ir_attention_dims_of(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_attention_dims *dims,
                                pl_error *error) {
  *dims = (pl_ir_attention_dims){0};
  for (int32_t k = 0; k < 3; k++)
    PL_TRY(pl_ir_operand_is_number(op, inputs, k, error));
  PL_TRY(only_dim(op, inputs, 1, 2, 0, &dims->t, error));
  PL_TRY(only_dim(op, inputs, 0, 1, 2, &dims->d, error));
  PL_TRY(find_value_dim(op, inputs, &dims->e, error));
  PL_TRY(check_shared(op, inputs, 0, 1, error));
  PL_TRY(check_shared(op, inputs, 1, 2, error));
  PL_TRY(check_shared(op, inputs, 0, 2, error));
  PL_TRY(sort_query_dims(op, inputs, dims, error));
  return pl_ir_attention_n_before(op) == 5 ? check_positions(op, inputs, dims, error) : PL_OK;
}

/* Heads are counted along dimensions of the queries; distances are those of positions. */
static pl_code check_alibi(const pl_ir_op *op, const pl_ir_attention_dims *dims, pl_error *error) {
  const pl_ir_attribute *heads = pl_ir_attribute_find(op, "alibi");
  if (heads == NULL) return PL_OK;
  if (!dims->has_positions)
    return pl_fail(error, PL_BAD_INPUT, "%s with alibi needs the positions of queries and keys behind its operand 3",
                   pl_ir_op_name(op));
  for (int32_t i = 0; i < heads->n_names; i++) {
    bool is_head = false;
    for (int32_t k = 0; k < dims->n_batch; k++)
      is_head |= pl_ir_name_equal(dims->batch[k].name, heads->names[i]);
    for (int32_t k = 0; k < dims->n_rows; k++)
      is_head |=
          pl_ir_name_equal(dims->rows[k].name, heads->names[i]) && !pl_ir_name_equal(dims->s.name, heads->names[i]);
    if (!is_head)
      return pl_fail(error, PL_BAD_INPUT, "'%s' of alibi is no dimension of operand 1 of %s that could count heads",
                     heads->names[i].text, pl_ir_op_name(op));
  }
  return PL_OK;
}

static pl_code check_attributes(const pl_ir_op *op, const pl_ir_attention_dims *dims, pl_error *error) {
  const char *name = pl_ir_op_name(op);
  int64_t causal = pl_ir_integer_of(op, "causal", 0), window = pl_ir_integer_of(op, "window", 0),
          blocks = pl_ir_integer_of(op, "blocks", 1);
  double p = pl_ir_real_of(op, "p", 0);
  if (window < 0) return pl_fail(error, PL_BAD_INPUT, "'window' of %s is %" PRId64 "; 0 is none", name, window);
  if (!(p >= 0 && p < 1)) return pl_fail(error, PL_BAD_INPUT, "'p' of %s is %g; it is from 0 to below 1", name, p);
  if (blocks < 1) return pl_fail(error, PL_BAD_INPUT, "'blocks' of %s is %" PRId64 "; it is 1 or more", name, blocks);
  if ((causal != 0 || window > 0 || blocks > 1) && !dims->has_positions)
    return pl_fail(error, PL_BAD_INPUT, "%s with %s needs the positions of queries and keys behind its operand 3", name,
                   causal != 0 ? "causal"
                   : window    ? "window"
                               : "blocks");
  PL_TRY(check_alibi(op, dims, error));
  if (blocks > 1 && (dims->s.extent % blocks != 0 || dims->t.extent % blocks != 0))
    return pl_fail(error, PL_BAD_INPUT,
                   "%" PRId64 " 'blocks' of %s do not divide '%s' = %" PRId64 " and '%s' = %" PRId64, blocks, name,
                   dims->s.name.text, dims->s.extent, dims->t.name.text, dims->t.extent);
  return PL_OK;
}

/* The answer's type: q's with e for d; and that of the log-sum-exp. */
static void answer_types(const pl_ir_type *q, const pl_ir_attention_dims *dims, pl_ir_type *y, pl_ir_type *lse) {
  *y = pl_ir_type_whole(q);
  y->dims[pl_ir_type_find(q, dims->d.name)] = dims->e;
  *lse = pl_ir_type_without_dim(q, dims->d.name);
  lse->element = PL_IR_F32;
}

static pl_code infer_attention(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  pl_ir_attention_dims dims;
  if (op->n_inputs == 4)
    return pl_fail(error, PL_BAD_INPUT, "attention has 4 operands; it takes q, k, v, or those and both positions");
  PL_TRY(pl_ir_attention_dims_of(op, inputs, &dims, error));
  PL_TRY(check_attributes(op, &dims, error));
  answer_types(&inputs[0], &dims, &outputs[0], &outputs[1]);
  return PL_OK;
}

/* Operand k is a number with the dimensions of `type`, in any order. */
static pl_code is_like(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, const pl_ir_type *type,
                       const char *what, pl_error *error) {
  char text[PL_IR_SHAPE_TEXT_BYTES], other[PL_IR_SHAPE_TEXT_BYTES];
  PL_TRY(pl_ir_operand_is_number(op, inputs, k, error));
  bool same = inputs[k].rank == type->rank;
  for (int32_t i = 0; same && i < type->rank; i++) {
    int32_t at = pl_ir_type_find(&inputs[k], type->dims[i].name);
    same = at >= 0 && inputs[k].dims[at].extent == type->dims[i].extent;
  }
  if (same) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s is %s; %s is %s", k + 1, pl_ir_op_name(op),
                 pl_ir_shape_text(&inputs[k], text), what, pl_ir_shape_text(type, other));
}

static pl_code infer_attention_backward(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                        pl_error *error) {
  pl_ir_attention_dims dims;
  pl_ir_type y, lse;
  PL_TRY(pl_ir_attention_dims_of(op, inputs, &dims, error));
  PL_TRY(check_attributes(op, &dims, error));
  answer_types(&inputs[0], &dims, &y, &lse);
  int32_t n = pl_ir_attention_n_before(op);
  PL_TRY(is_like(op, inputs, n, &y, "the answer", error));
  PL_TRY(is_like(op, inputs, n + 1, &lse, "the log-sum-exp", error));
  PL_TRY(is_like(op, inputs, n + 2, &y, "the answer", error));
  if (n + 3 < op->n_inputs) PL_TRY(is_like(op, inputs, n + 3, &lse, "the log-sum-exp", error));
  for (int32_t k = 0; k < 3; k++)
    outputs[k] = pl_ir_type_whole(&inputs[k]);
  return PL_OK;
}

/* Answers and their log-sum-exps in turn: those like the first, these without its one dimension e. */
static pl_code check_answers(const pl_ir_op *op, const pl_ir_type *inputs, pl_error *error) {
  for (int32_t k = 0; k < op->n_inputs; k++)
    PL_TRY(is_like(op, inputs, k, &inputs[k % 2], k % 2 == 0 ? "the first answer" : "the first log-sum-exp", error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  if (inputs[0].rank == inputs[1].rank + 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand 1 of %s has one dimension more than its log-sum-exp, not %d",
                 pl_ir_op_name(op), inputs[0].rank - inputs[1].rank);
}

static pl_code infer_attention_merge(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs,
                                     pl_error *error) {
  PL_TRY(check_answers(op, inputs, error));
  for (int32_t k = 0; k < op->n_outputs; k++) /* backward: one for each of four inputs */
    outputs[k] = pl_ir_type_whole(&inputs[k]);
  return PL_OK;
}

/* ---- layouts ---- */

/* Scores are sums over d that a softmax or an exponential follows. */
static bool is_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  pl_ir_attention_dims dims;
  if (pl_ir_attention_dims_of(op, inputs, &dims, NULL) != PL_OK) return true;
  bool adds_once = op->n_inputs - pl_ir_attention_n_before(op) == 4; /* the gradient of the log-sum-exp */
  return pl_ir_name_equal(dim, dims.d.name) || (adds_once && pl_ir_name_equal(dim, dims.e.name));
}

static bool is_cut_on(const pl_ir_type *type, int32_t axis, pl_ir_name dim) {
  return type->on[axis] >= 0 && pl_ir_name_equal(type->dims[type->on[axis]].name, dim);
}

/* Every operand that has s is cut on it, every one that has t on that. */
static pl_code check_joint(const pl_ir_mesh *mesh, const pl_ir_op *op, int32_t axis, const pl_ir_attention_dims *dims,
                           const pl_ir_type *inputs, const pl_ir_type *outputs, pl_error *error) {
  for (int32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
    bool is_input = i < op->n_inputs;
    const pl_ir_type *type = is_input ? &inputs[i] : &outputs[i - op->n_inputs];
    pl_ir_name dim = pl_ir_type_find(type, dims->s.name) >= 0 ? dims->s.name : dims->t.name;
    if (is_cut_on(type, axis, dim)) continue;
    return pl_fail(error, PL_BAD_INPUT,
                   "%s %d of %s is not cut on %s along axis %s, where queries and keys are both cut",
                   is_input ? "operand" : "result", is_input ? i + 1 : i - op->n_inputs + 1, pl_ir_op_name(op),
                   dim.text, mesh->axes[axis].name.text);
  }
  return PL_OK;
}

/* Where queries and keys are both cut over an axis, a device has whole blocks of both, the same ones. */
static pl_code check_layout(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                            const pl_ir_type *outputs, pl_error *error) {
  pl_ir_attention_dims dims;
  PL_TRY(pl_ir_attention_dims_of(op, inputs, &dims, error));
  int64_t blocks = pl_ir_integer_of(op, "blocks", 1), parts = 1;
  bool is_cut = false; /* by an axis outside of this one that leaves the other whole */
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    bool s = is_cut_on(&inputs[0], axis, dims.s.name), t = is_cut_on(&inputs[1], axis, dims.t.name);
    if (!(blocks > 1 && s && t)) {
      PL_TRY(pl_ir_layout_check_axis(mesh, op, axis, inputs, outputs, error));
      is_cut |= s || t;
      continue;
    }
    PL_TRY(check_joint(mesh, op, axis, &dims, inputs, outputs, error));
    parts *= mesh->axes[axis].extent;
    if (blocks % parts == 0 && !is_cut) continue;
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: queries and keys cut over axis %s are not the same whole blocks; 'blocks' is %" PRId64
                   ", and axes that cut only one of them come behind it",
                   pl_ir_op_name(op), mesh->axes[axis].name.text, blocks);
  }
  return PL_OK;
}

/* Along the ring every device has its own queries, and keys and values come round: who has s is cut on it, who has t on
 * that. */
static pl_code check_ring(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs,
                          const pl_ir_type *outputs, pl_error *error) {
  pl_ir_attention_dims dims;
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  PL_TRY(pl_ir_attention_dims_of(op, inputs, &dims, error));
  for (int32_t i = 0; over != NULL && i < over->n_names; i++)
    if (pl_ir_mesh_find(mesh, over->names[i]) < 0)
      return pl_fail(error, PL_BAD_INPUT, "over=%s of %s is no axis of the mesh", over->names[i].text,
                     pl_ir_op_name(op));
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) {
      PL_TRY(check_joint(mesh, op, axis, &dims, inputs, outputs, error));
    } else {
      PL_TRY(pl_ir_layout_check_axis(mesh, op, axis, inputs, outputs, error));
    }
  }
  return PL_OK;
}

/* ---- work ---- */

/* Query-key pairs that the mask leaves, of one head and sequence: half of a causal square, what a window covers. */
static double pairs_of(const pl_ir_op *op, const pl_ir_attention_dims *dims) {
  double t = (double)dims->t.extent, s = dims->has_positions ? (double)dims->s.extent : 1;
  double window = (double)pl_ir_integer_of(op, "window", 0), blocks = (double)pl_ir_integer_of(op, "blocks", 1);
  bool is_band = window > 0 && window < t, causal = pl_ir_integer_of(op, "causal", 0) != 0;
  double share = 1; /* of all pairs */
  if (causal) share = is_band ? (t * window - window * window / 2) / (t * t) : 0.5;
  if (!causal && is_band) share = 1 - (t - window) * (t - window + 1) / (t * t);
  return share * s * t / blocks;
}

static double flops_of(const pl_ir_op *op, const pl_ir_type *inputs, double of_d, double of_e) {
  pl_ir_attention_dims dims;
  if (pl_ir_attention_dims_of(op, inputs, &dims, NULL) != PL_OK) return 0;
  double heads = pl_ir_type_elements(&inputs[0]) / (double)dims.d.extent;
  if (dims.has_positions) heads /= (double)dims.s.extent;
  return 2 * heads * pairs_of(op, &dims) * (of_d * (double)dims.d.extent + of_e * (double)dims.e.extent);
}

static double flops_attention(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)outputs;
  return flops_of(op, inputs, 1, 1); /* S; y */
}

static double flops_attention_backward(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  (void)outputs;
  return flops_of(op, inputs, 3, 2); /* S, dq, dk; dP, dv */
}

/* ---- derivatives ---- */

/* Adds outputs first, first + 1 ... of the backward op to the gradients of the inputs. */
static pl_code give_all(pl_ir_differ *differ, const pl_ir_op *op, int32_t n, int32_t first, pl_error *error) {
  if (first == PL_IR_NONE) return pl_fail_memory(error, "a backward function");
  for (int32_t k = 0; k < n; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, first + k);
  return PL_OK;
}

/* The gradient of the answer; where only that of the log-sum-exp is there, zeros. */
static int32_t answer_gradient(pl_ir_differ *differ, const pl_ir_op *op) {
  int32_t dy = pl_ir_differ_gradient(differ, op, 0);
  if (dy != PL_IR_NONE) return dy;
  const pl_ir_attribute zero = pl_ir_real("by", 0);
  int32_t y = pl_ir_differ_value(differ, op->first_output);
  return pl_ir_differ_op(differ, "scale", "dy", 1, &y, 1, &zero);
}

static pl_code derive_attention(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  int32_t dlse = pl_ir_differ_gradient(differ, op, 1), inputs[9], n = 0;
  if (pl_ir_differ_gradient(differ, op, 0) == PL_IR_NONE && dlse == PL_IR_NONE) return PL_OK;
  while (n < op->n_inputs) {
    inputs[n] = pl_ir_differ_value(differ, op->inputs[n]);
    n++;
  }
  inputs[n++] = pl_ir_differ_value(differ, op->first_output);
  inputs[n++] = pl_ir_differ_value(differ, op->first_output + 1);
  inputs[n++] = answer_gradient(differ, op);
  if (dlse != PL_IR_NONE) inputs[n++] = dlse;
  return give_all(differ, op, 3,
                  pl_ir_differ_op(differ, "attention_backward", "dqkv", n, inputs, op->n_attributes, op->attributes),
                  error);
}

static pl_code derive_attention_merge(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  int32_t dlse = pl_ir_differ_gradient(differ, op, 1), inputs[8], n = 0;
  if (pl_ir_differ_gradient(differ, op, 0) == PL_IR_NONE && dlse == PL_IR_NONE) return PL_OK;
  for (int32_t k = 0; k < 4; k++)
    inputs[n++] = pl_ir_differ_value(differ, op->inputs[k]);
  inputs[n++] = pl_ir_differ_value(differ, op->first_output);
  inputs[n++] = pl_ir_differ_value(differ, op->first_output + 1);
  inputs[n++] = answer_gradient(differ, op);
  if (dlse != PL_IR_NONE) inputs[n++] = dlse;
  return give_all(differ, op, 4, pl_ir_differ_op(differ, "attention_merge_backward", "dpieces", n, inputs, 0, NULL),
                  error);
}

/* ---- rows ---- */

#define ALIBI                                                                                                          \
  {.name = "alibi", .kind = PL_IR_NAMES, .meaning = "dimensions that count heads: scores fall with the distance"}, {   \
    .name = "slope", .kind = PL_IR_REAL, .meaning = "factor of the slopes of alibi; 1"                                 \
  }

#define ATTRIBUTES                                                                                                     \
  {                                                                                                                    \
    {.name = "scale", .kind = PL_IR_REAL, .meaning = "of the scores; 1 / sqrt(extent of d)"},                          \
        {.name = "causal", .kind = PL_IR_INTEGER, .meaning = "1: a query sees keys of positions up to its own"},       \
        {.name = "window", .kind = PL_IR_INTEGER, .meaning = "sees keys fewer positions away than this; 0: all"},      \
        {.name = "p", .kind = PL_IR_REAL, .meaning = "probability of dropout of what follows the softmax; 0"},         \
        {.name = "seed", .kind = PL_IR_INTEGER, .meaning = "of dropout"}, ALIBI, {                                     \
      .name = "blocks", .kind = PL_IR_INTEGER, .meaning = "s and t are so many blocks, each sees its own; 1"           \
    }                                                                                                                  \
  }

#define RING_ATTRIBUTES                                                                                                \
  .attributes = {                                                                                                      \
      {.name = "over", .kind = PL_IR_NAMES, .required = true, .meaning = "axes of the mesh"},                          \
      {.name = "scale", .kind = PL_IR_REAL, .meaning = "of the scores; 1 / sqrt(extent of d)"},                        \
      {.name = "causal", .kind = PL_IR_INTEGER, .meaning = "1: a query sees keys of positions up to its own"},         \
      {.name = "window", .kind = PL_IR_INTEGER, .meaning = "sees keys fewer positions away than this; 0: all"},        \
      {.name = "p", .kind = PL_IR_REAL, .meaning = "probability of dropout of what follows the softmax; 0"},           \
      {.name = "seed", .kind = PL_IR_INTEGER, .meaning = "of dropout"},                                                \
      ALIBI}

const pl_ir_row pl_ir_rows_attention[] = {
    {.name = "attention",
     .launches = PL_IR_LAUNCHES_ATTENTION,
     .meaning = "y = softmax over t of (scale q k) times v, and l = log sum over t of exp(scale q k)",
     .least_inputs = 3,
     .most_inputs = 5,
     .n_outputs = 2,
     .attributes = ATTRIBUTES,
     .opaque = is_opaque,
     .infer = infer_attention,
     .layout = check_layout,
     .flops = flops_attention,
     .compute = pl_ir_compute_attention,
     .derive = derive_attention,
     .onnx = "Attention MultiHeadAttention GroupQueryAttention"},
    {.name = "attention_backward",
     .launches = PL_IR_LAUNCHES_ATTENTION,
     .meaning = "P = exp(scale q k - l), dS = P (dy v - dy y [+ dl]): dq = scale dS k, dk = scale dS q, dv = P dy",
     .least_inputs = 6,
     .most_inputs = 9,
     .n_outputs = 3,
     .missing = PL_IR_MISSING_SUM,
     .attributes = ATTRIBUTES,
     .opaque = is_opaque,
     .infer = infer_attention_backward,
     .layout = check_layout,
     .flops = flops_attention_backward,
     .compute = pl_ir_compute_attention_backward},
    {.name = "attention_merge",
     .meaning =
         "answers over two sets of keys become that over both: l = log(e^l1 + e^l2), y = e^(l1-l) y1 + e^(l2-l) y2",
     .least_inputs = 4,
     .most_inputs = 4,
     .n_outputs = 2,
     .infer = infer_attention_merge,
     .compute = pl_ir_compute_attention_merge,
     .derive = derive_attention_merge},
    {.name = "attention_merge_backward",
     .meaning = "of y1 l1 y2 l2 y l dy [dl]: dyi = e^(li-l) dy, dli = e^(li-l) (dy (yi - y) [+ dl])",
     .least_inputs = 7,
     .most_inputs = 8,
     .n_outputs = 4,
     .infer = infer_attention_merge,
     .compute = pl_ir_compute_attention_merge_backward},
    {.name = "ring_attention",
     .launches = PL_IR_LAUNCHES_ATTENTION,
     .meaning = "attention of a sequence cut over `over`: keys and values go round, answers are merged",
     .least_inputs = 3,
     .most_inputs = 5,
     .n_outputs = 2,
     .effect = PL_IR_COLLECTIVE,
     RING_ATTRIBUTES,
     .opaque = is_opaque,
     .infer = infer_attention,
     .layout = check_ring,
     .flops = flops_attention},
    {.name = "ring_attention_backward",
     .launches = PL_IR_LAUNCHES_ATTENTION,
     .meaning = "its derivative: gradients of keys and values go round with them",
     .least_inputs = 6,
     .most_inputs = 9,
     .n_outputs = 3,
     .effect = PL_IR_COLLECTIVE,
     .missing = PL_IR_MISSING_SUM,
     RING_ATTRIBUTES,
     .opaque = is_opaque,
     .infer = infer_attention_backward,
     .layout = check_ring,
     .flops = flops_attention_backward},
    {.name = NULL},
};
_Static_assert(sizeof pl_ir_rows_attention / sizeof pl_ir_rows_attention[0] == PL_IR_N_ROWS_ATTENTION + 1,
               "as ir_table.h counts");
