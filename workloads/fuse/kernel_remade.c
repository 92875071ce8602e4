/* Values that a fused kernel makes again in the backward pass instead of reading them: of act(gate) * up, where that is
 * one kernel, the activation of what is kept anyhow; of a loss in one kernel the exponentials of the logits. See
 * workloads/fuse/kernel_steps.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_steps.h"
#include "workloads/language/ir_again.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

static bool is_norm(const pl_ir_function *f, const pl_ir_op *op, const char *row) {
  int32_t maker = op->n_inputs > 1 ? f->values[op->inputs[1]].op : PL_IR_NONE;
  while (maker != PL_IR_NONE && is(&f->ops[maker], "all_gather"))
    maker = f->values[f->ops[maker].inputs[0]].op;
  return is(op, row) && maker != PL_IR_NONE && is(&f->ops[maker], "param");
}

static const pl_ir_op *keep_of(const pl_ir_function *f, int32_t value) {
  for (int32_t i = 0; i < f->n_ops; i++)
    if (is(&f->ops[i], "keep") && f->ops[i].inputs[0] == value) return &f->ops[i];
  return NULL;
}

static bool is_multiplied(const pl_ir_function *f, int32_t value) {
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (is(op, "multiply") && op->inputs[0] != op->inputs[1] && (op->inputs[0] == value || op->inputs[1] == value))
      return true;
  }
  return false;
}

/* The activation of a gated one, whose product is weighted; NULL: it is none. *other: the value that it multiplies. */
static const pl_ir_op *gated_by(const pl_ir_function *f, const pl_ir_op *op, int32_t *other) {
  for (int32_t i = 0; i < 2 && is(op, "multiply"); i++) {
    int32_t maker = f->values[op->inputs[i]].op;
    bool activates = maker != PL_IR_NONE && (is(&f->ops[maker], "silu") || is(&f->ops[maker], "gelu"));
    *other = op->inputs[1 - i];
    if (activates) return &f->ops[maker];
  }
  return NULL;
}

bool pl_kernel_is_remade(const pl_ir_function *f, const pl_ir_op *keep, pl_kernel_remade *made) {
  int32_t maker = f->values[keep->inputs[0]].op, other;
  if (maker == PL_IR_NONE || !is_multiplied(f, keep->inputs[0])) return false;
  *made = (pl_kernel_remade){.op = &f->ops[maker]};
  const pl_ir_op *activation = gated_by(f, made->op, &other);
  if (activation != NULL) {
    made->op = activation;
    made->times = keep_of(f, other);
    if (made->times == NULL) return false;
  }
  if (!is(made->op, "silu") && !is(made->op, "gelu") && !is(made->op, "relu")) return false;
  made->keep = keep_of(f, made->op->inputs[0]);
  made->type = &f->values[made->op->inputs[0]].type;
  return made->keep != NULL && pl_ir_type_equal(made->type, &f->values[keep->inputs[0]].type);
}

/* What keeps, in the forward function, what `kept` of a backward function reads; NULL: it is not there. */
static const pl_ir_op *keep_at(const pl_ir_function *forward, const pl_ir_op *kept) {
  for (int32_t i = 0; forward != NULL && i < forward->n_ops; i++)
    if (is(&forward->ops[i], "keep") && strcmp(forward->ops[i].path, kept->path) == 0) return &forward->ops[i];
  return NULL;
}

bool pl_kernel_remade_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept,
                         pl_kernel_remade *made) {
  const pl_ir_function *forward = pl_ir_forward_of(module, f->name);
  const pl_ir_op *keep = keep_at(forward, kept);
  return keep != NULL && pl_kernel_is_remade(forward, keep, made);
}

/* ---- squared activations ---- */

bool pl_kernel_is_squared(const pl_ir_function *f, const pl_ir_op *keep, pl_kernel_remade *made) {
  int32_t value = keep->inputs[0];
  bool squared = false;
  *made = (pl_kernel_remade){.op = f->values[value].op != PL_IR_NONE ? &f->ops[f->values[value].op] : NULL};
  if (made->op == NULL || (!is(made->op, "relu") && !is(made->op, "gelu") && !is(made->op, "silu"))) return false;
  made->type = &f->values[made->op->inputs[0]].type;
  for (int32_t i = 0; i < f->n_ops; i++)
    squared = squared || (f->ops[i].n_inputs == 2 && f->ops[i].inputs[0] == value && f->ops[i].inputs[1] == value &&
                          is(&f->ops[i], "multiply"));
  return squared && keep_of(f, made->op->inputs[0]) == NULL && pl_ir_type_equal(made->type, &f->values[value].type);
}

bool pl_kernel_squared_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept,
                          pl_kernel_remade *made) {
  const pl_ir_function *forward = pl_ir_forward_of(module, f->name);
  const pl_ir_op *keep = keep_at(forward, kept);
  return keep != NULL && pl_kernel_is_squared(forward, keep, made);
}

/* ---- the exponentials of a loss ---- */

bool pl_kernel_is_exponentials(const pl_ir_function *f, const pl_ir_op *keep, bool narrow,
                               pl_kernel_exponentials *made) {
  *made = (pl_kernel_exponentials){.forward = f, .exp = pl_ir_maker_of(f, keep->inputs[0])};
  if (made->exp == NULL || !is(made->exp, "exp")) return false;
  made->subtract = pl_ir_maker_of(f, made->exp->inputs[0]);
  if (made->subtract == NULL || !is(made->subtract, "subtract")) return false;
  made->logits = made->subtract->inputs[0];
  made->greatest = made->subtract->inputs[1];
  const pl_ir_op *greatest = pl_ir_maker_of(f, made->greatest), *cast = pl_ir_maker_of(f, made->logits);
  while (greatest != NULL && pl_ir_row_at(greatest->row)->effect == PL_IR_COLLECTIVE)
    greatest = pl_ir_maker_of(f, greatest->inputs[0]);
  if (greatest == NULL || !is(greatest, "maximum")) return false;
  if (!narrow || cast == NULL || !is(cast, "cast")) return true;
  made->cast = cast;
  made->logits = cast->inputs[0];
  return true;
}

bool pl_kernel_exponentials_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept, bool narrow,
                               pl_kernel_exponentials *made) {
  const pl_ir_function *forward = pl_ir_forward_of(module, f->name);
  const pl_ir_op *keep = keep_at(forward, kept);
  return keep != NULL && pl_kernel_is_exponentials(forward, keep, narrow, made);
}

/* ---- the fp32 copy of a norm in steps ---- */

const pl_ir_function *pl_kernel_derived_of(const pl_ir_module *module, const pl_ir_function *f, const char *end) {
  size_t length = strlen(f->name);
  for (int32_t i = 0; i < module->n_functions; i++) {
    const char *name = module->functions[i]->name;
    if (strncmp(name, f->name, length) == 0 && strcmp(name + length, end) == 0) return module->functions[i];
  }
  return NULL;
}

/* Whether something reads it; and whether nothing does but derivatives of norms, as what they are of. */
static bool is_read(const pl_ir_function *backward, const char *path, bool *by_norms) {
  bool any = false, all = true;
  for (int32_t i = 0; backward != NULL && i < backward->n_ops; i++) {
    const pl_ir_op *op = &backward->ops[i];
    for (int32_t k = 0; k < op->n_inputs; k++) {
      const pl_ir_op *maker = pl_ir_maker_of(backward, op->inputs[k]);
      if (maker == NULL || !is(maker, "kept") || strcmp(maker->path, path) != 0) continue;
      any = true;
      all = all && k == 0 && is_norm(backward, op, "rms_norm_backward");
    }
  }
  *by_norms = all;
  return any;
}

bool pl_kernel_keeps_wide(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *keep) {
  bool normed = false, by_norms, by_weights;
  if (pl_ir_element_bytes((pl_ir_element)f->values[keep->inputs[0]].type.element) >= 4) return false;
  for (int32_t i = 0; i < f->n_ops && !normed; i++) /* what is asked of each is dear: first whether it reads it */
    normed = f->ops[i].n_inputs > 0 && f->ops[i].inputs[0] == keep->inputs[0] && is_norm(f, &f->ops[i], "rms_norm");
  return normed && is_read(pl_kernel_derived_of(module, f, ".backward"), keep->path, &by_norms) && by_norms &&
         !is_read(pl_kernel_derived_of(module, f, ".weights"), keep->path, &by_weights);
}

bool pl_kernel_kept_is_wide(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept) {
  const pl_ir_function *forward = pl_ir_forward_of(module, f->name);
  const pl_ir_op *keep = keep_at(forward, kept);
  return keep != NULL && pl_kernel_keeps_wide(module, forward, keep);
}
