/* What formats say of order by ids: "this waits for op 17", where op 17 may stand behind it in the file. Looked up once
 * a rank is read. */
#ifndef PL_WORKLOADS_FORMATS_EDGES_BY_ID_H
#define PL_WORKLOADS_FORMATS_EDGES_BY_ID_H

#include "workloads/trace/trace.h"

typedef struct pl_edge_by_id {
  int64_t before; /* id of what is waited for */
  uint32_t after; /* place of the op that waits, among those of the rank */
  bool from_start;
} pl_edge_by_id;

typedef struct pl_edges_by_id {
  int64_t *ids; /* of the rank's ops, in the order of the file; NULL: they count from first_id */
  int64_t first_id;
  uint32_t n_ids, id_room;
  pl_edge_by_id *edges;
  uint32_t n_edges, edge_room;
} pl_edges_by_id;

/* False: no memory. */
bool pl_edges_by_id_op(pl_edges_by_id *edges, int64_t id);
int64_t pl_edges_by_id_of(const pl_edges_by_id *edges, uint32_t place);
bool pl_edges_by_id_wait(pl_edges_by_id *edges, int64_t before, uint32_t after, bool from_start);
void pl_edges_by_id_release(pl_edges_by_id *edges);

/* Adds the edges to the trace, whose ops of the rank stand from `first_op` on in the order of the ids, which stay while
 * the edges here are forgotten. `what` an op is called in messages. PL_BAD_INPUT: two ops have one id or, if `lost` is
 * NULL, one waits for itself or for an op that is not there; else these are left out and counted. */
pl_code pl_edges_by_id_add(pl_edges_by_id *edges, pl_trace *trace, uint32_t first_op, const char *path,
                           const char *what, uint32_t *lost, pl_error *error);

#endif
