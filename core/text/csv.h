/* Tables in CSV (RFC 4180): a header line with names, then one line per row. Commas, or semicolons or tabs if the
 * header has no comma; quotes where a cell holds these, quotes (doubled) or line ends; LF or CRLF; a byte order mark,
 * blank lines and remarks (lines that begin with '#', in front of the header only) are skipped. A file may be
 * compressed with gzip, whatever its name.
 *
 * Everything is checked before anybody sees a cell: UTF-8, quotes, that every row has as many cells as the header and
 * that no name occurs twice. Rows know their line, so that whoever reads a cell can say file:line.
 *
 * Rejected: libcsv, which hands out cells by callback, does not say on which line it is and takes a stray quote for
 * text; what it would save is the 60 lines of `split`.
 */
#ifndef PL_CORE_CSV_H
#define PL_CORE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"

typedef struct pl_csv {
  const char *name; /* the path, for messages */
  uint32_t n_columns, n_rows;
  const char *const *header;
  const char *const *cells; /* n_rows * n_columns; "" = not given; NUL-terminated */
  const uint32_t *lines;    /* where each row begins, from 1 */
} pl_csv;

#define PL_CSV_NO_COLUMN UINT32_MAX

/* Everything in `arena`. PL_BAD_INPUT with file:line: no file, more than 1 GiB, not UTF-8, no header, an empty or a
 * doubled name, quotes that do not close or stand inside a cell, a row with too few or too many cells. No rows at all
 * is not an error. About 100 MB/s. */
pl_code pl_csv_load(const char *path, pl_arena *arena, pl_csv *csv, pl_error *error);
/* The same from memory; `name` stands for the path. */
pl_code pl_csv_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_csv *csv, pl_error *error);

/* PL_CSV_NO_COLUMN when there is none of this name. */
uint32_t pl_csv_column(const pl_csv *csv, const char *name);

/* The first one whose name differs in case only, or in blanks around it. */
uint32_t pl_csv_column_of_any_case(const pl_csv *csv, const char *name);

/* "" where the column is PL_CSV_NO_COLUMN. */
static inline const char *pl_csv_cell(const pl_csv *csv, uint32_t row, uint32_t column) {
  return column == PL_CSV_NO_COLUMN ? "" : csv->cells[(size_t)row * csv->n_columns + column];
}

/* The cell as a number; *given is false, and *value untouched, where it is empty. Not a finite decimal number:
 * PL_BAD_INPUT, "FILE:LINE: column 'NAME': 'TEXT' is not a number". */
pl_code pl_csv_number(const pl_csv *csv, uint32_t row, uint32_t column, bool *given, double *value, pl_error *error);

/* PL_BAD_INPUT with "FILE:LINE: " in front. */
pl_code pl_csv_fail(const pl_csv *csv, uint32_t row, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
