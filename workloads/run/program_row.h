/* One candidate of a space as a program: made from the model program, played by pl_simulate_program, and said as the
 * row that candidates of block models have. What cannot be said of a program is missing in it (NaN, -1, nothing).
 *
 * What candidates have in common is made once and kept by the thread: the model program of a number of microbatches
 * (reading, shapes, outlining), and what its MFU counts.
 */
#ifndef PL_WORKLOADS_PROGRAM_ROW_H
#define PL_WORKLOADS_PROGRAM_ROW_H

#include "workloads/passes/program_of.h"
#include "workloads/run/program_flops.h"
#include "workloads/run/simulate_program.h"
#include "workloads/tree/tree_plan.h"

enum { PL_PROGRAM_CACHE_MOST = 64 };

/* Of one thread, for one model and job. It changes no result. */
typedef struct pl_program_cache {
  pl_arena arena;
  uint32_t n;
  struct pl_cached_program {
    const pl_model *model;
    const pl_job *job;
    int64_t vocab; /* as the framework holds it */
    pl_batch_cut cut;
    const pl_ir_module *program;
    pl_program_flops flops;
  } entries[PL_PROGRAM_CACHE_MOST];
} pl_program_cache;

void pl_program_cache_init(pl_program_cache *cache);
void pl_program_cache_release(pl_program_cache *cache);

/* What is to be simulated. */
typedef struct pl_program_candidate {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;  /* checked, with boundaries; not with a tree */
  const pl_strategy_tree *tree; /* NULL: the strategy's */
} pl_program_candidate;

/* Its row, with status. PL_UNSUPPORTED, PL_BAD_INPUT: it is refused, and why. */
pl_code pl_program_row_take(const pl_program_candidate *candidate, const pl_simulate_options *options,
                            pl_program_cache *cache, pl_arena *arena, pl_result_row *row, pl_error *error);
/* What a report says of where the time goes and what is held, where most is. */
void pl_program_row_say(const pl_program_report *report, pl_result_row *row);
/* A row in which nothing is known yet. Keeps its features. */
void pl_program_row_clear(pl_result_row *row);

#endif
