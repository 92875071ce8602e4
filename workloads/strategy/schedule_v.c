/* Schedules of two chunks per stage in a V (see workloads/strategy/schedule.h): chunk 0 on the way down the stages,
 * chunk 1 on the way back. They come in stretches, each a group of passes some times over; the microbatch of a pass is
 * how many of its kind and chunk there were before it. A group is written as "F0b1w1": the pass (B: a backward in
 * whole, b: for inputs, w: for weights) and the chunk. `?` is the chunk whose weights have waited longest.
 *
 * With p stages, r the stage and m microbatches:
 *
 * zb-v (Qi et al. 2023, section 6): 2 (p - r) - 1 forwards go down; as many come back as there are stages before this
 * one, each with another forward down; then backwards begin to arrive. In between six passes in turn. At the end
 * weights that were held back. Of fewer than 2p - 1 microbatches the passes of those that are not there are left out.
 *
 * dualpipe-v: the steps of DeepSeek-AI's published DualPipe, of which a stage and its mirror image are one stage here.
 * Weights are held back only while the pipeline fills and drains. `+` is between passes that run beside each other.
 */
#include <string.h>

#include "workloads/strategy/schedule.h"

typedef struct stretch {
  int64_t times;
  const char *group;
} stretch;

enum { ZB_V_STRETCHES = 9, DUALPIPE_STRETCHES = 10, TURNS = 3 /* the stretch that recurs, in both */ };

static stretch stretch_of_zb_v(const pl_schedule *own, int32_t index) {
  int64_t p = own->pp, r = own->stage, n = own->n_microbatches < 2 * p - 1 ? 2 * p - 1 : own->n_microbatches;
  const stretch all[ZB_V_STRETCHES] = {
      {2 * (p - r) - 1, "F0"},
      {r, "F1F0"},
      {p - r, "F1b1w1"},
      {n - 2 * p + r + 1, "F0b0w0F1b1w1"},
      {p - r - 1, "b0w0F1b1w1"},
      {r, "b0b1"},
      {p - r, "b0w0"},
      {r, "w1"},
      {r, "w0"},
  };
  return all[index];
}

static stretch stretch_of_dualpipe(const pl_schedule *own, int32_t index) {
  int64_t p = own->pp, r = own->stage, half = (r + 1) / 2, odd = r % 2;
  const stretch all[DUALPIPE_STRETCHES] = {
      {2 * (p - r - 1), "F0"}, {r + 1, "F0F1"},
      {p - r - 1, "b1w1F1"},   {own->n_microbatches - 2 * p + r + 1, "F0+B1F1+B0"},
      {p - r - 1, "B1F1+B0"},  {half, "B1B0"},
      {1 - odd, "B1b0"},       {r + odd - half, "b1b0"},
      {p - r - 1, "w?b0"},     {r + 1, "w?"},
  };
  return all[index];
}

static stretch stretch_at(const pl_schedule *own, int32_t index) {
  return own->kind == PL_SCHEDULE_ZB_V ? stretch_of_zb_v(own, index) : stretch_of_dualpipe(own, index);
}

int64_t pl_schedule_v_n_steps(const pl_schedule *schedule) {
  if (schedule->kind == PL_SCHEDULE_ZB_V) return 3 * schedule->n_passes;
  return 2 * schedule->n_passes + 2 * schedule->pp - schedule->stage - 1; /* so many weights are apart */
}

/* Weights wait from both chunks in turn until as many do as stages are before this one, and this; then from chunk 0. */
static int32_t longest_waiting(const pl_schedule *own, pl_schedule_cursor *cursor) {
  int64_t before = cursor->weights++;
  return before <= own->stage ? (int32_t)((before + own->stage) % 2) : 0;
}

static pl_schedule_step pass_of(const pl_schedule *own, pl_schedule_cursor *cursor, const char *text) {
  pl_step_kind kind = text[0] == 'F'   ? PL_STEP_FORWARD
                      : text[0] == 'B' ? PL_STEP_BACKWARD
                      : text[0] == 'b' ? PL_STEP_INPUTS
                                       : PL_STEP_WEIGHTS;
  int32_t chunk = text[1] == '?' ? longest_waiting(own, cursor) : text[1] - '0';
  int32_t *made = &cursor->passes[kind == PL_STEP_BACKWARD ? PL_STEP_INPUTS : kind][chunk];
  pl_schedule_step step = {.kind = (uint8_t)kind, .chunk = chunk, .microbatch = (*made)++};
  if (kind == PL_STEP_BACKWARD) cursor->passes[PL_STEP_WEIGHTS][chunk]++;
  step.joined = text[2] == '+';
  step.last = pl_step_makes_weights(&step) && step.microbatch == own->n_microbatches - 1;
  return step;
}

pl_schedule_step pl_schedule_v_next(const pl_schedule *schedule, pl_schedule_cursor *cursor) {
  for (;;) {
    const stretch own = stretch_at(schedule, cursor->stretch);
    if (cursor->turn >= own.times) {
      cursor->stretch++;
      cursor->turn = 0;
      continue;
    }
    const pl_schedule_step step = pass_of(schedule, cursor, &own.group[cursor->at]);
    cursor->at += 2;
    if (own.group[cursor->at] == '+') cursor->at++;
    if (own.group[cursor->at] == '\0') {
      cursor->at = 0;
      cursor->turn++;
    }
    if (step.microbatch < schedule->n_microbatches) return step;
  }
}

static int32_t count_passes(const char *group) {
  int32_t n = 0;
  for (const char *at = group; *at != '\0'; at += at[2] == '+' ? 3 : 2)
    n++;
  return n;
}

pl_schedule_phase pl_schedule_v_phase(const pl_schedule *schedule) {
  const stretch turns = stretch_at(schedule, TURNS);
  int32_t period = count_passes(turns.group);
  pl_schedule_phase phase = {.period = period, .microbatches = 1};
  if (schedule->n_microbatches < 2 * schedule->pp - 1) return phase;
  for (int32_t i = 0; i < TURNS; i++) {
    const stretch own = stretch_at(schedule, i);
    phase.from += own.times * count_passes(own.group);
  }
  phase.to = phase.from + turns.times * period;
  return phase;
}
