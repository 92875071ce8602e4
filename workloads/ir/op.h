/* Ops and blocks: what a model is made of, on one device, after sharding. The distributed IR's vocabulary.
 *
 * A block is an assignable unit of a model (embedding, one transformer layer, head ...). pl_block_program derives, for
 * one block and one way of sharding it, the ordered op lists of its forward and its backward pass on ONE rank of the
 * tensor group: compute ops with their local shapes, collectives where the sharding needs them, and what memory the
 * passes take and keep. Backward ops are derived from the forward ones (each GEMM: data gradient and weight gradient),
 * recomputation repeats forward ops in front of the backward.
 */
#ifndef PL_WORKLOADS_OP_H
#define PL_WORKLOADS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/cluster/device_profile.h"
#include "core/graph/graph.h"
#include "netmodel/collective/collective.h"

typedef enum pl_op_kind {
  PL_OP_GEMM = 0,  /* batch x [m, k] x [k, n] */
  PL_OP_ATTENTION, /* fused: flops and bytes of the whole kernel */
  PL_OP_NORM,
  PL_OP_SOFTMAX,
  PL_OP_ELEMENTWISE,
  PL_OP_EMBEDDING,
  PL_OP_CROSS_ENTROPY,
  PL_OP_CONVOLUTION,
  PL_OP_COLLECTIVE,
  PL_OP_KIND_COUNT
} pl_op_kind;

const char *pl_op_kind_name(pl_op_kind kind); /* "gemm", as in profile tables */

typedef enum pl_group_role {
  PL_GROUP_NONE = 0,
  PL_GROUP_TENSOR,
  PL_GROUP_DATA,
  PL_GROUP_CONTEXT,
  PL_GROUP_EXPERT,
  PL_GROUP_PIPELINE,
  PL_GROUP_EMBEDDING,
  PL_GROUP_HEADS /* tensor ranks that share key-value heads, where these are not all of the tensor group */
} pl_group_role;

enum { PL_TENSOR_RANK = 4, PL_OP_INPUTS = 8, PL_OP_TENSORS = PL_OP_INPUTS + 3 };

/* FLOPs of fused attention's backward over its forward's: five matrix products where the forward has two. */
#define PL_ATTENTION_BACKWARD_FLOPS 2.5

typedef enum pl_tensor_kind {
  PL_TENSOR_ACTIVATION = 0,
  PL_TENSOR_MASK, /* of dropout: an activation of one byte an element, whatever `dtype` says */
  PL_TENSOR_PARAMETER,
  PL_TENSOR_GRADIENT,           /* of the activation of the same name */
  PL_TENSOR_PARAMETER_GRADIENT, /* of the parameter of the same name: a persistent buffer that microbatches accumulate
                                   into, of pl_gradient_dtype */
  PL_TENSOR_SIGNS               /* of an activation: one of a bit an element, whatever `dtype` says */
} pl_tensor_kind;

/* Dims carry the model's names: b (batch), s (sequence), h (hidden), f (ffn), a (heads), d (head size), v (vocabulary),
 * p (scale and shift of a norm; learned positions), e (experts, or tokens sent to them), g (gate and up half), i and o
 * (input and output width of a weight); local extents. */
typedef struct pl_tensor {
  const char *name;
  uint8_t kind;  /* pl_tensor_kind */
  uint8_t dtype; /* pl_dtype */
  bool saved;    /* kept from forward to backward */
  bool waits;    /* with shard->halves: kept from the half of the backward pass for inputs to that for weights */
  bool expert;   /* a parameter of the experts on this rank */
  bool unread;   /* kept although the backward pass does not read it */
  uint8_t rank;
  char dims[PL_TENSOR_RANK];
  int64_t extent[PL_TENSOR_RANK];
  double size_bytes;
  uint8_t pieces;      /* it is made and used up in so many, one of which is there at a time; 0: whole */
  double remade_bytes; /* of size_bytes, what a recomputation makes again: given up in between (of a kept tensor) */
} pl_tensor;

static inline double pl_tensor_held_bytes(const pl_tensor *tensor) {
  return tensor->pieces > 1 ? tensor->size_bytes / tensor->pieces : tensor->size_bytes;
}

/* Of a parameter: what products are made with; norms and positions are not. */
static inline bool pl_tensor_is_matrix(const pl_tensor *tensor) {
  return tensor->rank >= 2 && tensor->dims[0] != 'p';
}

/* How a collective stands to the computing behind it. */
typedef enum pl_op_overlap {
  PL_OVERLAP_NONE = 0, /* what follows waits for it */
  PL_OVERLAP_BEGINS,   /* of a collective: it runs beside what follows; of the tensor group: beside the next product */
  PL_OVERLAP_BEGAN, /* of a tensor collective: it has run beside the product before it, whose output it takes piece by
                       piece */
  PL_OVERLAP_AWAITS /* of a computing op: it waits for the collective that began before it */
} pl_op_overlap;

typedef struct pl_op {
  const char *name; /* "qkv", "attention", "mlp_up" ... */
  uint8_t kind;     /* pl_op_kind */
  uint8_t category; /* pl_category: FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER, TENSOR ... */
  uint8_t dtype;
  uint8_t attention_kernel;  /* pl_attention_kernel; only for PL_OP_ATTENTION */
  uint8_t collective, group; /* pl_collective_kind, pl_group_role; only for PL_OP_COLLECTIVE */
  uint8_t overlap;           /* pl_op_overlap */
  uint8_t convolution_pass;  /* pl_convolution_pass; only for PL_OP_CONVOLUTION, as is `convolution` */
  bool deterministic;        /* attention whose backward pass adds up in a fixed order */
  bool transposed; /* GEMM: the first operand lies as [k, m] in memory, as the weight gradient reads its input */
  bool host_free;  /* its launch is in the framework's host time per layer */
  bool plain;      /* an instruction or two an element, no function: as fast as the memory, whatever the type */
  int32_t times;   /* kernels of this shape one after the other, with the work of all; 0: one */
  const struct pl_chain_step
      *convolution; /* filter, stride and pictures (workloads/ir/chain.h); lives as long as the model */
  /* GEMM, and the product that a CONVOLUTION is: as above. ATTENTION: (batch * heads, query length, key length, head
   * size). The memory-bound kinds: (1, rows, width, 0). */
  int64_t batch, m, n, k;
  double flops, bytes; /* work, and traffic to device memory, of this op on this rank */
  double size_bytes;   /* collective: size as netmodel/collective/collective.h defines it */
  double filled_bytes; /* of the output, which a kernel of its own has filled before (deterministic runs); mostly 0 */
  /* Tensor indices of the block, PL_NONE = none. An op whose output is among its inputs works in place. */
  uint32_t inputs[PL_OP_INPUTS], output;
  uint32_t auxiliary; /* second output: dropout mask, log-sum-exp, parameter gradient of a norm */
  uint32_t third;     /* and a third one: queries, keys and values have a tensor each */
} pl_op;

/* Makes `op` a product of `batch` times [m, k] and [k, n]: its shape, FLOPs, and traffic, of operands of
 * `element_bytes` an element and a result of `out_bytes`, which is twice its type where it is added to. */
void pl_op_set_product(pl_op *op, int64_t batch, int64_t m, int64_t n, int64_t k, double element_bytes,
                       double out_bytes);
/* Makes it the product that convolution `step` of so many pictures is, forward or a derivative of it: the gradient of
 * the pictures is a convolution with the filters turned round, at the size of the input; that of the filters a product
 * over all points of the output. Its traffic is the caller's: pictures, not their patches. */
void pl_op_set_convolution(pl_op *op, const struct pl_chain_step *step, int64_t pictures, pl_convolution_pass pass);
/* Kernels of libraries whose output is a new tensor, which deterministic runs fill before. */
static inline bool pl_op_allocates(const pl_op *op) {
  return op->kind == PL_OP_GEMM || op->kind == PL_OP_ATTENTION || op->kind == PL_OP_NORM;
}

/* Tensors that an op touches, read ones first, without PL_NONE entries; returns how many. */
uint32_t pl_op_tensors(const pl_op *op, uint32_t tensors[PL_OP_TENSORS]);

typedef struct pl_op_list {
  const pl_op *ops;
  uint32_t n_ops;
  uint32_t n_overlaps; /* of these: other than PL_OVERLAP_NONE */
} pl_op_list;

typedef enum pl_block_kind {
  PL_BLOCK_EMBEDDING = 0,
  PL_BLOCK_IDENTITY, /* no op; DeepSpeed counts such pipeline layers, and AMP's assignments with them */
  PL_BLOCK_LAYER,
  PL_BLOCK_EXPERT_LAYER, /* a transformer layer whose MLP is a mixture of experts */
  PL_BLOCK_FINAL_NORM,
  PL_BLOCK_HEAD, /* logits */
  PL_BLOCK_LOSS,
  /* Of models with parts (workloads/ir/model.h) only: */
  PL_BLOCK_LATENT,    /* one vector per sample, by one linear layer to all tokens */
  PL_BLOCK_POSITIONS, /* learned positions, added */
  PL_BLOCK_RESHAPE,   /* tokens in another order, repeated, or fewer channels on more of them */
  PL_BLOCK_PIXELS,    /* a linear layer per token to the channels of a picture, and its mean as the loss */
  PL_BLOCK_DENSE_OUT, /* a linear layer and ReLU, split by outputs over the tensor group */
  PL_BLOCK_DENSE_IN,  /* the same, split by inputs */
  PL_BLOCK_CHAIN,     /* layers of a convolutional network (workloads/ir/chain.h) */
  PL_BLOCK_MEAN,      /* a loss that is a mean over all outputs */
  PL_BLOCK_KIND_COUNT
} pl_block_kind;

const char *pl_block_kind_name(pl_block_kind kind);

/* none; the attention core; whole layers; every second matrix product of a layer and all that is none
 * (workloads/lower/lower_recompute.c) */
typedef enum pl_recompute {
  PL_RECOMPUTE_NONE = 0,
  PL_RECOMPUTE_SELECTIVE,
  PL_RECOMPUTE_FULL,
  PL_RECOMPUTE_ALTERNATE,
  PL_RECOMPUTE_COUNT
} pl_recompute;

/* What is said of an op alone, whatever its function recomputes. */
typedef enum pl_recompute_of_op {
  PL_RECOMPUTE_OP_AS_FUNCTION = 0,
  PL_RECOMPUTE_OP_AGAIN,
  PL_RECOMPUTE_OP_KEPT
} pl_recompute_of_op;

/* How a block is cut and run. */
typedef struct pl_block_shard {
  int32_t tmp; /* tensor-parallel degree */
  int32_t ep;  /* ranks over which the experts are spread; 0 counts as 1 */
  int32_t etp; /* tensor ranks over which each expert is cut: all of them, or 1 (0 counts as 1) */
  int32_t cp;  /* ranks over which every sequence is cut; 0 counts as 1 */
  bool sp;     /* sequence parallelism (only with tmp > 1) */
  int32_t mbs;
  int64_t seq; /* sequence length */
  pl_recompute recompute;
  bool cp_gather; /* keys and values are gathered before attention, instead of going round a ring beside it */
  pl_dtype dtype; /* of activations, weights and GEMMs */
  bool flash;     /* fused attention: no s x s tensors */
  bool fp8;       /* the products of the layers' weights are in fp8 */
  bool fp4;       /* with fp8: in NVFP4 instead */
  pl_attention_kernel attention_kernel; /* which one; ANY = the device's first */
  const struct pl_framework
      *framework;      /* which chains are one kernel (workloads/framework/framework.h); NULL = ideal */
  bool halves;         /* the two halves of the backward pass are asked for */
  uint8_t token_order; /* pl_token_order of workloads/framework/framework.h */
  /* Gradients are kept in shards (ZeRO-2 and 3), so that what a pass makes is reduced, and shards of it are added up.
   * Those of experts, where there are copies of experts. */
  bool scatters, scatters_experts;
} pl_block_shard;

/* Passes of a block, and how they are counted. A backward pass in whole, or its halves one after the other: what the
 * gradient of the input needs, recomputation included, and the rest, which makes gradients of weights. */
typedef enum pl_block_pass {
  PL_PASS_FORWARD = 0,
  PL_PASS_BACKWARD,
  PL_PASS_INPUTS,
  PL_PASS_WEIGHTS,
  PL_PASS_COUNT
} pl_block_pass;

typedef struct pl_block_program {
  pl_block_kind kind;
  int32_t block_class; /* workloads/ir/model.h: the kind itself, or the part of a model of unlike blocks */
  const pl_tensor *tensors;
  uint32_t n_tensors;
  /* Tensors handed in and out, forward and backward; PL_NONE = none (before the embedding, behind the loss). */
  uint32_t input, output, output_gradient, input_gradient;
  pl_op_list forward;
  pl_op_list backward;        /* recomputation included, collectives included */
  pl_op_list halves[2];       /* of it: for inputs, for weights; empty without shard->halves */
  double parameters;          /* count held by this rank, replicated ones and padded vocabulary included */
  double expert_parameters;   /* of these: of experts, which other ranks' data-parallel group reduces */
  double largest_parameters;  /* of the tensor that has most, a tied one included */
  double tied_parameters;     /* weights that this block reads and the embedding owns (tied head): a stage without the
                                 embedding holds them too */
  double saved_bytes;         /* activations kept per microbatch from forward to backward on this rank */
  double forward_peak_bytes;  /* transient maximum during forward above what was there before, saved_bytes included */
  double backward_peak_bytes; /* transient maximum during backward above what was there before it (saved_bytes not
                                 included) */
  /* With shard->halves: transient maxima of the two above what was there before, and what the first leaves to the
   * second of activations and gradients. */
  double inputs_peak_bytes, weights_peak_bytes, waiting_bytes;
  double output_bytes; /* activation handed to the next block (what a pipeline send carries) on this rank */
  double model_flops;  /* forward FLOPs of the whole block for one microbatch, unsharded, for MFU */
} pl_block_program;

static inline const pl_op_list *pl_block_ops(const pl_block_program *program, pl_block_pass pass) {
  return pass == PL_PASS_FORWARD    ? &program->forward
         : pass == PL_PASS_BACKWARD ? &program->backward
                                    : &program->halves[pass - PL_PASS_INPUTS];
}

/* Type of the buffers that weight gradients of all microbatches are added into, and that are reduced over the data
 * group: fp16 for fp16, whose loss is scaled; fp32 for everything else, bf16 in particular, whose 8 bits of mantissa
 * would lose what small microbatches add. As Megatron-LM does by default (arguments.py: bf16 turns
 * accumulate_allreduce_grads_in_fp32 on, fp16 does not). See workloads/PRECISION.md. */
pl_dtype pl_gradient_dtype(pl_dtype dtype);

#endif
