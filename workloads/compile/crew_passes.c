/* See workloads/compile/crew_passes.h. */
#include "workloads/compile/crew_passes.h"

#include "workloads/compile/host_floor.h"

/* The pieces of a pass, and of its last time if that has the reductions. */
static void take_backward(pl_piece_context *context, const pl_pass *pass, const pl_pass *last, double late_s,
                          pl_crew_pass *own, pl_crew_pass *own_last) {
  context->late_s = late_s;
  own->pieces = own_last->pieces = pl_pieces_take(context, pass, PL_CATEGORY_BACKWARD);
  if (last->instructions != pass->instructions) own_last->pieces = pl_pieces_take(context, last, PL_CATEGORY_BACKWARD);
}

static void take_chunk(pl_piece_context *context, const pl_stage_program *stage, int32_t chunk, pl_crew_passes *own) {
  double late_s[PL_HOST_PASSES];
  const pl_pass *const whole[] = {&stage->forward[chunk], &stage->backward[chunk]};
  pl_host_floors(context, whole, 2, late_s);
  context->late_s = late_s[0];
  own->forward[chunk].pieces = pl_pieces_take(context, &stage->forward[chunk], PL_CATEGORY_FORWARD);
  take_backward(context, &stage->backward[chunk], &stage->last_backward[chunk], late_s[1], &own->backward[chunk],
                &own->last_backward[chunk]);
  if (own->inputs == NULL) return;
  const pl_pass *const halves[] = {&stage->forward[chunk], &stage->inputs[chunk], &stage->weights[chunk]};
  pl_host_floors(context, halves, 3, late_s);
  context->late_s = late_s[1];
  own->inputs[chunk].pieces = pl_pieces_take(context, &stage->inputs[chunk], PL_CATEGORY_BACKWARD);
  take_backward(context, &stage->weights[chunk], &stage->last_weights[chunk], late_s[2], &own->weights[chunk],
                &own->last_weights[chunk]);
}

bool pl_crew_passes_take(pl_piece_context *context, const pl_stage_program *stage, pl_crew_passes *passes) {
  *passes = (pl_crew_passes){.n_chunks = context->program->strategy->vpp};
  pl_crew_pass **const arrays[] = {&passes->forward, &passes->backward, &passes->last_backward,
                                   &passes->inputs,  &passes->weights,  &passes->last_weights};
  for (size_t i = 0; i < (stage->inputs == NULL ? 3 : sizeof arrays / sizeof *arrays); i++)
    *arrays[i] = PL_TAKE(context->arena, pl_crew_pass, passes->n_chunks);
  if (context->arena->failed) return false;
  for (int32_t chunk = 0; chunk < passes->n_chunks; chunk++)
    take_chunk(context, stage, chunk, passes);
  context->late_s = 0;
  passes->epilogue = pl_pieces_take(context, &stage->epilogue, PL_CATEGORY_OPTIMIZER);
  return !context->arena->failed;
}

pl_crew_pass *pl_crew_pass_of(const pl_crew_passes *passes, const pl_schedule_step *step) {
  switch ((pl_step_kind)step->kind) {
  case PL_STEP_FORWARD:
    return &passes->forward[step->chunk];
  case PL_STEP_INPUTS:
    return &passes->inputs[step->chunk];
  case PL_STEP_WEIGHTS:
    return step->last ? &passes->last_weights[step->chunk] : &passes->weights[step->chunk];
  default:
    return step->last ? &passes->last_backward[step->chunk] : &passes->backward[step->chunk];
  }
}

static void add_carried(const pl_crew_pass *pass, double *transfer_bytes) {
  for (uint32_t i = 0; i < pass->pieces.n_carried; i++) {
    const pl_carried *carried = &pass->pieces.carried[i];
    transfer_bytes[carried->transfer_class] += (double)pass->times * carried->progress_bytes;
  }
}

void pl_crew_passes_add_carried(const pl_crew_passes *passes, double *transfer_bytes) {
  const pl_crew_pass *const all[] = {passes->forward, passes->backward, passes->last_backward,
                                     passes->inputs,  passes->weights,  passes->last_weights};
  for (int32_t chunk = 0; chunk < passes->n_chunks; chunk++)
    for (size_t i = 0; i < sizeof all / sizeof *all && all[i] != NULL; i++)
      add_carried(&all[i][chunk], transfer_bytes);
}
