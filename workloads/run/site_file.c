/* See workloads/run/site_file.h. */
#include "workloads/run/site_file.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/digest.h"
#include "core/system/data_folder.h"
#include "core/text/document.h"
#include "core/text/json_writer.h"
#include "netmodel/device/profile_field.h"
#include "workloads/run/site_remains_file.h"

static const double FACTOR_MOST = 1e4;     /* beyond that it is no figure but a mistake */
static const double COVARIANCE_MOST = 1e4; /* likewise, of logarithms */
static const double MOST_BYTES = 1e12;     /* no GPU has as much */

/* ---- reading ---- */

static pl_code read_figure(const pl_document *document, const pl_node *figures, int figure, pl_site *site,
                           pl_error *error) {
  bool is_step = figure == PL_SITE_step;
  const char *const known[] = {is_step ? "seconds" : "factor", "half_width", NULL};
  const pl_node *entry;
  double value;
  PL_TRY(pl_profile_object(document, figures, pl_site_figure_names[figure], &entry, error));
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  PL_TRY(pl_node_number(document, entry, known[0], &value, error));
  if (!(value <= FACTOR_MOST) || !(is_step ? value >= 0 : value >= 1 / FACTOR_MOST))
    return pl_document_fail(document, pl_node_get(entry, known[0]), error, "%s is %g: it must lie between %g and %g",
                            known[0], value, is_step ? 0 : 1 / FACTOR_MOST, FACTOR_MOST);
  site->mean[figure] = is_step ? value : log(value);
  return PL_OK;
}

static pl_code read_covariance(const pl_document *document, const pl_node *root, pl_site *site, pl_error *error) {
  const pl_node *rows = pl_node_get(root, "covariance");
  if (rows == NULL || pl_node_count(rows) != PL_SITE_COUNT || !pl_node_is_sequence(rows))
    return pl_document_fail(document, rows != NULL ? rows : root, error, "'covariance' must be a list of %d lists",
                            PL_SITE_COUNT);
  for (size_t i = 0; i < PL_SITE_COUNT; i++) {
    const pl_node *row = pl_node_at(rows, i);
    if (!pl_node_is_sequence(row) || pl_node_count(row) != PL_SITE_COUNT)
      return pl_document_fail(document, row, error, "a row of 'covariance' must be a list of %d numbers",
                              PL_SITE_COUNT);
    for (size_t k = 0; k < PL_SITE_COUNT; k++)
      PL_TRY(pl_node_as_number(document, pl_node_at(row, k), &site->covariance[i][k], error));
    for (size_t k = 0; k < PL_SITE_COUNT; k++)
      if (!(fabs(site->covariance[i][k]) <= COVARIANCE_MOST))
        return pl_document_fail(document, pl_node_at(row, k), error, "the covariance %g of %s and %s: at most %g",
                                site->covariance[i][k], pl_site_figure_names[i], pl_site_figure_names[k],
                                COVARIANCE_MOST);
    if (!(site->covariance[i][i] >= 0))
      return pl_document_fail(document, row, error, "the variance %g of %s is negative", site->covariance[i][i],
                              pl_site_figure_names[i]);
  }
  return PL_OK;
}

static pl_code read_scatter(const pl_document *document, const pl_node *root, pl_site *site, pl_error *error) {
  static const char *const known[] = {"sd", "weight", NULL};
  const pl_node *list = pl_node_get(root, "scatter");
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) != PL_SITE_SCATTERS)
    return pl_document_fail(document, list != NULL ? list : root, error, "'scatter' must be a list of %d entries",
                            PL_SITE_SCATTERS);
  double sum = 0, sd;
  for (size_t g = 0; g < PL_SITE_SCATTERS; g++) {
    const pl_node *entry = pl_node_at(list, g);
    PL_TRY(pl_profile_check_keys(document, entry, known, error));
    PL_TRY(pl_node_number(document, entry, "sd", &sd, error));
    PL_TRY(pl_profile_within(document, entry, "weight", 0, 1, &site->scatter_weight[g], error));
    if (sd != pl_site_scatters[g])
      return pl_document_fail(document, entry, error, "sd is %g: number %zu of them is %g", sd, g + 1,
                              pl_site_scatters[g]);
    sum += site->scatter_weight[g];
  }
  if (fabs(sum - 1) < 1e-6) return PL_OK;
  return pl_document_fail(document, list, error, "the weights of 'scatter' add up to %g, not to 1", sum);
}

static pl_code read_figures(const pl_document *document, const pl_node *root, pl_site *site, pl_error *error) {
  const pl_node *figures;
  PL_TRY(pl_profile_object(document, root, "figures", &figures, error));
  PL_TRY(pl_profile_check_keys(document, figures, pl_site_figure_names, error));
  for (int figure = 0; figure < PL_SITE_COUNT; figure++)
    PL_TRY(read_figure(document, figures, figure, site, error));
  return read_covariance(document, root, site, error);
}

/* What remains at a configuration: of where its runs are and how far they reach, too. */
static void digest_remains(pl_digest *digest, const pl_site_remains *remains) {
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    pl_digest_f64(digest, remains->likeness.length[axis]);
  for (uint32_t i = 0; i < remains->n; i++) {
    pl_digest_f64(digest, remains->mean[i]);
    for (int k = 0; k < PL_LIKENESS_N_NUMBERS; k++)
      pl_digest_f64(digest, remains->points[i].number[k]);
    for (int k = 0; k < PL_LIKENESS_N_NAMES; k++)
      pl_digest_text(digest, remains->points[i].name[k]);
  }
}

static void digest_site(pl_site *site) {
  pl_digest digest;
  pl_digest_init(&digest);
  for (int figure = 0; figure < PL_SITE_COUNT; figure++)
    pl_digest_f64(&digest, site->mean[figure]);
  pl_digest_f64(&digest, site->memory_bytes);
  if (site->remains != NULL && site->remains->n > 0) digest_remains(&digest, site->remains);
  site->digest = digest.value;
}

/* After all else of the site, of which it has what it does not say. */
static pl_code read_elsewhere(const pl_document *document, const pl_node *root, pl_arena *arena, pl_site *site,
                              pl_error *error) {
  static const char *const known[] = {"figures", "covariance", "with_runs", NULL};
  const pl_node *node;
  if (pl_node_get(root, "elsewhere") == NULL) return PL_OK;
  PL_TRY(pl_profile_object(document, root, "elsewhere", &node, error));
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  pl_site *elsewhere = PL_TAKE(arena, pl_site, 1);
  if (elsewhere == NULL) return pl_fail_memory(error, "the site elsewhere");
  *elsewhere = *site;
  PL_TRY(read_figures(document, node, elsewhere, error));
  PL_TRY(pl_remains_read_elsewhere(document, node, arena, &elsewhere->remains, error));
  digest_site(elsewhere);
  site->elsewhere = elsewhere;
  return PL_OK;
}

static pl_code read_site(const pl_document *document, pl_arena *arena, pl_site *site, pl_error *error) {
  static const char *const known[] = {"about",  "runs",    "peaks",   "figures", "covariance", "scatter",
                                      "shared", "degrees", "remains", "memory",  "elsewhere",  NULL};
  static const char *const known_memory[] = {"bytes", "sd", "scatter", "degrees", NULL};
  const pl_node *root = pl_document_root(document), *memory;
  int64_t n_runs, n_peaks;
  PL_TRY(pl_profile_check_keys(document, root, known, error));
  PL_TRY(pl_node_integer(document, root, "runs", 0, INT32_MAX, &n_runs, error));
  PL_TRY(pl_node_integer(document, root, "peaks", 0, INT32_MAX, &n_peaks, error));
  site->n_runs = (uint32_t)n_runs;
  site->n_peaks = (uint32_t)n_peaks;
  PL_TRY(read_figures(document, root, site, error));
  PL_TRY(read_scatter(document, root, site, error));
  if (pl_node_get(root, "shared") != NULL)
    PL_TRY(pl_profile_within(document, root, "shared", 0, 1, &site->shared, error));
  if (pl_node_get(root, "degrees") != NULL)
    PL_TRY(pl_profile_within(document, root, "degrees", 1, 1000, &site->degrees, error));
  if (pl_node_get(root, "remains") != NULL) {
    const pl_node *remains;
    PL_TRY(pl_profile_object(document, root, "remains", &remains, error));
    PL_TRY(pl_remains_read(document, remains, arena, &site->remains, error));
  }
  PL_TRY(pl_profile_object(document, root, "memory", &memory, error));
  PL_TRY(pl_profile_check_keys(document, memory, known_memory, error));
  PL_TRY(pl_profile_within(document, memory, "bytes", -MOST_BYTES, MOST_BYTES, &site->memory_bytes, error));
  PL_TRY(pl_profile_within(document, memory, "sd", 0, MOST_BYTES, &site->memory_sd_bytes, error));
  PL_TRY(pl_profile_within(document, memory, "scatter", 0, MOST_BYTES, &site->memory_scatter_bytes, error));
  if (pl_node_get(memory, "degrees") != NULL)
    PL_TRY(pl_profile_within(document, memory, "degrees", 0.1, 1000, &site->memory_degrees, error));
  return read_elsewhere(document, root, arena, site, error);
}

static pl_code take(pl_code code, pl_document *document, pl_arena *arena, pl_site *site, pl_error *error) {
  *site = (pl_site){.n_runs = 0};
  PL_TRY(code);
  code = read_site(document, arena, site, error);
  pl_document_destroy(document);
  digest_site(site);
  return code;
}

pl_code pl_site_parse(const char *name, const char *text, size_t size, pl_arena *arena, pl_site *site,
                      pl_error *error) {
  pl_document *document;
  pl_code code = pl_document_parse(name, text, size, true, &document, error);
  return take(code, document, arena, site, error);
}

pl_code pl_site_load(const char *path, pl_arena *arena, pl_site *site, pl_error *error) {
  pl_document *document;
  pl_code code = pl_document_load(path, &document, error);
  return take(code, document, arena, site, error);
}

pl_code pl_site_load_prior(pl_arena *arena, pl_site *site, pl_error *error) {
  const char *path = getenv("PACELINE_SITES");
  if (path == NULL) PL_TRY(pl_data_find("sites.json", arena, &path, error));
  return pl_site_load(path, arena, site, error);
}

/* ---- writing ---- */

static void write_figures(pl_json *json, const pl_site *site) {
  pl_json_key(json, "figures");
  pl_json_open_object(json);
  for (int figure = 0; figure < PL_SITE_COUNT; figure++) {
    bool is_step = figure == PL_SITE_step;
    pl_json_key(json, pl_site_figure_names[figure]);
    pl_json_open_object(json);
    pl_json_put_number(json, is_step ? "seconds" : "factor",
                       is_step ? fmax(0, site->mean[figure]) : exp(site->mean[figure]));
    pl_json_put_number(json, "half_width", PL_SITE_HALF * sqrt(site->covariance[figure][figure]));
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

static void write_covariance(pl_json *json, const pl_site *site) {
  pl_json_key(json, "covariance");
  pl_json_open_array(json);
  for (int i = 0; i < PL_SITE_COUNT; i++) {
    pl_json_open_array(json);
    for (int k = 0; k < PL_SITE_COUNT; k++)
      pl_json_number(json, site->covariance[i][k]);
    pl_json_close_array(json);
  }
  pl_json_close_array(json);
}

static void write_elsewhere(pl_json *json, const pl_site *elsewhere) {
  pl_json_key(json, "elsewhere");
  pl_json_open_object(json);
  write_figures(json, elsewhere);
  write_covariance(json, elsewhere);
  if (elsewhere->remains != NULL) pl_remains_write_elsewhere(json, elsewhere->remains);
  pl_json_close_object(json);
}

static void write_scatter(pl_json *json, const pl_site *site) {
  pl_json_key(json, "scatter");
  pl_json_open_array(json);
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    pl_json_open_object(json);
    pl_json_put_number(json, "sd", pl_site_scatters[g]);
    pl_json_put_number(json, "weight", site->scatter_weight[g]);
    pl_json_close_object(json);
  }
  pl_json_close_array(json);
}

void pl_site_write(FILE *stream, const pl_site *site, const char *about) {
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "about", about);
  pl_json_put_integer(&json, "runs", site->n_runs);
  pl_json_put_integer(&json, "peaks", site->n_peaks);
  write_figures(&json, site);
  write_covariance(&json, site);
  write_scatter(&json, site);
  if (site->shared > 0) pl_json_put_number(&json, "shared", site->shared);
  if (site->degrees > 0) pl_json_put_number(&json, "degrees", site->degrees);
  if (site->remains != NULL) pl_remains_write(&json, site->remains);
  pl_json_key(&json, "memory");
  pl_json_open_object(&json);
  pl_json_put_number(&json, "bytes", site->memory_bytes);
  pl_json_put_number(&json, "sd", site->memory_sd_bytes);
  pl_json_put_number(&json, "scatter", site->memory_scatter_bytes);
  if (site->memory_degrees > 0) pl_json_put_number(&json, "degrees", site->memory_degrees);
  pl_json_close_object(&json);
  if (site->elsewhere != NULL) write_elsewhere(&json, site->elsewhere);
  pl_json_close_object(&json);
}
