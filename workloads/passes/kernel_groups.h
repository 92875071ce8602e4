/* Which ops of a function are one kernel, while it is found. Internal to workloads/passes/kernel*.c.
 *
 * Ops are joined to groups (a union of sets); what is in no group launches a kernel of its own, or none. Patterns join
 * what a framework's profile says; an op that only gives another view, between two members of a group, joins it too. A
 * group that cannot be launched at once, because something outside of it needs one of its values to make another, is
 * taken apart again where the function is written (kernels.c).
 */
#ifndef PL_WORKLOADS_KERNEL_GROUPS_H
#define PL_WORKLOADS_KERNEL_GROUPS_H

#include "workloads/framework/framework.h"
#include "workloads/language/ir_table.h"

/* Parameters whose products are one, by path: queries, keys and values, or gate and up projection. Their biases have a
 * number of their own. */
typedef struct pl_kernel_pack {
  const char *path;
  int32_t pack;
} pl_kernel_pack;

typedef struct pl_kernel_packs {
  pl_kernel_pack *items;
  int32_t n, n_packs;
  uint32_t room;
} pl_kernel_packs;

typedef struct pl_kernel_finding {
  const pl_ir_module *module;
  const pl_ir_function *f;
  const pl_framework *framework;
  const pl_kernel_packs *packs;
  int32_t *n_readers; /* per value: operands that it is, results that it is handed back as */
  int32_t *reader;    /* per value: the last op that reads it */
  int32_t *parent;    /* per op: another of its group, itself */
} pl_kernel_finding;

/* Fills it for a function; groups are single ops. False: no memory. */
bool pl_kernel_finding_init(pl_kernel_finding *own, const pl_ir_module *module, int32_t function,
                            const pl_framework *framework, const pl_kernel_packs *packs, pl_arena *scratch);
int32_t pl_kernel_group(const pl_kernel_finding *own, int32_t op);
void pl_kernel_join(pl_kernel_finding *own, int32_t op, int32_t other); /* PL_IR_NONE: nothing */

/* ---- reading ---- */
static inline const pl_ir_op *pl_kernel_op(const pl_kernel_finding *own, int32_t op) {
  return &own->f->ops[op];
}
bool pl_kernel_is(const pl_kernel_finding *own, int32_t op, const char *row); /* false for PL_IR_NONE */
bool pl_kernel_is_activation(const pl_kernel_finding *own, int32_t op);
/* Renames, cuts, gathers and their like: the same elements, or a part of them. */
bool pl_kernel_is_view(const pl_kernel_finding *own, int32_t op);
bool pl_kernel_is_collective(const pl_kernel_finding *own, int32_t op); /* `cut` is none */
static inline int32_t pl_kernel_maker(const pl_kernel_finding *own, int32_t value) {
  return own->f->values[value].op;
}
/* The op that makes operand `i` of `op`. */
int32_t pl_kernel_made(const pl_kernel_finding *own, int32_t op, int32_t i);
/* The op that reads a value if there is one only, else PL_IR_NONE. */
int32_t pl_kernel_reader(const pl_kernel_finding *own, int32_t value);
static inline int32_t pl_kernel_next(const pl_kernel_finding *own, int32_t op) {
  return pl_kernel_reader(own, pl_kernel_op(own, op)->first_output);
}
/* Behind what gathers, cuts or casts it: the path of the parameter that a value is; NULL: none. */
const char *pl_kernel_param(const pl_kernel_finding *own, int32_t value);
/* Of the parameter that an op has for its second operand; an addition of one is one of a bias. */
const char *pl_kernel_weight(const pl_kernel_finding *own, int32_t op);
bool pl_kernel_is_bias(const pl_kernel_finding *own, int32_t op);
bool pl_kernel_is_product(const pl_kernel_finding *own, int32_t op);
bool pl_kernel_is_partial(const pl_kernel_finding *own, int32_t value);

/* ---- packs ---- */
/* Of all functions of the module. False: no memory. */
bool pl_kernel_packs_find(const pl_ir_module *module, const pl_framework *framework, pl_arena *scratch,
                          pl_kernel_packs *packs);
int32_t pl_kernel_pack_of(const pl_kernel_packs *packs, const char *path); /* PL_IR_NONE = none; path may be NULL */

/* ---- patterns ---- */
void pl_kernel_products(pl_kernel_finding *own);  /* kernel_products.c */
void pl_kernel_gradients(pl_kernel_finding *own); /* kernel_gradients.c */
void pl_kernel_sweeps(pl_kernel_finding *own);    /* kernel_sweeps.c */
void pl_kernel_losses(pl_kernel_finding *own);    /* kernel_losses.c */
void pl_kernel_cores(pl_kernel_finding *own);     /* kernel_core.c */
/* Whether the op weighs values by a softmax of scores: attention in steps. Operands: queries, keys, values. */
bool pl_kernel_core_of(const pl_kernel_finding *own, int32_t op, int32_t operands[3]);
/* What stands between members of a group, and what only scales for one: behind all others. */
void pl_kernel_views(pl_kernel_finding *own);

#endif
