/* What of a recorded step can be changed: its tensors, its ops that are changed alike, and what waits for what.
 *
 * Made from a replay (workloads/trace/replay.h), whose tasks it keeps. A tensor is what one gradient's (or one
 * bucket's) synchronisation is made of: a collective, or all messages that carry it over a ring, a tree or through a
 * server. Which messages belong together is read from what waits for what on each rank, a server's sums among them. Its
 * tasks are slots; two tensors whose slots stand on the same streams of the same ranks in the same order are of one
 * chain and can be fused slot by slot. Collectives that a later one of their chain waits for are activations, not
 * gradients, and are left alone.
 *
 * A unit is an op of computing with those of the ranks that do the same ops in the same order: ranks that are alike are
 * changed alike.
 */
#ifndef PL_SEARCH_STEP_MODEL_H
#define PL_SEARCH_STEP_MODEL_H

#include "workloads/trace/replay.h"
#include "workloads/trace/step_graph.h"

typedef enum pl_step_edge_kind {
  PL_STEP_DATA = 0,
  PL_STEP_SEQUENCE, /* one collective behind another on a stream: all pieces before the first piece */
  PL_STEP_LAUNCH    /* a kernel waits for its launch */
} pl_step_edge_kind;

typedef struct pl_step_edge {
  uint32_t before, after;
  uint8_t kind;
} pl_step_edge;

typedef enum pl_step_slot_kind {
  PL_STEP_WAITS = 0, /* a lag, or what it takes to leave: once for a fused tensor, for each piece of one that is cut */
  PL_STEP_MOVES,     /* by size */
  PL_STEP_SUMS       /* a server's sum: by size, with a launch */
} pl_step_slot_kind;

typedef struct pl_step_slot {
  uint32_t task;
  uint8_t kind;
} pl_step_slot;

typedef struct pl_step_tensor {
  uint32_t first_slot, n_slots;
  uint32_t chain;     /* tensors of one chain stand next to each other, by the date at which they were ready */
  const char *name;   /* what the names of its ops begin with */
  int64_t size_bytes; /* of the gradient; -1: not recorded */
  pl_ticks date;      /* when it began */
  uint64_t shape;
  uint8_t kind;       /* pl_trace_message_kind */
  uint32_t n_members; /* of the collective; 2 for messages */
  bool is_sequence;   /* a collective, in order on its streams; else links serve who is ready */
} pl_step_tensor;

typedef struct pl_step_member {
  uint32_t op, gate, body; /* tasks of the model */
} pl_step_member;

typedef struct pl_step_unit {
  uint32_t first_member, n_members; /* one per rank, and per batch where there are several */
  uint32_t class_index;             /* of ranks that are alike */
  uint32_t name;
  bool follows; /* the unit before it is next to it on the same stream */
} pl_step_unit;

typedef struct pl_step_model {
  const pl_trace_replay *replay;
  uint32_t n; /* tasks */
  pl_ticks *ticks;
  pl_step_edge *edges;
  uint32_t n_edges, n_links;
  uint32_t *tensor, *slot; /* per task, PL_NONE */
  uint32_t *unit;          /* per task; PL_NONE */
  uint32_t *member;        /* per task of a unit: into members */
  uint32_t *launches;      /* per task: the unit that this call does nothing but launch, PL_NONE */
  uint32_t *claims, *frees;
  pl_step_tensor *tensors;
  uint32_t n_tensors, n_chains;
  pl_step_slot *slots;
  uint32_t n_slots;
  pl_step_unit *units;
  uint32_t n_units;
  pl_step_member *members;
  uint32_t n_members;
  uint32_t n_classes;     /* of ranks that are alike */
  uint32_t n_activations; /* collectives that a later one of their kind waits for */
} pl_step_model;

/* Everything from `arena`. `units`: ops of computing are units too, which keeps them from being merged. No tensors is
 * no error. O((tasks + edges) * chains). */
pl_code pl_step_model_take(const pl_trace_replay *replay, const pl_trace_step_list *steps, bool units, pl_arena *arena,
                           pl_step_model *model, pl_error *error);

/* The coarsened view: tasks that can only follow one another become one. The makespan is the same for whatever is done
 * to tensors and units. O(n + edges). */
pl_code pl_step_model_coarsen(const pl_step_model *model, pl_arena *arena, pl_step_model *coarse, pl_error *error);

/* The parts of pl_step_model_take. */
bool pl_step_tensors_find(pl_step_model *model, const pl_trace_step_list *steps, pl_arena *arena);
bool pl_step_units_find(pl_step_model *model, pl_arena *arena);
/* Orders tensors by chain and date, and leaves out chains that wait for themselves. */
bool pl_step_chains_find(pl_step_model *model, const pl_trace_step_list *steps, pl_arena *arena);
/* The edge is there because the two ops stand on one stream, and for nothing else. */
bool pl_step_edge_is_order(const pl_trace_replay *replay, const pl_trace_step_list *steps, uint32_t before,
                           uint32_t after);

#endif
