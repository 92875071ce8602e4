/* See search/parallel/ranks.h. */
#include "search/parallel/ranks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One of them is there in a process that Open MPI's, MPICH's, Intel's, Slurm's, Cray's, IBM's or Flux' launcher
 * started. A batch script of Slurm has its own too: it starts MPI as it always did. */
bool pl_ranks_are_launched(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_RANK",
                                      "PMIX_RANK",
                                      "PMIX_NAMESPACE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "PMI_FD",
                                      "MV2_COMM_WORLD_RANK",
                                      "SLURM_PROCID",
                                      "ALPS_APP_PE",
                                      "PALS_RANKID",
                                      "JSM_NAMESPACE_RANK",
                                      "FLUX_TASK_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (getenv(names[i]) != NULL) return true;
  return false;
}

bool pl_ranks_must_be_silent(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *rank = getenv(names[i]);
    if (rank != NULL) return strcmp(rank, "0") != 0;
  }
  return false;
}

int pl_rank(MPI_Comm comm) {
  int rank = 0;
  if (comm != PL_ALONE) MPI_Comm_rank(comm, &rank);
  return rank;
}

int pl_rank_count(MPI_Comm comm) {
  int count = 1;
  if (comm != PL_ALONE) MPI_Comm_size(comm, &count);
  return count;
}

double pl_ranks_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

pl_code pl_agree(MPI_Comm comm, pl_error *error) {
  if (comm == PL_ALONE) return error->code;
  int n_ranks = pl_rank_count(comm), mine = error->code == PL_OK ? n_ranks : pl_rank(comm), first;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first < n_ranks) MPI_Bcast(error, (int)sizeof *error, MPI_BYTE, first, comm);
  return error->code;
}

void pl_ranks_broadcast(MPI_Comm comm, void *bytes, size_t size, int root) {
  if (comm == PL_ALONE) return;
  for (size_t done = 0, piece; done < size; done += piece) { /* MPI counts in int */
    piece = size - done < 1u << 30 ? size - done : 1u << 30;
    MPI_Bcast((char *)bytes + done, (int)piece, MPI_BYTE, root, comm);
  }
}
