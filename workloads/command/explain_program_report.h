/* What `paceline explain` prints of a program (workloads/run/explain_program.h): for people, and as JSON. */
#ifndef PL_WORKLOADS_EXPLAIN_PROGRAM_REPORT_H
#define PL_WORKLOADS_EXPLAIN_PROGRAM_REPORT_H

#include <stdio.h>

#include "workloads/run/explain_program.h"

typedef struct pl_explain_program_view {
  const char *stage; /* of the command line: a list's number, "all"; NULL: the busiest */
  uint32_t top;      /* rows of each table; 0 = all */
} pl_explain_program_view;

/* The lists to show, first and behind the last. PL_BAD_INPUT: there is no such one. */
pl_code pl_explain_program_choose(const pl_explain_program_view *view, const pl_program_explanation *explanation,
                                  uint32_t *first, uint32_t *end, pl_error *error);
void pl_explain_program_print(FILE *stream, const pl_cluster *cluster, const pl_program_explanation *explanation,
                              uint32_t first, uint32_t end, uint32_t top);
/* remains_factor: that the time is multiplied by and no part of it is (workloads/run/site_remains.h). */
void pl_explain_program_json(FILE *stream, const pl_cluster *cluster, const pl_program_explanation *explanation,
                             double remains_factor, uint32_t first, uint32_t end, uint32_t top);

#endif
