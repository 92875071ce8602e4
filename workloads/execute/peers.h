/* What one device does with the others when each runs in a process of its own: the moves of the executor's ops, whoever
 * carries them out (search/run/mpi_peers.h does so with MPI). Without peers all devices are in this process.
 *
 * Members of a group all call the same function in the same order. Numbers travel as fp32 where `narrow`, else as fp64.
 */
#ifndef PL_WORKLOADS_EXECUTE_PEERS_H
#define PL_WORKLOADS_EXECUTE_PEERS_H

#include "core/base/status.h"

typedef struct pl_peer_group {
  uint32_t n;
  const uint32_t *devices; /* of the mesh, rising; this one among them */
} pl_peer_group;

/* Parts of a group are in the order of its devices, `n` numbers each. */
typedef struct pl_peers_ops {
  /* In place. */
  pl_code (*all_reduce)(void *own, const pl_peer_group *group, bool narrow, bool maximum, double *data, int64_t n,
                        pl_error *error);
  pl_code (*reduce_scatter)(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to,
                            int64_t n, pl_error *error);
  pl_code (*all_gather)(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to, int64_t n,
                        pl_error *error);
  pl_code (*all_to_all)(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to, int64_t n,
                        pl_error *error);
  /* Does not wait for the receiver; `from` may be changed at once. What two devices send each other on one channel
   * (from 0 on) comes in that order. */
  pl_code (*send)(void *own, uint32_t to, int64_t channel, bool narrow, const double *from, int64_t n, pl_error *error);
  pl_code (*receive)(void *own, uint32_t from, int64_t channel, bool narrow, double *to, int64_t n, pl_error *error);
  /* In front of an iteration all devices meet. */
  pl_code (*meet)(void *own, pl_error *error);
} pl_peers_ops;

typedef struct pl_peers {
  const pl_peers_ops *ops;
  void *own;
  uint32_t device; /* that this process runs */
} pl_peers;

#endif
