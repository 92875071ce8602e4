/* See validation/measured.h. */
#include "validation/measured.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/printable.h"

static const double largest = 1e15;

/* A column of the schema and where it goes. */
typedef struct field {
  const char *name, *alias;
  size_t offset;
  double lowest, absent; /* counts */
  enum { TEXT, COUNT, NUMBER } type;
} field;

static const field fields[] = {
#define PL_MEASURED_TEXT(column) {.name = #column, .offset = offsetof(pl_measured_row, column), .type = TEXT},
#define PL_MEASURED_COUNT(column, from, none)                                                                          \
  {.name = #column, .offset = offsetof(pl_measured_row, column), .lowest = from, .absent = none, .type = COUNT},
#define PL_MEASURED_NUMBER(column, other)                                                                              \
  {.name = #column, .alias = other, .offset = offsetof(pl_measured_row, column), .type = NUMBER},
    PL_MEASURED_TEXTS(PL_MEASURED_TEXT) PL_MEASURED_COUNTS(PL_MEASURED_COUNT) PL_MEASURED_NUMBERS(PL_MEASURED_NUMBER)};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* Without these no run can be told from another. */
static const char *const needed[] = {"model",  "n_layers", "hidden", "n_heads", "seq_len", "gpu",
                                     "n_gpus", "tp",       "pp",     "dp",      "gbs"};
/* One of these: what is compared. */
static const char *const measurements[] = {"step_time_s",          "iter_time_s", "iter_time_derived_s",
                                           "tokens_per_s_per_gpu", "status",      "measured_rank"};

static pl_code check_columns(const pl_csv *csv, pl_error *error) {
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (pl_csv_column(csv, needed[i]) == PL_CSV_NO_COLUMN)
      return pl_fail(error, PL_BAD_INPUT, "%s: no column '%s'; validation/README.md lists the columns", csv->name,
                     needed[i]);
  for (size_t i = 0; i < sizeof measurements / sizeof measurements[0]; i++)
    if (pl_csv_column(csv, measurements[i]) != PL_CSV_NO_COLUMN) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: nothing measured: no column 'step_time_s', 'tokens_per_s_per_gpu', 'measured_rank' or 'status'",
                 csv->name);
}

/* How tables write that a cell says nothing (pandas reads them so); a dash is one of LaTeX's habits. */
static bool says_nothing(const char *text) {
  static const char *const words[] = {"", "nan", "na", "n/a", "none", "null", "-", NULL};
  for (int i = 0; words[i] != NULL; i++)
    if (strcasecmp(text, words[i]) == 0) return true;
  return false;
}

/* Flags of other tools are words. */
static bool is_flag(const char *text, double *value) {
  bool on = strcasecmp(text, "true") == 0, off = strcasecmp(text, "false") == 0;
  if (on || off) *value = on;
  return on || off;
}

static pl_code read_count(const pl_csv *csv, uint32_t row, uint32_t column, const field *f, int64_t *count,
                          pl_error *error) {
  bool given = true;
  double value = f->absent;
  const char *text = pl_csv_cell(csv, row, column);
  if (says_nothing(text)) {
    given = false;
  } else if (strcmp(f->name, "sp") != 0 || !is_flag(text, &value)) {
    PL_TRY(pl_csv_number(csv, row, column, &given, &value, error));
  }
  if (given && (value < f->lowest || value > largest || value != floor(value)))
    return pl_csv_fail(csv, row, error, "column '%s': %s must be a whole number from %g", f->name, text, f->lowest);
  *count = (int64_t)value;
  return PL_OK;
}

static pl_code read_number(const pl_csv *csv, uint32_t row, uint32_t column, double *number, pl_error *error) {
  bool given;
  if (says_nothing(pl_csv_cell(csv, row, column))) return PL_OK;
  PL_TRY(pl_csv_number(csv, row, column, &given, number, error));
  if (given && !(*number > 0 && *number < largest))
    return pl_csv_fail(csv, row, error, "column '%s': %s must be positive", csv->header[column],
                       pl_csv_cell(csv, row, column));
  return PL_OK;
}

static pl_code read_field(const pl_csv *csv, uint32_t row, const field *f, const uint32_t columns[2], pl_arena *arena,
                          pl_measured_row *into, pl_error *error) {
  void *place = (char *)into + f->offset;
  switch (f->type) {
  case TEXT:
    *(const char **)place = pl_printable_name(pl_csv_cell(csv, row, columns[0]), arena);
    if (*(const char **)place == NULL) return pl_fail_memory(error, csv->name);
    /* "none" is an answer to some of them. */
    if (strcasecmp(pl_csv_cell(csv, row, columns[0]), "nan") == 0) *(const char **)place = "";
    return PL_OK;
  case COUNT:
    return read_count(csv, row, columns[0], f, place, error);
  case NUMBER:
    break;
  }
  double *number = place;
  *number = NAN;
  PL_TRY(read_number(csv, row, columns[0], number, error));
  return isnan(*number) ? read_number(csv, row, columns[1], number, error) : PL_OK;
}

pl_code pl_measured_read(const pl_csv *csv, pl_arena *arena, pl_measured *measured, pl_error *error) {
  *measured = (pl_measured){.n_rows = csv->n_rows};
  PL_TRY(check_columns(csv, error));
  if (csv->n_rows == 0) return pl_fail(error, PL_BAD_INPUT, "%s: has a header and no rows", csv->name);
  measured->rows = PL_TAKE(arena, pl_measured_row, csv->n_rows);
  if (measured->rows == NULL) return pl_fail_memory(error, csv->name);
  for (size_t i = 0; i < N_FIELDS; i++) {
    const field *f = &fields[i];
    uint32_t columns[2] = {pl_csv_column(csv, f->name),
                           f->alias != NULL ? pl_csv_column(csv, f->alias) : PL_CSV_NO_COLUMN};
    for (uint32_t row = 0; row < csv->n_rows; row++)
      PL_TRY(read_field(csv, row, f, columns, arena, &measured->rows[row], error));
  }
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    measured->rows[row].file = csv->name;
    measured->rows[row].line = csv->lines[row];
  }
  return PL_OK;
}

pl_code pl_measured_load(const char *path, pl_arena *arena, pl_measured *measured, pl_error *error) {
  pl_csv csv;
  PL_TRY(pl_csv_load(path, arena, &csv, error));
  return pl_measured_read(&csv, arena, measured, error);
}

double pl_measured_step_s(const pl_measured_row *row) {
  if (!isnan(row->step_time_s)) return row->step_time_s;
  if (!isnan(row->iter_time_derived_s)) return row->iter_time_derived_s;
  return (double)row->gbs * (double)row->seq_len / (row->tokens_per_s_per_gpu * (double)row->n_gpus);
}

bool pl_measured_crashed(const pl_measured_row *row) {
  return row->status[0] != '\0' && strcasecmp(row->status, "ok") != 0;
}
