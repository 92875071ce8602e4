/* See validation/fit/site_memory.h. */
#include "validation/fit/site_memory.h"

#include <math.h>

#include "core/base/split_mix.h"
#include "validation/statistics/statistics.h"

enum { ROUNDS = 30, DRAWS = 40, LEAST = 6, LEFT = 3 };
static const double MEDIAN_OF_GAUSSIAN = 0.6745;
enum { DEGREES_MOST = 32 };

/* ---- before any peak ---- */

/* ln of the density of a variance x times the usual one, of n peaks: Fisher's distribution of n - 1 and `degrees`. */
static double log_fisher(double x, double n, double degrees) {
  double own = (n - 1) / 2, other = degrees / 2;
  x = fmax(x, 1e-12);
  return lgamma(own + other) - lgamma(own) - lgamma(other) + own * log(own / other) + (own - 1) * log(x) -
         (own + other) * log(1 + own / other * x);
}

/* sds[n] of the sites that have counts[n] > 1 peaks. */
static double find_degrees(const double *sds, const double *counts, uint32_t n, double usual) {
  static const double tried[] = {0.5, 1, 2, 4, 8, 16, DEGREES_MOST};
  double best = tried[0], most = -INFINITY;
  for (size_t t = 0; t < sizeof tried / sizeof tried[0]; t++) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
      sum += log_fisher(sds[i] * sds[i] / (usual * usual), counts[i], tried[t]);
    if (sum <= most) continue;
    most = sum;
    best = tried[t];
  }
  return best;
}

/* Mean and standard deviation of a site's peaks; returns their number. */
static uint32_t describe(const pl_site_rows *rows, uint32_t site, uint32_t without, double *mean, double *sd) {
  double sum = 0, squares = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < rows->n; i++) {
    const pl_site_row *row = &rows->rows[i];
    if (row->site != site || row->source == without || isnan(row->memory_bytes)) continue;
    double off = row->memory_bytes - sum / fmax(1, n); /* Welford's, from the mean before */
    sum += row->memory_bytes;
    n++;
    squares += off * (row->memory_bytes - sum / n);
  }
  *mean = n > 0 ? sum / n : 0;
  *sd = n > 1 ? sqrt(fmax(0, squares) / (n - 1)) : 0;
  return n;
}

pl_code pl_site_memory_prior(const pl_site_rows *rows, uint32_t without, pl_arena *arena, pl_site *prior,
                             pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  double *between = PL_TAKE(arena, double, rows->n_sites + 1), *inside = PL_TAKE(arena, double, rows->n_sites + 1),
         *counts = PL_TAKE(arena, double, rows->n_sites + 1), *sorted = PL_TAKE(arena, double, rows->n_sites + 1);
  uint32_t n = 0, n_inside = 0;
  if (arena->failed) return pl_fail_memory(error, "the prior of sites");
  for (uint32_t site = 0; site < rows->n_sites; site++) {
    double mean, sd;
    uint32_t own = describe(rows, site, without, &mean, &sd);
    if (own > 0) between[n++] = fabs(mean);
    if (own < 2) continue;
    counts[n_inside] = own;
    sorted[n_inside] = inside[n_inside] = sd;
    n_inside++;
  }
  prior->memory_sd_bytes = n > 0 ? pl_median(between, n) / MEDIAN_OF_GAUSSIAN : 0;
  prior->memory_scatter_bytes = n_inside > 0 ? pl_median(sorted, n_inside) : prior->memory_sd_bytes;
  prior->memory_degrees = prior->memory_scatter_bytes > 0
                              ? find_degrees(inside, counts, n_inside, prior->memory_scatter_bytes)
                              : DEGREES_MOST;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

/* ---- learning ---- */

void pl_site_memory_learn(const pl_site *prior, const double *bytes, uint32_t n, pl_site *site) {
  double between = pow(prior->memory_sd_bytes, 2), usual = pow(prior->memory_scatter_bytes, 2), inside = usual;
  site->memory_bytes = 0;
  site->memory_sd_bytes = prior->memory_sd_bytes;
  site->memory_scatter_bytes = prior->memory_scatter_bytes;
  site->n_peaks = n;
  if (n == 0 || !(between > 0) || !(inside > 0)) return;
  double sum = 0, mean = 0, variance = between;
  for (uint32_t i = 0; i < n; i++)
    sum += bytes[i];
  for (int round = 0; round < ROUNDS; round++) {
    variance = 1 / (1 / between + n / inside);
    mean = sum / inside * variance;
    if (!(prior->memory_degrees > 0)) break; /* of a prior from before: the scatter is known */
    double squares = n * variance;
    for (uint32_t i = 0; i < n; i++)
      squares += pow(bytes[i] - mean, 2);
    inside = (prior->memory_degrees * usual + squares) / (prior->memory_degrees + n);
  }
  site->memory_bytes = mean;
  site->memory_sd_bytes = sqrt(variance);
  site->memory_scatter_bytes = sqrt(inside);
}

/* ---- what that is worth ---- */

typedef struct peaks {
  double *bytes, *measured; /* above the prediction; as measured */
  uint32_t n;
} peaks;

/* The first n_known become a draw of all. */
static void shuffle(peaks *own, uint32_t n_known, uint64_t *random) {
  for (uint32_t i = 0; i < n_known; i++) {
    uint32_t k = i + (uint32_t)(pl_split_mix(random) % (own->n - i));
    double bytes = own->bytes[i], measured = own->measured[i];
    own->bytes[i] = own->bytes[k];
    own->measured[i] = own->measured[k];
    own->bytes[k] = bytes;
    own->measured[k] = measured;
  }
}

static void score(const peaks *own, uint32_t n_known, const pl_site *prior, pl_peaks_left_out *sum) {
  pl_site site = *prior;
  pl_site_memory_learn(prior, own->bytes, n_known, &site);
  double half = PL_SITE_HALF * hypot(site.memory_sd_bytes, site.memory_scatter_bytes), n_left = own->n - n_known;
  for (uint32_t i = n_known; i < own->n; i++) {
    double off = own->bytes[i] - site.memory_bytes;
    sum->without_pct += 100 * fabs(own->bytes[i]) / own->measured[i] / n_left / DRAWS;
    sum->with_pct += 100 * fabs(off) / own->measured[i] / n_left / DRAWS;
    sum->coverage_pct += 100 * (fabs(off) <= half) / n_left / DRAWS;
  }
}

pl_code pl_site_memory_leave_out(const pl_site_rows *rows, const pl_site *priors, uint32_t n_known, pl_arena *arena,
                                 pl_peaks_left_out *left, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  peaks own = {.bytes = PL_TAKE(arena, double, rows->n + 1), .measured = PL_TAKE(arena, double, rows->n + 1)};
  if (arena->failed) return pl_fail_memory(error, "the peaks of sites");
  *left = (pl_peaks_left_out){.n_known = n_known};
  for (uint32_t site = 0; site < rows->n_sites; site++) {
    uint32_t source = 0;
    own.n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
      const pl_site_row *row = &rows->rows[i];
      if (row->site != site || isnan(row->memory_bytes)) continue;
      own.bytes[own.n] = row->memory_bytes;
      own.measured[own.n++] = row->peak_bytes;
      source = row->source;
    }
    if (own.n < LEAST || own.n < n_known + LEFT) continue;
    uint64_t random = site;
    left->n_sites++;
    for (int d = 0; d < DRAWS; d++) {
      shuffle(&own, n_known, &random);
      score(&own, n_known, &priors[source], left);
    }
  }
  double n = fmax(1, left->n_sites);
  left->without_pct /= n;
  left->with_pct /= n;
  left->coverage_pct /= n;
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
