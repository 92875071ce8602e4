/* Placements on heterogeneous clusters, with layers and microbatches to match: which devices form which stage and which
 * tensor group, best first by the pipeline objective, then improved by simulation.
 *
 *   1. Every candidate of the space is scored as the orders place it (search/placement_score.h: layers by
 *      assign=optimal, microbatches dealt out to unlike replicas).
 *   2. For every shape (pp, dp, cp, tmp) the tables of placements (search/placement.h) are scored with the shape's
 *      best candidate: all of them up to MOST_TABLES, else those and what a descent over exchanges of cells finds from
 *      the best of them. The KEPT best ones are scored with the shape's other candidates.
 *   3. What comes out is simulated in the order of its score. Whenever a simulation is the best so far, its neighbours
 *      are simulated next: a boundary moved by a layer, a microbatch given from one replica to another, two cells
 *      exchanged; until none of them is better. When all are done, the candidates of the space as the orders place them
 *      and the recipes assign them follow, so that without a limit the search finds nothing worse than `exhaustive`.
 *
 * A score costs about the square of the devices (0.3 ms for 16 of them), so that all of them together are limited to
 * SCORE_WORK devices squared: half for step 1 (every so-manieth candidate where they are too many), the rest for the
 * shapes, best first.
 *
 * On a cluster of one type whose nodes are alike step 2 is left out: there the orders say all that tables do.
 *
 * Rejected: simulating all tables (AMP's heterogeneous cluster has 1,770 of pp=4, dp=4, tmp=1 alone, each with as
 * many candidates as the shape has); and annealing, which needs a temperature for what a descent with good starts
 * reaches.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_index.h"
#include "search/method_space.h"
#include "search/methods.h"
#include "search/placement.h"
#include "search/placement_score.h"
#include "workloads/assign.h"

enum { MOST_TABLES = 1024, MOST_DESCENT_SCORES = 512, KEPT = 4, SCORE_WORK = 1 << 24, BATCH = 64 };

/* A strategy to be simulated; layers by recipe. */
typedef struct entry {
  pl_strategy strategy;
  double estimate_s;
  uint32_t index; /* in the order of making: breaks ties */
} entry;

typedef struct shape {
  int32_t pp, dp, cp, tmp;
  uint32_t best; /* entry of the heuristic placement with the least estimate */
} shape;

typedef struct placing {
  const pl_search_problem *problem;
  pl_arena *arena;
  pl_space space; /* with one recipe for the layers, whose place the optimum takes */
  pl_space whole; /* with those of the user */
  uint32_t next_whole;
  pl_pools pools;
  entry *entries;
  uint32_t n_entries, capacity, next;
  shape *shapes;
  uint32_t n_shapes;
  uint64_t n_tables, left; /* left: scores */
  pl_hash_index proposed;
  pl_strategy best; /* of the simulated that fit */
  double best_s;
  bool improved; /* since its neighbours were proposed */
  pl_proposal *neighbours;
  uint32_t n_neighbours;
} placing;

/* ---- entries ---- */

static pl_code add(placing *own, const pl_strategy *strategy, double estimate_s, pl_error *error) {
  if (isnan(estimate_s)) return PL_OK;
  if (own->n_entries == own->capacity) {
    uint32_t capacity = own->capacity == 0 ? 256 : 2 * own->capacity;
    entry *bigger = PL_TAKE(own->arena, entry, capacity);
    if (bigger == NULL) return pl_fail_memory(error, "the strategies of the search");
    if (own->n_entries > 0) memcpy(bigger, own->entries, own->n_entries * sizeof *bigger);
    own->entries = bigger;
    own->capacity = capacity;
  }
  own->entries[own->n_entries] = (entry){*strategy, estimate_s, own->n_entries};
  own->n_entries++;
  return PL_OK;
}

static int by_estimate(const void *left, const void *right) {
  const entry *a = left, *b = right;
  if (a->estimate_s != b->estimate_s) return a->estimate_s < b->estimate_s ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static bool has_shape(const shape *s, const pl_strategy *strategy) {
  return s->pp == strategy->pp && s->dp == strategy->dp && s->cp == pl_strategy_cp(strategy) && s->tmp == strategy->tmp;
}

/* ---- step 1 ---- */

static pl_code score_orders(placing *own, pl_error *error) {
  uint64_t n_devices = own->problem->cluster->n_devices, most = SCORE_WORK / n_devices / n_devices;
  own->left = most < 16 ? 16 : most;
  uint32_t stride = (uint32_t)(1 + own->space.n_candidates / (own->left / 2));
  for (uint32_t i = 0; i < own->space.n_candidates; i += stride) {
    pl_strategy strategy;
    double estimate_s;
    pl_space_strategy(&own->space, i, &strategy);
    strategy.recipe = PL_ASSIGN_OPTIMAL;
    PL_TRY(pl_placement_score(own->problem, &strategy, own->arena, &estimate_s, error));
    own->left--;
    PL_TRY(add(own, &strategy, estimate_s, error));
  }
  return PL_OK;
}

static pl_code find_shapes(placing *own, pl_error *error) {
  own->shapes = PL_TAKE(own->arena, shape, own->n_entries);
  if (own->shapes == NULL) return pl_fail_memory(error, "the shapes of the search");
  for (uint32_t e = 0; e < own->n_entries; e++) {
    const pl_strategy *s = &own->entries[e].strategy;
    uint32_t i = own->n_shapes;
    while (i-- > 0 && !has_shape(&own->shapes[i], s))
      ;
    if (i == UINT32_MAX) {
      i = own->n_shapes++;
      own->shapes[i] = (shape){s->pp, s->dp, pl_strategy_cp(s), s->tmp, e};
    }
    if (own->entries[e].estimate_s < own->entries[own->shapes[i].best].estimate_s) own->shapes[i].best = e;
  }
  return PL_OK;
}

/* ---- step 2 ---- */

typedef struct ranked {
  pl_placement_table table;
  double estimate_s;
} ranked;

typedef struct ranking {
  ranked best[KEPT];
  uint32_t n;
} ranking;

static void rank_table(ranking *r, pl_placement_table table, double estimate_s) {
  if (!(estimate_s < (double)INFINITY)) return;
  uint32_t at = r->n < KEPT ? r->n++ : KEPT;
  for (; at > 0 && estimate_s < r->best[at - 1].estimate_s; at--)
    if (at < KEPT) r->best[at] = r->best[at - 1];
  if (at < KEPT) r->best[at] = (ranked){table, estimate_s};
}

/* The strategy on the table; *estimate_s as pl_placement_score says. */
static pl_code score_table(placing *own, const pl_placement_table *table, pl_strategy *strategy, double *estimate_s,
                           pl_error *error) {
  strategy->split = NULL;
  strategy->idle = false;
  PL_TRY(pl_placement_take(&own->pools, table, strategy, own->arena, &strategy->placement, error));
  own->n_tables++;
  own->left--;
  return pl_placement_score(own->problem, strategy, own->arena, estimate_s, error);
}

/* Moves one cell of stage `a` from pool p to q, which has room for it or gets it from stage `b`. False: no such move.
 */
static bool exchange(const placing *own, const shape *s, uint16_t *cells, int32_t a, int32_t b, uint32_t p,
                     uint32_t q) {
  uint32_t n = own->pools.n_pools, used = 0;
  if (p == q || cells[(uint32_t)a * n + p] == 0) return false;
  for (int32_t stage = 0; stage < s->pp; stage++)
    used += cells[(uint32_t)stage * n + q];
  bool has_room = used < own->pools.pools[q].n / (uint32_t)(s->cp * s->tmp);
  if (b == a ? !has_room : b < a || cells[(uint32_t)b * n + q] == 0) return false;
  cells[(uint32_t)a * n + p]--;
  cells[(uint32_t)a * n + q]++;
  if (b == a) return true;
  cells[(uint32_t)b * n + q]--;
  cells[(uint32_t)b * n + p]++;
  return true;
}

/* First improvement over all exchanges, again and again. */
static pl_code descend(placing *own, const shape *s, const pl_strategy *strategy, uint64_t until, ranking *r,
                       pl_error *error) {
  uint32_t n = own->pools.n_pools;
  size_t size = (size_t)s->pp * n;
  bool gains = r->n > 0 && n > 0;
  while (gains) {
    gains = false;
    const ranked start = r->best[0];
    for (int32_t a = 0; a < s->pp && !gains; a++)
      for (int32_t b = a; b < s->pp && !gains; b++)
        for (uint32_t pq = 0; pq < n * n && !gains; pq++) {
          pl_arena_mark mark = pl_arena_mark_here(own->arena);
          uint16_t *cells = PL_TAKE(own->arena, uint16_t, size);
          if (cells == NULL) return pl_fail_memory(error, "the placements");
          memcpy(cells, start.table.cells, size * sizeof *cells);
          bool moves = exchange(own, s, cells, a, b, pq / n, pq % n);
          if (moves && own->left <= until) return PL_OK;
          pl_strategy moved = *strategy;
          double estimate_s = (double)INFINITY;
          if (moves) PL_TRY(score_table(own, &(pl_placement_table){cells}, &moved, &estimate_s, error));
          gains = estimate_s < start.estimate_s;
          if (gains) rank_table(r, (pl_placement_table){cells}, estimate_s);
          if (!gains) pl_arena_release_to(own->arena, mark);
        }
  }
  return PL_OK;
}

/* With at most `most` scores. */
static pl_code rank_tables(placing *own, const shape *s, uint64_t most, ranking *r, pl_error *error) {
  pl_placement_tables tables;
  const pl_strategy strategy = own->entries[s->best].strategy;
  PL_TRY(pl_placement_tables_take(&own->pools, (uint32_t)s->pp, (uint32_t)s->dp, (uint32_t)(s->cp * s->tmp),
                                  (uint32_t)(most < MOST_TABLES ? most : MOST_TABLES), own->arena, &tables, error));
  uint64_t rest = most - tables.n < MOST_DESCENT_SCORES ? most - tables.n : MOST_DESCENT_SCORES;
  uint64_t until = own->left - tables.n - rest;
  for (uint32_t i = 0; i < tables.n; i++) {
    pl_arena_mark mark = pl_arena_mark_here(own->arena);
    pl_strategy placed = strategy;
    double estimate_s;
    PL_TRY(score_table(own, &tables.tables[i], &placed, &estimate_s, error));
    rank_table(r, tables.tables[i], estimate_s);
    pl_arena_release_to(own->arena, mark);
  }
  return tables.complete ? PL_OK : descend(own, s, &strategy, until, r, error);
}

/* With all candidates of the shape, whose entries of step 1 are the first `n_orders`. */
static pl_code score_shape(placing *own, const shape *s, uint32_t n_orders, pl_error *error) {
  ranking r = {.n = 0};
  PL_TRY(rank_tables(own, s, own->left / 2, &r, error));
  for (uint32_t e = 0; e < n_orders && own->left > KEPT; e++) {
    if (!has_shape(s, &own->entries[e].strategy)) continue;
    for (uint32_t i = 0; i < r.n; i++) {
      pl_strategy placed = own->entries[e].strategy;
      double estimate_s;
      PL_TRY(score_table(own, &r.best[i].table, &placed, &estimate_s, error));
      PL_TRY(add(own, &placed, estimate_s, error));
    }
  }
  return PL_OK;
}

static int by_best(const void *left, const void *right, void *context) {
  const entry *entries = context;
  return by_estimate(&entries[((const shape *)left)->best], &entries[((const shape *)right)->best]);
}

static bool is_uniform(const placing *own) {
  for (uint32_t p = 1; p < own->pools.n_pools; p++)
    if (own->pools.pools[p].kind != own->pools.pools[0].kind) return false;
  return own->pools.n_profiles_used == 1;
}

/* What sorts pools: a layer, forward and backward, of one sequence. */
static pl_code find_slowness(const placing *own, double *slowness, pl_error *error) {
  const pl_search_problem *problem = own->problem;
  const pl_strategy alone = {.pp = 1, .dp = 1, .tmp = 1, .mbs = 1, .vpp = 1, .cp = 1, .ep = 1};
  const pl_block_shard shard = pl_strategy_shard(&alone, problem->job);
  pl_block_program layer;
  int32_t block = PL_MODEL_BLOCKS_BEFORE_LAYERS + problem->model->n_layers - 1;
  PL_TRY(pl_block_program_take(problem->model, pl_model_block_kind(problem->model, block), &shard, own->arena, &layer,
                               error));
  for (uint32_t p = 0; p < problem->cluster->n_profiles; p++) {
    const pl_op_list lists[2] = {layer.forward, layer.backward};
    for (int pass = 0; pass < 2; pass++)
      for (uint32_t i = 0; i < lists[pass].n_ops; i++)
        if (lists[pass].ops[i].kind != PL_OP_COLLECTIVE)
          slowness[p] += pl_op_cost(&problem->cluster->profiles[p], &lists[pass].ops[i]).time_s;
  }
  return PL_OK;
}

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  placing *own = PL_TAKE(arena, placing, 1);
  double *slowness = PL_TAKE(arena, double, problem->cluster->n_profiles);
  if (arena->failed) return pl_fail_memory(error, "the search");
  *state = own;
  *own = (placing){.problem = problem, .arena = arena, .best_s = (double)INFINITY};
  pl_space_choices choices = *problem->choices;
  choices.recipes = 1u << PL_ASSIGN_UNIFORM;
  pl_search_problem narrowed = *problem;
  narrowed.choices = &choices;
  PL_TRY(pl_method_space_take(problem, arena, &own->whole, error));
  PL_TRY(pl_method_space_take(&narrowed, arena, &own->space, error));
  PL_TRY(find_slowness(own, slowness, error));
  PL_TRY(pl_pools_take(problem->cluster, slowness, arena, &own->pools, error));
  PL_TRY(score_orders(own, error));
  PL_TRY(find_shapes(own, error));
  uint32_t n_orders = own->n_entries;
  if (own->n_shapes > 0) qsort_r(own->shapes, own->n_shapes, sizeof *own->shapes, by_best, own->entries);
  for (uint32_t s = 0; s < own->n_shapes && own->left > KEPT && !is_uniform(own); s++)
    PL_TRY(score_shape(own, &own->shapes[s], n_orders, error));
  if (own->n_entries > 0) qsort(own->entries, own->n_entries, sizeof *own->entries, by_estimate);
  return PL_OK;
}

/* ---- step 3 ---- */

static uint64_t hash_of(const pl_strategy *s) {
  const int32_t numbers[] = {s->pp,
                             s->dp,
                             s->tmp,
                             s->cp,
                             s->ep,
                             s->mbs,
                             s->vpp,
                             (int32_t)s->recipe,
                             s->cp_gather,
                             (int)s->schedule,
                             s->sp,
                             s->overlap,
                             (int)s->recompute,
                             s->zero};
  uint64_t hash = 1;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    hash = pl_hash_word(hash, (uint64_t)(uint32_t)numbers[i]);
  for (const char *c = s->order; *c != '\0'; c++)
    hash = pl_hash_word(hash, (uint64_t)*c);
  for (int32_t c = 0; s->boundary != NULL && c <= pl_strategy_n_chunks(s); c++)
    hash = pl_hash_word(hash, (uint64_t)s->boundary[c]);
  for (int32_t r = 0; s->split != NULL && r < s->dp; r++)
    hash = pl_hash_word(hash, (uint64_t)s->split[r]);
  for (uint32_t i = 0; i < pl_strategy_n_ranks(s); i++)
    hash = pl_hash_word(hash, pl_strategy_device_of_rank(s, i));
  return hash;
}

/* Whether it is new; equal hashes count as equal strategies. Out of memory is seen by the arena's flag. */
static bool note(placing *own, const pl_strategy *strategy) {
  uint64_t hash = hash_of(strategy);
  uint32_t probe = 0;
  if (pl_hash_index_find(&own->proposed, hash, &probe) != NULL) return false;
  pl_hash_index_put(&own->proposed, hash, own, own->arena);
  return true;
}

static void put_neighbour(placing *own, const pl_strategy *strategy, uint32_t most) {
  if (own->n_neighbours == most || !note(own, strategy)) return;
  own->neighbours[own->n_neighbours++] = (pl_proposal){.strategy = *strategy, .estimate_s = (double)NAN};
}

static void move_boundaries(placing *own, const pl_strategy *from, uint32_t most) {
  int32_t n_chunks = pl_strategy_n_chunks(from);
  for (int32_t c = 1; c < n_chunks; c++)
    for (int32_t step = -1; step <= 1; step += 2) {
      int32_t *boundary = PL_TAKE(own->arena, int32_t, n_chunks + 1);
      if (boundary == NULL) return;
      memcpy(boundary, from->boundary, ((size_t)n_chunks + 1) * sizeof *boundary);
      boundary[c] += step;
      if (boundary[c] <= boundary[c - 1] || boundary[c] >= boundary[c + 1]) continue;
      pl_strategy moved = *from;
      moved.boundary = boundary;
      put_neighbour(own, &moved, most);
    }
}

/* Between the last of one run of equal numbers and the first of another. */
static void move_microbatches(placing *own, const pl_strategy *from, uint32_t most) {
  int32_t unit = from->vpp > 1 ? from->pp : 1;
  if (from->split == NULL) return;
  for (int32_t give = 0; give < from->dp; give++)
    for (int32_t take = 0; take < from->dp; take++) {
      bool ends_run = give == from->dp - 1 || from->split[give + 1] != from->split[give];
      bool starts_run = take == 0 || from->split[take - 1] != from->split[take];
      if (give == take || !ends_run || !starts_run || from->split[give] <= unit) continue;
      int32_t *split = PL_TAKE(own->arena, int32_t, from->dp);
      if (split == NULL) return;
      memcpy(split, from->split, (size_t)from->dp * sizeof *split);
      split[give] -= unit;
      split[take] += unit;
      pl_strategy moved = *from;
      moved.split = split;
      put_neighbour(own, &moved, most);
    }
}

typedef struct cell_site {
  int32_t stage, replica;
} cell_site;

static uint32_t pool_key(const placing *own, uint32_t device) {
  const pl_device *d = &own->problem->cluster->devices[device];
  return d->node * own->problem->cluster->n_profiles + d->profile;
}

/* Cells of different nodes or types change places: with the layers as they are, and with those that are best then. */
static void exchange_cells(placing *own, const pl_strategy *from, uint32_t most) {
  int32_t cp = pl_strategy_cp(from), n_cells = from->pp * from->dp;
  uint32_t n_ranks = pl_strategy_n_ranks(from);
  for (int32_t i = 0; i < n_cells * n_cells; i++) {
    const cell_site a = {i / n_cells / from->dp, i / n_cells % from->dp}, b = {i % n_cells / from->dp, i % from->dp};
    if (i / n_cells >= i % n_cells || own->n_neighbours == most) continue;
    if (pool_key(own, pl_strategy_device(from, a.stage, a.replica * cp, 0)) ==
        pool_key(own, pl_strategy_device(from, b.stage, b.replica * cp, 0)))
      continue;
    uint32_t *placement = PL_TAKE(own->arena, uint32_t, n_ranks);
    if (placement == NULL) return;
    for (uint32_t rank = 0; rank < n_ranks; rank++)
      placement[rank] = pl_strategy_device_of_rank(from, rank);
    for (int32_t c = 0; c < cp; c++)
      for (int32_t t = 0; t < from->tmp; t++) {
        uint32_t x = pl_strategy_rank(from, a.stage, a.replica * cp + c, t);
        uint32_t y = pl_strategy_rank(from, b.stage, b.replica * cp + c, t), device = placement[x];
        placement[x] = placement[y];
        placement[y] = device;
      }
    pl_strategy moved = *from;
    moved.placement = placement;
    put_neighbour(own, &moved, most);
    if (from->pp == 1) continue;
    moved.recipe = PL_ASSIGN_OPTIMAL;
    moved.boundary = NULL;
    put_neighbour(own, &moved, most);
  }
}

static pl_code find_neighbours(placing *own, uint32_t most, pl_error *error) {
  const pl_search_problem *problem = own->problem;
  pl_strategy from = own->best;
  own->neighbours = PL_TAKE(own->arena, pl_proposal, most);
  if (own->neighbours == NULL) return pl_fail_memory(error, "the neighbours of a strategy");
  own->n_neighbours = 0;
  if (from.boundary == NULL)
    PL_TRY(pl_assign(&from, problem->model, problem->job, problem->cluster, problem->options, own->arena, error));
  from.recipe = PL_ASSIGN_GIVEN;
  move_boundaries(own, &from, most);
  move_microbatches(own, &from, most);
  exchange_cells(own, &from, most);
  return own->arena->failed ? pl_fail_memory(error, "the neighbours of a strategy") : PL_OK;
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  placing *own = state;
  *n = 0;
  if (own->improved) {
    own->improved = false;
    PL_TRY(find_neighbours(own, max, error));
    memcpy(proposals, own->neighbours, own->n_neighbours * sizeof *proposals);
    *n = own->n_neighbours;
  }
  uint32_t most = *n > 0 ? 0 : max < BATCH ? max : BATCH;
  while (*n < most && own->next < own->n_entries) {
    const entry *e = &own->entries[own->next++];
    if (note(own, &e->strategy))
      proposals[(*n)++] = (pl_proposal){.strategy = e->strategy, .estimate_s = e->estimate_s};
  }
  while (*n < most && own->next_whole < own->whole.n_candidates) {
    pl_proposal plain = pl_method_space_proposal(&own->whole, own->next_whole++);
    if (note(own, &plain.strategy)) proposals[(*n)++] = plain;
  }
  return own->arena->failed ? pl_fail_memory(error, "the search") : PL_OK;
}

static void learn(void *state, const pl_proposal *proposal, const pl_result_row *row) {
  placing *own = state;
  if (row->status != PL_RESULT_DONE || !(row->iter_time_s < own->best_s)) return;
  own->best = proposal->strategy;
  own->best_s = row->iter_time_s;
  own->improved = true;
}

static void account(const void *state, pl_search_account *account) {
  const placing *own = state;
  account->enumerated = own->n_tables + own->n_entries + own->whole.n_candidates;
  account->space = &own->whole;
}

const pl_method pl_method_placement = {
    .name = "placement",
    .description = "heterogeneous placements, layers and microbatches to match, by score; then descent",
    .open = open,
    .propose = propose,
    .learn = learn,
    .account = account};
