/* See search/mpi_command.h. */
#include "search/mpi_command.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/command.h"

bool pl_mpi_command_is_silent(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *rank = getenv(names[i]);
    if (rank != NULL) return strcmp(rank, "0") != 0;
  }
  return false;
}

static int finish(const pl_mpi_command *command, int rank, pl_error *error) {
  int status = pl_code_exit_status(error->code);
  if (rank == 0) {
    if (error->code == PL_OK) command->print(command->session, error);
    if (error->code != PL_OK) status = pl_command_report(command->name, error);
    status = pl_command_finish(command->name, status);
  }
  if (command->split != NULL && *command->split) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return status;
}

int pl_mpi_command_run(const pl_mpi_command *command) {
  int provided, rank;
  signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of a write, not a death */
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pl_error error = PL_ERROR_INIT;
  if (provided < MPI_THREAD_FUNNELED)
    pl_fail(&error, PL_UNSUPPORTED, "this MPI does not allow threads (MPI_THREAD_FUNNELED)");
  if (error.code == PL_OK) command->run(command->session, rank, &error);
  int status = finish(command, rank, &error);
  MPI_Finalize();
  return status;
}
