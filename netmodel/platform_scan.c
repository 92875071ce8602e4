/* See netmodel/platform_scan.h. */
#include "netmodel/platform_scan.h"

#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "netmodel/link_kind.h"

enum { DEPTH_MAX = 64, ATTRIBUTE_BYTES_MAX = 4096, FEED_BYTES = 1 << 20 };

typedef enum element_kind { ELEMENT_OTHER, ELEMENT_HOST, ELEMENT_LINK, ELEMENT_CLUSTER, ELEMENT_ZONE } element_kind;

typedef struct open_element {
  element_kind kind;
  const char *id; /* of a host or zone, in the arena */
  uint32_t line;
} open_element;

typedef struct scanner {
  XML_Parser parser;
  const char *name;
  pl_arena *arena;
  pl_error *error;
  pl_code code;
  bool has_doctype;
  uint32_t depth;
  open_element open[DEPTH_MAX];
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

static const char *attribute(const char **attributes, const char *name) {
  for (; attributes[0] != NULL; attributes += 2)
    if (strcmp(attributes[0], name) == 0) return attributes[1];
  return NULL;
}

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

/* What would change over time or leave the model of links with a capacity. */
static void refuse_unsupported(scanner *s, const char *element, const char **attributes) {
  static const char *const profiles[] = {"availability_file", "state_file", "bandwidth_file", "latency_file"};
  for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
    if (attribute(attributes, profiles[i]) != NULL && s->code == PL_OK)
      FAIL(s, PL_UNSUPPORTED, "%s of <%s>: resources that change over time are not simulated; remove it", profiles[i],
           element);
  if (s->code == PL_OK && (strcmp(element, "trace") == 0 || strcmp(element, "trace_connect") == 0))
    FAIL(s, PL_UNSUPPORTED, "<%s>: resources that change over time are not simulated; remove it", element);
  const char *routing = attribute(attributes, "routing");
  if (s->code == PL_OK && routing != NULL && (strcmp(routing, "Vivaldi") == 0 || strcmp(routing, "Wifi") == 0))
    FAIL(s, PL_UNSUPPORTED, "routing=\"%s\": its delays do not come from links; use Full, Floyd or Cluster", routing);
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
  if (s->n_devices == s->capacity) {
    uint32_t capacity = s->capacity ? 2 * s->capacity : 256;
    pl_scanned_device *larger = PL_TAKE(s->arena, pl_scanned_device, capacity);
    if (larger != NULL && s->n_devices > 0) memcpy(larger, s->devices, s->n_devices * sizeof *larger);
    s->devices = larger;
    s->capacity = capacity;
  }
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
  static const char *const names[] = {"route", "zoneRoute", "bypassRoute", "bypassZoneRoute"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], element) == 0) return true;
  return false;
}

static void open_next(scanner *s, const char *element, const char **attributes) {
  if (s->depth == DEPTH_MAX) {
    FAIL(s, PL_BAD_INPUT, "elements nested more than %d deep", DEPTH_MAX);
    return;
  }
  open_element *opened = &s->open[s->depth++];
  *opened = (open_element){.line = line_of(s)};
  bool is_zone = strcmp(element, "zone") == 0;
  if (is_zone || strcmp(element, "host") == 0) {
    const char *id = attribute(attributes, "id");
    opened->kind = is_zone ? ELEMENT_ZONE : ELEMENT_HOST;
    opened->id = pl_arena_strdup(s->arena, id ? id : "");
    if (opened->id == NULL) opened->kind = ELEMENT_OTHER; /* the arena remembers */
  } else if (strcmp(element, "link") == 0) {
    opened->kind = ELEMENT_LINK;
  } else if (strcmp(element, "cluster") == 0) {
    opened->kind = ELEMENT_CLUSTER;
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
  if (s->code == PL_OK) refuse_unsupported(s, element, attributes);
  check_quantity(s, element, attributes, "bandwidth", false);
  check_quantity(s, element, attributes, "bw", false);
  check_quantity(s, element, attributes, "bb_bw", false);
  check_quantity(s, element, attributes, "latency", true);
  check_quantity(s, element, attributes, "lat", true);
  check_quantity(s, element, attributes, "bb_lat", true);
  if (s->code == PL_OK && strcmp(element, "prop") == 0) check_property(s, attributes);
  if (s->code == PL_OK && is_route(element)) check_route(s, element, attributes);
  if (s->code == PL_OK) open_next(s, element, attributes);
}

static void on_end(void *data, const char *element) {
  (void)element;
  scanner *s = data;
  if (s->code == PL_OK) s->depth--;
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

pl_code pl_platform_scan_text(const char *name, const char *text, size_t size, pl_arena *arena, pl_platform_scan *scan,
                              pl_error *error) {
  *scan = (pl_platform_scan){0};
  if (size == 0) return pl_fail(error, PL_BAD_INPUT, "%s:1: the file is empty", name);
  scanner s = {.name = name, .arena = arena, .error = error, .parser = XML_ParserCreate(NULL)};
  if (s.parser == NULL) return pl_fail_memory(error, "the XML parser");
  XML_SetUserData(s.parser, &s);
  XML_SetElementHandler(s.parser, on_start, on_end);
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
