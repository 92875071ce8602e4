/* How the GPUs of one node are wired, as its routes tell: which pairs have NVLink of their own, who sits on an
 * NVSwitch, through which NIC each GPU leaves the node, which CPU socket is its own and behind which PCIe switch. For
 * drawings. */
#ifndef PL_NETMODEL_NODE_WIRING_H
#define PL_NETMODEL_NODE_WIRING_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/cluster/cluster.h"
#include "netmodel/platform/platform.h"

enum { PL_WIRING_GPUS_MAX = 16, PL_WIRING_SOCKETS_MAX = 4 };

typedef struct pl_node_wiring {
  uint32_t n_gpus;                                         /* at most PL_WIRING_GPUS_MAX: the first of the node */
  double pair_Bps[PL_WIRING_GPUS_MAX][PL_WIRING_GPUS_MAX]; /* one NVLink from i to j alone; 0 = none */
  double switch_Bps[PL_WIRING_GPUS_MAX];                   /* NVLink into a switch, else 0 */
  double host_Bps[PL_WIRING_GPUS_MAX];                     /* first PCIe or CPU link towards others, else 0 */
  uint32_t nic[PL_WIRING_GPUS_MAX];                        /* index into nics, PL_NONE = the node stands alone */
  uint32_t nics[PL_WIRING_GPUS_MAX];                       /* links of kind nic, in order of their first GPU */
  uint32_t n_nics;
  uint32_t socket[PL_WIRING_GPUS_MAX];     /* the nearest, index into sockets; PL_NONE = no route to any */
  uint32_t sockets[PL_WIRING_SOCKETS_MAX]; /* index into pl_platform_sockets; the first of the node, in file order */
  uint32_t n_sockets;
  /* PCIe switches: what several GPUs share on their way to their socket. PL_NONE = none. */
  uint32_t pcie_switch[PL_WIRING_GPUS_MAX];   /* index into pcie_switches */
  uint32_t pcie_switches[PL_WIRING_GPUS_MAX]; /* their links towards the socket, in order of their first GPU */
  uint32_t n_pcie_switches;
  /* Where a NIC sits in the PCIe tree: on the switch of a GPU that has nothing but its own PCIe link on the way to it,
   * else, if there is a way over a socket, on that of the GPU with the shortest way. PL_NONE = neither is known. */
  uint32_t nic_switch[PL_WIRING_GPUS_MAX], nic_socket[PL_WIRING_GPUS_MAX]; /* per NIC */
  double bus_Bps; /* narrowest link of kind cpu on a way from a GPU to a socket; 0 = none */
  bool has_pairs, has_switch, has_host;
} pl_node_wiring;

/* Errors are those of routes. Cost: n^2 routes of the node, and one from each GPU to each socket. */
pl_code pl_node_wiring_find(const pl_platform *platform, uint32_t node, pl_node_wiring *wiring, pl_error *error);

#endif
