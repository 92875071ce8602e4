/* See workloads/trace/clocks.h. First estimates come from medians and bounds, host after host from the first one; then
 * Gauss-Newton with weights made anew each time. Unknowns: more_ns and drift of every host but the first. */
#include "workloads/trace/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"
#include "workloads/trace/clock_equations.h"

/* ---- hosts ---- */

static pl_code find_hosts(const pl_trace *trace, pl_trace_clocks *out, pl_error *error) {
  *out = (pl_trace_clocks){.clocks = calloc(trace->n_ranks + 1, sizeof *out->clocks),
                           .clock_of_rank = calloc(trace->n_ranks + 1, sizeof *out->clock_of_rank),
                           .end_residual_ns = NAN,
                           .transfer_residual_ns = NAN};
  uint32_t *of_name = malloc(((size_t)trace->n_names + 1) * sizeof *of_name);
  bool good = out->clocks != NULL && out->clock_of_rank != NULL && of_name != NULL;
  if (good) memset(of_name, 0xff, trace->n_names * sizeof *of_name);
  for (uint32_t r = 0; good && r < trace->n_ranks; r++) {
    uint32_t host = trace->ranks[r].host;
    if (of_name[host] == PL_NONE) {
      of_name[host] = out->n;
      out->clocks[out->n++] = (pl_trace_clock){.host = host, .offset_sd_ns = NAN, .drift_sd_ns_per_s = NAN};
    }
    out->clock_of_rank[r] = of_name[host];
  }
  free(of_name);
  return good ? PL_OK : pl_fail_memory(error, "the clocks of a trace");
}

void pl_trace_clocks_release(pl_trace_clocks *clocks) {
  free(clocks->clocks);
  free(clocks->clock_of_rank);
  *clocks = (pl_trace_clocks){.n = 0};
}

/* Own date plus the first estimate. */
static int64_t rough_date(const pl_trace *trace, const pl_trace_clocks *clocks, uint32_t rank, int64_t date_ns) {
  return trace->ranks[rank].epoch_ns + date_ns + clocks->clocks[clocks->clock_of_rank[rank]].offset_ns;
}

int64_t pl_trace_clocks_date(const pl_trace *trace, const pl_trace_clocks *clocks, uint32_t rank, int64_t date_ns) {
  const pl_trace_clock *clock = &clocks->clocks[clocks->clock_of_rank[rank]];
  int64_t rough = rough_date(trace, clocks, rank, date_ns);
  double since_s = (double)(rough - clocks->middle_ns) * 1e-9;
  return rough - clocks->base_ns + llrint(clock->more_ns + clock->drift_ns_per_s * since_s);
}

static void set_base(const pl_trace *trace, pl_trace_clocks *clocks) {
  int64_t earliest = INT64_MAX;
  clocks->base_ns = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    int64_t date = trace->ranks[r].n_ops > 0 ? pl_trace_clocks_date(trace, clocks, r, 0) : INT64_MAX;
    if (date < earliest) earliest = date;
  }
  clocks->base_ns = earliest == INT64_MAX ? 0 : earliest;
}

static void set_middle(const pl_trace *trace, pl_trace_clocks *clocks) {
  int64_t from = INT64_MAX, to = INT64_MIN;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
      int64_t date = rough_date(trace, clocks, r, trace->ops[k].start_ns);
      if (date < from) from = date;
      if (date > to) to = date;
    }
  }
  clocks->middle_ns = from == INT64_MAX ? 0 : from + (to - from) / 2;
}

/* ---- first estimates ---- */

bool pl_trace_ends_together(const pl_trace *trace, const pl_trace_meetings *meetings, uint32_t m) {
  const pl_trace_meeting *meeting = &meetings->meetings[m];
  if (meeting->is_transfer) return false;
  uint8_t kind = trace->messages[trace->ops[meetings->ops[meeting->first]].message].kind;
  return kind != PL_TRACE_BROADCAST && kind != PL_TRACE_REDUCE;
}

typedef struct evidence {
  int64_t *ends; /* differences that bring ends together */
  uint32_t n_ends;
  int64_t least, most; /* bounds that causality sets */
} evidence;

/* What the meeting says of the offset of `host`, from a member on a host that is tied already. */
static void consult(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_clocks *clocks, uint32_t m,
                    uint32_t host, evidence *guess) {
  const pl_trace_meeting *meeting = &meetings->meetings[m];
  uint32_t own = PL_NONE, tied = PL_NONE;
  for (uint32_t k = 0; k < meeting->n; k++) {
    uint32_t op = meetings->ops[meeting->first + k];
    uint32_t clock = clocks->clock_of_rank[pl_trace_rank_of(trace, op)];
    if (clock == host) own = op;
    if (clocks->clocks[clock].is_tied) tied = op;
  }
  if (own == PL_NONE || tied == PL_NONE) return;
  const pl_trace_op *a = &trace->ops[own], *b = &trace->ops[tied];
  uint32_t rank_a = pl_trace_rank_of(trace, own), rank_b = pl_trace_rank_of(trace, tied);
  int64_t start_a = rough_date(trace, clocks, rank_a, a->start_ns);
  int64_t start_b = rough_date(trace, clocks, rank_b, b->start_ns);
  int64_t end_a = start_a + a->duration_ns, end_b = start_b + b->duration_ns;
  bool a_waits = !meeting->is_transfer || a->kind == PL_TRACE_RECEIVE;
  bool b_waits = !meeting->is_transfer || b->kind == PL_TRACE_RECEIVE;
  if (a_waits && start_b - end_a > guess->least) guess->least = start_b - end_a;
  if (b_waits && end_b - start_a < guess->most) guess->most = end_b - start_a;
  if (pl_trace_ends_together(trace, meetings, m)) guess->ends[guess->n_ends++] = end_b - end_a;
}

static bool tie(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks, uint32_t host,
                int64_t *scratch) {
  evidence guess = {scratch, 0, INT64_MIN, INT64_MAX};
  for (uint32_t m = 0; m < meetings->n; m++)
    consult(trace, meetings, clocks, m, host, &guess);
  int64_t offset;
  if (guess.n_ends > 0) {
    qsort(guess.ends, guess.n_ends, sizeof *guess.ends, pl_by_int64);
    offset = guess.ends[guess.n_ends / 2];
  } else if (guess.least != INT64_MIN && guess.most != INT64_MAX) {
    offset = guess.least / 2 + guess.most / 2;
  } else if (guess.least != INT64_MIN || guess.most != INT64_MAX) {
    offset = guess.least != INT64_MIN ? guess.least : guess.most;
  } else {
    return false;
  }
  clocks->clocks[host].offset_ns = offset;
  clocks->clocks[host].is_tied = true;
  return true;
}

static pl_code estimate(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks,
                        pl_error *error) {
  int64_t *scratch = malloc((meetings->n + 1) * sizeof *scratch);
  if (scratch == NULL) return pl_fail_memory(error, "the clocks of a trace");
  if (clocks->n > 0) clocks->clocks[0].is_tied = true;
  for (bool found = true; found;) {
    found = false;
    for (uint32_t h = 0; h < clocks->n; h++)
      if (!clocks->clocks[h].is_tied) found |= tie(trace, meetings, clocks, h, scratch);
  }
  free(scratch);
  return PL_OK;
}

/* Clocks whose drift cannot be; true if there are any. */
static bool undo_impossible(pl_trace_clocks *clocks) {
  static const double most_ns_per_s = 1e6,
                      near_ns = 1e9; /* ten times the worst of oscillators; clocks set by a network */
  bool any = false;
  for (uint32_t h = 0; h < clocks->n; h++) {
    pl_trace_clock *clock = &clocks->clocks[h];
    if (!(fabs(clock->drift_ns_per_s) > most_ns_per_s)) continue;
    any = clock->is_contradicted = true;
    clock->contradiction_ns_per_s = clock->drift_ns_per_s;
    clock->more_ns = clock->drift_ns_per_s = 0;
    clock->offset_sd_ns = clock->drift_sd_ns_per_s = NAN;
    if (fabs((double)clock->offset_ns) < near_ns) clock->offset_ns = 0;
  }
  return any;
}

pl_code pl_trace_clocks_make(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_clocks *clocks,
                             pl_error *error) {
  PL_TRY(find_hosts(trace, clocks, error));
  if (clocks->n > 1) PL_TRY(estimate(trace, meetings, clocks, error));
  set_middle(trace, clocks);
  if (clocks->n > 1) PL_TRY(pl_trace_clocks_refine(trace, meetings, clocks, error));
  if (undo_impossible(clocks)) set_middle(trace, clocks);
  set_base(trace, clocks);
  return PL_OK;
}

pl_code pl_trace_clocks_raw(const pl_trace *trace, pl_trace_clocks *clocks, pl_error *error) {
  PL_TRY(find_hosts(trace, clocks, error));
  set_middle(trace, clocks);
  set_base(trace, clocks);
  return PL_OK;
}
