/* Dates of the tasks of rolled graphs, as long as somebody looks at them. Part of the engine's own state.
 *
 * A rolled graph (core/graph/graph_roll.h) may have tens of millions of tasks, of which some thousands are under way or
 * waited for at a time. So dates are kept in pages of consecutive tasks. A page is opened when the first of its tasks
 * is touched, which is when something that it waits for has finished; and once all of them have finished and what was
 * waited for last leads to none of them any more, it is forgotten and used again. Tasks of a list run more or less in
 * the order of their numbers, hence what is open is as much as lists are apart.
 *
 *     tasks of three lists   ####......|####......|####......     # forgotten, + open, . nobody has touched
 *     a while later          #####++...|####+++...|####++....
 *
 * What can be looked at: open tasks; what each of them waited for last, and, where that is a communication, what that
 * waited for, and so on, as far as accounts go back (core/engine/engine_spent.c); and what accounts themselves keep. A
 * sweep marks these pages and forgets the others. It comes when twice as many are there as the last one has left.
 */
#ifndef PL_CORE_ENGINE_DATES_H
#define PL_CORE_ENGINE_DATES_H

#include "core/base/digest.h"
#include "core/engine/engine.h"
#include "core/graph/graph.h"

/* `finish` of a task that waits is minus the number of tasks that it waits for, that of one that runs PL_TICKS_NEVER;
 * `start` holds once it has started. `last` is the predecessor that finished last so far, of several at one tick the
 * one that explains best (engine.c). */
typedef struct pl_dated {
  pl_ticks start, finish;
  uint32_t last, row;
} pl_dated;

enum { PL_DATES_PAGE = 128 };

typedef struct pl_dates_page {
  pl_dated dated[PL_DATES_PAGE];
  uint32_t number; /* of its first task, divided by PL_DATES_PAGE */
  uint32_t n_open; /* tasks that have not finished */
  bool is_marked;
} pl_dates_page;

typedef struct pl_dates {
  const pl_graph *graph;
  pl_arena *arena;
  pl_dates_page **pages; /* per PL_DATES_PAGE tasks; NULL: nobody has touched them; `gone`: forgotten */
  uint32_t n_pages;
  pl_dates_page *gone;
  pl_dates_page **open, **spare; /* pages that are there, in no order, and that are free */
  uint32_t n_open, n_spare;
  uint32_t n_room; /* of `open` and `spare` */
  uint32_t sweep_at;
  bool sweeps_always;
  uint32_t n_most;   /* open at a time so far */
  pl_row_sums *sums; /* per row */
} pl_dates;

/* `sweeps_always`: whenever it can. NULL: no memory. */
pl_dates *pl_dates_take(const pl_graph *graph, bool sweeps_always, pl_arena *arena);

/* Of a page that is open. */
static inline pl_dated *pl_dates_at(const pl_dates *dates, uint32_t task) {
  return &dates->pages[task / PL_DATES_PAGE]->dated[task % PL_DATES_PAGE];
}

static inline bool pl_dates_is_open(const pl_dates *dates, uint32_t task) {
  const pl_dates_page *page = dates->pages[task / PL_DATES_PAGE];
  return page != NULL && page != dates->gone;
}

/* Opens a page, in which nothing is touched. NULL: no memory. */
pl_dates_page *pl_dates_open(pl_dates *dates, uint32_t number);

/* Of any task that has not finished; NULL: no memory. */
static inline pl_dated *pl_dates_touch(pl_dates *dates, uint32_t task) {
  pl_dates_page *page = dates->pages[task / PL_DATES_PAGE];
  if (page == NULL && (page = pl_dates_open(dates, task / PL_DATES_PAGE)) == NULL) return NULL;
  return &page->dated[task % PL_DATES_PAGE];
}

static inline void pl_dates_finish(pl_dates *dates, uint32_t task, pl_dated *dated, pl_ticks now) {
  dated->finish = now;
  dates->pages[task / PL_DATES_PAGE]->n_open--;
  pl_row_sums *sums = &dates->sums[dated->row];
  uint64_t hash = pl_hash_pair(dated->start, now);
  sums->start += (uint64_t)dated->start;
  sums->finish += (uint64_t)now;
  sums->hash += hash;
  sums->summand += pl_digest_summand(task, hash);
  sums->n++;
}

/* How many a task waits for. */
uint32_t pl_dates_pending(const pl_dates *dates, uint32_t task);

static inline bool pl_dates_are_many(const pl_dates *dates) {
  return dates->n_open > dates->sweep_at;
}

/* A sweep: begin, mark what accounts keep, end. */
void pl_dates_begin_sweep(pl_dates *dates);
static inline void pl_dates_mark(pl_dates *dates, uint32_t task) {
  dates->pages[task / PL_DATES_PAGE]->is_marked = true;
}
/* Also what `task` waited for last, and so on as long as these are communications that began after `since`. */
void pl_dates_mark_causes(pl_dates *dates, uint32_t task, pl_ticks since);
void pl_dates_end_sweep(pl_dates *dates);

#endif
