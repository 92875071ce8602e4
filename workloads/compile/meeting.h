/* Meetings: where the members of a communicator come together in the graph.
 *
 * Every participant runs the ops of its communicator in the same order, so its k-th arrival is the k-th task of the
 * group class, whoever makes it. A fluid op is one task (open = close), or one on the streams and its flight on none. A
 * chunked op is a task that opens it on the streams of all members, its steps, and one that closes it.
 */
#ifndef PL_WORKLOADS_MEETING_H
#define PL_WORKLOADS_MEETING_H

#include "core/graph/graph.h"
#include "workloads/compile/communication.h"
#include "workloads/compile/compile.h"

typedef struct pl_meeting {
  uint32_t open, close; /* tasks: what comes before points to open, what comes after waits for close */
} pl_meeting;

/* How a task is labelled. */
typedef struct pl_task_text {
  pl_category category;
  uint32_t name; /* of the graph's names, PL_NONE = none */
  int32_t microbatch;
} pl_task_text;

typedef struct pl_meeting_list {
  pl_meeting *meetings;
  uint32_t n, capacity;
} pl_meeting_list;

typedef struct pl_chunked_specs pl_chunked_specs;

typedef struct pl_meetings {
  const pl_cluster *cluster;
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_compile_options *options;
  pl_graph_builder *builder;
  pl_arena *arena;
  pl_meeting_list *lists;              /* per group class */
  uint32_t *streams;                   /* per participant of the plan: stream of the graph */
  uint32_t (*arrivals)[PL_SLOT_COUNT]; /* per device class */
  uint64_t *emitted;                   /* per lowered op of the plan: how often; NULL when chunked */
  uint64_t times;                      /* how often what is emitted now counts */
  pl_chunked_specs *chunked;
  pl_error *error;
  pl_code code; /* sticky failure of arrivals */
} pl_meetings;

/* The graph devices must have been added, in the order of the plan's device classes. */
pl_code pl_meetings_init(pl_meetings *meetings, const pl_cluster *cluster, const pl_program *program,
                         const pl_communication_plan *plan, const pl_compile_options *options,
                         pl_graph_builder *builder, pl_arena *arena, pl_error *error);
/* The next op of the communicator that `device_class` has at `slot`: op number `op` of its family. */
pl_meeting pl_meetings_arrive(pl_meetings *meetings, uint32_t device_class, int slot, uint32_t op,
                              const pl_task_text *text);
/* Adds what the ops that were emitted carry, per transfer class. Not when chunked. */
void pl_meetings_add_bytes(const pl_meetings *meetings, double *transfer_bytes);
/* Gives the builder its transfer table. */
pl_code pl_meetings_finish(pl_meetings *meetings, pl_error *error);

/* ---- chunked ops (workloads/compile/meeting_chunked.c) ---- */
pl_chunked_specs *pl_chunked_specs_take(pl_meetings *meetings);
pl_meeting pl_chunked_emit(pl_meetings *meetings, const pl_group_class *class, uint32_t op, const pl_task_text *text);
void pl_chunked_table(const pl_meetings *meetings, pl_transfer_table *table);

#endif
