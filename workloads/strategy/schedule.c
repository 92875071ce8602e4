/* See workloads/strategy/schedule.h. The interleaved order counts virtual microbatches k: the k-th forward of a stage
 * is chunk (k mod pp vpp) / pp of microbatch (k / (pp vpp)) pp + k mod pp, and its backwards mirror the chunks. */
#include "workloads/strategy/schedule.h"

#include "workloads/strategy/listed_schedule.h"

const char *pl_step_name(pl_step_kind kind) {
  static const char *const names[PL_STEP_KIND_COUNT] = {"F", "BW", "B", "W"};
  return names[kind];
}

/* ---- what a kind is like ---- */

static bool is_in_a_v(pl_schedule_kind kind) {
  return kind == PL_SCHEDULE_ZB_V || kind == PL_SCHEDULE_DUALPIPE_V;
}

static bool holds_weights_back(pl_schedule_kind kind) {
  return kind == PL_SCHEDULE_ZB_H1 || kind == PL_SCHEDULE_ZB_H2;
}

/* All forwards come first. */
static bool is_in_two_halves(pl_schedule_kind kind) {
  return kind == PL_SCHEDULE_GPIPE || kind == PL_SCHEDULE_FIFO || kind == PL_SCHEDULE_BREADTH_FIRST;
}

bool pl_strategy_is_v(const pl_strategy *strategy) {
  return strategy->schedule == PL_SCHEDULE_LISTED ? strategy->listed->is_v : is_in_a_v(strategy->schedule);
}

bool pl_strategy_splits_backward(const pl_strategy *strategy) {
  if (strategy->schedule == PL_SCHEDULE_LISTED) return strategy->listed->splits;
  return strategy->schedule == PL_SCHEDULE_DUALPIPE || holds_weights_back(strategy->schedule) ||
         is_in_a_v(strategy->schedule);
}

int32_t pl_strategy_chunk_at(const pl_strategy *strategy, int32_t stage, int32_t chunk) {
  if (chunk == 1 && (pl_strategy_is_v(strategy) || strategy->schedule == PL_SCHEDULE_DUALPIPE))
    return 2 * strategy->pp - 1 - stage;
  return chunk * strategy->pp + stage;
}

int32_t pl_strategy_stage_of(const pl_strategy *strategy, int32_t model_chunk) {
  int32_t pp = strategy->pp;
  return model_chunk >= pp && pl_strategy_is_v(strategy) ? 2 * pp - 1 - model_chunk : model_chunk % pp;
}

bool pl_schedule_recurs(const pl_strategy *strategy) {
  return strategy->schedule != PL_SCHEDULE_LISTED && strategy->schedule != PL_SCHEDULE_BREADTH_FIRST &&
         strategy->schedule != PL_SCHEDULE_DUALPIPE;
}

int32_t pl_schedule_round(const pl_strategy *strategy) {
  return strategy->schedule == PL_SCHEDULE_INTERLEAVED ? strategy->pp : 1;
}

int32_t pl_schedule_filling(const pl_strategy *strategy) {
  int32_t ahead = pl_strategy_pairs_passes(strategy) ? pl_schedule_round(strategy) : 0; /* one pass more */
  return (strategy->schedule == PL_SCHEDULE_ZB_H2 || is_in_a_v(strategy->schedule) ? 2 : 1) * strategy->pp + ahead;
}

/* ---- steps ---- */

/* A stage and its mirror image are one stage of dualpipe-v, on half of the microbatches: its first chunk is the one of
 * the direction that comes in at the nearer end. */
static pl_schedule of_dualpipe(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage) {
  const pl_strategy half = {.schedule = PL_SCHEDULE_DUALPIPE_V, .pp = strategy->pp / 2, .vpp = 2};
  bool mirrored = stage >= half.pp;
  pl_schedule own = pl_schedule_of(&half, n_microbatches / 2, mirrored ? strategy->pp - 1 - stage : stage);
  own.mirrored = mirrored;
  own.second = n_microbatches / 2;
  return own;
}

pl_schedule pl_schedule_of(const pl_strategy *strategy, int32_t n_microbatches, int32_t stage) {
  if (strategy->schedule == PL_SCHEDULE_DUALPIPE) return of_dualpipe(strategy, n_microbatches, stage);
  pl_schedule own = {.kind = strategy->schedule,
                     .pp = strategy->pp,
                     .vpp = strategy->vpp,
                     .stage = stage,
                     .n_microbatches = n_microbatches,
                     .n_passes = (int64_t)strategy->vpp * n_microbatches,
                     .ahead = strategy->pp - stage - 1,
                     .listed = strategy->listed,
                     .paired = pl_strategy_pairs_passes(strategy)};
  PL_ASSERT(own.kind != PL_SCHEDULE_LISTED || own.listed->n_microbatches == n_microbatches);
  if (own.kind == PL_SCHEDULE_INTERLEAVED) own.ahead = 2 * own.ahead + (int64_t)(own.vpp - 1) * own.pp;
  if (own.kind == PL_SCHEDULE_ZB_H2) own.ahead *= 2;
  own.ahead += own.paired;
  if (holds_weights_back(own.kind)) own.delay = own.kind == PL_SCHEDULE_ZB_H2 ? 2 * stage : stage;
  if (is_in_two_halves(own.kind) || own.ahead > own.n_passes) own.ahead = own.n_passes;
  return own;
}

int64_t pl_schedule_n_steps(const pl_schedule *schedule) {
  if (schedule->kind == PL_SCHEDULE_LISTED) return schedule->listed->n_steps[schedule->stage];
  if (is_in_a_v(schedule->kind)) return pl_schedule_v_n_steps(schedule);
  return (holds_weights_back(schedule->kind) ? 3 : 2) * schedule->n_passes;
}

static int32_t last_microbatch(const pl_schedule *schedule) {
  return schedule->kind == PL_SCHEDULE_GPIPE ? 0 : schedule->n_microbatches - 1;
}

/* The pass-th of its kind: its chunk and microbatch. */
static pl_schedule_step place(const pl_schedule *schedule, pl_step_kind kind, int64_t pass) {
  bool reversed = kind != PL_STEP_FORWARD;
  int64_t group = (int64_t)schedule->pp * schedule->vpp, chunk = 0, microbatch = pass;
  if (schedule->kind == PL_SCHEDULE_INTERLEAVED) {
    chunk = pass % group / schedule->pp;
    microbatch = pass / group * schedule->pp + pass % schedule->pp;
  } else if (schedule->kind == PL_SCHEDULE_BREADTH_FIRST) {
    chunk = pass / schedule->n_microbatches;
    microbatch = pass % schedule->n_microbatches;
  } else if (reversed && schedule->kind == PL_SCHEDULE_GPIPE) {
    microbatch = schedule->n_passes - 1 - pass;
  }
  return (pl_schedule_step){.kind = (uint8_t)kind,
                            .chunk = (int32_t)(reversed ? schedule->vpp - 1 - chunk : chunk),
                            .microbatch = (int32_t)microbatch};
}

static pl_step_kind next_kind(const pl_schedule *schedule, const pl_schedule_cursor *cursor) {
  bool apart = holds_weights_back(schedule->kind);
  if (apart && cursor->backward > cursor->weights + schedule->delay) return PL_STEP_WEIGHTS;
  if (cursor->forward < schedule->n_passes && cursor->forward <= cursor->backward + schedule->ahead)
    return PL_STEP_FORWARD;
  if (!apart) return PL_STEP_BACKWARD;
  return cursor->backward < schedule->n_passes ? PL_STEP_INPUTS : PL_STEP_WEIGHTS;
}

pl_schedule_step pl_schedule_next(const pl_schedule *schedule, pl_schedule_cursor *cursor) {
  if (schedule->kind == PL_SCHEDULE_LISTED) return schedule->listed->steps[schedule->stage][cursor->at++];
  if (is_in_a_v(schedule->kind)) {
    pl_schedule_step step = pl_schedule_v_next(schedule, cursor);
    if (schedule->mirrored) step.chunk = 1 - step.chunk;
    if (step.chunk == 1) step.microbatch += schedule->second;
    return step;
  }
  pl_step_kind kind = next_kind(schedule, cursor);
  int64_t *pass = kind == PL_STEP_FORWARD   ? &cursor->forward
                  : kind == PL_STEP_WEIGHTS ? &cursor->weights
                                            : &cursor->backward;
  bool joined = schedule->paired && kind == PL_STEP_FORWARD && *pass >= schedule->ahead;
  pl_schedule_step step = place(schedule, kind, (*pass)++);
  step.joined = joined;
  step.last = pl_step_makes_weights(&step) && step.microbatch == last_microbatch(schedule);
  return step;
}

static int32_t count_in_flight(const pl_schedule *schedule) {
  pl_schedule_cursor cursor = {0};
  int32_t held = 0, most = 0;
  for (int64_t i = pl_schedule_n_steps(schedule); i-- > 0;) {
    const pl_schedule_step step = pl_schedule_next(schedule, &cursor);
    held += step.kind == PL_STEP_FORWARD;
    held -= pl_step_makes_weights(&step);
    if (held > most) most = held;
  }
  return most;
}

int32_t pl_schedule_in_flight(const pl_schedule *schedule) {
  if (schedule->kind == PL_SCHEDULE_LISTED || is_in_a_v(schedule->kind)) return count_in_flight(schedule);
  int64_t most = schedule->ahead + 1 + schedule->delay;
  return (int32_t)(most < schedule->n_passes ? most : schedule->n_passes);
}

/* ---- what recurs ---- */

/* The first pass, of those of one direction, that is the last of its chunk. */
static int64_t first_last_pass(const pl_schedule *schedule) {
  return schedule->n_passes - (int64_t)schedule->vpp * (schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp : 1) +
         (schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp - 1 : 0);
}

static int phases_of_halves(const pl_schedule *schedule, pl_schedule_phase phases[PL_SCHEDULE_PHASES]) {
  int64_t n = schedule->n_passes;
  int32_t later = schedule->kind == PL_SCHEDULE_GPIPE ? -1 : 1;
  phases[0] = (pl_schedule_phase){.from = 0, .to = n, .period = 1, .microbatches = 1};
  phases[1] = (pl_schedule_phase){.from = n, .to = 2 * n - 1, .period = 1, .microbatches = later};
  return 2;
}

/* Behind the first forwards, and as many forwards and backwards in turn as weights are held back, one of each. */
static pl_schedule_phase phase_of_threes(const pl_schedule *schedule) {
  int64_t turns = schedule->n_passes - schedule->ahead - schedule->delay;
  if (turns < 0) turns = 0;
  int64_t from = turns > 0 ? schedule->ahead + 2 * schedule->delay : 0;
  return (pl_schedule_phase){.from = from, .to = from + 3 * turns, .period = 3, .microbatches = 1};
}

int pl_schedule_phases(const pl_schedule *schedule, pl_schedule_phase phases[PL_SCHEDULE_PHASES]) {
  if (schedule->kind == PL_SCHEDULE_LISTED || schedule->kind == PL_SCHEDULE_BREADTH_FIRST) return 0;
  if (is_in_two_halves(schedule->kind)) return phases_of_halves(schedule, phases);
  if (is_in_a_v(schedule->kind) || holds_weights_back(schedule->kind)) {
    phases[0] = is_in_a_v(schedule->kind) ? pl_schedule_v_phase(schedule) : phase_of_threes(schedule);
    return 1;
  }
  /* Behind the first forwards one forward and one backward in turn, as long as there are forwards. */
  int64_t turns = schedule->n_passes - schedule->ahead, last = first_last_pass(schedule);
  if (last < turns) turns = last;
  int32_t microbatches = schedule->kind == PL_SCHEDULE_INTERLEAVED ? schedule->pp : 1;
  phases[0] = (pl_schedule_phase){.from = schedule->ahead,
                                  .to = schedule->ahead + 2 * turns,
                                  .period = 2 * schedule->vpp * microbatches,
                                  .microbatches = microbatches};
  return 1;
}
