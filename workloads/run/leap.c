/* See workloads/run/leap.h. */
#include "workloads/run/leap.h"

/* Of 1,800 strategies of GPT-3 175B on 128 A100 (pp 4 to 16) the first attempt is enough for all 1F1B ones with pp + 3
 * microbatches and more, and for all interleaved ones but 8 with 3 pp + 2 and more; with 3 pp it is for none of those.
 */
enum { FIRST_SETTLING = 2 };

/* GPipe: periods of a region, one behind it and what the first backward takes, and as many to settle as that; then
 * twice as many. */
enum { FIRST_DRIFTING = 6, LAST_DRIFTING = 12 };

/* Keeps `played`, and leaves out whole periods. Not worth it where most is played: the last attempt takes all. */
static void choose(pl_leap_search *search, int64_t played) {
  int64_t leapt = (search->fewest - played) / search->round * search->round;
  search->leapt = leapt > search->fewest / 4 ? (int32_t)leapt : 0;
  search->played = search->fewest - search->leapt;
}

static int32_t fewest_microbatches(const pl_program *program) {
  int32_t fewest = program->n_microbatches;
  for (int32_t i = 0; i < program->n_schedules; i++)
    if (program->stages[0].schedules[i].n_microbatches < fewest)
      fewest = program->stages[0].schedules[i].n_microbatches;
  return fewest;
}

pl_leap_search pl_leap_search_begin(const pl_program *program, bool leaps) {
  const pl_strategy *strategy = program->strategy;
  pl_leap_search search = {.fewest = fewest_microbatches(program),
                           .drifts = strategy->schedule == PL_SCHEDULE_GPIPE || strategy->schedule == PL_SCHEDULE_FIFO,
                           .settling = pl_schedule_filling(strategy) + FIRST_SETTLING,
                           .round = pl_schedule_round(strategy)};
  int64_t first = search.drifts ? FIRST_DRIFTING : search.settling + 2 * (int64_t)search.round;
  choose(&search, leaps && pl_schedule_recurs(strategy) ? first : search.fewest);
  return search;
}

static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t divisor = a, rest = b;
  while (rest != 0) {
    uint64_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  return a / divisor * b;
}

/* Longer once, then by the state of the whole run, then all. */
static void go_on_from_drifting(pl_leap_search *search) {
  if (search->played < LAST_DRIFTING) {
    choose(search, LAST_DRIFTING);
  } else {
    search->drifts = false;
    search->once = true;
    choose(search, search->settling + 2 * (int64_t)search->round);
  }
}

void pl_leap_search_go_on(pl_leap_search *search, const pl_engine_result *result) {
  uint64_t cycle = 1;
  bool recurs = result->n_phases > 0;
  if (search->drifts) {
    go_on_from_drifting(search);
    return;
  }
  for (int phase = 0; phase < result->n_phases; phase++) {
    recurs &= result->distance[phase] > 0;
    if (recurs) cycle = common_multiple(cycle, result->distance[phase]);
  }
  uint64_t too_many = recurs ? (uint64_t)(search->leapt / search->round) % cycle : 0;
  if (too_many > 0) {
    choose(search, search->played + (int64_t)too_many * search->round);
  } else {
    choose(search, search->once || result->runs_apart ? search->fewest : 2 * (int64_t)search->played);
  }
}
