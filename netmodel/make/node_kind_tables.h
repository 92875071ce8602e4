/* The tables of machines behind netmodel/make/node_kind.h, and what their rows have in common. */
#ifndef PL_NETMODEL_NODE_KIND_TABLES_H
#define PL_NETMODEL_NODE_KIND_TABLES_H

#include "netmodel/make/node_kind.h"

extern const pl_node_kind pl_node_kinds_nvidia[], pl_node_kinds_sites[], pl_node_kinds_servers[],
    pl_node_kinds_papers[];
extern const uint32_t pl_node_kinds_nvidia_count, pl_node_kinds_sites_count, pl_node_kinds_servers_count,
    pl_node_kinds_papers_count;

/* NVLinks per pair in a DGX-1V, and in machines built like it. */
extern const uint8_t pl_node_cube_mesh[8][8];

#define EIGHT_IN_PAIRS                                                                                                 \
  { 0, 0, 1, 1, 2, 2, 3, 3 }
#define ONE_TO_72                                                                                                      \
  {                                                                                                                    \
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,  \
        31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57,    \
        58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71                                                         \
  }
#define TWO_SOCKETS                                                                                                    \
  { 0, 0, 1, 1 }
#define RELAYED                                                                                                        \
  "Pairs without a direct NVLink go through a GPU that both are linked to, as NCCL does (NCCL_NVB_DISABLE=0):\n"       \
  "the relay with the widest narrower side, then the most links, then the lowest number.\n"
#define ONE_PER_GPU                                                                                                    \
  { 0, 1, 2, 3, 4, 5, 6, 7 }
#define FOUR_AND_FOUR                                                                                                  \
  { 0, 0, 0, 0, 1, 1, 1, 1 }
/* Eight GPUs on NVSwitch, each behind a NIC of its own, four of them on each socket. */
#define EIGHT_WITH_NICS                                                                                                \
  .n_gpus = 8, .n_nics = 8, .n_places = 8, .n_sockets = 2, .switched = true, .gpu_place = ONE_PER_GPU,                 \
  .nic_place = ONE_PER_GPU, .gpu_nic = ONE_PER_GPU, .place_socket = FOUR_AND_FOUR
/* NVIDIA's NVL72: one socket stands for all Grace CPUs. */
#define RACK_OF_72                                                                                                     \
  .n_gpus = 72, .n_nics = 72, .n_places = 72, .n_sockets = 1, .cpu = "Grace", .cpu_cores = 72,                         \
  .cpu_core_Gflops = 49.6, .switched = true, .gpu_place = ONE_TO_72, .nic_place = ONE_TO_72, .gpu_nic = ONE_TO_72,     \
  .port_GBps = 900

#endif
