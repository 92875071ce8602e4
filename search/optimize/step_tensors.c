/* Which tasks carry one gradient (see search/optimize/step_model.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash_index.h"
#include "search/optimize/step_model.h"
#include "workloads/trace/what_if.h"

typedef struct finding {
  pl_step_model *model;
  const pl_trace_replay *replay;
  const pl_trace *trace;
  const pl_trace_step_list *steps;
  pl_arena *arena;
  uint32_t *root;         /* per meeting: of the messages that belong together */
  uint32_t *sums;         /* per op: a meeting whose data it adds up; PL_NONE */
  uint32_t *made;         /* per op: a message that waited for it; PL_NONE */
  uint32_t *flight;       /* per op that receives: the task */
  bool *sends, *receives; /* per rank, of the messages at hand */
} finding;

static bool is_in(const finding *own, uint32_t op) {
  return own->replay->gate[op] != PL_NONE;
}

/* ---- messages that belong together ---- */

/* The transfer that the op is an end of, both of whose ends are of the step. */
static uint32_t transfer_of(const finding *own, uint32_t op) {
  const pl_trace_meetings *meetings = own->replay->meetings;
  uint32_t m = meetings->of_op[op];
  if (m == PL_NONE || !meetings->meetings[m].is_transfer || meetings->meetings[m].n != 2) return PL_NONE;
  const uint32_t *ends = meetings->ops + meetings->meetings[m].first;
  return is_in(own, ends[0]) && is_in(own, ends[1]) ? m : PL_NONE;
}

static uint32_t root_of(finding *own, uint32_t m) {
  while (own->root[m] != m)
    m = own->root[m] = own->root[own->root[m]];
  return m;
}

static void join(finding *own, uint32_t a, uint32_t b) {
  a = root_of(own, a);
  b = root_of(own, b);
  if (a < b)
    own->root[b] = a;
  else
    own->root[a] = b;
}

/* An op of computing that waits for messages that came and for nothing else. */
static uint32_t sums_up(const finding *own, uint32_t op) {
  uint32_t found = PL_NONE;
  if (own->trace->ops[op].kind != PL_TRACE_COMPUTE) return PL_NONE;
  for (uint32_t k = own->steps->first_edge[op]; k < own->steps->first_edge[op + 1]; k++) {
    const pl_trace_edge *edge = &own->trace->edges[own->steps->edges[k]];
    uint32_t m = is_in(own, edge->before) ? transfer_of(own, edge->before) : PL_NONE;
    if (m == PL_NONE || edge->from_start || own->trace->ops[edge->before].kind != PL_TRACE_RECEIVE) return PL_NONE;
    found = m;
  }
  return found;
}

/* A message that waited for another, or for the sum of others, carries on what they brought; what was sent of one op's
 * result is one gradient, in however many chunks. */
static void join_messages(finding *own) {
  const pl_trace *trace = own->trace;
  for (uint32_t op = 0; op < trace->n_ops; op++) {
    if (!is_in(own, op)) continue;
    uint32_t m = transfer_of(own, op);
    for (uint32_t k = own->steps->first_edge[op]; m != PL_NONE && k < own->steps->first_edge[op + 1]; k++) {
      uint32_t before = trace->edges[own->steps->edges[k]].before;
      if (trace->edges[own->steps->edges[k]].from_start || !is_in(own, before)) continue;
      if (trace->ops[before].step != trace->ops[op].step) continue; /* of a rank: gradients are of one step */
      uint32_t other = transfer_of(own, before);
      if (other != PL_NONE) join(own, m, other);
      if (trace->ops[op].kind == PL_TRACE_SEND && trace->ops[before].message == PL_NONE) {
        if (own->made[before] != PL_NONE) join(own, m, own->made[before]);
        own->made[before] = m;
      }
      other = trace->ops[op].kind == PL_TRACE_SEND ? sums_up(own, before) : PL_NONE;
      if (other == PL_NONE) continue;
      own->sums[before] = other;
      join(own, m, other);
      for (uint32_t e = own->steps->first_edge[before]; e < own->steps->first_edge[before + 1]; e++)
        join(own, m, transfer_of(own, trace->edges[own->steps->edges[e]].before));
    }
  }
}

/* ---- slots ---- */

static void add_slot(finding *own, uint32_t task, pl_step_slot_kind kind) {
  pl_step_model *model = own->model;
  pl_step_tensor *tensor = &model->tensors[model->n_tensors];
  model->tensor[task] = model->n_tensors;
  model->slot[task] = tensor->n_slots++;
  model->slots[model->n_slots++] = (pl_step_slot){task, (uint8_t)kind};
  const pl_trace_op *op = &own->trace->ops[pl_trace_task_op(own->replay, task)];
  tensor->shape = pl_hash_word(pl_hash_word(tensor->shape, op->stream), own->replay->role[task]);
}

static void begin_tensor(finding *own, uint32_t message_kind, uint32_t n_members) {
  own->model->tensors[own->model->n_tensors] = (pl_step_tensor){
      .first_slot = own->model->n_slots,
      .kind = (uint8_t)message_kind,
      .n_members = n_members,
      .size_bytes = -1,
      .shape = pl_hash_word(message_kind, n_members),
      .date = PL_TICKS_NEVER,
  };
}

static bool is_gradient_kind(uint8_t kind) {
  return kind == PL_TRACE_ALL_REDUCE || kind == PL_TRACE_REDUCE_SCATTER || kind == PL_TRACE_REDUCE;
}

static void add_collective(finding *own, uint32_t m) {
  const pl_trace_replay *replay = own->replay;
  const pl_trace_meeting *meeting = &replay->meetings->meetings[m];
  const uint32_t *ops = replay->meetings->ops + meeting->first;
  if (meeting->is_transfer || replay->join[m] == PL_NONE || meeting->n < 2) return;
  const pl_trace_message *message = &own->trace->messages[own->trace->ops[ops[0]].message];
  if (!is_gradient_kind(message->kind)) return;
  begin_tensor(own, message->kind, meeting->n);
  pl_step_tensor *tensor = &own->model->tensors[own->model->n_tensors];
  tensor->is_sequence = true;
  tensor->size_bytes = message->size_bytes;
  tensor->name = pl_trace_op_name(own->trace, ops[0]);
  add_slot(own, replay->join[m], PL_STEP_MOVES);
  for (uint32_t k = 0; k < meeting->n; k++) {
    add_slot(own, replay->gate[ops[k]], PL_STEP_WAITS);
    add_slot(own, replay->body[ops[k]], PL_STEP_WAITS);
  }
  own->model->n_tensors++;
}

/* ---- rings, trees, servers ---- */

typedef struct part {
  uint32_t root, from, to; /* streams; of a sum: from is PL_NONE */
  int64_t start_ns;
  uint32_t op; /* the send, or the sum */
} part;

static int by_place(const void *a_, const void *b_) {
  const part *a = a_, *b = b_;
  if (a->root != b->root) return a->root < b->root ? -1 : 1;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return a->op < b->op ? -1 : a->op > b->op;
}

static uint32_t receive_of(const finding *own, uint32_t send) {
  const pl_trace_meetings *meetings = own->replay->meetings;
  return meetings->ops[meetings->meetings[meetings->of_op[send]].first + 1];
}

static const pl_trace_message *message_of(const finding *own, uint32_t op) {
  return &own->trace->messages[own->trace->ops[op].message];
}

/* Every rank that takes part sends and receives: what stages hand on to each other is no gradient. */
static bool goes_round(finding *own, const part *parts, uint32_t n) {
  memset(own->sends, 0, own->trace->n_ranks * sizeof *own->sends);
  memset(own->receives, 0, own->trace->n_ranks * sizeof *own->receives);
  for (uint32_t k = 0; k < n; k++)
    if (parts[k].from != PL_NONE) {
      own->sends[pl_trace_rank_of(own->trace, parts[k].op)] = true;
      own->receives[pl_trace_rank_of(own->trace, receive_of(own, parts[k].op))] = true;
    }
  return memcmp(own->sends, own->receives, own->trace->n_ranks * sizeof *own->sends) == 0;
}

/* What the rank that sends least sends: a worker's or a leaf's whole gradient. In a ring of n each sends it
 * 2 (n - 1) / n times. */
static int64_t size_of(const finding *own, const part *parts, uint32_t n, pl_arena *arena) {
  uint32_t n_ranks = own->trace->n_ranks, members = 0;
  int64_t *sent = PL_TAKE(arena, int64_t, n_ranks + 1), least = INT64_MAX, size;
  uint32_t *to = PL_TAKE(arena, uint32_t, n_ranks + 1);
  bool is_ring = true;
  if (sent == NULL || to == NULL) return -1;
  for (uint32_t k = 0; k < n; k++) {
    if (parts[k].from == PL_NONE) continue;
    uint32_t rank = pl_trace_rank_of(own->trace, parts[k].op);
    if ((size = message_of(own, parts[k].op)->size_bytes) < 0) return -1;
    is_ring &= sent[rank] == 0 || to[rank] == parts[k].to;
    to[rank] = parts[k].to;
    sent[rank] += size;
  }
  for (uint32_t r = 0; r < n_ranks; r++)
    if (sent[r] > 0) {
      members++;
      if (sent[r] < least) least = sent[r];
    }
  if (members < 2) return -1;
  return is_ring && members > 2 ? least * members / (2 * (members - 1)) : least;
}

/* What all names begin with, unless it is less than half of the first one's. */
static const char *name_of(const finding *own, const part *parts, uint32_t n) {
  const char *first = NULL;
  size_t same = 0;
  for (uint32_t k = 0; k < n; k++) {
    const char *name = pl_trace_op_name(own->trace, parts[k].op);
    if (parts[k].from == PL_NONE) continue;
    if (first == NULL) {
      first = name;
      same = strlen(name);
    }
    size_t length = 0;
    while (length < same && name[length] == first[length])
      length++;
    same = length;
  }
  PL_ASSERT(first != NULL); /* a tensor has a part that comes from somewhere */
  if (same < strlen(first)) /* not between the digits of a number, nor with what parts it */
    while (same > 0 && strchr("0123456789.:_-/ ", first[same - 1]) != NULL &&
           (strchr(".:_-/ ", first[same - 1]) != NULL || (first[same] >= '0' && first[same] <= '9')))
      same--;
  return 2 * same < strlen(first) ? first : pl_arena_printf(own->arena, "%.*s", (int)same, first);
}

static void add_message(finding *own, const part *p) {
  const pl_trace_replay *replay = own->replay;
  if (p->from == PL_NONE) {
    add_slot(own, replay->gate[p->op], PL_STEP_WAITS);
    add_slot(own, replay->body[p->op], PL_STEP_SUMS);
    return;
  }
  uint32_t receive = receive_of(own, p->op), flight = own->flight[receive];
  add_slot(own, replay->gate[p->op], PL_STEP_WAITS);
  add_slot(own, replay->body[p->op], PL_STEP_MOVES);
  add_slot(own, replay->gate[receive], PL_STEP_WAITS);
  if (flight != PL_NONE) add_slot(own, flight, PL_STEP_MOVES);
  add_slot(own, replay->body[receive], flight != PL_NONE ? PL_STEP_WAITS : PL_STEP_MOVES);
}

static bool add_round(finding *own, const part *parts, uint32_t n) {
  if (!goes_round(own, parts, n)) return true;
  begin_tensor(own, PL_TRACE_POINT_TO_POINT, 2);
  pl_step_tensor *tensor = &own->model->tensors[own->model->n_tensors];
  tensor->size_bytes = size_of(own, parts, n, own->arena);
  tensor->name = name_of(own, parts, n);
  for (uint32_t k = 0; k < n; k++)
    add_message(own, &parts[k]);
  own->model->n_tensors++;
  return tensor->name != NULL;
}

static bool add_rounds(finding *own) {
  const pl_trace *trace = own->trace;
  part *parts = PL_TAKE(own->arena, part, own->replay->n_ops + 1);
  uint32_t n = 0;
  if (parts == NULL) return false;
  for (uint32_t op = 0; op < trace->n_ops; op++) {
    if (!is_in(own, op)) continue;
    uint32_t m = own->sums[op] != PL_NONE ? own->sums[op] : transfer_of(own, op);
    bool sends = trace->ops[op].kind == PL_TRACE_SEND;
    if (m == PL_NONE || (own->sums[op] == PL_NONE && !sends)) continue;
    uint32_t stream = trace->ops[op].stream;
    parts[n++] = (part){root_of(own, m), sends ? stream : PL_NONE,
                        sends ? trace->ops[receive_of(own, op)].stream : stream, trace->ops[op].start_ns, op};
  }
  qsort(parts, n, sizeof *parts, by_place);
  for (uint32_t a = 0, b; a < n; a = b) {
    for (b = a; b < n && parts[b].root == parts[a].root;)
      b++;
    if (!add_round(own, parts + a, b - a)) return false;
  }
  return true;
}

bool pl_step_tensors_find(pl_step_model *model, const pl_trace_step_list *steps, pl_arena *arena) {
  const pl_trace_replay *replay = model->replay;
  const pl_trace *trace = replay->trace;
  uint32_t n_meetings = replay->meetings->n;
  finding own = {.model = model, .replay = replay, .trace = trace, .steps = steps, .arena = arena};
  own.root = PL_TAKE(arena, uint32_t, n_meetings + 1);
  own.sums = pl_arena_take(arena, ((size_t)trace->n_ops + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own.made = pl_arena_take(arena, ((size_t)trace->n_ops + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own.flight = pl_arena_take(arena, ((size_t)trace->n_ops + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own.sends = PL_TAKE(arena, bool, trace->n_ranks + 1);
  own.receives = PL_TAKE(arena, bool, trace->n_ranks + 1);
  model->tensors = PL_TAKE(arena, pl_step_tensor, n_meetings + 1);
  model->slots = PL_TAKE(arena, pl_step_slot, model->n + 1);
  if (own.root == NULL || own.sums == NULL || own.made == NULL || own.flight == NULL || own.sends == NULL ||
      own.receives == NULL || model->tensors == NULL || model->slots == NULL)
    return false;
  memset(own.sums, 0xff, trace->n_ops * sizeof *own.sums);
  memset(own.made, 0xff, trace->n_ops * sizeof *own.made);
  memset(own.flight, 0xff, trace->n_ops * sizeof *own.flight);
  for (uint32_t m = 0; m < n_meetings; m++)
    own.root[m] = m;
  for (uint32_t t = 0; t < model->n; t++)
    if (replay->role[t] == PL_TRACE_FLIGHT) own.flight[replay->subject[t]] = t;
  join_messages(&own);
  for (uint32_t m = 0; m < n_meetings; m++)
    add_collective(&own, m);
  return add_rounds(&own) && pl_step_chains_find(model, steps, arena);
}
