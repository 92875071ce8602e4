/* The command line of `paceline sweep`. */
#ifndef PL_SEARCH_SWEEP_OPTIONS_H
#define PL_SEARCH_SWEEP_OPTIONS_H

#include "search/run/run_options.h"
#include "search/space/space_options.h"
#include "workloads/command/job_options.h"

typedef struct pl_sweep_options {
  pl_job_options job;
  pl_space_options space;
  pl_run_options run;
  bool features, skip_oom;
  pl_error error; /* first bad option */
} pl_sweep_options;

/* Parses; --help is printed and ends the process with status 0, without printing when `silent`. What is wrong is in
 * `error`: options and their values first, then what is missing. The options stay where they are from here on. */
pl_code pl_sweep_options_parse(int argc, char **argv, bool silent, pl_sweep_options *options, pl_error *error);

#endif
