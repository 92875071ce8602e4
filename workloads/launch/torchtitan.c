/* torchtitan's TOML (its JobConfig; keys moved between tables over its versions, and all of these places are read), and
 * the same keys in Primus' torchtitan configurations. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "workloads/launch/readers.h"

static const char *const harmless[] = {"job.",
                                       "profiling.",
                                       "metrics.",
                                       "optimizer.",
                                       "lr_scheduler.",
                                       "checkpoint.",
                                       "comm.",
                                       "training.steps",
                                       "training.warmup",
                                       "training.max_norm",
                                       "training.seed",
                                       "training.dataset",
                                       "training.gc_",
                                       "training.deterministic",
                                       "training.mock_data",
                                       "training.data",
                                       "training.enable_cpu_",
                                       "memory_estimation.",
                                       "fault_tolerance.",
                                       "validation.",
                                       "debug.",
                                       "tokenizer.",
                                       "model.tokenizer_path",
                                       "model.hf_assets_path",
                                       "model.norm_type",
                                       "model.print_after",
                                       "experimental.custom",
                                       "parallelism.fsdp_",
                                       "float8.recipe",
                                       "float8.precompute",
                                       "quantize.",
                                       "compile.",
                                       "training.compile",
                                       "primus_turbo.",
                                       "*sink_level",
                                       "training.fsdp_",
                                       "trainable",
                                       "*_port",
                                       "stderr",
                                       "file_sink",
                                       NULL};

/* ---- the model ---- */

const pl_torchtitan_flavor pl_torchtitan_flavors[] = {{"llama3", "8B", "llama-3.1-8b"},
                                                      {"llama3", "70B", "llama-3.1-70b"},
                                                      {"llama3", "405B", "llama-3-405b"},
                                                      {"llama2", "7B", "llama-2-7b"},
                                                      {"llama2", "13B", "llama-2-13b"},
                                                      {"llama2", "70B", "llama-2-70b"},
                                                      {"deepseek_v3", "671B", "deepseek-v3"},
                                                      {"deepseek_v3", "16B", "deepseek-v2-lite"},
                                                      {"llama3", "1B", "llama-3.2-1b"},
                                                      {"deepseek_v3", "236B", "deepseek-v2.5"},
                                                      {"llama4", "17bx16e", "llama-4-scout"},
                                                      {"llama4", "17bx128e", "llama-4-maverick"},
                                                      {"gpt_oss", "20b", "gpt-oss-20b"},
                                                      {"gpt_oss", "120b", "gpt-oss-120b"},
                                                      {"qwen3", "0.6B", "qwen3-0.6b"},
                                                      {"qwen3", "1.7B", "qwen3-1.7b"},
                                                      {"qwen3", "4B", "qwen3-4b"},
                                                      {"qwen3", "14B", "qwen3-14b"},
                                                      {"qwen3", "32B", "qwen3-32b"},
                                                      {"qwen3", "8B", "qwen3-8b"},
                                                      {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
                                                      {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
                                                      {NULL, NULL, NULL}};

static pl_code take_model(pl_launch *launch, pl_error *error) {
  const pl_setting *name = pl_settings_take(&launch->settings, "model.name");
  const pl_setting *flavor = pl_settings_take(&launch->settings, "model.flavor");
  if (!pl_setting_is_given(name) || !pl_setting_is_given(flavor)) return PL_OK;
  launch->has_model = true;
  for (const pl_torchtitan_flavor *f = pl_torchtitan_flavors; f->name != NULL; f++)
    if (strcmp(f->name, name->value) == 0 && strcmp(f->flavor, flavor->value) == 0) launch->model_name = f->model;
  if (launch->model_name != NULL)
    return pl_launch_assume(launch, error, "the model %s for torchtitan's %.32s %.32s", launch->model_name, name->value,
                            flavor->value);
  launch->has_model = false; /* --model may still name it */
  return pl_launch_assume(launch, error, "no model: none of Paceline's is torchtitan's %.32s %.32s", name->value,
                          flavor->value);
}

/* ---- degrees ---- */

/* Of the first of the keys that is there; -1 stays -1: all that is left. */
static pl_code take_first(pl_launch *launch, const char *const *keys, int64_t *value, pl_error *error) {
  for (; *keys != NULL; keys++)
    PL_TRY(pl_settings_integer(&launch->settings, *keys, -1, value, error));
  return PL_OK;
}

typedef struct degrees {
  int64_t replicate, shard, tensor, pipeline, context, expert, local_batch, microbatch;
} degrees;

static pl_code take_degrees(pl_launch *launch, degrees *d, pl_error *error) {
  static const char *const replicate[] = {"training.data_parallel_replicate_degree",
                                          "parallelism.data_parallel_replicate_degree", NULL};
  static const char *const shard[] = {"training.data_parallel_degree", "training.data_parallel_shard_degree",
                                      "parallelism.data_parallel_shard_degree", NULL};
  static const char *const tensor[] = {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree", NULL};
  static const char *const pipeline[] = {"experimental.pipeline_parallel_degree",
                                         "parallelism.pipeline_parallel_degree", NULL};
  static const char *const context[] = {"experimental.context_parallel_degree", "parallelism.context_parallel_degree",
                                        NULL};
  static const char *const expert[] = {"parallelism.expert_parallel_degree", NULL};
  static const char *const batch[] = {"training.batch_size", "training.local_batch_size", NULL};
  static const char *const micro[] = {"parallelism.pipeline_parallel_microbatch_size", NULL};
  *d = (degrees){.replicate = 1,
                 .shard = -1,
                 .tensor = 1,
                 .pipeline = 1,
                 .context = 1,
                 .expert = 1,
                 .local_batch = 8,
                 .microbatch = 1};
  PL_TRY(take_first(launch, replicate, &d->replicate, error));
  PL_TRY(take_first(launch, shard, &d->shard, error));
  PL_TRY(take_first(launch, tensor, &d->tensor, error));
  PL_TRY(take_first(launch, pipeline, &d->pipeline, error));
  PL_TRY(take_first(launch, context, &d->context, error));
  PL_TRY(take_first(launch, expert, &d->expert, error));
  PL_TRY(take_first(launch, batch, &d->local_batch, error));
  PL_TRY(take_first(launch, micro, &d->microbatch, error));
  const int64_t all[] = {d->replicate, d->tensor, d->pipeline, d->context, d->expert, d->local_batch, d->microbatch};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i] < 1 || all[i] > INT16_MAX)
      return pl_fail(error, PL_BAD_INPUT, "%s: a degree or batch of %" PRId64 " is out of range (1 to %d)",
                     launch->path, all[i], INT16_MAX);
  return PL_OK;
}

/* Without pipeline a replica's local batch is one microbatch, and a global batch several of these; with one it is cut
 * into microbatches. */
static void take_batch(pl_launch *launch, const degrees *d) {
  pl_strategy *s = &launch->strategy;
  s->mbs = (int32_t)(d->pipeline > 1 ? d->microbatch : d->local_batch);
  launch->n_accumulated = d->pipeline > 1 ? (d->local_batch + d->microbatch - 1) / d->microbatch : 1;
}

static pl_code take_schedule(pl_launch *launch, pl_error *error) {
  static const struct {
    const char *name;
    pl_schedule_kind kind;
    int32_t chunks;
  } schedules[] = {{"1F1B", PL_SCHEDULE_1F1B, 1},
                   {"GPipe", PL_SCHEDULE_GPIPE, 1},
                   {"Interleaved1F1B", PL_SCHEDULE_INTERLEAVED, 2},
                   {"LoopedBFS", PL_SCHEDULE_BREADTH_FIRST, 2},
                   {"InterleavedZeroBubble", PL_SCHEDULE_INTERLEAVED, 2},
                   {"ZBVZeroBubble", PL_SCHEDULE_ZB_V, 2},
                   {"DualPipeV", PL_SCHEDULE_DUALPIPE_V, 2}};
  pl_strategy *s = &launch->strategy;
  const pl_setting *named = pl_settings_take(&launch->settings, "parallelism.pipeline_parallel_schedule");
  if (named == NULL) named = pl_settings_take(&launch->settings, "experimental.pipeline_parallel_schedule");
  PL_TRY(pl_settings_integer(&launch->settings, "parallelism.pipeline_parallel_layers_per_stage", 1,
                             &launch->layers_per_chunk, error));
  if (!pl_setting_is_given(named) || s->pp == 1) return PL_OK;
  for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
    if (strcasecmp(schedules[i].name, named->value) == 0) {
      s->schedule = schedules[i].kind;
      s->vpp = schedules[i].chunks;
      if (strcmp(schedules[i].name, "InterleavedZeroBubble") != 0) return PL_OK;
      return pl_launch_assume(launch, error, "the interleaved schedule: InterleavedZeroBubble is not simulated");
    }
  return pl_setting_fail(named, error,
                         "'%s' is '%.64s': known are 1F1B, GPipe, Interleaved1F1B, LoopedBFS, ZBVZeroBubble, DualPipeV",
                         named->key, named->value);
}

static pl_code take_sharding(pl_launch *launch, const degrees *d, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  s->overlap = s->overlap_is_given = true;
  s->zero = d->shard == 1 ? 0 : 3;
  s->shard = d->replicate > 1 && d->shard != 1 ? -(int32_t)d->replicate : 0;
  if (s->zero == 3 && s->pp > 1) {
    s->zero = 1;
    return pl_launch_assume(launch, error,
                            "zero=1: FSDP behind pipeline stages, which reshards only at the end of a step, cannot be "
                            "said otherwise");
  }
  return PL_OK;
}

static pl_code take_recompute(pl_launch *launch, pl_error *error) {
  static const char *const modes[] = {"selective", "full", "memory_budget", NULL};
  int mode;
  const pl_setting *none = pl_settings_take(&launch->settings, "activation_checkpoint.mode");
  if (none != NULL && strcmp(none->value, "none") == 0) return PL_OK; /* a word for nothing everywhere else */
  PL_TRY(pl_settings_word(&launch->settings, "activation_checkpoint.mode", modes, &mode, error));
  const pl_setting *option = pl_settings_take(&launch->settings, "activation_checkpoint.selective_ac_option");
  launch->strategy.recompute = mode == 1 ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_ALTERNATE;
  if (mode == 1) return PL_OK;
  if (mode == 2)
    return pl_launch_assume(launch, error, "recompute=alternate for a memory budget, which cannot be said");
  if (pl_setting_is_given(option) && strcmp(option->value, "op") != 0)
    return pl_launch_assume(launch, error, "recompute=alternate: every %.16s. layer whole cannot be said",
                            option->value);
  return mode < 0 ? pl_launch_assume(launch, error, "selective checkpointing per op, torchtitan's default") : PL_OK;
}

/* float8.recipe_name, which without fp8 is nothing: the profile has scales of tensors. */
static pl_code take_scaling(pl_launch *launch, pl_error *error) {
  if (!launch->fp8) return PL_OK;
  const pl_setting *recipe = pl_settings_take(&launch->settings, "float8.recipe_name");
  if (!pl_setting_is_given(recipe) || strcmp(recipe->value, "tensorwise") == 0) return PL_OK;
  pl_settings_set_aside(&launch->settings, "float8.recipe_name");
  return pl_launch_assume(
      launch, error, "float8.recipe_name as the framework's profile has it, not %.40s: its fp8_scaling (%s) says it",
      recipe->value, strcmp(recipe->value, "rowwise") == 0 ? "rowwise" : "dynamic or rowwise");
}

static pl_code take_types(pl_launch *launch, pl_error *error) {
  static const char *const types[] = {"bfloat16", "float32", NULL};
  int parameters;
  PL_TRY(pl_settings_word(&launch->settings, "training.mixed_precision_param", types, &parameters, error));
  launch->dtype = parameters == 1 ? PL_DTYPE_FP32 : PL_DTYPE_BF16;
  launch->dtype_is_stated = true;
  launch->flash = 1;
  pl_settings_flag(&launch->settings, "float8.enable_float8_linear", &launch->fp8);
  pl_settings_flag(&launch->settings, "float8.enable_fsdp_float8_all_gather", &launch->fp8);
  const pl_setting *converters = pl_settings_take(&launch->settings, "model.converters");
  if (converters != NULL && strstr(converters->value, "float8") != NULL) launch->fp8 = true;
  return take_scaling(launch, error);
}

pl_code pl_launch_torchtitan_take(pl_launch *launch, pl_error *error) {
  degrees d;
  pl_strategy *s = &launch->strategy;
  launch->framework = "torchtitan";
  PL_TRY(take_model(launch, error));
  PL_TRY(take_degrees(launch, &d, error));
  s->pp = (int32_t)d.pipeline;
  s->tmp = (int32_t)d.tensor;
  s->cp = (int32_t)d.context;
  s->ep = (int32_t)d.expert;
  s->sp = s->tmp > 1;
  take_batch(launch, &d);
  launch->seq = 2048; /* JobConfig's */
  PL_TRY(pl_settings_integer(&launch->settings, "training.seq_len", 1, &launch->seq, error));
  int64_t global = 0;
  PL_TRY(pl_settings_integer(&launch->settings, "training.global_batch_size", -1, &global, error));
  if (global > 0) launch->gbs = global;
  PL_TRY(take_schedule(launch, error));
  PL_TRY(take_sharding(launch, &d, error));
  PL_TRY(take_recompute(launch, error));
  PL_TRY(take_types(launch, error));
  const pl_setting *rotate = pl_settings_take(&launch->settings, "parallelism.context_parallel_rotate_method");
  s->cp_gather = rotate == NULL || strcmp(rotate->value, "allgather") == 0;
  pl_settings_ignore(&launch->settings, harmless);
  return PL_OK;
}
