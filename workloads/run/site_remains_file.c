/* See workloads/run/site_remains_file.h. */
#include "workloads/run/site_remains_file.h"

#include <math.h>

#include "core/base/positive_definite.h"
#include "netmodel/device/profile_field.h"

/* Of a step, and of logarithms of it and of figures; beyond that nothing remains but a mistake. */
static const double FACTOR_MOST = 1e4, COVARIANCE_MOST = 1e4;

/* ---- reading ---- */

typedef struct reading {
  const pl_document *document;
  pl_arena *arena;
  pl_site_remains *remains;
  pl_configuration *points;
  double *mean, *covariance, *figures;
  pl_error *error;
} reading;

/* `list` is what `entry` has under the key; NULL: nothing. */
static pl_code read_list(const reading *own, const pl_node *entry, const pl_node *list, const char *key, size_t n,
                         double *numbers) {
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) != n)
    return pl_document_fail(own->document, list != NULL ? list : entry, own->error,
                            "'%s' must be a list of %zu numbers", key, n);
  for (size_t i = 0; i < n; i++) {
    PL_TRY(pl_node_as_number(own->document, pl_node_at(list, i), &numbers[i], own->error));
    if (!(fabs(numbers[i]) <= COVARIANCE_MOST))
      return pl_document_fail(own->document, pl_node_at(list, i), own->error, "'%s' has %g: at most %g", key,
                              numbers[i], COVARIANCE_MOST);
  }
  return PL_OK;
}

static pl_code read_numbers(const reading *own, const pl_node *entry, const char *key, size_t n, double *numbers) {
  return read_list(own, entry, pl_node_get(entry, key), key, n, numbers);
}

static pl_code read_scales(const reading *own, const pl_node *root) {
  double *weight = own->remains->scale_weight, sum = 0;
  PL_TRY(read_numbers(own, root, "scales", PL_REMAINS_SCALES, weight));
  for (int h = 0; h < PL_REMAINS_SCALES; h++) {
    if (!(weight[h] >= 0)) break;
    sum += weight[h];
  }
  if (fabs(sum - 1) < 1e-6) return PL_OK;
  return pl_document_fail(own->document, pl_node_get(root, "scales"), own->error,
                          "'scales' must be probabilities that add up to 1");
}

static pl_code read_lengths(const reading *own, const pl_node *root) {
  const pl_node *lengths;
  PL_TRY(pl_profile_object(own->document, root, "lengths", &lengths, own->error));
  PL_TRY(pl_profile_check_keys(own->document, lengths, pl_likeness_names, own->error));
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    PL_TRY(pl_profile_within(own->document, lengths, pl_likeness_names[axis], 1e-3, 1e6,
                             &own->remains->likeness.length[axis], own->error));
  return PL_OK;
}

static pl_code read_configuration(const reading *own, const pl_node *entry, pl_configuration *point) {
  for (int i = 0; i < PL_LIKENESS_N_NUMBERS; i++)
    PL_TRY(pl_profile_within(own->document, entry, pl_likeness_names[i], 1, 1e30, &point->number[i], own->error));
  for (int i = 0; i < PL_LIKENESS_N_NAMES; i++) {
    const char *name;
    PL_TRY(pl_node_string(own->document, entry, pl_likeness_names[PL_LIKENESS_N_NUMBERS + i], &name, own->error));
    point->name[i] = pl_arena_strdup(own->arena, name);
    if (point->name[i] == NULL) return pl_fail_memory(own->error, "the site's runs");
  }
  return PL_OK;
}

static pl_code read_point(const reading *own, const pl_node *entry, uint32_t i) {
  static const char *const others[] = {"factor", "half_width", "with_figures", "with_runs"};
  const char *known[PL_LIKENESS_COUNT + 5];
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    known[axis] = pl_likeness_names[axis];
  for (int k = 0; k < 4; k++)
    known[PL_LIKENESS_COUNT + k] = others[k];
  known[PL_LIKENESS_COUNT + 4] = NULL;
  uint32_t n = own->remains->n;
  double factor;
  PL_TRY(pl_profile_check_keys(own->document, entry, known, own->error));
  PL_TRY(read_configuration(own, entry, &own->points[i]));
  PL_TRY(pl_profile_within(own->document, entry, "factor", 1 / FACTOR_MOST, FACTOR_MOST, &factor, own->error));
  own->mean[i] = log(factor);
  PL_TRY(read_numbers(own, entry, "with_figures", PL_SITE_COUNT, own->figures + (size_t)i * PL_SITE_COUNT));
  PL_TRY(read_numbers(own, entry, "with_runs", n, own->covariance + (size_t)i * n));
  if (own->covariance[(size_t)i * n + i] >= 0) return PL_OK;
  return pl_document_fail(own->document, pl_node_get(entry, "with_runs"), own->error,
                          "the variance %g of what remains at run %u is negative", own->covariance[(size_t)i * n + i],
                          i + 1);
}

static pl_code read_points(reading *own, const pl_node *root) {
  const pl_node *list = pl_node_get(root, "runs");
  if (list == NULL) return PL_OK;
  size_t n = pl_node_count(list);
  if (!pl_node_is_sequence(list) || n > PL_REMAINS_POINTS)
    return pl_document_fail(own->document, list, own->error, "'runs' must be a list of at most %d runs",
                            PL_REMAINS_POINTS);
  own->points = PL_TAKE(own->arena, pl_configuration, n + 1);
  own->mean = PL_TAKE(own->arena, double, n + 1);
  own->covariance = PL_TAKE(own->arena, double, n *n + 1);
  own->figures = PL_TAKE(own->arena, double, n *PL_SITE_COUNT + 1);
  if (own->arena->failed) return pl_fail_memory(own->error, "the site's runs");
  own->remains->n = (uint32_t)n;
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(read_point(own, pl_node_at(list, i), i));
  own->remains->points = own->points;
  own->remains->mean = own->mean;
  own->remains->covariance = own->covariance;
  own->remains->figures = own->figures;
  return PL_OK;
}

/* What remains is at most sqrt(m . K^-1 m) anywhere, by the inequality of Cauchy and Schwarz: runs that are alike and
 * leave what is not would have it grow without bounds beside them. */
static pl_code check_reach(const reading *own, const pl_node *root) {
  double half[PL_REMAINS_POINTS], square = 0;
  uint32_t n = own->remains->n;
  if (n == 0) return PL_OK;
  pl_cholesky_solve_half(own->remains->factor, (int)n, own->mean, half);
  for (uint32_t i = 0; i < n; i++)
    square += half[i] * half[i];
  if (sqrt(square) <= log(FACTOR_MOST)) return PL_OK;
  return pl_document_fail(own->document, pl_node_get(root, "runs"), own->error,
                          "'runs' are too alike for how their factors differ: beside them it could be more than %g; "
                          "have 'paceline calibrate --runs' write the file",
                          FACTOR_MOST);
}

pl_code pl_remains_read(const pl_document *document, const pl_node *node, pl_arena *arena,
                        const pl_site_remains **remains, pl_error *error) {
  static const char *const known[] = {"sd", "scales", "lengths", "runs", NULL};
  reading own = {.document = document, .arena = arena, .error = error, .remains = PL_TAKE(arena, pl_site_remains, 1)};
  if (own.remains == NULL) return pl_fail_memory(error, "what remains at the site's runs");
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  PL_TRY(pl_profile_within(document, node, "sd", 0, 100, &own.remains->sd, error));
  PL_TRY(read_scales(&own, node));
  PL_TRY(read_lengths(&own, node));
  PL_TRY(read_points(&own, node));
  PL_TRY(pl_remains_prepare(own.remains, arena, error));
  PL_TRY(check_reach(&own, node));
  *remains = own.remains;
  return PL_OK;
}

pl_code pl_remains_read_elsewhere(const pl_document *document, const pl_node *node, pl_arena *arena,
                                  const pl_site_remains **remains, pl_error *error) {
  const pl_node *lists = pl_node_get(node, "with_runs");
  if (*remains == NULL || (*remains)->n == 0) return PL_OK; /* without runs nobody knows where elsewhere is */
  uint32_t n = (*remains)->n;
  const reading own = {.document = document, .arena = arena, .error = error};
  pl_site_remains *elsewhere = PL_TAKE(arena, pl_site_remains, 1);
  double *figures = PL_TAKE(arena, double, (size_t)n *PL_SITE_COUNT);
  if (arena->failed) return pl_fail_memory(error, "what remains at the site's runs");
  if (lists == NULL || !pl_node_is_sequence(lists) || pl_node_count(lists) != n)
    return pl_document_fail(document, lists != NULL ? lists : node, error, "'with_runs' must be a list of %u lists", n);
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(
        read_list(&own, lists, pl_node_at(lists, i), "with_runs", PL_SITE_COUNT, figures + (size_t)i * PL_SITE_COUNT));
  *elsewhere = **remains;
  elsewhere->figures = figures;
  elsewhere->is_elsewhere = true;
  *remains = elsewhere;
  return PL_OK;
}

/* ---- writing ---- */

static void write_numbers(pl_json *json, const char *key, const double *numbers, uint32_t n) {
  pl_json_key(json, key);
  pl_json_open_array(json);
  for (uint32_t i = 0; i < n; i++)
    pl_json_number(json, numbers[i]);
  pl_json_close_array(json);
}

static void write_point(pl_json *json, const pl_site_remains *remains, uint32_t i) {
  const pl_configuration *point = &remains->points[i];
  pl_json_open_object(json);
  for (int k = 0; k < PL_LIKENESS_N_NUMBERS; k++)
    pl_json_put_number(json, pl_likeness_names[k], point->number[k]);
  for (int k = 0; k < PL_LIKENESS_N_NAMES; k++)
    pl_json_put_string(json, pl_likeness_names[PL_LIKENESS_N_NUMBERS + k], point->name[k]);
  pl_json_put_number(json, "factor", exp(remains->mean[i]));
  pl_json_put_number(json, "half_width", PL_SITE_HALF * sqrt(remains->covariance[(size_t)i * remains->n + i]));
  write_numbers(json, "with_figures", remains->figures + (size_t)i * PL_SITE_COUNT, PL_SITE_COUNT);
  write_numbers(json, "with_runs", remains->covariance + (size_t)i * remains->n, remains->n);
  pl_json_close_object(json);
}

void pl_remains_write(pl_json *json, const pl_site_remains *remains) {
  pl_json_key(json, "remains");
  pl_json_open_object(json);
  pl_json_put_number(json, "sd", remains->sd);
  write_numbers(json, "scales", remains->scale_weight, PL_REMAINS_SCALES);
  pl_json_key(json, "lengths");
  pl_json_open_object(json);
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    pl_json_put_number(json, pl_likeness_names[axis], remains->likeness.length[axis]);
  pl_json_close_object(json);
  if (remains->n > 0) {
    pl_json_key(json, "runs");
    pl_json_open_array(json);
    for (uint32_t i = 0; i < remains->n; i++)
      write_point(json, remains, i);
    pl_json_close_array(json);
  }
  pl_json_close_object(json);
}

void pl_remains_write_elsewhere(pl_json *json, const pl_site_remains *remains) {
  if (remains->n == 0) return;
  pl_json_key(json, "with_runs");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < remains->n; i++) {
    pl_json_open_array(json);
    for (int figure = 0; figure < PL_SITE_COUNT; figure++)
      pl_json_number(json, remains->figures[i * PL_SITE_COUNT + (uint32_t)figure]);
    pl_json_close_array(json);
  }
  pl_json_close_array(json);
}
