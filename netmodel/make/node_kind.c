/* See netmodel/make/node_kind.h.
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
 * is low. Where GPUs exchange through the memory of the CPU (`memory_GBps`) the bus has its own rate.
 */
#include "netmodel/make/node_kind_tables.h"

#include <stddef.h>
#include <string.h>

const pl_node_kind *pl_node_kind_at(uint32_t i) {
  const struct {
    const pl_node_kind *kinds;
    uint32_t n;
  } tables[] = {{pl_node_kinds_nvidia, pl_node_kinds_nvidia_count},
                {pl_node_kinds_sites, pl_node_kinds_sites_count},
                {pl_node_kinds_servers, pl_node_kinds_servers_count},
                {pl_node_kinds_papers, pl_node_kinds_papers_count}};
  for (uint32_t t = 0; t < sizeof tables / sizeof tables[0]; i -= tables[t++].n)
    if (i < tables[t].n) return &tables[t].kinds[i];
  return NULL;
}

const pl_node_kind *pl_node_kind_find(const char *name) {
  const pl_node_kind *kind;
  for (uint32_t i = 0; (kind = pl_node_kind_at(i)) != NULL; i++)
    if (strcmp(kind->name, name) == 0) return kind;
  return NULL;
}

static const struct {
  const char *device, *speed;
} speeds[] = {{"TitanXp", "12.15Tf"},
              {"P100", "10.6Tf"},
              {"V100-SXM2-16GB", "125Tf"},
              {"V100-SXM2-32GB", "125Tf"},
              {"V100-SXM3-32GB", "130.8Tf"},
              {"T4", "65Tf"},
              {"A10G", "70Tf"},
              {"A10", "125Tf"},
              {"RTX-3090", "71Tf"},
              {"RTX-4090", "165.2Tf"},
              {"RTX-6000-Ada", "364.4Tf"},
              {"A40", "149.7Tf"},
              {"RTX-A6000", "154.8Tf"},
              {"L4", "121Tf"},
              {"L40S", "362Tf"},
              {"A100-PCIe-40GB", "312Tf"},
              {"A100-PCIe-80GB", "312Tf"},
              {"A100-SXM4-40GB", "312Tf"},
              {"A100-SXM4-80GB", "312Tf"},
              {"A800-SXM4-80GB", "312Tf"},
              {"H100-PCIe-80GB", "756Tf"},
              {"H100-SXM5-80GB", "989Tf"},
              {"H800-SXM5-80GB", "989Tf"},
              {"GH200-96GB", "989Tf"},
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
