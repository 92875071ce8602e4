/* What functions keep otherwise than the program says, because the kernels that read it make it again: exponentials of
 * a loss, squared activations, activations of a gate; and norms in steps, which keep the copy that they work on. See
 * workloads/fuse/kernel_stepping.h.
 */
#include "workloads/fuse/kernel_stepping.h"

#include <string.h>

#include "workloads/fuse/kept_path.h"

/* What is kept under a path, as it was read before; PL_IR_NONE: not yet. */
static int32_t read_before(const pl_kernel_stepping *own, const char *path) {
  int32_t kept = pl_ir_row_of("kept");
  for (int32_t i = 0; i < own->function->n_ops; i++)
    if (own->function->ops[i].row == kept && strcmp(own->function->ops[i].path, path) == 0)
      return own->function->ops[i].first_output;
  return PL_IR_NONE;
}

/* An activation once more, of its operand. */
static int32_t append_remade(pl_kernel_stepping *own, const pl_ir_op *kept, const pl_kernel_remade *made,
                             int32_t operand) {
  const char *name = own->finding.read.f->values[kept->first_output].name;
  if (operand == PL_IR_NONE) return PL_IR_NONE;
  return pl_ir_op_add(own->to, own->function,
                      &(pl_ir_making){.row = made->op->row,
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .n_attributes = made->op->n_attributes,
                                      .inputs = &operand,
                                      .attributes = made->op->attributes,
                                      .output_names = &name,
                                      .output_types = made->type,
                                      .reason = "made again by the kernel that reads it",
                                      .callee = PL_IR_NONE});
}

static int32_t read_kept(pl_kernel_stepping *own, const pl_ir_op *keep, const pl_ir_type *type) {
  int32_t before = read_before(own, keep->path);
  return before != PL_IR_NONE ? before
                              : pl_ir_op_typed(own->to, own->function, "kept", keep->path, keep->path, 0, NULL, type,
                                               keep->n_attributes, keep->attributes); /* from where it was kept */
}

/* Of operands that are kept anyhow. */
static int32_t remake(pl_kernel_stepping *own, const pl_ir_op *kept, const pl_kernel_remade *made) {
  int32_t activation = append_remade(own, kept, made, read_kept(own, made->keep, made->type));
  if (made->times == NULL || activation == PL_IR_NONE) return activation;
  const int32_t pair[] = {activation, read_kept(own, made->times, made->type)};
  if (pair[1] == PL_IR_NONE) return PL_IR_NONE;
  return pl_step_append(own, "multiply", 2, pair, own->finding.read.f->values[kept->first_output].name, made->type,
                        "made again by the kernel that reads it");
}

/* ---- what stands for something ---- */

static const char *path_of_part(pl_kernel_stepping *own, const char *path, const char *part) {
  const char *made = pl_kept_path_of_part(own->from, path, part, own->to->arena);
  return made != NULL ? made : path;
}

void pl_step_keep_part(pl_kernel_stepping *own, const pl_ir_op *keep, const char *part, int32_t value) {
  if (value != PL_IR_NONE)
    pl_ir_op_typed(own->to, own->function, "keep", NULL, path_of_part(own, keep->path, part), 1, &value, NULL,
                   keep->n_attributes, keep->attributes);
}

int32_t pl_step_kept_part(pl_kernel_stepping *own, const pl_ir_op *kept, const char *part, const pl_ir_type *type) {
  const char *path = path_of_part(own, kept->path, part);
  return pl_ir_op_typed(own->to, own->function, "kept", part, path, 0, NULL, type, kept->n_attributes,
                        kept->attributes);
}

/* ---- a loss in one kernel ---- */

/* exp(logits - greatest) of what is kept of the two. */
static int32_t remake_exponentials(pl_kernel_stepping *own, const pl_ir_op *kept, const pl_kernel_exponentials *made) {
  static const char *const reason = "made again by the kernel that reads it";
  const pl_ir_value *values = made->forward->values;
  int32_t logits = pl_step_kept_part(own, kept, "logits", &values[made->logits].type);
  int32_t greatest = pl_step_kept_part(own, kept, "greatest", &values[made->greatest].type);
  if (logits == PL_IR_NONE || greatest == PL_IR_NONE) return PL_IR_NONE;
  if (made->cast != NULL)
    logits = pl_step_append(own, "cast", 1, &logits, "logits.fp32", &values[made->cast->first_output].type, reason);
  const int32_t pair[] = {logits, greatest};
  if (logits == PL_IR_NONE) return PL_IR_NONE;
  int32_t shifted =
      pl_step_append(own, "subtract", 2, pair, "shifted", &values[made->subtract->first_output].type, reason);
  if (shifted == PL_IR_NONE) return PL_IR_NONE;
  return pl_step_append(own, "exp", 1, &shifted, own->finding.read.f->values[kept->first_output].name,
                        &values[made->exp->first_output].type, reason);
}

/* False: the op is none that a loss in one kernel has otherwise. */
static bool copy_of_loss(pl_kernel_stepping *own, int32_t index, int32_t *made) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  pl_loss_form form = own->options->framework->kernels.loss;
  bool narrow = pl_loss_reads_16bit(form);
  pl_kernel_exponentials of;
  *made = PL_IR_NONE;
  if (!pl_loss_is_one_kernel(form)) return false;
  if (pl_step_is(own, index, "keep") && pl_kernel_is_exponentials(own->finding.read.f, op, narrow, &of)) {
    pl_step_keep_part(own, op, "logits", own->map[of.logits]);
    pl_step_keep_part(own, op, "greatest", own->map[of.greatest]);
    return true;
  }
  if (!pl_step_is(own, index, "kept") || !pl_kernel_exponentials_of(own->from, own->finding.read.f, op, narrow, &of))
    return false;
  *made = remake_exponentials(own, op, &of);
  return true;
}

/* ---- norms and activations ---- */

static const char *normed_name(pl_kernel_stepping *own, int32_t n) {
  const char *made = n > 0 ? pl_arena_printf(own->to->arena, "normed.%d", n + 1) : "normed";
  return made != NULL ? made : "normed";
}

/* What the weights of norms in steps multiply, in the type of all else, is kept for these weights' gradients. */
static void keep_normed(pl_kernel_stepping *own, const pl_ir_op *keep) {
  int32_t n = 0;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    const pl_ir_op *norm = pl_read_op(&own->finding.read, i);
    if (!pl_step_is(own, i, "rms_norm") || norm->inputs[0] != keep->inputs[0]) continue;
    pl_step_keep_part(own, keep, normed_name(own, n++), own->normed[norm->first_output]);
  }
}

static void read_normed(pl_kernel_stepping *own, const pl_ir_op *kept) {
  const pl_ir_type *type = &own->finding.read.f->values[kept->first_output].type;
  int32_t n = 0;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++)
    if (pl_step_is(own, i, "rms_norm_backward") && pl_read_op(&own->finding.read, i)->inputs[0] == kept->first_output)
      (void)pl_step_kept_part(own, kept, normed_name(own, n++), type);
}

/* What norms in steps keep is the copy that they work on. False: another op. */
static bool copy_of_norm(pl_kernel_stepping *own, int32_t index, int32_t *made) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  *made = PL_IR_NONE;
  if (own->options->framework->kernels.fuses_norm) return false;
  if (pl_step_is(own, index, "keep") && pl_kernel_keeps_wide(own->from, own->finding.read.f, op)) {
    pl_step_keep_part(own, op, "fp32", pl_step_wide(own, op->inputs[0]));
    keep_normed(own, op);
    return true;
  }
  if (!pl_step_is(own, index, "kept") || !pl_kernel_kept_is_wide(own->from, own->finding.read.f, op)) return false;
  pl_ir_type type = own->finding.read.f->values[op->first_output].type;
  type.element = PL_IR_F32;
  *made = own->wide[op->first_output] = pl_step_kept_part(own, op, "fp32", &type);
  read_normed(own, op);
  return true;
}

/* Of an activation that is squared its operand is kept. False: another op. */
static bool copy_of_square(pl_kernel_stepping *own, int32_t index, int32_t *made) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  pl_kernel_remade of;
  *made = PL_IR_NONE;
  if (pl_step_is(own, index, "keep") && pl_kernel_is_squared(own->finding.read.f, op, &of)) {
    pl_step_keep_part(own, op, "operand", own->map[of.op->inputs[0]]);
    return true;
  }
  if (!pl_step_is(own, index, "kept") || !pl_kernel_squared_of(own->from, own->finding.read.f, op, &of)) return false;
  *made = append_remade(own, op, &of, pl_step_kept_part(own, op, "operand", of.type));
  return true;
}

bool pl_step_keeps_otherwise(pl_kernel_stepping *own, int32_t index, int32_t *made) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  bool remakes = pl_framework_fuses_gate(own->options->framework), reads = pl_step_is(own, index, "kept");
  pl_kernel_remade of;
  if (copy_of_loss(own, index, made) || copy_of_norm(own, index, made) || copy_of_square(own, index, made)) return true;
  if (pl_step_keeps_signs(own, index)) return true;
  if (remakes && pl_step_is(own, index, "keep") && pl_kernel_is_remade(own->finding.read.f, op, &of)) return true;
  if (remakes && reads && pl_kernel_remade_of(own->from, own->finding.read.f, op, &of)) {
    *made = remake(own, op, &of);
    return true;
  }
  *made = reads ? read_before(own, op->path) : PL_IR_NONE;
  return *made != PL_IR_NONE;
}

/* ---- in a pass that is made again ---- */

/* Of an activation that is one kernel with its square, or with what it multiplies. */
static bool is_inside_kernel(const pl_kernel_stepping *own, int32_t activation) {
  int32_t value = pl_read_op(&own->finding.read, activation)->first_output;
  for (int32_t i = 0; i < own->finding.read.f->n_ops; i++) {
    const pl_ir_op *op = pl_read_op(&own->finding.read, i);
    if (!own->again[i] || !pl_step_is(own, i, "multiply")) continue;
    bool square = op->inputs[0] == value && op->inputs[1] == value,
         one = op->inputs[0] == value || op->inputs[1] == value;
    if (square || (one && pl_framework_fuses_gate(own->options->framework))) return true;
  }
  return false;
}

/* The activation of a gated one that is weighted by the kernel that makes it; PL_IR_NONE: it is none. *other: what it
 * multiplies. */
static int32_t gated_inside(const pl_kernel_stepping *own, int32_t multiply, int32_t *other) {
  const pl_reading *read = &own->finding.read;
  if (!pl_step_is(own, multiply, "multiply") || !is_inside_kernel(own, multiply)) return PL_IR_NONE;
  const int32_t *inputs = pl_read_op(read, multiply)->inputs;
  for (int i = 0; i < 2; i++) {
    int32_t maker = pl_read_maker(read, inputs[i]);
    *other = inputs[1 - i];
    if (maker != PL_IR_NONE && own->again[maker] && pl_read_is_activation(read, maker)) return maker;
  }
  return PL_IR_NONE;
}

static int32_t append_again(pl_kernel_stepping *own, int32_t op, int32_t n, const int32_t *operands) {
  const pl_ir_op *made = pl_read_op(&own->finding.read, op);
  return pl_step_append(own, pl_ir_row_at(made->row)->name, n, operands,
                        own->finding.read.f->values[made->first_output].name,
                        pl_read_type(&own->finding.read, made->first_output), "made again by the kernel that reads it");
}

/* What stands for a value of such a kernel in those that read it; PL_IR_NONE: the value itself. */
static int32_t remade_inside(pl_kernel_stepping *own, int32_t value) {
  const pl_reading *read = &own->finding.read;
  int32_t maker = pl_read_maker(read, value), other, *remade = &own->remade[value];
  if (maker == PL_IR_NONE || !own->again[maker] || *remade != PL_IR_NONE) return *remade;
  if (pl_read_is_activation(read, maker) && is_inside_kernel(own, maker)) {
    *remade = append_again(own, maker, 1, &own->map[pl_read_op(read, maker)->inputs[0]]);
    return *remade;
  }
  int32_t activation = gated_inside(own, maker, &other);
  if (activation == PL_IR_NONE) return PL_IR_NONE;
  const int32_t *operand = &own->map[pl_read_op(read, activation)->inputs[0]];
  const int32_t pair[] = {append_again(own, activation, 1, operand), own->map[other]};
  if (pair[0] != PL_IR_NONE) *remade = append_again(own, maker, 2, pair);
  return *remade;
}

void pl_step_remake_inputs(pl_kernel_stepping *own, int32_t index, int32_t before[PL_STEP_INPUTS]) {
  const pl_ir_op *op = pl_read_op(&own->finding.read, index);
  for (int32_t i = 0; i < PL_STEP_INPUTS; i++)
    before[i] = PL_IR_NONE;
  for (int32_t i = 0; !own->again[index] && i < op->n_inputs && i < PL_STEP_INPUTS; i++) {
    int32_t value = op->inputs[i], remade = remade_inside(own, value);
    if (remade == PL_IR_NONE) continue;
    before[i] = own->map[value];
    own->map[value] = remade;
  }
  int32_t signs = pl_step_read_signs(own, index);
  if (signs == PL_IR_NONE) return;
  before[0] = own->map[op->inputs[0]];
  own->map[op->inputs[0]] = signs;
}
