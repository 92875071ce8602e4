/* Rows that name the program that ran (column `program`, a .plir file) and the platform it ran on: nothing has to be
 * made of words. Both are names of files as seen from the folder of the table, or names that come with Paceline. */
#ifndef PL_VALIDATION_PROGRAM_ROW_H
#define PL_VALIDATION_PROGRAM_ROW_H

#include "validation/rows/case.h"

pl_code pl_program_row_express(pl_case *c, const pl_case_options *options, pl_arena *arena, pl_error *error);
/* Collectives cost what the profile beside the row's platform says, unless `rules` name one. */
pl_code pl_program_row_simulate(pl_case *c, const pl_cluster *cluster, const pl_case_options *rules,
                                const pl_simulate_options *options, pl_arena *arena, pl_error *error);

#endif
