/* See workloads/trace/meetings.h. */
#include "workloads/trace/meetings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/base/units.h"

/* Where ops meet: `a` and `b` are the group and its kind of message, or the two ends. */
typedef struct meeting_key {
  bool is_transfer;
  int64_t a, b, step;
  uint32_t tag;
  bool receives;
} meeting_key;

typedef struct meeting_entry {
  meeting_key key;
  int64_t start_ns, position; /* within (key, rank) */
  uint32_t rank, op;
} meeting_entry;

static int compare(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_keys(const meeting_key *a, const meeting_key *b) {
  if (a->is_transfer != b->is_transfer) return a->is_transfer ? 1 : -1;
  if (a->a != b->a) return compare(a->a, b->a);
  if (a->b != b->b) return compare(a->b, b->b);
  if (a->step != b->step) return compare(a->step, b->step);
  return compare(a->tag, b->tag);
}

/* By key, rank, side and date: positions are counted in this order. */
static int by_rank_and_date(const void *a_, const void *b_) {
  const meeting_entry *a = a_, *b = b_;
  int order = compare_keys(&a->key, &b->key);
  if (order == 0) order = compare(a->rank, b->rank);
  if (order == 0) order = compare(a->key.receives, b->key.receives);
  if (order == 0) order = compare(a->start_ns, b->start_ns);
  return order != 0 ? order : compare(a->op, b->op);
}

/* By key and position: those that meet stand together, a send in front of its receive. */
static int by_position(const void *a_, const void *b_) {
  const meeting_entry *a = a_, *b = b_;
  int order = compare_keys(&a->key, &b->key);
  if (order == 0) order = compare(a->position, b->position);
  if (order == 0) order = compare(a->key.receives, b->key.receives);
  return order != 0 ? order : compare(a->rank, b->rank);
}

static meeting_entry make_entry(const pl_trace *trace, uint32_t rank, uint32_t k) {
  const pl_trace_op *op = &trace->ops[k];
  const pl_trace_message *message = &trace->messages[op->message];
  int64_t number = trace->ranks[rank].number;
  int64_t step = op->step == PL_NONE ? INT64_MIN : trace->steps[op->step].number;
  meeting_key key = {.is_transfer = message->kind == PL_TRACE_POINT_TO_POINT, .step = step, .tag = PL_NONE};
  if (key.is_transfer) {
    key.receives = op->kind == PL_TRACE_RECEIVE;
    key.a = key.receives ? message->peer : number;
    key.b = key.receives ? number : message->peer;
    key.tag = message->tag;
  } else {
    key.a = message->group;
  }
  return (meeting_entry){key, op->start_ns, 0, rank, k};
}

static void place_entries(meeting_entry *entries, uint32_t n) {
  qsort(entries, n, sizeof *entries, by_rank_and_date);
  for (uint32_t k = 0; k < n; k++) {
    bool goes_on = k > 0 && compare_keys(&entries[k - 1].key, &entries[k].key) == 0 &&
                   entries[k - 1].rank == entries[k].rank && entries[k - 1].key.receives == entries[k].key.receives;
    entries[k].position = goes_on ? entries[k - 1].position + 1 : 0;
  }
  qsort(entries, n, sizeof *entries, by_position);
}

/* ---- judging a meeting ---- */

static void describe(const pl_trace *trace, const meeting_entry *entry, char *text, size_t size) {
  const pl_trace_message *message = &trace->messages[trace->ops[entry->op].message];
  char bytes[PL_UNIT_TEXT_BYTES] = "unknown size";
  if (message->size_bytes >= 0) pl_format_bytes((double)message->size_bytes, bytes);
  snprintf(text, size, "%s of %s", pl_trace_message_kind_names[message->kind], bytes);
}

static pl_code part(const pl_trace *trace, const meeting_entry *a, const meeting_entry *b, pl_error *error) {
  char first[96], second[96], group[64], step[48] = "";
  describe(trace, a, first, sizeof first);
  describe(trace, b, second, sizeof second);
  pl_printable(trace->names[trace->groups[a->key.a].name], group, sizeof group);
  if (a->key.step != INT64_MIN) snprintf(step, sizeof step, " of step %lld", (long long)a->key.step);
  return pl_fail(
      error, PL_BAD_INPUT,
      "the ranks part at collective %lld of group '%s'%s: rank %lld does %s, rank %lld %s; were they recorded "
      "over the same steps of one job?",
      (long long)a->position, group, step, (long long)trace->ranks[a->rank].number, first,
      (long long)trace->ranks[b->rank].number, second);
}

/* Kinds that the trace knows must agree. Sizes too, but for those that differ by nature: of all-to-alls, gathers and
 * scatters of uneven shares. */
static pl_code check_alike(const pl_trace *trace, const meeting_entry *entries, uint32_t n, pl_error *error) {
  const pl_trace_message *first = &trace->messages[trace->ops[entries[0].op].message];
  for (uint32_t k = 1; k < n; k++) {
    const pl_trace_message *other = &trace->messages[trace->ops[entries[k].op].message];
    bool kinds_known = first->kind != PL_TRACE_OTHER_COLLECTIVE && other->kind != PL_TRACE_OTHER_COLLECTIVE;
    bool one_size = first->kind == PL_TRACE_ALL_REDUCE || first->kind == PL_TRACE_BROADCAST;
    bool sizes_known = first->size_bytes >= 0 && other->size_bytes >= 0;
    if ((kinds_known && first->kind != other->kind) ||
        (one_size && sizes_known && first->size_bytes != other->size_bytes))
      return part(trace, &entries[0], &entries[k], error);
  }
  return PL_OK;
}

static void count_members(const pl_trace *trace, uint32_t group, pl_trace_meeting *meeting) {
  const pl_trace_group *g = &trace->groups[group];
  uint32_t n_recorded = g->n_members == 0 ? trace->n_ranks : 0;
  for (uint32_t m = 0; m < g->n_members; m++)
    n_recorded += pl_trace_find_rank(trace, trace->members[g->first_member + m]) != PL_NONE;
  if (g->n_members > 0) meeting->n_absent = g->n_members - n_recorded;
  meeting->n_unmatched = n_recorded > meeting->n ? n_recorded - meeting->n : 0;
}

static pl_code add_meeting(const pl_trace *trace, const meeting_entry *entries, uint32_t n, pl_trace_meetings *out,
                           uint32_t *n_ops, pl_error *error) {
  pl_trace_meeting *meeting = &out->meetings[out->n];
  *meeting = (pl_trace_meeting){.first = *n_ops, .n = n, .is_transfer = entries[0].key.is_transfer};
  for (uint32_t k = 0; k < n; k++) {
    out->ops[(*n_ops)++] = entries[k].op;
    out->of_op[entries[k].op] = out->n;
  }
  out->n++;
  if (!meeting->is_transfer) {
    PL_TRY(check_alike(trace, entries, n, error));
    count_members(trace, (uint32_t)entries[0].key.a, meeting);
    out->n_collectives++;
    out->n_unmatched_collectives += meeting->n_unmatched > 0;
    out->n_absent += meeting->n_absent > 0;
    return PL_OK;
  }
  out->n_transfers++;
  if (n < 2) {
    int64_t other = entries[0].key.receives ? entries[0].key.a : entries[0].key.b;
    bool absent = pl_trace_find_rank(trace, other) == PL_NONE;
    meeting->n_absent = absent;
    meeting->n_unmatched = !absent;
    out->n_absent += absent;
    out->n_unmatched_transfers += !absent;
  }
  return PL_OK;
}

static pl_code make(const pl_trace *trace, meeting_entry *entries, pl_trace_meetings *out, pl_error *error) {
  uint32_t n = 0, n_ops = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++)
      if (trace->ops[k].message != PL_NONE) entries[n++] = make_entry(trace, r, k);
  }
  place_entries(entries, n);
  for (uint32_t k = 0, end; k < n; k = end) {
    for (end = k + 1; end < n && compare_keys(&entries[k].key, &entries[end].key) == 0 &&
                      entries[k].position == entries[end].position;)
      end++;
    PL_TRY(add_meeting(trace, entries + k, end - k, out, &n_ops, error));
  }
  return PL_OK;
}

pl_code pl_trace_meetings_make(const pl_trace *trace, pl_trace_meetings *out, pl_error *error) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < trace->n_ops; k++)
    n += trace->ops[k].message != PL_NONE;
  *out = (pl_trace_meetings){.meetings = malloc((n + 1) * sizeof *out->meetings),
                             .ops = malloc((n + 1) * sizeof *out->ops),
                             .of_op = malloc(((size_t)trace->n_ops + 1) * sizeof *out->of_op)};
  meeting_entry *entries = malloc((n + 1) * sizeof *entries);
  pl_code code = PL_OK;
  if (out->meetings == NULL || out->ops == NULL || out->of_op == NULL || entries == NULL) {
    code = pl_fail_memory(error, "the messages of a trace");
  } else {
    memset(out->of_op, 0xff, trace->n_ops * sizeof *out->of_op);
    code = make(trace, entries, out, error);
  }
  free(entries);
  return code;
}

void pl_trace_meetings_release(pl_trace_meetings *meetings) {
  free(meetings->meetings);
  free(meetings->ops);
  free(meetings->of_op);
  *meetings = (pl_trace_meetings){.n = 0};
}
