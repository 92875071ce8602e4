/* Values that a fused kernel makes again in the backward pass instead of reading them: of act(gate) * up, where that is
 * one kernel, the activation of what is kept anyhow. See workloads/passes/kernel_steps.h.
 */
#include <string.h>

#include "workloads/passes/kernel_steps.h"

static bool is(const pl_ir_op *op, const char *row) {
  return strcmp(pl_ir_row_at(op->row)->name, row) == 0;
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

bool pl_kernel_is_remade(const pl_ir_function *f, const pl_ir_op *keep, pl_kernel_remade *made) {
  int32_t maker = f->values[keep->inputs[0]].op;
  if (maker == PL_IR_NONE || !is_multiplied(f, keep->inputs[0])) return false;
  made->op = &f->ops[maker];
  if (!is(made->op, "silu") && !is(made->op, "gelu") && !is(made->op, "relu")) return false;
  made->keep = keep_of(f, made->op->inputs[0]);
  made->type = &f->values[made->op->inputs[0]].type;
  return made->keep != NULL && pl_ir_type_equal(made->type, &f->values[keep->inputs[0]].type);
}

/* The forward function of a backward one, by its name. */
static const pl_ir_function *forward_of(const pl_ir_module *module, const char *name) {
  static const char *const ends[] = {".backward", ".weights"};
  for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    size_t length = strlen(name), end = strlen(ends[e]);
    if (length <= end || strcmp(name + length - end, ends[e]) != 0) continue;
    for (int32_t i = 0; i < module->n_functions; i++)
      if (strlen(module->functions[i]->name) == length - end &&
          strncmp(module->functions[i]->name, name, length - end) == 0)
        return module->functions[i];
  }
  return NULL;
}

bool pl_kernel_remade_of(const pl_ir_module *module, const pl_ir_function *f, const pl_ir_op *kept,
                         pl_kernel_remade *made) {
  const pl_ir_function *forward = forward_of(module, f->name);
  for (int32_t i = 0; forward != NULL && i < forward->n_ops; i++) {
    const pl_ir_op *op = &forward->ops[i];
    if (is(op, "keep") && strcmp(op->path, kept->path) == 0) return pl_kernel_is_remade(forward, op, made);
  }
  return false;
}
