/* See netmodel/platform/zone_tree.h. What SimGrid's reader and constructors would check is checked here or not
 * understood: names used twice, links that are declared later, routes twice, elements out of the order of the DTD. */
#include "netmodel/platform/zone_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/digest.h"
#include "netmodel/platform/platform_shape.h"
#include "netmodel/platform/platform_words.h"
#include "netmodel/platform/zone_tree_internal.h"
#include "netmodel/simgrid/simgrid_units.h"

typedef struct pl_zone_tree tree;

void tree_give_up(tree *t, const char *unknown) {
  if (t->unknown == NULL) t->unknown = unknown;
}

/* ---- lists and names ---- */

void *tree_append(tree *t, tree_list *list, size_t size) {
  void *items = pl_arena_grown(t->arena, list->items, list->count, 1, size, &list->room);
  if (items == NULL) return NULL;
  list->items = items;
  return (char *)list->items + size * list->count++;
}

uint64_t tree_hash_name(const char *name) {
  return pl_hash_bytes(name, strlen(name), 0);
}

const char *tree_keep(tree *t, const char *text) {
  return pl_arena_strdup(t->arena, text);
}

/* The value of an attribute that must be given and not be empty; else the tree is given up. */
const char *tree_need(tree *t, const pl_platform_element *element, pl_platform_attribute attribute) {
  const char *value = pl_platform_value(element, attribute);
  if (value == NULL || value[0] == '\0') tree_give_up(t, "a missing or empty attribute");
  return value != NULL ? value : "";
}

static const named_point *find_hashed_point(const tree *t, const char *name, uint64_t hash) {
  uint32_t probe = 0;
  for (const named_point *p; (p = pl_hash_index_find(&t->point_names, hash, &probe)) != NULL;)
    if (strcmp(p->name, name) == 0) return p;
  return NULL;
}

static const named_point *find_point(const tree *t, const char *name) {
  return find_hashed_point(t, name, tree_hash_name(name));
}

static tree_zone *zone_at(const tree *t, uint32_t zone) {
  return &((tree_zone *)t->zones.items)[zone];
}

static tree_point *point_at(const tree *t, uint32_t point) {
  return &((tree_point *)t->points.items)[point];
}

/* A new point of the zone that is open. PL_SHIM_NONE when it failed. */
uint32_t tree_add_point(tree *t, const char *name, tree_kind kind, uint32_t index) {
  uint32_t zone = t->open->zone, own = t->points.count;
  uint64_t hash = tree_hash_name(name);
  if (find_hashed_point(t, name, hash) != NULL) tree_give_up(t, "a name used twice");
  named_point *named = PL_TAKE(t->arena, named_point, 1);
  tree_point *point = tree_append(t, &t->points, sizeof *point);
  if (t->unknown != NULL || named == NULL || point == NULL) return PL_SHIM_NONE;
  *point = (tree_point){.name = tree_keep(t, name), .zone = zone, .kind = kind, .index = index};
  if (zone != PL_SHIM_NONE) {
    point->rank = zone_at(t, zone)->n_points++;
    zone_at(t, zone)->has_leaves |= kind != TREE_ZONE;
    zone_at(t, zone)->has_zones |= kind == TREE_ZONE;
  }
  *named = (named_point){.name = point->name, .point = own};
  if (point->name != NULL) pl_hash_index_put(&t->point_names, hash, named, t->arena);
  return own;
}

/* ---- zones ---- */

/* Something of this phase comes in the zone that is open. */
static bool enter_phase(tree *t, zone_phase phase, bool for_leaves, bool for_zones) {
  struct tree_open *open = t->open;
  if (open->zone == PL_SHIM_NONE) {
    tree_give_up(t, "something outside of zones");
    return false;
  }
  const tree_zone *zone = zone_at(t, open->zone);
  zone_phase *at = &open->phases[open->n_zones - 1];
  if (phase < *at || (for_leaves && zone->has_zones) || (for_zones && zone->has_leaves))
    tree_give_up(t, "elements out of order");
  *at = phase;
  return t->unknown == NULL;
}

/* Makes it the zone that is open. */
tree_zone *tree_open_zone(tree *t, const char *id, tree_routing routing) {
  struct tree_open *open = t->open;
  uint32_t own = t->zones.count, parent = open->zone;
  if (parent == PL_SHIM_NONE ? own > 0 : !enter_phase(t, PHASE_CONTENT, false, true)) {
    tree_give_up(t, "two outermost zones");
    return NULL;
  }
  uint32_t point = tree_add_point(t, id, TREE_ZONE, own);
  tree_zone *zone = tree_append(t, &t->zones, sizeof *zone);
  pl_shim_zone *out = tree_append(t, &t->out_zones, sizeof *out);
  if (t->unknown != NULL || t->arena->failed || zone == NULL || out == NULL) return NULL;
  *zone = (tree_zone){.routing = routing,
                      .point = point,
                      .parent = parent,
                      .first_point = t->points.count,
                      .first_link = t->out_links.count,
                      .first_route = t->declared.count,
                      .backbone = PL_SHIM_NONE};
  zone->depth = parent != PL_SHIM_NONE ? zone_at(t, parent)->depth + 1 : 0;
  *out = (pl_shim_zone){.name = point_at(t, point)->name, .parent = parent};
  open->zone = own;
  if (open->n_zones == DEPTH_MAX)
    tree_give_up(t, "very deep zones");
  else
    open->phases[open->n_zones++] = PHASE_PROPERTIES;
  return zone;
}

/* The links from the first to the last that ways between devices may cross, wherever they are declared: large platforms
 * have the links of all nodes in one zone. A star has its own. */
static void find_span(const tree *t, tree_zone *zone) {
  if (zone->routing == TREE_STAR) {
    zone->n_links = t->out_links.count - zone->first_link;
    return;
  }
  const tree_route *const *declared = t->declared.items;
  uint32_t first = UINT32_MAX, end = 0;
  for (uint32_t r = zone->first_route; r < zone->first_route + zone->n_routes; r++)
    for (uint32_t l = 0; tree_joins_devices(t, zone, declared[r]) && l < declared[r]->n_links; l++) {
      if (declared[r]->links[l] < first) first = declared[r]->links[l];
      if (declared[r]->links[l] >= end) end = declared[r]->links[l] + 1;
    }
  zone->first_link = end > 0 ? first : 0;
  zone->n_links = end > 0 ? end - first : 0;
}

void tree_close_zone(tree *t) {
  tree_zone *zone = zone_at(t, t->open->zone);
  zone->n_routes = t->declared.count - zone->first_route;
  find_span(t, zone);
  t->open->zone = zone->parent;
  t->open->n_zones--;
}

static void begin_zone(tree *t, const pl_platform_element *element) {
  const char *routing = tree_need(t, element, PL_ATTRIBUTE_ROUTING);
  bool is_full = strcasecmp(routing, "Full") == 0;
  if (!is_full && strcasecmp(routing, "Floyd") != 0) tree_give_up(t, "routing other than Full and Floyd");
  const char *id = tree_need(t, element, PL_ATTRIBUTE_ID);
  if (t->unknown == NULL) tree_open_zone(t, id, is_full ? TREE_FULL : TREE_FLOYD);
  t->open->owner = OWNER_ZONE;
}

/* ---- quantities ---- */

bool tree_read_again(last_quantity *last, bool (*read)(const char *, double *), const char *text, double *value) {
  if (last->text[0] == '\0' || strcmp(last->text, text) != 0) {
    if (!read(text, &last->value)) {
      last->text[0] = '\0';
      return false;
    }
    snprintf(last->text, sizeof last->text, "%s", strlen(text) < sizeof last->text ? text : "");
  }
  *value = last->value;
  return true;
}

/* ---- hosts ---- */

uint32_t tree_core_count(tree *t, const pl_platform_element *element) {
  const char *text = pl_platform_value(element, PL_ATTRIBUTE_CORE);
  if (text == NULL) return 1;
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 9 || text[digits] != '\0' || text[0] == '0') tree_give_up(t, "a strange number of cores");
  return (uint32_t)strtoul(text, NULL, 10);
}

void tree_check_speed(tree *t, const pl_platform_element *element) {
  double speed;
  const char *state = pl_platform_value(element, PL_ATTRIBUTE_PSTATE);
  if (!tree_read_again(&t->open->speed, pl_simgrid_speed, tree_need(t, element, PL_ATTRIBUTE_SPEED), &speed) ||
      !(speed > 0))
    tree_give_up(t, "a strange speed");
  if (state != NULL && strcmp(state, "0") != 0) tree_give_up(t, "a state of the processor");
}

void tree_add_host(tree *t, const pl_shim_host *host, uint32_t point) {
  uint32_t *point_of = tree_append(t, &t->host_points, sizeof *point_of);
  pl_shim_host *out = tree_append(t, &t->out_hosts, sizeof *out);
  if (point_of == NULL || out == NULL) return;
  *point_of = point;
  *out = *host;
  point_at(t, point)->has_device = host->device != NULL;
}

static void begin_host(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  open->host = (pl_shim_host){.n_cores = tree_core_count(t, element)};
  tree_check_speed(t, element);
  const char *id = tree_need(t, element, PL_ATTRIBUTE_ID);
  if (t->unknown != NULL || !enter_phase(t, PHASE_CONTENT, true, false)) return;
  uint32_t point = tree_add_point(t, id, TREE_HOST, 0);
  if (point == PL_SHIM_NONE) return;
  open->host.name = point_at(t, point)->name;
  open->host.zone = open->zone;
  open->owner = OWNER_HOST;
}

static void end_host(tree *t) {
  tree_add_host(t, &t->open->host, t->points.count - 1);
  t->open->owner = OWNER_NONE;
}

static void begin_router(tree *t, const pl_platform_element *element) {
  const char *id = tree_need(t, element, PL_ATTRIBUTE_ID);
  if (t->unknown == NULL && enter_phase(t, PHASE_CONTENT, true, false)) tree_add_point(t, id, TREE_ROUTER, 0);
}

/* ---- links ---- */

static void begin_link(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  if (!enter_phase(t, PHASE_CONTENT, false, false)) return;
  open->link = (pl_shim_link){.zone = open->zone, .is_shareable = 1};
  tree_read_policy(t, pl_platform_value(element, PL_ATTRIBUTE_SHARING_POLICY), "SHARED", &open->is_duplex,
                   &open->link.is_fatpipe);
  tree_read_wire(t, tree_need(t, element, PL_ATTRIBUTE_BANDWIDTH), tree_need(t, element, PL_ATTRIBUTE_LATENCY),
                 &open->link);
  open->link.name = tree_keep(t, tree_need(t, element, PL_ATTRIBUTE_ID));
  open->owner = OWNER_LINK;
}

static void end_link(tree *t) {
  if (t->open->link.name != NULL) tree_add_link(t, &t->open->link, t->open->link.name, t->open->is_duplex);
  t->open->owner = OWNER_NONE;
}

/* ---- properties ---- */

static void begin_property(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  const char *id = tree_need(t, element, PL_ATTRIBUTE_ID), *value = pl_platform_value(element, PL_ATTRIBUTE_VALUE),
             **place = NULL;
  if (value == NULL) tree_give_up(t, "a property without value");
  if (open->owner == OWNER_ZONE) enter_phase(t, PHASE_PROPERTIES, false, false);
  if (open->owner == OWNER_NONE) tree_give_up(t, "a property in a strange place");
  bool is_host = open->owner == OWNER_HOST || open->owner == OWNER_CLUSTER;
  if (is_host && strcmp(id, "device") == 0) place = &open->host.device;
  if (is_host && strcmp(id, "cpu") == 0) place = &open->host.cpu;
  if (open->owner == OWNER_LINK && strcmp(id, "kind") == 0) place = &open->link.kind;
  if (place == NULL || t->unknown != NULL) return;
  if (*place != NULL) tree_give_up(t, "a property given twice");
  *place = tree_keep(t, value);
}

/* ---- routes ---- */

/* A point of the zone that is open, of the right kind. */
static uint32_t find_end(tree *t, const char *name, bool wants_zone) {
  const named_point *named = find_point(t, name);
  const tree_point *point = named != NULL ? point_at(t, named->point) : NULL;
  if (point == NULL || point->zone != t->open->zone || (point->kind == TREE_ZONE) != wants_zone) {
    tree_give_up(t, "a route between strange ends");
    return 0;
  }
  return named->point;
}

/* A host or router inside the zone that `end` is. */
static uint32_t find_gateway(tree *t, const char *name, uint32_t end) {
  const named_point *named = find_point(t, name);
  uint32_t within = point_at(t, end)->index;
  if (named != NULL && point_at(t, named->point)->kind != TREE_ZONE)
    for (uint32_t zone = point_at(t, named->point)->zone; zone != PL_SHIM_NONE; zone = zone_at(t, zone)->parent)
      if (zone == within) return named->point;
  tree_give_up(t, "a strange gateway");
  return 0;
}

static void begin_route(tree *t, const pl_platform_element *element, bool between_zones) {
  struct tree_open *open = t->open;
  const char *symmetrical = pl_platform_value(element, PL_ATTRIBUTE_SYMMETRICAL);
  open->is_symmetrical = symmetrical == NULL || strcasecmp(symmetrical, "yes") == 0;
  if (!open->is_symmetrical && strcasecmp(symmetrical, "no") != 0) tree_give_up(t, "a strange symmetry");
  const char *source = tree_need(t, element, PL_ATTRIBUTE_SRC), *destination = tree_need(t, element, PL_ATTRIBUTE_DST);
  if (t->unknown != NULL || !enter_phase(t, PHASE_ROUTES, !between_zones, between_zones)) return;
  open->is_route = true;
  open->n_hops = 0;
  open->ends = (tree_route){.source = find_end(t, source, between_zones),
                            .destination = find_end(t, destination, between_zones)};
  open->ends.source_gateway = open->ends.source;
  open->ends.destination_gateway = open->ends.destination;
  if (open->ends.source == open->ends.destination) tree_give_up(t, "a route to where it begins");
  pl_hash_index_prefetch(&t->routes, tree_hash_ends(open->ends.source, open->ends.destination));
  pl_hash_index_prefetch(&t->routes, tree_hash_ends(open->ends.destination, open->ends.source));
  if (!between_zones || t->unknown != NULL) return;
  open->ends.source_gateway = find_gateway(t, tree_need(t, element, PL_ATTRIBUTE_GW_SRC), open->ends.source);
  open->ends.destination_gateway = find_gateway(t, tree_need(t, element, PL_ATTRIBUTE_GW_DST), open->ends.destination);
}

static void begin_hop(tree *t, const pl_platform_element *element) {
  struct tree_open *open = t->open;
  const char *direction = pl_platform_value(element, PL_ATTRIBUTE_DIRECTION);
  bool is_up = direction != NULL && strcmp(direction, "UP") == 0,
       is_down = direction != NULL && strcmp(direction, "DOWN") == 0;
  bool is_none = direction == NULL || strcmp(direction, "NONE") == 0;
  named_link link;
  if (!tree_find_link(t, tree_need(t, element, PL_ATTRIBUTE_ID), &link) || !open->is_route ||
      open->n_hops == HOPS_MAX || !(is_up || is_down || is_none) || link.is_pair == is_none) {
    tree_give_up(t, "a strange link in a route");
    return;
  }
  open->hops[open->n_hops] = is_down ? link.down : link.up;
  open->back_hops[open->n_hops++] = is_down ? link.up : link.down;
}

static void put_route(tree *t, const tree_route *ends, const uint32_t *hops, bool is_reverse) {
  uint32_t n = t->open->n_hops;
  tree_route *route = pl_arena_take(t->arena, sizeof *route + n * sizeof route->links[0], _Alignof(tree_route));
  uint64_t hash = tree_hash_ends(ends->source, ends->destination);
  if (tree_find_route(t, ends->source, ends->destination) != NULL) tree_give_up(t, "a route declared twice");
  if (route == NULL || t->unknown != NULL) return;
  *route = *ends;
  route->n_links = n;
  for (uint32_t i = 0; i < n; i++)
    route->links[i] = hops[is_reverse ? n - 1 - i : i];
  pl_hash_index_put(&t->routes, hash, route, t->arena);
  const tree_route **listed = tree_append(t, &t->declared, sizeof *listed);
  if (listed != NULL) *listed = route;
}

static void end_route(tree *t) {
  struct tree_open *open = t->open;
  const tree_route *ends = &open->ends;
  open->is_route = false;
  if (open->n_hops == 0) tree_give_up(t, "a route without links");
  put_route(t, ends, open->hops, false);
  if (!open->is_symmetrical) return;
  const tree_route back = {.source = ends->destination,
                           .destination = ends->source,
                           .source_gateway = ends->destination_gateway,
                           .destination_gateway = ends->source_gateway};
  put_route(t, &back, open->back_hops, true);
}

/* ---- events ---- */

static void begin(void *data, const pl_platform_element *element, uint32_t line) {
  tree *t = data;
  (void)line;
  if (t->unknown != NULL || t->arena->failed) return;
  switch (element->word) {
  case PL_WORD_LINK_CTN:
    begin_hop(t, element);
    break;
  case PL_WORD_PROP:
    begin_property(t, element);
    break;
  case PL_WORD_LINK:
    begin_link(t, element);
    break;
  case PL_WORD_ROUTE:
  case PL_WORD_ZONE_ROUTE:
    begin_route(t, element, element->word == PL_WORD_ZONE_ROUTE);
    break;
  case PL_WORD_HOST:
    begin_host(t, element);
    break;
  case PL_WORD_ROUTER:
    begin_router(t, element);
    break;
  case PL_WORD_ZONE:
    begin_zone(t, element);
    break;
  case PL_WORD_CLUSTER:
    tree_begin_cluster(t, element);
    break;
  case PL_WORD_PLATFORM:
    break;
  default:
    tree_give_up(t, pl_platform_word_name(element->word));
  }
}

static void end(void *data, pl_platform_word word, uint32_t line) {
  tree *t = data;
  (void)line;
  if (t->unknown != NULL || t->arena->failed) return;
  if (word == PL_WORD_LINK)
    end_link(t);
  else if (word == PL_WORD_ROUTE || word == PL_WORD_ZONE_ROUTE)
    end_route(t);
  else if (word == PL_WORD_HOST)
    end_host(t);
  else if (word == PL_WORD_ZONE)
    tree_close_zone(t);
  else if (word == PL_WORD_CLUSTER)
    tree_end_cluster(t);
}

/* What was there stays in the arena. */
static void restart(void *data) {
  tree *t = data;
  struct tree_open *open = t->open;
  *open = (struct tree_open){.zone = PL_SHIM_NONE};
  *t = (tree){.arena = t->arena, .open = open};
}

pl_zone_tree *pl_zone_tree_take(size_t text_bytes, pl_arena *arena) {
  /* Of text per way of a route, as platform make writes them; few routes leave room to spare. */
  enum { ROUTE_BYTES = 90 };
  tree *t = PL_TAKE(arena, tree, 1);
  struct tree_open *open = PL_TAKE(arena, struct tree_open, 1);
  if (t == NULL || open == NULL) return NULL;
  t->arena = arena;
  t->open = open;
  restart(t);
  uint32_t n_routes = (uint32_t)(text_bytes / ROUTE_BYTES < UINT32_MAX / 4 ? text_bytes / ROUTE_BYTES : 0);
  return pl_hash_index_expect(&t->routes, n_routes, arena) ? t : NULL;
}

pl_platform_sink pl_zone_tree_sink(pl_zone_tree *t) {
  return (pl_platform_sink){begin, end, restart, t};
}

const char *pl_zone_tree_finish(pl_zone_tree *t) {
  if (t->zones.count == 0) tree_give_up(t, "no zone");
  if (t->unknown == NULL && (t->arena->failed || !tree_solve_floyd(t))) tree_give_up(t, "too little memory");
  return t->unknown;
}

void pl_zone_tree_parts(const pl_zone_tree *t, pl_shim_parts *parts) {
  *parts = (pl_shim_parts){.zones = t->out_zones.items,
                           .hosts = t->out_hosts.items,
                           .links = t->out_links.items,
                           .n_zones = t->out_zones.count,
                           .n_hosts = t->out_hosts.count,
                           .n_links = t->out_links.count};
}
