/* BytePS' timelines in dPRO's job folders: JOB/comm_timeline.json, what workers and servers sent each other, and
 * JOB/server_timeline.json, what servers did with it.
 *
 * Events begin and end by process, which is a link ("worker_0 -> server_1") or a server ("server_1"); names are
 * "Comm.TENSOR.PUSH" or ".PULL", a tensor's pieces "TENSOR~PART2". A worker's PUSH carries the gradient, the server's
 * is its acknowledgement; a worker's PULL is the request, the server's carries the sum. Servers become ranks behind
 * those of the workers: COPY_FIRST for the first worker's gradient, SUM for the others', COPY_MERGED, and then the
 * answers.
 *
 * The k-th worker is on the k-th host's first rank. A message begins by its sender's clock and ends by its receiver's,
 * as dPRO records RDMA (ZMQ's dates are both the receiver's). What lies between them on each clock is the flight: the
 * difference of the two, less half of what the fastest messages of both directions differ by.
 */
#ifndef PL_WORKLOADS_FORMATS_BYTEPS_H
#define PL_WORKLOADS_FORMATS_BYTEPS_H

#include "workloads/formats/dpro_state.h"

#define PL_BYTEPS_OUTSIDE (-2) /* of no step that was recorded */

typedef struct pl_byteps_message {
  uint32_t tensor; /* name, with its piece */
  int32_t worker, server;
  uint8_t kind;                   /* PL_DPRO_PUSH .. PL_DPRO_PULLED */
  int64_t start_ns, end_ns, step; /* step: number; -1: no steps are marked */
  int64_t ahead_ns;               /* the server's clock of the worker's */
  bool is_placed;                 /* its worker was recorded */
} pl_byteps_message;

typedef struct pl_byteps_work {
  uint32_t tensor, name, thread;
  int32_t server;
  int64_t start_ns, end_ns;
} pl_byteps_work;

typedef struct pl_byteps {
  pl_byteps_message *messages; /* by server and worker */
  pl_byteps_work *works;
  uint32_t n_messages, message_room, n_works, work_room;
  int64_t first_server; /* rank number of server 0 */
  uint32_t n_unpaired;
  bool is_cut;
} pl_byteps;

/* `path` is that of comm_timeline.json. Zeroed before; release it also after a failure. */
pl_code pl_byteps_load(pl_byteps *own, const char *path, pl_trace *trace, pl_error *error);
/* The same from texts (servers: NULL if there is none); for fuzzing. */
pl_code pl_byteps_parse(pl_byteps *own, const char *name, const char *links, size_t links_size, const char *servers,
                        size_t servers_size, pl_trace *trace, pl_error *error);
void pl_byteps_release(pl_byteps *own);

/* Adds what worker `worker` sent and received to its rank, whose ops of computing are there: they say which step a
 * message is of. */
pl_code pl_byteps_add_worker(pl_byteps *own, int32_t worker, pl_dpro *rank, pl_error *error);
/* After the workers: the servers, as ranks. */
pl_code pl_byteps_add_servers(const pl_byteps *own, const char *path, pl_trace *trace, pl_error *error);
/* What a rank's pushes, pulls and sums wait for, once they are ops. */
pl_code pl_byteps_link(pl_dpro *rank, pl_error *error);

#endif
