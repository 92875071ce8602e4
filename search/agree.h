/* Ranks agree on an error at the end of a phase, so that all of them leave the same way. */
#ifndef PL_SEARCH_AGREE_H
#define PL_SEARCH_AGREE_H

#include <mpi.h>

#include "core/status.h"

/* Collective. If any rank holds a failure, every rank ends up with that of the lowest such rank, and its code is
 * returned. */
pl_code pl_agree(MPI_Comm comm, pl_error *error);

#endif
