/* What `paceline explain` prints of an explanation (workloads/run/explanation.h): for people, and as JSON. */
#ifndef PL_WORKLOADS_EXPLAIN_REPORT_H
#define PL_WORKLOADS_EXPLAIN_REPORT_H

#include <stdio.h>

#include "workloads/command/simulate_report.h"
#include "workloads/run/explanation.h"

typedef struct pl_explain_view {
  int32_t first_stage, n_stages; /* which stages; of each its busiest device */
  uint32_t top;                  /* rows of each table; 0 = all */
} pl_explain_view;

pl_code pl_explain_report_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                                const pl_explanation *explanation, const pl_explain_view *view, pl_arena *arena,
                                pl_error *error);
pl_code pl_explain_report_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report,
                               const pl_explanation *explanation, const pl_explain_view *view, pl_arena *arena,
                               pl_error *error);

#endif
