/* Embedding, final norm, head and loss, forward.
 *
 * The embedding and the head are split over the vocabulary (Shoeybi et al. 2019, section 3): a rank looks up the tokens
 * in its range and the sum over the group completes them; logits stay split, and the cross entropy exchanges three
 * numbers per token (maximum, target logit, sum of exponentials) instead of gathering them. Logits become fp32 before
 * the loss, which is what is kept of them (Korthikanti et al. 2022, section 4.3: 4 s b v / t). Token ids (8 bytes a
 * token) are not counted: the data loader holds them.
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

static const double activation_flops = 8, add_flops = 1, cross_entropy_flops = 4;

static uint32_t add_positions(pl_tape *tape, uint32_t words) {
  const pl_model *model = tape->model;
  const pl_tape_names names = PL_OP_NAMES("positions");
  if (!model->learned_positions) return words;
  int64_t rows = model->max_positions + model->type_vocab;
  uint32_t table = pl_tape_parameter(tape, names.forward, "ph", rows, model->hidden);
  uint32_t sum = pl_tape_like(tape, words, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_op *op = pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, add_flops, words, PL_NONE,
                            PL_NONE, sum, PL_NONE);
  op->inputs[1] = table; /* only the rows of this sequence are read, once: the batch shares them */
  op->bytes += tape->tensors[sum].size_bytes / (double)tape->mbs;
  pl_tape_note(tape, PL_RULE_POSITIONS, names, words, sum)->weight = table;
  return sum;
}

void pl_block_embedding_forward(pl_tape *tape) {
  const pl_model *model = tape->model;
  const pl_tape_names names = PL_OP_NAMES("embedding");
  int64_t vocab = pl_tape_local_vocab(tape);
  uint32_t table = pl_tape_parameter(tape, names.forward, "vh", vocab, model->hidden);
  uint32_t words = pl_tape_activation(tape, names.forward, tape->seq, 'h', model->hidden);
  pl_op *op = pl_tape_op(tape, names.forward, PL_OP_EMBEDDING, PL_CATEGORY_FORWARD, table, PL_NONE, PL_NONE, words);
  op->m = tape->mbs * tape->seq;
  op->n = model->hidden;
  op->bytes = 2 * tape->tensors[words].size_bytes; /* rows in, rows out */
  pl_tape_note(tape, PL_RULE_EMBEDDING, names, PL_NONE, words)->weight = table;
  uint32_t x = pl_tape_reduce(tape, PL_LINEAR_NAMES("embedding"), words);
  x = add_positions(tape, x);
  if (model->embedding_norm) x = pl_tape_norm(tape, PL_OP_NAMES("embedding_norm"), x);
  if (model->embedding_dropout) x = pl_tape_dropout(tape, PL_OP_NAMES("embedding_dropout"), x);
  tape->output = x;
}

void pl_block_final_norm_forward(pl_tape *tape) {
  tape->input = pl_tape_activation(tape, "input", tape->seq_local, 'h', tape->model->hidden);
  tape->output = tape->model->final_norm ? pl_tape_norm(tape, PL_OP_NAMES("final_norm"), tape->input) : tape->input;
}

static uint32_t pointwise(pl_tape *tape, pl_tape_rule rule, pl_tape_names names, uint32_t input) {
  uint32_t output = pl_tape_like(tape, input, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype);
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, activation_flops, input, PL_NONE, PL_NONE,
                output, PL_NONE);
  pl_tape_note(tape, rule, names, input, output);
  return output;
}

/* Tokens of a sequence that head and loss compute: of BERT's as many as are masked, where the training script picks
 * them (google-research/bert run_pretraining.py, gather_indexes). Picking is counted with the product that reads them,
 * and under tensor parallelism, which such scripts do not have, all are computed. */
static int64_t predicted_tokens(const pl_tape *tape) {
  int64_t masked = tape->model->predictions;
  return masked > 0 && masked < tape->seq && tape->tmp == 1 ? masked : tape->seq;
}

/* BERT's pooler: the first token of each sequence through a dense layer and tanh; with BertForPreTraining a classifier
 * of two classes. */
static void pooler(pl_tape *tape) {
  const pl_model *model = tape->model;
  int64_t h = model->hidden;
  pl_linear linear = {.names = PL_LINEAR_NAMES("pooler"),
                      .rows = 1,
                      .in = h,
                      .out = h,
                      .model_in = (double)h,
                      .model_out = (double)h,
                      .bias = true};
  uint32_t x = pl_tape_linear(tape, &linear, tape->input, PL_NONE, pl_tape_activation(tape, "pooler", 1, 'h', h));
  x = pointwise(tape, PL_RULE_TANH, PL_OP_NAMES("pooler_tanh"), x);
  if (!model->next_sentence) return;
  linear.names = PL_LINEAR_NAMES("next_sentence");
  linear.out = 2;
  linear.model_out = 2;
  x = pl_tape_linear(tape, &linear, x, PL_NONE, pl_tape_activation(tape, "next_sentence", 1, 'o', 2));
  const pl_tape_names names = PL_OP_NAMES("next_sentence_loss");
  pl_tape_sweep(tape, names.forward, PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops, x, PL_NONE, PL_NONE,
                PL_NONE, PL_NONE);
  pl_tape_note(tape, PL_RULE_NEXT_SENTENCE_LOSS, names, x, PL_NONE);
}

void pl_block_head_forward(pl_tape *tape) {
  const pl_model *model = tape->model;
  int64_t h = model->hidden, vocab = pl_tape_local_vocab(tape), tokens = predicted_tokens(tape);
  int64_t picked = tokens < tape->seq ? tokens : 0;
  tape->input = pl_tape_activation(tape, "input", tape->seq_local, 'h', h);
  uint32_t x = tape->input;
  if (model->pooler) pooler(tape);
  pl_linear linear = {.names = PL_LINEAR_NAMES("transform"),
                      .rows = picked,
                      .in = h,
                      .out = h,
                      .model_in = (double)h,
                      .model_out = (double)h,
                      .bias = true};
  if (model->lm_transform) {
    x = pl_tape_linear(tape, &linear, x, PL_NONE,
                       pl_tape_activation(tape, "transform", picked > 0 ? picked : tape->seq_local, 'h', h));
    x = pointwise(tape, PL_RULE_POINTWISE, PL_OP_NAMES("transform_activation"), x);
    x = pl_tape_norm(tape, PL_OP_NAMES("transform_norm"), x);
  }
  linear = (pl_linear){.names = PL_LINEAR_NAMES("logits"),
                       .rows = picked,
                       .parallel = PL_PARALLEL_COLUMN,
                       .in = h,
                       .out = vocab,
                       .model_in = (double)h,
                       .model_out = (double)model->vocab,
                       .bias = model->lm_transform};
  uint32_t weight = pl_tape_parameter(tape, linear.names.forward, "io", h, vocab);
  if (model->tied_embeddings) tape->tied = weight;
  tape->output = pl_tape_linear(tape, &linear, x, weight, pl_tape_activation(tape, "logits", tokens, 'v', vocab));
}

static void token_all_reduce(pl_tape *tape, const char *name, uint32_t tensor) {
  double size_bytes = (double)tape->mbs * (double)tape->seq * pl_dtype_bytes(PL_DTYPE_FP32);
  if (tape->tmp > 1) pl_tape_collective(tape, name, PL_ALL_REDUCE, false, size_bytes, tensor, tensor);
}

/* One kernel over 16-bit logits, whose gradient is made of them and of their log-sum-exp. */
static void fused_loss(pl_tape *tape) {
  const int64_t extent[] = {tape->mbs, predicted_tokens(tape)};
  uint32_t sums = pl_tape_tensor(tape, "sums", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bs", extent);
  pl_tape_sweep(tape, "loss", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops, tape->input, PL_NONE,
                PL_NONE, sums, PL_NONE);
  token_all_reduce(tape, "loss_maximum_all_reduce", sums);
  token_all_reduce(tape, "loss_target_all_reduce", sums);
  token_all_reduce(tape, "loss_sum_all_reduce", sums);
  pl_tape_note(tape, PL_RULE_LOSS, PL_OP_NAMES("loss"), tape->input, PL_NONE);
}

void pl_block_loss_forward(pl_tape *tape) {
  int64_t vocab = pl_tape_local_vocab(tape);
  tape->input = pl_tape_activation(tape, "logits", predicted_tokens(tape), 'v', vocab);
  uint32_t logits = tape->input;
  if (tape->framework->loss == PL_LOSS_FUSED) {
    fused_loss(tape);
    return;
  }
  if (pl_dtype_bytes(tape->shard->dtype) < pl_dtype_bytes(PL_DTYPE_FP32)) {
    logits = pl_tape_like(tape, tape->input, "logits_fp32", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
    pl_tape_sweep(tape, "logits_fp32", PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, add_flops, tape->input, PL_NONE, PL_NONE,
                  logits, PL_NONE);
  }
  const int64_t extent[] = {2, tape->mbs, predicted_tokens(tape)};
  uint32_t maximum = pl_tape_tensor(tape, "maximum", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "bs", extent + 1);
  uint32_t sums = pl_tape_tensor(tape, "sums", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32, "pbs", extent);
  pl_tape_sweep(tape, "loss_maximum", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, 1, logits, PL_NONE, PL_NONE, maximum,
                PL_NONE);
  token_all_reduce(tape, "loss_maximum_all_reduce", maximum);
  uint32_t shifted = logits;
  if (tape->framework->loss != PL_LOSS_IN_PLACE)
    shifted = pl_tape_like(tape, logits, "logits_shifted", PL_TENSOR_ACTIVATION, PL_DTYPE_FP32);
  pl_op *op = pl_tape_sweep(tape, "loss_exponentials", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, cross_entropy_flops,
                            logits, maximum, PL_NONE, shifted, sums);
  /* Megatron-LM: three kernels, subtract, exponentiate in place, add up. With the copy to fp32, the maximum
   * and the division 38 bytes a logit, and 39 is what stages with 32 to 256 thousand words take on an A100 at the
   * bandwidth of copies, once their matrix product is taken off (validation/calibration). */
  if (tape->framework->loss != PL_LOSS_COPIES) op->bytes += 3 * tape->tensors[logits].size_bytes;
  logits = shifted;
  token_all_reduce(tape, "loss_target_all_reduce", sums);
  token_all_reduce(tape, "loss_sum_all_reduce", sums);
  pl_tape_sweep(tape, "loss", PL_OP_CROSS_ENTROPY, PL_CATEGORY_FORWARD, 1, logits, sums, PL_NONE, logits, PL_NONE);
  pl_tape_note(tape, PL_RULE_LOSS, PL_OP_NAMES("loss"), logits, PL_NONE);
}
