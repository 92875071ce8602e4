/* Arguments of Megatron-LM (megatron/training/arguments.py names them), with dashes as underscores; and the keys of
 * Primus' Megatron configurations, which are the names under which Megatron keeps them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/launch/expert_layers.h"
#include "workloads/launch/readers.h"

/* Without effect on the time of a step, or on what Paceline says of it: learning rates, data, checkpoints, logs; and
 * kernels whose fusing the framework's profile says. */
static const char *const harmless[] = {"lr",
                                       "min_lr",
                                       "decoupled_",
                                       "weight_decay",
                                       "adam_",
                                       "clip_grad",
                                       "init_method",
                                       "seed",
                                       "split",
                                       "data_",
                                       "train_",
                                       "valid_",
                                       "test_",
                                       "mock_data",
                                       "tokenizer",
                                       "vocab_file",
                                       "merge_file",
                                       "tiktoken",
                                       "log_",
                                       "save",
                                       "load",
                                       "no_load",
                                       "no_save",
                                       "eval_",
                                       "exit_",
                                       "tensorboard",
                                       "wandb",
                                       "profile",
                                       "timing",
                                       "ckpt_",
                                       "dist_ckpt",
                                       "distributed_timeout",
                                       "distributed_backend",
                                       "num_workers",
                                       "no_create_attention_mask",
                                       "no_mmap",
                                       "manual_gc",
                                       "rotary_base",
                                       "rotary_percent",
                                       "rotary_scaling",
                                       "rotary_seq_len",
                                       "use_rope_scaling",
                                       "rope_",
                                       "norm_epsilon",
                                       "layernorm_epsilon",
                                       "apply_layernorm_1p",
                                       "attention_softmax_in_fp32",
                                       "apply_query_key_layer_scaling",
                                       "initial_loss_scale",
                                       "loss_scale",
                                       "hysteresis",
                                       "finetune",
                                       "use_mcore_models",
                                       "use_legacy_models",
                                       "deprecated_use",
                                       "optimizer",
                                       "dataloader",
                                       "use_checkpoint",
                                       "override_opt",
                                       "async_save",
                                       "overlap_param_gather",
                                       "grad_reduce_in",
                                       "make_vocab_size",
                                       "empty_unused",
                                       "calculate_per_token",
                                       "moe_aux_loss",
                                       "moe_shared_expert_overlap",
                                       "moe_z_loss",
                                       "moe_router_load_balancing",
                                       "moe_router_dtype",
                                       "moe_router_score",
                                       "moe_router_bias",
                                       "moe_router_enable",
                                       "moe_router_pre",
                                       "moe_router_topk_scaling",
                                       "moe_router_num_groups",
                                       "moe_router_group",
                                       "moe_token_dispatcher",
                                       "moe_per_layer",
                                       "mscale",
                                       "beta_",
                                       "node_rank",
                                       "master_addr",
                                       "master_port",
                                       "rdzv_",
                                       "nnodes",
                                       "nproc",
                                       "role",
                                       "tee",
                                       "redirects",
                                       "max_restarts",
                                       "exp_name",
                                       "cross_entropy",
                                       "no_bias",
                                       "bias_",
                                       "no_masked",
                                       "masked_softmax",
                                       "gradient_accumulation_fusion",
                                       "no_gradient_accumulation",
                                       "apply_rope_fusion",
                                       "no_rope_fusion",
                                       "no_persist",
                                       "te_",
                                       "tp_comm_",
                                       "fp8_",
                                       "use_cpu",
                                       "no_check_for_nan",
                                       "check_for_nan",
                                       "trust_remote",
                                       "legacy_",
                                       "deepspeed",
                                       "sbatch_",
                                       "stderr_",
                                       "stdout_",
                                       "file_sink",
                                       "trainable",
                                       "disable_",
                                       "auto_",
                                       "local_rank",
                                       "nccl_",
                                       "num_dataset",
                                       "eod_mask",
                                       "reset_",
                                       "train_iters",
                                       "model_type",
                                       "rampup_batch_size_ignored",
                                       "pp_warmup",
                                       "accumulate_allreduce",
                                       "use_rotary_position",
                                       "no_async",
                                       "original_max",
                                       "encoder_num_layers",
                                       "decoder_num_layers",
                                       "clone_scatter",
                                       "transformer_impl",
                                       "log",
                                       "*_path",
                                       "*_dir",
                                       "*_interval",
                                       "*_iters",
                                       NULL};

/* ---- the model ---- */

/* --moe-layer-freq: N, every N-th from the first on; or a list in Python. */
static pl_code take_expert_layers(pl_launch *launch, pl_error *error) {
  pl_launch_model *m = &launch->model;
  const pl_setting *setting = pl_settings_take(&launch->settings, "moe_layer_freq");
  if (!pl_setting_is_given(setting)) return PL_OK;
  char *end;
  long step = strtol(setting->value, &end, 10);
  if (*end == '\0' && step >= 1 && step <= PL_EXPERT_LAYERS_MAX) {
    m->expert_step = step;
    return PL_OK;
  }
  if (pl_expert_layers_read(setting->value, &m->n_dense_layers, &m->expert_step, &m->expert_phase)) return PL_OK;
  return pl_setting_fail(setting, error,
                         "'%s' is '%.64s': known are N, and lists as ([0]*A+[1]*B) or ([1,0]*A) of dense layers and "
                         "then one with experts every so many",
                         setting->key, setting->value);
}

static pl_code take_experts(pl_launch *launch, pl_error *error) {
  pl_launch_model *m = &launch->model;
  pl_settings *settings = &launch->settings;
  const pl_launch_number numbers[] = {{"num_experts", 1, &m->n_experts},
                                      {"moe_router_topk", 1, &m->topk},
                                      {"moe_ffn_hidden_size", 1, &m->expert_ffn},
                                      {"moe_shared_expert_intermediate_size", 0, &m->shared_ffn},
                                      {"q_lora_rank", 1, &m->q_rank},
                                      {"qk_head_dim", 1, &m->nope_size},
                                      {"qk_pos_emb_head_dim", 1, &m->rope_size},
                                      {"v_head_dim", 1, &m->value_size}};
  m->topk = 2;
  PL_TRY(pl_launch_take_numbers(launch, numbers, sizeof numbers / sizeof numbers[0], error));
  bool latent = false;
  pl_settings_flag(settings, "multi_latent_attention", &latent);
  int64_t rank = 32; /* Megatron's own defaults */
  PL_TRY(pl_settings_integer(settings, "kv_lora_rank", 1, &rank, error));
  if (latent) {
    m->kv_rank = rank;
    if (m->nope_size == 0) m->nope_size = 128;
    if (m->rope_size == 0) m->rope_size = 64;
    if (m->value_size == 0) m->value_size = 128;
  }
  PL_TRY(pl_settings_number(settings, "moe_expert_capacity_factor", &m->capacity_factor, error));
  return take_expert_layers(launch, error);
}

static void take_traits(pl_launch *launch) {
  pl_launch_model *m = &launch->model;
  pl_settings *settings = &launch->settings;
  bool biased = true, unbiased = false, checks = false;
  pl_settings_flag(settings, "swiglu", &m->gated);
  pl_settings_flag(settings, "squared_relu", &m->squared_relu);
  bool geglu = false;
  pl_settings_flag(settings, "quick_geglu", &geglu);
  m->gated = m->gated || geglu;
  pl_settings_flag(settings, "add_bias_linear", &biased);
  pl_settings_flag(settings, "disable_bias_linear", &unbiased);
  m->bias = biased && !unbiased;
  pl_settings_flag(settings, "add_qkv_bias", &m->qkv_bias);
  pl_settings_flag(settings, "qk_layernorm", &m->qk_norm);
  pl_settings_flag(settings, "untie_embeddings_and_output_weights", &m->untied);
  pl_settings_flag(settings, "no_position_embedding", &checks);
  const pl_setting *position = pl_settings_take(settings, "position_embedding_type");
  m->rotary = position != NULL && strcmp(position->value, "rope") == 0;
  pl_settings_flag(settings, "use_rotary_position_embeddings", &m->rotary);
  const pl_setting *norm = pl_settings_take(settings, "normalization");
  m->rms_norm = norm != NULL && strcmp(norm->value, "RMSNorm") == 0;
  const pl_setting *script = pl_settings_take(settings, "script");
  m->bert = script != NULL && strstr(script->value, "bert") != NULL;
}

static pl_code take_model(pl_launch *launch, pl_error *error) {
  pl_launch_model *m = &launch->model;
  pl_settings *settings = &launch->settings;
  const pl_launch_number numbers[] = {{"num_layers", 1, &m->n_layers},
                                      {"hidden_size", 1, &m->hidden},
                                      {"ffn_hidden_size", 1, &m->ffn},
                                      {"num_attention_heads", 1, &m->n_heads},
                                      {"kv_channels", 1, &m->head_size},
                                      {"num_query_groups", 1, &m->n_kv_heads},
                                      {"max_position_embeddings", 1, &m->positions},
                                      {"vocab_size", 1, &m->vocab},
                                      {"padded_vocab_size", 1, &m->vocab},
                                      {"seq_length", 1, &launch->seq},
                                      {"encoder_seq_length", 1, &launch->seq}};
  m->attention_dropout = m->hidden_dropout = 0.1;
  PL_TRY(pl_launch_take_numbers(launch, numbers, sizeof numbers / sizeof numbers[0], error));
  PL_TRY(pl_settings_number(settings, "attention_dropout", &m->attention_dropout, error));
  PL_TRY(pl_settings_number(settings, "hidden_dropout", &m->hidden_dropout, error));
  take_traits(launch);
  PL_TRY(take_experts(launch, error));
  bool grouped = false;
  pl_settings_flag(settings, "group_query_attention", &grouped);
  launch->has_model = m->n_layers > 0 && m->hidden > 0;
  if (!launch->has_model) return PL_OK;
  if (m->n_kv_heads == 0 || (!grouped && pl_settings_take(settings, "group_query_attention") != NULL))
    m->n_kv_heads = m->n_heads;
  if (m->ffn == 0) m->ffn = m->gated ? (4 * m->hidden * 2 / 3) / 64 * 64 : 4 * m->hidden; /* arguments.py */
  if (m->expert_ffn == 0) m->expert_ffn = m->ffn;
  if (m->positions == 0) m->positions = launch->seq;
  return pl_launch_take_vocab(launch, pl_settings_take(settings, "tokenizer_*"), error);
}

/* ---- the job ---- */

/* --fp8-recipe, which without fp8 is nothing. Scales of MXFP8 belong to blocks and cost, as delayed ones, no pass over
 * the tensor: the profile has delayed ones. */
static pl_code take_scaling(pl_launch *launch, pl_error *error) {
  if (!launch->fp8) return PL_OK;
  const pl_setting *recipe = pl_settings_take(&launch->settings, "fp8_recipe");
  if (!pl_setting_is_given(recipe) || strcmp(recipe->value, "delayed") == 0 || strcmp(recipe->value, "mxfp8") == 0)
    return PL_OK;
  pl_settings_set_aside(&launch->settings, "fp8_recipe");
  return pl_launch_assume(
      launch, error, "fp8_recipe as the framework's profile has it, not %.40s: its fp8_scaling (%s) says it",
      recipe->value, strcmp(recipe->value, "tensorwise") == 0 ? "current" : "delayed, current, dynamic or rowwise");
}

static pl_code take_types(pl_launch *launch, pl_error *error) {
  static const char *const backends[] = {"auto", "flash", "fused", "unfused", "local", NULL};
  pl_settings *settings = &launch->settings;
  bool fp16 = false, bf16 = false, fp8 = false, flash = false;
  int backend;
  pl_settings_flag(settings, "fp16", &fp16);
  pl_settings_flag(settings, "bf16", &bf16);
  const pl_setting *format = pl_settings_take(settings, "fp8_format");
  if (format == NULL) format = pl_settings_take(settings, "fp8");
  fp8 = pl_setting_is_true(format) && (format->value[0] == '\0' || pl_setting_is_given(format));
  pl_settings_flag(settings, "use_flash_attn", &flash);
  PL_TRY(pl_settings_word(settings, "attention_backend", backends, &backend, error));
  launch->dtype = bf16 ? PL_DTYPE_BF16 : fp16 ? PL_DTYPE_FP16 : PL_DTYPE_FP32;
  launch->dtype_is_stated = true;
  launch->fp8 = fp8;
  PL_TRY(take_scaling(launch, error));
  if (flash || backend == 1 || backend == 2) launch->flash = 1;
  if (backend >= 3) launch->flash = 0;
  if (!fp16 && !bf16) return pl_launch_assume(launch, error, "fp32: neither fp16 nor bf16 is asked for");
  return PL_OK;
}

static pl_code take_gpus(pl_launch *launch, pl_error *error) {
  int64_t nodes = 0, per_node = 0, world = 0;
  const pl_launch_number numbers[] = {{"nnodes", 1, &nodes},
                                      {"num_nodes", 1, &nodes},
                                      {"sbatch_nodes", 1, &nodes},
                                      {"nproc_per_node", 1, &per_node},
                                      {"nproc-per-node", 1, &per_node},
                                      {"sbatch_ntasks-per-node", 1, &per_node},
                                      {"world_size", 1, &world}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    pl_error other = PL_ERROR_INIT; /* "1:4" and the like say nothing here */
    pl_settings_integer(&launch->settings, numbers[i].key, numbers[i].lowest, numbers[i].value, &other);
  }
  launch->n_gpus = world > 0 ? world : nodes * per_node;
  (void)error;
  return PL_OK;
}

/* PyTorch's ProcessGroupWrapper (workloads/framework/framework.h, collective_rank_s); what it takes depends on hosts.
 */
static pl_code take_environment(pl_launch *launch, pl_error *error) {
  static const char key[] = "env_TORCH_DISTRIBUTED_DEBUG";
  const pl_setting *debug = pl_settings_take(&launch->settings, key);
  if (debug == NULL || strcmp(debug->value, "DETAIL") != 0) return PL_OK;
  pl_settings_set_aside(&launch->settings, key);
  return pl_launch_assume(
      launch, error,
      "no TORCH_DISTRIBUTED_DEBUG=DETAIL, with which ranks compare every collective before they "
      "call it: 0.3 ms per rank of its group were measured (collective_rank of a framework's host)");
}

/* ---- the strategy ---- */

static pl_code take_recompute(pl_launch *launch, pl_error *error) {
  static const char *const granularities[] = {"full", "selective", NULL};
  pl_settings *settings = &launch->settings;
  int granularity;
  bool selective = false, full = false;
  int64_t layers = 0;
  PL_TRY(pl_settings_word(settings, "recompute_granularity", granularities, &granularity, error));
  pl_settings_flag(settings, "recompute_activations", &selective);
  pl_settings_flag(settings, "checkpoint_activations", &full);
  PL_TRY(pl_settings_integer(settings, "recompute_num_layers", 0, &layers, error));
  const pl_setting *method = pl_settings_take(settings, "recompute_method");
  launch->strategy.recompute = granularity == 0 || full        ? PL_RECOMPUTE_FULL
                               : granularity == 1 || selective ? PL_RECOMPUTE_SELECTIVE
                                                               : PL_RECOMPUTE_NONE;
  bool block = pl_setting_is_given(method) && strcmp(method->value, "block") == 0;
  int64_t per_stage = launch->model.n_layers / launch->strategy.pp;
  if (launch->strategy.recompute == PL_RECOMPUTE_FULL && block && layers < per_stage)
    return pl_launch_assume(launch, error,
                            "full recomputation of all layers: only %" PRId64 " of a stage's %" PRId64
                            " are recomputed here, which --strategy says, with recompute_layers",
                            layers, per_stage);
  return PL_OK;
}

static pl_code take_sharding(pl_launch *launch, pl_error *error) {
  static const char *const shares[] = {"no_shard", "optim", "optim_grads", "optim_grads_params", NULL};
  pl_settings *settings = &launch->settings;
  bool optimizer = false, fsdp2 = false, fsdp = false, overlap = false;
  int share;
  int64_t instances = 1;
  pl_settings_flag(settings, "use_distributed_optimizer", &optimizer);
  pl_settings_flag(settings, "use_torch_fsdp2", &fsdp2);
  pl_settings_flag(settings, "use_megatron_fsdp", &fsdp);
  pl_settings_flag(settings, "use_custom_fsdp", &fsdp);
  pl_settings_flag(settings, "overlap_grad_reduce", &overlap);
  PL_TRY(pl_settings_word(settings, "data_parallel_sharding_strategy", shares, &share, error));
  PL_TRY(pl_settings_integer(settings, "num_distributed_optimizer_instances", 1, &instances, error));
  launch->strategy.zero = fsdp2 ? 3 : fsdp ? (share >= 0 ? share : 0) : optimizer ? 1 : 0;
  launch->strategy.overlap = overlap || fsdp || fsdp2;
  launch->strategy.overlap_is_given = true;
  launch->strategy.shard = instances > 1 && instances <= INT32_MAX ? -(int32_t)instances : 0;
  PL_TRY(pl_settings_integer(settings, "zero_stage", 0, &instances, error)); /* Megatron-DeepSpeed */
  if (pl_settings_take(settings, "zero_stage") != NULL) launch->strategy.zero = (int32_t)instances;
  if (launch->strategy.zero < 2 || launch->strategy.pp == 1) return PL_OK;
  int32_t zero = launch->strategy.zero;
  launch->strategy.zero = 1;
  return pl_launch_assume(launch, error, "zero=1: zero=%d with pipeline stages cannot be said", zero);
}

/* --tp-comm-overlap, which goes with sequence parallelism; without tensor ranks there is nothing to overlap. */
static pl_code take_tensor_overlap(pl_launch *launch, pl_error *error) {
  bool is_on = false;
  if (launch->strategy.tmp == 1) return PL_OK;
  pl_settings_flag(&launch->settings, "tp_comm_overlap", &is_on);
  if (!is_on) return PL_OK;
  pl_settings_set_aside(&launch->settings, "tp_comm_overlap");
  if (!launch->strategy.sp)
    return pl_launch_assume(launch, error, "no tp_comm_overlap: it is of sequence parallelism (--sequence-parallel)");
  return pl_launch_assume(launch, error,
                          "tp_comm_overlap as the framework's profile has it: its overlaps_tensor says it, which nemo "
                          "has (--framework)");
}

static pl_code take_experts_degrees(pl_launch *launch, pl_error *error) {
  pl_strategy *strategy = &launch->strategy;
  int32_t tensor = 0;
  PL_TRY(pl_launch_take_degree(launch, "expert_model_parallel_size", &strategy->ep, error));
  PL_TRY(pl_launch_take_degree(launch, "expert_tensor_parallel_size", &tensor, error));
  PL_TRY(pl_megatron_take_dispatcher(launch, error));
  if (launch->model.n_experts <= 1 || strategy->tmp == 1) return PL_OK;
  strategy->etp = tensor == 1 ? 1 : strategy->tmp;
  if (tensor > 1 && tensor != strategy->tmp)
    return pl_launch_assume(launch, error, "expert_tensor_parallel_size %d: the file's %d cannot be said",
                            strategy->etp, tensor);
  return PL_OK;
}

static pl_code take_context(pl_launch *launch, pl_error *error) {
  PL_TRY(pl_launch_take_degree(launch, "context_parallel_size", &launch->strategy.cp, error));
  const pl_setting *form = pl_settings_take(&launch->settings, "cp_comm_type");
  if (!pl_setting_is_given(form) || launch->strategy.cp <= 1 || strcmp(form->value, "p2p") == 0) return PL_OK;
  launch->strategy.cp_gather = strcmp(form->value, "all_gather") == 0 || strcmp(form->value, "allgather") == 0;
  if (launch->strategy.cp_gather) return PL_OK;
  return pl_launch_assume(launch, error, "cp_comm_type p2p: '%.64s' is not modelled", form->value);
}

static pl_code take_strategy(pl_launch *launch, pl_error *error) {
  pl_strategy *strategy = &launch->strategy;
  pl_settings *settings = &launch->settings;
  bool embedding = false, loss = false, mapped = false;
  PL_TRY(pl_launch_take_degree(launch, "tensor_model_parallel_size", &strategy->tmp, error));
  PL_TRY(pl_launch_take_degree(launch, "pipeline_model_parallel_size", &strategy->pp, error));
  PL_TRY(pl_launch_take_degree(launch, "micro_batch_size", &strategy->mbs, error));
  PL_TRY(pl_launch_take_degree(launch, "num_virtual_stages_per_pipeline_rank", &strategy->vpp, error));
  PL_TRY(pl_launch_take_degree(launch, "virtual_pipeline_model_parallel_size", &strategy->vpp, error));
  PL_TRY(pl_settings_integer(settings, "num_layers_per_virtual_pipeline_stage", 1, &launch->layers_per_chunk, error));
  PL_TRY(pl_settings_integer(settings, "global_batch_size", 1, &launch->gbs, error));
  pl_settings_flag(settings, "sequence_parallel", &strategy->sp);
  strategy->sp = strategy->sp && strategy->tmp > 1;
  PL_TRY(take_tensor_overlap(launch, error));
  pl_settings_flag(settings, "account_for_embedding_in_pipeline_split", &embedding);
  pl_settings_flag(settings, "account_for_loss_in_pipeline_split", &loss);
  pl_settings_flag(settings, "use_tp_pp_dp_mapping", &mapped);
  if (embedding && loss) strategy->recipe = PL_ASSIGN_ENDS;
  memcpy(strategy->order, mapped ? "tpd" : "tdp", sizeof "tdp");
  PL_TRY(take_context(launch, error));
  PL_TRY(take_experts_degrees(launch, error));
  PL_TRY(take_recompute(launch, error));
  PL_TRY(pl_megatron_take_hidden_tokens(launch, error));
  return take_sharding(launch, error);
}

pl_code pl_launch_megatron_take(pl_launch *launch, pl_error *error) {
  launch->framework = "megatron-core";
  PL_TRY(take_model(launch, error));
  PL_TRY(take_types(launch, error));
  PL_TRY(take_strategy(launch, error));
  PL_TRY(take_gpus(launch, error));
  PL_TRY(take_environment(launch, error));
  bool offloads = false;
  pl_settings_flag(&launch->settings, "optimizer_cpu_offload", &offloads);
  if (offloads)
    PL_TRY(pl_launch_assume(launch, error,
                            "the optimizer on the GPUs: --strategy says its offloading, with offload=states"));
  const pl_setting *ramp = pl_settings_take(&launch->settings, "rampup_batch_size");
  if (pl_setting_is_given(ramp))
    PL_TRY(pl_launch_assume(launch, error, "the full batch: its ramp at the start is over"));
  pl_settings_ignore(&launch->settings, harmless);
  return PL_OK;
}
