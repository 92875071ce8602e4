/* The function of one block and its derivative as the ranks of its tensor, context and expert groups run them: the
 * model's function (workloads/import/program_build.h), differentiated (workloads/derive) and laid out by the one rule
 * of layouts (workloads/layout). What a framework makes of them is there, too (workloads/lower/launched_block.h writes
 * it down).
 *
 * The mesh is that of one block: axes "ep" (the ranks that share its experts; a batch of their own each), "cp", and
 * "tp" with "tpr" inside it (ranks that share a key-value head); degrees of 1 have no axis. Batches are one sequence a
 * rank here: the number of sequences changes no layout, so one function serves microbatches of all sizes.
 *
 * Widths that the framework pads are padded here: the vocabulary, and heads where ranks have unlike numbers of them (of
 * the rank with the most). `whole` has what the model says, for FLOPs of the model.
 */
#ifndef PL_WORKLOADS_BLOCK_FUNCTION_H
#define PL_WORKLOADS_BLOCK_FUNCTION_H

#include "workloads/framework/framework.h"
#include "workloads/ir/model.h"
#include "workloads/language/ir_table.h"
#include "workloads/lower/kernel_names.h"

typedef struct pl_block_function {
  pl_ir_module module;            /* its mesh, and the functions */
  const pl_ir_function *function; /* NULL: the block does nothing */
  const pl_ir_function *backward; /* its derivative (workloads/derive), laid out the same way; NULL: none comes back */
  pl_block_kind kind;
  pl_ir_module launches;               /* its kernels: attention, recomputation and framework are the shard's already */
  const struct pl_chain *chain;        /* whose steps its convolutions are (workloads/ir/chain.h); NULL: none */
  bool takes_data;                     /* its argument comes from the data loader: no gradient is made for it */
  int64_t whole[26];                   /* extents by letter of a dimension; 0: as the function has it */
  int32_t window_period;               /* n > 1: every n-th block of this class sees all keys */
  const pl_kernel_names *const *names; /* per op, of its kernels; NULL: its row's */
} pl_block_function;

/* In `arena`, which outlives it. The shard must pass pl_block_check_shard. */
pl_code pl_block_function_take(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                               pl_arena *arena, pl_block_function *block, pl_error *error);

#endif
