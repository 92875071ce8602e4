/* What strategies share that differ in ZeRO and overlap only: pl_bound_frame_find of search/bound/lower_bound_parts.h.
 */
#include <string.h>

#include "search/bound/lower_bound_parts.h"
#include "workloads/memory/stage_peak.h"

/* What may differ is left out, what lies elsewhere is compared apart. Bytes between the fields may differ, too, in
 * which case the frame is made once more. */
static pl_strategy key_of(const pl_strategy *strategy) {
  pl_strategy key = *strategy;
  key.zero = key.zero >= 2 ? 2 : 0; /* whose blocks are others */
  key.overlap = key.overlap_is_given = false;
  key.boundary = NULL;
  return key;
}

/* Others may have changed what is there: a placement, a split, a listed schedule. */
static bool points_elsewhere(const pl_strategy *strategy) {
  return strategy->placement != NULL || strategy->split != NULL || strategy->listed != NULL;
}

static size_t boundary_bytes(const pl_strategy *strategy) {
  return ((size_t)pl_strategy_n_chunks(strategy) + 1) * sizeof *strategy->boundary;
}

static bool is_of(const pl_bound_frame *frame, const pl_strategy *strategy) {
  const pl_strategy key = key_of(strategy);
  return frame->is_kept && memcmp(&key, &frame->key, sizeof key) == 0 &&
         memcmp(strategy->boundary, frame->boundary, boundary_bytes(strategy)) == 0;
}

static pl_code keep_boundary(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_error *error) {
  int32_t *boundary = pl_arena_copy(&bounds->scratch, strategy->boundary, boundary_bytes(strategy), _Alignof(int32_t));
  if (boundary == NULL) return pl_fail_memory(error, "the lower bounds");
  bounds->frame.boundary = boundary;
  return PL_OK;
}

static pl_code measure_passes(pl_lower_bounds *bounds, pl_error *error) {
  pl_bound_frame *frame = &bounds->frame;
  int32_t pp = frame->program.strategy->pp;
  bool in_order = bounds->options->streams != PL_STREAMS_READY && frame->program.n_schedules == 1;
  double *passes_bytes = PL_TAKE(&bounds->scratch, double, pp);
  if (passes_bytes == NULL) return pl_fail_memory(error, "the lower bounds");
  for (int32_t stage = 0; in_order && stage < pp; stage++)
    passes_bytes[stage] = pl_stage_passes_bytes(&frame->program, stage);
  frame->passes_bytes = passes_bytes;
  return PL_OK;
}

static pl_code make_frame(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_error *error) {
  pl_bound_frame *frame = &bounds->frame;
  frame->is_kept = false;
  frame->memory_zero = -1;
  pl_arena_reset(&bounds->scratch);
  PL_TRY(pl_bound_blocks_find(bounds, strategy, &frame->blocks, error));
  PL_TRY(pl_program_outline_begin(bounds->model, bounds->job, strategy, frame->blocks->programs, &bounds->scratch,
                                  &frame->program, &frame->making, error));
  PL_TRY(pl_bound_layout_find(bounds, &frame->program, &frame->layout, error));
  PL_TRY(keep_boundary(bounds, strategy, error));
  PL_TRY(measure_passes(bounds, error));
  frame->key = key_of(strategy);
  frame->mark = pl_arena_mark_here(&bounds->scratch);
  /* Gradients that come and go are the passes' memory, and ZeRO shards them. */
  frame->is_kept = !points_elsewhere(strategy) && pl_program_gradient_life(&frame->program) == PL_GRADIENTS_STAY;
  return PL_OK;
}

pl_code pl_bound_frame_find(pl_lower_bounds *bounds, const pl_strategy *strategy, pl_error *error) {
  pl_bound_frame *frame = &bounds->frame;
  if (!is_of(frame, strategy) || bounds->scratch.failed) return make_frame(bounds, strategy, error);
  pl_arena_release_to(&bounds->scratch, frame->mark);
  pl_program_outline_again(frame->making, strategy, error);
  return PL_OK;
}

pl_code pl_bound_frame_passes(pl_lower_bounds *bounds) {
  PL_TRY(pl_program_making_plain(bounds->frame.making));
  bounds->frame.mark = pl_arena_mark_here(&bounds->scratch);
  return PL_OK;
}
