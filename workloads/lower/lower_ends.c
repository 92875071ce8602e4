/* Losses of networks and of plain layers, and their mean; what embeds and has a vocabulary is lowered by its kernels
 * (launched_block.h). */
#include "core/cluster/cluster.h"
#include "workloads/lower/lowering.h"

static const double cross_entropy_flops = 4;

/* Of few classes. */
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
  int32_t value = pl_read_op(&to->read, op)->inputs[0];
  small_loss(to->tape, to->tensor[value]);
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
