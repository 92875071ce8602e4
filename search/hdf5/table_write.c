/* Writes tables (see search/results/table_file.h). */
#include "search/results/table_file.h"

#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/command.h"
#include "core/system/partial_file.h"
#include "search/hdf5/hdf5_file.h"

/* Texts of a column as one block of equal widths, NUL-padded. */
static char *pack(const char *const *texts, uint32_t n_rows, size_t width) {
  char *block = calloc(n_rows > 0 ? n_rows : 1, width);
  for (uint32_t i = 0; block != NULL && i < n_rows; i++)
    memcpy(block + i * width, texts[i], strlen(texts[i]));
  return block;
}

static hid_t text_type(size_t width) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, width);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

static hid_t create(hid_t file, const char *name, hid_t type, hid_t space) {
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(plist, false); /* equal runs, equal bytes */
  hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  H5Pclose(plist);
  return dataset;
}

static hid_t put_values(hid_t file, hid_t space, const pl_table_column *column, uint32_t n_rows) {
  size_t width = 1;
  for (uint32_t i = 0; column->type == PL_TABLE_TEXT && i < n_rows; i++) {
    size_t length = strlen(((const char *const *)column->values)[i]);
    if (length > width) width = length;
  }
  hid_t type = column->type == PL_TABLE_TEXT      ? text_type(width)
               : column->type == PL_TABLE_INTEGER ? H5Tcopy(H5T_NATIVE_INT64)
                                                  : H5Tcopy(H5T_NATIVE_DOUBLE);
  char *block = column->type == PL_TABLE_TEXT ? pack(column->values, n_rows, width) : NULL;
  hid_t dataset = column->type == PL_TABLE_TEXT && block == NULL ? -1 : create(file, column->name, type, space);
  bool good = dataset >= 0 &&
              H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, block != NULL ? block : column->values) >= 0;
  free(block);
  H5Tclose(type);
  if (good || dataset < 0) return dataset;
  H5Dclose(dataset);
  return -1;
}

static bool put_column(hid_t file, hid_t space, hid_t scale, const pl_table_column *column, uint32_t n_rows) {
  hid_t dataset = put_values(file, space, column, n_rows);
  if (dataset < 0) return false;
  bool good = column->unit[0] == '\0' || H5LTset_attribute_string(file, column->name, "units", column->unit) >= 0;
  good = H5LTset_attribute_string(file, column->name, "long_name", column->description) >= 0 && good;
  good = (scale < 0 || H5DSattach_scale(dataset, scale, 0) >= 0) && good;
  return H5Dclose(dataset) >= 0 && good;
}

static hid_t put_scale(hid_t file, hid_t space, const char *dimension, uint32_t n_rows) {
  int64_t *indices = calloc(n_rows, sizeof *indices);
  if (indices == NULL) return -1;
  for (uint32_t i = 0; i < n_rows; i++)
    indices[i] = i;
  const pl_table_column column = {dimension, "1", "index of the row", PL_TABLE_INTEGER, indices};
  bool good = put_column(file, space, -1, &column, n_rows);
  free(indices);
  hid_t scale = good ? H5Dopen2(file, dimension, H5P_DEFAULT) : -1;
  if (scale >= 0 && H5DSset_scale(scale, dimension) < 0) {
    H5Dclose(scale);
    return -1;
  }
  return scale;
}

static bool put_table(hid_t file, const char *dimension, const char *command, const pl_table_column *columns,
                      uint32_t n_columns, uint32_t n_rows) {
  hsize_t n = n_rows;
  hid_t space = H5Screate_simple(1, &n, NULL), scale = put_scale(file, space, dimension, n_rows);
  bool good = scale >= 0 && H5LTset_attribute_string(file, "/", "command", command) >= 0 &&
              H5LTset_attribute_string(file, "/", "paceline_version", PACELINE_VERSION) >= 0;
  for (uint32_t c = 0; good && c < n_columns; c++)
    good = put_column(file, space, scale, &columns[c], n_rows);
  if (scale >= 0) good = H5Dclose(scale) >= 0 && good;
  H5Sclose(space);
  return H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && good;
}

static pl_code fill(const char *name, const char *path, const char *dimension, const char *command,
                    const pl_table_column *columns, uint32_t n_columns, uint32_t n_rows, pl_error *error) {
  pl_hdf5_quiet();
  hid_t file = pl_hdf5_create(name);
  if (file < 0) return pl_hdf5_fail(path, "cannot be created", PL_BAD_INPUT, error);
  if (!put_table(file, dimension, command, columns, n_columns, n_rows))
    pl_hdf5_fail(path, "cannot be written", PL_IO, error);
  if (H5Fclose(file) < 0) pl_hdf5_fail(path, "cannot be written", PL_IO, error);
  return error->code;
}

pl_code pl_table_store(const char *path, const char *dimension, const char *command, const pl_table_column *columns,
                       uint32_t n_columns, uint32_t n_rows, bool replace, pl_error *error) {
  pl_partial_file partial;
  if (!replace && access(path, F_OK) == 0) return pl_fail(error, PL_BAD_INPUT, "%s exists; --force replaces it", path);
  int failed = pl_partial_open(&partial, path);
  if (failed == ENOMEM) return pl_fail_memory(error, "a table of results");
  if (failed != 0) return pl_fail(error, PL_BAD_INPUT, "%s: cannot be created: %s", path, strerror(failed));
  pl_code code = fill(partial.name, path, dimension, command, columns, n_columns, n_rows, error);
  if (code == PL_OK) failed = pl_partial_publish(&partial, path, replace);
  pl_partial_remove(&partial);
  if (failed == EEXIST) return pl_fail(error, PL_BAD_INPUT, "%s exists; --force replaces it", path);
  return failed != 0 ? pl_fail(error, PL_IO, "%s: cannot be created: %s", path, strerror(failed)) : code;
}
