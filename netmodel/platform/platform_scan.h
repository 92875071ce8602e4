/* First pass over a platform file, before SimGrid sees it: is it XML, and does it say something that we can simulate?
 *
 * SimGrid's own reader gives up at the first surprise, often without a line, accepts a negative bandwidth, and calls
 * exit() when a read fails; and once a load has failed, the process cannot load again. So the file is read here first
 * with expat, or faster where it is plain (plain_xml.h): well-formedness, and what concerns us (devices, bandwidths,
 * latencies, kinds, features that the simulation would silently ignore), each error with file:line. Nothing but what
 * platform_words.h lists gets through, and nothing that is too large to expand (platform_shape.h). It also notes in
 * which line each GPU stands, for errors that come later. Everything else (names, routes) is left to whoever takes the
 * elements.
 */
#ifndef PL_NETMODEL_PLATFORM_SCAN_H
#define PL_NETMODEL_PLATFORM_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "netmodel/platform/platform_words.h"

/* A <host> that carries <prop id="device">, or a <cluster> that does. */
typedef struct pl_scanned_device {
  const char *host; /* NULL for a cluster, whose hosts get their names from SimGrid */
  const char *type; /* the property's value */
  uint32_t line;
} pl_scanned_device;

typedef struct pl_platform_scan {
  const pl_scanned_device *devices; /* in file order; owned by the arena */
  uint32_t n_devices;
} pl_platform_scan;

/* Takes the elements that the scan has let through, in file order. */
typedef struct pl_platform_sink {
  void (*begin)(void *data, const pl_platform_element *element, uint32_t line);
  void (*end)(void *data, pl_platform_word word, uint32_t line);
  void (*restart)(void *data); /* forget everything: the elements come again from the first */
  void *data;
} pl_platform_sink;

/* `name` stands for the path in messages; `sink` may be NULL. Fails with PL_BAD_INPUT, or PL_UNSUPPORTED for what
 * SimGrid has and we do not; the sink has then seen what stands before. */
pl_code pl_platform_scan_text(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                              pl_arena *arena, pl_platform_scan *scan, pl_error *error);

/* The same by expat alone, whatever the text: what pl_platform_scan_text must agree with. */
pl_code pl_platform_scan_text_by_expat(const char *name, const char *text, size_t size, const pl_platform_sink *sink,
                                       pl_arena *arena, pl_platform_scan *scan, pl_error *error);

/* The line of `host`, 0 when not known. O(devices), for messages. */
uint32_t pl_platform_scan_line(const pl_platform_scan *scan, const char *host);

#endif
