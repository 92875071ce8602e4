/* See netmodel/platform/platform.h. The order of a load: read the file, scan it (platform_scan.h) into a tree of zones
 * (zone_tree.h), load the profiles it names, and only if the tree does not understand the file hand it to SimGrid:
 * nearly every mistake is found before SimGrid, which can load once per process at a time, is touched. */
#include "netmodel/platform/platform.h"
#include "core/cluster/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/digest.h"
#include "core/base/words.h"
#include "netmodel/platform/platform_choice.h"
#include "netmodel/platform/platform_copy.h"
#include "netmodel/platform/platform_internal.h"

/* *tree: NULL if it does not understand the file, or by_simgrid. */
static pl_code scan_text(pl_platform *platform, const char *path, const pl_platform_text *file, bool by_simgrid,
                         pl_zone_tree **tree, pl_error *error) {
  *tree = by_simgrid ? NULL : pl_zone_tree_take(file->size, &platform->arena);
  if (!by_simgrid && *tree == NULL) return pl_fail_memory(error, "the platform");
  const pl_platform_sink sink = by_simgrid ? (pl_platform_sink){0} : pl_zone_tree_sink(*tree);
  PL_TRY(pl_platform_scan_text(path, file->text, file->size, by_simgrid ? NULL : &sink, &platform->arena,
                               &platform->scan, error));
  if (platform->scan.n_devices > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: no GPU in it: mark each <host> that is one with <prop id=\"device\" value=\"PROFILE\"/>", path);
}

/* ---- profiles ---- */

static pl_code load_profile(const char *platform_path, const pl_profile_folders *folders,
                            const pl_scanned_device *device, pl_arena *arena, pl_device_profile *profile,
                            pl_error *error) {
  const char *path = pl_profile_folders_find(folders, device->type, arena);
  if (path == NULL) {
    const char *known = pl_profile_folders_list(folders, arena);
    const char *const *names = pl_profile_folders_names(folders, arena);
    char hint[PL_WORDS_HINT_BYTES];
    return pl_fail(error, PL_BAD_INPUT, "%s:%u: unknown device '%s'; known are: %s%s", platform_path, device->line,
                   device->type, known != NULL ? known : "?", pl_words_hint(names, device->type, hint));
  }
  PL_TRY(pl_device_profile_load(path, arena, profile, error));
  if (strcmp(profile->name, device->type) == 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: names itself '%s', but the file's name says '%s'", path, profile->name,
                 device->type);
}

/* One profile per type, in order of first appearance in the file. */
static pl_code load_profiles(pl_platform *platform, const char *path, const char *profile_folder, pl_digest *digest,
                             pl_error *error) {
  enum { TYPES_MAX = 64 };
  pl_profile_folders folders;
  pl_device_profile *profiles = PL_TAKE(&platform->arena, pl_device_profile, TYPES_MAX);
  if (profiles == NULL) return pl_fail_memory(error, "device profiles");
  PL_TRY(pl_profile_folders_take(profile_folder, path, &platform->arena, &folders, error));
  uint32_t n = 0;
  for (uint32_t i = 0; i < platform->scan.n_devices; i++) {
    const pl_scanned_device *device = &platform->scan.devices[i];
    if (pl_platform_find_profile(profiles, n, device->type) != PL_NONE) continue;
    if (n == TYPES_MAX)
      return pl_fail(error, PL_UNSUPPORTED, "%s:%u: more than %d types of device", path, device->line, TYPES_MAX);
    PL_TRY(load_profile(path, &folders, device, &platform->arena, &profiles[n], error));
    pl_digest_u64(digest, profiles[n].digest);
    n++;
  }
  platform->cluster.profiles = profiles;
  platform->cluster.n_profiles = n;
  return PL_OK;
}

/* ---- SimGrid ---- */

static pl_code from_shim(pl_shim_status status, const char *message, pl_error *error) {
  switch (status) {
  case PL_SHIM_OK:
    return PL_OK;
  case PL_SHIM_NO_MEMORY:
    return pl_fail_memory(error, "the platform in SimGrid");
  case PL_SHIM_BUSY:
    return pl_fail(error, PL_UNSUPPORTED, "%s", message);
  case PL_SHIM_TOO_SMALL:
    return pl_fail(error, PL_UNSUPPORTED, "a route crosses more than %d links", PL_ROUTE_LINKS_MAX);
  case PL_SHIM_REFUSED:
    break;
  }
  return pl_fail(error, PL_BAD_INPUT, "%s", message);
}

static pl_code load_simgrid(const char *path, const pl_platform_text *file, simgrid_side *side, pl_error *error) {
  char message[PL_ERROR_MESSAGE_BYTES] = "", copy_path[PL_COPY_PATH_BYTES];
  if (!pl_simgrid_door_open(&side->door, message, sizeof message)) return pl_fail(error, PL_UNSUPPORTED, "%s", message);
  pl_arena scratch;
  int copy;
  pl_arena_init(&scratch, 0);
  pl_code code = pl_platform_copy_open(path, file->text, file->size, &scratch, &copy, copy_path, error);
  pl_arena_release(&scratch);
  PL_TRY(code);
  pl_shim_status status = side->door.load(copy_path, path, &side->shim, message, sizeof message);
  close(copy);
  return from_shim(status, message, error);
}

/* ---- routes ---- */

/* "name (file:line)", or the name alone for hosts of a <cluster>. */
static void describe_device(const pl_platform *platform, uint32_t device, char text[256]) {
  const char *name = platform->cluster.devices[device].name;
  uint32_t line = pl_platform_scan_line(&platform->scan, name);
  if (line > 0)
    snprintf(text, 256, "'%.60s' (%.160s:%u)", name, platform->cluster.path, line);
  else
    snprintf(text, 256, "'%.60s'", name);
}

static pl_code fail_route(const pl_platform *platform, uint32_t source, uint32_t destination, const char *why,
                          pl_error *error) {
  char from[256], to[256];
  describe_device(platform, source, from);
  describe_device(platform, destination, to);
  return pl_fail(error, PL_BAD_INPUT, "%s: no route from GPU %s to GPU %s%s%s; add a <route> or <zoneRoute>",
                 platform->cluster.path, from, to, why[0] != '\0' ? ": " : "", why);
}

static pl_shim_status find_route(const pl_platform *platform, uint32_t source_host, uint32_t destination_host,
                                 uint32_t *links, uint32_t *n_links, char message[256]) {
  message[0] = '\0';
  if (platform->tree != NULL)
    return pl_zone_tree_route(platform->tree, source_host, destination_host, links, PL_ROUTE_LINKS_MAX, n_links,
                              message, 256);
  return platform->simgrid->door.route(platform->simgrid->shim, source_host, destination_host, links,
                                       PL_ROUTE_LINKS_MAX, n_links, message, 256);
}

/* A node's sockets are in its zone. */
static bool is_socket_of(const pl_platform *platform, uint32_t socket, uint32_t device) {
  return platform->zones[platform->sockets[socket].zone].node == platform->cluster.devices[device].node;
}

/* To or from the memory of the socket that is fewest links away. */
static pl_code resolve_host_route(const pl_platform *platform, uint32_t device, bool out, uint32_t *links,
                                  uint32_t *n_links, pl_error *error) {
  char text[256], message[256];
  uint32_t found[PL_ROUTE_LINKS_MAX], n_found;
  *n_links = 0;
  for (uint32_t s = 0; s < platform->n_sockets; s++) {
    if (!is_socket_of(platform, s, device)) continue;
    uint32_t here = platform->host_of[device], there = platform->sockets[s].host;
    pl_shim_status status = find_route(platform, out ? here : there, out ? there : here, found, &n_found, message);
    if (status == PL_SHIM_REFUSED || (status == PL_SHIM_OK && n_found == 0)) continue;
    PL_TRY(from_shim(status, message, error));
    if (*n_links != 0 && *n_links <= n_found) continue;
    *n_links = n_found;
    memcpy(links, found, n_found * sizeof *links);
  }
  if (*n_links > 0) return PL_OK;
  describe_device(platform, device, text);
  return pl_fail(
      error, PL_BAD_INPUT,
      "%s: GPU %s has no way to the memory of its host; add a CPU socket to its zone, <host> with "
      "<prop id=\"cpu\" value=\"MODEL\"/>, and a <route> to it ('paceline platform make' leaves sockets out of "
      "large platforms unless it is given --sockets always)",
      platform->cluster.path, text);
}

static pl_code resolve_route(void *context, uint32_t source, uint32_t destination, uint32_t *links, uint32_t *n_links,
                             pl_error *error) {
  const pl_platform *platform = context;
  char message[256];
  if (destination == PL_HOST_MEMORY) return resolve_host_route(platform, source, true, links, n_links, error);
  if (source == PL_HOST_MEMORY) return resolve_host_route(platform, destination, false, links, n_links, error);
  pl_shim_status status =
      find_route(platform, platform->host_of[source], platform->host_of[destination], links, n_links, message);
  if (status == PL_SHIM_REFUSED) return fail_route(platform, source, destination, message, error);
  PL_TRY(from_shim(status, message, error));
  return *n_links > 0 ? PL_OK : fail_route(platform, source, destination, "", error);
}

pl_code pl_platform_socket_route(const pl_platform *platform, uint32_t device, uint32_t socket, uint32_t *links,
                                 uint32_t *n_links, pl_error *error) {
  char message[256];
  pl_shim_status status =
      find_route(platform, platform->host_of[device], platform->sockets[socket].host, links, n_links, message);
  if (status != PL_SHIM_REFUSED) return from_shim(status, message, error);
  *n_links = 0;
  return PL_OK;
}

/* ---- the whole ---- */

static pl_code take_parts(pl_platform *platform, const char *path, const pl_platform_text *file, pl_zone_tree *tree,
                          pl_error *error) {
  if (tree != NULL && pl_zone_tree_finish(tree) == NULL) {
    platform->tree = tree;
    pl_zone_tree_parts(tree, &platform->parts);
    return PL_OK;
  }
  if (platform->arena.failed) return pl_fail_memory(error, "the platform");
  PL_TRY(load_simgrid(path, file, platform->simgrid, error));
  platform->simgrid->door.get_parts(platform->simgrid->shim, &platform->parts);
  return PL_OK;
}

static pl_code load_text(pl_platform *platform, const char *path, const pl_platform_text *file,
                         const char *profile_folder, bool by_simgrid, pl_error *error) {
  pl_digest digest;
  pl_zone_tree *tree;
  pl_digest_init(&digest);
  pl_digest_bytes(&digest, file->text, file->size);
  platform->text_digest = digest.value;
  platform->cluster.path = pl_arena_strdup(&platform->arena, path);
  if (platform->cluster.path == NULL) return pl_fail_memory(error, "the platform");
  PL_TRY(scan_text(platform, path, file, by_simgrid, &tree, error));
  PL_TRY(load_profiles(platform, path, profile_folder, &digest, error));
  PL_TRY(take_parts(platform, path, file, tree, error));
  PL_TRY(pl_platform_make_cluster(platform, path, error));
  pl_cluster *cluster = &platform->cluster;
  platform->routes = pl_route_cache_create(resolve_route, platform, cluster->links, cluster->n_devices);
  if (platform->routes == NULL || platform->arena.failed) return pl_fail_memory(error, "the platform");
  cluster->digest = digest.value;
  cluster->route = pl_route_cache_get;
  cluster->routes = platform->routes;
  return PL_OK;
}

static pl_code load(pl_platform *platform, const char *path, const char *profile_folder, bool by_simgrid,
                    pl_error *error) {
  pl_platform_text file;
  pl_code code = pl_platform_text_read(path, &file, error);
  if (code == PL_OK) code = load_text(platform, path, &file, profile_folder, by_simgrid, error);
  free(file.text);
  return code;
}

static pl_code load_by(const char *path, const char *profile_folder, bool by_simgrid, pl_platform **platform,
                       pl_error *error) {
  *platform = NULL;
  pl_platform *made = calloc(1, sizeof *made);
  simgrid_side *side = calloc(1, sizeof *side);
  if (made == NULL || side == NULL) {
    free(made);
    free(side);
    return pl_fail_memory(error, "the platform");
  }
  pthread_mutex_init(&side->mutex, NULL);
  made->simgrid = side;
  pl_arena_init(&made->arena, 0);
  pl_code code = load(made, path, profile_folder, by_simgrid, error);
  if (code == PL_OK)
    *platform = made;
  else
    pl_platform_destroy(made);
  return code;
}

pl_code pl_platform_load(const char *path, const char *profile_folder, pl_platform **platform, pl_error *error) {
  return load_by(path, profile_folder, false, platform, error);
}

pl_code pl_platform_load_by_simgrid(const char *path, const char *profile_folder, pl_platform **platform,
                                    pl_error *error) {
  return load_by(path, profile_folder, true, platform, error);
}

static pl_code load_side(const pl_platform *platform, pl_error *error) {
  const char *path = platform->cluster.path;
  pl_platform_text file;
  pl_code code = pl_platform_text_read(path, &file, error);
  pl_digest digest;
  pl_digest_init(&digest);
  if (code == PL_OK) pl_digest_bytes(&digest, file.text, file.size);
  if (code == PL_OK && digest.value != platform->text_digest)
    code = pl_fail(error, PL_BAD_INPUT, "%s: has changed since it was read", path);
  if (code == PL_OK) code = load_simgrid(path, &file, platform->simgrid, error);
  free(file.text);
  return code;
}

pl_code pl_platform_need_simgrid(const pl_platform *platform, pl_error *error) {
  pthread_mutex_lock(&platform->simgrid->mutex);
  pl_code code = platform->simgrid->shim == NULL ? load_side(platform, error) : PL_OK;
  pthread_mutex_unlock(&platform->simgrid->mutex);
  return code;
}

bool pl_platform_is_from_simgrid(const pl_platform *platform) {
  return platform->tree == NULL;
}

void pl_platform_destroy(pl_platform *platform) {
  if (platform == NULL) return;
  pl_route_cache_destroy(platform->routes);
  if (platform->simgrid->shim != NULL) platform->simgrid->door.destroy(platform->simgrid->shim);
  pthread_mutex_destroy(&platform->simgrid->mutex);
  free(platform->simgrid);
  pl_arena_release(&platform->arena);
  free(platform);
}

const pl_cluster *pl_platform_cluster(const pl_platform *platform) {
  return &platform->cluster;
}

const pl_platform_socket *pl_platform_sockets(const pl_platform *platform, uint32_t *n_sockets) {
  *n_sockets = platform->n_sockets;
  return platform->sockets;
}

const pl_platform_zone *pl_platform_zones(const pl_platform *platform, uint32_t *n_zones) {
  *n_zones = platform->n_zones;
  return platform->zones;
}

const uint32_t *pl_platform_link_zones(const pl_platform *platform) {
  return platform->link_zones;
}
