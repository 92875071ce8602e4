/* See search/method/placement_descent.h. */
#include "search/method/placement_descent.h"

#include <math.h>
#include <string.h>

#include "core/base/split_mix.h"

enum { RANDOM_STARTS = 8 };

void pl_best_tables_rank(pl_best_tables *best, pl_placement_table table, double estimate_s) {
  if (!(estimate_s < (double)INFINITY)) return;
  for (uint32_t i = 0; i < best->n; i++)
    if (memcmp(best->best[i].table.cells, table.cells, best->cells * sizeof *table.cells) == 0) return;
  uint32_t at = best->n < PL_TABLES_KEPT ? best->n++ : PL_TABLES_KEPT;
  for (; at > 0 && estimate_s < best->best[at - 1].estimate_s; at--)
    if (at < PL_TABLES_KEPT) best->best[at] = best->best[at - 1];
  if (at < PL_TABLES_KEPT) best->best[at] = (pl_ranked_table){table, estimate_s};
}

/* ---- moves ---- */

typedef struct move {
  uint32_t a, b, p, q; /* stages, pools */
} move;

static uint16_t *row_of(const pl_table_descent *own, uint16_t *cells, uint32_t stage) {
  return &cells[(size_t)stage * own->pools->n_pools];
}

static uint16_t held(const pl_table_descent *own, pl_placement_table table, uint32_t stage, uint32_t pool) {
  return table.cells[(size_t)stage * own->pools->n_pools + pool];
}

static void exchange_rows(const pl_table_descent *own, uint16_t *cells, uint32_t a, uint32_t b) {
  uint16_t *x = row_of(own, cells, a), *y = row_of(own, cells, b);
  for (uint32_t p = 0; p < own->pools->n_pools; p++) {
    uint16_t of_x = x[p];
    x[p] = y[p];
    y[p] = of_x;
  }
}

/* Stages a and b exchange all that they hold. */
static bool may_exchange_stages(const pl_table_descent *own, pl_placement_table table, move m) {
  for (uint32_t p = 0; m.a < m.b && p < own->pools->n_pools; p++)
    if (held(own, table, m.a, p) != held(own, table, m.b, p)) return true;
  return false;
}

static void exchange_stages(const pl_table_descent *own, move m, uint16_t *cells) {
  exchange_rows(own, cells, m.a, m.b);
}

/* What stage a holds goes to place b; next to each other that is an exchange. */
static bool may_insert_stage(const pl_table_descent *own, pl_placement_table table, move m) {
  (void)own;
  (void)table;
  return m.a < m.b ? m.b - m.a > 1 : m.a - m.b > 1;
}

static void insert_stage(const pl_table_descent *own, move m, uint16_t *cells) {
  for (uint32_t at = m.a; at < m.b; at++)
    exchange_rows(own, cells, at, at + 1);
  for (uint32_t at = m.a; at > m.b; at--)
    exchange_rows(own, cells, at, at - 1);
}

static bool has_room(const pl_table_descent *own, pl_placement_table table, uint32_t pool) {
  uint32_t used = 0;
  for (uint32_t stage = 0; stage < own->n_stages; stage++)
    used += held(own, table, stage, pool);
  return used < own->pools->pools[pool].n / own->cell_devices;
}

/* A cell of stage a goes from pool p to q, which has room for it (b is a) or gets it from stage b. */
static bool may_exchange_cells(const pl_table_descent *own, pl_placement_table table, move m) {
  if (m.p == m.q || m.b < m.a || held(own, table, m.a, m.p) == 0) return false;
  return m.b == m.a ? has_room(own, table, m.q) : held(own, table, m.b, m.q) > 0;
}

static void exchange_cells(const pl_table_descent *own, move m, uint16_t *cells) {
  row_of(own, cells, m.a)[m.p]--;
  row_of(own, cells, m.a)[m.q]++;
  if (m.b == m.a) return;
  row_of(own, cells, m.b)[m.q]--;
  row_of(own, cells, m.b)[m.p]++;
}

static const struct {
  bool (*may)(const pl_table_descent *own, pl_placement_table table, move m);
  void (*make)(const pl_table_descent *own, move m, uint16_t *cells);
  bool of_pools; /* p and q count */
} moves[] = {{may_exchange_stages, exchange_stages, false},
             {may_insert_stage, insert_stage, false},
             {may_exchange_cells, exchange_cells, true}};

enum { N_MOVES = sizeof moves / sizeof *moves };

/* ---- downhill ---- */

/* *at: the moved table, in the arena, if it gains. */
static pl_code try_move(pl_table_descent *own, int kind, move m, pl_ranked_table *at, bool *gains, pl_error *error) {
  size_t size = (size_t)own->n_stages * own->pools->n_pools;
  if (!moves[kind].may(own, at->table, m)) return PL_OK;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  uint16_t *cells = pl_arena_copy(own->arena, at->table.cells, size * sizeof *cells, _Alignof(uint16_t));
  double estimate_s;
  if (cells == NULL) return pl_fail_memory(error, "the placements");
  moves[kind].make(own, m, cells);
  own->left--;
  PL_TRY(own->score(own->context, &(pl_placement_table){cells}, &estimate_s, error));
  *gains = estimate_s < at->estimate_s;
  if (*gains)
    *at = (pl_ranked_table){{cells}, estimate_s};
  else
    pl_arena_release_to(own->arena, mark);
  return PL_OK;
}

static pl_code try_kind(pl_table_descent *own, int kind, pl_ranked_table *at, bool *gains, pl_error *error) {
  uint32_t n_stages = own->n_stages, n_pools = moves[kind].of_pools ? own->pools->n_pools : 1;
  for (uint32_t a = 0; a < n_stages; a++)
    for (uint32_t b = 0; b < n_stages; b++)
      for (uint32_t pq = 0; pq < n_pools * n_pools; pq++) {
        PL_TRY(try_move(own, kind, (move){a, b, pq / n_pools, pq % n_pools}, at, gains, error));
        if (*gains || own->left == 0) return PL_OK;
      }
  return PL_OK;
}

static pl_code descend_from(pl_table_descent *own, pl_ranked_table at, pl_best_tables *best, pl_error *error) {
  bool gains = at.estimate_s < (double)INFINITY;
  while (gains && own->left > 0) {
    gains = false;
    for (int kind = 0; kind < N_MOVES && !gains && own->left > 0; kind++)
      PL_TRY(try_kind(own, kind, &at, &gains, error));
    if (gains) pl_best_tables_rank(best, at.table, at.estimate_s);
  }
  return PL_OK;
}

/* ---- starts ---- */

/* Pools in a random order, each filled by one stage after another. Alike pools may change places: that is the same
 * table, found once more. False: they do not hold all stages. */
static bool fill(const pl_table_descent *own, uint64_t *random, uint32_t *order, uint16_t *cells) {
  uint32_t n = own->pools->n_pools, at = 0;
  for (uint32_t p = 0; p < n; p++)
    order[p] = p;
  for (uint32_t p = n; p > 1; p--) {
    uint32_t other = (uint32_t)(pl_split_mix(random) % p), last = order[p - 1];
    order[p - 1] = order[other];
    order[other] = last;
  }
  uint32_t room = own->pools->pools[order[0]].n / own->cell_devices;
  for (uint32_t stage = 0; stage < own->n_stages; stage++)
    for (uint32_t r = 0; r < own->n_replicas; r++, room--) {
      while (room == 0) {
        if (++at >= n) return false;
        room = own->pools->pools[order[at]].n / own->cell_devices;
      }
      row_of(own, cells, stage)[order[at]]++;
    }
  return true;
}

static pl_code start_anew(pl_table_descent *own, uint64_t *random, pl_best_tables *best, pl_error *error) {
  uint32_t *order = PL_TAKE(own->arena, uint32_t, own->pools->n_pools);
  uint16_t *cells = PL_TAKE(own->arena, uint16_t, (size_t)own->n_stages * own->pools->n_pools);
  pl_ranked_table start = {{cells}, (double)INFINITY};
  if (order == NULL || cells == NULL) return pl_fail_memory(error, "the placements");
  if (own->left == 0 || !fill(own, random, order, cells)) return PL_OK;
  own->left--;
  PL_TRY(own->score(own->context, &start.table, &start.estimate_s, error));
  pl_best_tables_rank(best, start.table, start.estimate_s);
  return descend_from(own, start, best, error);
}

pl_code pl_table_descend(pl_table_descent *descent, pl_best_tables *best, pl_error *error) {
  uint64_t random = 1;
  if (best->n > 0) PL_TRY(descend_from(descent, best->best[0], best, error));
  for (int i = 0; i < RANDOM_STARTS && descent->pools->n_pools > 1; i++)
    PL_TRY(start_anew(descent, &random, best, error));
  return PL_OK;
}
