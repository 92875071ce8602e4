/* Machines of clouds and computing centres. See netmodel/make/node_kind.h; latencies and rates that all machines share
 * are explained in netmodel/make/node_kind.c. */
#include "netmodel/make/node_kind_tables.h"

static const uint8_t quad_mesh[4][8] = {{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};

const pl_node_kind pl_node_kinds_sites[] = {
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
     EIGHT_WITH_NICS,
     .cpu = "EPYC 7R13",
     .cpu_cores = 48,
     .cpu_core_Gflops = 84.8,
     .port_GBps = 450,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 16,
     .nic_GBps = 50,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "p5en.48xlarge",
     .title = "AWS p5en.48xlarge: 8 H200 on NVSwitch, 16 EFA NICs of 200 Gb/s",
     .about = "NVLink4 and NVSwitch as in a DGX H200. EFA v3: 16 devices of 200 Gb/s (AWS, P5 instances), two beside "
              "each GPU\n"
              "on its PCIe 5.0 switch, written as one of 400 Gb/s. 15 us per NIC as on g4dn, the network behind them "
              "counted as\n"
              "0. Sockets: 2 Xeon of the Sapphire Rapids generation, 48 cores (AWS: 192 vCPUs; taken for 8488C), UPI "
              "at 22 GB/s (NCCL, Sapphire Rapids).\n",
     .device = "H200-SXM5-141GB",
     .default_nodes = 1,
     EIGHT_WITH_NICS,
     .cpu = "Xeon Platinum 8488C",
     .cpu_cores = 48,
     .cpu_core_Gflops = 153.6,
     .port_GBps = 450,
     .pcie_GBps = 52,
     .uplink_GBps = 52,
     .socket_GBps = 22,
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
     .pair_links = pl_node_cube_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 6,
     .nic_GBps = 3.125,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "v100-cube-1ib",
     .title = "OneFlow's V100 node: 8 V100 in a hybrid cube mesh, one EDR InfiniBand NIC",
     .about =
         "Oneflow-Inc/DLPerf, nvidia-smi topo -m: cube mesh of a DGX-1V, 25 GB/s per NVLink; mlx5_0 (100 Gb/s) is "
         "PIX to GPUs 2\n"
         "and 3, NODE to 0 and 1, SYS to 4 to 7, so it sits on the second PCIe 3.0 switch. " RELAYED
         "Two Xeon Gold 5118 of 12 cores (reports/dlperf_benchmark_test_report_v1.md), whose one unit for AVX-512 does "
         "32\n"
         "FLOP a cycle; UPI at 9 GB/s (NCCL, Skylake).\n",
     .device = "V100-SXM2-16GB",
     .default_nodes = 4,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "Xeon Gold 5118",
     .cpu_cores = 12,
     .cpu_core_Gflops = 73.6,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {1},
     .place_socket = TWO_SOCKETS,
     .pair_links = pl_node_cube_mesh,
     .pair_link_GBps = 25,
     .pcie_GBps = 12,
     .uplink_GBps = 12,
     .socket_GBps = 9,
     .nic_GBps = 12.5,
     .nic_ns = 780,
     .switch_ns = 130},
    {.name = "p3.2xlarge",
     .title = "AWS p3.2xlarge: one V100, 10 Gb/s network",
     .about = "p3.2xlarge: one GPU on PCIe 3.0 and 8 vCPUs, 4 cores of a Xeon E5-2686 v4.\n"
              "Network: up to 10 Gb/s (AWS), 15 us per NIC as on g4dn.\n",
     .device = "V100-SXM2-16GB",
     .default_nodes = 1,
     .n_gpus = 1,
     .n_nics = 1,
     .n_places = 1,
     .n_sockets = 1,
     .cpu = "Xeon E5-2686 v4",
     .cpu_cores = 4,
     .cpu_core_Gflops = 73.6,
     .pcie_GBps = 12,
     .nic_GBps = 1.25,
     .nic_ns = 15000,
     .switch_ns = 0},
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
         "g4dn.12xlarge: no NVLink and no switch; GPUs reach each other through the memory of the CPU, nNmem0 (six\n"
         "channels of DDR4-2933, 140.8 GB/s), each at 50 Gb/s = 6.25 GB/s (AMP, section 4.3; the rate of gen 3 x8): "
         "NCCL\n"
         "uses no peer access across a root complex of Intel's (2.10.3, ncclTopoCheckP2p), and none worked there\n"
         "(ray-project/ray issue 15495). Network: 50 Gb/s (AMP, section 4.3); 15 us per NIC, from the 64 us of a "
         "two-rank\n"
         "all-reduce over EFA (aws-ia/terraform-aws-eks-blueprints, eks-efa). One socket: its 48 vCPUs are the 24 "
         "cores\n"
         "of one Xeon Platinum 8259CL, half of g4dn.metal, which has 4 T4 on each of two sockets (pytorch/ci-infra "
         "pull\n"
         "request 747): neither GPUs nor network are across a bus between sockets.\n",
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
     .memory_GBps = 140.8,
     .nic_GBps = 6.25,
     .nic_ns = 15000,
     .switch_ns = 0},
    {.name = "g5.48xlarge",
     .title = "AWS g5.48xlarge: 8 A10G on PCIe 4.0, 100 Gb/s network",
     .about =
         "No NVLink (AWS). Assumed: two A10G per PCIe 4.0 switch, two sockets of EPYC 7R32 (AWS: 192 vCPUs), Infinity\n"
         "Fabric at 16 GB/s (NCCL, AMD). Network: 100 Gb/s EFA (AWS), 15 us per NIC as on g4dn.\n",
     .device = "A10G",
     .default_nodes = 1,
     .n_gpus = 8,
     .n_nics = 1,
     .n_places = 4,
     .n_sockets = 2,
     .cpu = "EPYC 7R32",
     .cpu_cores = 48,
     .cpu_core_Gflops = 89.6,
     .switched = true,
     .gpu_place = EIGHT_IN_PAIRS,
     .nic_place = {0},
     .place_socket = TWO_SOCKETS,
     .pcie_GBps = 26,
     .uplink_GBps = 26,
     .socket_GBps = 16,
     .nic_GBps = 12.5,
     .nic_ns = 15000,
     .switch_ns = 0},
};

const uint32_t pl_node_kinds_sites_count = sizeof pl_node_kinds_sites / sizeof pl_node_kinds_sites[0];
