/* See core/engine/engine_fork_rolled.h. */
#include "core/engine/engine_fork_rolled.h"

#include <string.h>

/* ---- keeping ---- */

static void keep_dates(const pl_engine *engine, pl_dates *kept) {
  pl_arena *arena = engine->arena;
  kept->pages = pl_arena_copy(arena, kept->pages, kept->n_pages * sizeof(pl_dates_page *), PL_KEPT_ALIGN);
  kept->sums = pl_arena_copy(arena, kept->sums, pl_graph_n_rows(engine->graph) * sizeof *kept->sums, PL_KEPT_ALIGN);
  for (uint32_t at = 0; at < kept->n_open && !arena->failed; at++)
    kept->pages[kept->open[at]->number] = pl_arena_copy(arena, kept->open[at], sizeof(pl_dates_page), PL_KEPT_ALIGN);
  kept->open = kept->spare = NULL;
}

static void keep_account(const pl_engine *engine, pl_running_account *kept) {
  pl_arena *arena = engine->arena;
  pl_account *account = &kept->account;
  size_t n_devices = engine->graph->n_devices, n_streams = engine->graph->n_streams;
  account->engine = NULL;
  account->graph = NULL;
  account->last = pl_arena_copy(arena, account->last, n_devices * sizeof *account->last, PL_KEPT_ALIGN);
  account->spent =
      pl_arena_copy(arena, account->spent, n_devices * PL_CATEGORY_COUNT * sizeof *account->spent, PL_KEPT_ALIGN);
  account->idle = pl_arena_copy(arena, account->idle, n_devices * sizeof *account->idle, PL_KEPT_ALIGN);
  kept->until = pl_arena_copy(arena, kept->until, n_devices * sizeof *kept->until, PL_KEPT_ALIGN);
  account->streams = pl_arena_copy(arena, account->streams, n_devices * sizeof *account->streams, PL_KEPT_ALIGN);
  account->runs = pl_arena_copy(arena, account->runs, n_streams * sizeof *account->runs, PL_KEPT_ALIGN);
  for (size_t stream = 0; stream < n_streams && !arena->failed; stream++) {
    pl_account_run *run = &account->runs[stream];
    size_t n = (size_t)(run->end - run->first);
    run->all = run->first = pl_arena_copy(arena, run->first, n * sizeof *run->first, PL_KEPT_ALIGN);
    run->end = run->first + n;
  }
  kept->ended = pl_arena_copy(arena, kept->ended, kept->n_ended * sizeof *kept->ended, PL_KEPT_ALIGN);
  kept->charges.charges =
      pl_arena_copy(arena, kept->charges.charges, kept->charges.n * sizeof *kept->charges.charges, PL_KEPT_ALIGN);
}

pl_rolled_kept *pl_rolled_keep(const pl_engine *engine, const pl_graph *graph) {
  pl_rolled_kept *kept = PL_TAKE(engine->arena, pl_rolled_kept, 1);
  if (kept == NULL) return NULL;
  kept->dates = *engine->dates;
  kept->spent = *engine->spent;
  keep_dates(engine, &kept->dates);
  keep_account(engine, &kept->spent);
  kept->dates.graph = graph;
  return engine->arena->failed ? NULL : kept;
}

/* ---- moving ---- */

typedef struct moving {
  pl_engine *engine;
  const pl_rolled_kept *kept;
  const pl_graph_heads *from, *to;
} moving;

static uint32_t moved(const moving *own, uint32_t task) {
  return pl_graph_heads_moved(own->kept->dates.graph, own->from, own->to, task);
}

/* What the page of `task` was to the run; NULL: nobody had touched it. */
static const pl_dates_page *page_of(const moving *own, uint32_t task) {
  return own->kept->dates.pages[task / PL_DATES_PAGE];
}

/* One task of a page that is there. */
static void move_dated(const moving *own, uint32_t from, uint32_t to) {
  pl_dates *dates = own->engine->dates;
  const pl_dates_page *page = page_of(own, from);
  if (page == NULL) return;
  pl_dated *dated = pl_dates_at(dates, to);
  if (page == own->kept->dates.gone) {
    dated->start = dated->finish = 0; /* whenever it was */
  } else {
    const pl_dated *kept = &page->dated[from % PL_DATES_PAGE];
    dated->start = kept->start;
    dated->finish = kept->finish;
    dated->last = moved(own, kept->last);
  }
  if (dated->finish >= 0 && dated->finish != PL_TICKS_NEVER) dates->pages[to / PL_DATES_PAGE]->n_open--;
}

/* The tasks [first, first + n) of a head, which are of one page. */
static void move_stretch(const moving *own, uint32_t from, uint32_t to, uint32_t n) {
  pl_dates *dates = own->engine->dates;
  const pl_dates_page *first = page_of(own, from), *last = page_of(own, from + n - 1);
  bool whole = to % PL_DATES_PAGE == 0 && n == PL_DATES_PAGE;
  if (first == NULL && last == NULL) return;
  if (whole && first == own->kept->dates.gone && last == first) {
    dates->pages[to / PL_DATES_PAGE] = dates->gone;
    return;
  }
  if (dates->pages[to / PL_DATES_PAGE] == NULL && pl_dates_open(dates, to / PL_DATES_PAGE) == NULL) return;
  for (uint32_t at = 0; at < n; at++)
    move_dated(own, from + at, to + at);
}

static void move_dates(const moving *own) {
  for (uint32_t lane = 0; lane < own->to->n_lanes; lane++) {
    uint32_t from = own->from->lanes[lane].first, to = own->to->lanes[lane].first, end = own->to->lanes[lane].end;
    for (uint32_t n; to < end && !own->engine->arena->failed; from += n, to += n) {
      n = PL_DATES_PAGE - to % PL_DATES_PAGE;
      if (n > end - to) n = end - to;
      move_stretch(own, from, to, n);
    }
  }
}

static void move_sums(const moving *own) {
  for (uint32_t lane = 0; lane < own->to->n_lanes; lane++) {
    const pl_lane_head *from = &own->from->lanes[lane], *to = &own->to->lanes[lane];
    for (uint32_t row = 0; row < to->end_row - to->first_row; row++) {
      pl_row_sums *sums = &own->engine->dates->sums[to->first_row + row];
      *sums = own->kept->dates.sums[from->first_row + row];
      sums->summand += 2 * sums->hash * (uint64_t)((int64_t)to->first - (int64_t)from->first);
    }
  }
}

static void move_charges(const moving *own) {
  const pl_charges *kept = &own->kept->spent.charges;
  pl_charges *charges = &own->engine->spent->charges;
  pl_arena *arena = own->engine->arena;
  if (kept->n == 0) return;
  pl_charge *entries = pl_arena_grown(arena, NULL, 0, kept->n, sizeof *entries, &charges->capacity);
  uint32_t *next = pl_arena_grown(arena, NULL, 0, kept->n, sizeof *next, &charges->next_capacity);
  if (entries == NULL || next == NULL) return;
  charges->charges = entries;
  charges->next = next;
  for (uint32_t at = 0; at < kept->n; at++) {
    entries[at] = kept->charges[at];
    entries[at].task = moved(own, entries[at].task);
    uint32_t *first = &charges->of_row[pl_graph_row(own->engine->graph, entries[at].task)];
    next[at] = *first;
    *first = at + 1;
  }
  charges->n = kept->n;
}

/* Streams need not have the same numbers: by device and kind. */
static void move_runs(const moving *own, uint32_t device) {
  const pl_account *kept = &own->kept->spent.account;
  for (uint32_t kind = 0; kind < PL_STREAM_KIND_COUNT; kind++) {
    uint32_t there = kept->streams[device][kind], here = own->engine->spent->account.streams[device][kind];
    if (there == PL_NONE) continue;
    for (const uint32_t *at = kept->runs[there].first; at < kept->runs[there].end; at++)
      pl_running_append(own->engine->spent, here, moved(own, *at));
  }
}

static void move_account(const moving *own) {
  const pl_running_account *kept = &own->kept->spent;
  pl_running_account *spent = own->engine->spent;
  pl_account *account = &spent->account;
  pl_arena *arena = own->engine->arena;
  size_t n_devices = own->engine->graph->n_devices;
  memcpy(account->spent, kept->account.spent, n_devices * PL_CATEGORY_COUNT * sizeof *account->spent);
  memcpy(account->idle, kept->account.idle, n_devices * sizeof *account->idle);
  memcpy(spent->until, kept->until, n_devices * sizeof *spent->until);
  for (uint32_t device = 0; device < n_devices; device++) {
    account->last[device] = moved(own, kept->account.last[device]);
    move_runs(own, device);
  }
  spent->ended = pl_arena_grown(arena, NULL, 0, kept->n_ended + 1, sizeof *spent->ended, &spent->ended_room);
  for (; spent->ended != NULL && spent->n_ended < kept->n_ended; spent->n_ended++)
    spent->ended[spent->n_ended] =
        (pl_ended){.task = moved(own, kept->ended[spent->n_ended].task), .device = kept->ended[spent->n_ended].device};
  move_charges(own);
}

void pl_rolled_move(pl_engine *engine, const pl_rolled_kept *kept, const pl_graph_heads *from,
                    const pl_graph_heads *to) {
  const moving own = {.engine = engine, .kept = kept, .from = from, .to = to};
  move_dates(&own);
  if (engine->arena->failed) return;
  move_sums(&own);
  move_account(&own);
}
