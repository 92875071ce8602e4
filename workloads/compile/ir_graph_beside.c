/* See workloads/compile/ir_graph_state.h: collectives of the tensor group that run beside matrix products, where a
 * framework has them so (overlaps_tensor, overlaps_tensor_backward). As in blocks of tuples
 * (workloads/compile/pieces.h), of dense layers with sequence parallelism: what a collective gathers or scatters is
 * there behind the next product; and of a product whose output is scattered, forward, the collective begins with the
 * product, which hands it on piece by piece.
 */
#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_again.h"
#include "workloads/language/ir_layer.h"

static bool is_of_split(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  if (!own->overlaps_split || pl_ir_row_at(op->row)->effect != PL_IR_COLLECTIVE) return false;
  const bool *again = pl_ir_again_take_if_derived(f, own->arena);
  return again != NULL && pl_ir_is_derived(f) && pl_ir_is_of_split(own->module, f, again, op);
}

bool pl_ir_graph_runs_beside(const pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  if (!own->overlaps_tensor && !own->overlaps_split) return false;
  bool any = own->overlaps_tensor && (pl_ir_op_is(op, "all_gather") || pl_ir_op_is(op, "reduce_scatter"));
  if (!any && !is_of_split(own, f, op)) return false;
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  bool of_tensor_group = over != NULL && over->n_names > 0 && pl_ir_axis_is_of_tensors(over->names[0].text);
  if (!of_tensor_group || pl_ir_has_experts(f)) return false;
  const pl_ir_function *forward = pl_ir_forward_of(own->module, f->name);
  return pl_ir_is_layer(own->module, forward != NULL ? forward : f, own->arena);
}

pl_code pl_ir_graph_begin_beside(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                 pl_ir_arrival *values) {
  pl_ir_arrival *output = &values[op->first_output];
  if (output->began) return PL_OK; /* with its product */
  PL_TRY(pl_ir_graph_move(own, f, op, values));
  if (own->n_beside < PL_IR_BESIDE_MAX) own->beside[own->n_beside++] = output;
  return PL_OK;
}

/* The collective that takes what a product of a forward pass hands on, or the same made again; NULL: there is none. */
static const pl_ir_op *taken_by(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  if (op->n_outputs != 1 || pl_ir_graph_price(own, op)->kernel.category == PL_CATEGORY_BACKWARD) return NULL;
  const int32_t *readers = pl_ir_graph_readers(own, own->function);
  int32_t reader = readers != NULL ? readers[op->first_output] : PL_IR_NONE;
  if (reader < 0 || !pl_ir_op_is(&f->ops[reader], "reduce_scatter")) return NULL;
  const pl_ir_doing *doing = pl_ir_graph_doing(own, own->function);
  return doing != NULL && (doing->ops[reader] & PL_IR_DOES_BESIDE) != 0 ? &f->ops[reader] : NULL;
}

static bool is_beside(const pl_ir_graphing *own, const pl_ir_arrival *value) {
  for (uint32_t i = 0; i < own->n_beside; i++)
    if (own->beside[i] == value) return true;
  return false;
}

bool pl_ir_graph_is_product(pl_ir_graphing *own, const pl_ir_op *op) {
  if (!own->overlaps_tensor && !own->overlaps_split) return false;
  const pl_ir_price *price = op->n_inputs > 0 ? pl_ir_graph_price(own, op) : NULL;
  return price != NULL && price->computes && price->kernel.kind == PL_OP_GEMM;
}

pl_code pl_ir_graph_run_product(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op,
                                pl_ir_arrival *values) {
  const pl_ir_op *taken = taken_by(own, f, op);
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (!is_beside(own, &values[op->inputs[i]])) PL_TRY(pl_ir_graph_await(own, &values[op->inputs[i]]));
  if (taken != NULL) {
    const pl_ir_meeting meeting = pl_ir_graph_meeting_of(own, f, taken);
    PL_TRY(pl_ir_graph_flush(own));
    PL_TRY(pl_ir_graph_meet(own, &meeting, PL_IR_BEHIND_WORK, NULL, &values[taken->first_output]));
    values[taken->first_output].began = true;
  }
  if (!pl_ir_graph_compute(own, op)) return pl_ir_graph_no_memory(own);
  for (uint32_t i = 0; i < own->n_beside; i++)
    PL_TRY(pl_ir_graph_await(own, own->beside[i]));
  own->n_beside = 0;
  return taken != NULL ? pl_ir_graph_await(own, &values[taken->first_output]) : PL_OK;
}
