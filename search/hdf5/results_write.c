/* Writing into a results file by all ranks, and the check of a file to be resumed (see search/results/results_file.h).
 */
#include "search/results/results_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/hdf5/hdf5_file.h"
#include "search/hdf5/results_type.h"

/* ---- resume ---- */

/* What was found, as text for people, and whether it is what is wanted. */
typedef struct stored {
  bool same;
  char text[64];
} stored;

static bool read_text(hid_t attribute, const char *wanted, stored *found) {
  hid_t type = H5Aget_type(attribute);
  char *text = NULL;
  bool good = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &text) >= 0;
  found->same = good && text != NULL && strcmp(text, wanted) == 0;
  if (good && text != NULL) snprintf(found->text, sizeof found->text, "%s", text);
  if (text != NULL) H5free_memory(text);
  H5Tclose(type);
  return good;
}

static bool read_attribute(hid_t file, const pl_attribute *wanted, stored *found) {
  hid_t attribute = H5Aopen(file, wanted->name, H5P_DEFAULT);
  if (attribute < 0) return false;
  int64_t integer = 0;
  double number = 0;
  bool good = false;
  switch (wanted->kind) {
  case PL_ATTRIBUTE_TEXT:
    good = read_text(attribute, wanted->text, found);
    break;
  case PL_ATTRIBUTE_INTEGER:
    good = H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0;
    found->same = integer == wanted->integer;
    snprintf(found->text, sizeof found->text, "%" PRId64, integer);
    break;
  case PL_ATTRIBUTE_NUMBER:
    good = H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0;
    found->same = memcmp(&number, &wanted->number, sizeof number) == 0;
    snprintf(found->text, sizeof found->text, "%.17g", number);
    break;
  }
  H5Aclose(attribute);
  return good;
}

static pl_code refuse_other(const char *path, const pl_attribute *wanted, const stored *found, pl_error *error) {
  char now[64];
  if (strcmp(wanted->name, PL_RESULTS_BUILD_NAME) == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: cannot be resumed: its rows are from another build of paceline (%s there, %s here: 'paceline "
                   "--version'), whose times may differ; go on with that build, or begin anew with --force instead of "
                   "--resume, or with another -o",
                   path, found->text[0] ? found->text : "none", wanted->text);
  switch (wanted->kind) {
  case PL_ATTRIBUTE_TEXT:
    snprintf(now, sizeof now, "%s", wanted->text);
    break;
  case PL_ATTRIBUTE_INTEGER:
    snprintf(now, sizeof now, "%" PRId64, wanted->integer);
    break;
  case PL_ATTRIBUTE_NUMBER:
    snprintf(now, sizeof now, "%.17g", wanted->number);
    break;
  }
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: cannot be resumed: %s is not the one of this run (%s there, %s here); give the same inputs, or "
                 "another -o",
                 path, wanted->name, found->text[0] ? found->text : "none", now);
}

static pl_code check_identity(const char *path, hid_t file, const pl_provenance *provenance, pl_error *error) {
  for (uint32_t i = 0; i < provenance->n_attributes; i++) {
    const pl_attribute *wanted = &provenance->attributes[i];
    stored found = {0};
    if (!wanted->identifies || (read_attribute(file, wanted, &found) && found.same)) continue;
    return refuse_other(path, wanted, &found, error);
  }
  return PL_OK;
}

static pl_code check_features(const char *path, hid_t file, uint32_t n_rows, uint32_t n_stages, pl_error *error) {
  hid_t dataset;
  if (n_stages == 0) return PL_OK;
  for (uint32_t c = PL_RESULT_FIRST_FEATURE; c < PL_RESULT_FIRST_SEARCH; c++) {
    PL_TRY(pl_results_open_column(path, file, &pl_result_columns[c], n_rows, 0, &dataset, error));
    H5Dclose(dataset);
  }
  for (int c = 0; c < PL_N_STAGE_FEATURES; c++) {
    PL_TRY(pl_results_open_column(path, file, &pl_stage_feature_columns[c], n_rows, n_stages, &dataset, error));
    H5Dclose(dataset);
  }
  return PL_OK;
}

static pl_code check_search(const char *path, hid_t file, uint32_t n_rows, bool search, pl_error *error) {
  hid_t dataset;
  for (uint32_t c = PL_RESULT_FIRST_SEARCH; search && c < PL_RESULT_N_ALL; c++) {
    PL_TRY(pl_results_open_column(path, file, &pl_result_columns[c], n_rows, 0, &dataset, error));
    H5Dclose(dataset);
  }
  return PL_OK;
}

static pl_code check_program(const char *path, hid_t file, uint32_t n_rows, const pl_program_columns *program,
                             pl_error *error) {
  hid_t dataset;
  for (uint32_t c = 0; program != NULL && c < program->n; c++) {
    PL_TRY(pl_results_open_column(path, file, &program->at[c], n_rows, 0, &dataset, error));
    H5Dclose(dataset);
  }
  return PL_OK;
}

static pl_code read_status(const char *path, hid_t file, uint32_t n_rows, int32_t *status, pl_error *error) {
  hid_t dataset;
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    PL_TRY(pl_results_open_column(path, file, &pl_result_columns[c], n_rows, 0, &dataset, error));
    bool last = c + 1 == pl_result_n_columns;
    bool good = !last || H5Dread(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, status) >= 0;
    H5Dclose(dataset);
    if (!good) return pl_hdf5_fail(path, "cannot be read", PL_IO, error);
  }
  return PL_OK;
}

pl_code pl_results_check_resume(const char *path, const pl_provenance *provenance, uint32_t n_rows, int32_t *status,
                                pl_error *error) {
  hid_t file;
  PL_TRY(pl_results_open_serial(path, &file, error));
  pl_code code = check_identity(path, file, provenance, error);
  if (code == PL_OK) code = check_features(path, file, n_rows, provenance->n_stages, error);
  if (code == PL_OK) code = check_search(path, file, n_rows, provenance->search, error);
  if (code == PL_OK) code = check_program(path, file, n_rows, provenance->program, error);
  if (code == PL_OK) code = read_status(path, file, n_rows, status, error);
  H5Fclose(file);
  return code;
}

/* ---- writing ---- */

typedef struct open_column {
  hid_t dataset, type;
} open_column;

enum { MOST_OPEN = PL_RESULT_MOST + PL_N_STAGE_FEATURES };

struct pl_results_file {
  hid_t file, space, transfer;
  hid_t stage_space;    /* of the columns over the stages; -1: no features */
  open_column *columns; /* as pl_result_columns, then those of programs, then the stages' */
  uint32_t n_rows, n_stages, block_rows;
  bool search; /* has the columns of searches */
  pl_program_columns program;
  bool over_mpi;
  int64_t fail_after;
  char *path;
  unsigned char *buffer; /* one column of one block */
};

static pl_code open_column_at(pl_results_file *file, uint32_t at, const pl_column_info *info, uint32_t n_stages,
                              pl_error *error) {
  open_column *column = &file->columns[at];
  PL_TRY(pl_results_open_column(file->path, file->file, info, file->n_rows, n_stages, &column->dataset, error));
  column->type = pl_results_type(info);
  return PL_OK;
}

static pl_code open_features(pl_results_file *file, pl_error *error) {
  for (uint32_t c = PL_RESULT_FIRST_FEATURE; c < PL_RESULT_FIRST_SEARCH; c++)
    PL_TRY(open_column_at(file, c, &pl_result_columns[c], 0, error));
  for (uint32_t c = 0; c < PL_N_STAGE_FEATURES; c++)
    PL_TRY(open_column_at(file, PL_RESULT_MOST + c, &pl_stage_feature_columns[c], file->n_stages, error));
  hsize_t n[2] = {file->n_rows, file->n_stages};
  file->stage_space = H5Screate_simple(2, n, NULL);
  return file->stage_space < 0 ? pl_hdf5_fail(file->path, "cannot be opened", PL_IO, error) : PL_OK;
}

static pl_code open_columns(pl_results_file *file, pl_error *error) {
  for (uint32_t c = 0; c < pl_result_n_columns; c++)
    PL_TRY(open_column_at(file, c, &pl_result_columns[c], 0, error));
  if (file->n_stages > 0) PL_TRY(open_features(file, error));
  for (uint32_t c = PL_RESULT_FIRST_SEARCH; file->search && c < PL_RESULT_N_ALL; c++)
    PL_TRY(open_column_at(file, c, &pl_result_columns[c], 0, error));
  for (uint32_t c = 0; c < file->program.n; c++)
    PL_TRY(open_column_at(file, PL_RESULT_FIRST_PROGRAM + c, &file->program.at[c], 0, error));
  hsize_t n = file->n_rows;
  file->space = H5Screate_simple(1, &n, NULL);
  file->transfer = H5Pcreate(H5P_DATASET_XFER);
  bool good = file->space >= 0 && file->transfer >= 0;
  if (!good || (file->over_mpi && H5Pset_dxpl_mpio(file->transfer, H5FD_MPIO_INDEPENDENT) < 0))
    return pl_hdf5_fail(file->path, "cannot be opened", PL_IO, error);
  return PL_OK;
}

/* One process without MPI writes through the operating system as MPI-IO does: every row at once, not when HDF5's sieve
 * buffer is full (a killed run would lose what is in it), and without locks (`show` may read a file that grows). */
static hid_t open_for_writing(const char *path, MPI_Comm comm) {
  hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
  bool good = comm != PL_ALONE ? H5Pset_fapl_mpio(plist, comm, MPI_INFO_NULL) >= 0
                               : H5Pset_sieve_buf_size(plist, 0) >= 0 && H5Pset_file_locking(plist, false, true) >= 0;
  hid_t file = good ? H5Fopen(path, H5F_ACC_RDWR, plist) : -1;
  H5Pclose(plist);
  return file;
}

/* What needs no look at the file. From here on pl_results_close cleans up. */
static pl_code create(const char *path, MPI_Comm comm, uint32_t n_rows, uint32_t block_rows, pl_results_file **created,
                      pl_error *error) {
  pl_results_file *file = calloc(1, sizeof *file);
  *created = file;
  if (file == NULL) return pl_fail_memory(error, "the results file");
  *file = (pl_results_file){.file = -1,
                            .space = -1,
                            .transfer = -1,
                            .stage_space = -1,
                            .n_rows = n_rows,
                            .block_rows = block_rows,
                            .over_mpi = comm != PL_ALONE,
                            .fail_after = -1};
  file->path = strdup(path);
  file->columns = calloc(MOST_OPEN, sizeof *file->columns);
  for (uint32_t c = 0; file->columns != NULL && c < MOST_OPEN; c++)
    file->columns[c] = (open_column){-1, -1};
  return file->path == NULL || file->columns == NULL ? pl_fail_memory(error, "the results file") : PL_OK;
}

/* Some ranks have the file open and others could not open it: to close it they would have to meet. */
static bool is_split(const pl_results_file *file, MPI_Comm comm) {
  int mine[2] = {file->file >= 0, file->file < 0}, any[2];
  if (comm == PL_ALONE) return false;
  MPI_Allreduce(mine, any, 2, MPI_INT, MPI_MAX, comm);
  return any[0] && any[1];
}

static pl_code prepare(pl_results_file *file, pl_error *error) {
  file->n_stages = pl_results_n_stages(file->file);
  file->search = pl_results_has_search(file->file);
  pl_results_program_columns(file->file, &file->program);
  size_t widest = file->n_stages * sizeof(double) > PL_RESULT_WIDEST_BYTES ? file->n_stages * sizeof(double)
                                                                           : PL_RESULT_WIDEST_BYTES;
  file->buffer = malloc((size_t)file->block_rows * widest);
  return file->buffer == NULL ? pl_fail_memory(error, "the results file") : open_columns(file, error);
}

pl_code pl_results_open(const char *path, MPI_Comm comm, uint32_t n_rows, uint32_t block_rows, pl_results_file **opened,
                        bool *split, pl_error *error) {
  pl_hdf5_quiet();
  *split = false;
  create(path, comm, n_rows, block_rows, opened, error);
  if (pl_agree(comm, error) == PL_OK) {
    pl_results_file *file = *opened;
    PL_ASSERT(file != NULL);
    file->file = open_for_writing(path, comm);
    if (file->file < 0) pl_hdf5_fail(path, "cannot be opened for writing", PL_IO, error);
    *split = is_split(file, comm);
    if (file->file >= 0 && error->code == PL_OK) prepare(file, error);
    pl_agree(comm, error);
  }
  if (error->code == PL_OK || *split) return error->code;
  pl_error ignored = PL_ERROR_INIT;
  pl_results_close(*opened, &ignored);
  *opened = NULL;
  return error->code;
}

/* Where a column of one block is found: in the rows (those of programs too), their features or what a search knows of
 * them. */
static const unsigned char *values_of(const pl_result_row *row, uint32_t column) {
  if (column >= PL_RESULT_FIRST_PROGRAM) return (const unsigned char *)row;
  if (column >= PL_RESULT_FIRST_SEARCH) return (const unsigned char *)row->search;
  if (column >= PL_RESULT_FIRST_FEATURE) return (const unsigned char *)row->features;
  return (const unsigned char *)row;
}

static bool write_column(pl_results_file *file, uint32_t c, hid_t memory, uint32_t count, const pl_result_row *rows) {
  const pl_column_info *info =
      c >= PL_RESULT_FIRST_PROGRAM ? &file->program.at[c - PL_RESULT_FIRST_PROGRAM] : &pl_result_columns[c];
  if (file->fail_after >= 0 && file->fail_after-- == 0) return false;
  for (uint32_t i = 0; i < count; i++)
    memcpy(file->buffer + (size_t)i * info->size, values_of(&rows[i], c) + info->offset, info->size);
  return H5Dwrite(file->columns[c].dataset, file->columns[c].type, memory, file->space, file->transfer, file->buffer) >=
         0;
}

static bool write_stages(pl_results_file *file, uint32_t c, hid_t memory, uint32_t count, const pl_result_row *rows) {
  const open_column *column = &file->columns[PL_RESULT_MOST + c];
  size_t width = file->n_stages * sizeof(double);
  if (file->fail_after >= 0 && file->fail_after-- == 0) return false;
  for (uint32_t i = 0; i < count; i++)
    memcpy(file->buffer + i * width, rows[i].features + PL_N_FEATURES + (size_t)c * file->n_stages, width);
  return H5Dwrite(column->dataset, column->type, memory, file->stage_space, file->transfer, file->buffer) >= 0;
}

/* `memory` and file->space have the rows selected. */
static bool write_features(pl_results_file *file, hid_t memory, uint32_t first, uint32_t count,
                           const pl_result_row *rows) {
  bool good = true;
  for (uint32_t c = PL_RESULT_FIRST_FEATURE; good && c < PL_RESULT_FIRST_SEARCH; c++)
    good = write_column(file, c, memory, count, rows);
  hsize_t start[2] = {first, 0}, n[2] = {count, file->n_stages};
  hid_t block = H5Screate_simple(2, n, NULL);
  good = good && block >= 0 && H5Sselect_hyperslab(file->stage_space, H5S_SELECT_SET, start, NULL, n, NULL) >= 0;
  for (uint32_t c = 0; good && c < PL_N_STAGE_FEATURES; c++)
    good = write_stages(file, c, block, count, rows);
  if (block >= 0) H5Sclose(block);
  return good;
}

pl_code pl_results_write(pl_results_file *file, uint32_t first, uint32_t count, const pl_result_row *rows,
                         pl_error *error) {
  PL_ASSERT(count > 0 && count <= file->block_rows && first < file->n_rows && count <= file->n_rows - first);
  hsize_t start = first, n = count;
  hid_t memory = H5Screate_simple(1, &n, NULL);
  bool good = memory >= 0 && H5Sselect_hyperslab(file->space, H5S_SELECT_SET, &start, NULL, &n, NULL) >= 0;
  if (good && file->n_stages > 0) good = write_features(file, memory, first, count, rows);
  for (uint32_t c = PL_RESULT_FIRST_SEARCH; file->search && good && c < PL_RESULT_N_ALL; c++)
    good = write_column(file, c, memory, count, rows);
  for (uint32_t c = 0; good && c < file->program.n; c++)
    good = write_column(file, PL_RESULT_FIRST_PROGRAM + c, memory, count, rows);
  for (uint32_t c = 0; good && c < pl_result_n_columns; c++)
    good = write_column(file, c, memory, count, rows);
  if (!good) pl_hdf5_fail(file->path, "cannot be written", PL_IO, error);
  if (memory >= 0) H5Sclose(memory);
  return good ? PL_OK : PL_IO;
}

pl_code pl_results_close(pl_results_file *file, pl_error *error) {
  if (file == NULL) return PL_OK;
  for (uint32_t c = 0; file->columns != NULL && c < MOST_OPEN; c++) {
    if (file->columns[c].dataset >= 0) H5Dclose(file->columns[c].dataset);
    if (file->columns[c].type >= 0) H5Tclose(file->columns[c].type);
  }
  if (file->stage_space >= 0) H5Sclose(file->stage_space);
  if (file->space >= 0) H5Sclose(file->space);
  if (file->transfer >= 0) H5Pclose(file->transfer);
  pl_code code = PL_OK;
  if (file->file >= 0 && H5Fclose(file->file) < 0)
    code = pl_hdf5_fail(file->path ? file->path : "results", "cannot be closed", PL_IO, error);
  free(file->buffer);
  free(file->columns);
  free(file->path);
  free(file);
  return code;
}

void pl_results_fail_after(pl_results_file *file, int64_t n_writes) {
  file->fail_after = n_writes;
}
