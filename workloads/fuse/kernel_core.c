/* Attention in steps: scale, mask and softmax are one kernel, or mask and softmax one each; backward one. Its products
 * and its dropout are kernels of their own. Fused attention takes sinks along (cuDNN's, which Transformer Engine calls
 * with softmax_type "learnable" and which hands back their gradient; FlashAttention 3's s_aux). See
 * workloads/fuse/kernel_groups.h. */
#include "workloads/fuse/kernel_groups.h"
#include "workloads/language/ir_core.h"
#include "workloads/language/ir_latent.h"

static void join_softmax(pl_kernel_finding *own, int32_t op) {
  int32_t before = pl_read_made(&own->read, op, 0);
  if (pl_read_is(&own->read, before, "mask") && pl_kernel_next(own, before) == op &&
      !pl_framework_masks_apart(own->framework))
    pl_kernel_join(own, op, before);
}

/* Gradients of what is not seen are zero already, and a factor is one in passing. */
static void join_backward(pl_kernel_finding *own, int32_t op) {
  int32_t next = pl_kernel_next(own, op);
  if (pl_read_is(&own->read, next, "mask")) {
    pl_kernel_join(own, op, next);
    next = pl_kernel_next(own, next);
  }
  if (pl_read_is(&own->read, next, "scale") && own->framework->kernels.fuses_scale) pl_kernel_join(own, op, next);
}

/* Of latent attention one kernel rotates queries and the keys' share, and lays the shares into heads. */
static void join_latent(pl_kernel_finding *own, int32_t attention) {
  int32_t operands[3];
  pl_ir_latent of;
  if (!pl_ir_core_operands(own->read.f, attention, operands) || !pl_ir_latent_find(own->read.f, operands, &of)) return;
  int32_t sum = pl_read_maker(&own->read, operands[1]);
  while (pl_read_is_view(&own->read, sum) || pl_read_is_collective(&own->read, sum)) /* gathered over context ranks */
    sum = pl_read_made(&own->read, sum, 0);
  for (int32_t i = 0; i < 2; i++) {
    int32_t at = pl_read_made(&own->read, sum, i);
    for (; at != PL_IR_NONE && !pl_read_is(&own->read, at, "product"); at = pl_read_made(&own->read, at, 0))
      if (!pl_read_is_collective(&own->read, at)) pl_kernel_join(own, sum, at);
  }
  int32_t queries = pl_read_maker(&own->read, operands[0]);
  if (pl_read_is(&own->read, queries, "rotary")) pl_kernel_join(own, sum, queries);
}

/* Back: the heads' sum of the rotated share turned again, and the rest of each head. */
static void join_latent_backward(pl_kernel_finding *own, int32_t rotary) {
  int32_t part = pl_read_made(&own->read, rotary, 0), sum = pl_read_made(&own->read, part, 0);
  if (!pl_read_is(&own->read, part, "part") || !pl_read_is(&own->read, sum, "sum")) return;
  pl_kernel_join(own, rotary, part);
  pl_kernel_join(own, rotary, sum);
  for (int32_t i = 0; i < own->read.f->n_ops; i++)
    if (pl_read_is(&own->read, i, "part") &&
        pl_read_op(&own->read, i)->inputs[0] == pl_read_op(&own->read, sum)->inputs[0])
      pl_kernel_join(own, rotary, i);
}

/* Probabilities of experts and the choice of the largest are one kernel. */
static void join_choice(pl_kernel_finding *own, int32_t op, int32_t other, const char *row) {
  if (pl_read_is(&own->read, other, row)) pl_kernel_join(own, op, other);
}

/* ---- sinks ---- */

static bool is_attention(const pl_kernel_finding *own, int32_t op) {
  return op != PL_IR_NONE &&
         pl_ir_row_at(pl_read_op(&own->read, op)->row)->launches == (uint8_t)PL_IR_LAUNCHES_ATTENTION;
}

/* Steps of a ring of attention are kernels of their own: what is done behind them all is another one. */
static void join_to_attention(pl_kernel_finding *own, int32_t attention, int32_t first, int32_t op) {
  bool rings = pl_ir_row_is_ring(pl_ir_row_at(pl_read_op(&own->read, attention)->row));
  pl_kernel_join(own, op, rings ? first : attention);
}

/* What attention gives, times the share of the softmax that is not the sinks': 1 / (1 + exp(sinks - l)). */
static void join_sinks(pl_kernel_finding *own, int32_t multiply) {
  static const char *const rows[] = {"reciprocal", "add", "exp", "scale", "subtract"};
  enum { N_ROWS = sizeof rows / sizeof rows[0] };
  int32_t ops[N_ROWS], attention = pl_read_made(&own->read, multiply, 0), at = pl_read_made(&own->read, multiply, 1);
  if (!is_attention(own, attention)) return;
  int32_t narrow = pl_read_is(&own->read, at, "cast") ? at : PL_IR_NONE;
  if (narrow != PL_IR_NONE) at = pl_read_made(&own->read, narrow, 0);
  for (int i = 0; i < N_ROWS; i++, at = pl_read_made(&own->read, at, 0)) {
    if (!pl_read_is(&own->read, at, rows[i])) return;
    ops[i] = at;
  }
  if (at != attention) return;
  int32_t sinks = pl_read_made(&own->read, ops[N_ROWS - 1], 1);
  join_to_attention(own, attention, multiply, multiply);
  join_to_attention(own, attention, multiply, narrow);
  for (int i = 0; i < N_ROWS; i++)
    join_to_attention(own, attention, multiply, ops[i]);
  if (pl_read_is(&own->read, sinks, "cast")) join_to_attention(own, attention, multiply, sinks);
}

/* The gradient of the scores' log-sum-exp, which nothing but sinks asks for, back to that of what attention gives, and
 * on to the sinks' own. */
static void join_sinks_backward(pl_kernel_finding *own, int32_t attention) {
  static const char *const rows[] = {"scale", "multiply", "cast", NULL};
  const pl_ir_op *op = pl_read_op(&own->read, attention);
  int32_t last = pl_read_made(&own->read, attention, op->n_inputs - 1),
          other = pl_read_made(&own->read, attention, op->n_inputs - 2);
  if (!pl_read_is(&own->read, last, "scale") || !pl_read_is(&own->read, other, "multiply")) return;
  int32_t at = last;
  for (; pl_read_is_one_of(&own->read, at, rows); at = pl_read_made(&own->read, at, 0))
    join_to_attention(own, attention, last, at);
  if (pl_read_is(&own->read, at, "product")) join_to_attention(own, attention, last, at);
  join_to_attention(own, attention, last, other);
  for (at = last + 1; at < attention; at++)
    if (pl_read_is(&own->read, at, "sum") && pl_read_made(&own->read, at, 0) == last) break;
  for (; at < attention && (pl_read_is(&own->read, at, "sum") || pl_read_is_one_of(&own->read, at, rows));
       at = pl_kernel_next(own, at))
    join_to_attention(own, attention, last, at);
}

void pl_kernel_cores(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    join_latent(own, i);
    if (pl_read_is(&own->read, i, "rotary")) join_latent_backward(own, i);
    if (pl_read_is(&own->read, i, "multiply")) join_sinks(own, i);
    if (is_attention(own, i)) join_sinks_backward(own, i);
    if (pl_read_is(&own->read, i, "top_k")) join_choice(own, i, pl_read_made(&own->read, i, 0), "softmax");
    if (pl_read_is(&own->read, i, "top_k_backward")) join_choice(own, i, pl_kernel_next(own, i), "softmax_backward");
    if (pl_read_is(&own->read, i, "softmax")) join_softmax(own, i);
    if (pl_read_is(&own->read, i, "softmax_backward")) join_backward(own, i);
  }
}
