/* See workloads/run/siblings.h. */
#include "workloads/run/siblings.h"

#include <string.h>

#include "core/base/digest.h"

void pl_siblings_init(pl_siblings *siblings) {
  *siblings = (pl_siblings){.is_open = false};
  pl_arena_init(&siblings->arena, 0);
}

void pl_siblings_release(pl_siblings *siblings) {
  pl_arena_release(&siblings->arena);
}

static uint64_t digest_boundaries(const pl_strategy *strategy) {
  size_t n = (size_t)pl_strategy_n_chunks(strategy) + 1;
  return pl_hash_bytes(strategy->boundary, n * sizeof *strategy->boundary, 0);
}

/* Only what most families differ in is asked: the graphs are compared in any case. */
static bool are_alike(const pl_strategy *first, const pl_strategy *strategy) {
  return first->pp == strategy->pp && first->dp == strategy->dp && first->tmp == strategy->tmp &&
         first->mbs == strategy->mbs && first->vpp == strategy->vpp && first->cp == strategy->cp &&
         first->ep == strategy->ep && first->etp == strategy->etp && first->ep_overlap == strategy->ep_overlap &&
         first->schedule == strategy->schedule && first->sp == strategy->sp && first->recompute == strategy->recompute;
}

bool pl_siblings_are(const pl_strategy *a, const pl_strategy *b) {
  if (!are_alike(a, b) || a->recipe != b->recipe || (a->boundary == NULL) != (b->boundary == NULL)) return false;
  return a->boundary == NULL ||
         memcmp(a->boundary, b->boundary, ((size_t)pl_strategy_n_chunks(a) + 1) * sizeof *a->boundary) == 0;
}

static bool are_of(const pl_siblings *siblings, const pl_strategy *strategy) {
  return are_alike(&siblings->strategy, strategy) && siblings->boundaries == digest_boundaries(strategy);
}

bool pl_siblings_have(const pl_siblings *siblings, const pl_strategy *strategy) {
  return siblings->is_open && are_of(siblings, strategy);
}

bool pl_siblings_begin(pl_siblings *siblings, const pl_strategy *strategy) {
  bool alone = strategy->dp <= 1 || (siblings->is_large && are_of(siblings, strategy));
  pl_arena_reset(&siblings->arena);
  pl_arena_trim(&siblings->arena, alone ? 0 : PL_SIBLING_KEPT_BYTES);
  siblings->is_open = !alone;
  if (alone) return false;
  siblings->is_large = false;
  siblings->strategy = *strategy;
  siblings->boundaries = digest_boundaries(strategy);
  memset(siblings->runs, 0, sizeof siblings->runs);
  return true;
}

void pl_siblings_drop(pl_siblings *siblings, bool is_large) {
  memset(siblings->runs, 0, sizeof siblings->runs);
  siblings->is_open = false;
  siblings->is_large = is_large;
}

bool pl_siblings_keep(pl_siblings *siblings) {
  if (pl_arena_used_bytes(&siblings->arena) <= PL_SIBLING_MOST_BYTES) return true;
  pl_siblings_drop(siblings, true);
  return false;
}

/* What the run takes, and a copy of it; of rolled graphs, whose dates are not all kept, more may turn out to be taken.
 */
static bool can_keep(const pl_siblings *siblings, const pl_graph *graph) {
  return pl_arena_used_bytes(&siblings->arena) + pl_graph_n_rows(graph) * (size_t)48 <= PL_SIBLING_MOST_BYTES;
}

void pl_siblings_meet(pl_siblings *siblings, bool begins, int k, const pl_graph *graph, const pl_lanes *lanes,
                      const uint32_t *tails, pl_arena *arena, pl_engine_options *engine) {
  if (k >= PL_SIBLING_RUNS || engine->drifts) return;
  pl_sibling_run *run = &siblings->runs[k];
  if (begins ? !can_keep(siblings, graph) : !pl_engine_fork_is_kept(run->fork)) return;
  pl_graph_heads *heads = begins ? &run->heads : PL_TAKE(arena, pl_graph_heads, 1);
  if (heads == NULL || !pl_graph_heads_take(graph, lanes, tails, arena, heads)) return;
  engine->heads = heads;
  if (begins) {
    run->graph = *graph;
    engine->keeps = run->fork = pl_engine_fork_take(&run->graph, heads, arena);
  } else {
    engine->from = run->fork;
  }
}
