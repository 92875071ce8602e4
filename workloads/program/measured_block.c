/* See workloads/program/measured_block.h. */
#include "workloads/program/measured_block.h"

#include "workloads/lower/block_program.h"

bool pl_measured_is_plain(const pl_strategy *strategy) {
  return !strategy->sp && pl_strategy_cp(strategy) == 1 && pl_strategy_ep(strategy) == 1;
}

bool pl_measured_is_of_job(const pl_pass_time *time, const pl_model *model, int32_t block_class, const pl_job *job,
                           const pl_strategy *strategy) {
  if (time->tmp != 1 && (time->tmp != strategy->tmp || !pl_measured_is_plain(strategy))) return false;
  return !job->fp8 && pl_pass_time_is_of(time, model, block_class, job->dtype, job->seq);
}

const pl_measured_block *pl_measured_block_find(const pl_measured_block *blocks, uint32_t n_blocks, int32_t block_class,
                                                const pl_pass_time *time) {
  for (uint32_t i = 0; i < n_blocks; i++)
    if (blocks[i].block_class == block_class && blocks[i].tmp == time->tmp && blocks[i].mbs == time->mbs)
      return &blocks[i];
  return NULL;
}

pl_code pl_measured_blocks_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_arena *arena,
                                const pl_measured_block **blocks, uint32_t *n_blocks, pl_error *error) {
  const pl_op_profile *profile = job->op_profile;
  *blocks = NULL;
  *n_blocks = 0;
  if (profile == NULL) return PL_OK;
  int32_t n_classes = pl_model_n_classes(model);
  uint32_t room = profile->n_times * (model->unlike.parts != NULL ? (uint32_t)n_classes : 1); /* a kind is one class */
  pl_measured_block *made = PL_TAKE(arena, pl_measured_block, room);
  if (made == NULL) return pl_fail_memory(error, "the op profile");
  for (uint32_t i = 0; i < profile->n_times; i++)
    for (int32_t c = 0; c < n_classes; c++) {
      const pl_pass_time *time = &profile->times[i];
      if (!pl_measured_is_of_job(time, model, c, job, strategy) ||
          pl_measured_block_find(made, *n_blocks, c, time) != NULL)
        continue;
      pl_block_shard shard = pl_strategy_shard(strategy, job);
      shard.tmp = time->tmp;
      shard.mbs = time->mbs;
      shard.cp = shard.ep = 1;
      shard.sp = false;
      pl_measured_block *block = &made[(*n_blocks)++];
      *block = (pl_measured_block){.block_class = c, .tmp = time->tmp, .mbs = time->mbs};
      PL_TRY(pl_block_class_program_take(model, c, &shard, arena, &block->program, error));
    }
  *blocks = made;
  return PL_OK;
}
