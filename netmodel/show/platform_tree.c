/* See netmodel/show/platform_tree.h. Columns start at one place for all depths: the guide lines of the tree are padded
 * to the deepest. */
#include "netmodel/show/platform_tree.h"

#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"

static uint32_t count_of_type(const pl_cluster *cluster, uint32_t profile) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < cluster->n_devices; d++)
    count += cluster->devices[d].profile == profile;
  return count;
}

static const char *plural(uint32_t n) {
  return n == 1 ? "" : "s";
}

void pl_platform_print_summary(FILE *stream, const pl_cluster *cluster) {
  fprintf(stream, "%u GPU%s (", cluster->n_devices, plural(cluster->n_devices));
  for (uint32_t p = 0; p < cluster->n_profiles; p++)
    fprintf(stream, "%s%u x %s", p > 0 ? ", " : "", count_of_type(cluster, p), cluster->profiles[p].name);
  fprintf(stream, ") in %u node%s, %u link%s", cluster->n_nodes, plural(cluster->n_nodes), cluster->n_links,
          plural(cluster->n_links));
}

/* ---- text ---- */

enum { DEPTH_MAX = 64, LABEL_COLUMN = 9 };

typedef struct tree_printer {
  FILE *stream;
  const pl_cluster *cluster;
  const pl_outline *outline;
  uint32_t deepest;
} tree_printer;

static bool is_last_child(const pl_outline *outline, uint32_t entry) {
  for (uint32_t i = entry + 1; i < outline->n_zones; i++)
    if (outline->zones[i].parent == outline->zones[entry].parent) return false;
  return true;
}

static bool has_children(const pl_outline *outline, uint32_t entry) {
  return entry + 1 < outline->n_zones && outline->zones[entry + 1].parent == entry;
}

/* Guide lines left of what belongs to `entry`: a bar for every ancestor that has siblings to come. */
static void print_guides(const tree_printer *t, uint32_t entry) {
  uint32_t path[DEPTH_MAX], n = 0;
  for (uint32_t e = entry; n < DEPTH_MAX && t->outline->zones[e].parent != PL_NONE; e = t->outline->zones[e].parent)
    path[n++] = e;
  while (n-- > 0)
    fputs(is_last_child(t->outline, path[n]) ? "   " : "│  ", t->stream);
}

static void print_header(const tree_printer *t, uint32_t entry) {
  const pl_outline_zone *zone = &t->outline->zones[entry];
  if (zone->parent != PL_NONE) {
    print_guides(t, zone->parent);
    fputs(is_last_child(t->outline, entry) ? "└─ " : "├─ ", t->stream);
  }
  if (zone->alike > 1)
    fprintf(t->stream, "%s ... %s  x%u\n", zone->name, zone->last_name, zone->alike);
  else
    fprintf(t->stream, "%s\n", zone->name);
}

static void print_row(const tree_printer *t, uint32_t entry, const char *label, uint32_t count, const char *what,
                      const char *detail, const char *note, const char *first, const char *last) {
  print_guides(t, entry);
  fputs(has_children(t->outline, entry) ? "│  " : "   ", t->stream);
  uint32_t depth = t->outline->zones[entry].depth;
  fprintf(t->stream, "%*s%-*s%6u x  %-20s %-8s %-8s %s", (int)(3 * (t->deepest - depth)), "", LABEL_COLUMN, label,
          count, what, detail, note, first);
  if (strcmp(first, last) != 0) fprintf(t->stream, " ... %s", last);
  fputc('\n', t->stream);
}

static void print_gpus(const tree_printer *t, uint32_t entry, const pl_outline_gpus *gpus) {
  const pl_device_profile *profile = &t->cluster->profiles[gpus->profile];
  char memory[PL_UNIT_TEXT_BYTES];
  print_row(t, entry, "gpu", gpus->count, profile->name, pl_format_bytes(profile->memory_bytes, memory), "",
            gpus->first, gpus->last);
}

static void print_sockets(const tree_printer *t, uint32_t entry, const pl_outline_sockets *sockets) {
  char cores[32];
  snprintf(cores, sizeof cores, "%u core%s", sockets->n_cores, plural(sockets->n_cores));
  print_row(t, entry, "socket", sockets->count, sockets->cpu, cores, "", sockets->first, sockets->last);
}

static void print_links(const tree_printer *t, uint32_t entry, const pl_outline_links *links) {
  char rate[PL_UNIT_TEXT_BYTES], latency[PL_UNIT_TEXT_BYTES], what[2 * PL_UNIT_TEXT_BYTES];
  snprintf(what, sizeof what, "%s%s", pl_format_rate(links->capacity_Bps, rate), links->is_duplex ? " each way" : "");
  print_row(t, entry, pl_link_kind_name(links->kind), links->count, what,
            pl_format_time(pl_ticks_to_s(links->latency), latency), links->policy == PL_LINK_FATPIPE ? "fatpipe" : "",
            links->first, links->last);
}

void pl_platform_print_tree(FILE *stream, const pl_cluster *cluster, const pl_outline *outline) {
  tree_printer t = {.stream = stream, .cluster = cluster, .outline = outline};
  for (uint32_t e = 0; e < outline->n_zones; e++)
    if (outline->zones[e].depth > t.deepest) t.deepest = outline->zones[e].depth;
  for (uint32_t e = 0; e < outline->n_zones; e++) {
    const pl_outline_zone *zone = &outline->zones[e];
    print_header(&t, e);
    for (uint32_t i = 0; i < zone->n_gpus; i++)
      print_gpus(&t, e, &zone->gpus[i]);
    for (uint32_t i = 0; i < zone->n_sockets; i++)
      print_sockets(&t, e, &zone->sockets[i]);
    for (uint32_t i = 0; i < zone->n_links; i++)
      print_links(&t, e, &zone->links[i]);
  }
}

/* ---- JSON ---- */

void pl_platform_put_summary(pl_json *json, const pl_cluster *cluster) {
  char digest[PL_DIGEST_TEXT_BYTES];
  pl_json_put_string(json, "platform", cluster->path);
  pl_json_put_string(json, "digest", pl_digest_format(cluster->digest, digest));
  pl_json_put_integer(json, "n_devices", cluster->n_devices);
  pl_json_put_integer(json, "n_nodes", cluster->n_nodes);
  pl_json_put_integer(json, "n_links", cluster->n_links);
  pl_json_key(json, "types");
  pl_json_open_array(json);
  for (uint32_t p = 0; p < cluster->n_profiles; p++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "device", cluster->profiles[p].name);
    pl_json_put_integer(json, "count", count_of_type(cluster, p));
    pl_json_put_number(json, "memory_bytes", cluster->profiles[p].memory_bytes);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_gpus(pl_json *json, const pl_cluster *cluster, const pl_outline_zone *zone) {
  pl_json_key(json, "gpus");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < zone->n_gpus; i++) {
    const pl_device_profile *profile = &cluster->profiles[zone->gpus[i].profile];
    pl_json_open_object(json);
    pl_json_put_string(json, "device", profile->name);
    pl_json_put_integer(json, "count", zone->gpus[i].count);
    pl_json_put_number(json, "memory_bytes", profile->memory_bytes);
    pl_json_put_string(json, "first", zone->gpus[i].first);
    pl_json_put_string(json, "last", zone->gpus[i].last);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_sockets(pl_json *json, const pl_outline_zone *zone) {
  pl_json_key(json, "sockets");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < zone->n_sockets; i++) {
    pl_json_open_object(json);
    pl_json_put_string(json, "cpu", zone->sockets[i].cpu);
    pl_json_put_integer(json, "cores", zone->sockets[i].n_cores);
    pl_json_put_integer(json, "count", zone->sockets[i].count);
    pl_json_put_string(json, "first", zone->sockets[i].first);
    pl_json_put_string(json, "last", zone->sockets[i].last);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

static void put_links(pl_json *json, const pl_outline_zone *zone) {
  pl_json_key(json, "links");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < zone->n_links; i++) {
    const pl_outline_links *links = &zone->links[i];
    pl_json_open_object(json);
    pl_json_put_string(json, "kind", pl_link_kind_name(links->kind));
    pl_json_put_integer(json, "count", links->count);
    pl_json_put_number(json, "capacity_Bps", links->capacity_Bps);
    pl_json_put_number(json, "latency_s", pl_ticks_to_s(links->latency));
    pl_json_put_string(json, "policy", links->policy == PL_LINK_FATPIPE ? "fatpipe" : "shared");
    pl_json_put_boolean(json, "each_way", links->is_duplex);
    pl_json_put_string(json, "first", links->first);
    pl_json_put_string(json, "last", links->last);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

void pl_platform_put_tree(pl_json *json, const pl_cluster *cluster, const pl_outline *outline) {
  pl_json_key(json, "zones");
  pl_json_open_array(json);
  for (uint32_t e = 0; e < outline->n_zones; e++) {
    const pl_outline_zone *zone = &outline->zones[e];
    pl_json_open_object(json);
    pl_json_put_string(json, "name", zone->name);
    pl_json_put_string(json, "last_name", zone->last_name);
    pl_json_put_integer(json, "alike", zone->alike);
    pl_json_put_integer(json, "depth", zone->depth);
    pl_json_put_string(json, "parent", zone->parent == PL_NONE ? NULL : outline->zones[zone->parent].name);
    put_gpus(json, cluster, zone);
    put_sockets(json, zone);
    put_links(json, zone);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}
