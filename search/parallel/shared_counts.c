/* See search/parallel/shared_counts.h. */
#include "search/parallel/shared_counts.h"

#include <string.h>

void pl_shared_counts_open(pl_shared_counts *counts, MPI_Comm comm, const uint64_t start[PL_SHARED_COUNTS]) {
  *counts = (pl_shared_counts){.comm = comm, .window = MPI_WIN_NULL, .values = counts->alone};
  size_t size = PL_SHARED_COUNTS * sizeof *start;
  if (comm != PL_ALONE)
    MPI_Win_allocate((MPI_Aint)size, sizeof *start, MPI_INFO_NULL, comm, &counts->values, &counts->window);
  memcpy(counts->values, start, size);
  if (comm == PL_ALONE) return;
  MPI_Barrier(comm); /* nobody may count before everybody's memory is set */
  MPI_Win_lock_all(0, counts->window);
}

void pl_shared_counts_close(pl_shared_counts *counts) {
  if (counts->comm == PL_ALONE) return;
  MPI_Win_unlock_all(counts->window);
  MPI_Win_free(&counts->window);
}

static uint64_t fetch(pl_shared_counts *counts, int which, uint64_t value, MPI_Op op) {
  uint64_t before = 0;
  MPI_Fetch_and_op(&value, &before, MPI_UINT64_T, 0, which, op, counts->window);
  MPI_Win_flush(0, counts->window);
  return before;
}

uint64_t pl_shared_counts_add(pl_shared_counts *counts, int which, uint64_t value) {
  if (counts->comm != PL_ALONE) return fetch(counts, which, value, MPI_SUM);
  uint64_t before = counts->values[which];
  counts->values[which] += value;
  return before;
}

uint64_t pl_shared_counts_lower(pl_shared_counts *counts, int which, uint64_t value) {
  if (counts->comm != PL_ALONE) return fetch(counts, which, value, MPI_MIN);
  uint64_t before = counts->values[which];
  if (value < before) counts->values[which] = value;
  return before;
}

uint64_t pl_shared_counts_read(pl_shared_counts *counts, int which) {
  return counts->comm != PL_ALONE ? fetch(counts, which, 0, MPI_NO_OP) : counts->values[which];
}
