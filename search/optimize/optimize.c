/* See search/optimize/optimize.h. */
#include "search/optimize/optimize.h"

#include <fnmatch.h>

#include "core/base/units.h"

/* What the passes that were asked for need and the trace does not say. */
static pl_code check_needs(const pl_optimization *job, const pl_optimize_options *options, pl_error *error) {
  const bool *has = options->passes.has;
  static const pl_pass_kind of_tensors[] = {PL_PASS_TENSOR_FUSION, PL_PASS_TENSOR_PARTITION, PL_PASS_ACCUMULATE};
  const char *name = NULL;
  for (int k = 2; k >= 0; k--)
    if (has[of_tensors[k]]) name = pl_passes[of_tensors[k]].name;
  bool sizes = has[PL_PASS_TENSOR_FUSION] || has[PL_PASS_TENSOR_PARTITION];
  if (name != NULL && job->whole.n_tensors == 0)
    return pl_fail(
        error, PL_BAD_INPUT,
        "%s: the step has no communication of gradients (all-reduces, reduce-scatters, rings, trees or servers that "
        "no later one waits for)%s",
        name, job->whole.n_activations > 0 ? "; what it has, later ones of its kind wait for" : "");
  if (sizes && job->costs.n_without == job->whole.n_tensors)
    return pl_fail(
        error, PL_BAD_INPUT,
        "%s: the messages' sizes are unknown or all the same, so the trace does not say what is latency and what "
        "is size; --op-cost FILE says it: (message),SECONDS",
        name);
  if (has[PL_PASS_OP_FUSION] && job->costs.launch < 0 && (options->costs == NULL || options->costs->n == 0))
    return pl_fail(error, PL_BAD_INPUT,
                   "op-fusion: the trace has no lags between kernels of a device, so what a launch costs is not known; "
                   "--op-cost FILE says it: (launch),SECONDS, or the times of fused ops");
  return PL_OK;
}

/* Ops of computing are units where a pass is about them. */
static bool needs_units(const bool *has) {
  return has[PL_PASS_OP_FUSION] || has[PL_PASS_MIXED_PRECISION] || has[PL_PASS_RECOMPUTE] || has[PL_PASS_ACCUMULATE];
}

/* Ops whose names do not fit are left apart. */
static void part_units(pl_step_model *model, const char *fuses) {
  const char *const *names = model->replay->trace->names;
  for (uint32_t u = 1; fuses != NULL && u < model->n_units; u++)
    if (fnmatch(fuses, names[model->units[u].name], 0) != 0 || fnmatch(fuses, names[model->units[u - 1].name], 0) != 0)
      model->units[u].follows = false;
}

static pl_code save_memory(pl_optimization *job, const pl_optimize_options *options, pl_arena *arena, pl_error *error) {
  const bool *has = options->passes.has;
  pl_memory_options memory = options->memory;
  memory.recompute = has[PL_PASS_RECOMPUTE];
  memory.accumulate = has[PL_PASS_ACCUMULATE];
  if (!memory.recompute && !memory.accumulate) return PL_OK;
  return pl_memory_pass(&job->whole, &job->costs, &memory, arena, &job->memory, error);
}

/* Half precision: matrix products by the device's peaks, of other ops the bytes. An op is narrowed where that is
 * faster. */
static pl_code find_half(pl_optimization *job, const pl_optimize_options *options, pl_error *error) {
  bool given = false;
  if (!options->passes.has[PL_PASS_MIXED_PRECISION]) return PL_OK;
  for (uint32_t k = 0; options->costs != NULL && k < options->costs->n; k++)
    given |= options->costs->rows[k].half_time_s >= 0;
  if (options->device == NULL && !given)
    return pl_fail(
        error, PL_BAD_INPUT,
        "mixed-precision: the trace does not say what ops take in half precision; --device NAME says it by its "
        "peaks, or --op-cost FILE by op, in a column half_time_s");
  if (options->device == NULL) return PL_OK;
  const double *peak = options->device->peak_flops;
  if (!(peak[PL_DTYPE_FP32] > 0) || !(peak[PL_DTYPE_FP16] > 0))
    return pl_fail(error, PL_BAD_INPUT, "mixed-precision: the profile of %s lacks a peak for fp32 or fp16",
                   options->device->name);
  job->costs.half_matrix = peak[PL_DTYPE_FP32] / peak[PL_DTYPE_FP16];
  job->costs.half_other = 0.5;
  return PL_OK;
}

static pl_code narrow_ops(pl_optimization *job, const pl_optimize_options *options, pl_arena *arena, pl_error *error) {
  const pl_step_model *model = &job->coarse;
  pl_step_plan trial;
  uint32_t n = 0;
  if (!options->passes.has[PL_PASS_MIXED_PRECISION]) return PL_OK;
  if (!pl_step_plan_take(model, arena, &trial)) return pl_fail_memory(error, "mixed precision");
  for (uint32_t u = 0; u < model->n_units; u++) {
    pl_ticks now = 0, then = 0;
    for (uint32_t m = 0; m < model->units[u].n_members; m++) {
      trial.narrows[u] = 0;
      now += pl_step_unit_ticks(model, &job->costs, &trial, u, u + 1, m);
      trial.narrows[u] = 1;
      then += pl_step_unit_ticks(model, &job->costs, &trial, u, u + 1, m);
    }
    trial.narrows[u] = then < now;
    n += then < now;
  }
  pl_search_step step = {PL_MOVE_NARROW, 0, n, "ops that are faster in half precision", 0, 0};
  return pl_plan_search_offer(&job->search, &trial, pl_plan_search_play(&job->search, &trial), step);
}

static pl_code look(pl_optimization *job, const pl_optimize_options *options, pl_arena *arena, pl_error *error) {
  pl_plan_options search = options->search;
  search.op_fusion = options->passes.has[PL_PASS_OP_FUSION];
  search.tensor_fusion = options->passes.has[PL_PASS_TENSOR_FUSION];
  search.tensor_partition = options->passes.has[PL_PASS_TENSOR_PARTITION];
  PL_TRY(pl_plan_search_take(&job->whole, &job->coarse, &job->costs, &search, arena, &job->search, error));
  job->before = job->memory.way == PL_MEMORY_AS_IS ? job->search.start : job->memory.before;
  PL_TRY(narrow_ops(job, options, arena, error));
  PL_TRY(pl_framework_plans_find(job, options, error)); /* a start for the search */
  PL_TRY(pl_plan_search_run(&job->search));
  for (uint32_t k = 0; k < options->n_objects; k++)
    PL_TRY(pl_pass_object_run(&options->objects[k], &job->search));
  return pl_framework_plans_find(job, options, error);
}

pl_code pl_optimize(const pl_trace_replay *replay, const pl_trace_step_list *steps, const pl_optimize_options *options,
                    pl_arena *arena, pl_optimization *job, pl_error *error) {
  *job = (pl_optimization){.replay = replay};
  PL_TRY(pl_step_model_take(replay, steps, needs_units(options->passes.has), arena, &job->whole, error));
  PL_TRY(pl_step_costs_take(&job->whole, options->costs, options->fits, arena, &job->costs, error));
  part_units(&job->whole, options->fuses);
  PL_TRY(check_needs(job, options, error));
  pl_ticks *finish = PL_TAKE(arena, pl_ticks, replay->graph.n_tasks + 1);
  if (finish == NULL) return pl_fail_memory(error, "a replay");
  job->replayed = pl_trace_replay_run(replay, replay->ticks, finish);
  PL_TRY(find_half(job, options, error));
  PL_TRY(save_memory(job, options, arena, error));
  PL_TRY(pl_step_model_coarsen(&job->whole, arena, &job->coarse, error));
  PL_TRY(look(job, options, arena, error));
  return arena->failed ? pl_fail_memory(error, "an optimisation") : PL_OK;
}
