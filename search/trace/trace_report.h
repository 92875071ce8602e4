/* What `paceline trace` says of a job. */
#ifndef PL_SEARCH_TRACE_TRACE_REPORT_H
#define PL_SEARCH_TRACE_TRACE_REPORT_H

#include <stdio.h>

#include "workloads/trace/trace.h"

void pl_trace_report_import(FILE *out, FILE *notes, const pl_trace *trace, const char *path);
/* `n_ops`: so many of the ops that took most time, averaged over the steps; 0: none. PL_BAD_INPUT if the ranks part:
 * what can be said without that is printed all the same. */
pl_code pl_trace_report_check(FILE *out, const pl_trace *trace, bool json, uint32_t n_ops, pl_error *error);

#endif
