/* Multi-head latent attention up to the packed queries, keys and values (DeepSeek-V2, section 2.1).
 *
 * Training expands the compressed queries and key-values per head (nothing is absorbed into other matrices, as
 * inference does). The rotary share of the keys comes out of the compressing product, keys and values out of one
 * expanding product, and one kernel rotates and packs. Tensor parallelism is Megatron Core's: the compressing products
 * are replicated on the rows that a rank holds, and the expanding ones split by heads, so that under sequence
 * parallelism what is gathered is the compressed form. The gradient of the rotary share is taken to arrive with that of
 * the compressed key-values.
 */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double rotary_flops = 6;

typedef struct latent_ops {
  pl_core core;
  int32_t q, q_norm, q_down, k, k_rotary, v, kv_norm, kv_down;
} latent_ops;

/* The nearest op of one of two rows that a value is made by, along first operands; PL_IR_NONE: none. */
static int32_t behind(const pl_lowering *to, int32_t value, const char *row, const char *other) {
  int32_t op = pl_lower_maker(to, value);
  while (op != PL_IR_NONE && !pl_lower_is(to, op, row) && !pl_lower_is(to, op, other)) {
    if (pl_lower_op(to, op)->n_inputs == 0) return PL_IR_NONE;
    op = pl_lower_maker(to, pl_lower_op(to, op)->inputs[0]);
  }
  return op;
}

static bool is_norm(const pl_lowering *to, int32_t op) {
  return pl_lower_is(to, op, "rms_norm") || pl_lower_is(to, op, "layer_norm");
}

/* The norm and the product in front of an expanding product, if it has a compressing one. */
static bool find_compressed(const pl_lowering *to, int32_t product, int32_t *norm, int32_t *down) {
  int32_t maker = pl_lower_maker(to, pl_lower_op(to, product)->inputs[0]);
  if (pl_lower_is(to, maker, "all_gather")) maker = pl_lower_maker(to, pl_lower_op(to, maker)->inputs[0]);
  *norm = *down = PL_IR_NONE;
  if (!is_norm(to, maker)) return false;
  int32_t before = pl_lower_maker(to, pl_lower_op(to, maker)->inputs[0]);
  if (!pl_lower_is(to, before, "product")) return false;
  *norm = maker;
  *down = before;
  return true;
}

static bool find(const pl_lowering *to, int32_t first, latent_ops *of) {
  int32_t at = first;
  *of = (latent_ops){0};
  while (at < to->function->n_ops && !pl_lower_find_core(to, at, &of->core))
    at++;
  if (at == to->function->n_ops) return false;
  int32_t sum = behind(to, of->core.k, "add", "product");
  if (!pl_lower_is(to, sum, "add") || pl_lower_is_param(to, pl_lower_op(to, sum)->inputs[1])) return false;
  of->q = behind(to, of->core.q, "product", "product");
  of->v = behind(to, of->core.v, "product", "product");
  of->k = behind(to, pl_lower_op(to, sum)->inputs[0], "product", "product");
  of->k_rotary = behind(to, pl_lower_op(to, sum)->inputs[1], "product", "product");
  if (of->q == PL_IR_NONE || of->v == PL_IR_NONE || of->k == PL_IR_NONE || of->k_rotary == PL_IR_NONE) return false;
  find_compressed(to, of->q, &of->q_norm, &of->q_down);
  return find_compressed(to, of->k, &of->kv_norm, &of->kv_down) &&
         first == (of->q_down != PL_IR_NONE ? of->q_down : of->q);
}

/* h -> rank; `beside`: another product of the same rows that is part of it. */
static uint32_t compress(pl_lowering *to, int32_t op, int32_t beside, pl_tape_names names) {
  pl_linear linear = pl_lower_linear(to, op);
  linear.names = names;
  if (beside != PL_IR_NONE) {
    const pl_linear other = pl_lower_linear(to, beside);
    pl_lower_beside(&linear, &other);
  }
  uint32_t output = pl_tape_activation(to->tape, names.forward, linear.m / to->tape->mbs, 'h', linear.out);
  return pl_tape_linear(to->tape, &linear, pl_lower_input(to, op, 0), PL_NONE, output);
}

static uint32_t norm(pl_lowering *to, int32_t op, pl_tape_names names, uint32_t input) {
  const pl_ir_op *own = pl_lower_op(to, op);
  int64_t width = pl_ir_type_local_extent(to->mesh, pl_lower_type(to, own->inputs[1]), 0);
  int64_t rows = pl_lower_extent(to, own->first_output, 's');
  return pl_tape_norm_to(to->tape, names, input, pl_lower_norm_vectors(to, op), width,
                         pl_tape_activation(to->tape, names.forward, rows, 'h', width));
}

/* rank -> heads, split by heads. */
static uint32_t expand(pl_lowering *to, int32_t op, int32_t beside, pl_tape_names names, uint32_t input) {
  pl_linear linear = pl_lower_linear(to, op);
  linear.names = names;
  linear.parallel = PL_PARALLEL_COLUMN;
  if (beside != PL_IR_NONE) {
    const pl_linear other = pl_lower_linear(to, beside);
    pl_lower_beside(&linear, &other);
  }
  int64_t heads = to->tape->heads;
  uint32_t output =
      pl_tape_tensor(to->tape, names.forward, PL_TENSOR_ACTIVATION, to->tape->shard->dtype, "bsad",
                     (const int64_t[]){to->tape->mbs, linear.m / to->tape->mbs, heads, linear.out / heads});
  return pl_tape_linear(to->tape, &linear, input, PL_NONE, output);
}

static uint32_t queries(pl_lowering *to, const latent_ops *of) {
  if (of->q_down == PL_IR_NONE)
    return expand(to, of->q, PL_IR_NONE, PL_LINEAR_NAMES("q"), pl_lower_input(to, of->q, 0));
  uint32_t low = compress(to, of->q_down, PL_IR_NONE, PL_LINEAR_NAMES("q_down"));
  low = norm(to, of->q_norm, PL_OP_NAMES("q_norm"), low);
  return expand(to, of->q, PL_IR_NONE, PL_LINEAR_NAMES("q_up"), low);
}

static uint32_t packed(pl_lowering *to, const latent_ops *of) {
  pl_tape *tape = to->tape;
  int64_t d = pl_lower_extent(to, of->core.q, 'd'), value = pl_lower_extent(to, of->core.v, 'e');
  uint32_t q = queries(to, of);
  uint32_t low = compress(to, of->kv_down, of->k_rotary, PL_LINEAR_NAMES("kv_down"));
  low = norm(to, of->kv_norm, PL_OP_NAMES("kv_norm"), low);
  uint32_t kv = expand(to, of->k, of->v, PL_LINEAR_NAMES("kv_up"), low);
  const pl_tape_names names = PL_OP_NAMES("rotary");
  int64_t rows = pl_lower_extent(to, pl_lower_op(to, of->core.op)->first_output, 's');
  uint32_t qkv = pl_tape_tensor(tape, "qkv", PL_TENSOR_ACTIVATION, tape->shard->dtype, "bsad",
                                (const int64_t[]){tape->mbs, rows, tape->heads, 2 * d + value});
  pl_tape_sweep(tape, names.forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, rotary_flops, q, kv, PL_NONE, qkv,
                PL_NONE);
  pl_tape_note(tape, PL_RULE_PACK, names, q, qkv)->second = kv;
  return qkv;
}

bool pl_lower_latent(pl_lowering *to, int32_t op) {
  latent_ops of;
  if (!find(to, op, &of)) return false;
  pl_lower_heads(to, &of.core);
  uint32_t qkv = packed(to, &of);
  for (int32_t i = op; i < of.core.op; i++) /* nothing else is written down in between */
    pl_lower_done(to, i);
  pl_lower_core(to, &of.core, qkv);
  return true;
}
