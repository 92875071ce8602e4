/* Which ops of a function are one kernel, while it is found.
 *
 * Ops are joined to groups (a union of sets); what is in no group launches a kernel of its own, or none. Patterns join
 * what a framework's profile says; an op that only gives another view, between two members of a group, joins it too. A
 * group that cannot be launched at once, because something outside of it needs one of its values to make another, is
 * taken apart again where the function is written (workloads/fuse/kernels.c).
 */
#ifndef PL_WORKLOADS_KERNEL_GROUPS_H
#define PL_WORKLOADS_KERNEL_GROUPS_H

#include "workloads/framework/framework.h"
#include "workloads/fuse/reading.h"
#include "workloads/language/ir_routing.h"

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
  pl_reading read;
  const pl_framework *framework;
  const pl_kernel_packs *packs;
  const pl_ir_routing *routing; /* of the module; whoever joins groups sets it */
  int32_t *n_readers;           /* per value: operands that it is, results that it is handed back as */
  int32_t *reader;              /* per value: the last op that reads it */
  int32_t *parent;              /* per op: another of its group, itself */
} pl_kernel_finding;

/* Fills it for a function; groups are single ops. False: no memory. */
bool pl_kernel_finding_init(pl_kernel_finding *own, const pl_ir_module *module, int32_t function,
                            const pl_framework *framework, const pl_kernel_packs *packs, pl_arena *scratch);
int32_t pl_kernel_group(const pl_kernel_finding *own, int32_t op);
void pl_kernel_join(pl_kernel_finding *own, int32_t op, int32_t other); /* PL_IR_NONE: nothing */

/* The op that reads a value if there is one only, `keep` and calls' results among them, else PL_IR_NONE. */
int32_t pl_kernel_reader(const pl_kernel_finding *own, int32_t value);
static inline int32_t pl_kernel_next(const pl_kernel_finding *own, int32_t op) {
  return pl_kernel_reader(own, pl_read_op(&own->read, op)->first_output);
}
bool pl_kernel_is_product(const pl_kernel_finding *own, int32_t op);

/* ---- packs ---- */
/* Of all functions of the module. False: no memory. */
bool pl_kernel_packs_find(const pl_ir_module *module, const pl_framework *framework, pl_arena *scratch,
                          pl_kernel_packs *packs);
int32_t pl_kernel_pack_of(const pl_kernel_packs *packs, const char *path); /* PL_IR_NONE = none; path may be NULL */

/* Whether two products are computed in one type: else no kernel computes both. Of other ops true. */
bool pl_kernel_same_type(const pl_kernel_finding *own, int32_t a, int32_t b);

/* ---- patterns ---- */
/* All of them, in their order. */
void pl_kernel_groups_find(pl_kernel_finding *own);
void pl_kernel_products(pl_kernel_finding *own);    /* kernel_products.c */
void pl_kernel_gradients(pl_kernel_finding *own);   /* kernel_gradients.c */
void pl_kernel_sweeps(pl_kernel_finding *own);      /* kernel_sweeps.c */
void pl_kernel_losses(pl_kernel_finding *own);      /* kernel_losses.c */
void pl_kernel_cores(pl_kernel_finding *own);       /* kernel_core.c */
void pl_kernel_batch_norms(pl_kernel_finding *own); /* kernel_batch_norm.c */
/* What stands between members of a group, and what only scales for one: behind all others. */
void pl_kernel_views(pl_kernel_finding *own);

/* ---- order ---- */
/* Of groups in the order that they are written in: tensor collectives of gradients in dense layers stand next to the
 * products that they run beside. kernel_beside.c */
void pl_kernel_order_beside(const pl_kernel_finding *own, int32_t *order, int32_t n);
/* Likewise, of layers of experts: what runs beside the exchanges of tokens stands behind them. False: no memory.
 * kernel_tokens.c */
bool pl_kernel_order_tokens(const pl_kernel_finding *own, pl_token_order how, int32_t *order, int32_t n,
                            pl_arena *scratch);

#endif
