/* What the methods that walk a space of candidates (search/space/space.h) share. */
#ifndef PL_SEARCH_METHOD_SPACE_H
#define PL_SEARCH_METHOD_SPACE_H

#include "search/method/method.h"

/* The space of the problem, as a sweep of the same choices has it; PL_BAD_INPUT if it is empty. */
pl_code pl_method_space_take(const pl_search_problem *problem, pl_arena *arena, pl_space *space, pl_error *error);
/* Candidate `index` as a proposal without bound and estimate; its layers are assigned where it is simulated. */
/* Sequence parallelism of a plain run, of what is allowed: off, but on with experts, which cannot have tmp > 1 without
 * it. A mask as in pl_space_choices. */
uint32_t pl_method_space_plain_sp(const pl_search_problem *problem);
pl_proposal pl_method_space_proposal(const pl_space *space, uint32_t index);

#endif
