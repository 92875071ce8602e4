/* What AMP makes of one choice of degrees, microbatch and placement: its layers assigned and its time estimated, both
 * by AMP's costs (workloads/assign/amp_cost.h). Shared by the methods `amp` and `anneal`. */
#ifndef PL_SEARCH_AMP_CANDIDATE_H
#define PL_SEARCH_AMP_CANDIDATE_H

#include "search/method/method.h"

/* The user's choices, narrowed to what AMP's six-dimensional strategy leaves open (Li et al. 2022, section 3.3): 1f1b
 * without chunks, of sp, zero and recompute the first that is allowed of "off", 0 and none, overlap if it may; layers
 * by AMP's rule; every microbatch size that divides, and tmp up to the devices of a node, unless the user says which.
 */
pl_space_choices pl_amp_choices(const pl_search_problem *problem);

/* Assigns the layers of `strategy` (boundaries from `arena`) and gives equation 4's time. `dynamic`: by AMP's dynamic
 * program where that takes no more than some 10 ms (56 layers on 16 stages); else, and without, by the exact assignment
 * on the same costs without memory and synchronisation, which has the same optimum. */
pl_code pl_amp_candidate_price(const pl_search_problem *problem, pl_strategy *strategy, bool dynamic, pl_arena *arena,
                               double *estimate_s, pl_error *error);

#endif
