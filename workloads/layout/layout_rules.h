/* What a strategy says of layouts: which axis cuts which dimensions of data, parameters, gradients and optimizer state.
 * Everything else, collectives above all, follows from these in partition.c. */
#ifndef PL_WORKLOADS_LAYOUT_RULES_H
#define PL_WORKLOADS_LAYOUT_RULES_H

#include "workloads/language/ir_table.h"

typedef enum pl_axis_role {
  PL_AXIS_PIPELINE = 0,
  PL_AXIS_DATA,      /* activations are cut: parameters are the same, or gathered, their gradients partial sums */
  PL_AXIS_CONTEXT,   /* the same on the sequence */
  PL_AXIS_TENSOR,    /* parameters are cut */
  PL_AXIS_REPLICATED /* nothing is */
} pl_axis_role;

/* Tensors that may be cut over more than computing cuts them over. */
typedef enum pl_layout_tensor {
  PL_LAYOUT_STATES = 0, /* of the optimizer: ZeRO 1 */
  PL_LAYOUT_GRADIENTS,  /* ZeRO 2 */
  PL_LAYOUT_PARAMETERS, /* ZeRO 3 */
  PL_LAYOUT_KEPT,       /* activations kept for the backward pass */
  PL_LAYOUT_TENSOR_COUNT
} pl_layout_tensor;

enum { PL_LAYOUT_DIMS_MAX = 10 };

/* "y_parts" are the parts that y is taken into where an op sees them apart (workloads/passes/adapt.h): they may be cut
 * as y may be. */
#define PL_LAYOUT_PARTS "_parts"

/* How one axis is used. */
typedef struct pl_layout_use {
  uint8_t role; /* pl_axis_role */
  uint8_t n_dims, n_handed;
  pl_ir_name dims[PL_LAYOUT_DIMS_MAX];   /* that may be cut over it, in order of preference */
  pl_ir_name handed[PL_LAYOUT_DIMS_MAX]; /* the same of what functions hand each other */
  bool extra[PL_LAYOUT_TENSOR_COUNT];    /* these tensors are cut over it too */
} pl_layout_use;

typedef struct pl_layout_rules {
  pl_ir_mesh mesh; /* of the strategy: outermost first pipeline, data, context, tensor; degrees of 1 have no axis */
  pl_layout_use on[PL_IR_AXES_MAX];
  bool sequence;                     /* sequence parallelism */
  bool whole_experts;                /* experts are not cut over tensor axes (expert-tensor-parallel-size 1) */
  bool host[PL_LAYOUT_TENSOR_COUNT]; /* these lie in the memory of the device's host: states, gradients, kept */
  bool ring;                         /* attention over context axes by a ring, instead of gathered keys and values */
  int32_t zero;
  int32_t cp; /* s is in the order of so many context ranks (attribute zigzag of `input`); 0, 1: as it comes */
} pl_layout_rules;

/* Adds an axis inside the others, used as transformers use it: data axes cut b, context axes s, tensor axes vocabulary,
 * heads and MLP, and s between them with `sequence`; `expert`: experts are spread over it; `shard`: ZeRO (`zero`) cuts
 * over it. One of extent 1 is none. */
void pl_layout_axis(pl_layout_rules *rules, const char *name, int32_t extent, pl_axis_role role, bool expert,
                    bool shard);

/* `on` of a whole type. */
void pl_layout_input(const pl_layout_rules *rules, pl_ir_type *type);
void pl_layout_parameter(const pl_layout_rules *rules, const char *path, pl_ir_type *type);
/* A parameter that experts have each for themselves, or its gradient; pictures have a dimension x as well. */
bool pl_layout_is_of_experts(const char *path, const pl_ir_type *type);
/* Such a parameter that tensor ranks have whole, as ZeRO has replicas: each with tokens of its own. */
bool pl_layout_are_replicas(const pl_layout_rules *rules, int32_t axis, const char *path, const pl_ir_type *type);
/* Of optimizer state: the parameter's, cut over further axes where ZeRO says so. */
void pl_layout_state(const pl_layout_rules *rules, const char *path, pl_ir_type *type);
/* The same of a gradient buffer; false: it lies as gradients come. */
bool pl_layout_gradient(const pl_layout_rules *rules, const char *path, pl_ir_type *type);
/* Of what is kept of an activation that lies as `type` says: cut over further axes. */
void pl_layout_kept(const pl_layout_rules *rules, pl_ir_type *type);
/* What functions hand each other. Dimensions that the rules do not know stay as they lie; partial sums are added up but
 * for numbers without dimensions. */
void pl_layout_handed(const pl_layout_rules *rules, pl_ir_type *type);
/* Ranks along `axis` share key-value heads: each has a part of the columns of every head's weights, as Megatron Core
 * splits linear_qkv evenly where there are fewer query groups than ranks (get_query_key_value_tensors of
 * megatron/core/transformer/attention.py). Keys and values are gathered behind the product, their gradients scattered
 * in front of its derivative. Megatron gathers the packed queries, keys and values of the whole group and takes a
 * rank's heads of them; here ranks that share a head exchange its keys and values alone. */
bool pl_layout_shares_heads(const pl_layout_rules *rules, int32_t axis);
/* Keys or values that lie so. */
bool pl_layout_cuts_head(const pl_layout_rules *rules, int32_t axis, const pl_ir_type *type);
/* Whether an op of a pass may be cut on `dim` along `axis`. */
bool pl_layout_may_cut(const pl_layout_rules *rules, int32_t axis, pl_ir_name dim);

#endif
