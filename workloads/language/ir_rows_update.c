/* Rows of optimizers: element by element, of parts that lie alike. */
#include <inttypes.h>
#include <math.h>

#include "workloads/language/ir_arrange.h"
#include "workloads/language/ir_operands.h"

/* Every operand is like the parameter; its element type may be another (gradients in bf16, states in fp32). */
static pl_code update_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  for (int32_t k = 0; k < op->n_inputs; k++) {
    PL_TRY(pl_ir_operand_is_number(op, inputs, k, error));
    PL_TRY(pl_ir_operands_match(op, inputs, 0, k, error));
  }
  outputs[0] = pl_ir_type_whole(&inputs[0]);
  for (int32_t k = 1; k < op->n_outputs; k++)
    outputs[k] = pl_ir_type_whole(&inputs[k + 1]);
  return PL_OK;
}

static pl_code adam_infer(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error) {
  int64_t step = pl_ir_integer_of(op, "step", 1);
  if (step < 1) return pl_fail(error, PL_BAD_INPUT, "step=%" PRId64 " of adam: steps are counted from 1", step);
  const char *const shares[] = {"beta1", "beta2"};
  for (int i = 0; i < 2; i++) {
    double beta = pl_ir_real_of(op, shares[i], 0);
    if (!(beta >= 0 && beta < 1))
      return pl_fail(error, PL_BAD_INPUT, "%s=%g of adam is not in [0, 1)", shares[i], beta);
  }
  return update_infer(op, inputs, outputs, error);
}

/* Operand k in the order of the parameter. */
static const double *like_parameter(const pl_ir_computing *computing, int32_t k) {
  return pl_ir_arranged(computing->scratch, &computing->inputs[k], &computing->inputs[0]);
}

static void give(const pl_ir_computing *computing, double *values, int32_t k) {
  pl_ir_tensor from = computing->inputs[0];
  from.data = values;
  pl_ir_arrange(&from, &computing->outputs[k], computing->outputs[k].data);
}

/* Kingma and Ba, Adam, algorithm 1. */
static pl_code adam_compute(const pl_ir_computing *computing, pl_error *error) {
  const pl_ir_op *op = computing->op;
  double rate = pl_ir_real_of(op, "rate", 0), epsilon = pl_ir_real_of(op, "epsilon", 0);
  double beta1 = pl_ir_real_of(op, "beta1", 0), beta2 = pl_ir_real_of(op, "beta2", 0);
  double t = (double)pl_ir_integer_of(op, "step", 1) + (double)computing->iteration;
  double rest1 = 1 - pow(beta1, t), rest2 = 1 - pow(beta2, t);
  int64_t n = computing->inputs[0].n;
  const double *w = computing->inputs[0].data, *g = like_parameter(computing, 1);
  const double *m = like_parameter(computing, 2), *v = like_parameter(computing, 3);
  double *made = PL_TAKE(computing->scratch, double, 2 * n);
  if (g == NULL || m == NULL || v == NULL || made == NULL) return pl_fail_memory(error, "an optimizer's step");
  for (int64_t i = 0; i < n; i++) {
    double m_new = made[i] = beta1 * m[i] + (1 - beta1) * g[i];
    double v_new = made[n + i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    computing->outputs[0].data[i] = w[i] - rate * (m_new / rest1) / (sqrt(v_new / rest2) + epsilon);
  }
  give(computing, made, 1);
  give(computing, made + n, 2);
  return PL_OK;
}

static pl_code sgd_compute(const pl_ir_computing *computing, pl_error *error) {
  double rate = pl_ir_real_of(computing->op, "rate", 0);
  const double *w = computing->inputs[0].data, *g = like_parameter(computing, 1);
  if (g == NULL) return pl_fail_memory(error, "an optimizer's step");
  for (int64_t i = 0; i < computing->inputs[0].n; i++)
    computing->outputs[0].data[i] = w[i] - rate * g[i];
  return PL_OK;
}

const pl_ir_row pl_ir_rows_update[] = {
    {.name = "adam",
     .meaning = "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; "
                "w -= rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon); t = step + iterations so far",
     .least_inputs = 4,
     .most_inputs = 4,
     .n_outputs = 3,
     .attributes = {{"rate", PL_IR_REAL, true, "learning rate"},
                    {"beta1", PL_IR_REAL, true, "share of m that stays"},
                    {"beta2", PL_IR_REAL, true, "share of v that stays"},
                    {"epsilon", PL_IR_REAL, true, "is added to the root of v"},
                    {"step", PL_IR_INTEGER, false, "t of the first iteration; without it 1"},
                    {"moves", PL_IR_REAL, false, "bytes an element, in one launch for all of an update"}},
     .infer = adam_infer,
     .compute = adam_compute},
    {.name = "sgd",
     .meaning = "w - rate g",
     .least_inputs = 2,
     .most_inputs = 2,
     .n_outputs = 1,
     .attributes = {{"rate", PL_IR_REAL, true, "learning rate"},
                    {"moves", PL_IR_REAL, false, "bytes an element, in one launch for all of an update"}},
     .infer = update_infer,
     .compute = sgd_compute},
    {.name = NULL}};
_Static_assert(sizeof pl_ir_rows_update / sizeof pl_ir_rows_update[0] == PL_IR_N_ROWS_UPDATE + 1,
               "as ir_table.h counts");
