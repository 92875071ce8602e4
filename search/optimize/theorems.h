/* When fusing pays, by dPRO's theorems 1 to 3 (Hu et al. 2022, section 5.1), as the search uses them to leave out what
 * cannot.
 *
 * All speak of two ops of computing n-1 and n, one behind the other, each of which makes a tensor, and of tensors that
 * are synchronised one after the other. p: time of an op, p_end: its end; q: time to synchronise a tensor, q_end: its
 * end. tests/property/theorems_test.c holds each to a replay of random steps where its assumptions hold, and shows that
 * the third's are needed:
 *
 *   1  where computing is what takes long (q_end of n-1 <= p_end of n) and both tensors then wait for the fused op;
 *   2  where communication does (q_end of n-1 >= p_end of n), the tensor before n-1 was through when n had been
 * computed, or one fused tensor takes no longer than the two do; 3  what is fused takes no longer than its parts do one
 * after the other, for ops and for tensors, and nobody else waits for op n-1 alone.
 */
#ifndef PL_SEARCH_THEOREMS_H
#define PL_SEARCH_THEOREMS_H

#include <stdbool.h>

#include "core/base/ticks.h"

/* Theorem 1: fusing ops n-1 and n does not delay the end. */
static inline bool pl_theorem_op_fusion(pl_ticks q_before, pl_ticks p_before, pl_ticks p, pl_ticks p_fused) {
  return q_before <= p_before + p - p_fused;
}

/* Theorem 2: fusing tensors n-1 and n ends earlier than one after the other. */
static inline bool pl_theorem_tensor_fusion(pl_ticks q_end_before, pl_ticks p_end, pl_ticks q_fused, pl_ticks q) {
  return q_end_before > p_end + q_fused - q;
}

#endif
