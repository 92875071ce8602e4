/* A command that runs under MPI: who may speak, and with what exit status its ranks leave. A process that no
 * launcher started runs alone and without MPI (search/parallel/ranks.h). */
#ifndef PL_SEARCH_MPI_COMMAND_H
#define PL_SEARCH_MPI_COMMAND_H

#include <stdbool.h>

#include "core/base/status.h"
#include "search/parallel/interrupt.h"
#include "search/parallel/ranks.h"

typedef struct pl_mpi_command {
  const char *name; /* "sweep" */
  void *session;
  /* All ranks; returns with the same code on all of them. */
  pl_code (*run)(void *session, MPI_Comm comm, pl_error *error);
  /* Rank 0, after a run without failure: its output on stdout. A failure is reported like one of the run. */
  pl_code (*print)(void *session, pl_error *error);
  /* Some ranks can no longer meet the others: only MPI_Abort ends this without a hang. NULL = never. */
  const bool *split;
  pl_interrupt *interrupt; /* from before MPI to the end of the command */
} pl_mpi_command;

/* MPI from initialisation to end, MPI_THREAD_FUNNELED; returns the exit status: the command's on rank 0, success on all
 * others. Launchers leave with the worst of them; but at the first rank that fails Open MPI's stops reading what the
 * rest have written, and rank 0's message went missing in some runs in which another rank was the first to leave. */
int pl_mpi_command_run(const pl_mpi_command *command);

#endif
