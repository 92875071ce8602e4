/* Values of softmax and normalisation (ir_rows_norm.c). */
#ifndef PL_WORKLOADS_IR_NORM_H
#define PL_WORKLOADS_IR_NORM_H

#include "workloads/language/ir_table.h"

pl_code pl_ir_compute_softmax(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_softmax_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_layer_norm(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_rms_norm(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_layer_norm_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_rms_norm_backward(const pl_ir_computing *computing, pl_error *error);

#endif
