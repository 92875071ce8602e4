/* Creation of a results file, by one process (see search/results/results_file.h). */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/hdf5/hdf5_file.h"
#include "search/hdf5/results_type.h"
#include "search/results/results_file.h"

/* ---- attributes: H5I ids of 0 and below are invalid, so a chain of calls can run on and be judged at its end ---- */

static bool put_attribute(hid_t object, const char *name, hid_t type, hid_t space, const void *value) {
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
  return H5Aclose(attribute) >= 0 && good;
}

static bool put_scalar(hid_t object, const char *name, hid_t type, const void *value) {
  hid_t space = H5Screate(H5S_SCALAR);
  bool good = put_attribute(object, name, type, space, value);
  return H5Sclose(space) >= 0 && good;
}

static bool put_text(hid_t object, const char *name, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1);
  bool good = H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
              put_scalar(object, name, type, &text);
  return H5Tclose(type) >= 0 && good;
}

static bool put_root_attribute(hid_t file, const pl_attribute *attribute) {
  switch (attribute->kind) {
  case PL_ATTRIBUTE_TEXT:
    return put_text(file, attribute->name, attribute->text);
  case PL_ATTRIBUTE_INTEGER:
    return put_scalar(file, attribute->name, H5T_NATIVE_INT64, &attribute->integer);
  case PL_ATTRIBUTE_NUMBER:
    return put_scalar(file, attribute->name, H5T_NATIVE_DOUBLE, &attribute->number);
  }
  return false;
}

static bool put_status_flags(hid_t dataset) {
  static const int32_t values[] = {PL_RESULT_PENDING, PL_RESULT_DONE, PL_RESULT_OOM, PL_RESULT_FAILED};
  hsize_t n = sizeof values / sizeof values[0];
  hid_t space = H5Screate_simple(1, &n, NULL);
  bool good = put_attribute(dataset, "flag_values", H5T_NATIVE_INT32, space, values);
  good = put_text(dataset, "flag_meanings", "pending done oom failed") && good;
  return H5Sclose(space) >= 0 && good;
}

/* ---- datasets ---- */

/* What a row holds that is not computed yet: NaN, -1, 0 for digests and status, the empty text. Texts keep HDF5's own
 * fill value, which is that: netCDF 4.9 takes one that is set for a pointer, and ncdump crashes. */
static bool set_fill(hid_t plist, const pl_column_info *column, hid_t type) {
  const double nan_value = NAN;
  const int32_t none32 = strcmp(column->name, "status") == 0 ? PL_RESULT_PENDING : -1;
  const int64_t none64 = -1;
  const uint64_t zero = 0;
  const void *value = NULL;
  switch (column->type) {
  case PL_COLUMN_i32:
    value = &none32;
    break;
  case PL_COLUMN_i64:
    value = &none64;
    break;
  case PL_COLUMN_f64:
    value = &nan_value;
    break;
  case PL_COLUMN_u64:
    value = &zero;
    break;
  case PL_COLUMN_text:
    return true;
  }
  return H5Pset_fill_value(plist, type, value) >= 0;
}

/* Contiguous, allocated and filled at once; no modification time, which would make equal runs differ. */
static hid_t creation_plist(void) {
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(plist, H5D_CONTIGUOUS);
  H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(plist, H5D_FILL_TIME_ALLOC);
  H5Pset_obj_track_times(plist, false);
  return plist;
}

/* `stage` >= 0: a column over the stages too. */
static bool put_column(hid_t file, hid_t space, hid_t scale, hid_t stage, const pl_column_info *column) {
  hid_t plist = creation_plist();
  hid_t type = pl_results_type(column);
  hid_t dataset = -1;
  if (set_fill(plist, column, type))
    dataset = H5Dcreate2(file, column->name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  bool good = dataset >= 0;
  good = good && (column->unit[0] == '\0' || put_text(dataset, "units", column->unit));
  good = good && put_text(dataset, "long_name", column->description);
  /* By this xarray gives text and not bytes: ds.schedule == "1f1b". Text of any length, which would do without it, can
   * not be written by several processes at once. */
  good = good && (column->type < PL_COLUMN_text || put_text(dataset, "_Encoding", "utf-8"));
  good = good && (strcmp(column->name, "status") != 0 || put_status_flags(dataset));
  good = good && H5DSattach_scale(dataset, scale, 0) >= 0;
  good = good && (stage < 0 || H5DSattach_scale(dataset, stage, 1) >= 0);
  if (dataset >= 0) good = H5Dclose(dataset) >= 0 && good;
  H5Tclose(type);
  H5Pclose(plist);
  return good;
}

static hid_t put_scale(hid_t file, hid_t space, const char *name, const char *meaning, uint32_t n_rows,
                       pl_error *error) {
  hid_t plist = creation_plist();
  hid_t scale = H5Dcreate2(file, name, H5T_NATIVE_INT64, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  H5Pclose(plist);
  int64_t *indices = malloc(n_rows * sizeof *indices);
  for (uint32_t i = 0; indices != NULL && i < n_rows; i++)
    indices[i] = i;
  if (indices == NULL) pl_fail_memory(error, "the indices of a results file");
  bool good = scale >= 0 && indices != NULL;
  good = good && H5Dwrite(scale, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, indices) >= 0;
  free(indices);
  good = good && H5DSset_scale(scale, name) >= 0;
  good = good && put_text(scale, "long_name", meaning) && put_text(scale, "units", "1");
  if (good) return scale;
  if (scale >= 0) H5Dclose(scale);
  return -1;
}

static bool put_features(hid_t file, hid_t space, hid_t scale, uint32_t n_rows, uint32_t n_stages, pl_error *error) {
  bool good = true;
  for (uint32_t c = PL_RESULT_FIRST_FEATURE; good && c < PL_RESULT_FIRST_SEARCH; c++)
    good = put_column(file, space, scale, -1, &pl_result_columns[c]);
  hsize_t n[2] = {n_rows, n_stages};
  hid_t stages = H5Screate_simple(1, &n[1], NULL), both = H5Screate_simple(2, n, NULL);
  hid_t stage = good ? put_scale(file, stages, "stage", "pipeline stage", n_stages, error) : -1;
  good = good && stage >= 0;
  for (int c = 0; good && c < PL_N_STAGE_FEATURES; c++)
    good = put_column(file, both, scale, stage, &pl_stage_feature_columns[c]);
  if (stage >= 0) good = H5Dclose(stage) >= 0 && good;
  H5Sclose(both);
  H5Sclose(stages);
  return good;
}

/* An error is that of memory; all others are HDF5's to tell. */
static bool put_everything(hid_t file, const pl_provenance *provenance, uint32_t n_rows, pl_error *error) {
  int64_t schema = PL_RESULTS_SCHEMA;
  bool good = put_scalar(file, PL_RESULTS_SCHEMA_NAME, H5T_NATIVE_INT64, &schema);
  for (uint32_t i = 0; good && i < provenance->n_attributes; i++)
    good = put_root_attribute(file, &provenance->attributes[i]);
  hsize_t n = n_rows;
  hid_t space = H5Screate_simple(1, &n, NULL);
  hid_t scale = good ? put_scale(file, space, "candidate", "index of the candidate in the space", n_rows, error) : -1;
  good = good && scale >= 0;
  for (uint32_t c = 0; good && c < pl_result_n_columns; c++)
    good = put_column(file, space, scale, -1, &pl_result_columns[c]);
  for (uint32_t c = PL_RESULT_FIRST_SEARCH; provenance->search && good && c < PL_RESULT_N_ALL; c++)
    good = put_column(file, space, scale, -1, &pl_result_columns[c]);
  for (uint32_t c = 0; provenance->program != NULL && good && c < provenance->program->n; c++)
    good = put_column(file, space, scale, -1, &provenance->program->at[c]);
  if (good && provenance->n_stages > 0) good = put_features(file, space, scale, n_rows, provenance->n_stages, error);
  if (scale >= 0) good = H5Dclose(scale) >= 0 && good;
  H5Sclose(space);
  return good && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0;
}

/* ---- the file ---- */

/* Asks the operating system for the room first: HDF5 1.10 recovers badly from a disk that fills up under it. */
static pl_code probe_room(int file, const char *path, const pl_provenance *provenance, uint32_t n_rows,
                          pl_error *error) {
  size_t row_bytes = sizeof(pl_result_row) + sizeof(int64_t);
  size_t n_stages = provenance->n_stages;
  if (n_stages > 0) row_bytes += (PL_N_FEATURES + PL_N_STAGE_FEATURES * n_stages) * sizeof(double);
  if (provenance->search) row_bytes += sizeof(pl_search_values);
  off_t size_bytes = (off_t)n_rows * (off_t)row_bytes + 512 * 1024;
  int refused = posix_fallocate(file, 0, size_bytes);
  if (refused == 0 || refused == EOPNOTSUPP || refused == EINVAL) return PL_OK;
  return pl_fail(error, PL_IO, "%s: no room for %u candidates (%.1f MB): %s", path, n_rows, (double)size_bytes / 1e6,
                 strerror(refused));
}

static pl_code fill(const pl_partial_file *partial, const char *path, const pl_provenance *provenance, uint32_t n_rows,
                    pl_error *error) {
  pl_hdf5_quiet();
  PL_TRY(probe_room(partial->descriptor, path, provenance, n_rows, error));
  hid_t file = pl_hdf5_create(partial->name);
  if (file < 0) return pl_hdf5_fail(path, "cannot be created", PL_IO, error);
  if (!put_everything(file, provenance, n_rows, error)) pl_hdf5_fail(path, "cannot be created", PL_IO, error);
  if (H5Fclose(file) < 0) pl_hdf5_fail(path, "cannot be created", PL_IO, error);
  return error->code;
}

pl_code pl_results_begin(const char *path, const pl_provenance *provenance, uint32_t n_rows, pl_partial_file *partial,
                         pl_error *error) {
  int failed = pl_partial_open(partial, path);
  if (failed == ENOMEM) return pl_fail_memory(error, "the file of results");
  if (failed != 0) return pl_fail(error, PL_IO, "%s: cannot be created: %s", path, strerror(failed));
  pl_error cause = PL_ERROR_INIT;
  if (fill(partial, path, provenance, n_rows, &cause) == PL_OK) return PL_OK;
  pl_partial_remove(partial);
  return pl_fail(error, cause.code, "%s", cause.message);
}

pl_code pl_results_create(const char *path, const pl_provenance *provenance, uint32_t n_rows, bool replace,
                          pl_error *error) {
  pl_partial_file partial;
  PL_TRY(pl_results_check_absent(path, replace, error));
  PL_TRY(pl_results_begin(path, provenance, n_rows, &partial, error));
  int failed = pl_partial_publish(&partial, path, replace);
  if (failed == EEXIST) return pl_results_check_absent(path, false, error);
  if (failed == ENOMEM) return pl_fail_memory(error, "the file of results");
  return failed != 0 ? pl_fail(error, PL_IO, "%s: cannot be created: %s", path, strerror(failed)) : PL_OK;
}

pl_code pl_results_versions_of(pl_results_versions *versions, pl_error *error) {
  unsigned major, minor, release;
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  if (H5get_libversion(&major, &minor, &release) < 0 || MPI_Get_library_version(mpi, &length) != MPI_SUCCESS)
    return pl_fail(error, PL_UNSUPPORTED, "HDF5 or MPI does not say which version it is");
  snprintf(versions->hdf5, sizeof versions->hdf5, "%u.%u.%u", major, minor, release);
  snprintf(versions->mpi, sizeof versions->mpi, "%s", mpi);
  return PL_OK;
}
