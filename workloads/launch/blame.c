/* See workloads/launch/blame.h. */
#include "workloads/launch/blame.h"

#include <ctype.h>
#include <string.h>

/* Keys of strategies, and what files call them behind the last dot. Of several that a message names the first here is
 * to blame: what comes later is mostly what it does not go with. */
typedef struct term {
  const char *key;
  const char *names[4];
} term;

static const term terms[] = {
    {"ep_overlap", {"overlap_moe_expert_parallel_comm"}},
    {"etp", {"expert_tensor_parallel_size", "expert_tensor_parallel_degree"}},
    {"ep", {"expert_model_parallel_size", "expert_parallel_degree"}},
    {"cp", {"context_parallel_size", "context_parallel_degree"}},
    {"sp", {"sequence_parallel"}},
    {"vpp",
     {"num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
      "virtual_pipeline_model_parallel_size", "pipeline_parallel_layers_per_stage"}},
    {"schedule", {"pipeline_parallel_schedule"}},
    {"recompute", {"recompute_granularity", "activations_checkpoint_granularity", "recompute_method"}},
    {"zero", {"stage", "use_distributed_optimizer", "data_parallel_sharding_strategy"}},
    {"mbs", {"micro_batch_size", "train_micro_batch_size_per_gpu", "local_batch_size"}},
    {"tmp", {"tensor_model_parallel_size", "tensor_parallel_degree"}},
    {"pp", {"pipeline_model_parallel_size", "pipeline_parallel_degree"}},
};

/* "ep=" in "..., ep=8 ranks", not in "etp=". */
static bool names_key(const char *message, const char *key) {
  size_t length = strlen(key);
  for (const char *at = message; (at = strstr(at, key)) != NULL; at++) {
    bool begins = at == message || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
    if (begins && at[length] == '=') return true;
  }
  return false;
}

static const pl_setting *setting_of(const pl_launch *launch, const term *of) {
  for (uint32_t i = launch->settings.n; i-- > 0;) { /* the last counts */
    const pl_setting *setting = &launch->settings.list[i];
    const char *dot = strrchr(setting->key, '.'), *last = dot != NULL ? dot + 1 : setting->key;
    for (int n = 0; n < 4 && of->names[n] != NULL; n++)
      if (setting->use == PL_SETTING_TAKEN && strcmp(last, of->names[n]) == 0) return setting;
  }
  return NULL;
}

/* As it is written: "--expert-model-parallel-size" of arguments. */
static const char *written(const pl_setting *setting, bool is_argument, char text[96]) {
  int length = snprintf(text, 96, "%s%.80s", is_argument ? "--" : "", setting->key);
  for (int i = 0; is_argument && i < length; i++)
    if (text[i] == '_') text[i] = '-';
  return text;
}

void pl_launch_blame(const pl_launch *launch, const char *model_name, pl_error *error) {
  static const char begins[] = "strategy: ";
  size_t length = model_name != NULL ? strlen(model_name) : 0;
  bool of_strategy = strncmp(error->message, begins, strlen(begins)) == 0;
  bool of_model = length > 0 && strncmp(error->message, model_name, length) == 0 && error->message[length] == ':';
  if (error->code == PL_OK || !(of_strategy || of_model)) return;
  for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
    const pl_setting *setting = names_key(error->message, terms[i].key) ? setting_of(launch, &terms[i]) : NULL;
    if (setting == NULL) continue;
    const pl_error before = *error;
    char text[96];
    bool is_argument = launch->form == PL_LAUNCH_MEGATRON && strchr(setting->key, '.') == NULL;
    *error = PL_ERROR_INIT;
    (void)pl_setting_fail(setting, error, "%s: %s", written(setting, is_argument, text),
                          before.message + (of_strategy ? strlen(begins) : 0));
    error->code = before.code;
    return;
  }
}
