/* See workloads/run/site_remains.h. */
#include "workloads/run/site_remains.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/positive_definite.h"
#include "core/base/vectors.h"

const double pl_remains_scales[PL_REMAINS_SCALES] = {1 / 3.0, 1, 3};

/* Of a variance: points that say the same are told apart by so much. */
static const double TOO_ALIKE = 1e-6;

double pl_remains_variance(const pl_site_remains *remains) {
  double sum = 0;
  for (int h = 0; h < PL_REMAINS_SCALES; h++)
    sum += remains->scale_weight[h] * pl_remains_scales[h] * pl_remains_scales[h];
  return remains->sd * remains->sd * sum;
}

pl_code pl_remains_prepare(pl_site_remains *remains, pl_arena *arena, pl_error *error) {
  uint32_t n = remains->n;
  double *k = PL_TAKE(arena, double, (size_t)n *n + 1);
  if (k == NULL) return pl_fail_memory(error, "what remains at the site's runs");
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++)
      k[i * n + j] =
          pl_likeness_of(&remains->likeness, &remains->points[i], &remains->points[j]) + (i == j ? TOO_ALIKE : 0);
  bool good = pl_cholesky(k, (int)n);
  PL_ASSERT(good);
  remains->factor = k;
  return PL_OK;
}

pl_remaining pl_remaining_at(const pl_site_remains *remains, const pl_configuration *at) {
  pl_remaining found = {.mean = 0};
  if (remains == NULL) return found;
  double k[PL_REMAINS_POINTS] = {0}, w[PL_REMAINS_POINTS];
  uint32_t n = remains->n;
  PL_ASSERT(n <= PL_REMAINS_POINTS);
  for (uint32_t i = 0; i < n; i++) {
    k[i] = pl_likeness_of(&remains->likeness, at, &remains->points[i]);
    if (k[i] > found.likeness) {
      found.likeness = k[i];
      found.nearest = i;
    }
  }
  pl_cholesky_solve(remains->factor, (int)n, k, w);
  found.mean = pl_dot(w, remains->mean, n);
  found.variance = pl_remains_variance(remains) * fmax(0, 1 - pl_dot(w, k, n));
  for (uint32_t i = 0; i < n; i++) {
    found.variance += w[i] * pl_dot(w, remains->covariance + (size_t)i * n, n);
    for (int figure = 0; figure < PL_SITE_COUNT; figure++)
      found.figures[figure] += w[i] * remains->figures[i * PL_SITE_COUNT + (uint32_t)figure];
  }
  found.variance = fmax(0, found.variance);
  return found;
}

static bool is_strange(const pl_site_remains *remains, const char *const name[PL_SITE_NAMES], int axis) {
  if (remains == NULL || remains->n == 0 || name[axis] == NULL) return false;
  return strcmp(remains->points[0].name[axis], name[axis]) != 0;
}

const char *pl_remains_strange(const pl_site_remains *remains, const char *const name[PL_SITE_NAMES],
                               char text[PL_STRANGE_TEXT_BYTES]) {
  size_t length = 0;
  text[0] = '\0';
  for (int axis = 0; axis < PL_SITE_NAMES && length < PL_STRANGE_TEXT_BYTES; axis++)
    if (is_strange(remains, name, axis))
      length += (size_t)snprintf(text + length, PL_STRANGE_TEXT_BYTES - length, "%s%s %.60s", length > 0 ? ", " : "",
                                 pl_likeness_names[PL_LIKENESS_N_NUMBERS + axis], name[axis]);
  return text;
}

const pl_site *pl_site_of(const pl_site *site, const char *const name[PL_SITE_NAMES]) {
  for (int axis = 0; axis < PL_SITE_NAMES && site->elsewhere != NULL; axis++)
    if (is_strange(site->remains, name, axis)) return site->elsewhere;
  return site;
}

pl_remaining pl_remaining_far(const pl_site_remains *remains) {
  return (pl_remaining){.variance = remains != NULL ? pl_remains_variance(remains) : 0};
}

const char *pl_remaining_format(const pl_remaining *remaining, uint32_t n_points, char text[PL_REMAINING_TEXT_BYTES]) {
  double half = PL_SITE_HALF * sqrt(remaining->variance);
  snprintf(text, PL_REMAINING_TEXT_BYTES,
           "x%.3f (80 %%: %.2f to %.2f) by what the figures leave at the site's %" PRIu32
           " run%s alike by %.2f; a factor on the whole step, no physics",
           exp(remaining->mean), exp(remaining->mean - half), exp(remaining->mean + half), n_points,
           n_points == 1 ? ", which is" : "s, the most alike of which is", remaining->likeness);
  return text;
}

void pl_remaining_json(pl_json *json, const pl_remaining *remaining, const pl_site_remains *remains,
                       const char *const name[PL_SITE_NAMES]) {
  char text[PL_STRANGE_TEXT_BYTES];
  pl_json_key(json, "remains");
  pl_json_open_object(json);
  pl_json_put_number(json, "factor", exp(remaining->mean));
  pl_json_put_number(json, "half_width", PL_SITE_HALF * sqrt(remaining->variance));
  pl_json_put_integer(json, "runs", remains->n);
  pl_json_put_number(json, "likeness", remaining->likeness);
  if (pl_remains_strange(remains, name, text)[0] != '\0') pl_json_put_string(json, "not_of_site", text);
  pl_json_close_object(json);
}
