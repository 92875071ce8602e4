/* The plan as text and as JSON, for people and frameworks. */
#ifndef PL_SEARCH_PLAN_REPORT_H
#define PL_SEARCH_PLAN_REPORT_H

#include <stdio.h>

#include "search/optimize/optimize.h"

enum { PL_PLAN_SCHEMA = 1 };

void pl_plan_report_json(FILE *stream, const char *path, const pl_optimization *job,
                         const pl_optimize_options *options);
void pl_plan_report_text(FILE *stream, const pl_optimization *job, const pl_optimize_options *options);

#endif
