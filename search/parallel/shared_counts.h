/* A few counts that ranks share, in rank 0's memory: each reads and changes them at any time, and nobody has to answer.
 *
 * The memory is from MPI_Win_allocate: on one node that is shared memory and the increment a processor instruction (3
 * to 4 million per second); with MPI_Win_create the target must enter MPI to serve it, and rank 0, which computes, made
 * others wait for up to 2 s. Of each process one thread may use it (MPI_THREAD_FUNNELED).
 */
#ifndef PL_SEARCH_SHARED_COUNTS_H
#define PL_SEARCH_SHARED_COUNTS_H

#include <stdint.h>

#include "search/parallel/ranks.h"

enum { PL_SHARED_COUNTS = 4 };

typedef struct pl_shared_counts {
  MPI_Comm comm;
  MPI_Win window;
  uint64_t *values;                 /* rank 0's are the ones that count */
  uint64_t alone[PL_SHARED_COUNTS]; /* values of a process without MPI */
} pl_shared_counts;

/* Collective. `counts` stays where it is until closed. */
void pl_shared_counts_open(pl_shared_counts *counts, MPI_Comm comm, const uint64_t start[PL_SHARED_COUNTS]);
/* Collective. */
void pl_shared_counts_close(pl_shared_counts *counts);
/* Any rank, any time; the value from before. */
uint64_t pl_shared_counts_add(pl_shared_counts *counts, int which, uint64_t value);
uint64_t pl_shared_counts_lower(pl_shared_counts *counts, int which, uint64_t value); /* to the smaller of the two */
uint64_t pl_shared_counts_read(pl_shared_counts *counts, int which);

#endif
