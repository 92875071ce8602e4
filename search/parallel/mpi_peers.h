/* Devices of a program as MPI ranks: rank i is device i of the mesh (workloads/execute/peers.h). A group of devices has
 * a communicator of its own, made when its members first meet. */
#ifndef PL_SEARCH_MPI_PEERS_H
#define PL_SEARCH_MPI_PEERS_H

#include <mpi.h>
#include <stdatomic.h>

#include "core/base/arena.h"
#include "core/base/hash_index.h"
#include "workloads/execute/peers.h"

typedef struct pl_mpi_message pl_mpi_message;

typedef struct pl_mpi_peers {
  pl_peers peers; /* to hand on */
  MPI_Comm world;
  int rank;
  int64_t n_channels; /* that MPI has tags for */
  pl_arena arena;
  pl_hash_index groups;
  MPI_Comm *comms; /* of groups, to be freed */
  uint32_t n_comms, room_comms;
  pl_mpi_message *sent; /* not known to have left yet */
  void *buffers[2];     /* numbers as they travel */
  size_t bytes[2];
  atomic_ulong progress; /* ops that were done: what a watch looks at */
} pl_mpi_peers;

/* Collective; `own` stays where it is. */
pl_code pl_mpi_peers_open(pl_mpi_peers *own, MPI_Comm world, pl_error *error);
/* Collective. Of a run that failed nothing is waited for. */
void pl_mpi_peers_close(pl_mpi_peers *own, bool failed);
/* pl_execution_options.progress. */
void pl_mpi_peers_note_progress(void *own);

#endif
