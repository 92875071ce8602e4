/* See search/run/evaluate.h. */
#include "search/run/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/assign/assign.h"

pl_code pl_evaluate_assign(const pl_evaluation *evaluation, pl_strategy *strategy, pl_arena *arena, pl_error *error) {
  const pl_evaluation *e = evaluation;
  if (strategy->boundary != NULL) return PL_OK;
  PL_TRY(pl_strategy_check(strategy, e->model, e->job, e->cluster->n_devices, error));
  if (pl_evaluates_programs(e))
    return pl_strategy_assign_unplaced(strategy, e->model, e->job, ": nothing is priced for programs", arena, error);
  return pl_assign(strategy, e->model, e->job, e->cluster, e->options, arena, error);
}

static pl_code evaluate_program(const pl_evaluation *e, const pl_strategy *strategy, const pl_strategy_tree *tree,
                                pl_worker *worker, pl_result_row *row, pl_error *error) {
  const pl_program_candidate candidate = {
      .cluster = e->cluster, .model = e->model, .job = e->job, .strategy = strategy, .tree = tree};
  return pl_program_row_take(&candidate, e->options, &worker->programs, &worker->arena, row, error);
}

/* The one choice that strategies have beside their columns. */
static void say_offload(const pl_strategy *strategy, pl_result_row *row) {
  snprintf(row->program.choices[0].text, sizeof row->program.choices[0].text, "%s",
           pl_offload_names[pl_strategy_offload(strategy)]);
}

/* Which of the strategy space was taken. */
static void say_choices(const pl_tree_space *trees, uint32_t index, pl_result_row *row) {
  for (int32_t i = 0; i < trees->n_choices; i++)
    snprintf(row->program.choices[i].text, sizeof row->program.choices[i].text, "%s",
             pl_tree_space_label(trees, index, i));
}

pl_code pl_evaluate_tree(const pl_evaluation *evaluation, uint32_t index, pl_worker *worker, pl_result_row *row,
                         pl_error *error) {
  pl_strategy_tree *tree = PL_TAKE(&worker->arena, pl_strategy_tree, 1);
  if (tree == NULL) return pl_fail_memory(error, "a strategy tree");
  PL_TRY(pl_tree_space_take(evaluation->trees, index, &worker->arena, tree, error));
  PL_TRY(evaluate_program(evaluation, NULL, tree, worker, row, error));
  say_choices(evaluation->trees, index, row);
  return PL_OK;
}

pl_code pl_evaluate_strategy(const pl_evaluation *evaluation, const pl_strategy *strategy, pl_worker *worker,
                             pl_result_row *row, pl_error *error) {
  const pl_evaluation *e = evaluation;
  pl_simulate_options options = *e->options;
  options.cache = &worker->cache;
  options.blocks = &worker->blocks;
  options.siblings = &worker->siblings;
  options.features = row->features;
  options.n_feature_stages = e->n_stages;
  pl_strategy whole = *strategy;
  PL_TRY(pl_strategy_check(&whole, e->model, e->job, e->cluster->n_devices, error));
  if (pl_evaluates_programs(e)) {
    PL_TRY(pl_evaluate_assign(e, &whole, &worker->arena, error));
    PL_TRY(evaluate_program(e, &whole, NULL, worker, row, error));
    if (e->by_programs) say_offload(&whole, row);
    return PL_OK;
  }
  if (whole.boundary == NULL) PL_TRY(pl_assign(&whole, e->model, e->job, e->cluster, &options, &worker->arena, error));
  pl_simulate_report report;
  PL_TRY(pl_simulate(e->cluster, e->model, e->job, &whole, &options, &worker->arena, &report, error));
  report.row.features = row->features;
  *row = report.row;
  return PL_OK;
}

pl_code pl_evaluate_simulate(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                             pl_result_row *row, pl_error *error) {
  const pl_evaluation *evaluation = context;
  pl_strategy strategy;
  if (evaluation->trees != NULL) return pl_evaluate_tree(evaluation, index, worker, row, error);
  pl_space_strategy(space, index, &strategy);
  return pl_evaluate_strategy(context, &strategy, worker, row, error);
}

static void say_reason(const pl_error *why, pl_result_row *row) {
  char *text = row->program.reason.text;
  size_t room = sizeof row->program.reason.text;
  if (snprintf(text, room, "%s", why->message) >= (int)room) memcpy(text + room - 4, "...", 4);
}

void pl_evaluate_failed_tree(const pl_tree_space *trees, uint32_t index, const pl_error *why, pl_result_row *row) {
  pl_program_row_clear(row);
  row->fits = 0;
  row->status = PL_RESULT_FAILED;
  say_choices(trees, index, row);
  say_reason(why, row);
}

void pl_evaluate_failed_row(const pl_strategy *strategy, const pl_job *job, uint32_t n_features, const pl_error *why,
                            pl_result_row *row) {
  double *features = row->features;
  for (uint32_t i = 0; i < n_features; i++)
    features[i] = (double)NAN;
  *row = (pl_result_row){.pp = strategy->pp,
                         .dp = strategy->dp,
                         .cp = pl_strategy_cp(strategy),
                         .ep = pl_strategy_ep(strategy),
                         .etp = pl_strategy_cuts_experts(strategy) ? strategy->etp : 1,
                         .ep_overlap = strategy->ep_overlap,
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
  say_reason(why, row);
  say_offload(strategy, row);
}

/* What the question whether a balanced assignment is worth a candidate of its own needs from one to the next. */
typedef struct question {
  const pl_evaluation *evaluation;
  pl_arena arena;
  pl_block_cache *blocks;
} question;

static pl_code balanced_differs(void *context, const pl_strategy *strategy, bool *differs, pl_error *error) {
  question *own = context;
  const pl_evaluation *e = own->evaluation;
  pl_strategy balanced = *strategy, uniform = *strategy;
  uniform.recipe = PL_ASSIGN_UNIFORM;
  pl_arena_reset(&own->arena);
  PL_TRY(pl_strategy_assign_cached(&balanced, e->model, e->job, e->cluster, own->blocks, &own->arena, error));
  PL_TRY(pl_strategy_assign(&uniform, e->model, e->job, e->cluster, &own->arena, error));
  size_t n = (size_t)pl_strategy_n_chunks(strategy) + 1;
  *differs = memcmp(balanced.boundary, uniform.boundary, n * sizeof *uniform.boundary) != 0;
  return PL_OK;
}

pl_code pl_evaluate_space(const pl_evaluation *evaluation, const pl_space_choices *choices, pl_arena *arena,
                          pl_space *space, pl_error *error) {
  pl_block_cache blocks;
  question own = {.evaluation = evaluation, .blocks = evaluation->options->blocks};
  pl_arena_init(&own.arena, 1 << 16);
  pl_block_cache_init(&blocks, PL_BLOCK_CACHE_BYTES);
  if (own.blocks == NULL) own.blocks = &blocks;
  const pl_space_rules rules = {.balanced_differs = balanced_differs, .context = &own};
  pl_code code = pl_space_take(evaluation->model, evaluation->job, evaluation->cluster->n_devices, choices, &rules,
                               arena, space, error);
  pl_block_cache_release(&blocks);
  pl_arena_release(&own.arena);
  return code;
}
