/* What must hold of the block program of any model under any shard; a check that fails ends the test (cmocka). */
#ifndef PL_TESTS_SUPPORT_BLOCK_CHECKS_H
#define PL_TESTS_SUPPORT_BLOCK_CHECKS_H

#include "workloads/ir/model.h"
#include "workloads/lower/block_program.h"

pl_block_program block_taken(const pl_model *model, pl_block_kind kind, pl_block_shard shard, pl_arena *arena);
/* To 1e-12. */
void check_number(const char *what, double value, double wanted);
double block_tensor_elements(const pl_tensor *tensor);

/* All ranks together do the unsharded products; backward products are twice the forward ones; recomputation adds what
 * it says. */
void check_block_products(const pl_model *model, const pl_block_program *split, const pl_block_program *whole,
                          pl_block_kind kind, pl_block_shard shard);
/* Each parameter is split over the ranks or replicated. */
void check_block_parameters(const pl_block_program *split, const pl_block_program *whole, pl_block_shard shard);
/* Everything read was handed in, kept, or made before in the same list; nothing is made twice unless in place. */
void check_block_data_flow(const pl_block_program *program);
/* Each parameter's gradient is written exactly once. */
void check_block_gradients(const pl_block_program *program);
/* Saved bytes and peaks equal a second computation, straight from the definition, quadratic and slow. */
void check_block_memory(const pl_block_program *program);
/* Buffers of weight gradients are in fp16 only with fp16; a weight-gradient product reads its two factors and adds to
 * the buffer: reads and writes it. */
void check_block_gradient_traffic(const pl_block_program *program, pl_dtype dtype);

#endif
