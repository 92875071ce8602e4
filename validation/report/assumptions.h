/* What was taken for cases where their rows say nothing (validation/rows/assume.h), as --assumptions prints it. */
#ifndef PL_VALIDATION_ASSUMPTIONS_H
#define PL_VALIDATION_ASSUMPTIONS_H

#include "core/text/json_writer.h"
#include "validation/report/report.h"
#include "validation/rows/case.h"

/* By file and text: how many configurations of it, and the first one's line; then, by file, the columns that were not
 * read. */
void pl_assumptions_print(FILE *stream, const pl_cases *cases);
void pl_assumptions_html(FILE *stream, const pl_cases *cases);
void pl_assumptions_json(pl_json *json, const pl_cases *cases);

#endif
