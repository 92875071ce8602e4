/* Every candidate of the space, in its order, and no more than that: what the others are held to. */
#include "search/method/method_space.h"
#include "search/method/methods.h"

typedef struct exhaustive {
  pl_space space;
  uint32_t next;
} exhaustive;

static pl_code open(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error) {
  exhaustive *own = PL_TAKE(arena, exhaustive, 1);
  if (own == NULL) return pl_fail_memory(error, "the search");
  *state = own;
  return pl_method_space_take(problem, arena, &own->space, error);
}

static pl_code propose(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error) {
  exhaustive *own = state;
  (void)error;
  for (*n = 0; *n < max && own->next < own->space.n_candidates; (*n)++)
    proposals[*n] = pl_method_space_proposal(&own->space, own->next++);
  return PL_OK;
}

static void account(const void *state, pl_search_account *account) {
  const exhaustive *own = state;
  account->enumerated = own->space.n_candidates;
  account->space = &own->space;
}

const pl_method pl_method_exhaustive = {.name = "exhaustive",
                                        .description = "every candidate of the space",
                                        .open = open,
                                        .propose = propose,
                                        .account = account};
