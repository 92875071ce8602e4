/* See workloads/language/ir_check.h: lists that recur are checked with as few microbatches as show everything.
 *
 * That steps are there once each, and what they send is received, is the same of every microbatch. That no list waits
 * for ever is a matter of order. Suppose that lists wait for each other in a ring, and take a ring in which each class
 * is passed once: in each class it goes on in the list, and a message takes it on to the same microbatch in the next
 * class's list. Counted in periods a message goes back by no more than what lists have outside of their phases, and the
 * round that it is; all of them together by so much times the classes, so that the ring goes on by no more than that
 * either, and is in so many periods, which it may be moved along. It is in the lists with as many periods, too.
 */
#include "workloads/language/ir_check.h"
#include "workloads/language/ir_recurrence.h"

/* Microbatches that need not be looked at; 0: all are. */
static int32_t spared(const pl_ir_module *module, const pl_ir_recurrence *found) {
  if (found->n_phases != 1 || module->n_fewer > 0) return 0;
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t i = 0; i < module->classes[c].n_chunks; i++)
      if (module->classes[c].chunks[i].n_microbatches > 0) return 0;
  int64_t round = found->round, shift = (found->filling + round - 1) / round + 1;
  int64_t looked_at = found->filling + (shift * (module->n_classes + 1) + 1) * round;
  return looked_at < found->fewest ? (int32_t)((found->fewest - looked_at) / round * round) : 0;
}

pl_code pl_ir_check_recurring(const pl_ir_module *module, const pl_ir_recurrence *recurrence, bool is_made,
                              pl_error *error) {
  int32_t leapt = spared(module, recurrence);
  pl_error of_fewer = PL_ERROR_INIT;
  pl_ir_played fewer;
  bool is_possible = false;
  pl_code (*check)(const pl_ir_module *, pl_error *) = is_made ? pl_ir_check_made : pl_ir_check;
  if (leapt == 0) return check(module, error);
  pl_arena scratch;
  pl_arena_init(&scratch, 1 << 16);
  bool is_right = pl_ir_recurrence_shorten(module, recurrence, leapt, &scratch, &fewer, &is_possible) && is_possible &&
                  check(&fewer.module, &of_fewer) == PL_OK;
  pl_arena_release(&scratch);
  return is_right ? PL_OK : check(module, error); /* which says what is wrong with the whole */
}
