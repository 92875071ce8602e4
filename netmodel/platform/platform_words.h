/* What a platform file may say: the elements and attributes that describe hosts, links, zones and routes.
 *
 * SimGrid's own reader obeys more than that. <config> sets any option of the library, and some of them name files to be
 * written (tracing/filename) or code to be run (plugin); *_file attributes and <trace> open files; <actor> starts
 * programs; <cabinet> and <backbone> outside a Cluster zone are kept for a later zone, even of another file. So this is
 * a list of what is known to be harmless and to have a meaning here, with where it may stand; everything else is
 * refused by name, the well-known things with the reason. From SimGrid 3.32, src/surf/xml/simgrid.dtd and
 * surfxml_sax_cb.cpp.
 */
#ifndef PL_NETMODEL_PLATFORM_WORDS_H
#define PL_NETMODEL_PLATFORM_WORDS_H

#include <stddef.h>

#include "core/base/status.h"

/* The one way to ask for an attribute: its value, NULL if it is not given. `attributes`: name, value, ..., NULL. */
const char *pl_platform_attribute(const char **attributes, const char *name);

/* The same word in storage that lasts, NULL if it is no element of a platform. */
const char *pl_platform_word(const char *element);

/* Whether `element` with these attributes may stand directly inside `parent` (NULL: outermost). If not, *why (`size`
 * bytes) says what is wrong and what to do, without a place in front. */
pl_code pl_platform_words_check(const char *element, const char *parent, const char **attributes, char *why,
                                size_t size);

#endif
