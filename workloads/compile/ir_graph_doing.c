/* See workloads/compile/ir_graph_state.h: what the ops of a function do in a graph, read from their names once, and the
 * instances that a call is in, put together where somebody asks. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_place.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

bool pl_ir_graph_gathers_param(const pl_ir_function *f, const pl_ir_op *op) {
  if (!is(op, "all_gather")) return false;
  int32_t maker = f->values[op->inputs[0]].op;
  return maker != PL_IR_NONE && is(&f->ops[maker], "param");
}

bool pl_ir_graph_stays_whole(const pl_framework *framework, const pl_ir_function *f, const pl_ir_op *op) {
  return framework->gathers.gather_unit == PL_GATHER_TENSOR && pl_ir_graph_gathers_param(f, op) &&
         f->values[op->inputs[0]].type.rank < 2;
}

/* Of a kernel by the ops in it. */
static uint16_t doing_of_kernel(const pl_ir_graphing *own, const pl_ir_op *op) {
  const pl_ir_function *f = own->module->functions[op->callee];
  bool adds = false, only = op->n_outputs == 0 && op->n_inputs > 0;
  for (int32_t i = 0; i < f->n_ops; i++) {
    bool is_sum = is(&f->ops[i], "accumulate");
    adds = adds || is_sum;
    only = only && (is_sum || is(&f->ops[i], "cast"));
  }
  return (uint16_t)((adds ? PL_IR_DOES_ADD : 0) | (only ? PL_IR_DOES_ONLY_ADD : 0));
}

static uint16_t doing_of(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  if (op->row == own->kernel) return doing_of_kernel(own, op);
  if (pl_ir_row_at(op->row)->effect == PL_IR_CALLS) return PL_IR_DOES_CALL;
  uint16_t does = 0;
  if (pl_ir_graph_moves(op)) does |= PL_IR_DOES_MOVE;
  if (pl_ir_graph_is_offloaded(f, op)) does |= PL_IR_DOES_OFFLOAD;
  if (is(op, "gradient")) does |= PL_IR_DOES_READ_GRADIENT;
  if (is(op, "store")) does |= PL_IR_DOES_STORE;
  if (is(op, "accumulate")) does |= PL_IR_DOES_ADD | PL_IR_DOES_ONLY_ADD;
  if (is(op, "reduce_scatter")) does |= PL_IR_DOES_REDUCE_SCATTER;
  if (is(op, "all_gather")) does |= PL_IR_DOES_ALL_GATHER;
  if (pl_ir_graph_runs_beside(own, f, op)) does |= PL_IR_DOES_BESIDE;
  return does;
}

/* What is gathered for a function. */
static void note_unit(const pl_ir_graphing *own, const pl_ir_function *f, pl_ir_doing *doing) {
  bool layers = own->framework->gathers.gather_unit == PL_GATHER_LAYER;
  size_t length = strlen(f->name), end = strlen(".backward");
  bool backward = layers && length > end && strcmp(f->name + length - end, ".backward") == 0;
  const pl_ir_function *forward = backward ? pl_ir_forward_of(own->module, f->name) : NULL;
  doing->unit = forward != NULL ? forward : f;
  for (int32_t i = 0; i < doing->unit->n_ops; i++) {
    const pl_ir_op *op = &doing->unit->ops[i];
    bool gathers = pl_ir_graph_gathers_param(doing->unit, op);
    doing->gathers_params = doing->gathers_params || gathers;
    doing->gathers_matrices = doing->gathers_matrices || (gathers && doing->unit->values[op->inputs[0]].type.rank > 1);
  }
}

const pl_ir_doing *pl_ir_graph_doing(pl_ir_graphing *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  pl_ir_doing *made = &own->doings[function];
  if (made->ops != NULL) return made;
  made->ops = PL_TAKE(own->arena, uint16_t, f->n_ops + 1);
  if (made->ops == NULL) return NULL;
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    made->ops[i] = doing_of(own, f, op);
    made->reads_gathered = made->reads_gathered || pl_ir_graph_gathers_param(f, op);
    made->keeps_in_host = made->keeps_in_host || (is(op, "keep") && pl_ir_op_is_in_host(op));
    made->reads_from_host = made->reads_from_host || (is(op, "kept") && pl_ir_op_is_in_host(op));
  }
  note_unit(own, f, made);
  return made;
}

enum { NOBODY = -1, SEVERAL = -2 };

const int32_t *pl_ir_graph_readers(pl_ir_graphing *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  pl_ir_doing *doing = &own->doings[function];
  if (doing->readers != NULL) return doing->readers;
  doing->readers = PL_TAKE(own->arena, int32_t, f->n_values + 1);
  if (doing->readers == NULL) return NULL;
  for (int32_t v = 0; v < f->n_values; v++)
    doing->readers[v] = NOBODY;
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; k < f->ops[i].n_inputs; k++) {
      int32_t *reader = &doing->readers[f->ops[i].inputs[k]];
      *reader = *reader == NOBODY ? i : SEVERAL;
    }
  return doing->readers;
}

const pl_ir_op *pl_ir_graph_reader_of(pl_ir_graphing *own, const pl_ir_function *f, int32_t value) {
  const int32_t *readers = pl_ir_graph_readers(own, own->function);
  for (int32_t i = 0; i < f->n_results; i++)
    if (f->results[i] == value) return NULL;
  return readers != NULL && readers[value] >= 0 ? &f->ops[readers[value]] : NULL;
}

const char *pl_ir_graph_join(pl_ir_graphing *own, const char *outer, const char *inner) {
  if (outer[0] == 0) return inner;
  if (inner[0] == 0) return outer;
  size_t n_outer = strlen(outer), n_inner = strlen(inner);
  char *text = pl_arena_take(own->arena, n_outer + 1 + n_inner + 1, 1);
  if (text == NULL) return NULL;
  memcpy(text, outer, n_outer);
  text[n_outer] = '.';
  memcpy(text + n_outer + 1, inner, n_inner);
  text[n_outer + 1 + n_inner] = 0;
  return text;
}

const char *pl_ir_graph_prefix(pl_ir_graphing *own, pl_ir_prefix *prefix) {
  if (prefix == NULL) return "";
  if (prefix->text != NULL) return prefix->text;
  prefix->text = pl_ir_graph_join(own, pl_ir_graph_prefix(own, prefix->outer), prefix->segment);
  return prefix->text != NULL ? prefix->text : ""; /* the arena knows */
}

const char *pl_ir_graph_path(pl_ir_graphing *own, const char *path) {
  return pl_ir_graph_join(own, pl_ir_graph_prefix(own, own->prefix), path);
}
