/* Sums of activations, dropout, and functions of each element. */
#include <string.h>

#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double add_flops = 1;

static const pl_tape_names *names_or(const pl_lowering *to, int32_t op, const pl_tape_names *otherwise) {
  return to->block->names[op] != NULL ? to->block->names[op] : otherwise;
}

static void plain_add(pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_OP_NAMES("add");
  const pl_tape_names *names = names_or(to, op, &plain);
  uint32_t left = pl_lower_input(to, op, 0), right = pl_lower_input(to, op, 1);
  bool partial = strcmp(names->forward, "parallel_add") == 0;
  uint32_t sum = pl_tape_like(to->tape, left, partial ? "parallel_sum" : names->forward, PL_TENSOR_ACTIVATION,
                              to->tape->shard->dtype);
  pl_tape_sweep(to->tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, add_flops, left, right, PL_NONE, sum,
                PL_NONE);
  pl_tape_note(to->tape, PL_RULE_ADD, *names, left, sum)->second = right;
  pl_lower_set(to, op, 0, sum);
}

void pl_lower_add(pl_lowering *to, int32_t op) {
  if (pl_read_is_bias(&to->read, op)) {
    if (!pl_read_is_before_residual(&to->read, op)) pl_lower_same(to, op);
    return;
  }
  if (pl_lower_join(to, op)) return;
  plain_add(to, op);
}

/* Partial sums may be dropped before they are added up, which is the same; frameworks add them up first. */
void pl_lower_dropout(pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_OP_NAMES("dropout");
  const pl_ir_op *dropout = pl_read_op(&to->read, op);
  int32_t reduction = pl_read_user(&to->read, dropout->first_output), last = op;
  uint32_t input = pl_lower_input(to, op, 0);
  if (input != PL_NONE && pl_lower_is_reduction(to, reduction)) {
    input = pl_lower_reduced(to, dropout->inputs[0], input);
    pl_lower_done(to, reduction);
    pl_lower_set(to, op, 0, input);
    last = reduction;
  }
  if (pl_read_is_before_residual(&to->read, op)) return;
  pl_lower_set(to, last, 0, pl_tape_dropout(to->tape, *names_or(to, op, &plain), input));
}

/* A function of each element. The derivative of tanh, and of relu where a profile does not say otherwise, is made of
 * the output. */
void pl_lower_activation(pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_OP_NAMES("activation"), relu_names = PL_OP_NAMES("relu");
  static const double activation_flops = 8, relu_flops = 1;
  bool relu = pl_read_is(&to->read, op, "relu") && to->block->kind != PL_BLOCK_HEAD;
  const pl_tape_names *names = names_or(to, op, relu ? &relu_names : &plain);
  if (relu && pl_lower_into_batch_norm(to, op)) return;
  uint32_t input = pl_lower_input(to, op, 0);
  uint32_t output = pl_tape_like(to->tape, input, names->forward, PL_TENSOR_ACTIVATION, to->tape->shard->dtype);
  pl_tape_sweep(to->tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, relu ? relu_flops : activation_flops,
                input, PL_NONE, PL_NONE, output, PL_NONE);
  pl_tape_rule rule = pl_read_is(&to->read, op, "tanh")  ? PL_RULE_TANH
                      : relu && to->block->chain != NULL ? PL_RULE_RELU
                                                         : PL_RULE_POINTWISE;
  pl_tape_note(to->tape, rule, *names, input, output);
  pl_lower_set(to, op, 0, output);
}

/* The square of an activation is part of its kernel (relu squared); a factor for each row of another tensor. */
void pl_lower_multiply(pl_lowering *to, int32_t op) {
  static const pl_tape_names plain = PL_OP_NAMES("scale");
  static const double scale_flops = 8;
  const int32_t *inputs = pl_read_op(&to->read, op)->inputs;
  if (inputs[0] == inputs[1]) {
    pl_lower_same(to, op);
    return;
  }
  const pl_tape_names *names = names_or(to, op, &plain);
  uint32_t left = to->tensor[inputs[0]], right = to->tensor[inputs[1]];
  uint32_t scaled = pl_tape_like(to->tape, left, names->forward, PL_TENSOR_ACTIVATION, to->tape->shard->dtype);
  pl_tape_sweep(to->tape, names->forward, PL_OP_ELEMENTWISE, PL_CATEGORY_FORWARD, scale_flops, left, right, PL_NONE,
                scaled, PL_NONE);
  pl_tape_note(to->tape, PL_RULE_POINTWISE, *names, left, scaled)->second = right;
  pl_lower_set(to, op, 0, scaled);
}
