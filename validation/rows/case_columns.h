/* The line of a case: the one list of columns that CSV, HDF5 and validation/README.md have. */
#ifndef PL_VALIDATION_CASE_COLUMNS_H
#define PL_VALIDATION_CASE_COLUMNS_H

#include "search/results/table_file.h"
#include "validation/rows/case.h"

/* One value of a case; `type` says which getter is there. Numbers that do not apply are NaN, integers -1, texts "". */
typedef struct pl_case_column {
  const char *name, *unit, *description;
  pl_table_type type;
  const char *(*text)(const pl_case *c);
  int64_t (*integer)(const pl_case *c);
  double (*number)(const pl_case *c);
} pl_case_column;

extern const pl_case_column pl_case_columns[];
extern const uint32_t pl_case_n_columns;
/* The profile of a case's GPU, of several kinds the first; "": none is known. */
const char *pl_case_device(const pl_case *c);

/* These and behind them what sites are made of (pl_case_options, sensitivities). */
extern const uint32_t pl_case_n_columns_of_sites;

/* All cases as columns for pl_table_store; everything in `arena`. */
pl_code pl_case_columns_take(const pl_cases *cases, pl_arena *arena, pl_table_column **columns, pl_error *error);

#endif
