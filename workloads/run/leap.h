/* How many microbatches of an iteration are played, and how many the engine leaps over (core/engine/engine.h, leaps).
 *
 * The run of many microbatches is that of few with periods put in, if the run of few shows a recurrence. How many it
 * takes to show one is not known beforehand: a pipeline has to fill and to settle first. So few are played first, and
 * twice as many each time that nothing has recurred, until all are; but first three times those that are under way at a
 * time, if that is less, and left out are whole cycles of them. A schedule of rounds is played one round more before it
 * is played twice as many. A cycle that does not go into what was left out asks
 * for that many more. Under GPipe (and FIFO) faster stages run ahead of the slower ones for as long as there are
 * forwards, so that its lanes drift apart: short attempts look whether each of them by itself is regular, longer ones
 * where that is in doubt, and only one whether the whole run recurs, for longer runs seldom show what short ones do
 * not, and doubling cost as much as playing all. Where the stages of another schedule run at clearly different paces in
 * two attempts, further ones are much longer, and made only if they are a small share of all.
 */
#ifndef PL_WORKLOADS_LEAP_H
#define PL_WORKLOADS_LEAP_H

#include "core/engine/engine.h"
#include "workloads/program/program.h"

/* The attempt of a round more. */
typedef enum pl_round_more { PL_ROUND_TO_COME = 0, PL_ROUND_NOW, PL_ROUND_BEFORE } pl_round_more;

typedef struct pl_leap_search {
  bool drifts; /* of this attempt: lanes may drift apart (core/engine/engine.h) */
  bool once;   /* no second attempt but the whole */
  bool lagged; /* in the attempt before lanes were far from one pace */
  pl_round_more round_more;
  bool patient;     /* such lanes were given longer */
  int32_t fewest;   /* microbatches of the replica that has least */
  int32_t round;    /* microbatches of a period of the schedule */
  int32_t cycle;    /* microbatches after which the run may recur where it does not after a round; 0: not known */
  int32_t settling; /* microbatches in which a pipeline fills and settles */
  int32_t played;   /* of that replica in this attempt */
  int32_t leapt;    /* of every replica; 0: all are played, and that is the last attempt */
} pl_leap_search;

/* What lists of steps say beforehand. */
typedef struct pl_leap_outlook {
  bool recurs;     /* there are such lists of fewer microbatches, with phases */
  bool by_halves;  /* all forwards come first */
  int32_t fewest;  /* microbatches of the replica that has least */
  int32_t round;   /* microbatches of a period */
  int32_t filling; /* microbatches that have to be there before it recurs */
  int32_t cycle;   /* microbatches that are under way at a time: a pipeline whose pace is that of a microbatch's way
                      through it and back, and not that of one stage, recurs after as many; 0: not known */
  int32_t carried; /* of these, those of a region's periods that do not count yet */
} pl_leap_outlook;

/* The first attempt; `leaps` false: all are played. */
pl_leap_search pl_leap_search_of(const pl_leap_outlook *outlook, bool leaps);
/* The same for the schedules of a strategy's program. */
pl_leap_search pl_leap_search_begin(const pl_program *program, bool leaps);
/* Microbatches of every replica that the graph of all needs not be made with, for it is rolled
 * (core/graph/graph_roll.h).
 */
int32_t pl_leap_search_rolled(const pl_program *program);
/* The first attempt where the pace is that of a microbatch's way, and no attempt without a whole cycle is worth it. */
void pl_leap_search_by_cycle(pl_leap_search *search);
/* The next one, after a run that was not whole. */
void pl_leap_search_go_on(pl_leap_search *search, const pl_engine_result *result);

#endif
