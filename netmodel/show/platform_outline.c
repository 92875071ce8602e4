/* See netmodel/show/platform_outline.h. Every zone is described first (groups, then a signature over groups and
 * children, from the leaves up: children stand behind their parents); then the tree is walked and siblings of equal
 * signature fold into the first. */
#include "netmodel/show/platform_outline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"

typedef struct described_zone {
  pl_outline_gpus *gpus;
  pl_outline_sockets *sockets;
  pl_outline_links *links;
  uint32_t n_gpus, n_sockets, n_links;
  uint64_t signature;
} described_zone;

typedef struct outliner {
  const pl_cluster *cluster;
  const pl_platform_zone *zones;
  uint32_t n_zones;
  const uint32_t *link_zones; /* as in the file; from describe() on, as people see it */
  const pl_platform_socket *sockets;
  uint32_t n_sockets;
  pl_arena *arena;
  described_zone *described;
  uint32_t *first_link, *links_by_zone;     /* CSR: zone -> links */
  uint32_t *first_socket, *sockets_by_zone; /* CSR: zone -> sockets */
  uint32_t *first_child, *children_by_zone; /* CSR: zone -> zones */
  pl_outline_zone *entries;
  uint32_t n_entries;
} outliner;

/* Rows of a CSR table by counting: item i belongs to row owner[i], PL_NONE = to none. Items keep their order. */
static bool take_rows(const uint32_t *owner, size_t stride, uint32_t n_items, uint32_t n_rows, pl_arena *arena,
                      uint32_t **first, uint32_t **items) {
  uint32_t *begin = PL_TAKE(arena, uint32_t, n_rows + 2), *sorted = PL_TAKE(arena, uint32_t, n_items);
  if (begin == NULL || sorted == NULL) return false;
  const char *at = (const char *)owner;
  for (uint32_t i = 0; i < n_items; i++) {
    uint32_t row = *(const uint32_t *)(const void *)(at + i * stride);
    if (row != PL_NONE) begin[row + 2]++;
  }
  for (uint32_t row = 0; row < n_rows; row++)
    begin[row + 2] += begin[row + 1];
  for (uint32_t i = 0; i < n_items; i++) {
    uint32_t row = *(const uint32_t *)(const void *)(at + i * stride);
    if (row != PL_NONE) sorted[begin[row + 1]++] = i;
  }
  *first = begin;
  *items = sorted;
  return true;
}

static bool describe_gpus(outliner *o, uint32_t zone) {
  described_zone *d = &o->described[zone];
  if (o->zones[zone].node == PL_NONE) return true;
  const pl_node_info *node = &o->cluster->nodes[o->zones[zone].node];
  d->gpus = PL_TAKE(o->arena, pl_outline_gpus, o->cluster->n_profiles);
  if (d->gpus == NULL) return false;
  for (uint32_t i = 0; i < node->n_devices; i++) {
    const pl_device *device = &o->cluster->devices[node->first_device + i];
    uint32_t g = 0;
    while (g < d->n_gpus && d->gpus[g].profile != device->profile)
      g++;
    if (g == d->n_gpus) d->gpus[d->n_gpus++] = (pl_outline_gpus){.profile = device->profile, .first = device->name};
    d->gpus[g].count++;
    d->gpus[g].last = device->name;
  }
  return true;
}

static bool describe_sockets(outliner *o, uint32_t zone) {
  described_zone *d = &o->described[zone];
  uint32_t begin = o->first_socket[zone], end = o->first_socket[zone + 1];
  d->sockets = PL_TAKE(o->arena, pl_outline_sockets, end - begin);
  if (d->sockets == NULL) return false;
  for (uint32_t i = begin; i < end; i++) {
    const pl_platform_socket *socket = &o->sockets[o->sockets_by_zone[i]];
    uint32_t g = 0;
    while (g < d->n_sockets &&
           (strcmp(d->sockets[g].cpu, socket->cpu) != 0 || d->sockets[g].n_cores != socket->n_cores))
      g++;
    if (g == d->n_sockets)
      d->sockets[d->n_sockets++] =
          (pl_outline_sockets){.cpu = socket->cpu, .n_cores = socket->n_cores, .first = socket->name};
    d->sockets[g].count++;
    d->sockets[g].last = socket->name;
  }
  return true;
}

/* "X" if `up` and `down` are X_UP and X_DOWN with the same figures, else NULL. */
static const char *duplex_name(outliner *o, const pl_link *up, const pl_link *down) {
  size_t length = strlen(up->name);
  if (length <= 3 || strcmp(up->name + length - 3, "_UP") != 0) return NULL;
  if (strncmp(up->name, down->name, length - 3) != 0 || strcmp(down->name + length - 3, "_DOWN") != 0) return NULL;
  bool same = up->capacity_Bps == down->capacity_Bps && up->latency == down->latency && up->policy == down->policy;
  return same ? pl_arena_printf(o->arena, "%.*s", (int)(length - 3), up->name) : NULL;
}

static void add_link(described_zone *d, const pl_link *link, const char *name, bool is_duplex) {
  uint32_t g = 0;
  for (; g < d->n_links; g++) {
    const pl_outline_links *l = &d->links[g];
    if (l->kind == link->kind && l->policy == link->policy && l->is_duplex == is_duplex &&
        l->capacity_Bps == link->capacity_Bps && l->latency == link->latency)
      break;
  }
  if (g == d->n_links)
    d->links[d->n_links++] = (pl_outline_links){.kind = link->kind,
                                                .policy = link->policy,
                                                .is_duplex = is_duplex,
                                                .capacity_Bps = link->capacity_Bps,
                                                .latency = link->latency,
                                                .first = name};
  d->links[g].count++;
  d->links[g].last = name;
}

static int compare_links(const void *left, const void *right) {
  static const uint8_t rank[PL_LINK_KIND_COUNT] = {[PL_LINK_NVLINK] = 0, [PL_LINK_PCIE] = 1,   [PL_LINK_CPU] = 2,
                                                   [PL_LINK_NIC] = 3,    [PL_LINK_FABRIC] = 4, [PL_LINK_OTHER] = 5};
  const pl_outline_links *a = left, *b = right;
  if (a->kind != b->kind) return (int)rank[a->kind] - (int)rank[b->kind];
  if (a->capacity_Bps != b->capacity_Bps) return a->capacity_Bps > b->capacity_Bps ? -1 : 1;
  if (a->latency != b->latency) return a->latency < b->latency ? -1 : 1;
  return ((int)a->policy - (int)b->policy) * 2 + ((int)b->is_duplex - (int)a->is_duplex);
}

static bool describe_links(outliner *o, uint32_t zone) {
  described_zone *d = &o->described[zone];
  uint32_t begin = o->first_link[zone], end = o->first_link[zone + 1];
  d->links = PL_TAKE(o->arena, pl_outline_links, end - begin);
  if (d->links == NULL) return false;
  for (uint32_t i = begin; i < end; i++) {
    const pl_link *link = &o->cluster->links[o->links_by_zone[i]];
    const char *duplex = i + 1 < end ? duplex_name(o, link, &o->cluster->links[o->links_by_zone[i + 1]]) : NULL;
    add_link(d, link, duplex != NULL ? duplex : link->name, duplex != NULL);
    i += duplex != NULL;
  }
  if (d->n_links > 1) qsort(d->links, d->n_links, sizeof *d->links, compare_links);
  return true;
}

static void sign(outliner *o, uint32_t zone) {
  described_zone *d = &o->described[zone];
  pl_digest digest;
  pl_digest_init(&digest);
  for (uint32_t i = 0; i < d->n_gpus; i++)
    pl_digest_u64(&digest, (uint64_t)d->gpus[i].profile << 32 | d->gpus[i].count);
  for (uint32_t i = 0; i < d->n_sockets; i++) {
    pl_digest_bytes(&digest, d->sockets[i].cpu, strlen(d->sockets[i].cpu) + 1);
    pl_digest_u64(&digest, (uint64_t)d->sockets[i].n_cores << 32 | d->sockets[i].count);
  }
  for (uint32_t i = 0; i < d->n_links; i++) {
    const pl_outline_links *l = &d->links[i];
    pl_digest_u64(&digest,
                  (uint64_t)l->kind << 40 | (uint64_t)l->policy << 36 | (uint64_t)l->is_duplex << 32 | l->count);
    pl_digest_f64(&digest, l->capacity_Bps);
    pl_digest_u64(&digest, (uint64_t)l->latency);
  }
  for (uint32_t i = o->first_child[zone]; i < o->first_child[zone + 1]; i++)
    pl_digest_u64(&digest, o->described[o->children_by_zone[i]].signature);
  d->signature = digest.value;
}

/* ---- links that stand in front ----
 *
 * Files of thousands of nodes declare the wires of all nodes in one zone in front, where SimGrid finds them quickest
 * (platforms/README.md). For people they belong to their node: the one whose name theirs begins with, "n12nv3" to
 * "n12". Only what is inside nodes, and only for this outline; nothing that is simulated looks at names. */

typedef struct node_zone {
  const char *name;
  uint32_t zone;
} node_zone;

static int by_name(const void *left, const void *right) {
  return strcmp(((const node_zone *)left)->name, ((const node_zone *)right)->name);
}

typedef struct prefix {
  const char *text;
  size_t length;
} prefix;

static int compare_prefix(const void *wanted, const void *entry) {
  const prefix *p = wanted;
  const char *name = ((const node_zone *)entry)->name;
  int order = strncmp(p->text, name, p->length);
  return order != 0 ? order : name[p->length] == '\0' ? 0 : -1;
}

static uint32_t find_owner(const node_zone *nodes, uint32_t n_nodes, const char *link, uint32_t otherwise) {
  for (size_t length = strlen(link); length-- > 1;) {
    if (link[length] >= '0' && link[length] <= '9') continue; /* "n1" is no prefix of "n12nv0" */
    const prefix wanted = {link, length};
    const node_zone *found = bsearch(&wanted, nodes, n_nodes, sizeof *nodes, compare_prefix);
    if (found != NULL) return found->zone;
  }
  return otherwise;
}

/* Zone per link, for people; NULL: no memory. */
static const uint32_t *take_owners(const outliner *o) {
  const pl_cluster *cluster = o->cluster;
  node_zone *nodes = PL_TAKE(o->arena, node_zone, o->n_zones);
  uint32_t *owners = PL_TAKE(o->arena, uint32_t, cluster->n_links), n_nodes = 0;
  if (nodes == NULL || owners == NULL) return NULL;
  for (uint32_t zone = 0; zone < o->n_zones; zone++)
    if (o->zones[zone].node != PL_NONE) nodes[n_nodes++] = (node_zone){o->zones[zone].name, zone};
  qsort(nodes, n_nodes, sizeof *nodes, by_name);
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    const pl_link *link = &cluster->links[l];
    uint32_t zone = o->link_zones[l];
    bool is_inside = link->kind >= PL_LINK_NVLINK && link->kind <= PL_LINK_NIC;
    bool stands_apart = zone != PL_NONE && o->zones[zone].node == PL_NONE;
    owners[l] = is_inside && stands_apart ? find_owner(nodes, n_nodes, link->name, zone) : zone;
  }
  return owners;
}

static bool describe(outliner *o) {
  o->link_zones = take_owners(o);
  if (o->link_zones == NULL) return false;
  o->described = PL_TAKE(o->arena, described_zone, o->n_zones);
  o->entries = PL_TAKE(o->arena, pl_outline_zone, o->n_zones);
  if (o->described == NULL || o->entries == NULL) return false;
  if (!take_rows(o->link_zones, sizeof(uint32_t), o->cluster->n_links, o->n_zones, o->arena, &o->first_link,
                 &o->links_by_zone))
    return false;
  if (!take_rows(&o->sockets[0].zone, sizeof o->sockets[0], o->n_sockets, o->n_zones, o->arena, &o->first_socket,
                 &o->sockets_by_zone))
    return false;
  if (!take_rows(&o->zones[0].parent, sizeof o->zones[0], o->n_zones, o->n_zones, o->arena, &o->first_child,
                 &o->children_by_zone))
    return false;
  for (uint32_t zone = o->n_zones; zone-- > 0;) {
    if (!describe_gpus(o, zone) || !describe_sockets(o, zone) || !describe_links(o, zone)) return false;
    sign(o, zone);
  }
  return true;
}

static void fold(outliner *o, uint32_t zone, uint32_t parent, uint32_t depth) {
  const described_zone *d = &o->described[zone];
  uint32_t own = o->n_entries++;
  o->entries[own] = (pl_outline_zone){.name = o->zones[zone].name,
                                      .last_name = o->zones[zone].name,
                                      .alike = 1,
                                      .zone = zone,
                                      .parent = parent,
                                      .depth = depth,
                                      .node = o->zones[zone].node,
                                      .gpus = d->gpus,
                                      .n_gpus = d->n_gpus,
                                      .sockets = d->sockets,
                                      .n_sockets = d->n_sockets,
                                      .links = d->links,
                                      .n_links = d->n_links};
  for (uint32_t i = o->first_child[zone]; i < o->first_child[zone + 1]; i++) {
    uint32_t child = o->children_by_zone[i], same = own + 1;
    while (same < o->n_entries && (o->entries[same].parent != own ||
                                   o->described[o->entries[same].zone].signature != o->described[child].signature))
      same++;
    if (same == o->n_entries) {
      fold(o, child, own, depth + 1);
    } else {
      o->entries[same].alike++;
      o->entries[same].last_name = o->zones[child].name;
    }
  }
}

pl_code pl_platform_outline_take(const pl_platform *platform, pl_arena *arena, pl_outline *outline, pl_error *error) {
  outliner o = {
      .cluster = pl_platform_cluster(platform), .link_zones = pl_platform_link_zones(platform), .arena = arena};
  o.zones = pl_platform_zones(platform, &o.n_zones);
  o.sockets = pl_platform_sockets(platform, &o.n_sockets);
  if (!describe(&o) || arena->failed) return pl_fail_memory(error, "the outline of the platform");
  fold(&o, 0, PL_NONE, 0);
  *outline = (pl_outline){.zones = o.entries, .n_zones = o.n_entries};
  return PL_OK;
}
