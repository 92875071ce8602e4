/* See validation/fit/fit_table.h. */
#include "validation/fit/fit_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/order.h"

pl_code pl_fit_column(const pl_csv *csv, const char *name, uint32_t *column, pl_error *error) {
  *column = pl_csv_column(csv, name);
  if (*column != PL_CSV_NO_COLUMN) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: there is no column '%s'", csv->name, name);
}

pl_code pl_fit_number(const pl_csv *csv, uint32_t row, uint32_t column, double lowest, double *value, pl_error *error) {
  bool given = false;
  PL_TRY(pl_csv_number(csv, row, column, &given, value, error));
  if (!given) return pl_csv_fail(csv, row, error, "column '%s' is empty", csv->header[column]);
  if (*value >= lowest) return PL_OK;
  return pl_csv_fail(csv, row, error, "column '%s': %g is less than %g", csv->header[column], *value, lowest);
}

pl_code pl_fit_choice(const pl_csv *csv, uint32_t row, uint32_t column, const char *const *names, uint32_t n,
                      uint32_t *choice, pl_error *error) {
  const char *cell = pl_csv_cell(csv, row, column);
  for (*choice = 0; *choice < n; ++*choice)
    if (strcmp(names[*choice], cell) == 0) return PL_OK;
  return pl_csv_fail(csv, row, error, "column '%s': '%.32s' is none of %s, %s ...", csv->header[column], cell, names[0],
                     names[1]);
}

/* FNV-1a, the zero behind each cell included. */
bool pl_fit_holds_out(const pl_csv *csv, uint32_t row, uint32_t time_column) {
  uint64_t hash = 14695981039346656037u;
  for (uint32_t column = 0; column < csv->n_columns; column++) {
    if (column == time_column) continue;
    const char *cell = pl_csv_cell(csv, row, column);
    for (size_t i = 0; i <= strlen(cell); i++)
      hash = (hash ^ (uint8_t)cell[i]) * 1099511628211u;
  }
  return (hash >> 32) % 5 == 0;
}

pl_fit_error pl_fit_error_of(double *errors, uint32_t n) {
  if (n == 0) return (pl_fit_error){0};
  qsort(errors, n, sizeof *errors, pl_by_double);
  double median = n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
  return (pl_fit_error){.n_rows = n, .median = median, .p90 = errors[(9 * n + 9) / 10 - 1]};
}

pl_code pl_fit_no_rows(const pl_csv *csv, const char *device, pl_error *error) {
  uint32_t column = pl_csv_column(csv, "device");
  const char *first = csv->n_rows > 0 ? pl_csv_cell(csv, 0, column) : "nothing";
  return pl_fail(error, PL_BAD_INPUT, "%s: no row is about %s (the first is about %s)", csv->name, device, first);
}

double pl_fit_rounded(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", value);
  return strtod(text, NULL);
}

void pl_fit_print_error(FILE *out, const char *what, pl_fit_error e) {
  if (e.n_rows > 0)
    fprintf(out, "  %s: %u rows, median %.1f %%, 90th percentile %.1f %%\n", what, e.n_rows, 100 * e.median,
            100 * e.p90);
}

pl_held_out pl_fit_held_out(pl_fit_error e) {
  return (pl_held_out){.n = e.n_rows, .median_error = pl_fit_rounded(e.median), .p90_error = pl_fit_rounded(e.p90)};
}

void pl_fit_put_us(pl_json *json, const char *key, double time_s) {
  char text[32];
  snprintf(text, sizeof text, "%.3gus", 1e6 * time_s);
  pl_json_put_string(json, key, text);
}

void pl_fit_put_held_out(pl_json *json, const char *key, const pl_held_out *held_out) {
  if (held_out->n == 0) return;
  pl_json_key(json, key);
  pl_json_open_object(json);
  pl_json_put_integer(json, "calls", held_out->n);
  pl_json_put_number(json, "median_error", held_out->median_error);
  pl_json_put_number(json, "p90_error", held_out->p90_error);
  pl_json_close_object(json);
}
