/* The command line of `paceline sweep`. */
#ifndef PL_SEARCH_SWEEP_OPTIONS_H
#define PL_SEARCH_SWEEP_OPTIONS_H

#include "search/space.h"
#include "workloads/job_options.h"

typedef struct pl_sweep_options {
  pl_job_options job;
  pl_space_choices choices;
  const char *output;
  int64_t n_threads; /* 0 = not given */
  bool features, force, resume, progress, quiet, json;
  pl_error error; /* first bad option */
} pl_sweep_options;

/* Parses; --help is printed and ends the process with status 0, without printing when `silent`. What is wrong is in
 * `error`: options and their values first, then what is missing. */
pl_code pl_sweep_options_parse(int argc, char **argv, bool silent, pl_sweep_options *options, pl_error *error);
/* The command line without what cannot change a row (-o, --threads, --force, --resume, --progress, --quiet, --json), so
 * that runs that must give the same bytes record the same text. Call it before the parse, which reorders argv; in
 * `arena`, NULL when out of memory. */
const char *pl_sweep_options_command(int argc, char **argv, pl_arena *arena);

#endif
