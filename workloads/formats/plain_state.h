/* Within the reader of the plain format: what stands between its tokens and its end. */
#ifndef PL_WORKLOADS_TRACE_PLAIN_STATE_H
#define PL_WORKLOADS_TRACE_PLAIN_STATE_H

#include "workloads/formats/edges_by_id.h"
#include "workloads/formats/plain.h"

typedef struct pl_plain_op {
  int64_t step;   /* step: its number; INT64_MIN: by date */
  uint32_t group; /* name */
} pl_plain_op;

typedef struct pl_plain_name {
  uint32_t name, index; /* of a stream or a group */
} pl_plain_name;

typedef struct pl_plain {
  const char *path;
  pl_trace *trace;
  const pl_trace_progress *progress;
  uint32_t depth;
  int root_key, key; /* fields, as plain.c numbers them */
  uint32_t entry;    /* name: of the group or stream whose value comes */
  pl_trace_rank rank;
  int64_t version;
  uint32_t index, first_edge, n_negative;
  pl_trace_op op;
  pl_trace_message message;
  pl_trace_step step;
  pl_plain_op more;
  int64_t id;
  bool has_start, has_duration, has_name;
  int64_t *step_numbers; /* that ops say, each once; until the end an op's step is its place here */
  pl_edges_by_id edges;
  pl_plain_name *streams, *groups;
  int64_t *members;
  uint32_t n_ops, n_step_numbers, step_number_room, n_streams, stream_room, n_groups, group_room, n_members,
      member_room;
  pl_json_end end;
} pl_plain;

/* Looks up names and ids, and ends the rank. */
pl_code pl_plain_finish(pl_plain *own, pl_error *error);

#endif
