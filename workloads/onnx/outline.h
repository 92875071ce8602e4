/* From one long function to functions that are called: what repeats becomes a layer. The function is cut where a single
 * value crosses (behind residual additions, between layers of a chain); pieces that are alike, ops, attributes, types
 * and weights' shapes, and stand one behind the other in a period, are one function, called by instances "h.0", "h.1"
 * ... In front of the first of them is @embedding, behind the last @head.
 *
 * Ops that read data or weights alone (masks, tables, renamed weights) go into every function that uses them.
 */
#ifndef PL_WORKLOADS_ONNX_OUTLINE_H
#define PL_WORKLOADS_ONNX_OUTLINE_H

#include "workloads/language/ir_module.h"

/* A weight of the new module, and of the long function. */
typedef struct pl_outlined_weight {
  const char *path;   /* whole: "h.3.mlp.weight" */
  const char *source; /* path of the long function's `param` */
} pl_outlined_weight;

typedef struct pl_outlined {
  int32_t n_layers; /* calls "h.N" */
  bool tied;        /* @head reads the table of @embedding */
  pl_outlined_weight *weights;
  int32_t n_weights;
  uint32_t room_weights;
} pl_outlined;

/* Adds @embedding, @layer ..., @head to `module`, and to `main`, which is being written, calls of them; *result is the
 * value of `main` that value `result_of` of `from` has become. PL_UNSUPPORTED: a weight that distant parts share. */
pl_code pl_outline(const pl_ir_function *from, int32_t result_of, pl_ir_module *module, pl_ir_function *main,
                   int32_t *result, pl_outlined *outlined, pl_error *error);

#endif
