/* What a tree says of a model program, all of it: propagation (Proteus, section VII).
 *
 * Schedules go top-down. Partitions: an op has that of the deepest node that names it inside its module (explicit);
 * else that of what its operands come from, or goes into, if these were named; else that of its module. Modules (the
 * calls of
 * @main: "embedding", "h.0" ...) that no node matches take over what the modules in front of them have, then those
 * behind them. Two nodes of equal rank that say different things of one op are a conflict, which names both.
 *
 * The mesh of a stage is found: a partition cuts the devices at products of its degrees; the axes are what lies between
 * all cuts of all partitions, so that every one can be said in them (8 = 2 x 2 x 2). Modules on the same devices are a
 * stage; a stage has the axis "pp".
 *
 * Cost: each op of the program is visited a fixed number of times (pl_tree_plan.n_visits counts), each against the
 * nodes of the tree that its module matches.
 */
#ifndef PL_WORKLOADS_TREE_PLAN_H
#define PL_WORKLOADS_TREE_PLAN_H

#include <stdio.h>

#include "core/base/hash_index.h"
#include "workloads/language/ir_module.h"
#include "workloads/tree/tree.h"

/* What a propagated leaf says: all that laying out asks. */
typedef struct pl_tree_leaf {
  pl_layout_rules rules; /* how it uses each axis of the mesh */
  int32_t node;          /* the first node that says so */
} pl_tree_leaf;

typedef enum pl_tree_origin {
  PL_TREE_OF_MODULE = 0, /* what its module has */
  PL_TREE_EXPLICIT,      /* a node names it */
  PL_TREE_FORWARD,       /* inferred from an operand's maker */
  PL_TREE_BACKWARD       /* inferred from its reader */
} pl_tree_origin;

typedef struct pl_tree_op_plan {
  int32_t leaf;
  uint8_t origin; /* pl_tree_origin */
  uint8_t again;  /* pl_recompute_of_op */
  int32_t from;   /* FORWARD, BACKWARD: the op of the function that it was inferred from */
} pl_tree_op_plan;

/* A function of the specialised program: all its calls are laid out alike. */
typedef struct pl_tree_function_plan {
  int32_t leaf;         /* of what is handed in and out */
  uint8_t recompute;    /* pl_recompute */
  int64_t pieces;       /* of the samples of a microbatch, one of which a call runs on */
  int32_t module;       /* the first that calls it */
  pl_tree_op_plan *ops; /* per op of the function */
} pl_tree_function_plan;

/* A call of @main. */
typedef struct pl_tree_module_plan {
  const char *name; /* its instance; without one its callee */
  int32_t function; /* of the specialised program */
  int32_t chunk;    /* of the pipeline */
  uint8_t origin;   /* of its leaf: pl_tree_origin */
  int32_t from;     /* FORWARD, BACKWARD: module */
  int32_t node;     /* that matched it last; 0: only the root */
} pl_tree_module_plan;

/* A dimension that one of several to choose from names, and that its axes do not divide: it stays whole. */
typedef struct pl_tree_note {
  const char *path; /* of the first op that has it */
  pl_ir_dim dim;
  int64_t parts;
  pl_tree_place place;
} pl_tree_note;

typedef struct pl_tree_plan {
  const pl_strategy_tree *tree;
  pl_ir_mesh mesh; /* of all devices: "pp" outermost where there are stages */
  int32_t n_leaves, n_modules, n_functions;
  pl_tree_leaf *leaves; /* all different */
  pl_tree_module_plan *modules;
  pl_tree_function_plan *functions; /* by function of `program` */
  pl_ir_module program;             /* the model program: functions are copied where calls differ */
  pl_hash_index names;              /* of modules */
  pl_strategy schedule;             /* pp, vpp, schedule: who runs which chunk, and when */
  const int64_t *max_ongoing;       /* per stage; NULL: as the schedule has it */
  const int32_t *stage_devices;     /* per stage */
  const uint32_t *fixed_axes; /* per stage, one bit each: axes that a stage of fewer devices has one place of alone;
                                 NULL: all stages are alike */
  const uint32_t *places;     /* devices of the platform, stage by stage; NULL: as they are numbered */
  int32_t n_places;
  int32_t n_microbatches, zigzag;    /* zigzag: s is in the order of so many context ranks; 1: as it comes */
  bool has_pipeline_axis, named_ops; /* named_ops: some op has another leaf than its module */
  int32_t n_notes;
  pl_tree_note *notes;
  int32_t n_remarks; /* what else was made of the tree that it does not say: one line each */
  const char **remarks;
  int64_t n_visits;
} pl_tree_plan;

/* `model` is at level model and outlives the plan, which lives in `arena`. */
pl_code pl_tree_plan_take(const pl_strategy_tree *tree, const pl_ir_module *model, pl_arena *arena, pl_tree_plan *plan,
                          pl_error *error);
/* Microbatches of an iteration; `gbs` must be a multiple. */
pl_code pl_tree_microbatches(const pl_strategy_tree *tree, int64_t gbs, int32_t *n, pl_error *error);
/* Of the training program's function `name` ("layer_2.backward"): function of the plan's program; PL_IR_NONE: none. */
int32_t pl_tree_plan_function(const pl_tree_plan *plan, const char *name);
/* One line for each note: what stays whole, and why; what runs where nobody said; patterns that reach too far. */
void pl_tree_print_notes(FILE *stream, const pl_tree_plan *plan);
/* The plan's devices are there: PL_BAD_INPUT names the first that is not, and where it was said. */
pl_code pl_tree_check_devices(const pl_tree_plan *plan, uint32_t n_devices, pl_error *error);
/* The module of this name; NULL: none. */
const pl_tree_module_plan *pl_tree_plan_module(const pl_tree_plan *plan, const char *name);

/* The op of the plan's function that this op of the training or distributed program is, or was derived from, or keeps a
 * value or has state of; PL_IR_NONE: none. `from`: the function that it stands in. */
int32_t pl_tree_plan_op(const pl_tree_plan *plan, int32_t function, const pl_ir_function *from, const pl_ir_op *op);

/* ---- the recipe ---- */

/* The tree that says what the tuple says: the mesh of its degrees, a child for each chunk of the pipeline. `strategy`
 * has boundaries. PL_UNSUPPORTED names what cannot be said on a mesh: replicas with unlike numbers of microbatches;
 * experts and key-value heads that split the tensor axis in two ways. Orders of ranks and placements
 * become places of the mesh's devices. */
pl_code pl_tree_of_strategy(const pl_strategy *strategy, const pl_model *model, const pl_ir_module *program,
                            pl_arena *arena, pl_strategy_tree *tree, pl_error *error);

#endif
