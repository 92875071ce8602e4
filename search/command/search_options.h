/* The command line of `paceline search`. */
#ifndef PL_SEARCH_SEARCH_OPTIONS_H
#define PL_SEARCH_SEARCH_OPTIONS_H

#include "search/command/search_sizes.h"
#include "search/command/search_table.h"
#include "search/method/method.h"
#include "search/run/run_options.h"
#include "search/space/space_options.h"
#include "workloads/command/job_options.h"
#include "workloads/command/training_cost.h"

typedef struct pl_search_options {
  pl_job_options job;
  pl_space_options space;
  pl_run_options run; /* output NULL: no file */
  const pl_method *method;
  uint64_t budget; /* simulations; UINT64_MAX = none */
  double budget_s; /* INFINITY = none */
  double gap;
  int64_t n_top, seed;
  bool allow_idle, is_table, method_is_given;
  pl_search_table table;              /* --compare; else the one method */
  const char *vary[PL_VARY_AXES_MAX]; /* --vary, read once there is an arena */
  uint32_t n_vary;                    /* given; more than there is room for are refused when they are read */
  pl_training_cost cost;
  pl_search_sizes sizes; /* --gpus and --deadline; n 0: the platform as it is */
  pl_error error;        /* first bad option */
} pl_search_options;

/* Of what is simulated as programs ("an ONNX file"): methods without bounds and costs, the first of which is the
 * default. */
pl_code pl_search_options_for_programs(pl_search_options *options, const char *what, pl_error *error);
/* As pl_sweep_options_parse. */
pl_code pl_search_options_parse(int argc, char **argv, bool silent, pl_search_options *options, pl_error *error);

#endif
