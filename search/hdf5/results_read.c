/* Reads results files (see search/results/results_reader.h). */
#include "search/results/results_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "search/hdf5/hdf5_file.h"
#include "search/hdf5/results_type.h"
#include "search/results/program_columns.h"

struct pl_results_reader {
  hid_t file;
  uint32_t n_rows, n_stages; /* 0 stages: no features */
  bool has_search;
  pl_program_columns program;
  pl_column_info columns[PL_RESULT_MOST];
  char *path;
};

pl_code pl_results_reader_create(const char *path, pl_results_reader **created, pl_error *error) {
  *created = NULL;
  hid_t file;
  uint32_t n_rows = 0;
  PL_TRY(pl_results_open_serial(path, &file, error));
  pl_code code = pl_results_count(path, file, &n_rows, error);
  pl_results_reader *reader = calloc(1, sizeof *reader);
  char *copy = strdup(path);
  if (reader == NULL || copy == NULL) code = pl_fail_memory(error, "a results file"); /* the first cause is kept */
  if (code != PL_OK || reader == NULL || copy == NULL) {
    free(reader);
    free(copy);
    H5Fclose(file);
    return code;
  }
  *reader = (pl_results_reader){.file = file,
                                .n_rows = n_rows,
                                .n_stages = pl_results_n_stages(file),
                                .has_search = pl_results_has_search(file),
                                .path = copy};
  pl_results_program_columns(file, &reader->program);
  memcpy(reader->columns, pl_result_columns, PL_RESULT_N_ALL * sizeof *reader->columns);
  memcpy(reader->columns + PL_RESULT_FIRST_PROGRAM, reader->program.at, reader->program.n * sizeof *reader->columns);
  *created = reader;
  return PL_OK;
}

pl_column_list pl_results_reader_columns(const pl_results_reader *reader) {
  return (pl_column_list){reader->columns, PL_RESULT_N_ALL + reader->program.n};
}

void pl_results_reader_destroy(pl_results_reader *reader) {
  if (reader == NULL) return;
  H5Fclose(reader->file);
  free(reader->path);
  free(reader);
}

uint32_t pl_results_reader_n_rows(const pl_results_reader *reader) {
  return reader->n_rows;
}

bool pl_results_reader_has_search(const pl_results_reader *reader) {
  return reader->has_search;
}

/* Rows first .. first + count - 1 of a column. */
static pl_code read_rows(pl_results_reader *reader, const pl_column_info *column, uint32_t first, uint32_t count,
                         void *values, pl_error *error) {
  hid_t dataset;
  const pl_column_info *known = pl_result_column(column->name); /* NULL: of programs, in their file */
  bool of_search = known != NULL && known >= &pl_result_columns[PL_RESULT_FIRST_SEARCH];
  if (!reader->has_search && of_search)
    return pl_fail(error, PL_BAD_INPUT, "%s: has no column '%s': it comes with paceline search", reader->path,
                   column->name);
  if (reader->n_stages == 0 && !of_search && known != NULL && known > &pl_result_columns[PL_RESULT_CANDIDATE])
    return pl_fail(error, PL_BAD_INPUT, "%s: has no column '%s': it comes with paceline sweep --features", reader->path,
                   column->name);
  PL_TRY(pl_results_open_column(reader->path, reader->file, column, reader->n_rows, 0, &dataset, error));
  hsize_t start = first, n = count;
  hid_t type = pl_results_type(column), memory = H5Screate_simple(1, &n, NULL), space = H5Dget_space(dataset);
  bool good = count == 0 || (H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &n, NULL) >= 0 &&
                             H5Dread(dataset, type, memory, space, H5P_DEFAULT, values) >= 0);
  if (!good) pl_hdf5_fail(reader->path, "cannot be read", PL_IO, error);
  H5Sclose(space);
  H5Sclose(memory);
  H5Tclose(type);
  H5Dclose(dataset);
  return good ? PL_OK : PL_IO;
}

pl_code pl_results_reader_column(pl_results_reader *reader, const pl_column_info *column, pl_arena *arena,
                                 void **values, pl_error *error) {
  *values = pl_arena_take_zeroed(arena, reader->n_rows, column->size, sizeof(double));
  if (*values == NULL) return pl_fail_memory(error, column->name);
  return read_rows(reader, column, 0, reader->n_rows, *values, error);
}

pl_code pl_results_reader_element(pl_results_reader *reader, const pl_column_info *column, uint32_t row, void *value,
                                  pl_error *error) {
  PL_ASSERT(row < reader->n_rows);
  return read_rows(reader, column, row, 1, value, error);
}

pl_code pl_results_reader_row(pl_results_reader *reader, uint32_t row, pl_result_row *result, pl_error *error) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    const pl_column_info *column = &pl_result_columns[c];
    PL_TRY(pl_results_reader_element(reader, column, row, (unsigned char *)result + column->offset, error));
  }
  for (uint32_t c = 0; c < reader->program.n; c++) {
    const pl_column_info *column = &reader->program.at[c];
    PL_TRY(pl_results_reader_element(reader, column, row, (unsigned char *)result + column->offset, error));
  }
  return PL_OK;
}

pl_code pl_results_reader_rows(pl_results_reader *reader, uint32_t first, uint32_t count, pl_result_row *rows,
                               pl_search_values *values, pl_error *error) {
  unsigned char *buffer = malloc((size_t)count * PL_RESULT_WIDEST_BYTES);
  pl_code code = buffer == NULL ? pl_fail_memory(error, "rows of a results file") : PL_OK;
  memset(rows, 0, count * sizeof *rows);
  for (uint32_t c = 0; code == PL_OK && c < PL_RESULT_N_ALL + reader->program.n; c++) {
    bool of_program = c >= PL_RESULT_FIRST_PROGRAM, of_search = c >= PL_RESULT_FIRST_SEARCH && !of_program;
    if (of_search ? values == NULL : c >= pl_result_n_columns && !of_program) continue;
    const pl_column_info *column = &reader->columns[c];
    code = read_rows(reader, column, first, count, buffer, error);
    for (uint32_t i = 0; code == PL_OK && i < count; i++) {
      unsigned char *row = of_search ? (unsigned char *)&values[i] : (unsigned char *)&rows[i];
      memcpy(row + column->offset, buffer + (size_t)i * column->size, column->size);
    }
  }
  for (uint32_t i = 0; values != NULL && i < count; i++)
    rows[i].search = &values[i];
  free(buffer);
  return code;
}

/* Copied: what HDF5 has given is its own. */
static const char *text_of(hid_t attribute, hid_t type, pl_arena *arena) {
  char *text = NULL;
  bool good = H5Aread(attribute, type, &text) >= 0 && text != NULL;
  const char *copy = good ? pl_arena_strdup(arena, text) : NULL;
  if (text != NULL) H5free_memory(text);
  return copy;
}

const char *pl_results_reader_attribute(pl_results_reader *reader, const char *name, pl_arena *arena) {
  if (!(H5Aexists(reader->file, name) > 0)) return NULL;
  hid_t attribute = H5Aopen(reader->file, name, H5P_DEFAULT);
  if (attribute < 0) return NULL;
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  int64_t integer;
  double number;
  const char *text = NULL;
  bool single = H5Sget_simple_extent_npoints(space) == 1;
  if (single && H5Tis_variable_str(type) > 0)
    text = text_of(attribute, type, arena);
  else if (single && H5Tget_class(type) == H5T_INTEGER && H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0)
    text = pl_arena_printf(arena, "%" PRId64, integer);
  else if (single && H5Tget_class(type) == H5T_FLOAT && H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0)
    text = pl_arena_printf(arena, "%.17g", number);
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  return text;
}

uint32_t pl_results_reader_n_stages(const pl_results_reader *reader) {
  return reader->n_stages;
}

pl_code pl_results_reader_stages(pl_results_reader *reader, const pl_column_info *column, uint32_t row, double *values,
                                 pl_error *error) {
  hid_t dataset;
  PL_ASSERT(reader->n_stages > 0 && row < reader->n_rows);
  PL_TRY(pl_results_open_column(reader->path, reader->file, column, reader->n_rows, reader->n_stages, &dataset, error));
  hsize_t start[2] = {row, 0}, n[2] = {1, reader->n_stages};
  hid_t memory = H5Screate_simple(2, n, NULL), space = H5Dget_space(dataset);
  bool good = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, n, NULL) >= 0 &&
              H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values) >= 0;
  if (!good) pl_hdf5_fail(reader->path, "cannot be read", PL_IO, error);
  H5Sclose(space);
  H5Sclose(memory);
  H5Dclose(dataset);
  return good ? PL_OK : PL_IO;
}

static void put_text(hid_t attribute, hid_t type, const char *name, pl_json *json) {
  char *text = NULL;
  if (H5Aread(attribute, type, &text) >= 0 && text != NULL) pl_json_put_string(json, name, text);
  if (text != NULL) H5free_memory(text);
}

/* Of one element each: texts and numbers, as Paceline writes them; what else there is is left out. */
static herr_t put_attribute(hid_t group, const char *name, const H5A_info_t *info, void *json_) {
  (void)info;
  pl_json *json = json_;
  int64_t integer;
  double number;
  hid_t attribute = H5Aopen(group, name, H5P_DEFAULT), type = attribute >= 0 ? H5Aget_type(attribute) : -1;
  if (type < 0) return -1;
  hid_t space = H5Aget_space(attribute);
  bool single = H5Sget_simple_extent_npoints(space) == 1;
  if (single && H5Tis_variable_str(type) > 0)
    put_text(attribute, type, name, json);
  else if (single && H5Tget_class(type) == H5T_INTEGER && H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0)
    pl_json_put_integer(json, name, integer);
  else if (single && H5Tget_class(type) == H5T_FLOAT && H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0)
    pl_json_put_number(json, name, number);
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  return 0;
}

pl_code pl_results_reader_attributes_json(pl_results_reader *reader, pl_json *json, pl_error *error) {
  if (H5Aiterate2(reader->file, H5_INDEX_NAME, H5_ITER_INC, NULL, put_attribute, json) >= 0) return PL_OK;
  return pl_hdf5_fail(reader->path, "has an attribute that cannot be read", PL_BAD_INPUT, error);
}

static bool can_read(hid_t attribute, hid_t type) {
  _Alignas(16) unsigned char value[64];
  char *text = NULL;
  if (H5Tis_variable_str(type) > 0) {
    bool good = H5Aread(attribute, type, &text) >= 0;
    if (text != NULL) H5free_memory(text);
    return good;
  }
  return H5Aget_storage_size(attribute) > sizeof value || H5Aread(attribute, type, value) >= 0;
}

static herr_t read_attribute(hid_t group, const char *name, const H5A_info_t *info, void *unused) {
  (void)info;
  (void)unused;
  hid_t attribute = H5Aopen(group, name, H5P_DEFAULT), type = attribute >= 0 ? H5Aget_type(attribute) : -1;
  bool good = type >= 0 && can_read(attribute, type);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return good ? 0 : -1;
}

pl_code pl_results_reader_check_attributes(pl_results_reader *reader, pl_error *error) {
  if (H5Aiterate2(reader->file, H5_INDEX_NAME, H5_ITER_INC, NULL, read_attribute, NULL) >= 0) return PL_OK;
  return pl_hdf5_fail(reader->path, "has an attribute that cannot be read", PL_BAD_INPUT, error);
}

pl_code pl_results_reader_summarise(pl_results_reader *reader, pl_arena *arena, pl_results_summary *summary,
                                    pl_error *error) {
  *summary = (pl_results_summary){.n_rows = reader->n_rows, .best = UINT32_MAX};
  void *status_values, *time_values;
  PL_TRY(pl_results_reader_column(reader, pl_result_column("status"), arena, &status_values, error));
  PL_TRY(pl_results_reader_column(reader, pl_result_column("iter_time_s"), arena, &time_values, error));
  const int32_t *status = status_values;
  const double *time_s = time_values;
  for (uint32_t i = 0; i < reader->n_rows; i++) {
    if (status[i] < 0 || status[i] > PL_RESULT_FAILED)
      return pl_fail(error, PL_BAD_INPUT, "%s: row %u has the unknown status %d", reader->path, i, status[i]);
    summary->n_by_status[status[i]]++;
    if (status[i] != PL_RESULT_DONE) continue;
    if (summary->best == UINT32_MAX || time_s[i] < time_s[summary->best]) summary->best = i;
  }
  return PL_OK;
}
