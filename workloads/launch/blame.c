/* See workloads/launch/blame.h. */
#include "workloads/launch/blame.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 5, SHOWN = 96, MESSAGE = 1024 };

/* Keys of strategies, and what files call them behind the last dot. Of several that a message names the first here is
 * to blame: what comes later is mostly what it does not go with. */
typedef struct term {
  const char *key;
  const char *names[NAMES];
  const char *argument; /* Megatron's, which may be added to a file without it; NULL: there is none */
  bool is_switch;       /* without a value: KEY=1 */
} term;

static const term terms[] = {
    {"ep_overlap",
     {"overlap_moe_expert_parallel_comm", "moe_shared_expert_overlap"},
     "--overlap-moe-expert-parallel-comm",
     true},
    {"etp", {"expert_tensor_parallel_size", "expert_tensor_parallel_degree"}, "--expert-tensor-parallel-size", false},
    {"ep", {"expert_model_parallel_size", "expert_parallel_degree"}, "--expert-model-parallel-size", false},
    {"cp", {"context_parallel_size", "context_parallel_degree"}, "--context-parallel-size", false},
    {"sp", {"sequence_parallel"}, "--sequence-parallel", true},
    {"vpp",
     {"num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
      "virtual_pipeline_model_parallel_size", "pipeline_parallel_layers_per_stage"},
     "--num-virtual-stages-per-pipeline-rank",
     false},
    {"schedule", {"pipeline_parallel_schedule"}, NULL, false},
    {"recompute",
     {"recompute_granularity", "activations_checkpoint_granularity", "recompute_method"},
     "--recompute-granularity",
     false},
    {"zero", {"stage", "use_distributed_optimizer", "data_parallel_sharding_strategy"}, NULL, false},
    {"mbs", {"micro_batch_size", "train_micro_batch_size_per_gpu", "local_batch_size"}, "--micro-batch-size", false},
    {"tmp", {"tensor_model_parallel_size", "tensor_parallel_degree"}, "--tensor-model-parallel-size", false},
    {"pp", {"pipeline_model_parallel_size", "pipeline_parallel_degree"}, "--pipeline-model-parallel-size", false},
    {"gbs", {"global_batch_size", "train_batch_size"}, "--global-batch-size", false},
    {"accumulated", {"gradient_accumulation_steps", "accumulate_grad_batches"}, NULL, false},
};
enum { TERMS = sizeof terms / sizeof terms[0] };

/* Keys of the configuration that a model's dimensions become. */
static const term dimensions[] = {
    {"num_key_value_heads", {"num_query_groups", "num_attention_heads"}, NULL, false},
    {"num_attention_heads", {"num_attention_heads"}, NULL, false},
    {"n_head", {"num_attention_heads"}, NULL, false},
    {"hidden_size", {"hidden_size"}, NULL, false},
    {"n_embd", {"hidden_size"}, NULL, false},
    {"intermediate_size", {"ffn_hidden_size", "moe_ffn_hidden_size"}, NULL, false},
    {"moe_intermediate_size", {"moe_ffn_hidden_size"}, NULL, false},
    {"shared_expert_intermediate_size", {"moe_shared_expert_intermediate_size"}, NULL, false},
    {"num_experts_per_tok", {"moe_router_topk"}, NULL, false},
    {"num_local_experts", {"num_experts", "num_moe_experts"}, NULL, false},
    {"num_experts", {"num_experts", "num_moe_experts"}, NULL, false},
    {"n_routed_experts", {"num_experts", "num_moe_experts"}, NULL, false},
    {"num_hidden_layers", {"num_layers"}, NULL, false},
    {"n_layer", {"num_layers"}, NULL, false},
    {"vocab_size", {"vocab_size", "padded_vocab_size"}, NULL, false},
    {"max_position_embeddings", {"max_position_embeddings", "seq_length"}, NULL, false},
    {"head_dim", {"kv_channels"}, NULL, false},
    {"q_lora_rank", {"q_lora_rank"}, NULL, false},
    {"kv_lora_rank", {"kv_lora_rank"}, NULL, false},
    {"qk_rope_head_dim", {"qk_pos_emb_head_dim"}, NULL, false},
    {"qk_nope_head_dim", {"qk_head_dim"}, NULL, false},
    {"v_head_dim", {"v_head_dim"}, NULL, false},
};
enum { DIMENSIONS = sizeof dimensions / sizeof dimensions[0] };

static bool is_of_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* The next "ep" in "ep * tmp" or "ep=8 ranks", not in "step", "etp=" or "ep_overlap"; NULL: none. */
static const char *find_word(const char *message, const char *word) {
  size_t length = strlen(word);
  for (const char *at = message; (at = strstr(at, word)) != NULL; at++)
    if ((at == message || !is_of_word(at[-1])) && !is_of_word(at[length])) return at;
  return NULL;
}

static bool is_set(const char *message, const char *key) {
  for (const char *at = message; (at = find_word(at, key)) != NULL; at++)
    if (at[strlen(key)] == '=') return true;
  return false;
}

static const pl_setting *setting_of(const pl_launch *launch, const term *of) {
  for (int n = 0; n < NAMES && of->names[n] != NULL; n++)
    for (uint32_t i = launch->settings.n; i-- > 0;) { /* the last counts */
      const pl_setting *setting = &launch->settings.list[i];
      const char *dot = strrchr(setting->key, '.'), *last = dot != NULL ? dot + 1 : setting->key;
      if (setting->use == PL_SETTING_TAKEN && strcmp(last, of->names[n]) == 0) return setting;
    }
  return NULL;
}

/* As it is written: "--expert-model-parallel-size" of arguments. */
static const char *written(const pl_launch *launch, const pl_setting *setting, char text[SHOWN]) {
  bool is_argument = launch->form == PL_LAUNCH_MEGATRON && strchr(setting->key, '.') == NULL;
  int length = snprintf(text, SHOWN, "%s%.80s", is_argument ? "--" : "", setting->key);
  for (int i = 0; is_argument && i < length; i++)
    if (text[i] == '_') text[i] = '-';
  return text;
}

/* " (mbs is --micro-batch-size, sp=1 is --sequence-parallel)": of the keys that a message names those that the file
 * can say, by its own names. "" of none. */
static void put_legend(const pl_launch *launch, const char *message, char *text, size_t size) {
  size_t length = 0;
  for (size_t i = 0; i < TERMS; i++) {
    char name[SHOWN];
    const pl_setting *setting = setting_of(launch, &terms[i]);
    bool is_short = strlen(terms[i].key) <= 3; /* others are words, too */
    if (is_short ? find_word(message, terms[i].key) == NULL : !is_set(message, terms[i].key)) continue;
    const char *shown = setting != NULL                      ? written(launch, setting, name)
                        : launch->form == PL_LAUNCH_MEGATRON ? terms[i].argument
                                                             : NULL;
    if (shown == NULL || length + 2 * SHOWN > size) continue;
    bool is_switch = terms[i].is_switch || (setting != NULL && setting->value[0] == '\0');
    length += (size_t)snprintf(text + length, size - length, "%s%s%s is %s", length == 0 ? " (" : ", ", terms[i].key,
                               is_switch ? "=1" : "", shown);
  }
  if (length > 0) snprintf(text + length, size - length, ")");
}

/* Likewise the dimensions that the file calls otherwise. */
static void put_dimensions(const pl_launch *launch, const char *message, char *text, size_t size) {
  size_t length = 0;
  for (size_t i = 0; i < DIMENSIONS; i++) {
    char name[SHOWN];
    const term *of = &dimensions[i];
    const pl_setting *setting = find_word(message, of->key) != NULL ? setting_of(launch, of) : NULL;
    if (setting == NULL || strcmp(of->names[0], of->key) == 0 || length + 2 * SHOWN > size) continue;
    length += (size_t)snprintf(text + length, size - length, "%s%s is %s", length == 0 ? " (" : ", ", of->key,
                               written(launch, setting, name));
  }
  if (length > 0) snprintf(text + length, size - length, ")");
}

/* The model that a file describes has no name of its own: pl_launch_model_text calls it "launched". */
static void put_message(const char *message, char *text, size_t size) {
  static const char own[] = PL_LAUNCH_MODEL_NAME;
  size_t length = strlen(own);
  if (strncmp(message, own, length) == 0 && message[length] == ':') message += length + 2;
  const char *at = find_word(message, own);
  if (at == NULL)
    snprintf(text, size, "%s", message);
  else
    snprintf(text, size, "%.*sthe model%s", (int)(at - message), message, at + length);
}

static void put_blame(const pl_launch *launch, const pl_setting *setting, const char *message, bool of_model,
                      pl_error *error) {
  char text[MESSAGE], legend[MESSAGE] = "", name[SHOWN];
  pl_code code = error->code;
  put_message(message, text, sizeof text);
  (of_model ? put_dimensions : put_legend)(launch, text, legend, sizeof legend);
  *error = PL_ERROR_INIT;
  if (setting != NULL)
    (void)pl_fail(error, code, "%s:%d: %s: %s%s", setting->path, setting->line, written(launch, setting, name), text,
                  legend);
  else
    (void)pl_fail(error, code, "%s: %s%s", launch->path, text, legend);
}

/* Where the message begins, which is about a strategy or about the model of that name; NULL: about neither. */
static const char *begin_of(const pl_error *error, const char *model_name) {
  static const char strategy[] = "strategy: ";
  size_t length = model_name != NULL ? strlen(model_name) : 0;
  if (error->code == PL_OK) return NULL;
  if (strncmp(error->message, strategy, strlen(strategy)) == 0) return error->message + strlen(strategy);
  bool of_model = length > 0 && strncmp(error->message, model_name, length) == 0 && error->message[length] == ':';
  return of_model ? error->message : NULL;
}

void pl_launch_blame(const pl_launch *launch, const char *model_name, pl_error *error) {
  const pl_error before = *error;
  const char *message = begin_of(&before, model_name);
  const pl_setting *setting = NULL;
  if (message == NULL) return;
  for (size_t i = 0; setting == NULL && i < TERMS; i++)
    if (is_set(message, terms[i].key)) setting = setting_of(launch, &terms[i]);
  if (setting != NULL || strcmp(model_name != NULL ? model_name : "", PL_LAUNCH_MODEL_NAME) == 0)
    put_blame(launch, setting, message, false, error);
}

void pl_launch_blame_key(const pl_launch *launch, const char *key, pl_error *error) {
  const pl_error before = *error;
  const pl_setting *setting = NULL;
  for (size_t i = 0; setting == NULL && i < TERMS; i++)
    if (strcmp(terms[i].key, key) == 0) setting = setting_of(launch, &terms[i]);
  put_blame(launch, setting, before.message, false, error);
}

/* "train.sh:5:18: 'hidden_size' = 100 is not ...": at 'hidden_size' the configuration that nobody has seen. */
void pl_launch_blame_model(const pl_launch *launch, pl_error *error) {
  const pl_error before = *error;
  const char *message = before.message, *first = NULL;
  const pl_setting *setting = NULL;
  size_t length = strlen(launch->path);
  if (strncmp(message, launch->path, length) == 0 && message[length] == ':') {
    message += length + 1;
    message += strspn(message, "0123456789: ");
  }
  for (size_t i = 0; i < DIMENSIONS; i++) {
    const char *at = find_word(message, dimensions[i].key);
    const pl_setting *found = at != NULL && (first == NULL || at < first) ? setting_of(launch, &dimensions[i]) : NULL;
    if (found == NULL) continue;
    setting = found;
    first = at;
  }
  put_blame(launch, setting, message, true, error);
}
