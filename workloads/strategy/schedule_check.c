/* Whether a schedule can run: see workloads/strategy/listed_schedule.h. Three walks: over each stage alone, over all
 * stages against each other (a pass waits for the one that feeds it, a stage does one thing at a time, time counts
 * nothing), and along each wire between two stages. */
#include "workloads/strategy/listed_schedule.h"

enum { FORWARDS = 0, INPUTS, WEIGHTS, DONE_KINDS };

typedef struct checking {
  const pl_listed_schedule *schedule;
  bool *done[DONE_KINDS]; /* [chunk of the model][microbatch] */
  int64_t *at;            /* by stage */
  pl_schedule_fault fault;
} checking;

static int32_t n_chunks(const pl_listed_schedule *schedule) {
  return schedule->pp * schedule->vpp;
}

/* The same map as a strategy's (pl_strategy_chunk_at), which need not be there. */
static int32_t chunk_at(const pl_listed_schedule *schedule, int32_t stage, int32_t chunk) {
  if (chunk == 1 && schedule->is_v) return 2 * schedule->pp - 1 - stage;
  return chunk * schedule->pp + stage;
}

static int32_t stage_of(const pl_listed_schedule *schedule, int32_t chunk) {
  int32_t pp = schedule->pp;
  return chunk >= pp && schedule->is_v ? 2 * pp - 1 - chunk : chunk % pp;
}

static bool *cell(const checking *state, int kind, int32_t chunk, int32_t microbatch) {
  return &state->done[kind][(int64_t)chunk * state->schedule->n_microbatches + microbatch];
}

static bool fail(checking *state, pl_schedule_fault_kind kind, int32_t stage, int64_t at, int32_t other,
                 pl_schedule_step step) {
  state->fault = (pl_schedule_fault){.kind = kind, .stage = stage, .at = at, .other = other, .step = step};
  return false;
}

/* ---- a stage alone ---- */

/* Marks what the step makes; whether any of it was there. */
static bool mark(const checking *state, int32_t chunk, const pl_schedule_step *step) {
  bool was = false;
  const bool makes[DONE_KINDS] = {step->kind == PL_STEP_FORWARD, pl_step_is_backward(step),
                                  pl_step_makes_weights(step)};
  for (int kind = 0; kind < DONE_KINDS; kind++) {
    bool *made = cell(state, kind, chunk, step->microbatch);
    was |= makes[kind] && *made;
    *made |= makes[kind];
  }
  return was;
}

static bool check_step(checking *state, int32_t stage, int64_t at, int32_t *held) {
  const pl_schedule_step *step = &state->schedule->steps[stage][at];
  int32_t chunk = chunk_at(state->schedule, stage, step->chunk), most = state->schedule->most_held;
  pl_schedule_step before = *step;
  before.kind = step->kind == PL_STEP_WEIGHTS ? PL_STEP_INPUTS : PL_STEP_FORWARD;
  bool starts = step->kind == PL_STEP_FORWARD;
  if (!starts && !*cell(state, step->kind == PL_STEP_WEIGHTS ? INPUTS : FORWARDS, chunk, step->microbatch))
    return fail(state, PL_SCHEDULE_TOO_EARLY, stage, at, stage, before);
  if (mark(state, chunk, step)) return fail(state, PL_SCHEDULE_TWICE, stage, at, stage, *step);
  *held += starts;
  *held -= pl_step_makes_weights(step);
  if (most > 0 && *held > most) return fail(state, PL_SCHEDULE_HOLDS_MORE, stage, at, stage, *step);
  return true;
}

static bool check_stage(checking *state, int32_t stage) {
  const pl_listed_schedule *schedule = state->schedule;
  static const uint8_t kinds[DONE_KINDS] = {PL_STEP_FORWARD, PL_STEP_BACKWARD, PL_STEP_WEIGHTS};
  int32_t held = 0;
  for (int64_t at = 0; at < schedule->n_steps[stage]; at++)
    if (!check_step(state, stage, at, &held)) return false;
  for (int32_t chunk = 0; chunk < schedule->vpp; chunk++)
    for (int32_t microbatch = 0; microbatch < schedule->n_microbatches; microbatch++)
      for (int kind = 0; kind < DONE_KINDS; kind++)
        if (!*cell(state, kind, chunk_at(schedule, stage, chunk), microbatch))
          return fail(state, PL_SCHEDULE_MISSING, stage, schedule->n_steps[stage], stage,
                      (pl_schedule_step){.kind = kinds[kind], .chunk = chunk, .microbatch = microbatch});
  return true;
}

/* ---- all stages against each other ---- */

/* The pass of another chunk that feeds this one; false: there is none. */
static bool feeder_of(const pl_listed_schedule *schedule, int32_t stage, const pl_schedule_step *step,
                      int32_t *from_chunk) {
  bool backward = pl_step_is_backward(step);
  if (step->kind == PL_STEP_WEIGHTS) return false;
  *from_chunk = chunk_at(schedule, stage, step->chunk) + (backward ? 1 : -1);
  return *from_chunk >= 0 && *from_chunk < n_chunks(schedule);
}

static bool waits(const checking *state, int32_t stage, const pl_schedule_step *step) {
  int32_t from;
  return feeder_of(state->schedule, stage, step, &from) &&
         !*cell(state, pl_step_is_backward(step) ? INPUTS : FORWARDS, from, step->microbatch);
}

static bool blame_first(checking *state) {
  const pl_listed_schedule *schedule = state->schedule;
  int32_t stage = 0, from = 0;
  while (state->at[stage] == schedule->n_steps[stage])
    stage++;
  const pl_schedule_step *step = &schedule->steps[stage][state->at[stage]];
  feeder_of(schedule, stage, step, &from);
  pl_schedule_step missing = *step;
  missing.chunk = from / schedule->pp;
  return fail(state, PL_SCHEDULE_DEADLOCK, stage, state->at[stage], stage_of(schedule, from), missing);
}

static bool run(checking *state) {
  const pl_listed_schedule *schedule = state->schedule;
  for (bool moves = true, done = false; !done;) {
    done = true;
    moves = false;
    for (int32_t stage = 0; stage < schedule->pp; stage++) {
      int64_t *at = &state->at[stage];
      for (; *at < schedule->n_steps[stage] && !waits(state, stage, &schedule->steps[stage][*at]); (*at)++) {
        const pl_schedule_step *step = &schedule->steps[stage][*at];
        mark(state, chunk_at(schedule, stage, step->chunk), step);
        moves = true;
      }
      done &= *at == schedule->n_steps[stage];
    }
    if (!done && !moves) return blame_first(state);
  }
  return true;
}

/* ---- along a wire ---- */

/* What passes one way between two stages: of a V, the two chunks apart. */
typedef struct wire {
  int32_t from, chunk; /* stage; chunk of the receiver in a V */
  bool backward;
} wire;

/* Whether the step of `stage` is fed along the wire. */
static bool is_fed(const pl_listed_schedule *schedule, const wire *own, int32_t stage, const pl_schedule_step *step) {
  int32_t from;
  return pl_step_is_backward(step) == own->backward && feeder_of(schedule, stage, step, &from) && from >= 0 &&
         (!schedule->is_v || step->chunk == own->chunk) && stage_of(schedule, from) == own->from;
}

/* Whether the step of the sender feeds `taken` of `stage`, or, with taken NULL, any step of it along the wire. */
static bool feeds(const pl_listed_schedule *schedule, const wire *own, int32_t stage, const pl_schedule_step *sent,
                  pl_schedule_step *fed) {
  int32_t chunk = chunk_at(schedule, own->from, sent->chunk) + (own->backward ? -1 : 1);
  if (sent->kind == PL_STEP_WEIGHTS || pl_step_is_backward(sent) != own->backward) return false;
  if (chunk < 0 || chunk >= n_chunks(schedule) || stage_of(schedule, chunk) != stage) return false;
  *fed = *sent;
  fed->chunk = chunk / schedule->pp;
  return !schedule->is_v || fed->chunk == own->chunk;
}

static bool check_wire(checking *state, const wire *own, int32_t stage) {
  const pl_listed_schedule *schedule = state->schedule;
  int64_t sent = 0;
  for (int64_t at = 0; at < schedule->n_steps[stage]; at++) {
    const pl_schedule_step *step = &schedule->steps[stage][at];
    pl_schedule_step fed;
    if (!is_fed(schedule, own, stage, step)) continue;
    while (!feeds(schedule, own, stage, &schedule->steps[own->from][sent], &fed))
      sent++;
    sent++;
    if (fed.chunk != step->chunk || fed.microbatch != step->microbatch)
      return fail(state, PL_SCHEDULE_OVERTAKING, stage, at, own->from, fed);
  }
  return true;
}

static bool check_wires(checking *state) {
  const pl_listed_schedule *schedule = state->schedule;
  int32_t pp = schedule->pp;
  for (int32_t stage = 0; stage < pp; stage++)
    for (int32_t step = -1; step <= 1; step += 2)
      for (int32_t kind = 0; kind < 4; kind++) {
        const wire own = {.from = (stage + pp + step) % pp, .chunk = kind / 2, .backward = kind % 2 == 1};
        if (own.from != stage && !check_wire(state, &own, stage)) return false;
      }
  return true;
}

pl_schedule_fault pl_schedule_check(const pl_listed_schedule *schedule, pl_arena *arena) {
  checking state = {.schedule = schedule};
  pl_arena_mark mark_here = pl_arena_mark_here(arena);
  size_t n = (size_t)n_chunks(schedule) * (size_t)schedule->n_microbatches;
  for (int kind = 0; kind < DONE_KINDS; kind++)
    state.done[kind] = PL_TAKE(arena, bool, n);
  state.at = PL_TAKE(arena, int64_t, schedule->pp);
  if (arena->failed) return (pl_schedule_fault){.kind = PL_SCHEDULE_NO_MEMORY};
  bool sound = true;
  for (int32_t stage = 0; sound && stage < schedule->pp; stage++)
    sound = check_stage(&state, stage);
  for (int kind = 0; sound && kind < DONE_KINDS; kind++)
    for (size_t i = 0; i < n; i++)
      state.done[kind][i] = false;
  if (sound && run(&state)) check_wires(&state);
  pl_arena_release_to(arena, mark_here);
  return state.fault;
}
