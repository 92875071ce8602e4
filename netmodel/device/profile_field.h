/* Fields of device and collective profiles: values with units and in ranges, with errors that name file, line, key and
 * value. */
#ifndef PL_NETMODEL_PROFILE_FIELD_H
#define PL_NETMODEL_PROFILE_FIELD_H

#include <stdbool.h>

#include "core/base/status.h"
#include "core/cluster/device_profile.h"
#include "core/text/document.h"

typedef pl_code (*pl_parse_unit)(const char *text, const char *what, double *value, pl_error *error);

/* Refuses what is no mapping, and keys that are not in the NULL-terminated list, which the message shows. */
pl_code pl_profile_check_keys(const pl_document *document, const pl_node *mapping, const char *const *known,
                              pl_error *error);
/* A value with a unit ("80GiB"), or a bare number in base units; not negative. */
pl_code pl_profile_quantity(const pl_document *document, const pl_node *mapping, const char *key, pl_parse_unit parse,
                            double *value, pl_error *error);
/* The same, more than zero. */
pl_code pl_profile_positive(const pl_document *document, const pl_node *mapping, const char *key, pl_parse_unit parse,
                            double *value, pl_error *error);
/* A number in (0, highest] or, if zero is allowed, in [0, highest]. */
pl_code pl_profile_ratio(const pl_document *document, const pl_node *mapping, const char *key, bool zero_allowed,
                         double highest, double *value, pl_error *error);
/* A number from `lowest` to `highest`. */
pl_code pl_profile_within(const pl_document *document, const pl_node *mapping, const char *key, double lowest,
                          double highest, double *value, pl_error *error);
/* "8us", or a bare number of seconds; from 0 to 1 s. */
pl_code pl_profile_duration(const pl_document *document, const pl_node *mapping, const char *key, double *value,
                            pl_error *error);
/* The list of data types under "dtypes" as bits 1 << pl_dtype, added to those in *dtypes, which are an error. */
pl_code pl_profile_dtypes(const pl_document *document, const pl_node *entry, uint32_t *dtypes, pl_error *error);
/* {"calls": 53, "median_error": 0.013, "p90_error": 0.041} under `key`; left alone without it. */
pl_code pl_profile_held_out(const pl_document *document, const pl_node *mapping, const char *key, pl_held_out *held_out,
                            pl_error *error);
/* A mapping under `key`. */
pl_code pl_profile_object(const pl_document *document, const pl_node *root, const char *key, const pl_node **object,
                          pl_error *error);

#endif
