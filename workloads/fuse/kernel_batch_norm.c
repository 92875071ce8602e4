/* Batch norm with the ReLU behind it, and with the addition between the two, in one kernel (`fused_batch_norm` of a
 * profile): cuDNN's of 16-bit pictures whose channels come last (cudnnBatchNormalizationForwardTrainingEx with
 * CUDNN_BATCHNORM_OPS_BN_ACTIVATION or _BN_ADD_ACTIVATION, which MXNet's and OneFlow's fused ops call). It keeps what
 * it reads on chip: one read of the picture and of what is added, one write of the result. What the derivative needs of
 * the result is its signs, a bit an element in cuDNN's reserve space, so that the result is kept for it no longer; that
 * of the addition's other operand is what the ReLU lets through, written beside the picture's gradient.
 * See workloads/fuse/kernel_groups.h, kernel_stepping.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_stepping.h"
#include "workloads/language/ir_again.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* Operands that a value is, and results that it is handed back as. */
static int32_t n_readers(const pl_ir_function *f, int32_t value) {
  int32_t n = 0;
  for (int32_t i = f->values[value].op + 1; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++)
      n += f->ops[i].inputs[k] == value;
  for (int32_t i = 0; i < f->n_results; i++)
    n += f->results[i] == value;
  return n;
}

/* Parts of a batch that norms are taken of by themselves: the same elements in the same places. */
static bool is_of_parts(const pl_ir_op *op) {
  return is(op, "split") || is(op, "join");
}

/* The norm that makes a value which nothing else reads; PL_IR_NONE: there is none. */
static int32_t norm_of(const pl_ir_function *f, int32_t value) {
  for (int32_t op = f->values[value].op; op != PL_IR_NONE && n_readers(f, value) == 1; op = f->values[value].op) {
    if (is(&f->ops[op], "batch_norm")) return op;
    if (!is_of_parts(&f->ops[op])) return PL_IR_NONE;
    value = f->ops[op].inputs[0];
  }
  return PL_IR_NONE;
}

/* A ReLU that is one kernel with the batch norm in front of it, and the addition between the two (PL_IR_NONE: none). */
typedef struct normed_relu {
  int32_t norm, add;
} normed_relu;

static bool is_normed_relu(const pl_ir_function *f, int32_t relu, const pl_framework *framework, normed_relu *found) {
  if (!framework->kernels.fuses_batch_norm || !is(&f->ops[relu], "relu")) return false;
  int32_t value = f->ops[relu].inputs[0], sum = f->values[value].op;
  if (pl_ir_element_bytes((pl_ir_element)f->values[value].type.element) != 2) return false;
  *found = (normed_relu){.norm = norm_of(f, value), .add = PL_IR_NONE};
  if (found->norm != PL_IR_NONE) return true;
  if (sum == PL_IR_NONE || !is(&f->ops[sum], "add") || n_readers(f, value) != 1) return false;
  found->add = sum;
  for (int32_t i = 0; i < 2 && found->norm == PL_IR_NONE; i++)
    found->norm = norm_of(f, f->ops[sum].inputs[i]);
  return found->norm != PL_IR_NONE;
}

/* ---- signs ---- */

/* That `keep` of f keeps the result of such a ReLU. */
static bool keeps_result(const pl_ir_function *f, const pl_ir_op *keep, const pl_framework *framework) {
  normed_relu found;
  int32_t maker = is(keep, "keep") ? f->values[keep->inputs[0]].op : PL_IR_NONE;
  return maker != PL_IR_NONE && is_normed_relu(f, maker, framework, &found);
}

/* Who reads what is kept under a path in a function that is derived: derivatives of ReLUs, of the result, and others.
 */
static void count_readers(const pl_ir_function *derived, const char *path, int32_t *n_relus, int32_t *n_others) {
  for (int32_t i = 0; derived != NULL && i < derived->n_ops; i++)
    for (int32_t k = 0; k < derived->ops[i].n_inputs; k++) {
      int32_t maker = derived->values[derived->ops[i].inputs[k]].op;
      if (maker == PL_IR_NONE || !is(&derived->ops[maker], "kept") || strcmp(derived->ops[maker].path, path) != 0)
        continue;
      bool signs = k == 0 && is(&derived->ops[i], "relu_backward");
      *n_relus += signs;
      *n_others += !signs;
    }
}

static int32_t append_signs(pl_kernel_stepping *own, int32_t value) {
  if (value == PL_IR_NONE) return PL_IR_NONE;
  pl_ir_type type = own->function->values[value].type;
  type.element = PL_IR_BIT;
  const char *name = pl_arena_printf(own->to->arena, "%s.signs", own->function->values[value].name);
  return name != NULL ? pl_step_append(own, "signs", 1, &value, name, &type, NULL) : PL_IR_NONE;
}

/* What `kept` reads was kept by; NULL: by no op of the function that this one is derived of. */
static const pl_ir_op *keep_of(const pl_kernel_stepping *own, const pl_ir_op *kept, const pl_ir_function **forward) {
  *forward = pl_ir_forward_of(own->from, own->finding.read.f->name);
  for (int32_t i = 0; *forward != NULL && i < (*forward)->n_ops; i++)
    if (is(&(*forward)->ops[i], "keep") && strcmp((*forward)->ops[i].path, kept->path) == 0) return &(*forward)->ops[i];
  return NULL;
}

bool pl_step_keeps_signs(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  const pl_ir_function *f = own->finding.read.f, *forward;
  const pl_ir_op *op = &f->ops[index];
  int32_t n_relus = 0, n_others = 0;
  if (!framework->kernels.fuses_batch_norm) return false;
  if (is(op, "kept")) {
    const pl_ir_op *keep = keep_of(own, op, &forward);
    if (keep == NULL || !keeps_result(forward, keep, framework)) return false;
    count_readers(f, op->path, &n_relus, &n_others);
    return n_relus > 0 && n_others == 0;
  }
  if (!keeps_result(f, op, framework)) return false;
  count_readers(pl_kernel_derived_of(own->from, f, ".backward"), op->path, &n_relus, &n_others);
  if (n_relus == 0) return false;
  count_readers(pl_kernel_derived_of(own->from, f, ".weights"), op->path, &n_relus, &n_others);
  pl_step_keep_part(own, op, "signs", append_signs(own, own->map[op->inputs[0]]));
  return n_others == 0;
}

int32_t pl_step_read_signs(pl_kernel_stepping *own, int32_t index) {
  const pl_framework *framework = own->options->framework;
  const pl_ir_function *f = own->finding.read.f, *forward;
  normed_relu found;
  if (!framework->kernels.fuses_batch_norm || !pl_step_is(own, index, "relu_backward")) return PL_IR_NONE;
  int32_t value = f->ops[index].inputs[0], maker = f->values[value].op;
  if (maker == PL_IR_NONE) return PL_IR_NONE;
  if (is_normed_relu(f, maker, framework, &found)) return append_signs(own, own->map[value]); /* made again */
  const pl_ir_op *keep = is(&f->ops[maker], "kept") ? keep_of(own, &f->ops[maker], &forward) : NULL;
  if (keep == NULL || !keeps_result(forward, keep, framework)) return PL_IR_NONE;
  pl_ir_type type = f->values[value].type;
  type.element = PL_IR_BIT;
  return pl_step_kept_part(own, &f->ops[maker], "signs", &type);
}

/* ---- one kernel ---- */

/* All that lies between an operation and what it is made of. */
static void join_down(pl_kernel_finding *own, int32_t op, int32_t value, int32_t norm) {
  for (int32_t at = pl_read_maker(&own->read, value); at != norm; at = pl_read_made(&own->read, at, 0))
    pl_kernel_join(own, op, at);
}

static void join_forward(pl_kernel_finding *own, int32_t relu, const normed_relu *of) {
  const pl_ir_function *f = own->read.f;
  int32_t last = of->add != PL_IR_NONE ? of->add : relu;
  for (int32_t i = 0; i < f->ops[last].n_inputs; i++)
    if (norm_of(f, f->ops[last].inputs[i]) == of->norm) join_down(own, relu, f->ops[last].inputs[i], of->norm);
  pl_kernel_join(own, relu, of->norm);
  pl_kernel_join(own, relu, of->add);
  for (int32_t i = relu + 1; i < f->n_ops; i++)
    if (is(&f->ops[i], "signs") && f->ops[i].inputs[0] == f->ops[relu].first_output) pl_kernel_join(own, relu, i);
}

/* The norm whose derivative is given what a ReLU lets through, perhaps by parts; of two that of the one in front, which
 * comes last. */
static void join_backward(pl_kernel_finding *own, int32_t relu) {
  const pl_ir_function *f = own->read.f;
  int32_t passed = f->ops[relu].first_output, found = PL_IR_NONE, view = PL_IR_NONE;
  for (int32_t i = relu + 1; i < f->n_ops; i++) {
    if (!is(&f->ops[i], "batch_norm_backward")) continue;
    int32_t dy = f->ops[i].inputs[2], maker = f->values[dy].op;
    bool parts = maker != PL_IR_NONE && is_of_parts(&f->ops[maker]) && f->ops[maker].inputs[0] == passed;
    if (dy != passed && !parts) continue;
    found = i;
    view = parts ? maker : PL_IR_NONE;
  }
  if (found == PL_IR_NONE) return;
  pl_kernel_join(own, relu, found);
  pl_kernel_join(own, relu, view);
}

void pl_kernel_batch_norms(pl_kernel_finding *own) {
  const pl_ir_function *f = own->read.f;
  normed_relu found;
  for (int32_t i = 0; own->framework->kernels.fuses_batch_norm && i < f->n_ops; i++) {
    if (is_normed_relu(f, i, own->framework, &found)) join_forward(own, i, &found);
    bool signs = is(&f->ops[i], "relu_backward") && f->values[f->ops[i].inputs[0]].type.element == PL_IR_BIT;
    if (signs) join_backward(own, i);
  }
}
