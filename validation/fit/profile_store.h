/* Writes a device profile: an existing one with some sections replaced or added, and their provenance.
 *
 * What is not named is copied as it stands, in its order, so that a calibration of one thing never touches another.
 * Lists of plain values are written on one line, everything else as the shipped profiles have it. Numbers come out as
 * the shortest text that reads back as the same double.
 */
#ifndef PL_VALIDATION_PROFILE_STORE_H
#define PL_VALIDATION_PROFILE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/text/json_writer.h"

typedef struct pl_profile_section {
  const char *key;                                   /* "gemm" */
  void (*write)(pl_json *json, const void *content); /* one JSON value */
  const void *content;
  const char *provenance; /* of the same key in "provenance" */
} pl_profile_section;

enum { PL_PROFILE_BYTES_MAX = 256 << 10 };

/* The profile `base` with the sections into `path`, which is replaced at once when everything is written and reads back
 * as a profile, or else left alone. PL_BAD_INPUT: `base` is no profile, `path` exists and `force` is not given, the
 * result has more than PL_PROFILE_BYTES_MAX. `path` may be `base`, with `force`. */
pl_code pl_profile_store(const char *base, const pl_profile_section *sections, uint32_t n_sections, const char *path,
                         bool force, pl_error *error);

/* For writers of sections: `value` with `digits` significant ones and a unit, "4.15us". */
void pl_profile_put_quantity(pl_json *json, const char *key, double value, double unit, const char *suffix);
/* `value` to that precision, as a number. */
void pl_profile_put_rounded(pl_json *json, const char *key, double value);
/* What reading a quantity written with `unit` gives: fits round before they say how good they are. */
double pl_profile_rounded(double value, double unit);

#endif
