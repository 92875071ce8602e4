/* Reading of CSV files of measurements, plain or compressed with gzip (told apart by content, not by name).
 *
 * The first line that is neither blank nor begins with '#' names the columns; '#' lines above it are remarks
 * (provenance). Fields as in RFC 4180: a field may be quoted, a quote inside is doubled, and a quoted field may hold
 * commas and line breaks. CRLF and a UTF-8 mark in front are accepted. Refused, with file and line: a row with more or
 * fewer fields than the header, two columns of one name, text behind a closing quote, a quote that is never closed,
 * bytes that are no text, more than 1 GiB of text.
 *
 * Everything lives in the arena: the text once, and four bytes per cell. A table is const once loaded and may be read
 * by any number of threads. Rows and columns count from 0, lines from 1.
 */
#ifndef PL_VALIDATION_CSV_FILE_H
#define PL_VALIDATION_CSV_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/status.h"

typedef struct pl_csv_file {
  const char *path;   /* for messages */
  char *text;         /* the cells, NUL-terminated, unquoted in place */
  uint32_t *cells;    /* [row * n_columns + column]: where its text begins */
  uint32_t *lines;    /* [row]: line on which it begins */
  const char **names; /* [column] */
  uint32_t n_columns, n_rows;
} pl_csv_file;

pl_code pl_csv_file_load(const char *path, pl_arena *arena, pl_csv_file *csv, pl_error *error);
/* The same from memory, not compressed; `name` stands for the path in messages. */
pl_code pl_csv_file_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_csv_file *csv,
                          pl_error *error);

/* Number of a column, -1 if there is none of that name. */
int pl_csv_file_column(const pl_csv_file *csv, const char *name);
/* The same; without it an error that lists the columns there are. */
pl_code pl_csv_file_require(const pl_csv_file *csv, const char *name, int *column, pl_error *error);

/* A cell's text, "" if it is empty or if `column` is -1 (a column that the file lacks). Owned by the arena. */
const char *pl_csv_file_text(const pl_csv_file *csv, uint32_t row, int column);
/* A finite decimal number in [lowest, highest]; an empty cell is an error. */
pl_code pl_csv_file_number(const pl_csv_file *csv, uint32_t row, int column, double lowest, double highest,
                           double *value, pl_error *error);
/* A whole number up to 2^53 likewise ("16" or "16.0", as pandas writes columns with gaps). */
pl_code pl_csv_file_integer(const pl_csv_file *csv, uint32_t row, int column, int64_t lowest, int64_t highest,
                            int64_t *value, pl_error *error);
/* Fails with PL_BAD_INPUT; "FILE:LINE: " stands in front of the message. */
pl_code pl_csv_file_fail(const pl_csv_file *csv, uint32_t row, pl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
