/* The order of a layer's ops around the exchanges of tokens with its experts, where a framework launches otherwise than
 * its layers say (pl_framework.pipeline.token_order): what no exchange needs and needs none is put behind the
 * exchanges, to run while tokens are on their way. As in Megatron Core: --delay-wgrad-compute
 * (model_chunk_schedule_plan.py: the experts' gradients of weights behind the exchange that their inputs' gradients
 * begin) and --moe-shared-expert-overlap (shared_experts.py: their first product behind the exchange to experts, their
 * last one behind that of the answers, and in the backward pass likewise from the other end). Whatever reads what came
 * with an exchange waits for it.
 *
 * Attention's gradients of weights stay where they are, at the end of their layer: Megatron Core has them beside the
 * exchange that the layer before begins with. See workloads/fuse/kernel_groups.h. */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"
#include "workloads/language/ir_layer.h"

/* What is known of a place in the order. */
typedef struct place {
  bool is_exchange, is_product;
  bool leads;   /* an exchange needs it */
  bool follows; /* it needs an exchange */
  bool needed;  /* by more than gradients of weights */
  bool is_shared, reads_shared;
  bool is_read, is_read_apart; /* by anything; by what is not of shared experts */
} place;

typedef struct ordering {
  const pl_kernel_finding *own;
  int32_t *order, n;
  int32_t *place_of;           /* per op */
  int32_t *first_of, *next_of; /* ops of each place: the first one, and per op the next */
  place *places;
} ordering;

static int32_t maker_place(const ordering *of, int32_t value) {
  int32_t maker = pl_read_maker(&of->own->read, value);
  return maker == PL_IR_NONE ? PL_IR_NONE : of->place_of[maker];
}

static bool take(ordering *of, pl_arena *scratch) {
  int32_t n_ops = of->own->read.f->n_ops, *place_of_group = PL_TAKE(scratch, int32_t, n_ops + 1);
  of->place_of = PL_TAKE(scratch, int32_t, n_ops + 1);
  of->next_of = PL_TAKE(scratch, int32_t, n_ops + 1);
  of->first_of = PL_TAKE(scratch, int32_t, of->n + 1);
  of->places = PL_TAKE(scratch, place, of->n + 1);
  if (scratch->failed) return false;
  for (int32_t at = 0; at < of->n; at++) {
    place_of_group[of->order[at]] = at;
    of->first_of[at] = PL_IR_NONE;
  }
  for (int32_t i = n_ops; i-- > 0;) {
    int32_t at = of->place_of[i] = place_of_group[pl_kernel_group(of->own, i)];
    of->next_of[i] = of->first_of[at];
    of->first_of[at] = i;
    of->places[at].is_exchange |= pl_read_is(&of->own->read, i, "all_to_all");
    of->places[at].is_product |= pl_kernel_is_product(of->own, i);
  }
  return true;
}

/* Whether anything but a gradient that is added up, or what is made for it, needs the place. */
static bool is_asked_for(const ordering *of, int32_t at) {
  const pl_ir_function *f = of->own->read.f;
  for (int32_t i = of->first_of[at]; i != PL_IR_NONE; i = of->next_of[i]) {
    const pl_ir_op *op = &f->ops[i];
    uint8_t effect = pl_ir_row_at(op->row)->effect;
    if (effect == PL_IR_COLLECTIVE || effect == PL_IR_SENDS || effect == PL_IR_CALLS) return true;
    if (effect == PL_IR_WRITES && !pl_ir_op_is(op, "accumulate")) return true;
    for (int32_t k = 0; k < op->n_outputs; k++)
      for (int32_t r = 0; r < f->n_results; r++)
        if (f->results[r] == op->first_output + k) return true;
  }
  return false;
}

static void mark_operands(const ordering *of, int32_t at, bool leads, bool needed) {
  for (int32_t i = of->first_of[at]; i != PL_IR_NONE; i = of->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&of->own->read, i);
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t from = maker_place(of, op->inputs[k]);
      if (from == PL_IR_NONE) continue;
      of->places[from].leads |= leads;
      of->places[from].needed |= needed;
    }
  }
}

static void read_operands(const ordering *of, int32_t at) {
  place *own = &of->places[at];
  for (int32_t i = of->first_of[at]; i != PL_IR_NONE; i = of->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&of->own->read, i);
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t from = maker_place(of, op->inputs[k]);
      if (from == PL_IR_NONE || from == at) continue;
      own->follows |= of->places[from].follows || of->places[from].is_exchange;
      own->reads_shared |= of->places[from].is_shared;
    }
  }
}

/* Whether it has nothing to do with exchanges. */
static bool is_apart(const place *own) {
  return !own->leads && !own->follows && !own->is_exchange;
}

static void note_reading(const ordering *of, int32_t at) {
  for (int32_t i = of->first_of[at]; i != PL_IR_NONE; i = of->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&of->own->read, i);
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t from = maker_place(of, op->inputs[k]);
      if (from == PL_IR_NONE || from == at) continue;
      of->places[from].is_read = true;
      of->places[from].is_read_apart |= !of->places[at].is_shared;
    }
  }
}

static void learn(const ordering *of) {
  for (int32_t at = of->n; at-- > 0;) {
    place *own = &of->places[at];
    own->needed |= is_asked_for(of, at);
    mark_operands(of, at, own->leads || own->is_exchange, own->needed);
  }
  for (int32_t at = 0; at < of->n; at++) {
    place *own = &of->places[at];
    read_operands(of, at);
    own->is_shared = is_apart(own) && (own->is_product || own->reads_shared);
  }
  for (int32_t at = of->n; at-- > 0;) { /* and what only they read: gathers of tensor ranks, parameters */
    place *own = &of->places[at];
    own->is_shared |= is_apart(own) && own->is_read && !own->is_read_apart;
    note_reading(of, at);
  }
}

/* The end of the run of exchanges that begins at or behind a place, which is put into *first; n: there is none. */
static int32_t end_of_run(const ordering *of, int32_t from, int32_t *first) {
  while (from < of->n && !of->places[from].is_exchange)
    from++;
  *first = from;
  while (from < of->n && of->places[from].is_exchange)
    from++;
  return from;
}

/* Writes the order again: of the places, those that a run takes stand right behind it. taken: per place the end of the
 * run that it goes behind, 0: it stays. */
static void write(ordering *of, const int32_t *taken, pl_arena *scratch) {
  int32_t *made = PL_TAKE(scratch, int32_t, of->n + 1), n = 0;
  if (made == NULL) return;
  for (int32_t at = 0; at <= of->n; at++) {
    for (int32_t from = 0; at > 0 && from < of->n; from++)
      if (taken[from] == at) made[n++] = of->order[from];
    if (at < of->n && taken[at] == 0) made[n++] = of->order[at];
  }
  memcpy(of->order, made, (size_t)of->n * sizeof *made);
}

/* Gradients of weights between the first exchange and the last run: behind that. */
static void delay_weights(const ordering *of, int32_t *taken) {
  int32_t first, end = end_of_run(of, 0, &first), last = end, begin = first;
  for (int32_t next = end; next < of->n;) {
    next = end_of_run(of, next, &first);
    if (first < of->n) last = next;
  }
  for (int32_t at = begin; at < last; at++)
    if (!of->places[at].needed && !of->places[at].is_exchange) taken[at] = last;
}

/* What the place needs and stands behind where it goes: parameters, and what a forward pass has kept. */
static void bring_along(const ordering *of, int32_t *taken, int32_t at) {
  for (int32_t i = of->first_of[at]; i != PL_IR_NONE; i = of->next_of[i]) {
    const pl_ir_op *op = pl_read_op(&of->own->read, i);
    for (int32_t k = 0; k < op->n_inputs; k++) {
      int32_t from = maker_place(of, op->inputs[k]);
      if (from == PL_IR_NONE || from == at) continue;
      int32_t stands = taken[from] != 0 ? taken[from] : from;
      if (stands >= taken[at] && taken[from] != taken[at]) taken[from] = taken[at];
    }
  }
}

/* Shared experts: up to their first product that reads what they have made behind the first run, from it on behind the
 * second. */
static void hide_shared(const ordering *of, int32_t *taken) {
  int32_t first, early = end_of_run(of, 0, &first), late = end_of_run(of, early, &first);
  bool is_late = false;
  if (first == of->n) return;
  for (int32_t at = 0; at < of->n; at++) {
    const place *own = &of->places[at];
    if (!own->is_shared) continue;
    is_late = is_late || (own->is_product && own->reads_shared);
    taken[at] = is_late ? late : early;
  }
  for (int32_t at = of->n; at-- > 0;)
    if (taken[at] != 0) bring_along(of, taken, at);
}

bool pl_kernel_order_tokens(const pl_kernel_finding *own, pl_token_order how, int32_t *order, int32_t n,
                            pl_arena *scratch) {
  ordering of = {.own = own, .order = order, .n = n};
  if (how == PL_TOKENS_AS_MADE || !pl_ir_has_experts(own->read.f)) return true;
  int32_t *taken = PL_TAKE(scratch, int32_t, n + 1);
  if (taken == NULL || !take(&of, scratch)) return false;
  learn(&of);
  if (how == PL_TOKENS_DELAYED)
    delay_weights(&of, taken);
  else
    hide_shared(&of, taken);
  write(&of, taken, scratch);
  return !scratch->failed;
}
