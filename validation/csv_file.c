/* See validation/csv_file.h. The text is read whole and cut up in place: a table of a million rows is then one block of
 * text and one of offsets, and a cell costs no allocation. */
#include "validation/csv_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const size_t TEXT_BYTES_MAX = (size_t)1 << 30;

/* ---- cutting up ---- */

typedef struct cutter {
  const char *path;
  char *at, *end; /* what is not read yet; *end is NUL */
  uint32_t line;
  pl_error *error;
} cutter;

static pl_code fail_line(const cutter *c, uint32_t line, const char *what) {
  return pl_fail(c->error, PL_BAD_INPUT, "%s:%u: %s", c->path, line, what);
}

/* Eats one line break; false where there is none. */
static bool eat_break(cutter *c) {
  if (c->at < c->end && c->at[0] == '\r' && c->at + 1 < c->end && c->at[1] == '\n') c->at++;
  if (c->at == c->end || c->at[0] != '\n') return false;
  c->at++;
  c->line++;
  return true;
}

static void skip_blank_lines(cutter *c) {
  while (eat_break(c)) {
  }
}

static void skip_remarks(cutter *c) {
  skip_blank_lines(c);
  while (c->at < c->end && c->at[0] == '#') {
    c->at += strcspn(c->at, "\n");
    skip_blank_lines(c);
  }
}

/* A quoted field, c->at behind its opening quote; leaves c->at behind the closing one. */
static pl_code cut_quoted(cutter *c, char **to) {
  uint32_t first_line = c->line;
  for (; c->at < c->end; c->at++) {
    if (c->at[0] == '"' && c->at[1] == '"')
      c->at++;
    else if (c->at[0] == '"')
      break;
    c->line += c->at[0] == '\n';
    *(*to)++ = c->at[0];
  }
  if (c->at == c->end) return fail_line(c, first_line, "a quoted field that begins here is never closed");
  c->at++;
  bool is_break = c->at[0] == '\n' || (c->at[0] == '\r' && c->at[1] == '\n');
  if (c->at == c->end || c->at[0] == ',' || is_break) return PL_OK;
  return fail_line(c, c->line, "text behind a closing quote (a quote inside a quoted field is written twice)");
}

/* One field into its own place, NUL-terminated. *more: a comma followed. */
static pl_code cut_field(cutter *c, char **field, bool *more) {
  char *to = c->at;
  *field = to;
  if (c->at < c->end && c->at[0] == '"') {
    c->at++;
    PL_TRY(cut_quoted(c, &to));
  } else {
    to += strcspn(to, ",\n");
    c->at = to;
    if (to > *field && c->at < c->end && c->at[0] == '\n' && to[-1] == '\r') to--;
  }
  *more = c->at < c->end && c->at[0] == ',';
  if (*more)
    c->at++;
  else
    (void)eat_break(c);
  *to = '\0';
  return PL_OK;
}

/* ---- the table ---- */

static pl_code cut_header(cutter *c, pl_arena *arena, pl_csv_file *csv) {
  skip_remarks(c);
  if (c->at == c->end) return pl_fail(c->error, PL_BAD_INPUT, "%s: empty: expected a line of column names", c->path);
  uint32_t line = c->line, most = 1;
  for (const char *s = c->at; s < c->end && *s != '\n'; s++)
    most += *s == ',';
  csv->names = PL_TAKE(arena, const char *, most);
  if (csv->names == NULL) return pl_fail_memory(c->error, "the columns of a CSV file");
  for (bool more = true; more && csv->n_columns < most; csv->n_columns++) {
    char *name;
    PL_TRY(cut_field(c, &name, &more));
    for (uint32_t i = 0; i < csv->n_columns; i++)
      if (strcmp(csv->names[i], name) == 0)
        return pl_fail(c->error, PL_BAD_INPUT, "%s:%u: two columns are called '%.64s'", c->path, line, name);
    csv->names[csv->n_columns] = name;
  }
  return PL_OK;
}

static pl_code cut_row(cutter *c, pl_csv_file *csv) {
  uint32_t *cells = csv->cells + (size_t)csv->n_rows * csv->n_columns, n = 0, line = c->line;
  bool more = true;
  for (; more; n++) {
    char *field;
    PL_TRY(cut_field(c, &field, &more));
    if (n < csv->n_columns) cells[n] = (uint32_t)(field - csv->text);
  }
  if (n != csv->n_columns)
    return pl_fail(c->error, PL_BAD_INPUT, "%s:%u: %u fields where the header has %u", c->path, line, n,
                   csv->n_columns);
  csv->lines[csv->n_rows++] = line;
  return PL_OK;
}

static pl_code cut_rows(cutter *c, pl_arena *arena, pl_csv_file *csv) {
  uint32_t most = 1;
  for (const char *s = c->at; s < c->end; s++)
    most += *s == '\n';
  csv->cells = pl_arena_take(arena, sizeof *csv->cells * most * csv->n_columns, _Alignof(uint32_t));
  csv->lines = pl_arena_take(arena, sizeof *csv->lines * most, _Alignof(uint32_t));
  if (csv->cells == NULL || csv->lines == NULL) return pl_fail_memory(c->error, "the rows of a CSV file");
  for (skip_blank_lines(c); c->at < c->end; skip_blank_lines(c))
    PL_TRY(cut_row(c, csv));
  return PL_OK;
}

static pl_code check_text(const char *path, const char *text, size_t size, pl_error *error) {
  uint32_t line = 1;
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = (unsigned char)text[i];
    line += byte == '\n';
    if ((byte < ' ' && strchr("\t\r\n", byte) == NULL) || byte == '\0')
      return pl_fail(error, PL_BAD_INPUT, "%s:%u: byte 0x%02x: this is no text file", path, line, byte);
  }
  return PL_OK;
}

/* `text` is the arena's and has room for a NUL. */
static pl_code cut(const char *path, char *text, size_t size, pl_arena *arena, pl_csv_file *csv, pl_error *error) {
  PL_TRY(check_text(path, text, size, error));
  text[size] = '\0';
  *csv = (pl_csv_file){.path = pl_arena_strdup(arena, path), .text = text};
  if (csv->path == NULL) return pl_fail_memory(error, "the name of a CSV file");
  cutter c = {.path = csv->path, .at = text, .end = text + size, .line = 1, .error = error};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) c.at += 3;
  PL_TRY(cut_header(&c, arena, csv));
  return cut_rows(&c, arena, csv);
}

pl_code pl_csv_file_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_csv_file *csv,
                          pl_error *error) {
  if (size > TEXT_BYTES_MAX) return pl_fail(error, PL_BAD_INPUT, "%s: more than 1 GiB of text", name);
  char *copy = pl_arena_take(arena, size + 1, 1);
  if (copy == NULL) return pl_fail_memory(error, "a CSV file");
  if (size > 0) memcpy(copy, text, size);
  return cut(name, copy, size, arena, csv, error);
}

/* ---- files ---- */

/* Reads until the end into *text, doubling it; the caller frees it. */
static pl_code read_all(const char *path, gzFile file, char **text, size_t *size, pl_error *error) {
  size_t held = (size_t)1 << 16;
  *text = malloc(held);
  for (*size = 0; *text != NULL;) {
    int n = gzread(file, *text + *size, (unsigned)(held - *size));
    if (n < 0) {
      int code;
      const char *cause = gzerror(file, &code);
      return pl_fail(error, code == Z_ERRNO ? PL_IO : PL_BAD_INPUT, "%s: %s", path,
                     code == Z_ERRNO ? strerror(errno) : cause);
    }
    if (n == 0) return PL_OK;
    *size += (size_t)n;
    if (*size < held) continue;
    if (held >= TEXT_BYTES_MAX) return pl_fail(error, PL_BAD_INPUT, "%s: more than 1 GiB of text", path);
    char *larger = realloc(*text, held *= 2);
    if (larger == NULL) break;
    *text = larger;
  }
  return pl_fail_memory(error, "a CSV file");
}

pl_code pl_csv_file_load(const char *path, pl_arena *arena, pl_csv_file *csv, pl_error *error) {
  gzFile file = gzopen(path, "rb");
  if (file == NULL) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, errno ? strerror(errno) : "no memory");
  char *text = NULL;
  size_t size = 0;
  pl_code code = read_all(path, file, &text, &size, error);
  int closed = gzclose_r(file);
  if (code == PL_OK && closed != Z_OK)
    code = pl_fail(error, PL_BAD_INPUT, "%s: the compressed file ends too early", path);
  if (code == PL_OK) code = pl_csv_file_parse(path, text, size, arena, csv, error);
  free(text);
  return code;
}

/* ---- cells ---- */

int pl_csv_file_column(const pl_csv_file *csv, const char *name) {
  for (uint32_t i = 0; i < csv->n_columns; i++)
    if (strcmp(csv->names[i], name) == 0) return (int)i;
  return -1;
}

pl_code pl_csv_file_require(const pl_csv_file *csv, const char *name, int *column, pl_error *error) {
  *column = pl_csv_file_column(csv, name);
  if (*column >= 0) return PL_OK;
  char list[512] = "";
  for (uint32_t i = 0; i < csv->n_columns; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", csv->names[i]);
  }
  return pl_fail(error, PL_BAD_INPUT, "%s: no column '%s'; there are: %s", csv->path, name, list);
}

const char *pl_csv_file_text(const pl_csv_file *csv, uint32_t row, int column) {
  return column < 0 ? "" : csv->text + csv->cells[(size_t)row * csv->n_columns + (size_t)column];
}

pl_code pl_csv_file_fail(const pl_csv_file *csv, uint32_t row, pl_error *error, const char *format, ...) {
  char message[PL_ERROR_MESSAGE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pl_fail(error, PL_BAD_INPUT, "%s:%u: %s", csv->path, csv->lines[row], message);
}

pl_code pl_csv_file_number(const pl_csv_file *csv, uint32_t row, int column, double lowest, double highest,
                           double *value, pl_error *error) {
  const char *text = pl_csv_file_text(csv, row, column), *name = column < 0 ? "a number" : csv->names[column];
  char *end;
  *value = strtod(text, &end);
  /* strtod also takes hexadecimal, nan and inf: no measurement is written so. */
  bool plain = text[strspn(text, "+-.0123456789eE \t")] == '\0';
  while (plain && (*end == ' ' || *end == '\t'))
    end++;
  if (end == text || *end != '\0' || !plain || !isfinite(*value))
    return pl_csv_file_fail(csv, row, error, "%s: '%.64s' is not a number", name, text);
  if (*value < lowest || *value > highest)
    return pl_csv_file_fail(csv, row, error, "%s: %.15g is not between %g and %g", name, *value, lowest, highest);
  return PL_OK;
}

pl_code pl_csv_file_integer(const pl_csv_file *csv, uint32_t row, int column, int64_t lowest, int64_t highest,
                            int64_t *value, pl_error *error) {
  double number;
  PL_TRY(pl_csv_file_number(csv, row, column, (double)lowest, (double)highest, &number, error));
  if (fabs(number) <= 0x1p53 && (double)(int64_t)number == number) {
    *value = (int64_t)number;
    return PL_OK;
  }
  return pl_csv_file_fail(csv, row, error, "%s: %.15g is not a whole number", csv->names[column], number);
}
