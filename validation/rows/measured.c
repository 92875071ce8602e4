/* See validation/rows/measured.h. */
#include "validation/rows/measured.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/printable.h"
#include "core/base/words.h"

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

_Static_assert(N_FIELDS <= 64, "one bit of pl_measured.columns each");

/* Without these no run can be told from another. */
static const struct {
  const char *name, *unless; /* the column that says it too */
} needed[] = {{"model", "model_file"},
              {"n_layers", "model_file"},
              {"hidden", "model_file"},
              {"n_heads", "model_file"},
              {"seq_len", NULL},
              {"gpu", NULL},
              {"n_gpus", NULL},
              {"tp", "strategy"},
              {"pp", "strategy"},
              {"dp", "strategy"},
              {"gbs", NULL}};
/* One of these: what is compared. */
static const char *const measurements[] = {"step_time_s",          "iter_time_s", "iter_time_derived_s",
                                           "tokens_per_s_per_gpu", "status",      "measured_rank"};

/* ---- columns ---- */

/* A list that grows in a message. */
static void append(char *text, size_t size, const char *name, const char *meant) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%.40s%s%s%s", used > 0 ? ", " : "", name, meant != NULL ? " (" : "",
           meant != NULL ? meant : "", meant != NULL ? "?)" : "");
}

static bool is_field(const char *name, size_t length) {
  for (size_t i = 0; i < N_FIELDS; i++) {
    const char *const names[] = {fields[i].name, fields[i].alias};
    for (int n = 0; n < 2; n++)
      if (names[n] != NULL && strlen(names[n]) == length && strncasecmp(name, names[n], length) == 0) return true;
  }
  return false;
}

/* A header without the blanks around it. */
static const char *trim(const char *header, size_t *length) {
  header += strspn(header, " ");
  *length = strlen(header);
  while (*length > 0 && header[*length - 1] == ' ')
    --*length;
  return header;
}

/* A field, or a column that is kept for the record. */
static bool is_read(const char *header) {
  static const char *const records[] = {"origin_file", "mfu_pct_published"};
  size_t length;
  header = trim(header, &length);
  for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
    if (strlen(records[i]) == length && strncasecmp(records[i], header, length) == 0) return true;
  return is_field(header, length);
}

/* The column that was meant by one that is missing, among those that are not read; NULL: none is near. */
static const char *find_meant(const pl_csv *csv, const char *name) {
  const char *const names[] = {name, NULL};
  for (uint32_t i = 0; i < csv->n_columns; i++)
    if (!is_read(csv->header[i]) && pl_words_nearest(names, csv->header[i]) == 0) return csv->header[i];
  return NULL;
}

static bool has_column(const pl_csv *csv, const char *name) {
  return pl_csv_column_of_any_case(csv, name) != PL_CSV_NO_COLUMN;
}

static pl_code check_columns(const pl_csv *csv, pl_error *error) {
  char missing[PL_ERROR_MESSAGE_BYTES / 2] = "";
  int n_missing = 0;
  bool has_programs = has_column(csv, "program"); /* which say all of that */
  for (size_t i = 0; i < sizeof needed / sizeof needed[0] && !has_programs; i++) {
    if (has_column(csv, needed[i].name) || (needed[i].unless != NULL && has_column(csv, needed[i].unless))) continue;
    char quoted[64];
    const char *meant = find_meant(csv, needed[i].name);
    snprintf(quoted, sizeof quoted, meant != NULL ? "is it '%.40s'" : "%.40s", meant != NULL ? meant : "");
    char name[64];
    snprintf(name, sizeof name, "'%s'", needed[i].name);
    append(missing, sizeof missing, name, meant != NULL ? quoted : NULL);
    n_missing++;
  }
  if (n_missing > 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: no column%s %s; validation/README.md lists the columns", csv->name,
                   n_missing > 1 ? "s" : "", missing);
  for (size_t i = 0; i < sizeof measurements / sizeof measurements[0]; i++)
    if (pl_csv_column_of_any_case(csv, measurements[i]) != PL_CSV_NO_COLUMN) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: nothing measured: no column 'step_time_s', 'tokens_per_s_per_gpu', 'measured_rank' or 'status'",
                 csv->name);
}

static pl_code check_doubles(const pl_csv *csv, pl_error *error) {
  for (uint32_t i = 0; i < csv->n_columns; i++) {
    size_t length, other;
    const char *name = trim(csv->header[i], &length);
    for (uint32_t j = 0; j < i && is_field(name, length); j++) {
      const char *earlier = trim(csv->header[j], &other);
      if (other == length && strncasecmp(earlier, name, length) == 0)
        return pl_fail(error, PL_BAD_INPUT, "%s: columns %u and %u are both '%.*s'; leave one out", csv->name, j + 1,
                       i + 1, (int)length, name);
    }
  }
  return PL_OK;
}

/* Names of the columns that are not read, each with the one that it may have been meant to be. */
static pl_code list_ignored(const pl_csv *csv, uint64_t columns, pl_arena *arena, const char **ignored,
                            pl_error *error) {
  const char *absent[N_FIELDS + 1] = {NULL};
  char text[PL_ERROR_MESSAGE_BYTES] = "";
  size_t n = 0;
  for (size_t i = 0; i < N_FIELDS; i++)
    if ((columns >> i & 1) == 0) absent[n++] = fields[i].name;
  for (uint32_t i = 0; i < csv->n_columns; i++) {
    if (is_read(csv->header[i])) continue;
    int meant = pl_words_nearest(absent, csv->header[i]);
    append(text, sizeof text, csv->header[i], meant >= 0 ? absent[meant] : NULL);
  }
  *ignored = pl_printable_strdup(arena, text);
  return *ignored != NULL ? PL_OK : pl_fail_memory(error, csv->name);
}

/* ---- cells ---- */

/* How tables write that a cell says nothing (pandas reads them so); a dash is one of LaTeX's habits. */
static bool says_nothing(const char *text) {
  static const char *const words[] = {"", "nan", "na", "n/a", "none", "null", "-", NULL};
  for (int i = 0; words[i] != NULL; i++)
    if (strcasecmp(text, words[i]) == 0) return true;
  return false;
}

/* Flags of other tools are words. */
static bool is_flag(const char *text, double *value) {
  bool on = strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0;
  bool off = strcasecmp(text, "false") == 0 || strcasecmp(text, "no") == 0 || strcasecmp(text, "off") == 0;
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
    pl_code code = pl_csv_number(csv, row, column, &given, &value, error);
    if (code != PL_OK) {
      *count = (int64_t)f->absent;
      return code;
    }
  }
  if (given && (value < f->lowest || value > largest || value != floor(value))) {
    *count = (int64_t)f->absent;
    return pl_csv_fail(csv, row, error, "column '%s': %.60s must be a whole number from %g", f->name, text, f->lowest);
  }
  *count = (int64_t)value;
  return PL_OK;
}

static pl_code read_number(const pl_csv *csv, uint32_t row, uint32_t column, double *number, pl_error *error) {
  bool given;
  if (says_nothing(pl_csv_cell(csv, row, column))) return PL_OK;
  PL_TRY(pl_csv_number(csv, row, column, &given, number, error));
  if (!given || (*number > 0 && *number < largest)) return PL_OK;
  double value = *number;
  *number = NAN;
  return pl_csv_fail(csv, row, error, "column '%s': %.60s must be positive%s", csv->header[column],
                     pl_csv_cell(csv, row, column), value >= largest ? " and less than 1e15" : "");
}

static pl_code read_field(const pl_csv *csv, uint32_t row, const field *f, const uint32_t columns[2], pl_arena *arena,
                          pl_measured_row *into, pl_error *error) {
  void *place = (char *)into + f->offset;
  switch (f->type) {
  case TEXT: {
    *(const char **)place = pl_printable_name(pl_csv_cell(csv, row, columns[0]), arena);
    if (*(const char **)place == NULL) return pl_fail_memory(error, csv->name);
    /* "none" is an answer to some of them, and NA may be a name. */
    const char *text = pl_csv_cell(csv, row, columns[0]);
    if (says_nothing(text) && strcasecmp(text, "none") != 0 && strcasecmp(text, "na") != 0) *(const char **)place = "";
    return PL_OK;
  }
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

/* What a strategy says of degrees, where columns are left empty. */
static void spread_strategy(pl_measured_row *row) {
  const struct {
    const char *key;
    int64_t *count, absent;
  } counts[] = {{"pp", &row->pp, 0},  {"dp", &row->dp, 0},           {"tmp", &row->tp, 0},  {"cp", &row->cp, 0},
                {"ep", &row->ep, 0},  {"etp", &row->etp, 0},         {"vpp", &row->vpp, 0}, {"mbs", &row->mbs, 0},
                {"sp", &row->sp, -1}, {"zero", &row->zero_stage, -1}};
  for (const char *at = row->strategy; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
    size_t length = strcspn(at, "=,");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      if (strlen(counts[i].key) != length || strncmp(at, counts[i].key, length) != 0 || at[length] != '=') continue;
      char *end;
      errno = 0;
      long long value = strtoll(at + length + 1, &end, 10);
      if (errno != 0 || (*end != ',' && *end != '\0')) continue; /* which reading the strategy will say */
      if (*counts[i].count == counts[i].absent) *counts[i].count = value;
    }
  }
}

/* A table may have the column instead of those of degrees, but not for some of its rows alone. */
static void miss_strategy(pl_measured_row *row) {
  if (row->strategy[0] != '\0' || row->program[0] != '\0' || row->defect != NULL) return;
  if (!pl_measured_has_column(row, "strategy") || pl_measured_has_column(row, "tp")) return;
  row->defect = "column 'strategy': is empty, and there is no column 'tp'";
}

/* Keeps what is wrong with the first bad cell of a row, without the file and the line. */
static pl_code keep_defect(const pl_csv *csv, uint32_t index, pl_code code, const pl_error *why, pl_arena *arena,
                           pl_measured_row *row, pl_error *error) {
  if (code == PL_OK) return PL_OK;
  if (code != PL_BAD_INPUT) return pl_fail(error, code, "%s", why->message);
  char place[PL_ERROR_MESSAGE_BYTES];
  int length = snprintf(place, sizeof place, "%s:%u: ", csv->name, csv->lines[index]);
  bool is_placed = strncmp(why->message, place, (size_t)length) == 0;
  if (row->defect == NULL) row->defect = pl_arena_strdup(arena, why->message + (is_placed ? length : 0));
  return row->defect != NULL ? PL_OK : pl_fail_memory(error, csv->name);
}

static pl_code read_column(const pl_csv *csv, const field *f, pl_arena *arena, pl_measured *measured, pl_error *error) {
  uint32_t columns[2] = {pl_csv_column_of_any_case(csv, f->name),
                         f->alias != NULL ? pl_csv_column_of_any_case(csv, f->alias) : PL_CSV_NO_COLUMN};
  if (columns[0] != PL_CSV_NO_COLUMN || columns[1] != PL_CSV_NO_COLUMN)
    measured->columns |= UINT64_C(1) << (f - fields);
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    pl_error why = PL_ERROR_INIT;
    pl_code code = read_field(csv, row, f, columns, arena, &measured->rows[row], &why);
    PL_TRY(keep_defect(csv, row, code, &why, arena, &measured->rows[row], error));
  }
  return PL_OK;
}

pl_code pl_measured_read(const pl_csv *csv, pl_arena *arena, pl_measured *measured, pl_error *error) {
  *measured = (pl_measured){.n_rows = csv->n_rows};
  PL_TRY(check_columns(csv, error));
  PL_TRY(check_doubles(csv, error));
  if (csv->n_rows == 0) return pl_fail(error, PL_BAD_INPUT, "%s: has a header and no rows", csv->name);
  measured->rows = PL_TAKE(arena, pl_measured_row, csv->n_rows);
  if (measured->rows == NULL) return pl_fail_memory(error, csv->name);
  for (size_t i = 0; i < N_FIELDS; i++)
    PL_TRY(read_column(csv, &fields[i], arena, measured, error));
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    measured->rows[row].file = csv->name;
    measured->rows[row].line = csv->lines[row];
    measured->rows[row].table = measured;
    if (measured->rows[row].model[0] == '\0') measured->rows[row].model = measured->rows[row].model_file;
    spread_strategy(&measured->rows[row]);
    miss_strategy(&measured->rows[row]);
  }
  return list_ignored(csv, measured->columns, arena, &measured->ignored, error);
}

pl_code pl_measured_refuse_defects(const pl_measured *measured, pl_error *error) {
  for (uint32_t i = 0; i < measured->n_rows; i++)
    if (measured->rows[i].defect != NULL)
      return pl_fail(error, PL_BAD_INPUT, "%s:%u: %s", measured->rows[i].file, measured->rows[i].line,
                     measured->rows[i].defect);
  return PL_OK;
}

bool pl_measured_has_column(const pl_measured_row *row, const char *name) {
  for (size_t i = 0; i < N_FIELDS; i++)
    if (strcmp(fields[i].name, name) == 0) return row->table == NULL || (row->table->columns >> i & 1) != 0;
  return false;
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
