/* Transfers of a program's collectives over the links of the cluster: groups, each made once, and one spec for each
 * collective of a group and size. */
#ifndef PL_WORKLOADS_IR_TRANSFERS_H
#define PL_WORKLOADS_IR_TRANSFERS_H

#include "core/base/hash_index.h"
#include "netmodel/collective/collective.h"
#include "workloads/compile/token_nodes.h"

/* The collective that a transfer is. */
typedef struct pl_ir_sent {
  const pl_collective_group *group; /* NULL: a copy between a device and its host */
  pl_collective_kind kind;
  double size_bytes;
  const uint32_t *members; /* devices of the cluster; of a send who sends, then who receives */
  uint32_t n_members;
  uint32_t n_alike; /* so many transfers; of a folded graph the members are those of one */
} pl_ir_sent;

typedef struct pl_ir_transfers {
  const pl_cluster *cluster;
  const pl_collective_options *options;
  const uint32_t *places; /* per device of the program that of the cluster; NULL: the same */
  pl_token_choice tokens; /* that go once to each node; k 0: once to each expert */
  pl_arena *arena;
  pl_hash_index groups, known; /* by members; by group, kind and size */
  uint32_t *host_specs;        /* per device of the cluster, out and back: its spec + 1; NULL: none yet */
  pl_transfer_spec *specs;
  pl_ir_sent *sent; /* per spec */
  pl_link_use *uses;
  uint32_t n_specs, room_specs, room_sent, n_uses, room_uses;
} pl_ir_transfers;

void pl_ir_transfers_init(pl_ir_transfers *transfers, const pl_cluster *cluster, const pl_collective_options *options,
                          pl_arena *arena);
/* Of an exchange of so many bytes between these devices of the program what is sent: less of tokens of experts on
 * several nodes. */
double pl_ir_transfers_bytes(const pl_ir_transfers *transfers, bool of_tokens, const uint32_t *members, uint32_t n,
                             double size_bytes);
/* Room for so many more specs at once; no promise. False: no memory. */
bool pl_ir_transfers_expect(pl_ir_transfers *transfers, uint32_t n);
/* The spec, and the bytes of progress, of a collective of `size_bytes` over these devices of the program. */
pl_code pl_ir_transfers_collective(pl_ir_transfers *transfers, pl_collective_kind kind, const uint32_t *members,
                                   uint32_t n, double size_bytes, uint32_t *spec, double *progress_bytes,
                                   pl_error *error);
/* From a device of the program to the memory of its host, or back (out false): one flow over its links. */
pl_code pl_ir_transfers_host(pl_ir_transfers *transfers, uint32_t device, bool out, uint32_t *spec, pl_error *error);
/* Seconds of one that is alone on the network. */
double pl_ir_transfers_alone_s(const pl_ir_transfers *transfers, uint32_t spec, double progress_bytes);
/* All of them, once the last has been asked for. */
pl_code pl_ir_transfers_table(const pl_ir_transfers *transfers, pl_transfer_table *table, pl_error *error);

#endif
