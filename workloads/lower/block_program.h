/* What a block does on one rank under a shard: the ops of its forward and backward pass, and the FLOPs of a whole
 * model, which are counted on the same op lists. */
#ifndef PL_WORKLOADS_BLOCK_PROGRAM_H
#define PL_WORKLOADS_BLOCK_PROGRAM_H

#include "workloads/ir/model.h"

/* FLOPs of forward + backward for one sequence of length `seq`, without recomputation (Narayanan et al. 2021 (Megatron
 * SC21), eq. 3 without its recomputation: 72 s l h^2 (1 + s/(6 h) + V/(12 l h)) for its architecture): three times the
 * matrix products of the forward pass, masked halves of attention included as there, vocabulary unpadded. 0: no memory.
 */
double pl_model_flops_per_sequence(const pl_model *model, int64_t seq);

/* Of the FLOPs that pl_model_flops_per_sequence counts what is done in the narrow type of a job in fp8 or NVFP4 (all
 * else being of `dtype`): products of the layers' weights. 0: nothing is, or there is no memory. For models of blocks.
 */
double pl_model_narrow_share(const pl_model *model, pl_dtype dtype, bool fp4, int64_t seq);
/* FLOPs a second at which a device does work of which so much is narrow, each type at its own peak. 0: one of them it
 * does not compute in. */
double pl_mixed_peak_flops(const pl_device_profile *profile, pl_dtype dtype, bool fp4, double narrow_share);

/* Whether a model can be cut like that: tmp divides heads and ffn; kv heads may be replicated (tmp a multiple of
 * n_kv_heads or the reverse); under sequence parallelism tmp divides seq; learned positions cover seq; no fp8. */
pl_code pl_block_check_shard(const pl_model *model, const pl_block_shard *shard, pl_error *error);
/* The same of one class of blocks, also of a model of unlike ones. */
pl_code pl_block_check_class(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                             pl_error *error);
/* Op lists of a block under a shard; memory from `arena` (three takes, 7 to 10 kB for a GPT layer), about 20 us. The
 * vocabulary is padded to a multiple of 128 * tmp as Megatron does. Blocks of one kind are equal: take each kind once
 * per shard. The shard must pass pl_block_check_shard. On failure *program is zero. */
pl_code pl_block_program_take(const pl_model *model, pl_block_kind kind, const pl_block_shard *shard, pl_arena *arena,
                              pl_block_program *program, pl_error *error);
/* The same for a class of blocks. A model of unlike blocks has sequences of its own length (shard->seq must be the
 * model's, max_positions) and knows neither sequence nor context parallelism. */
pl_code pl_block_class_program_take(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                                    pl_arena *arena, pl_block_program *program, pl_error *error);

/* The same from the function of the block (pl_block_function_take of this shard, or of one that differs in what no
 * layout depends on). */
struct pl_block_function;
pl_code pl_block_program_make(const pl_model *model, int32_t class_of_blocks, const pl_block_shard *shard,
                              const struct pl_block_function *function, pl_arena *arena, pl_block_program *program,
                              pl_error *error);

/* Those of all classes, by class. */
pl_code pl_block_programs_take(const pl_model *model, const pl_block_shard *shard, pl_arena *arena,
                               const pl_block_program **blocks, pl_error *error);

#endif
