/* How much a program computes and touches: the domain of costs of its ops, before any framework fuses or copies. */
#ifndef PL_WORKLOADS_IR_WORK_H
#define PL_WORKLOADS_IR_WORK_H

#include "workloads/language/ir_table.h"

typedef struct pl_ir_work {
  double product_flops;   /* of `product`, convolutions and scans */
  double narrow_flops;    /* of these, in a narrow type of their own */
  double attention_flops; /* of attention and its derivative: pairs that the mask leaves */
  double other_flops;
  double bytes; /* operands read and results written, each op for itself */
} pl_ir_work;

/* FLOPs of an op on what one device of the mesh holds (the whole, without axes). */
double pl_ir_op_flops(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op);
/* Devices around which keys and values go, and rounds of it; 1: another op. */
int32_t pl_ir_ring_devices(const pl_ir_mesh *mesh, const pl_ir_op *op);
/* Bytes of its operands and results there. */
double pl_ir_op_bytes(const pl_ir_mesh *mesh, const pl_ir_function *function, const pl_ir_op *op);
/* Of products and attention what is narrow; 0: there are none. */
static inline double pl_ir_work_narrow_share(const pl_ir_work *work) {
  double all = work->product_flops + work->attention_flops;
  return all > 0 ? work->narrow_flops / all : 0;
}
/* Of a function on one device, through its calls; calls themselves cost nothing. */
pl_ir_work pl_ir_function_work(const pl_ir_module *module, int32_t function);

#endif
