/* See search/parallel/mpi_peers.h. */
#include "search/parallel/mpi_peers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"

struct pl_mpi_message {
  pl_mpi_message *next;
  MPI_Request request;
  char bytes[];
};

/* A communicator of a group. */
typedef struct known_group {
  const uint32_t *devices;
  uint32_t n;
  MPI_Comm comm;
} known_group;

static pl_code check(int result, const char *what, pl_error *error) {
  if (result == MPI_SUCCESS) return PL_OK;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  return pl_fail(error, PL_IO, "%s: %.*s", what, length, text);
}

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "what travels between ranks");
}

/* ---- numbers on their way ---- */

static pl_code check_count(int64_t n, int64_t times, pl_error *error) {
  if (n <= INT_MAX && n * times <= INT_MAX) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED, "%lld numbers in one message: MPI counts to %d", (long long)(n * times),
                 INT_MAX);
}

/* Buffer 0 or 1, of n numbers; NULL: no memory. */
static void *buffer(pl_mpi_peers *own, int which, bool narrow, int64_t n) {
  size_t bytes = (size_t)n * (narrow ? sizeof(float) : sizeof(double));
  if (bytes <= own->bytes[which] && own->buffers[which] != NULL) return own->buffers[which];
  void *larger = realloc(own->buffers[which], bytes > 0 ? bytes : 1);
  if (larger == NULL) return NULL;
  own->buffers[which] = larger;
  own->bytes[which] = bytes;
  return larger;
}

static void pack(bool narrow, void *to, const double *from, int64_t n) {
  if (!narrow) {
    if (n > 0) memcpy(to, from, (size_t)n * sizeof(double));
    return;
  }
  float *numbers = (float *)to;
  for (int64_t i = 0; i < n; i++)
    numbers[i] = (float)from[i];
}

static void unpack(bool narrow, double *to, const void *from, int64_t n) {
  if (!narrow) {
    if (n > 0) memcpy(to, from, (size_t)n * sizeof(double));
    return;
  }
  const float *numbers = (const float *)from;
  for (int64_t i = 0; i < n; i++)
    to[i] = numbers[i];
}

static MPI_Datatype type_of(bool narrow) {
  return narrow ? MPI_FLOAT : MPI_DOUBLE;
}

/* ---- groups ---- */

static pl_code make_comm(pl_mpi_peers *own, const pl_peer_group *group, MPI_Comm *comm, pl_error *error) {
  int *ranks = PL_TAKE(&own->arena, int, group->n);
  void *comms = pl_arena_grown(&own->arena, own->comms, own->n_comms, 1, sizeof(*own->comms), &own->room_comms);
  if (ranks == NULL || comms == NULL) return no_memory(error);
  own->comms = (MPI_Comm *)comms;
  for (uint32_t i = 0; i < group->n; i++)
    ranks[i] = (int)group->devices[i];
  MPI_Group all, members;
  PL_TRY(check(MPI_Comm_group(own->world, &all), "MPI_Comm_group", error));
  PL_TRY(check(MPI_Group_incl(all, (int)group->n, ranks, &members), "MPI_Group_incl", error));
  PL_TRY(check(MPI_Comm_create_group(own->world, members, 0, comm), "MPI_Comm_create_group", error));
  own->comms[own->n_comms++] = *comm;
  MPI_Group_free(&members);
  MPI_Group_free(&all);
  return PL_OK;
}

static pl_code find_comm(pl_mpi_peers *own, const pl_peer_group *group, MPI_Comm *comm, pl_error *error) {
  uint64_t hash = pl_hash_bytes(group->devices, group->n * sizeof(*group->devices), 0);
  uint32_t probe = 0;
  const known_group *known;
  while ((known = (const known_group *)pl_hash_index_find(&own->groups, hash, &probe)) != NULL)
    if (known->n == group->n && memcmp(known->devices, group->devices, group->n * sizeof(*known->devices)) == 0) {
      *comm = known->comm;
      return PL_OK;
    }
  PL_TRY(make_comm(own, group, comm, error));
  known_group *made = PL_TAKE(&own->arena, known_group, 1);
  const uint32_t *devices = PL_COPY(&own->arena, uint32_t, group->devices, group->n);
  if (made == NULL || devices == NULL) return no_memory(error);
  *made = (known_group){.devices = devices, .n = group->n, .comm = *comm};
  return pl_hash_index_put(&own->groups, hash, made, &own->arena) ? PL_OK : no_memory(error);
}

/* ---- collectives ---- */

static pl_code all_reduce(void *context, const pl_peer_group *group, bool narrow, bool maximum, double *data, int64_t n,
                          pl_error *error) {
  pl_mpi_peers *own = (pl_mpi_peers *)context;
  MPI_Comm comm;
  if (group->n == 1) return PL_OK;
  PL_TRY(check_count(n, 1, error));
  PL_TRY(find_comm(own, group, &comm, error));
  void *numbers = buffer(own, 0, narrow, n);
  if (numbers == NULL) return no_memory(error);
  pack(narrow, numbers, data, n);
  PL_TRY(check(MPI_Allreduce(MPI_IN_PLACE, numbers, (int)n, type_of(narrow), maximum ? MPI_MAX : MPI_SUM, comm),
               "MPI_Allreduce", error));
  unpack(narrow, data, numbers, n);
  return PL_OK;
}

typedef enum kind { SCATTER, GATHER, EXCHANGE } kind;

static pl_code collect(pl_mpi_peers *own, kind what, const pl_peer_group *group, bool narrow, const double *from,
                       double *to, int64_t n, pl_error *error) {
  int64_t n_from = what == GATHER ? n : n * group->n, n_to = what == SCATTER ? n : n * group->n;
  MPI_Comm comm;
  if (group->n == 1) {
    if (n > 0) memcpy(to, from, (size_t)n * sizeof(double));
    return PL_OK;
  }
  PL_TRY(check_count(n, group->n, error));
  PL_TRY(find_comm(own, group, &comm, error));
  void *sent = buffer(own, 0, narrow, n_from), *got = buffer(own, 1, narrow, n_to);
  if (sent == NULL || got == NULL) return no_memory(error);
  pack(narrow, sent, from, n_from);
  MPI_Datatype type = type_of(narrow);
  int result = what == SCATTER  ? MPI_Reduce_scatter_block(sent, got, (int)n, type, MPI_SUM, comm)
               : what == GATHER ? MPI_Allgather(sent, (int)n, type, got, (int)n, type, comm)
                                : MPI_Alltoall(sent, (int)n, type, got, (int)n, type, comm);
  static const char *const names[] = {"MPI_Reduce_scatter_block", "MPI_Allgather", "MPI_Alltoall"};
  PL_TRY(check(result, names[what], error));
  unpack(narrow, to, got, n_to);
  return PL_OK;
}

static pl_code reduce_scatter(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to,
                              int64_t n, pl_error *error) {
  return collect((pl_mpi_peers *)own, SCATTER, group, narrow, from, to, n, error);
}

static pl_code all_gather(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to, int64_t n,
                          pl_error *error) {
  return collect((pl_mpi_peers *)own, GATHER, group, narrow, from, to, n, error);
}

static pl_code all_to_all(void *own, const pl_peer_group *group, bool narrow, const double *from, double *to, int64_t n,
                          pl_error *error) {
  return collect((pl_mpi_peers *)own, EXCHANGE, group, narrow, from, to, n, error);
}

/* ---- messages ---- */

/* Gives back those that have left; `wait`: all of them. */
static pl_code settle(pl_mpi_peers *own, bool wait, pl_error *error) {
  for (pl_mpi_message **at = &own->sent; *at != NULL;) {
    pl_mpi_message *message = *at;
    int done = 1;
    PL_TRY(check(wait ? MPI_Wait(&message->request, MPI_STATUS_IGNORE)
                      : MPI_Test(&message->request, &done, MPI_STATUS_IGNORE),
                 "a message", error));
    if (!done) {
      at = &message->next;
      continue;
    }
    *at = message->next;
    free(message);
  }
  return PL_OK;
}

static pl_code check_channel(const pl_mpi_peers *own, int64_t channel, pl_error *error) {
  if (channel < own->n_channels) return PL_OK;
  return pl_fail(error, PL_UNSUPPORTED,
                 "this MPI tells %lld messages between two ranks apart, and the program has more (tags times "
                 "microbatches)",
                 (long long)own->n_channels);
}

static pl_code send(void *context, uint32_t to, int64_t channel, bool narrow, const double *from, int64_t n,
                    pl_error *error) {
  pl_mpi_peers *own = (pl_mpi_peers *)context;
  PL_TRY(check_count(n, 1, error));
  PL_TRY(check_channel(own, channel, error));
  PL_TRY(settle(own, false, error));
  size_t bytes = (size_t)n * (narrow ? sizeof(float) : sizeof(double));
  pl_mpi_message *message = (pl_mpi_message *)malloc(sizeof(*message) + bytes);
  if (message == NULL) return no_memory(error);
  pack(narrow, message->bytes, from, n);
  int result = MPI_Isend(message->bytes, (int)n, type_of(narrow), (int)to, (int)channel, own->world, &message->request);
  if (result != MPI_SUCCESS) {
    free(message);
    return check(result, "MPI_Isend", error);
  }
  message->next = own->sent;
  own->sent = message;
  return PL_OK;
}

static pl_code receive(void *context, uint32_t from, int64_t channel, bool narrow, double *to, int64_t n,
                       pl_error *error) {
  pl_mpi_peers *own = (pl_mpi_peers *)context;
  PL_TRY(check_count(n, 1, error));
  PL_TRY(check_channel(own, channel, error));
  void *numbers = buffer(own, 0, narrow, n);
  if (numbers == NULL) return no_memory(error);
  PL_TRY(check(MPI_Recv(numbers, (int)n, type_of(narrow), (int)from, (int)channel, own->world, MPI_STATUS_IGNORE),
               "MPI_Recv", error));
  unpack(narrow, to, numbers, n);
  return PL_OK;
}

static pl_code meet(void *context, pl_error *error) {
  pl_mpi_peers *own = (pl_mpi_peers *)context;
  PL_TRY(settle(own, true, error));
  return check(MPI_Barrier(own->world), "MPI_Barrier", error);
}

/* ---- opening ---- */

pl_code pl_mpi_peers_open(pl_mpi_peers *own, MPI_Comm world, pl_error *error) {
  static const pl_peers_ops ops = {.all_reduce = all_reduce,
                                   .reduce_scatter = reduce_scatter,
                                   .all_gather = all_gather,
                                   .all_to_all = all_to_all,
                                   .send = send,
                                   .receive = receive,
                                   .meet = meet};
  *own = (pl_mpi_peers){.peers = {.ops = &ops, .own = own}};
  pl_arena_init(&own->arena, 0);
  MPI_Comm_rank(world, &own->rank);
  own->peers.device = (uint32_t)own->rank;
  PL_TRY(check(MPI_Comm_dup(world, &own->world), "MPI_Comm_dup", error));
  MPI_Comm_set_errhandler(own->world, MPI_ERRORS_RETURN);
  int has = 0, *most = NULL;
  MPI_Comm_get_attr(own->world, MPI_TAG_UB, (void *)&most, &has);
  own->n_channels = has && most != NULL ? (int64_t)*most + 1 : 32768;
  return PL_OK;
}

void pl_mpi_peers_close(pl_mpi_peers *own, bool failed) {
  pl_error ignored = PL_ERROR_INIT;
  if (!failed) {
    settle(own, true, &ignored);
    for (uint32_t i = 0; i < own->n_comms; i++)
      MPI_Comm_free(&own->comms[i]);
    MPI_Comm_free(&own->world);
  }
  free(own->buffers[0]);
  free(own->buffers[1]);
  pl_arena_release(&own->arena);
}

void pl_mpi_peers_note_progress(void *own) {
  atomic_fetch_add_explicit(&((pl_mpi_peers *)own)->progress, 1, memory_order_relaxed);
}
