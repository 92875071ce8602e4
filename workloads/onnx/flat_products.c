/* Products, and attention (workloads/onnx/flat.h). */
#include <string.h>

#include "workloads/onnx/flat.h"

static int32_t *axes_made(pl_flat *own, const pl_step *step) {
  return &own->axis[(size_t)step->out * PL_ONNX_RANK_MAX];
}

static int32_t rank_of(const pl_flat *own, int32_t value) {
  return pl_flat_shape(own, value)->rank;
}

/* Axis `axis`, or a copy of it where an axis of `value` but its last one has the same leaves. */
static int32_t apart_from(pl_flat *own, int32_t axis, int32_t value, int32_t n_axes) {
  pl_axis_list others = {0};
  (void)pl_flat_leaves(own, value, 0, n_axes, &others);
  return pl_axis_meets(&own->axes, axis, &others) ? pl_axis_copy(&own->axes, axis) : axis;
}

/* Axes in front of matrices, aligned at the last: those of all operands are one. */
static void relate_batches(pl_flat *own, pl_step *step, int32_t n_operands) {
  int32_t rank = rank_of(own, step->out);
  for (int32_t i = 0; i + 2 < rank; i++) {
    int32_t *to = &axes_made(own, step)[i];
    *to = PL_AXIS_NONE;
    for (int32_t k = 0; k < n_operands; k++) {
      int32_t at = i - (rank - rank_of(own, step->in[k]));
      int32_t axis = at < 0 ? PL_AXIS_NONE : pl_flat_axes(own, step->in[k])[at];
      if (*to == PL_AXIS_NONE) *to = axis;
      (void)pl_axis_unite(&own->axes, *to, axis);
    }
  }
}

static pl_code conform_batches(pl_flat *own, const pl_step *step, int32_t operand, int32_t *made) {
  int32_t rank = rank_of(own, step->out), off = rank - rank_of(own, step->in[operand]);
  for (int32_t i = off < 0 ? 0 : off; i + 2 < rank; i++)
    PL_TRY(pl_flat_conform(own, step, pl_flat_axes(own, step->in[operand])[i - off], axes_made(own, step)[i], made));
  return PL_OK;
}

/* Contracting two values of data: what is summed over is whole on every rank. */
static void mark_contraction(pl_flat *own, const pl_step *step, int32_t axis) {
  if (!pl_flat_is_weight(own, step->in[0]) && !pl_flat_is_weight(own, step->in[1]))
    pl_axis_mark(&own->axes, axis, PL_AXIS_FIXED);
}

/* The product over the leaves of axis `rows`, which both have; where one is the same along them, it is spread first. */
static pl_code multiply(pl_flat *own, const pl_step *step, int32_t a, int32_t b, int32_t rows, int32_t *made) {
  pl_axis_list over = {0};
  pl_ir_name names[PL_AXIS_LEAVES_MAX];
  (void)pl_axis_leaves(&own->axes, rows, &over);
  *made = PL_IR_NONE;
  if (a == PL_IR_NONE || b == PL_IR_NONE) return PL_OK;
  for (int32_t i = 0; i < over.n; i++) {
    if (!pl_flat_has(own, a, over.leaf[i]) || !pl_flat_has(own, b, over.leaf[i]))
      return pl_flat_fail(own, step, "sums over a dimension that an operand is broadcast along");
    names[i] = pl_axis_name(&own->axes, over.leaf[i]);
  }
  const pl_ir_attribute attribute = pl_ir_names("over", over.n, names);
  *made = over.n == 0 ? pl_flat_pair(own, "multiply", pl_flat_name(own, step), a, b)
                      : pl_flat_op2(own, "product", pl_flat_name(own, step), a, b, 1, &attribute);
  return PL_OK;
}

/* ---- MatMul ---- */

static pl_code relate_matmul(pl_flat *own, pl_step *step) {
  const int32_t *a = pl_flat_axes(own, step->in[0]), *b = pl_flat_axes(own, step->in[1]);
  int32_t rank = rank_of(own, step->out), rank_a = rank_of(own, step->in[0]), rank_b = rank_of(own, step->in[1]);
  relate_batches(own, step, 2);
  (void)pl_axis_unite(&own->axes, a[rank_a - 1], b[rank_b - 2]);
  mark_contraction(own, step, a[rank_a - 1]);
  step->column = apart_from(own, b[rank_b - 1], step->in[0], rank_a);
  axes_made(own, step)[rank - 2] = a[rank_a - 2];
  axes_made(own, step)[rank - 1] = step->column;
  return PL_OK;
}

static pl_code write_matmul(pl_flat *own, pl_step *step) {
  int32_t a, b, made, rank_a = rank_of(own, step->in[0]), rank_b = rank_of(own, step->in[1]);
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  PL_TRY(pl_flat_value(own, step, step->in[1], &b));
  const int32_t *of_a = pl_flat_axes(own, step->in[0]), *of_b = pl_flat_axes(own, step->in[1]);
  PL_TRY(conform_batches(own, step, 0, &a));
  PL_TRY(conform_batches(own, step, 1, &b));
  PL_TRY(pl_flat_conform(own, step, of_b[rank_b - 1], step->column, &b));
  PL_TRY(pl_flat_conform(own, step, of_b[rank_b - 2], of_a[rank_a - 1], &b));
  PL_TRY(multiply(own, step, a, b, of_a[rank_a - 1], &made));
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* ---- Gemm ---- */

typedef struct gemm {
  int32_t row, deep_a, deep_b, column; /* axes of a and b, by place */
} gemm;

static gemm gemm_of(const pl_step *step) {
  int32_t a = pl_onnx_integer_of(step->node, "transA", 0) != 0, b = pl_onnx_integer_of(step->node, "transB", 0) != 0;
  return (gemm){a, 1 - a, b, 1 - b};
}

static pl_code relate_gemm(pl_flat *own, pl_step *step) {
  const int32_t *a = pl_flat_axes(own, step->in[0]), *b = pl_flat_axes(own, step->in[1]);
  gemm g = gemm_of(step);
  pl_axis_list others = {0};
  (void)pl_axis_unite(&own->axes, a[g.deep_a], b[g.deep_b]);
  mark_contraction(own, step, a[g.deep_a]);
  (void)pl_flat_leaves(own, step->in[0], 0, 2, &others);
  step->column = pl_axis_meets(&own->axes, b[g.column], &others) ? pl_axis_copy(&own->axes, b[g.column]) : b[g.column];
  axes_made(own, step)[0] = a[g.row];
  axes_made(own, step)[1] = step->column;
  if (step->n_in < 3 || step->in[2] == PL_ONNX_NONE || pl_flat_is_constant(own, step->in[2])) return PL_OK;
  int32_t rank = rank_of(own, step->in[2]);
  for (int32_t i = 0; i < rank && i < 2; i++)
    (void)pl_axis_unite(&own->axes, axes_made(own, step)[1 - i], pl_flat_axes(own, step->in[2])[rank - 1 - i]);
  return PL_OK;
}

static pl_code write_gemm(pl_flat *own, pl_step *step) {
  int32_t a, b, c, made;
  gemm g = gemm_of(step);
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  PL_TRY(pl_flat_value(own, step, step->in[1], &b));
  const int32_t *of_a = pl_flat_axes(own, step->in[0]), *of_b = pl_flat_axes(own, step->in[1]);
  PL_TRY(pl_flat_conform(own, step, of_b[g.column], step->column, &b));
  PL_TRY(pl_flat_conform(own, step, of_b[g.deep_b], of_a[g.deep_a], &b));
  PL_TRY(multiply(own, step, a, b, of_a[g.deep_a], &made));
  made = pl_flat_scale(own, made, pl_onnx_real_of(step->node, "alpha", 1));
  if (step->n_in > 2 && step->in[2] != PL_ONNX_NONE) {
    PL_TRY(pl_flat_conformed(own, step, step->in[2], &c));
    made = pl_flat_pair(own, "add", "biased", made, pl_flat_scale(own, c, pl_onnx_real_of(step->node, "beta", 1)));
  }
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* ---- Einsum of two operands: letters are axes ---- */

typedef struct letters {
  char of[2][PL_ONNX_RANK_MAX + 1], out[PL_ONNX_RANK_MAX + 1];
} letters;

static letters letters_of(const pl_step *step) {
  letters made = {0};
  const char *at = pl_onnx_attribute_find(step->node, "equation")->text;
  char *to = made.of[0];
  for (; *at != 0; at++) {
    if (*at == ',') to = made.of[1];
    if (*at == '>') to = made.out;
    size_t n = strlen(to);
    if (*at != ',' && *at != '>' && *at != '-' && *at != ' ' && n < PL_ONNX_RANK_MAX) to[n] = *at;
  }
  return made;
}

static pl_code relate_einsum(pl_flat *own, pl_step *step) {
  letters l = letters_of(step);
  if (step->n_in != 2) return pl_flat_fail(own, step, "equations of two operands are read");
  const int32_t *a = pl_flat_axes(own, step->in[0]), *b = pl_flat_axes(own, step->in[1]);
  for (int32_t i = 0; l.of[1][i] != 0; i++) {
    const char *in_a = strchr(l.of[0], l.of[1][i]);
    if (in_a != NULL) (void)pl_axis_unite(&own->axes, a[in_a - l.of[0]], b[i]);
    if (in_a == NULL && strchr(l.out, l.of[1][i]) == NULL) return pl_flat_fail(own, step, "sums one operand alone");
    if (in_a != NULL && strchr(l.out, l.of[1][i]) == NULL) mark_contraction(own, step, b[i]);
    if (in_a != NULL) continue;
    int32_t axis = apart_from(own, b[i], step->in[0], rank_of(own, step->in[0]));
    if (axis == b[i]) continue;
    if (step->column != PL_AXIS_NONE)
      return pl_flat_fail(own, step, "its operands share more than one axis that is not summed");
    step->column = axis;
  }
  for (int32_t i = 0; l.out[i] != 0; i++) {
    const char *in_a = strchr(l.of[0], l.out[i]), *in_b = strchr(l.of[1], l.out[i]);
    int32_t axis = in_a != NULL ? a[in_a - l.of[0]] : b[in_b - l.of[1]];
    pl_axis_list others = {0};
    (void)pl_flat_leaves(own, step->in[0], 0, rank_of(own, step->in[0]), &others);
    bool copied = in_a == NULL && step->column != PL_AXIS_NONE && pl_axis_meets(&own->axes, axis, &others);
    axes_made(own, step)[i] = copied ? step->column : axis;
  }
  for (int32_t i = 0; l.of[0][i] != 0; i++)
    if (strchr(l.of[1], l.of[0][i]) == NULL && strchr(l.out, l.of[0][i]) == NULL)
      return pl_flat_fail(own, step, "sums one operand alone");
  return PL_OK;
}

static pl_code write_einsum(pl_flat *own, pl_step *step) {
  letters l = letters_of(step);
  int32_t a, b, made;
  pl_axis_list over = {0};
  PL_TRY(pl_flat_value(own, step, step->in[0], &a));
  PL_TRY(pl_flat_value(own, step, step->in[1], &b));
  const int32_t *of_a = pl_flat_axes(own, step->in[0]), *of_b = pl_flat_axes(own, step->in[1]);
  for (int32_t pass = 0; pass < 2; pass++) /* names that are given up first */
    for (int32_t i = 0; l.of[1][i] != 0; i++) {
      const char *in_a = strchr(l.of[0], l.of[1][i]), *in_out = strchr(l.out, l.of[1][i]);
      if ((in_a == NULL) != (pass == 0)) continue;
      PL_TRY(pl_flat_conform(own, step, of_b[i],
                             in_a != NULL ? of_a[in_a - l.of[0]] : axes_made(own, step)[in_out - l.out], &b));
      if (in_a != NULL && in_out == NULL) (void)pl_axis_leaves(&own->axes, of_a[in_a - l.of[0]], &over);
    }
  PL_TRY(multiply(own, step, a, b, pl_axis_of(&own->axes, &over), &made));
  pl_flat_set(own, step, made);
  return PL_OK;
}

/* ---- places of tokens ---- */

static int32_t positions(pl_flat *own, int32_t axis) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  const pl_ir_dim dim = pl_flat_dim(own, of.leaf[0]);
  const pl_ir_type type = pl_ir_type_of(PL_IR_I32, 1, &dim);
  const pl_ir_attribute below = pl_ir_integer("below", dim.extent);
  return pl_flat_typed(own, "input", "positions", "positions", 0, NULL, &type, 1, &below);
}

static bool are_tokens(const pl_flat *own, int32_t axis) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  return of.n == 1 && pl_axis_is(&own->axes, of.leaf[0], PL_AXIS_TOKENS);
}

static pl_code write_rotary(pl_flat *own, pl_step *step) {
  int32_t rank = rank_of(own, step->out), x;
  const int32_t *axes = pl_flat_axes(own, step->out);
  pl_axis_list over = {0};
  (void)pl_axis_leaves(&own->axes, axes[rank - 1], &over);
  if (!are_tokens(own, axes[rank - 2]))
    return pl_flat_fail(own, step, "turns by places of what are no tokens of the inputs");
  if (over.n != 1) return pl_flat_fail(own, step, "turns a dimension that is taken apart elsewhere");
  PL_TRY(pl_flat_conformed(own, step, step->in[0], &x));
  pl_ir_name name = pl_axis_name(&own->axes, over.leaf[0]);
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &name), pl_ir_real("base", step->match->number)};
  pl_flat_set(own, step, pl_flat_op2(own, "rotary", "turned", x, positions(own, axes[rank - 2]), 2, attributes));
  return PL_OK;
}

static pl_code relate_rotary(pl_flat *own, pl_step *step) {
  PL_TRY(pl_flat_relate_same(own, step));
  pl_axis_mark(&own->axes, pl_flat_axes(own, step->in[0])[rank_of(own, step->out) - 1], PL_AXIS_FIXED | PL_AXIS_DEPTH);
  return PL_OK;
}

/* ---- attention ---- */

/* An axis of one leaf: itself, or, of several, a leaf that they are joined to. */
static int32_t single(pl_flat *own, int32_t axis, int32_t roles) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  int64_t extent = 1;
  for (int32_t i = 0; i < of.n; i++)
    extent *= own->axes.all[of.leaf[i]].extent;
  int32_t made = of.n == 1 ? axis : pl_axis_new(&own->axes, extent);
  if (made != PL_AXIS_NONE) pl_axis_mark(&own->axes, made, roles | PL_AXIS_FIXED);
  return made;
}

pl_code pl_flat_relate_attention(pl_flat *own, pl_step *step) {
  const int32_t *q = pl_flat_axes(own, step->in[0]), *k = pl_flat_axes(own, step->in[1]),
                *v = pl_flat_axes(own, step->in[2]);
  int32_t rank = rank_of(own, step->out), rank_q = rank_of(own, step->in[0]), rank_k = rank_of(own, step->in[1]),
          rank_v = rank_of(own, step->in[2]);
  relate_batches(own, step, 3);
  (void)pl_axis_unite(&own->axes, q[rank_q - 1], k[rank_k - 2]);
  (void)pl_axis_unite(&own->axes, v[rank_v - 2], k[rank_k - 1]);
  step->column = apart_from(own, k[rank_k - 1], step->in[0], rank_q - 1);
  step->depth = q[rank_q - 1];
  int32_t values = apart_from(own, v[rank_v - 1], step->in[0], rank_q);
  step->values = values;
  axes_made(own, step)[rank - 2] = q[rank_q - 2];
  axes_made(own, step)[rank - 1] = values;
  return PL_OK;
}

/* Values of attention that are seen all alike have the dimension that scores need. */
static pl_code refuse_missing(const pl_flat *own, const pl_step *step, int32_t made, int32_t axis) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(&own->axes, axis, &of);
  for (int32_t i = 0; i < of.n && made != PL_IR_NONE; i++)
    if (!pl_flat_has(own, made, of.leaf[i])) return pl_flat_fail(own, step, "attention over a broadcast dimension");
  return of.n > 0 ? PL_OK : pl_flat_fail(own, step, "attention over a dimension of extent 1");
}

pl_code pl_flat_write_attention(pl_flat *own, pl_step *step) {
  int32_t rank_k = rank_of(own, step->in[1]), rank_v = rank_of(own, step->in[2]), rank_q = rank_of(own, step->in[0]),
          inputs[5];
  const int32_t *q = pl_flat_axes(own, step->in[0]), *k = pl_flat_axes(own, step->in[1]),
                *v = pl_flat_axes(own, step->in[2]);
  for (int32_t i = 0; i < 3; i++) {
    PL_TRY(pl_flat_value(own, step, step->in[i], &inputs[i]));
    PL_TRY(conform_batches(own, step, i, &inputs[i]));
  }
  PL_TRY(pl_flat_conform(own, step, k[rank_k - 1], step->column, &inputs[1]));
  PL_TRY(pl_flat_conform(own, step, k[rank_k - 2], step->depth, &inputs[1]));
  PL_TRY(pl_flat_conform(own, step, v[rank_v - 1], step->values, &inputs[2]));
  PL_TRY(pl_flat_conform(own, step, v[rank_v - 2], step->column, &inputs[2]));
  PL_TRY(pl_flat_conform(own, step, q[rank_q - 1], step->depth, &inputs[0]));
  PL_TRY(refuse_missing(own, step, inputs[0], step->depth));
  PL_TRY(refuse_missing(own, step, inputs[1], step->column));
  PL_TRY(refuse_missing(own, step, inputs[2], step->values));
  int32_t n = 3, n_attributes = 1, row = q[rank_q - 2];
  const pl_ir_attribute attributes[] = {pl_ir_real("scale", step->match->number), pl_ir_integer("causal", 1)};
  if (step->match->causal) {
    pl_axis_list rows = {0};
    (void)pl_axis_leaves(&own->axes, row, &rows);
    if (!are_tokens(own, row)) return pl_flat_fail(own, step, "a causal mask over what are no tokens of the inputs");
    inputs[3] = positions(own, row);
    inputs[4] = pl_flat_rename(own, positions(own, row), pl_axis_name(&own->axes, rows.leaf[0]),
                               pl_flat_dim(own, step->column).name);
    n = 5;
    n_attributes = 2;
  }
  for (int32_t i = 0; i < n; i++)
    if (inputs[i] == PL_IR_NONE) return PL_OK;
  pl_flat_set(own, step, pl_flat_infer(own, "attention", "attended", n, inputs, n_attributes, attributes));
  return PL_OK;
}

/* Axes of heads' elements are settled once all others are: a rotation takes them apart. */
pl_code pl_flat_settle_attention(pl_flat *own, pl_step *step) {
  pl_axis_list of = {0};
  step->depth = single(own, step->depth, PL_AXIS_DEPTH);
  (void)pl_axis_leaves(&own->axes, step->values, &of);
  if (of.n != 1) return pl_flat_fail(own, step, "a head's values are taken apart behind attention");
  pl_axis_mark(&own->axes, step->values, PL_AXIS_VALUES | PL_AXIS_FIXED);
  of.n = 0;
  (void)pl_axis_leaves(&own->axes, step->column, &of);
  if (of.n > 1) step->column = single(own, step->column, 0); /* rows and columns of a window are one row of keys */
  return step->column != PL_AXIS_NONE ? PL_OK : pl_flat_fail(own, step, "attention over one key");
}

const pl_flat_row pl_flat_products[] = {{"MatMul", relate_matmul, write_matmul},
                                        {"Gemm", relate_gemm, write_gemm},
                                        {"Einsum", relate_einsum, write_einsum},
                                        {"RotaryEmbedding", relate_rotary, write_rotary},
                                        {"Attention", pl_flat_relate_attention, pl_flat_write_attention},
                                        {NULL, NULL, NULL}};
