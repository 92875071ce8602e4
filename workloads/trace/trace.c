/* See workloads/trace/trace.h. */
#include "workloads/trace/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/growing.h"
#include "core/base/order.h"
#include "core/base/permutation.h"

const char *const pl_trace_op_kind_names[] = {"compute", "copy", "collective", "send", "receive", "call", "wait", NULL};
const char *const pl_trace_stream_kind_names[] = {"host", "device", "network", NULL};
const char *const pl_trace_message_kind_names[] = {
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all",
    "reduce",     "barrier",        "collective", "send",      NULL};

int pl_trace_step_by_start(const void *left, const void *right) {
  const pl_trace_step *a = left, *b = right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

void pl_trace_init(pl_trace *trace) {
  *trace = (pl_trace){.n_names = 0};
  pl_arena_init(&trace->texts, 0);
}

void pl_trace_release(pl_trace *trace) {
  free(trace->names);
  free(trace->ops);
  free(trace->edges);
  free(trace->streams);
  free(trace->messages);
  free(trace->groups);
  free(trace->members);
  free(trace->steps);
  free(trace->ranks);
  free(trace->notes);
  free(trace->blocks);
  pl_arena_release(&trace->texts);
  pl_trace_init(trace);
}

enum { NAMES, OPS, EDGES, STREAMS, MESSAGES, GROUPS, MEMBERS, STEPS, RANKS, NOTES, BLOCKS };

#define ADD(trace, which, array, value)                                                                                \
  (PL_GROW((trace)->array, (trace)->n_##array, (trace)->room[which])                                                   \
       ? ((trace)->array[(trace)->n_##array] = (value), (trace)->n_##array++)                                          \
       : PL_NONE)

typedef struct name_entry {
  uint32_t index;
  size_t size;
  char text[];
} name_entry;

uint32_t pl_trace_name(pl_trace *trace, const char *text, size_t size) {
  uint64_t hash = pl_hash_bytes(text, size, 0);
  uint32_t probe = 0;
  for (const name_entry *entry; (entry = pl_hash_index_find(&trace->index, hash, &probe)) != NULL;)
    if (entry->size == size && memcmp(entry->text, text, size) == 0) return entry->index;
  if (trace->n_names >= PL_TRACE_MOST_NAMES) return PL_NONE;
  name_entry *entry = pl_arena_take(&trace->texts, sizeof *entry + size + 1, _Alignof(name_entry));
  if (entry == NULL) return PL_NONE;
  *entry = (name_entry){.index = trace->n_names, .size = size};
  memcpy(entry->text, text, size);
  entry->text[size] = '\0';
  if (!pl_hash_index_put(&trace->index, hash, entry, &trace->texts)) return PL_NONE;
  return ADD(trace, NAMES, names, entry->text);
}

uint32_t pl_trace_add_op(pl_trace *trace, pl_trace_op op) {
  return ADD(trace, OPS, ops, op);
}

uint32_t pl_trace_add_edge(pl_trace *trace, uint32_t before, uint32_t after, bool from_start) {
  return ADD(trace, EDGES, edges, ((pl_trace_edge){before, after & 0x7fffffff, from_start}));
}

uint32_t pl_trace_add_stream(pl_trace *trace, uint32_t rank, uint32_t name, pl_trace_stream_kind kind) {
  return ADD(trace, STREAMS, streams, ((pl_trace_stream){rank, name, (uint8_t)kind}));
}

uint32_t pl_trace_add_message(pl_trace *trace, pl_trace_message message) {
  return ADD(trace, MESSAGES, messages, message);
}

uint32_t pl_trace_add_group(pl_trace *trace, uint32_t name, const int64_t *members, uint32_t n_members) {
  uint32_t first = trace->n_members;
  if (!pl_grow(&trace->members, first, n_members, &trace->room[MEMBERS], sizeof *members)) return PL_NONE;
  int64_t *own = n_members > 0 ? trace->members + first : NULL;
  if (n_members > 0) {
    memcpy(own, members, n_members * sizeof *members);
    qsort(own, n_members, sizeof *own, pl_by_int64);
  }
  for (uint32_t g = 0; g < trace->n_groups; g++) {
    const pl_trace_group *group = &trace->groups[g];
    if (group->name == name && group->n_members == n_members &&
        (n_members == 0 || memcmp(trace->members + group->first_member, own, n_members * sizeof *own) == 0))
      return g;
  }
  uint32_t added = ADD(trace, GROUPS, groups, ((pl_trace_group){name, first, n_members}));
  if (added != PL_NONE) trace->n_members += n_members;
  return added;
}

uint32_t pl_trace_add_step(pl_trace *trace, pl_trace_step step) {
  return ADD(trace, STEPS, steps, step);
}

uint32_t pl_trace_add_rank(pl_trace *trace, pl_trace_rank rank) {
  return ADD(trace, RANKS, ranks, rank);
}

uint32_t pl_trace_add_block(pl_trace *trace, pl_trace_block block) {
  return ADD(trace, BLOCKS, blocks, block);
}

uint32_t pl_trace_add_note(pl_trace *trace, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  uint32_t name = pl_trace_name(trace, text, strlen(text));
  return name == PL_NONE ? PL_NONE : ADD(trace, NOTES, notes, name);
}

uint32_t pl_trace_find_rank(const pl_trace *trace, int64_t number) {
  uint32_t low = 0, high = trace->n_ranks;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (trace->ranks[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < trace->n_ranks && trace->ranks[low].number == number ? low : PL_NONE;
}

/* ---- the end of a rank ---- */

static int compare_ops(const pl_trace_op *a, const pl_trace_op *b) {
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->duration_ns > b->duration_ns) - (a->duration_ns < b->duration_ns);
}

static int by_stream_and_start(const void *a_, const void *b_, void *ops_) {
  const pl_trace_op *ops = ops_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  int order = compare_ops(&ops[a], &ops[b]);
  return order != 0 ? order : (a > b) - (a < b);
}

/* Ops in their order, edges with them. */
static pl_code sort_ops(pl_trace *trace, uint32_t first, uint32_t n, uint32_t first_edge, pl_error *error) {
  uint32_t *order = malloc(((size_t)n + 1) * sizeof *order), *place = malloc(((size_t)n + 1) * sizeof *place);
  bool good = order != NULL && place != NULL;
  for (uint32_t k = 0; good && k < n; k++)
    order[k] = k;
  if (good) qsort_r(order, n, sizeof *order, by_stream_and_start, trace->ops + first);
  for (uint32_t k = 0; good && k < n; k++)
    place[order[k]] = first + k;
  if (good) pl_permute(trace->ops + first, n, sizeof *trace->ops, order);
  for (uint32_t e = first_edge; good && e < trace->n_edges; e++) {
    pl_trace_edge *edge = &trace->edges[e];
    *edge = (pl_trace_edge){place[edge->before - first], place[edge->after - first] & 0x7fffffff, edge->from_start};
  }
  free(order);
  free(place);
  return good ? PL_OK : pl_fail_memory(error, "the ops of a trace");
}

/* Steps stand by start and do not overlap, but for what a recording may hold: then the last that began counts. */
static uint32_t step_at(const pl_trace *trace, const pl_trace_rank *rank, int64_t date_ns) {
  uint32_t low = 0, high = rank->n_steps;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (trace->steps[rank->first_step + middle].start_ns <= date_ns)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return PL_NONE;
  const pl_trace_step *step = &trace->steps[rank->first_step + low - 1];
  return date_ns < step->start_ns + step->duration_ns ? rank->first_step + low - 1 : PL_NONE;
}

static bool is_sorted(const pl_trace *trace, uint32_t first, uint32_t n) {
  for (uint32_t k = first + 1; k < first + n; k++)
    if (compare_ops(&trace->ops[k - 1], &trace->ops[k]) > 0) return false;
  return true;
}

pl_code pl_trace_end_rank(pl_trace *trace, uint32_t r, uint32_t first_edge, pl_error *error) {
  pl_trace_rank *rank = &trace->ranks[r];
  uint32_t first = rank->first_op, n = trace->n_ops - first;
  rank->n_ops = n;
  rank->n_steps = trace->n_steps - rank->first_step;
  int64_t epoch = INT64_MAX, end = INT64_MIN;
  for (uint32_t k = first; k < trace->n_ops; k++) {
    if (trace->ops[k].start_ns < epoch) epoch = trace->ops[k].start_ns;
    if (pl_trace_end_ns(&trace->ops[k]) > end) end = pl_trace_end_ns(&trace->ops[k]);
  }
  rank->epoch_ns = n > 0 ? epoch : 0;
  if (n > 0 && (epoch < -(INT64_MAX / 2) || end - epoch > PL_TRACE_SPAN_NS))
    return pl_fail(error, PL_BAD_INPUT, "%s: its dates lie more than 30 days apart: is it one recording?",
                   trace->names[rank->file]);
  for (uint32_t s = rank->first_step; s < trace->n_steps; s++)
    trace->steps[s].start_ns -= rank->epoch_ns;
  for (uint32_t k = first; k < trace->n_ops; k++) {
    pl_trace_op *op = &trace->ops[k];
    op->start_ns -= rank->epoch_ns;
    if (op->step == PL_NONE) op->step = step_at(trace, rank, op->start_ns);
  }
  for (uint32_t b = trace->n_blocks; b-- > 0 && trace->streams[trace->blocks[b].taken_stream].rank == r;) {
    trace->blocks[b].taken_ns -= rank->epoch_ns;
    if (trace->blocks[b].freed_stream != PL_NONE) trace->blocks[b].freed_ns -= rank->epoch_ns;
  }
  return is_sorted(trace, first, n) ? PL_OK : sort_ops(trace, first, n, first_edge, error);
}

/* ---- validity ---- */

static bool ops_are_valid(const pl_trace *trace, const pl_trace_rank *rank, uint32_t r) {
  for (uint32_t k = rank->first_op; k < rank->first_op + rank->n_ops; k++) {
    const pl_trace_op *op = &trace->ops[k];
    if (op->name >= trace->n_names || op->stream >= trace->n_streams || trace->streams[op->stream].rank != r ||
        op->kind >= PL_TRACE_OP_KIND_COUNT || op->duration_ns < 0 || op->start_ns < 0 || op->start_ns > INT64_MAX / 4 ||
        op->duration_ns > INT64_MAX / 4)
      return false;
    if (op->message != PL_NONE && op->message >= trace->n_messages) return false;
    if (op->step != PL_NONE && (op->step >= trace->n_steps || trace->steps[op->step].rank != r)) return false;
    bool meets = op->kind == PL_TRACE_COLLECTIVE || op->kind == PL_TRACE_SEND || op->kind == PL_TRACE_RECEIVE;
    if (meets != (op->message != PL_NONE)) return false;
    if (meets && (trace->messages[op->message].kind == PL_TRACE_POINT_TO_POINT) == (op->kind == PL_TRACE_COLLECTIVE))
      return false;
    if (k > rank->first_op &&
        (op[-1].stream > op->stream || (op[-1].stream == op->stream && op[-1].start_ns > op->start_ns)))
      return false;
  }
  return true;
}

static bool parts_are_valid(const pl_trace *trace) {
  for (uint32_t s = 0; s < trace->n_streams; s++)
    if (trace->streams[s].rank >= trace->n_ranks || trace->streams[s].name >= trace->n_names ||
        trace->streams[s].kind >= PL_TRACE_STREAM_KIND_COUNT)
      return false;
  for (uint32_t g = 0; g < trace->n_groups; g++) {
    const pl_trace_group *group = &trace->groups[g];
    if (group->name >= trace->n_names || group->first_member > trace->n_members ||
        group->n_members > trace->n_members - group->first_member)
      return false;
    for (uint32_t m = 1; m < group->n_members; m++)
      if (trace->members[group->first_member + m] <= trace->members[group->first_member + m - 1]) return false;
  }
  for (uint32_t m = 0; m < trace->n_messages; m++) {
    const pl_trace_message *message = &trace->messages[m];
    bool alone = message->kind == PL_TRACE_POINT_TO_POINT;
    if (message->kind >= PL_TRACE_MESSAGE_KIND_COUNT || (!alone && message->group >= trace->n_groups) ||
        (message->tag != PL_NONE && message->tag >= trace->n_names))
      return false;
  }
  for (uint32_t s = 0; s < trace->n_steps; s++)
    if (trace->steps[s].rank >= trace->n_ranks || trace->steps[s].duration_ns < 0 ||
        trace->steps[s].start_ns > INT64_MAX / 4 || trace->steps[s].start_ns < -INT64_MAX / 4 ||
        trace->steps[s].duration_ns > INT64_MAX / 4)
      return false;
  for (uint32_t k = 0; k < trace->n_notes; k++)
    if (trace->notes[k] >= trace->n_names) return false;
  for (uint32_t b = 0; b < trace->n_blocks; b++) {
    const pl_trace_block *block = &trace->blocks[b];
    bool freed = block->freed_stream != PL_NONE;
    if (block->taken_stream >= trace->n_streams || block->size_bytes <= 0 || block->freed_ns < block->taken_ns ||
        (freed && (block->freed_stream >= trace->n_streams ||
                   trace->streams[block->freed_stream].rank != trace->streams[block->taken_stream].rank)))
      return false;
  }
  return true;
}

bool pl_trace_is_valid(const pl_trace *trace) {
  if (!parts_are_valid(trace)) return false;
  uint32_t ops = 0, steps = 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++) {
    const pl_trace_rank *rank = &trace->ranks[r];
    if (rank->epoch_ns > (int64_t)4.5e18 || rank->epoch_ns < -(int64_t)4.5e18) return false;
    if (rank->host >= trace->n_names || rank->file >= trace->n_names || rank->number < 0 ||
        (r > 0 && rank[-1].number >= rank->number))
      return false;
    if (rank->first_op > trace->n_ops || rank->n_ops > trace->n_ops - rank->first_op ||
        rank->first_step > trace->n_steps || rank->n_steps > trace->n_steps - rank->first_step)
      return false;
    if (!ops_are_valid(trace, rank, r)) return false;
    for (uint32_t s = 0; s < rank->n_steps; s++)
      if (trace->steps[rank->first_step + s].rank != r) return false;
    ops += rank->n_ops;
    steps += rank->n_steps;
  }
  if (ops != trace->n_ops || steps != trace->n_steps) return false;
  for (uint32_t e = 0; e < trace->n_edges; e++) {
    const pl_trace_edge *edge = &trace->edges[e];
    if (edge->before >= trace->n_ops || edge->after >= trace->n_ops || edge->before == edge->after ||
        pl_trace_rank_of(trace, edge->before) != pl_trace_rank_of(trace, edge->after))
      return false;
  }
  return true;
}
