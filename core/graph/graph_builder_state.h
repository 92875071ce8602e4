/* The graph builder's own state, shared by graph_builder.c (which fills it) and graph_freeze.c (which reads it), and by
 * nobody else. */
#ifndef PL_CORE_GRAPH_BUILDER_STATE_H
#define PL_CORE_GRAPH_BUILDER_STATE_H

#include "core/graph/graph.h"

typedef struct pl_edge {
  uint32_t before, after;
} pl_edge;

typedef struct pl_edge_chunk {
  struct pl_edge_chunk *next;
  uint32_t count, capacity;
  pl_edge edges[];
} pl_edge_chunk;

struct pl_graph_builder {
  pl_arena *arena;
  bool failed;    /* of memory or of input; nothing more is accepted */
  pl_error error; /* the bad input, if that is what failed */
  bool has_backward_edge, is_acyclic;
  pl_stream_policy policy;
  pl_task *tasks;
  uint32_t *task_streams;
  pl_stream *streams;
  uint32_t *last_on_stream; /* per stream: the task added last */
  pl_graph_device *devices;
  uint32_t (*device_streams)[PL_STREAM_KIND_COUNT];
  pl_segment *segments;
  pl_part *parts;
  const uint32_t *rival_offset, *rivals;
  pl_memory_effect *effects;
  const char **names;
  uint32_t *name_table; /* open addressing, power of two; PL_NONE = free */
  uint32_t name_table_size;
  uint32_t n_tasks, n_task_streams, n_streams, n_devices, n_segments, n_parts, n_effects, n_names;
  uint32_t tasks_room, task_streams_room, streams_room, last_room, devices_room, device_streams_room, segments_room,
      parts_room, effects_room, names_room;
  uint32_t n_transfer_tasks, n_streamless_tasks, greatest_spec;
  pl_edge_chunk *first_edges, *last_edges;
  uint64_t n_raw_edges;
  pl_transfer_table transfers;
};

#endif
