/* Placements on heterogeneous clusters, with layers and microbatches to match: which devices form which stage and which
 * tensor group, best first by the pipeline objective, then improved by simulation (search/method/placement_search.h).
 * When all are done, the candidates of the space as the orders place them and the recipes assign them follow, so that
 * without a limit the search finds nothing worse than `exhaustive`.
 */
#include "search/method/method_space.h"
#include "search/method/methods.h"
#include "search/method/placement_search.h"

enum { BATCH = 64 };

typedef struct placing {
  pl_placement_search search;
  pl_space whole; /* with the user's recipes */
  uint32_t next_whole;
} placing;

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  placing *own = PL_TAKE(arena, placing, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  PL_TRY(pl_method_space_take(problem, arena, &own->whole, error));
  return pl_placement_search_init(&own->search, problem, arena, error);
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  placing *own = state;
  PL_TRY(pl_placement_search_propose(&own->search, max, BATCH, proposals, n, error));
  uint32_t most = own->search.proposes_neighbours ? 0 : max < BATCH ? max : BATCH;
  while (*n < most && own->next_whole < own->whole.n_candidates) {
    pl_proposal plain = pl_method_space_proposal(&own->whole, own->next_whole++);
    if (pl_placement_search_note(&own->search, &plain.strategy)) proposals[(*n)++] = plain;
  }
  return own->search.arena->failed ? pl_fail_memory(error, "the search") : PL_OK;
}

static void learn(void *state, const pl_proposal *proposal, const pl_result_row *row) {
  placing *own = state;
  pl_placement_search_learn(&own->search, proposal, row);
}

static void account(const void *state, pl_search_account *account) {
  const placing *own = state;
  account->enumerated = own->search.ranking.n_tables + own->search.ranking.n + own->whole.n_candidates;
  account->space = &own->whole;
}

const pl_method pl_method_placement = {
    .name = "placement",
    .description = "heterogeneous placements, layers and microbatches to match, by score; then descent",
    .open = open,
    .propose = propose,
    .learn = learn,
    .account = account};
