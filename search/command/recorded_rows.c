/* See search/command/recorded_rows.h. */
#include "search/command/recorded_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/units.h"
#include "core/system/child.h"
#include "search/command/strategy_of_row.h"
#include "search/results/results_reader.h"

enum { CANDIDATES_MAX = 1000, BLOCK_ROWS = 256, ROW_DIGITS_MAX = 9 };

static bool ends_in(const char *text, size_t length, const char *end) {
  size_t n = strlen(end);
  return length >= n && strncmp(text + length - n, end, n) == 0;
}

bool pl_recorded_is_results(const char *path, size_t length) {
  return ends_in(path, length, ".h5") || ends_in(path, length, ".hdf5");
}

size_t pl_recorded_row_split(const char *text, int64_t *row) {
  const char *colon = strrchr(text, ':');
  *row = -1;
  if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) > ROW_DIGITS_MAX ||
      strspn(colon + 1, "0123456789") != strlen(colon + 1))
    return strlen(text);
  *row = strtol(colon + 1, NULL, 10);
  return (size_t)(colon - text);
}

pl_code pl_recorded_row_check(const char *text, pl_error *error) {
  int64_t row;
  const char *colon = strrchr(text, ':');
  if (colon == NULL || !pl_recorded_is_results(text, (size_t)(colon - text)) || access(text, F_OK) == 0 ||
      pl_recorded_row_split(text, &row) == (size_t)(colon - text))
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%.*s: '%.64s' is no row; :N is row N, from 0 on", (int)(colon - text), text,
                 colon + 1);
}

typedef struct reading {
  const char *path, *row;
  pl_arena *arena;
} reading;

typedef struct candidate {
  uint32_t row;
  double time_s;
  const char *text; /* what put_rows prints of it */
} candidate;

static int compare_candidates(const void *a, const void *b) {
  const candidate *left = a, *right = b;
  if (left->time_s != right->time_s) return left->time_s < right->time_s ? -1 : 1;
  return left->row < right->row ? -1 : left->row > right->row;
}

/* The rows to look at, best first. */
static pl_code find_rows(const reading *own, pl_results_reader *reader, pl_arena *arena, candidate **found,
                         uint32_t *n_found, pl_error *error) {
  uint32_t n_rows = pl_results_reader_n_rows(reader), n = 0;
  int64_t given;
  void *status, *fits, *time_s;
  *found = PL_TAKE(arena, candidate, n_rows + 1);
  if (*found == NULL) return pl_fail_memory(error, "rows of results");
  if (own->row != NULL) {
    if (n_rows == 0) return pl_fail(error, PL_BAD_INPUT, "%s: has no rows", own->path);
    const char *what = pl_arena_printf(arena, "%s: row", own->path);
    if (what == NULL) return pl_fail_memory(error, "rows of results");
    PL_TRY(pl_parse_integer(own->row, what, 0, (int64_t)n_rows - 1, &given, error));
    (*found)[0].row = (uint32_t)given;
    *n_found = 1;
    return PL_OK;
  }
  PL_TRY(pl_results_reader_column(reader, pl_result_column("status"), arena, &status, error));
  PL_TRY(pl_results_reader_column(reader, pl_result_column("fits"), arena, &fits, error));
  PL_TRY(pl_results_reader_column(reader, pl_result_column("iter_time_s"), arena, &time_s, error));
  for (uint32_t row = 0; row < n_rows; row++)
    if (((const int32_t *)status)[row] == PL_RESULT_DONE && ((const int32_t *)fits)[row])
      (*found)[n++] = (candidate){.row = row, .time_s = ((const double *)time_s)[row]};
  qsort(*found, n, sizeof **found, compare_candidates);
  *n_found = n < CANDIDATES_MAX ? n : CANDIDATES_MAX;
  if (n > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: none of its strategies fits in memory; a row by its number is taken all the same", own->path);
}

/* "ROW SECONDS STRATEGY" in `arena`; NULL: no memory. */
static const char *say_row(pl_results_reader *reader, pl_arena *arena, uint32_t row, const pl_result_row *r) {
  const char *strategy = pl_strategy_of_row(reader, r, arena);
  if (strategy == NULL) return NULL;
  return pl_arena_printf(arena, "%u %.17g %s%s", row, r->iter_time_s, r->tmp < 0 ? "?" : "", strategy);
}

static int compare_rows(const void *a, const void *b) {
  const candidate *left = a, *right = b;
  return left->row < right->row ? -1 : left->row > right->row;
}

/* Prints the lines of `found` in their order. The file is read in blocks and in its own order: a read costs about the
 * same for one row and for a block. */
static pl_code put_rows(FILE *out, pl_results_reader *reader, pl_arena *arena, candidate *found, uint32_t n_found,
                        pl_error *error) {
  uint32_t n_rows = pl_results_reader_n_rows(reader), end = 0, first = 0;
  pl_result_row *rows = PL_TAKE(arena, pl_result_row, BLOCK_ROWS);
  pl_search_values *values = PL_TAKE(arena, pl_search_values, BLOCK_ROWS);
  if (rows == NULL || values == NULL) return pl_fail_memory(error, "rows of results");
  qsort(found, n_found, sizeof *found, compare_rows);
  for (uint32_t i = 0; i < n_found; i++) {
    if (found[i].row >= end) {
      first = found[i].row;
      end = n_rows - first < BLOCK_ROWS ? n_rows : first + BLOCK_ROWS;
      pl_search_values *of_search = pl_results_reader_has_search(reader) ? values : NULL;
      PL_TRY(pl_results_reader_rows(reader, first, end - first, rows, of_search, error));
    }
    const pl_result_row *row = &rows[found[i].row - first];
    found[i].time_s = row->iter_time_s;
    found[i].text = say_row(reader, arena, found[i].row, row);
    if (found[i].text == NULL) return pl_fail_memory(error, "rows of results");
  }
  qsort(found, n_found, sizeof *found, compare_candidates);
  for (uint32_t i = 0; i < n_found; i++)
    fprintf(out, "%s\n", found[i].text);
  return PL_OK;
}

/* In a process of its own, as the file is anybody's (core/system/child.h): the command, then a line per row. */
static pl_code read_results(void *reading_, FILE *out, FILE *notes, pl_error *error) {
  (void)notes;
  const reading *own = reading_;
  pl_arena *arena = own->arena;
  pl_results_reader *reader;
  candidate *found = NULL;
  uint32_t n_found = 0;
  PL_TRY(pl_results_reader_create(own->path, &reader, error));
  const char *command = pl_results_reader_command(reader, arena);
  pl_code code = find_rows(own, reader, arena, &found, &n_found, error);
  fprintf(out, "%s\n", command != NULL ? command : "");
  if (code == PL_OK) code = put_rows(out, reader, arena, found, n_found, error);
  pl_results_reader_destroy(reader);
  return code;
}

pl_code pl_recorded_rows_take(const char *path, const char *row, pl_arena *arena, pl_recorded_rows *rows,
                              pl_error *error) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (stream == NULL) return pl_fail_memory(error, "a recorded command");
  reading own = {.path = path, .row = row, .arena = arena};
  const pl_child child = {.path = path, .kind = "HDF5", .work = read_results, .context = &own};
  pl_code code = pl_child_run(&child, stream, stderr, error);
  if (fclose(stream) != 0 && code == PL_OK) code = pl_fail_memory(error, "a recorded command");
  char *copy = code == PL_OK ? pl_arena_strdup(arena, text) : NULL;
  free(text);
  PL_TRY(code);
  if (copy == NULL) return pl_fail_memory(error, "a recorded command");
  *rows = (pl_recorded_rows){.command = copy, .lines = copy + strcspn(copy, "\n")};
  if (*rows->lines != '\0') *rows->lines++ = '\0';
  return PL_OK;
}
