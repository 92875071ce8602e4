/* See search/evaluate.h. */
#include "search/evaluate.h"

#include <string.h>

pl_code pl_evaluate_simulate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                             pl_result_row *row, pl_error *error) {
  const pl_evaluation *e = context;
  pl_simulate_options options = *e->options;
  options.cache = &worker->cache;
  options.features = row->features;
  options.n_feature_stages = e->n_stages;
  pl_strategy strategy;
  pl_space_strategy(space, index, &strategy);
  PL_TRY(pl_strategy_assign(&strategy, e->model, e->job, &e->cluster->profiles[0], &worker->arena, error));
  PL_TRY(pl_strategy_check(&strategy, e->model, e->job, e->cluster->n_devices, error));
  pl_simulate_report report;
  PL_TRY(pl_simulate(e->cluster, e->model, e->job, &strategy, &options, &worker->arena, &report, error));
  report.row.features = row->features;
  *row = report.row;
  return PL_OK;
}

static pl_code compare(const pl_evaluation *e, const pl_strategy *strategy, pl_arena *arena, bool *differs,
                       pl_error *error) {
  pl_strategy balanced = *strategy, uniform = *strategy;
  uniform.recipe = PL_ASSIGN_UNIFORM;
  PL_TRY(pl_strategy_assign(&balanced, e->model, e->job, &e->cluster->profiles[0], arena, error));
  PL_TRY(pl_strategy_assign(&uniform, e->model, e->job, &e->cluster->profiles[0], arena, error));
  size_t n = (size_t)pl_strategy_n_chunks(strategy) + 1;
  *differs = memcmp(balanced.boundary, uniform.boundary, n * sizeof *uniform.boundary) != 0;
  return PL_OK;
}

pl_code pl_evaluate_balanced_differs(void *context, const pl_strategy *strategy, bool *differs, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 1 << 16);
  pl_code code = compare(context, strategy, &arena, differs, error);
  pl_arena_release(&arena);
  return code;
}
