/* See search/hdf5/results_type.h. */
#include "search/hdf5/results_type.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "search/hdf5/hdf5_file.h"
#include "search/results/results_file.h"

hid_t pl_results_type(const pl_column_info *column) {
  hid_t type = -1;
  switch (column->type) {
  case PL_COLUMN_i32:
    return H5Tcopy(H5T_NATIVE_INT32);
  case PL_COLUMN_i64:
    return H5Tcopy(H5T_NATIVE_INT64);
  case PL_COLUMN_f64:
    return H5Tcopy(H5T_NATIVE_DOUBLE);
  case PL_COLUMN_u64:
    return H5Tcopy(H5T_NATIVE_UINT64);
  case PL_COLUMN_text:
    break;
  }
  type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, column->size);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/* HDF5's own messages for these say neither which file nor what is wrong with it. */
static pl_code check_readable(const char *path, pl_error *error) {
  struct stat info;
  if (stat(path, &info) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return pl_fail(error, PL_BAD_INPUT, "%s: is not a regular file", path);
  if (access(path, R_OK) != 0) return pl_fail(error, PL_BAD_INPUT, "%s: %s", path, strerror(errno));
  if (H5Fis_hdf5(path) <= 0) return pl_fail(error, PL_BAD_INPUT, "%s: is not an HDF5 file", path);
  return PL_OK;
}

static pl_code check_schema(const char *path, hid_t file, pl_error *error) {
  int64_t schema = 0;
  if (H5Aexists(file, PL_RESULTS_SCHEMA_NAME) <= 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: is HDF5, but not a results file of paceline sweep", path);
  hid_t attribute = H5Aopen(file, PL_RESULTS_SCHEMA_NAME, H5P_DEFAULT);
  bool good = attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, &schema) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  if (!good) return pl_fail(error, PL_BAD_INPUT, "%s: its schema number cannot be read", path);
  if (schema != PL_RESULTS_SCHEMA)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: has schema %lld; this program reads and writes schema %d: make it anew with the command that "
                   "it records (h5dump -a command)",
                   path, (long long)schema, PL_RESULTS_SCHEMA);
  return PL_OK;
}

pl_code pl_results_open_serial(const char *path, hid_t *file, pl_error *error) {
  pl_hdf5_quiet();
  PL_TRY(check_readable(path, error));
  *file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (*file < 0) return pl_hdf5_fail(path, "is damaged or truncated HDF5", PL_BAD_INPUT, error);
  pl_code code = check_schema(path, *file, error);
  if (code != PL_OK) H5Fclose(*file);
  return code;
}

/* Length of a 1-D dataset; -1 for anything else. */
static int64_t length_of(hid_t dataset) {
  hid_t space = H5Dget_space(dataset);
  hsize_t n = 0;
  bool good = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &n, NULL) == 1;
  if (space >= 0) H5Sclose(space);
  return good && n < UINT32_MAX ? (int64_t)n : -1;
}

pl_code pl_results_count(const char *path, hid_t file, uint32_t *n_rows, pl_error *error) {
  hid_t dataset = H5Dopen2(file, "status", H5P_DEFAULT);
  int64_t n = dataset >= 0 ? length_of(dataset) : -1;
  if (dataset >= 0) H5Dclose(dataset);
  if (n < 0) return pl_fail(error, PL_BAD_INPUT, "%s: has no usable column 'status'", path);
  *n_rows = (uint32_t)n;
  return PL_OK;
}

uint32_t pl_results_n_stages(hid_t file) {
  if (H5Lexists(file, "stage", H5P_DEFAULT) <= 0) return 0;
  hid_t dataset = H5Dopen2(file, "stage", H5P_DEFAULT);
  int64_t n = dataset >= 0 ? length_of(dataset) : -1;
  if (dataset >= 0) H5Dclose(dataset);
  return n > 0 ? (uint32_t)n : 0;
}

bool pl_results_has_search(hid_t file) {
  return H5Lexists(file, pl_result_columns[PL_RESULT_FIRST_SEARCH].name, H5P_DEFAULT) > 0;
}

void pl_results_program_columns(hid_t file, pl_program_columns *columns) {
  *columns = (pl_program_columns){.n = 0};
  if (H5Lexists(file, PL_PROGRAM_REASON, H5P_DEFAULT) <= 0) return;
  hid_t attribute = H5Aexists(file, PL_PROGRAM_CHOICES) > 0 ? H5Aopen(file, PL_PROGRAM_CHOICES, H5P_DEFAULT) : -1;
  if (attribute < 0) return;
  hid_t type = H5Aget_type(attribute);
  char *names = NULL;
  if (H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &names) >= 0 && names != NULL)
    pl_program_columns_fill(names, columns);
  if (names != NULL) H5free_memory(names);
  H5Tclose(type);
  H5Aclose(attribute);
}

static bool has_shape(hid_t dataset, uint32_t n_rows, uint32_t n_stages) {
  if (n_stages == 0) return length_of(dataset) == (int64_t)n_rows;
  hid_t space = H5Dget_space(dataset);
  hsize_t n[2] = {0, 0};
  bool good = space >= 0 && H5Sget_simple_extent_ndims(space) == 2 && H5Sget_simple_extent_dims(space, n, NULL) == 2 &&
              n[0] == n_rows && n[1] == n_stages;
  if (space >= 0) H5Sclose(space);
  return good;
}

static bool has_type(hid_t dataset, const pl_column_info *column) {
  hid_t stored = H5Dget_type(dataset), wanted = pl_results_type(column);
  bool good = stored >= 0 && H5Tequal(stored, wanted) > 0;
  if (stored >= 0) H5Tclose(stored);
  H5Tclose(wanted);
  return good;
}

pl_code pl_results_open_column(const char *path, hid_t file, const pl_column_info *column, uint32_t n_rows,
                               uint32_t n_stages, hid_t *dataset, pl_error *error) {
  *dataset = H5Dopen2(file, column->name, H5P_DEFAULT);
  if (*dataset < 0) return pl_fail(error, PL_BAD_INPUT, "%s: has no column '%s'", path, column->name);
  if (has_shape(*dataset, n_rows, n_stages) && has_type(*dataset, column)) return PL_OK;
  H5Dclose(*dataset);
  return pl_fail(error, PL_BAD_INPUT, "%s: column '%s' has another length or type than a results file's", path,
                 column->name);
}
