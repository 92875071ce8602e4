/* See search/method/placement_ranking.h. */
#include "search/method/placement_ranking.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/hash_index.h"
#include "search/method/method_space.h"
#include "search/method/placement_descent.h"
#include "search/method/placement_score.h"
#include "workloads/cost/op_cost.h"
#include "workloads/lower/block_program.h"

enum { MOST_TABLES = 1024, MOST_DESCENT_SCORES = 2048, SCORE_WORK = 1 << 24 };

typedef pl_placement_entry entry;

typedef struct shape {
  int32_t pp, dp, cp, tmp;
  uint32_t best; /* entry of the heuristic placement with the least estimate */
} shape;

typedef struct placing {
  const pl_search_problem *problem;
  pl_arena *arena;
  pl_space space; /* with one recipe for the layers, whose place the optimum takes */
  pl_pools pools;
  entry *entries;
  uint32_t n_entries, capacity;
  shape *shapes;
  uint32_t n_shapes;
  uint64_t n_tables, left; /* left: scores */
} placing;

/* ---- entries ---- */

static pl_code add(placing *own, const pl_strategy *strategy, double estimate_s, pl_error *error) {
  if (isnan(estimate_s)) return PL_OK;
  entry *entries = pl_arena_grown(own->arena, own->entries, own->n_entries, 1, sizeof *entries, &own->capacity);
  if (entries == NULL) return pl_fail_memory(error, "the strategies of the search");
  own->entries = entries;
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

typedef struct scored_shape {
  placing *own;
  const pl_strategy *strategy; /* of the shape */
} scored_shape;

static pl_code score_for_descent(void *context, const pl_placement_table *table, double *estimate_s, pl_error *error) {
  const scored_shape *scored = context;
  pl_strategy placed = *scored->strategy;
  pl_arena_mark mark = pl_arena_mark_here(scored->own->arena);
  pl_code code = score_table(scored->own, table, &placed, estimate_s, error);
  pl_arena_release_to(scored->own->arena, mark);
  return code;
}

/* With at most `most` scores. */
static pl_code rank_tables(placing *own, const shape *s, uint64_t most, pl_best_tables *r, pl_error *error) {
  pl_placement_tables tables;
  const pl_strategy strategy = own->entries[s->best].strategy;
  PL_TRY(pl_placement_tables_take(&own->pools, (uint32_t)s->pp, (uint32_t)s->dp, (uint32_t)(s->cp * s->tmp),
                                  (uint32_t)(most < MOST_TABLES ? most : MOST_TABLES), own->arena, &tables, error));
  uint64_t rest = most - tables.n < MOST_DESCENT_SCORES ? most - tables.n : MOST_DESCENT_SCORES;
  for (uint32_t i = 0; i < tables.n; i++) {
    pl_arena_mark mark = pl_arena_mark_here(own->arena);
    pl_strategy placed = strategy;
    double estimate_s;
    PL_TRY(score_table(own, &tables.tables[i], &placed, &estimate_s, error));
    pl_best_tables_rank(r, tables.tables[i], estimate_s);
    pl_arena_release_to(own->arena, mark);
  }
  scored_shape scored = {own, &strategy};
  pl_table_descent descent = {.pools = &own->pools,
                              .n_stages = (uint32_t)s->pp,
                              .n_replicas = (uint32_t)s->dp,
                              .cell_devices = (uint32_t)(s->cp * s->tmp),
                              .arena = own->arena,
                              .left = rest,
                              .score = score_for_descent,
                              .context = &scored};
  return tables.complete ? PL_OK : pl_table_descend(&descent, r, error);
}

uint64_t pl_placement_key(const pl_strategy *s) {
  const int32_t numbers[] = {s->pp,
                             s->dp,
                             s->tmp,
                             s->cp,
                             s->ep,
                             s->etp,
                             s->ep_overlap,
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
  return hash;
}

/* Whether no candidate was it so far but for the order. */
static bool is_new(placing *own, pl_hash_index *seen, const pl_strategy *strategy) {
  uint64_t key = pl_placement_key(strategy);
  uint32_t probe = 0;
  if (pl_hash_index_find(seen, key, &probe) != NULL) return false;
  pl_hash_index_put(seen, key, own, own->arena);
  return true;
}

/* With all candidates of the shape, whose entries of step 1 are the first `n_orders`. */
static pl_code score_shape(placing *own, const shape *s, uint32_t n_orders, pl_error *error) {
  pl_hash_index seen = {0};
  pl_best_tables r = {.cells = (size_t)s->pp * own->pools.n_pools};
  PL_TRY(rank_tables(own, s, own->left / 2, &r, error));
  for (uint32_t e = 0; e < n_orders && own->left > PL_TABLES_KEPT; e++) {
    if (!has_shape(s, &own->entries[e].strategy) || !is_new(own, &seen, &own->entries[e].strategy)) continue;
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

static pl_code rank(placing *own, pl_error *error) {
  double *slowness = PL_TAKE(own->arena, double, own->problem->cluster->n_profiles);
  if (slowness == NULL) return pl_fail_memory(error, "the search");
  PL_TRY(find_slowness(own, slowness, error));
  PL_TRY(pl_pools_take(own->problem->cluster, slowness, own->arena, &own->pools, error));
  PL_TRY(score_orders(own, error));
  PL_TRY(find_shapes(own, error));
  uint32_t n_orders = own->n_entries;
  if (own->n_shapes > 0) qsort_r(own->shapes, own->n_shapes, sizeof *own->shapes, by_best, own->entries);
  for (uint32_t s = 0; s < own->n_shapes && own->left > PL_TABLES_KEPT && !is_uniform(own); s++)
    PL_TRY(score_shape(own, &own->shapes[s], n_orders, error));
  if (own->n_entries > 0) qsort(own->entries, own->n_entries, sizeof *own->entries, by_estimate);
  return PL_OK;
}

pl_code pl_placement_ranking_take(const pl_search_problem *problem, pl_arena *arena, pl_placement_ranking *ranking,
                                  pl_error *error) {
  pl_space_choices choices = *problem->choices;
  choices.recipes = 1u << PL_ASSIGN_UNIFORM;
  pl_search_problem narrowed = *problem;
  narrowed.choices = &choices;
  /* Thousands of placements cut the blocks in a few ways. */
  pl_block_cache blocks;
  pl_simulate_options options = *problem->options;
  pl_search_problem scored = *problem;
  scored.options = &options;
  options.blocks = &blocks;
  placing own = {.problem = &scored, .arena = arena};
  PL_TRY(pl_method_space_take(&narrowed, arena, &own.space, error));
  pl_block_cache_init(&blocks, PL_BLOCK_CACHE_BYTES);
  pl_code code = rank(&own, error);
  pl_block_cache_release(&blocks);
  PL_TRY(code);
  *ranking = (pl_placement_ranking){.entries = own.entries, .n = own.n_entries, .n_tables = own.n_tables};
  return PL_OK;
}
