/* Whether a function is a layer: what it is handed goes on, and what is made of it is added to that. So said by what it
 * computes and not by its name, of programs that somebody wrote as of those that are made.
 *
 *     %normed = rms_norm(%x, %scale) ...    %y = add(%x, %of_normed)
 *
 * Frameworks treat layers otherwise than embeddings, heads and losses: the host works for each, autocast keeps their
 * residual stream in fp32.
 */
#ifndef PL_WORKLOADS_IR_LAYER_H
#define PL_WORKLOADS_IR_LAYER_H

#include "workloads/language/ir_module.h"

/* Of a forward function: a sum of tokens that it is handed (dimensions b and h) and of what is made of them, in itself
 * or in what it calls. No memory: false, and scratch->failed. O(ops). */
bool pl_ir_is_layer(const pl_ir_module *module, const pl_ir_function *function, pl_arena *scratch);
/* Of a forward function or one that is derived: it has tokens by expert (dimensions b, h and x). O(values). */
bool pl_ir_has_experts(const pl_ir_function *function);

/* Of the derivative of a product that is split by columns, in a backward function of kernels, of whose ops `again`
 * makes a pass again: an all_gather of what was kept or made again, or what takes the partial gradient of the product's
 * input, as a product has left it, to all ranks or to their parts. */
bool pl_ir_is_of_split(const pl_ir_module *kernels, const pl_ir_function *f, const bool *again, const pl_ir_op *op);

#endif
