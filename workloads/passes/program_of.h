/* The program of a job at a level of the program language. */
#ifndef PL_WORKLOADS_PROGRAM_OF_H
#define PL_WORKLOADS_PROGRAM_OF_H

#include "workloads/framework/job.h"
#include "workloads/language/ir_module.h"
#include "workloads/strategy/strategy.h"
#include "workloads/tree/tree_plan.h"

/* MODEL: the forward pass; TRAINING: with backward and update; DISTRIBUTED: by the strategy, which has boundaries.
 * Without a strategy (NULL, not for DISTRIBUTED) the whole batch is one microbatch; with one, microbatches, and what is
 * recomputed, are its. The module lives in `arena`. PL_UNSUPPORTED names what programs cannot say yet. */
pl_code pl_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                      pl_arena *arena, pl_ir_module *module, pl_error *error);

/* How a batch is cut into microbatches. */
typedef struct pl_batch_cut {
  int32_t n;       /* microbatches, of the replicas that run most */
  int64_t samples; /* of one, of all replicas together */
  bool fewer;      /* some replicas run fewer */
} pl_batch_cut;

static inline pl_batch_cut pl_batch_cut_evenly(const pl_job *job, int32_t n) {
  return (pl_batch_cut){.n = n, .samples = n > 0 ? job->gbs / n : 0};
}
pl_batch_cut pl_batch_cut_of(const pl_job *job, const pl_strategy *strategy);

/* The model program of such microbatches: what candidates of a job that cut its batch alike have in common. */
pl_code pl_model_program_of(const pl_model *model, const pl_job *job, pl_batch_cut cut, pl_arena *arena,
                            pl_ir_module *module, pl_error *error);

/* The forward pass alone, at MODEL or DISTRIBUTED. */
pl_code pl_inference_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                pl_ir_level level, pl_arena *arena, pl_ir_module *module, pl_error *error);

/* The same as pl_program_of, with the tree that the strategy fills and what that says of the model; level TRAINING or
 * DISTRIBUTED. */
pl_code pl_program_of_strategy(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                               pl_arena *arena, pl_strategy_tree *tree, pl_tree_plan *plan, pl_ir_module *module,
                               pl_error *error);

/* The same by a strategy tree, which outlives the plan; *plan is what it says of the model. */
pl_code pl_program_of_tree(const pl_model *model, const pl_job *job, const pl_strategy_tree *tree, pl_ir_level level,
                           pl_arena *arena, pl_tree_plan *plan, pl_ir_module *module, pl_error *error);

/* Of a planned program: what training makes of it, and devices. `framework`: whose optimizer it is (NULL: ideal).
 * `tied`: its head reads the embedding's table. */
pl_code pl_program_of_plan(const pl_tree_plan *plan, const pl_framework *framework, bool tied, pl_ir_level level,
                           pl_arena *arena, pl_ir_module *module, pl_error *error);

#endif
