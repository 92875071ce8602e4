/* Multi-head latent attention (DeepSeek-V2, section 2.1) in front of attention, as it stands in a function: keys are
 * the sum of their own numbers and of a rotated share that all heads have in common; queries, perhaps, and keys and
 * values come from a compressed form by an expanding product behind a norm.
 */
#ifndef PL_WORKLOADS_IR_LATENT_H
#define PL_WORKLOADS_IR_LATENT_H

#include "workloads/language/ir_module.h"

/* Ops; PL_IR_NONE: queries are not compressed. The class has one layer for keys and values, expanding, and one for the
 * compressed form and the rotated share. */
typedef struct pl_ir_latent {
  int32_t q, q_norm, q_down;
  int32_t k, v, kv_norm, kv_down, k_rotary;
} pl_ir_latent;

/* Whether queries, keys and values (pl_ir_core_operands) are made so. O(ops on the way). */
bool pl_ir_latent_find(const pl_ir_function *function, const int32_t operands[3], pl_ir_latent *found);

#endif
