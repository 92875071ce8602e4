/* What was taken for cases where their rows say nothing (validation/rows/assume.h), as --assumptions prints it. */
#ifndef PL_VALIDATION_ASSUMPTIONS_H
#define PL_VALIDATION_ASSUMPTIONS_H

#include "core/text/json_writer.h"
#include "validation/report/report.h"
#include "validation/rows/case.h"

/* A line per file with columns that nobody reads: `prefix`, the file, the columns and what was perhaps meant. */
void pl_ignored_print(FILE *stream, const char *prefix, const pl_cases *cases);
/* The columns that are not read; then by file and text how many configurations of it, and the first one's line. */
void pl_assumptions_print(FILE *stream, const pl_cases *cases);
void pl_assumptions_html(FILE *stream, const pl_cases *cases);
void pl_assumptions_json(pl_json *json, const pl_cases *cases);

#endif
