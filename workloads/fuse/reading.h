/* Reading a function: who makes its values and who computes with them, and what its ops are to those who look for
 * kernels in it: the pass that writes kernels of programs (workloads/fuse/kernels.h).
 */
#ifndef PL_WORKLOADS_READING_H
#define PL_WORKLOADS_READING_H

#include <string.h>

#include "workloads/framework/framework.h"
#include "workloads/language/ir_table.h"

typedef struct pl_reading {
  const pl_ir_mesh *mesh;
  const pl_ir_function *f;
  /* Per value: operands that it is of ops that compute with it (`keep` does not, nor do calls' results), and the first
   * of these, PL_IR_NONE = none. */
  const int32_t *n_users, *user;
} pl_reading;

/* In `arena`. False: no memory. O(ops). */
bool pl_reading_take(pl_reading *own, const pl_ir_mesh *mesh, const pl_ir_function *f, pl_arena *arena);

static inline const pl_ir_op *pl_read_op(const pl_reading *own, int32_t op) {
  return &own->f->ops[op];
}
static inline const pl_ir_type *pl_read_type(const pl_reading *own, int32_t value) {
  return &own->f->values[value].type;
}
/* False for PL_IR_NONE. */
static inline bool pl_read_is(const pl_reading *own, int32_t op, const char *row) {
  return op != PL_IR_NONE && pl_ir_op_is(pl_read_op(own, op), row);
}
/* `rows` ends with NULL. */
bool pl_read_is_one_of(const pl_reading *own, int32_t op, const char *const *rows);

/* The op that makes a value; PL_IR_NONE: an argument. */
static inline int32_t pl_read_maker(const pl_reading *own, int32_t value) {
  return own->f->values[value].op;
}
/* The op that makes operand `i` of `op`; PL_IR_NONE: there is none. */
int32_t pl_read_made(const pl_reading *own, int32_t op, int32_t i);
/* The op that computes with a value if there is one only, else PL_IR_NONE; with the first output of `op`. */
static inline int32_t pl_read_user(const pl_reading *own, int32_t value) {
  return own->n_users[value] == 1 ? own->user[value] : PL_IR_NONE;
}
static inline int32_t pl_read_next(const pl_reading *own, int32_t op) {
  return pl_read_user(own, own->f->ops[op].first_output);
}

/* ---- what ops are ---- */
bool pl_read_is_activation(const pl_reading *own, int32_t op); /* gelu, silu, relu */
bool pl_read_is_square(const pl_reading *own, int32_t op);     /* of a value by itself */
bool pl_read_is_norm(const pl_reading *own, int32_t op);       /* of tokens, not of batches */
/* Tokens as wide as the model, by expert too; weights have no batch. */
static inline bool pl_read_is_of_tokens(const pl_ir_type *type) {
  return pl_ir_type_find(type, pl_ir_name_of("b")) >= 0 && pl_ir_type_find(type, pl_ir_name_of("h")) >= 0;
}
static inline bool pl_read_is_of_experts(const pl_ir_type *type) {
  return pl_read_is_of_tokens(type) && pl_ir_type_find(type, pl_ir_name_of("x")) >= 0;
}
/* Renames and cuts: the same elements, or a part of them. */
bool pl_read_is_view(const pl_reading *own, int32_t op);
bool pl_read_is_collective(const pl_reading *own, int32_t op); /* `cut` is none, nor is a ring of attention */
/* Of partial sums, whose results all ranks have or parts of them. */
bool pl_read_is_reduction(const pl_reading *own, int32_t op);
/* Behind what gathers, cuts, casts or copies it: the path of the parameter that a value is; NULL: none. */
const char *pl_read_param(const pl_reading *own, int32_t value);
/* Of the parameter that an op has for its second operand; an addition of one is one of a bias. */
const char *pl_read_weight(const pl_reading *own, int32_t op);
bool pl_read_is_bias(const pl_reading *own, int32_t op);
bool pl_read_is_partial(const pl_reading *own, int32_t value);

/* ---- patterns ---- */
/* Whether the addition of a bias, or a dropout, belongs to a residual addition behind it, with nothing in between that
 * others read. */
bool pl_read_is_before_residual(const pl_reading *own, int32_t op);

/* What a residual addition (or any other of two activations) adds: the dropout and the biases of a branch, nothing of
 * which others read, and the value in front of them. Partial sums may be dropped before they are added up, which is the
 * same: the reduction in between, else PL_IR_NONE, and no biases. */
enum { PL_RESIDUAL_BIASES = 2 };
typedef struct pl_residual_ops {
  int32_t dropout, reduction, value;
  int32_t biases[PL_RESIDUAL_BIASES], n_biases; /* from the addition back */
} pl_residual_ops;

void pl_read_residual(const pl_reading *own, int32_t add, pl_residual_ops *found);

/* The ops between an operand of attention, or a half of what a gate multiplies, and the product with a weight that it
 * comes from; PL_IR_NONE: there is none of this. */
typedef struct pl_head_ops {
  int32_t product, bias, norm, rotary;
} pl_head_ops;

/* False: it comes from no such product. */
bool pl_read_heads(const pl_reading *own, int32_t value, pl_head_ops *found);

/* The reason of all ops of a norm in PyTorch ops. */
#define PL_READ_NORM_STEPS "a norm in steps"
/* The reason of what moves tokens of experts in PyTorch ops. */
#define PL_READ_TOKEN_STEPS "tokens of experts in steps"
/* The reasons of what autocast launches, and of what a kernel that is there moves more under it. */
#define PL_READ_AUTOCAST       "autocast"
#define PL_READ_GRAPH          "of a graph"
#define PL_READ_AUTOCAST_WIDER "autocast, by the same kernel"
/* The reason of a cast whose weight is in fp32 under autocast, of what was derived of its cast. */
#define PL_READ_GRADIENT_OF_WIDE "as the weight is"
/* Whether a norm is made in PyTorch ops, on an fp32 copy (and its derivative): an RMS norm of 16 bits with a scale,
 * where the profile has no kernel for it. Layer norm is one kernel everywhere. */
bool pl_read_is_norm_in_steps(const pl_reading *own, int32_t op, const pl_framework *framework);

/* Whether experts' answers get their bias in PyTorch ops (`fused_expert_bias`). */
bool pl_read_is_bias_in_steps(const pl_reading *own, int32_t op, const pl_framework *framework);

/* The table that a value is looked up in, behind cuts and renames: the op that does; PL_IR_NONE: none. */
int32_t pl_read_lookup(const pl_reading *own, int32_t value);

/* Of a multiplication by the weights of experts' answers: the op that chose them; PL_IR_NONE: it is none. */
int32_t pl_read_chosen(const pl_reading *own, int32_t multiply);

/* A multiplication of an activation and something else: which operand the activation is, or its square; -1: none. */
int32_t pl_read_gate(const pl_reading *own, int32_t multiply);
/* Whether a loss of this form writes a result of this type over an operand of its shape: fp32 logits, of which it works
 * on one copy, or on a second one of them shifted. */
static inline bool pl_read_loss_is_in_place(pl_loss_form form, const pl_ir_op *first, const pl_ir_type *type) {
  bool logits = type->element == PL_IR_F32 && pl_ir_type_find(type, pl_ir_name_of("v")) >= 0;
  return logits && (form == PL_LOSS_IN_PLACE || (form == PL_LOSS_COPY && !pl_ir_op_is(first, "subtract")));
}

#endif
