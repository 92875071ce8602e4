/* What was taken for a case where its row says nothing: "vocab: 50257; schedule: 1f1b; ...", so that nothing is guessed
 * in silence. Printed by --assumptions, and a column of the CSV. */
#ifndef PL_VALIDATION_ASSUMPTIONS_H
#define PL_VALIDATION_ASSUMPTIONS_H

#include "core/text/json_writer.h"
#include "validation/report/report.h"
#include "validation/rows/case.h"

/* Fills c->assumptions of a case that is expressed. */
pl_code pl_case_assume(pl_case *c, const pl_case_options *options, pl_arena *arena, pl_error *error);

/* By file and text: how many configurations of it, and the first one's line; then, by file, the columns that were not
 * read. */
void pl_assumptions_print(FILE *stream, const pl_cases *cases);
void pl_assumptions_html(FILE *stream, const pl_cases *cases);
void pl_assumptions_json(pl_json *json, const pl_cases *cases);

#endif
