/* What collectives over the axes of a program's mesh take on a cluster: the prices that layouts are chosen by
 * (workloads/layout/layout_prices.h). */
#ifndef PL_WORKLOADS_MESH_PRICES_H
#define PL_WORKLOADS_MESH_PRICES_H

#include "netmodel/collective/groups_alike.h"
#include "workloads/compile/ir_transfers.h"
#include "workloads/layout/layout_prices.h"

typedef struct pl_mesh_price {
  pl_collective_kind kind;
  uint32_t axes; /* one bit each */
  double size_bytes, time_s;
} pl_mesh_price;

/* Of one program. It points into itself: it stays where it was initialised. */
typedef struct pl_mesh_prices {
  const pl_cluster *cluster;
  pl_collective_options options;
  pl_arena *arena;
  pl_ir_transfers transfers;
  pl_hash_index known;    /* pl_mesh_price */
  uint32_t *members;      /* of a group, while it is priced */
  double *bytes;          /* per link, of all groups */
  uint32_t *busy, n_busy; /* links that carry some */
  pl_groups_alike comparing;
  const bool **like_first; /* per choice of axes and stage: its groups are the first stage's on other links; NULL: not
                              yet asked for */
  pl_layout_prices prices;
} pl_mesh_prices;

/* Groups are made once and kept in `arena`, which outlives the prices, as the cluster does; `options` are copied. A
 * collective over axes of a mesh is one of every group of devices along them, all at once, as they will be: it takes
 * what the slowest takes alone, or what the busiest link takes to carry them all (eight rings through one NIC), on the
 * slowest stage. Where stages have unlike numbers of devices (places that are less than the mesh's) the platform's
 * first ones stand for a stage. Stages that lie as the first does are not measured. For each choice of axes, each kind
 * and each size a comparison of the stages (groups_alike.h) and O(devices) routes. */
void pl_mesh_prices_init(pl_mesh_prices *prices, const pl_cluster *cluster, const pl_collective_options *options,
                         pl_arena *arena);

#endif
