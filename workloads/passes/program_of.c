/* See workloads/passes/program_of.h. */
#include "workloads/passes/program_of.h"

#include <string.h>

#include "workloads/import/program_build.h"
#include "workloads/passes/differentiate.h"
#include "workloads/passes/partition.h"

enum { CHOICES_MAX = 8 };

/* Layers are what recomputation acts on. */
static void choose_recompute(const pl_ir_module *model, pl_recompute recompute, pl_recompute_choice *choices,
                             pl_differentiate_options *options) {
  options->choices = choices;
  for (int32_t i = 0; i < model->n_functions && recompute != PL_RECOMPUTE_NONE; i++) {
    const char *name = model->functions[i]->name;
    if (strstr(name, "layer") == NULL || options->n_choices == CHOICES_MAX) continue;
    choices[options->n_choices++] = (pl_recompute_choice){.function = name, .recompute = (uint8_t)recompute};
  }
}

pl_code pl_program_of(const pl_model *model, const pl_job *job, const pl_strategy *strategy, pl_ir_level level,
                      pl_arena *arena, pl_ir_module *module, pl_error *error) {
  int64_t batch = strategy != NULL ? (int64_t)strategy->dp * strategy->mbs : job->gbs;
  pl_model_program_options options = pl_model_program_defaults(job->gbs, (int32_t)(job->gbs / batch), job->seq);
  options.element = (pl_ir_element)job->dtype;
  pl_ir_module forward, training;
  PL_TRY(pl_model_program_build(model, &options, arena, level == PL_IR_MODEL ? module : &forward, error));
  if (level == PL_IR_MODEL) return PL_OK;
  pl_recompute_choice choices[CHOICES_MAX];
  pl_differentiate_options backward = pl_differentiate_defaults();
  if (strategy != NULL) {
    choose_recompute(&forward, strategy->recompute, choices, &backward);
    backward.splits_weights = pl_strategy_splits_backward(strategy);
  }
  PL_TRY(pl_ir_differentiate(&forward, &backward, arena, level == PL_IR_TRAINING ? module : &training, error));
  if (level == PL_IR_TRAINING) return PL_OK;
  return pl_ir_partition(&training, model, job, strategy, arena, module, error);
}
