/* See workloads/formats/edges_by_id.h. */
#include "workloads/formats/edges_by_id.h"

#include <stdlib.h>

#include "core/base/growing.h"

bool pl_edges_by_id_op(pl_edges_by_id *own, int64_t id) {
  if (own->n_ids == 0 && own->ids == NULL) own->first_id = id;
  if (own->ids == NULL && (uint64_t)id - (uint64_t)own->first_id == own->n_ids) {
    own->n_ids++;
    return own->n_ids < UINT32_MAX / 4;
  }
  bool counted = own->ids == NULL;
  uint32_t more = counted ? own->n_ids + 1 : 1;
  if (!pl_grow(&own->ids, counted ? 0 : own->n_ids, more, &own->id_room, sizeof *own->ids) || own->ids == NULL)
    return false;
  for (uint32_t k = 0; counted && k < own->n_ids; k++)
    own->ids[k] = own->first_id + k;
  own->ids[own->n_ids++] = id;
  return true;
}

int64_t pl_edges_by_id_of(const pl_edges_by_id *own, uint32_t place) {
  return own->ids == NULL ? own->first_id + place : own->ids[place];
}

bool pl_edges_by_id_wait(pl_edges_by_id *own, int64_t before, uint32_t after, bool from_start) {
  if (!PL_GROW(own->edges, own->n_edges, own->edge_room)) return false;
  own->edges[own->n_edges++] = (pl_edge_by_id){before, after, from_start};
  return true;
}

void pl_edges_by_id_release(pl_edges_by_id *own) {
  free(own->ids);
  free(own->edges);
  *own = (pl_edges_by_id){.n_ids = 0};
}

typedef struct numbered_op {
  int64_t id;
  uint32_t op;
} numbered_op;

static int by_id(const void *a_, const void *b_) {
  const numbered_op *a = a_, *b = b_;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  return a->op < b->op ? -1 : a->op > b->op;
}

/* `sorted` NULL: ids count up from the first. */
static uint32_t find(const pl_edges_by_id *own, const numbered_op *sorted, int64_t id) {
  if (sorted == NULL) {
    uint64_t place = (uint64_t)id - (uint64_t)own->first_id;
    return place < own->n_ids ? (uint32_t)place : PL_NONE;
  }
  const numbered_op wanted = {id, 0};
  uint32_t low = 0, high = own->n_ids;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (by_id(&sorted[middle], &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < own->n_ids && sorted[low].id == id ? sorted[low].op : PL_NONE;
}

static pl_code add(const pl_edges_by_id *own, const numbered_op *sorted, pl_trace *trace, uint32_t first_op,
                   const char *path, const char *what, uint32_t *lost, pl_error *error) {
  for (uint32_t k = 1; sorted != NULL && k < own->n_ids; k++)
    if (sorted[k].id == sorted[k - 1].id)
      return pl_fail(error, PL_BAD_INPUT, "%s: two %ss have id %lld", path, what, (long long)sorted[k].id);
  for (uint32_t k = 0; k < own->n_edges; k++) {
    const pl_edge_by_id *edge = &own->edges[k];
    if (edge->after >= own->n_ids) continue; /* of the op that the file broke off in */
    uint32_t before = find(own, sorted, edge->before);
    if (before == PL_NONE && lost == NULL)
      return pl_fail(error, PL_BAD_INPUT, "%s: %s %lld waits for %s %lld, which is not there", path, what,
                     (long long)pl_edges_by_id_of(own, edge->after), what, (long long)edge->before);
    if (lost != NULL && (before == PL_NONE || before == edge->after)) {
      (*lost)++;
      continue;
    }
    if (before == edge->after)
      return pl_fail(error, PL_BAD_INPUT, "%s: %s %lld waits for itself", path, what, (long long)edge->before);
    if (pl_trace_add_edge(trace, first_op + before, first_op + edge->after, edge->from_start) == PL_NONE)
      return pl_fail_memory(error, "the edges of a trace");
  }
  return PL_OK;
}

static pl_code find_and_add(const pl_edges_by_id *own, pl_trace *trace, uint32_t first_op, const char *path,
                            const char *what, uint32_t *lost, pl_error *error) {
  if (own->ids == NULL) return add(own, NULL, trace, first_op, path, what, lost, error);
  numbered_op *sorted = malloc(((size_t)own->n_ids + 1) * sizeof *sorted);
  if (sorted == NULL) return pl_fail_memory(error, "the ops of a trace");
  for (uint32_t k = 0; k < own->n_ids; k++)
    sorted[k] = (numbered_op){own->ids[k], k};
  if (own->n_ids > 0) qsort(sorted, own->n_ids, sizeof *sorted, by_id);
  pl_code code = add(own, sorted, trace, first_op, path, what, lost, error);
  free(sorted);
  return code;
}

pl_code pl_edges_by_id_add(pl_edges_by_id *own, pl_trace *trace, uint32_t first_op, const char *path, const char *what,
                           uint32_t *lost, pl_error *error) {
  pl_code code = find_and_add(own, trace, first_op, path, what, lost, error);
  free(own->edges);
  own->edges = NULL;
  own->n_edges = own->edge_room = 0;
  return code;
}
