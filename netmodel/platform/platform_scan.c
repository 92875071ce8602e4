/* See netmodel/platform/platform_scan.h. */
#include "netmodel/platform/platform_scan.h"

#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/printable.h"
#include "netmodel/platform/link_kind.h"
#include "netmodel/platform/platform_shape.h"
#include "netmodel/platform/platform_words.h"

enum { DEPTH_MAX = 64, ATTRIBUTE_BYTES_MAX = 4096, FEED_BYTES = 1 << 20 };

typedef enum element_kind { ELEMENT_OTHER, ELEMENT_HOST, ELEMENT_LINK, ELEMENT_CLUSTER, ELEMENT_ZONE } element_kind;

/* The routings whose cost and memory SimGrid pays in advance: table of all pairs; all pairs over all points. */
typedef enum zone_routing { ROUTING_OTHER, ROUTING_FULL, ROUTING_FLOYD, ROUTING_CLUSTER } zone_routing;
enum { FULL_POINTS_MAX = 1 << 15, FLOYD_POINTS_MAX = 1 << 12 }; /* 8 GiB; a minute or two */

typedef struct open_element {
  element_kind kind;
  zone_routing routing;
  const char *element; /* its name, in the arena */
  const char *id;      /* of a host or zone, in the arena */
  uint32_t line, n_points;
} open_element;

typedef struct scanner {
  XML_Parser parser;
  const char *name, *text;
  pl_arena *arena;
  pl_error *error;
  pl_code code;
  bool has_doctype;
  uint32_t depth;
  open_element open[DEPTH_MAX];
  uint64_t n_hosts;
  const pl_platform_sink *sink;
  pl_scanned_device *devices;
  uint32_t n_devices, capacity;
} scanner;

static uint32_t line_of(const scanner *s) {
  return (uint32_t)XML_GetCurrentLineNumber(s->parser);
}

/* Records the failure at the current line and stops the parser. */
#define FAIL(s, failure, format, ...)                                                                                  \
  do {                                                                                                                 \
    (s)->code = pl_fail((s)->error, (failure), "%s:%u: " format, (s)->name, line_of(s), __VA_ARGS__);                  \
    XML_StopParser((s)->parser, XML_FALSE);                                                                            \
  } while (0)

/* The same with the column, for what need not be the only thing in its line. */
static void fail_here(scanner *s, pl_code failure, const char *why) {
  s->code = pl_fail(s->error, failure, "%s:%u:%u: %s", s->name, line_of(s),
                    (uint32_t)XML_GetCurrentColumnNumber(s->parser) + 1, why);
  XML_StopParser(s->parser, XML_FALSE);
}

#define attribute pl_platform_attribute

/* The figure in front of the unit; units are SimGrid's business. */
static bool figure_of(const char *text, double *value) {
  char *end;
  *value = strtod(text, &end);
  return end != text && isfinite(*value);
}

static void check_quantity(scanner *s, const char *element, const char **attributes, const char *name,
                           bool zero_allowed) {
  const char *text = attribute(attributes, name);
  if (text == NULL || s->code != PL_OK) return;
  const char *id = attribute(attributes, "id");
  double value;
  if (!figure_of(text, &value))
    FAIL(s, PL_BAD_INPUT, "%s of <%s id=\"%s\">: '%.64s' is not a number with a unit", name, element, id ? id : "",
         text);
  else if (value < 0 || (value == 0 && !zero_allowed))
    FAIL(s, PL_BAD_INPUT, "%s of <%s id=\"%s\"> is '%.64s': it must be %s", name, element, id ? id : "", text,
         zero_allowed ? "zero or more" : "more than zero");
}

/* expat drops an entity that it does not know where a DTD outside the file might define it. */
static void check_entities(scanner *s) {
  static const char *const known[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#"};
  const char *at = s->text + XML_GetCurrentByteIndex(s->parser), *end = at + XML_GetCurrentByteCount(s->parser);
  while ((at = memchr(at, '&', (size_t)(end - at))) != NULL) {
    size_t k = 0, n = sizeof known / sizeof known[0];
    while (k < n && strncmp(at, known[k], strlen(known[k])) != 0)
      k++;
    if (k == n) {
      FAIL(s, PL_BAD_INPUT, "malformed XML: undefined entity %.*s", (int)strcspn(at, "; \"'<>"), at);
      return;
    }
    at++;
  }
}

/* Only what is known, where it may stand, and readable. */
static void check_words(scanner *s, const char *element, const char **attributes) {
  enum { VALUE_BYTES = 96 };
  char why[512], value[VALUE_BYTES];
  const char *parent = s->depth > 0 ? s->open[s->depth - 1].element : NULL;
  check_entities(s);
  if (s->code != PL_OK) return;
  pl_code code = pl_platform_words_check(element, parent, attributes, why, sizeof why);
  if (code != PL_OK) fail_here(s, code, why);
  for (const char **a = attributes; s->code == PL_OK && a[0] != NULL; a += 2) {
    if (*pl_printable_end(a[1]) == '\0') continue;
    snprintf(why, sizeof why, "%s=\"%s\" of <%s> has characters that cannot be printed", a[0],
             pl_printable(a[1], value, sizeof value), element);
    fail_here(s, PL_BAD_INPUT, why);
  }
}

static void refuse_unsupported(scanner *s, const char *element, const char **attributes) {
  const char *routing = attribute(attributes, "routing"), *policy = attribute(attributes, "sharing_policy");
  if (routing != NULL && (strcasecmp(routing, "Vivaldi") == 0 || strcasecmp(routing, "Wifi") == 0))
    FAIL(s, PL_UNSUPPORTED, "routing=\"%s\": its delays do not come from links; use Full, Floyd or Cluster", routing);
  else if (policy != NULL && strcmp(policy, "WIFI") == 0)
    FAIL(s, PL_UNSUPPORTED, "sharing_policy=\"%s\" of <%s>: it must be SHARED, SPLITDUPLEX or FATPIPE", policy,
         element);
}

static void check_root(scanner *s, const char *element, const char **attributes) {
  if (strcmp(element, "platform") != 0) {
    FAIL(s, PL_BAD_INPUT, "the outermost element is <%.64s>, not <platform>: this is no SimGrid platform", element);
    return;
  }
  const char *version = attribute(attributes, "version");
  double number;
  if (version == NULL || !figure_of(version, &number) || number < 4 || number > 4.1)
    FAIL(s, PL_BAD_INPUT, "platform version '%.16s' is not 4.1; simgrid_update_xml converts older files",
         version ? version : "");
  else if (!s->has_doctype)
    FAIL(s, PL_BAD_INPUT, "%s",
         "SimGrid wants <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\"> before <platform>");
}

static void add_device(scanner *s, const open_element *owner, const char *type) {
  if (type[0] == '\0' || strchr(type, '/') != NULL) {
    FAIL(s, PL_BAD_INPUT, "device '%.64s' is not the name of a device profile", type);
    return;
  }
  s->devices = pl_arena_grown(s->arena, s->devices, s->n_devices, 1, sizeof *s->devices, &s->capacity);
  /* Types repeat: keep one copy of runs of the same. */
  const char *previous = s->n_devices > 0 && s->devices != NULL ? s->devices[s->n_devices - 1].type : NULL;
  const char *kept = previous != NULL && strcmp(previous, type) == 0 ? previous : pl_arena_strdup(s->arena, type);
  if (s->arena->failed) {
    s->code = pl_fail_memory(s->error, "the devices of the platform");
    XML_StopParser(s->parser, XML_FALSE);
    return;
  }
  PL_ASSERT(s->devices != NULL);
  s->devices[s->n_devices++] = (pl_scanned_device){.host = owner->id, .type = kept, .line = owner->line};
}

static void check_property(scanner *s, const char **attributes) {
  const char *id = attribute(attributes, "id"), *value = attribute(attributes, "value");
  if (id == NULL || value == NULL || s->depth == 0) return;
  const open_element *owner = &s->open[s->depth - 1];
  pl_link_kind kind;
  if (strcmp(id, "device") == 0 && (owner->kind == ELEMENT_HOST || owner->kind == ELEMENT_CLUSTER))
    add_device(s, owner, value);
  else if (strcmp(id, "kind") == 0 && owner->kind == ELEMENT_LINK && !pl_link_kind_from_name(value, &kind))
    FAIL(s, PL_BAD_INPUT, "link kind '%.64s' is none of %s", value, pl_link_kind_names());
}

/* SimGrid 3.32 follows a null pointer when a route begins or ends at a zone that it stands in. */
static void check_route(scanner *s, const char *element, const char **attributes) {
  static const char *const ends[] = {"src", "dst", "gw_src", "gw_dst"};
  for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    const char *id = attribute(attributes, ends[e]);
    for (uint32_t i = 0; id != NULL && i < s->depth && s->code == PL_OK; i++)
      if (s->open[i].kind == ELEMENT_ZONE && strcmp(s->open[i].id, id) == 0)
        FAIL(s, PL_BAD_INPUT, "%s=\"%.64s\" of <%s> is the zone around it, not something in it", ends[e], id, element);
  }
}

static bool is_route(const char *element) {
  static const char *const names[] = {"route",       "zoneRoute",       "ASroute",
                                      "bypassRoute", "bypassZoneRoute", "bypassASroute"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], element) == 0) return true;
  return false;
}

/* ---- sizes ---- */

static zone_routing routing_of(const char **attributes) {
  const char *routing = attribute(attributes, "routing");
  if (routing == NULL) return ROUTING_OTHER;
  if (strcasecmp(routing, "Full") == 0) return ROUTING_FULL;
  if (strcasecmp(routing, "Cluster") == 0) return ROUTING_CLUSTER;
  return strcasecmp(routing, "Floyd") == 0 ? ROUTING_FLOYD : ROUTING_OTHER;
}

/* Hosts, routers and zones directly in the zone that is open. */
static void count_points(scanner *s, uint32_t n) {
  open_element *zone = s->depth > 0 ? &s->open[s->depth - 1] : NULL;
  if (s->code != PL_OK || zone == NULL || zone->kind != ELEMENT_ZONE) return;
  uint32_t most = zone->routing == ROUTING_FULL    ? FULL_POINTS_MAX
                  : zone->routing == ROUTING_FLOYD ? FLOYD_POINTS_MAX
                                                   : UINT32_MAX;
  zone->n_points += n;
  if (zone->n_points > most)
    FAIL(s, PL_UNSUPPORTED,
         "more than %u hosts, routers and zones in the %s zone '%.64s'; put them into zones inside it", most,
         zone->routing == ROUTING_FULL ? "Full" : "Floyd", zone->id);
}

static void count_hosts(scanner *s, uint32_t n) {
  s->n_hosts += n;
  if (s->code == PL_OK && s->n_hosts > PL_PLATFORM_HOSTS_MAX)
    FAIL(s, PL_UNSUPPORTED, "more than %d hosts", PL_PLATFORM_HOSTS_MAX);
}

/* SimGrid keeps these for the Cluster zone that is closed next, whichever that is. */
static void check_cluster_part(scanner *s, const char *element) {
  if (s->open[s->depth - 1].routing != ROUTING_CLUSTER)
    FAIL(s, PL_BAD_INPUT, "<%s> outside a zone with routing=\"Cluster\"", element);
}

static void check_size(scanner *s, const char *element, const char **attributes) {
  char why[512];
  uint32_t n = 1;
  pl_code code = PL_OK;
  bool is_cabinet = strcmp(element, "cabinet") == 0, is_cluster = strcmp(element, "cluster") == 0;
  bool is_host = strcmp(element, "host") == 0;
  if (is_cabinet || strcmp(element, "backbone") == 0 || strcmp(element, "host_link") == 0)
    check_cluster_part(s, element);
  if (s->code != PL_OK) return;
  if (is_cluster) code = pl_cluster_shape_check(attributes, &n, why, sizeof why);
  if (is_cabinet) {
    const char *radical = attribute(attributes, "radical");
    code = pl_radical_count(radical != NULL ? radical : "", &n, why, sizeof why);
  }
  if (code != PL_OK) {
    fail_here(s, code, why);
    return;
  }
  bool is_zone = strcmp(element, "zone") == 0 || strcmp(element, "AS") == 0;
  if (is_host || is_cluster || is_cabinet) count_hosts(s, n);
  if (is_host || is_cabinet || is_zone || is_cluster || strcmp(element, "router") == 0)
    count_points(s, is_cluster ? 1 : n);
}

/* ---- events ---- */

static void open_next(scanner *s, const char *element, const char **attributes) {
  if (s->depth == DEPTH_MAX) {
    FAIL(s, PL_BAD_INPUT, "elements nested more than %d deep", DEPTH_MAX);
    return;
  }
  open_element *opened = &s->open[s->depth++];
  *opened = (open_element){.line = line_of(s), .element = pl_platform_word(element)};
  bool is_zone = strcmp(element, "zone") == 0 || strcmp(element, "AS") == 0;
  if (is_zone || strcmp(element, "host") == 0) {
    const char *id = attribute(attributes, "id");
    opened->kind = is_zone ? ELEMENT_ZONE : ELEMENT_HOST;
    opened->routing = is_zone ? routing_of(attributes) : ROUTING_OTHER;
    opened->id = pl_arena_strdup(s->arena, id ? id : "");
    if (opened->id == NULL) opened->kind = ELEMENT_OTHER; /* the arena remembers */
  } else if (strcmp(element, "link") == 0) {
    opened->kind = ELEMENT_LINK;
  } else if (strcmp(element, "cluster") == 0) {
    opened->kind = ELEMENT_CLUSTER;
  }
}

static bool has_quantities(const char *element) {
  return strcmp(element, "link") == 0 || strcmp(element, "cluster") == 0 || strcmp(element, "cabinet") == 0 ||
         strcmp(element, "backbone") == 0;
}

static void check_quantities(scanner *s, const char *element, const char **attributes) {
  static const char *const rates[] = {"bandwidth", "bw", "bb_bw"}, *const delays[] = {"latency", "lat", "bb_lat"};
  for (int i = 0; i < 3; i++) {
    check_quantity(s, element, attributes, rates[i], false);
    check_quantity(s, element, attributes, delays[i], true);
  }
}

static void on_start(void *data, const char *element, const char **attributes) {
  scanner *s = data;
  if (s->code != PL_OK) return;
  for (const char **a = attributes; a[0] != NULL; a++)
    if (strlen(a[0]) > ATTRIBUTE_BYTES_MAX) {
      FAIL(s, PL_BAD_INPUT, "an attribute of <%.64s> has more than %d bytes", element, ATTRIBUTE_BYTES_MAX);
      return;
    }
  if (s->depth == 0) check_root(s, element, attributes);
  if (s->code == PL_OK) check_words(s, element, attributes);
  if (s->code == PL_OK) refuse_unsupported(s, element, attributes);
  if (has_quantities(element)) check_quantities(s, element, attributes);
  if (s->code == PL_OK && s->depth > 0) check_size(s, element, attributes);
  if (s->code == PL_OK && strcmp(element, "prop") == 0) check_property(s, attributes);
  if (s->code == PL_OK && is_route(element)) check_route(s, element, attributes);
  if (s->code == PL_OK) open_next(s, element, attributes);
  if (s->code == PL_OK && s->sink != NULL) s->sink->begin(s->sink->data, element, attributes, line_of(s));
}

static void on_end(void *data, const char *element) {
  scanner *s = data;
  if (s->code != PL_OK) return;
  s->depth--;
  if (s->sink != NULL) s->sink->end(s->sink->data, element, line_of(s));
}

static void on_text(void *data, const char *text, int size) {
  scanner *s = data;
  for (int i = 0; i < size && s->code == PL_OK; i++)
    if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
      fail_here(s, PL_BAD_INPUT, "text between elements; remove it");
}

static void on_skipped_entity(void *data, const char *name, int is_parameter) {
  (void)is_parameter;
  scanner *s = data;
  if (s->code == PL_OK) FAIL(s, PL_BAD_INPUT, "malformed XML: undefined entity &%.64s", name);
}

static void on_doctype(void *data, const char *name, const char *system, const char *public, int has_subset) {
  (void)name, (void)system, (void)public;
  scanner *s = data;
  s->has_doctype = true;
  if (has_subset) FAIL(s, PL_UNSUPPORTED, "%s", "a DTD inside the file: SimGrid cannot read it; remove it");
}

/* In pieces, because expat counts in int and because a stopped parser then stops early. */
static void feed(scanner *s, const char *text, size_t size) {
  for (size_t done = 0; s->code == PL_OK;) {
    size_t n = size - done < FEED_BYTES ? size - done : FEED_BYTES;
    bool is_last = done + n == size;
    if (XML_Parse(s->parser, text + done, (int)n, is_last) != XML_STATUS_OK && s->code == PL_OK) {
      enum XML_Error cause = XML_GetErrorCode(s->parser);
      if (cause == XML_ERROR_NO_MEMORY)
        s->code = pl_fail_memory(s->error, "the platform file");
      else
        FAIL(s, PL_BAD_INPUT, "malformed XML: %s", XML_ErrorString(cause));
    }
    done += n;
    if (is_last) return;
  }
}

pl_code pl_platform_scan_text(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                              pl_arena *arena, pl_platform_scan *scan, pl_error *error) {
  *scan = (pl_platform_scan){0};
  if (size == 0) return pl_fail(error, PL_BAD_INPUT, "%s:1: the file is empty", name);
  scanner s = {.name = name, .text = text, .sink = sink, .arena = arena, .error = error};
  s.parser = XML_ParserCreate("UTF-8"); /* whatever the file says: SimGrid's reader takes bytes as they come */
  if (s.parser == NULL) return pl_fail_memory(error, "the XML parser");
  XML_SetUserData(s.parser, &s);
  XML_SetElementHandler(s.parser, on_start, on_end);
  XML_SetCharacterDataHandler(s.parser, on_text);
  XML_SetSkippedEntityHandler(s.parser, on_skipped_entity);
  XML_SetStartDoctypeDeclHandler(s.parser, on_doctype);
  feed(&s, text, size);
  XML_ParserFree(s.parser);
  if (s.code == PL_OK && arena->failed) s.code = pl_fail_memory(error, "the devices of the platform");
  if (s.code == PL_OK) *scan = (pl_platform_scan){.devices = s.devices, .n_devices = s.n_devices};
  return s.code;
}

static int compare_hosts(const void *left, const void *right) {
  const pl_scanned_device *a = left, *b = right;
  if (a->host == NULL || b->host == NULL) return (a->host != NULL) - (b->host != NULL);
  return strcmp(a->host, b->host);
}

void pl_platform_scan_sort(pl_platform_scan *scan, pl_arena *arena) {
  pl_scanned_device *sorted = PL_TAKE(arena, pl_scanned_device, scan->n_devices);
  if (sorted == NULL || scan->n_devices == 0) return;
  memcpy(sorted, scan->devices, scan->n_devices * sizeof *sorted);
  qsort(sorted, scan->n_devices, sizeof *sorted, compare_hosts);
  scan->devices = sorted;
}

uint32_t pl_platform_scan_line(const pl_platform_scan *scan, const char *host) {
  const pl_scanned_device key = {.host = host};
  const pl_scanned_device *found =
      scan->n_devices > 0 ? bsearch(&key, scan->devices, scan->n_devices, sizeof key, compare_hosts) : NULL;
  return found != NULL ? found->line : 0;
}
