/* See search/parallel/mpi_command.h. */
#include "search/parallel/mpi_command.h"

#include <signal.h>

#include "core/system/command.h"

static int finish(const pl_mpi_command *command, MPI_Comm comm, pl_error *error) {
  int status = pl_code_exit_status(error->code);
  if (pl_rank(comm) == 0) {
    if (error->code == PL_OK) command->print(command->session, error);
    if (error->code != PL_OK) status = pl_command_report(command->name, error);
    status = pl_command_finish(command->name, status);
  }
  if (command->split != NULL && *command->split) MPI_Abort(comm, status);
  pl_ranks_broadcast(comm, &status, sizeof status, 0);
  return status;
}

static int run(const pl_mpi_command *command, MPI_Comm comm, pl_error *error) {
  if (error->code == PL_OK) command->run(command->session, comm, error);
  return finish(command, comm, error);
}

static int run_over_mpi(const pl_mpi_command *command) {
  pl_error error = PL_ERROR_INIT;
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (provided < MPI_THREAD_FUNNELED)
    pl_fail(&error, PL_UNSUPPORTED, "this MPI does not allow threads (MPI_THREAD_FUNNELED)");
  int status = run(command, MPI_COMM_WORLD, &error);
  bool speaks = pl_rank(MPI_COMM_WORLD) == 0;
  MPI_Finalize();
  return speaks ? status : 0;
}

int pl_mpi_command_run(const pl_mpi_command *command) {
  pl_error error = PL_ERROR_INIT;
  signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of a write, not a death */
  pl_interrupt_start(command->interrupt);
  int status = pl_ranks_are_launched() ? run_over_mpi(command) : run(command, PL_ALONE, &error);
  pl_interrupt_stop(command->interrupt);
  return status;
}
