/* Attention: what the dimensions of its operands are to it, and the functions that compute it.
 *
 *   S[s, t] = scale sum over d of q[s, d] k[t, d],  where s may see t     l[s] = log sum over t of exp S[s, t]
 *   P[s, t] = exp(S[s, t] - l[s])                                         y[s, e] = sum over t of P[s, t] v[t, e]
 *
 * and backward, from the final y and l (Dao 2023, algorithm 2): D[s] = sum over e of dy y, dP = dy v, dS = P (dP - D),
 * dq = scale dS k, dk = scale dS^T q, dv = P^T dy. With dropout P is multiplied by its mask behind the softmax; D
 * stays.
 *
 * With `alibi` a head's scores are less by its slope for every position that the key is away (Press et al. 2022).
 *
 * Every term belongs to one pair (s, t) once y and l are final. So the backward pass of a PIECE of the keys, given the
 * y and l of all of them, is this same function: its dk and dv are those of the piece, and the dq of all pieces add up.
 *
 * Pieces. With `blocks` n, s and t are n equal blocks each and queries of block i see keys of block i alone. A ring
 * over a context axis of n devices is n such calls: keys, values and their positions move on by `shift` (of a value
 * that is cut on t: the whole value rolled by a block), attention_merge joins the answers. In these calls s and t may
 * both be cut over the same axes, which no other attention allows.
 */
#ifndef PL_WORKLOADS_IR_ATTENTION_H
#define PL_WORKLOADS_IR_ATTENTION_H

#include "workloads/language/ir_table.h"

/* Dimensions by who has them. */
typedef struct pl_ir_attention_dims {
  int32_t n_batch, n_rows;
  pl_ir_dim batch[PL_IR_RANK_MAX]; /* of q, k and v, in q's order: b, g */
  pl_ir_dim rows[PL_IR_RANK_MAX];  /* of q alone: s, r */
  pl_ir_dim t, d, e;               /* of k and v; of q and k; of v alone */
  bool has_positions;
  pl_ir_dim s; /* with positions: the row dimension that they are of */
} pl_ir_attention_dims;

/* Of operands q, k, v and, if any, positions of s and of t. */
pl_code pl_ir_attention_dims_of(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_attention_dims *dims,
                                pl_error *error);
/* Operands q, k, v and positions: 3 or 5. */
int32_t pl_ir_attention_n_before(const pl_ir_op *op);

pl_code pl_ir_compute_attention(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_attention_backward(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_attention_merge(const pl_ir_computing *computing, pl_error *error);
pl_code pl_ir_compute_attention_merge_backward(const pl_ir_computing *computing, pl_error *error);

#endif
