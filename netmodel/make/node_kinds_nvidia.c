/* NVIDIA's own machines. See netmodel/make/node_kind.h; latencies and rates that all machines share are explained in
 * netmodel/make/node_kind.c. */
#include "netmodel/make/node_kind_tables.h"

/* nvidia-smi topo -m. */
const uint8_t pl_node_cube_mesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                         {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                         {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

const pl_node_kind pl_node_kinds_nvidia[] = {
    {.name = "dgx-1v",
     .title = "NVIDIA DGX-1V: 8 V100 in a hybrid cube mesh, 4 EDR InfiniBand NICs",
     .about =
         "NVLink2, 25 GB/s per link, 6 links per GPU; links per pair: 0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2\n"
         "2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2 (nvidia-smi topo -m of a DGX-1V, Microway guide).\n" RELAYED
         "GPUs 2i and 2i+1 share a PCIe 3.0 switch with NIC i (PIX in the same listing); GPUs 0 to 3 are on socket 0.\n"
         "The switches (PEX 8764, gen 3 x16 upwards: topology file in NVIDIA/nccl issue 671) hang on their socket\n"
         "one by one (PHB in the listing). Sockets: 2 Xeon E5-2698 v4 of 20 cores (CPU affinity 0-19 and 20-39;\n"
         "MLPerf training v0.7 system description), QPI at 6 GB/s (NCCL, Broadwell). No transfer between GPUs or to\n"
         "a NIC uses switch uplinks or QPI.\n"
         "NIC: ConnectX-4 EDR, 100 Gb/s (product specification). Leaf of 36 ports: 18 nodes, 18 uplinks.\n",
     .device = "V100-SXM2-32GB",
     .default_nodes = 1,
     .pod_nodes = 18,
     .n_gpus = 8,
     .n_nics = 4,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon E5-2698 v4",
     .cpu_cores = 20,
     .cpu_core_Gflops = 70.4,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0, 1, 2, 3},
     .gpu_nic = EIGHT_IN_PAIRS,
     .place_socket = TWO_SOCKETS,
     .pair_links = pl_node_cube_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 6,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-2",
     .title = "NVIDIA DGX-2: 16 V100 on NVSwitch, 8 EDR InfiniBand NICs for compute",
     .about =
         "NVLink2 and NVSwitch: 6 links per GPU, 150 GB/s into the switches, all pairs NV6 (measured: 145.5 GB/s\n"
         "between any pair). Both baseboards are joined without loss, so one port per GPU is all there is.\n"
         "GPUs 2i and 2i+1 and NIC i share a PCIe 3.0 switch (NVIDIA/nccl-tests issue 78, topo -m); two more NICs\n"
         "of the machine are for storage. Two such switches, 4 GPUs and 2 NICs, meet in a switch above them (PXB in\n"
         "the listing; the other pairs of the socket are NODE): uplinks nNpswS, trunks nNptopT, gen 3 x16 each\n"
         "(assumed). Sockets: 2 Xeon Platinum 8168 of 24 cores (data sheet; CPU affinity 0-23), UPI at 9 GB/s\n"
         "(NCCL, Skylake). No transfer between GPUs or to the NIC beside them uses any of these.\n"
         "NIC: ConnectX-5 EDR, 100 Gb/s (product specification). Leaf of 36 ports: 18 nodes, 18 uplinks.\n",
     .device = "V100-SXM3-32GB",
     .default_nodes = 1,
     .pod_nodes = 18,
     .n_gpus = 16,
     .n_nics = 8,
     .n_places = 8,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8168",
     .cpu_cores = 24,
     .cpu_core_Gflops = 172.8,
     .switched = true,
     .gpu_place = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7},
     .nic_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .gpu_nic = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7},
     .place_socket = {0, 0, 0, 0, 1, 1, 1, 1},
     .n_tops = 4,
     .place_top = {0, 0, 1, 1, 2, 2, 3, 3},
     .port_GBps = 150,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 9,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-a100",
     .title = "NVIDIA DGX A100: 8 A100 on NVSwitch, 8 HDR InfiniBand NICs for compute",
     .about =
         "NVLink3 and NVSwitch: 12 links per GPU, 2 to each of 6 switches, 300 GB/s into them, all pairs NV12\n"
         "(NVIDIA/nccl issue 1505; measured 272 to 276 GB/s between pairs, stas00/ml-engineering network).\n"
         "GPUs 2i and 2i+1 and two NICs share a PCIe 4.0 switch (topo -m: GPU0,1 PXB mlx5_0,1; GPU2,3 mlx5_2,3;\n"
         "GPU4,5 mlx5_6,7; GPU6,7 mlx5_8,9): one NIC per GPU. NIC r of the file is the r-th of these; mlx5_4, 5,\n"
         "10, 11 are for storage and not in the file. Sockets: 2 EPYC 7742 of 64 cores (MLPerf training v0.7 system\n"
         "description; GPUs 0 to 3 are near NUMA nodes 3 and 1, GPUs 4 to 7 near 7 and 5, of 16 cores each), one\n"
         "gen 4 x16 uplink per switch (assumed), Infinity Fabric at 16 GB/s (NCCL, AMD). No transfer between GPUs\n"
         "or to a NIC uses these.\n"
         "NIC: ConnectX-6 HDR, 200 Gb/s. Leaf: 40-port QM8790, 20 nodes of a scalable unit down, 20 uplinks\n"
         "(NVIDIA DGX SuperPOD reference architecture RA-09950-001).\n",
     .device = "A100-SXM4-80GB",
     .default_nodes = 1,
     .pod_nodes = 20,
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "EPYC 7742",
     .cpu_cores = 64,
     .cpu_core_Gflops = 72,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = EIGHT_IN_PAIRS,
     .gpu_nic = {0, 1, 2, 3, 4, 5, 6, 7},
     .place_socket = TWO_SOCKETS,
     .port_GBps = 300,
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 16,
     .nic_GBps = 25,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-h100",
     .title = "NVIDIA DGX H100: 8 H100 on NVSwitch, 8 NDR InfiniBand NICs for compute",
     .about =
         "NVLink4 and NVSwitch: 18 links per GPU, 450 GB/s into the switches, all pairs NV18 (measured 363 to 377 "
         "GB/s\n"
         "between pairs, stas00/ml-engineering network).\n"
         "One ConnectX-7 per GPU on PCIe 5.0 (DGX H100 user guide, table of network modules: GPU 0 mlx5_0, 1 mlx5_3,\n"
         "2 mlx5_4, 3 mlx5_5, 4 mlx5_6, 5 mlx5_9, 6 mlx5_10, 7 mlx5_11); NIC r of the file is the one of GPU r.\n"
         "That ConnectX-7 is also the PCIe switch between GPU and socket: nNpswR is its link upwards, gen 5 x16\n"
         "(assumed), four on each socket (topo -m: NODE to the other NICs of the socket, SYS to the rest;\n"
         "vllm-project/vllm issue 13855). Sockets: 2 Xeon Platinum 8480C of 56 cores (DGX BasePOD reference\n"
         "architecture), UPI at 22 GB/s (NCCL, Sapphire Rapids). No transfer between GPUs or to a NIC uses these.\n"
         "NIC: NDR, 400 Gb/s. Leaf: 64-port QM9700,\n"
         "32 nodes of a scalable unit down, 32 uplinks (NVIDIA DGX SuperPOD reference architecture RA-11333-001).\n",
     .device = "H100-SXM5-80GB",
     .default_nodes = 1,
     .pod_nodes = 32,
     EIGHT_WITH_NICS,
     .cpu = "Xeon Platinum 8480C",
     .cpu_cores = 56,
     .cpu_core_Gflops = 128,
     .port_GBps = 450,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-h200",
     .title = "NVIDIA DGX H200: 8 H200 on NVSwitch, 8 NDR InfiniBand NICs for compute",
     .about = "The DGX H100 with other GPUs: NVLink4 and NVSwitch, 18 links per GPU, 450 GB/s into the switches; one\n"
              "ConnectX-7 of 400 Gb/s per GPU on PCIe 5.0, 2 Xeon Platinum 8480C of 56 cores (NVIDIA DGX H200 "
              "datasheet; for\n"
              "compute 8 single-port ConnectX-7). PCIe, sockets and leaf switches as in the file of the DGX H100.\n",
     .device = "H200-SXM5-141GB",
     .default_nodes = 1,
     .pod_nodes = 32,
     EIGHT_WITH_NICS,
     .cpu = "Xeon Platinum 8480C",
     .cpu_cores = 56,
     .cpu_core_Gflops = 128,
     .port_GBps = 450,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-b200",
     .title = "NVIDIA DGX B200: 8 B200 on NVSwitch, 8 NDR InfiniBand NICs for compute",
     .about =
         "NVLink5 and NVSwitch: 18 links per GPU of 50 GB/s per direction, 900 GB/s into the switches\n"
         "(stas00/ml-engineering network). One ConnectX-7 of 400 Gb/s per GPU on PCIe 5.0 (NVIDIA DGX B200 datasheet:\n"
         "8 single-port ConnectX-7), each the PCIe switch between its GPU and the socket as on DGX H100 (assumed).\n"
         "Sockets: 2 Xeon Platinum 8570 of 56 cores (the datasheet); UPI at 22 GB/s as NCCL has it for Sapphire\n"
         "Rapids. Leaf switches as of DGX H100's SuperPOD: 64-port QM9700, 32 nodes down, 32 uplinks.\n",
     .device = "B200",
     .default_nodes = 1,
     .pod_nodes = 32,
     EIGHT_WITH_NICS,
     .cpu = "Xeon Platinum 8570",
     .cpu_cores = 56,
     .cpu_core_Gflops = 134.4,
     .port_GBps = 900,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "dgx-b300",
     .title = "NVIDIA DGX B300: 8 B300 on NVSwitch, 8 XDR InfiniBand NICs for compute",
     .about = "NVLink5 and NVSwitch: 18 links per GPU of 50 GB/s per direction, 900 GB/s into the switches, as on DGX "
              "B200.\n"
              "One ConnectX-8 of 800 Gb/s per GPU, on the board of the GPUs (NVIDIA DGX B300 user guide: 8 OSFP "
              "ports), PCIe\n"
              "6.0 x16 between both, taken at twice what gen 5 gives (not measured). Sockets: 2 Xeon 6776P of 64 cores "
              "(NVIDIA\n"
              "DGX B300 datasheet); between them UPI at 22 GB/s as NCCL has it for Sapphire Rapids (not measured). "
              "Leaf: 144\n"
              "ports of 800 Gb/s (Quantum-X800 Q3400), 72 nodes down, 72 uplinks (assumed).\n",
     .device = "B300",
     .default_nodes = 1,
     .pod_nodes = 72,
     EIGHT_WITH_NICS,
     .cpu = "Xeon 6776P",
     .cpu_cores = 64,
     .cpu_core_Gflops = 147.2,
     .port_GBps = 900,
     .pcie_GBps = 104,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 100,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "gb200-nvl72",
     .title = "NVIDIA GB200 NVL72: a rack of 72 GB200 on one NVSwitch domain, one NDR NIC per GPU",
     .about = "NVLink5: 900 GB/s per GPU into the rack's switches, all 72 GPUs in one domain (stas00/ml-engineering\n"
              "network; NVIDIA GB200 NVL72 datasheet: 130 TB/s both ways). A tray has 4 GPUs and 2 Grace CPUs; a job "
              "on fewer\n"
              "GPUs has the first ones. NIC: one ConnectX-7 of 400 Gb/s per GPU (NVIDIA DGX SuperPOD GB200 reference\n"
              "architecture: 4 per tray); PCIe 5.0 x16 to it. The Grace CPUs are not described one by one: one socket\n"
              "stands for them, and what it would carry is not to be believed. Leaf switches: 8 racks under one group\n"
              "(a scalable unit of the reference architecture).\n",
     .device = "GB200",
     .default_nodes = 1,
     .pod_nodes = 8,
     RACK_OF_72,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "gb300-nvl72",
     .title = "NVIDIA GB300 NVL72: a rack of 72 GB300 on one NVSwitch domain, one XDR NIC per GPU",
     .about =
         "NVLink5: 900 GB/s per GPU into the rack's switches, all 72 GPUs in one domain. A tray has 4 GPUs and 2 "
         "Grace\n"
         "CPUs; a job on fewer GPUs has the first ones. NIC: one ConnectX-8 of 800 Gb/s per GPU, 4 per tray (NVIDIA\n"
         "Enterprise Reference Architecture for GB300 NVL72), PCIe 6.0 x16 to its GPU, taken at twice what gen 5 "
         "gives\n"
         "(not measured). The Grace CPUs are not described one by one: one socket stands for them, and what it would\n"
         "carry is not to be believed. Leaf switches: 8 racks under one group, as of GB200 NVL72.\n",
     .device = "GB300",
     .default_nodes = 1,
     .pod_nodes = 8,
     RACK_OF_72,
     .pcie_GBps = 104,
     .uplink_GBps = 52,
     .nic_GBps = 100,
     .nic_ns = 780,
     .switch_ns = 130},
};

const uint32_t pl_node_kinds_nvidia_count = sizeof pl_node_kinds_nvidia / sizeof pl_node_kinds_nvidia[0];
