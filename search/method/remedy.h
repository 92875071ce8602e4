/* What would do where no strategy of a space fits in memory: a choice that the user did not allow, or more devices. */
#ifndef PL_SEARCH_REMEDY_H
#define PL_SEARCH_REMEDY_H

#include "search/method/method.h"

enum { PL_REMEDY_BYTES = 640 };

/* Says it in `text`, e.g. "with all of --recompute, pp=4,... would fit". Looks at memory only
 * (search/bound/lower_bound.h), which for tasks in order is exact. Tries one choice at a time, then all of them
 * together, then what no space holds unless it is named (ZeRO 2 and 3 with pipelines, context parallelism), then two to
 * sixty-four times as many devices of the same kinds. O(candidates of the spaces that it looks at), tens of
 * microseconds each. */
pl_code pl_remedy_find(const pl_search_problem *problem, char text[PL_REMEDY_BYTES], pl_error *error);

#endif
