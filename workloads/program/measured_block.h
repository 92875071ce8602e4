/* Blocks as a job's op profile (workloads/cost/op_profile.h) measured them: their op lists at the tensor degree and
 * microbatch of the measurement. What that does to costs: workloads/compile/block_scale.h. */
#ifndef PL_WORKLOADS_MEASURED_BLOCK_H
#define PL_WORKLOADS_MEASURED_BLOCK_H

#include "workloads/cost/op_profile.h"
#include "workloads/strategy/strategy.h"

/* As the job was measured: op lists at the tensor degree and microbatch of a measurement. */
typedef struct pl_measured_block {
  int32_t block_class;
  int32_t tmp, mbs;
  pl_block_program program;
} pl_measured_block;

/* Every distinct (class of blocks, tmp, mbs) of the job's op profile that the strategy can make use of; none without a
 * profile. */
pl_code pl_measured_blocks_take(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_arena *arena,
                                const pl_measured_block **blocks, uint32_t *n_blocks, pl_error *error);

/* Measurements with collectives inside are of plain tensor parallelism: what else a strategy does, they do not know. */
bool pl_measured_is_plain(const pl_strategy *strategy);
/* Whether a measurement says something of this class of blocks in this job under this strategy. */
bool pl_measured_is_of_job(const pl_pass_time *time, const pl_model *model, int32_t block_class, const pl_job *job,
                           const pl_strategy *strategy);
/* The block of a class as `time` measured it; NULL: there is none. */
const pl_measured_block *pl_measured_block_find(const pl_measured_block *blocks, uint32_t n_blocks, int32_t block_class,
                                                const pl_pass_time *time);

#endif
