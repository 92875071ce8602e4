/* The processes that work on one command: those of an MPI communicator, or this one alone.
 *
 * To start MPI takes longer than many a search. A process that no launcher started has nobody to talk to and does
 * without: its communicator is PL_ALONE, and everything here is then a matter of this process. What talks to other
 * ranks in this folder does so through here and through search/parallel/shared_counts.h, so that nobody else has to
 * ask.
 */
#ifndef PL_SEARCH_RANKS_H
#define PL_SEARCH_RANKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

/* One process without MPI. Not MPI_COMM_SELF, which needs MPI to have started. */
#define PL_ALONE MPI_COMM_NULL

/* Whether a launcher (mpirun, srun ...) started this process, by the variables that they set: before MPI runs. */
bool pl_ranks_are_launched(void);
/* Whether this process is another than rank 0 and must not print, as far as can be known before MPI runs. */
bool pl_ranks_must_be_silent(void);

int pl_rank(MPI_Comm comm);
int pl_rank_count(MPI_Comm comm);
/* Seconds from some moment on, by this process' clock. */
double pl_ranks_clock_s(void);

/* Collective. If any rank holds a failure, every rank ends up with that of the lowest such rank, and its code is
 * returned: ranks agree on an error at the end of a phase, so that all of them leave the same way. */
pl_code pl_agree(MPI_Comm comm, pl_error *error);
/* Collective: the bytes of `root`, to all. */
void pl_ranks_broadcast(MPI_Comm comm, void *bytes, size_t size, int root);

#endif
