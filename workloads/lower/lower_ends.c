/* Embedding and loss.
 *
 * The embedding and the head are split over the vocabulary (Shoeybi et al. 2019, section 3): a rank looks up the tokens
 * in its range and the sum over the group completes them; logits stay split, and the cross entropy exchanges three
 * numbers per token (maximum, target logit, sum of exponentials) instead of gathering them. Logits become fp32 before
 * the loss, which is what is kept of them (Korthikanti et al. 2022, section 4.3: 4 s b v / t). Token ids (8 bytes a
 * token) are not counted: the data loader holds them.
 */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double add_flops = 1, cross_entropy_flops = 4;

void pl_lower_embedding(pl_lowering *to, int32_t op) {
  static const pl_tape_names names = PL_OP_NAMES("embedding");
  const pl_ir_op *own = pl_read_op(&to->read, op);
  if (!pl_lower_has_dim(to, own->inputs[1], pl_ir_name_of("v"))) return; /* positions: where they are added */
  pl_tape *tape = to->tape;
  int64_t h = pl_lower_extent(to, own->first_output, 'h'), s = pl_lower_extent(to, own->first_output, 's');
  uint32_t table = pl_tape_parameter(tape, names.forward, "vh", pl_lower_extent(to, own->inputs[1], 'v'), h);
  uint32_t words = pl_lower_tensor(to, names.forward, own->first_output);
  pl_tape_retype(tape, words, tape->stream);
  pl_op *kernel = pl_tape_op(tape, names.forward, PL_OP_EMBEDDING, PL_CATEGORY_FORWARD, table, PL_NONE, PL_NONE, words);
  kernel->m = tape->mbs * s;
  kernel->n = h;
  kernel->bytes = 2 * tape->tensors[words].size_bytes; /* rows in, rows out */
  pl_tape_note(tape, PL_RULE_EMBEDDING, names, PL_NONE, words)->weight = table;
  pl_lower_set(to, op, 0, words);
}

/* ---- loss ---- */

static void token_all_reduce(pl_tape *tape, bool split, const char *name, uint32_t tensor, double tokens) {
  if (split)
    pl_tape_collective(tape, name, PL_ALL_REDUCE, false, tokens * pl_dtype_bytes(PL_DTYPE_FP32), tensor, tensor);
}

/* One kernel over 16-bit logits, whose gradient is made of them and of their log-sum-exp. */
static void fused_loss(pl_tape *tape, bool split, uint32_t logits, const int64_t *extent, double tokens) {
  uint32_t sums = pl_tape_tensor(tape, "sums", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bs", extent);
  pl_tape_sweep(tape, "loss", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops, logits, PL_NONE, PL_NONE,
                sums, PL_NONE);
  token_all_reduce(tape, split, "loss_maximum_all_reduce", sums, tokens);
  token_all_reduce(tape, split, "loss_target_all_reduce", sums, tokens);
  token_all_reduce(tape, split, "loss_sum_all_reduce", sums, tokens);
  pl_tape_note(tape, PL_RULE_LOSS, PL_OP_NAMES("loss"), logits, PL_NONE);
}

static uint32_t in_fp32(pl_tape *tape, uint32_t logits) {
  if (pl_dtype_bytes(tape->shard->dtype) >= pl_dtype_bytes(PL_DTYPE_FP32)) return logits;
  uint32_t wide = pl_tape_like(tape, logits, "logits_fp32", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  pl_tape_sweep(tape, "logits_fp32", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, add_flops, logits, PL_NONE, PL_NONE, wide,
                PL_NONE);
  return wide;
}

/* PyTorch's allocator: the room of the 16-bit logits, given up in front of the backward pass, is half of what each of
 * the two fp32 gradients needs, and the copy's takes but one of them. */
static void strand_logits(pl_tape *tape, uint32_t logits, uint32_t wide) {
  if (tape->framework->kernels.loss == PL_LOSS_COPIES && wide != logits) tape->tensors[logits].unread = true;
}

static void stepwise_loss(pl_tape *tape, bool split, uint32_t logits, const int64_t *extent, double tokens) {
  uint32_t narrow = logits;
  logits = in_fp32(tape, logits);
  strand_logits(tape, narrow, logits);
  const int64_t pair[] = {2, extent[0], extent[1]};
  uint32_t maximum = pl_tape_tensor(tape, "maximum", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bs", extent);
  uint32_t sums = pl_tape_tensor(tape, "sums", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "pbs", pair);
  pl_tape_sweep(tape, "loss_maximum", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, 1, logits, PL_NONE, PL_NONE, maximum,
                PL_NONE);
  token_all_reduce(tape, split, "loss_maximum_all_reduce", maximum, tokens);
  uint32_t shifted = logits;
  if (tape->framework->kernels.loss != PL_LOSS_IN_PLACE)
    shifted = pl_tape_like(tape, logits, "logits_shifted", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  pl_op *op = pl_tape_sweep(tape, "loss_exponentials", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops,
                            logits, maximum, PL_NONE, shifted, sums);
  /* Megatron-LM: three kernels, subtract, exponentiate in place, add up. With the copy to fp32, the maximum
   * and the division 38 bytes a logit, and 39 is what stages with 32 to 256 thousand words take on an A100 at the
   * bandwidth of copies, once their matrix product is taken off (validation/calibration). */
  if (tape->framework->kernels.loss != PL_LOSS_COPIES) op->bytes += 3 * tape->tensors[logits].size_bytes;
  logits = shifted;
  token_all_reduce(tape, split, "loss_target_all_reduce", sums, tokens);
  token_all_reduce(tape, split, "loss_sum_all_reduce", sums, tokens);
  pl_tape_sweep(tape, "loss", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, 1, logits, sums, PL_NONE, logits, PL_NONE);
  pl_tape_note(tape, PL_RULE_LOSS, PL_OP_NAMES("loss"), logits, PL_NONE);
}

/* Training metrics, without a derivative: logits to fp32 and their log-softmax, once more for each. */
static void metrics(pl_tape *tape, uint32_t logits) {
  for (int i = 0; i < tape->framework->kernels.loss_metrics; i++) {
    uint32_t wide = in_fp32(tape, logits);
    pl_tape_sweep(tape, "loss_metric", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops, wide, PL_NONE,
                  PL_NONE, wide, PL_NONE);
  }
}

/* Of few classes: BERT's next sentence. */
static void small_loss(pl_tape *tape, uint32_t logits) {
  static const pl_tape_names names = PL_OP_NAMES("next_sentence_loss");
  pl_tape_sweep(tape, names.forward, PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops, logits, PL_NONE,
                PL_NONE, PL_NONE, PL_NONE);
  pl_tape_note(tape, PL_RULE_NEXT_SENTENCE_LOSS, names, logits, PL_NONE);
}

/* All that is made of `value`. */
static void finish(pl_lowering *to, int32_t value) {
  bool made_of[PL_LOWERING_VALUES] = {false};
  made_of[value] = true;
  for (int32_t i = 0; i < to->read.f->n_ops; i++) {
    const pl_ir_op *op = pl_read_op(&to->read, i);
    bool depends = false;
    for (int32_t j = 0; j < op->n_inputs; j++)
      depends = depends || made_of[op->inputs[j]];
    if (!depends) continue;
    pl_lower_done(to, i);
    for (int32_t j = 0; j < op->n_outputs; j++)
      made_of[op->first_output + j] = true;
  }
}

/* A cross entropy begins with the greatest logit, perhaps in fp32: what follows up to the loss belongs to it. */
void pl_lower_cross_entropy(pl_lowering *to, int32_t op) {
  pl_tape *tape = to->tape;
  int32_t value = pl_read_op(&to->read, op)->inputs[0];
  uint32_t logits = to->tensor[value];
  bool split = pl_lower_is_cut(to, value, 'v');
  const int64_t extent[] = {tape->mbs, pl_lower_extent(to, value, 's') * pl_lower_extent(to, value, 'm')};
  double tokens = (double)tape->mbs * (double)tape->seq;
  if (!pl_lower_has_dim(to, value, pl_ir_name_of("v")))
    small_loss(tape, logits);
  else if (pl_loss_is_one_kernel(tape->framework->kernels.loss))
    fused_loss(tape, split, pl_loss_reads_16bit(tape->framework->kernels.loss) ? logits : in_fp32(tape, logits), extent,
               tokens);
  else
    stepwise_loss(tape, split, logits, extent, tokens);
  if (pl_lower_has_dim(to, value, pl_ir_name_of("v"))) metrics(tape, logits);
  finish(to, value);
}

/* The loss is the mean of what the network gives: a number per sample, and back a gradient. */
static void mean_loss(pl_lowering *to, int32_t op) {
  static const pl_tape_names names = PL_OP_NAMES("mean_loss");
  uint32_t outputs = pl_lower_input(to, op, 0);
  pl_tape_sweep(to->tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, 1, outputs, PL_NONE, PL_NONE, PL_NONE,
                PL_NONE);
  pl_tape_note(to->tape, PL_RULE_MEAN_LOSS, names, outputs, PL_NONE);
  finish(to, pl_read_op(&to->read, op)->inputs[0]);
}

void pl_lower_sum(pl_lowering *to, int32_t op) {
  if (to->read.f->n_results == 0)
    mean_loss(to, op);
  else
    pl_lower_sweep(to, op);
}

/* To fp32, for a loss. */
void pl_lower_cast(pl_lowering *to, int32_t op) {
  int32_t reader = to->read.user[pl_read_op(&to->read, op)->first_output];
  if (pl_read_is(&to->read, reader, "maximum"))
    pl_lower_cross_entropy(to, op);
  else if (pl_read_is(&to->read, reader, "sum") && to->read.f->n_results == 0)
    mean_loss(to, op);
  else
    pl_lower_sweep(to, op);
}
