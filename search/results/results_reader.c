/* See search/results/results_reader.h: what follows from attributes, and the way to what reads HDF5 (search/hdf5). */
#include "search/results/results_reader.h"

#include <stdlib.h>

#include "search/results/hdf5_library.h"

pl_code pl_results_reader_create(const char *path, pl_results_reader **reader, pl_error *error) {
  *reader = NULL;
  PL_HDF5_LIBRARY_TRY(pl_results_reader_create);
  return there(path, reader, error);
}

void pl_results_reader_destroy(pl_results_reader *reader) {
  if (reader == NULL) return;
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_destroy);
  there(reader);
}

uint32_t pl_results_reader_n_rows(const pl_results_reader *reader) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_n_rows);
  return there(reader);
}

bool pl_results_reader_has_features(const pl_results_reader *reader) {
  return pl_results_reader_n_stages(reader) > 0;
}

bool pl_results_reader_has_search(const pl_results_reader *reader) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_has_search);
  return there(reader);
}

pl_column_list pl_results_reader_columns(const pl_results_reader *reader) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_columns);
  return there(reader);
}

bool pl_results_reader_has_program(const pl_results_reader *reader) {
  return pl_results_reader_columns(reader).n > PL_RESULT_N_ALL;
}

pl_code pl_results_reader_column(pl_results_reader *reader, const pl_column_info *column, pl_arena *arena,
                                 void **values, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_column);
  return there(reader, column, arena, values, error);
}

pl_code pl_results_reader_element(pl_results_reader *reader, const pl_column_info *column, uint32_t row, void *value,
                                  pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_element);
  return there(reader, column, row, value, error);
}

pl_code pl_results_reader_row(pl_results_reader *reader, uint32_t row, pl_result_row *result, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_row);
  return there(reader, row, result, error);
}

pl_code pl_results_reader_rows(pl_results_reader *reader, uint32_t first, uint32_t count, pl_result_row *rows,
                               pl_search_values *values, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_rows);
  return there(reader, first, count, rows, values, error);
}

const char *pl_results_reader_attribute(pl_results_reader *reader, const char *name, pl_arena *arena) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_attribute);
  return there(reader, name, arena);
}

const char *pl_results_reader_command(pl_results_reader *reader, pl_arena *arena) {
  return pl_results_reader_attribute(reader, "command", arena);
}

const char *pl_results_reader_types(pl_results_reader *reader, pl_arena *arena) {
  const char *dtype = pl_results_reader_attribute(reader, "dtype", arena);
  const char *share = pl_results_reader_attribute(reader, "narrow_share", arena);
  const char *narrow = pl_results_reader_attribute(reader, "fp4", arena) != NULL   ? "fp4"
                       : pl_results_reader_attribute(reader, "fp8", arena) != NULL ? "fp8"
                                                                                   : NULL;
  if (dtype == NULL || narrow == NULL) return dtype;
  if (share == NULL) return pl_arena_printf(arena, "%s with %s products", dtype, narrow); /* files of before */
  double value = strtod(share, NULL);
  if (!(value > 0)) return pl_arena_printf(arena, "%s with no %s products", dtype, narrow);
  return pl_arena_printf(arena, "%s with %s products (%.3g %% of their work; the MFU counts each at its own peak)",
                         dtype, narrow, 100 * value);
}

pl_code pl_results_reader_attributes_json(pl_results_reader *reader, pl_json *json, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_attributes_json);
  return there(reader, json, error);
}

uint32_t pl_results_reader_n_stages(const pl_results_reader *reader) {
  PL_HDF5_LIBRARY_KNOWN(pl_results_reader_n_stages);
  return there(reader);
}

pl_code pl_results_reader_stages(pl_results_reader *reader, const pl_column_info *column, uint32_t row, double *values,
                                 pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_stages);
  return there(reader, column, row, values, error);
}

pl_code pl_results_reader_check_attributes(pl_results_reader *reader, pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_check_attributes);
  return there(reader, error);
}

pl_code pl_results_reader_summarise(pl_results_reader *reader, pl_arena *arena, pl_results_summary *summary,
                                    pl_error *error) {
  PL_HDF5_LIBRARY_TRY(pl_results_reader_summarise);
  return there(reader, arena, summary, error);
}
