/* The columns of programs in results files: why a candidate was refused, and, of a strategy space, what was chosen, a
 * column per choice, named "choice_" and the choice's name. A file has them or not; its attribute `choices` lists the
 * names. */
#ifndef PL_SEARCH_PROGRAM_COLUMNS_H
#define PL_SEARCH_PROGRAM_COLUMNS_H

#include "core/graph/result.h"

#define PL_PROGRAM_REASON  "reason"  /* the first of these columns */
#define PL_PROGRAM_CHOICES "choices" /* attribute of the root group: names with commas between them, or "" */

enum { PL_CHOICE_NAME_BYTES = 32, PL_CHOICE_COLUMN_BYTES = 8 + PL_CHOICE_NAME_BYTES };

/* Stays where it was filled: `at` points into it. */
typedef struct pl_program_columns {
  uint32_t n; /* 0: none; else the reason and the choices */
  pl_column_info at[1 + PL_RESULT_CHOICES_MAX];
  char names[PL_RESULT_CHOICES_MAX][PL_CHOICE_COLUMN_BYTES];
} pl_program_columns;

/* `names`: with commas between them, "" for none; longer ones and more than there is room for are cut off. */
void pl_program_columns_fill(const char *names, pl_program_columns *columns);

#endif
