/* `paceline simulate --program FILE`: a program as it is written, on a platform. */
#ifndef PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_H
#define PL_WORKLOADS_COMMAND_SIMULATE_PROGRAM_H

#include "workloads/command/job_options.h"

typedef struct pl_program_request {
  const char *program_path, *trace_path;
  bool force, json, digest;
} pl_program_request;

/* Reads, checks, simulates and prints. What a program says itself (model, batch, strategy) must not be given. */
pl_code pl_simulate_program_command(pl_job_options *options, const pl_program_request *request, pl_error *error);

#endif
