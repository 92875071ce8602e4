/* See validation/fit/gemm_samples.h. */
#include "validation/fit/gemm_samples.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"

static const double EXTENT_MOST = (double)(1 << 24);

typedef struct columns {
  uint32_t gpu, dtype, m, n, k, batch, time, multiprocessors;
  double time_unit_s; /* 0: the cell says */
} columns;

static pl_code require(const pl_csv *csv, const char *name, const char *other, uint32_t *column, pl_error *error) {
  *column = pl_csv_column(csv, name);
  if (*column == PL_CSV_NO_COLUMN && other != NULL) *column = pl_csv_column(csv, other);
  if (*column != PL_CSV_NO_COLUMN) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "%s: no column '%s'; needed are dtype, m, n, k and time (or time_s, time_ms, time_us)", csv->name,
                 name);
}

static pl_code find_columns(const pl_csv *csv, columns *c, pl_error *error) {
  static const struct {
    const char *name;
    double unit_s;
  } times[] = {{"time_s", 1}, {"time_ms", 1e-3}, {"time_us", 1e-6}};
  *c = (columns){.gpu = pl_csv_column(csv, "gpu"),
                 .batch = pl_csv_column(csv, "batch"),
                 .time = PL_CSV_NO_COLUMN,
                 .multiprocessors = pl_csv_column(csv, "multiprocessors")};
  PL_TRY(require(csv, "dtype", "gemm_dtype", &c->dtype, error));
  PL_TRY(require(csv, "m", NULL, &c->m, error));
  PL_TRY(require(csv, "n", NULL, &c->n, error));
  PL_TRY(require(csv, "k", NULL, &c->k, error));
  for (size_t i = 0; i < sizeof times / sizeof times[0] && c->time == PL_CSV_NO_COLUMN; i++) {
    c->time = pl_csv_column(csv, times[i].name);
    c->time_unit_s = times[i].unit_s;
  }
  if (c->time != PL_CSV_NO_COLUMN) return PL_OK;
  c->time_unit_s = 0;
  return require(csv, "time", NULL, &c->time, error);
}

/* ---- one row ---- */

/* A whole number from 1; `missing` for an empty cell, if that is more than 0. */
static pl_code read_extent(const pl_csv *csv, uint32_t row, uint32_t column, int64_t missing, int64_t *extent,
                           pl_error *error) {
  bool given;
  double value = (double)missing;
  if (column != PL_CSV_NO_COLUMN) PL_TRY(pl_csv_number(csv, row, column, &given, &value, error));
  *extent = value >= 1 && value <= EXTENT_MOST ? (int64_t)value : 0;
  if (*extent >= 1 && (double)*extent == value) return PL_OK;
  return pl_csv_fail(csv, row, error, "column '%s': '%.60s' is no whole number from 1 to 2^24", csv->header[column],
                     pl_csv_cell(csv, row, column));
}

static pl_code read_time(const pl_csv *csv, uint32_t row, const columns *c, double *time_s, pl_error *error) {
  *time_s = 0;
  const char *text = pl_csv_cell(csv, row, c->time);
  if (c->time_unit_s > 0) {
    bool given;
    PL_TRY(pl_csv_number(csv, row, c->time, &given, time_s, error));
    *time_s *= c->time_unit_s;
  } else {
    pl_error cause = PL_ERROR_INIT;
    if (pl_parse_time(text, csv->header[c->time], time_s, &cause) != PL_OK)
      return pl_csv_fail(csv, row, error, "%s", cause.message);
  }
  if (*time_s > 1e-9 && *time_s < 1e4) return PL_OK;
  return pl_csv_fail(csv, row, error, "column '%s': '%.60s' is no time that a matrix product takes (1 ns to 10^4 s)",
                     csv->header[c->time], text);
}

static pl_code read_dtype(const pl_csv *csv, uint32_t row, const columns *c, pl_dtype *dtype, pl_error *error) {
  const char *name = pl_csv_cell(csv, row, c->dtype);
  int known = pl_dtype_from_alias(name);
  if (known < 0)
    return pl_csv_fail(csv, row, error, "unknown data type '%.32s'; known are fp32, tf32, fp16, bf16 and fp8", name);
  *dtype = (pl_dtype)known;
  return PL_OK;
}

/* The GPU must be the one asked for (else *take is false) or, if none was, the same in all rows. */
static pl_code read_gpu(const pl_csv *csv, uint32_t row, const columns *c, const pl_gemm_filter *filter,
                        pl_gemm_samples *samples, bool *take, pl_error *error) {
  const char *gpu = pl_csv_cell(csv, row, c->gpu);
  *take = filter->gpu == NULL || strcmp(gpu, filter->gpu) == 0;
  if (!*take || c->gpu == PL_CSV_NO_COLUMN) return PL_OK;
  if (samples->gpu[0] == '\0') samples->gpu = gpu;
  if (strcmp(samples->gpu, gpu) == 0) return PL_OK;
  return pl_csv_fail(csv, row, error, "GPU '%.60s' after '%.60s': a profile is of one; choose with --gpu", gpu,
                     samples->gpu);
}

static pl_code read_multiprocessors(const pl_csv *csv, uint32_t row, const columns *c, pl_gemm_samples *samples,
                                    pl_error *error) {
  if (c->multiprocessors == PL_CSV_NO_COLUMN) return PL_OK;
  int64_t n;
  PL_TRY(read_extent(csv, row, c->multiprocessors, 0, &n, error));
  if (samples->multiprocessors == 0) samples->multiprocessors = (uint32_t)n;
  if (samples->multiprocessors == (uint32_t)n) return PL_OK;
  return pl_csv_fail(csv, row, error, "%lld multiprocessors after %u: a profile is of one device", (long long)n,
                     samples->multiprocessors);
}

static pl_code read_row(const pl_csv *csv, uint32_t row, const columns *c, const pl_gemm_filter *filter,
                        pl_gemm_samples *samples, pl_error *error) {
  bool take;
  PL_TRY(read_gpu(csv, row, c, filter, samples, &take, error));
  if (!take) return PL_OK;
  pl_gemm_sample *sample = &samples->rows[samples->n];
  PL_TRY(read_dtype(csv, row, c, &sample->shape.dtype, error));
  if (!(filter->dtypes & 1u << sample->shape.dtype)) return PL_OK;
  PL_TRY(read_multiprocessors(csv, row, c, samples, error));
  PL_TRY(read_extent(csv, row, c->batch, 1, &sample->shape.batch, error));
  PL_TRY(read_extent(csv, row, c->m, 0, &sample->shape.m, error));
  PL_TRY(read_extent(csv, row, c->n, 0, &sample->shape.n, error));
  PL_TRY(read_extent(csv, row, c->k, 0, &sample->shape.k, error));
  PL_TRY(read_time(csv, row, c, &sample->time_s, error));
  samples->n_read++;
  if (sample->shape.m < PL_GEMM_LEAST_M)
    samples->n_small++;
  else
    samples->n++;
  return PL_OK;
}

/* ---- all rows ---- */

static int compare(const pl_gemm_shape *a, const pl_gemm_shape *b) {
  int order = (a->dtype > b->dtype) - (a->dtype < b->dtype);
  if (order == 0) order = (a->batch > b->batch) - (a->batch < b->batch);
  if (order == 0) order = (a->m > b->m) - (a->m < b->m);
  if (order == 0) order = (a->n > b->n) - (a->n < b->n);
  return order != 0 ? order : (a->k > b->k) - (a->k < b->k);
}

static int compare_samples(const void *left, const void *right) {
  const pl_gemm_sample *a = left, *b = right;
  int order = compare(&a->shape, &b->shape);
  return order != 0 ? order : (a->time_s > b->time_s) - (a->time_s < b->time_s);
}

/* Sorts; rows of one shape become one with the median time. */
static void pool(pl_gemm_samples *samples) {
  pl_gemm_sample *rows = samples->rows;
  if (samples->n > 0) qsort(rows, samples->n, sizeof *rows, compare_samples);
  uint32_t kept = 0;
  for (uint32_t first = 0, end; first < samples->n; first = end) {
    for (end = first + 1; end < samples->n && compare(&rows[first].shape, &rows[end].shape) == 0;)
      end++;
    double median_s = 0.5 * (rows[first + (end - first - 1) / 2].time_s + rows[first + (end - first) / 2].time_s);
    rows[kept] = rows[first];
    rows[kept++].time_s = median_s;
  }
  samples->n = kept;
}

void pl_gemm_samples_rename(pl_gemm_samples *samples, pl_dtype from, pl_dtype to) {
  for (uint32_t i = 0; i < samples->n; i++)
    if (samples->rows[i].shape.dtype == from) samples->rows[i].shape.dtype = to;
  pool(samples);
}

static pl_code refuse_empty(const pl_csv *files, uint32_t n_files, const pl_gemm_filter *filter,
                            const pl_gemm_samples *samples, pl_error *error) {
  if (samples->n > 0) return PL_OK;
  if (samples->n_read > 0)
    return pl_fail(error, PL_BAD_INPUT, "%s: all %u rows have m below %d", files->name, samples->n_read,
                   PL_GEMM_LEAST_M);
  return pl_fail(error, PL_BAD_INPUT, "%s%s: no row%s%s%s; --gpu and --dtype say which are taken", files->name,
                 n_files > 1 ? " and others" : "", filter->gpu ? " of the GPU '" : "", filter->gpu ? filter->gpu : "",
                 filter->gpu ? "'" : "");
}

pl_code pl_gemm_samples_take(const pl_csv *files, uint32_t n_files, const pl_gemm_filter *filter, pl_arena *arena,
                             pl_gemm_samples *samples, pl_error *error) {
  *samples = (pl_gemm_samples){.gpu = ""};
  size_t n_rows = 0;
  for (uint32_t i = 0; i < n_files; i++)
    n_rows += files[i].n_rows;
  samples->rows = PL_TAKE(arena, pl_gemm_sample, n_rows + 1);
  if (samples->rows == NULL) return pl_fail_memory(error, "the timings of matrix products");
  for (uint32_t i = 0; i < n_files; i++) {
    columns c;
    PL_TRY(find_columns(&files[i], &c, error));
    for (uint32_t row = 0; row < files[i].n_rows; row++)
      PL_TRY(read_row(&files[i], row, &c, filter, samples, error));
  }
  pool(samples);
  return refuse_empty(files, n_files, filter, samples, error);
}

pl_code pl_gemm_samples_load(const char *const *paths, uint32_t n_paths, const pl_gemm_filter *filter, pl_arena *arena,
                             pl_gemm_samples *samples, pl_error *error) {
  pl_csv *files = PL_TAKE(arena, pl_csv, n_paths);
  if (files == NULL) return pl_fail_memory(error, "the tables of matrix products");
  for (uint32_t i = 0; i < n_paths; i++)
    PL_TRY(pl_csv_load(paths[i], arena, &files[i], error));
  return pl_gemm_samples_take(files, n_paths, filter, arena, samples, error);
}
