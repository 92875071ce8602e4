/* See search/results/program_columns.h. */
#include "search/results/program_columns.h"

#include <stdio.h>
#include <string.h>

void pl_program_columns_fill(const char *names, pl_program_columns *columns) {
  *columns = (pl_program_columns){.n = 1};
  columns->at[0] = (pl_column_info){.name = PL_PROGRAM_REASON,
                                    .unit = "",
                                    .description = "why the candidate could not be simulated; empty: it could",
                                    .type = PL_COLUMN_text,
                                    .offset = offsetof(pl_result_row, program.reason),
                                    .size = sizeof(pl_column_text256)};
  for (uint32_t i = 0; i < PL_RESULT_CHOICES_MAX && names[0] != '\0'; i++) {
    size_t length = strcspn(names, ",");
    int shown = length < PL_CHOICE_NAME_BYTES ? (int)length : PL_CHOICE_NAME_BYTES - 1;
    snprintf(columns->names[i], sizeof columns->names[i], "choice_%.*s", shown, names);
    columns->at[columns->n++] =
        (pl_column_info){.name = columns->names[i],
                         .unit = "",
                         .description = "what was taken of the choice of this name in the strategy space",
                         .type = PL_COLUMN_text,
                         .offset = (uint32_t)(offsetof(pl_result_row, program.choices) + i * sizeof(pl_column_text48)),
                         .size = sizeof(pl_column_text48)};
    names += length + (names[length] == ',');
  }
}
