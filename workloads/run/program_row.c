/* See workloads/run/program_row.h. */
#include "workloads/run/program_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_check.h"
#include "workloads/language/ir_recurrence.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/site_remains.h"
#include "workloads/run/tree_prices.h"

/* A larger cache begins anew: files of thousands of nodes with dozens of numbers of microbatches. */
enum { CACHE_BYTES = 1 << 26 };

void pl_program_cache_init(pl_program_cache *cache) {
  cache->n = 0;
  pl_arena_init(&cache->arena, 0);
}

void pl_program_cache_release(pl_program_cache *cache) {
  pl_arena_release(&cache->arena);
}

/* The model program with a vocabulary of that size. */
static pl_code cached(const pl_program_candidate *c, int64_t vocab, pl_batch_cut cut, pl_program_cache *cache,
                      const struct pl_cached_program **found, pl_error *error) {
  for (uint32_t i = 0; i < cache->n; i++) {
    *found = &cache->entries[i];
    if ((*found)->model == c->model && (*found)->job == c->job && (*found)->vocab == vocab &&
        (*found)->cut.n == cut.n && (*found)->cut.samples == cut.samples)
      return PL_OK;
  }
  if (cache->n == PL_PROGRAM_CACHE_MOST || pl_arena_held_bytes(&cache->arena) > CACHE_BYTES) {
    cache->n = 0;
    pl_arena_reset(&cache->arena);
  }
  pl_ir_module *program = PL_TAKE(&cache->arena, pl_ir_module, 1);
  pl_model *held = PL_TAKE(&cache->arena, pl_model, 1);
  if (program == NULL || held == NULL) return pl_fail_memory(error, "a model program");
  *held = *c->model;
  held->width.vocab = vocab;
  PL_TRY(pl_model_program_of(held, c->job, cut, &cache->arena, program, error));
  pl_program_flops flops;
  if (vocab == c->model->width.vocab)
    flops = pl_program_flops_of(c->model, c->job, program, cut);
  else
    PL_TRY(pl_program_flops_take(c->model, c->job, cut, &cache->arena, &flops, error));
  struct pl_cached_program *entry = &cache->entries[cache->n++];
  *entry = (struct pl_cached_program){
      .model = c->model, .job = c->job, .vocab = vocab, .cut = cut, .program = program, .flops = flops};
  *found = entry;
  return PL_OK;
}

/* What a candidate became. */
typedef struct made {
  pl_tree_plan plan;
  pl_ir_module module;
  pl_ir_recurrence recurrence;   /* of its lists */
  const pl_framework *framework; /* as the strategy has it */
  pl_program_flops flops;
} made;

static pl_code cut_of(const pl_program_candidate *c, pl_batch_cut *cut, pl_error *error) {
  int32_t n;
  *cut = (pl_batch_cut){0};
  if (c->tree == NULL) {
    *cut = pl_batch_cut_of(c->job, c->strategy);
    return PL_OK;
  }
  PL_TRY(pl_tree_microbatches(c->tree, c->job->gbs, &n, error));
  *cut = pl_batch_cut_evenly(c->job, n);
  return PL_OK;
}

static pl_code plan_of(const pl_program_candidate *c, const pl_simulate_options *options, const pl_ir_module *program,
                       pl_arena *arena, pl_tree_plan *plan, pl_error *error) {
  pl_strategy_tree *tree = PL_TAKE(arena, pl_strategy_tree, 1);
  if (tree == NULL) return pl_fail_memory(error, "a strategy tree");
  if (c->tree != NULL) {
    *tree = *c->tree;
    PL_TRY(pl_tree_prices_adopt(tree, c->cluster, options, false, arena, error));
  } else {
    PL_TRY(pl_tree_of_strategy(c->strategy, c->model, program, arena, tree, error));
  }
  PL_TRY(pl_tree_plan_take(tree, program, arena, plan, error));
  return pl_plan_adapt(plan, error);
}

/* A plan's tensor ranks may make the model another one, with a vocabulary that is padded for them. */
static pl_code plan_whole(const pl_program_candidate *c, const pl_simulate_options *options, pl_program_cache *cache,
                          pl_arena *arena, made *to, pl_error *error) {
  const pl_framework *framework = c->job->framework;
  const struct pl_cached_program *found = NULL;
  int64_t vocab =
      c->tree != NULL ? c->model->width.vocab : pl_model_held(c->model, framework, c->strategy->tmp).width.vocab;
  pl_batch_cut cut;
  PL_TRY(cut_of(c, &cut, error));
  PL_TRY(cached(c, vocab, cut, cache, &found, error));
  to->flops = found->flops;
  PL_TRY(plan_of(c, options, found->program, arena, &to->plan, error));
  int64_t held = c->tree != NULL ? pl_model_held_by_plan(c->model, framework, &to->plan).width.vocab : vocab;
  if (held == vocab) return PL_OK;
  PL_TRY(cached(c, held, cut, cache, &found, error));
  return plan_of(c, options, found->program, arena, &to->plan, error);
}

static pl_code take(const pl_program_candidate *c, const pl_simulate_options *options, pl_program_cache *cache,
                    pl_arena *arena, made *to, pl_error *error) {
  pl_ir_module module;
  PL_TRY(plan_whole(c, options, cache, arena, to, error));
  PL_TRY(pl_tree_check_devices(&to->plan, c->cluster->n_devices, error));
  PL_TRY(pl_program_of_plan(&to->plan, c->job->framework, c->model->ends.tied_embeddings, PL_IR_DISTRIBUTED, arena,
                            &module, error));
  if (!pl_ir_recurrence_find(&module, 0, arena, &to->recurrence))
    return pl_fail_memory(error, "what recurs in a program");
  PL_TRY(pl_ir_check_recurring(&module, &to->recurrence, c->model->program.onnx == NULL, error));
  to->framework =
      c->strategy != NULL ? pl_framework_of_tuple(c->job->framework, c->strategy, arena) : c->job->framework;
  if (c->strategy != NULL && to->framework == NULL) return pl_fail_memory(error, "a framework's profile");
  PL_TRY(pl_program_launched(c->cluster, &module, to->framework, arena, &to->module, error));
#ifndef NDEBUG /* what lowering makes of a program that passed the check passes it too; `verify` checks both */
  if (to->module.level != module.level) PL_TRY(pl_ir_check(&to->module, error));
#endif
  return PL_OK;
}

/* ---- rows ---- */

void pl_program_row_clear(pl_result_row *row) {
  double *features = row->features;
  memset(row, 0, sizeof *row);
  for (uint32_t i = 0; i < pl_result_n_columns; i++) {
    const pl_column_info *column = &pl_result_columns[i];
    void *value = (unsigned char *)row + column->offset;
    const double nothing = (double)NAN;
    const int32_t none32 = -1;
    const int64_t none64 = -1;
    if (column->type == PL_COLUMN_f64) memcpy(value, &nothing, sizeof nothing);
    if (column->type == PL_COLUMN_i32) memcpy(value, &none32, sizeof none32);
    if (column->type == PL_COLUMN_i64) memcpy(value, &none64, sizeof none64);
  }
  row->features = features;
}

/* What the strategy says; of a tree what is the same in all of it. */
static void say_strategy(const pl_program_candidate *c, const pl_tree_plan *plan, pl_result_row *row) {
  const pl_strategy *s = c->strategy;
  row->n_microbatches = plan->n_microbatches;
  row->pp = plan->schedule.pp;
  row->vpp = plan->schedule.vpp;
  snprintf(row->schedule.text, sizeof row->schedule.text, "%s", pl_schedule_name(plan->schedule.schedule));
  if (s == NULL) return;
  row->dp = s->dp;
  row->tmp = s->tmp;
  row->cp = pl_strategy_cp(s);
  row->ep = pl_strategy_ep(s);
  row->etp = pl_strategy_cuts_experts(s) ? s->etp : 1;
  row->ep_overlap = s->ep_overlap;
  row->mbs = s->mbs;
  row->sp = s->sp;
  row->zero = s->zero;
  row->overlap = s->overlap;
  snprintf(row->recompute.text, sizeof row->recompute.text, "%s", pl_recompute_names[s->recompute]);
  snprintf(row->order.text, sizeof row->order.text, "%s", s->order);
  pl_strategy_format_assign(s, c->model, row->assign.text, sizeof row->assign.text);
}

static void say_speed(const pl_program_candidate *c, const pl_program_report *report, const made *of,
                      pl_result_row *row) {
  double peak_flops = pl_program_peak_flops(c->cluster, report, c->job, of->flops.narrow_share);
  row->iter_time_s = report->iter_time_s;
  row->iter_time_low_s = report->interval.low_s;
  row->iter_time_high_s = report->interval.high_s;
  row->samples_per_s = (double)c->job->gbs / report->iter_time_s;
  row->tokens_per_s = row->samples_per_s * (double)c->job->seq;
  row->mfu = peak_flops > 0 ? of->flops.of_sequence * row->samples_per_s / peak_flops : (double)NAN;
}

static void say_shares(const pl_program_report *report, pl_result_row *row) {
  const double *spent_s = report->spent_s;
  row->compute_s = spent_s[PL_CATEGORY_FORWARD] + spent_s[PL_CATEGORY_RECOMPUTE] + spent_s[PL_CATEGORY_BACKWARD] +
                   spent_s[PL_CATEGORY_OPTIMIZER] + spent_s[PL_CATEGORY_HOST];
  row->tensor_comm_s = spent_s[PL_CATEGORY_TENSOR];
  row->pipeline_comm_s = spent_s[PL_CATEGORY_PIPELINE];
  row->data_comm_s = spent_s[PL_CATEGORY_DATA];
  row->context_comm_s = spent_s[PL_CATEGORY_CONTEXT];
  row->expert_comm_s = spent_s[PL_CATEGORY_EXPERT];
  row->bubble_s = report->idle_s;
  row->n_classes = report->n_devices; /* that some stand for others is not said */
  row->n_tasks = (int64_t)report->n_tasks;
  row->run_digest = report->run_digest;
}

static void say_memory(const pl_program_report *report, pl_result_row *row) {
  const pl_class_memory *fullest = &report->memory[report->fullest];
  row->peak_mem_bytes = llrint(fullest->peak);
  row->mem_capacity_bytes = llrint(fullest->capacity);
  row->mem_parameters_bytes = llrint(fullest->parameters);
  row->mem_gradients_bytes = llrint(fullest->gradients);
  row->mem_optimizer_bytes = llrint(fullest->optimizer);
  double beside = fullest->peak - fullest->parameters - fullest->gradients - fullest->optimizer;
  bool updates = beside > fullest->buffers + fullest->values; /* the peak is in the optimizer's step */
  row->mem_activations_bytes = llrint(updates ? 0 : fullest->values);
  row->mem_buffers_bytes = llrint(updates ? beside : fullest->buffers);
  row->fits = report->fits;
  row->peak_stage = report->fullest;
}

void pl_program_row_say(const pl_program_report *report, pl_result_row *row) {
  say_shares(report, row);
  say_memory(report, row);
}

pl_code pl_program_row_take(const pl_program_candidate *candidate, const pl_simulate_options *options,
                            pl_program_cache *cache, pl_arena *arena, pl_result_row *row, pl_error *error) {
  made *to = PL_TAKE(arena, made, 1);
  pl_program_report report;
  if (to == NULL) return pl_fail_memory(error, "a program");
  PL_TRY(take(candidate, options, cache, arena, to, error));
  const pl_program_kind kind = {.job = candidate->job,
                                .schedule = pl_schedule_name(to->plan.schedule.schedule),
                                .experts = candidate->model->moe.n_experts > 0,
                                .trains = true};
  const pl_aspects aspects = pl_aspects_of_program(candidate->cluster, &to->module, &kind);
  pl_simulate_options asked = *options;
  asked.program_aspects = &aspects;
  asked.recurrence = &to->recurrence;
  pl_configuration at;
  if (candidate->strategy != NULL && pl_model_has_blocks(candidate->model)) {
    at = pl_configuration_of(candidate->cluster->profiles[0].name,
                             pl_remains_size(options->remains_size, candidate->model, candidate->job->seq),
                             candidate->job, candidate->strategy);
    asked.program_configuration = &at;
  }
  PL_TRY(pl_simulate_program(candidate->cluster, &to->module, to->framework, &asked, arena, &report, error));
  pl_program_row_clear(row);
  say_strategy(candidate, &to->plan, row);
  say_speed(candidate, &report, to, row);
  pl_program_row_say(&report, row);
  row->status = report.fits ? PL_RESULT_DONE : PL_RESULT_OOM;
  return PL_OK;
}
