/* See workloads/passes/program_of.h. */
#include "workloads/passes/program_of.h"

#include <string.h>

#include "workloads/derive/differentiate.h"
#include "workloads/derive/unfuse.h"
#include "workloads/import/program_build.h"
#include "workloads/passes/adapt.h"
#include "workloads/passes/partition.h"

/* Of a recipe's functions layers are what recomputation acts on, and chains of convolutional networks. */
static bool recomputes(const pl_tree_plan *plan, int32_t function) {
  const char *name = plan->program.functions[function]->name;
  bool of_layers = plan->tree->strategy.pp == 0 || strstr(name, "layer") != NULL || strncmp(name, "chain", 5) == 0;
  return of_layers && plan->functions[function].recompute != PL_RECOMPUTE_NONE;
}

/* What is said of single ops of a function; NULL: nothing is. */
static pl_code take_ops(const pl_tree_plan *plan, int32_t function, pl_arena *arena, const uint8_t **said,
                        pl_error *error) {
  int32_t n = plan->program.functions[function]->n_ops;
  bool any = false;
  uint8_t *ops = PL_TAKE(arena, uint8_t, n + 1);
  if (ops == NULL) return pl_fail_memory(error, "a program");
  for (int32_t i = 0; i < n; i++) {
    ops[i] = plan->functions[function].ops[i].again;
    any = any || ops[i] != PL_RECOMPUTE_OP_AS_FUNCTION;
  }
  *said = any ? ops : NULL;
  return PL_OK;
}

/* What a framework says of the training step itself. */
static pl_differentiate_options backward_of(const pl_framework *framework) {
  const pl_framework *own = pl_framework_or_ideal(framework);
  pl_differentiate_options backward = pl_differentiate_defaults();
  backward.sgd = own->update.optimizer == PL_OPTIMIZER_SGD;
  backward.whole = !own->kernels.ends_recompute;
  backward.attends_again = pl_framework_attends_again(own);
  return backward;
}

pl_code pl_program_of_plan(const pl_tree_plan *plan, const pl_framework *framework, bool tied, pl_ir_level level,
                           pl_arena *arena, pl_ir_module *module, pl_error *error) {
  pl_ir_module training;
  pl_differentiate_options backward = backward_of(framework);
  pl_recompute_choice *choices = PL_TAKE(arena, pl_recompute_choice, plan->n_functions + 1);
  if (choices == NULL) return pl_fail_memory(error, "a program");
  for (int32_t i = 0; i < plan->n_functions; i++) {
    pl_recompute_choice choice = {.function = plan->program.functions[i]->name};
    PL_TRY(take_ops(plan, i, arena, &choice.ops, error));
    if (recomputes(plan, i)) choice.recompute = plan->functions[i].recompute;
    if (choice.recompute != PL_RECOMPUTE_NONE || choice.ops != NULL) choices[backward.n_choices++] = choice;
  }
  backward.choices = choices;
  backward.splits_weights = pl_strategy_splits_backward(&plan->schedule);
  PL_TRY(pl_ir_differentiate(&plan->program, &backward, arena, level == PL_IR_TRAINING ? module : &training, error));
  if (level == PL_IR_TRAINING) return PL_OK;
  return pl_ir_partition(&training, plan, tied, arena, module, error);
}

pl_batch_cut pl_batch_cut_of(const pl_job *job, const pl_strategy *strategy) {
  const int32_t *split = strategy->split;
  if (split == NULL) return pl_batch_cut_evenly(job, (int32_t)(job->gbs / ((int64_t)strategy->dp * strategy->mbs)));
  pl_batch_cut cut = {.n = split[0], .samples = (int64_t)strategy->dp * strategy->mbs};
  for (int32_t data = 1; data < strategy->dp; data++) {
    cut.fewer = cut.fewer || split[data] != split[0];
    if (split[data] > cut.n) cut.n = split[data];
  }
  return cut;
}

static pl_code check_narrow(const pl_model *model, const pl_job *job, pl_error *error) {
  if (!job->fp8) return PL_OK;
  if (pl_dtype_bytes(job->dtype) != 2)
    return pl_fail(error, PL_BAD_INPUT, "%s: products in fp8 need everything else in 16 bits (fp16 or bf16), not %s",
                   model->name, pl_dtype_name(job->dtype));
  if (model->program.onnx == NULL) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "%s: which products of an ONNX file are a layer's is not known, and so not which are in %s: leave it "
                 "out, or write narrow=\"%s\" behind those of the program (paceline program print)",
                 model->name, job->fp4 ? "fp4" : "fp8", job->fp4 ? "fp4" : "fp8");
}

pl_code pl_model_program_of(const pl_model *model, const pl_job *job, pl_batch_cut cut, pl_arena *arena,
                            pl_ir_module *module, pl_error *error) {
  pl_model_program_options options = pl_model_program_defaults(job->gbs, cut.n, job->seq);
  options.batch = cut.samples;
  options.fewer = cut.fewer;
  options.element = (pl_ir_element)job->dtype;
  PL_TRY(check_narrow(model, job, error));
  if (job->fp8) options.narrow = job->fp4 ? PL_IR_F4 : PL_IR_F8;
  PL_TRY(pl_model_program_build(model, &options, arena, module, error));
  return job->flash ? PL_OK : pl_ir_unfuse(module, error);
}

static pl_code of_nothing(const pl_model *model, const pl_job *job, pl_ir_level level, pl_arena *arena,
                          pl_ir_module *module, pl_error *error) {
  pl_ir_module forward;
  PL_TRY(pl_model_program_of(model, job, pl_batch_cut_evenly(job, 1), arena, level == PL_IR_MODEL ? module : &forward,
                             error));
  PL_TRY(pl_ir_group_norms(level == PL_IR_MODEL ? module : &forward, job->norm_groups, error));
  if (level == PL_IR_MODEL) return PL_OK;
  const pl_differentiate_options backward = backward_of(job->framework);
  return pl_ir_differentiate(&forward, &backward, arena, module, error);
}

static pl_code plan_of(const pl_strategy_tree *tree, const pl_ir_module *forward, pl_arena *arena, pl_tree_plan *plan,
                       pl_error *error) {
  PL_TRY(pl_tree_plan_take(tree, forward, arena, plan, error));
  return pl_plan_adapt(plan, error);
}

pl_code pl_program_of_strategy(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                               pl_arena *arena, pl_strategy_tree *tree, pl_tree_plan *plan, pl_ir_module *module,
                               pl_error *error) {
  pl_ir_module *forward = PL_TAKE(arena, pl_ir_module, 1);
  if (forward == NULL) return pl_fail_memory(error, "a program");
  PL_TRY(pl_model_program_of(model, job, pl_batch_cut_of(job, strategy), arena, forward, error));
  PL_TRY(pl_tree_of_strategy(strategy, model, forward, arena, tree, error));
  PL_TRY(plan_of(tree, forward, arena, plan, error));
  return pl_program_of_plan(plan, job->framework, model->ends.tied_embeddings, level, arena, module, error);
}

pl_code pl_inference_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy,
                                pl_ir_level level, pl_arena *arena, pl_ir_module *module, pl_error *error) {
  pl_strategy_tree *tree = PL_TAKE(arena, pl_strategy_tree, 1);
  pl_tree_plan *plan = PL_TAKE(arena, pl_tree_plan, 1);
  pl_ir_module *forward = PL_TAKE(arena, pl_ir_module, 1);
  if (tree == NULL || plan == NULL || forward == NULL) return pl_fail_memory(error, "a strategy tree");
  if (level == PL_IR_MODEL)
    return pl_model_program_of(model, job, pl_batch_cut_of(job, strategy), arena, module, error);
  PL_TRY(pl_model_program_of(model, job, pl_batch_cut_of(job, strategy), arena, forward, error));
  PL_TRY(pl_tree_of_strategy(strategy, model, forward, arena, tree, error));
  PL_TRY(plan_of(tree, forward, arena, plan, error));
  return pl_ir_partition(&plan->program, plan, model->ends.tied_embeddings, arena, module, error);
}

pl_code pl_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                      pl_arena *arena, pl_ir_module *module, pl_error *error) {
  if (strategy == NULL) return of_nothing(model, job, level, arena, module, error);
  if (level == PL_IR_MODEL)
    return pl_model_program_of(model, job, pl_batch_cut_of(job, strategy), arena, module, error);
  pl_strategy_tree *tree = PL_TAKE(arena, pl_strategy_tree, 1);
  pl_tree_plan *plan = PL_TAKE(arena, pl_tree_plan, 1);
  if (tree == NULL || plan == NULL) return pl_fail_memory(error, "a strategy tree");
  return pl_program_of_strategy(model, job, strategy, level, arena, tree, plan, module, error);
}

pl_code pl_program_of_tree(const pl_model *model, const pl_job *job, const pl_strategy_tree *tree, pl_ir_level level,
                           pl_arena *arena, pl_tree_plan *plan, pl_ir_module *module, pl_error *error) {
  int32_t n_microbatches;
  pl_ir_module *forward = PL_TAKE(arena, pl_ir_module, 1);
  if (forward == NULL) return pl_fail_memory(error, "a program");
  PL_TRY(pl_tree_microbatches(tree, job->gbs, &n_microbatches, error));
  PL_TRY(pl_model_program_of(model, job, pl_batch_cut_evenly(job, n_microbatches), arena, forward, error));
  PL_TRY(plan_of(tree, forward, arena, plan, error));
  if (tree->prices != NULL) PL_TRY(pl_tree_check_devices(plan, tree->prices->n_devices, error));
  *module = plan->program;
  return level == PL_IR_MODEL
             ? PL_OK
             : pl_program_of_plan(plan, job->framework, model->ends.tied_embeddings, level, arena, module, error);
}
