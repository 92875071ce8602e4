/* The program of a job at a level of the program language. */
#ifndef PL_WORKLOADS_PROGRAM_OF_H
#define PL_WORKLOADS_PROGRAM_OF_H

#include "workloads/framework/job.h"
#include "workloads/language/ir_module.h"
#include "workloads/strategy/strategy.h"

/* MODEL: the forward pass; TRAINING: with backward and update; DISTRIBUTED: by the strategy, which has boundaries.
 * Without a strategy (NULL, not for DISTRIBUTED) the whole batch is one microbatch; with one, microbatches, and what is
 * recomputed, are its. The module lives in `arena`. PL_UNSUPPORTED names what programs cannot say yet. */
pl_code pl_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                      pl_arena *arena, pl_ir_module *module, pl_error *error);

#endif
