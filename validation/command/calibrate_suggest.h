/* `paceline calibrate --suggest N`: which runs of one's own would tell most about the best strategies. */
#ifndef PL_VALIDATION_CALIBRATE_SUGGEST_H
#define PL_VALIDATION_CALIBRATE_SUGGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"

enum { PL_SUGGEST_MOST = 8 };

typedef struct pl_calibrate_suggest {
  int64_t n; /* runs; 0: nobody asked */
  const char *platform, *model, *framework;
  int64_t gbs, seq;   /* seq 0: as the model has it */
  const char *output; /* a table for --runs, whose times are to be filled in; NULL: none */
  bool force;         /* replace it */
} pl_calibrate_suggest;

/* Prints the runs as strategies, with what they leave of the best ones' intervals, and writes them as a table. Searches
 * as paceline search does, then simulates some sixty strategies eight times each. */
pl_code pl_calibrate_suggest_run(const pl_calibrate_suggest *options, pl_error *error);

#endif
