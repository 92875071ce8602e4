/* What zone_tree.c builds and zone_route.c reads. */
#ifndef PL_NETMODEL_ZONE_TREE_INTERNAL_H
#define PL_NETMODEL_ZONE_TREE_INTERNAL_H

#include <stdbool.h>

#include "core/base/hash_index.h"
#include "netmodel/platform/zone_tree.h"

enum { DEPTH_MAX = 64, HOPS_MAX = 256, NAME_BYTES = 1024 };

typedef enum tree_routing { TREE_FULL, TREE_FLOYD, TREE_STAR } tree_routing;
typedef enum tree_kind { TREE_HOST, TREE_ROUTER, TREE_ZONE } tree_kind;

/* What a route may begin or end at. */
typedef struct tree_point {
  const char *name;
  uint32_t zone; /* around it; PL_SHIM_NONE for the outermost */
  uint32_t rank; /* among the points of that zone, in file order */
  tree_kind kind;
  uint32_t index; /* of the zone that it is; of a star's host, its first link */
  bool has_device;
} tree_point;

/* A declared route; one that holds both ways is two. Gateways are the ends themselves where these are no zones. */
typedef struct tree_route {
  uint32_t source, destination, source_gateway, destination_gateway; /* points */
  uint32_t n_links;
  uint32_t links[];
} tree_route;

typedef struct tree_zone {
  tree_routing routing;
  uint32_t point, parent, depth, n_points;
  uint32_t first_point, first_route, n_routes; /* its own; in one piece where it has no other zones */
  uint32_t first_link, n_links;                /* from the first to the last between its devices */
  bool has_zones, has_leaves;                  /* other zones, or hosts and routers; never both */
  uint32_t *members;                           /* Floyd: rank -> point */
  uint32_t *costs;                             /* Floyd: by row, while it is solved */
  uint32_t *predecessors; /* Floyd: by row; the last rank before the column's on the way from the row's */
  uint32_t backbone;      /* star: link or PL_SHIM_NONE */
  bool is_duplex;         /* star: two links per host, up and down */
} tree_zone;

/* Things of one type in an array that grows. */
typedef struct tree_list {
  void *items;
  uint32_t count, room;
} tree_list;

struct pl_zone_tree {
  pl_arena *arena;
  const char *unknown;
  tree_list zones, points;                   /* tree_zone, tree_point */
  tree_list declared;                        /* const tree_route *, in file order */
  tree_list host_points;                     /* uint32_t, by host */
  tree_list out_zones, out_hosts, out_links; /* pl_shim_zone, pl_shim_host, pl_shim_link */
  pl_hash_index point_names, link_names, routes;
  bool has_half_names; /* a link of the file is called X_UP or X_DOWN */
  struct tree_open *open;
};

static inline uint64_t tree_hash_ends(uint32_t source, uint32_t destination) {
  return pl_hash_word(pl_hash_word(0x9e3779b97f4a7c15u, source), destination);
}

/* The DTD's order inside a zone. */
typedef enum zone_phase { PHASE_PROPERTIES, PHASE_CONTENT, PHASE_ROUTES } zone_phase;

typedef struct named_point {
  const char *name;
  uint32_t point;
} named_point;

/* A link, or the pair that a SPLITDUPLEX link stands for: X with its halves X_UP and X_DOWN, which have names too but
 * are found by the name of the pair. */
typedef struct named_link {
  const char *name;
  uint32_t up, down; /* the same for a plain link */
  bool is_pair;
} named_link;

typedef enum open_owner { OWNER_NONE, OWNER_ZONE, OWNER_HOST, OWNER_LINK, OWNER_CLUSTER } open_owner;

/* A quantity and the text that it was read from last; links of one kind follow each other. */
typedef struct last_quantity {
  char text[16]; /* "": none yet */
  double value;
} last_quantity;

struct tree_open {
  uint32_t zone, n_zones; /* the innermost; how many are open */
  zone_phase phases[DEPTH_MAX];
  open_owner owner; /* of <prop> */
  pl_shim_host host;
  pl_shim_link link;
  bool is_duplex;
  last_quantity bandwidth, latency, speed;
  /* of the cluster that is open */
  const char *cluster_id, *prefix, *suffix, *radical, *router;
  double backbone_Bps, backbone_s;
  bool backbone_is_fatpipe;
  /* of the route that is open */
  bool is_route, is_symmetrical;
  uint32_t n_hops, hops[HOPS_MAX], back_hops[HOPS_MAX];
  tree_route ends; /* without links: those are in the list of hops */
};

/* ---- building ---- */

/* The file has something that is not understood; the first reason is kept. */
void tree_give_up(pl_zone_tree *tree, const char *unknown);
const char *tree_keep(pl_zone_tree *tree, const char *text);
/* Room for one more, zeroed; NULL when there is no memory. */
void *tree_append(pl_zone_tree *tree, tree_list *list, size_t size);
uint64_t tree_hash_name(const char *name);
/* As `read` reads it. */
bool tree_read_again(last_quantity *last, bool (*read)(const char *, double *), const char *text, double *value);
/* The value of an attribute that must be given and not be empty; else the tree is given up. */
const char *tree_need(pl_zone_tree *tree, const pl_platform_element *element, pl_platform_attribute attribute);
/* A new point of the zone that is open; PL_SHIM_NONE when it failed. */
uint32_t tree_add_point(pl_zone_tree *tree, const char *name, tree_kind kind, uint32_t index);
/* A new zone inside the one that is open, which it replaces until tree_close_zone; NULL when it failed. */
tree_zone *tree_open_zone(pl_zone_tree *tree, const char *id, tree_routing routing);
void tree_close_zone(pl_zone_tree *tree);
void tree_add_host(pl_zone_tree *tree, const pl_shim_host *host, uint32_t point);
/* The first index of the link or pair, PL_SHIM_NONE when it failed. `name` must stay. */
uint32_t tree_add_link(pl_zone_tree *tree, const pl_shim_link *link, const char *name, bool is_duplex);
/* False: there is no such link. */
bool tree_find_link(const pl_zone_tree *tree, const char *name, named_link *found);
/* SHARED where nothing is said, or what the element takes then. */
void tree_read_policy(pl_zone_tree *tree, const char *policy, const char *otherwise, bool *is_duplex,
                      uint8_t *is_fatpipe);
void tree_read_wire(pl_zone_tree *tree, const char *bandwidth, const char *latency, pl_shim_link *link);
uint32_t tree_core_count(pl_zone_tree *tree, const pl_platform_element *element);
void tree_check_speed(pl_zone_tree *tree, const pl_platform_element *element);
void tree_begin_cluster(pl_zone_tree *tree, const pl_platform_element *element);
void tree_end_cluster(pl_zone_tree *tree);

/* ---- routes ---- */

/* Whether a way between two devices of its zone may cross this declared route: of a Full zone, that route itself. */
bool tree_joins_devices(const pl_zone_tree *tree, const tree_zone *zone, const tree_route *route);

/* NULL: not declared. */
const tree_route *tree_find_route(const pl_zone_tree *tree, uint32_t source, uint32_t destination);

/* All shortest ways of the Floyd zones, with SimGrid's choice among equals. False: no memory. */
bool tree_solve_floyd(pl_zone_tree *tree);

#endif
