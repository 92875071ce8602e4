/* What a platform file may say: the elements and attributes that describe hosts, links, zones and routes.
 *
 * SimGrid's own reader obeys more than that. <config> sets any option of the library, and some of them name files to be
 * written (tracing/filename) or code to be run (plugin); *_file attributes and <trace> open files; <actor> starts
 * programs; <cabinet> and <backbone> outside a Cluster zone are kept for a later zone, even of another file. So this is
 * a list of what is known to be harmless and to have a meaning here, with where it may stand; everything else is
 * refused by name, the well-known things with the reason. From SimGrid 3.32, src/surf/xml/simgrid.dtd and
 * surfxml_sax_cb.cpp.
 *
 * A platform of 16,384 GPUs has half a million elements, so each is looked up once and is a number from then on.
 */
#ifndef PL_NETMODEL_PLATFORM_WORDS_H
#define PL_NETMODEL_PLATFORM_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* What is frequent first; messages list elements and attributes in this order. */
typedef enum pl_platform_word {
  PL_WORD_LINK_CTN,
  PL_WORD_PROP,
  PL_WORD_ROUTE,
  PL_WORD_ZONE_ROUTE,
  PL_WORD_AS_ROUTE,
  PL_WORD_BYPASS_ROUTE,
  PL_WORD_BYPASS_ZONE_ROUTE,
  PL_WORD_BYPASS_AS_ROUTE,
  PL_WORD_PLATFORM,
  PL_WORD_ZONE,
  PL_WORD_AS,
  PL_WORD_HOST,
  PL_WORD_LINK,
  PL_WORD_CLUSTER,
  PL_WORD_DISK,
  PL_WORD_ROUTER,
  PL_WORD_CABINET,
  PL_WORD_BACKBONE,
  PL_WORD_HOST_LINK,
  PL_WORD_COUNT, /* also: none of these */
} pl_platform_word;

typedef enum pl_platform_attribute {
  PL_ATTRIBUTE_ID,
  PL_ATTRIBUTE_ROUTING,
  PL_ATTRIBUTE_VALUE,
  PL_ATTRIBUTE_PREFIX,
  PL_ATTRIBUTE_SUFFIX,
  PL_ATTRIBUTE_RADICAL,
  PL_ATTRIBUTE_SPEED,
  PL_ATTRIBUTE_CORE,
  PL_ATTRIBUTE_PSTATE,
  PL_ATTRIBUTE_READ_BW,
  PL_ATTRIBUTE_WRITE_BW,
  PL_ATTRIBUTE_BW,
  PL_ATTRIBUTE_LAT,
  PL_ATTRIBUTE_BANDWIDTH,
  PL_ATTRIBUTE_LATENCY,
  PL_ATTRIBUTE_SHARING_POLICY,
  PL_ATTRIBUTE_TOPOLOGY,
  PL_ATTRIBUTE_TOPO_PARAMETERS,
  PL_ATTRIBUTE_BB_BW,
  PL_ATTRIBUTE_BB_LAT,
  PL_ATTRIBUTE_BB_SHARING_POLICY,
  PL_ATTRIBUTE_ROUTER_ID,
  PL_ATTRIBUTE_LIMITER_LINK,
  PL_ATTRIBUTE_LOOPBACK_BW,
  PL_ATTRIBUTE_LOOPBACK_LAT,
  PL_ATTRIBUTE_UP,
  PL_ATTRIBUTE_DOWN,
  PL_ATTRIBUTE_SRC,
  PL_ATTRIBUTE_DST,
  PL_ATTRIBUTE_GW_SRC,
  PL_ATTRIBUTE_GW_DST,
  PL_ATTRIBUTE_SYMMETRICAL,
  PL_ATTRIBUTE_DIRECTION,
  PL_ATTRIBUTE_VERSION,
  PL_ATTRIBUTE_COUNT,
} pl_platform_attribute;

/* One that has begun. All texts are whoever reads the file's, until the next element. */
typedef struct pl_platform_element {
  pl_platform_word word;
  const char *name;
  const char **pairs;   /* all attributes as they stand there: name, value, ..., NULL */
  const char *stranger; /* the first attribute that the element may not have; NULL: none */
  uint64_t given;       /* bit a: values[a] is set */
  const char *values[PL_ATTRIBUTE_COUNT];
} pl_platform_element;

/* The one way to ask for an attribute: its value, NULL if it is not given. */
static inline const char *pl_platform_value(const pl_platform_element *element, pl_platform_attribute attribute) {
  return element->given >> attribute & 1 ? element->values[attribute] : NULL;
}

/* Looks up the words of <name pairs...>. O(words), once per element. */
void pl_platform_element_read(pl_platform_element *element, const char *name, const char **pairs);
const char *pl_platform_word_name(pl_platform_word word);
const char *pl_platform_attribute_name(pl_platform_attribute attribute);

/* Whether the element may stand directly inside `parent` (PL_WORD_COUNT: outermost). If not, *why (`size` bytes) says
 * what is wrong and what to do, without a place in front. */
pl_code pl_platform_words_check(const pl_platform_element *element, pl_platform_word parent, char *why, size_t size);

#endif
