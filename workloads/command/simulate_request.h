/* What `simulate` is asked for: its options, and what of them goes together. */
#ifndef PL_WORKLOADS_SIMULATE_REQUEST_H
#define PL_WORKLOADS_SIMULATE_REQUEST_H

#include <argp.h>

#include "workloads/command/beside_jobs.h"
#include "workloads/command/job_options.h"
#include "workloads/command/simulate_vary.h"
#include "workloads/command/straggler_options.h"
#include "workloads/command/training_cost.h"
#include "workloads/formats/export.h"

typedef struct pl_simulate_request {
  pl_job_options job;
  const char *strategy, *trace_path, *microbatches, *trace_ops, *program_path, *launch_path, *svg_path;
  pl_export_format format; /* of trace_path: a file, or a folder */
  pl_training_cost cost;
  pl_straggler_options stragglers;
  pl_beside_options beside;
  bool force, json, print_program, digest, sensitivity, inference, as_program;
  const char *vary[PL_VARY_AXES_MAX];
  uint32_t n_vary; /* given; may exceed the room, which pl_vary_grid_parse refuses */
} pl_simulate_request;

/* Its input is a pl_simulate_request, whose job is made ready (pl_job_options_init). */
extern const struct argp pl_simulate_request_argp;

/* --trace-format other than the timeline: a format of recordings. PL_BAD_INPUT where it cannot be. */
pl_code pl_simulate_request_check_export(const pl_simulate_request *options, pl_error *error);
pl_code pl_simulate_request_check_executor(const pl_simulate_request *options, pl_error *error);
/* Runs of the one job, and drawings of it, have no neighbours. */
pl_code pl_simulate_request_check_beside(const pl_simulate_request *options, pl_error *error);

bool pl_simulate_request_is_of_tree(const pl_simulate_request *options);
/* Whether what is simulated is a program; why, for messages. */
bool pl_simulate_request_is_by_program(const pl_simulate_request *options);
const char *pl_simulate_request_why_by_program(const pl_simulate_request *options);

#endif
