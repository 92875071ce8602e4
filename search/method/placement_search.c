/* See search/method/placement_search.h. */
#include "search/method/placement_search.h"

#include <math.h>

/* Of the route between two devices; 0 for a device alone. */
static double narrowest_Bps(const pl_cluster *cluster, uint32_t from, uint32_t to) {
  pl_error ignored = PL_ERROR_INIT;
  pl_route route = {.n_links = 0};
  double least_Bps = (double)INFINITY;
  if (from == to || pl_cluster_route(cluster, from, to, &route, &ignored) != PL_OK) return 0;
  for (uint32_t i = 0; i < route.n_links; i++)
    least_Bps = fmin(least_Bps, cluster->links[route.links[i]].capacity_Bps);
  return least_Bps;
}

static bool is_like_the_first(const pl_cluster *cluster, uint32_t node) {
  const pl_node_info *own = &cluster->nodes[node], *first = &cluster->nodes[0];
  const pl_node_info *next = &cluster->nodes[(node + 1) % cluster->n_nodes], *second = &cluster->nodes[1];
  if (own->n_devices != first->n_devices) return false;
  uint32_t last = own->n_devices - 1;
  return narrowest_Bps(cluster, own->first_device, own->first_device + last) ==
             narrowest_Bps(cluster, first->first_device, first->first_device + last) &&
         narrowest_Bps(cluster, own->first_device, next->first_device) ==
             narrowest_Bps(cluster, first->first_device, second->first_device);
}

bool pl_placement_matters(const pl_cluster *cluster) {
  for (uint32_t d = 1; d < cluster->n_devices; d++)
    if (cluster->devices[d].profile != cluster->devices[0].profile) return true;
  for (uint32_t node = 1; node < cluster->n_nodes; node++)
    if (!is_like_the_first(cluster, node)) return true;
  return false;
}

pl_code pl_placement_search_init(pl_placement_search *search, const pl_search_problem *problem, pl_arena *arena,
                                 pl_error *error) {
  *search = (pl_placement_search){.problem = problem, .arena = arena, .best_s = (double)INFINITY};
  return pl_placement_ranking_take(problem, arena, &search->ranking, error);
}

/* By what lies where: an order is a way to write a placement down, and two of them may be the same devices. */
static uint64_t hash_of(const pl_strategy *s) {
  uint64_t hash = pl_placement_key(s);
  for (int32_t c = 0; s->boundary != NULL && c <= pl_strategy_n_chunks(s); c++)
    hash = pl_hash_word(hash, (uint64_t)s->boundary[c]);
  for (int32_t r = 0; s->split != NULL && r < s->dp; r++)
    hash = pl_hash_word(hash, (uint64_t)s->split[r]);
  const pl_rank_strides strides = pl_strategy_rank_strides(s);
  for (int32_t stage = 0; stage < s->pp; stage++)
    for (int32_t replica = 0; replica < pl_strategy_replicas(s); replica++)
      for (int32_t tensor = 0; tensor < s->tmp; tensor++)
        hash = pl_hash_word(hash, pl_strategy_device_of_rank(s, pl_rank_at(&strides, stage, replica, tensor)));
  return hash;
}

bool pl_placement_search_note(pl_placement_search *search, const pl_strategy *strategy) {
  uint64_t hash = hash_of(strategy);
  uint32_t probe = 0;
  if (pl_hash_index_find(&search->proposed, hash, &probe) != NULL) return false;
  pl_hash_index_put(&search->proposed, hash, search, search->arena);
  return true;
}

static void propose_neighbours(pl_placement_search *search, uint32_t max, pl_proposal *proposals, uint32_t *n) {
  while (search->descends && *n < max) {
    pl_strategy moved;
    pl_arena_mark mark = pl_arena_mark_here(search->arena);
    search->descends = pl_placement_neighbours_next(&search->neighbours, search->arena, &moved);
    if (!search->descends) return;
    if (pl_placement_search_note(search, &moved))
      proposals[(*n)++] = (pl_proposal){.strategy = moved, .estimate_s = (double)NAN};
    else if (!search->neighbours.again)
      pl_arena_release_to(search->arena, mark);
  }
}

pl_code pl_placement_search_propose(pl_placement_search *search, uint32_t max, uint32_t batch, pl_proposal *proposals,
                                    uint32_t *n, pl_error *error) {
  *n = 0;
  if (search->improved)
    PL_TRY(pl_placement_neighbours_init(&search->neighbours, search->problem, &search->best, search->arena, error));
  search->descends = search->descends || search->improved;
  search->improved = false;
  propose_neighbours(search, max, proposals, n);
  search->proposes_neighbours = *n > 0;
  uint32_t most = *n > 0 ? 0 : max < batch ? max : batch;
  while (*n < most && search->next < search->ranking.n) {
    const pl_placement_entry *e = &search->ranking.entries[search->next++];
    if (pl_placement_search_note(search, &e->strategy))
      proposals[(*n)++] = (pl_proposal){.strategy = e->strategy, .estimate_s = e->estimate_s};
  }
  return search->arena->failed ? pl_fail_memory(error, "the search") : PL_OK;
}

void pl_placement_search_learn(pl_placement_search *search, const pl_proposal *proposal, const pl_result_row *row) {
  if (row->status != PL_RESULT_DONE || !(row->iter_time_s < search->best_s)) return;
  search->best = proposal->strategy;
  search->best_s = row->iter_time_s;
  search->improved = true;
}
