/* See search/agree.h. */
#include "search/agree.h"

pl_code pl_agree(MPI_Comm comm, pl_error *error) {
  int rank, n_ranks, first;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n_ranks);
  int mine = error->code == PL_OK ? n_ranks : rank;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first < n_ranks) MPI_Bcast(error, (int)sizeof *error, MPI_BYTE, first, comm);
  return error->code;
}
