/* See synthetic_cluster.h. Links are laid out node by node at fixed offsets, so that a route is arithmetic; the routes
 * asked for are kept in a hash table under a mutex because callers hold on to their memory. Latencies are summed at
 * each call: hooks may change them at any time before. */
#include "tests/support/synthetic_cluster.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "tests/support/random.h"

enum { MAX_ROUTE_LINKS = 8, MAX_PROFILES = 2 };

typedef struct cached_route {
  uint64_t key; /* (source << 32 | destination) + 1; 0 = empty */
  const uint32_t *links;
  uint32_t n_links;
} cached_route;

typedef struct synthetic {
  pl_cluster cluster; /* first: the caller's pointer is ours */
  synthetic_options options;
  pl_arena arena;
  pl_device *devices;
  pl_link *links;
  pl_node_info *nodes;
  pl_device_profile profiles[MAX_PROFILES];
  uint32_t pcie_base, cpu_base, nic_base, node_links, leaf_base; /* offsets inside a node; leaf_base is global */
  uint32_t direct[8][8]; /* CUBE_MESH: offset inside the node, PL_NONE = no link */
  cached_route *routes;
  uint32_t n_routes, route_capacity; /* a power of two */
  pthread_mutex_t mutex;
} synthetic;

/* NVLinks between GPU pairs of a DGX-1V: two quads, each fully joined, and one link to the twin in the other quad;
 * width 1 or 2 as in NVIDIA's "DGX-1 With Tesla V100 System Architecture" white paper, figure 4 (six links per GPU). */
static const uint8_t cube_mesh[8][8] = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
};

static void *must(void *memory) {
  if (memory == NULL) {
    fputs("synthetic cluster: out of memory\n", stderr);
    abort();
  }
  return memory;
}

synthetic_options synthetic_cluster_defaults(void) {
  return (synthetic_options){
      .n_nodes = 1,
      .gpus_per_node = 8,
      .wiring = SYNTHETIC_NVSWITCH,
      .nics_per_node = 8,
      .nvlink_Bps = 300e9,
      .pcie_Bps = 32e9,
      .cpu_Bps = 20e9,
      .nic_Bps = 25e9,
      .oversubscription = 1,
      .nvlink_latency_s = 1e-6,
      .pcie_latency_s = 1e-6,
      .cpu_latency_s = 1e-6,
      .nic_latency_s = 2e-6,
      .fabric_latency_s = 1e-6,
  };
}

static double or_default(double value, double fallback) {
  return value > 0 ? value : fallback;
}

static synthetic_options with_defaults(const synthetic_options *given) {
  synthetic_options options = *given, defaults = synthetic_cluster_defaults();
  if (options.n_nodes == 0) options.n_nodes = defaults.n_nodes;
  if (options.gpus_per_node == 0) options.gpus_per_node = defaults.gpus_per_node;
  if (options.wiring == SYNTHETIC_CUBE_MESH) options.gpus_per_node = 8;
  if (options.nics_per_node == 0 || options.nics_per_node > options.gpus_per_node)
    options.nics_per_node = options.gpus_per_node;
  options.nvlink_Bps = or_default(options.nvlink_Bps, defaults.nvlink_Bps);
  options.pcie_Bps = or_default(options.pcie_Bps, defaults.pcie_Bps);
  options.cpu_Bps = or_default(options.cpu_Bps, defaults.cpu_Bps);
  options.nic_Bps = or_default(options.nic_Bps, defaults.nic_Bps);
  options.oversubscription = or_default(options.oversubscription, 1);
  return options;
}

static pl_device_profile built_in_profile(const char *name, double scale) {
  pl_device_profile profile = {
      .name = name,
      .architecture = "synthetic",
      .memory_bytes = 80e9 * scale,
      .reserved_bytes = 1e9,
      .bandwidth_Bps = 2e12 * scale,
      .compute_efficiency = 0.7,
      .attention_efficiency = 0.5,
      .bandwidth_efficiency = 0.8,
      .launch_overhead_s = 4e-6,
      .gemm.multiprocessors = 100, /* no fits: what exchanges take of them */
      .overlap_compute = 0.1,
      .overlap_communication = 0.1,
      .digest = scale < 1 ? 2 : 1,
  };
  const double peak[PL_DTYPE_COUNT] = {20e12, 150e12, 300e12, 300e12, 0};
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    profile.peak_flops[dtype] = peak[dtype] * scale;
  return profile;
}

static void add_link(synthetic *self, uint32_t *next, double capacity_Bps, double latency_s, pl_link_kind kind,
                     const char *name) {
  self->links[*next] = (pl_link){
      .name = name,
      .capacity_Bps = capacity_Bps,
      .latency = pl_ticks_from_s(latency_s),
      .policy = PL_LINK_SHARED,
      .kind = (uint8_t)kind,
  };
  ++*next;
}

static void add_local_links(synthetic *self, uint32_t node, uint32_t *next) {
  const synthetic_options *options = &self->options;
  uint32_t n = options->gpus_per_node, first = *next;
  double latency_s = options->nvlink_latency_s;
  if (options->wiring == SYNTHETIC_NVSWITCH) {
    for (uint32_t gpu = 0; gpu < n; gpu++)
      for (int down = 0; down < 2; down++)
        add_link(self, next, options->nvlink_Bps, latency_s, PL_LINK_NVLINK,
                 must(pl_arena_printf(&self->arena, "n%u_g%u_nv_%s", node, gpu, down ? "down" : "up")));
  } else if (options->wiring != SYNTHETIC_PCIE) {
    for (uint32_t a = 0; a < n; a++)
      for (uint32_t b = 0; b < n; b++) {
        double width = options->wiring == SYNTHETIC_MESH ? (double)(a != b) : (double)cube_mesh[a][b];
        if (options->wiring == SYNTHETIC_CUBE_MESH) self->direct[a][b] = width > 0 ? *next - first : PL_NONE;
        if (width > 0)
          add_link(self, next, options->nvlink_Bps * width, latency_s, PL_LINK_NVLINK,
                   must(pl_arena_printf(&self->arena, "n%u_nv_%u_%u", node, a, b)));
      }
  }
}

static void add_node_links(synthetic *self, uint32_t node, uint32_t *next) {
  const synthetic_options *options = &self->options;
  uint32_t first = *next;
  add_local_links(self, node, next);
  self->pcie_base = *next - first;
  for (uint32_t gpu = 0; gpu < options->gpus_per_node; gpu++)
    for (int down = 0; down < 2; down++)
      add_link(self, next, options->pcie_Bps, options->pcie_latency_s, PL_LINK_PCIE,
               must(pl_arena_printf(&self->arena, "n%u_g%u_pcie_%s", node, gpu, down ? "down" : "up")));
  self->cpu_base = *next - first;
  for (uint32_t socket = 0; socket < 2; socket++)
    for (int down = 0; down < 2; down++)
      add_link(self, next, options->cpu_Bps, options->cpu_latency_s, PL_LINK_CPU,
               must(pl_arena_printf(&self->arena, "n%u_s%u_cpu_%s", node, socket, down ? "down" : "up")));
  self->nic_base = *next - first;
  for (uint32_t nic = 0; nic < options->nics_per_node; nic++)
    for (int down = 0; down < 2; down++)
      add_link(self, next, options->nic_Bps, options->nic_latency_s, PL_LINK_NIC,
               must(pl_arena_printf(&self->arena, "n%u_nic%u_%s", node, nic, down ? "down" : "up")));
  self->node_links = *next - first;
}

static uint32_t nic_of(const synthetic_options *options, const pl_device *device) {
  return device->local_index * options->nics_per_node / options->gpus_per_node;
}

/* With rails every NIC number has leaves of its own: leaf = pod * nics + nic. */
static uint32_t leaf_of(const synthetic_options *options, const pl_device *device) {
  uint32_t pod = device->node / options->leaf_nodes;
  return options->rails ? pod * options->nics_per_node + nic_of(options, device) : pod;
}

static void add_leaf_links(synthetic *self, uint32_t *next) {
  const synthetic_options *options = &self->options;
  self->leaf_base = *next;
  if (options->leaf_nodes == 0) return;
  uint32_t n_pods = (options->n_nodes + options->leaf_nodes - 1) / options->leaf_nodes;
  uint32_t nics = options->leaf_nodes * (options->rails ? 1 : options->nics_per_node);
  for (uint32_t leaf = 0; leaf < n_pods * (options->rails ? options->nics_per_node : 1); leaf++)
    for (int down = 0; down < 2; down++)
      add_link(self, next, options->nic_Bps * nics / options->oversubscription, options->fabric_latency_s,
               PL_LINK_FABRIC, must(pl_arena_printf(&self->arena, "leaf%u_%s", leaf, down ? "down" : "up")));
}

static uint32_t local_route(const synthetic *self, uint32_t node, uint32_t a, uint32_t b, uint32_t *links) {
  const synthetic_options *options = &self->options;
  uint32_t base = node * self->node_links, n = options->gpus_per_node, count = 0;
  switch (options->wiring) {
  case SYNTHETIC_NVSWITCH:
    links[count++] = base + 2 * a;
    links[count++] = base + 2 * b + 1;
    return count;
  case SYNTHETIC_MESH:
    links[count++] = base + a * (n - 1) + b - (b > a);
    return count;
  case SYNTHETIC_CUBE_MESH:
    if (self->direct[a][b] == PL_NONE) break;
    links[count++] = base + self->direct[a][b];
    return count;
  case SYNTHETIC_PCIE:
    break;
  }
  uint32_t socket_a = 2 * a >= n, socket_b = 2 * b >= n;
  links[count++] = base + self->pcie_base + 2 * a;
  if (socket_a != socket_b) {
    links[count++] = base + self->cpu_base + 2 * socket_a;
    links[count++] = base + self->cpu_base + 2 * socket_b + 1;
  }
  links[count++] = base + self->pcie_base + 2 * b + 1;
  return count;
}

static uint32_t remote_route(const synthetic *self, const pl_device *a, const pl_device *b, uint32_t *links) {
  const synthetic_options *options = &self->options;
  uint32_t base_a = a->node * self->node_links, base_b = b->node * self->node_links, count = 0;
  links[count++] = base_a + self->pcie_base + 2 * a->local_index;
  links[count++] = base_a + self->nic_base + 2 * nic_of(options, a);
  if (options->leaf_nodes > 0 && leaf_of(options, a) != leaf_of(options, b)) {
    links[count++] = self->leaf_base + 2 * leaf_of(options, a);
    links[count++] = self->leaf_base + 2 * leaf_of(options, b) + 1;
  }
  links[count++] = base_b + self->nic_base + 2 * nic_of(options, b) + 1;
  links[count++] = base_b + self->pcie_base + 2 * b->local_index + 1;
  return count;
}

static cached_route *find_slot(cached_route *routes, uint32_t capacity, uint64_t key) {
  uint64_t state = key;
  uint32_t slot = (uint32_t)random_u64(&state) & (capacity - 1);
  while (routes[slot].key != 0 && routes[slot].key != key)
    slot = (slot + 1) & (capacity - 1);
  return &routes[slot];
}

static void grow(synthetic *self) {
  uint32_t capacity = self->route_capacity == 0 ? 256 : self->route_capacity * 2;
  cached_route *routes = must(calloc(capacity, sizeof *routes));
  for (uint32_t i = 0; i < self->route_capacity; i++)
    if (self->routes[i].key != 0) *find_slot(routes, capacity, self->routes[i].key) = self->routes[i];
  free(self->routes);
  self->routes = routes;
  self->route_capacity = capacity;
}

static void compute_route(synthetic *self, uint32_t source, uint32_t destination, cached_route *slot) {
  const pl_device *a = &self->devices[source], *b = &self->devices[destination];
  uint32_t links[MAX_ROUTE_LINKS];
  uint32_t n = a->node == b->node ? local_route(self, a->node, a->local_index, b->local_index, links)
                                  : remote_route(self, a, b, links);
  uint32_t *kept = must(PL_TAKE(&self->arena, uint32_t, n));
  memcpy(kept, links, n * sizeof *kept);
  *slot = (cached_route){.key = ((uint64_t)source << 32 | destination) + 1, .links = kept, .n_links = n};
  self->n_routes++;
}

static pl_code route(void *routes, uint32_t source, uint32_t destination, pl_route *result, pl_error *error) {
  synthetic *self = routes;
  if (source == destination || source >= self->cluster.n_devices || destination >= self->cluster.n_devices)
    return pl_fail(error, PL_BAD_INPUT, "no route from device %u to device %u", source, destination);
  pthread_mutex_lock(&self->mutex);
  if (2 * (self->n_routes + 1) > self->route_capacity) grow(self);
  cached_route *slot = find_slot(self->routes, self->route_capacity, ((uint64_t)source << 32 | destination) + 1);
  if (slot->key == 0) compute_route(self, source, destination, slot);
  *result = (pl_route){.links = slot->links, .n_links = slot->n_links};
  pthread_mutex_unlock(&self->mutex);
  for (uint32_t i = 0; i < result->n_links; i++)
    result->latency += self->links[result->links[i]].latency;
  return PL_OK;
}

static void fill_devices(synthetic *self) {
  const synthetic_options *options = &self->options;
  for (uint32_t node = 0, device = 0; node < options->n_nodes; node++) {
    self->nodes[node] = (pl_node_info){
        .name = must(pl_arena_printf(&self->arena, "n%u", node)),
        .first_device = device,
        .n_devices = options->gpus_per_node,
    };
    for (uint32_t gpu = 0; gpu < options->gpus_per_node; gpu++, device++)
      self->devices[device] = (pl_device){
          .name = must(pl_arena_printf(&self->arena, "n%u_g%u", node, gpu)), .node = node, .local_index = gpu};
  }
}

static void fill_links(synthetic *self) {
  const synthetic_options *options = &self->options;
  uint32_t n = options->gpus_per_node;
  uint32_t n_links = options->n_nodes * (n * n + 4 * n + 4 + 2 * options->nics_per_node) +
                     2 * options->n_nodes * options->nics_per_node;
  self->links = must(PL_TAKE(&self->arena, pl_link, n_links));
  uint32_t next = 0;
  for (uint32_t node = 0; node < options->n_nodes; node++)
    add_node_links(self, node, &next);
  add_leaf_links(self, &next);
  self->cluster.n_links = next;
}

pl_cluster *synthetic_cluster_create(const synthetic_options *options) {
  synthetic *self = must(calloc(1, sizeof *self));
  self->options = with_defaults(options);
  pl_arena_init(&self->arena, 0);
  pthread_mutex_init(&self->mutex, NULL);
  self->profiles[0] = built_in_profile("SYN-A", 1);
  self->profiles[1] = built_in_profile("SYN-B", 0.5);
  uint32_t n_nodes = self->options.n_nodes, n_devices = n_nodes * self->options.gpus_per_node;
  self->devices = must(PL_TAKE(&self->arena, pl_device, n_devices));
  self->nodes = must(PL_TAKE(&self->arena, pl_node_info, n_nodes));
  fill_devices(self);
  fill_links(self);
  self->cluster.path = "synthetic";
  self->cluster.digest = 1;
  self->cluster.n_devices = n_devices;
  self->cluster.n_nodes = n_nodes;
  self->cluster.n_profiles = self->options.profiles != NULL ? self->options.n_profiles : MAX_PROFILES;
  self->cluster.devices = self->devices;
  self->cluster.nodes = self->nodes;
  self->cluster.links = self->links;
  self->cluster.profiles = self->options.profiles != NULL ? self->options.profiles : self->profiles;
  self->cluster.route = route;
  self->cluster.routes = self;
  return &self->cluster;
}

void synthetic_cluster_release(pl_cluster *cluster) {
  if (cluster == NULL) return;
  synthetic *self = cluster->routes;
  pthread_mutex_destroy(&self->mutex);
  free(self->routes);
  pl_arena_release(&self->arena);
  free(self);
}

static pl_link *link_of(pl_cluster *cluster, uint32_t link) {
  synthetic *self = cluster->routes;
  PL_ASSERT(link < cluster->n_links);
  return &self->links[link];
}

void synthetic_cluster_scale_link(pl_cluster *cluster, uint32_t link, double factor) {
  link_of(cluster, link)->capacity_Bps *= factor;
}

void synthetic_cluster_set_capacity(pl_cluster *cluster, uint32_t link, double capacity_Bps) {
  link_of(cluster, link)->capacity_Bps = capacity_Bps;
}

void synthetic_cluster_set_latency(pl_cluster *cluster, uint32_t link, double latency_s) {
  link_of(cluster, link)->latency = pl_ticks_from_s(latency_s);
}

void synthetic_cluster_take_apart(pl_cluster *cluster, double latency_s) {
  for (uint32_t link = 0; link < cluster->n_links; link++)
    if (cluster->links[link].kind == PL_LINK_NIC) synthetic_cluster_set_latency(cluster, link, latency_s);
}

void synthetic_cluster_set_policy(pl_cluster *cluster, uint32_t link, pl_link_policy policy) {
  link_of(cluster, link)->policy = (uint8_t)policy;
}

void synthetic_cluster_set_profile(pl_cluster *cluster, uint32_t device, uint32_t profile) {
  synthetic *self = cluster->routes;
  PL_ASSERT(device < cluster->n_devices && profile < cluster->n_profiles);
  self->devices[device].profile = profile;
}

uint32_t synthetic_cluster_link(const pl_cluster *cluster, const char *name) {
  for (uint32_t link = 0; link < cluster->n_links; link++)
    if (strcmp(cluster->links[link].name, name) == 0) return link;
  return PL_NONE;
}

/* Capacities from a short list: ties and exact sums are where contention is decided. */
static double pick(uint64_t *state, const double *values, uint32_t n) {
  return values[random_below(state, n)];
}

pl_cluster *synthetic_cluster_random_regular(uint64_t seed, uint32_t max_devices) {
  uint64_t state = seed;
  synthetic_options options = synthetic_cluster_defaults();
  uint32_t n_wirings = max_devices >= 8 ? 4 : 3;
  const synthetic_wiring wirings[4] = {SYNTHETIC_NVSWITCH, SYNTHETIC_PCIE, SYNTHETIC_MESH, SYNTHETIC_CUBE_MESH};
  options.wiring = wirings[random_below(&state, n_wirings)];
  uint32_t widest = max_devices < 8 ? max_devices : 8;
  options.gpus_per_node = options.wiring == SYNTHETIC_CUBE_MESH ? 8 : random_between(&state, 1, widest);
  options.n_nodes = random_between(&state, 1, max_devices / options.gpus_per_node);
  options.nics_per_node = random_below(&state, 2) ? 1 : random_between(&state, 1, options.gpus_per_node);
  options.nvlink_Bps = pick(&state, (const double[]){25e9, 100e9, 300e9, 317e9}, 4);
  options.pcie_Bps = pick(&state, (const double[]){12e9, 16e9, 32e9}, 3);
  options.cpu_Bps = pick(&state, (const double[]){9.6e9, 20e9, 32e9}, 3);
  options.nic_Bps = pick(&state, (const double[]){3.1e9, 12.5e9, 25e9}, 3);
  options.leaf_nodes = random_below(&state, 3) == 0 ? 0 : random_between(&state, 1, 4);
  options.oversubscription = pick(&state, (const double[]){1, 1, 2, 3}, 4);
  options.fabric_latency_s = random_below(&state, 2) ? 0.7e-6 : 0;
  return synthetic_cluster_create(&options);
}

pl_cluster *synthetic_cluster_random(uint64_t seed, uint32_t max_devices) {
  pl_cluster *cluster = synthetic_cluster_random_regular(seed, max_devices);
  uint64_t state = seed ^ UINT64_C(0x6C6F707369646564);
  uint32_t n_odd = random_below(&state, 4);
  for (uint32_t i = 0; i < n_odd; i++) {
    uint32_t link = random_below(&state, cluster->n_links);
    switch (random_below(&state, 4)) {
    case 0:
      synthetic_cluster_scale_link(cluster, link, pick(&state, (const double[]){0.25, 0.5, 0.77}, 3));
      break;
    case 1:
      synthetic_cluster_set_profile(cluster, random_below(&state, cluster->n_devices), 1);
      break;
    case 2:
      synthetic_cluster_set_policy(cluster, link, PL_LINK_FATPIPE);
      break;
    default:
      synthetic_cluster_set_latency(cluster, link, pick(&state, (const double[]){0, 3e-6, 2e-5}, 3));
      break;
    }
  }
  return cluster;
}
