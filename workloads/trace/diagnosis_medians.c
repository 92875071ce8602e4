/* See workloads/trace/diagnosis_medians.h. */
#include "workloads/trace/diagnosis_medians.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"

/* An op, and what it has in common with its counterparts on other ranks. */
typedef struct placed {
  int64_t step, start_ns;
  uint32_t kind, name, launched; /* launched: name of what a call launches; PL_NONE */
  uint32_t n, place;             /* how many of these the rank has, and which of them it is */
  uint32_t rank, op;
} placed;

static int compare(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_kinds(const placed *a, const placed *b) {
  int order = compare(a->step, b->step);
  if (order == 0) order = compare(a->kind, b->kind);
  if (order == 0) order = compare(a->name, b->name);
  return order != 0 ? order : compare(a->launched, b->launched);
}

/* Places are counted in this order. */
static int by_rank_and_date(const void *a_, const void *b_) {
  const placed *a = a_, *b = b_;
  int order = compare_kinds(a, b);
  if (order == 0) order = compare(a->rank, b->rank);
  if (order == 0) order = compare(a->start_ns, b->start_ns);
  return order != 0 ? order : compare(a->op, b->op);
}

static int compare_places(const placed *a, const placed *b) {
  int order = compare_kinds(a, b);
  if (order == 0) order = compare(a->n, b->n);
  return order != 0 ? order : compare(a->place, b->place);
}

static int by_place(const void *a_, const void *b_) {
  const placed *a = a_, *b = b_;
  int order = compare_places(a, b);
  return order != 0 ? order : compare(a->rank, b->rank);
}

static uint32_t *name_launched(const pl_trace *trace, pl_arena *arena) {
  uint32_t *launched = PL_TAKE(arena, uint32_t, (size_t)trace->n_ops + 1);
  if (launched == NULL) return NULL;
  memset(launched, 0xff, trace->n_ops * sizeof *launched);
  for (uint32_t e = 0; e < trace->n_edges; e++)
    if (trace->edges[e].from_start) launched[trace->edges[e].before] = trace->ops[trace->edges[e].after].name;
  return launched;
}

static uint32_t list_ops(const pl_trace_replay *replay, const uint32_t *launched, placed *all) {
  const pl_trace *trace = replay->trace;
  uint32_t n = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    for (uint32_t op = trace->ranks[r].first_op; op < trace->ranks[r].first_op + trace->ranks[r].n_ops; op++) {
      const pl_trace_op *o = &trace->ops[op];
      if (replay->gate[op] == PL_NONE) continue;
      all[n++] = (placed){.step = o->step == PL_NONE ? INT64_MIN : trace->steps[o->step].number,
                          .start_ns = o->start_ns,
                          .kind = o->kind,
                          .name = o->name,
                          .launched = launched[op],
                          .rank = r,
                          .op = op};
    }
  return n;
}

static void count_places(placed *all, uint32_t n) {
  qsort(all, n, sizeof *all, by_rank_and_date);
  for (uint32_t k = 0, end; k < n; k = end) {
    for (end = k + 1; end < n && compare_kinds(&all[k], &all[end]) == 0 && all[k].rank == all[end].rank;)
      end++;
    for (uint32_t i = k; i < end; i++) {
      all[i].n = end - k;
      all[i].place = i - k;
    }
  }
  qsort(all, n, sizeof *all, by_place);
}

static pl_ticks median_of(const pl_trace_replay *replay, const placed *all, uint32_t n, const uint32_t *task,
                          pl_ticks *scratch) {
  for (uint32_t k = 0; k < n; k++)
    scratch[k] = replay->ticks[task[all[k].op]];
  qsort(scratch, n, sizeof *scratch, pl_by_int64);
  return scratch[(n - 1) / 2];
}

/* The op's own time: of messages only what the rank took to begin them. */
static pl_ticks own_time(const pl_trace_replay *replay, uint32_t op) {
  bool is_message = replay->trace->ops[op].message != PL_NONE;
  return replay->ticks[replay->gate[op]] + (is_message ? 0 : replay->ticks[replay->body[op]]);
}

static void set_medians(const pl_trace_replay *replay, const placed *all, uint32_t n, pl_ticks *scratch,
                        pl_trace_medians *medians) {
  pl_ticks gate = median_of(replay, all, n, replay->gate, scratch);
  pl_ticks body = median_of(replay, all, n, replay->body, scratch);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t op = all[k].op;
    medians->ticks[replay->gate[op]] = gate;
    if (replay->trace->ops[op].message == PL_NONE) medians->ticks[replay->body[op]] = body;
    medians->share[all[k].rank] += (double)own_time(replay, op);
  }
}

bool pl_trace_medians_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_medians *medians) {
  const pl_trace *trace = replay->trace;
  const uint32_t *launched = name_launched(trace, arena);
  placed *all = PL_TAKE(arena, placed, (size_t)replay->n_ops + 1);
  pl_ticks *scratch = PL_TAKE(arena, pl_ticks, (size_t)trace->n_ranks + 1);
  double *whole = PL_TAKE(arena, double, (size_t)trace->n_ranks + 1);
  medians->ticks = PL_TAKE(arena, pl_ticks, (size_t)replay->graph.n_tasks + 1);
  medians->share = PL_TAKE(arena, double, (size_t)trace->n_ranks + 1);
  if (launched == NULL || all == NULL || scratch == NULL || whole == NULL || medians->ticks == NULL ||
      medians->share == NULL)
    return false;
  memcpy(medians->ticks, replay->ticks, replay->graph.n_tasks * sizeof *medians->ticks);
  uint32_t n = list_ops(replay, launched, all);
  count_places(all, n);
  medians->are_alike = trace->n_ranks > 1;
  for (uint32_t k = 0, end; k < n; k = end) {
    for (end = k + 1; end < n && compare_places(&all[k], &all[end]) == 0;)
      end++;
    medians->are_alike &= end - k == trace->n_ranks;
    for (uint32_t i = k; i < end; i++)
      whole[all[i].rank] += (double)own_time(replay, all[i].op);
    if (end - k > 1) set_medians(replay, all + k, end - k, scratch, medians);
  }
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    medians->share[r] = whole[r] > 0 ? medians->share[r] / whole[r] : 0;
  return true;
}

void pl_trace_medians_apply(const pl_trace_medians *medians, const pl_trace_replay *replay, uint32_t rank,
                            pl_ticks *ticks) {
  for (uint32_t r = 0; r < replay->trace->n_ranks; r++) {
    const pl_trace_rank *at = &replay->trace->ranks[r];
    if (rank != PL_NONE && rank != r) continue;
    for (uint32_t op = at->first_op; op < at->first_op + at->n_ops; op++) {
      if (replay->gate[op] == PL_NONE) continue;
      ticks[replay->gate[op]] = medians->ticks[replay->gate[op]];
      ticks[replay->body[op]] = medians->ticks[replay->body[op]];
    }
  }
}
