/* See search/command/search_file.h. */
#include "search/command/search_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search/results/results_reader.h"

enum { FIRST_ROOM = 256, BLOCK_ROWS = 256 };

struct pl_search_file {
  const char *path;
  const pl_provenance *provenance;
  pl_results_file *open; /* NULL: nothing was written yet */
  uint32_t n_rows, room;
  bool replace; /* a file at the path that is not ours may go */
};

/* Rank 0 alone writes, whoever else there is. */
static pl_code open_file(const char *path, uint32_t room, pl_results_file **opened, pl_error *error) {
  bool split;
  return pl_results_open(path, PL_ALONE, room, BLOCK_ROWS, opened, &split, error);
}

/* ---- rows that are there ---- */

static pl_code read_known(pl_results_reader *reader, uint32_t n_rows, pl_arena *arena, pl_result_row **known,
                          pl_error *error) {
  pl_search_values *values = PL_TAKE(arena, pl_search_values, n_rows);
  *known = PL_TAKE(arena, pl_result_row, n_rows);
  if (values == NULL || *known == NULL) return pl_fail_memory(error, "the rows of the file to be resumed");
  return pl_results_reader_rows(reader, 0, n_rows, *known, values, error);
}

static uint32_t count_leading(const int32_t *status, uint32_t n) {
  uint32_t count = 0;
  while (count < n && status[count] != PL_RESULT_PENDING)
    count++;
  return count;
}

static pl_code take_known(pl_search_file *file, pl_results_reader *reader, pl_arena *arena, pl_result_row **known,
                          pl_error *error) {
  file->room = pl_results_reader_n_rows(reader);
  int32_t *status = PL_TAKE(arena, int32_t, file->room);
  if (status == NULL) return pl_fail_memory(error, "the rows of the file to be resumed");
  PL_TRY(pl_results_check_resume(file->path, file->provenance, file->room, status, error));
  file->n_rows = count_leading(status, file->room);
  return read_known(reader, file->n_rows, arena, known, error);
}

static pl_code resume(pl_search_file *file, pl_arena *arena, pl_result_row **known, pl_error *error) {
  if (access(file->path, W_OK) != 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: cannot be resumed: it may not be written to", file->path);
  pl_partial_clean(file->path);
  pl_results_reader *reader;
  PL_TRY(pl_results_reader_create(file->path, &reader, error));
  pl_code code = take_known(file, reader, arena, known, error);
  pl_results_reader_destroy(reader);
  PL_TRY(code);
  return open_file(file->path, file->room, &file->open, error);
}

pl_code pl_search_file_create(const char *path, const pl_provenance *provenance, bool replace, bool resumes,
                              pl_arena *arena, pl_search_file **created, pl_result_row **known, uint32_t *n_known,
                              pl_error *error) {
  PL_ASSERT(provenance->search && provenance->n_stages == 0);
  *known = NULL;
  *n_known = 0;
  *created = PL_TAKE(arena, pl_search_file, 1);
  if (*created == NULL) return pl_fail_memory(error, "the results file");
  pl_search_file *file = *created;
  *file = (pl_search_file){.path = path, .provenance = provenance, .replace = replace};
  if (!resumes || access(path, F_OK) != 0) return pl_results_check_absent(path, replace, error);
  PL_TRY(resume(file, arena, known, error));
  *n_known = file->n_rows;
  return PL_OK;
}

/* ---- making it anew ---- */

/* The rows of the file at the final name, into the open one. */
static pl_code copy_rows(const pl_search_file *file, pl_results_file *to, pl_error *error) {
  pl_result_row *rows = calloc(BLOCK_ROWS, sizeof *rows);
  pl_search_values *values = calloc(BLOCK_ROWS, sizeof *values);
  pl_results_reader *reader = NULL;
  pl_code code = rows == NULL || values == NULL ? pl_fail_memory(error, "the rows of the results file")
                                                : pl_results_reader_create(file->path, &reader, error);
  for (uint32_t first = 0; code == PL_OK && first < file->n_rows; first += BLOCK_ROWS) {
    uint32_t count = file->n_rows - first < BLOCK_ROWS ? file->n_rows - first : BLOCK_ROWS;
    code = pl_results_reader_rows(reader, first, count, rows, values, error);
    if (code == PL_OK) code = pl_results_write(to, first, count, rows, error);
  }
  pl_results_reader_destroy(reader);
  free(values);
  free(rows);
  return code;
}

static pl_code fill(const pl_search_file *file, const char *name, uint32_t room, pl_error *error) {
  pl_results_file *to = NULL;
  pl_code code = open_file(name, room, &to, error);
  if (code == PL_OK) code = copy_rows(file, to, error);
  pl_error closing = PL_ERROR_INIT;
  pl_results_close(to, &closing);
  return code != PL_OK ? code : closing.code == PL_OK ? PL_OK : pl_fail(error, closing.code, "%s", closing.message);
}

static pl_code close_open(pl_search_file *file, pl_error *error) {
  pl_results_file *open = file->open;
  file->open = NULL;
  return pl_results_close(open, error);
}

/* The file with room for `room` rows in place of the one that is there; it is closed. */
static pl_code remake(pl_search_file *file, uint32_t room, pl_error *error) {
  pl_partial_file partial;
  PL_TRY(close_open(file, error));
  PL_TRY(pl_results_begin(file->path, file->provenance, room, &partial, error));
  pl_code code = fill(file, partial.name, room, error);
  int failed = code == PL_OK ? pl_partial_publish(&partial, file->path, true) : 0;
  if (failed != 0)
    code = pl_fail(error, PL_IO, "%s: cannot be replaced by a larger file: %s", file->path, strerror(failed));
  pl_partial_remove(&partial);
  file->room = room;
  return code;
}

static pl_code make_room(pl_search_file *file, uint32_t count, pl_error *error) {
  uint32_t needed = file->n_rows + count, room = file->room < FIRST_ROOM ? FIRST_ROOM : file->room;
  if (file->open != NULL && needed <= file->room) return PL_OK;
  while (room < needed)
    room *= 2;
  if (file->open == NULL) {
    file->room = room;
    PL_TRY(pl_results_create(file->path, file->provenance, room, file->replace, error));
  } else {
    PL_TRY(remake(file, room, error));
  }
  return open_file(file->path, room, &file->open, error);
}

pl_code pl_search_file_append(pl_search_file *file, uint32_t count, const pl_result_row *rows, pl_error *error) {
  PL_TRY(make_room(file, count, error));
  for (uint32_t first = 0; first < count; first += BLOCK_ROWS) {
    uint32_t n = count - first < BLOCK_ROWS ? count - first : BLOCK_ROWS;
    PL_TRY(pl_results_write(file->open, file->n_rows, n, rows + first, error));
    file->n_rows += n;
  }
  return PL_OK;
}

pl_code pl_search_file_finish(pl_search_file *file, pl_error *error) {
  if (file->open == NULL || file->n_rows == 0) return PL_OK;
  return remake(file, file->n_rows, error);
}

void pl_search_file_destroy(pl_search_file *file) {
  pl_error ignored = PL_ERROR_INIT;
  if (file != NULL && file->open != NULL) close_open(file, &ignored);
}
