/* See workloads/launch/launch_write.h. */
#include "workloads/launch/launch_write.h"

#include <string.h>

#include "core/base/words.h"
#include "workloads/launch/writers.h"

static pl_code refuse(pl_error *error, const char *what) {
  return pl_fail(error, PL_UNSUPPORTED, "%s", what);
}

pl_code pl_launch_check_model(const pl_model *model, pl_error *error) {
  static const char *const known[] = {"gpt2",      "llama",     "mistral",     "mixtral",     "qwen2", "qwen3",
                                      "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", NULL};
  char list[PL_WORDS_BYTES];
  if (pl_words_find(known, model->family) >= 0) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "%s: how arguments describe a model of type %s is not known here; known are %s",
                 model->name, model->family, pl_words_list(known, list, sizeof list));
}

/* Stages of equally many layers, with the embedding in the first and the head in the last. */
static bool is_even(const pl_launched *launched) {
  const pl_strategy *s = launched->strategy;
  int32_t chunks = pl_strategy_n_chunks(s), n = launched->model->n_layers;
  if (n % chunks != 0) return false;
  for (int32_t i = 1; i < chunks; i++)
    if (s->boundary[i] != PL_MODEL_BLOCKS_BEFORE_LAYERS + i * (n / chunks)) return false;
  return true;
}

pl_code pl_launch_check_host(const pl_launched *launched, pl_error *error) {
  int offload = pl_strategy_offload(launched->strategy);
  if (offload == 0) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "offload=%s: of what lies in the memory of the host only offload=gradients is written, by --as "
                 "deepspeed",
                 pl_offload_names[offload]);
}

pl_code pl_launch_check_megatron(const pl_launched *launched, pl_error *error) {
  const pl_strategy *s = launched->strategy;
  PL_TRY(pl_launch_check_model(launched->model, error));
  PL_TRY(pl_launch_check_host(launched, error));
  if (s->recompute_layers > 0 && s->recompute != PL_RECOMPUTE_FULL)
    return pl_fail(error, PL_UNSUPPORTED, "recompute=%s,recompute_layers=%d: Megatron counts layers of recompute=full",
                   pl_recompute_names[s->recompute], s->recompute_layers);
  if (s->pp > 1 && s->schedule != PL_SCHEDULE_1F1B && s->schedule != PL_SCHEDULE_INTERLEAVED)
    return pl_fail(error, PL_UNSUPPORTED, "schedule=%s: Megatron has 1f1b and interleaved",
                   pl_schedule_name(s->schedule));
  if (!is_even(launched))
    return refuse(error,
                  "assign: only stages of equally many layers are written; simulate with assign=uniform and a pp "
                  "(times vpp) that divides the layers");
  if (s->recompute == PL_RECOMPUTE_ALTERNATE)
    return refuse(error, "recompute=alternate is torchtitan's; Megatron has none, selective and full");
  if (s->placement != NULL || s->split != NULL)
    return refuse(error, "placement and split: ranks and microbatches are dealt out equally by every framework");
  return PL_OK;
}

pl_code pl_launch_write(FILE *stream, pl_launch_form form, const pl_launched *launched, pl_error *error) {
  static pl_code (*const writers[])(FILE *, const pl_launched *, pl_error *) = {
      pl_launch_write_megatron, pl_launch_write_torchtitan, pl_launch_write_nemo, pl_launch_write_deepspeed};
  return writers[form](stream, launched, error);
}
