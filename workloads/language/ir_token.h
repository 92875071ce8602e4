/* Values of ops of tokens (ir_rows_token.c): the functions that compute them. */
#ifndef PL_WORKLOADS_IR_TOKEN_H
#define PL_WORKLOADS_IR_TOKEN_H

#include "workloads/language/ir_table.h"

pl_code pl_ir_compute_embedding(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_embedding_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_rotary(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_pick(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_place(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_top_k(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_top_k_backward(const pl_ir_computing *computing, pl_error *error);

/* Elements that rotary turns, of `extent`: the share of them, rounded. */
int64_t pl_ir_rotary_turned(const pl_ir_op *op, int64_t extent);

#endif
