/* Writes a cluster of known machines (netmodel/make/node_kind.h) as a SimGrid 3.32 platform file (DTD 4.1).
 *
 * How a rail-optimised fat tree fits into a format that knows one route per pair and one gateway per pair of zones:
 *
 *   cluster (Full)
 *     pod p0 (Full)                     nodes under one group of leaf switches; left out when there is only one
 *       p0fabric                        router p0gw, crossbar p0xbar, one uplink p0leafR per leaf switch
 *       node n0 (Full)                  GPUs n0g0.., routers n0local and n0spine, wires n0nv0, n0pcie0, n0nic0 ...
 *         GPU r -> n0local              PCIe, NIC r
 *         GPU r -> n0spine              PCIe, NIC r, p0leafR: the rail is chosen inside the node's own routes
 *         sockets n0cpu0, n0cpu1        hosts without a device, with routes to GPUs, to each other and to the routers
 *       zoneRoute n0 - n1               between the _local routers: leaf crossbar only
 *       zoneRoute n0 - p0fabric         from the _spine router to p0gw: leaf crossbar
 *     zoneRoute p0 - p1                 between p0gw and p1gw: the spine
 *
 * A pod's gateway sits in a zone of its own because SimGrid wants zones at both ends of a zoneRoute, and it wants at
 * least one link in each: the crossbars, which are real (a switch costs latency) but never bind (FATPIPE, the sum of
 * all ports).
 *
 * What this leaves out: inside a pod, traffic from rail r to rail s really climbs to the spine and back. Here it
 * crosses the two NICs and one crossbar. With non-blocking leaves no rate changes; with oversubscription such traffic
 * is too fast (NCCL avoids it: it changes rail over NVLink), and its latency is short of two switches in any case.
 *
 * Where links are declared: SimGrid finds a link by asking one zone after the other, so links inside 2048 node zones
 * took 37 s to load. Above 32 nodes they are all in the first zone, `fabric`, where the first look finds them.
 *
 * Sockets: they are for host memory traffic and for other SimGrid programs; no GPU asks for their routes. A DGX A100
 * gets 21 more routes beside its 44, which SimGrid pays for at load whether they are used or not: files are 1.35 times
 * as large and take 1.3 times as long for 64 nodes, 1.4 for 2048 (tests/bench/platform_load_bench.c). Hence
 * PL_PLAN_SOCKET_NODES, above which they are left out unless asked for: there the difference is 40 ms.
 *
 * Size: zoneRoutes are (pod_nodes^2 / 2) * pods + pods^2 / 2, 26,000 for 2048 nodes; flat they would be 2.1 million.
 */
#ifndef PL_NETMODEL_PLATFORM_WRITER_H
#define PL_NETMODEL_PLATFORM_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"
#include "netmodel/make/node_kind.h"

typedef enum pl_fabric {
  PL_FABRIC_RAIL = 0, /* leaf switch r of a pod carries NIC r of every node */
  PL_FABRIC_FAT_TREE, /* one leaf (group) of a pod carries all NICs of its nodes */
  PL_FABRIC_SINGLE    /* one non-blocking switch */
} pl_fabric;

typedef enum pl_sockets {
  PL_SOCKETS_AUTO = 0, /* up to PL_PLAN_SOCKET_NODES nodes */
  PL_SOCKETS_ALWAYS,
  PL_SOCKETS_NEVER
} pl_sockets;

/* How NCCL reaches another node. Over TCP sockets all GPUs of a node share one interface, whatever the machine has,
 * and a NIC's crossing takes PL_PLAN_SOCKET_NS: by that latency a collective profile knows them. */
typedef enum pl_transport { PL_TRANSPORT_RDMA = 0, PL_TRANSPORT_SOCKET } pl_transport;
extern const char *const pl_transport_names[]; /* "rdma", "socket"; NULL ends them */

enum { PL_PLAN_SOCKET_NS = 18000, PL_PLAN_DELAY_NS_MAX = 2000000000 };
enum { PL_PLAN_SOCKET_NODES = 256 };
enum { PL_PLAN_PARTS_MAX = 32, PL_PLAN_NODES_MAX = 65536, PL_PLAN_PODS_MAX = 1024, PL_PLAN_POD_NODES_MAX = 512 };

typedef struct pl_platform_plan {
  struct {
    const pl_node_kind *kind;
    uint32_t n_nodes;
  } parts[PL_PLAN_PARTS_MAX]; /* nodes in this order */
  uint32_t n_parts;
  uint32_t gpus_per_node; /* the first so many GPUs of every machine, the others left out; 0: all */
  pl_fabric fabric;
  uint32_t pod_nodes;      /* for `single` a grouping that only keeps the file small */
  double oversubscription; /* of leaf uplinks; 1 = non-blocking */
  double nic_GBps;         /* 0: each machine's own */
  uint32_t delay_ns;       /* of a message between nodes, beside the machines' own: a network far away, or throttled */
  pl_transport transport;
  pl_sockets sockets;  /* write CPU sockets, and the wires that only they use */
  const char *device;  /* NULL: each machine's own */
  const char *command; /* recorded in the file as property made_by */
} pl_platform_plan;

const char *pl_fabric_name(pl_fabric fabric);
const char *pl_sockets_name(pl_sockets sockets);
uint32_t pl_platform_plan_nodes(const pl_platform_plan *plan);
uint32_t pl_platform_plan_pods(const pl_platform_plan *plan);

/* What cannot be written: a rail fabric over different machines, more GPUs per node than a machine has, too many pods
 * ... PL_BAD_INPUT. */
pl_code pl_platform_plan_check(const pl_platform_plan *plan, pl_error *error);
/* Writes the file to `stream`; the caller looks at ferror(). The plan has passed the check. The same plan gives the
 * same bytes. */
void pl_platform_write(const pl_platform_plan *plan, FILE *stream);

#endif
