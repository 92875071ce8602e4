/* What `simulate` prints, as text for people and as JSON with the names and units of the result columns. */
#ifndef PL_WORKLOADS_SIMULATE_REPORT_H
#define PL_WORKLOADS_SIMULATE_REPORT_H

#include <stdio.h>

#include "workloads/simulate.h"

typedef struct pl_simulate_subject {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
} pl_simulate_subject;

void pl_simulate_report_print(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report);
void pl_simulate_report_json(FILE *stream, const pl_simulate_subject *subject, const pl_simulate_report *report);

#endif
