/* See search/results/results_reader.h. */
#include "search/results/results_reader.h"

#include <stdlib.h>
#include <string.h>

#include "search/results/hdf5_file.h"
#include "search/results/results_type.h"

struct pl_results_reader {
  hid_t file;
  uint32_t n_rows;
  bool has_features, has_search;
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
                                .has_features = pl_results_n_stages(file) > 0,
                                .has_search = pl_results_has_search(file),
                                .path = copy};
  *created = reader;
  return PL_OK;
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

bool pl_results_reader_has_features(const pl_results_reader *reader) {
  return reader->has_features;
}

bool pl_results_reader_has_search(const pl_results_reader *reader) {
  return reader->has_search;
}

/* Rows first .. first + count - 1 of a column. */
static pl_code read_rows(pl_results_reader *reader, const pl_column_info *column, uint32_t first, uint32_t count,
                         void *values, pl_error *error) {
  hid_t dataset;
  bool of_search = column >= &pl_result_columns[PL_RESULT_FIRST_SEARCH];
  if (!reader->has_search && of_search)
    return pl_fail(error, PL_BAD_INPUT, "%s: has no column '%s': it comes with paceline search", reader->path,
                   column->name);
  if (!reader->has_features && !of_search && column > &pl_result_columns[PL_RESULT_CANDIDATE])
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
  return PL_OK;
}

pl_code pl_results_reader_rows(pl_results_reader *reader, uint32_t first, uint32_t count, pl_result_row *rows,
                               pl_search_values *values, pl_error *error) {
  unsigned char *buffer = malloc((size_t)count * PL_RESULT_WIDEST_BYTES);
  pl_code code = buffer == NULL ? pl_fail_memory(error, "rows of a results file") : PL_OK;
  memset(rows, 0, count * sizeof *rows);
  for (uint32_t c = 0; code == PL_OK && c < PL_RESULT_N_ALL; c++) {
    bool of_search = c >= PL_RESULT_FIRST_SEARCH;
    if (of_search ? values == NULL : c >= pl_result_n_columns) continue;
    const pl_column_info *column = &pl_result_columns[c];
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

const char *pl_results_reader_command(pl_results_reader *reader, pl_arena *arena) {
  hid_t attribute = H5Aopen(reader->file, "command", H5P_DEFAULT);
  if (attribute < 0) return NULL;
  hid_t type = H5Aget_type(attribute);
  char *text = NULL;
  bool good = H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &text) >= 0 && text != NULL;
  const char *copy = good ? pl_arena_strdup(arena, text) : NULL;
  if (text != NULL) H5free_memory(text);
  H5Tclose(type);
  H5Aclose(attribute);
  return copy;
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
