/* See search/run/evaluate.h. */
#include "search/run/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/assign/assign.h"

pl_code pl_evaluate_strategy(const pl_evaluation *evaluation, const pl_strategy *strategy, pl_worker *worker,
                             pl_result_row *row, pl_error *error) {
  const pl_evaluation *e = evaluation;
  pl_simulate_options options = *e->options;
  options.cache = &worker->cache;
  options.blocks = &worker->blocks;
  options.features = row->features;
  options.n_feature_stages = e->n_stages;
  pl_strategy whole = *strategy;
  PL_TRY(pl_strategy_check(&whole, e->model, e->job, e->cluster->n_devices, error));
  if (whole.boundary == NULL) PL_TRY(pl_assign(&whole, e->model, e->job, e->cluster, &options, &worker->arena, error));
  pl_simulate_report report;
  PL_TRY(pl_simulate(e->cluster, e->model, e->job, &whole, &options, &worker->arena, &report, error));
  report.row.features = row->features;
  *row = report.row;
  return PL_OK;
}

pl_code pl_evaluate_simulate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                             pl_result_row *row, pl_error *error) {
  pl_strategy strategy;
  pl_space_strategy(space, index, &strategy);
  return pl_evaluate_strategy(context, &strategy, worker, row, error);
}

void pl_evaluate_failed_row(const pl_strategy *strategy, const pl_job *job, uint32_t n_features, pl_result_row *row) {
  double *features = row->features;
  for (uint32_t i = 0; i < n_features; i++)
    features[i] = (double)NAN;
  *row = (pl_result_row){.pp = strategy->pp,
                         .dp = strategy->dp,
                         .cp = pl_strategy_cp(strategy),
                         .ep = pl_strategy_ep(strategy),
                         .tmp = strategy->tmp,
                         .mbs = strategy->mbs,
                         .vpp = strategy->vpp,
                         .sp = strategy->sp,
                         .zero = strategy->zero,
                         .overlap = strategy->overlap,
                         .fits = 0,
                         .peak_stage = -1,
                         .n_classes = -1,
                         .n_tasks = -1,
                         .status = PL_RESULT_FAILED,
                         .features = features};
  for (uint32_t i = 0; i < pl_result_n_columns; i++)
    if (pl_result_columns[i].type == PL_COLUMN_f64) {
      double *value = (double *)(void *)((unsigned char *)row + pl_result_columns[i].offset);
      *value = (double)NAN;
    }
  row->n_microbatches = (int32_t)(job->gbs / strategy->dp / strategy->mbs);
  snprintf(row->schedule.text, sizeof row->schedule.text, "%s", pl_schedule_name(strategy->schedule));
  snprintf(row->recompute.text, sizeof row->recompute.text, "%s", pl_recompute_names[strategy->recompute]);
  snprintf(row->order.text, sizeof row->order.text, "%s", strategy->order);
  snprintf(row->assign.text, sizeof row->assign.text, "%s", pl_assign_names[strategy->recipe]);
}

/* What the question whether a balanced assignment is worth a candidate of its own needs from one to the next. */
typedef struct question {
  const pl_evaluation *evaluation;
  pl_arena arena;
  pl_block_cache blocks;
} question;

static pl_code balanced_differs(void *context, const pl_strategy *strategy, bool *differs, pl_error *error) {
  question *own = context;
  const pl_evaluation *e = own->evaluation;
  pl_strategy balanced = *strategy, uniform = *strategy;
  uniform.recipe = PL_ASSIGN_UNIFORM;
  pl_arena_reset(&own->arena);
  PL_TRY(pl_strategy_assign_cached(&balanced, e->model, e->job, e->cluster, &own->blocks, &own->arena, error));
  PL_TRY(pl_strategy_assign(&uniform, e->model, e->job, e->cluster, &own->arena, error));
  size_t n = (size_t)pl_strategy_n_chunks(strategy) + 1;
  *differs = memcmp(balanced.boundary, uniform.boundary, n * sizeof *uniform.boundary) != 0;
  return PL_OK;
}

pl_code pl_evaluate_space(const pl_evaluation *evaluation, const pl_space_choices *choices, pl_arena *arena,
                          pl_space *space, pl_error *error) {
  question own = {.evaluation = evaluation};
  pl_arena_init(&own.arena, 1 << 16);
  pl_block_cache_init(&own.blocks, PL_BLOCK_CACHE_BYTES);
  const pl_space_rules rules = {.balanced_differs = balanced_differs, .context = &own};
  pl_code code = pl_space_take(evaluation->model, evaluation->job, evaluation->cluster->n_devices, choices, &rules,
                               arena, space, error);
  pl_block_cache_release(&own.blocks);
  pl_arena_release(&own.arena);
  return code;
}
