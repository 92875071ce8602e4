/* `paceline simulate --program FILE`: a program as it is written, on a platform; and --strategy FILE.yaml: the program
 * that a strategy tree makes of a model. So are models simulated that have a program, and no blocks that are priced
 * (ONNX files), and forward passes alone (--inference). */
#ifndef PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_H
#define PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_H

#include <stdio.h>

#include "workloads/command/beside_jobs.h"
#include "workloads/command/explain_program_report.h"
#include "workloads/command/job_options.h"
#include "workloads/command/straggler_options.h"

typedef struct pl_program_request {
  const char *program_path, *tree_path, *strategy, *trace_path; /* one of the first three */
  const char *trace_microbatches; /* of the trace only these; NULL: all (workloads/command/trace_window.h) */
  const char *command;            /* as given, for the header of the trace */
  const char *svg_path;           /* NULL: no drawing */
  bool force, json, digest;
  FILE *stream;   /* where JSON goes; NULL: stdout */
  bool inference; /* the forward pass alone */
  pl_straggler_options *stragglers;
  pl_beside_options *beside;              /* other jobs on the fabric, of a tree; given back at the end; NULL: none */
  const pl_explain_program_view *explain; /* also where each second goes; NULL: nobody asks */
} pl_program_request;

/* What options say that programs do not know yet; `what` is simulated as one ("an ONNX file"). */
pl_code pl_program_options_check(const pl_job_options *options, const char *what, pl_error *error);
/* Reads, checks, simulates and prints. What a program says itself (model, batch, strategy) must not be given; of a tree
 * model and batch must. */
pl_code pl_simulate_program_command(pl_job_options *options, const pl_program_request *request, pl_error *error);

#endif
