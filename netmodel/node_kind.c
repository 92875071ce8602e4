/* See netmodel/node_kind.h.
 *
 * Latencies. NCCL's tuner (2.10.3) prices one step of its low-latency protocol at 0.5 us over NVLink, 1.0 us over PCIe
 * and 2.7 us over the network: the nearest thing to a published hardware latency per hop. An NVSwitch hop is two ports
 * of 250 ns, a direct NVLink 500 ns, a PCIe hop two slots of 500 ns, a network hop two slots, two NICs of 780 ns and
 * one switch of 130 ns (port to port, vendor's figure for HDR InfiniBand). What a PCIe switch's uplink (100 ns) and the
 * bus between sockets (200 ns) add is assumed. NICs of cloud machines take 15 us, from the 64 us that a two-rank
 * all-reduce of two steps takes over EFA on g4dn: the network behind them is then counted as 0.
 *
 * Rates. NVLink and NICs nominal; PCIe is the payload rate that copies reach: 12 GB/s for gen 3 x16 (NCCL's tuner;
 * measured 11.4 to 12.2), 26 GB/s for gen 4 x16 (nvbandwidth), 52 GB/s for gen 5 x16 (gen 4 doubled: assumed).
 * Between sockets what NCCL's tuner counts with for traffic of GPUs and NICs: 6 GB/s QPI of Broadwell, 9 UPI of Skylake
 * (2.10.3), 16 Infinity Fabric (AMD_BW, 2.16.2), 22 UPI of Sapphire Rapids (SRP_QPI_BW, 2.26.2). The bus itself is
 * wider (2 QPI links of 9.6 GT/s are 38 GB/s per direction), which copies of host memory can use: for them the figure
 * is low.
 */
#include "netmodel/node_kind.h"

#include <stddef.h>
#include <string.h>

/* NVLinks per pair. DGX-1V: nvidia-smi topo -m. HC2: the topology files of Proteus' repository. */
static const uint8_t cube_mesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                        {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                        {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
static const uint8_t hc2_mesh[8][8] = {{0, 1, 2, 1, 0, 0, 0, 2}, {1, 0, 1, 2, 0, 0, 2, 0}, {2, 1, 0, 2, 0, 1, 0, 0},
                                       {1, 2, 2, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 2, 2, 1}, {0, 0, 1, 0, 2, 0, 1, 2},
                                       {0, 2, 0, 0, 2, 1, 0, 1}, {2, 0, 0, 0, 1, 2, 1, 0}};
static const uint8_t quad_mesh[4][8] = {{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};

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

static const pl_node_kind kinds[] = {
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
     .pair_links = cube_mesh,
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
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 8,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8480C",
     .cpu_cores = 56,
     .cpu_core_Gflops = 128,
     .switched = true,
     .gpu_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .nic_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .gpu_nic = {0, 1, 2, 3, 4, 5, 6, 7},
     .place_socket = {0, 0, 0, 0, 1, 1, 1, 1},
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
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 8,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8570",
     .cpu_cores = 56,
     .cpu_core_Gflops = 134.4,
     .switched = true,
     .gpu_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .nic_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .gpu_nic = {0, 1, 2, 3, 4, 5, 6, 7},
     .place_socket = {0, 0, 0, 0, 1, 1, 1, 1},
     .port_GBps = 900,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
     .nic_GBps = 50,
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
     .n_gpus = 72,
     .n_nics = 72,
     .n_places = 72,
     .n_sockets = 1,
     .cpu = "Grace",
     .cpu_cores = 72,
     .cpu_core_Gflops = 49.6,
     .switched = true,
     .gpu_place = ONE_TO_72,
     .nic_place = ONE_TO_72,
     .gpu_nic = ONE_TO_72,
     .port_GBps = 900,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .nic_GBps = 50,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "jean-zay-a100",
     .title = "Jean Zay (IDRIS), A100 partition: 8 A100 80 GB on NVSwitch, 4 Omni-Path NICs",
     .about =
         "Of BLOOM's training (bigscience-workshop/bigscience, train/tr11-176B-ml): 8 A100 80 GB per node, \"NVLink 4\n"
         "inter-gpu connects\", 4 Omni-Path links. Omni-Path 100 series: 100 Gb/s per link. Two GPUs share a NIC and a "
         "PCIe\n"
         "4.0 switch (assumed, as on DGX A100). NIC and switch latency: as of InfiniBand (NCCL's tuner does not tell\n"
         "them apart). Sockets: 2 EPYC 7543 of 32 cores (IDRIS), otherwise as DGX A100. One switch between all "
         "nodes.\n",
     .device = "A100-SXM4-80GB",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 4,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "EPYC 7543",
     .cpu_cores = 32,
     .cpu_core_Gflops = 89.6,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0, 1, 2, 3},
     .gpu_nic = EIGHT_IN_PAIRS,
     .place_socket = TWO_SOCKETS,
     .port_GBps = 300,
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 16,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "p4d.24xlarge",
     .title = "AWS p4d.24xlarge: 8 A100 on NVSwitch, 4 EFA NICs of 100 Gb/s",
     .about =
         "NVLink3 and NVSwitch as in a DGX A100. NCCL's topology file of p4d-24xl (aws-ofi-nccl): a PCIe switch (gen 3 "
         "x16)\n"
         "per two GPUs and one EFA device of 100 Gb/s, two switches per socket; AWS: 400 Gb/s per node with GPUDirect\n"
         "RDMA. p4de.24xlarge is the same with 80 GB per GPU (option device, A100-SXM4-80GB). 15 us per NIC as on "
         "g4dn.\n"
         "Sockets: 2 Xeon Platinum 8275CL of 24 cores (AWS); UPI at 9 GB/s (NCCL, Skylake).\n",
     .device = "A100-SXM4-40GB",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 4,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon Platinum 8275CL",
     .cpu_cores = 24,
     .cpu_core_Gflops = 192,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0, 1, 2, 3},
     .gpu_nic = EIGHT_IN_PAIRS,
     .place_socket = TWO_SOCKETS,
     .port_GBps = 300,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 9,
     .nic_GBps = 12.5,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "p5.48xlarge",
     .title = "AWS p5.48xlarge: 8 H100 on NVSwitch, 32 EFA NICs of 100 Gb/s",
     .about =
         "NVLink4 and NVSwitch as in a DGX H100. EFA v2: 32 devices of 100 Gb/s (stas00/ml-engineering network), four "
         "beside\n"
         "each GPU on its PCIe 5.0 switch, written as one of 400 Gb/s. 15 us per NIC as on g4dn, the network behind\n"
         "them counted as 0. Sockets: 2 EPYC 7R13 of 48 cores (AWS), Infinity Fabric at 16 GB/s (NCCL, AMD).\n",
     .device = "H100-SXM5-80GB",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 8,
     .n_places = 8,
     .n_sockets = 2,
     .cpu = "EPYC 7R13",
     .cpu_cores = 48,
     .cpu_core_Gflops = 84.8,
     .switched = true,
     .gpu_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .nic_place = {0, 1, 2, 3, 4, 5, 6, 7},
     .gpu_nic = {0, 1, 2, 3, 4, 5, 6, 7},
     .place_socket = {0, 0, 0, 0, 1, 1, 1, 1},
     .port_GBps = 450,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 16,
     .nic_GBps = 50,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "p3.16xlarge",
     .title = "AWS p3.16xlarge: 8 V100 in a hybrid cube mesh, 25 Gb/s network",
     .about = "NVLink2 cube mesh of a DGX-1V, 25 GB/s per link; PCIe 3.0 switches of two GPUs (MXNet's design of "
              "topology-aware\n"
              "communication has 50, 25 and 10 GB/s for two links, one, and PCIe with CPU). " RELAYED
              "Network: 25 Gb/s (AWS), on the first switch (assumed); 15 us per NIC as on g4dn.\n"
              "Sockets: 2 Xeon E5-2686 v4 of 16 cores for the guest, 6 GB/s QPI (NCCL 2.10.3 tuner, Broadwell).\n",
     .device = "V100-SXM2-16GB",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon E5-2686 v4",
     .cpu_cores = 16,
     .cpu_core_Gflops = 73.6,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .place_socket = TWO_SOCKETS,
     .pair_links = cube_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 6,
     .nic_GBps = 3.125,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "v100-cube-1ib",
     .title = "OneFlow's V100 node: 8 V100 in a hybrid cube mesh, one EDR InfiniBand NIC",
     .about = "Oneflow-Inc/DLPerf, nvidia-smi topo -m: cube mesh of a DGX-1V, 25 GB/s per NVLink; mlx5_0 (100 Gb/s) is "
              "PIX to GPUs 2\n"
              "and 3, NODE to 0 and 1, SYS to 4 to 7, so it sits on the second PCIe 3.0 switch. " RELAYED
              "Two sockets of 12 cores; which CPU is not published: speed of a Xeon Gold 6126 and UPI at 9 GB/s (NCCL, "
              "Skylake)\n"
              "are assumed.\n",
     .device = "V100-SXM2-16GB",
     .default_nodes = 4,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Skylake SP, assumed",
     .cpu_cores = 12,
     .cpu_core_Gflops = 166.4,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {1},
     .place_socket = TWO_SOCKETS,
     .pair_links = cube_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 9,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "p3.8xlarge",
     .title = "AWS p3.8xlarge: 4 V100 with NVLink, 10 Gb/s network",
     .about =
         "p3.8xlarge: NVLink2, 25 GB/s per link, half of a DGX-1V's cube mesh: links per pair 0-1:1 0-2:1 "
         "0-3:2\n"
         "1-2:2 1-3:1 2-3:2 (AWS lists 200 GB/s: GPU 0's 4 links, both ways; AMP, section 4.3, found about 170 Gb/s\n"
         "between GPUs). PCIe 3.0; the guest sees GPUs and network under one CPU socket: its 32 vCPUs are 16 of the\n"
         "18 cores of one Xeon E5-2686 v4, half of p3.16xlarge, which has two. Nothing crosses a bus between\n"
         "sockets.\n"
         "Network: up to 10 Gb/s (AWS), 15 us per NIC as on g4dn.\n",
     .device = "V100-SXM2-16GB",
     .default_nodes = 1,
     .n_gpus = 4,
     .n_nics = 1,
     .n_places = 1,
     .n_sockets = 1,
     .cpu = "Xeon E5-2686 v4",
     .cpu_cores = 16,
     .cpu_core_Gflops = 73.6,
     .pair_links = quad_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .nic_GBps = 1.25,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "g4dn.12xlarge",
     .title = "AWS g4dn.12xlarge: 4 T4 on PCIe, 50 Gb/s network",
     .about =
         "g4dn.12xlarge: no NVLink; GPUs reach each other over PCIe and the CPU's root complex at 50 Gb/s = 6.25 GB/s "
         "(AMP,\n"
         "section 4.3; the rate of gen 3 x8). Network: 50 Gb/s (AMP, section 4.3); 15 us per NIC, from the 64 us of\n"
         "a two-rank all-reduce over EFA (aws-ia/terraform-aws-eks-blueprints, eks-efa). One socket: its 48 vCPUs\n"
         "are the 24 cores of one Xeon Platinum 8259CL, half of g4dn.metal, which has 4 T4 on each of two sockets\n"
         "(pytorch/ci-infra pull request 747): neither GPUs nor network are across a bus between sockets.\n",
     .device = "T4",
     .default_nodes = 1,
     .n_gpus = 4,
     .n_nics = 1,
     .n_places = 1,
     .n_sockets = 1,
     .cpu = "Xeon Platinum 8259CL",
     .cpu_cores = 24,
     .cpu_core_Gflops = 160,
     .pcie_GBps = 6.25,
     .nic_GBps = 6.25,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "hc1",
     .title = "Proteus HC1: one node, 8 TITAN Xp on PCIe",
     .about =
         "Proteus, table III: 1 node, 8 TITAN Xp, PCIe. From its topology file: PCIe 3.0 switches 02, 06 (socket 0) "
         "and 82,\n"
         "86 (socket 1) with two GPUs each; its cluster file says 12 GB/s between GPUs, as measured for gen 3 x16.\n"
         "Between the sockets: 6 GB/s of peer traffic over QPI (NCCL 2.10.3 tuner; the bus numbers are those of a\n"
         "Haswell or Broadwell board). Its 1 Gb/s Ethernet is left out: there is no second node.\n"
         "Which CPU is not published: cores and speed of a Xeon E5-2698 v4 are assumed.\n",
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
     .socket_GBps = 6},
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

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

const pl_node_kind *pl_node_kind_at(uint32_t i) {
  return i < N_KINDS ? &kinds[i] : NULL;
}

const pl_node_kind *pl_node_kind_find(const char *name) {
  for (uint32_t i = 0; i < N_KINDS; i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

static const struct {
  const char *device, *speed;
} speeds[] = {{"TitanXp", "12.15Tf"},
              {"P100", "10.6Tf"},
              {"V100-SXM2-16GB", "125Tf"},
              {"V100-SXM2-32GB", "125Tf"},
              {"V100-SXM3-32GB", "125Tf"},
              {"T4", "65Tf"},
              {"A10G", "70Tf"},
              {"A100-SXM4-40GB", "312Tf"},
              {"A100-SXM4-80GB", "312Tf"},
              {"H100-SXM5-80GB", "989Tf"},
              {"H200-SXM5-141GB", "989Tf"},
              {"B200", "2250Tf"},
              {"B300", "2250Tf"},
              {"GB200", "2500Tf"},
              {"GB300", "2500Tf"}};

const char *pl_device_speed(const char *device) {
  for (uint32_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
    if (strcmp(speeds[i].device, device) == 0) return speeds[i].speed;
  return NULL;
}

const char *pl_device_name_at(uint32_t i) {
  return i < sizeof speeds / sizeof speeds[0] ? speeds[i].device : NULL;
}
