/* See core/graph/result.h. */
#include "core/graph/result.h"

#include <stddef.h>
#include <string.h>

#define ENTRY(type, field, unit, description)                                                                          \
  {#field, unit, description, PL_COLUMN_##type, offsetof(pl_result_row, field), sizeof(pl_column_##type)},

#define FEATURE(field, unit, description)                                                                              \
  {#field, unit, description, PL_COLUMN_f64, offsetof(pl_feature_values, field), sizeof(double)},
#define STAGE_FEATURE(field, unit, description)                                                                        \
  {#field, unit, description, PL_COLUMN_f64, PL_FEATURE_##field * sizeof(double), sizeof(double)},

#define SEARCH_ENTRY(type, field, unit, description)                                                                   \
  {#field, unit, description, PL_COLUMN_##type, offsetof(pl_search_values, field), sizeof(pl_column_##type)},

const pl_column_info pl_result_columns[] = {
    PL_RESULT_COLUMNS(ENTRY) ENTRY(i32, status, "1", "0 pending, 1 done, 2 does not fit in memory, 3 failed"){
        "candidate", "1", "index of the candidate in the space", PL_COLUMN_i64, 0, sizeof(int64_t)},
    PL_FEATURE_COLUMNS(FEATURE) PL_SEARCH_COLUMNS(SEARCH_ENTRY)};

const pl_column_list pl_result_column_list = {pl_result_columns, PL_RESULT_N_ALL};

const uint32_t pl_result_n_columns = PL_RESULT_N_COLUMNS;

_Static_assert(sizeof pl_result_columns / sizeof pl_result_columns[0] == PL_RESULT_N_ALL, "the count of columns");

const pl_column_info pl_stage_feature_columns[PL_N_STAGE_FEATURES] = {PL_STAGE_FEATURE_COLUMNS(STAGE_FEATURE)};

const char *const pl_result_status_names[] = {"pending", "done", "oom", "failed", NULL};

const pl_column_info *pl_result_column(const char *name) {
  for (uint32_t c = 0; c < PL_RESULT_N_ALL; c++)
    if (c != PL_RESULT_CANDIDATE && strcmp(pl_result_columns[c].name, name) == 0) return &pl_result_columns[c];
  return NULL;
}

const char *pl_throughput_unit(double samples_per_s, double tokens_per_s) {
  return samples_per_s == tokens_per_s ? "samples/s" : "tokens/s";
}
