/* Writing a function in steps (kernel_steps.c), and what it keeps otherwise (kernel_kept.c): what both hold. Internal
 * to workloads/fuse/kernel*.c. */
#ifndef PL_WORKLOADS_KERNEL_STEPPING_H
#define PL_WORKLOADS_KERNEL_STEPPING_H

#include "workloads/fuse/kernel_groups.h"
#include "workloads/fuse/kernel_steps.h"

enum { PL_STEP_INPUTS = 2 };

/* What a gelu in steps makes between its operand and its result. */
enum { PL_GELU_PARTS = 3, PL_GELUS_MAX = 16 };
typedef struct pl_gelu_parts {
  int32_t value; /* of the old function: the operand */
  int32_t values[PL_GELU_PARTS];
} pl_gelu_parts;

typedef struct pl_kernel_stepping {
  const pl_ir_module *from;
  pl_ir_module *to;
  const pl_kernels_options *options;
  pl_arena scratch;
  pl_kernel_live live;
  int32_t index;             /* of that function */
  pl_kernel_finding finding; /* of the function that is written */
  pl_ir_function *function;  /* that it becomes */
  int32_t *map;              /* per value of the old function */
  int32_t *wide;             /* per value of the old function: its fp32 copy, PL_IR_NONE: none yet */
  int32_t *normed;           /* per value of the old function that a norm in steps gives: one as large beside it */
  int16_t *gradients;        /* per value of the old function: a gradient that is cast as soon as it is there, to this
                                element (PL_IR_NONE: stays as it is) */
  bool *paths;               /* per value: that of a matrix, on its way to being cut (pl_gradient_path) */
  const int **heads;         /* per value: steps of copies of queries, keys or values, 0 at the end; NULL: none */
  int32_t *copies;           /* per value: the copy that products over the tensor group read; PL_IR_NONE: none */
  int32_t *remade;           /* per value: an activation that gradients read, made again by their kernel; PL_IR_NONE */
  const bool *again;         /* per op of the old function: it makes a forward value again */
  bool copies_inputs;
  bool reduces;                      /* an update of the function reduces its gradients over data ranks */
  const struct pl_step_signs *signs; /* of kernel_batch_norm.c; NULL: batch norms stand by themselves */
  pl_gelu_parts gelus[PL_GELUS_MAX];
  int32_t n_gelus;
  int32_t answers; /* of the function that is written: experts' answers before they are weighed; PL_IR_NONE */
} pl_kernel_stepping;

static inline bool pl_step_is(const pl_kernel_stepping *own, int32_t op, const char *row) {
  return pl_read_is(&own->finding.read, op, row);
}

/* An op of the function that is written, with a result of this type. Returns its output. */
int32_t pl_step_append(pl_kernel_stepping *own, const char *row, int32_t n_inputs, const int32_t *inputs,
                       const char *name, const pl_ir_type *type, const char *reason);
/* The same of one operand, with a result of its type; `attribute`: NULL, none. */
int32_t pl_step_append_same(pl_kernel_stepping *own, const char *row, int32_t value, const char *reason,
                            const pl_ir_attribute *attribute);
/* The same elements in another type: the value itself where that is its type. */
int32_t pl_step_cast(pl_kernel_stepping *own, int32_t value, uint8_t element, const char *reason);
/* The fp32 copy of a value of the old function: made here before, kept, or made now. */
int32_t pl_step_wide(pl_kernel_stepping *own, int32_t value);

/* Of `keep` and `kept`: what a kernel makes again is not kept but what it makes it of. False: the op is to be copied as
 * it is. *made: the output of what stands for it, PL_IR_NONE: none. kernel_kept.c */
bool pl_step_keeps_otherwise(pl_kernel_stepping *own, int32_t index, int32_t *made);
/* Of a pass that is made again: what a gradient's kernel makes again of an activation in it, as of a kept one. Around
 * an op that is written, what it reads instead. */
void pl_step_remake_inputs(pl_kernel_stepping *own, int32_t index, int32_t before[PL_STEP_INPUTS]);

/* What the two below look into, of the function that is written. False: no memory. */
bool pl_step_begin_signs(pl_kernel_stepping *own);
/* Of a ReLU that is one kernel with its batch norm the signs of the result are kept, written besides by `keep`, and the
 * result itself where something else reads it. True: what stands there is not. kernel_batch_norm.c */
bool pl_step_keeps_signs(pl_kernel_stepping *own, int32_t index);
/* Of its derivative: the signs that it reads instead of the result, kept or made again; PL_IR_NONE: another op. */
int32_t pl_step_read_signs(pl_kernel_stepping *own, int32_t index);

/* A value that is kept beside another one, under its path and a word more; and the same read again. */
void pl_step_keep_part(pl_kernel_stepping *own, const pl_ir_op *keep, const char *part, int32_t value);
int32_t pl_step_kept_part(pl_kernel_stepping *own, const pl_ir_op *kept, const char *part, const pl_ir_type *type);

/* Copies of heads: which values have some; and these of `value`, which value `of` of the old function has become.
 * kernel_heads.c */
void pl_step_find_heads(pl_kernel_stepping *own);
int32_t pl_step_copy_heads(pl_kernel_stepping *own, int32_t of, int32_t value);

/* Copies for products over the tensor group: around an op that is written, what it reads instead. kernel_inputs.c */
void pl_step_begin_inputs(pl_kernel_stepping *own);
void pl_step_copy_inputs(pl_kernel_stepping *own, int32_t index, int32_t before[PL_STEP_INPUTS]);
void pl_step_put_inputs_back(pl_kernel_stepping *own, int32_t index, const int32_t before[PL_STEP_INPUTS]);

/* What else than its op a norm in steps launches: of its fp32 copy and its result, which gives another value as large
 * as that; and back, of the gradient that comes in. kernel_norm.c */
int32_t pl_step_norm(pl_kernel_stepping *own, const pl_ir_op *op, int32_t wide, int32_t output);
void pl_step_norm_backward(pl_kernel_stepping *own, const pl_ir_op *op, int32_t wide, int32_t gradient);

/* Behind an op that is written, what autocast launches besides. kernel_autocast.c */
void pl_step_autocast(pl_kernel_stepping *own, int32_t index);

/* Of a loss in steps: in front of an op and behind it, and behind all of them. kernel_loss.c */
void pl_step_cast_again(pl_kernel_stepping *own, int32_t index);
void pl_step_measure_loss(pl_kernel_stepping *own, int32_t index);
void pl_step_divide_loss(pl_kernel_stepping *own);

/* Reads a value once: its sum over the hidden dimension. kernel_bias.c */
void pl_step_sum(pl_kernel_stepping *own, int32_t value, const char *name, const char *why);

/* Behind an op that is written, what it is more in a graph. kernel_graph.c */
void pl_step_graph(pl_kernel_stepping *own, int32_t index);
/* So many kernels more, which move so many bytes together for an element of `value`. */
void pl_step_move(pl_kernel_stepping *own, int32_t value, const char *name, int kernels, double bytes);

/* Behind a mask, or the derivative of the softmax behind it, further kernels that mask. kernel_mask.c */
void pl_step_mask(pl_kernel_stepping *own, int32_t index);

/* Whether an update of the function reduces its gradients over data ranks, and moves something more for it; the update
 * of op `index`, which says what it moves. kernel_update.c */
bool pl_step_reduces_gradients(const pl_kernel_stepping *own);
int32_t pl_step_update(pl_kernel_stepping *own, int32_t index);

/* Behind a gelu, or its derivative, what it has in steps; and behind a `keep` what is kept of them. kernel_gelu.c */
void pl_step_gelu(pl_kernel_stepping *own, int32_t index);
void pl_step_gelu_backward(pl_kernel_stepping *own, int32_t index);
void pl_step_keep_gelu(pl_kernel_stepping *own, const pl_ir_op *keep);

/* Tokens of experts: whether they are exchanged `to` their experts or `from` them; `made`, which came, by its expert;
 * around what takes answers back, these by the device that they go to, and what there was of them before (PL_IR_NONE:
 * they lie so). Behind an op, what else moves them where no one kernel does. kernel_dispatch.c */
bool pl_step_exchanges(const pl_kernel_stepping *own, int32_t op, const char *which);
int32_t pl_step_sort_tokens(pl_kernel_stepping *own, int32_t index, int32_t made);
int32_t pl_step_sort_answers(pl_kernel_stepping *own, int32_t index);
void pl_step_dispatch(pl_kernel_stepping *own, int32_t index);

/* Behind the bias of experts' answers, and in front of the sum of its gradient, what they are in steps. kernel_bias.c
 */
void pl_step_expert_bias(pl_kernel_stepping *own, int32_t index);
void pl_step_expert_bias_backward(pl_kernel_stepping *own, int32_t index);

#endif
