/* See workloads/trace/meeting_gaps.h. */
#include "workloads/trace/meeting_gaps.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_step(const pl_trace *trace, uint32_t rank, uint32_t step) {
  const pl_trace_rank *r = &trace->ranks[rank];
  if (step == PL_NONE) return true;
  for (uint32_t s = r->first_step; s < r->first_step + r->n_steps; s++)
    if (trace->steps[s].number == trace->steps[step].number) return true;
  return false;
}

static void add(const pl_trace *trace, uint32_t rank, uint32_t op, bool is_transfer, pl_trace_gap *gaps) {
  if (rank == PL_NONE || !has_step(trace, rank, trace->ops[op].step)) return;
  pl_trace_gap *gap = &gaps[rank];
  if (gap->first == PL_NONE) gap->first = op;
  if (is_transfer)
    gap->n_transfers++;
  else
    gap->n_collectives++;
}

static bool takes_part(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_meeting *meeting,
                       uint32_t rank) {
  for (uint32_t k = 0; k < meeting->n; k++)
    if (pl_trace_rank_of(trace, meetings->ops[meeting->first + k]) == rank) return true;
  return false;
}

static void add_collective(const pl_trace *trace, const pl_trace_meetings *meetings, const pl_trace_meeting *meeting,
                           pl_trace_gap *gaps) {
  uint32_t op = meetings->ops[meeting->first];
  const pl_trace_group *group = &trace->groups[trace->messages[trace->ops[op].message].group];
  uint32_t n = group->n_members > 0 ? group->n_members : trace->n_ranks;
  for (uint32_t m = 0; m < n; m++) {
    uint32_t rank = group->n_members > 0 ? pl_trace_find_rank(trace, trace->members[group->first_member + m]) : m;
    if (rank != PL_NONE && !takes_part(trace, meetings, meeting, rank)) add(trace, rank, op, false, gaps);
  }
}

void pl_trace_gaps_find(const pl_trace *trace, const pl_trace_meetings *meetings, pl_trace_gap *gaps) {
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    gaps[r] = (pl_trace_gap){.first = PL_NONE};
  for (uint32_t k = 0; k < meetings->n; k++) {
    const pl_trace_meeting *meeting = &meetings->meetings[k];
    uint32_t op = meetings->ops[meeting->first];
    if (meeting->n_unmatched == 0) continue;
    if (meeting->is_transfer)
      add(trace, pl_trace_find_rank(trace, trace->messages[trace->ops[op].message].peer), op, true, gaps);
    else
      add_collective(trace, meetings, meeting, gaps);
  }
}

static void note(pl_trace *trace, uint32_t rank, const pl_trace_gap *gap) {
  const pl_trace_op *op = &trace->ops[gap->first];
  char counts[64], step[40] = "";
  const char *both = gap->n_collectives > 0 && gap->n_transfers > 0 ? " and " : "";
  int n = gap->n_collectives > 0 ? snprintf(counts, sizeof counts, "%u collectives", gap->n_collectives) : 0;
  if (gap->n_transfers > 0)
    snprintf(counts + n, sizeof counts - (size_t)n, "%s%u ends of transfers", both, gap->n_transfers);
  if (op->step != PL_NONE) snprintf(step, sizeof step, " of step %lld", (long long)trace->steps[op->step].number);
  pl_trace_add_note(trace,
                    "rank %lld lacks %s that other ranks did with it, the first being %s '%.60s' of rank %lld%s: were "
                    "they recorded over the same steps of one job?",
                    (long long)trace->ranks[rank].number, counts,
                    pl_trace_message_kind_names[trace->messages[op->message].kind], pl_trace_op_name(trace, gap->first),
                    (long long)trace->ranks[pl_trace_rank_of(trace, gap->first)].number, step);
}

bool pl_trace_gaps_note(pl_trace *trace, const pl_trace_meetings *meetings) {
  pl_trace_gap *gaps = malloc(((size_t)trace->n_ranks + 1) * sizeof *gaps);
  if (gaps == NULL) return false;
  pl_trace_gaps_find(trace, meetings, gaps);
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    if (gaps[r].first != PL_NONE) note(trace, r, &gaps[r]);
  free(gaps);
  return true;
}
