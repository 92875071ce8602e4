/* What `paceline run` writes: a row for `paceline validate`, a table of ops, and a summary. */
#ifndef PL_SEARCH_RUN_REPORT_H
#define PL_SEARCH_RUN_REPORT_H

#include <stdio.h>

#include "core/cluster/cluster.h"
#include "search/run/run_program.h"

typedef struct pl_run_report {
  const char *program_path, *csv_path, *ops_path, *platform_path; /* NULL: not given */
  const pl_ir_module *module;
  const pl_run_program_options *options;
  const pl_run_program_times *times;
  const pl_cluster *cluster; /* what ops are predicted on; NULL: nothing is */
  double predicted_s;        /* of the iteration; NaN: nothing is */
  bool least;                /* the CSV has the least of the iterations, not their median */
} pl_run_report;

/* Name of this machine's processor; "" if the system does not say. In `arena`; NULL: no memory. */
const char *pl_run_processor(pl_arena *arena);
/* A table of one row, by the schema of validation/README.md; paths as seen from the folder of the CSV. */
pl_code pl_run_write_csv(const pl_run_report *report, FILE *stream, pl_arena *arena, pl_error *error);
/* A row for every op and rank that ran it. */
pl_code pl_run_write_ops(const pl_run_report *report, FILE *stream, pl_error *error);
void pl_run_print(const pl_run_report *report);
void pl_run_print_json(const pl_run_report *report);

#endif
