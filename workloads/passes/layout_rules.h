/* What a strategy says of layouts: which axis cuts which dimensions of data, parameters, gradients and optimizer state.
 * Everything else, collectives above all, follows from these in partition.c. */
#ifndef PL_WORKLOADS_LAYOUT_RULES_H
#define PL_WORKLOADS_LAYOUT_RULES_H

#include "workloads/ir/model.h"
#include "workloads/language/ir_table.h"
#include "workloads/strategy/strategy.h"

typedef enum pl_axis_role { PL_AXIS_PIPELINE = 0, PL_AXIS_DATA, PL_AXIS_CONTEXT, PL_AXIS_TENSOR } pl_axis_role;

typedef struct pl_layout_rules {
  pl_ir_mesh mesh; /* of the strategy: outermost first pipeline, data, context, tensor; degrees of 1 have no axis */
  uint8_t role[PL_IR_AXES_MAX];
  bool expert[PL_IR_AXES_MAX]; /* experts are spread over it */
  bool shard[PL_IR_AXES_MAX];  /* ZeRO cuts over it */
  bool sequence;               /* sequence parallelism */
  bool ring;                   /* attention over context axes by a ring, instead of gathered keys and values */
  int32_t zero, cp;
} pl_layout_rules;

/* Axes are split where experts or few key-value heads need it (8 = 2 x 4). PL_UNSUPPORTED names what cannot be said on
 * a mesh: replicas with unlike numbers of microbatches; experts and key-value heads that split the tensor axis in two
 * ways; another order of ranks than t innermost, then c, d, p. */
pl_code pl_layout_rules_take(const pl_model *model, const pl_strategy *strategy, pl_layout_rules *rules,
                             pl_error *error);

/* `on` of a whole type. */
void pl_layout_input(const pl_layout_rules *rules, pl_ir_type *type);
void pl_layout_parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type);
/* Of optimizer state, and of the gradient buffer where ZeRO cuts it: the parameter's, cut over the data axes too. */
void pl_layout_state(const pl_layout_rules *rules, const char *path, pl_ir_type *type);
/* What functions hand each other. Dimensions that the rules do not know stay as they lie; partial sums are added up but
 * for numbers without dimensions. */
void pl_layout_handed(const pl_layout_rules *rules, pl_ir_type *type);
/* Whether an op of a pass may be cut on `dim` along `axis`. */
bool pl_layout_may_cut(const pl_layout_rules *rules, int32_t axis, pl_ir_name dim);

#endif
