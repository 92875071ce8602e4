/* A cluster without SimGrid and without a file: made from a few parameters, then made lopsided link by link.
 *
 * What the tests of folding, compiling, networks, collectives and sweeps run on. Links (all directed):
 *
 *   inside a node   SYNTHETIC_NVSWITCH   a port up and a port down per GPU; route = up(a), down(b)
 *                   SYNTHETIC_MESH       a direct link for every ordered pair of GPUs; route = that link
 *                   SYNTHETIC_CUBE_MESH  8 GPUs wired as in a DGX-1V (NVLink 1 or 2 wide, `nvlink_Bps` per link); pairs
 * that no link joins go over PCIe SYNTHETIC_PCIE       route = pcie up(a), pcie down(b); through cpu up and cpu down of
 * the sockets when the halves of the node differ (socket = first or second half of the GPUs) between nodes   pcie
 * up(a), nic up, [leaf up, leaf down], nic down, pcie down(b); GPU i uses NIC i * nics / gpus
 *
 * Without `nvlink_Bps` etc. set, zeroes take defaults (synthetic_cluster_defaults). One leaf holds `leaf_nodes`
 * consecutive nodes; its uplink and downlink carry the sum of its NICs divided by `oversubscription`; leaf_nodes = 0:
 * one switch without a bound.
 *
 * The same options give the same cluster, bit for bit. Routes are looked up under a mutex and stay valid until release.
 */
#ifndef PL_TESTS_SUPPORT_SYNTHETIC_CLUSTER_H
#define PL_TESTS_SUPPORT_SYNTHETIC_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cluster/cluster.h"

typedef enum synthetic_wiring {
  SYNTHETIC_NVSWITCH = 0,
  SYNTHETIC_MESH,
  SYNTHETIC_CUBE_MESH,
  SYNTHETIC_PCIE
} synthetic_wiring;

typedef struct synthetic_options {
  uint32_t n_nodes, gpus_per_node;
  synthetic_wiring wiring;
  uint32_t nics_per_node; /* 1 .. gpus_per_node */
  double nvlink_Bps;      /* of a port (NVSWITCH) or of one link (MESH, CUBE_MESH), each direction */
  double pcie_Bps, cpu_Bps, nic_Bps;
  uint32_t leaf_nodes;
  double oversubscription;
  bool rails; /* a leaf of its own for every NIC number: only changing rails or pods crosses leaf links */
  double nvlink_latency_s, pcie_latency_s, cpu_latency_s, nic_latency_s, fabric_latency_s; /* per link */
  const pl_device_profile *profiles; /* borrowed; NULL: two built-in ones, "SYN-A" and the slower, smaller "SYN-B" */
  uint32_t n_profiles;
} synthetic_options;

/* 1 node of 8 GPUs on an NVSwitch with 300 GB/s ports, 1 NIC of 25 GB/s per GPU, PCIe 32 GB/s, no leaf bound, latencies
 * of 1 to 2 us. */
synthetic_options synthetic_cluster_defaults(void);

/* Zero fields are taken from the defaults, except latencies (0 = none) and leaf_nodes. The caller releases; aborts the
 * test program on lack of memory. */
pl_cluster *synthetic_cluster_create(const synthetic_options *options);
/* Random wiring, shape (at most max_devices devices, at least 1), capacities, oversubscription and, for three in four
 * seeds, one to three lopsided things: a scaled link, another profile, a FATPIPE link, another latency. */
pl_cluster *synthetic_cluster_random(uint64_t seed, uint32_t max_devices);
/* As random, but never lopsided: every node like every other. */
pl_cluster *synthetic_cluster_random_regular(uint64_t seed, uint32_t max_devices);
void synthetic_cluster_release(pl_cluster *cluster);

/* Hooks; before the cluster is shared between threads. */
void synthetic_cluster_scale_link(pl_cluster *cluster, uint32_t link, double factor);
void synthetic_cluster_set_capacity(pl_cluster *cluster, uint32_t link, double capacity_Bps);
void synthetic_cluster_set_latency(pl_cluster *cluster, uint32_t link, double latency_s);
/* Every NIC as far away as that from its fabric: 17 us and more are taken for TCP sockets. */
void synthetic_cluster_take_apart(pl_cluster *cluster, double latency_s);
void synthetic_cluster_set_policy(pl_cluster *cluster, uint32_t link, pl_link_policy policy);
void synthetic_cluster_set_profile(pl_cluster *cluster, uint32_t device, uint32_t profile);
/* By name: "n0_g1_nv_up", "n0_g1_nv_down", "n0_nv_1_2" (direct), "n0_g1_pcie_up", "n0_s0_cpu_up", "n0_nic0_up",
 * "leaf0_up" ...; PL_NONE when there is none. */
uint32_t synthetic_cluster_link(const pl_cluster *cluster, const char *name);

#endif
