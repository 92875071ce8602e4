/* What a row says of its run's software, in place of what the profile of that software has (see validation/rows/row.h):
 * kernels, types, what runs beside what, who waits for whom. Which profile it is, is row_framework.c's. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "validation/rows/row.h"

/* "not compiled", but not the loss alone. */
static bool denies_compilation(const char *framework) {
  static const char *const words[] = {"eager",          "no compile", "without compile", "uncompiled", "compile=false",
                                      "compile: false", NULL};
  static const char loss[] = "loss ", whole[] = "not compiled";
  for (size_t i = 0; words[i] != NULL; i++)
    if (pl_row_mentions(framework, words[i])) return true;
  for (const char *at = framework; (at = strcasestr(at, whole)) != NULL; at++)
    if (at - framework < (ptrdiff_t)strlen(loss) || strncasecmp(at - strlen(loss), loss, strlen(loss)) != 0)
      return true;
  return false;
}

/* Only for profiles of PyTorch's own ops: others fuse by hand. Compiled: norms, rotary, gated activations and additions
 * are one kernel each with their neighbours, and the host launches few. Eager: none of that, and the host as in
 * torch-fsdp.json. */
static void choose_compilation(const pl_measured_row *row, pl_framework *framework) {
  static const char *const native[] = {"torch-ddp", "torch-fsdp", "torchtitan", "torchtune", "fms-fsdp", "torch-own"};
  bool is_native = false;
  for (size_t i = 0; i < sizeof native / sizeof native[0]; i++)
    is_native = is_native || strcmp(framework->name, native[i]) == 0;
  bool eager = denies_compilation(row->framework);
  if (!is_native || (!eager && !pl_row_mentions(row->framework, "compile"))) return;
  framework->kernels.fuses_activation = framework->kernels.fuses_residual = framework->kernels.fuses_rotary =
      framework->kernels.fuses_norm = !eager;
  framework->launch.launch_s = framework->launch.backward_launch_s = eager ? 25e-6 : 0;
  framework->launch.collective_s = eager ? 82e-6 : 0;
}

/* A compiled model that computes its loss itself, which is then one kernel each way, the cast of its logits within:
 * karpathy/nanoGPT (model.py, train.py: torch.compile(model)) and what came of it (KellerJordan/modded-nanogpt),
 * Hugging Face's models, which are given labels. llm.c's is one by hand (llmc/fused_classifier.cuh). */
static bool compiles_loss(const pl_measured_row *row, const pl_framework *framework) {
  static const char *const trainers[] = {"nanoGPT", "Hugging Face"}, *const plain[] = {"torch-ddp", "torch-fsdp"};
  bool is_plain = strcmp(framework->name, plain[0]) == 0 || strcmp(framework->name, plain[1]) == 0;
  bool is_whole = pl_row_mentions(row->framework, trainers[0]) || pl_row_mentions(row->framework, trainers[1]);
  return is_plain && is_whole && framework->kernels.fuses_norm && pl_row_mentions(row->framework, "compile");
}

/* torchtitan compiles the loss where it compiles blocks: from 22 October to 18 December 2024 and since 2 April 2025
 * (pytorch/torchtitan@e10cb949, e8977b00, bbb1b616). Rows of between say "loss not compiled". */
static void choose_loss(const pl_measured_row *row, pl_framework *framework) {
  if (compiles_loss(row, framework) || pl_row_mentions(row->framework, "llm.c"))
    framework->kernels.loss = PL_LOSS_FUSED;
  /* torchtune compiles the loss with the layers, behind a head that has cast the logits to fp32; with chunks the cast
   * is inside (torchtune/modules/loss/ce_chunked_output_loss.py at bd2a0fc7c). */
  if (strcmp(framework->name, "torchtune") == 0 && framework->kernels.fuses_norm)
    framework->kernels.loss =
        pl_row_mentions(row->framework, "chunked cross entropy") ? PL_LOSS_CHUNKED : PL_LOSS_FUSED_FP32;
  if (strcmp(framework->name, "torchtitan") != 0) return;
  if (!framework->kernels.fuses_norm || pl_row_mentions(row->framework, "loss not compiled"))
    framework->kernels.loss = PL_LOSS_COPIES;
}

/* bitsandbytes' Adam; and torchtune's step of each parameter when its gradient is there. */
static void choose_optimizer(const pl_measured_row *row, pl_framework *framework) {
  static const char *const small[] = {"8-bit Adam", "8-bit paged Adam", "AdamW8bit", "Adam8bit", NULL};
  static const char *const early[] = {"optimizer in backward", "optimizer in the backward", "optimizer_in_bwd",
                                      "AdamW in the backward", NULL};
  if (pl_row_mentions(row->notes, "SGD without momentum")) framework->update.optimizer = PL_OPTIMIZER_SGD;
  if (pl_row_says_one_of(row, small)) framework->update.optimizer = PL_OPTIMIZER_FUSED_8BIT;
  if (pl_row_says_one_of(row, early)) framework->gradients.life = PL_GRADIENTS_CONSUMED;
}

/* Without a pipeline DeepSpeed's ZeRO keeps bf16 gradients as they are (deepspeed/runtime/engine.py,
 * _do_optimizer_sanity_check); fp32 sums beside them are its BF16_Optimizer's, which Megatron-DeepSpeed has in its
 * pipelines, and had in all it ran before FlashAttention. */
static void choose_gradients(const pl_measured_row *row, pl_framework *framework) {
  if (strcmp(framework->name, "megatron-deepspeed") != 0 || row->pp > 1 || !pl_row_says_flash(row)) return;
  framework->gradients.gradient_dtype = PL_DTYPE_BF16;
  framework->gradients.keeps_16bit_gradients = framework->gradients.holds_16bit_gradients = false;
}

/* torch.autocast is PyTorch's and Hugging Face's trainers' mixed precision; apex' O2, under which NVIDIA's BERT runs
 * (run_pretraining.py, amp.initialize), and other software's own ways have weights in 16 bits, as has what keeps
 * nothing in fp32. FSDP's PURE gathers them so. */
static void choose_autocast(const pl_measured_row *row, pl_framework *framework, bool alone) {
  static const char *const apex[] = {"DeepLearningExamples", "NGC", "apex", NULL};
  bool is_torch = pl_row_mentions(row->framework, "PyTorch") || pl_row_mentions(row->framework, "Hugging Face") ||
                  pl_row_mentions(row->framework, "autocast") || pl_row_mentions(row->framework, "Composer");
  if (alone || !is_torch || pl_row_says_one_of(row, apex)) framework->kernels.autocast = PL_AUTOCAST_OFF;
  if (pl_row_mentions(row->notes, "mode=PURE") && framework->kernels.autocast == PL_AUTOCAST_ALL)
    framework->kernels.autocast = PL_AUTOCAST_NORMS;
}

/* Hugging Face's GPT-2 and BERT take the loss of the logits as the head made them
 * (huggingface/transformers@0010f60284ab modeling_gpt2.py; Llama's casts them first), which are of 16 bits where
 * weights are and nothing autocasts: DeepSpeed's engine, Colossal-AI's Gemini. */
static bool has_narrow_loss(const pl_measured_row *row, const pl_framework *framework) {
  static const char *const models[] = {"GPT-2", "GPT2", "BERT"};
  bool is_half =
      strncmp(framework->name, "deepspeed", strlen("deepspeed")) == 0 || pl_row_mentions(row->framework, "Gemini");
  if (!is_half || !pl_row_mentions(row->framework, "Hugging Face") || pl_row_mentions(row->notes, "no language model"))
    return false;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (pl_row_mentions(row->model, models[i]) || pl_row_mentions(row->framework, models[i])) return true;
  return false;
}

/* Lightning's "bf16-true" and "16-true", "pure bf16": nothing is kept in fp32. Of logits
 * that stay in 16 bits PyTorch's log-softmax reads and writes 12 bytes in all; the loss of 16-bit logits, the nearest
 * form that there is, counts 6. */
static void choose_weights(const pl_measured_row *row, pl_framework *framework) {
  static const char *const narrow[] = {"logits stay in bf16", "logits stay in fp16", NULL};
  bool brain = pl_row_mentions(row->precision, "bf16");
  bool alone = pl_row_mentions(row->precision, "16-true") || pl_row_mentions(row->precision, "pure") ||
               pl_row_mentions(row->notes, "pure bf16") || pl_row_mentions(row->notes, "pure fp16");
  if (pl_row_says_one_of(row, narrow) || has_narrow_loss(row, framework)) framework->kernels.loss = PL_LOSS_FUSED;
  choose_autocast(row, framework, alone);
  if (!alone) return;
  framework->update.weights = PL_WEIGHTS_ALONE;
  framework->gradients.gradient_dtype = brain ? PL_DTYPE_BF16 : PL_DTYPE_FP16;
  framework->gradients.reduce_dtype = -1;
}

/* Megatron-LLaMA's: each gradient is copied into a bucket in fp32 as soon as it is there, and buckets are scattered
 * behind every microbatch's backward pass, beside it (alibaba/Megatron-LLaMA@25306de84d30,
 * megatron/optimizer/overlapped_dist_optimizer.py); 4e8 numbers each (its script). */
static void choose_scattering(const pl_measured_row *row, pl_framework *framework) {
  if (!pl_row_mentions(row->framework, "OverlappedDistributedOptimizer")) return;
  framework->gradients.overlaps_gradients = true;
  framework->gradients.gradient_path = PL_GRADIENTS_CHUNKED;
  framework->gradients.bucket_bytes = 4e8 * 4;
}

/* Transformer Engine's userbuffers, which Megatron-LM has switched off unless --tp-comm-overlap is given, and NeMo on
 * unless its configuration says no. */
static void choose_overlap(const pl_measured_row *row, pl_framework *framework) {
  static const char *const on[] = {"tp-comm-overlap", "tp_comm_overlap", "tensor and pipeline communication overlapped",
                                   NULL};
  static const char *const off[] = {"tp_comm_overlap=False", NULL};
  if (pl_row_says_one_of(row, on)) framework->pipeline.overlaps_tensor = true;
  if (pl_row_says_one_of(row, off)) framework->pipeline.overlaps_tensor = false;
}

/* Megatron-Bridge's "FP8-CS" and "tensorwise" of NeMo's configurations are Transformer Engine's current scaling;
 * MXFP8's scales belong to blocks. torchao's products cast their operands for themselves with a scale a row and with
 * MXFP8's, too, and keep and send 16 bits (float8_linear.py, matmul_with_hp_or_float8_args; mx_linear.py). */
static void choose_scaling(const pl_measured_row *row, pl_framework *framework) {
  if (pl_row_mentions(row->precision, "FP8-CS") || pl_row_mentions(row->notes, "FP8_RECIPE=tensorwise"))
    framework->kernels.fp8_scaling = PL_FP8_CURRENT;
  bool mxfp8 = pl_row_mentions(row->precision, "mxfp8");
  bool torchao = framework->kernels.fp8_scaling == PL_FP8_DYNAMIC;
  if (torchao && (mxfp8 || pl_row_mentions(row->precision, "rowwise")))
    framework->kernels.fp8_scaling = PL_FP8_ROWWISE;
  else if (mxfp8)
    framework->kernels.fp8_scaling = PL_FP8_DELAYED;
}

/* NVIDIA's MXNet in fp16 and OneFlow have batch norm, addition and ReLU in one kernel, channels last: --fuse-bn-relu
 * and --fuse-bn-add-relu of the former's benchmark.py, --fuse_bn_relu, --fuse_bn_add_relu and --channel_last of the
 * latter's scripts (Oneflow-Inc/DLPerf). */
static void choose_batch_norm(const pl_measured_row *row, pl_framework *framework) {
  bool mxnet = pl_row_mentions(row->framework, "MXNet") && pl_row_mentions(row->framework, "NGC");
  if (mxnet || pl_row_mentions(row->framework, "OneFlow")) framework->kernels.fuses_batch_norm = true;
}

/* Hugging Face's GPT-2 (NewGELUActivation; its BERT has PyTorch's gelu) and Google's BERT in TensorFlow (modeling.py)
 * write GELU's form with tanh op by op. XLA fuses it. */
static void choose_gelu(const pl_measured_row *row, pl_framework *framework) {
  bool gpt2 = pl_row_mentions(row->framework, "Hugging Face GPT-2") ||
              (pl_row_mentions(row->framework, "Hugging Face") && pl_row_mentions(row->model, "GPT-2"));
  if (framework->kernels.fuses_norm && pl_row_mentions(row->framework, "compile")) gpt2 = false;
  bool google = pl_row_mentions(row->framework, "TensorFlow") && !pl_row_mentions(row->framework, "XLA");
  if (gpt2 || google) framework->kernels.fuses_gelu = false;
  /* And it chooses by the causal mask (torch.where) before it adds that of the batch (modeling_gpt2.py, _attn). */
  if (gpt2) framework->kernels.mask_kernels = 2, framework->kernels.mask_gradients = 1;
}

/* Google's BERT clips gradients microbatch by microbatch in TensorFlow 1, those that were added up in TensorFlow 2
 * (NVIDIA/DeepLearningExamples@729963dd47e7, optimization.py and model_training_utils.py). */
static void choose_clipping(const pl_measured_row *row, pl_framework *framework) {
  if (framework->kernels.graph == PL_GRAPH_NONE || !pl_row_mentions(row->framework, "TensorFlow 2")) return;
  framework->gradients.clips_microbatches = false;
  framework->update.clips_gradients = true;
}

/* Megatron's fused softmax takes scores of 16 bits only (megatron/model/fused_softmax.py, is_kernel_available); in fp32
 * they are scaled, by apply_query_key_layer_scaling's default, masked and taken the softmax of, a kernel each. */
static void choose_softmax(const pl_measured_row *row, pl_framework *framework) {
  if (strncmp(framework->name, "megatron", strlen("megatron")) != 0) return;
  if (!pl_row_mentions(row->precision, "32") || pl_row_mentions(row->precision, "16")) return;
  framework->kernels.fuses_softmax = framework->kernels.fuses_scale = false;
}

/* Paddle's fused kernels are chosen run by run; norms where the row says so. */
static void choose_fusions(const pl_measured_row *row, pl_framework *framework) {
  if (pl_row_mentions(row->notes, "no-rope-fusion")) framework->kernels.fuses_rotary = false; /* Megatron-LM's */
  if (pl_row_fused_norms(row) >= 0) framework->kernels.fuses_norm = pl_row_fused_norms(row) == 1;
  if (strcmp(framework->name, "paddlenlp") != 0) return;
  if (pl_row_fused_norms(row) < 0) framework->kernels.fuses_norm = pl_row_mentions(row->framework, "fused RMSNorm");
  framework->kernels.fuses_rotary = pl_row_mentions(row->framework, "fused rotary");
}

/* Whoever sets it says so; NeMo's and torchtitan's profiles have it. */
static void choose_streams(const pl_measured_row *row, pl_framework *framework) {
  static const char *const off[] = {"NCCL_AVOID_RECORD_STREAMS=1", NULL};
  if (pl_row_says_one_of(row, off)) framework->memory.records_streams = false;
}

/* Composer's mixed_precision PURE reduces gradients in the type of computing, DEFAULT in fp32. A model that is one FSDP
 * unit has one gradient, which is there when the backward pass is through. */
static void choose_reduction(const pl_measured_row *row, pl_framework *framework) {
  if (pl_row_mentions(row->notes, "one FSDP unit")) framework->gradients.bucket_bytes = 0;
  if (pl_row_mentions(row->notes, "one all-reduce per parameter"))
    framework->gradients.bucket_unit = PL_BUCKET_PARAMETER;
  if (pl_row_mentions(row->framework, "Composer") && pl_row_mentions(row->notes, "mode=PURE"))
    framework->gradients.reduce_dtype = PL_DTYPE_BF16;
}

/* Multiprocessors of exchanges: DeepEP's default in Megatron Core (20); HybridEP's in Megatron-Bridge's performance
 * recipes (32; perf_recipes/_common.py); NCCL's channels between nodes (16). */
static void choose_multiprocessors(const pl_measured_row *row, pl_framework *framework) {
  static const struct {
    const char *word;
    double taken;
  } known[] = {{"alltoall", 16}, {"DeepEP", 20}, {"HybridEP", 32}};
  double *taken = &framework->pipeline.exchange_multiprocessors;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (pl_row_mentions(row->framework, known[i].word) || pl_row_mentions(row->notes, known[i].word))
      *taken = known[i].taken;
  if (pl_row_mentions(row->framework, "A2A")) *taken = 16;
}

/* "Megatron-Core DeepEP", "Megatron-Core A2A"; in notes, by Megatron Core's names. */
void pl_row_choose_dispatcher(const pl_measured_row *row, pl_framework *framework) {
  static const char *const per_node[] = {"DeepEP", "HybridEP"}, *const all_to_all[] = {"A2A", "alltoall"};
  for (int i = 0; i < 2; i++) {
    if (pl_row_mentions(row->framework, per_node[i])) framework->pipeline.sends_tokens_per_node = true;
    if (pl_row_mentions(row->framework, all_to_all[i])) framework->pipeline.sends_tokens_per_node = false;
  }
  if (pl_row_mentions(row->notes, "moe_flex_dispatcher_backend=")) framework->pipeline.sends_tokens_per_node = true;
  if (pl_row_mentions(row->notes, "moe_token_dispatcher_type=alltoall"))
    framework->pipeline.sends_tokens_per_node = false;
  if (pl_row_mentions(row->notes, "moe_dispatch_fwd_dtype=fp8")) framework->pipeline.sends_tokens_fp8 = true;
  choose_multiprocessors(row, framework);
}

/* "Megatron-Core 0.6.0", "Megatron Core 0.6" in either column: 6. -1: not said. */
static int core_version(const pl_measured_row *row) {
  static const char *const words[] = {"Megatron-Core 0.", "Megatron Core 0."};
  const char *const texts[] = {row->framework, row->notes};
  for (int i = 0; i < 4; i++) {
    const char *at = strcasestr(texts[i / 2], words[i % 2]);
    int version;
    if (at != NULL && sscanf(at + strlen(words[i % 2]), "%2d", &version) == 1) return version;
  }
  return -1;
}

/* What moves tokens of experts without Transformer Engine's kernels (--moe-permute-fusion, since Core 0.11): by
 * version, and by the dispatcher, all-gather unless another is named; and experts without grouped products
 * (workloads/fuse/kernel_dispatch.c). */
static void choose_permutation(const pl_measured_row *row, pl_framework *framework) {
  static const char *const fused[] = {"moe_permute_fusion=true", NULL}, *const steps[] = {"moe_permute_fusion=false",
                                                                                          NULL};
  static const char *const alone[] = {"moe_grouped_gemm=false", NULL}, *const all_to_all[] = {"A2A", "alltoall", NULL};
  int version = core_version(row);
  if (pl_row_says_one_of(row, fused))
    framework->kernels.permutation = PL_PERMUTATION_FUSED;
  else if (version >= 0 || pl_row_says_one_of(row, steps))
    framework->kernels.permutation = version < 0 || version > 12           ? PL_PERMUTATION_SCATTERED
                                     : version > 9                         ? PL_PERMUTATION_WEIGHTED
                                     : pl_row_says_one_of(row, all_to_all) ? PL_PERMUTATION_INDEXED
                                                                           : PL_PERMUTATION_GATHERED;
  if (pl_row_says_one_of(row, alone))
    framework->kernels.experts = version >= 0 && version < 9 ? PL_EXPERTS_SLICED : PL_EXPERTS_JOINED;
}

/* CUDA graphs of whole iterations, or of all that is done for a microbatch (enable_cuda_graph, which stands behind
 * Megatron-Bridge 0.1's cuda_graphs): the host launches a graph. Graphs of parts of a layer (cuda_graph_scope) leave
 * the experts to it, the most of its work. */
void pl_row_choose_graphs(const pl_measured_row *row, pl_framework *framework) {
  static const char *const words[] = {"cuda_graph_impl=full_iteration", "cuda_graphs=true", NULL};
  if (!pl_row_says_one_of(row, words)) return;
  framework->launch.launch_s = framework->launch.backward_launch_s = framework->launch.collective_s =
      framework->launch.layer_s = 0;
}

/* How far hosts wait for each other.
 *
 * With TORCH_DISTRIBUTED_DEBUG=DETAIL the ranks of a group compare what each is about to call before they call it
 * (pytorch/pytorch@017943b70f69, ProcessGroupWrapper.cpp: a barrier through Gloo and a comparison before collectives
 * and barriers, none before sends). "Checked collectives" are those of nanotron's jobs whose test of the network, which
 * is no step, shows such a time: ten calls and a barrier of an all-gather, a reduce-scatter or an all-reduce of 1 GiB
 * take equally long on 64 ranks and more and in proportion to them, 0.309 to 0.325 ms per rank and ten calls (medians
 * of 241 to 293 jobs of a size), of which a tenth is the barrier's.
 *
 * "Polled sends" are those of nanotron before the fix of its pipeline (branch nouamane/bench2 at 67c5ebb6, p2p.py,
 * _send_meta and _recv_meta): two messages announce each tensor, and both sides sleep for 0.1 s until one has gone.
 * Stages pass on two tensors (llama.py: hidden_states and sequence_mask) and give back one gradient; the mean of a
 * forward and a backward send. */
static void choose_agreement(const pl_measured_row *row, pl_framework *framework) {
  static const char *const checked[] = {"TORCH_DISTRIBUTED_DEBUG=DETAIL", "checked collectives", NULL};
  if (pl_row_says_one_of(row, checked)) framework->launch.collective_rank_s = 287e-6;
  if (pl_row_mentions(row->framework, "polled sends")) framework->pipeline.send_wait_s = 3 * 2 * 0.1 / 2;
}

/* Transformer Engine takes cuDNN's attention for deterministic runs on Hopper, and on Blackwell without dropout;
 * elsewhere FlashAttention 2 (its dot_product_attention/utils.py, "Filter: Determinism", and fused_attn.cpp,
 * "determinism on Blackwell", at d0067d0da). */
void pl_row_choose_determinism(const pl_measured_row *row, const pl_row_habits *habits, pl_framework *framework) {
  static const char *const hopper[] = {"H100", "H200", "H800", "H20"};
  if (pl_row_mentions(row->notes, "no-gradient-accumulation-fusion")) framework->kernels.fuses_accumulation = false;
  if (!pl_row_mentions(row->notes, "deterministic-mode")) return;
  framework->kernels.deterministic = true;
  bool has_cudnn = false;
  for (size_t i = 0; i < sizeof hopper / sizeof hopper[0]; i++)
    has_cudnn = has_cudnn || pl_row_mentions(row->gpu, hopper[i]);
  has_cudnn = has_cudnn || (!habits->dropout && pl_row_is_blackwell(row));
  if (!has_cudnn) framework->kernels.attention_kernel = (int)PL_ATTENTION_FLASH2;
}

void pl_row_choose(const pl_measured_row *row, const pl_row_habits *habits, pl_framework *framework) {
  pl_row_choose_attention(row, framework);
  choose_compilation(row, framework);
  choose_loss(row, framework);
  choose_gradients(row, framework);
  choose_weights(row, framework);
  choose_optimizer(row, framework);
  choose_gelu(row, framework);
  choose_clipping(row, framework);
  choose_softmax(row, framework);
  choose_fusions(row, framework);
  choose_overlap(row, framework);
  choose_scaling(row, framework);
  choose_batch_norm(row, framework);
  choose_reduction(row, framework);
  choose_scattering(row, framework);
  choose_streams(row, framework);
  pl_row_choose_dispatcher(row, framework);
  choose_permutation(row, framework);
  pl_row_choose_graphs(row, framework);
  choose_agreement(row, framework);
  pl_row_choose_determinism(row, habits, framework);
}
