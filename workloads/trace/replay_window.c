/* See workloads/trace/replay_window.h. */
#include "workloads/trace/replay_window.h"

/* From when to when the rank was in the steps of these numbers, by its own clock; false: in none of them. */
static bool find_stay(const pl_trace *trace, const pl_trace_rank *rank, int64_t low, int64_t high, int64_t *start_ns,
                      int64_t *end_ns) {
  *start_ns = INT64_MAX;
  *end_ns = INT64_MIN;
  for (uint32_t s = rank->first_step; s < rank->first_step + rank->n_steps; s++) {
    const pl_trace_step *step = &trace->steps[s];
    if (step->number < low || step->number > high) continue;
    if (step->start_ns < *start_ns) *start_ns = step->start_ns;
    if (step->start_ns + step->duration_ns > *end_ns) *end_ns = step->start_ns + step->duration_ns;
  }
  return *start_ns < *end_ns;
}

/* The op is of one of the steps, or of none and begins between their marks. */
static bool is_inside(const pl_trace *trace, const pl_trace_op *op, int64_t low, int64_t high, int64_t start_ns,
                      int64_t end_ns) {
  if (op->step == PL_NONE) return op->start_ns >= start_ns && op->start_ns < end_ns;
  return trace->steps[op->step].number >= low && trace->steps[op->step].number <= high;
}

static uint32_t list_ops(const pl_trace *trace, int64_t low, int64_t high, uint32_t *ops) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    int64_t start_ns, end_ns;
    if (!find_stay(trace, rank, low, high, &start_ns, &end_ns)) continue;
    for (uint32_t op = rank->first_op; op < rank->first_op + rank->n_ops; op++) {
      if (!is_inside(trace, &trace->ops[op], low, high, start_ns, end_ns)) continue;
      if (ops != NULL) ops[n] = op;
      n++;
    }
  }
  return n;
}

/* From the first start to the last end, on the common clock. */
static void find_span(const pl_trace *trace, const pl_trace_clocks *clocks, const uint32_t *ops, uint32_t n,
                      pl_trace_span *span) {
  span->start_ns = INT64_MAX;
  span->end_ns = INT64_MIN;
  for (uint32_t k = 0; k < n; k++) {
    const pl_trace_op *op = &trace->ops[ops[k]];
    uint32_t rank = pl_trace_rank_of(trace, ops[k]);
    int64_t start_ns = pl_trace_clocks_date(trace, clocks, rank, op->start_ns);
    int64_t end_ns = pl_trace_clocks_date(trace, clocks, rank, pl_trace_end_ns(op));
    if (start_ns < span->start_ns) span->start_ns = start_ns;
    if (end_ns > span->end_ns) span->end_ns = end_ns;
  }
}

pl_code pl_trace_window_take(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_clocks *clocks,
                             const pl_trace_step_list *steps, uint32_t step, pl_arena *arena, pl_trace_window *window,
                             pl_error *error) {
  window->ops = steps->ops + steps->first_op[step];
  window->n_ops = steps->first_op[step + 1] - steps->first_op[step];
  if (step == 0) return pl_trace_replay_take(trace, meetings, clocks, steps, 0, arena, &window->replay, error);
  const int64_t low = steps->steps[step - 1].number, high = steps->steps[step].number;
  uint32_t bounds[2] = {0, list_ops(trace, low, high, NULL)};
  uint32_t *ops = PL_TAKE(arena, uint32_t, (size_t)bounds[1] + 1);
  if (ops == NULL) return pl_fail_memory(error, "the graph of a step");
  list_ops(trace, low, high, ops);
  pl_trace_span span = {.number = high};
  find_span(trace, clocks, ops, bounds[1], &span);
  pl_trace_step_list both = *steps;
  both.steps = &span;
  both.n = 1;
  both.first_op = bounds;
  both.ops = ops;
  return pl_trace_replay_take(trace, meetings, clocks, &both, 0, arena, &window->replay, error);
}

static pl_ticks first_start(const pl_trace_window *window, const pl_ticks *finish) {
  pl_ticks start = PL_TICKS_NEVER;
  for (uint32_t k = 0; k < window->n_ops; k++) {
    pl_ticks begins = finish[window->replay.gate[window->ops[k]]];
    if (begins < start) start = begins;
  }
  return start;
}

pl_ticks pl_trace_window_time(const pl_trace_window *window, const pl_ticks *finish) {
  pl_ticks start = first_start(window, finish), end = start;
  for (uint32_t k = 0; k < window->n_ops; k++) {
    pl_ticks ends = finish[window->replay.body[window->ops[k]]];
    if (ends > end) end = ends;
  }
  return end - start;
}

void pl_trace_window_dates(const pl_trace_window *window, const pl_ticks *finish, const pl_trace_replay *alone,
                           pl_ticks *alone_finish) {
  pl_ticks start = first_start(window, finish);
  for (uint32_t k = 0; k < window->n_ops; k++) {
    uint32_t op = window->ops[k];
    alone_finish[alone->gate[op]] = finish[window->replay.gate[op]] - start;
    alone_finish[alone->body[op]] = finish[window->replay.body[op]] - start;
  }
}
