/* What is inside one machine: GPUs, NVLink, PCIe, sockets, NICs, as a table of known machines, and the wires that a
 * transfer crosses between two GPUs, between a GPU or a CPU socket and its NIC, and between GPUs and sockets.
 *
 * One description serves every machine: a GPU hangs on a place, which is a PCIe switch when `switched` and otherwise
 * the CPU socket itself; above the switches there may be a second level of them (`n_tops`). NVLink is either one port
 * per GPU into an NVSwitch or a number of links per pair of GPUs.
 * Rejected: a writer per machine, which drifted in the comments first and in the routes next.
 */
#ifndef PL_NETMODEL_NODE_KIND_H
#define PL_NETMODEL_NODE_KIND_H

#include <stdbool.h>
#include <stdint.h>

/* A rack of 72 GPUs on one NVSwitch is a node too. */
enum { PL_NODE_GPUS_MAX = 72, PL_NODE_NICS_MAX = 72, PL_NODE_PLACES_MAX = 72, PL_NODE_HOPS_MAX = 8 };
enum { PL_NODE_SOCKETS_MAX = 2, PL_NODE_TOPS_MAX = 4 };

typedef struct pl_node_kind {
  const char *name;  /* "dgx-a100" */
  const char *title; /* one line */
  const char *about; /* lines of the file's comment: the hierarchy, what was decided and where each figure comes from */
  const char *device; /* profile name; `platform make --device` replaces it */
  uint32_t default_nodes;
  uint32_t pod_nodes; /* nodes under one group of leaf switches; 0: the network is one big switch */
  uint8_t n_gpus, n_nics, n_places, n_sockets;
  uint8_t n_tops; /* PCIe switches between those of the places and the sockets; 0: uplinks go to the socket */
  bool switched;  /* places are PCIe switches with an uplink to their socket, or to their switch of the second level */
  uint8_t gpu_place[PL_NODE_GPUS_MAX];
  uint8_t nic_place[PL_NODE_NICS_MAX];
  uint8_t gpu_nic[PL_NODE_GPUS_MAX];
  uint8_t place_socket[PL_NODE_PLACES_MAX];
  uint8_t place_top[PL_NODE_PLACES_MAX];
  const char *cpu;    /* in one socket */
  uint32_t cpu_cores; /* of one socket, as far as the machine's user gets them */
  double
      cpu_core_Gflops; /* of one core: base clock x single precision operations per cycle; for plain SimGrid programs */
  double port_GBps;    /* per GPU into an NVSwitch, each direction; 0: none */
  const uint8_t (*pair_links)[8];             /* NVLinks per pair of GPUs, symmetric; NULL: none */
  double pair_link_GBps;                      /* of one such link, each direction */
  double pcie_GBps, uplink_GBps, socket_GBps; /* of a GPU's slot, of a PCIe switch upwards, between the sockets */
  /* Of one socket's memory; 0: not counted. Where it is, transfers between GPUs that no PCIe switch joins pass it. */
  double memory_GBps;
  double nic_GBps;
  uint32_t nic_ns, switch_ns; /* latency of a NIC with its cable, and of crossing one network switch */
} pl_node_kind;

/* Latency of one crossing in ns, the same on every machine; node_kind.c says where each comes from. */
enum {
  PL_NODE_PORT_NS = 250,
  PL_NODE_NVLINK_NS = 500,
  PL_NODE_PCIE_NS = 500,
  PL_NODE_UPLINK_NS = 100,
  PL_NODE_SOCKET_NS = 200,
  PL_NODE_MEMORY_NS = 0 /* within the slots' latency */
};

typedef enum pl_wire {
  PL_WIRE_PORT = 0, /* a = GPU; UP = out of the GPU */
  PL_WIRE_NVLINK,   /* a < b, GPUs; UP = from a to b */
  PL_WIRE_PCIE,     /* a = GPU; UP = out of the GPU */
  PL_WIRE_UPLINK,   /* a = place; UP = towards the socket */
  PL_WIRE_TRUNK,    /* a = switch of the second level; UP = towards the socket */
  PL_WIRE_SOCKETS,  /* UP = from socket 0 to socket 1 */
  PL_WIRE_MEMORY,   /* a = socket; written and read, no direction */
  PL_WIRE_NIC       /* a = NIC; UP = out of the node */
} pl_wire;

typedef struct pl_hop {
  uint8_t wire, a, b;
  bool up;
} pl_hop;

/* NULL when there is no such kind. */
const pl_node_kind *pl_node_kind_find(const char *name);
/* The i-th kind, NULL behind the last: for messages that list them. */
const pl_node_kind *pl_node_kind_at(uint32_t i);

/* Wires in crossing order from one GPU to another of the same node, or out of the node through the GPU's NIC; returns
 * how many. */
uint32_t pl_node_kind_path(const pl_node_kind *kind, uint32_t from, uint32_t to, pl_hop hops[PL_NODE_HOPS_MAX]);
uint32_t pl_node_kind_path_out(const pl_node_kind *kind, uint32_t gpu, pl_hop hops[PL_NODE_HOPS_MAX]);
/* The same between a GPU and a CPU socket (its memory), which may be the other one than the GPU's; between two
 * different sockets; and out of the node from a socket, through pl_node_kind_socket_nic. */
uint32_t pl_node_kind_path_to_socket(const pl_node_kind *kind, uint32_t gpu, uint32_t socket,
                                     pl_hop hops[PL_NODE_HOPS_MAX]);
uint32_t pl_node_kind_path_sockets(uint32_t from, uint32_t to, pl_hop hops[PL_NODE_HOPS_MAX]);
uint32_t pl_node_kind_path_socket_out(const pl_node_kind *kind, uint32_t socket, pl_hop hops[PL_NODE_HOPS_MAX]);
/* The first NIC on this socket, or NIC 0 when all are on the other. */
uint32_t pl_node_kind_socket_nic(const pl_node_kind *kind, uint32_t socket);
/* The GPU that relays between two GPUs without a direct NVLink, or PL_NODE_GPUS_MAX when there is none. */
uint32_t pl_node_kind_relay(const pl_node_kind *kind, uint32_t from, uint32_t to);

/* Peak of dense 16-bit arithmetic as SimGrid writes speeds ("312Tf"), which plain SimGrid programs see as the host's
 * speed; NULL for an unknown device. The simulator itself reads the profile. */
const char *pl_device_speed(const char *device);
const char *pl_device_name_at(uint32_t i);

#endif
