/* See workloads/derive/unfuse.h. */
#include "workloads/derive/unfuse.h"

#include <math.h>
#include <string.h>

#include "workloads/derive/rewrite.h"
#include "workloads/language/ir_attention.h"

enum { MASK_ATTRIBUTES = 5 };

static bool is_read(const pl_ir_function *function, int32_t value) {
  for (int32_t i = 0; i < function->n_ops; i++)
    for (int32_t k = 0; k < function->ops[i].n_inputs; k++)
      if (function->ops[i].inputs[k] == value) return true;
  for (int32_t i = 0; i < function->n_results; i++)
    if (function->results[i] == value) return true;
  return false;
}

static bool is_chosen(const void *context, const pl_ir_function *from, int32_t index) {
  (void)context;
  const pl_ir_op *op = &from->ops[index];
  return op->row == pl_ir_row_of("attention") && pl_ir_integer_of(op, "blocks", 1) == 1 &&
         !is_read(from, op->first_output + 1);
}

static int32_t append(pl_rewriting *own, const char *row, const char *name, int32_t n_inputs, const int32_t *inputs,
                      int32_t n_attributes, const pl_ir_attribute *attributes) {
  for (int32_t i = 0; i < n_inputs; i++)
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE;
  return pl_ir_op_infer(own->module, own->to, row, name, n_inputs, inputs, n_attributes, attributes);
}

/* Sum over `over`, in the dimensions of `like` but that one; behind them `last`, if `like` lacks it. */
static int32_t product(pl_rewriting *own, const char *name, int32_t a, int32_t b, pl_ir_name over,
                       const pl_ir_type *like, const pl_ir_name *last) {
  const int32_t inputs[] = {a, b};
  pl_ir_name order[PL_IR_RANK_MAX];
  int32_t n = 0;
  for (int32_t i = 0; i < like->rank; i++)
    if (!pl_ir_name_equal(like->dims[i].name, over)) order[n++] = like->dims[i].name;
  if (last != NULL) order[n++] = *last;
  const pl_ir_attribute attributes[] = {pl_ir_names("over", 1, &over), pl_ir_names("order", n, order)};
  return append(own, "product", name, 2, inputs, 2, attributes);
}

static int32_t mask(pl_rewriting *own, const pl_ir_op *op, int32_t scores) {
  static const char *const said[] = {"causal", "window", "alibi", "slope"};
  const int32_t inputs[] = {scores, own->made[op->inputs[3]], own->made[op->inputs[4]]};
  pl_ir_attribute attributes[MASK_ATTRIBUTES];
  int32_t n = 0;
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
    const pl_ir_attribute *found = pl_ir_attribute_find(op, said[i]);
    if (found != NULL) attributes[n++] = *found;
  }
  return append(own, "mask", "masked", 3, inputs, n, attributes);
}

/* Dimensions are found by who has them (language/ir_attention.h); pairs stand in the order of the queries' dimensions,
 * then the keys', as the fused op counts those that it drops. */
static void write(const void *context, pl_rewriting *own, const pl_ir_op *op) {
  (void)context;
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  pl_ir_attention_dims dims;
  PL_ASSERT(op->n_inputs > 0);
  for (int32_t i = 0; i < op->n_inputs; i++)
    types[i] = own->from->values[op->inputs[i]].type;
  pl_code code = pl_ir_attention_dims_of(op, types, &dims, NULL);
  PL_ASSERT(code == PL_OK);
  const pl_ir_value *y = &own->from->values[op->first_output];
  const pl_ir_attribute scale = pl_ir_real("by", pl_ir_real_of(op, "scale", 1 / sqrt((double)dims.d.extent)));
  const pl_ir_attribute over = pl_ir_names("over", 1, &dims.t.name);
  int32_t at =
      product(own, "scores", own->made[op->inputs[0]], own->made[op->inputs[1]], dims.d.name, &types[0], &dims.t.name);
  at = append(own, "scale", "scaled", 1, &at, 1, &scale);
  if (dims.has_positions) at = mask(own, op, at);
  at = append(own, "softmax", "probabilities", 1, &at, 1, &over);
  if (pl_ir_real_of(op, "p", 0) > 0) {
    const pl_ir_attribute drops[] = {pl_ir_real("p", pl_ir_real_of(op, "p", 0)),
                                     pl_ir_integer("seed", pl_ir_integer_of(op, "seed", 0))};
    at = append(own, "dropout", "dropped", 1, &at, 2, drops);
  }
  own->made[op->first_output] = product(own, y->name, at, own->made[op->inputs[2]], dims.t.name, &y->type, NULL);
  own->made[op->first_output + 1] = PL_IR_NONE; /* nobody reads it */
}

pl_code pl_ir_unfuse(pl_ir_module *model, pl_error *error) {
  const pl_rewrite_rule rule = {.chooses = is_chosen, .write = write};
  const int32_t *of;
  for (int32_t f = 0; f < model->n_functions; f++)
    PL_TRY(pl_rewrite_function(model, f, &rule, &of, error));
  return PL_OK;
}
