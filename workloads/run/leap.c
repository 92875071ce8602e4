/* See workloads/run/leap.h. */
#include "workloads/run/leap.h"

#include "core/base/multiple.h"

/* Of 1,800 strategies of GPT-3 175B on 128 A100 (pp 4 to 16) the first attempt is enough for all 1F1B ones with pp + 3
 * microbatches and more, and for all interleaved ones but 8 with 3 pp + 2 and more; with 3 pp it is for none of those.
 */
enum { FIRST_SETTLING = 2 };

/* GPipe: periods of a region, one behind it and what the first backward takes, and as many to settle as that; then
 * twice as many. */
enum { FIRST_DRIFTING = 6, LAST_DRIFTING = 12 };

/* Share of a period by which lanes may lag and still be tried with more microbatches twice. Of 1,200 strategies of
 * GPT-3 175B with 64 stages on 128 and 1,024 A100 hardly one that lagged more in the second attempt leapt at all. */
static const double LARGE_LAG = 1e-3;

/* Lanes that lag come to one pace once those in between are full, which takes hundreds of microbatches and is worth
 * while if there are many times as many. Of 24 strategies of GPT-3 175B with 64 uneven stages on 1,024 A100 that lagged
 * in the second attempt, of 136 microbatches, none leaps with 272, 11 do with 544, 5 more with 1,088, and 3 with 4,352.
 */
enum { FIRST_PATIENCE = 4, LONGEST_SHARE = 6 /* of all: an attempt in vain costs no more */ };

/* Microbatches times those that fill the pipeline: some 140,000 tasks of 64 stages with one replica, and 20 MiB. What
 * takes more is played whole, which takes less memory, however long it is. */
enum { LARGEST_ATTEMPT = 40000 };

/* Keeps `played`, and leaves out whole cycles. Not worth it where most is played: the last attempt takes all. */
static void choose_by(pl_leap_search *search, int64_t played, int32_t cycle) {
  int64_t leapt = (search->fewest - played) / cycle * cycle;
  search->leapt = leapt > search->fewest / 4 ? (int32_t)leapt : 0;
  search->played = search->fewest - search->leapt;
}

static void choose(pl_leap_search *search, int64_t played) {
  choose_by(search, played, search->round);
}

static int32_t fewest_microbatches(const pl_program *program) {
  int32_t fewest = program->n_microbatches;
  for (int32_t i = 0; i < program->n_schedules; i++)
    if (program->stages[0].schedules[i].n_microbatches < fewest)
      fewest = program->stages[0].schedules[i].n_microbatches;
  return fewest;
}

static int64_t settled(const pl_leap_search *search) {
  return search->settling + 2 * (int64_t)search->round;
}

pl_leap_search pl_leap_search_of(const pl_leap_outlook *outlook, bool leaps) {
  pl_leap_search search = {.fewest = outlook->fewest,
                           .drifts = outlook->by_halves,
                           .settling = outlook->filling + FIRST_SETTLING,
                           .round = outlook->round,
                           .cycle = outlook->cycle};
  int64_t first = search.drifts ? FIRST_DRIFTING + outlook->carried : settled(&search);
  choose(&search, leaps && outlook->recurs ? first : search.fewest);
  return search;
}

pl_leap_search pl_leap_search_begin(const pl_program *program, bool leaps) {
  const pl_strategy *strategy = program->strategy;
  const pl_leap_outlook outlook = {.recurs = pl_schedule_recurs(strategy),
                                   .by_halves = strategy->schedule == PL_SCHEDULE_GPIPE ||
                                                strategy->schedule == PL_SCHEDULE_FIFO,
                                   .fewest = fewest_microbatches(program),
                                   .round = pl_schedule_round(strategy),
                                   .filling = pl_schedule_filling(strategy)};
  return pl_leap_search_of(&outlook, leaps);
}

/* A phase shows its periods sooner than a run its recurrence, but needs two more of them. */
int32_t pl_leap_search_rolled(const pl_program *program) {
  pl_leap_search search = pl_leap_search_begin(program, true);
  if (search.leapt > 0 && !search.drifts) choose(&search, settled(&search) + 2 * (int64_t)search.round);
  return search.leapt;
}

/* Microbatches that a further attempt with drifting lanes takes; 0: it is not worth one. With GPT-3 175B and 64 stages
 * on 1,024 A100, 160 of 200 strategies whose order 6 microbatches did not show were extended when as many as fill the
 * pipeline were played, and most of the rest with twice as many. */
static int64_t next_drifting(const pl_leap_search *search, pl_drift_doubt doubt) {
  int64_t played = search->played;
  if (doubt == PL_DRIFT_UNORDERED && played >= settled(search)) return 2 * played;
  if (doubt == PL_DRIFT_UNORDERED && settled(search) > LAST_DRIFTING) return settled(search);
  if (played < LAST_DRIFTING) return LAST_DRIFTING;
  return doubt == PL_DRIFT_IRREGULAR && played < settled(search) ? settled(search) : 0;
}

/* Longer if that promises something, then by the state of the whole run, then all. */
static void go_on_from_drifting(pl_leap_search *search, pl_drift_doubt doubt) {
  int64_t longer = next_drifting(search, doubt);
  search->drifts = longer > 0;
  search->once = true;
  choose(search, longer > 0 ? longer : settled(search));
}

/* Lanes that drift apart as fast as that do so until the ones in between are full, or empty: too long to wait for. */
static bool drifts_for_long(pl_leap_search *search, const pl_engine_result *result) {
  bool drifted = search->lagged;
  if (search->round_more == PL_ROUND_NOW) return result->runs_apart;
  search->lagged = result->lag > LARGE_LAG;
  return result->runs_apart || (drifted && search->lagged);
}

/* Of 134 interleaved strategies of GPT-3 175B on 128 A100 whose first attempt showed nothing, 113 show a recurrence
 * with one round more, and 21 with twice as many microbatches, as do all of 32 stages on 1,024: two thirds of the
 * tasks, and of the memory, which is the largest of all attempts. */
static bool play_a_round_more(pl_leap_search *search) {
  if (search->round == 1 || search->cycle > search->round) return false;
  if (search->round_more == PL_ROUND_TO_COME) {
    search->round_more = PL_ROUND_NOW;
    choose(search, search->played + (int64_t)search->round);
    return true;
  }
  if (search->round_more == PL_ROUND_NOW) search->played -= search->round;
  search->round_more = PL_ROUND_BEFORE;
  return false;
}

/* Nothing recurred, and no cycle is known. With GPT-3 175B over 8 stages of 2 x 8 A100, 24 microbatches show a cycle of
 * 8 that 13 did not; twice as many would, but do not leave out whole ones. */
static void play_longer(pl_leap_search *search) {
  if (play_a_round_more(search)) return;
  int64_t played = 2 * (int64_t)search->played, shows = 3 * (int64_t)search->cycle;
  if (shows < 3 * played / 4) shows = 3 * played / 4;
  if (search->cycle <= search->round) {
    choose(search, played);
  } else {
    choose_by(search, shows < played ? shows : played, search->cycle);
  }
}

/* Lanes lag. */
static void play_much_longer(pl_leap_search *search) {
  int64_t played = (search->patient ? 2 : FIRST_PATIENCE) * (int64_t)search->played;
  search->patient = true;
  choose_by(search, played > search->fewest / LONGEST_SHARE ? search->fewest : played,
            search->cycle > search->round ? search->cycle : search->round);
}

/* One cycle to settle and one that comes back: GPT-3 175B over 4, 8 and 16 stages shows its own with 12, 24 and 48
 * microbatches, and with none fewer. */
void pl_leap_search_by_cycle(pl_leap_search *search) {
  int64_t filling = search->settling - FIRST_SETTLING;
  choose_by(search, filling + 2 * (int64_t)search->cycle + search->round, search->cycle);
}

void pl_leap_search_go_on(pl_leap_search *search, const pl_engine_result *result) {
  uint64_t cycle = 1;
  bool recurs = result->n_phases > 0;
  if (search->drifts) {
    go_on_from_drifting(search, result->doubt);
    return;
  }
  for (int phase = 0; phase < result->n_phases; phase++) {
    recurs &= result->distance[phase] > 0;
    if (recurs) cycle = pl_common_multiple(cycle, result->distance[phase]);
  }
  uint64_t too_many = recurs ? (uint64_t)(search->leapt / search->round) % cycle : 0;
  if (too_many > 0) {
    choose(search, search->played + (int64_t)too_many * search->round);
  } else {
    bool too_long = drifts_for_long(search, result);
    if (search->once)
      choose(search, search->fewest);
    else if (too_long)
      play_much_longer(search);
    else
      play_longer(search);
    if ((int64_t)search->played * search->settling > LARGEST_ATTEMPT) choose(search, search->fewest);
  }
}
