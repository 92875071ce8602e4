/* See core/result.h. */
#include "core/result.h"

#include <stddef.h>
#include <string.h>

#define ENTRY(type, field, unit, description)                                                                          \
  {#field, unit, description, PL_COLUMN_##type, offsetof(pl_result_row, field), sizeof(pl_column_##type)},

const pl_column_info pl_result_columns[] = {
    PL_RESULT_COLUMNS(ENTRY) ENTRY(i32, status, "1", "0 pending, 1 done, 2 does not fit in memory, 3 failed")};

const uint32_t pl_result_n_columns = sizeof pl_result_columns / sizeof pl_result_columns[0];

const char *const pl_result_status_names[] = {"pending", "done", "oom", "failed", NULL};

const pl_column_info *pl_result_column(const char *name) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++)
    if (strcmp(pl_result_columns[c].name, name) == 0) return &pl_result_columns[c];
  return NULL;
}
