/* The end of a rank of a Chakra trace: edges, and dates where it has none. See workloads/formats/chakra.h. */
#include <stdlib.h>

#include "core/engine/event_heap.h"
#include "workloads/formats/chakra_nodes.h"

/* Edges of the rank by the op that is waited for. */
typedef struct plan {
  uint32_t *first, *edge; /* n_ops + 2; per edge */
  uint32_t *n_waits;      /* per op */
  int64_t *ready_ns;      /* per op; NULL: none has a date, and ready_of stands in place of them */
  int64_t *free_ns;       /* per stream of the trace */
  pl_event_heap heap;
  uint32_t n;
} plan;

static bool take_plan(const pl_chakra *own, pl_arena *arena, plan *p) {
  const pl_trace *trace = own->trace;
  uint32_t first_op = own->rank.first_op, n_edges = trace->n_edges - own->first_edge;
  p->n = trace->n_ops - first_op;
  p->first = PL_TAKE(arena, uint32_t, p->n + 2);
  p->edge = PL_TAKE(arena, uint32_t, n_edges + 1);
  p->n_waits = PL_TAKE(arena, uint32_t, p->n + 1);
  bool all_undated = own->n_undated == p->n;
  p->ready_ns = all_undated ? NULL : PL_TAKE(arena, int64_t, p->n + 1);
  p->free_ns = PL_TAKE(arena, int64_t, trace->n_streams + 1);
  if (p->first == NULL || p->edge == NULL || p->n_waits == NULL || (p->ready_ns == NULL && !all_undated) ||
      p->free_ns == NULL || !pl_event_heap_init(&p->heap, p->n + 1, arena))
    return false;
  for (uint32_t e = own->first_edge; e < trace->n_edges; e++) {
    p->first[trace->edges[e].before - first_op + 2]++;
    p->n_waits[trace->edges[e].after - first_op]++;
  }
  for (uint32_t k = 2; k < p->n + 2; k++)
    p->first[k] += p->first[k - 1];
  for (uint32_t e = own->first_edge; e < trace->n_edges; e++)
    p->edge[p->first[trace->edges[e].before - first_op + 1]++] = e;
  return true;
}

/* Where no op has a date, each keeps the one of its readiness in its start until it is served, counted from INT64_MIN:
 * eight bytes an op less. */
static int64_t ready_of(const plan *p, const pl_trace_op *ops, uint32_t k) {
  return p->ready_ns != NULL ? p->ready_ns[k] : ops[k].start_ns - INT64_MIN;
}

static void put_off(const plan *p, pl_trace_op *ops, uint32_t k, int64_t date) {
  if (date <= ready_of(p, ops, k)) return;
  if (p->ready_ns != NULL)
    p->ready_ns[k] = date;
  else
    ops[k].start_ns = INT64_MIN + date;
}

/* What is ready is served in the order of readiness; what has a date keeps it. */
static void schedule(pl_chakra *own, plan *p) {
  pl_trace *trace = own->trace;
  uint32_t first_op = own->rank.first_op;
  pl_trace_op *ops = trace->ops + first_op;
  for (uint32_t k = 0; k < p->n; k++)
    if (p->n_waits[k] == 0) pl_event_heap_set(&p->heap, k, 0);
  while (p->heap.count > 0) {
    uint32_t k = pl_event_heap_pop(&p->heap).id;
    pl_trace_op *op = &ops[k];
    int64_t *lane = &p->free_ns[op->stream], ready_ns = ready_of(p, ops, k);
    if (p->ready_ns == NULL || op->start_ns == INT64_MIN) op->start_ns = ready_ns > *lane ? ready_ns : *lane;
    if (pl_trace_end_ns(op) > *lane) *lane = pl_trace_end_ns(op);
    p->n_waits[k] = PL_NONE; /* done */
    for (uint32_t e = p->first[k]; e < p->first[k + 1]; e++) {
      const pl_trace_edge *edge = &trace->edges[p->edge[e]];
      uint32_t next = edge->after - first_op;
      int64_t date = edge->from_start ? op->start_ns : pl_trace_end_ns(op);
      put_off(p, ops, next, date);
      if (--p->n_waits[next] == 0) pl_event_heap_set(&p->heap, next, ready_of(p, ops, next));
    }
  }
}

static pl_code make_dates(pl_chakra *own, pl_error *error) {
  pl_arena arena;
  plan p = {.n = 0};
  pl_arena_init(&arena, 0);
  pl_code code = PL_OK;
  int64_t sum = 0; /* no date of the schedule lies behind all durations together */
  for (uint32_t k = own->rank.first_op; k < own->trace->n_ops && code == PL_OK; k++) {
    sum += own->trace->ops[k].duration_ns;
    if (sum > PL_TRACE_SPAN_NS)
      code = pl_fail(error, PL_BAD_INPUT, "%s: its nodes take more than 30 days: is it one recording?", own->path);
  }
  if (code == PL_OK && !take_plan(own, &arena, &p)) code = pl_fail_memory(error, own->path);
  if (code == PL_OK) {
    schedule(own, &p);
    uint32_t left = 0, one = 0;
    for (uint32_t k = p.n; k-- > 0;)
      if (p.n_waits[k] != PL_NONE) {
        left++;
        one = k;
      }
    if (left > 0)
      code =
          pl_fail(error, PL_BAD_INPUT, "%s: its dependencies have a cycle: %u nodes can never start, node %lld is one",
                  own->path, left, (long long)pl_edges_by_id_of(&own->edges, one));
  }
  pl_arena_release(&arena);
  return code;
}

/* Steps by start, and the ops follow them. */
static pl_code sort_steps(pl_chakra *own, pl_error *error) {
  pl_trace *trace = own->trace;
  uint32_t first = own->rank.first_step, n = trace->n_steps - first;
  for (uint32_t s = first + 1; s < trace->n_steps; s++)
    if (pl_trace_step_by_start(&trace->steps[s - 1], &trace->steps[s]) > 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: the steps of its head do not stand in the order of their starts (%u)",
                     own->path, n);
  return PL_OK;
}

static void note(const pl_chakra *own, uint32_t n_lost) {
  pl_trace *trace = own->trace;
  long long number = own->rank.number;
  if (own->end.is_cut)
    pl_trace_add_note(trace, "%s: rank %lld: ends too early; read as far as it goes", own->path, number);
  if (n_lost > 0)
    pl_trace_add_note(trace,
                      "%s: rank %lld: %u dependencies on nodes that are not in the file, or on themselves, left out",
                      own->path, number, n_lost);
  if (!own->has_dates)
    pl_trace_add_note(
        trace,
        "%s: rank %lld: no dates; made from dependencies and durations, each stream serving what is ready "
        "first",
        own->path, number);
  else if (own->n_undated > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u nodes have no start; taken as behind what they waited for", own->path,
                      number, own->n_undated);
  if (own->n_messages_undone > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u messages have no duration, taken as 0; --platform times them",
                      own->path, number, own->n_messages_undone);
  if (own->n_without_group > 0)
    pl_trace_add_note(trace,
                      "%s: rank %lld: %u messages of a group whose members no comm_group.json says; taken as all "
                      "ranks",
                      own->path, number, own->n_without_group);
  if (own->n_unknown_type > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u nodes of an unknown type, taken as computing", own->path, number,
                      own->n_unknown_type);
}

pl_code pl_chakra_finish(pl_chakra *own, pl_error *error) {
  pl_trace *trace = own->trace;
  uint32_t n_lost = 0;
  if (own->n_records == 0) return pl_fail(error, PL_BAD_INPUT, "%s: is empty: no Chakra trace", own->path);
  if (trace->n_ops == own->rank.first_op) return pl_fail(error, PL_BAD_INPUT, "%s: has no nodes", own->path);
  if (own->rank.number < 0 || own->rank.number > INT32_MAX)
    return pl_fail(error, PL_BAD_INPUT, "%s: says no rank; name it after its rank, as in trace.3.et", own->path);
  if (own->n_durations == 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: no node has a duration: is a workload for a simulator, and no recording",
                   own->path);
  PL_TRY(pl_edges_by_id_add(&own->edges, trace, own->rank.first_op, own->path, "node", &n_lost, error));
  PL_TRY(sort_steps(own, error));
  if (own->n_undated > 0) PL_TRY(make_dates(own, error));
  for (uint32_t k = own->rank.first_op; !own->has_device && k < trace->n_ops; k++)
    if (trace->ops[k].kind == PL_TRACE_CALL) trace->ops[k].kind = PL_TRACE_COMPUTE;
  note(own, n_lost);
  trace->ranks[own->index] = own->rank;
  return pl_trace_end_rank(trace, own->index, own->first_edge, error);
}
