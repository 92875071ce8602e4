/* See workloads/lower/block_program.h, pl_model_flops_per_sequence. */
#include "workloads/ir/chain.h"
#include "workloads/lower/block_program.h"
#include "workloads/lower/lowering.h"

/* Of one sequence, forward; 0: no memory. */
static double block_flops(const pl_model *model, const pl_block_shard *shard, pl_block_kind kind) {
  pl_tape tape;
  pl_lowering lowering;
  pl_block_function function;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 1 << 16);
  pl_tape_init(&tape, shard);
  if (pl_block_function_take(model, (int32_t)kind, shard, &arena, &function, &error) == PL_OK)
    pl_lower_block(&function, &tape, &lowering);
  pl_arena_release(&arena);
  return tape.model_flops;
}

static double part_flops(const pl_model_part *part) {
  const pl_block_shard shard = {
      .tmp = 1, .mbs = (int32_t)part->windows, .seq = part->rows, .dtype = PL_DTYPE_FP16, .flash = true};
  if (part->kind == PL_BLOCK_LAYER) return block_flops(part->model, &shard, PL_BLOCK_LAYER);
  if (part->kind == PL_BLOCK_CHAIN) return pl_chain_flops(part->chain);
  bool is_linear = part->kind == PL_BLOCK_LATENT || part->kind == PL_BLOCK_PIXELS || part->kind == PL_BLOCK_DENSE_OUT ||
                   part->kind == PL_BLOCK_DENSE_IN;
  return is_linear ? 2 * (double)part->rows * (double)part->model->width.hidden * (double)part->out_width : 0;
}

double pl_model_flops_per_sequence(const pl_model *model, int64_t seq) {
  if (model->unlike.parts != NULL) {
    double forward = 0;
    for (int32_t block = 0; block < pl_model_n_blocks(model); block++)
      forward += part_flops(&model->unlike.parts[model->unlike.part_of[block]]);
    return 3 * forward;
  }
  const pl_block_shard shard = {.tmp = 1, .mbs = 1, .seq = seq, .dtype = PL_DTYPE_FP16, .flash = true};
  const pl_block_kind kinds[] = {PL_BLOCK_LAYER, PL_BLOCK_EXPERT_LAYER, PL_BLOCK_HEAD};
  double forward = 0;
  for (int i = 0; i < 3; i++) {
    int32_t count = pl_model_count_blocks(model, kinds[i]);
    if (count > 0) forward += count * block_flops(model, &shard, kinds[i]);
  }
  return 3 * forward;
}
