/* AMP as published (Li et al. 2022, algorithm 1): every microbatch size and every (pp, dp, tmp), placed by Megatron's
 * order, layers by AMP's dynamic program, ranked by AMP's cost model; what ranks first is run first. Here a run is a
 * simulation. AMP knows no memory: what does not fit is found out by running it, as its own trials did. */
#include <stdlib.h>

#include "search/method/amp_candidate.h"
#include "search/method/method_space.h"
#include "search/method/methods.h"

typedef struct amp {
  pl_space space;
  pl_proposal *ranked;
  uint32_t next;
} amp;

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  amp *own = PL_TAKE(arena, amp, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  const pl_space_choices choices = pl_amp_choices(problem);
  pl_search_problem narrowed = *problem;
  narrowed.choices = &choices;
  PL_TRY(pl_method_space_take(&narrowed, arena, &own->space, error));
  uint32_t n = own->space.n_candidates;
  own->ranked = PL_TAKE(arena, pl_proposal, n);
  if (own->ranked == NULL) return pl_fail_memory(error, "the search");
  for (uint32_t i = 0; i < n; i++) {
    pl_proposal *proposal = &own->ranked[i];
    *proposal = pl_method_space_proposal(&own->space, i);
    PL_TRY(pl_amp_candidate_price(problem, &proposal->strategy, true, arena, &proposal->estimate_s, error));
  }
  for (uint32_t i = 0; i < n; i++) /* equals in the order of the space: bounds are not known, their place is free */
    own->ranked[i].bound_s = i;
  qsort(own->ranked, n, sizeof *own->ranked, pl_proposal_by_estimate);
  for (uint32_t i = 0; i < n; i++)
    own->ranked[i].bound_s = 0;
  return PL_OK;
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  amp *own = state;
  (void)error;
  for (*n = 0; *n < max && own->next < own->space.n_candidates; (*n)++)
    proposals[*n] = own->ranked[own->next++];
  return PL_OK;
}

static void account(const void *state, pl_search_account *account) {
  const amp *own = state;
  account->enumerated = own->space.n_candidates;
  account->space = &own->space;
}

const pl_method pl_method_amp = {.name = "amp",
                                 .description = "AMP: its dynamic program and cost model rank, the top is simulated",
                                 .open = open,
                                 .propose = propose,
                                 .account = account};
