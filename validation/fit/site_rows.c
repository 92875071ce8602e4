/* See validation/fit/site_rows.h. */
#include "validation/fit/site_rows.h"

#include <math.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/hash_index.h"

/* Columns of the table by the same names. */
/* clang-format off */
#define NUMBERS(X) \
  X(measured_s) X(predicted_s) X(predicted_low_s) X(predicted_high_s) X(measured_mem_bytes) X(predicted_mem_bytes) \
  X(n_gpus) X(n_layers) X(hidden) X(flops) X(gbs) X(seq_len) X(tmp) X(pp) X(cp) X(ep) X(vpp) X(mbs)
#define TEXTS(X) X(source) X(file) X(gpu) X(device) X(framework) X(precision) X(recompute) X(reason) X(crashed)
/* clang-format on */
#define ENUM(name) COLUMN_##name,
#define NAME(name) #name,
enum { NUMBERS(ENUM) N_NUMBERS };
enum { TEXTS(ENUM) N_TEXTS };
static const char *const number_names[N_NUMBERS] = {NUMBERS(NAME)}, *const text_names[N_TEXTS] = {TEXTS(NAME)};

typedef struct reading {
  const pl_csv *csv;
  pl_arena *arena;
  uint32_t numbers[N_NUMBERS], texts[N_TEXTS], sensitivities[PL_SITE_COUNT];
  pl_hash_index sources, sites, choices;
  const char **source_names;
} reading;

static pl_code find_column(const pl_csv *csv, const char *name, uint32_t *column, pl_error *error) {
  *column = pl_csv_column(csv, name);
  if (*column != PL_CSV_NO_COLUMN) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s: the column %s is missing (paceline validate FILE... --sensitivities --csv)",
                 csv->name, name);
}

static pl_code find_columns(reading *own, pl_error *error) {
  for (int i = 0; i < N_NUMBERS; i++)
    PL_TRY(find_column(own->csv, number_names[i], &own->numbers[i], error));
  for (int i = 0; i < N_TEXTS; i++)
    PL_TRY(find_column(own->csv, text_names[i], &own->texts[i], error));
  for (int figure = 0; figure < PL_SITE_COUNT; figure++) {
    const char *name = pl_arena_printf(own->arena, "d_%s", pl_site_figure_names[figure]);
    if (name == NULL) return pl_fail_memory(error, own->csv->name);
    PL_TRY(find_column(own->csv, name, &own->sensitivities[figure], error));
  }
  return PL_OK;
}

static pl_code number(const reading *own, uint32_t row, uint32_t column, double otherwise, double *value,
                      pl_error *error) {
  bool given;
  *value = otherwise;
  return pl_csv_number(own->csv, row, column, &given, value, error);
}

/* "github:OWNER/NAME", "arXiv:NUMBER". */
static size_t publisher_length(const char *source) {
  const char *colon = strchr(source, ':');
  return colon != NULL ? (size_t)(colon - source) + 1 + strcspn(colon + 1, ":@ ") : strlen(source);
}

/* The number of `text` among those seen, new ones last; UINT32_MAX: no memory. The value is 1 + number: 0 is none. */
static uint32_t index_of(pl_hash_index *index, const char *text, uint32_t *n, pl_arena *arena) {
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_text(&digest, text);
  uint32_t probe = 0;
  uintptr_t found = (uintptr_t)pl_hash_index_find(index, digest.value, &probe);
  if (found != 0) return (uint32_t)(found - 1);
  if (!pl_hash_index_put(index, digest.value, (const void *)(uintptr_t)(*n + 1), arena)) return UINT32_MAX;
  return (*n)++;
}

static double at_least_one(double value) {
  return value > 1 ? value : 1;
}

static void configure(const double *values, const char *const *cells, pl_configuration *at) {
  const double tokens = at_least_one(values[COLUMN_gbs]) * at_least_one(values[COLUMN_seq_len]);
  const double numbers[PL_LIKENESS_N_NUMBERS] = {
      [PL_LIKENESS_gpus] = values[COLUMN_n_gpus], [PL_LIKENESS_size] = values[COLUMN_flops] / tokens,
      [PL_LIKENESS_seq] = values[COLUMN_seq_len], [PL_LIKENESS_tmp] = values[COLUMN_tmp],
      [PL_LIKENESS_pp] = values[COLUMN_pp],       [PL_LIKENESS_cp] = values[COLUMN_cp],
      [PL_LIKENESS_ep] = values[COLUMN_ep],       [PL_LIKENESS_vpp] = values[COLUMN_vpp],
      [PL_LIKENESS_mbs] = values[COLUMN_mbs]};
  for (int i = 0; i < PL_LIKENESS_N_NUMBERS; i++)
    at->number[i] = at_least_one(numbers[i]);
  at->name[0] = cells[COLUMN_device];
  at->name[1] = cells[COLUMN_framework];
  at->name[2] = cells[COLUMN_precision];
  at->name[3] = cells[COLUMN_recompute];
}

/* Whose run it is, and what could have been run instead. */
static pl_code place(reading *own, const double *values, const char *const *cells, pl_site_rows *rows,
                     pl_site_row *into, pl_error *error) {
  const char *source =
      pl_arena_printf(own->arena, "%.*s", (int)publisher_length(cells[COLUMN_source]), cells[COLUMN_source]);
  const char *site = pl_arena_printf(own->arena, "%s|%s|%s|%s", source != NULL ? source : "", cells[COLUMN_device],
                                     cells[COLUMN_framework], cells[COLUMN_precision]);
  const char *choice = pl_arena_printf(own->arena, "%s|%s|%s|%s|%g|%g|%g|%g", cells[COLUMN_file], cells[COLUMN_gpu],
                                       cells[COLUMN_framework], cells[COLUMN_precision], values[COLUMN_n_gpus],
                                       values[COLUMN_n_layers], values[COLUMN_hidden], values[COLUMN_seq_len]);
  if (source == NULL || site == NULL || choice == NULL) return pl_fail_memory(error, own->csv->name);
  uint32_t n_before = rows->n_sources;
  into->source = index_of(&own->sources, source, &rows->n_sources, own->arena);
  into->site = index_of(&own->sites, site, &rows->n_sites, own->arena);
  into->choice = index_of(&own->choices, choice, &rows->n_choices, own->arena);
  into->run.part = into->site;
  if (own->arena->failed) return pl_fail_memory(error, own->csv->name);
  if (rows->n_sources > n_before) own->source_names[n_before] = source;
  return PL_OK;
}

static pl_code read_row(reading *own, uint32_t row, pl_site_rows *rows, pl_site_row *into, bool *is_measured,
                        pl_error *error) {
  double values[N_NUMBERS];
  const char *cells[N_TEXTS];
  *is_measured = false;
  for (int i = 0; i < N_NUMBERS; i++)
    PL_TRY(number(own, row, own->numbers[i], NAN, &values[i], error));
  for (int i = 0; i < N_TEXTS; i++)
    cells[i] = pl_csv_cell(own->csv, row, own->texts[i]);
  double measured_s = values[COLUMN_measured_s], predicted_s = values[COLUMN_predicted_s];
  if (cells[COLUMN_reason][0] != '\0' || strcmp(cells[COLUMN_crashed], "1") == 0 || !(measured_s > 0) ||
      !(predicted_s > 0))
    return PL_OK;
  into->run.y = log(measured_s / predicted_s);
  into->low = log(values[COLUMN_predicted_low_s] / predicted_s);
  into->high = log(values[COLUMN_predicted_high_s] / predicted_s);
  into->memory_bytes = values[COLUMN_measured_mem_bytes] - values[COLUMN_predicted_mem_bytes];
  into->peak_bytes = values[COLUMN_measured_mem_bytes];
  into->speed = values[COLUMN_flops] / predicted_s;
  for (int figure = 0; figure < PL_SITE_COUNT; figure++)
    PL_TRY(number(own, row, own->sensitivities[figure], 0, &into->run.x[figure], error));
  *is_measured = true;
  configure(values, cells, &into->run.at);
  return place(own, values, cells, rows, into, error);
}

pl_code pl_site_rows_take(const pl_csv *csv, pl_arena *arena, pl_site_rows *rows, pl_error *error) {
  reading own = {.csv = csv, .arena = arena, .source_names = PL_TAKE(arena, const char *, csv->n_rows + 1)};
  pl_site_row *list = PL_TAKE(arena, pl_site_row, csv->n_rows + 1);
  *rows = (pl_site_rows){.rows = list, .source_names = own.source_names};
  if (arena->failed) return pl_fail_memory(error, csv->name);
  PL_TRY(find_columns(&own, error));
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    bool is_measured;
    PL_TRY(read_row(&own, row, rows, &list[rows->n], &is_measured, error));
    rows->n += is_measured;
  }
  if (rows->n == 0) return pl_fail(error, PL_BAD_INPUT, "%s: no row has a measured and a predicted time", csv->name);
  return PL_OK;
}
