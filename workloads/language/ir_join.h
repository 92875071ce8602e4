/* Values of concatenate, deal, interleave, split, join and triangle (ir_rows_join.c). */
#ifndef PL_WORKLOADS_IR_JOIN_H
#define PL_WORKLOADS_IR_JOIN_H

#include "workloads/language/ir_table.h"

pl_code pl_ir_compute_concatenate(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_deal(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_interleave(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_split(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_join(const pl_ir_computing *computing, pl_error *error);
/* Of triangle and of triangle_backward. */
pl_code pl_ir_compute_triangle(const pl_ir_computing *computing, pl_error *error);

#endif
