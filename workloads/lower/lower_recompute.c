/* Ops of the forward pass that run once more in front of a layer's derivative (see workloads/lower/lowering.h).
 *
 * full        everything, as torch.utils.checkpoint does with use_reentrant=True and Megatron's own checkpoint. With a
 *             framework that ends early (use_reentrant=False since PyTorch 2.1: recomputation is abandoned as soon as
 *             all that the backward pass reads is there) nothing behind the last product's operands.
 * alternate   what derive/recompute.c says of the function's ops; of reduce-scatters the results are kept too. Products
 * that are one op here may be made again in part: that part of the product is repeated, and that part of its tensor is
 * given up in between (pl_tensor, remade_bytes). Eager, the checkpoint's cache holds what the list names whether
 * somebody reads it backward or not: the output of the layer's last product too. Compiled, the partitioner drops it.
 * selective   what derive/recompute.c names of the function, in the middle of the backward pass: lower_backward.c.
 *
 * In fp8 torchtitan's list of kept ops does not name the scaled product, but its published runs hold as much memory as
 * in bf16: products are counted alike in both.
 */
#include "core/cluster/cluster.h"
#include "workloads/derive/differentiate.h"
#include "workloads/lower/lowering.h"

static pl_op *repeat_op(pl_tape *tape, uint32_t i) {
  PL_ASSERT(tape->n_backward < PL_TAPE_BACKWARD_OPS);
  tape->for_inputs[tape->n_backward] = tape->writes_for_inputs;
  pl_op *op = &tape->backward[tape->n_backward++];
  *op = tape->forward[i];
  if (op->category == PL_CATEGORY_FORWARD) op->category = PL_CATEGORY_RECOMPUTE;
  return op;
}

void pl_lower_repeat(pl_tape *tape, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++)
    repeat_op(tape, i);
}

/* The op behind the last whose result the backward pass needs: the last product, if only sums without a derivative of
 * their own follow; else all ops count. */
static uint32_t needed_ops(const pl_tape *tape) {
  for (uint32_t i = tape->n_nodes; i-- > 0;) {
    const pl_tape_node *node = &tape->nodes[i];
    switch ((pl_tape_rule)node->rule) {
    case PL_RULE_REDUCE:
    case PL_RULE_ADD:
      continue;
    case PL_RULE_LINEAR:
      return node->op;
    default:
      return tape->n_forward;
    }
  }
  return tape->n_forward;
}

/* What `alternate` repeats, per op of the function. */
typedef struct alternation {
  const pl_lowering *to;
  bool again[PL_LOWERING_VALUES];
} alternation;

/* Share of a product's outputs whose turn it is. */
static double repeated_share(const alternation *of, const pl_tape_node *node) {
  double all = 0, again = 0;
  for (uint8_t i = 0; i < node->n_products; i++) {
    double width = (double)pl_lower_shape(of->to, node->products[i]).out;
    all += width;
    if (of->again[node->products[i]]) again += width;
  }
  return node->n_products > 0 ? again / all : 1;
}

static void repeat_product(pl_tape *tape, uint32_t i, double share) {
  if (share <= 0) return;
  pl_op *op = repeat_op(tape, i);
  if (share >= 1) return;
  int64_t n = (int64_t)((double)op->n * share + 0.5);
  tape->tensors[op->output].remade_bytes = share * tape->tensors[op->output].size_bytes;
  double element = pl_dtype_bytes((pl_dtype)op->dtype);
  op->bytes -= (double)op->batch * (double)(op->n - n) *
               (element * (double)op->k + pl_dtype_bytes(tape->shard->dtype) * (double)op->m);
  op->flops *= (double)n / (double)op->n;
  op->filled_bytes *= (double)n / (double)op->n;
  op->n = n;
  op->output = PL_NONE;
}

static const pl_tape_node *product_at(const pl_tape *tape, uint32_t i) {
  for (uint32_t node = 0; node < tape->n_nodes; node++)
    if (tape->nodes[node].op == i && tape->nodes[node].rule == PL_RULE_LINEAR) return &tape->nodes[node];
  return NULL;
}

/* Of a product behind all that the backward pass needs. */
static void keep_unread(const alternation *of, uint32_t i) {
  pl_tape *tape = of->to->tape;
  const pl_tape_node *product = product_at(tape, i);
  if (product == NULL || tape->forward[i].output == PL_NONE) return;
  if (repeated_share(of, product) == 0) tape->tensors[tape->forward[i].output].unread = true;
}

static void repeat_alternate(const pl_lowering *to) {
  pl_tape *tape = to->tape;
  uint32_t end = needed_ops(tape);
  bool attends_again = pl_framework_attends_again(tape->framework);
  alternation of;
  of.to = to;
  pl_recompute_alternate(to->read.f, attends_again, of.again);
  for (uint32_t i = 0; i < end; i++) {
    const pl_op *op = &tape->forward[i];
    const pl_tape_node *product = product_at(tape, i);
    bool context = op->kind == PL_OP_COLLECTIVE && op->group == PL_GROUP_CONTEXT; /* part of attention */
    bool scatter = op->kind == PL_OP_COLLECTIVE && op->collective == PL_REDUCE_SCATTER;
    if ((op->kind == PL_OP_ATTENTION && !attends_again) || context || scatter) continue;
    if (product != NULL)
      repeat_product(tape, i, repeated_share(&of, product));
    else
      repeat_op(tape, i);
  }
  for (uint32_t i = end; i < tape->n_forward && !tape->framework->kernels.fuses_residual; i++)
    keep_unread(&of, i);
}

void pl_lower_recompute(const pl_lowering *to) {
  pl_tape *tape = to->tape;
  if (!tape->layer) return;
  if (tape->shard->recompute == PL_RECOMPUTE_FULL)
    pl_lower_repeat(tape, 0, tape->framework->kernels.ends_recompute ? needed_ops(tape) : tape->n_forward);
  if (tape->shard->recompute == PL_RECOMPUTE_ALTERNATE) repeat_alternate(to);
}
