/* Servers that several vendors build alike, and generic ones. See netmodel/make/node_kind.h; latencies and rates that
 * all machines share are explained in netmodel/make/node_kind.c. */
#include "netmodel/make/node_kind_tables.h"

/* 18 links of NVLink4 per GPU over three peers: 6 of 25 GB/s per pair. */
static const uint8_t six_links[4][8] = {{0, 6, 6, 6}, {6, 0, 6, 6}, {6, 6, 0, 6}, {6, 6, 6, 0}};

const pl_node_kind pl_node_kinds_servers[] = {
    {.name = "hgx-a800",
     .title = "Server with HGX A800: 8 A800 on NVSwitch, 8 HDR InfiniBand NICs",
     .about =
         "As a DGX A100 but for NVLink: 8 links per GPU instead of 12, 200 GB/s into the switches (nvidia-smi topo -m\n"
         "of such a box: all pairs NV8, each GPU PIX to one NIC; 400 GB/s both ways as vendors of servers state it).\n"
         "Assumed: CPUs, PCIe and network of a DGX A100.\n",
     .device = "A800-SXM4-80GB",
     .default_nodes = 1,
     .pod_nodes = 20,
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "EPYC 7742, assumed",
     .cpu_cores = 64,
     .cpu_core_Gflops = 72,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = EIGHT_IN_PAIRS,
     .gpu_nic = ONE_PER_GPU,
     .place_socket = TWO_SOCKETS,
     .port_GBps = 200,
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 16,
     .nic_GBps = 25,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "hgx-h800",
     .title = "Server with HGX H800: 8 H800 on NVSwitch, 8 NDR InfiniBand NICs",
     .about =
         "As a DGX H100 but for NVLink: 8 links per GPU instead of 18, 200 GB/s into the switches (400 GB/s both "
         "ways:\n"
         "vendors of servers; DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.2, counts with 160 GB/s that copies\n"
         "reach, and with one NIC of 50 GB/s per GPU). Assumed: CPUs, PCIe and network of a DGX H100.\n",
     .device = "H800-SXM5-80GB",
     .default_nodes = 1,
     .pod_nodes = 32,
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 8,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8480C, assumed",
     .cpu_cores = 56,
     .cpu_core_Gflops = 128,
     .switched = true,
     .gpu_place = ONE_PER_GPU,
     .nic_place = ONE_PER_GPU,
     .gpu_nic = ONE_PER_GPU,
     .place_socket = FOUR_AND_FOUR,
     .port_GBps = 200,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "pcie4-server",
     .title = "Generic server: 8 GPUs on PCIe 4.0, two sockets, one 200 Gb/s NIC",
     .about = "No machine in particular: GPUs 2i and 2i+1 share a PCIe 4.0 switch, two switches per socket, no NVLink, "
              "one HDR\n"
              "NIC on the switch of GPUs 0 and 1. Infinity Fabric at 16 GB/s (NCCL, AMD). Cores and speed: EPYC 7742.\n"
              "For A100, A40, L40S, L4 and RTX A6000 cards.\n",
     .device = "A100-PCIe-80GB",
     .default_nodes = 1,
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
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 16,
     .nic_GBps = 25,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "pcie5-server",
     .title = "Generic server: 8 GPUs in PCIe 5.0 slots, two sockets, two 400 Gb/s NICs",
     .about =
         "No machine in particular: GPUs 2i and 2i+1 share a PCIe 5.0 switch, two switches per socket, no NVLink, one "
         "NDR\n"
         "NIC per socket, on the switches of GPUs 0, 1 and of GPUs 4, 5. UPI at 22 GB/s (NCCL, Sapphire Rapids). "
         "Cores\n"
         "and speed: Xeon Platinum 8480C. For H100 cards.\n",
     .device = "H100-PCIe-80GB",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 2,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8480C, assumed",
     .cpu_cores = 56,
     .cpu_core_Gflops = 128,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0, 2},
     .gpu_nic = FOUR_AND_FOUR,
     .place_socket = TWO_SOCKETS,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "gh200-quad",
     .title = "Quad GH200: 4 GH200 with NVLink between each pair, 4 Slingshot-11 NICs",
     .about =
         "18 links of 25 GB/s per GPU over three peers: 150 GB/s per pair and direction (NVIDIA, quad GH200). One NIC "
         "of\n"
         "200 Gb/s per GPU, 2 us (assumed), behind PCIe 5.0. The Grace CPUs are not described one by one: one socket\n"
         "stands for them, and what it would carry is not to be believed.\n",
     .device = "GH200-96GB",
     .default_nodes = 1,
     .n_gpus = 4,
     .n_nics = 4,
     .n_places = 4,
     .n_sockets = 1,
     .cpu = "Grace",
     .cpu_cores = 72,
     .cpu_core_Gflops = 49.6,
     .switched = true,
     .gpu_place = {0, 1, 2, 3},
     .nic_place = {0, 1, 2, 3},
     .gpu_nic = {0, 1, 2, 3},
     .pair_links = six_links,
     .pair_link_GBps = 25,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .nic_GBps = 25,
     .nic_ns = 2000,
     .switch_ns = 130},
};

const uint32_t pl_node_kinds_servers_count = sizeof pl_node_kinds_servers / sizeof pl_node_kinds_servers[0];
