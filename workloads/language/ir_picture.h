/* Values of convolutions and pooling (ir_rows_picture.c). */
#ifndef PL_WORKLOADS_IR_PICTURE_H
#define PL_WORKLOADS_IR_PICTURE_H

#include "workloads/language/ir_table.h"

pl_code pl_ir_compute_convolution(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_convolution_backward_data(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_convolution_backward_weights(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_max_pool(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_max_pool_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_average_pool(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_average_pool_backward(const pl_ir_computing *computing, pl_error *error);

#endif
