/* See workloads/derive/backward.h and differentiate.h: what a backward function makes again instead of reading what was
 * kept. */
#include <string.h>

#include "workloads/derive/backward.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_latent.h"

bool pl_backward_is_reread(const pl_backward_rows *rows, const pl_ir_op *op) {
  return op->row == rows->param || op->row == rows->input || op->row == rows->constant || op->row == rows->kept;
}

static bool has_effect(const pl_ir_op *op) {
  uint8_t effect = pl_ir_row_at(op->row)->effect;
  return effect == PL_IR_WRITES || effect == PL_IR_SENDS || effect == PL_IR_CALLS;
}

static bool is_selected(const pl_draft *draft, const pl_ir_op *op, bool attends) {
  const char *const *rows = draft->pass->options->selected;
  if (rows == NULL) return attends;
  for (; *rows != NULL; rows++)
    if (strcmp(*rows, pl_ir_row_at(op->row)->name) == 0) return true;
  return false;
}

void pl_recompute_find_attention(const pl_ir_function *function, bool *attends) {
  const int32_t whole = pl_ir_row_of("attention"), ring = pl_ir_row_of("ring_attention");
  pl_ir_core core;
  for (int32_t i = 0; i < function->n_ops; i++) {
    attends[i] = attends[i] || function->ops[i].row == whole || function->ops[i].row == ring;
    if (!pl_ir_core_find(function, i, &core)) continue;
    for (int32_t k = core.scores; k <= i; k++)
      attends[k] = attends[k] || pl_ir_core_has(&core, k);
  }
}

static bool is_row(const pl_ir_function *function, int32_t op, const char *name) {
  return pl_ir_op_is(&function->ops[op], name);
}

static bool has_weight(const pl_ir_function *function, const pl_ir_op *op) {
  for (int32_t i = 0; i < op->n_inputs; i++) {
    int32_t maker = function->values[op->inputs[i]].op;
    if (maker != PL_IR_NONE && is_row(function, maker, "param")) return true;
  }
  return false;
}

/* By dropout, or a sum with what is no parameter: a residual connection, whose kernel adds the bias. */
static bool is_summed(const pl_ir_function *function, int32_t value) {
  for (int32_t i = 0; i < function->n_ops; i++)
    for (int32_t k = 0; k < function->ops[i].n_inputs; k++)
      if (function->ops[i].inputs[k] == value &&
          (is_row(function, i, "dropout") || (is_row(function, i, "add") && !has_weight(function, &function->ops[i]))))
        return true;
  return false;
}

/* The product whose kernel the op is of, which adds its bias; PL_IR_NONE: it does something else. */
static int32_t biased_by(const pl_ir_function *function, const pl_ir_op *op) {
  if (!pl_ir_op_is(op, "add") || !has_weight(function, op) || is_summed(function, op->first_output)) return PL_IR_NONE;
  int32_t maker = function->values[op->inputs[0]].op;
  return maker != PL_IR_NONE && is_row(function, maker, "product") ? maker : PL_IR_NONE;
}

/* The dimension of experts, that something is chosen from; NULL: none. */
static const pl_ir_name *experts_of(const pl_ir_function *function) {
  const int32_t choice = pl_ir_row_of("top_k");
  for (int32_t i = 0; i < function->n_ops; i++)
    if (function->ops[i].row == choice) return &pl_ir_attribute_find(&function->ops[i], "over")->names[0];
  return NULL;
}

/* Part of the layer that the product counted before it is of, of compressed keys and values: `again` has noted it. */
static void note_parts(const pl_ir_function *function, bool *again) {
  int32_t operands[3];
  pl_ir_latent latent;
  for (int32_t i = 0; i < function->n_ops; i++) {
    if (!pl_ir_core_operands(function, i, operands) || !pl_ir_latent_find(function, operands, &latent)) continue;
    again[latent.k_rotary > latent.kv_down ? latent.k_rotary : latent.kv_down] = true;
    again[latent.k > latent.v ? latent.k : latent.v] = true;
  }
}

void pl_recompute_alternate(const pl_ir_function *function, bool attention, bool *again) {
  const int32_t product = pl_ir_row_of("product"), fused = pl_ir_row_of("attention"),
                ring = pl_ir_row_of("ring_attention");
  const pl_ir_name *experts = experts_of(function);
  int32_t n_counted = 0;
  memset(again, 0, (size_t)function->n_ops * sizeof *again);
  note_parts(function, again);
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    bool is_part = again[i];
    again[i] = op->row == fused || op->row == ring ? attention : true;
    int32_t biased = biased_by(function, op);
    if (biased != PL_IR_NONE) again[i] = again[biased]; /* one op: what is kept has it */
    if (op->row != product || !has_weight(function, op)) continue;
    if (experts != NULL && pl_ir_type_find(&function->values[op->first_output].type, *experts) >= 0) continue;
    n_counted += !is_part;
    again[i] = n_counted % 2 == 0;
  }
}

pl_code pl_recompute_decide(pl_draft *draft, pl_error *error) {
  const pl_backward_pass *pass = draft->pass;
  const pl_ir_function *forward = pass->model->functions[draft->of];
  uint8_t what = pass->derived[draft->of].recompute;
  draft->makes_again = PL_TAKE(pass->training->arena, bool, forward->n_ops);
  draft->needed = PL_TAKE(pass->training->arena, bool, forward->n_ops);
  bool *attends = PL_TAKE(pass->training->arena, bool, forward->n_ops + 1);
  bool *alternates = PL_TAKE(pass->training->arena, bool, forward->n_ops + 1);
  if (draft->makes_again == NULL || draft->needed == NULL || attends == NULL || alternates == NULL)
    return pl_fail_memory(error, "a backward function");
  pl_recompute_find_attention(forward, attends);
  if (what == PL_RECOMPUTE_ALTERNATE) pl_recompute_alternate(forward, pass->options->attends_again, alternates);
  for (int32_t i = 0; i < forward->n_ops; i++) {
    const pl_ir_op *op = &forward->ops[i];
    bool again = what == PL_RECOMPUTE_FULL || alternates[i];
    if (what == PL_RECOMPUTE_SELECTIVE) again = is_selected(draft, op, attends[i]);
    const uint8_t *ops = pass->derived[draft->of].ops;
    if (ops != NULL && ops[i] != PL_RECOMPUTE_OP_AS_FUNCTION) again = ops[i] == PL_RECOMPUTE_OP_AGAIN;
    bool reread = pl_backward_is_reread(&pass->rows, op) || op->row == pass->rows.rename;
    draft->makes_again[i] = reread || (again && !has_effect(op));
  }
  return PL_OK;
}

/* ---- reading ---- */

/* Room for what is noted of one more op of the draft. */
static bool note_again(pl_draft *draft, int32_t op, int32_t forward_op) {
  pl_arena *arena = draft->pass->training->arena;
  if (op >= draft->room) {
    int32_t larger = 2 * op + 64;
    int32_t *again = PL_TAKE(arena, int32_t, larger);
    if (again == NULL) return false;
    for (int32_t i = 0; i < larger; i++)
      again[i] = i < draft->room ? draft->again[i] : PL_IR_NONE;
    draft->again = again;
    draft->room = larger;
  }
  draft->again[op] = forward_op;
  return true;
}

static int32_t kept(pl_draft *draft, int32_t value) {
  const pl_ir_value *is = &draft->differ.forward->values[value];
  int32_t made =
      pl_ir_op_typed(draft->pass->training, &draft->function, "kept", is->name, is->name, 0, NULL, &is->type, 0, NULL);
  int32_t from = is->op != PL_IR_NONE ? is->op : PL_DRAFT_ARGUMENT;
  return made != PL_IR_NONE && note_again(draft, draft->function.n_ops - 1, from) ? made : PL_IR_NONE;
}

enum { OPERANDS_MAX = 64 };

/* The op once more; what it reads is there, or kept. False: no memory. */
static bool append_again(pl_draft *draft, int32_t op_index) {
  const pl_ir_function *forward = draft->differ.forward;
  const pl_ir_op *op = &forward->ops[op_index];
  int32_t inputs[OPERANDS_MAX];
  const char *names[OPERANDS_MAX];
  pl_ir_type types[OPERANDS_MAX];
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX && op->n_outputs <= OPERANDS_MAX);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    inputs[i] = pl_ir_differ_value(&draft->differ, op->inputs[i]);
    if (inputs[i] == PL_IR_NONE) return false;
  }
  for (int32_t i = 0; i < op->n_outputs; i++) {
    names[i] = forward->values[op->first_output + i].name;
    types[i] = forward->values[op->first_output + i].type;
  }
  int32_t first = pl_ir_op_add(draft->pass->training, &draft->function,
                               &(pl_ir_making){.row = op->row,
                                               .n_inputs = op->n_inputs,
                                               .n_outputs = op->n_outputs,
                                               .n_attributes = op->n_attributes,
                                               .inputs = inputs,
                                               .attributes = op->attributes,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = op->path,
                                               .callee = PL_IR_NONE});
  if (first == PL_IR_NONE || !note_again(draft, draft->function.n_ops - 1, op_index)) return false;
  for (int32_t i = 0; i < op->n_outputs; i++)
    draft->differ.seen[op->first_output + i] = first + i;
  return true;
}

static bool is_there(const pl_draft *draft, int32_t op) {
  const pl_ir_op *is = &draft->differ.forward->ops[op];
  for (int32_t i = 0; i < is->n_outputs; i++)
    if (draft->differ.seen[is->first_output + i] == PL_IR_NONE) return false;
  return true;
}

/* What the op needs that is made again too comes first, in program order: O(ops). */
static bool make_again(pl_draft *draft, int32_t op_index) {
  const pl_ir_function *forward = draft->differ.forward;
  memset(draft->needed, 0, (size_t)forward->n_ops * sizeof *draft->needed);
  draft->needed[op_index] = true;
  for (int32_t i = op_index; i >= 0; i--)
    for (int32_t k = 0; draft->needed[i] && !is_there(draft, i) && k < forward->ops[i].n_inputs; k++) {
      int32_t maker = forward->values[forward->ops[i].inputs[k]].op;
      if (maker != PL_IR_NONE && draft->makes_again[maker]) draft->needed[maker] = true;
    }
  for (int32_t i = 0; i <= op_index; i++)
    if (draft->needed[i] && !is_there(draft, i) && !append_again(draft, i)) return false;
  return true;
}

/* What is computed behind a part that is made again keeps what it was given: it is outside of the checkpoint. */
static bool leaves_part(const pl_draft *draft, int32_t maker) {
  if (draft->pass->derived[draft->of].recompute != PL_RECOMPUTE_SELECTIVE || draft->deriving == PL_IR_NONE)
    return false;
  const pl_ir_op *op = &draft->differ.forward->ops[maker];
  bool reread = pl_backward_is_reread(&draft->pass->rows, op) || op->row == draft->pass->rows.rename;
  return !reread && !draft->makes_again[draft->deriving];
}

int32_t pl_recompute_see(pl_ir_differ *differ, int32_t value) {
  pl_draft *draft = (pl_draft *)differ->context;
  int32_t op = differ->forward->values[value].op;
  if (op == PL_IR_NONE || !draft->makes_again[op] || leaves_part(draft, op)) return kept(draft, value);
  return make_again(draft, op) ? draft->differ.seen[value] : PL_IR_NONE;
}

bool pl_recompute_part(pl_draft *draft, int32_t op) {
  const pl_ir_function *forward = draft->differ.forward;
  const pl_ir_op *is = &forward->ops[op];
  bool reread = pl_backward_is_reread(&draft->pass->rows, is) || is->row == draft->pass->rows.rename, leaves = false;
  if (draft->pass->derived[draft->of].recompute != PL_RECOMPUTE_SELECTIVE || !draft->makes_again[op] || reread)
    return true;
  for (int32_t i = op + 1; i < forward->n_ops; i++)
    for (int32_t k = 0; k < forward->ops[i].n_inputs; k++)
      leaves = leaves || (forward->ops[i].inputs[k] == is->first_output && !draft->makes_again[i]);
  if (!leaves) return true;
  for (int32_t i = 0; i < is->n_outputs; i++)
    draft->differ.seen[is->first_output + i] = PL_IR_NONE; /* what was kept is of those behind it */
  return make_again(draft, op);
}

static bool make_if_missing(pl_draft *draft, int32_t op) {
  return op == PL_IR_NONE || !draft->makes_again[op] || is_there(draft, op) || make_again(draft, op);
}

/* Behind the last product with weights. */
static bool ends_in_dropout(const pl_draft *draft) {
  const pl_ir_function *forward = draft->differ.forward;
  const int32_t product = pl_ir_row_of("product");
  bool drops = false;
  for (int32_t i = 0; i < forward->n_ops; i++) {
    drops = drops || forward->ops[i].row == draft->pass->rows.dropout;
    if (forward->ops[i].row == product && has_weight(forward, &forward->ops[i])) drops = false;
  }
  return drops;
}

/* A checkpoint that runs the block to its end makes its results. One that ends early, as `alternate` always does, runs
 * to the last tensor that was saved: masks of dropout are, though programs draw them anew, and where it keeps ops apart
 * those are of one kernel with the sum that is the result. */
bool pl_recompute_rest(pl_draft *draft) {
  const pl_ir_function *forward = draft->differ.forward;
  uint8_t what = draft->pass->derived[draft->of].recompute;
  bool full = what == PL_RECOMPUTE_FULL, fits = true;
  bool whole = full ? draft->pass->options->whole : ends_in_dropout(draft);
  if (!full && what != PL_RECOMPUTE_ALTERNATE) return true;
  for (int32_t i = 0; whole && fits && i < forward->n_results; i++)
    fits = make_if_missing(draft, forward->values[forward->results[i]].op);
  for (int32_t i = 0; full && !whole && fits && i < forward->n_ops; i++)
    if (forward->ops[i].row == draft->pass->rows.dropout) fits = make_if_missing(draft, i);
  return fits;
}
