/* What an op of a program launches, and what that moves: its ops, the values at their border, and what goes to and from
 * memory (workloads/cost/ir_kernel.h says what kernel it is, and what that takes). */
#ifndef PL_WORKLOADS_IR_LAUNCH_H
#define PL_WORKLOADS_IR_LAUNCH_H

#include "workloads/framework/framework.h"
#include "workloads/language/ir_routing.h"
#include "workloads/language/ir_table.h"

/* Ops that are launched at once, and the values at their border. */
typedef struct pl_ir_launch {
  const pl_ir_mesh *mesh;
  const pl_ir_routing *routing;
  const pl_ir_function *f; /* that they are ops of */
  const pl_ir_op *ops;
  int32_t n_ops, n_inputs, n_outputs;
  int32_t inputs[PL_IR_OPERANDS_MAX];
  int32_t results[PL_IR_OPERANDS_MAX];
} pl_ir_launch;

static inline const pl_ir_type *pl_ir_launch_type(const pl_ir_launch *own, int32_t value) {
  return &own->f->values[value].type;
}

/* What the device has of it. */
static inline pl_ir_type pl_ir_launch_local(const pl_ir_launch *own, int32_t value) {
  const pl_ir_type part = pl_ir_type_local(own->mesh, pl_ir_launch_type(own, value));
  return pl_ir_routed_part(own->routing, &part);
}

static inline double pl_ir_launch_share(const pl_ir_launch *own, int32_t value) {
  return pl_ir_routed_share(own->routing, pl_ir_launch_type(own, value));
}

static inline double pl_ir_launch_bytes(const pl_ir_launch *own, int32_t value) {
  const pl_ir_type *type = pl_ir_launch_type(own, value);
  return type->element == PL_IR_I32 ? 0 : pl_ir_type_local_bytes(own->mesh, type) * pl_ir_launch_share(own, value);
}

static inline double pl_ir_launch_elements(const pl_ir_launch *own, int32_t value) {
  return pl_ir_type_local_elements(own->mesh, pl_ir_launch_type(own, value)) * pl_ir_launch_share(own, value);
}

/* The first op of a row; NULL: none. */
static inline const pl_ir_op *pl_ir_launch_find(const pl_ir_launch *own, const char *row) {
  for (int32_t i = 0; i < own->n_ops; i++)
    if (pl_ir_op_is(&own->ops[i], row)) return &own->ops[i];
  return NULL;
}

/* The first op that launches this by itself; NULL: none. */
static inline const pl_ir_op *pl_ir_launch_find_kind(const pl_ir_launch *own, pl_ir_launches launches) {
  for (int32_t i = 0; i < own->n_ops; i++)
    if (pl_ir_row_at(own->ops[i].row)->launches == launches) return &own->ops[i];
  return NULL;
}

pl_ir_launch pl_ir_launch_of(const pl_ir_module *module, const pl_ir_routing *routing, const pl_ir_function *function,
                             const pl_ir_op *op);
/* Bytes that it reads and writes, as ir_kernel.h says; under autocast those of its type (pl_ir_element) are wider. */
double pl_ir_launch_moves(const pl_ir_launch *launch, const pl_framework *framework, uint8_t element);
/* Whether nothing is launched: views, reads of state, what others move. */
bool pl_ir_launch_is_nothing(const pl_ir_launch *launch);

#endif
