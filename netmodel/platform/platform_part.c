/* See netmodel/platform/platform_part.h. */
#include "netmodel/platform/platform_part.h"

#include "core/cluster/host_memory.h"

typedef struct part_routes {
  const pl_cluster *base;
  const uint32_t *devices;
} part_routes;

static pl_code find_route(void *data, uint32_t source, uint32_t destination, pl_route *route, pl_error *error) {
  const part_routes *routes = data;
  uint32_t from = source == PL_HOST_MEMORY ? source : routes->devices[source];
  uint32_t to = destination == PL_HOST_MEMORY ? destination : routes->devices[destination];
  return pl_cluster_route(routes->base, from, to, route, error);
}

pl_code pl_cluster_part_take(const pl_cluster *base, const uint32_t *devices, uint32_t n, pl_arena *arena,
                             const pl_cluster **part, pl_error *error) {
  pl_cluster *made = PL_TAKE(arena, pl_cluster, 1);
  pl_device *own = PL_TAKE(arena, pl_device, n);
  pl_node_info *nodes = PL_TAKE(arena, pl_node_info, n);
  pl_node_shape *shapes = PL_TAKE(arena, pl_node_shape, n);
  part_routes *routes = PL_TAKE(arena, part_routes, 1);
  if (arena->failed) return pl_fail_memory(error, "a part of the platform");
  uint32_t n_nodes = 0;
  for (uint32_t i = 0; i < n; i++) {
    own[i] = base->devices[devices[i]];
    bool is_first = i == 0 || base->devices[devices[i]].node != base->devices[devices[i - 1]].node;
    if (is_first && base->shapes != NULL) shapes[n_nodes] = base->shapes[own[i].node];
    if (is_first) nodes[n_nodes++] = (pl_node_info){.name = base->nodes[own[i].node].name, .first_device = i};
    own[i].node = n_nodes - 1;
    nodes[n_nodes - 1].n_devices++;
  }
  *routes = (part_routes){.base = base, .devices = devices};
  *made = *base;
  made->devices = own;
  made->n_devices = n;
  made->nodes = nodes;
  made->n_nodes = n_nodes;
  made->shapes = base->shapes != NULL ? shapes : NULL; /* of the base's i-th devices, whose numbers devices keep */
  made->route = find_route;
  made->routes = routes;
  *part = made;
  return PL_OK;
}
