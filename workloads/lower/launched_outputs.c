/* What kernels of a block write (launched_kernels.h): outputs in tensors of their own or in place, masks, what norms
 * keep, buffers of gradients. */
#include "core/cluster/cluster.h"
#include "workloads/fuse/reading.h"
#include "workloads/lower/launched_kernels.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- what a kernel reads and writes ---- */

/* By one for weights, which may come later than it is written over. */
static bool is_read_for_weights(const pl_launching *own, uint32_t tensor, int32_t before) {
  for (int32_t i = 0; i < before; i++)
    for (int32_t k = 0; !own->for_inputs[i] && k < own->f->ops[i].n_inputs; k++)
      if (own->tensor[own->f->ops[i].inputs[k]] == tensor) return true;
  return false;
}

/* A sum of two gradients, one of which nobody reads later, is made in its place. */
static uint32_t added_in_place(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  if (!own->backward || own->again[index] || !is(op, "add")) return PL_NONE;
  if (own->last[op->first_output] == PL_IR_NONE) return PL_NONE; /* a step of a kernel beside it */
  for (int32_t i = op->n_inputs; i-- > 0;) {
    uint32_t tensor = own->tensor[op->inputs[i]];
    if (tensor == PL_NONE || own->tape->tensors[tensor].kind != PL_TENSOR_GRADIENT) continue;
    if (pl_launching_is_read_later(own, tensor, index) || is_read_for_weights(own, tensor, index)) continue;
    if (own->tape->tensors[tensor].size_bytes == pl_launching_bytes(own, op->first_output)) return tensor;
  }
  return PL_NONE;
}

static bool is_unread(const pl_launching *own, const pl_ir_op *op) {
  for (int32_t k = 0; k < op->n_outputs; k++)
    if (own->last[op->first_output + k] != PL_IR_NONE) return false;
  return op->n_outputs > 0;
}

/* A step of a kernel beside it, whose result nobody reads, works in place on a value that only such steps read. */
static uint32_t step_in_place(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  if (op->n_inputs == 0 || !is_unread(own, op)) return PL_NONE;
  int32_t value = op->inputs[0];
  for (int32_t i = 0; i < own->f->n_ops; i++)
    for (int32_t k = 0; k < own->f->ops[i].n_inputs; k++)
      if (own->f->ops[i].inputs[k] == value && !is_unread(own, &own->f->ops[i])) return PL_NONE;
  return own->f->values[value].op != PL_IR_NONE ? own->tensor[value] : PL_NONE;
}

static uint32_t loss_in_place(const pl_launching *own, int32_t index) {
  const pl_ir_op *op = &own->f->ops[index];
  pl_loss_form form = own->tape->framework->kernels.loss;
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  if (own->block->kind != PL_BLOCK_LOSS) return PL_NONE;
  if (is(&of.ops[0], "divide")) return own->tensor[op->inputs[0]]; /* of exponentials */
  for (int32_t k = 0; k < op->n_outputs; k++) {
    const pl_ir_type *type = &own->f->values[op->first_output + k].type;
    bool handed = own->backward && pl_dtype_bytes(own->tape->shard->dtype) == pl_dtype_bytes(PL_DTYPE_FP32);
    if (handed || !pl_read_loss_is_in_place(form, &of.ops[0], type)) continue;
    for (int32_t i = 0; i < op->n_inputs; i++)
      if (pl_ir_type_same_shape(&own->f->values[op->inputs[i]].type, type)) return own->tensor[op->inputs[i]];
  }
  return PL_NONE;
}

/* Of a kernel with more outputs the rest is one tensor; gradients of weights that are one are. */
enum { OUTPUTS_APART = 3 };

void pl_launching_note_outputs(pl_launching *own, int32_t index, const char *name, pl_op *kernel) {
  const pl_ir_op *op = &own->f->ops[index];
  uint32_t place = added_in_place(own, index);
  if (place == PL_NONE) place = loss_in_place(own, index);
  if (place == PL_NONE) place = step_in_place(own, index);
  for (int32_t k = 0; k < op->n_outputs; k++) {
    int32_t value = op->first_output + k;
    if (place != PL_NONE && pl_launching_bytes(own, value) == own->tape->tensors[place].size_bytes)
      own->tensor[value] = place;
    else if (k >= OUTPUTS_APART || (k > 0 && pl_launching_is_of_parameter(own, value)))
      own->tensor[value] = pl_launching_beside(own, own->tensor[value - 1], value);
    else
      own->tensor[value] = pl_launching_make(own, value, pl_launching_value_name(own, value, name));
    pl_launching_write(own, kernel, own->tensor[value]);
  }
}

/* Masks of its dropouts: written forward, read backward. */
static void note_masks(pl_launching *own, int32_t index, const char *name, pl_op *kernel) {
  const pl_ir_op *op = &own->f->ops[index];
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  for (int32_t i = 0; i < of.n; i++) {
    if (!is(&of.ops[i], "dropout")) continue;
    uint32_t mask = pl_launching_mask(own, &of, &of.ops[i], name);
    if (own->backward && !own->again[index])
      pl_launching_read(own, kernel, mask);
    else
      pl_launching_write(own, kernel, mask);
  }
}

/* What was kept and nobody reads is the weights' of a norm in steps (kernel_norm.c): its kernel does. */
static void note_unread(pl_launching *own, const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  bool norm = false;
  for (int32_t i = 0; i < of.n; i++)
    norm = norm || is(&of.ops[i], "rms_norm_backward");
  for (int32_t i = 0; norm && i < own->n_unread; i++)
    pl_launching_read(own, kernel, own->unread[i]);
  if (norm) own->n_unread = 0;
}

/* Buffers that it adds to. */
static void note_buffers(pl_launching *own, const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  for (int32_t i = 0; i < of.n; i++) {
    if (!is(&of.ops[i], "accumulate")) continue;
    uint32_t buffer = pl_launching_buffer(own, of.ops[i].path);
    if (buffer == PL_NONE) continue;
    if (kernel->kind != PL_OP_NORM) pl_launching_read(own, kernel, buffer);
    pl_launching_write(own, kernel, buffer);
  }
}

/* PyTorch's cross entropy: the gradient of the targets' elements is a tensor of its own, zeros but for them
 * (nll_loss_backward), which log_softmax_backward reads beside its result. It has its room here; the time of filling
 * and reading it is not charged. */
static void note_scattered(pl_launching *own, const pl_ir_op *op, pl_op *kernel) {
  const pl_ir_launched_ops of = pl_ir_launched_by(own->kernels, own->f, op);
  if (own->tape->framework->kernels.loss != PL_LOSS_COPIES || own->block->kind != PL_BLOCK_LOSS) return;
  for (int32_t i = 0; i < of.n; i++)
    if (is(&of.ops[i], "place") && kernel->output != PL_NONE && kernel->auxiliary == PL_NONE)
      kernel->auxiliary = pl_tape_like(own->tape, kernel->output, "scattered", PL_TENSOR_GRADIENT,
                                       (pl_dtype)own->tape->tensors[kernel->output].dtype);
}

static void fill(const pl_launching *own, pl_op *kernel) {
  if (!kernel->deterministic || !pl_op_allocates(kernel) || kernel->output == PL_NONE) return;
  if (own->tape->tensors[kernel->output].kind != PL_TENSOR_PARAMETER_GRADIENT)
    kernel->filled_bytes = own->tape->tensors[kernel->output].size_bytes;
}

void pl_launching_note_beside(pl_launching *own, int32_t index, pl_op *kernel) {
  const pl_ir_op *op = &own->f->ops[index];
  note_buffers(own, op, kernel);
  note_masks(own, index, kernel->name, kernel);
  if (own->backward) note_unread(own, op, kernel);
  if (own->backward) note_scattered(own, op, kernel);
  fill(own, kernel);
}
