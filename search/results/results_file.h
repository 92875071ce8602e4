/* The results file: HDF5, one 1-D dataset per column of core/graph/result.h, one row per candidate; on request more
 * such columns, and 2-D ones over candidates and stages, with the features of core/graph/features.h.
 *
 * Rank 0 creates it whole (every dataset allocated and filled, attributes written, closed) under a temporary name and
 * renames it: there is never a half-made file under the final name, and its structure cannot depend on the number of
 * ranks. Then all ranks open it over MPI-IO (one process without MPI: as it is) and only write raw data, in blocks,
 * each with `status` last; nothing in the file moves any more, so whatever is killed, what is on disk opens, and a row
 * whose status is not 0 is complete
 * ("acknowledged"). That holds for killed processes; against a crash of the operating system only what it had written
 * back is safe.
 *
 * Rejected: compression and chunks (a killed run loses rows or the file); libver latest (needs h5clear after a crash);
 * one file per rank with virtual datasets (a missing shard turns into NaN silently). Compress afterwards: h5repack -f
 * GZIP=6.
 */
#ifndef PL_SEARCH_RESULTS_FILE_H
#define PL_SEARCH_RESULTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/graph/result.h"
#include "core/system/partial_file.h"
#include "search/parallel/ranks.h"
#include "search/results/program_columns.h"

#define PL_RESULTS_BUILD_NAME "paceline_build" /* pl_build_id() of who made the file */

enum { PL_RESULTS_SCHEMA = 4, PL_RESULTS_ATTRIBUTES = 64 };

typedef enum pl_attribute_kind { PL_ATTRIBUTE_TEXT = 0, PL_ATTRIBUTE_INTEGER, PL_ATTRIBUTE_NUMBER } pl_attribute_kind;

/* One attribute of the root group. */
typedef struct pl_attribute {
  const char *name;
  pl_attribute_kind kind;
  bool identifies; /* a resumed run must have the same value */
  const char *text;
  int64_t integer;
  double number;
} pl_attribute;

/* What the rows depend on, and with what they were made. Nothing of time, place or parallelism: equal runs, equal
 * bytes. */
typedef struct pl_provenance {
  uint32_t n_stages;                 /* of the features (core/graph/features.h); 0: the file has none */
  bool search;                       /* the file has the columns of searches */
  const pl_program_columns *program; /* it has these columns; NULL: none of programs */
  uint32_t n_attributes;
  pl_attribute attributes[PL_RESULTS_ATTRIBUTES];
} pl_provenance;

void pl_provenance_text(pl_provenance *provenance, const char *name, const char *text, bool identifies);
void pl_provenance_integer(pl_provenance *provenance, const char *name, int64_t value, bool identifies);
void pl_provenance_number(pl_provenance *provenance, const char *name, double value, bool identifies);

/* Of the libraries that write, as they say themselves. */
typedef struct pl_results_versions {
  char hdf5[16], mpi[256];
} pl_results_versions;

pl_code pl_results_versions_of(pl_results_versions *versions, pl_error *error);

/* ---- one process ---- */

/* PL_BAD_INPUT if nothing can be created at `path`: it exists (and `replace` is false or it is no regular file), or its
 * folder does not. */
pl_code pl_results_check_absent(const char *path, bool replace, pl_error *error);
/* Creates the file with `n_rows` pending rows. With `replace` an existing regular file goes at the moment the new one
 * is complete. The disk space is taken now, so that a full disk shows here and not after hours. On failure nothing is
 * left behind. */
pl_code pl_results_create(const char *path, const pl_provenance *provenance, uint32_t n_rows, bool replace,
                          pl_error *error);
/* The same as a partial file, which the caller publishes or removes. */
pl_code pl_results_begin(const char *path, const pl_provenance *provenance, uint32_t n_rows, pl_partial_file *partial,
                         pl_error *error);
/* Whether the file at `path` is of the run that `provenance` describes: PL_BAD_INPUT says what differs. `status`
 * receives n_rows values. */
pl_code pl_results_check_resume(const char *path, const pl_provenance *provenance, uint32_t n_rows, int32_t *status,
                                pl_error *error);

/* ---- all ranks ---- */

typedef struct pl_results_file pl_results_file;

/* Collective over `comm` (or PL_ALONE); opens for writing rows. `block_rows`: the most that one write gets. All ranks
 * return the same code; after a failure the file is closed and NULL on all of them, but with `split` some hold it open
 * and others could not open it: then only MPI_Abort ends the run without a hang. */
pl_code pl_results_open(const char *path, MPI_Comm comm, uint32_t n_rows, uint32_t block_rows, pl_results_file **file,
                        bool *split, pl_error *error);
/* Independent: any rank, any time, one thread of it. Rows first .. first + count - 1; status last. Their
 * features and search are set where the file has such columns. */
pl_code pl_results_write(pl_results_file *file, uint32_t first, uint32_t count, const pl_result_row *rows,
                         pl_error *error);
/* Collective; also after a failed write. NULL is allowed. */
pl_code pl_results_close(pl_results_file *file, pl_error *error);
/* Tests: the write after `n_writes` more columns fails as on a full disk; negative = never. */
void pl_results_fail_after(pl_results_file *file, int64_t n_writes);

#endif
