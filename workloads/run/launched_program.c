/* See workloads/run/launched_program.h. */
#include "workloads/run/launched_program.h"

#include "workloads/fuse/kernels.h"
#include "workloads/memory/program_memory.h"
#include "workloads/passes/program_of.h"
#include "workloads/program/program.h"

pl_code pl_program_kernels(const pl_ir_module *module, const pl_framework *framework, pl_arena *arena,
                           pl_ir_module *made, pl_error *error) {
  const pl_job job = {.dtype = pl_program_dtype(module), .framework = framework};
  const pl_kernels_options options = {.framework = framework,
                                      .update_bytes = pl_training_state_of(&job, 1).update_traffic_bytes,
                                      .kept_bytes = pl_training_state_of(&job, 1).whole_traffic_bytes,
                                      .reduced_bytes = pl_training_state_of(&job, 2).whole_traffic_bytes};
  return pl_ir_kernels(module, &options, arena, made, error);
}

pl_code pl_program_launched(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                            pl_arena *arena, pl_ir_module *made, pl_error *error) {
  bool measured = false;
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    measured = measured || cluster->profiles[p].n_programs > 0;
  *made = *module;
  return measured || module->level != PL_IR_DISTRIBUTED ? PL_OK
                                                        : pl_program_kernels(module, framework, arena, made, error);
}

/* ---- what a tuple says ---- */

const pl_framework *pl_framework_of_tuple(const pl_framework *framework, const pl_strategy *strategy, pl_arena *arena) {
  const pl_framework *own = pl_framework_or_ideal(framework);
  const pl_job job = {.framework = framework};
  pl_strategy adopted = *strategy;
  adopted.overlap_is_given = false;
  pl_strategy_adopt(&adopted, &job);
  pl_token_order order = pl_strategy_token_order(strategy);
  if (strategy->overlap == adopted.overlap && order == own->pipeline.token_order)
    return own; /* as the profile has it */
  pl_framework *made = PL_TAKE(arena, pl_framework, 1);
  if (made == NULL) return NULL;
  *made = *own;
  if (strategy->overlap != adopted.overlap) made->gradients.overlaps_gradients = strategy->overlap;
  made->pipeline.token_order = order;
  return made;
}

pl_ir_launcher pl_launcher_of(const char *choice, const pl_framework *framework, const pl_strategy *strategy) {
  pl_ir_launcher made = {.name = choice, .overlap = PL_IR_NONE};
  const pl_job job = {.framework = framework};
  if (strategy == NULL) return made;
  pl_strategy adopted = *strategy;
  adopted.overlap_is_given = false;
  pl_strategy_adopt(&adopted, &job);
  if (strategy->overlap != adopted.overlap) made.overlap = (int8_t)strategy->overlap;
  made.tokens = (uint8_t)pl_strategy_token_order(strategy);
  if (made.name == NULL && (made.overlap != PL_IR_NONE || made.tokens > 0)) made.name = pl_framework_ideal.name;
  return made;
}

const pl_framework *pl_framework_of_launcher(const pl_framework *framework, const pl_ir_launcher *launcher,
                                             pl_arena *arena) {
  const pl_framework *own = pl_framework_or_ideal(framework);
  if (launcher->overlap == PL_IR_NONE && launcher->tokens == 0) return own;
  pl_framework *made = PL_TAKE(arena, pl_framework, 1);
  if (made == NULL) return NULL;
  *made = *own;
  if (launcher->overlap != PL_IR_NONE) made->gradients.overlaps_gradients = launcher->overlap != 0;
  if (launcher->tokens > 0) made->pipeline.token_order = (pl_token_order)launcher->tokens;
  return made;
}

/* ---- what the framework holds ---- */

pl_model pl_model_held(const pl_model *model, const pl_framework *framework, int64_t tmp) {
  pl_model own = *model;
  int64_t multiple = pl_framework_or_ideal(framework)->kernels.vocab_multiple * tmp;
  if (model->width.vocab > 0 && model->program.onnx == NULL)
    own.width.vocab = (model->width.vocab + multiple - 1) / multiple * multiple;
  return own;
}

static int64_t tensor_ranks_of(const pl_tree_plan *plan) {
  int64_t most = 1;
  for (int32_t i = 0; i < plan->n_leaves; i++) {
    const pl_layout_rules *rules = &plan->leaves[i].rules;
    int64_t n = 1;
    for (int32_t axis = 0; axis < rules->mesh.n_axes; axis++)
      if (rules->on[axis].role == PL_AXIS_TENSOR) n *= rules->mesh.axes[axis].extent;
    if (n > most) most = n;
  }
  return most;
}

pl_model pl_model_held_by_plan(const pl_model *model, const pl_framework *framework, const pl_tree_plan *plan) {
  return pl_model_held(model, framework, tensor_ranks_of(plan));
}

pl_code pl_program_of_tree_held(pl_model *model, const pl_job *job, const pl_strategy_tree *tree, pl_ir_level level,
                                pl_arena *arena, pl_tree_plan *plan, pl_ir_module *module, pl_error *error) {
  PL_TRY(pl_program_of_tree(model, job, tree, PL_IR_MODEL, arena, plan, module, error));
  const pl_model held = pl_model_held_by_plan(model, job->framework, plan);
  bool is_padded = held.width.vocab != model->width.vocab;
  *model = held;
  if (is_padded) return pl_program_of_tree(model, job, tree, level, arena, plan, module, error);
  return level == PL_IR_MODEL
             ? PL_OK
             : pl_program_of_plan(plan, job->framework, model->ends.tied_embeddings, level, arena, module, error);
}
