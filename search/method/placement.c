/* See search/method/placement.h. Tables are enumerated stage by stage and pool by pool. Of alike pools only orders in
 * which their columns, read from stage 0, do not increase are kept: the first of their permutations in lexicographic
 * order.
 */
#include "search/method/placement.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash_index.h"

enum { MOST_COMPARED = 64, MOST_STEPS = 1 << 24 };

/* ---- pools ---- */

typedef struct gathering {
  const pl_cluster *cluster;
  const double *slowness;
  pl_pool *pools;
  uint32_t n_pools, *devices;
  uint64_t *route; /* [n_pools][n_pools]: what the route between their first devices is like */
} gathering;

/* Devices of a node are consecutive; those of one type in it make a pool. */
static void gather_node(gathering *state, const pl_node_info *node, uint32_t *n_devices) {
  uint32_t end = node->first_device + node->n_devices;
  for (uint32_t d = node->first_device; d < end; d++) {
    uint32_t profile = state->cluster->devices[d].profile, earlier = node->first_device;
    while (state->cluster->devices[earlier].profile != profile)
      earlier++;
    if (earlier < d) continue;
    pl_pool *pool = &state->pools[state->n_pools++];
    *pool = (pl_pool){.first = *n_devices, .profile = profile};
    for (uint32_t other = d; other < end; other++)
      if (state->cluster->devices[other].profile == profile) state->devices[(*n_devices)++] = other;
    pool->n = *n_devices - pool->first;
  }
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static pl_code describe_route(const gathering *state, uint32_t from, uint32_t to, uint64_t *word, pl_error *error) {
  pl_route route;
  PL_TRY(pl_cluster_route(state->cluster, state->devices[state->pools[from].first],
                          state->devices[state->pools[to].first], &route, error));
  *word = pl_hash_word(1, (uint64_t)route.latency);
  for (uint32_t i = 0; i < route.n_links; i++) {
    const pl_link *link = &state->cluster->links[route.links[i]];
    *word = pl_hash_word(pl_hash_word(*word, bits_of(link->capacity_Bps)), link->policy);
  }
  return PL_OK;
}

static pl_code describe_routes(gathering *state, pl_error *error) {
  uint32_t n = state->n_pools;
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++)
      if (a != b) PL_TRY(describe_route(state, a, b, &state->route[(size_t)a * n + b], error));
  return PL_OK;
}

static bool are_alike(const gathering *state, uint32_t a, uint32_t b) {
  uint32_t n = state->n_pools;
  const uint64_t *route = state->route;
  if (state->pools[a].profile != state->pools[b].profile || state->pools[a].n != state->pools[b].n) return false;
  if (route == NULL || route[(size_t)a * n + b] != route[(size_t)b * n + a]) return false;
  for (uint32_t other = 0; other < n; other++)
    if (other != a && other != b &&
        (route[(size_t)a * n + other] != route[(size_t)b * n + other] ||
         route[(size_t)other * n + a] != route[(size_t)other * n + b]))
      return false;
  return true;
}

static int compare_pools(const void *left, const void *right, void *context) {
  const gathering *state = context;
  const pl_pool *a = left, *b = right;
  double x = state->slowness[a->profile], y = state->slowness[b->profile];
  if (x != y) return x < y ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->first > b->first) - (a->first < b->first);
}

pl_code pl_pools_take(const pl_cluster *cluster, const double *slowness, pl_arena *arena, pl_pools *pools,
                      pl_error *error) {
  gathering state = {.cluster = cluster, .slowness = slowness};
  state.pools = PL_TAKE(arena, pl_pool, cluster->n_devices);
  state.devices = PL_TAKE(arena, uint32_t, cluster->n_devices);
  bool *is_used = PL_TAKE(arena, bool, cluster->n_profiles);
  if (arena->failed) return pl_fail_memory(error, "the pools of devices");
  uint32_t n_devices = 0, n = 0;
  for (uint32_t node = 0; node < cluster->n_nodes; node++)
    gather_node(&state, &cluster->nodes[node], &n_devices);
  if (state.n_pools <= MOST_COMPARED) {
    state.route = PL_TAKE(arena, uint64_t, (size_t)state.n_pools * state.n_pools);
    if (state.route == NULL) return pl_fail_memory(error, "the pools of devices");
    PL_TRY(describe_routes(&state, error));
  }
  for (uint32_t p = 0; p < state.n_pools; p++) {
    is_used[state.pools[p].profile] = true;
    state.pools[p].kind = p;
    for (uint32_t earlier = p; earlier-- > 0;)
      if (are_alike(&state, earlier, p)) state.pools[p].kind = state.pools[earlier].kind;
  }
  qsort_r(state.pools, state.n_pools, sizeof *state.pools, compare_pools, &state);
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    n += is_used[p];
  *pools = (pl_pools){.pools = state.pools, .n_pools = state.n_pools, .n_profiles_used = n, .devices = state.devices};
  return PL_OK;
}

/* ---- tables ---- */

typedef struct walk {
  const pl_pools *pools;
  uint32_t n_stages, n_replicas, limit;
  uint16_t *cells; /* [stage][pool], the table under way */
  uint32_t *room;  /* cells left in each pool */
  bool *is_tied;   /* [stage + 1][pool]: like the pool before, and equal to it on all stages above */
  /* Per place, [stage][pool]: cells that the stage still lacks there, room of its later pools, and the number to be
   * tried next, -1: none. */
  uint32_t *lacking, *later;
  int32_t *next;
  pl_arena *arena;
  pl_placement_table *tables;
  uint32_t n, capacity;
  bool complete;
} walk;

static bool keep(walk *w) {
  size_t size = (size_t)w->n_stages * w->pools->n_pools;
  if (w->n == w->limit) {
    w->complete = false;
    return false;
  }
  pl_placement_table *tables = pl_arena_grown(w->arena, w->tables, w->n, 1, sizeof *tables, &w->capacity);
  if (tables == NULL) return false;
  w->tables = tables;
  const uint16_t *cells = PL_COPY(w->arena, uint16_t, w->cells, size);
  if (cells == NULL) return false;
  w->tables[w->n++] = (pl_placement_table){cells};
  return true;
}

/* The walk comes to a place from the one before it: the largest number that may stand there is tried first. */
static void enter(walk *w, size_t place) {
  uint32_t n_pools = w->pools->n_pools;
  PL_ASSERT(n_pools > 0);
  uint32_t pool = (uint32_t)(place % n_pools);
  if (pool == 0) {
    w->lacking[place] = w->n_replicas;
    w->later[place] = 0;
    for (uint32_t other = 1; other < n_pools; other++)
      w->later[place] += w->room[other];
  } else {
    w->lacking[place] = w->lacking[place - 1] - w->cells[place - 1];
    w->later[place] = w->later[place - 1] - w->room[pool];
  }
  uint32_t most = w->lacking[place] < w->room[pool] ? w->lacking[place] : w->room[pool];
  if (w->is_tied[place] && most > w->cells[place - 1]) most = w->cells[place - 1];
  w->next[place] = (int32_t)most;
}

/* False: no number is left for the place. */
static bool set_next(walk *w, size_t place) {
  uint32_t n_pools = w->pools->n_pools, pool = (uint32_t)(place % n_pools);
  int32_t n = w->next[place]--;
  if (n < 0 || w->lacking[place] - (uint32_t)n > w->later[place]) return false;
  w->cells[place] = (uint16_t)n;
  w->room[pool] -= (uint32_t)n;
  w->is_tied[place + n_pools] = w->is_tied[place] && w->cells[place] == w->cells[place - 1];
  return true;
}

static void unset(walk *w, size_t place) {
  w->room[place % w->pools->n_pools] += w->cells[place];
}

/* Place by place and back, without recursion: there are stages times pools of them. */
static void walk_places(walk *w) {
  size_t n_places = (size_t)w->n_stages * w->pools->n_pools, place = 0;
  uint64_t n_steps = 0;
  enter(w, 0);
  for (;;) {
    if (set_next(w, place)) {
      if (place + 1 < n_places) {
        enter(w, ++place);
        continue;
      }
      if (!keep(w)) return;
      unset(w, place);
    } else if (place-- == 0) {
      return;
    } else {
      unset(w, place);
    }
    if (n_steps++ == MOST_STEPS) {
      w->complete = false;
      return;
    }
  }
}

pl_code pl_placement_tables_take(const pl_pools *pools, uint32_t n_stages, uint32_t n_replicas, uint32_t cell_devices,
                                 uint32_t limit, pl_arena *arena, pl_placement_tables *tables, pl_error *error) {
  walk w = {.pools = pools,
            .n_stages = n_stages,
            .n_replicas = n_replicas,
            .limit = limit,
            .arena = arena,
            .complete = true,
            .cells = PL_TAKE(arena, uint16_t, (size_t)n_stages * pools->n_pools),
            .room = PL_TAKE(arena, uint32_t, pools->n_pools),
            .is_tied = PL_TAKE(arena, bool, ((size_t)n_stages + 1) * pools->n_pools),
            .lacking = PL_TAKE(arena, uint32_t, (size_t)n_stages * pools->n_pools),
            .later = PL_TAKE(arena, uint32_t, (size_t)n_stages * pools->n_pools),
            .next = PL_TAKE(arena, int32_t, (size_t)n_stages * pools->n_pools)};
  if (arena->failed) return pl_fail_memory(error, "the placements");
  uint64_t room = 0;
  for (uint32_t p = 0; p < pools->n_pools; p++) {
    w.room[p] = pools->pools[p].n / cell_devices;
    w.is_tied[p] = p > 0 && pools->pools[p].kind == pools->pools[p - 1].kind;
    room += w.room[p];
  }
  if (n_replicas <= UINT16_MAX && (uint64_t)n_stages * n_replicas <= room) walk_places(&w);
  if (arena->failed) return pl_fail_memory(error, "the placements");
  *tables = (pl_placement_tables){.tables = w.tables, .n = w.n, .complete = w.complete};
  return PL_OK;
}

/* ---- from a table to devices ---- */

pl_code pl_placement_take(const pl_pools *pools, const pl_placement_table *table, const pl_strategy *strategy,
                          pl_arena *arena, const uint32_t **placement, pl_error *error) {
  uint32_t *devices = PL_TAKE(arena, uint32_t, pl_strategy_n_ranks(strategy));
  uint32_t *used = PL_TAKE(arena, uint32_t, pools->n_pools);
  if (arena->failed) return pl_fail_memory(error, "a placement");
  int32_t cp = pl_strategy_cp(strategy);
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (uint32_t p = 0, data = 0; p < pools->n_pools; p++)
      for (uint32_t i = 0; i < table->cells[(size_t)stage * pools->n_pools + p]; i++, data++)
        for (int32_t c = 0; c < cp; c++)
          for (int32_t t = 0; t < strategy->tmp; t++) {
            uint32_t rank = pl_strategy_rank(strategy, stage, (int32_t)data * cp + c, t);
            devices[rank] = pools->devices[pools->pools[p].first + used[p]++];
          }
  *placement = devices;
  return PL_OK;
}
