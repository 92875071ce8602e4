/* See workloads/trace/steps.h. */
#include "workloads/trace/steps.h"

#include <math.h>
#include <stdlib.h>

static int by_number(const void *a_, const void *b_) {
  int64_t a = ((const pl_trace_span *)a_)->number, b = ((const pl_trace_span *)b_)->number;
  return (a > b) - (a < b);
}

static pl_trace_span *find(pl_trace_step_list *steps, int64_t number) {
  uint32_t low = 0, high = steps->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (steps->steps[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < steps->n && steps->steps[low].number == number ? &steps->steps[low] : NULL;
}

/* Numbers that every rank has. */
static void list_numbers(const pl_trace *trace, pl_trace_step_list *steps) {
  for (uint32_t s = 0; s < trace->n_steps; s++)
    steps->steps[s] = (pl_trace_span){trace->steps[s].number, INT64_MAX, INT64_MIN};
  qsort(steps->steps, trace->n_steps, sizeof *steps->steps, by_number);
  for (uint32_t s = 0, end; s < trace->n_steps; s = end) {
    for (end = s + 1; end < trace->n_steps && steps->steps[end].number == steps->steps[s].number;)
      end++;
    if (end - s == trace->n_ranks)
      steps->steps[steps->n++] = steps->steps[s];
    else
      steps->n_partial++;
  }
}

/* Of an op, among the steps of the list; NULL: of none. */
static pl_trace_span *span_of(const pl_trace *trace, pl_trace_step_list *steps, uint32_t op) {
  uint32_t step = trace->ops[op].step;
  if (steps->is_whole) return &steps->steps[0];
  return step == PL_NONE ? NULL : find(steps, trace->steps[step].number);
}

static void find_spans(const pl_trace *trace, const pl_trace_clocks *clocks, pl_trace_step_list *steps) {
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
      const pl_trace_op *op = &trace->ops[k];
      pl_trace_span *span = span_of(trace, steps, k);
      if (span == NULL) continue;
      int64_t start = pl_trace_clocks_date(trace, clocks, r, op->start_ns);
      int64_t end = pl_trace_clocks_date(trace, clocks, r, pl_trace_end_ns(op));
      if (start < span->start_ns) span->start_ns = start;
      if (end > span->end_ns) span->end_ns = end;
    }
  }
  uint32_t n = 0; /* a mark without an op is no step */
  PL_ASSERT(steps->n == 0 || steps->steps != NULL);
  for (uint32_t s = 0; s < steps->n; s++)
    if (steps->steps[s].end_ns >= steps->steps[s].start_ns) steps->steps[n++] = steps->steps[s];
  steps->n_partial += steps->n - n;
  steps->n = n;
}

static bool list_ops(const pl_trace *trace, pl_trace_step_list *steps) {
  steps->first_op = calloc((size_t)steps->n + 2, sizeof *steps->first_op);
  steps->ops = malloc(((size_t)trace->n_ops + 1) * sizeof *steps->ops);
  if (steps->first_op == NULL || steps->ops == NULL) return false;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < trace->n_ops; k++) {
      const pl_trace_span *span = span_of(trace, steps, k);
      if (span == NULL) continue;
      uint32_t step = (uint32_t)(span - steps->steps);
      if (pass == 0)
        steps->first_op[step + 2]++;
      else
        steps->ops[steps->first_op[step + 1]++] = k;
    }
    for (uint32_t s = 2; pass == 0 && s <= steps->n + 1; s++)
      steps->first_op[s] += steps->first_op[s - 1];
  }
  return true;
}

static bool index_edges(const pl_trace *trace, pl_trace_step_list *steps) {
  steps->first_edge = calloc((size_t)trace->n_ops + 3, sizeof *steps->first_edge);
  steps->edges = malloc(((size_t)trace->n_edges + 1) * sizeof *steps->edges);
  if (steps->first_edge == NULL || steps->edges == NULL) return false;
  for (uint32_t e = 0; e < trace->n_edges; e++)
    steps->first_edge[trace->edges[e].after + 2]++;
  for (uint32_t k = 2; k <= trace->n_ops + 1; k++)
    steps->first_edge[k] += steps->first_edge[k - 1];
  for (uint32_t e = 0; e < trace->n_edges; e++)
    steps->edges[steps->first_edge[trace->edges[e].after + 1]++] = e;
  return true;
}

static bool find_latencies(const pl_trace *trace, pl_trace_step_list *steps) {
  steps->latency_ns = malloc((trace->n_ranks + 1) * sizeof *steps->latency_ns);
  if (steps->latency_ns == NULL) return false;
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    steps->latency_ns[r] = INT64_MAX;
  for (uint32_t e = 0; e < trace->n_edges; e++) {
    const pl_trace_edge *edge = &trace->edges[e];
    if (!edge->from_start || trace->ops[edge->before].kind != PL_TRACE_CALL) continue;
    int64_t latency = trace->ops[edge->after].start_ns - trace->ops[edge->before].start_ns;
    int64_t *least = &steps->latency_ns[pl_trace_rank_of(trace, edge->after)];
    if (latency >= 0 && latency < *least) *least = latency;
  }
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    if (steps->latency_ns[r] == INT64_MAX) steps->latency_ns[r] = 0;
  return true;
}

pl_code pl_trace_steps_make(const pl_trace *trace, const pl_trace_clocks *clocks, pl_trace_step_list *steps,
                            pl_error *error) {
  *steps = (pl_trace_step_list){.steps = calloc((size_t)trace->n_steps + 1, sizeof *steps->steps),
                                .is_whole = trace->n_steps == 0};
  if (steps->steps == NULL) return pl_fail_memory(error, "the steps of a trace");
  if (steps->is_whole)
    steps->steps[steps->n++] = (pl_trace_span){0, INT64_MAX, INT64_MIN};
  else
    list_numbers(trace, steps);
  find_spans(trace, clocks, steps);
  bool good = list_ops(trace, steps) && index_edges(trace, steps) && find_latencies(trace, steps);
  return good ? PL_OK : pl_fail_memory(error, "the steps of a trace");
}

void pl_trace_steps_release(pl_trace_step_list *steps) {
  free(steps->steps);
  free(steps->first_op);
  free(steps->ops);
  free(steps->first_edge);
  free(steps->edges);
  free(steps->latency_ns);
  *steps = (pl_trace_step_list){.n = 0};
}

pl_trace_step_spread pl_trace_steps_spread(const pl_trace_step_list *steps) {
  pl_trace_step_spread s = {0, INFINITY, 0, 0};
  for (uint32_t k = 0; k < steps->n; k++) {
    double time_s = (double)(steps->steps[k].end_ns - steps->steps[k].start_ns) * 1e-9;
    s.mean_s += time_s / steps->n;
    if (time_s < s.least_s) s.least_s = time_s;
    if (time_s > s.most_s) s.most_s = time_s;
  }
  for (uint32_t k = 0; steps->n > 1 && k < steps->n; k++) {
    double off = (double)(steps->steps[k].end_ns - steps->steps[k].start_ns) * 1e-9 - s.mean_s;
    s.deviation_s += off * off / (steps->n - 1);
  }
  s.deviation_s = sqrt(s.deviation_s);
  return s;
}
