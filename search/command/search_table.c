/* See search/command/search_table.h. */
#include "search/command/search_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/units.h"
#include "search/results/column_text.h"

/* ---- methods ---- */

static pl_code refuse_method(const char *name, size_t length, pl_error *error) {
  char list[PL_WORDS_BYTES];
  return pl_fail(error, PL_BAD_INPUT, "--compare: '%.*s' is unknown; some of %s, with commas between them",
                 (int)(length < 64 ? length : 64), name, pl_methods_list(list));
}

pl_code pl_search_table_read_methods(pl_search_table *table, const char *names, pl_error *error) {
  for (const char *name = names;; name++) {
    size_t length = strcspn(name, ",");
    char copy[32] = "";
    if (length < sizeof copy) memcpy(copy, name, length);
    const pl_method *method = pl_method_find(copy);
    if (method == NULL) return refuse_method(name, length, error);
    for (uint32_t m = 0; m < table->n_methods; m++)
      if (table->methods[m] == method)
        return pl_fail(error, PL_BAD_INPUT, "--compare: '%s' is there twice", method->name);
    if (table->n_methods == PL_SEARCH_TABLE_METHODS)
      return pl_fail(error, PL_BAD_INPUT, "--compare: more than %d methods", PL_SEARCH_TABLE_METHODS);
    table->methods[table->n_methods++] = method;
    name += length;
    if (*name == '\0') return PL_OK;
  }
}

/* ---- runs ---- */

static void keep(pl_search_cell *cell, const pl_search_outcome *outcome) {
  cell->end = outcome->end;
  cell->enumerated = outcome->account.enumerated;
  cell->n_rows = outcome->n_rows;
  cell->n_fit = outcome->n_by_status[PL_RESULT_DONE];
  cell->n_mean = outcome->n_top < PL_SEARCH_MEAN_OF ? outcome->n_top : PL_SEARCH_MEAN_OF;
  double sum_s = 0;
  for (uint32_t i = 0; i < cell->n_mean; i++)
    sum_s += outcome->top[i].iter_time_s;
  cell->mean_s = cell->n_mean > 0 ? sum_s / cell->n_mean : (double)NAN;
  if (outcome->n_top == 0) return;
  cell->best = outcome->top[0];
  cell->values = *outcome->top[0].search;
  cell->best.search = &cell->values;
}

/* Gives back what the search took since `mark`, but for its best strategy's text. */
static bool keep_text(pl_search_cell *cell, pl_arena *arena, pl_arena_mark mark) {
  char *text = cell->values.whole != NULL ? strdup(cell->values.whole) : NULL;
  bool lost = cell->values.whole != NULL && text == NULL;
  pl_arena_release_to(arena, mark);
  cell->values.whole = text != NULL ? pl_arena_strdup(arena, text) : NULL;
  free(text);
  return !lost && !arena->failed;
}

static pl_code run_cell(pl_search_cell *cell, const pl_search *base, const pl_search_table *table,
                        pl_space_session *session, pl_job_options *job, MPI_Comm comm, pl_error *error) {
  const pl_cluster *cluster = session->evaluation.cluster;
  if (cell->point != PL_NONE) {
    pl_vary_cluster_take(&table->grid, cell->point, cluster, &session->arena, &cluster, error);
    if (error->code == PL_OK) pl_job_options_complete(job, &session->model, cluster, error);
  }
  PL_TRY(pl_agree(comm, error));
  pl_search_problem problem = *base->problem;
  problem.cluster = cluster;
  problem.n_top = PL_SEARCH_MEAN_OF;
  pl_search search = *base;
  search.problem = &problem;
  search.method = cell->method;
  search.n_top = PL_SEARCH_MEAN_OF;
  pl_search_outcome outcome;
  PL_TRY(pl_search_run(&search, comm, &session->arena, &outcome, error));
  cell->platform_digest = cluster->digest;
  keep(cell, &outcome);
  return PL_OK;
}

static pl_code fail_cell(const pl_search_table *table, const pl_search_cell *cell, const pl_error *cause,
                         pl_error *error) {
  char label[PL_VARY_LABEL_BYTES] = "";
  if (strncmp(cause->message, "--vary ", strlen("--vary ")) == 0) /* says which by itself */
    return pl_fail(error, cause->code, "%s", cause->message);
  if (cell->point == PL_NONE) return pl_fail(error, cause->code, "method %s: %s", cell->method->name, cause->message);
  pl_vary_format(&table->grid, cell->point, label, sizeof label);
  return pl_fail(error, cause->code, "--vary %s, method %s: %s", label, cell->method->name, cause->message);
}

pl_code pl_search_table_run(pl_search_table *table, const pl_search *search, pl_space_session *session,
                            pl_job_options *job, MPI_Comm comm, pl_error *error) {
  table->n_cells = table->n_methods * (1 + table->grid.n_points);
  table->cells = PL_TAKE(&session->arena, pl_search_cell, table->n_cells);
  if (table->cells == NULL) pl_fail_memory(error, "the table of searches");
  PL_TRY(pl_agree(comm, error));
  for (uint32_t i = 0; i < table->n_cells; i++) {
    pl_search_cell *cell = &table->cells[i];
    uint32_t point = i / table->n_methods;
    cell->method = table->methods[i % table->n_methods];
    cell->point = point == 0 ? PL_NONE : point - 1;
    pl_arena_mark mark = pl_arena_mark_here(&session->arena);
    pl_error cause = PL_ERROR_INIT;
    run_cell(cell, search, table, session, job, comm, &cause);
    if (!keep_text(cell, &session->arena, mark) && cause.code == PL_OK) pl_fail_memory(&cause, "the strategies");
    if (cause.code != PL_OK) return fail_cell(table, cell, &cause, error);
  }
  return PL_OK;
}

/* ---- text ---- */

/* What a cell is set against: without variations the best of all methods, with them its method on the platform as it
 * is. NaN: nothing fits there. */
static double reference_s(const pl_search_table *table, uint32_t index) {
  if (table->grid.n_points > 0) {
    const pl_search_cell *base = &table->cells[index % table->n_methods];
    return base->n_fit > 0 ? base->best.iter_time_s : (double)NAN;
  }
  double best_s = (double)NAN;
  for (uint32_t i = 0; i < table->n_cells; i++)
    if (table->cells[i].n_fit > 0) best_s = fmin(best_s, table->cells[i].best.iter_time_s);
  return best_s;
}

static const char *label_of(const pl_search_table *table, uint32_t point, char label[PL_VARY_LABEL_BYTES]) {
  if (point == PL_NONE) return "as it is";
  pl_vary_format(&table->grid, point, label, PL_VARY_LABEL_BYTES);
  return label;
}

/* 0 without variations. */
static int label_width(const pl_search_table *table) {
  char label[PL_VARY_LABEL_BYTES];
  int width = table->grid.n_points > 0 ? (int)strlen("variation") : 0;
  for (uint32_t p = 0; p < table->grid.n_points; p++) {
    int length = (int)strlen(label_of(table, p, label));
    if (length > width) width = length;
  }
  return width;
}

static void print_cell(FILE *stream, const pl_search_table *table, uint32_t index, int width) {
  const pl_search_cell *cell = &table->cells[index];
  char label[PL_VARY_LABEL_BYTES], best[PL_UNIT_TEXT_BYTES], mean[PL_UNIT_TEXT_BYTES];
  if (width > 0) fprintf(stream, "%-*s  ", width, label_of(table, cell->point, label));
  if (cell->n_fit == 0) {
    fprintf(stream, "%-10s  %10s  %7s  %10s  %9u  none fits in memory\n", cell->method->name, "-", "-", "-",
            cell->n_rows);
    return;
  }
  fprintf(stream, "%-10s  %10s  %7.3f  %10s  %9u  %s\n", cell->method->name,
          pl_format_time(cell->best.iter_time_s, best), cell->best.iter_time_s / reference_s(table, index),
          pl_format_time(cell->mean_s, mean), cell->n_rows, pl_search_strategy(&cell->values));
}

static void print_text(FILE *stream, const pl_search_table *table) {
  int width = label_width(table);
  if (width > 0) fprintf(stream, "%-*s  ", width, "variation");
  fprintf(stream, "%-10s  %10s  %7s  %10s  %9s  %s\n", "method", "best", width > 0 ? "to base" : "to best",
          "mean of 10", "simulated", "strategy");
  for (uint32_t i = 0; i < table->n_cells; i++)
    print_cell(stream, table, i, width);
}

/* ---- JSON ---- */

static void put_variation(pl_json *json, const pl_search_table *table, uint32_t point) {
  pl_json_key(json, "variation");
  pl_json_open_object(json);
  for (uint32_t a = 0; point != PL_NONE && a < table->grid.n_axes; a++)
    pl_json_put_string(json, table->grid.axes[a].name, pl_vary_value_at(&table->grid, point, a)->text);
  pl_json_close_object(json);
}

static void put_cell(pl_json *json, const pl_search_table *table, uint32_t index) {
  const pl_search_cell *cell = &table->cells[index];
  char digest[PL_DIGEST_TEXT_BYTES];
  bool fits = cell->n_fit > 0;
  pl_json_open_object(json);
  if (table->grid.n_points > 0) put_variation(json, table, cell->point);
  pl_json_put_string(json, "platform_digest", pl_digest_format(cell->platform_digest, digest));
  pl_json_put_string(json, "method", cell->method->name);
  pl_json_put_string(json, "ended", pl_search_end_names[cell->end]);
  pl_json_put_integer(json, "candidates", (int64_t)cell->enumerated);
  pl_json_put_integer(json, "simulated", cell->n_rows);
  pl_json_put_integer(json, "fit", cell->n_fit);
  pl_json_put_number(json, table->grid.n_points > 0 ? "ratio_to_base" : "ratio_to_best",
                     fits ? cell->best.iter_time_s / reference_s(table, index) : (double)NAN);
  pl_json_put_number(json, "mean_iter_time_s", cell->mean_s);
  pl_json_put_integer(json, "mean_of", cell->n_mean);
  pl_json_key(json, "best");
  if (fits) {
    pl_json_open_object(json);
    pl_row_json(json, &cell->best);
    pl_json_close_object(json);
  } else {
    pl_json_string(json, NULL);
  }
  pl_json_close_object(json);
}

void pl_search_table_print(FILE *stream, const pl_search_table *table, bool json) {
  if (!json) {
    print_text(stream, table);
    return;
  }
  pl_json out;
  pl_json_init(&out, stream, true);
  pl_json_open_object(&out);
  pl_json_key(&out, "searches");
  pl_json_open_array(&out);
  for (uint32_t i = 0; i < table->n_cells; i++)
    put_cell(&out, table, i);
  pl_json_close_array(&out);
  pl_json_close_object(&out);
}
