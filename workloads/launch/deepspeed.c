/* DeepSpeed's JSON: batch, ZeRO, types. It says nothing of a model. "auto" leaves a value to who starts the job. */
#include <string.h>

#include "workloads/launch/readers.h"

static const char *const harmless[] = {"optimizer.",
                                       "scheduler.",
                                       "steps_per_print",
                                       "wall_clock",
                                       "gradient_clipping",
                                       "prescale_gradients",
                                       "fp16.loss",
                                       "fp16.initial",
                                       "fp16.hyst",
                                       "fp16.min",
                                       "fp16.auto",
                                       "zero_allow",
                                       "flops_profiler.",
                                       "tensorboard.",
                                       "wandb.",
                                       "csv_monitor.",
                                       "comms_logger.",
                                       "dump_state",
                                       "seed",
                                       "data_efficiency.",
                                       "checkpoint.",
                                       "autotuning.",
                                       "zero_optimization.contiguous",
                                       "zero_optimization.reduce_bucket",
                                       "zero_optimization.allgather_bucket",
                                       "zero_optimization.allgather_partitions",
                                       "zero_optimization.stage3_",
                                       "zero_optimization.sub_group",
                                       "zero_optimization.round_robin",
                                       "zero_optimization.reduce_scatter",
                                       "zero_optimization.ignore_unused",
                                       "zero_optimization.load",
                                       "sparse_gradients",
                                       "$",
                                       NULL};

static bool is_auto(const pl_setting *setting) {
  return setting != NULL && strcmp(setting->value, "auto") == 0;
}

static pl_code take_number(pl_launch *launch, const char *key, int64_t *value, pl_error *error) {
  const pl_setting *setting = pl_settings_take(&launch->settings, key);
  if (is_auto(setting))
    return pl_launch_assume(launch, error, "nothing for %s, which is auto: an option of simulate may say it", key);
  return pl_settings_integer(&launch->settings, key, 1, value, error);
}

static pl_code take_zero(pl_launch *launch, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  pl_settings *settings = &launch->settings;
  int64_t stage = 0, hierarchy = 0;
  s->overlap = s->overlap_is_given = true;
  PL_TRY(pl_settings_integer(settings, "zero_optimization.stage", 0, &stage, error));
  if (stage > 3)
    return pl_setting_fail(pl_settings_take(settings, "zero_optimization.stage"), error,
                           "ZeRO has stages 0 to 3, not this one");
  s->zero = (int32_t)stage;
  pl_settings_flag(settings, "zero_optimization.overlap_comm", &s->overlap);
  PL_TRY(pl_settings_integer(settings, "zero_optimization.zero_hpz_partition_size", 1, &hierarchy, error));
  PL_TRY(pl_settings_integer(settings, "zero_optimization.mics_shard_size", -1, &hierarchy, error));
  if (hierarchy > 1 && hierarchy < INT16_MAX) s->shard = (int32_t)hierarchy;
  static const char *const offloads[] = {"zero_optimization.offload_optimizer.device",
                                         "zero_optimization.offload_param.device", NULL};
  for (const char *const *key = offloads; *key != NULL; key++) {
    const pl_setting *device = pl_settings_take(settings, *key);
    if (pl_setting_is_given(device))
      PL_TRY(pl_launch_assume(launch, error, "everything on the GPUs: %s (%.16s) %s", *key, device->value,
                              key == offloads ? "--strategy says, with offload=gradients (stages 2 and 3) or states"
                                              : "is not modelled"));
  }
  return PL_OK;
}

pl_code pl_launch_deepspeed_take(pl_launch *launch, pl_error *error) {
  pl_strategy *s = &launch->strategy;
  pl_settings *settings = &launch->settings;
  int64_t mbs = 0;
  bool fp16 = false, bf16 = false;
  PL_TRY(take_number(launch, "train_batch_size", &launch->gbs, error));
  PL_TRY(take_number(launch, "train_micro_batch_size_per_gpu", &mbs, error));
  PL_TRY(take_number(launch, "gradient_accumulation_steps", &launch->n_accumulated, error));
  PL_TRY(take_zero(launch, error));
  if (!is_auto(pl_settings_take(settings, "fp16.enabled"))) pl_settings_flag(settings, "fp16.enabled", &fp16);
  if (!is_auto(pl_settings_take(settings, "bf16.enabled"))) pl_settings_flag(settings, "bf16.enabled", &bf16);
  launch->dtype_is_stated = pl_settings_take(settings, "fp16.enabled") != NULL || bf16;
  launch->dtype = bf16 ? PL_DTYPE_BF16 : fp16 ? PL_DTYPE_FP16 : PL_DTYPE_FP32;
  launch->framework = s->zero == 3 ? "deepspeed-zero3" : "deepspeed";
  PL_TRY(pl_launch_take_degree(launch, "tensor_parallel.autotp_size", &s->tmp, error));
  pl_settings_ignore(settings, harmless);
  if (mbs > INT16_MAX) return pl_fail(error, PL_BAD_INPUT, "%s: microbatches of more than %d", launch->path, INT16_MAX);
  if (mbs > 0) s->mbs = (int32_t)mbs;
  launch->mbs_is_stated = mbs > 0;
  if (launch->gbs > 0 || mbs > 0 || launch->n_accumulated > 0 ||
      pl_settings_take(settings, "zero_optimization*") != NULL)
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: neither train_batch_size nor zero_optimization is there: this is no configuration of DeepSpeed's",
                 launch->path);
}
