/* See core/engine/engine_dates.h. */
#include "core/engine/engine_dates.h"

#include <string.h>

/* Some 200 KiB. */
enum { FEWEST_SWEPT = 64, FIRST_ROOM = 64 };

pl_dates *pl_dates_take(const pl_graph *graph, bool sweeps_always, pl_arena *arena) {
  pl_dates *dates = PL_TAKE(arena, pl_dates, 1);
  if (dates == NULL) return NULL;
  dates->graph = graph;
  dates->arena = arena;
  dates->n_pages = graph->n_tasks / PL_DATES_PAGE + 1;
  dates->pages = PL_TAKE(arena, pl_dates_page *, dates->n_pages);
  dates->gone = PL_TAKE(arena, pl_dates_page, 1);
  dates->sums = PL_TAKE(arena, pl_row_sums, pl_graph_n_rows(graph));
  dates->sweeps_always = sweeps_always;
  dates->sweep_at = sweeps_always ? 0 : FEWEST_SWEPT;
  return dates->pages == NULL || dates->gone == NULL || dates->sums == NULL ? NULL : dates;
}

/* ---- pages ---- */

static bool make_room(pl_dates *dates) {
  if (dates->n_open < dates->n_room) return true;
  uint32_t n_room = dates->n_room == 0 ? FIRST_ROOM : 2 * dates->n_room;
  pl_dates_page **open = pl_arena_take(dates->arena, n_room * sizeof *open, _Alignof(pl_dates_page *));
  pl_dates_page **spare = pl_arena_take(dates->arena, n_room * sizeof *spare, _Alignof(pl_dates_page *));
  if (open == NULL || spare == NULL) return false;
  if (dates->n_open > 0) memcpy(open, dates->open, dates->n_open * sizeof *open);
  if (dates->n_spare > 0) memcpy(spare, dates->spare, dates->n_spare * sizeof *spare);
  dates->open = open;
  dates->spare = spare;
  dates->n_room = n_room;
  return true;
}

static void fill(const pl_dates *dates, pl_dates_page *page) {
  const pl_graph *graph = dates->graph;
  uint32_t first = page->number * PL_DATES_PAGE, left = graph->n_tasks - first;
  page->n_open = left < PL_DATES_PAGE ? left : PL_DATES_PAGE;
  uint32_t rows[PL_DATES_PAGE];
  pl_graph_rolled_rows(&graph->roll, first, page->n_open, rows);
  for (uint32_t at = 0; at < page->n_open; at++) {
    uint32_t pending = graph->n_predecessors[rows[at]];
    page->dated[at] =
        (pl_dated){.finish = pending > 0 ? -(pl_ticks)pending : PL_TICKS_NEVER, .last = PL_NONE, .row = rows[at]};
  }
}

pl_dates_page *pl_dates_open(pl_dates *dates, uint32_t number) {
  if (!make_room(dates)) return NULL;
  pl_dates_page *page =
      dates->n_spare > 0 ? dates->spare[--dates->n_spare] : pl_arena_take(dates->arena, sizeof *page, 64);
  if (page == NULL) return NULL;
  page->number = number;
  page->is_marked = false;
  fill(dates, page);
  dates->pages[number] = page;
  dates->open[dates->n_open++] = page;
  if (dates->n_open > dates->n_most) dates->n_most = dates->n_open;
  return page;
}

uint32_t pl_dates_pending(const pl_dates *dates, uint32_t task) {
  const pl_dates_page *page = dates->pages[task / PL_DATES_PAGE];
  if (page == NULL) return pl_graph_n_predecessors(dates->graph, task);
  if (page == dates->gone || page->dated[task % PL_DATES_PAGE].finish >= 0) return 0;
  return (uint32_t)-page->dated[task % PL_DATES_PAGE].finish;
}

/* ---- sweeps ---- */

void pl_dates_begin_sweep(pl_dates *dates) {
  for (uint32_t at = 0; at < dates->n_open; at++)
    dates->open[at]->is_marked = dates->open[at]->n_open > 0;
}

void pl_dates_mark_causes(pl_dates *dates, uint32_t task, pl_ticks since) {
  uint32_t cause = pl_dates_at(dates, task)->last;
  while (cause != PL_NONE && pl_dates_is_open(dates, cause)) {
    pl_dates_mark(dates, cause);
    const pl_dated *dated = pl_dates_at(dates, cause);
    if (dated->start <= since || dates->graph->tasks[dated->row].kind == PL_TASK_WORK) return;
    cause = dated->last;
  }
}

void pl_dates_end_sweep(pl_dates *dates) {
  uint32_t n_kept = 0;
  for (uint32_t at = 0; at < dates->n_open; at++) {
    pl_dates_page *page = dates->open[at];
    if (page->is_marked) {
      dates->open[n_kept++] = page;
      continue;
    }
    dates->pages[page->number] = dates->gone;
    dates->spare[dates->n_spare++] = page;
  }
  dates->n_open = n_kept;
  if (!dates->sweeps_always) dates->sweep_at = n_kept < FEWEST_SWEPT / 2 ? FEWEST_SWEPT : 2 * n_kept;
}
