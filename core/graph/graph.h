/* The execution graph: tasks, dependencies, streams, memory effects. Built by a builder, then frozen into flat arrays
 * with 32-bit indices. Knows nothing of DNNs: a category is what the reports file a task's time under.
 *
 * A task is one of
 *   work      a segment of compute on one device, on one stream, or a joint segment of several devices;
 *   transfer  a communication, on the streams of all its members, timed by the network;
 *   delay     a fixed duration on zero or more streams (a transfer that has no rival, a barrier with 0 ticks).
 *
 * Segments. The duration of a work task is a segment: a run of parts, each with ticks, a category and a flag that says
 * whether it computes. An ordinary op is a segment with one part; a fused task is a segment with many (computation and
 * the collectives between them that nobody can interleave with). While the overlap factor acts on its device the engine
 * walks the parts one by one; otherwise it takes the total. Both give the same ticks.
 *
 * Disturbed segments. A part may be a communication that others contend with now and then. As long as none of them is
 * under way the segment runs by its total; when one starts, the engine walks the parts and plays the communication on
 * the network from where it has got to. `rivals` says whom a transfer disturbs: the devices whose segments have
 * communication on its links. No two devices' segments may contend with each other.
 *
 * Joint segments. Devices that compute the same between collectives of theirs (the members of a tensor-parallel group,
 * when their other communication makes them differ) run one work task on the compute streams of all of them. Parts that
 * do not compute are communication of all members: it begins when the last of them has got there. Such a segment begins
 * and ends with communication, hence all members start and end it together; in between they are in step until the
 * overlap factor acts on one of them.
 *
 * Streams. Tasks on one stream start in the order in which they were added to the graph; with PL_STREAMS_IN_ORDER the
 * builder turns that into edges at freeze (after the previous task of the stream has FINISHED). With PL_STREAMS_READY
 * there are no such edges: the engine starts, on each free stream, the ready task with the lowest id.
 *
 * Folding. A device of the graph may stand for `multiplicity` devices of the cluster.
 *
 * Rolled graphs. Tasks that are alike but for a shift may share one row of `tasks` (core/graph/graph_roll.h); whoever
 * takes such graphs asks pl_graph_task and pl_graph_successor. Everybody else has a row for each task.
 */
#ifndef PL_CORE_GRAPH_H
#define PL_CORE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/base/ticks.h"
#include "core/cluster/cluster.h"
#include "core/cluster/lanes.h"
#include "core/cluster/transfer.h"

/* Categories of the reports. */
typedef enum pl_category {
  PL_CATEGORY_FORWARD = 0,
  PL_CATEGORY_BACKWARD,
  PL_CATEGORY_RECOMPUTE,
  PL_CATEGORY_OPTIMIZER,
  PL_CATEGORY_TENSOR,   /* tensor-parallel and sequence-parallel communication */
  PL_CATEGORY_PIPELINE, /* sends between stages */
  PL_CATEGORY_DATA,     /* gradient reduction, ZeRO gathers */
  PL_CATEGORY_OTHER,
  PL_CATEGORY_HOST,    /* a device that waits for the host to launch its work */
  PL_CATEGORY_CONTEXT, /* context-parallel exchange of keys and values */
  PL_CATEGORY_EXPERT,  /* tokens on their way to experts and back */
  PL_CATEGORY_COUNT
} pl_category;

const char *pl_category_name(pl_category category);
static inline bool pl_category_is_communication(pl_category category) {
  return category == PL_CATEGORY_TENSOR || category == PL_CATEGORY_PIPELINE || category == PL_CATEGORY_DATA ||
         category == PL_CATEGORY_CONTEXT || category == PL_CATEGORY_EXPERT;
}

typedef enum pl_stream_kind {
  PL_STREAM_COMPUTE = 0,
  PL_STREAM_FEATURE,   /* tensor-parallel collectives */
  PL_STREAM_GRADIENT,  /* gradient collectives: those the overlap factor acts on (Proteus VI-C) */
  PL_STREAM_SEND_DOWN, /* pipeline sends to later stages; one stream per direction and side */
  PL_STREAM_RECEIVE_DOWN,
  PL_STREAM_SEND_UP,
  PL_STREAM_RECEIVE_UP,
  PL_STREAM_TIED,    /* all-reduce of tied parameters between stages: a communicator, hence a stream, of its own */
  PL_STREAM_CONTEXT, /* context-parallel exchanges; likewise, as the two below */
  PL_STREAM_EXPERT,  /* tokens to and from experts */
  PL_STREAM_EXPERT_GRADIENT, /* gradient collectives of experts */
  /* Pipeline sends of the chunks on the way back of a V: activations go to earlier stages, gradients to later ones. */
  PL_STREAM_SEND_DOWN_2,
  PL_STREAM_RECEIVE_DOWN_2,
  PL_STREAM_SEND_UP_2,
  PL_STREAM_RECEIVE_UP_2,
  PL_STREAM_HOST,  /* copies to the memory of the host and back */
  PL_STREAM_HEADS, /* keys and values of tensor ranks that share heads: a communicator of its own */
  PL_STREAM_KIND_COUNT
} pl_stream_kind;

const char *pl_stream_kind_name(pl_stream_kind kind);

typedef enum pl_stream_policy { PL_STREAMS_IN_ORDER = 0, PL_STREAMS_READY } pl_stream_policy;

typedef enum pl_task_kind { PL_TASK_WORK = 0, PL_TASK_TRANSFER, PL_TASK_DELAY } pl_task_kind;

typedef struct pl_part {
  pl_ticks ticks;
  uint8_t category; /* pl_category */
  bool computes;    /* the overlap factor slows it, and it slows overlapped gradient communication */
  bool is_crowded;  /* computing bounds it: what collectives take of the multiprocessors slows it */
  uint32_t name;    /* index into graph->names, PL_NONE = none */
  /* A communication that has rivals on the network: `ticks` is what it takes alone; while a rival is under way it is a
   * transfer of `spec` like any other. */
  bool transfers;
  uint32_t spec;
  double size_bytes;
} pl_part;

typedef struct pl_segment {
  uint32_t first_part, n_parts;
  pl_ticks ticks; /* sum over the parts */
} pl_segment;

/* Effect of a task on the memory of its device, bytes: at the start `peak` is taken, at the end the task has changed
 * the balance by `net` (may be negative). peak >= 0, peak >= net. Applied to the devices of all streams of a work task,
 * to that of the first stream of others. */
typedef struct pl_memory_effect {
  int64_t peak_bytes, net_bytes;
} pl_memory_effect;

typedef struct pl_task {
  uint32_t kind : 2, category : 6; /* category of a segment's first part, or of the transfer or delay */
  uint32_t index;                  /* work: segment; transfer: spec; delay: unused */
  union {
    pl_ticks ticks;    /* delay; work: copy of the segment's total */
    double size_bytes; /* transfer */
  };
  uint32_t first_stream, n_streams; /* into graph->task_streams */
  uint32_t memory;                  /* index into graph->effects, PL_NONE = none */
  uint32_t label;                   /* index into graph->names, PL_NONE = none */
  int32_t microbatch;               /* for timelines; -1 = none */
  uint32_t first_successor,
      n_successors; /* into graph->successors; here too, so that one cache line has all of a task */
} pl_task;          /* 48 bytes */

typedef struct pl_stream {
  uint32_t device; /* of the graph */
  uint8_t kind;    /* pl_stream_kind */
  uint8_t lane;    /* 0; in drawings, which of those of its kind on the device: what occupies none may overlap */
} pl_stream;

typedef struct pl_graph_device {
  uint32_t device;                               /* the (representative) device of the cluster */
  uint32_t multiplicity;                         /* how many devices of the cluster it stands for; 1 when unfolded */
  double overlap_compute, overlap_communication; /* gamma; 0 = no effect */
  double overlap_exchange; /* crowded parts take 1 + this while experts exchange tokens; 0 = no effect */
  double overlap_tensor;   /* likewise while a collective of the tensor group runs */
  bool waits_for_place;    /* ... and what of a part has found no place beside that begins when there is one, and takes
                              as long as the whole part */
  int64_t resident_bytes;  /* memory held from start to end (parameters, optimizer state ...) */
} pl_graph_device;

/* The tasks that share a row: first, first + stride ... */
typedef struct pl_row_tasks {
  uint32_t first, stride, n;
} pl_row_tasks;

/* Of a lane of a rolled graph: the rows [repeated, repeated + n_period) of a phase come 1 + n_more times in a row. */
typedef struct pl_rolled_phase {
  uint32_t from, to; /* rows of the phase */
  uint32_t repeated, n_period;
} pl_rolled_phase;

/* Consecutive rows that make consecutive tasks. */
typedef struct pl_rolled_lane {
  uint32_t first_row, end_row;
  uint32_t first_task;
  pl_rolled_phase phases[PL_LANE_PHASES];
} pl_rolled_lane;

/* Only in rolled graphs. */
typedef struct pl_graph_rows {
  const pl_rolled_lane *lanes; /* in the order of their rows and tasks */
  uint32_t n_lanes, n_more;
  int n_phases;
  const pl_row_tasks *tasks; /* per row */
  uint32_t n_rows;
  const uint32_t *skews; /* beside `successors`: the k-th task of the row has a distance of k times that more */
  bool is_skew;          /* one of them is not 0 */
} pl_graph_rows;

/* Successors of a task are sorted and unique, whatever the order in which its edges were added. */
typedef struct pl_graph {
  const pl_task *tasks; /* rows */
  uint32_t n_tasks;
  /* Without lanes: not rolled, and the rows are the tasks. Else successor_offset is NULL, n_predecessors is per row,
   * and a successor is told by its distance from the task, modulo 2^32. */
  pl_graph_rows roll;
  const uint32_t *successor_offset; /* n_tasks + 1 */
  const uint32_t *successors;
  const uint32_t *n_predecessors; /* per task */
  uint32_t n_edges;
  const uint32_t *task_streams; /* stream indices */
  uint32_t n_task_streams;
  uint32_t n_transfer_tasks, n_streamless_tasks;
  const pl_stream *streams;
  uint32_t n_streams;
  const pl_graph_device *devices;
  uint32_t n_devices;
  const pl_segment *segments;
  uint32_t n_segments;
  const pl_part *parts;
  uint32_t n_parts;
  const pl_memory_effect *effects;
  uint32_t n_effects;
  const char *const *names;
  uint32_t n_names;
  pl_transfer_table transfers;
  /* Devices whose segments a transfer of a spec disturbs: rivals[rival_offset[spec] .. rival_offset[spec + 1]); NULL:
   * none. A joint segment goes by the device of its first stream. */
  const uint32_t *rival_offset, *rivals;
  pl_stream_policy policy;
} pl_graph;

static inline bool pl_graph_is_rolled(const pl_graph *graph) {
  return graph->roll.lanes != NULL;
}

/* Of a rolled graph: the row of `task`, and those of `n` tasks from it on. O(log lanes + n). */
uint32_t pl_graph_rolled_row(const pl_graph_rows *roll, uint32_t task);
void pl_graph_rolled_rows(const pl_graph_rows *roll, uint32_t task, uint32_t n, uint32_t *rows);

static inline uint32_t pl_graph_row(const pl_graph *graph, uint32_t task) {
  return pl_graph_is_rolled(graph) ? pl_graph_rolled_row(&graph->roll, task) : task;
}

static inline const pl_task *pl_graph_task(const pl_graph *graph, uint32_t task) {
  return &graph->tasks[pl_graph_row(graph, task)];
}

static inline uint32_t pl_graph_n_rows(const pl_graph *graph) {
  return pl_graph_is_rolled(graph) ? graph->roll.n_rows : graph->n_tasks;
}

/* How many tasks share a row. */
static inline uint32_t pl_graph_row_count(const pl_graph *graph, uint32_t row) {
  return pl_graph_is_rolled(graph) ? graph->roll.tasks[row].n : 1;
}

/* The k-th of them. */
static inline uint32_t pl_graph_row_task(const pl_graph *graph, uint32_t row, uint32_t k) {
  return pl_graph_is_rolled(graph) ? graph->roll.tasks[row].first + k * graph->roll.tasks[row].stride : row;
}

static inline uint32_t pl_graph_n_predecessors(const pl_graph *graph, uint32_t task) {
  return graph->n_predecessors[pl_graph_row(graph, task)];
}

/* Of a task of a rolled graph: what to add to entry `at` of its row's successors. */
static inline uint32_t pl_graph_roll_shift(const pl_graph_rows *roll, uint32_t row, uint32_t task, uint32_t at) {
  if (!roll->is_skew || roll->skews[at] == 0) return task;
  return task + roll->skews[at] * ((task - roll->tasks[row].first) / roll->tasks[row].stride);
}

/* The `which`-th successor of a task. */
static inline uint32_t pl_graph_successor(const pl_graph *graph, uint32_t task, uint32_t which) {
  uint32_t row = pl_graph_row(graph, task), at = graph->tasks[row].first_successor + which;
  if (!pl_graph_is_rolled(graph)) return graph->successors[at];
  return graph->successors[at] + pl_graph_roll_shift(&graph->roll, row, task, at);
}

/* ---- builder ----
 * Takes all its memory, and the graph's, from one arena. Errors are sticky and reported by freeze: calls after a
 * failure return PL_NONE and do nothing, and PL_NONE as an index that a call needs is itself such an error, so a caller
 * need not check in between. */
typedef struct pl_graph_builder pl_graph_builder;

pl_graph_builder *pl_graph_builder_take(pl_arena *arena, pl_stream_policy policy); /* NULL: no memory */
uint32_t pl_graph_builder_device(pl_graph_builder *builder, const pl_graph_device *device);
/* The stream `kind` of graph device `device`; made at the first call, the same index afterwards. */
uint32_t pl_graph_builder_stream(pl_graph_builder *builder, uint32_t device, pl_stream_kind kind);
uint32_t pl_graph_builder_name(pl_graph_builder *builder, const char *name); /* interned */
/* Copies the parts (at least one). Identical content is not merged: reuse the index. */
uint32_t pl_graph_builder_segment(pl_graph_builder *builder, const pl_part *parts, uint32_t n_parts);
/* Of a segment so far; holds until the next one. */
const pl_part *pl_graph_builder_parts(const pl_graph_builder *builder, uint32_t segment, uint32_t *n_parts);
uint32_t pl_graph_builder_effect(pl_graph_builder *builder, int64_t peak_bytes, int64_t net_bytes);
uint32_t pl_graph_builder_work(pl_graph_builder *builder, uint32_t segment, uint32_t stream, uint32_t effect,
                               uint32_t label, int32_t microbatch);
/* A joint segment: compute streams of `n_streams` different devices; first and last part do not compute. */
uint32_t pl_graph_builder_joint_work(pl_graph_builder *builder, uint32_t segment, const uint32_t *streams,
                                     uint32_t n_streams, uint32_t effect, uint32_t label, int32_t microbatch);
/* Streams are those of the members (each a different stream). */
uint32_t pl_graph_builder_transfer(pl_graph_builder *builder, uint32_t spec, double size_bytes, pl_category category,
                                   const uint32_t *streams, uint32_t n_streams, uint32_t label, int32_t microbatch);
uint32_t pl_graph_builder_delay(pl_graph_builder *builder, pl_ticks ticks, pl_category category,
                                const uint32_t *streams, uint32_t n_streams, uint32_t label, int32_t microbatch);
void pl_graph_builder_set_effect(pl_graph_builder *builder, uint32_t task, uint32_t effect);
/* `before` must finish before `after` starts. Duplicates (also of stream order) are merged at freeze. */
void pl_graph_builder_edge(pl_graph_builder *builder, uint32_t before, uint32_t after);
/* The specs and links that transfer tasks refer to; the arrays must outlive the graph. */
void pl_graph_builder_transfers(pl_graph_builder *builder, const pl_transfer_table *table);
/* Whom transfers disturb (see pl_graph.rivals): offsets of n_specs + 1 entries; the arrays must outlive the graph. */
void pl_graph_builder_rivals(pl_graph_builder *builder, const uint32_t *rival_offset, const uint32_t *rivals);
/* As many tasks, segments and parts as there are so far are expected `times` times more: room for them is taken at
 * once. No promise. */
void pl_graph_builder_expect(pl_graph_builder *builder, uint32_t times);
/* Tasks so far. */
uint32_t pl_graph_builder_n_tasks(const pl_graph_builder *builder);
/* Whoever knows that no tasks wait for each other in a circle may say so: freeze does not look for one then (a run
 * would find tasks that never start), but in debug builds. It was half of freeze. */
void pl_graph_builder_is_acyclic(pl_graph_builder *builder);
/* O(tasks + edges). Fails on a cycle (naming tasks on it), on an index out of range, on lack of memory. The builder is
 * used up: the memory of its edges goes back to the arena. */
pl_code pl_graph_builder_freeze(pl_graph_builder *builder, pl_graph *graph, pl_error *error);

/* What parts in a row, or a segment, are a pass of: the category of most of their computing; of the first part if they
 * compute nothing. A forward pass of tensor ranks may begin with a collective. O(parts). */
pl_category pl_parts_category(const pl_part *parts, uint32_t n);
pl_category pl_graph_segment_category(const pl_graph *graph, uint32_t segment);

/* Every index in range, offsets ascending, successors sorted and unique, predecessor counts right, no cycle. O(size);
 * takes scratch from the system and gives it back. */
bool pl_graph_is_valid(const pl_graph *graph);
/* The same in all but the edges, the name of a microbatch and the effect on others: kind, category, duration or spec,
 * streams, memory, label, and how many predecessors. */
bool pl_graph_tasks_alike(const pl_graph *graph, uint32_t task, uint32_t other);
/* Over everything that a run depends on and the names; independent of the order in which edges were added. */
uint64_t pl_graph_digest(const pl_graph *graph);

#endif
