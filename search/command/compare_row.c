/* See search/command/compare.h: a row of a results file in the words of `paceline simulate --json`. */
#include <inttypes.h>
#include <string.h>

#include "core/system/child.h"
#include "search/command/compare.h"
#include "search/results/column_text.h"
#include "search/results/results_reader.h"

typedef struct request {
  const char *path;
  int64_t row;
} request;

static pl_code choose_row(const request *own, pl_results_reader *reader, pl_arena *arena, uint32_t *row,
                          pl_error *error) {
  uint32_t n_rows = pl_results_reader_n_rows(reader);
  pl_results_summary summary;
  if (own->row >= n_rows)
    return pl_fail(error, PL_BAD_INPUT, "%s: has no row %" PRId64 ": rows are 0 to %" PRId64, own->path, own->row,
                   (int64_t)n_rows - 1);
  *row = (uint32_t)own->row;
  if (own->row >= 0) return PL_OK;
  PL_TRY(pl_results_reader_summarise(reader, arena, &summary, error));
  *row = summary.best;
  if (summary.best != UINT32_MAX) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: none of its strategies fits in memory; %s:N names a row all the same",
                 own->path, own->path);
}

/* With features: of each stage its busiest device. */
static pl_code put_stages(pl_results_reader *reader, uint32_t row, int32_t pp, pl_json *json, pl_arena *arena,
                          pl_error *error) {
  uint32_t n_stages = pl_results_reader_n_stages(reader);
  if (n_stages == 0 || pp < 1 || (uint32_t)pp > n_stages) return PL_OK;
  double *values = PL_TAKE(arena, double, (size_t)PL_STAGE_PARTS *n_stages);
  if (values == NULL) return pl_fail_memory(error, "the stages");
  for (int part = 0; part < PL_STAGE_PARTS; part++)
    for (int c = 0; c < PL_N_STAGE_FEATURES; c++)
      if (strcmp(pl_stage_feature_columns[c].name + strlen("stage_"), pl_stage_part_names[part]) == 0)
        PL_TRY(pl_results_reader_stages(reader, &pl_stage_feature_columns[c], row, values + (size_t)part * n_stages,
                                        error));
  pl_json_key(json, "stages");
  pl_json_open_array(json);
  for (int32_t s = 0; s < pp; s++) {
    pl_json_open_object(json);
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      pl_json_put_number(json, pl_stage_part_names[part], values[(size_t)part * n_stages + (size_t)s]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
  return PL_OK;
}

/* What was taken of a strategy space, or lies in the host's memory. */
static void put_choices(pl_results_reader *reader, const pl_result_row *row, pl_json *json) {
  const pl_column_list columns = pl_results_reader_columns(reader);
  for (uint32_t c = PL_RESULT_FIRST_PROGRAM + 1; c < columns.n; c++) {
    pl_json_key(json, columns.at[c].name);
    pl_column_json(json, &columns.at[c], (const unsigned char *)row + columns.at[c].offset);
  }
}

static pl_code put_row(const request *own, pl_results_reader *reader, pl_json *json, pl_arena *arena, pl_error *error) {
  uint32_t at;
  pl_result_row row = {0};
  PL_TRY(choose_row(own, reader, arena, &at, error));
  PL_TRY(pl_results_reader_row(reader, at, &row, error));
  if (row.status != PL_RESULT_DONE && row.status != PL_RESULT_OOM)
    return pl_fail(error, PL_BAD_INPUT, "%s: row %u has no result: it is %s", own->path, at,
                   row.status == PL_RESULT_PENDING ? "not computed yet" : "of a strategy that could not be simulated");
  PL_TRY(pl_results_reader_attributes_json(reader, json, error));
  pl_json_put_integer(json, "candidate", at);
  bool program = pl_results_reader_has_program(reader); /* whose rows count devices, and trees have no degrees */
  pl_json_put_integer(json, "n_devices", program ? row.n_classes : (int64_t)row.pp * row.dp * row.tmp * row.cp);
  pl_row_json(json, &row);
  if (program) put_choices(reader, &row, json);
  return put_stages(reader, at, row.pp, json, arena, error);
}

static pl_code write_row(void *request_, FILE *out, FILE *notes, pl_error *error) {
  (void)notes;
  const request *own = request_;
  pl_results_reader *reader;
  pl_arena arena;
  pl_json json;
  PL_TRY(pl_results_reader_create(own->path, &reader, error));
  pl_arena_init(&arena, 0);
  pl_json_init(&json, out, true);
  pl_json_open_object(&json);
  pl_code code = put_row(own, reader, &json, &arena, error);
  pl_json_close_object(&json);
  pl_arena_release(&arena);
  pl_results_reader_destroy(reader);
  return code;
}

pl_code pl_compare_row_json(const char *path, int64_t row, FILE *stream, pl_error *error) {
  request own = {.path = path, .row = row};
  const pl_child child = {.path = path, .kind = "HDF5", .work = write_row, .context = &own};
  return pl_child_run(&child, stream, stderr, error);
}
