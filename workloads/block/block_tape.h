/* Tape: the kernels of one block while they are written down, forward and backward, and what the backward pass wants to
 * know of each group of forward ones. Internal to workloads/block and workloads/lower; the result that others see is
 * pl_block_program.
 *
 * What a block computes is lowered to it from the block's function with local shapes (workloads/lower), and so is its
 * backward pass from the function's derivative: from the kernels that the pass for programs makes of both, or op by op,
 * with the nodes below. From the lists
 *   block_memory.c    derives what is kept and the peaks, from who reads what last;
 *   block_halves.c    derives the two halves of the backward pass.
 * Nobody says by hand what is saved: a tensor is saved exactly if the backward list reads it before it makes it
 * (again). The alternative, a table of bytes per family as in most calculators, was rejected because it goes wrong
 * silently with the first new combination.
 *
 * Everything lives in fixed arrays on the stack of pl_block_program_make (about 170 kB); the limits are checked by
 * PL_ASSERT, no input can move them. Names are literals, so that taking a program allocates three times and copies no
 * text.
 */
#ifndef PL_WORKLOADS_BLOCK_TAPE_H
#define PL_WORKLOADS_BLOCK_TAPE_H

#include "workloads/framework/framework.h"
#include "workloads/ir/model.h"

enum {
  PL_TAPE_FORWARD_OPS = 160,
  PL_TAPE_BACKWARD_OPS = 384,
  PL_TAPE_TENSORS = 512,
  PL_TAPE_NODES = 88,
  PL_TAPE_PRODUCTS = 3
};

typedef enum pl_tape_rule {
  PL_RULE_LINEAR = 0,
  PL_RULE_REDUCE, /* sum over the tensor group, scattered over the sequence (sequence parallelism) */
  PL_RULE_NORM,
  PL_RULE_ADD,       /* output = input + second */
  PL_RULE_POINTWISE, /* the derivative needs the input (gelu, swiglu), and `second` where the op multiplies by it */
  PL_RULE_CAST,      /* to another type */
  PL_RULE_TANH,      /* the derivative needs the output */
  PL_RULE_DROPOUT,
  PL_RULE_PACK,    /* output = input and second, rearranged */
  PL_RULE_PERMUTE, /* rows in another order, repeated or added up */
  PL_RULE_CONVOLUTION,
  PL_RULE_BATCH_NORM,
  PL_RULE_BATCH_NORM_RELU, /* with the ReLU, and the sum of `second` in front of it */
  PL_RULE_RELU,            /* the derivative needs the output */
  PL_RULE_MAX_POOL         /* the derivative needs both */
} pl_tape_rule;

typedef enum pl_parallel {
  PL_PARALLEL_NONE = 0, /* the same weight on every rank; rows as they come */
  PL_PARALLEL_COLUMN,   /* outputs are split: each rank needs the whole input */
  PL_PARALLEL_ROW       /* inputs are split: outputs are partial sums */
} pl_parallel;

/* Literals for everything that one forward op can turn into. */
typedef struct pl_tape_names {
  const char *forward, *backward, *wgrad, *bias, *bias_grad;
  const char *gather, *regather, *input_all_reduce, *input_reduce_scatter; /* column-parallel input */
  const char *all_reduce, *reduce_scatter, *grad_all_gather;               /* row-parallel output */
  const char *cast, *grad_cast, *cast_again; /* to fp8, of the input, the gradient, and the input for the weights' */
} pl_tape_names;

#define PL_LINEAR_NAMES(name)                                                                                          \
  ((pl_tape_names){name, name "_dgrad", name "_wgrad", name "_bias", name "_bias_grad", name "_input_all_gather",      \
                   name "_wgrad_all_gather", name "_dgrad_all_reduce", name "_dgrad_reduce_scatter",                   \
                   name "_all_reduce", name "_reduce_scatter", name "_grad_all_gather", name "_input_cast",            \
                   name "_grad_cast", name "_wgrad_cast"})
#define PL_OP_NAMES(name)                                                                                              \
  ((pl_tape_names){.forward = name,                                                                                    \
                   .backward = name "_backward",                                                                       \
                   .wgrad = name "_wgrad",                                                                             \
                   .bias = name "_bias",                                                                               \
                   .bias_grad = name "_bias_grad",                                                                     \
                   .cast = name "_input_cast",                                                                         \
                   .grad_cast = name "_grad_cast",                                                                     \
                   .cast_again = name "_wgrad_cast"})

typedef struct pl_tape_node {
  pl_tape_names names;
  uint8_t rule;     /* pl_tape_rule */
  uint8_t parallel; /* pl_parallel */
  uint8_t times;    /* of a cast by autocast: for how many products */
  uint32_t first_op, op;
  uint32_t input, second, weight, bias, output, auxiliary;
  uint32_t quantised;                 /* the input in fp8, which the product read instead; PL_NONE = none */
  int32_t head;                       /* the op of the block's function that is being lowered */
  int32_t of;                         /* the op that these kernels are of: that, or one that is lowered with it */
  int32_t products[PL_TAPE_PRODUCTS]; /* of a matrix product: those of the function that it is, side by side */
  uint8_t n_products;
} pl_tape_node;

typedef struct pl_tape {
  const pl_block_shard *shard;
  const pl_framework *framework;
  int64_t tmp, ep, cp, mbs, seq, /* seq: of this rank's share of a sequence */
      seq_local;     /* seq_local: rows outside the tensor-parallel regions, seq / tmp under sequence parallelism */
  int64_t model_seq; /* of the whole sequence */
  bool sp;
  bool layer;    /* a transformer layer: what recomputation acts on */
  bool overlaps; /* its tensor collectives run beside the matrix products next to them */
  pl_tensor tensors[PL_TAPE_TENSORS];
  pl_op forward[PL_TAPE_FORWARD_OPS];
  pl_op backward[PL_TAPE_BACKWARD_OPS];
  pl_tape_node nodes[PL_TAPE_NODES];
  bool for_inputs[PL_TAPE_BACKWARD_OPS]; /* per backward op: what the gradient of the block's input is made from */
  bool writes_for_inputs;                /* the same of those that are written now */
  uint32_t n_tensors, n_forward, n_backward, n_nodes;
  int32_t head, of;                         /* of the nodes that are noted now */
  uint32_t input, output;                   /* activations handed in and out, PL_NONE = none */
  uint32_t output_gradient, input_gradient; /* the same of the backward pass */
  uint32_t data;                            /* input of the model that no gradient is made for, PL_NONE = none */
  pl_dtype stream; /* of sums and embeddings: the shard's, or under autocast around fp32 weights fp32 */
  pl_dtype normed; /* of layer norms: the shard's, or under any autocast fp32 */
  uint32_t tied;   /* parameter that the embedding owns, PL_NONE = none */
  double model_flops;
} pl_tape;

void pl_tape_init(pl_tape *tape, const pl_block_shard *shard);

/* Whether products over the tensor group work on copies of their inputs: see `copies_inputs` of a framework. */
bool pl_tape_copies_inputs(const pl_tape *tape);
/* A tensor over up to four named dims; `dims` is a string of their letters. */
uint32_t pl_tape_tensor(pl_tape *tape, const char *name, pl_tensor_kind kind, pl_dtype dtype, const char *dims,
                        const int64_t *extent);
uint32_t pl_tape_like(pl_tape *tape, uint32_t tensor, const char *name, pl_tensor_kind kind, pl_dtype dtype);
/* The same elements in another type. */
void pl_tape_retype(pl_tape *tape, uint32_t tensor, pl_dtype dtype);
/* What a product reads, as autocast casts it: `n` times where as many products read it. Of 16 bits: `input` itself. */
uint32_t pl_tape_autocast(pl_tape *tape, uint32_t input, int n);
/* [b, rows, width], of the shard's dtype. */
uint32_t pl_tape_activation(pl_tape *tape, const char *name, int64_t rows, char dim, int64_t width);
uint32_t pl_tape_parameter(pl_tape *tape, const char *name, const char *dims, int64_t first, int64_t second);
double pl_tape_elements(const pl_tape *tape, uint32_t tensor);

/* Ops, appended to the forward or to the backward list by their category. */
pl_op *pl_tape_op(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, uint32_t first,
                  uint32_t second, uint32_t third, uint32_t output);
pl_op *pl_tape_gemm(pl_tape *tape, const char *name, pl_category category, int64_t batch, int64_t m, int64_t n,
                    int64_t k, uint32_t first, uint32_t second, uint32_t third, uint32_t output);
/* Makes a product the convolution `step` or a derivative of it: its traffic is that of the tensors that it reads and
 * writes, the pictures and not their patches. */
void pl_tape_as_convolution(const pl_tape *tape, pl_op *op, const struct pl_chain_step *step, pl_convolution_pass pass);
/* A product of two fp8 (or, by the shard, NVFP4) matrices, with the output that it has: the traffic and the type of
 * `op`. */
void pl_tape_in_fp8(const pl_tape *tape, pl_op *op);
/* `input` in fp8, by a kernel that reads it and writes `n_copies`, as a rule two: as it is and transposed, for the two
 * products that read it. One copy is counted as the tensor. Where the framework's scales are not there already it reads
 * the tensor twice, for its largest element first. */
uint32_t pl_tape_cast(pl_tape *tape, const char *name, pl_category category, uint32_t input, int n_copies);
/* Of a product's input: for both products, or for the first alone where the second one's is cast by the backward pass
 * (pl_tape_casts_again: not what a tensor group gathered in fp8). */
uint32_t pl_tape_cast_input(pl_tape *tape, const char *name, uint32_t input);
bool pl_tape_casts_again(const pl_tape *tape);
/* A memory-bound op of (rows, width); bytes = every input and output once, a tensor that is updated in place twice. */
pl_op *pl_tape_sweep(pl_tape *tape, const char *name, pl_op_kind kind, pl_category category, double flops_per_element,
                     uint32_t first, uint32_t second, uint32_t third, uint32_t output, uint32_t auxiliary);
void pl_tape_collective(pl_tape *tape, const char *name, pl_collective_kind kind, bool backward, double size_bytes,
                        uint32_t input, uint32_t output); /* of the tensor group */
void pl_tape_group_collective(pl_tape *tape, const char *name, pl_collective_kind kind, pl_group_role group,
                              bool backward, double size_bytes, uint32_t input, uint32_t output);
pl_tape_node *pl_tape_note(pl_tape *tape, pl_tape_rule rule, pl_tape_names names, uint32_t input, uint32_t output);

/* Forward vocabulary; each returns its output tensor. */
typedef struct pl_linear {
  pl_tape_names names;
  pl_parallel parallel;
  int64_t in, out;            /* local widths */
  double model_in, model_out; /* widths of the whole, unpadded, for model FLOPs */
  int64_t m;                  /* rows on this rank, of all batches, and of the model */
  double model_rows;
  bool bias;            /* added by the GEMM */
  bool keeps_precision; /* never in fp8: routers, gates */
  int32_t products[PL_TAPE_PRODUCTS];
  uint8_t n_products;
} pl_linear;
/* `output`: a tensor already made, with the shape the caller wants, of rows * out elements. `weight` = PL_NONE makes
 * one. */
uint32_t pl_tape_linear(pl_tape *tape, const pl_linear *linear, uint32_t input, uint32_t weight, uint32_t output);
/* Sums the partial results of a row-parallel op over the tensor group. */
uint32_t pl_tape_reduce(pl_tape *tape, pl_tape_names names, uint32_t partial);
/* A norm with 0, 1 (scale) or 2 (and shift) vectors of `width` elements and an output already made. */
uint32_t pl_tape_norm_to(pl_tape *tape, pl_tape_names names, uint32_t input, int64_t vectors, int64_t width,
                         uint32_t output);
uint32_t pl_tape_dropout(pl_tape *tape, pl_tape_names names, uint32_t input);

/* `elements` gradients of a block on their way to the reduction (pl_gradient_path), behind its backward pass. */
void pl_block_pass_gradients(pl_tape *tape, double elements);
/* Fills saved flags and the byte counts of `program`. */
void pl_block_memory(pl_tape *tape, pl_block_program *program);
/* The halves of the backward pass, `for_inputs` and the rest (block_halves.c): two op lists in the arena, their bytes
 * in `program`, and which tensors wait. After pl_block_memory. */
bool pl_block_halves(pl_tape *tape, pl_arena *arena, pl_block_program *program);

#endif
