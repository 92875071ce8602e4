/* See workloads/tree/tree_planning.h: microbatches of inner nodes. What a node says divides what its parent runs on, at
 * any depth: modules that it matches and that stand one behind the other are a stretch, whose samples are dealt out in
 * front of it, run one piece after the other, and come together behind it. */
#include <inttypes.h>
#include <string.h>

#include "workloads/language/ir_piece.h"
#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_planning.h"

static const char *const samples = "b";

static int32_t node_of(const pl_tree_planning *own, int32_t module) {
  return own->calls[module].settings.node[PL_TREE_KEY_MICROBATCHES];
}

static bool says_pieces(const pl_tree_node *node) {
  return node->parent >= 0 && node->schedule.microbatches > 0;
}

/* Of the nodes that cut the module's samples, the one `depth` from the outermost; -1: there are fewer. */
static int32_t chain_at(const pl_tree_planning *own, int32_t module, int32_t depth) {
  int32_t chain[PL_TREE_DEPTH_MAX], n = 0;
  for (int32_t node = node_of(own, module); node > 0; node = pl_tree_node_at(own, node)->parent)
    if (says_pieces(pl_tree_node_at(own, node))) chain[n++] = node;
  return depth < n ? chain[n - 1 - depth] : -1;
}

int64_t pl_tree_pieces_of(const pl_tree_planning *own, int32_t module) {
  int64_t pieces = 1;
  for (int32_t node = node_of(own, module); node > 0; node = pl_tree_node_at(own, node)->parent)
    if (says_pieces(pl_tree_node_at(own, node))) pieces *= pl_tree_node_at(own, node)->schedule.microbatches;
  return pieces;
}

/* ---- whether a function can run on pieces ---- */

/* What is computed over all samples, or of one of them by its place, is another function of a piece. Sums are of a
 * loss, whose terms are added up. */
static bool is_over_samples(const pl_ir_op *op) {
  const pl_ir_name b = pl_ir_name_of(samples);
  if (pl_ir_op_is(op, "sum")) return false;
  for (int32_t i = 0; i < op->n_attributes; i++)
    for (int32_t k = 0; op->attributes[i].kind == PL_IR_NAMES && k < op->attributes[i].n_names; k++)
      if (pl_ir_name_equal(op->attributes[i].names[k], b)) return true;
  return false;
}

static bool draws(const pl_ir_op *op) {
  return pl_ir_real_of(op, "p", 0) > 0;
}

static pl_code check_op(const pl_tree_planning *own, int32_t module, int32_t op, pl_tree_place place) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  const pl_ir_op *at = &function->ops[op];
  char path[PL_TREE_PATH_BYTES];
  if (is_over_samples(at))
    return pl_tree_fail(place, own->error,
                        "%s (%s) goes over all samples of a microbatch: in pieces it would compute something else; "
                        "leave %s out, or say microbatches at the top of the tree",
                        pl_tree_op_path(own, module, op, path), pl_ir_row_at(at->row)->name,
                        own->plan->modules[module].name);
  const pl_ir_type *type = at->n_inputs > 0 ? &function->values[at->inputs[0]].type : NULL;
  if (draws(at) && (type->rank == 0 || !pl_ir_name_equal(type->dims[0].name, pl_ir_name_of(samples))))
    return pl_tree_fail(place, own->error,
                        "%s drops elements of a value whose samples do not come first: %s cannot "
                        "run in pieces",
                        pl_tree_op_path(own, module, op, path), own->plan->modules[module].name);
  return PL_OK;
}

/* Values that come in and go out have samples, of which pieces have theirs. */
static pl_code check_border(const pl_tree_planning *own, int32_t module, pl_tree_place place) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  for (int32_t i = 0; i < function->n_arguments + function->n_results; i++) {
    bool in = i < function->n_arguments;
    const pl_ir_value *value = &function->values[in ? i : function->results[i - function->n_arguments]];
    if (pl_ir_type_find(&value->type, pl_ir_name_of(samples)) >= 0) continue;
    return pl_tree_fail(place, own->error, "%s %s %%%s, which has no dimension b: it cannot run in pieces",
                        own->plan->modules[module].name, in ? "takes" : "gives", value->name);
  }
  return PL_OK;
}

/* Whole samples in each piece. */
static pl_code check_extents(const pl_tree_planning *own, int32_t module, pl_tree_place place) {
  const pl_ir_function *function = pl_tree_callee(own, module);
  int64_t pieces = pl_tree_pieces_of(own, module);
  for (int32_t i = 0; i < function->n_values; i++) {
    int32_t at = pl_ir_type_find(&function->values[i].type, pl_ir_name_of(samples));
    int64_t extent = at >= 0 ? function->values[i].type.dims[at].extent : 0;
    if (extent % pieces == 0) continue;
    return pl_tree_fail(place, own->error,
                        "%" PRId64 " microbatches%s do not divide the %" PRId64 " samples that %s runs on", pieces,
                        pl_tree_node_at(own, node_of(own, module))->schedule.microbatches < pieces
                            ? ", of this node and those around it,"
                            : "",
                        extent, own->plan->modules[module].name);
  }
  return PL_OK;
}

static pl_code check_module(const pl_tree_planning *own, int32_t module) {
  const pl_tree_schedule *said = &pl_tree_node_at(own, node_of(own, module))->schedule;
  if (said->microbatches > PL_IR_PIECES_MAX)
    return pl_tree_fail(said->microbatches_at, own->error, "%" PRId64 " microbatches of a child: at most %d",
                        said->microbatches, PL_IR_PIECES_MAX);
  for (int32_t i = 0; i < pl_tree_callee(own, module)->n_ops; i++)
    PL_TRY(check_op(own, module, i, said->microbatches_at));
  PL_TRY(check_border(own, module, said->microbatches_at));
  return check_extents(own, module, said->microbatches_at);
}

pl_code pl_tree_check_pieces(const pl_tree_planning *own) {
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    if (node_of(own, i) > 0) PL_TRY(check_module(own, i));
  return PL_OK;
}

/* ---- functions ---- */

pl_code pl_tree_cut_function(const pl_tree_planning *own, int32_t module, int64_t pieces, pl_ir_function *made) {
  const pl_ir_function *from = pl_tree_callee(own, module);
  made->values = PL_TAKE(own->arena, pl_ir_value, from->n_values + 1);
  if (made->values == NULL) return pl_fail_memory(own->error, "a strategy tree");
  made->room_values = 0;
  for (int32_t i = 0; i < from->n_values; i++) {
    made->values[i] = from->values[i];
    int32_t at = pl_ir_type_find(&from->values[i].type, pl_ir_name_of(samples));
    if (at >= 0) made->values[i].type.dims[at].extent /= pieces;
  }
  return PL_OK;
}

/* ---- @main ---- */

/* Writes ops of @main from `first` to `last`, `depth` nodes deep. */
typedef struct writing {
  const pl_tree_planning *own;
  const int32_t *callees;
  pl_ir_module *module;
  pl_ir_function *to;
  int32_t *modules; /* per op of @main: what it calls, or belongs to: the next module */
  int32_t *of_op;   /* per op of `to` */
  uint32_t room;
} writing;

/* Values of @main as the ops at hand read them; with the piece that they run on. */
typedef struct scope {
  int32_t *values; /* per value of @main; PL_IR_NONE: not yet here */
  pl_ir_piece piece;
} scope;

static bool note_op(writing *w, int32_t module) {
  int32_t n = w->to->n_ops - 1;
  w->of_op = (int32_t *)pl_arena_grown(w->own->arena, w->of_op, (uint32_t)n, 1, sizeof *w->of_op, &w->room);
  if (w->of_op == NULL) return false;
  w->of_op[n] = module;
  return true;
}

static pl_code no_memory(const writing *w) {
  return pl_fail_memory(w->own->error, "a strategy tree");
}

static pl_code write_op(writing *w, int32_t index, scope *in) {
  const pl_ir_function *main = w->own->main;
  const pl_ir_op *op = &main->ops[index];
  int32_t inputs[PL_IR_OPERANDS_MAX], n = op->n_attributes;
  const char *names[PL_IR_OPERANDS_MAX];
  pl_ir_type types[PL_IR_OPERANDS_MAX];
  pl_ir_attribute attributes[PL_IR_ATTRIBUTES_MAX + 2];
  bool calls = op->callee != PL_IR_NONE;
  const pl_ir_function *callee = calls ? w->own->plan->program.functions[w->callees[w->modules[index]]] : NULL;
  for (int32_t i = 0; i < op->n_inputs; i++)
    inputs[i] = in->values[op->inputs[i]];
  for (int32_t i = 0; i < op->n_outputs; i++) {
    names[i] = main->values[op->first_output + i].name;
    types[i] = calls ? callee->values[callee->results[i]].type : main->values[op->first_output + i].type;
  }
  for (int32_t i = 0; i < n; i++)
    attributes[i] = op->attributes[i];
  if (in->piece.of > 1 && calls) {
    attributes[n++] = pl_ir_integer(PL_IR_PIECE, in->piece.index);
    attributes[n++] = pl_ir_integer(PL_IR_PIECES, in->piece.of);
  }
  int32_t first = pl_ir_op_add(w->module, w->to,
                               &(pl_ir_making){.row = op->row,
                                               .n_inputs = op->n_inputs,
                                               .n_outputs = op->n_outputs,
                                               .n_attributes = n,
                                               .inputs = inputs,
                                               .attributes = attributes,
                                               .output_names = names,
                                               .output_types = types,
                                               .path = op->path,
                                               .reason = op->reason,
                                               .origin = op->origin,
                                               .callee = calls ? w->callees[w->modules[index]] : PL_IR_NONE,
                                               .place = op->place});
  if (w->own->arena->failed) return no_memory(w);
  for (int32_t i = 0; i < op->n_outputs; i++)
    in->values[op->first_output + i] = first + i;
  return note_op(w, w->modules[index]) ? PL_OK : no_memory(w);
}

/* What a stretch reads from outside, dealt out; `first` and `last` are ops of @main. */
static pl_code deal_out(writing *w, int32_t first, int32_t last, int64_t n, const scope *outer, scope *inner) {
  const pl_ir_function *main = w->own->main;
  const pl_ir_name b = pl_ir_name_of(samples);
  const pl_ir_attribute over = pl_ir_names("over", 1, &b);
  for (int32_t i = first; i <= last; i++)
    for (int32_t k = 0; k < main->ops[i].n_inputs; k++) {
      int32_t value = main->ops[i].inputs[k], maker = main->values[value].op;
      if (maker >= first || inner[0].values[value] != PL_IR_NONE) continue;
      const char *names[PL_IR_PIECES_MAX];
      pl_ir_type types[PL_IR_PIECES_MAX], type = w->to->values[outer->values[value]].type;
      type.dims[pl_ir_type_find(&type, b)].extent /= n;
      for (int32_t p = 0; p < n; p++) {
        names[p] = main->values[value].name;
        types[p] = type;
      }
      int32_t made = pl_ir_op_add(w->module, w->to,
                                  &(pl_ir_making){.row = pl_ir_row_of("deal"),
                                                  .n_inputs = 1,
                                                  .n_outputs = (int32_t)n,
                                                  .n_attributes = 1,
                                                  .inputs = &outer->values[value],
                                                  .attributes = &over,
                                                  .output_names = names,
                                                  .output_types = types,
                                                  .reason = "the microbatches of an inner node",
                                                  .callee = PL_IR_NONE});
      if (made == PL_IR_NONE || !note_op(w, w->modules[i])) return no_memory(w);
      for (int32_t p = 0; p < n; p++)
        inner[p].values[value] = made + p;
    }
  return PL_OK;
}

static bool is_read_behind(const pl_ir_function *main, int32_t last, int32_t value) {
  for (int32_t i = last + 1; i < main->n_ops; i++)
    for (int32_t k = 0; k < main->ops[i].n_inputs; k++)
      if (main->ops[i].inputs[k] == value) return true;
  for (int32_t i = 0; i < main->n_results; i++)
    if (main->results[i] == value) return true;
  return false;
}

/* What is read behind a stretch comes together. */
static pl_code bring_together(writing *w, int32_t first, int32_t last, int64_t n, scope *outer, const scope *inner) {
  const pl_ir_function *main = w->own->main;
  const pl_ir_name b = pl_ir_name_of(samples);
  const pl_ir_attribute over = pl_ir_names("over", 1, &b);
  for (int32_t i = first; i <= last; i++)
    for (int32_t k = 0; k < main->ops[i].n_outputs; k++) {
      int32_t value = main->ops[i].first_output + k, pieces[PL_IR_PIECES_MAX];
      if (!is_read_behind(main, last, value)) continue;
      for (int32_t p = 0; p < n; p++)
        pieces[p] = inner[p].values[value];
      pl_ir_type type = w->to->values[pieces[0]].type;
      type.dims[pl_ir_type_find(&type, b)].extent *= n;
      outer->values[value] = pl_ir_op_add(w->module, w->to,
                                          &(pl_ir_making){.row = pl_ir_row_of("interleave"),
                                                          .n_inputs = (int32_t)n,
                                                          .n_outputs = 1,
                                                          .n_attributes = 1,
                                                          .inputs = pieces,
                                                          .attributes = &over,
                                                          .output_names = &main->values[value].name,
                                                          .output_types = &type,
                                                          .reason = "the microbatches of an inner node",
                                                          .callee = PL_IR_NONE});
      if (outer->values[value] == PL_IR_NONE || !note_op(w, w->modules[i])) return no_memory(w);
    }
  return PL_OK;
}

static pl_code write_stretch(writing *w, int32_t first, int32_t last, int32_t depth, int32_t node, scope *outer);

/* Ops `first` to `last`, stretches of which have a node `depth` deep. */
static pl_code write_ops(writing *w, int32_t first, int32_t last, int32_t depth, scope *in) {
  for (int32_t i = first; i <= last;) {
    int32_t node = chain_at(w->own, w->modules[i], depth), end = i;
    while (end < last && chain_at(w->own, w->modules[end + 1], depth) == node)
      end++;
    if (node >= 0) PL_TRY(write_stretch(w, i, end, depth, node, in));
    for (int32_t k = i; k <= end && node < 0; k++)
      PL_TRY(write_op(w, k, in));
    i = end + 1;
  }
  return PL_OK;
}

static pl_code take_scopes(const writing *w, int64_t n, const scope *outer, scope **inner) {
  *inner = PL_TAKE(w->own->scratch, scope, n);
  if (*inner == NULL) return no_memory(w);
  for (int64_t p = 0; p < n; p++) {
    scope *of = &(*inner)[p];
    of->piece = (pl_ir_piece){.index = p * outer->piece.of + outer->piece.index, .of = n * outer->piece.of};
    of->values = PL_TAKE(w->own->scratch, int32_t, w->own->main->n_values + 1);
    if (of->values == NULL) return no_memory(w);
    for (int32_t i = 0; i < w->own->main->n_values; i++)
      of->values[i] = PL_IR_NONE;
  }
  return PL_OK;
}

static pl_code write_stretch(writing *w, int32_t first, int32_t last, int32_t depth, int32_t node, scope *outer) {
  const pl_tree_schedule *said = &pl_tree_node_at(w->own, node)->schedule;
  int64_t n = said->microbatches;
  scope *inner;
  PL_TRY(take_scopes(w, n, outer, &inner));
  PL_TRY(deal_out(w, first, last, n, outer, inner));
  bool by_module = said->kind == PL_SCHEDULE_BREADTH_FIRST;
  for (int32_t i = first; by_module && i <= last; i++)
    for (int64_t p = 0; p < n; p++)
      PL_TRY(write_ops(w, i, i, depth + 1, &inner[p]));
  for (int64_t p = 0; !by_module && p < n; p++)
    PL_TRY(write_ops(w, first, last, depth + 1, &inner[p]));
  return bring_together(w, first, last, n, outer, inner);
}

/* Ops that are no calls belong to the module behind them, the last to the last. */
static bool take_modules(writing *w) {
  const pl_ir_function *main = w->own->main;
  int32_t module = 0, n = w->own->plan->n_modules;
  w->modules = PL_TAKE(w->own->scratch, int32_t, main->n_ops + 1);
  for (int32_t i = 0; w->modules != NULL && i < main->n_ops; i++) {
    w->modules[i] = module < n ? module : n - 1;
    module += main->ops[i].callee != PL_IR_NONE;
  }
  return w->modules != NULL;
}

pl_code pl_tree_write_pieces(const pl_tree_planning *own, const int32_t *callees, pl_ir_function *to,
                             int32_t **module_of) {
  writing w = {.own = own, .callees = callees, .module = &own->plan->program, .to = to};
  scope whole = {.values = PL_TAKE(own->scratch, int32_t, own->main->n_values + 1), .piece = {0, 1}};
  if (whole.values == NULL || !take_modules(&w)) return no_memory(&w);
  for (int32_t i = 0; i < own->main->n_arguments; i++)
    whole.values[i] = pl_ir_argument(w.module, to, own->main->values[i].name, &own->main->values[i].type);
  PL_TRY(write_ops(&w, 0, own->main->n_ops - 1, 0, &whole));
  int32_t *results = PL_TAKE(own->scratch, int32_t, own->main->n_results + 1);
  for (int32_t i = 0; results != NULL && i < own->main->n_results; i++)
    results[i] = whole.values[own->main->results[i]];
  if (results != NULL) pl_ir_results_set(w.module, to, own->main->n_results, results);
  *module_of = w.of_op;
  return results == NULL || own->arena->failed ? no_memory(&w) : PL_OK;
}
