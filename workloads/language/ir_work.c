/* See workloads/language/ir_work.h. */
#include "workloads/language/ir_work.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_product.h"
#include "workloads/language/ir_routing.h"

enum { OPERANDS_MAX = 64 };

int32_t pl_ir_ring_devices(const pl_ir_mesh *mesh, const pl_ir_op *op) {
  int32_t n = 1;
  if (!pl_ir_row_is_ring(pl_ir_row_at(op->row))) return 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) n *= mesh->axes[axis].extent;
  return n;
}

/* A device's part, but all of the sequence that goes around: of it a window leaves what it leaves of no share. */
static pl_ir_type around(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *type) {
  pl_ir_type own = *type;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name) && own.on[axis] >= 0) own.on[axis] = PL_IR_SAME;
  return pl_ir_type_local(mesh, &own);
}

double pl_ir_op_flops(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  pl_ir_type inputs[OPERANDS_MAX], outputs[OPERANDS_MAX];
  double n = 0, ring = pl_ir_ring_devices(mesh, op); /* of whom a step has a share of queries and one of keys each */
  if (row->effect == PL_IR_CALLS) return 0;
  PL_ASSERT(op->n_inputs <= OPERANDS_MAX && op->n_outputs <= OPERANDS_MAX);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    const pl_ir_type *type = &function->values[op->inputs[i]].type;
    inputs[i] = pl_ir_row_is_ring(row) ? around(mesh, op, type) : pl_ir_type_local(mesh, type);
  }
  for (int32_t i = 0; i < op->n_outputs; i++) {
    outputs[i] = pl_ir_type_local(mesh, &function->values[op->first_output + i].type);
    n += pl_ir_type_elements(&outputs[i]);
  }
  return row->flops != NULL ? row->flops(op, inputs, outputs) / (ring * ring) : n;
}

double pl_ir_op_bytes(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op) {
  double bytes = 0;
  if (pl_ir_row_at(op->row)->effect == PL_IR_CALLS) return 0;
  for (int32_t i = 0; i < op->n_inputs; i++)
    bytes += pl_ir_type_local_bytes(mesh, &function->values[op->inputs[i]].type);
  for (int32_t i = 0; i < op->n_outputs; i++)
    bytes += pl_ir_type_local_bytes(mesh, &function->values[op->first_output + i].type);
  return bytes;
}

static void add(pl_ir_work *to, const pl_ir_work *more) {
  to->product_flops += more->product_flops;
  to->narrow_flops += more->narrow_flops;
  to->attention_flops += more->attention_flops;
  to->other_flops += more->other_flops;
  to->bytes += more->bytes;
}

static double share_of(const pl_ir_routing *routing, const pl_ir_function *function, const pl_ir_op *op) {
  double share = 1;
  for (int32_t i = 0; i < op->n_inputs; i++)
    share = fmin(share, pl_ir_routed_share(routing, &function->values[op->inputs[i]].type));
  for (int32_t i = 0; i < op->n_outputs; i++)
    share = fmin(share, pl_ir_routed_share(routing, &function->values[op->first_output + i].type));
  return share;
}

static pl_ir_work work_of(const pl_ir_module *module, const pl_ir_routing *routing, int32_t index) {
  const pl_ir_function *function = module->functions[index];
  pl_ir_work work = {0};
  for (int32_t i = 0; i < function->n_ops; i++) {
    const pl_ir_op *op = &function->ops[i];
    if (op->callee != PL_IR_NONE) {
      const pl_ir_work called = work_of(module, routing, op->callee);
      add(&work, &called);
      continue;
    }
    const char *row = pl_ir_row_at(op->row)->name;
    double flops = pl_ir_op_flops(&module->mesh, function, op) * share_of(routing, function, op);
    bool is_attention = strcmp(row, "attention") == 0 || strcmp(row, "attention_backward") == 0;
    bool is_product = strcmp(row, "product") == 0 || strncmp(row, "convolution", strlen("convolution")) == 0 ||
                      strstr(row, "_scan") != NULL;
    *(is_product ? &work.product_flops : is_attention ? &work.attention_flops : &work.other_flops) += flops;
    if (pl_ir_attribute_find(op, PL_IR_PRODUCT_NARROW) != NULL) work.narrow_flops += flops;
    work.bytes += pl_ir_op_bytes(&module->mesh, function, op);
  }
  return work;
}

pl_ir_work pl_ir_function_work(const pl_ir_module *module, int32_t function) {
  const pl_ir_routing routing = pl_ir_routing_even(module);
  return work_of(module, &routing, function);
}
