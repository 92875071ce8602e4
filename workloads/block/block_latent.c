/* Multi-head latent attention, forward, up to the packed queries, keys and values (DeepSeek-V2, section 2.1).
 *
 * Queries and key-values are compressed to q_rank and kv_rank numbers per token, normalised and expanded per head. Each
 * head's query and key end in rope_size rotated numbers; those of the key are made once for all heads, beside the
 * compressed key-values. Training expands them (nothing is absorbed into other matrices, as inference does).
 *
 * Tensor parallelism is Megatron Core's: the compressing products are replicated on the rows that a rank holds, and the
 * expanding ones split by heads, so that under sequence parallelism what is gathered is the compressed form. The
 * gradient of the rotary share is taken to arrive with that of the compressed key-values.
 */
#include "core/cluster/cluster.h"
#include "workloads/block/block_tape.h"

static const double rotary_flops = 6;

/* h -> rank, replicated. */
static uint32_t compress(pl_tape *tape, pl_tape_names names, uint32_t input, int64_t width) {
  const pl_linear linear = {.names = names,
                            .in = tape->model->hidden,
                            .out = width,
                            .model_in = (double)tape->model->hidden,
                            .model_out = (double)width};
  return pl_tape_linear(tape, &linear, input, PL_NONE,
                        pl_tape_activation(tape, names.forward, tape->seq_local, 'h', width));
}

/* rank -> heads of `size` numbers, split by heads. */
static uint32_t expand(pl_tape *tape, pl_tape_names names, uint32_t input, int64_t width, int64_t size) {
  const pl_linear linear = {.names = names,
                            .parallel = PL_PARALLEL_COLUMN,
                            .in = width,
                            .out = tape->heads * size,
                            .model_in = (double)width,
                            .model_out = (double)(tape->model->n_heads * size)};
  uint32_t output = pl_tape_tensor(tape, names.forward, PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                   (const int64_t[]){tape->mbs, tape->seq, tape->heads, size});
  return pl_tape_linear(tape, &linear, input, PL_NONE, output);
}

static uint32_t queries(pl_tape *tape, uint32_t input) {
  const pl_model *model = tape->model;
  if (model->q_rank == 0) return expand(tape, PL_LINEAR_NAMES("q"), input, model->hidden, model->head_size);
  uint32_t low = compress(tape, PL_LINEAR_NAMES("q_down"), input, model->q_rank);
  low = pl_tape_norm_to(tape, PL_OP_NAMES("q_norm"), low, model->q_rank,
                        pl_tape_activation(tape, "q_norm", tape->seq_local, 'h', model->q_rank));
  return expand(tape, PL_LINEAR_NAMES("q_up"), low, model->q_rank, model->head_size);
}

uint32_t pl_block_latent_qkv(pl_tape *tape, uint32_t input) {
  const pl_model *model = tape->model;
  int64_t d = model->head_size, value = model->value_size, plain = d - model->rope_size;
  uint32_t q = queries(tape, input);
  uint32_t low = compress(tape, PL_LINEAR_NAMES("kv_down"), input, model->kv_rank + model->rope_size);
  low = pl_tape_norm_to(tape, PL_OP_NAMES("kv_norm"), low, model->kv_rank,
                        pl_tape_activation(tape, "kv_norm", tape->seq_local, 'h', model->kv_rank));
  uint32_t kv = expand(tape, PL_LINEAR_NAMES("kv_up"), low, model->kv_rank, plain + value);
  const pl_tape_names names = PL_OP_NAMES("rotary");
  uint32_t qkv = pl_tape_tensor(tape, "qkv", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                (const int64_t[]){tape->mbs, tape->seq, tape->heads, 2 * d + value});
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, rotary_flops, q, kv, PL_NONE, qkv,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_PACK, names, q, qkv)->second = kv;
  return qkv;
}
