/* Models as programs of the program language (workloads/language/README.md): the forward pass of one microbatch in
 * whole values. What a framework fuses, copies or casts is not said here, and nothing is sharded: passes and profiles
 * do that.
 *
 * A function per kind of block (@embedding, @layer, @expert_layer, @final_norm, @head, @loss), called by @main with
 * the instances "embedding", "h.0", "h.1" ... A head that reads the embedding's table is called without an instance:
 * its parameters' paths are whole. The loss is the mean over all tokens of the iteration, so that microbatches and
 * replicas add up.
 */
#ifndef PL_WORKLOADS_PROGRAM_BUILD_H
#define PL_WORKLOADS_PROGRAM_BUILD_H

#include "workloads/ir/model.h"
#include "workloads/language/ir_module.h"

/* What of a job a program says. */
typedef struct pl_model_program_options {
  int64_t gbs; /* sequences of an iteration */
  int32_t n_microbatches;
  int64_t batch; /* sequences of a microbatch, of all replicas together: gbs / n_microbatches */
  bool fewer;    /* some replicas run fewer microbatches: n_microbatches * batch is more than gbs */
  int64_t seq;
  pl_ir_element element; /* of weights and activations; the loss is made in fp32 */
  pl_ir_element narrow; /* PL_IR_F8, PL_IR_F4: what products of the layers' weights are computed in; else as all else */
  bool dropout;         /* where and as the file has it; false: none */
} pl_model_program_options;

/* bf16, with dropout. */
pl_model_program_options pl_model_program_defaults(int64_t gbs, int32_t n_microbatches, int64_t seq);

/* The program of `model` in `arena`. PL_BAD_INPUT: microbatches do not divide the sequences, a sequence is longer than
 * a table of positions. PL_UNSUPPORTED: what the language cannot say yet, by name. */
pl_code pl_model_program_build(const pl_model *model, const pl_model_program_options *options, pl_arena *arena,
                               pl_ir_module *module, pl_error *error);

/* The function of one class of blocks (workloads/ir/model.h) alone, the last of `module`; a block that does nothing
 * hands its argument on. What no time depends on is not checked: activations without a row of their own are written as
 * gelu. */
pl_code pl_model_program_block(const pl_model *model, int32_t class_of_blocks, const pl_model_program_options *options,
                               pl_arena *arena, pl_ir_module *module, pl_error *error);

#endif
