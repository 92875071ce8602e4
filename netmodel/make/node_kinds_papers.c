/* Machines of papers. See netmodel/make/node_kind.h; latencies and rates that all machines share are explained in
 * netmodel/make/node_kind.c. */
#include "netmodel/make/node_kind_tables.h"

/* The topology files of Proteus' repository. */
static const uint8_t hc2_mesh[8][8] = {{0, 1, 2, 1, 0, 0, 0, 2}, {1, 0, 1, 2, 0, 0, 2, 0}, {2, 1, 0, 2, 0, 1, 0, 0},
                                       {1, 2, 2, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 2, 2, 1}, {0, 0, 1, 0, 2, 0, 1, 2},
                                       {0, 2, 0, 0, 2, 1, 0, 1}, {2, 0, 0, 0, 1, 2, 1, 0}};

const pl_node_kind pl_node_kinds_papers[] = {
    {.name = "hc1",
     .title = "Proteus HC1: one node, 8 TITAN Xp on PCIe",
     .about =
         "Proteus, table III: 1 node, 8 TITAN Xp, PCIe. From its topology file: PCIe 3.0 switches 02, 06 (socket 0) "
         "and 82,\n"
         "86 (socket 1) with two GPUs each; its cluster file says 12 GB/s between GPUs, as measured for gen 3 x16.\n"
         "The bus numbers are those of a Haswell or Broadwell board, which CPU is not published: a Xeon E5-2698 v4 is\n"
         "assumed, 76.8 GB/s of memory and two QPI links of 9.6 GT/s, 38.4 GB/s, per socket (Intel). NCCL lets no "
         "GPUs\n"
         "behind different switches access each other there (2.8.4 and 2.10.3, ncclTopoCheckP2p): between switches\n"
         "everything passes the memory of a socket, nNmemC. Its 1 Gb/s Ethernet is left out: there is no second "
         "node.\n",
     .device = "TitanXp",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 0,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon E5 v4, assumed",
     .cpu_cores = 20,
     .cpu_core_Gflops = 70.4,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .place_socket = TWO_SOCKETS,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 38.4,
     .memory_GBps = 76.8},
    {.name = "hc2",
     .title = "Proteus HC2: 8 V100 per node in a hybrid cube mesh, one 100 Gb/s NIC per node",
     .about = "Proteus, table III: 4 nodes, 8 V100, NVLink, 100 Gb/s. From its topology file (dgx1_v100_1ib): links "
              "per pair\n"
              "0-1:1 0-2:2 0-3:1 0-7:2 1-2:1 1-3:2 1-6:2 2-3:2 2-5:1 3-4:1 4-5:2 4-6:2 4-7:1 5-6:1 5-7:2 6-7:1, 25 "
              "GB/s per\n"
              "NVLink2; PCIe 3.0 switches 18, 3b (socket 0), 86, af (socket 1) with two GPUs each; the only NIC is on\n"
              "switch 3b, beside GPUs 2 and 3, so that the others reach it over the sockets. 32 GB per GPU in its "
              "cluster file.\n" RELAYED
              "Between the sockets: 9 GB/s (NCCL 2.10.3 tuner, Skylake; the bus numbers are those of such a board).\n"
              "Which CPU is not published: cores and speed of a Xeon Gold 6148 are assumed.\n",
     .device = "V100-SXM2-32GB",
     .default_nodes = 4,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Skylake SP, assumed",
     .cpu_cores = 20,
     .cpu_core_Gflops = 153.6,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {1},
     .place_socket = TWO_SOCKETS,
     .pair_links = hc2_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 9,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "hc3",
     .title = "Proteus HC3: 8 A100 per node on NVSwitch, one 200 Gb/s NIC per node",
     .about = "Proteus, table III: 2 nodes, 8 A100, NVLink, 200 Gb/s. Its repository has no topology of this cluster. "
              "Assumed:\n"
              "NVSwitch with 300 GB/s per GPU, 40 GB memory, PCIe 4.0 switches of two GPUs, one HDR NIC (HC2 has one "
              "of EDR)\n"
              "on the switch of GPUs 0 and 1, and a socket bus as fast as one PCIe slot, so that the NIC stays the "
              "bottleneck;\n"
              "sockets as in a DGX A100.\n",
     .device = "A100-SXM4-40GB",
     .default_nodes = 2,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "EPYC 7742, assumed",
     .cpu_cores = 64,
     .cpu_core_Gflops = 72,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0},
     .place_socket = TWO_SOCKETS,
     .port_GBps = 300,
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 26,
     .nic_GBps = 25,
     .nic_ns = 780,
     .switch_ns = 130},
};

const uint32_t pl_node_kinds_papers_count = sizeof pl_node_kinds_papers / sizeof pl_node_kinds_papers[0];
