/* From the draft of a backward function to what stands in the training program: without ops that nobody needs, cut into
 * B and W where that is asked for, with the forward function keeping what either reads. See
 * workloads/derive/backward.h.
 *
 * Cut: B has what the gradients of arguments need, and gradients of weights that come out of the same ops (norms). W
 * has the rest. What W needs of B, B keeps; parameters and what the forward function kept are read again.
 */
#include <stdlib.h>
#include <string.h>

#include "workloads/derive/backward.h"

enum { OPERANDS_MAX = 64 };

typedef enum half { LEFT_OUT = 0, IN_B, IN_W, IN_BOTH } half; /* bits */

/* A draft on its way into functions. */
typedef struct cutting {
  pl_draft *draft;
  uint8_t *in;          /* per op of the draft: half */
  bool *crosses;        /* per value of the draft: W reads what B made */
  const char **kept_as; /* per value of the draft that crosses: its name in B */
  int32_t *order;       /* of ops */
} cutting;

static pl_arena *arena_of(const cutting *cut) {
  return cut->draft->pass->training->arena;
}

/* ---- what is needed ---- */

static bool is_row(const cutting *cut, int32_t op, int32_t row) {
  return cut->draft->function.ops[op].row == row;
}

static bool has_effect(const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  return effect != PL_IR_PURE && effect != PL_IR_READS;
}

static bool is_early(const cutting *cut, int32_t op) {
  return op < cut->draft->room && cut->draft->again[op] != PL_IR_NONE;
}

static void need_value(cutting *cut, int32_t value, half in) {
  int32_t maker = cut->draft->function.values[value].op;
  if (maker == PL_IR_NONE) {
    if (in == IN_W) cut->crosses[value] = true;
    return;
  }
  const pl_ir_op *op = &cut->draft->function.ops[maker];
  if (in == IN_W && (cut->in[maker] & IN_B) != 0 && !pl_backward_is_reread(&cut->draft->pass->rows, op))
    cut->crosses[value] = true;
  else
    cut->in[maker] |= (uint8_t)in;
}

/* Ops behind what is marked, from the last to the first. */
static void spread_need(cutting *cut, half in) {
  const pl_ir_function *function = &cut->draft->function;
  for (int32_t i = function->n_ops; i-- > 0;) {
    bool marked = in == IN_B ? (cut->in[i] & IN_B) != 0 : (cut->in[i] & IN_W) != 0;
    for (int32_t k = 0; marked && k < function->ops[i].n_inputs; k++)
      need_value(cut, function->ops[i].inputs[k], in);
  }
}

static void mark(cutting *cut, bool splits) {
  const pl_draft *draft = cut->draft;
  const pl_ir_function *function = &draft->function;
  const pl_backward_rows *rows = &draft->pass->rows;
  for (int32_t i = 0; i < draft->n_results; i++)
    need_value(cut, draft->results[i], IN_B);
  for (int32_t i = 0; i < function->n_ops; i++)
    if (has_effect(&function->ops[i]) && (!splits || !is_row(cut, i, rows->accumulate))) cut->in[i] |= IN_B;
  uint8_t what = draft->pass->derived[draft->of].recompute;
  bool all = what == PL_RECOMPUTE_FULL; /* is made again */
  bool part = what == PL_RECOMPUTE_SELECTIVE || what == PL_RECOMPUTE_ALTERNATE;
  for (int32_t i = 0; (all || part) && i < function->n_ops; i++)
    if (is_early(cut, i) && draft->again[i] >= 0 && (all || !is_row(cut, i, rows->kept))) cut->in[i] |= IN_B;
  spread_need(cut, IN_B);
  if (!splits) return;
  for (int32_t i = 0; i < function->n_ops; i++) {
    if (!is_row(cut, i, rows->accumulate)) continue;
    int32_t maker = function->values[function->ops[i].inputs[0]].op;
    bool here = maker != PL_IR_NONE && (cut->in[maker] & IN_B) != 0;
    cut->in[i] |= (uint8_t)(here ? IN_B : IN_W);
  }
  spread_need(cut, IN_W);
}

/* ---- order ---- */

/* Ops that are made again come first, in the order of the forward function, where all of it is made again. */
static void put_in_order(cutting *cut) {
  const pl_draft *draft = cut->draft;
  uint8_t what = draft->pass->derived[draft->of].recompute;
  bool reorders = what == PL_RECOMPUTE_FULL || what == PL_RECOMPUTE_ALTERNATE;
  int32_t n = 0, n_forward = draft->differ.forward->n_ops;
  for (int32_t at = PL_DRAFT_ARGUMENT; reorders && at < n_forward; at++)
    for (int32_t i = 0; at != PL_IR_NONE && i < draft->function.n_ops; i++)
      if (is_early(cut, i) && draft->again[i] == at) cut->order[n++] = i;
  for (int32_t i = 0; i < draft->function.n_ops; i++)
    if (!reorders || !is_early(cut, i)) cut->order[n++] = i;
}

/* ---- writing ---- */

static const char *kept_name(const cutting *cut, const char *name, bool for_weights) {
  const pl_draft *draft = cut->draft;
  bool bare = draft->pass->derived[draft->of].is_bare;
  const char *made = pl_arena_printf(arena_of(cut), "%s%s%s%s", bare ? draft->differ.forward->name : "",
                                     bare ? "." : "", for_weights ? PL_BACKWARD_FOR_WEIGHTS : "", name);
  return made != NULL ? made : name;
}

static int32_t copied(cutting *cut, pl_ir_function *to, const pl_ir_function *from, const pl_ir_op *op,
                      const int32_t *map, int32_t callee) {
  int32_t inputs[OPERANDS_MAX];
  const char *names[OPERANDS_MAX];
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX && op->n_outputs <= OPERANDS_MAX);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    inputs[i] = map != NULL ? map[op->inputs[i]] : op->inputs[i];
    if (inputs[i] == PL_IR_NONE) return PL_IR_NONE; /* no memory before */
  }
  pl_ir_making making = pl_ir_making_like(from, op, names, types);
  making.inputs = inputs;
  if (op->row == cut->draft->pass->rows.kept) making.path = kept_name(cut, op->path, false);
  making.reason = NULL;
  making.callee = callee;
  return pl_ir_op_add(cut->draft->pass->training, to, &making);
}

static void keep(cutting *cut, pl_ir_function *to, int32_t value, const char *name, bool for_weights) {
  pl_ir_op_typed(cut->draft->pass->training, to, "keep", NULL, kept_name(cut, name, for_weights), 1, &value, NULL, 0,
                 NULL);
}

/* Value `of` of the draft, which is `value` in B. */
static void keep_crossing(cutting *cut, pl_ir_function *to, int32_t of, int32_t value) {
  if (value == PL_IR_NONE) return; /* no memory before */
  cut->kept_as[of] = to->values[value].name;
  keep(cut, to, value, cut->kept_as[of], true);
}

/* The ops of one half. B keeps what crosses as soon as it is there. */
static void write_half(cutting *cut, pl_ir_function *to, half in, int32_t *map) {
  const pl_ir_function *draft = &cut->draft->function;
  for (int32_t i = 0; i < draft->n_values; i++)
    map[i] = PL_IR_NONE;
  for (int32_t i = 0; i < draft->n_arguments && in == IN_B; i++)
    map[i] = pl_ir_argument(cut->draft->pass->training, to, draft->values[i].name, &draft->values[i].type);
  for (int32_t i = 0; i < draft->n_values; i++) {
    if (!cut->crosses[i]) continue;
    if (in == IN_W && cut->kept_as[i] != NULL)
      map[i] = pl_ir_op_typed(cut->draft->pass->training, to, "kept", draft->values[i].name,
                              kept_name(cut, cut->kept_as[i], true), 0, NULL, &draft->values[i].type, 0, NULL);
    else if (in == IN_B && i < draft->n_arguments)
      keep_crossing(cut, to, i, map[i]);
  }
  for (int32_t at = 0; at < draft->n_ops; at++) {
    const pl_ir_op *op = &draft->ops[cut->order[at]];
    if ((cut->in[cut->order[at]] & in) == 0) continue;
    int32_t first = copied(cut, to, draft, op, map, op->callee);
    for (int32_t k = 0; k < op->n_outputs; k++) {
      int32_t value = op->first_output + k;
      map[value] = first != PL_IR_NONE ? first + k : PL_IR_NONE;
      if (in == IN_B && cut->crosses[value]) keep_crossing(cut, to, value, map[value]);
    }
  }
}

static void write_results(cutting *cut, pl_ir_function *to, const int32_t *map) {
  const pl_draft *draft = cut->draft;
  int32_t *results = PL_TAKE(arena_of(cut), int32_t, draft->n_results + 1);
  for (int32_t i = 0; results != NULL && i < draft->n_results; i++)
    results[i] = map[draft->results[i]];
  if (results != NULL) pl_ir_results_set(draft->pass->training, to, draft->n_results, results);
}

/* Calls of @main.weights: in the order of the backward functions that leave something to them. */
static void call_weights(cutting *cut, pl_ir_function *to) {
  const pl_backward_pass *pass = cut->draft->pass;
  const pl_ir_function *forward = cut->draft->differ.forward;
  for (int32_t i = forward->n_ops; i-- > 0;) {
    const pl_ir_op *op = &forward->ops[i];
    if (op->row != pass->rows.call || pass->derived[op->callee].weights == PL_IR_NONE) continue;
    pl_ir_op_add(pass->training, to,
                 &(pl_ir_making){.row = op->row,
                                 .n_attributes = op->n_attributes,
                                 .attributes = op->attributes,
                                 .path = op->path,
                                 .callee = pass->derived[op->callee].weights});
  }
}

static bool has_weights(const cutting *cut) {
  const pl_backward_pass *pass = cut->draft->pass;
  const pl_ir_function *forward = cut->draft->differ.forward;
  for (int32_t i = 0; i < cut->draft->function.n_ops; i++)
    if ((cut->in[i] & IN_W) != 0) return true;
  for (int32_t i = 0; i < forward->n_ops; i++)
    if (forward->ops[i].row == pass->rows.call && pass->derived[forward->ops[i].callee].weights != PL_IR_NONE)
      return true;
  return false;
}

static pl_ir_function *add_function(cutting *cut, const char *behind, int32_t *index) {
  pl_ir_module *training = cut->draft->pass->training;
  const char *name = pl_arena_printf(training->arena, "%s.%s", cut->draft->differ.forward->name, behind);
  pl_ir_function *made = name != NULL ? pl_ir_function_add(training, name) : NULL;
  if (made != NULL) *index = training->n_functions - 1;
  return made;
}

/* The forward function, which keeps what either half reads. */
static void write_forward(cutting *cut, pl_ir_function *to) {
  const pl_backward_pass *pass = cut->draft->pass;
  const pl_ir_function *forward = cut->draft->differ.forward, *draft = &cut->draft->function;
  bool *kept = PL_TAKE(arena_of(cut), bool, forward->n_values + 1);
  if (kept == NULL) return;
  for (int32_t i = 0; i < draft->n_ops; i++) {
    if (!is_row(cut, i, pass->rows.kept) || cut->in[i] == LEFT_OUT) continue;
    int32_t value = pl_ir_value_find(forward, draft->ops[i].path);
    if (value != PL_IR_NONE) kept[value] = true;
  }
  for (int32_t i = 0; i < forward->n_arguments; i++)
    pl_ir_argument(pass->training, to, forward->values[i].name, &forward->values[i].type);
  for (int32_t i = 0; i < forward->n_arguments; i++)
    if (kept[i]) keep(cut, to, i, forward->values[i].name, false);
  for (int32_t i = 0; i < forward->n_ops; i++) {
    const pl_ir_op *op = &forward->ops[i];
    copied(cut, to, forward, op, NULL, op->callee != PL_IR_NONE ? pass->derived[op->callee].forward : PL_IR_NONE);
    for (int32_t k = 0; k < op->n_outputs; k++)
      if (kept[op->first_output + k])
        keep(cut, to, op->first_output + k, forward->values[op->first_output + k].name, false);
  }
  pl_ir_results_set(pass->training, to, forward->n_results, forward->results);
}

/* Nothing comes back and nothing is written: no backward function. */
static bool is_empty(const cutting *cut) {
  if (cut->draft->n_results > 0) return false;
  for (int32_t i = 0; i < cut->draft->function.n_ops; i++)
    if (cut->in[i] != LEFT_OUT) return false;
  return true;
}

/* The gradient of %x is %dx, whatever the row that made it called it. */
static void name_gradients(pl_draft *draft) {
  const pl_ir_function *forward = draft->differ.forward;
  for (int32_t i = forward->n_values; i-- > 0;) {
    int32_t gradient = draft->differ.gradients[i];
    if (gradient < draft->function.n_arguments) continue;
    const char *name = pl_arena_printf(draft->pass->training->arena, "d%s", forward->values[i].name);
    if (name != NULL) draft->function.values[gradient].name = name;
  }
}

pl_code pl_backward_write(pl_draft *draft, pl_error *error) {
  pl_backward_pass *pass = draft->pass;
  pl_arena *arena = pass->training->arena;
  pl_derived *derived = &pass->derived[draft->of];
  int32_t n_ops = draft->function.n_ops, n_values = draft->function.n_values;
  cutting cut = {.draft = draft,
                 .in = PL_TAKE(arena, uint8_t, n_ops + 1),
                 .crosses = PL_TAKE(arena, bool, n_values + 1),
                 .kept_as = PL_TAKE(arena, const char *, n_values + 1),
                 .order = PL_TAKE(arena, int32_t, n_ops + 1)};
  int32_t *map = PL_TAKE(arena, int32_t, n_values + 1);
  name_gradients(draft);
  if (cut.in == NULL || cut.crosses == NULL || cut.kept_as == NULL || cut.order == NULL || map == NULL)
    return pl_fail_memory(error, "a backward function");
  mark(&cut, pass->options->splits_weights);
  put_in_order(&cut);
  write_forward(&cut, pass->training->functions[derived->forward]);
  if (!is_empty(&cut)) {
    pl_ir_function *to = add_function(&cut, "backward", &derived->backward);
    if (to != NULL) {
      write_half(&cut, to, IN_B, map);
      write_results(&cut, to, map);
    }
  }
  if (pass->options->splits_weights && has_weights(&cut)) {
    pl_ir_function *to = add_function(&cut, "weights", &derived->weights);
    if (to != NULL) {
      call_weights(&cut, to);
      write_half(&cut, to, IN_W, map);
    }
  }
  return arena->failed ? pl_fail_memory(error, "a backward function") : PL_OK;
}
