/* What exporters take apart is put together again: norms, gelu, silu and attention are ops of the language, and kernels
 * of every framework, while files have the nine nodes that a definition of them has.
 */
#ifndef PL_WORKLOADS_ONNX_MATCH_H
#define PL_WORKLOADS_ONNX_MATCH_H

#include "workloads/onnx/onnx_infer.h"

typedef enum pl_match_kind {
  PL_MATCH_NONE = 0,
  PL_MATCH_LAYER_NORM, /* x, scale, shift */
  PL_MATCH_RMS_NORM,   /* x, scale */
  PL_MATCH_GELU,       /* x; with tanh */
  PL_MATCH_EXACT_GELU, /* x; with erf */
  PL_MATCH_SILU,       /* x */
  PL_MATCH_ROTARY,     /* x [..., s, d]: pairs (i, i + d/2) turned by place * base^(-2 i / d) */
  PL_MATCH_ATTENTION   /* queries [..., s, d], keys [..., d, t], values [..., t, e] */
} pl_match_kind;

/* What the first output of a node is. */
typedef struct pl_match {
  pl_match_kind kind;
  int32_t in[3]; /* values */
  int32_t n_in;
  double number; /* epsilon; base of frequencies; scale of scores */
  bool causal;
} pl_match;

/* By node; memory from `arena`. O(nodes), and the masks' elements. */
pl_code pl_onnx_match(const pl_onnx_inference *inference, pl_arena *arena, pl_match **matches, pl_error *error);

#endif
