/* A shell script with Megatron-LM's arguments, and NeMo's configuration with the same content. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/launch/writers.h"

/* ---- Megatron-LM ---- */

static void put(FILE *out, const char *name, int64_t value) {
  fprintf(out, "    --%s %" PRId64 "\n", name, value);
}

static void put_if(FILE *out, bool wanted, const char *name) {
  if (wanted) fprintf(out, "    --%s\n", name);
}

/* As a list where it is more than every so many from the first on. */
static void put_expert_layers(FILE *out, const pl_model *m) {
  if (m->moe.first_expert_layer == 0 && m->moe.expert_layer_phase == 0) {
    if (m->moe.expert_layer_step > 1) put(out, "moe-layer-freq", m->moe.expert_layer_step);
  } else if (m->moe.expert_layer_step == 1) {
    fprintf(out, "    --moe-layer-freq '([0]*%d+[1]*%d)'\n", m->moe.first_expert_layer,
            m->n_layers - m->moe.first_expert_layer);
  } else {
    fputs("    --moe-layer-freq '[", out);
    for (int32_t layer = 0; layer < m->n_layers; layer++)
      fprintf(out, "%s%d", layer > 0 ? "," : "", pl_model_has_experts(m, layer));
    fputs("]'\n", out);
  }
}

/* Transformer Engine's kernels for tokens and grouped products; who sends tokens once to a node is DeepEP, on so many
 * multiprocessors. */
static void put_dispatcher(FILE *out, const pl_framework *framework) {
  bool per_node = framework->pipeline.sends_tokens_per_node;
  if (framework->kernels.permutation == PL_PERMUTATION_FUSED) fprintf(out, "    --moe-permute-fusion\n");
  if (framework->kernels.experts == PL_EXPERTS_GROUPED) fprintf(out, "    --moe-grouped-gemm\n");
  fprintf(out, "    --moe-token-dispatcher-type %s\n", per_node ? "flex" : "alltoall");
  if (!per_node) return;
  fprintf(out, "    --moe-flex-dispatcher-backend deepep\n");
  fprintf(out, "    --moe-flex-dispatcher-num-sms %.0f\n", framework->pipeline.exchange_multiprocessors);
}

static void put_experts(FILE *out, const pl_launched *l) {
  const pl_model *m = l->model;
  if (m->moe.n_experts == 0) return;
  put(out, "num-experts", m->moe.n_experts);
  put(out, "moe-router-topk", m->moe.topk);
  put(out, "moe-ffn-hidden-size", m->moe.expert_ffn);
  if (m->moe.shared_ffn > 0) put(out, "moe-shared-expert-intermediate-size", m->moe.shared_ffn);
  put_expert_layers(out, m);
  if (m->moe.capacity_factor != 1) fprintf(out, "    --moe-expert-capacity-factor %g\n", m->moe.capacity_factor);
  put_dispatcher(out, pl_framework_or_ideal(l->job->framework));
}

static void put_latent(FILE *out, const pl_model *m) {
  if (m->attention.kv_rank == 0) return;
  fprintf(out, "    --multi-latent-attention\n");
  if (m->attention.q_rank > 0) put(out, "q-lora-rank", m->attention.q_rank);
  put(out, "kv-lora-rank", m->attention.kv_rank);
  put(out, "qk-head-dim", m->attention.head_size - m->attention.rope_size);
  put(out, "qk-pos-emb-head-dim", m->attention.rope_size);
  put(out, "v-head-dim", m->attention.value_size);
}

static void put_model(FILE *out, const pl_launched *l) {
  const pl_model *m = l->model;
  fprintf(out, "MODEL_ARGS=(\n");
  put(out, "num-layers", m->n_layers);
  put(out, "hidden-size", m->width.hidden);
  put(out, "ffn-hidden-size", m->width.ffn_hidden);
  put(out, "num-attention-heads", m->attention.n_heads);
  if (m->attention.n_kv_heads != m->attention.n_heads && m->attention.kv_rank == 0) {
    fprintf(out, "    --group-query-attention\n");
    put(out, "num-query-groups", m->attention.n_kv_heads);
  }
  if (m->attention.kv_rank == 0) put(out, "kv-channels", m->attention.head_size);
  put(out, "seq-length", l->job->seq);
  put(out, "max-position-embeddings", m->positions.max_positions);
  fprintf(out, "    --position-embedding-type %s\n", m->positions.rotary ? "rope" : "learned_absolute");
  fprintf(out, "    --normalization %s\n", m->norms.norm == PL_NORM_RMS ? "RMSNorm" : "LayerNorm");
  put_if(out, m->mlp.gated_mlp, "swiglu");
  put_if(out, !m->mlp.mlp_bias, "disable-bias-linear");
  put_if(out, m->attention.attention_bias && !m->mlp.mlp_bias, "add-qkv-bias");
  put_if(out, m->attention.qk_norm, "qk-layernorm");
  put_if(out, !m->ends.tied_embeddings, "untie-embeddings-and-output-weights");
  fprintf(out, "    --attention-dropout %g\n", m->dropout.attention_dropout ? m->numbers.attention_dropout : 0.0);
  fprintf(out, "    --hidden-dropout %g\n", m->dropout.hidden_dropout ? m->numbers.hidden_dropout : 0.0);
  put_experts(out, l);
  put_latent(out, m);
  fprintf(out, "    --attention-backend %s\n)\n\n", l->job->flash ? "flash" : "unfused");
}

static void put_parallelism(FILE *out, const pl_launched *l) {
  const pl_strategy *s = l->strategy;
  fprintf(out, "PARALLEL_ARGS=(\n");
  put(out, "tensor-model-parallel-size", s->tmp);
  put(out, "pipeline-model-parallel-size", s->pp);
  if (s->vpp > 1) put(out, "num-layers-per-virtual-pipeline-stage", l->model->n_layers / (s->pp * s->vpp));
  if (s->cp > 1) put(out, "context-parallel-size", s->cp);
  if (s->cp > 1) fprintf(out, "    --cp-comm-type %s\n", s->cp_gather ? "all_gather" : "p2p");
  if (s->ep > 1) put(out, "expert-model-parallel-size", s->ep);
  if (l->model->moe.n_experts > 0) put(out, "expert-tensor-parallel-size", s->etp > 1 ? s->etp : 1);
  put_if(out, pl_strategy_pairs_passes(s), "overlap-moe-expert-parallel-comm");
  put_if(out, s->ep_overlap == PL_EP_OVERLAP_DELAYED, "delay-wgrad-compute");
  put_if(out, s->ep_overlap == PL_EP_OVERLAP_SHARED, "moe-shared-expert-overlap");
  put_if(out, s->sp, "sequence-parallel");
  put_if(out, strcmp(s->order, "tpd") == 0, "use-tp-pp-dp-mapping");
  put_if(out, s->zero == 1, "use-distributed-optimizer");
  if (s->zero >= 2)
    fprintf(out, "    --use-megatron-fsdp\n    --data-parallel-sharding-strategy %s\n",
            s->zero == 2 ? "optim_grads" : "optim_grads_params");
  if (s->shard > 0) put(out, "num-distributed-optimizer-instances", pl_strategy_copies(s));
  put_if(out, s->overlap, "overlap-grad-reduce");
  if (s->recompute == PL_RECOMPUTE_SELECTIVE) fprintf(out, "    --recompute-granularity selective\n");
  if (s->recompute == PL_RECOMPUTE_FULL)
    fprintf(out, "    --recompute-granularity full\n    --recompute-method %s\n    --recompute-num-layers %d\n",
            s->recompute_layers > 0 ? "block" : "uniform", s->recompute_layers > 0 ? s->recompute_layers : 1);
  fprintf(out, ")\n\n");
}

static void put_training(FILE *out, const pl_launched *l) {
  const pl_job *job = l->job;
  fprintf(out, "TRAINING_ARGS=(\n");
  put(out, "micro-batch-size", l->strategy->mbs);
  put(out, "global-batch-size", job->gbs);
  put_if(out, job->dtype == PL_DTYPE_BF16, "bf16");
  put_if(out, job->dtype == PL_DTYPE_FP16, "fp16");
  if (job->fp8) fprintf(out, "    --fp8-format hybrid\n");
  put(out, "train-iters", 50);
  fprintf(out, "    --lr 1e-4\n)\n\n");
}

static pl_code check_order(const pl_launched *l, pl_error *error) {
  static const char *const orders[] = {"tdp", "tpd", "tcdp", "tcpd"};
  const pl_strategy *s = l->strategy;
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
    if (strcmp(s->order, orders[i]) == 0) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "order=%s: Megatron has tdp and, with --use-tp-pp-dp-mapping, tpd", s->order);
}

pl_code pl_launch_write_megatron(FILE *stream, const pl_launched *l, pl_error *error) {
  PL_TRY(pl_launch_check_megatron(l, error));
  PL_TRY(check_order(l, error));
  if (l->job->fp4 || l->job->dtype == PL_DTYPE_TF32)
    return pl_fail(error, PL_UNSUPPORTED, "%s: written are fp32, fp16, bf16 and fp8",
                   l->job->fp4 ? "fp4" : pl_dtype_name(l->job->dtype));
  fprintf(stream, "#!/bin/bash\n# %s\n# Data, tokenizer and learning rate are stand-ins.\n\n", l->comment);
  fprintf(stream, "GPUS_PER_NODE=%u\nNUM_NODES=%u\n", l->gpus_per_node, l->n_nodes);
  fprintf(stream, "MASTER_ADDR=${MASTER_ADDR:-localhost}\nMASTER_PORT=${MASTER_PORT:-29500}\n"
                  "NODE_RANK=${NODE_RANK:-0}\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n\n");
  put_model(stream, l);
  put_parallelism(stream, l);
  put_training(stream, l);
  fprintf(stream,
          "DATA_ARGS=(\n    --mock-data\n    --tokenizer-type NullTokenizer\n    --vocab-size %" PRId64 "\n)\n\n"
          "torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --node_rank $NODE_RANK \\\n"
          "    --master_addr $MASTER_ADDR --master_port $MASTER_PORT pretrain_gpt.py \\\n"
          "    ${MODEL_ARGS[@]} ${PARALLEL_ARGS[@]} ${TRAINING_ARGS[@]} ${DATA_ARGS[@]}\n",
          l->model->width.vocab);
  return PL_OK;
}

/* ---- NeMo ---- */

static const char *boolean(bool value) {
  return value ? "True" : "False";
}

static pl_code check_nemo(const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  PL_TRY(pl_launch_check_megatron(l, error));
  if (s->zero > 1) return pl_fail(error, PL_UNSUPPORTED, "zero=%d: NeMo's distributed_fused_adam is zero=1", s->zero);
  if (s->shard > 0) return pl_fail(error, PL_UNSUPPORTED, "shard=%d: NeMo has no setting for it", s->shard);
  if (s->cp > 1 && s->cp_gather) return pl_fail(error, PL_UNSUPPORTED, "cp_comm=gather: NeMo has p2p");
  if (strncmp(s->order, "tdp", 3) != 0 && strcmp(s->order, "tcdp") != 0)
    return pl_fail(error, PL_UNSUPPORTED, "order=%s: NeMo has tdp", s->order);
  if (l->model->attention.kv_rank > 0 || l->model->moe.shared_ffn > 0 || l->model->moe.first_expert_layer > 0 ||
      l->model->attention.qk_norm)
    return pl_fail(error, PL_UNSUPPORTED, "%s: NeMo's configuration has no keys for this architecture", l->model->name);
  return PL_OK;
}

static void put_nemo_model(FILE *out, const pl_launched *l) {
  const pl_model *m = l->model;
  fprintf(out,
          "  encoder_seq_length: %" PRId64 "\n  max_position_embeddings: %" PRId64 "\n  num_layers: %d\n"
          "  hidden_size: %" PRId64 "\n  ffn_hidden_size: %" PRId64 "\n  num_attention_heads: %" PRId64
          "\n  num_query_groups: %" PRId64 "\n  kv_channels: %" PRId64 "\n",
          l->job->seq, m->positions.max_positions, m->n_layers, m->width.hidden,
          m->moe.n_experts > 0 ? m->moe.expert_ffn : m->width.ffn_hidden, m->attention.n_heads, m->attention.n_kv_heads,
          m->attention.head_size);
  fprintf(out, "  activation: %s\n  normalization: %s\n  position_embedding_type: %s\n",
          m->mlp.gated_mlp ? "fast-swiglu" : "gelu", m->norms.norm == PL_NORM_RMS ? "rmsnorm" : "layernorm1p",
          m->positions.rotary ? "rope" : "learned_absolute");
  fprintf(out, "  bias: %s\n  qkv_bias: %s\n  share_embeddings_and_output_weights: %s\n", boolean(m->mlp.mlp_bias),
          boolean(m->attention.attention_bias), boolean(m->ends.tied_embeddings));
  fprintf(out, "  hidden_dropout: %g\n  attention_dropout: %g\n",
          m->dropout.hidden_dropout ? m->numbers.hidden_dropout : 0.0,
          m->dropout.attention_dropout ? m->numbers.attention_dropout : 0.0);
  if (m->moe.n_experts > 0)
    fprintf(out, "  num_moe_experts: %" PRId64 "\n  moe_router_topk: %" PRId64 "\n", m->moe.n_experts, m->moe.topk);
}

pl_code pl_launch_write_nemo(FILE *stream, const pl_launched *l, pl_error *error) {
  const pl_strategy *s = l->strategy;
  PL_TRY(check_nemo(l, error));
  fprintf(stream, "# %s\n# Data, tokenizer and learning rate are stand-ins.\n", l->comment);
  fprintf(stream, "name: megatron_gpt\ntrainer:\n  devices: %u\n  num_nodes: %u\n  accelerator: gpu\n  precision: %s\n",
          l->gpus_per_node, l->n_nodes,
          l->job->dtype == PL_DTYPE_BF16   ? "bf16"
          : l->job->dtype == PL_DTYPE_FP16 ? "16"
                                           : "32");
  fprintf(stream, "model:\n  mcore_gpt: True\n  micro_batch_size: %d\n  global_batch_size: %" PRId64 "\n", s->mbs,
          l->job->gbs);
  fprintf(stream,
          "  tensor_model_parallel_size: %d\n  pipeline_model_parallel_size: %d\n"
          "  virtual_pipeline_model_parallel_size: ",
          s->tmp, s->pp);
  if (s->vpp > 1)
    fprintf(stream, "%d\n", s->vpp);
  else
    fprintf(stream, "null\n");
  fprintf(stream, "  context_parallel_size: %d\n  expert_model_parallel_size: %d\n  sequence_parallel: %s\n",
          pl_strategy_cp(s), pl_strategy_ep(s), boolean(s->sp));
  put_nemo_model(stream, l);
  fprintf(stream, "  use_flash_attention: %s\n  fp8: %s\n", boolean(l->job->flash), boolean(l->job->fp8));
  if (s->recompute != PL_RECOMPUTE_NONE)
    fprintf(stream, "  activations_checkpoint_granularity: %s\n", pl_recompute_names[s->recompute]);
  if (s->recompute == PL_RECOMPUTE_FULL)
    fprintf(stream, "  activations_checkpoint_method: %s\n  activations_checkpoint_num_layers: %d\n",
            s->recompute_layers > 0 ? "block" : "uniform", s->recompute_layers > 0 ? s->recompute_layers : 1);
  fprintf(stream, "  tokenizer:\n    library: megatron\n    type: null\n    vocab_size: %" PRId64 "\n",
          l->model->width.vocab);
  fprintf(stream, "  data:\n    data_impl: mock\n    seq_length: %" PRId64 "\n", l->job->seq);
  fprintf(stream, "  optim:\n    name: %s\n    overlap_grad_sync: %s\n    lr: 1e-4\n",
          s->zero == 1 ? "distributed_fused_adam" : "fused_adam", boolean(s->overlap));
  return PL_OK;
}
