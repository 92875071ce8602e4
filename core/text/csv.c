/* See core/text/csv.h. Cells are unquoted in place, in one copy of the text. */
#include "core/text/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/system/gzip.h"
#include "core/system/text_file.h"

static const size_t file_bytes_max = (size_t)1 << 30;

typedef struct splitter {
  const char *name;
  char *at, *end; /* what is left of the text; *end is NUL */
  uint32_t line;
  char separator;
  const char **cells; /* room for one per separator of any kind and line end of the text, and one more */
  size_t n_cells;
  pl_error *error;
} splitter;

/* A quoted cell, from behind its opening quote; leaves `at` behind the closing one. The cell is terminated by the
 * caller, who looks at what follows first. */
static pl_code take_quoted(splitter *s, char **close) {
  uint32_t opened = s->line;
  char *to = s->at;
  for (; s->at < s->end; s->at++) {
    if (*s->at == '"' && s->at[1] != '"') {
      s->at++;
      *close = to;
      return PL_OK;
    }
    if (*s->at == '"') s->at++;
    if (*s->at == '\n') s->line++;
    *to++ = *s->at;
  }
  return pl_fail(s->error, PL_BAD_INPUT, "%s:%u: a quoted cell begins here and does not end", s->name, opened);
}

static pl_code take_plain(splitter *s, char **close) {
  for (; s->at < s->end && *s->at != s->separator && *s->at != '\n'; s->at++)
    if (*s->at == '"')
      return pl_fail(s->error, PL_BAD_INPUT,
                     "%s:%u: a quote inside a cell; put the whole cell in quotes and double those in it", s->name,
                     s->line);
  *close = s->at;
  if (s->at > s->cells[s->n_cells] && (s->at == s->end || *s->at == '\n') && s->at[-1] == '\r') (*close)--;
  return PL_OK;
}

/* One cell; *last says that it was the last of its line. */
static pl_code take_cell(splitter *s, bool *last) {
  bool quoted = *s->at == '"';
  if (quoted) s->at++;
  s->cells[s->n_cells] = s->at;
  char *close = s->at;
  PL_TRY(quoted ? take_quoted(s, &close) : take_plain(s, &close));
  if (quoted && s->at < s->end && *s->at == '\r') s->at++;
  if (s->at < s->end && *s->at != s->separator && *s->at != '\n')
    return pl_fail(s->error, PL_BAD_INPUT, "%s:%u: text behind a closing quote", s->name, s->line);
  *last = s->at == s->end || *s->at == '\n';
  if (s->at < s->end) {
    if (*s->at == '\n') s->line++;
    s->at++;
  }
  *close = '\0';
  s->n_cells++;
  return PL_OK;
}

static void skip_blank_lines(splitter *s) {
  for (char *p = s->at; p <= s->end; p++) {
    if (p < s->end && *p != '\n' && *p != '\r' && *p != ' ' && *p != '\t') return;
    if (p == s->end || *p == '\n') {
      s->line += p < s->end;
      s->at = p < s->end ? p + 1 : p;
    }
  }
}

/* The cells of one line; 0 at the end of the text. */
static pl_code take_line(splitter *s, uint32_t *n) {
  size_t first = s->n_cells;
  *n = 0;
  skip_blank_lines(s);
  if (s->at == s->end) return PL_OK;
  for (bool last = false; !last;)
    PL_TRY(take_cell(s, &last));
  *n = (uint32_t)(s->n_cells - first);
  return PL_OK;
}

static pl_code check_header(const splitter *s, const char *const *header, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (header[i][0] == '\0')
      return pl_fail(s->error, PL_BAD_INPUT, "%s: column %u has no name in the first line", s->name, i + 1);
    for (uint32_t j = 0; j < i; j++)
      if (strcmp(header[i], header[j]) == 0)
        return pl_fail(s->error, PL_BAD_INPUT, "%s: two columns are called '%s'", s->name, header[i]);
  }
  return PL_OK;
}

/* Lines in front of the header that begin with '#'. */
static void skip_remarks(splitter *s) {
  for (skip_blank_lines(s); s->at < s->end && *s->at == '#'; skip_blank_lines(s))
    s->at += strcspn(s->at, "\n");
}

/* A header without commas has names between semicolons, as spreadsheets write where the comma is decimal, or tabs. */
static char find_separator(const splitter *s) {
  bool quoted = false;
  char found = ',';
  for (const char *p = s->at; p < s->end && (quoted || *p != '\n'); p++) {
    if (*p == '"') quoted = !quoted;
    if (quoted) continue;
    if (*p == ',') return ',';
    if (found == ',' && (*p == ';' || *p == '\t')) found = *p;
  }
  return found;
}

static pl_code split(splitter *s, uint32_t *lines, pl_csv *csv) {
  skip_remarks(s);
  s->separator = find_separator(s);
  PL_TRY(take_line(s, &csv->n_columns));
  if (csv->n_columns == 0) return pl_fail(s->error, PL_BAD_INPUT, "%s: is empty; a header line is needed", s->name);
  if (csv->n_columns > 4096) return pl_fail(s->error, PL_BAD_INPUT, "%s: more than 4096 columns", s->name);
  PL_TRY(check_header(s, s->cells, csv->n_columns));
  for (uint32_t n;; csv->n_rows++) {
    skip_blank_lines(s);
    lines[csv->n_rows] = s->line;
    PL_TRY(take_line(s, &n));
    if (n == 0) return PL_OK;
    if (n != csv->n_columns)
      return pl_fail(s->error, PL_BAD_INPUT, "%s:%u: %u cells where the header has %u", s->name, lines[csv->n_rows], n,
                     csv->n_columns);
  }
}

pl_code pl_csv_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_csv *csv, pl_error *error) {
  *csv = (pl_csv){.name = pl_arena_strdup(arena, name)};
  PL_TRY(pl_text_check(name, text, size, error));
  size_t n_cells = 1, n_lines = 2;
  for (size_t i = 0; i < size; i++) {
    n_cells += text[i] == ',' || text[i] == ';' || text[i] == '\t' || text[i] == '\n';
    n_lines += text[i] == '\n';
  }
  if (n_lines >= UINT32_MAX) return pl_fail(error, PL_BAD_INPUT, "%s: more than 4 billion lines", name);
  char *copy = pl_arena_take(arena, size + 1, 1);
  const char **cells = PL_TAKE(arena, const char *, n_cells);
  uint32_t *lines = PL_TAKE(arena, uint32_t, n_lines);
  if (csv->name == NULL || copy == NULL || cells == NULL || lines == NULL) return pl_fail_memory(error, name);
  if (size > 0) memcpy(copy, text, size);
  copy[size] = '\0';
  size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  splitter s = {.name = csv->name, .at = copy + mark, .end = copy + size, .line = 1, .cells = cells, .error = error};
  PL_TRY(split(&s, lines, csv));
  csv->header = cells;
  csv->cells = cells + csv->n_columns;
  csv->lines = lines;
  return PL_OK;
}

pl_code pl_csv_load(const char *path, pl_arena *arena, pl_csv *csv, pl_error *error) {
  char *text;
  size_t size;
  PL_TRY(pl_text_file_load(path, file_bytes_max, &text, &size, error));
  pl_code code = PL_OK;
  if (pl_gzip_is(text, size)) {
    char *packed = text;
    code = pl_gzip_expand(path, packed, size, file_bytes_max, &text, &size, error);
    free(packed);
  }
  if (code == PL_OK) code = pl_csv_parse(path, text, size, arena, csv, error);
  free(text);
  return code;
}

uint32_t pl_csv_column_of_any_case(const pl_csv *csv, const char *name) {
  for (uint32_t i = 0; i < csv->n_columns; i++) {
    const char *header = csv->header[i] + strspn(csv->header[i], " ");
    size_t length = strlen(header);
    while (length > 0 && header[length - 1] == ' ')
      length--;
    if (strlen(name) == length && strncasecmp(header, name, length) == 0) return i;
  }
  return PL_CSV_NO_COLUMN;
}

uint32_t pl_csv_column(const pl_csv *csv, const char *name) {
  for (uint32_t i = 0; i < csv->n_columns; i++)
    if (strcmp(csv->header[i], name) == 0) return i;
  return PL_CSV_NO_COLUMN;
}

/* Digits, a sign, a point, an exponent: what strtod takes besides (nan, inf, hexadecimal) is no measurement. */
static bool is_decimal(const char *text) {
  return text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0';
}

pl_code pl_csv_number(const pl_csv *csv, uint32_t row, uint32_t column, bool *given, double *value, pl_error *error) {
  const char *text = pl_csv_cell(csv, row, column);
  *given = text[0] != '\0';
  if (!*given) return PL_OK;
  char *end = NULL;
  double number = is_decimal(text) ? strtod(text, &end) : NAN;
  if (end == NULL || *end != '\0' || !isfinite(number))
    return pl_csv_fail(csv, row, error, "column '%s': '%.60s' is not a number", csv->header[column], text);
  *value = number;
  return PL_OK;
}

pl_code pl_csv_fail(const pl_csv *csv, uint32_t row, pl_error *error, const char *format, ...) {
  char text[PL_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return pl_fail(error, PL_BAD_INPUT, "%s:%u: %s", csv->name, csv->lines[row], text);
}
