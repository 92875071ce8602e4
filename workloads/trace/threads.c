/* See workloads/trace/threads.h. */
#include "workloads/trace/threads.h"

#include <stdlib.h>

typedef struct streams {
  const pl_trace *trace;
  uint32_t *first; /* of each stream of the rank that is of interest: its ops are first[k] .. first[k] + n[k] */
  uint32_t *n;
  uint8_t *kind;
  uint32_t n_streams;
} streams;

/* The last op of the list that begins at or before `date`, PL_NONE: none. */
static uint32_t last_begun(const streams *own, uint32_t stream, int64_t date_ns) {
  uint32_t low = 0, high = own->n[stream];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (own->trace->ops[own->first[stream] + middle].start_ns <= date_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? PL_NONE : own->first[stream] + low - 1;
}

/* The op of other streams that ended last within (after, until]. Ops of a stream come one after the other, so only the
 * last two that begin before `until` can. */
static uint32_t ended_last(const streams *own, uint32_t but, int64_t after_ns, uint32_t k) {
  uint32_t found = PL_NONE;
  int64_t until_ns = own->trace->ops[k].start_ns;
  for (uint32_t s = 0; s < own->n_streams; s++) {
    if (s == but) continue;
    uint32_t op = last_begun(own, s, until_ns);
    for (int back = 0; back < 2 && op != PL_NONE; back++) {
      int64_t end = pl_trace_end_ns(&own->trace->ops[op]);
      bool earlier = own->trace->ops[op].start_ns < until_ns || op < k; /* no two wait for each other */
      if (earlier && end > after_ns && end <= until_ns &&
          (found == PL_NONE || end > pl_trace_end_ns(&own->trace->ops[found])))
        found = op;
      op = op > own->first[s] ? op - 1 : PL_NONE;
    }
  }
  return found;
}

static bool link_host(pl_trace *trace, const streams *own, uint32_t stream) {
  enum { SHORTEST_GAP_NS = 2000 };
  for (uint32_t k = own->first[stream]; k < own->first[stream] + own->n[stream]; k++) {
    int64_t idle_since = k > own->first[stream] ? pl_trace_end_ns(&trace->ops[k - 1]) : INT64_MIN;
    int64_t start = trace->ops[k].start_ns;
    if (k > own->first[stream] && start - idle_since < SHORTEST_GAP_NS) continue;
    uint32_t before = ended_last(own, stream, idle_since, k);
    if (before != PL_NONE && pl_trace_add_edge(trace, before, k, false) == PL_NONE) return false;
  }
  return true;
}

/* A worker's op was started by what a host thread did at that moment, or last before it. */
static bool link_worker(pl_trace *trace, const streams *own, uint32_t stream) {
  for (uint32_t k = own->first[stream]; k < own->first[stream] + own->n[stream]; k++) {
    uint32_t by = PL_NONE;
    for (uint32_t s = 0; s < own->n_streams; s++) {
      uint32_t op = own->kind[s] == PL_TRACE_HOST ? last_begun(own, s, trace->ops[k].start_ns) : PL_NONE;
      if (op != PL_NONE && (by == PL_NONE || trace->ops[op].start_ns > trace->ops[by].start_ns)) by = op;
    }
    if (by == PL_NONE) continue;
    bool under_way = pl_trace_end_ns(&trace->ops[by]) > trace->ops[k].start_ns;
    if (pl_trace_add_edge(trace, by, k, under_way) == PL_NONE) return false;
  }
  return true;
}

static bool link_all(pl_trace *trace, const pl_trace_rank *rank, streams *own) {
  uint32_t last = PL_NONE;
  for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
    uint32_t stream = trace->ops[k].stream;
    if (trace->streams[stream].kind == PL_TRACE_DEVICE) continue;
    if (stream != last) {
      own->first[own->n_streams] = k;
      own->n[own->n_streams] = 0;
      own->kind[own->n_streams++] = trace->streams[stream].kind;
      last = stream;
    }
    PL_ASSERT(own->n_streams > 0);
    own->n[own->n_streams - 1]++;
  }
  if (own->n_streams < 2) return true;
  for (uint32_t s = 0; s < own->n_streams; s++)
    if (!(own->kind[s] == PL_TRACE_HOST ? link_host(trace, own, s) : link_worker(trace, own, s))) return false;
  return true;
}

pl_code pl_trace_link_threads(pl_trace *trace, uint32_t r, pl_error *error) {
  uint32_t most = trace->n_streams + 1;
  streams own = {.trace = trace,
                 .first = malloc(most * sizeof *own.first),
                 .n = malloc(most * sizeof *own.n),
                 .kind = malloc(most)};
  bool good = own.first != NULL && own.n != NULL && own.kind != NULL && link_all(trace, &trace->ranks[r], &own);
  free(own.first);
  free(own.n);
  free(own.kind);
  return good ? PL_OK : pl_fail_memory(error, "the threads of a trace");
}
