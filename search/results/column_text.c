/* See search/results/column_text.h. Digests are hex text in JSON too: numbers above 2^53 do not survive most readers.
 */
#include "search/results/column_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"

static int number_text(double value, char *text, size_t size) {
  if (isnan(value)) return snprintf(text, size, "%s", "");
  char exact[32];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(exact, sizeof exact, "%.*g", digits, value);
    if (strtod(exact, NULL) == value) break;
  }
  return snprintf(text, size, "%s", exact);
}

static bool is_status(const pl_column_info *column, int32_t value) {
  return strcmp(column->name, "status") == 0 && value >= PL_RESULT_PENDING && value <= PL_RESULT_FAILED;
}

int pl_column_text(const pl_column_info *column, const void *value, char *text, size_t size) {
  int32_t i32;
  int64_t i64;
  uint64_t u64;
  double f64;
  char digest[PL_DIGEST_TEXT_BYTES];
  switch (column->type) {
  case PL_COLUMN_i32:
    memcpy(&i32, value, sizeof i32);
    return is_status(column, i32) ? snprintf(text, size, "%s", pl_result_status_names[i32])
                                  : snprintf(text, size, "%" PRId32, i32);
  case PL_COLUMN_i64:
    memcpy(&i64, value, sizeof i64);
    return snprintf(text, size, "%" PRId64, i64);
  case PL_COLUMN_u64:
    memcpy(&u64, value, sizeof u64);
    return snprintf(text, size, "%s", pl_digest_format(u64, digest));
  case PL_COLUMN_f64:
    memcpy(&f64, value, sizeof f64);
    return number_text(f64, text, size);
  case PL_COLUMN_text:
    break;
  }
  return snprintf(text, size, "%.*s", (int)strnlen(value, column->size), (const char *)value);
}

void pl_column_json(pl_json *json, const pl_column_info *column, const void *value) {
  char text[PL_RESULT_WIDEST_BYTES + 1];
  int32_t i32;
  int64_t i64;
  double f64;
  switch (column->type) {
  case PL_COLUMN_i32:
    memcpy(&i32, value, sizeof i32);
    if (is_status(column, i32)) break;
    pl_json_integer(json, i32);
    return;
  case PL_COLUMN_i64:
    memcpy(&i64, value, sizeof i64);
    pl_json_integer(json, i64);
    return;
  case PL_COLUMN_f64:
    memcpy(&f64, value, sizeof f64);
    pl_json_number(json, f64);
    return;
  case PL_COLUMN_u64:
  case PL_COLUMN_text:
    break;
  }
  pl_column_text(column, value, text, sizeof text);
  pl_json_string(json, text);
}

void pl_row_json(pl_json *json, const pl_result_row *row) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    pl_json_key(json, pl_result_columns[c].name);
    pl_column_json(json, &pl_result_columns[c], (const unsigned char *)row + pl_result_columns[c].offset);
  }
  for (uint32_t c = PL_RESULT_FIRST_SEARCH; row->search != NULL && c < PL_RESULT_N_ALL; c++) {
    const void *value = (const unsigned char *)row->search + pl_result_columns[c].offset;
    pl_json_key(json, pl_result_columns[c].name);
    if (value == &row->search->strategy)
      pl_json_string(json, pl_search_strategy(row->search));
    else
      pl_column_json(json, &pl_result_columns[c], value);
  }
}

const char *pl_row_figures(const pl_result_row *row, char text[PL_ROW_FIGURES_BYTES]) {
  char time[PL_UNIT_TEXT_BYTES], tokens[PL_UNIT_TEXT_BYTES], memory[PL_UNIT_TEXT_BYTES];
  bool known = row->peak_mem_bytes >= 0;
  snprintf(text, PL_ROW_FIGURES_BYTES, "%s, %s %s, MFU %.1f %%, %s%s", pl_format_time(row->iter_time_s, time),
           pl_format_figure(row->tokens_per_s, tokens), pl_throughput_unit(row->samples_per_s, row->tokens_per_s),
           100 * row->mfu, known ? "peak " : "memory not looked at",
           known ? pl_format_bytes((double)row->peak_mem_bytes, memory) : "");
  return text;
}
