/* Within the reader of Chakra traces: a node as its message says it, and the rank under construction. */
#ifndef PL_WORKLOADS_FORMATS_CHAKRA_NODES_H
#define PL_WORKLOADS_FORMATS_CHAKRA_NODES_H

#include "workloads/formats/chakra.h"
#include "workloads/formats/edges_by_id.h"
#include "workloads/formats/protobuf_records.h"

/* Lanes of nodes that name no stream, for the list schedule. */
typedef struct pl_chakra {
  const char *path;
  pl_trace *trace;
  const pl_chakra_groups *groups;
  const pl_trace_progress *progress;
  pl_trace_rank rank;
  uint32_t index, first_edge;
  uint64_t n_records;
  pl_edges_by_id edges;
  uint32_t *streams; /* of the rank, so that names are found again */
  uint32_t n_streams, stream_room;
  bool has_dates, has_device; /* some node has a start; some node is no op of the host */
  uint32_t n_undated, n_without_duration, n_without_group, n_unknown_type, n_messages_undone;
  uint64_t n_durations;
  pl_records_end end;
} pl_chakra;

/* The messages of the file, one after the other. */
pl_code pl_chakra_record(void *context, const uint8_t *data, size_t size, pl_error *error);
/* Edges, dates and the end of the rank. */
pl_code pl_chakra_finish(pl_chakra *own, pl_error *error);

#endif
