/* NeMo's megatron_gpt_config.yaml: trainer.* and model.*; the launcher's files have the same keys under "training". */
#include <inttypes.h>
#include <string.h>

#include "workloads/launch/readers.h"

static const char *const harmless[] = {"name",
                                       "restore_from_path",
                                       "exp_manager.",
                                       "trainer.log",
                                       "trainer.max_",
                                       "trainer.val",
                                       "trainer.limit",
                                       "trainer.enable",
                                       "trainer.gradient_clip",
                                       "trainer.benchmark",
                                       "trainer.accelerator",
                                       "trainer.use_distributed_sampler",
                                       "trainer.replace_sampler",
                                       "trainer.strategy",
                                       "trainer.num_sanity",
                                       "run.",
                                       "hydra.",
                                       "defaults",
                                       "model.init_method_std",
                                       "model.use_scaled_init",
                                       "model.layernorm_epsilon",
                                       "model.kv_cache",
                                       "model.apply_query_key",
                                       "model.fp32_residual",
                                       "model.tokenizer",
                                       "model.native_amp",
                                       "model.hysteresis",
                                       "model.fp16_lm",
                                       "model.seed",
                                       "model.resume",
                                       "model.sync_batch",
                                       "model.nsys",
                                       "model.data.",
                                       "model.optim.lr",
                                       "model.optim.weight",
                                       "model.optim.betas",
                                       "model.optim.sched",
                                       "model.gc_",
                                       "model.onnx",
                                       "model.apex",
                                       "model.mcore_gpt",
                                       "model.transformer_engine",
                                       "model.fp8_",
                                       "model.masked_softmax",
                                       "model.persist",
                                       "model.bias_",
                                       "model.gradient_accumulation_fusion",
                                       "model.gradient_as_bucket",
                                       "model.barrier",
                                       "model.rotary",
                                       "model.do_layer_norm",
                                       "model.pre_process",
                                       "model.post_process",
                                       "model.headscale",
                                       "model.transformer_block_type",
                                       "model.openai_gelu",
                                       "model.normalize_attention",
                                       "model.attention_type",
                                       "model.megatron_amp",
                                       "model.grad_div",
                                       "model.grad_allreduce",
                                       "model.ub_tp",
                                       "model.use_emha",
                                       "model.num_micro_batches_with",
                                       "model.activations_checkpoint_layers_per_pipeline",
                                       "model.rampup",
                                       "model.virtual",
                                       "model.seq_len_interp",
                                       "model.dist_ckpt",
                                       "model.name",
                                       "model.cpu_",
                                       "model.overlap_p2p",
                                       "model.batch_p2p",
                                       "model.reduce_amax",
                                       "model.use_fp8",
                                       "model.optim.bucket",
                                       "model.optim.contiguous",
                                       "model.optim.grad_sync_dtype",
                                       "model.optim.overlap_param",
                                       "model.optim.eps",
                                       "model.optim.bucket_cap",
                                       "model.nccl",
                                       NULL};

static pl_code take_model(pl_launch *launch, pl_error *error) {
  pl_launch_model *m = &launch->model;
  pl_settings *settings = &launch->settings;
  const pl_launch_number numbers[] = {{"model.num_layers", 1, &m->n_layers},
                                      {"model.hidden_size", 1, &m->hidden},
                                      {"model.ffn_hidden_size", 1, &m->ffn},
                                      {"model.num_attention_heads", 1, &m->n_heads},
                                      {"model.kv_channels", 1, &m->head_size},
                                      {"model.num_query_groups", 1, &m->n_kv_heads},
                                      {"model.max_position_embeddings", 1, &m->positions},
                                      {"model.num_moe_experts", 1, &m->n_experts},
                                      {"model.moe_router_topk", 1, &m->topk},
                                      {"model.tokenizer.vocab_size", 1, &m->vocab},
                                      {"model.data.seq_length", 1, &launch->seq},
                                      {"model.encoder_seq_length", 1, &launch->seq}};
  m->attention_dropout = m->hidden_dropout = 0.1;
  m->topk = 2;
  m->bias = true;
  PL_TRY(pl_launch_take_numbers(launch, numbers, sizeof numbers / sizeof numbers[0], error));
  PL_TRY(pl_settings_number(settings, "model.hidden_dropout", &m->hidden_dropout, error));
  PL_TRY(pl_settings_number(settings, "model.attention_dropout", &m->attention_dropout, error));
  bool tied = true;
  pl_settings_flag(settings, "model.bias", &m->bias);
  pl_settings_flag(settings, "model.share_embeddings_and_output_weights", &tied);
  pl_settings_flag(settings, "model.qkv_bias", &m->qkv_bias);
  m->untied = !tied;
  const pl_setting *activation = pl_settings_take(settings, "model.activation");
  m->gated = activation != NULL && strstr(activation->value, "glu") != NULL;
  m->squared_relu = activation != NULL && strcmp(activation->value, "squared-relu") == 0;
  const pl_setting *norm = pl_settings_take(settings, "model.normalization");
  m->rms_norm = norm != NULL && strcmp(norm->value, "rmsnorm") == 0;
  const pl_setting *position = pl_settings_take(settings, "model.position_embedding_type");
  m->rotary = position != NULL && strcmp(position->value, "rope") == 0;
  launch->has_model = m->n_layers > 0 && m->hidden > 0;
  if (!launch->has_model) return PL_OK;
  if (m->n_kv_heads == 0) m->n_kv_heads = m->n_heads;
  if (m->ffn == 0) m->ffn = 4 * m->hidden;
  m->expert_ffn = m->ffn;
  if (m->positions == 0) m->positions = launch->seq;
  const pl_setting *type = pl_settings_take(settings, "model.tokenizer.type");
  return pl_launch_take_vocab(launch, type, error);
}

static pl_code take_types(pl_launch *launch, pl_error *error) {
  pl_settings *settings = &launch->settings;
  const pl_setting *precision = pl_settings_take(settings, "trainer.precision");
  const char *value = pl_setting_is_given(precision) ? precision->value : "";
  bool flash = false;
  launch->dtype = strstr(value, "bf16") != NULL ? PL_DTYPE_BF16
                  : strstr(value, "16") != NULL ? PL_DTYPE_FP16
                                                : PL_DTYPE_FP32;
  launch->dtype_is_stated = true;
  pl_settings_flag(settings, "model.fp8", &launch->fp8);
  if (pl_settings_take(settings, "model.use_flash_attention") != NULL) {
    pl_settings_flag(settings, "model.use_flash_attention", &flash);
    launch->flash = flash;
  }
  return value[0] == '\0' ? pl_launch_assume(launch, error, "fp32: trainer.precision is not there") : PL_OK;
}

/* Collectives beside products, which the profile has. */
static pl_code take_tensor_overlap(pl_launch *launch, pl_error *error) {
  static const char key[] = "model.ub_tp_comm_overlap";
  bool is_on = true;
  if (!launch->strategy.sp) return PL_OK;
  pl_settings_flag(&launch->settings, key, &is_on);
  if (is_on) return PL_OK;
  pl_settings_set_aside(&launch->settings, key);
  return pl_launch_assume(launch, error,
                          "ub_tp_comm_overlap as the framework's profile has it, not false: its overlaps_tensor says "
                          "it, which nemo has");
}

static pl_code take_strategy(pl_launch *launch, pl_error *error) {
  static const char *const granularities[] = {"full", "selective", NULL};
  pl_strategy *s = &launch->strategy;
  pl_settings *settings = &launch->settings;
  PL_TRY(pl_launch_take_degree(launch, "model.tensor_model_parallel_size", &s->tmp, error));
  PL_TRY(pl_launch_take_degree(launch, "model.pipeline_model_parallel_size", &s->pp, error));
  PL_TRY(pl_launch_take_degree(launch, "model.virtual_pipeline_model_parallel_size", &s->vpp, error));
  PL_TRY(pl_launch_take_degree(launch, "model.context_parallel_size", &s->cp, error));
  PL_TRY(pl_launch_take_degree(launch, "model.expert_model_parallel_size", &s->ep, error));
  PL_TRY(pl_launch_take_degree(launch, "model.micro_batch_size", &s->mbs, error));
  PL_TRY(pl_settings_integer(settings, "model.global_batch_size", 1, &launch->gbs, error));
  PL_TRY(pl_settings_integer(settings, "trainer.accumulate_grad_batches", 1, &launch->n_accumulated, error));
  pl_settings_flag(settings, "model.sequence_parallel", &s->sp);
  s->sp = s->sp && s->tmp > 1;
  PL_TRY(take_tensor_overlap(launch, error));
  int granularity;
  PL_TRY(pl_settings_word(settings, "model.activations_checkpoint_granularity", granularities, &granularity, error));
  s->recompute = granularity == 0 ? PL_RECOMPUTE_FULL : granularity == 1 ? PL_RECOMPUTE_SELECTIVE : PL_RECOMPUTE_NONE;
  const pl_setting *method = pl_settings_take(settings, "model.activations_checkpoint_method");
  const pl_setting *layers = pl_settings_take(settings, "model.activations_checkpoint_num_layers");
  if (granularity == 0 && pl_setting_is_given(method) && strcmp(method->value, "block") == 0)
    PL_TRY(pl_launch_assume(
        launch, error,
        "full recomputation of all layers: of %.16s of a stage --strategy says it, with recompute_layers",
        layers != NULL ? layers->value : "some"));
  const pl_setting *optimizer = pl_settings_take(settings, "model.optim.name");
  s->zero = optimizer != NULL && strcmp(optimizer->value, "distributed_fused_adam") == 0;
  s->overlap = s->overlap_is_given = true;
  pl_settings_flag(settings, "model.optim.overlap_grad_sync", &s->overlap);
  return PL_OK;
}

pl_code pl_launch_nemo_take(pl_launch *launch, pl_error *error) {
  int64_t nodes = 0, per_node = 0;
  launch->framework = "nemo";
  PL_TRY(take_model(launch, error));
  PL_TRY(take_types(launch, error));
  PL_TRY(take_strategy(launch, error));
  PL_TRY(pl_settings_integer(&launch->settings, "trainer.num_nodes", 1, &nodes, error));
  PL_TRY(pl_settings_integer(&launch->settings, "trainer.devices", 1, &per_node, error));
  launch->n_gpus = nodes * per_node;
  pl_settings_ignore(&launch->settings, harmless);
  if (pl_settings_take(&launch->settings, "model.micro_batch_size") != NULL || launch->has_model) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: neither model.num_layers nor model.micro_batch_size is there: this is no configuration of NeMo's "
                 "(trainer, model) or of Primus' (modules)",
                 launch->path);
}
