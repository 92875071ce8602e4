/* How a command runs, on its command line: where its results go, and what changes none of them. */
#ifndef PL_SEARCH_RUN_OPTIONS_H
#define PL_SEARCH_RUN_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_run_options {
  const char *output;
  int64_t n_threads; /* 0 = not given */
  bool force, resume, progress, quiet, json;
  pl_error *error; /* the command's first bad option */
} pl_run_options;

/* A child parser; its input is a pl_run_options. */
extern const struct argp pl_run_options_argp;
/* What excludes each other. */
pl_code pl_run_options_check(const pl_run_options *options, pl_error *error);
/* "COMMAND ..." with the command line's words but those that cannot change a row (-o, --threads, --force, --resume,
 * --progress, --quiet, --json, --top), so that runs that must give the same bytes record the same text. Call it before
 * the parse, which reorders argv; in `arena`, NULL when out of memory. */
const char *pl_run_options_command(const char *command, int argc, char **argv, pl_arena *arena);
/* The same with all but what says which file it is: -o, --force and --resume. */
const char *pl_run_options_typed(const char *command, int argc, char **argv, pl_arena *arena);
/* The command line that goes on with the results file at `path`, of which `command` is the recorded one, or the one
 * that was typed; NULL when out of memory. */
const char *pl_run_options_again(const char *command, const char *path, pl_arena *arena);

/* Whether this process says how far it is (rank 0 alone does): asked for, or at a terminal; never under --quiet. The
 * same on all ranks. */
bool pl_run_options_progress(const pl_run_options *options);

#endif
