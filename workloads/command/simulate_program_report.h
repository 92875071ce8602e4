/* What `paceline simulate` prints of a program: text, and JSON. */
#ifndef PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_REPORT_H
#define PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_REPORT_H

#include <stdio.h>

#include "workloads/command/simulate_program.h"
#include "workloads/run/program_flops.h"
#include "workloads/run/simulate_program.h"
#include "workloads/tree/tree_plan.h"

/* What was made of a model. */
typedef struct pl_program_subject {
  const pl_job_options *options;
  const pl_program_request *request;
  const pl_cluster *cluster;
  pl_model model;              /* as the framework holds it */
  pl_program_flops flops;      /* of it as it is given */
  pl_tree_plan plan;           /* its notes, where a tree was read */
  pl_ir_module module;         /* as it was read or made */
  pl_ir_module launched;       /* what of it is simulated */
  pl_ir_recurrence recurrence; /* of that */
  pl_program_explanation explanation;
  const char *schedule; /* of several lists */
  pl_strategy tuple;    /* what was assumed of it */
  pl_configuration at;  /* of a tuple; of others no GPU */
} pl_program_subject;

/* To stdout. */
void pl_program_report_print(const pl_program_subject *of, const pl_program_report *report);
/* What results files have too under the names of their columns. */
void pl_program_report_json(FILE *stream, const pl_program_subject *of, const pl_program_report *report);
/* FILE, tree or tuple. */
const char *pl_program_report_what(const pl_program_request *request);

#endif
