/* See workloads/trace/op_times.h. */
#include "workloads/trace/op_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one step. */
typedef struct tally {
  double sum_s;
  uint32_t n;
} tally;

static int by_total(const void *a_, const void *b_) {
  const pl_trace_op_times *a = a_, *b = b_;
  if (a->total_s != b->total_s) return a->total_s > b->total_s ? -1 : 1;
  if (a->name != b->name) return a->name < b->name ? -1 : 1;
  return a->kind - b->kind;
}

/* The step's mean joins those before it (Welford 1962). */
static void join(pl_trace_op_times *times, const tally *step) {
  double mean = step->sum_s / step->n, off = mean - times->mean_s;
  times->n_steps++;
  times->mean_s += off / times->n_steps;
  times->deviation_s += off * (mean - times->mean_s); /* sum of squares until the end */
  times->per_step += (step->n - times->per_step) / times->n_steps;
  times->total_s += step->sum_s;
}

pl_code pl_trace_op_times_take(const pl_trace *trace, const pl_trace_step_list *steps, pl_arena *arena,
                               const pl_trace_op_times **out, uint32_t *n, pl_error *error) {
  size_t most = (size_t)trace->n_names * PL_TRACE_OP_KIND_COUNT;
  uint32_t *place = PL_TAKE(arena, uint32_t, most + 1); /* 1 + index, by name and kind */
  uint32_t *met = PL_TAKE(arena, uint32_t, (size_t)trace->n_ops + 1);
  pl_trace_op_times *times = PL_TAKE(arena, pl_trace_op_times, (size_t)trace->n_ops + 1);
  tally *tallies = PL_TAKE(arena, tally, (size_t)trace->n_ops + 1);
  *n = 0;
  if (place == NULL || met == NULL || times == NULL || tallies == NULL)
    return pl_fail_memory(error, "the ops of a trace");
  for (uint32_t s = 0; s < steps->n; s++) {
    uint32_t n_met = 0;
    for (uint32_t k = steps->first_op[s]; k < steps->first_op[s + 1]; k++) {
      const pl_trace_op *op = &trace->ops[steps->ops[k]];
      if (op->kind == PL_TRACE_WAIT) continue;
      uint32_t *at = &place[(size_t)op->name * PL_TRACE_OP_KIND_COUNT + op->kind];
      if (*at == 0) {
        times[*n] = (pl_trace_op_times){.name = op->name, .kind = op->kind};
        *at = ++*n;
      }
      tally *own = &tallies[*at - 1];
      if (own->n == 0) met[n_met++] = *at - 1;
      own->n++;
      own->sum_s += (double)op->duration_ns * 1e-9;
    }
    for (uint32_t m = 0; m < n_met; m++) {
      join(&times[met[m]], &tallies[met[m]]);
      tallies[met[m]] = (tally){0, 0};
    }
  }
  for (uint32_t k = 0; k < *n; k++)
    times[k].deviation_s = times[k].n_steps > 1 ? sqrt(times[k].deviation_s / (times[k].n_steps - 1)) : 0;
  if (*n > 1) qsort(times, *n, sizeof *times, by_total);
  *out = times;
  return PL_OK;
}
