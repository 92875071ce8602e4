/* See workloads/memory/stage_peak.h. */
#include "workloads/memory/stage_peak.h"

#include <math.h>

#include "workloads/memory/stage_memory.h"

/* Of one chunk's passes, relative to what there was before. */
typedef struct chunk_memory {
  double saved, freed, forward_peak, backward_peak;
} chunk_memory;

/* Of one pass of a chunk, likewise: what it needs for a moment, and what it leaves. */
typedef struct pass_memory {
  double peak, net;
} pass_memory;

static pass_memory pass_memory_of(const pl_program *program, int32_t chunk, pl_block_pass pass) {
  const int32_t *boundary = program->strategy->boundary;
  pass_memory sum = {0, 0};
  for (int32_t i = 0; i < boundary[chunk + 1] - boundary[chunk]; i++) {
    int32_t block = pass == PL_PASS_FORWARD ? boundary[chunk] + i : boundary[chunk + 1] - 1 - i;
    const pl_block_program *own = &program->blocks[pl_model_block_class(program->model, block)];
    if (own->forward.n_ops == 0) continue;
    pl_memory_effect effect = pl_block_effect(own, pass);
    sum.peak = fmax(sum.peak, sum.net + (double)effect.peak_bytes);
    sum.net += (double)effect.net_bytes;
  }
  return sum;
}

static chunk_memory chunk_memory_of(const pl_program *program, int32_t chunk) {
  const int32_t *boundary = program->strategy->boundary;
  chunk_memory sum = {0};
  for (int32_t block = boundary[chunk]; block < boundary[chunk + 1]; block++) {
    const pl_block_program *own = &program->blocks[pl_model_block_class(program->model, block)];
    if (own->forward.n_ops > 0) {
      pl_memory_effect effect = pl_block_effect(own, PL_PASS_FORWARD);
      sum.forward_peak = fmax(sum.forward_peak, sum.saved + (double)effect.peak_bytes);
      sum.saved += (double)effect.net_bytes;
    }
  }
  double made = 0; /* gradients, until the pass is over */
  for (int32_t block = boundary[chunk + 1] - 1; block >= boundary[chunk]; block--) {
    const pl_block_program *own = &program->blocks[pl_model_block_class(program->model, block)];
    if (own->backward.n_ops == 0) continue;
    pl_memory_effect effect = pl_block_effect(own, PL_PASS_BACKWARD);
    made += (double)llrint(pl_program_made_gradient_bytes(program, block));
    sum.backward_peak = fmax(sum.backward_peak, (double)effect.peak_bytes - sum.freed + made);
    sum.freed -= (double)effect.net_bytes;
  }
  return sum;
}

/* Forward passes before the first backward pass (workloads/strategy/schedule.c), of a stage with one chunk. */
static int64_t forwards_of(const pl_strategy *strategy, int64_t total, int32_t stage) {
  int64_t ahead = strategy->pp - stage - 1;
  return strategy->schedule != PL_SCHEDULE_1F1B || ahead >= total ? total : ahead + 1;
}

/* What the passes hold when the first backward pass is due, and its own peak or that of the forward pass before it. */
static double passes_bytes(const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  chunk_memory own = chunk_memory_of(program, pl_strategy_chunk_at(strategy, stage, 0));
  double held = own.saved * (double)forwards_of(strategy, program->n_microbatches, stage);
  return fmax(held + own.backward_peak, held - own.saved + own.forward_peak);
}

/* Passes in a row that are of one chunk each way: at their ends is the most. */
typedef struct chunk_run {
  const chunk_memory *forward, *backward; /* NULL: none of these */
  int64_t n;
} chunk_run;

static void run_chunk(const chunk_run *run, double *held, double *most) {
  double gained = run->forward == NULL ? 0 : run->forward->saved,
         lost = run->backward == NULL ? 0 : run->backward->freed;
  for (int end = 0; end < 2; end++) {
    double before = *held + (end == 0 ? 0 : (double)(run->n - 1) * (gained - lost));
    if (run->backward != NULL) *most = fmax(*most, before + run->backward->backward_peak);
    if (run->forward != NULL) *most = fmax(*most, before - lost + run->forward->forward_peak);
  }
  *held += (double)run->n * (gained - lost);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* `n` forward passes from the from-th on, backward passes from the back-th on, or, in turns, both; negative: none. */
static void run_chunks(const pl_strategy *strategy, const chunk_memory *chunks, int64_t from, int64_t back, int64_t n,
                       double *held, double *most) {
  int64_t pp = strategy->pp, vpp = strategy->vpp;
  for (int64_t done = 0; done < n;) {
    chunk_run run = {.n = n - done};
    if (from >= 0) {
      run.forward = &chunks[(from + done) / pp % vpp];
      run.n = least(run.n, pp - (from + done) % pp);
    }
    if (back >= 0) {
      run.backward = &chunks[vpp - 1 - (back + done) / pp % vpp];
      run.n = least(run.n, pp - (back + done) % pp);
    }
    run_chunk(&run, held, most);
    done += run.n;
  }
}

enum { MOST_CHUNKS = 16 };

/* Of an interleaved schedule: forward passes, backward and forward ones in turns, of which whole periods but one add
 * nothing, and the rest of the backward ones (workloads/strategy/schedule.c). */
static double interleaved_bytes(const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  chunk_memory chunks[MOST_CHUNKS] = {{0}};
  for (int32_t chunk = 0; chunk < strategy->vpp; chunk++)
    chunks[chunk] = chunk_memory_of(program, pl_strategy_chunk_at(strategy, stage, chunk));
  int64_t period = (int64_t)strategy->pp * strategy->vpp, total = (int64_t)strategy->vpp * program->n_microbatches;
  int64_t first = least(2 * (strategy->pp - stage - 1) + (int64_t)(strategy->vpp - 1) * strategy->pp + 1, total);
  int64_t turns = total - first;
  if (turns > period) turns -= (turns - 1) / period * period;
  double held = 0, most = 0;
  run_chunks(strategy, chunks, 0, -1, first, &held, &most);
  run_chunks(strategy, chunks, first, 0, turns, &held, &most);
  run_chunks(strategy, chunks, -1, turns, first, &held, &most);
  return most;
}

/* As many as all, but for whole rounds of the steady state, each of which holds what the one before it held. */
static int32_t telling_microbatches(const pl_program *program) {
  const pl_strategy *strategy = program->strategy;
  int64_t round = pl_schedule_round(strategy), enough = pl_schedule_filling(strategy) + 2 * round;
  if (!pl_schedule_recurs(strategy) || program->n_microbatches <= enough) return program->n_microbatches;
  return (int32_t)(program->n_microbatches - (program->n_microbatches - enough) / round * round);
}

/* Likewise, step by step: of schedules whose highest step is not known beforehand. Of chunks beyond those that are kept
 * a pass is summed up anew each time. Of a pair that hides
 * exchanges each pass's own peak counts, what the other has given back by then taken off and what it has taken left
 * out: where in the other pass it falls depends on the exchanges. */
static double steps_bytes(const pl_program *program, int32_t stage) {
  enum { KEPT = 16 };
  const pl_strategy *strategy = program->strategy;
  const pl_schedule schedule = pl_schedule_of(strategy, telling_microbatches(program), stage);
  pass_memory kept[KEPT][PL_PASS_COUNT];
  double held = 0, most = 0;
  for (int32_t chunk = 0; chunk < strategy->vpp && chunk < KEPT; chunk++)
    for (int pass = 0; pass < PL_PASS_COUNT; pass++)
      kept[chunk][pass] = pass_memory_of(program, pl_strategy_chunk_at(strategy, stage, chunk), (pl_block_pass)pass);
  pl_schedule_cursor cursor = {0};
  double beside = -1, forward_net = 0; /* of the forward pass beside this one: its peak, negative where there is none */
  for (int64_t i = pl_schedule_n_steps(&schedule); i-- > 0;) {
    const pl_schedule_step step = pl_schedule_next(&schedule, &cursor);
    int32_t chunk = pl_strategy_chunk_at(strategy, stage, step.chunk);
    const pass_memory own =
        step.chunk < KEPT ? kept[step.chunk][step.kind] : pass_memory_of(program, chunk, (pl_block_pass)step.kind);
    if (step.joined && pl_strategy_hides_tokens(strategy)) {
      beside = held + own.peak;
      forward_net = own.net;
      continue;
    }
    most = fmax(most, held + own.peak);
    if (beside >= 0) most = fmax(most, beside + own.net);
    held += own.net + forward_net;
    beside = -1;
    forward_net = 0;
  }
  return most;
}

double pl_stage_passes_bytes(const pl_program *program, int32_t stage) {
  if (pl_strategy_pairs_passes(program->strategy)) return steps_bytes(program, stage);
  switch (program->strategy->schedule) {
  case PL_SCHEDULE_GPIPE:
  case PL_SCHEDULE_FIFO:
  case PL_SCHEDULE_1F1B:
    return passes_bytes(program, stage);
  case PL_SCHEDULE_INTERLEAVED:
    if (program->strategy->vpp <= MOST_CHUNKS) return interleaved_bytes(program, stage);
    return steps_bytes(program, stage);
  default:
    return steps_bytes(program, stage);
  }
}

double pl_stage_peak_of(const pl_program *program, int32_t stage, double passes_bytes) {
  pl_resident_memory resident = pl_resident_memory_of(program, stage);
  return pl_resident_bytes(&resident) + fmax(passes_bytes, resident.update);
}

double pl_stage_peak_bytes(const pl_program *program, int32_t stage, bool in_order) {
  return pl_stage_peak_of(program, stage, in_order ? pl_stage_passes_bytes(program, stage) : 0);
}
