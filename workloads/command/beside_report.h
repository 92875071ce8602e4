/* What `simulate --beside` prints of jobs beside each other. */
#ifndef PL_WORKLOADS_BESIDE_REPORT_H
#define PL_WORKLOADS_BESIDE_REPORT_H

#include <stdio.h>

#include "core/text/json_writer.h"
#include "workloads/run/beside.h"

typedef struct pl_beside_result {
  pl_beside_job *jobs; /* the job of the command line first */
  uint32_t n_jobs;     /* 0: nobody asked, and nothing is printed */
  pl_beside_report report;
} pl_beside_result;

void pl_beside_print(FILE *stream, const pl_beside_result *result);
/* Under the key "beside" of the object that is open. */
void pl_beside_json(pl_json *json, const pl_beside_result *result);

#endif
