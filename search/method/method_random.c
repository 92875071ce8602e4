/* Candidates of the space in random order, each once: the baseline without any idea (AMP's RS, section 4.4). A shuffle
 * drawn as far as it is needed (Fisher and Yates), so that a budget costs nothing beyond it. */
#include "core/base/split_mix.h"
#include "search/method/method_space.h"
#include "search/method/methods.h"

typedef struct shuffle {
  pl_space space;
  uint32_t *order;
  uint32_t next;
  uint64_t random;
} shuffle;

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  shuffle *own = PL_TAKE(arena, shuffle, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  PL_TRY(pl_method_space_take(problem, arena, &own->space, error));
  own->random = problem->seed;
  own->order = PL_TAKE(arena, uint32_t, own->space.n_candidates);
  if (own->order == NULL) return pl_fail_memory(error, "the search");
  for (uint32_t i = 0; i < own->space.n_candidates; i++)
    own->order[i] = i;
  return PL_OK;
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  shuffle *own = state;
  (void)error;
  for (*n = 0; *n < max && own->next < own->space.n_candidates; (*n)++) {
    uint32_t left = own->space.n_candidates - own->next;
    uint32_t chosen = own->next + (uint32_t)(pl_split_mix(&own->random) % left), index = own->order[chosen];
    own->order[chosen] = own->order[own->next];
    own->order[own->next++] = index;
    proposals[*n] = pl_method_space_proposal(&own->space, index);
  }
  return PL_OK;
}

static void account(const void *state, pl_search_account *account) {
  const shuffle *own = state;
  account->enumerated = own->space.n_candidates;
  account->space = &own->space;
}

const pl_method pl_method_random = {.name = "random",
                                    .description = "candidates of the space in random order (--seed)",
                                    .open = open,
                                    .propose = propose,
                                    .account = account};
