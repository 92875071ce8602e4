/* See workloads/memory/stage_replay.h. */
#include "workloads/memory/stage_replay.h"

#include <math.h>

#include "workloads/memory/replay.h"
#include "workloads/memory/replay_recurrence.h"
#include "workloads/memory/stage_memory.h"

enum {
  SETTLING = 4,  /* microbatches after the first backward pass */
  ITERATIONS = 3 /* the optimizer's state comes in the first, what it leaves free is shared out anew in the second */
};

/* ---- tensors ---- */

static void settle_until(pl_replay *own, int64_t launch) {
  while (own->n_waiting > 0 && own->waiting[own->first_waiting].launch <= launch) {
    uint32_t held = own->waiting[own->first_waiting].held;
    own->first_waiting = (own->first_waiting + 1) % PL_REPLAY_WAITING;
    own->n_waiting--;
    pl_caching_allocator_give(&own->allocator, held);
  }
}

void pl_replay_settle(void *own) {
  settle_until(own, INT64_MAX);
}

double pl_replay_elements(const pl_tensor *tensor) {
  return tensor->size_bytes / pl_dtype_bytes((pl_dtype)tensor->dtype);
}

uint32_t pl_replay_take(pl_replay *own, uint32_t stream, double size_bytes) {
  settle_until(own, own->n_launches - own->n_ahead);
  uint32_t held = pl_caching_allocator_take(&own->allocator, stream, llrint(size_bytes));
  own->failed |= held == PL_NONE;
  if (own->allocator.used_bytes > own->peak_bytes) {
    own->peak_bytes = own->allocator.used_bytes;
    own->occupied_bytes = own->allocator.occupied_bytes;
  }
  return held;
}

void pl_replay_give(pl_replay *own, uint32_t *held) {
  if (*held < PL_REPLAY_BORROWED) pl_caching_allocator_give(&own->allocator, *held);
  *held = PL_NONE;
}

void pl_replay_let_go(pl_replay *own, uint32_t *held, bool marked) {
  if (own->n_ahead == 0 || !marked || *held >= PL_REPLAY_BORROWED || own->n_waiting == PL_REPLAY_WAITING) {
    pl_replay_give(own, held);
    return;
  }
  uint32_t last = (own->first_waiting + own->n_waiting++) % PL_REPLAY_WAITING;
  own->waiting[last] = (pl_waiting_block){.held = *held, .launch = own->n_launches};
  *held = PL_NONE;
}

void pl_replay_use(pl_replay *own, uint32_t stream, double size_bytes) {
  if (size_bytes <= 0 || own->failed) return;
  uint32_t held = pl_replay_take(own, stream, size_bytes);
  if (!own->failed) pl_replay_give(own, &held);
}

void pl_replay_append(pl_replay *own, pl_replay_list *list, uint32_t held) {
  uint32_t *longer = pl_arena_grown(own->arena, list->held, list->n, 1, sizeof *longer, &list->room);
  own->failed |= longer == NULL;
  if (own->failed) return;
  list->held = longer;
  list->held[list->n++] = held;
}

void pl_replay_add(pl_replay *own, pl_replay_list *list, uint32_t stream, double size_bytes) {
  if (size_bytes <= 0 || own->failed) return;
  pl_replay_append(own, list, pl_replay_take(own, stream, size_bytes));
}

void pl_replay_clear(pl_replay *own, pl_replay_list *list) {
  while (list->n > 0 && !own->failed)
    pl_replay_give(own, &list->held[--list->n]);
}

/* ---- the training ---- */

/* The passes of the first microbatches come in the same order whatever follows them, but where all forwards come first;
 * so the schedule need not be longer than they are. */
static pl_schedule schedule_of(const pl_replay *own, int32_t n_microbatches) {
  const pl_schedule *whole = &own->stage->schedules[0];
  const pl_strategy *strategy = own->program->strategy;
  int32_t round = pl_schedule_round(strategy), n = (n_microbatches + round - 1) / round * round;
  bool turns = whole->kind == PL_SCHEDULE_GPIPE || whole->kind == PL_SCHEDULE_FIFO;
  if (turns || !pl_schedule_recurs(strategy) || n >= whole->n_microbatches) return *whole;
  return pl_schedule_of(own->program->strategy, n, own->stage->stage);
}

/* One microbatch after the other, forward and backward pass by turns. */
static bool takes_turns(const pl_schedule *schedule) {
  return schedule->kind == PL_SCHEDULE_1F1B && schedule->vpp == 1 && !schedule->paired &&
         pl_schedule_in_flight(schedule) == 1;
}

/* Up to where it does what was done already: `*done` then. */
static void run_iteration(pl_replay *own, const pl_schedule *schedule, int32_t n_microbatches,
                          pl_replay_recurrence *recurrence, bool *done) {
  pl_schedule_cursor cursor = {0};
  bool turns = takes_turns(schedule), settled = false;
  for (int64_t i = 0; i < pl_schedule_n_steps(schedule) && !own->failed && !*done; i++) {
    const pl_schedule_step step = pl_schedule_next(schedule, &cursor);
    bool last = step.microbatch == n_microbatches - 1;
    if (step.microbatch >= n_microbatches || (settled && !last)) continue;
    if (!step.joined || !pl_strategy_hides_tokens(own->program->strategy)) {
      pl_replay_run(own, &step, last);
      bool over = turns && step.kind == PL_STEP_BACKWARD && !last && !own->failed;
      settled = settled || (over && pl_replay_settles(recurrence, own, step.microbatch, done));
      continue;
    }
    const pl_schedule_step behind = pl_schedule_next(schedule, &cursor);
    i++;
    pl_replay_run_pair(own, &step, &behind, behind.microbatch == n_microbatches - 1);
  }
}

static void train(pl_replay *own, int32_t n_microbatches) {
  const pl_schedule schedule = schedule_of(own, n_microbatches);
  pl_replay_recurrence recurrence = {.iteration = 0};
  for (int32_t chunk = 0; chunk < own->program->strategy->vpp; chunk++)
    pl_replay_find_stays(own, chunk);
  pl_replay_take_state(own);
  for (int32_t iteration = 0; iteration < ITERATIONS && !own->failed; iteration++) {
    bool done = pl_replay_recurs(&recurrence, own, iteration);
    if (!done) run_iteration(own, &schedule, n_microbatches, &recurrence, &done);
    if (done) break;
    if (!own->failed) pl_replay_step(own, iteration == 0);
  }
}

/* With a host that is `n_ahead` ops ahead of the device. */
static pl_code replay_once(const pl_program *program, int32_t stage, double limit_bytes, int64_t n_ahead,
                           pl_arena *arena, pl_replayed_memory *memory, pl_error *error) {
  const pl_stage_program *own = &program->stages[stage];
  int32_t in_flight = pl_schedule_in_flight(&own->schedules[0]);
  int32_t most = in_flight / program->strategy->vpp + program->strategy->pp + SETTLING;
  if (pl_strategy_splits_backward(program->strategy)) most += pl_schedule_filling(program->strategy);
  if (!pl_schedule_recurs(program->strategy)) most = program->n_microbatches;
  if (most > program->n_microbatches) most = program->n_microbatches;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  pl_replay state = {.program = program,
                     .stage = own,
                     .framework = framework,
                     .arena = arena,
                     .gathered = {{.held = PL_NONE}, {.held = PL_NONE}},
                     .last_come = PL_NONE,
                     .last_reduced = PL_NONE,
                     .n_ahead = n_ahead,
                     .keeps_gathered = framework->memory.keeps_gathered,
                     .made_bytes = pl_dtype_bytes(program->job->dtype),
                     .bytes = program->training};
  pl_caching_allocator_init(&state.allocator, arena);
  state.allocator.expandable = framework->memory.allocator == PL_ALLOCATOR_EXPANDABLE;
  state.allocator.limit_bytes = limit_bytes > 0 ? llrint(limit_bytes) : 0;
  size_t n_blocks = (size_t)pl_model_n_blocks(program->model);
  state.kept = PL_TAKE(arena, pl_kept_block, (size_t)most * n_blocks);
  if (program->strategy->zero >= 3) {
    state.units = pl_arena_take_zeroed(arena, n_blocks, sizeof *state.units, _Alignof(pl_gathered_unit));
    state.stays = PL_TAKE(arena, bool, n_blocks);
  }
  if (n_ahead > 0) {
    state.waiting = pl_arena_take(arena, PL_REPLAY_WAITING * sizeof(pl_waiting_block), _Alignof(pl_waiting_block));
    state.allocator.settle = pl_replay_settle;
    state.allocator.waiting = &state;
  }
  state.failed = arena->failed;
  if (!state.failed) train(&state, most);
  *memory = (pl_replayed_memory){.peak = (double)state.peak_bytes,
                                 .reserved = (double)state.allocator.most_held_bytes,
                                 .stuck = (double)(state.occupied_bytes - state.peak_bytes),
                                 .full = state.allocator.full};
  bool failed = state.failed && !state.allocator.full;
  pl_arena_release_to(arena, mark);
  return failed ? pl_fail_memory(error, "the replay of a stage's memory") : PL_OK;
}

pl_code pl_stage_replay(const pl_program *program, int32_t stage, double limit_bytes, pl_arena *arena,
                        pl_replayed_memory *memory, pl_error *error) {
  const pl_framework *framework = pl_framework_or_ideal(program->job->framework);
  PL_TRY(replay_once(program, stage, limit_bytes, 0, arena, memory, error));
  bool ahead = framework->memory.records_streams && framework->memory.replays_ahead &&
               framework->launch.host_window != PL_HOST_KERNEL && framework->launch.collective_rank_s <= 0;
  if (!ahead || memory->full) return PL_OK;
  double peak = memory->peak; /* of tensors that somebody needs */
  PL_TRY(replay_once(program, stage, limit_bytes, (int64_t)framework->launch.ops_ahead, arena, memory, error));
  memory->peak = fmin(memory->peak, peak);
  return PL_OK;
}
