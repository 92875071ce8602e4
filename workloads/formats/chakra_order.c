/* An order of a rank's sends and collectives that all ranks can keep. ASTRA-sim does one of them at a time on a rank,
 * the one with the lowest number among those that are ready, which on another rank may be another: both then wait for
 * ever. Here they follow each other by the dates at which they ended, as they can, for they did. */
#include "core/engine/event_heap.h"
#include "workloads/formats/chakra.h"

typedef struct ordering {
  const pl_trace *trace;
  const pl_trace_rank *rank;
  uint32_t *first, *edge; /* of the rank, by the op that is waited for */
  uint32_t *n_waits;
  pl_event_heap heap;
} ordering;

static bool is_chained(const pl_trace_op *op) {
  return op->kind == PL_TRACE_SEND || op->kind == PL_TRACE_COLLECTIVE;
}

/* Of an edge of the rank. */
static bool has_edge(const ordering *own, uint32_t e, uint32_t *before, uint32_t *after) {
  uint32_t first = own->rank->first_op;
  *before = own->trace->edges[e].before - first;
  *after = own->trace->edges[e].after - first;
  return own->trace->edges[e].after >= first && *after < own->rank->n_ops;
}

static bool take(ordering *own, pl_arena *arena) {
  const pl_trace *trace = own->trace;
  uint32_t n = own->rank->n_ops, n_edges = 0, before, after;
  for (uint32_t e = 0; e < trace->n_edges; e++)
    n_edges += has_edge(own, e, &before, &after);
  own->first = PL_TAKE(arena, uint32_t, n + 2);
  own->edge = PL_TAKE(arena, uint32_t, n_edges + 1);
  own->n_waits = PL_TAKE(arena, uint32_t, n + 1);
  if (own->first == NULL || own->edge == NULL || own->n_waits == NULL || !pl_event_heap_init(&own->heap, n + 1, arena))
    return false;
  for (uint32_t e = 0; e < trace->n_edges; e++)
    if (has_edge(own, e, &before, &after)) {
      own->first[before + 2]++;
      own->n_waits[after]++;
    }
  for (uint32_t k = 2; k < n + 2; k++)
    own->first[k] += own->first[k - 1];
  for (uint32_t e = 0; e < trace->n_edges; e++)
    if (has_edge(own, e, &before, &after)) own->edge[own->first[before + 1]++] = after;
  for (uint32_t k = 0; k < n; k++)
    own->n_waits[k] += pl_trace_previous(trace, own->rank->first_op + k) != PL_NONE;
  return true;
}

static void ready(ordering *own, uint32_t k) {
  pl_event_heap_set(&own->heap, k, pl_trace_end_ns(&own->trace->ops[own->rank->first_op + k]));
}

static void release(ordering *own, uint32_t k) {
  if (--own->n_waits[k] == 0) ready(own, k);
}

bool pl_chakra_order(const pl_trace *trace, uint32_t r, uint32_t *before) {
  ordering own = {.trace = trace, .rank = &trace->ranks[r]};
  pl_arena arena;
  pl_arena_init(&arena, 0);
  uint32_t n = own.rank->n_ops, first_op = own.rank->first_op, last = PL_NONE;
  for (uint32_t k = 0; k < n; k++)
    before[k] = PL_NONE;
  bool good = take(&own, &arena);
  for (uint32_t k = 0; good && k < n; k++)
    if (own.n_waits[k] == 0) ready(&own, k);
  while (good && own.heap.count > 0) {
    uint32_t k = pl_event_heap_pop(&own.heap).id;
    if (is_chained(&trace->ops[first_op + k])) {
      before[k] = last;
      last = first_op + k;
    }
    for (uint32_t e = own.first[k]; e < own.first[k + 1]; e++)
      release(&own, own.edge[e]);
    if (k + 1 < n && pl_trace_previous(trace, first_op + k + 1) == first_op + k) release(&own, k + 1);
  }
  pl_arena_release(&arena);
  return good;
}
