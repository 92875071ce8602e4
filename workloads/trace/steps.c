/* See workloads/trace/steps.h. */
#include "workloads/trace/steps.h"

#include <math.h>
#include <stdlib.h>

static int by_number(const void *a_, const void *b_) {
  int64_t a = ((const pl_trace_span *)a_)->number, b = ((const pl_trace_span *)b_)->number;
  return (a > b) - (a < b);
}

bool pl_trace_is_of_step(const pl_trace *trace, const pl_trace_step_list *steps, uint32_t op, int64_t number) {
  if (steps->is_whole) return true;
  uint32_t step = trace->ops[op].step;
  return step != PL_NONE && trace->steps[step].number == number;
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

static void find_spans(const pl_trace *trace, const pl_trace_clocks *clocks, pl_trace_step_list *steps) {
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
      const pl_trace_op *op = &trace->ops[k];
      if (!steps->is_whole && op->step == PL_NONE) continue;
      pl_trace_span *span = find(steps, steps->is_whole ? 0 : trace->steps[op->step].number);
      if (span == NULL) continue;
      int64_t start = pl_trace_clocks_date(trace, clocks, r, op->start_ns);
      int64_t end = pl_trace_clocks_date(trace, clocks, r, pl_trace_end_ns(op));
      if (start < span->start_ns) span->start_ns = start;
      if (end > span->end_ns) span->end_ns = end;
    }
  }
  uint32_t n = 0; /* a mark without an op is no step */
  for (uint32_t s = 0; s < steps->n; s++)
    if (steps->steps[s].end_ns >= steps->steps[s].start_ns) steps->steps[n++] = steps->steps[s];
  steps->n_partial += steps->n - n;
  steps->n = n;
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
  return PL_OK;
}

void pl_trace_steps_release(pl_trace_step_list *steps) {
  free(steps->steps);
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
