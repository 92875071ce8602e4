/* See search/command/results_vet.h. */
#include "search/command/results_vet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/child.h"
#include "search/results/results_reader.h"

static pl_code read_columns(pl_results_reader *reader, pl_error *error) {
  bool features = pl_results_reader_has_features(reader), search = pl_results_reader_has_search(reader);
  pl_column_list columns = pl_results_reader_columns(reader);
  for (uint32_t c = 0; c < columns.n; c++) {
    bool there =
        c < pl_result_n_columns || c >= PL_RESULT_FIRST_PROGRAM || (c >= PL_RESULT_FIRST_SEARCH ? search : features);
    if (!there || c == PL_RESULT_CANDIDATE) continue;
    pl_arena arena;
    void *values;
    pl_arena_init(&arena, 0);
    pl_code code = pl_results_reader_column(reader, &columns.at[c], &arena, &values, error);
    pl_arena_release(&arena);
    PL_TRY(code);
  }
  return PL_OK;
}

static pl_code read_whole(void *path, FILE *out, FILE *notes, pl_error *error) {
  (void)out;
  (void)notes;
  pl_results_reader *reader;
  PL_TRY(pl_results_reader_create(path, &reader, error));
  pl_code code = read_columns(reader, error);
  if (code == PL_OK) code = pl_results_reader_check_attributes(reader, error);
  pl_results_reader_destroy(reader);
  return code;
}

pl_code pl_results_vet(const pl_run_options *run, bool silent, pl_error *error) {
  if (silent || !run->resume || run->output == NULL || access(run->output, F_OK) != 0) return PL_OK;
  char *path = strdup(run->output);
  if (path == NULL) return pl_fail_memory(error, "a path");
  const pl_child child = {.path = path, .kind = "HDF5", .work = read_whole, .context = path};
  pl_code code = pl_child_run(&child, stdout, stderr, error);
  free(path);
  return code;
}
