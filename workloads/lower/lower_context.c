/* Context parallelism: fused attention of sequences that are cut over cp ranks (Liu et al. 2023, "Ring Attention";
 * Transformer Engine's context parallelism).
 *
 * A causal sequence is cut into 2 cp chunks and rank i holds chunks i and 2 cp - 1 - i, so that all ranks have the same
 * work in each of cp steps: in step 0 on their own keys and values, then on those of the others. Ring (p2p): step j
 * works on what came while step j - 1 ran, so a pass takes
 *
 *   (cp - 1) * max(step, send) + step
 *
 * written down as two ops, of cp - 1 steps beside the whole exchange and of one step behind it. The exchange is a
 * ring all-gather: each rank sends cp - 1 shares, one per step. Backward the gradients of keys and values go round with
 * them, so twice as much is sent; their last step home is left out. Each step is a kernel that reads queries, one share
 * of keys and values, and writes a partial result; the rescaling of partial results is left out.
 *
 * Gather: keys and values are all-gathered before attention, in the backward pass once more, and their gradients
 * reduce-scattered behind it; nothing runs beside these.
 *
 * Gather in steps, as PyTorch's context_parallel does with SDPA that is told to gather (torch/distributed/tensor/
 * experimental/_attention.py, _templated_ring_attention and its backward pass): keys and values come with a copy for
 * each head of queries (torchtitan repeats them first), the gather runs beside the first step, which needs none of it,
 * and the gradients of keys and values go round in fp32 while the next step runs: cp - 1 steps beside them, and one
 * behind. The gather of the backward pass, of which the first step hides a part, is left in the open.
 */
#include "core/cluster/cluster.h"
#include "workloads/lower/lower_backward.h"

/* What a rank has of a sequence's heads. */
typedef struct part {
  pl_tape *tape;
  int64_t heads, width, /* of a product: the mean of keys' and values' */
      key_value_width;  /* of keys and values, per token */
} part;

static bool gathers_in_steps(const pl_tape *tape) {
  return tape->shard->cp_gather && !tape->framework->kernels.fuses_context;
}

static part part_of(const pl_lowering *to, int32_t q, int32_t k, int32_t v) {
  int64_t d = pl_lower_extent(to, k, 'd'), e = pl_lower_extent(to, v, 'e');
  bool repeats = gathers_in_steps(to->tape);
  return (part){.tape = to->tape,
                .heads = pl_lower_extent(to, q, 'g') * pl_lower_extent(to, q, 'r'),
                .width = (d + e) / 2,
                .key_value_width = pl_lower_extent(to, k, 'g') * (repeats ? pl_lower_extent(to, q, 'r') : 1) * (d + e)};
}

static double gathered_bytes(const part *of) {
  const pl_tape *tape = of->tape;
  return (double)tape->mbs * (double)tape->model_seq * (double)of->key_value_width * pl_dtype_bytes(tape->shard->dtype);
}

/* Two shares under way for the ring, all of them when gathered. */
static uint32_t buffer(const part *of, const char *name, pl_tensor_kind kind, int64_t copies) {
  pl_tape *tape = of->tape;
  int64_t rows = copies * (tape->shard->cp_gather ? tape->model_seq : 2 * tape->seq);
  const int64_t extent[] = {tape->mbs, rows, of->key_value_width};
  return pl_tape_tensor(tape, name, kind, tape->shard->dtype, "bsh", extent);
}

static pl_op *last_of(pl_tape *tape, bool backward) {
  return backward ? &tape->backward[tape->n_backward - 1] : &tape->forward[tape->n_forward - 1];
}

typedef struct kernel {
  const char *name, *last_name;
  pl_category category;
  uint32_t inputs[5]; /* activations, the gradient that came in, what was exchanged */
  uint32_t output, auxiliary;
  double bytes, flops; /* of one step; of all */
} kernel;

/* `steps` of the cp steps, a kernel each, in one op; the last ones add to what the others made. */
static pl_op *emit(const part *of, const kernel *own, const char *name, int64_t steps, bool adds) {
  pl_tape *tape = of->tape;
  pl_op *op = pl_tape_op(tape, name, PL_OP_ATTENTION, own->category, own->inputs[0], own->inputs[1], own->inputs[2],
                         own->output);
  op->inputs[3] = own->inputs[3];
  op->inputs[4] = own->inputs[4];
  uint32_t at = 0;
  while (adds && op->inputs[at] != PL_NONE)
    at++;
  if (adds) op->inputs[at++] = own->output;
  if (adds && own->auxiliary != PL_NONE) op->inputs[at] = own->auxiliary;
  op->auxiliary = own->auxiliary;
  op->attention_kernel = (uint8_t)tape->shard->attention_kernel;
  op->batch = tape->mbs * of->heads;
  op->m = tape->seq;
  op->n = tape->seq;
  op->times = (int32_t)steps;
  op->k = of->width;
  op->flops = own->flops * ((double)steps / (double)tape->cp);
  op->bytes = own->bytes * (double)steps;
  return op;
}

/* All steps in one kernel, with the keys and values that were gathered. */
static void emit_whole(const part *of, const kernel *own, uint32_t keys) {
  pl_op *op = emit(of, own, own->name, of->tape->cp, false);
  op->n = of->tape->model_seq;
  op->times = 1;
  op->bytes = own->bytes + of->tape->tensors[keys].size_bytes;
}

/* The exchange and the steps beside it and behind it. */
static void ring(const part *of, const kernel *own) {
  pl_tape *tape = of->tape;
  last_of(tape, own->category == PL_CATEGORY_BACKWARD)->overlap = PL_OVERLAP_BEGINS;
  emit(of, own, own->name, tape->cp - 1, false);
  emit(of, own, own->last_name, 1, true)->overlap = PL_OVERLAP_AWAITS;
}

static double step_bytes(const pl_tape *tape, const uint32_t *tensors, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += tape->tensors[tensors[i]].size_bytes;
  return sum;
}

void pl_lower_context(pl_lowering *to, const pl_core *core, uint32_t qkv, uint32_t context, uint32_t log_sum,
                      double flops) {
  pl_tape *tape = to->tape;
  const part of = part_of(to, core->q, core->k, core->v);
  uint32_t keys = buffer(&of, "keys_values", PL_TENSOR_ACTIVATION, 1);
  pl_tape_group_collective(tape, "keys_values_exchange", PL_ALL_GATHER, PL_GROUP_CONTEXT, false, gathered_bytes(&of),
                           qkv, keys);
  const uint32_t touched[] = {qkv, context, log_sum};
  const kernel own = {.name = "attention",
                      .last_name = "attention_last",
                      .category = PL_CATEGORY_FORWARD,
                      .inputs = {qkv, keys, PL_NONE, PL_NONE, PL_NONE},
                      .output = context,
                      .auxiliary = log_sum,
                      .bytes = step_bytes(tape, touched, 3),
                      .flops = flops};
  if (gathers_in_steps(tape)) {
    last_of(tape, false)->overlap = PL_OVERLAP_BEGINS;
    emit(&of, &own, own.name, 1, false);
    emit(&of, &own, own.last_name, tape->cp - 1, true)->overlap = PL_OVERLAP_AWAITS;
  } else if (!tape->shard->cp_gather) {
    ring(&of, &own);
  } else {
    emit_whole(&of, &own, keys);
  }
}

void pl_back_context_parallel(pl_back *d, const pl_tape_node *node, uint32_t g, uint32_t dqkv) {
  pl_tape *tape = d->tape;
  bool gathers = tape->shard->cp_gather;
  int32_t op = pl_back_find(d, node, gathers ? "attention_backward" : "ring_attention_backward");
  const int32_t *operands = pl_read_op(&d->own.read, op)->inputs;
  const part of = part_of(&d->own, operands[0], operands[1], operands[2]);
  uint32_t keys = buffer(&of, "keys_values", PL_TENSOR_GRADIENT, 2);
  pl_tape_group_collective(tape, gathers ? "keys_values_regather" : "keys_values_and_gradients_exchange", PL_ALL_GATHER,
                           PL_GROUP_CONTEXT, true, (gathers ? 1 : 2) * gathered_bytes(&of), node->input, keys);
  const uint32_t touched[] = {g, node->input, node->output, node->auxiliary, dqkv};
  kernel own = {.name = "attention_backward",
                .last_name = "attention_backward_last",
                .category = PL_CATEGORY_BACKWARD,
                .inputs = {g, node->input, node->output, node->auxiliary, keys},
                .output = dqkv,
                .auxiliary = PL_NONE,
                .bytes = step_bytes(tape, touched, 5)};
  double cp = (double)tape->cp, share = gathers_in_steps(tape) ? (cp - 1) / cp : gathers ? 1 : 1 / cp;
  own.flops = PL_ATTENTION_BACKWARD_FLOPS * tape->forward[node->op].flops / share;
  if (!gathers) {
    ring(&of, &own);
    return;
  }
  if (gathers_in_steps(tape)) {
    double wide = pl_dtype_bytes(PL_DTYPE_FP32) / pl_dtype_bytes(tape->shard->dtype);
    pl_tape_group_collective(tape, "keys_values_reduce_scatter", PL_REDUCE_SCATTER, PL_GROUP_CONTEXT, true,
                             wide * gathered_bytes(&of), keys, dqkv);
    ring(&of, &own);
    return;
  }
  emit_whole(&of, &own, keys);
  pl_tape_group_collective(tape, "keys_values_reduce_scatter", PL_REDUCE_SCATTER, PL_GROUP_CONTEXT, true,
                           gathered_bytes(&of), keys, dqkv);
  last_of(tape, true)->inputs[1] = dqkv; /* whose own share it adds to */
}
