/* What nobody asks a function for: results that no call reads, as the gradient of data, and what makes nothing else.
 * Frameworks do not compute it. What an op gives that nobody at all reads stays: whoever wrote it wanted it. See
 * workloads/fuse/kernel_steps.h.
 */
#include "workloads/fuse/kernel_steps.h"

#include "workloads/language/ir_table.h"

static bool is_droppable(const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  return effect == PL_IR_PURE || effect == PL_IR_READS || effect == PL_IR_COLLECTIVE;
}

/* In reverse: an op is live if something live reads it, if it does something, or if nobody reads it at all. */
static void mark(const pl_ir_function *f, const int32_t *n_readers, pl_kernel_live *live, int32_t index) {
  bool *value = live->value[index], *op_live = live->op[index];
  for (int32_t i = 0; i < f->n_results; i++)
    if (live->result[index][i]) value[f->results[i]] = true;
  for (int32_t i = f->n_ops; i-- > 0;) {
    const pl_ir_op *op = &f->ops[i];
    bool unread = true, read = false;
    for (int32_t k = 0; k < op->n_outputs; k++) {
      unread = unread && n_readers[op->first_output + k] == 0;
      read = read || value[op->first_output + k];
    }
    op_live[i] = unread || read || !is_droppable(op);
    for (int32_t k = 0; op_live[i] && k < op->n_inputs; k++)
      value[op->inputs[k]] = true;
    for (int32_t k = 0; op->callee != PL_IR_NONE && k < op->n_outputs; k++)
      if (value[op->first_output + k]) live->result[op->callee][k] = true;
  }
}

static int32_t *readers_of(const pl_ir_function *f, pl_arena *scratch) {
  int32_t *n = PL_TAKE(scratch, int32_t, f->n_values + 1);
  if (n == NULL) return NULL;
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      n[f->ops[i].inputs[k]]++;
  for (int32_t i = 0; i < f->n_results; i++)
    n[f->results[i]]++;
  return n;
}

static bool is_called(const pl_ir_module *module, int32_t function) {
  for (int32_t i = 0; i < module->n_functions; i++)
    for (int32_t k = 0; k < module->functions[i]->n_ops; k++)
      if (module->functions[i]->ops[k].callee == function) return true;
  return false;
}

bool pl_kernel_live_take(const pl_ir_module *module, bool whole, pl_arena *scratch, pl_kernel_live *live) {
  live->op = PL_TAKE(scratch, bool *, module->n_functions + 1);
  live->value = PL_TAKE(scratch, bool *, module->n_functions + 1);
  live->result = PL_TAKE(scratch, bool *, module->n_functions + 1);
  for (int32_t i = 0; i < module->n_functions && !scratch->failed; i++) {
    const pl_ir_function *f = module->functions[i];
    live->op[i] = PL_TAKE(scratch, bool, f->n_ops + 1);
    live->value[i] = PL_TAKE(scratch, bool, f->n_values + 1);
    live->result[i] = PL_TAKE(scratch, bool, f->n_results + 1);
    bool asked = whole && live->result[i] != NULL && !is_called(module, i);
    for (int32_t k = 0; asked && k < f->n_results; k++)
      live->result[i][k] = true;
  }
  for (int32_t i = module->n_functions; i-- > 0 && !scratch->failed;) { /* callers stand behind what they call */
    int32_t *n_readers = readers_of(module->functions[i], scratch);
    if (n_readers != NULL) mark(module->functions[i], n_readers, live, i);
  }
  return !scratch->failed;
}
