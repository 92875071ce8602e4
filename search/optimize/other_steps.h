/* A plan in all steps of a job, each with its own costs and times; not after a pass that saves memory has changed what
 * is done.
 *
 * Steps overlap (workloads/trace/replay_window.h): what the one before leaves under way the plan has changed too. So a
 * step is played behind the one before it, both with the plan, where both have the gradients and ops that it speaks of.
 */
#ifndef PL_SEARCH_OTHER_STEPS_H
#define PL_SEARCH_OTHER_STEPS_H

#include "search/optimize/optimize.h"
#include "search/trace/replay_session.h"

/* Fills job->others in `arena`. */
pl_code pl_other_steps_play(const pl_replay_session *session, const pl_optimize_options *options, pl_arena *arena,
                            pl_optimization *job, pl_error *error);

#endif
