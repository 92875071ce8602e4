/* Measured runs of many sites with what their times are sensitive to: the table that `paceline validate --sensitivities
 * --csv` writes, grouped. */
#ifndef PL_VALIDATION_SITE_ROWS_H
#define PL_VALIDATION_SITE_ROWS_H

#include "core/text/csv.h"
#include "validation/fit/site_posterior.h"

typedef struct pl_site_row {
  pl_site_run run;     /* y is ln(measured / predicted); its part is the site */
  double low, high;    /* the prediction's interval, as ln(time / predicted); NaN: none */
  double memory_bytes; /* measured - predicted peak; NaN: none was measured */
  double peak_bytes;   /* measured */
  uint32_t source;     /* who published it */
  uint32_t site;       /* one GPU, software (as its rows name it) and precision of one source */
  uint32_t choice;     /* of one model on as many of the same GPUs: what somebody could have chosen among */
  double speed;        /* FLOPs a second, predicted */
} pl_site_row;

typedef struct pl_site_rows {
  const pl_site_row *rows;
  uint32_t n, n_sources, n_sites, n_choices;
  const char *const *source_names;
} pl_site_rows;

/* Of `csv` the rows that were measured and predicted. PL_BAD_INPUT: a column is missing, none is there. */
pl_code pl_site_rows_take(const pl_csv *csv, pl_arena *arena, pl_site_rows *rows, pl_error *error);

#endif
