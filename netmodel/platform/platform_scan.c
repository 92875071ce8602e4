/* See netmodel/platform/platform_scan.h. */
#include "netmodel/platform/platform_scan.h"

#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/printable.h"
#include "netmodel/platform/link_kind.h"
#include "netmodel/platform/plain_xml.h"
#include "netmodel/platform/platform_shape.h"
#include "netmodel/platform/platform_words.h"

enum { DEPTH_MAX = 64, ATTRIBUTE_BYTES_MAX = 4096, FEED_BYTES = 1 << 20 };

/* The routings whose cost and memory SimGrid pays in advance: table of all pairs; all pairs over all points. */
typedef enum zone_routing { ROUTING_OTHER, ROUTING_FULL, ROUTING_FLOYD, ROUTING_CLUSTER } zone_routing;
enum { FULL_POINTS_MAX = 1 << 15, FLOYD_POINTS_MAX = 1 << 12 }; /* 8 GiB; a minute or two */

typedef struct open_element {
  pl_platform_word word;
  zone_routing routing;
  const char *id; /* of a host or zone, in the arena */
  uint32_t line, n_points;
} open_element;

typedef struct scanner {
  XML_Parser parser; /* one of these two reads; the other is NULL */
  const pl_plain_xml *plain;
  const char *name, *text;
  pl_arena *arena;
  pl_error *error;
  pl_code code;
  bool has_doctype;
  pl_platform_element element; /* that begins now */
  char rate[16], delay[16];    /* the last good ones, as they stand there: links of one kind follow each other */
  uint32_t depth;
  open_element open[DEPTH_MAX];
  uint64_t n_hosts;
  const pl_platform_sink *sink;
  pl_scanned_device *devices;
  uint32_t n_devices, capacity;
} scanner;

static uint32_t line_of(const scanner *s) {
  return s->plain != NULL ? s->plain->line : (uint32_t)XML_GetCurrentLineNumber(s->parser);
}

static uint32_t column_of(const scanner *s) {
  return s->plain != NULL ? pl_plain_xml_column(s->plain) : (uint32_t)XML_GetCurrentColumnNumber(s->parser) + 1;
}

static void stop(scanner *s, pl_code code) {
  s->code = code;
  if (s->parser != NULL) XML_StopParser(s->parser, XML_FALSE);
}

/* Records the failure at the current line and stops the parser. */
#define FAIL(s, failure, format, ...)                                                                                  \
  stop((s), pl_fail((s)->error, (failure), "%s:%u: " format, (s)->name, line_of(s), __VA_ARGS__))

/* The same with the column, for what need not be the only thing in its line. */
static void fail_here(scanner *s, pl_code failure, const char *why) {
  stop(s, pl_fail(s->error, failure, "%s:%u:%u: %s", s->name, line_of(s), column_of(s), why));
}

/* Of the element that begins now. */
#define VALUE(s, name) pl_platform_value(&(s)->element, PL_ATTRIBUTE_##name)

/* The figure in front of the unit; units are SimGrid's business. */
static bool figure_of(const char *text, double *value) {
  char *end;
  *value = strtod(text, &end);
  return end != text && isfinite(*value);
}

static bool is_good_figure(double value, bool zero_allowed) {
  return value > 0 || (value == 0 && zero_allowed);
}

static void check_quantity(scanner *s, pl_platform_attribute attribute, bool zero_allowed) {
  const char *text = pl_platform_value(&s->element, attribute);
  char *last = zero_allowed ? s->delay : s->rate;
  if (text == NULL || s->code != PL_OK || strcmp(text, last) == 0) return;
  const char *id = VALUE(s, ID), *name = pl_platform_attribute_name(attribute);
  double value;
  if (!figure_of(text, &value))
    FAIL(s, PL_BAD_INPUT, "%s of <%s id=\"%s\">: '%.64s' is not a number with a unit", name, s->element.name,
         id ? id : "", text);
  else if (!is_good_figure(value, zero_allowed))
    FAIL(s, PL_BAD_INPUT, "%s of <%s id=\"%s\"> is '%.64s': it must be %s", name, s->element.name, id ? id : "", text,
         zero_allowed ? "zero or more" : "more than zero");
  else if (strlen(text) < sizeof s->rate)
    memcpy(last, text, strlen(text) + 1);
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

/* What is plain cannot have either. */
static void check_characters(scanner *s) {
  enum { VALUE_BYTES = 96 };
  char why[512], value[VALUE_BYTES];
  for (const char **pair = s->element.pairs; s->code == PL_OK && pair[0] != NULL; pair += 2) {
    if (*pl_printable_end(pair[1]) == '\0') continue;
    snprintf(why, sizeof why, "%s=\"%s\" of <%s> has characters that cannot be printed", pair[0],
             pl_printable(pair[1], value, sizeof value), s->element.name);
    fail_here(s, PL_BAD_INPUT, why);
  }
}

/* Only what is known, where it may stand, and readable. */
static void check_words(scanner *s) {
  char why[512];
  if (s->plain == NULL) check_entities(s);
  if (s->code != PL_OK) return;
  pl_platform_word parent = s->depth > 0 ? s->open[s->depth - 1].word : PL_WORD_COUNT;
  pl_code code = pl_platform_words_check(&s->element, parent, why, sizeof why);
  if (code != PL_OK) fail_here(s, code, why);
  if (s->plain == NULL) check_characters(s);
}

static void refuse_unsupported(scanner *s) {
  const char *routing = VALUE(s, ROUTING), *policy = VALUE(s, SHARING_POLICY);
  if (routing != NULL && (strcasecmp(routing, "Vivaldi") == 0 || strcasecmp(routing, "Wifi") == 0))
    FAIL(s, PL_UNSUPPORTED, "routing=\"%s\": its delays do not come from links; use Full, Floyd or Cluster", routing);
  else if (policy != NULL && strcmp(policy, "WIFI") == 0)
    FAIL(s, PL_UNSUPPORTED, "sharing_policy=\"%s\" of <%s>: it must be SHARED, SPLITDUPLEX or FATPIPE", policy,
         s->element.name);
}

static void check_root(scanner *s) {
  if (s->element.word != PL_WORD_PLATFORM) {
    FAIL(s, PL_BAD_INPUT, "the outermost element is <%.64s>, not <platform>: this is no SimGrid platform",
         s->element.name);
    return;
  }
  const char *version = VALUE(s, VERSION);
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
    stop(s, pl_fail_memory(s->error, "the devices of the platform"));
    return;
  }
  PL_ASSERT(s->devices != NULL);
  s->devices[s->n_devices++] = (pl_scanned_device){.host = owner->id, .type = kept, .line = owner->line};
}

static void check_property(scanner *s) {
  const char *id = VALUE(s, ID), *value = VALUE(s, VALUE);
  if (id == NULL || value == NULL || s->depth == 0) return;
  const open_element *owner = &s->open[s->depth - 1];
  pl_link_kind kind;
  if (strcmp(id, "device") == 0 && (owner->word == PL_WORD_HOST || owner->word == PL_WORD_CLUSTER))
    add_device(s, owner, value);
  else if (strcmp(id, "kind") == 0 && owner->word == PL_WORD_LINK && !pl_link_kind_from_name(value, &kind))
    FAIL(s, PL_BAD_INPUT, "link kind '%.64s' is none of %s", value, pl_link_kind_names());
}

static bool is_zone(pl_platform_word word) {
  return word == PL_WORD_ZONE || word == PL_WORD_AS;
}

/* SimGrid 3.32 follows a null pointer when a route begins or ends at a zone that it stands in. */
static void check_route(scanner *s) {
  static const pl_platform_attribute ends[] = {PL_ATTRIBUTE_SRC, PL_ATTRIBUTE_DST, PL_ATTRIBUTE_GW_SRC,
                                               PL_ATTRIBUTE_GW_DST};
  for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    const char *id = pl_platform_value(&s->element, ends[e]);
    for (uint32_t i = 0; id != NULL && i < s->depth && s->code == PL_OK; i++)
      if (is_zone(s->open[i].word) && strcmp(s->open[i].id, id) == 0)
        FAIL(s, PL_BAD_INPUT, "%s=\"%.64s\" of <%s> is the zone around it, not something in it",
             pl_platform_attribute_name(ends[e]), id, s->element.name);
  }
}

/* ---- sizes ---- */

static zone_routing routing_of(const scanner *s) {
  const char *routing = VALUE(s, ROUTING);
  if (routing == NULL) return ROUTING_OTHER;
  if (strcasecmp(routing, "Full") == 0) return ROUTING_FULL;
  if (strcasecmp(routing, "Cluster") == 0) return ROUTING_CLUSTER;
  return strcasecmp(routing, "Floyd") == 0 ? ROUTING_FLOYD : ROUTING_OTHER;
}

/* Hosts, routers and zones directly in the zone that is open. */
static void count_points(scanner *s, uint32_t n) {
  open_element *zone = s->depth > 0 ? &s->open[s->depth - 1] : NULL;
  if (s->code != PL_OK || zone == NULL || !is_zone(zone->word)) return;
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
static void check_cluster_part(scanner *s) {
  if (s->open[s->depth - 1].routing != ROUTING_CLUSTER)
    FAIL(s, PL_BAD_INPUT, "<%s> outside a zone with routing=\"Cluster\"", s->element.name);
}

/* Of a cluster or cabinet: the hosts that it stands for. */
static bool count_radical(scanner *s, uint32_t *n) {
  char why[512];
  const char *radical = VALUE(s, RADICAL);
  pl_code code = s->element.word == PL_WORD_CLUSTER
                     ? pl_cluster_shape_check(&s->element, n, why, sizeof why)
                     : pl_radical_count(radical != NULL ? radical : "", n, why, sizeof why);
  if (code != PL_OK) fail_here(s, code, why);
  return code == PL_OK;
}

static void check_size(scanner *s) {
  pl_platform_word word = s->element.word;
  uint32_t n = 1;
  if (word == PL_WORD_CABINET || word == PL_WORD_BACKBONE || word == PL_WORD_HOST_LINK) check_cluster_part(s);
  if (s->code != PL_OK) return;
  bool is_many = word == PL_WORD_CLUSTER || word == PL_WORD_CABINET, is_host = is_many || word == PL_WORD_HOST;
  if (is_many && !count_radical(s, &n)) return;
  if (is_host) count_hosts(s, n);
  if (is_host || is_zone(word) || word == PL_WORD_ROUTER) count_points(s, word == PL_WORD_CLUSTER ? 1 : n);
}

/* ---- events ---- */

static void open_next(scanner *s) {
  if (s->depth == DEPTH_MAX) {
    FAIL(s, PL_BAD_INPUT, "elements nested more than %d deep", DEPTH_MAX);
    return;
  }
  pl_platform_word word = s->element.word;
  open_element *opened = &s->open[s->depth++];
  *opened = (open_element){.word = word};
  if (word == PL_WORD_HOST || word == PL_WORD_CLUSTER) opened->line = line_of(s);
  if (!is_zone(word) && word != PL_WORD_HOST) return;
  const char *id = VALUE(s, ID);
  opened->routing = is_zone(word) ? routing_of(s) : ROUTING_OTHER;
  opened->id = pl_arena_strdup(s->arena, id ? id : "");
  if (opened->id == NULL) stop(s, pl_fail_memory(s->error, "the devices of the platform"));
}

static void check_quantities(scanner *s) {
  static const pl_platform_attribute rates[] = {PL_ATTRIBUTE_BANDWIDTH, PL_ATTRIBUTE_BW, PL_ATTRIBUTE_BB_BW},
                                     delays[] = {PL_ATTRIBUTE_LATENCY, PL_ATTRIBUTE_LAT, PL_ATTRIBUTE_BB_LAT};
  for (int i = 0; i < 3; i++) {
    check_quantity(s, rates[i], false);
    check_quantity(s, delays[i], true);
  }
}

static void check_by_word(scanner *s) {
  switch (s->element.word) {
  case PL_WORD_LINK:
  case PL_WORD_CLUSTER:
  case PL_WORD_CABINET:
  case PL_WORD_BACKBONE:
    check_quantities(s);
    break;
  case PL_WORD_PROP:
    check_property(s);
    break;
  case PL_WORD_ROUTE:
  case PL_WORD_ZONE_ROUTE:
  case PL_WORD_AS_ROUTE:
  case PL_WORD_BYPASS_ROUTE:
  case PL_WORD_BYPASS_ZONE_ROUTE:
  case PL_WORD_BYPASS_AS_ROUTE:
    check_route(s);
    break;
  default:
    break;
  }
}

static void begin_element(scanner *s, const char *name, const char **pairs) {
  pl_platform_element_read(&s->element, name, pairs);
  if (s->depth == 0) check_root(s);
  if (s->code == PL_OK) check_words(s);
  if (s->code == PL_OK) refuse_unsupported(s);
  if (s->code == PL_OK) check_by_word(s);
  if (s->code == PL_OK && s->depth > 0) check_size(s);
  if (s->code == PL_OK) open_next(s);
  if (s->code == PL_OK && s->sink != NULL) s->sink->begin(s->sink->data, &s->element, line_of(s));
}

static void end_element(scanner *s, uint32_t line) {
  s->depth--;
  if (s->sink != NULL) s->sink->end(s->sink->data, s->open[s->depth].word, line);
}

/* ---- expat ---- */

static void on_start(void *data, const char *element, const char **attributes) {
  scanner *s = data;
  if (s->code != PL_OK) return;
  for (const char **a = attributes; a[0] != NULL; a++)
    if (strlen(a[0]) > ATTRIBUTE_BYTES_MAX) {
      FAIL(s, PL_BAD_INPUT, "an attribute of <%.64s> has more than %d bytes", element, ATTRIBUTE_BYTES_MAX);
      return;
    }
  begin_element(s, element, attributes);
}

static void on_end(void *data, const char *element) {
  (void)element;
  scanner *s = data;
  if (s->code == PL_OK) end_element(s, line_of(s));
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

static void scan_by_expat(scanner *s, size_t size) {
  s->parser = XML_ParserCreate("UTF-8"); /* whatever the file says: SimGrid's reader takes bytes as they come */
  if (s->parser == NULL) {
    s->code = pl_fail_memory(s->error, "the XML parser");
    return;
  }
  XML_SetUserData(s->parser, s);
  XML_SetElementHandler(s->parser, on_start, on_end);
  XML_SetCharacterDataHandler(s->parser, on_text);
  XML_SetSkippedEntityHandler(s->parser, on_skipped_entity);
  XML_SetStartDoctypeDeclHandler(s->parser, on_doctype);
  feed(s, s->text, size);
  XML_ParserFree(s->parser);
}

/* ---- plain files ---- */

/* False: the file is not plain, and what has been taken from it does not count. */
static bool scan_plain(scanner *s, pl_plain_xml *plain, size_t size) {
  if (!pl_plain_xml_begin(plain, s->text, size)) return false;
  s->plain = plain;
  s->has_doctype = true;
  pl_plain_kind kind = PL_PLAIN_START;
  while (s->code == PL_OK && kind < PL_PLAIN_DONE) {
    kind = pl_plain_xml_next(plain);
    if (kind == PL_PLAIN_START || kind == PL_PLAIN_EMPTY) begin_element(s, plain->name, plain->pairs);
    if (s->code == PL_OK && kind == PL_PLAIN_EMPTY) end_element(s, plain->end_line);
    if (kind == PL_PLAIN_END) end_element(s, plain->line);
  }
  return kind != PL_PLAIN_NOT;
}

/* ---- the whole ---- */

static void scan_either_way(scanner *s, size_t size) {
  const scanner at_start = *s;
  pl_plain_xml *plain = malloc(sizeof *plain);
  bool is_plain = plain != NULL && scan_plain(s, plain, size);
  free(plain);
  if (is_plain) return;
  *s = at_start;
  if (s->sink != NULL) s->sink->restart(s->sink->data);
  scan_by_expat(s, size);
}

static pl_code scan_by(void (*way)(scanner *s, size_t size), const char *name, const char *text, size_t size,
                       const pl_platform_sink *sink, pl_arena *arena, pl_platform_scan *scan, pl_error *error) {
  *scan = (pl_platform_scan){0};
  if (size == 0) return pl_fail(error, PL_BAD_INPUT, "%s:1: the file is empty", name);
  scanner s = {.name = name, .text = text, .sink = sink, .arena = arena, .error = error};
  way(&s, size);
  if (s.code == PL_OK && arena->failed) s.code = pl_fail_memory(error, "the devices of the platform");
  if (s.code == PL_OK) *scan = (pl_platform_scan){.devices = s.devices, .n_devices = s.n_devices};
  return s.code;
}

pl_code pl_platform_scan_text(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                              pl_arena *arena, pl_platform_scan *scan, pl_error *error) {
  return scan_by(scan_either_way, name, text, size, sink, arena, scan, error);
}

pl_code pl_platform_scan_text_by_expat(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                                       pl_arena *arena, pl_platform_scan *scan, pl_error *error) {
  return scan_by(scan_by_expat, name, text, size, sink, arena, scan, error);
}

uint32_t pl_platform_scan_line(const pl_platform_scan *scan, const char *host) {
  for (uint32_t d = 0; d < scan->n_devices; d++)
    if (scan->devices[d].host != NULL && strcmp(scan->devices[d].host, host) == 0) return scan->devices[d].line;
  return 0;
}
