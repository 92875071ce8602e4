/* The cluster of one variation: see netmodel/platform/platform_vary.h. Links and profiles are copied and changed axis
 * by axis; devices keep the index of their profile, so that a type is found by the name that the file gives it whatever
 * earlier axes put in its place. In the end profiles that have become equal are merged, because devices of equal
 * profiles fold together. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/words.h"
#include "netmodel/device/device_power.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/device/device_spread.h"
#include "netmodel/platform/link_kind.h"
#include "netmodel/platform/node_shape.h"
#include "netmodel/platform/platform.h"
#include "netmodel/platform/platform_vary.h"

typedef struct varying {
  const pl_cluster *base;
  pl_cluster *cluster;
  pl_link *links;
  pl_device_profile *profiles; /* the base's, in its order, changed */
  const pl_vary_axis *axis;
  const pl_vary_value *value;
  pl_arena *arena;
} varying;

static double varied_number(const pl_vary_value *value, double number) {
  return value->is_factor ? number * value->number : value->number;
}

/* ---- links ---- */

static bool has_end(const char *name, size_t length, const char *end) {
  return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

/* One part of WHICH, `length` long: a kind, or a pattern for names. */
static bool link_matches_part(const pl_link *link, const char *part) {
  pl_link_kind kind;
  if (pl_link_kind_from_name(part, &kind)) return link->kind == kind;
  if (fnmatch(part, link->name, 0) == 0) return true;
  char name[256];
  size_t length = strlen(link->name);
  if (length >= sizeof name) return false;
  memcpy(name, link->name, length + 1);
  if (has_end(name, length, "_UP")) name[length - strlen("_UP")] = '\0';
  if (has_end(name, length, "_DOWN")) name[length - strlen("_DOWN")] = '\0';
  return fnmatch(part, name, 0) == 0;
}

/* "pcie, nic, fabric": the kinds of link that this platform has. */
static const char *kinds_of(const pl_cluster *cluster, pl_arena *arena) {
  const char *list = "";
  for (int k = 0; k < PL_LINK_KIND_COUNT; k++)
    for (uint32_t i = 0; i < cluster->n_links; i++)
      if (cluster->links[i].kind == k) {
        list = pl_arena_printf(arena, "%s%s%s", list, list[0] ? ", " : "", pl_link_kind_name((pl_link_kind)k));
        if (list == NULL) return "?";
        break;
      }
  return list;
}

static pl_code refuse_link(const varying *own, const char *part, pl_error *error) {
  pl_link_kind kind;
  bool is_kind = pl_link_kind_from_name(part, &kind);
  return pl_fail(error, PL_BAD_INPUT,
                 "--vary %s: %s has no link %s '%s'; its kinds are: %s; or give a pattern of names, e.g. '%s'",
                 own->axis->name, own->base->path, is_kind ? "of the kind" : "named", part,
                 kinds_of(own->base, own->arena), own->base->n_links > 0 ? own->base->links[0].name : "*nic*");
}

static void vary_link(const varying *own, pl_link *link) {
  if (own->axis->field == PL_VARY_LINK_BANDWIDTH)
    link->capacity_Bps = varied_number(own->value, link->capacity_Bps);
  else
    link->latency = pl_ticks_from_s(varied_number(own->value, pl_ticks_to_s(link->latency)));
}

static pl_code check_link(const varying *own, const pl_link *link, pl_error *error) {
  if (isfinite(link->capacity_Bps) && link->capacity_Bps > 0 && link->latency >= 0 &&
      pl_ticks_to_s(link->latency) <= 1e6)
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: %s is out of range for the link %s", own->axis->name,
                 own->value->text, link->name);
}

/* A link that several parts match is varied once. */
static pl_code vary_links(const varying *own, pl_error *error) {
  bool *matched = PL_TAKE(own->arena, bool, own->base->n_links);
  char *part = pl_arena_strdup(own->arena, own->axis->pattern);
  if (matched == NULL || part == NULL) return pl_fail_memory(error, "a variation of the platform");
  for (char *plus; part != NULL; part = plus) {
    plus = strchr(part, '+');
    if (plus != NULL) *plus++ = '\0';
    uint32_t n = 0;
    for (uint32_t i = 0; i < own->base->n_links; i++) {
      bool matches = link_matches_part(&own->base->links[i], part);
      matched[i] |= matches;
      n += matches;
    }
    if (n == 0) return refuse_link(own, part, error);
  }
  for (uint32_t i = 0; i < own->base->n_links; i++) {
    if (!matched[i]) continue;
    vary_link(own, &own->links[i]);
    PL_TRY(check_link(own, &own->links[i], error));
  }
  return PL_OK;
}

/* ---- devices ---- */

static const char *types_of(const pl_cluster *cluster, pl_arena *arena) {
  const char *list = "";
  for (uint32_t p = 0; list != NULL && p < cluster->n_profiles; p++)
    list = pl_arena_printf(arena, "%s%s%s", list, list[0] ? ", " : "", cluster->profiles[p].name);
  return list != NULL ? list : "?";
}

static pl_code swap_type(const varying *own, pl_device_profile *profile, pl_error *error) {
  pl_profile_folders folders;
  PL_TRY(pl_profile_folders_take(NULL, own->base->path, own->arena, &folders, error));
  const char *path = pl_profile_folders_find(&folders, own->value->text, own->arena);
  if (path != NULL) return pl_device_profile_load(path, own->arena, profile, error);
  const char *known = pl_profile_folders_list(&folders, own->arena);
  const char *const *names = pl_profile_folders_names(&folders, own->arena);
  char hint[PL_WORDS_HINT_BYTES];
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: unknown device '%s'; known are: %s%s", own->axis->name,
                 own->value->text, known != NULL ? known : "?", pl_words_hint(names, own->value->text, hint));
}

static pl_code vary_memory(const varying *own, pl_device_profile *profile, pl_error *error) {
  profile->memory_bytes = varied_number(own->value, profile->memory_bytes);
  if (profile->memory_bytes > profile->reserved_bytes) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: %s is not more than the %.0f bytes that %s keeps for its libraries",
                 own->axis->name, own->value->text, profile->reserved_bytes, profile->name);
}

static pl_code vary_speed(const varying *own, pl_device_profile *profile, pl_error *error) {
  if (profile->n_ops > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "--vary %s: the profile of %s has measured times of %u ops, which say nothing about another chip; "
                   "name a type that has none, or put another in its place (device:%s=OTHER)",
                   own->axis->name, profile->name, profile->n_ops, profile->name);
  if (own->axis->field == PL_VARY_DEVICE_BANDWIDTH) {
    profile->bandwidth_Bps = varied_number(own->value, profile->bandwidth_Bps);
  } else {
    for (int t = 0; t < PL_DTYPE_COUNT; t++)
      profile->peak_flops[t] = varied_number(own->value, profile->peak_flops[t]);
  }
  return PL_OK;
}

static pl_code vary_power(const varying *own, pl_device_profile *profile, pl_error *error) {
  char what[128];
  snprintf(what, sizeof what, "--vary %.100s", own->axis->name);
  return pl_device_limit_power(profile, varied_number(own->value, profile->power_W), what, error);
}

/* From here on the digest is not the file's: it says what was made of it. */
static void digest_profile(pl_device_profile *profile) {
  pl_digest digest = {.value = profile->digest};
  pl_digest_text(&digest, "varied");
  pl_digest_f64(&digest, profile->memory_bytes);
  pl_digest_f64(&digest, profile->bandwidth_Bps);
  pl_digest_f64(&digest, profile->sustained_compute);
  for (int t = 0; t < PL_DTYPE_COUNT; t++)
    pl_digest_f64(&digest, profile->peak_flops[t]);
  profile->digest = digest.value;
}

static pl_code vary_profile(const varying *own, pl_device_profile *profile, pl_error *error) {
  pl_device_profile before = *profile;
  switch (own->axis->field) {
  case PL_VARY_DEVICE_TYPE:
    return swap_type(own, profile, error);
  case PL_VARY_DEVICE_MEMORY:
    PL_TRY(vary_memory(own, profile, error));
    break;
  case PL_VARY_DEVICE_POWER:
    PL_TRY(vary_power(own, profile, error));
    break;
  default:
    PL_TRY(vary_speed(own, profile, error));
    break;
  }
  bool same = before.memory_bytes == profile->memory_bytes && before.bandwidth_Bps == profile->bandwidth_Bps &&
              before.sustained_compute == profile->sustained_compute &&
              memcmp(before.peak_flops, profile->peak_flops, sizeof before.peak_flops) == 0;
  if (!same) digest_profile(profile);
  return PL_OK;
}

static pl_code vary_devices(const varying *own, pl_error *error) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < own->base->n_profiles; p++) {
    if (fnmatch(own->axis->pattern, own->base->profiles[p].name, 0) != 0) continue;
    PL_TRY(vary_profile(own, &own->profiles[p], error));
    n++;
  }
  if (n > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--vary %s: %s has no device of the type '%s'; its types are: %s",
                 own->axis->name, own->base->path, own->axis->pattern, types_of(own->base, own->arena));
}

/* Profiles in use, each once, in order of the devices' first; devices point to them. */
static pl_code merge_profiles(const varying *own, pl_error *error) {
  pl_cluster *cluster = own->cluster;
  uint32_t n_profiles = cluster->n_profiles, n = 0;
  uint32_t *index = PL_TAKE(own->arena, uint32_t, n_profiles);
  pl_device_profile *kept = PL_TAKE(own->arena, pl_device_profile, n_profiles);
  pl_device *devices = PL_TAKE(own->arena, pl_device, cluster->n_devices);
  if (index == NULL || kept == NULL || devices == NULL) return pl_fail_memory(error, "a variation of the platform");
  for (uint32_t p = 0; p < n_profiles; p++)
    index[p] = PL_NONE;
  for (uint32_t d = 0; d < cluster->n_devices; d++) {
    uint32_t p = cluster->devices[d].profile;
    for (uint32_t k = 0; index[p] == PL_NONE && k < n; k++)
      if (kept[k].digest == own->profiles[p].digest && strcmp(kept[k].name, own->profiles[p].name) == 0) index[p] = k;
    if (index[p] == PL_NONE) {
      kept[n] = own->profiles[p];
      index[p] = n++;
    }
    devices[d] = cluster->devices[d];
    devices[d].profile = index[p];
  }
  cluster->profiles = kept;
  cluster->n_profiles = n;
  cluster->devices = devices;
  pl_device_spread_find(cluster, kept);
  return PL_OK;
}

/* ---- nodes ---- */

static pl_code vary_nodes(const varying *own, pl_error *error) {
  if (own->value->number > own->base->n_nodes)
    return pl_fail(error, PL_BAD_INPUT, "--vary %s: %s of them, but %s has %u", own->axis->name, own->value->text,
                   own->base->path, own->base->n_nodes);
  pl_cluster *cluster = own->cluster;
  cluster->n_nodes = (uint32_t)own->value->number;
  const pl_node_info *last = &cluster->nodes[cluster->n_nodes - 1];
  cluster->n_devices = last->first_device + last->n_devices; /* the devices of a node are consecutive */
  return PL_OK;
}

/* ---- routes: the base's, with the latencies of the varied links ---- */

typedef struct varied_routes {
  const pl_cluster *base;
  const pl_link *links;
} varied_routes;

static pl_code varied_route(void *data, uint32_t source, uint32_t destination, pl_route *route, pl_error *error) {
  const varied_routes *routes = data;
  PL_TRY(pl_cluster_route(routes->base, source, destination, route, error));
  route->latency = 0;
  for (uint32_t i = 0; i < route->n_links; i++)
    route->latency += routes->links[route->links[i]].latency;
  return PL_OK;
}

/* ---- the whole ---- */

static uint64_t digest_of(const pl_cluster *cluster, const pl_cluster *base) {
  pl_digest digest = {.value = base->digest};
  for (uint32_t i = 0; i < cluster->n_links; i++) {
    const pl_link *link = &cluster->links[i], *was = &base->links[i];
    if (link->capacity_Bps == was->capacity_Bps && link->latency == was->latency) continue;
    pl_digest_u64(&digest, i);
    pl_digest_f64(&digest, link->capacity_Bps);
    pl_digest_u64(&digest, (uint64_t)link->latency);
  }
  for (uint32_t d = 0; d < cluster->n_devices; d++) {
    const pl_device_profile *profile = pl_cluster_profile(cluster, d);
    if (profile->digest == pl_cluster_profile(base, d)->digest) continue;
    pl_digest_u64(&digest, d);
    pl_digest_u64(&digest, profile->digest);
  }
  if (cluster->n_nodes != base->n_nodes) pl_digest_u64(&digest, cluster->n_nodes);
  return digest.value;
}

static pl_code vary(varying *own, const pl_vary_grid *grid, uint32_t point, pl_error *error) {
  for (uint32_t a = 0; a < grid->n_axes; a++) {
    own->axis = &grid->axes[a];
    own->value = pl_vary_value_at(grid, point, a);
    switch (own->axis->field) {
    case PL_VARY_LINK_BANDWIDTH:
    case PL_VARY_LINK_LATENCY:
      PL_TRY(vary_links(own, error));
      break;
    case PL_VARY_NODES:
      PL_TRY(vary_nodes(own, error));
      break;
    default:
      PL_TRY(vary_devices(own, error));
      break;
    }
  }
  return merge_profiles(own, error);
}

pl_code pl_vary_cluster_take(const pl_vary_grid *grid, uint32_t point, const pl_cluster *base, pl_arena *arena,
                             const pl_cluster **cluster, pl_error *error) {
  *cluster = NULL;
  varying own = {.base = base, .arena = arena};
  own.cluster = PL_TAKE(arena, pl_cluster, 1);
  own.links = PL_COPY(arena, pl_link, base->links, base->n_links);
  own.profiles = PL_COPY(arena, pl_device_profile, base->profiles, base->n_profiles);
  varied_routes *routes = PL_TAKE(arena, varied_routes, 1);
  if (own.cluster == NULL || own.links == NULL || own.profiles == NULL || routes == NULL)
    return pl_fail_memory(error, "a variation of the platform");
  *own.cluster = *base;
  own.cluster->links = own.links;
  if (own.cluster->links_of_file == NULL) own.cluster->links_of_file = base->links;
  *routes = (varied_routes){.base = base, .links = own.links};
  own.cluster->route = varied_route;
  own.cluster->routes = routes;
  PL_TRY(vary(&own, grid, point, error));
  PL_TRY(pl_node_shape_vary(base->shapes, own.cluster->n_nodes, own.links, arena, &own.cluster->shapes, error));
  own.cluster->digest = digest_of(own.cluster, base);
  *cluster = own.cluster;
  return PL_OK;
}
