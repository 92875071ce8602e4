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
#include "workloads/language/ir_latent.h"
#include "workloads/lower/lowering.h"

static const double rotary_flops = 6;

typedef struct latent_ops {
  pl_core core;
  pl_ir_latent is;
} latent_ops;

static bool find(const pl_lowering *to, int32_t first, latent_ops *of) {
  int32_t at = first;
  while (at < to->read.f->n_ops && !pl_lower_find_core(to, at, &of->core))
    at++;
  const int32_t operands[] = {of->core.q, of->core.k, of->core.v};
  return at < to->read.f->n_ops && pl_ir_latent_find(to->read.f, operands, &of->is) &&
         first == (of->is.q_down != PL_IR_NONE ? of->is.q_down : of->is.q);
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
  const pl_ir_op *own = pl_read_op(&to->read, op);
  int64_t width = pl_ir_type_local_extent(to->read.mesh, pl_read_type(&to->read, own->inputs[1]), 0);
  int64_t rows = pl_lower_extent(to, own->first_output, 's');
  uint32_t output = pl_tape_activation(to->tape, names.forward, rows, 'h', width);
  pl_lower_norm_to(to, op, names, input, width, output);
  return output;
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
  if (of->is.q_down == PL_IR_NONE)
    return expand(to, of->is.q, PL_IR_NONE, PL_LINEAR_NAMES("q"), pl_lower_input(to, of->is.q, 0));
  uint32_t low = compress(to, of->is.q_down, PL_IR_NONE, PL_LINEAR_NAMES("q_down"));
  low = norm(to, of->is.q_norm, PL_OP_NAMES("q_norm"), low);
  return expand(to, of->is.q, PL_IR_NONE, PL_LINEAR_NAMES("q_up"), low);
}

static uint32_t packed(pl_lowering *to, const latent_ops *of) {
  pl_tape *tape = to->tape;
  int64_t d = pl_lower_extent(to, of->core.q, 'd'), value = pl_lower_extent(to, of->core.v, 'e');
  uint32_t q = queries(to, of);
  uint32_t low = compress(to, of->is.kv_down, of->is.k_rotary, PL_LINEAR_NAMES("kv_down"));
  low = norm(to, of->is.kv_norm, PL_OP_NAMES("kv_norm"), low);
  uint32_t kv = expand(to, of->is.k, of->is.v, PL_LINEAR_NAMES("kv_up"), low);
  const pl_tape_names names = PL_OP_NAMES("rotary");
  int64_t rows = pl_lower_extent(to, pl_read_op(&to->read, of->core.op)->first_output, 's');
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
