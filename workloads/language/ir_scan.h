/* Recurrences along a sequence: their dimensions, told by who has them, and their values (ir_scan.c).
 *
 * state_space_scan (Dao and Gu 2024, section 3; "selective", since A, B and C differ from token to token): of each head
 * (g, r), with a state h [d, n] that is zero in front of the first token,
 *
 *   h = exp(step A) h + step x B',   y = h C + D x.
 *
 * delta_rule_scan (Yang, Kautz and Hatamizadeh 2024, equation 10): of each head (g, r), with a state S [d, e],
 *
 *   S = exp(decay) S,   delta = beta (v - S' k),   S = S + k delta',   y = S' q.
 *
 * The scan's dimension (`over`) is the sequence. Everything that `step` and `decay` have besides counts heads and
 * samples.
 */
#ifndef PL_WORKLOADS_IR_SCAN_H
#define PL_WORKLOADS_IR_SCAN_H

#include "workloads/language/ir_table.h"

typedef struct pl_ir_scan_dims {
  pl_ir_dim s;          /* the sequence */
  pl_ir_dim own;        /* d of a state space, e of a delta rule: what the answer has */
  pl_ir_dim state;      /* n of a state space, d of a delta rule: what is summed over */
  int32_t rate;         /* operand whose dimensions, but for s, count heads and samples: step, decay */
  int32_t n_before;     /* operands of the forward op */
  int64_t chunk;        /* tokens of a chunk, as the kernels take them; at most all */
  double heads, groups; /* rows of the scan, samples and tokens counted; those of what heads share */
} pl_ir_scan_dims;

/* Of the op or its derivative; the rest of an operand's shape is checked too. */
pl_code pl_ir_scan_dims_of(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_scan_dims *dims, pl_error *error);

/* A scan that is cut into chunks is products of matrices: `batch` of them, [m, k] x [k, n], `times` in all. Of a state
 * space (section 6 there), with Q tokens a chunk: C B' (once for the heads that share them), that times x, the state
 * that a chunk adds, and what the state in front of it gives. Of the delta rule (section 3.3): K K', its triangular
 * inverse (a third of a product), that times K and V, Q K' and that times what is written; what is known, what is asked
 * and what is written of the state. Backward two products for each, and once more what is made again. Returns how
 * many; 0: the op is none. */
typedef struct pl_ir_scan_product {
  int64_t batch, m, n, k;
  int32_t times;
} pl_ir_scan_product;
enum { PL_IR_SCAN_PRODUCTS_MAX = 9 };
int32_t pl_ir_scan_products(const pl_ir_op *op, const pl_ir_type *inputs,
                            pl_ir_scan_product products[PL_IR_SCAN_PRODUCTS_MAX]);
/* FLOPs of all of them. */
double pl_ir_scan_flops(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs);
/* What the chunks' states, in fp32, are written and read again: bytes of one device. */
double pl_ir_scan_state_bytes(const pl_ir_op *op, const pl_ir_type *inputs);

pl_code pl_ir_compute_state_space(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_state_space_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_delta_rule(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_delta_rule_backward(const pl_ir_computing *computing, pl_error *error);

#endif
