/* Strategy tree: how any model is cut, placed and scheduled (Proteus, arXiv 2306.02267, section IV), as a YAML file
 * says it or as a recipe fills it for the tuple pp=4,dp=4,... The grammar is in workloads/tree/README.md.
 *
 *   node        says something of the ops that its patterns match: the root of all, a child of ops that its parent has
 *   leaf        a node with a partition: dimension by dimension, over how many devices, or over which axes of the mesh
 *               (computation config); `memory`: where tensors really lie, where that is not what computing says
 *   inner node  a schedule: microbatches, which are in flight, what is recomputed; its children inherit it
 *
 * What a tree leaves open is inferred over the model program (tree_plan.h). Nodes are indices into one array, parents
 * first; everything lives in the arena that the tree was read into.
 */
#ifndef PL_WORKLOADS_TREE_H
#define PL_WORKLOADS_TREE_H

#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "workloads/ir/op.h"
#include "workloads/language/ir_type.h"
#include "workloads/layout/layout_prices.h"
#include "workloads/layout/layout_rules.h"
#include "workloads/strategy/strategy.h"

enum { PL_TREE_DIMS_MAX = 8, PL_TREE_CUTS_MAX = 12, PL_TREE_DEPTH_MAX = 16, PL_TREE_DEGREE_MAX = 1 << 20 };

/* Where something was said. */
typedef struct pl_tree_place {
  const char *file; /* NULL: a recipe said it, or nobody */
  int32_t line, column;
} pl_tree_place;

/* "b: 4", "v|g|r|f: tp", "b: [dp, dps]": one entry of a partition. An op is cut over these devices on the first of the
 * dimensions that it has and that divides. */
typedef struct pl_tree_cut {
  int32_t n_dims; /* 0: "replicate" */
  pl_ir_name dims[PL_TREE_DIMS_MAX];
  int32_t degree; /* 0: over `axes` */
  int32_t n_axes;
  pl_ir_name axes[PL_IR_AXES_MAX];
  pl_tree_place place;
} pl_tree_cut;

extern const char *const pl_tree_tensor_names[]; /* by pl_layout_tensor; NULL ends them */

/* "states: b", "parameters: b/4", "kept: tp", "states: [b, s]": over the devices that cut b, the innermost 4 of them,
 * or over an axis; "kept: host", "states: [b, host]": in the host's memory. */
typedef struct pl_tree_spread {
  int32_t n;                       /* 0: it lies as computing has it */
  pl_ir_name over[PL_IR_AXES_MAX]; /* a dimension of the partition, or an axis of the mesh */
  int32_t degree[PL_IR_AXES_MAX];  /* 0: all of them */
  bool is_said, host;              /* host: in the memory of the device's host */
  pl_tree_place place;
} pl_tree_spread;

/* "h.*.mlp": components between points; '*' is any one, "0-3" a range of numbers, "chain*" begins so. What it names has
 * all that lies below it. */
typedef struct pl_tree_pattern {
  const char *text;
  pl_tree_place place;
} pl_tree_pattern;

typedef struct pl_tree_schedule { /* 0 or `has`: not said in this node */
  int64_t microbatches;           /* of an iteration; of a child: pieces of what its parent runs on */
  int64_t max_ongoing;            /* forward passes whose backward pass is not done, on a stage */
  pl_schedule_kind kind;          /* of a child: the order of its pieces, gpipe or breadth-first */
  pl_recompute recompute;
  bool has_kind, has_recompute;
  pl_tree_place microbatches_at, max_ongoing_at, kind_at, recompute_at;
} pl_tree_schedule;

typedef struct pl_tree_pipeline { /* root only */
  int32_t stages, chunks;         /* chunks of each stage */
  const int32_t *cut;             /* stages * chunks + 1 boundaries in layers; NULL: as equal as can be */
  pl_tree_place place, cut_at;
} pl_tree_pipeline;

typedef struct pl_tree_devices {
  int64_t first, last;
} pl_tree_devices;

typedef struct pl_tree_node {
  int32_t parent; /* -1: the root */
  int32_t depth;
  int32_t level; /* how many includes deep its file lies: of two that are as good, the nearer one holds */
  int32_t n_patterns, n_rows;
  const pl_tree_pattern *patterns;
  const pl_ir_name *rows; /* `ops`: rows of the op table; none: all */
  int32_t n_cuts;         /* -1: no partition here */
  const pl_tree_cut *cuts;
  bool ring, has_ring, has_devices;
  pl_tree_spread memory[PL_LAYOUT_TENSOR_COUNT];
  int32_t n_ranges; /* of devices, in the order of the mesh */
  const pl_tree_devices *ranges;
  pl_tree_schedule schedule;
  pl_tree_place place, partition_at, devices_at, ring_at;
} pl_tree_node;

typedef struct pl_strategy_tree {
  const char *name; /* of the file */
  int32_t n_nodes;
  uint32_t room_nodes;
  pl_tree_node *nodes; /* the root first, parents before children */
  pl_ir_mesh mesh;     /* of a stage, as the root names it; no axes: found from what partitions need */
  pl_tree_place mesh_at;
  pl_tree_pipeline pipeline;
  pl_strategy strategy;   /* of a tree that a recipe filled: what it was filled from; else pp = 0 */
  const uint32_t *places; /* of a recipe: the platform's device of each of the mesh; NULL: as they are numbered */
  int32_t n_places;
  const pl_layout_prices *prices; /* of the devices that it is for: what layouts are chosen by; NULL: bytes */
  pl_arena *arena;
} pl_strategy_tree;

/* Reads the file, else the shipped tree of that name (of which the nearest is proposed), and those that it includes,
 * which are named relative to it. PL_BAD_INPUT: file:line:column and what would do. */
pl_code pl_tree_load(const char *name, pl_arena *arena, pl_strategy_tree *tree, pl_error *error);
/* The same of text; `name` stands for the path in messages and in includes. */
pl_code pl_tree_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_strategy_tree *tree,
                      pl_error *error);

/* Names of the trees that come with Paceline, with their ending, sorted, NULL behind the last. NULL: no memory. */
const char *const *pl_tree_names(pl_arena *arena);

/* Whether the text of --strategy is the name of a tree's file (.yaml, .yml), or of a tree that comes with Paceline, and
 * no tuple. */
bool pl_tree_is_file(const char *text);

/* A tree with a root that matches everything, for recipes and tests. */
pl_code pl_tree_init(pl_strategy_tree *tree, const char *name, pl_arena *arena, pl_error *error);
/* A new node below `parent`; NULL: no memory. Pointers to nodes are good until the next one is added. */
pl_tree_node *pl_tree_add(pl_strategy_tree *tree, int32_t parent);

/* Whether the pattern names `path` or something that it lies in. `*at_depth`: components that it took. */
bool pl_tree_matches(const char *pattern, const char *path, int32_t *at_depth);
/* Whether it names something that lies in `path`. */
bool pl_tree_reaches_into(const char *pattern, const char *path);

/* PL_BAD_INPUT with "file:line:column: " in front. */
pl_code pl_tree_fail(pl_tree_place place, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "file:3:5", or "the recipe"; returns `text`. */
enum { PL_TREE_PLACE_BYTES = 320 };
const char *pl_tree_place_text(pl_tree_place place, char text[PL_TREE_PLACE_BYTES]);
static inline bool pl_tree_is_said(pl_tree_place place) {
  return place.file != NULL;
}
/* The line of an error that begins "file:line:column:", with a caret below the column, for commands. */
void pl_tree_error_show(FILE *stream, const pl_error *error);

#endif
