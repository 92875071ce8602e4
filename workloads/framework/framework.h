/* What the training framework does that the GPU does not decide: which chains of ops are one kernel, what the loss
 * keeps, in which types gradients live and travel, how they are bucketed, how parameters are gathered, how the
 * optimizer is run, what the host needs to launch it all, and what memory lies beside the tensors. Physical switches
 * only, each one something that the framework's source or documentation says; no factor on the time of anything.
 *
 * A profile is a file, workloads/frameworks/NAME.json; workloads/FRAMEWORKS.md has the table of the switches. Without
 * a profile everything is as pl_framework_ideal has it: fused kernels, a host that is never late, no memory but that of
 * tensors.
 */
#ifndef PL_WORKLOADS_FRAMEWORK_H
#define PL_WORKLOADS_FRAMEWORK_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/device_profile.h"
#include "workloads/framework/framework_offers.h"

struct pl_job;

/* In which order a layer's ops stand around the exchanges of tokens with its experts (workloads/fuse/kernel_tokens.c).
 */
typedef enum pl_token_order {
  PL_TOKENS_AS_MADE = 0,
  PL_TOKENS_DELAYED, /* the experts' gradients of weights behind the last exchange of a backward pass */
  PL_TOKENS_SHARED   /* shared experts behind the exchanges */
} pl_token_order;

/* How the vocabulary's loss is computed on a rank. */
typedef enum pl_loss_form {
  PL_LOSS_IN_PLACE = 0, /* one fp32 copy of the logits, worked on in place (Megatron-LM's vocab-parallel loss) */
  PL_LOSS_COPY,         /* the shifted logits are another fp32 tensor, the rest in place (nanotron, newer Megatron) */
  PL_LOSS_COPIES,       /* so are their gradient and that of the targets' elements, and the 16-bit logits' room stays
                           (cross_entropy of PyTorch) */
  PL_LOSS_FUSED,        /* one kernel that reads 16-bit logits, and one for their gradient, which is 16-bit too */
  PL_LOSS_FUSED_FP32,   /* one kernel each way on logits that were made fp32 before (a compiled loss behind an eager
                           cast): they are kept, and so wide is their gradient */
  PL_LOSS_CHUNKED       /* as PL_LOSS_FUSED, a share of the tokens at a time: of the logits' gradient there is one */
} pl_loss_form;
enum { PL_LOSS_CHUNKS = 8 }; /* torchtune's num_output_chunks */

/* Whether the loss is one kernel in the forward pass; and whether it reads logits as their product has made them. */
static inline bool pl_loss_is_one_kernel(pl_loss_form form) {
  return form == PL_LOSS_FUSED || form == PL_LOSS_FUSED_FP32 || form == PL_LOSS_CHUNKED;
}
static inline bool pl_loss_reads_16bit(pl_loss_form form) {
  return form == PL_LOSS_FUSED || form == PL_LOSS_CHUNKED;
}

/* 16 bits by torch.autocast (aten/src/ATen/autocast_mode.h): layer norms and softmaxes run in fp32, on casts of what
 * they are given, and products cast what they read that is fp32. */
typedef enum pl_autocast_form {
  PL_AUTOCAST_OFF = 0, /* 16-bit weights and no autocast */
  PL_AUTOCAST_NORMS,   /* around weights that have 16 bits when they are used (FSDP's param_dtype) */
  PL_AUTOCAST_ALL      /* around weights in fp32, which are gathered as such and cast at each use: embeddings, and with
                          them the residual stream, are in fp32 */
} pl_autocast_form;

/* Layers as graphs of TensorFlow's ops (workloads/fuse/kernel_graph.c). */
typedef enum pl_graph_form {
  PL_GRAPH_NONE = 0,
  PL_GRAPH_OPS, /* one by one */
  PL_GRAPH_XLA  /* in XLA's clusters */
} pl_graph_form;

/* How products in fp8 find the scale of what they read. */
typedef enum pl_fp8_scaling {
  PL_FP8_DELAYED = 0, /* from earlier steps, or per block: one kernel reads 16 bits and writes both copies */
  PL_FP8_CURRENT,     /* the largest element first: the tensor is read once more */
  PL_FP8_DYNAMIC,     /* so, too; and inputs are kept in 16 bits and cast once more for the weight gradient (torchao) */
  PL_FP8_ROWWISE /* a scale a row: each product casts its own operands, weights too, of 16 bits, in which everything
                    is kept, gathered and sent (torchao) */
} pl_fp8_scaling;

/* Who hands out device memory, and so what is held beyond the tensors. */
typedef enum pl_allocator_form {
  PL_ALLOCATOR_EXACT = 0, /* as much as there are tensors */
  PL_ALLOCATOR_CACHING,   /* PyTorch's: the training is replayed against it (workloads/memory/stage_replay.h) */
  PL_ALLOCATOR_EXPANDABLE /* so, with expandable segments */
} pl_allocator_form;
extern const char *const pl_allocator_names[]; /* NULL ends them */

typedef enum pl_optimizer_form {
  PL_OPTIMIZER_FUSED = 0,  /* one pass over everything: apex multi-tensor Adam, torch fused=True */
  PL_OPTIMIZER_FOREACH,    /* one pass per arithmetic step over all tensors (torch's default on GPUs) */
  PL_OPTIMIZER_LOOP,       /* one kernel per arithmetic step and tensor */
  PL_OPTIMIZER_FUSED_8BIT, /* fused, with moments of a byte each, and an fp32 scale for every 256 of them
                              (bitsandbytes' AdamW8bit) */
  PL_OPTIMIZER_SGD         /* not Adam: the weight less a share of its gradient, in the weights' type, without state */
} pl_optimizer_form;

/* What ZeRO-3 gathers and scatters at a time. */
typedef enum pl_gather_unit { PL_GATHER_LAYER = 0, PL_GATHER_TENSOR } pl_gather_unit;

/* Where a gradient bucket that is full may close. PARAMETER: there are none, what is reduced behind the last backward
 * pass goes parameter by parameter, vectors too; what overlaps it closes as with TENSOR. */
typedef enum pl_bucket_unit { PL_BUCKET_LAYER = 0, PL_BUCKET_TENSOR, PL_BUCKET_PARAMETER } pl_bucket_unit;

/* What becomes of a block's gradients between the products that make them and their reduction. */
typedef enum pl_gradient_path {
  PL_GRADIENTS_ADDED = 0, /* into the gradient buffer, microbatch by microbatch (fuses_accumulation says how) */
  PL_GRADIENTS_FLAT,      /* copied into one flat tensor, cast to the type of their reduction, divided by the number of
                             ranks: three kernels (FSDP 1); added up as shards */
  PL_GRADIENTS_CHUNKED    /* copied into the reduction's input, cast on the way (FSDP 2); added up as shards */
} pl_gradient_path;

/* How long gradients live. */
typedef enum pl_gradient_life {
  PL_GRADIENTS_STAY = 0, /* buffers that are there before the first step (Megatron's, DeepSpeed's) */
  PL_GRADIENTS_MADE,     /* none until a backward pass makes them, none after the step: zero_grad(set_to_none=True) */
  PL_GRADIENTS_CONSUMED  /* each is given up when it is made: the optimizer steps in the backward pass */
} pl_gradient_life;

/* Where the master weights are: beside 16-bit weights (mixed precision by hand), or as the only weights, cast for use.
 */
typedef enum pl_weight_form {
  PL_WEIGHTS_WITH_MASTER = 0, /* 16-bit weights and, in the optimizer, fp32 copies of them */
  PL_WEIGHTS_FP32,            /* fp32 weights; 16-bit copies are made when they are gathered or used (FSDP, autocast) */
  PL_WEIGHTS_ALONE            /* weights in the job's type and moments like them, nothing in fp32 ("bf16-true") */
} pl_weight_form;

/* Who moves tokens to their experts and adds up the answers (fuse/kernel_dispatch.c has what each reads and writes). */
typedef enum pl_permutation_form {
  PL_PERMUTATION_FUSED = 0, /* a kernel in either direction */
  PL_PERMUTATION_GATHERED,  /* PyTorch ops on tokens that all ranks have gathered (Megatron Core 0.6, all-gather) */
  PL_PERMUTATION_INDEXED,   /* PyTorch ops by index (Megatron Core 0.6 to 0.9, all-to-all) */
  PL_PERMUTATION_WEIGHTED,  /* PyTorch ops that weigh the answers, then add them up (0.10 to 0.12) */
  PL_PERMUTATION_SCATTERED  /* PyTorch ops that add them up; the activation has weighed them (since 0.13) */
} pl_permutation_form;

/* How a device's experts are computed: all of a layer at once, or one after the other, whose rows are cut out of one
 * tensor and put into another. */
typedef enum pl_expert_form {
  PL_EXPERTS_GROUPED = 0,
  PL_EXPERTS_SLICED, /* copied into a tensor of zeros, each by itself (Megatron Core to 0.8) */
  PL_EXPERTS_JOINED  /* split, and put together by one kernel (since 0.9) */
} pl_expert_form;

/* How far the host runs ahead of the GPU: until something makes it wait. */
typedef enum pl_host_window {
  PL_HOST_MICROBATCH = 0, /* forward and backward of a microbatch: nothing in between waits for the GPU */
  PL_HOST_PASS,           /* it waits at every send or receive between stages */
  PL_HOST_KERNEL          /* it waits for every kernel (CUDA_LAUNCH_BLOCKING=1) */
} pl_host_window;

enum { PL_FRAMEWORK_NAME_MAX = 32 };

typedef struct pl_framework {
  const char *name;
  uint64_t digest; /* of the file; 0 = ideal */
  pl_offers offers;
  struct {
    bool flash;           /* fused attention by default (--attention) */
    int attention_kernel; /* pl_attention_kernel: which fused attention */
    bool fuses_softmax;   /* unfused attention: scale, mask and softmax are one kernel */
    bool wide_softmax;    /* unfused attention in steps: its softmax is in fp32, as autocast has it, on and back to 16
                             bits by kernels of its own; what it gave is kept in both */
    bool fuses_scale;     /* unfused attention: scores leave their product scaled; else a kernel in either pass */
    bool masks_scores;    /* unfused attention: what may not be seen is masked; else all is seen, and nothing masks */
    int64_t forward_runs; /* of every layer: all but the last are for nothing */
    int64_t mask_kernels, mask_gradients; /* over the scores where that costs any (workloads/fuse/kernel_mask.c) */
    bool fuses_gelu;                      /* GELU is one kernel; else its form with tanh is PyTorch ops, one by one */
    bool fuses_activation;                /* bias + GELU, or SwiGLU, is one kernel and keeps only its input */
    bool fuses_gate;                      /* false: SwiGLU is not, whatever fuses_activation says */
    bool packs_gate; /* gate and up projection are one weight: where SwiGLU is several kernels, one more puts both
                        their gradients side by side */
    bool fuses_bias; /* products with weights add theirs; else PyTorch's add_ behind them does */
    bool fuses_expert_bias; /* of experts' answers, with their weights: by the product; else in PyTorch ops
                               (fuse/kernel_bias.c) */
    int permutation;        /* pl_permutation_form */
    int experts;            /* pl_expert_form */
    bool fuses_residual;    /* bias + dropout + addition is one kernel */
    bool fuses_rotary;
    bool fuses_context; /* gathered keys and values are attended to at once; else in cp steps (launched_context.c) */
    bool copies_qkv;   /* queries, keys and values are copied on their way to fused attention, and the product that they
                          came out of stays until it is done, attention's output until the layer is */
    bool uneven_heads; /* tmp need not divide the heads: ranks have unlike numbers, and all wait for the largest */
    bool copies_inputs; /* without sequence parallelism products over a tensor group work on copies of what they read,
                           one for each, which stay for the backward pass; gradients of sums are copied, too */
    bool fuses_batch_norm; /* of 16-bit pictures, with the addition and the ReLU behind it: one kernel in either pass */
    bool fuses_norm;       /* RMS norm; layer norm is one kernel everywhere */
    pl_autocast_form autocast;
    pl_graph_form graph;
    int64_t loss_metrics; /* cross entropies of the logits that nothing is derived from, per microbatch */
    bool deterministic;   /* the same bits every time: see workloads/PRECISION.md */
    bool
        fuses_accumulation; /* the weight gradient's GEMM adds into the gradient buffer; else a kernel per microbatch */
    pl_loss_form loss;
    pl_fp8_scaling fp8_scaling;
    bool ends_recompute;    /* full recomputation ends with what the backward pass reads (lower_recompute.c) */
    int64_t vocab_multiple; /* the vocabulary is padded to a multiple of this times tmp; 1: not at all */
  } kernels;
  struct {
    pl_weight_form weights;
    pl_optimizer_form optimizer;
    bool clips_gradients;    /* norm over all gradients before the step, and their scaling */
    bool unscales_gradients; /* jobs in fp16: a kernel of its own divides fp32 gradients by the scale of the loss */
    bool holds_update;       /* the optimizer's working memory is one flat tensor: no freed activations make room for
                                it, and the allocator never gives it back */
    bool lists_update;       /* it is first a list of tensors, then the flat one: twice as much without ZeRO */
  } update;
  struct {
    pl_gradient_path gradient_path;
    pl_gradient_life life;
    int gradient_dtype;         /* pl_dtype in which gradients are kept, -1: pl_gradient_dtype */
    int reduce_dtype;           /* pl_dtype in which they travel, -1: as kept */
    bool keeps_16bit_gradients; /* beside the buffer that they are added into */
    bool holds_16bit_gradients; /* and these until the next backward pass begins, not until that one ends */
    bool copies_buckets;     /* gradients are copied into buckets of their own (DDP without gradient_as_bucket_view) */
    bool clips_microbatches; /* those of every microbatch, of graphs: a norm over all, and their scaling */
    bool clears;             /* their buffers are set to zero before every step */
    double passes; /* over whole gradients around their reduction, a reading or a writing each: copies into what is
                      reduced and back, the division by the number of replicas, a look for infinities */
    double bucket_bytes; /* 0: one bucket for all gradients */
    pl_bucket_unit bucket_unit;
    bool overlaps_gradients;     /* default of the strategy's `overlap` */
    bool scatters_by_all_reduce; /* ZeRO 2 and 3: gradients are all-reduced, each rank keeps its share */
    bool reduces_whole; /* ZeRO 1: gradients are all-reduced at once behind the last backward pass, no buckets */
  } gradients;
  struct {
    bool overlaps_tensor; /* with sequence parallelism, collectives of dense layers run beside the matrix product that
                             they feed or are fed by, or the next one */
    bool overlaps_tensor_backward; /* of a column split's derivative: its input is gathered again beside the product for
                                      its input's gradient, which is scattered or all-reduced beside that for its
                                      weight's; in dense layers, whatever else runs beside products or not */
    bool sends_tokens_per_node;    /* to the nodes of their experts once each, and copied there (DeepEP, HybridEP) */
    bool sends_tokens_fp8; /* where products are in fp8: tokens go to their experts, and gradients of answers back to
                              them, in 8 bits; answers and gradients of tokens in 16 */
    double exchange_multiprocessors; /* that the exchange of tokens keeps busy while something computes beside it */
    pl_token_order token_order;      /* of a strategy's ep_overlap; in no file */
    int assign;                      /* default of the strategy's `assign`: recipe PL_ASSIGN_UNIFORM + assign */
    bool splits_sends;               /* default of --pipeline-sends */
    double send_wait_s;      /* a send and its receive hold up both hosts, which agree for so long before it moves; 0:
                                neither waits for the other */
    double pipeline_buffers; /* what a stage but the last keeps for its backward passes is there this many times pp,
                                16-bit copies of fp32 weights included; 0: once per microbatch on its way */
  } pipeline;
  struct {
    bool copies_per_tensor; /* ZeRO 1 and 2: updated parameters are gathered into one flat tensor per rank, from which
                               every tensor's share of that rank is copied by itself */
    bool copies_per_rank;   /* gathers have a list of per-rank tensors for output: as many copies behind each gather */
    bool copies_gathered;   /* behind each gather one kernel copies what came to where it is used */
    bool gathers_ahead;     /* ZeRO-3 gathers the next unit while this one runs */
    bool keeps_last; /* ZeRO-3 without pipelines: the last unit stays for the backward pass, which needs it first */
    pl_gather_unit gather_unit;
    double reuse_parameters; /* ZeRO-3 keeps what is used again within so many parameters, each counted as often as it
                                is used: the last ones from the forward to the backward pass; with full recomputation a
                                block with more than this is gathered for the recomputation and once more for the
                                backward pass; 0: never */
  } gathers;
  /* The host: seconds. All 0: never late. */
  struct {
    double launch_s;          /* of one kernel in the forward pass, Python and dispatch included */
    double backward_launch_s; /* the same from the autograd engine */
    double collective_s;      /* of one collective */
    double collective_rank_s; /* of one collective, for each rank of its group: ranks compare what they are about to
                                 call (TORCH_DISTRIBUTED_DEBUG=DETAIL) */
    double layer_s; /* per transformer layer and pass, on top of the kernels: modules, hooks, context managers */
    double step_s; /* of every step, on all devices behind the optimizer: a site's (workloads/run/site.h), in no file */
    pl_host_window host_window;
    double ops_ahead; /* that the launch queue has room for */
  } launch;
  /* Memory that tensors do not account for, bytes. */
  struct {
    pl_allocator_form allocator;
    bool records_streams; /* what a collective has touched comes free when the device has passed it, not when the host
                             frees it (workloads/run/launched_ahead.h) */
    bool replays_ahead;   /* with that and a replay, the host is a launch queue ahead in it; else what waits is reckoned
                             beside it, as far as the device has room, and is in no verdict */
    bool caches_narrow_weights; /* products in fp8: their weights in fp8, as they are and transposed, stay beside the
                                   16-bit ones from microbatch to microbatch */
    bool keeps_gathered;        /* what tensor collectives gather lies in buffers that are never given back */
    bool copies_gradient;  /* a gradient is cast to a wider type in a block of its own: to fp32 to be added to others
                              or looked at for infinities, to fp64 for the norm of 16-bit ones under ZeRO */
    bool copies_scattered; /* ZeRO 2 and 3: a bucket is laid out anew, rank by rank, in a tensor of its own */
    double flat_elements;  /* tensors are copied into one of so many elements, to be reduced and to be gathered; 0: no
                              copy */
    double context_bytes;  /* CUDA context, loaded kernels, library workspaces; negative: the profile's `reserved` */
    double communicator_bytes; /* per communicator that a device belongs to; negative: the profile's `communicator`,
                                  and its `switch_buffers` */
    bool switch_buffers;       /* reductions in the switch are not turned off (NCCL_NVLS_ENABLE=0) */
    double workspace_bytes;    /* of libraries, and what the allocator holds whatever the job: inside it */
    double replayed_bytes;     /* what of that a replay does not come to by itself; negative: all of it */
    double fragmentation;      /* share of the tensors' peak that the allocator holds and cannot use */
  } memory;
} pl_framework;

extern const pl_framework pl_framework_ideal;

/* The memory in the allocator beside tensors, with its allocator as it is. */
static inline double pl_framework_workspace_bytes(const pl_framework *framework) {
  bool replays = framework->memory.allocator != PL_ALLOCATOR_EXACT && framework->memory.replayed_bytes >= 0;
  return replays ? framework->memory.replayed_bytes : framework->memory.workspace_bytes;
}

/* `choice`: a name in the folder of profiles (PACELINE_FRAMEWORKS, else Paceline's own), or a file when it has a '/'
 * or ends in ".json". Strings from `arena`. Bad input: file:line, the value and what would do. */
pl_code pl_framework_load(const char *choice, pl_arena *arena, pl_framework *framework, pl_error *error);
pl_code pl_framework_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_framework *framework,
                           pl_error *error);
/* "ideal", then the names in the folder, sorted: "ideal, a, b"; NULL: no memory. */
const char *pl_framework_list(pl_arena *arena);
/* The names of the folder alone, sorted; NULL ends them. NULL: no memory. */
const char *const *pl_framework_names(pl_arena *arena);

/* Gives `job` the framework and what follows from it: attention, bucket size, form of the sends. `framework` outlives
 * the job. */
void pl_framework_apply(const pl_framework *framework, struct pl_job *job);

/* Type of the buffers that gradients are added into (workloads/ir/op.h, pl_gradient_dtype, unless the framework has its
 * own). */
pl_dtype pl_framework_gradient_dtype(const pl_framework *framework, pl_dtype dtype);

/* Type in which the gradients of a job in `dtype` travel; -1: as they are kept. Mixed precision reduces in 16 bits: a
 * job that computes in 32 has none. */
static inline int pl_framework_reduce_dtype(const pl_framework *framework, pl_dtype dtype) {
  int narrow = framework->gradients.reduce_dtype;
  return narrow >= 0 && pl_dtype_bytes((pl_dtype)narrow) < pl_dtype_bytes(dtype) ? -1 : narrow;
}

/* Of what goes to experts under sends_tokens_fp8: a byte for each number, and a scale of fp32 for 128 of them. */
#define PL_FP8_TOKEN_BYTES (1 + 4 / 128.0)

/* NULL is ideal. */
static inline const pl_framework *pl_framework_or_ideal(const pl_framework *framework) {
  return framework != NULL ? framework : &pl_framework_ideal;
}

/* Whether fused attention runs once more under `alternate`: cuDNN's is not on torchtitan's list of what is kept
 * (_save_list, as published). */
static inline bool pl_framework_attends_again(const pl_framework *framework) {
  return framework->kernels.attention_kernel == (int)PL_ATTENTION_CUDNN;
}

/* Whether the product that makes a weight's gradient adds it to its buffer itself. */
static inline bool pl_framework_adds_in_products(const pl_framework *framework) {
  return framework->gradients.gradient_path == PL_GRADIENTS_ADDED && framework->kernels.fuses_accumulation;
}

/* Whether `launch` is the time of a module with its kernel (of Megatron's transformer layers, timed as such), not that
 * of a PyTorch op, 25 us at most: ops of a chain inside of one module launch beside it, nothing more. */
static inline bool pl_framework_has_module_launches(const pl_framework *framework) {
  static const double op_s = 25e-6;
  return framework->launch.launch_s > op_s;
}

/* Of a job in `dtype`; fp32 has nothing to cast. */
static inline pl_autocast_form pl_framework_autocast(const pl_framework *framework, pl_dtype dtype) {
  return pl_dtype_bytes(dtype) == 2 ? framework->kernels.autocast : PL_AUTOCAST_OFF;
}

/* Whether an activation and its product with the other half are one kernel. */
static inline bool pl_framework_fuses_gate(const pl_framework *framework) {
  return framework->kernels.fuses_activation && framework->kernels.fuses_gate;
}

/* Whether gradients of gate and up projection are packed by a kernel of its own. */
static inline bool pl_framework_packs_gate(const pl_framework *framework) {
  return !pl_framework_fuses_gate(framework) && framework->kernels.packs_gate;
}

/* Whether a softmax in steps leaves out what the mask hides: it does in one kernel with a causal mask. */
static inline bool pl_framework_skips_masked(const pl_framework *framework, bool causal) {
  return framework->kernels.fuses_softmax && framework->kernels.masks_scores && causal;
}

/* Whether softmaxes of scores are in fp32 where all else is of that 16-bit type, by kernels beside them. */
static inline bool pl_framework_widens_scores(const pl_framework *framework, pl_dtype dtype) {
  return framework->kernels.wide_softmax || pl_framework_autocast(framework, dtype) != PL_AUTOCAST_OFF;
}

/* Whether the mask costs a kernel of its own. */
static inline bool pl_framework_masks_apart(const pl_framework *framework) {
  return !framework->kernels.fuses_softmax && framework->kernels.masks_scores;
}

/* By how much longer what computing bounds takes on such a device while experts exchange tokens beside it: it has what
 * the exchange leaves of the multiprocessors, one at least. 0: all of them, or their number is not known. */
static inline double pl_framework_crowding(const pl_framework *framework, const pl_device_profile *profile) {
  double taken = pl_framework_or_ideal(framework)->pipeline.exchange_multiprocessors;
  double all = profile->gemm.multiprocessors, left = all - taken > 1 ? all - taken : 1;
  return taken > 0 && all > 1 ? all / left - 1 : 0;
}

/* Likewise while a collective of the tensor group runs beside: a thread block per channel keeps a multiprocessor busy.
 * Where a product's thread blocks fill the device those that find no place make another round. */
static inline double pl_tensor_crowding(const pl_device_profile *profile) {
  double all = profile->gemm.multiprocessors, left = all - profile->channels > 1 ? all - profile->channels : 1;
  if (profile->channels == 0 || all <= 1) return 0;
  return (profile->fills_device ? ceil(all / left) : all / left) - 1;
}

/* Whether gradients are all-reduced at once, whatever else the profile says of their travels. */
static inline bool pl_framework_reduces_whole(const pl_framework *framework, int32_t zero) {
  return zero == 1 && pl_framework_or_ideal(framework)->gradients.reduces_whole;
}

#endif
