/* See netmodel/collective/groups_alike.h. */
#include "netmodel/collective/groups_alike.h"

enum { PAIRS_MAX = 8 };

typedef struct comparison {
  pl_groups_alike *own;
  const pl_cluster *cluster;
  const pl_link *file; /* the links by whose figures wiring is told */
  struct {
    uint32_t a, b;
  } pairs[PAIRS_MAX]; /* nodes that correspond, the last ones */
  uint32_t n_pairs;
} comparison;

static bool have_equal_figures(const pl_link *a, const pl_link *b) {
  return a->capacity_Bps == b->capacity_Bps && a->latency == b->latency && a->policy == b->policy && a->kind == b->kind;
}

static bool corresponds(const comparison *by, uint32_t a, uint32_t b) {
  pl_groups_alike *own = by->own;
  if (own->there[a] != 0 || own->back[b] != 0) return own->there[a] == b + 1 && own->back[b] == a + 1;
  const pl_link *links = by->cluster->links;
  if (!have_equal_figures(&links[a], &links[b]) || !have_equal_figures(&by->file[a], &by->file[b])) return false;
  own->there[a] = b + 1;
  own->back[b] = a + 1;
  own->mapped[own->n_mapped++] = a;
  return true;
}

static void forget(pl_groups_alike *own) {
  while (own->n_mapped > 0) {
    uint32_t link = own->mapped[--own->n_mapped];
    own->back[own->there[link] - 1] = 0;
    own->there[link] = 0;
  }
}

static pl_code compare_routes(const comparison *by, const uint32_t from[2], const uint32_t to[2], bool *alike,
                              pl_error *error) {
  pl_route a, b;
  PL_TRY(pl_cluster_route(by->cluster, from[0], to[0], &a, error));
  PL_TRY(pl_cluster_route(by->cluster, from[1], to[1], &b, error));
  *alike = a.n_links == b.n_links && a.latency == b.latency;
  for (uint32_t i = 0; *alike && i < a.n_links; i++)
    *alike = corresponds(by, a.links[i], b.links[i]);
  return PL_OK;
}

/* Nodes that are known to be wired alike (pl_node_shape): their links one by one, counted from the first of each, so
 * that no route between devices inside has to be looked up. */
static bool nodes_correspond(comparison *by, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < by->n_pairs && i < PAIRS_MAX; i++)
    if (by->pairs[i].a == a && by->pairs[i].b == b) return true;
  const pl_node_shape *x = &by->cluster->shapes[a], *y = &by->cluster->shapes[b];
  for (uint32_t i = 0; i < x->n_links; i++)
    if (!corresponds(by, x->first_link + i, y->first_link + i)) return false;
  uint32_t place = by->n_pairs++ % PAIRS_MAX;
  by->pairs[place].a = a;
  by->pairs[place].b = b;
  return true;
}

/* Whether both routes are inside of nodes of one kind. */
static bool are_inside(const pl_cluster *cluster, const uint32_t from[2], const uint32_t to[2]) {
  const pl_device *devices = cluster->devices;
  return cluster->shapes != NULL && devices[from[0]].node == devices[to[0]].node &&
         devices[from[1]].node == devices[to[1]].node &&
         cluster->shapes[devices[from[0]].node].kind == cluster->shapes[devices[from[1]].node].kind;
}

/* Places of two pairs of devices. */
static bool stand_alike(const pl_cluster *cluster, const uint32_t x[2], const uint32_t y[2]) {
  const pl_device *devices = cluster->devices, *a = &devices[x[0]], *b = &devices[x[1]];
  return a->local_index == b->local_index && cluster->nodes[a->node].n_devices == cluster->nodes[b->node].n_devices &&
         (a->node == devices[y[0]].node) == (b->node == devices[y[1]].node);
}

/* Members before and at which the group is on the same two nodes for the first time. */
static void find_firsts(const pl_cluster *cluster, const uint32_t *a, const uint32_t *b, uint32_t n,
                        uint32_t first[PL_GROUPS_ALIKE_MOST]) {
  const pl_device *devices = cluster->devices;
  for (uint32_t i = 0; i < n; i++) {
    first[i] = 0;
    while (devices[a[first[i]]].node != devices[a[i]].node || devices[b[first[i]]].node != devices[b[i]].node)
      first[i]++;
  }
}

/* Whether routes that are compared anyway show what this one would. A file's route from one zone to another is the way
 * out of the one, the way between their gateways and the way into the other, each whatever the others are
 * (zone_route.c; platforms without shapes SimGrid has loaded): that of the first member out, and that of the first
 * member in, have all of it, in places that are as far apart. */
static bool is_known(const pl_cluster *cluster, const uint32_t *a, const uint32_t *b, const uint32_t *first, uint32_t i,
                     uint32_t j) {
  const pl_device *devices = cluster->devices;
  return cluster->shapes != NULL && first[i] != i && first[j] != j && devices[a[i]].node != devices[a[j]].node &&
         devices[b[i]].node != devices[b[j]].node;
}

static pl_code compare_groups(comparison *by, const uint32_t *a, const uint32_t *b, uint32_t n, bool *alike,
                              pl_error *error) {
  uint32_t first[PL_GROUPS_ALIKE_MOST];
  find_firsts(by->cluster, a, b, n, first);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n && *alike; j++) {
      const uint32_t from[2] = {a[i], b[i]}, to[2] = {a[j], b[j]};
      *alike = stand_alike(by->cluster, from, to);
      if (!*alike || i == j || is_known(by->cluster, a, b, first, i, j)) continue;
      if (are_inside(by->cluster, from, to))
        *alike = nodes_correspond(by, by->cluster->devices[from[0]].node, by->cluster->devices[from[1]].node);
      else
        PL_TRY(compare_routes(by, from, to, alike, error));
    }
  return PL_OK;
}

static bool has_all(const pl_cluster *cluster, const pl_group_row *row) {
  for (uint32_t i = 0; i < row->n_groups * row->size; i++)
    if (row->members[i] >= cluster->n_devices) return false;
  return true;
}

pl_code pl_groups_are_alike(pl_groups_alike *own, const pl_cluster *cluster, const pl_group_row *a,
                            const pl_group_row *b, pl_arena *arena, bool *alike, pl_error *error) {
  *alike = a->size <= PL_GROUPS_ALIKE_MOST && has_all(cluster, a) && has_all(cluster, b);
  if (!*alike) return PL_OK;
  if (own->there == NULL) {
    own->back = PL_TAKE(arena, uint32_t, cluster->n_links + 1);
    own->mapped = PL_TAKE(arena, uint32_t, cluster->n_links + 1);
    own->there = own->back != NULL && own->mapped != NULL ? PL_TAKE(arena, uint32_t, cluster->n_links + 1) : NULL;
    if (own->there == NULL) return pl_fail_memory(error, "like groups of devices");
  }
  comparison by = {.own = own, .cluster = cluster};
  by.file = cluster->links_of_file != NULL ? cluster->links_of_file : cluster->links;
  pl_code code = PL_OK;
  for (uint32_t g = 0; g < a->n_groups && *alike && code == PL_OK; g++)
    code =
        compare_groups(&by, a->members + (size_t)g * a->size, b->members + (size_t)g * a->size, a->size, alike, error);
  forget(own);
  return code;
}
