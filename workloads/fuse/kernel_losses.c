/* The vocabulary's loss in the kernels of its form (workloads/framework/framework.h, pl_loss_form): one, or step by
 * step over fp32 logits. What comes behind its sums is a few numbers a token, and one kernel. See
 * workloads/fuse/kernel_groups.h.
 */
#include <string.h>

#include "workloads/fuse/kernel_groups.h"

/* The ops of exp(logits - greatest), its sum and the targets' elements; PL_IR_NONE: not there. */
typedef struct loss_ops {
  int32_t cast, own_cast, maximum, subtract, exp, sum, pick;
} loss_ops;

/* The op of this row that reads a value, the first behind `after`. */
static int32_t reads(const pl_kernel_finding *own, int32_t after, int32_t value, const char *row) {
  for (int32_t i = after + 1; i < own->read.f->n_ops; i++)
    for (int32_t k = 0; pl_read_is(&own->read, i, row) && k < pl_read_op(&own->read, i)->n_inputs; k++)
      if (pl_read_op(&own->read, i)->inputs[k] == value) return i;
  return PL_IR_NONE;
}

static int32_t output_of(const pl_kernel_finding *own, int32_t op) {
  return pl_read_op(&own->read, op)->first_output;
}

static bool find(const pl_kernel_finding *own, int32_t maximum, loss_ops *found) {
  *found =
      (loss_ops){.maximum = maximum, .own_cast = PL_IR_NONE, .exp = PL_IR_NONE, .sum = PL_IR_NONE, .pick = PL_IR_NONE};
  int32_t logits = pl_read_op(&own->read, maximum)->inputs[0];
  found->cast = pl_read_is(&own->read, pl_read_maker(&own->read, logits), "cast") ? pl_read_maker(&own->read, logits)
                                                                                  : PL_IR_NONE;
  found->subtract = reads(own, maximum, logits, "subtract");
  if (found->subtract == PL_IR_NONE && found->cast != PL_IR_NONE) { /* which may have a cast of its own */
    found->own_cast = reads(own, maximum, pl_read_op(&own->read, found->cast)->inputs[0], "cast");
    if (found->own_cast == PL_IR_NONE) return false;
    found->subtract = reads(own, found->own_cast, output_of(own, found->own_cast), "subtract");
  }
  if (found->subtract == PL_IR_NONE) return false;
  found->exp = reads(own, maximum, output_of(own, found->subtract), "exp");
  found->pick = reads(own, maximum, output_of(own, found->subtract), "pick");
  if (found->exp == PL_IR_NONE) return false;
  found->sum = reads(own, maximum, output_of(own, found->exp), "sum");
  return found->sum != PL_IR_NONE;
}

/* All that is made of the sums, collectives apart. */
static void join_rest(pl_kernel_finding *own, const loss_ops *of) {
  int32_t first = PL_IR_NONE;
  for (int32_t i = of->maximum + 1; i < own->read.f->n_ops; i++) {
    const pl_ir_op *is = pl_read_op(&own->read, i);
    if (pl_ir_row_at(is->row)->effect != PL_IR_PURE || pl_read_is(&own->read, i, "divide")) continue;
    for (int32_t k = 0; k < is->n_inputs; k++) {
      int32_t from = pl_read_maker(&own->read, is->inputs[k]);
      while (pl_read_is_collective(&own->read, from))
        from = pl_read_made(&own->read, from, 0);
      bool behind = from != PL_IR_NONE && (from == of->sum || from == of->pick ||
                                           (first != PL_IR_NONE && pl_kernel_group(own, from) == first));
      if (!behind || pl_kernel_group(own, i) == first) continue;
      if (first == PL_IR_NONE) first = i;
      pl_kernel_join(own, first, i);
    }
  }
}

static void join_forward(pl_kernel_finding *own, int32_t maximum) {
  loss_ops of;
  if (!find(own, maximum, &of)) return;
  bool fused = pl_loss_is_one_kernel(own->framework->kernels.loss);
  join_rest(own, &of);
  pl_kernel_join(own, of.exp, of.pick);
  if (fused || own->framework->kernels.loss == PL_LOSS_COPIES) {
    pl_kernel_join(own, of.exp, of.subtract);
    pl_kernel_join(own, of.exp, of.sum);
  }
  if (!fused) return;
  if (pl_loss_reads_16bit(own->framework->kernels.loss)) pl_kernel_join(own, of.maximum, of.cast);
  pl_kernel_join(own, of.subtract, of.own_cast);
  if (pl_read_made(&own->read, of.subtract, 1) == maximum) pl_kernel_join(own, of.exp, maximum);
}

/* What makes a value out of numbers per token: spread over the vocabulary, cut, scaled, divided by the sum; and what
 * makes exponentials again, where nobody kept them: not those of a loss that is computed again as a whole, whose sum
 * comes between. */
static void join_numbers(pl_kernel_finding *own, int32_t op, int32_t value) {
  static const char *const rows[] = {"spread", "cut", "divide", "multiply", "scale", "exp", "subtract", NULL};
  int32_t at = pl_read_maker(&own->read, value);
  for (const char *const *row = rows; *row != NULL; row++) {
    if (!pl_read_is(&own->read, at, *row)) continue;
    if (pl_read_is(&own->read, at, "exp") && reads(own, at, output_of(own, at), "sum") != PL_IR_NONE) return;
    pl_kernel_join(own, op, at);
    for (int32_t k = 0; k < pl_read_op(&own->read, at)->n_inputs; k++)
      join_numbers(own, at, pl_read_op(&own->read, at)->inputs[k]);
    int32_t cast = pl_read_made(&own->read, at, 0);
    bool narrow = pl_read_is(&own->read, at, "subtract") && pl_loss_reads_16bit(own->framework->kernels.loss);
    if (narrow && pl_read_is(&own->read, cast, "cast")) pl_kernel_join(own, at, cast);
    return;
  }
}

/* softmax - target: `place` puts the targets' share in. */
static void join_backward(pl_kernel_finding *own, int32_t place) {
  int32_t at = pl_kernel_next(own, place);
  while (pl_read_is_view(&own->read, at)) {
    pl_kernel_join(own, place, at);
    at = pl_kernel_next(own, at);
  }
  if (!pl_read_is(&own->read, at, "add")) return;
  pl_kernel_join(own, place, at);
  for (int32_t k = 0; k < 2; k++)
    join_numbers(own, at, pl_read_op(&own->read, at)->inputs[k]);
  int32_t cast = pl_kernel_next(own, at);
  if (pl_loss_reads_16bit(own->framework->kernels.loss) && pl_read_is(&own->read, cast, "cast"))
    pl_kernel_join(own, at, cast);
}

void pl_kernel_losses(pl_kernel_finding *own) {
  for (int32_t i = 0; i < own->read.f->n_ops; i++) {
    if (pl_read_is(&own->read, i, "maximum")) join_forward(own, i);
    if (pl_read_is(&own->read, i, "place")) join_backward(own, i);
  }
}
