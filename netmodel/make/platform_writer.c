/* See netmodel/make/platform_writer.h. */
#include "netmodel/make/platform_writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "netmodel/make/repeated_text.h"

enum { NODES_WITH_THEIR_LINKS = 32 };

typedef struct writer {
  const pl_platform_plan *plan;
  FILE *out;
  uint32_t n_nodes, n_pods;
  uint32_t n_leaves;                     /* per pod */
  bool apart;                            /* all links in one zone in front */
  pl_node_kind kinds[PL_PLAN_PARTS_MAX]; /* of the plan's parts, with the GPUs that are asked for */
  bool sockets;                          /* hosts for CPU sockets */
} writer;

/* One interface for all; it is the machine's first NIC. */
static void share_nic(pl_node_kind *kind) {
  if (kind->n_nics == 0) return;
  kind->n_nics = 1;
  kind->nic_ns = PL_PLAN_SOCKET_NS;
  memset(kind->gpu_nic, 0, sizeof kind->gpu_nic);
}

static const pl_node_kind *kind_of_node(const writer *w, uint32_t node) {
  uint32_t p = 0;
  while (node >= w->plan->parts[p].n_nodes)
    node -= w->plan->parts[p++].n_nodes;
  return &w->kinds[p];
}

static double nic_GBps(const writer *w, const pl_node_kind *kind) {
  return w->plan->nic_GBps > 0 ? w->plan->nic_GBps : kind->nic_GBps;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* Sum of the NICs of nodes [first, end): what a crossbar can be asked to carry. */
static double sum_nics_GBps(const writer *w, uint32_t first, uint32_t end) {
  double sum = 0;
  for (uint32_t node = first; node < end; node++) {
    const pl_node_kind *kind = kind_of_node(w, node);
    sum += kind->n_nics * nic_GBps(w, kind);
  }
  return sum;
}

/* A rate with ten digits is exact for every figure of the tables and never in exponent form below 10^10 GB/s. */
static void write_link(const writer *w, const char *id, double rate_GBps, uint32_t latency_ns, const char *policy,
                       const char *kind) {
  fprintf(w->out,
          "<link id=\"%s\" bandwidth=\"%.10gGBps\" latency=\"%uns\" sharing_policy=\"%s\"><prop id=\"kind\" "
          "value=\"%s\"/></link>\n",
          id, rate_GBps, latency_ns, policy, kind);
}

enum { WIRE_NAME_BYTES = 48 };

static void name_wire(uint32_t node, pl_hop hop, char name[WIRE_NAME_BYTES]) {
  switch ((pl_wire)hop.wire) {
  case PL_WIRE_PORT:
    snprintf(name, WIRE_NAME_BYTES, "n%unv%u", node, hop.a);
    break;
  case PL_WIRE_NVLINK:
    snprintf(name, WIRE_NAME_BYTES, "n%unv%u-%u", node, hop.a, hop.b);
    break;
  case PL_WIRE_PCIE:
    snprintf(name, WIRE_NAME_BYTES, "n%upcie%u", node, hop.a);
    break;
  case PL_WIRE_UPLINK:
    snprintf(name, WIRE_NAME_BYTES, "n%upsw%u", node, hop.a);
    break;
  case PL_WIRE_TRUNK:
    snprintf(name, WIRE_NAME_BYTES, "n%uptop%u", node, hop.a);
    break;
  case PL_WIRE_SOCKETS:
    snprintf(name, WIRE_NAME_BYTES, "n%uqpi", node);
    break;
  case PL_WIRE_MEMORY:
    snprintf(name, WIRE_NAME_BYTES, "n%umem%u", node, hop.a);
    break;
  case PL_WIRE_NIC:
    snprintf(name, WIRE_NAME_BYTES, "n%unic%u", node, hop.a);
    break;
  }
}

static void write_wire(const writer *w, const pl_node_kind *kind, uint32_t node, pl_hop hop) {
  char name[WIRE_NAME_BYTES];
  name_wire(node, hop, name);
  switch ((pl_wire)hop.wire) {
  case PL_WIRE_PORT:
    write_link(w, name, kind->port_GBps, PL_NODE_PORT_NS, "SPLITDUPLEX", "nvlink");
    break;
  case PL_WIRE_NVLINK:
    write_link(w, name, kind->pair_link_GBps * kind->pair_links[hop.a][hop.b], PL_NODE_NVLINK_NS, "SPLITDUPLEX",
               "nvlink");
    break;
  case PL_WIRE_PCIE:
    write_link(w, name, kind->pcie_GBps, PL_NODE_PCIE_NS, "SPLITDUPLEX", "pcie");
    break;
  case PL_WIRE_UPLINK:
  case PL_WIRE_TRUNK:
    write_link(w, name, kind->uplink_GBps, PL_NODE_UPLINK_NS, "SPLITDUPLEX", "pcie");
    break;
  case PL_WIRE_SOCKETS:
    write_link(w, name, kind->socket_GBps, PL_NODE_SOCKET_NS, "SPLITDUPLEX", "cpu");
    break;
  case PL_WIRE_MEMORY: /* every byte is written once and read once */
    write_link(w, name, kind->memory_GBps / 2, PL_NODE_MEMORY_NS, "SHARED", "cpu");
    break;
  case PL_WIRE_NIC:
    /* A message crosses two NICs. */
    write_link(w, name, nic_GBps(w, kind), kind->nic_ns + w->plan->delay_ns / 2, "SPLITDUPLEX", "nic");
    break;
  }
}

/* The wires that some route crosses, each once, by wire and index. */
typedef struct wire_set {
  bool used[PL_WIRE_NIC + 1][PL_NODE_GPUS_MAX][PL_NODE_GPUS_MAX];
} wire_set;

static void note_hops(wire_set *set, const pl_hop *hops, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    set->used[hops[i].wire][hops[i].a][hops[i].b] = true;
}

static void find_socket_wires(const pl_node_kind *kind, wire_set *set) {
  pl_hop hops[PL_NODE_HOPS_MAX];
  for (uint32_t s = 0; s < kind->n_sockets; s++) {
    for (uint32_t g = 0; g < kind->n_gpus; g++)
      note_hops(set, hops, pl_node_kind_path_to_socket(kind, g, s, hops));
    for (uint32_t t = s + 1; t < kind->n_sockets; t++)
      note_hops(set, hops, pl_node_kind_path_sockets(s, t, hops));
    if (kind->n_nics > 0) note_hops(set, hops, pl_node_kind_path_socket_out(kind, s, hops));
  }
}

static void find_wires(const pl_node_kind *kind, bool sockets, wire_set *set) {
  pl_hop hops[PL_NODE_HOPS_MAX];
  memset(set, 0, sizeof *set);
  for (uint32_t a = 0; a < kind->n_gpus; a++)
    for (uint32_t b = a + 1; b < kind->n_gpus; b++)
      note_hops(set, hops, pl_node_kind_path(kind, a, b, hops));
  for (uint32_t a = 0; a < kind->n_gpus && kind->n_nics > 0; a++)
    note_hops(set, hops, pl_node_kind_path_out(kind, a, hops));
  if (sockets) find_socket_wires(kind, set);
}

static void write_wires(const writer *w, uint32_t node) {
  const pl_node_kind *kind = kind_of_node(w, node);
  wire_set set;
  find_wires(kind, w->sockets, &set);
  for (uint8_t wire = 0; wire <= PL_WIRE_NIC; wire++)
    for (uint8_t a = 0; a < PL_NODE_GPUS_MAX; a++)
      for (uint8_t b = 0; b < PL_NODE_GPUS_MAX; b++)
        if (set.used[wire][a][b]) write_wire(w, kind, node, (pl_hop){.wire = wire, .a = a, .b = b});
}

static void write_hops(const writer *w, uint32_t node, const pl_hop *hops, uint32_t n) {
  char name[WIRE_NAME_BYTES];
  for (uint32_t i = 0; i < n; i++) {
    name_wire(node, hops[i], name);
    if (hops[i].wire == PL_WIRE_MEMORY)
      fprintf(w->out, "<link_ctn id=\"%s\"/>", name);
    else
      fprintf(w->out, "<link_ctn id=\"%s\" direction=\"%s\"/>", name, hops[i].up ? "UP" : "DOWN");
  }
}

static uint32_t leaf_of(const writer *w, uint32_t nic) {
  return w->plan->fabric == PL_FABRIC_RAIL ? nic : 0;
}

static bool has_spine(const writer *w) {
  return w->n_pods > 1 && w->plan->fabric != PL_FABRIC_SINGLE;
}

/* `from` and `to` without the node's prefix. */
static void write_route(const writer *w, uint32_t node, const char *from, const char *to, const pl_hop *hops,
                        uint32_t n) {
  fprintf(w->out, "<route src=\"n%u%s\" dst=\"n%u%s\">", node, from, node, to);
  write_hops(w, node, hops, n);
  fputs("</route>\n", w->out);
}

/* From a GPU or a socket, over the same hops, to both gateways. */
static void write_exits(const writer *w, uint32_t node, const char *from, uint32_t nic, const pl_hop *hops,
                        uint32_t n) {
  write_route(w, node, from, "local", hops, n);
  if (!has_spine(w)) return;
  fprintf(w->out, "<route src=\"n%u%s\" dst=\"n%uspine\">", node, from, node);
  write_hops(w, node, hops, n);
  fprintf(w->out, "<link_ctn id=\"p%uleaf%u\" direction=\"UP\"/></route>\n", node / w->plan->pod_nodes,
          leaf_of(w, nic));
}

static void name_host(const char *what, uint32_t index, char name[WIRE_NAME_BYTES]) {
  snprintf(name, WIRE_NAME_BYTES, "%s%u", what, index);
}

static void write_gpu_routes(const writer *w, const pl_node_kind *kind, uint32_t node) {
  pl_hop hops[PL_NODE_HOPS_MAX];
  char from[WIRE_NAME_BYTES], to[WIRE_NAME_BYTES];
  for (uint32_t a = 0; a < kind->n_gpus; a++)
    for (uint32_t b = a + 1; b < kind->n_gpus; b++) {
      name_host("g", a, from);
      name_host("g", b, to);
      write_route(w, node, from, to, hops, pl_node_kind_path(kind, a, b, hops));
    }
  for (uint32_t a = 0; a < kind->n_gpus && kind->n_nics > 0; a++) {
    name_host("g", a, from);
    write_exits(w, node, from, kind->gpu_nic[a], hops, pl_node_kind_path_out(kind, a, hops));
  }
}

static void write_socket_routes(const writer *w, const pl_node_kind *kind, uint32_t node) {
  pl_hop hops[PL_NODE_HOPS_MAX];
  char socket[WIRE_NAME_BYTES], other[WIRE_NAME_BYTES];
  for (uint32_t s = 0; s < kind->n_sockets; s++) {
    name_host("cpu", s, socket);
    for (uint32_t g = 0; g < kind->n_gpus; g++) {
      name_host("g", g, other);
      write_route(w, node, other, socket, hops, pl_node_kind_path_to_socket(kind, g, s, hops));
    }
    for (uint32_t t = s + 1; t < kind->n_sockets; t++) {
      name_host("cpu", t, other);
      write_route(w, node, socket, other, hops, pl_node_kind_path_sockets(s, t, hops));
    }
    if (kind->n_nics > 0)
      write_exits(w, node, socket, pl_node_kind_socket_nic(kind, s), hops, pl_node_kind_path_socket_out(kind, s, hops));
  }
}

static void write_node(const writer *w, uint32_t node) {
  const pl_node_kind *kind = kind_of_node(w, node);
  const char *device = w->plan->device != NULL ? w->plan->device : kind->device;
  fprintf(w->out, "<zone id=\"n%u\" routing=\"Full\">\n<prop id=\"machine\" value=\"%s\"/>\n", node, kind->name);
  for (uint32_t g = 0; g < kind->n_gpus; g++)
    fprintf(w->out, "<host id=\"n%ug%u\" speed=\"%s\"><prop id=\"device\" value=\"%s\"/></host>\n", node, g,
            pl_device_speed(device), device);
  for (uint32_t c = 0; c < kind->n_sockets && w->sockets; c++)
    fprintf(w->out, "<host id=\"n%ucpu%u\" speed=\"%.10gGf\" core=\"%u\"><prop id=\"cpu\" value=\"%s\"/></host>\n",
            node, c, kind->cpu_core_Gflops, kind->cpu_cores, kind->cpu);
  if (kind->n_nics > 0) fprintf(w->out, "<router id=\"n%ulocal\"/>\n", node);
  if (has_spine(w)) fprintf(w->out, "<router id=\"n%uspine\"/>\n", node);
  if (!w->apart) write_wires(w, node);
  write_gpu_routes(w, kind, node);
  if (w->sockets) write_socket_routes(w, kind, node);
  fputs("</zone>\n", w->out);
}

typedef void write_one(const writer *w, uint32_t node);

/* Nodes in a row of one kind (and one pod): the first is written, the others are like it. */
static void write_alike(const writer *w, uint32_t first, uint32_t n, write_one *write) {
  writer apart = *w;
  char *text = NULL;
  size_t size = 0;
  apart.out = n > 1 ? open_memstream(&text, &size) : NULL;
  bool written = false;
  if (apart.out != NULL) {
    write(&apart, first);
    written = fclose(apart.out) == 0 && pl_repeated_text_write(text, size, first, n, w->out);
  }
  free(text);
  for (uint32_t i = 0; i < n && !written; i++) /* there is no memory for that, or one node */
    write(w, first + i);
}

static void write_nodes(const writer *w, uint32_t first, uint32_t end, write_one *write) {
  for (uint32_t n; first < end; first += n) {
    for (n = 1; first + n < end && kind_of_node(w, first + n) == kind_of_node(w, first); n++)
      continue;
    write_alike(w, first, n, write);
  }
}

static uint32_t pod_first(const writer *w, uint32_t pod) {
  return pod * w->plan->pod_nodes;
}

static uint32_t pod_end(const writer *w, uint32_t pod) {
  return smaller(pod_first(w, pod) + w->plan->pod_nodes, w->n_nodes);
}

/* A last, smaller pod has the leaves and uplinks of a full one. */
static void write_pod_links(const writer *w, uint32_t pod) {
  const pl_platform_plan *plan = w->plan;
  const pl_node_kind *kind = plan->parts[0].kind;
  char name[WIRE_NAME_BYTES];
  snprintf(name, sizeof name, "p%uxbar", pod);
  write_link(w, name, sum_nics_GBps(w, pod_first(w, pod), pod_end(w, pod)),
             plan->fabric == PL_FABRIC_SINGLE ? 0 : kind->switch_ns, "FATPIPE", "fabric");
  double uplink_GBps =
      plan->pod_nodes * (kind->n_nics / (double)w->n_leaves) * nic_GBps(w, kind) / plan->oversubscription;
  for (uint32_t leaf = 0; leaf < w->n_leaves && has_spine(w); leaf++) {
    snprintf(name, sizeof name, "p%uleaf%u", pod, leaf);
    write_link(w, name, uplink_GBps, 0, "SPLITDUPLEX", "fabric");
  }
}

/* The zone of a pod's switches, with the gateway of the pod. */
static void write_pod_fabric(const writer *w, uint32_t pod) {
  fprintf(w->out, "<zone id=\"p%ufabric\" routing=\"Full\">\n<router id=\"p%ugw\"/>\n", pod, pod);
  if (!w->apart) write_pod_links(w, pod);
  fputs("</zone>\n", w->out);
}

/* zoneRoutes among the nodes of a pod and, when there are more pods, from each node to the pod's gateway. */
static void write_pod_routes(const writer *w, uint32_t pod, const char *crossbar) {
  uint32_t first = pod_first(w, pod), end = pod_end(w, pod);
  for (uint32_t a = first; a < end; a++)
    for (uint32_t b = a + 1; b < end; b++)
      fprintf(w->out,
              "<zoneRoute src=\"n%u\" dst=\"n%u\" gw_src=\"n%ulocal\" gw_dst=\"n%ulocal\"><link_ctn "
              "id=\"%s\"/></zoneRoute>\n",
              a, b, a, b, crossbar);
  const char *gateway = has_spine(w) ? "spine" : "local";
  for (uint32_t a = first; a < end && w->n_pods > 1; a++)
    fprintf(w->out,
            "<zoneRoute src=\"n%u\" dst=\"p%ufabric\" gw_src=\"n%u%s\" gw_dst=\"p%ugw\"><link_ctn "
            "id=\"p%uxbar\"/></zoneRoute>\n",
            a, pod, a, gateway, pod, pod);
}

static void write_pod(const writer *w, uint32_t pod) {
  char crossbar[WIRE_NAME_BYTES];
  snprintf(crossbar, sizeof crossbar, w->plan->fabric == PL_FABRIC_SINGLE ? "switch" : "p%uxbar", pod);
  fprintf(w->out, "<zone id=\"p%u\" routing=\"Full\">\n", pod);
  write_pod_fabric(w, pod);
  write_nodes(w, pod_first(w, pod), pod_end(w, pod), write_node);
  write_pod_routes(w, pod, crossbar);
  fputs("</zone>\n", w->out);
}

static const char *top_crossbar(const writer *w) {
  return w->plan->fabric == PL_FABRIC_SINGLE ? "switch" : w->n_pods > 1 ? "spine" : "p0xbar";
}

/* The first zone: the top crossbar and, in a big cluster, every other link. */
static void write_fabric_zone(const writer *w) {
  fputs("<zone id=\"fabric\" routing=\"Full\">\n", w->out);
  write_link(w, top_crossbar(w), sum_nics_GBps(w, 0, w->n_nodes), w->plan->parts[0].kind->switch_ns, "FATPIPE",
             "fabric");
  for (uint32_t pod = 0; pod < w->n_pods && w->n_pods > 1 && w->apart; pod++)
    write_pod_links(w, pod);
  if (w->apart) write_nodes(w, 0, w->n_nodes, write_wires);
  fputs("</zone>\n", w->out);
}

static void write_lines(const writer *w, const char *text) {
  for (const char *line = text; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    fprintf(w->out, "  %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
}

/* No option by its name: two hyphens may not stand in an XML comment. */
static void write_sockets_note(const writer *w) {
  if (w->sockets)
    fputs(
        "\n  CPU sockets are hosts without a device, for host memory traffic and for plain SimGrid programs (speed per "
        "core: base clock x\n"
        "  single precision operations per cycle). They leave the node through the first NIC on their socket, or else "
        "NIC 0. Rate between\n"
        "  sockets: what NCCL's tuner counts with for GPU and NIC traffic (QPI and Skylake's UPI 2.10.3, AMD 2.16.2, "
        "Sapphire Rapids\n"
        "  2.26.2); copies of host memory can be faster.\n",
        w->out);
  else
    fprintf(
        w->out,
        "\n  CPU sockets, and wires that only they would use, are left out (option sockets is '%s', and auto writes "
        "them up to %d nodes):\n"
        "  SimGrid loads the file faster, and no transfer between GPUs needs them.\n",
        pl_sockets_name(w->plan->sockets), PL_PLAN_SOCKET_NODES);
}

static void write_fabric_note(const writer *w) {
  const pl_platform_plan *plan = w->plan;
  if (w->n_nodes == 1) return;
  fputs("\n", w->out);
  if (plan->transport == PL_TRANSPORT_SOCKET)
    fputs("  Transport: NCCL over TCP sockets; one interface per node, that all its GPUs share (nNnic0).\n", w->out);
  if (plan->fabric == PL_FABRIC_SINGLE)
    fprintf(w->out, "  Network: one non-blocking switch.%s\n",
            w->n_pods > 1 ? " Zones p0, p1 ... only keep the number of zoneRoutes small." : "");
  else if (w->n_pods == 1)
    fprintf(w->out,
            "  Network: %s,\n  one pod of up to %u nodes: everything stays below its non-blocking leaf switches "
            "(p0xbar).\n",
            plan->fabric == PL_FABRIC_RAIL ? "rail-optimised fat tree, leaf r carries NIC r of every node" : "fat tree",
            plan->pod_nodes);
  else {
    fprintf(w->out, "  Network: %s; pods of %u nodes; uplinks pPleafR from leaf to spine, oversubscribed %g to 1.\n",
            plan->fabric == PL_FABRIC_RAIL ? "rail-optimised fat tree, leaf r of a pod carries NIC r of its nodes"
                                           : "fat tree, one leaf group per pod carries all NICs of its nodes",
            plan->pod_nodes, plan->oversubscription);
    fputs("  Same pod: NIC, leaf crossbar, NIC. Other pod: NIC, uplink, leaf, spine, leaf, uplink, NIC. The spine does "
          "not block.\n"
          "  Inside a pod a change of rail is not sent over the spine (no rate changes unless the leaves are "
          "oversubscribed).\n",
          w->out);
  }
  fputs("  Crossbars are FATPIPE with the sum of their ports: they cost latency and never bind.\n", w->out);
}

static void write_header(const writer *w) {
  const pl_platform_plan *plan = w->plan;
  fputs("<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<!--\n", w->out);
  for (uint32_t p = 0; p < plan->n_parts; p++) {
    fprintf(w->out, "%s  %u x %s\n\n", p > 0 ? "\n" : "", plan->parts[p].n_nodes, plan->parts[p].kind->title);
    write_lines(w, plan->parts[p].kind->about);
  }
  if (plan->gpus_per_node > 0)
    fprintf(w->out, "\n  Of each node only the first %u, with what lies on their routes: the rest idles.\n",
            plan->gpus_per_node);
  fputs("\n  NVLink and NIC rates are nominal, per direction; PCIe is the payload rate that copies reach (gen 3 x16: "
        "12 GB/s, NCCL 2.10.3\n"
        "  tuner and measured; gen 4 x16: 26 GB/s, nvbandwidth; gen 5 x16: 52 GB/s, assumed). Latencies: NCCL 2.10.3 "
        "tuner, low-latency\n"
        "  protocol, per step: NVLink 0.5 us, PCIe 1.0 us, network 2.7 us, shared out over the wires of one step; 100 "
        "ns per PCIe\n"
        "  switch uplink and 200 ns between sockets are assumed. Host speed: dense 16-bit peak, for plain SimGrid "
        "programs only.\n",
        w->out);
  write_sockets_note(w);
  write_fabric_note(w);
  fputs("\n  Names: node nN, GPU nNgR, CPU socket nNcpuC, wires nNnvR (NVSwitch port) or nNnvA-B (NVLink), nNpcieR, "
        "nNpswS (PCIe\n"
        "  switch upwards), nNptopT (second level of switches to socket), nNqpi (between sockets), nNnicR; pod pP.\n"
        "  The conventions are explained in platforms/README.md.\n-->\n",
        w->out);
}

void pl_platform_write(const pl_platform_plan *plan, FILE *stream) {
  writer w = {.plan = plan,
              .out = stream,
              .n_nodes = pl_platform_plan_nodes(plan),
              .n_pods = pl_platform_plan_pods(plan),
              .n_leaves = 1};
  w.apart = w.n_nodes > NODES_WITH_THEIR_LINKS;
  for (uint32_t p = 0; p < plan->n_parts; p++) {
    w.kinds[p] = *plan->parts[p].kind;
    if (plan->gpus_per_node > 0) w.kinds[p].n_gpus = (uint8_t)plan->gpus_per_node;
    if (plan->transport == PL_TRANSPORT_SOCKET) share_nic(&w.kinds[p]);
  }
  if (plan->fabric == PL_FABRIC_RAIL) w.n_leaves = w.kinds[0].n_nics;
  w.sockets =
      plan->sockets == PL_SOCKETS_ALWAYS || (plan->sockets == PL_SOCKETS_AUTO && w.n_nodes <= PL_PLAN_SOCKET_NODES);
  write_header(&w);
  fprintf(stream,
          "<platform version=\"4.1\">\n<zone id=\"cluster\" routing=\"Full\">\n<prop id=\"made_by\" value=\"%s\"/>\n",
          plan->command);
  if (w.n_nodes > 1) write_fabric_zone(&w);
  if (w.n_pods > 1) {
    for (uint32_t pod = 0; pod < w.n_pods; pod++)
      write_pod(&w, pod);
    for (uint32_t a = 0; a < w.n_pods; a++)
      for (uint32_t b = a + 1; b < w.n_pods; b++)
        fprintf(
            stream,
            "<zoneRoute src=\"p%u\" dst=\"p%u\" gw_src=\"p%ugw\" gw_dst=\"p%ugw\"><link_ctn id=\"%s\"/></zoneRoute>\n",
            a, b, a, b, top_crossbar(&w));
  } else {
    write_nodes(&w, 0, w.n_nodes, write_node);
    write_pod_routes(&w, 0, top_crossbar(&w));
  }
  fputs("</zone>\n</platform>\n", stream);
}
