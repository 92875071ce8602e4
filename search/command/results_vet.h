/* A results file that is to be resumed is read once, whole, in a process of its own (core/system/child.h): libhdf5
 * crashes on some damaged files, and never comes back from others. */
#ifndef PL_SEARCH_RESULTS_VET_H
#define PL_SEARCH_RESULTS_VET_H

#include "core/base/status.h"
#include "search/run/run_options.h"

/* Before MPI and threads. PL_BAD_INPUT: the file that `run` would go on with cannot be read. PL_OK if it would begin
 * anew, or if `silent`: another rank looks. */
pl_code pl_results_vet(const pl_run_options *run, bool silent, pl_error *error);

#endif
