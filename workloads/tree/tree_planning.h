/* What the files of propagation share. Internal to workloads/tree/tree_plan*.c. */
#ifndef PL_WORKLOADS_TREE_PLANNING_H
#define PL_WORKLOADS_TREE_PLANNING_H

#include "workloads/tree/tree_plan.h"

/* What a node may say; each is decided by itself. */
typedef enum pl_tree_key {
  PL_TREE_KEY_PARTITION = 0,
  PL_TREE_KEY_RING,
  PL_TREE_KEY_DEVICES,
  PL_TREE_KEY_MAX_ONGOING,
  PL_TREE_KEY_MICROBATCHES, /* of children */
  PL_TREE_KEY_RECOMPUTE,
  PL_TREE_KEY_MEMORY, /* and the others of pl_layout_tensor behind it */
  PL_TREE_KEY_COUNT = PL_TREE_KEY_MEMORY + PL_LAYOUT_TENSOR_COUNT
} pl_tree_key;

/* Who says what of a module or an op: nodes, -1 = nobody; and how good they are. */
typedef struct pl_tree_settings {
  int32_t node[PL_TREE_KEY_COUNT];
  int64_t rank[PL_TREE_KEY_COUNT];
} pl_tree_settings;

/* What a leaf is made of: nodes, -1 = nobody. */
typedef struct pl_tree_spec {
  int32_t partition, ring, memory[PL_LAYOUT_TENSOR_COUNT];
  int32_t leaf; /* of the plan, once there is a mesh */
} pl_tree_spec;

typedef struct pl_tree_calling { /* a module, while it is planned */
  const pl_ir_op *call;
  pl_tree_settings settings;
  int32_t spec;         /* -1: not yet */
  pl_tree_op_plan *ops; /* per op of its function; `leaf` is a spec first; NULL: nothing names any of them */
  int32_t stage;
} pl_tree_calling;

typedef struct pl_tree_planning {
  const pl_strategy_tree *tree;
  const pl_ir_module *model;
  const pl_ir_function *main;
  pl_tree_plan *plan;
  pl_arena *arena, *scratch;
  pl_error *error;
  pl_tree_calling *calls; /* per module */
  int32_t *makers;        /* per value of main: the module that makes it; -1: none */
  pl_tree_spec *specs;
  int32_t n_specs;
  uint32_t room_specs;
  bool **used;     /* per node, per pattern: it matched something */
  int32_t *n_used; /* per node: modules and ops that it matched */
  int32_t devices; /* of a stage, at most */
} pl_tree_planning;

/* tree_match.c: settings of every module, and of the ops that nodes name. */
pl_code pl_tree_match(pl_tree_planning *own);
/* The spec of these nodes, found or new. PL_NO_MEMORY. */
pl_code pl_tree_spec_take(pl_tree_planning *own, const pl_tree_settings *settings, int32_t partition, int32_t *spec);
/* The same as spec `of` with another partition. */
pl_code pl_tree_spec_with(pl_tree_planning *own, int32_t of, int32_t partition, int32_t *spec);

/* tree_match.c: notes a remark. PL_NO_MEMORY. */
pl_code pl_tree_remark(pl_tree_planning *own, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* tree_propagate.c: specs of modules that have none, of ops between those that are named. */
pl_code pl_tree_propagate(pl_tree_planning *own);

/* tree_devices.c: the devices that modules are given, as groups, each of which is a stage: in the order in which the
 * model comes to them. */
enum { PL_TREE_STAGES_MAX = 4096 };
typedef struct pl_tree_group {
  int32_t node;
  int64_t n; /* devices */
} pl_tree_group;
/* "0-3, 8": what a node says, or the beginning of it. */
enum { PL_TREE_RANGES_BYTES = 64 };
const char *pl_tree_devices_text(const pl_tree_node *node, char text[PL_TREE_RANGES_BYTES]);
bool pl_tree_same_devices(const pl_tree_node *a, const pl_tree_node *b);
pl_code pl_tree_take_groups(pl_tree_planning *own, pl_tree_group *groups, int32_t *n_groups);
int32_t pl_tree_group_of(const pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups, int32_t node);
/* plan->places and stage_devices, own->devices: the most of a stage. */
pl_code pl_tree_count_devices(pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups);

/* tree_stages.c: devices of a stage, chunks of modules, the schedule. */
pl_code pl_tree_take_stages(pl_tree_planning *own);

/* tree_mesh.c: the axes that all specs can be said in, and the leaves on them. */
pl_code pl_tree_take_mesh(pl_tree_planning *own);
/* Degrees of a partition, all together. */
int64_t pl_tree_degree_of(const pl_strategy_tree *tree, int32_t node);

/* tree_specialise.c: functions by how they are laid out. */
pl_code pl_tree_specialise(pl_tree_planning *own);

/* tree_pieces.c: modules whose nodes say microbatches run in pieces of the batch. */
/* What nodes say of it makes sense. */
pl_code pl_tree_check_pieces(const pl_tree_planning *own);
/* Into how many pieces the samples of a microbatch are cut for this module, by all nodes together. */
int64_t pl_tree_pieces_of(const pl_tree_planning *own, int32_t module);
/* Function `of` of the model on one of `pieces` pieces. PL_BAD_INPUT: it computes something over all samples. */
pl_code pl_tree_cut_function(const pl_tree_planning *own, int32_t module, int64_t pieces, pl_ir_function *made);
/* Calls of @main piece by piece, into `to`, which is empty; `callees` per module. `leaf_of`: per op of `to`, the module
 * that it hands to or takes from, and for calls itself. */
pl_code pl_tree_write_pieces(const pl_tree_planning *own, const int32_t *callees, pl_ir_function *to,
                             int32_t **module_of);

/* tree_fit.c: extents divide, parameters that several modules read lie in one way. */
pl_code pl_tree_check_fit(pl_tree_planning *own);

static inline const pl_tree_node *pl_tree_node_at(const pl_tree_planning *own, int32_t node) {
  return &own->tree->nodes[node];
}
static inline const pl_ir_function *pl_tree_callee(const pl_tree_planning *own, int32_t module) {
  return own->model->functions[own->calls[module].call->callee];
}
/* "h.0.mlp.up": the path of an op; in `text`. */
enum { PL_TREE_PATH_BYTES = 320 };
const char *pl_tree_op_path(const pl_tree_planning *own, int32_t module, int32_t op, char text[PL_TREE_PATH_BYTES]);

#endif
