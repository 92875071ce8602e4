/* The wires of one machine in crossing order: see netmodel/make/node_kind.h. */
#include "netmodel/make/node_kind.h"

#include <stddef.h>

static uint32_t links_between(const pl_node_kind *kind, uint32_t a, uint32_t b) {
  return kind->pair_links == NULL ? 0 : kind->pair_links[a][b];
}

uint32_t pl_node_kind_relay(const pl_node_kind *kind, uint32_t from, uint32_t to) {
  uint32_t best = PL_NODE_GPUS_MAX, best_score = 0;
  for (uint32_t g = 0; g < kind->n_gpus; g++) {
    uint32_t in = links_between(kind, from, g), out = links_between(kind, g, to);
    if (in == 0 || out == 0) continue;
    uint32_t score = (in < out ? in : out) * 256 + in + out;
    if (score <= best_score) continue;
    best = g;
    best_score = score;
  }
  return best;
}

static pl_hop hop(pl_wire wire, uint32_t a, bool up) {
  return (pl_hop){.wire = (uint8_t)wire, .a = (uint8_t)a, .up = up};
}

static pl_hop nvlink_hop(uint32_t from, uint32_t to) {
  return (pl_hop){.wire = PL_WIRE_NVLINK,
                  .a = (uint8_t)(from < to ? from : to),
                  .b = (uint8_t)(from < to ? to : from),
                  .up = from < to};
}

/* From a place up to its socket, or down from there. */
static uint32_t path_to_socket(const pl_node_kind *kind, uint32_t place, bool up, pl_hop *hops) {
  uint32_t n = 0;
  if (!kind->switched) return 0;
  if (kind->n_tops == 0) {
    hops[n++] = hop(PL_WIRE_UPLINK, place, up);
    return n;
  }
  pl_hop uplink = hop(PL_WIRE_UPLINK, place, up), trunk = hop(PL_WIRE_TRUNK, kind->place_top[place], up);
  hops[n++] = up ? uplink : trunk;
  hops[n++] = up ? trunk : uplink;
  return n;
}

static bool share_top(const pl_node_kind *kind, uint32_t a, uint32_t b) {
  return kind->n_tops > 0 && kind->place_top[a] == kind->place_top[b];
}

static uint32_t path_over_bus(uint32_t from_socket, uint32_t to_socket, pl_hop *hops) {
  if (from_socket == to_socket) return 0;
  hops[0] = hop(PL_WIRE_SOCKETS, 0, from_socket < to_socket);
  return 1;
}

/* From one place to another: nothing inside a switch or a socket, else up, across, and down. Between GPUs
 * (`through_memory`) what no switch joins is written into the memory of a socket and read from there; of two sockets
 * the same one both ways, since a route has one list of links. */
static uint32_t path_between_places(const pl_node_kind *kind, uint32_t from, uint32_t to, bool through_memory,
                                    pl_hop *hops) {
  uint32_t n = 0;
  if (from == to && (kind->switched || !through_memory)) return 0;
  if (from != to && share_top(kind, from, to)) {
    hops[n++] = hop(PL_WIRE_UPLINK, from, true);
    hops[n++] = hop(PL_WIRE_UPLINK, to, false);
    return n;
  }
  n += path_to_socket(kind, from, true, hops);
  uint32_t near = kind->place_socket[from], far = kind->place_socket[to];
  if (through_memory && near > far) hops[n++] = hop(PL_WIRE_MEMORY, near, true);
  n += path_over_bus(near, far, hops + n);
  if (through_memory && near <= far) hops[n++] = hop(PL_WIRE_MEMORY, far, true);
  n += path_to_socket(kind, to, false, hops + n);
  return n;
}

uint32_t pl_node_kind_path(const pl_node_kind *kind, uint32_t from, uint32_t to, pl_hop hops[PL_NODE_HOPS_MAX]) {
  uint32_t n = 0, relay;
  if (kind->port_GBps > 0) {
    hops[n++] = hop(PL_WIRE_PORT, from, true);
    hops[n++] = hop(PL_WIRE_PORT, to, false);
  } else if (links_between(kind, from, to) > 0) {
    hops[n++] = nvlink_hop(from, to);
  } else if ((relay = pl_node_kind_relay(kind, from, to)) < PL_NODE_GPUS_MAX) {
    hops[n++] = nvlink_hop(from, relay);
    hops[n++] = nvlink_hop(relay, to);
  } else {
    hops[n++] = hop(PL_WIRE_PCIE, from, true);
    n += path_between_places(kind, kind->gpu_place[from], kind->gpu_place[to], kind->memory_GBps > 0, hops + n);
    hops[n++] = hop(PL_WIRE_PCIE, to, false);
  }
  return n;
}

uint32_t pl_node_kind_path_out(const pl_node_kind *kind, uint32_t gpu, pl_hop hops[PL_NODE_HOPS_MAX]) {
  uint32_t n = 0, nic = kind->gpu_nic[gpu];
  hops[n++] = hop(PL_WIRE_PCIE, gpu, true);
  n += path_between_places(kind, kind->gpu_place[gpu], kind->nic_place[nic], false, hops + n);
  hops[n++] = hop(PL_WIRE_NIC, nic, true);
  return n;
}

uint32_t pl_node_kind_path_to_socket(const pl_node_kind *kind, uint32_t gpu, uint32_t socket,
                                     pl_hop hops[PL_NODE_HOPS_MAX]) {
  uint32_t n = 0, place = kind->gpu_place[gpu];
  hops[n++] = hop(PL_WIRE_PCIE, gpu, true);
  n += path_to_socket(kind, place, true, hops + n);
  n += path_over_bus(kind->place_socket[place], socket, hops + n);
  return n;
}

uint32_t pl_node_kind_path_sockets(uint32_t from, uint32_t to, pl_hop hops[PL_NODE_HOPS_MAX]) {
  return path_over_bus(from, to, hops);
}

uint32_t pl_node_kind_socket_nic(const pl_node_kind *kind, uint32_t socket) {
  for (uint32_t nic = 0; nic < kind->n_nics; nic++)
    if (kind->place_socket[kind->nic_place[nic]] == socket) return nic;
  return 0;
}

uint32_t pl_node_kind_path_socket_out(const pl_node_kind *kind, uint32_t socket, pl_hop hops[PL_NODE_HOPS_MAX]) {
  uint32_t n = 0, nic = pl_node_kind_socket_nic(kind, socket), place = kind->nic_place[nic];
  n += path_over_bus(socket, kind->place_socket[place], hops);
  n += path_to_socket(kind, place, false, hops + n);
  hops[n++] = hop(PL_WIRE_NIC, nic, true);
  return n;
}
