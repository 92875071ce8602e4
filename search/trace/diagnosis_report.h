/* What `paceline diagnose` says: in a few lines, and as one HTML file that needs nothing else (XML as well, so that any
 * parser can check it). */
#ifndef PL_SEARCH_TRACE_DIAGNOSIS_REPORT_H
#define PL_SEARCH_TRACE_DIAGNOSIS_REPORT_H

#include <stdio.h>

#include "search/trace/replay_session.h"
#include "workloads/trace/diagnosis.h"

typedef struct pl_diagnosis_report {
  const char *path; /* of the job file */
  const pl_replay_session *session;
  const pl_trace_replay *replay;
  const pl_trace_diagnosis *diagnosis;
} pl_diagnosis_report;

void pl_diagnosis_report_text(FILE *stream, const pl_diagnosis_report *report);
void pl_diagnosis_report_json(FILE *stream, const pl_diagnosis_report *report);
void pl_diagnosis_report_html(FILE *stream, const pl_diagnosis_report *report);

#endif
