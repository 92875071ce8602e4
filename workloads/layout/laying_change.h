/* One step of a conversion: what lies one way along some axes lies another. Internal to workloads/layout/laying*.c. */
#ifndef PL_WORKLOADS_LAYING_CHANGE_H
#define PL_WORKLOADS_LAYING_CHANGE_H

#include "workloads/layout/laying.h"

typedef struct pl_layout_change {
  const char *row; /* the op that does it */
  int8_t from, to; /* `on` along the axes: a dimension, PL_IR_SAME ... */
  int32_t n_axes;
  int32_t axis[PL_IR_AXES_MAX]; /* rising */
} pl_layout_change;

/* What takes `from` to `to` along one axis; NULL: nothing does. */
const char *pl_layout_row_between(int8_t from, int8_t to);
/* Whether it can be made of a value that lies as `now`: no axis further in than the first of its own cuts a dimension
 * that it gives up or takes on (parts of devices along an axis are neighbours only where it is the innermost one), and
 * all that cut the new dimension divide it. */
bool pl_layout_change_is_next(const pl_ir_mesh *mesh, const pl_ir_type *now, const pl_layout_change *change);
/* Seconds of it; 0 of a cut. With prices. */
double pl_layout_change_price(const pl_laying *part, const pl_ir_type *now, const pl_layout_change *change);

/* ---- laying.c ---- */
/* The op with these operands and types of results (NULL: as it says), `host`: in the memory of the host. */
pl_code pl_laying_copy_placed(pl_laying *part, const pl_ir_op *op, bool host, const int32_t *inputs,
                              const pl_ir_type *types, pl_error *error);

/* ---- laying_context.c ---- */
/* Attention whose keys and values go round the context ranks. */
bool pl_laying_is_ring(const pl_laying *part, const pl_ir_op *op);
/* How many; axes[PL_IR_AXES_MAX]: their names. */
int32_t pl_laying_context_axes(const pl_layout_rules *rules, pl_ir_name *axes);
/* Along context axes who has the queries' sequence is cut on it, and who has the keys' on that. */
void pl_laying_in_ring(const pl_ir_op *op, pl_ir_type *inputs, pl_ir_type *outputs, int32_t axis);
/* A product with partial sums of all tokens, over ranks that have a share of them each: it would have the whole
 * sequence's work. */
bool pl_laying_owes_tokens(const pl_laying *part, const pl_ir_op *op, int32_t axis, int8_t on);
/* Gradients of keys and values that were gathered for attention are scattered again right behind it, as a sum over the
 * context ranks (AttnFuncWithCPAndKVAllGather of Transformer Engine). */
pl_code pl_laying_scatter_keys(pl_laying *part, const pl_ir_op *op, pl_error *error);

/* ---- laying_heads.c ---- */
/* Gradients of keys and values of a head that several ranks have: they are added up, and scattered, where the
 * derivative of the product reads them, which has a part of the head's weights on each. */
bool pl_laying_carries_heads(const pl_laying *part, const pl_ir_op *op, int32_t axis);
/* Of keys and values whose ranks made a part of each head: whole, as attention reads them. */
pl_code pl_laying_gather_heads(pl_laying *part, const pl_ir_op *op, pl_error *error);

/* ---- laying_kept.c ---- */
/* A `keep`, or a `kept`. */
pl_code pl_laying_kept(pl_laying *part, const pl_ir_op *op, bool keep, pl_error *error);

/* ---- laying_route.c ---- */

enum { PL_LAYOUT_ROUTE_MAX = 2 * PL_IR_AXES_MAX };
/* The changes that bring one of `n` values (of one shape) to a layout in the least time. */
typedef struct pl_layout_route {
  int32_t source; /* value that it begins at */
  int32_t n;
  pl_layout_change changes[PL_LAYOUT_ROUTE_MAX];
  double time_s;
} pl_layout_route;

/* Cheapest first, of two that cost the same the one of fewer steps, then the one whose change comes first in the order
 * of axes. `other`: the cheapest one that begins otherwise; source PL_IR_NONE: there is none. Where prices tell nothing
 * there is no `other`, and the only way takes 0. With prices. False: nothing leads there, or more layouts lie between
 * than are looked at. O(layouts between, at most 512, squared). */
bool pl_layout_route_find(pl_laying *part, int32_t n, const int32_t *values, const pl_ir_type *wanted,
                          pl_layout_route *route, pl_layout_route *other);

#endif
