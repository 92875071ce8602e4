/* Rows of recurrences along a sequence. Equations: ir_scan.h; values: ir_scan.c. */
#include <inttypes.h>
#include <math.h>

#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_operands.h"
#include "workloads/language/ir_scan.h"

enum { STATE_SPACE_OPERANDS = 6, DELTA_OPERANDS = 5, BACKWARD_MOST = 7 };

static bool is_delta(const pl_ir_op *op) {
  return op->n_inputs == DELTA_OPERANDS || (op->n_inputs == DELTA_OPERANDS + 1 && op->n_outputs == DELTA_OPERANDS);
}

/* ---- shapes ---- */

/* The one dimension of operand `k` that operand `lacks` has not. */
static pl_code only_dim(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, int32_t lacks, pl_ir_dim *dim,
                        pl_error *error) {
  int32_t n = 0;
  for (int32_t i = 0; i < inputs[k].rank; i++) {
    bool is = pl_ir_type_find(&inputs[lacks], inputs[k].dims[i].name) < 0;
    if (is) *dim = inputs[k].dims[i];
    n += is;
  }
  if (n == 1) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s has %d dimensions that operand %d lacks; it is one", k + 1,
                 pl_ir_op_name(op), n, lacks + 1);
}

/* Every dimension of operand k is the sequence or one that counts heads and samples, or `also`. */
static pl_code is_of_heads(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, int32_t rate, const pl_ir_dim *also,
                           const pl_ir_dim *without, pl_error *error) {
  for (int32_t i = 0; i < inputs[k].rank; i++) {
    pl_ir_name name = inputs[k].dims[i].name;
    bool fits = pl_ir_type_find(&inputs[rate], name) >= 0 || (also != NULL && pl_ir_name_equal(name, also->name));
    if (fits && !(without != NULL && pl_ir_name_equal(name, without->name))) continue;
    return pl_fail(error, PL_BAD_INPUT, "operand %d of %s has dimension '%s', which it may not", k + 1,
                   pl_ir_op_name(op), name.text);
  }
  return PL_OK;
}

static pl_code has(const pl_ir_op *op, const pl_ir_type *inputs, int32_t k, pl_ir_name name, pl_error *error) {
  if (pl_ir_type_find(&inputs[k], name) >= 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "operand %d of %s lacks dimension '%s'", k + 1, pl_ir_op_name(op), name.text);
}

static double elements_but(const pl_ir_type *type, pl_ir_name name) {
  double n = 1;
  for (int32_t i = 0; i < type->rank; i++)
    if (!pl_ir_name_equal(type->dims[i].name, name)) n *= (double)type->dims[i].extent;
  return n;
}

static pl_code state_space_dims(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_scan_dims *dims, pl_error *error) {
  dims->rate = 1;
  dims->n_before = STATE_SPACE_OPERANDS;
  PL_TRY(only_dim(op, inputs, 0, 1, &dims->own, error));
  PL_TRY(only_dim(op, inputs, 3, 1, &dims->state, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 1, 0, error));
  PL_TRY(is_of_heads(op, inputs, 2, 1, NULL, &dims->s, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 3, 4, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 2, 5, error));
  PL_TRY(has(op, inputs, 3, dims->s.name, error));
  if (op->n_inputs > STATE_SPACE_OPERANDS) PL_TRY(pl_ir_operands_match(op, inputs, 0, 6, error));
  dims->groups = elements_but(&inputs[3], dims->state.name);
  return PL_OK;
}

static pl_code delta_dims(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_scan_dims *dims, pl_error *error) {
  dims->rate = 3;
  dims->n_before = DELTA_OPERANDS;
  PL_TRY(only_dim(op, inputs, 2, 3, &dims->own, error));
  PL_TRY(only_dim(op, inputs, 0, 3, &dims->state, error));
  PL_TRY(pl_ir_operand_is_within(op, inputs, 3, 2, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 0, 1, error));
  PL_TRY(pl_ir_operands_match(op, inputs, 3, 4, error));
  PL_TRY(has(op, inputs, 0, dims->s.name, error));
  if (op->n_inputs > DELTA_OPERANDS) PL_TRY(pl_ir_operands_match(op, inputs, 2, 5, error));
  dims->groups = elements_but(&inputs[0], dims->state.name);
  return PL_OK;
}

pl_code pl_ir_scan_dims_of(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_scan_dims *dims, pl_error *error) {
  int32_t rate = is_delta(op) ? 3 : 1;
  *dims = (pl_ir_scan_dims){.rate = rate};
  PL_TRY(pl_ir_op_has_one_name(op, "over", error));
  PL_TRY(pl_ir_operand_has_names(op, inputs, rate, "over", error));
  dims->s = inputs[rate].dims[pl_ir_type_find(&inputs[rate], pl_ir_one_name_of(op, "over"))];
  PL_TRY(pl_ir_operands_agree(op, inputs, error));
  PL_TRY(rate == 3 ? delta_dims(op, inputs, dims, error) : state_space_dims(op, inputs, dims, error));
  int64_t chunk = pl_ir_integer_of(op, "chunk", 1);
  if (chunk < 1)
    return pl_fail(error, PL_BAD_INPUT, "'chunk' of %s is %" PRId64 "; it is 1 or more", pl_ir_op_name(op), chunk);
  dims->chunk = chunk < dims->s.extent ? chunk : dims->s.extent;
  dims->heads = pl_ir_type_elements(&inputs[rate]);
  return PL_OK;
}

static pl_code infer_scan(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  pl_ir_scan_dims dims;
  PL_TRY(pl_ir_operands_are_numbers(op, inputs, error));
  PL_TRY(pl_ir_scan_dims_of(op, inputs, &dims, error));
  if (op->n_outputs == 1) {
    outputs[0] = pl_ir_type_whole(&inputs[is_delta(op) ? 2 : 0]);
    return PL_OK;
  }
  for (int32_t k = 0; k < op->n_outputs; k++)
    outputs[k] = pl_ir_type_whole(&inputs[k]);
  return PL_OK;
}

/* What a token's answer needs of others, and what is summed over with a term that is not (D x). */
static bool is_opaque(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim) {
  pl_ir_scan_dims dims;
  if (pl_ir_scan_dims_of(op, inputs, &dims, NULL) != PL_OK) return true;
  return pl_ir_name_equal(dim, dims.s.name) || pl_ir_name_equal(dim, dims.state.name);
}

/* ---- work ---- */

static int32_t add(pl_ir_scan_product *products, int32_t n, double rows, const pl_ir_scan_dims *dims, int64_t m,
                   int64_t width, int64_t k, int32_t times) {
  int64_t batch = (int64_t)ceil(rows / (double)dims->chunk);
  products[n] = (pl_ir_scan_product){.batch = batch, .m = m, .n = width, .k = k, .times = times};
  return n + 1;
}

static int32_t state_space_products(const pl_ir_scan_dims *is, bool backward, pl_ir_scan_product *products) {
  int64_t q = is->chunk, p = is->own.extent, state = is->state.extent;
  int32_t n = add(products, 0, is->groups, is, q, q, state, backward ? 3 : 1);
  n = add(products, n, is->heads, is, q, p, q, backward ? 2 : 1);
  n = add(products, n, is->heads, is, state, p, q, backward ? 3 : 1);
  return add(products, n, is->heads, is, q, p, state, backward ? 2 : 1);
}

static int32_t delta_products(const pl_ir_scan_dims *is, bool backward, pl_ir_scan_product *products) {
  int64_t c = is->chunk, d = is->state.extent, e = is->own.extent;
  int32_t again = backward ? 3 : 1, twice = backward ? 2 : 1;
  int32_t n = add(products, 0, is->heads, is, c, c, d, again);
  n = add(products, n, is->heads, is, c, c, (c + 2) / 3, again);
  n = add(products, n, is->heads, is, c, d, c, again);
  n = add(products, n, is->heads, is, c, e, c, again);
  n = add(products, n, is->heads, is, c, c, d, twice);
  n = add(products, n, is->heads, is, c, e, c, twice);
  n = add(products, n, is->heads, is, c, e, d, again);
  n = add(products, n, is->heads, is, c, e, d, twice);
  return add(products, n, is->heads, is, d, e, c, again);
}

int32_t pl_ir_scan_products(const pl_ir_op *op, const pl_ir_type *inputs,
                            pl_ir_scan_product products[PL_IR_SCAN_PRODUCTS_MAX]) {
  pl_ir_scan_dims dims;
  if (pl_ir_scan_dims_of(op, inputs, &dims, NULL) != PL_OK) return 0;
  bool backward = op->n_inputs > dims.n_before;
  return is_delta(op) ? delta_products(&dims, backward, products) : state_space_products(&dims, backward, products);
}

double pl_ir_scan_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs) {
  pl_ir_scan_product products[PL_IR_SCAN_PRODUCTS_MAX];
  double flops = 0;
  (void)outputs;
  for (int32_t i = 0, n = pl_ir_scan_products(op, inputs, products); i < n; i++)
    flops += 2.0 * products[i].times * (double)products[i].batch * (double)products[i].m * (double)products[i].n *
             (double)products[i].k;
  return flops;
}

/* Written by the kernel that makes them, read and written by the one that hands them on, read by the last. */
double pl_ir_scan_state_bytes(const pl_ir_op *op, const pl_ir_type *inputs) {
  pl_ir_scan_dims dims;
  if (pl_ir_scan_dims_of(op, inputs, &dims, NULL) != PL_OK) return 0;
  double states = dims.heads / (double)dims.chunk * (double)dims.own.extent * (double)dims.state.extent;
  return 4 * states * pl_ir_element_bytes(PL_IR_F32) * (op->n_inputs > dims.n_before ? 2 : 1);
}

/* ---- derivatives ---- */

static pl_code derive_scan(pl_ir_differ *differ, const pl_ir_op *op, pl_error *error) {
  int32_t dy = pl_ir_differ_gradient(differ, op, 0), inputs[BACKWARD_MOST];
  if (dy == PL_IR_NONE) return PL_OK;
  for (int32_t k = 0; k < op->n_inputs; k++)
    inputs[k] = pl_ir_differ_value(differ, op->inputs[k]);
  inputs[op->n_inputs] = dy;
  int32_t first = pl_ir_differ_op(differ, is_delta(op) ? "delta_rule_scan_backward" : "state_space_scan_backward",
                                  "dscan", op->n_inputs + 1, inputs, op->n_attributes, op->attributes);
  if (first == PL_IR_NONE) return pl_fail_memory(error, "a backward function");
  for (int32_t k = 0; k < op->n_inputs; k++)
    if (pl_ir_differ_wants(differ, op, k)) pl_ir_differ_give(differ, op, k, first + k);
  return PL_OK;
}

/* ---- rows ---- */

#define SCAN                                                                                                           \
  {                                                                                                                    \
    {.name = "over", .kind = PL_IR_NAMES, .required = true, .meaning = "the sequence"}, {                              \
      .name = "chunk", .kind = PL_IR_INTEGER, .meaning = "tokens that kernels take at once; 1"                         \
    }                                                                                                                  \
  }
#define FORWARD(n)                                                                                                     \
  .least_inputs = (n), .most_inputs = (n), .n_outputs = 1, .linear = PL_IR_LINEAR_FIRST, .attributes = SCAN,           \
  .opaque = is_opaque, .infer = infer_scan, .flops = pl_ir_scan_flops, .derive = derive_scan
#define BACKWARD(n)                                                                                                    \
  .least_inputs = (n) + 1, .most_inputs = (n) + 1, .n_outputs = (n), .missing = PL_IR_MISSING_SUM,                     \
  .linear = PL_IR_LINEAR_LAST, .attributes = SCAN, .opaque = is_opaque, .infer = infer_scan, .flops = pl_ir_scan_flops

const pl_ir_row pl_ir_rows_scan[] = {
    {.name = "state_space_scan",
     .meaning = "of x, step, A, B, C, D, token by token: h = exp(step A) h + step x B', y = h C + D x",
     FORWARD(STATE_SPACE_OPERANDS),
     .compute = pl_ir_compute_state_space},
    {.name = "state_space_scan_backward",
     .meaning = "of x, step, A, B, C, D, dy: the gradients of the six",
     BACKWARD(STATE_SPACE_OPERANDS),
     .compute = pl_ir_compute_state_space_backward},
    {.name = "delta_rule_scan",
     .meaning = "of q, k, v, decay, beta, token by token: S = exp(decay) S, S = S + k (beta (v - S' k))', y = S' q",
     FORWARD(DELTA_OPERANDS),
     .compute = pl_ir_compute_delta_rule},
    {.name = "delta_rule_scan_backward",
     .meaning = "of q, k, v, decay, beta, dy: the gradients of the five",
     BACKWARD(DELTA_OPERANDS),
     .compute = pl_ir_compute_delta_rule_backward},
    {.name = NULL},
};
_Static_assert(sizeof pl_ir_rows_scan / sizeof pl_ir_rows_scan[0] == PL_IR_N_ROWS_SCAN + 1, "as ir_table.h counts");
