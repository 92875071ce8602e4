/* See workloads/compile/pieces_known.h. */
#include "workloads/compile/pieces_known.h"

/* What is made of an instruction depends on nothing else of its stage. */
static bool is_general(const pl_instruction *instruction) {
  return instruction->kind != PL_INSTRUCTION_COPY && instruction->kind != PL_INSTRUCTION_OPTIMIZER;
}

static bool are_alike(const pl_model *model, const pl_instruction *a, const pl_instruction *b) {
  if (a->kind != b->kind || a->backward != b->backward || a->half != b->half || a->across != b->across ||
      a->experts != b->experts || a->op != b->op || !is_general(a))
    return false;
  return a->kind != PL_INSTRUCTION_BLOCK || a->block == b->block ||
         pl_model_block_class(model, a->block) == pl_model_block_class(model, b->block);
}

static bool have_like_instructions(const pl_model *model, const pl_pass *a, const pl_pass *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!are_alike(model, &a->instructions[i], &b->instructions[i])) return false;
  return true;
}

/* Blocks name their collectives by what they do (find_op of pieces.c), so the lists must be the same. */
static bool have_like_ops(const pl_family *a, const pl_family *b) {
  if (a->n_ops != b->n_ops) return false;
  for (uint32_t i = 0; i < a->n_ops; i++)
    if (a->ops[i].kind != b->ops[i].kind || a->ops[i].size_bytes != b->ops[i].size_bytes) return false;
  return true;
}

/* As parts of segments collectives are told by what they take, and by their links where they have rivals there. What
 * ops of the one have a transfer class in common, those of the other must. */
static bool are_like_parts(const pl_lowered_op *a, const pl_lowered_op *b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (a[i].solo_ticks != b[i].solo_ticks || a[i].progress_bytes != b[i].progress_bytes ||
        a[i].has_rivals != b[i].has_rivals || (a[i].has_rivals && a[i].spec != b[i].spec))
      return false;
    for (uint32_t other = 0; other < i; other++)
      if ((a[i].transfer_class == a[other].transfer_class) != (b[i].transfer_class == b[other].transfer_class))
        return false;
  }
  return true;
}

static bool have_like_groups(const pl_piece_context *context, const pl_device_class *a, const pl_device_class *b) {
  static const int slots[] = {PL_SLOT_TENSOR, PL_SLOT_CONTEXT, PL_SLOT_EXPERT, PL_SLOT_HEADS};
  const pl_communication_plan *plan = context->plan;
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    uint32_t at_a = a->group_class[slots[i]], at_b = b->group_class[slots[i]];
    if (at_a == at_b) continue;
    if (at_a == PL_NONE || at_b == PL_NONE) return false;
    const pl_group_class *of_a = &plan->group_classes[at_a], *of_b = &plan->group_classes[at_b];
    const pl_family *family = &context->program->families[of_a->family];
    if (!have_like_ops(family, &context->program->families[of_b->family])) return false;
    if (slots[i] != PL_SLOT_TENSOR) continue;
    if (of_a->stays_inside != of_b->stays_inside || (of_a->n_participants > 1) != (of_b->n_participants > 1) ||
        !are_like_parts(&plan->ops[of_a->first_op], &plan->ops[of_b->first_op], family->n_ops))
      return false;
  }
  return true;
}

/* The same bytes on the links of another group. */
static void move_carried(const pl_piece_context *context, const pl_device_class *from, pl_pieces *pieces) {
  const pl_communication_plan *plan = context->plan;
  if (pieces->n_carried == 0) return;
  const pl_lowered_op *ops = &plan->ops[plan->group_classes[context->device->group_class[PL_SLOT_TENSOR]].first_op];
  const pl_lowered_op *theirs = &plan->ops[plan->group_classes[from->group_class[PL_SLOT_TENSOR]].first_op];
  for (uint32_t i = 0; i < pieces->n_carried; i++) {
    uint32_t op = 0;
    while (theirs[op].transfer_class != pieces->carried[i].transfer_class)
      op++;
    pieces->carried[i].transfer_class = ops[op].transfer_class;
  }
}

static bool may_share(const pl_piece_context *context) {
  return context->options->shares_passes && context->scales == NULL && !(context->late_s > 0) &&
         context->plan->ops != NULL;
}

bool pl_pieces_recall(const pl_piece_context *context, const pl_pass *pass, pl_category category, pl_pieces *pieces) {
  const pl_piece_scratch *scratch = context->scratch;
  if (!may_share(context)) return false;
  for (uint32_t back = 1; back <= PL_KNOWN_PASSES && back <= scratch->n_known; back++) {
    const pl_known_pass *known = &scratch->known[(scratch->n_known - back) % PL_KNOWN_PASSES];
    if (known->category != category || known->profile != context->profile ||
        !have_like_instructions(context->program->model, known->pass, pass) ||
        !have_like_groups(context, known->device, context->device))
      continue;
    *pieces = known->pieces;
    move_carried(context, known->device, pieces);
    return true;
  }
  return false;
}

void pl_pieces_remember(const pl_piece_context *context, const pl_pass *pass, pl_category category,
                        const pl_pieces *pieces) {
  pl_piece_scratch *scratch = context->scratch;
  if (!may_share(context)) return;
  scratch->known[scratch->n_known++ % PL_KNOWN_PASSES] = (pl_known_pass){
      .pass = pass, .category = category, .profile = context->profile, .device = context->device, .pieces = *pieces};
}
