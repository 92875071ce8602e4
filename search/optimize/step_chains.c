/* Chains of tensors, and units of computing (see search/optimize/step_model.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash_index.h"
#include "search/optimize/step_model.h"
#include "workloads/trace/what_if.h"

/* ---- chains ---- */

static int by_shape(const void *a_, const void *b_) {
  const pl_step_tensor *a = a_, *b = b_;
  if (a->shape != b->shape) return a->shape < b->shape ? -1 : 1;
  if (a->n_slots != b->n_slots) return a->n_slots < b->n_slots ? -1 : 1;
  if (a->date != b->date) return a->date < b->date ? -1 : 1;
  return a->first_slot < b->first_slot ? -1 : a->first_slot > b->first_slot;
}

static int by_chain(const void *a_, const void *b_) {
  const pl_step_tensor *a = a_, *b = b_;
  if (a->chain != b->chain) return a->chain < b->chain ? -1 : 1;
  return by_shape(a, b);
}

/* Numbers chains by their first tensor in the order of the model's tasks, so that no hash decides it. */
static void number_chains(pl_step_model *model) {
  qsort(model->tensors, model->n_tensors, sizeof *model->tensors, by_shape);
  for (uint32_t a = 0, b; a < model->n_tensors; a = b) {
    uint32_t first = PL_NONE;
    for (b = a; b < model->n_tensors && model->tensors[b].shape == model->tensors[a].shape &&
                model->tensors[b].n_slots == model->tensors[a].n_slots;
         b++)
      if (model->tensors[b].first_slot < first) first = model->tensors[b].first_slot;
    for (uint32_t k = a; k < b; k++)
      model->tensors[k].chain = first;
  }
  qsort(model->tensors, model->n_tensors, sizeof *model->tensors, by_chain);
  uint32_t last = PL_NONE;
  model->n_chains = 0;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    model->n_chains += model->tensors[k].chain != last;
    last = model->tensors[k].chain;
    model->tensors[k].chain = model->n_chains - 1;
  }
}

static void mark_tasks(pl_step_model *model) {
  memset(model->tensor, 0xff, model->n * sizeof *model->tensor);
  memset(model->slot, 0xff, model->n * sizeof *model->slot);
  for (uint32_t k = 0; k < model->n_tensors; k++)
    for (uint32_t s = 0; s < model->tensors[k].n_slots; s++) {
      uint32_t task = model->slots[model->tensors[k].first_slot + s].task;
      model->tensor[task] = k;
      model->slot[task] = s;
    }
}

static uint32_t rank_of(const pl_trace_replay *replay, uint32_t task) {
  return pl_trace_rank_of(replay->trace, pl_trace_task_op(replay, task));
}

static uint32_t step_of(const pl_trace_replay *replay, uint32_t task) {
  return replay->trace->ops[pl_trace_task_op(replay, task)].step;
}

/* On most of its ranks some tensor of the chain waits for what another of its step brought, by more than their order on
 * a stream: all of the next step wait for all gradients.
 * On most: ranks do the same, and a wait that is on few of them was concluded wrongly from dates. */
static bool waits_for_itself(const pl_step_model *model, const pl_trace_step_list *steps, uint32_t chain, bool *reached,
                             uint8_t *ranks) {
  enum { TAKES_PART = 1, WAITS = 2 };
  const pl_trace_replay *replay = model->replay;
  const pl_graph *graph = &replay->graph;
  uint32_t n = 0, n_waiting = 0;
  memset(reached, 0, model->n * sizeof *reached);
  memset(ranks, 0, replay->trace->n_ranks * sizeof *ranks);
  for (uint32_t k = 0; k < model->n; k++) {
    uint32_t t = replay->order[k], tensor = model->tensor[t], rank = rank_of(replay, t);
    bool of_chain = tensor != PL_NONE && model->tensors[tensor].chain == chain;
    if (replay->role[t] == PL_TRACE_JOIN || (!reached[t] && !of_chain)) continue;
    if (of_chain) ranks[rank] |= TAKES_PART;
    bool sends_on = tensor != PL_NONE || replay->trace->ops[pl_trace_task_op(replay, t)].message != PL_NONE;
    for (uint32_t e = graph->successor_offset[t]; e < graph->successor_offset[t + 1]; e++) {
      uint32_t after = graph->successors[e], other = model->tensor[after];
      if ((tensor != PL_NONE && other == tensor) || rank_of(replay, after) != rank) continue;
      if (step_of(replay, after) != step_of(replay, t)) continue;
      if (sends_on && pl_step_edge_is_order(replay, steps, t, after)) continue;
      if (other != PL_NONE && model->tensors[other].chain == chain)
        ranks[rank] |= WAITS;
      else
        reached[after] = true;
    }
  }
  for (uint32_t r = 0; r < replay->trace->n_ranks; r++) {
    n += (ranks[r] & TAKES_PART) != 0;
    n_waiting += (ranks[r] & WAITS) != 0;
  }
  return 2 * n_waiting > n;
}

bool pl_step_chains_find(pl_step_model *model, const pl_trace_step_list *steps, pl_arena *arena) {
  pl_ticks *finish = PL_TAKE(arena, pl_ticks, model->n + 1);
  bool *reached = PL_TAKE(arena, bool, model->n + 1);
  uint8_t *ranks = PL_TAKE(arena, uint8_t, model->replay->trace->n_ranks + 1);
  if (finish == NULL || reached == NULL || ranks == NULL) return false;
  pl_trace_replay_run(model->replay, model->ticks, finish);
  for (uint32_t s = 0; s < model->n_slots; s++) {
    uint32_t task = model->slots[s].task;
    pl_step_tensor *tensor = &model->tensors[model->tensor[task]];
    if (model->replay->role[task] == PL_TRACE_GATE && finish[task] < tensor->date) tensor->date = finish[task];
  }
  number_chains(model);
  mark_tasks(model);
  uint32_t kept = 0;
  for (uint32_t a = 0, b; a < model->n_tensors; a = b) {
    uint32_t chain = model->tensors[a].chain;
    for (b = a; b < model->n_tensors && model->tensors[b].chain == chain;)
      b++;
    if (waits_for_itself(model, steps, chain, reached, ranks)) {
      model->n_activations += b - a;
      for (uint32_t k = a; k < b; k++) /* the marks of what is moved up are still needed */
        model->tensors[k].n_slots = 0;
    }
  }
  for (uint32_t k = 0; k < model->n_tensors; k++)
    if (model->tensors[k].n_slots > 0) model->tensors[kept++] = model->tensors[k];
  model->n_tensors = kept;
  number_chains(model);
  mark_tasks(model);
  uint32_t n_slots = 0; /* slots without the left out: rewritten in the order of the tensors */
  pl_step_slot *slots = PL_TAKE(arena, pl_step_slot, model->n_slots + 1);
  if (slots == NULL) return false;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    memcpy(slots + n_slots, model->slots + model->tensors[k].first_slot, model->tensors[k].n_slots * sizeof *slots);
    model->tensors[k].first_slot = n_slots;
    n_slots += model->tensors[k].n_slots;
  }
  model->slots = slots;
  model->n_slots = n_slots;
  return true;
}

/* ---- units ---- */

typedef struct row {
  uint64_t shape;
  uint32_t rank;
} row;

static int by_shape_of_rank(const void *a_, const void *b_) {
  const row *a = a_, *b = b_;
  if (a->shape != b->shape) return a->shape < b->shape ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool is_work(const pl_step_model *model, uint32_t op) {
  const pl_trace_replay *replay = model->replay;
  return replay->gate[op] != PL_NONE && replay->trace->ops[op].kind == PL_TRACE_COMPUTE &&
         model->tensor[replay->gate[op]] == PL_NONE;
}

/* The next op of computing of the rank, from `op` on; PL_NONE: none. */
static uint32_t next_work(const pl_step_model *model, uint32_t rank, uint32_t op) {
  const pl_trace_rank *r = &model->replay->trace->ranks[rank];
  for (; op < r->first_op + r->n_ops; op++)
    if (is_work(model, op)) return op;
  return PL_NONE;
}

static bool is_next(const pl_step_model *model, uint32_t op) {
  uint32_t previous = pl_trace_previous(model->replay->trace, op);
  return previous != PL_NONE && is_work(model, previous);
}

/* What the rank computes, in order: names, and which follow one another on a stream. */
static uint64_t shape_of(const pl_step_model *model, uint32_t r) {
  const pl_trace *trace = model->replay->trace;
  uint64_t shape = 1;
  for (uint32_t op = trace->ranks[r].first_op; (op = next_work(model, r, op)) != PL_NONE; op++)
    shape = pl_hash_word(pl_hash_word(shape, trace->ops[op].name), is_next(model, op));
  return shape;
}

static bool are_alike(const pl_step_model *model, uint32_t a, uint32_t b) {
  const pl_trace *trace = model->replay->trace;
  uint32_t i = trace->ranks[a].first_op, j = trace->ranks[b].first_op;
  for (;; i++, j++) {
    i = next_work(model, a, i);
    j = next_work(model, b, j);
    if (i == PL_NONE || j == PL_NONE) return i == j;
    if (trace->ops[i].name != trace->ops[j].name || is_next(model, i) != is_next(model, j)) return false;
  }
}

/* One unit per op of the first rank of the class, with the ops of the others at the same place. */
static void add_class(pl_step_model *model, const row *rows, uint32_t n, uint32_t *next) {
  const pl_trace *trace = model->replay->trace;
  const pl_trace_rank *first = &trace->ranks[rows[0].rank];
  for (uint32_t k = 0; k < n; k++)
    next[k] = trace->ranks[rows[k].rank].first_op;
  for (uint32_t op = first->first_op; op < first->first_op + first->n_ops; op++) {
    if (!is_work(model, op)) continue;
    pl_step_unit *unit = &model->units[model->n_units];
    *unit = (pl_step_unit){.first_member = model->n_members,
                           .n_members = n,
                           .class_index = model->n_classes,
                           .name = trace->ops[op].name,
                           .follows = is_next(model, op)};
    for (uint32_t k = 0; k < n; k++) {
      while (!is_work(model, next[k]))
        next[k]++;
      uint32_t gate = model->replay->gate[next[k]], body = model->replay->body[next[k]];
      model->members[model->n_members] = (pl_step_member){next[k]++, gate, body};
      model->unit[gate] = model->unit[body] = model->n_units;
      model->member[gate] = model->member[body] = model->n_members++;
    }
    model->n_units++;
  }
}

/* Calls that launch one kernel of a unit and nothing else. */
static bool find_launches(pl_step_model *model, pl_arena *arena) {
  const pl_trace_replay *replay = model->replay;
  uint32_t *n_launched = PL_TAKE(arena, uint32_t, replay->trace->n_ops + 1);
  if (n_launched == NULL) return false;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t t = 0; t < model->n; t++) {
      if (replay->role[t] != PL_TRACE_LATENCY) continue;
      uint32_t call = replay->subject[replay->preds[replay->pred_offset[t]]];
      uint32_t unit = model->unit[replay->gate[replay->subject[t]]];
      if (pass == 0)
        n_launched[call]++;
      else if (n_launched[call] == 1 && replay->trace->ops[call].kind == PL_TRACE_CALL)
        model->launches[replay->body[call]] = unit;
    }
  return true;
}

bool pl_step_units_find(pl_step_model *model, pl_arena *arena) {
  const pl_trace_replay *replay = model->replay;
  uint32_t n_ranks = replay->trace->n_ranks;
  row *rows = PL_TAKE(arena, row, n_ranks + 1);
  uint32_t *next = PL_TAKE(arena, uint32_t, n_ranks + 1);
  model->units = PL_TAKE(arena, pl_step_unit, replay->n_ops + 1);
  model->members = PL_TAKE(arena, pl_step_member, replay->n_ops + 1);
  if (rows == NULL || next == NULL || model->units == NULL || model->members == NULL) return false;
  for (uint32_t r = 0; r < n_ranks; r++)
    rows[r] = (row){shape_of(model, r), r};
  qsort(rows, n_ranks, sizeof *rows, by_shape_of_rank);
  for (uint32_t a = 0, b; a < n_ranks; a = b) {
    for (b = a + 1; b < n_ranks && rows[b].shape == rows[a].shape && are_alike(model, rows[a].rank, rows[b].rank);)
      b++;
    add_class(model, rows + a, b - a, next);
    model->n_classes++;
  }
  return find_launches(model, arena);
}
