/* See search/method/placement_neighbours.h. */
#include "search/method/placement_neighbours.h"

#include "workloads/assign/assign.h"

typedef enum move_kind { MOVE_BOUNDARY = 0, MOVE_MICROBATCH, MOVE_CELLS, MOVE_COUNT } move_kind;

pl_code pl_placement_neighbours_init(pl_placement_neighbours *neighbours, const pl_search_problem *problem,
                                     const pl_strategy *from, pl_arena *arena, pl_error *error) {
  *neighbours = (pl_placement_neighbours){.problem = problem, .from = *from};
  pl_strategy *own = &neighbours->from;
  if (own->boundary == NULL)
    PL_TRY(pl_assign(own, problem->model, problem->job, problem->cluster, problem->options, arena, error));
  own->recipe = PL_ASSIGN_GIVEN;
  return PL_OK;
}

/* Boundary 1 + first, down and up. */
static bool move_boundary(const pl_placement_neighbours *own, pl_arena *arena, pl_strategy *moved) {
  const pl_strategy *from = &own->from;
  int32_t n_chunks = pl_strategy_n_chunks(from), c = 1 + (int32_t)own->first, step = own->second == 0 ? -1 : 1;
  int32_t to = from->boundary[c] + step;
  if (to <= from->boundary[c - 1] || to >= from->boundary[c + 1]) return false;
  int32_t *boundary = PL_COPY(arena, int32_t, from->boundary, n_chunks + 1);
  if (boundary == NULL) return false;
  boundary[c] = to;
  moved->boundary = boundary;
  return true;
}

/* From the last of one run of equal numbers to the first of another. */
static bool move_microbatch(const pl_placement_neighbours *own, pl_arena *arena, pl_strategy *moved) {
  const pl_strategy *from = &own->from;
  int32_t unit = from->vpp > 1 ? from->pp : 1, give = (int32_t)own->first, take = (int32_t)own->second;
  bool ends_run = give == from->dp - 1 || from->split[give + 1] != from->split[give];
  bool starts_run = take == 0 || from->split[take - 1] != from->split[take];
  if (give == take || !ends_run || !starts_run || from->split[give] <= unit) return false;
  int32_t *split = PL_COPY(arena, int32_t, from->split, from->dp);
  if (split == NULL) return false;
  split[give] -= unit;
  split[take] += unit;
  moved->split = split;
  return true;
}

typedef struct cell_site {
  int32_t stage, replica;
} cell_site;

static cell_site site_of(const pl_placement_neighbours *own, int64_t cell) {
  return (cell_site){(int32_t)(cell / own->from.dp), (int32_t)(cell % own->from.dp)};
}

/* Of a cell's first device. */
static uint64_t pool_of(const pl_placement_neighbours *own, cell_site site) {
  int32_t replica = site.replica * pl_strategy_cp(&own->from);
  const pl_device *d = &own->problem->cluster->devices[pl_strategy_device(&own->from, site.stage, replica, 0)];
  return (uint64_t)d->node * own->problem->cluster->n_profiles + d->profile;
}

static bool exchange_cells(const pl_placement_neighbours *own, pl_arena *arena, pl_strategy *moved) {
  const pl_strategy *from = &own->from;
  const cell_site a = site_of(own, own->first), b = site_of(own, own->second);
  int32_t cp = pl_strategy_cp(from);
  if (pool_of(own, a) == pool_of(own, b)) return false;
  uint32_t n_ranks = pl_strategy_n_ranks(from), *placement = PL_TAKE(arena, uint32_t, n_ranks);
  if (placement == NULL) return false;
  for (uint32_t rank = 0; rank < n_ranks; rank++)
    placement[rank] = pl_strategy_device_of_rank(from, rank);
  for (int32_t c = 0; c < cp; c++)
    for (int32_t t = 0; t < from->tmp; t++) {
      uint32_t x = pl_strategy_rank(from, a.stage, a.replica * cp + c, t);
      uint32_t y = pl_strategy_rank(from, b.stage, b.replica * cp + c, t), device = placement[x];
      placement[x] = placement[y];
      placement[y] = device;
    }
  moved->placement = placement;
  return true;
}

/* The same cells, and the layers that are best for them. */
static void assign_again(pl_placement_neighbours *own, pl_strategy *moved) {
  moved->placement = own->exchanged;
  moved->recipe = PL_ASSIGN_OPTIMAL;
  moved->boundary = NULL;
  own->again = false;
}

/* How many values the two places of a kind's moves have; pairs of cells have the first below the second. */
static int64_t count_first(const pl_placement_neighbours *own, int kind) {
  const pl_strategy *from = &own->from;
  if (kind == MOVE_BOUNDARY) return pl_strategy_n_chunks(from) - 1;
  if (kind == MOVE_MICROBATCH) return from->split == NULL ? 0 : from->dp;
  return (int64_t)from->pp * from->dp;
}

static int64_t count_second(const pl_placement_neighbours *own, int kind) {
  return kind == MOVE_BOUNDARY ? 2 : count_first(own, kind);
}

/* To the next pair of places. */
static void advance(pl_placement_neighbours *own) {
  if (++own->second < count_second(own, own->kind)) return;
  own->first++;
  own->second = own->kind == MOVE_CELLS ? own->first + 1 : 0;
}

static bool make_move(const pl_placement_neighbours *own, pl_arena *arena, pl_strategy *moved) {
  if (own->kind == MOVE_BOUNDARY) return move_boundary(own, arena, moved);
  if (own->kind == MOVE_MICROBATCH) return move_microbatch(own, arena, moved);
  return own->second < count_second(own, own->kind) && exchange_cells(own, arena, moved);
}

bool pl_placement_neighbours_next(pl_placement_neighbours *neighbours, pl_arena *arena, pl_strategy *moved) {
  pl_placement_neighbours *own = neighbours;
  *moved = own->from;
  if (own->again) return assign_again(own, moved), true;
  while (own->kind < MOVE_COUNT && !arena->failed) {
    if (own->first >= count_first(own, own->kind)) {
      own->kind++;
      own->first = 0;
      own->second = own->kind == MOVE_CELLS ? 1 : 0;
      continue;
    }
    bool is_one = make_move(own, arena, moved);
    own->again = is_one && own->kind == MOVE_CELLS && own->from.pp > 1;
    own->exchanged = moved->placement;
    advance(own);
    if (is_one) return true;
  }
  return false;
}
