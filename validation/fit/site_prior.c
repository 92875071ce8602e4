/* See validation/fit/site_prior.h. */
#include "validation/fit/site_prior.h"

#include <math.h>
#include <string.h>

#include "validation/statistics/statistics.h"

enum { N = PL_SITE_COUNT, ITERATIONS = 300, MORE_ITERATIONS = 60, IMAGINARY = 2 };
static const double USUAL_VARIANCE = 0.15 * 0.15, USUAL_STEP_VARIANCE = 0.05 * 0.05;

static double usual_variance(int figure) {
  return figure == PL_SITE_step ? USUAL_STEP_VARIANCE : USUAL_VARIANCE;
}

static uint32_t gather(const pl_site_rows *rows, uint32_t without, pl_site_sums *sums) {
  for (uint32_t i = 0; i < rows->n; i++)
    if (rows->rows[i].source != without) pl_site_sums_add(&sums[rows->rows[i].site], &rows->rows[i].run);
  uint32_t n = 0;
  for (uint32_t s = 0; s < rows->n_sites; s++)
    if (sums[s].n > 0) sums[n++] = sums[s];
  for (uint32_t s = 0; s < n; s++)
    pl_site_sums_weaken(&sums[s]);
  return n;
}

/* What the sites are expected to be under `prior`, summed up. */
typedef struct expected {
  double mean[N], square[N]; /* of figures, and of their distance from the prior's mean */
  double weight[PL_SITE_SCATTERS];
} expected;

static void expect(const pl_site *prior, const pl_site_sums *sums, expected *sum) {
  double mean[PL_SITE_SCATTERS][N], covariance[PL_SITE_SCATTERS][N][N], logs[PL_SITE_SCATTERS], most = -INFINITY;
  double all = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    logs[g] = log(prior->scatter_weight[g]) + pl_site_posterior_given(prior, sums, g, mean[g], covariance[g]);
    most = fmax(most, logs[g]);
  }
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    all += exp(logs[g] - most);
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    double weight = exp(logs[g] - most) / all;
    sum->weight[g] += weight;
    for (int i = 0; i < N; i++) {
      double off = mean[g][i] - prior->mean[i];
      sum->mean[i] += weight * mean[g][i];
      sum->square[i] += weight * (covariance[g][i][i] + off * off);
    }
  }
}

/* Square of the distance from the new mean, not from the old one. */
static void maximise(const expected *sum, uint32_t n, pl_site *prior) {
  for (int i = 0; i < N; i++) {
    double mean = sum->mean[i] / (n + IMAGINARY), moved = mean - prior->mean[i], average = sum->mean[i] / n;
    double square = sum->square[i] - 2 * moved * n * (average - prior->mean[i]) + n * moved * moved;
    prior->mean[i] = mean;
    prior->covariance[i][i] = (square + IMAGINARY * (usual_variance(i) + mean * mean)) / (n + IMAGINARY);
  }
  if (prior->mean[PL_SITE_step] < 0) prior->mean[PL_SITE_step] = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior->scatter_weight[g] = (sum->weight[g] + 0.5) / (n + 0.5 * PL_SITE_SCATTERS);
}

/* How far the mean distances of sites' peaks from predictions lie from nothing, and peaks from their site's mean:
 * medians as of Gaussians, since a few sites' figures are not what they are said to be. */
static pl_code find_memory(const pl_site_rows *rows, uint32_t without, pl_arena *arena, pl_site *prior,
                           pl_error *error) {
  static const double MEDIAN_OF_GAUSSIAN = 0.6745;
  double *means = PL_TAKE(arena, double, rows->n_sites), *counts = PL_TAKE(arena, double, rows->n_sites);
  double *between = PL_TAKE(arena, double, rows->n_sites), *inside = PL_TAKE(arena, double, rows->n_sites);
  if (arena->failed) return pl_fail_memory(error, "the prior of sites");
  uint32_t n = 0, n_inside = 0;
  for (uint32_t i = 0; i < rows->n; i++) {
    const pl_site_row *row = &rows->rows[i];
    if (row->source == without || isnan(row->memory_bytes)) continue;
    means[row->site] += row->memory_bytes;
    counts[row->site]++;
  }
  for (uint32_t s = 0; s < rows->n_sites; s++) {
    if (counts[s] == 0) continue;
    means[s] /= counts[s];
    between[n++] = fabs(means[s]);
  }
  double *squares = PL_TAKE(arena, double, rows->n_sites);
  if (squares == NULL) return pl_fail_memory(error, "the prior of sites");
  for (uint32_t i = 0; i < rows->n; i++) {
    const pl_site_row *row = &rows->rows[i];
    if (row->source == without || isnan(row->memory_bytes) || counts[row->site] < 2) continue;
    double off = row->memory_bytes - means[row->site];
    squares[row->site] += off * off / (counts[row->site] - 1);
  }
  for (uint32_t s = 0; s < rows->n_sites; s++)
    if (counts[s] >= 2) inside[n_inside++] = sqrt(squares[s]);
  prior->memory_sd_bytes = n > 0 ? pl_median(between, n) / MEDIAN_OF_GAUSSIAN : 0;
  prior->memory_scatter_bytes = n_inside > 0 ? pl_median(inside, n_inside) : prior->memory_sd_bytes;
  return PL_OK;
}

pl_code pl_site_prior_take(const pl_site_rows *rows, uint32_t without, const pl_site *start, pl_arena *arena,
                           pl_site *prior, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_site_sums *sums = PL_TAKE(arena, pl_site_sums, rows->n_sites);
  if (sums == NULL) return pl_fail_memory(error, "the prior of sites");
  uint32_t n = gather(rows, without, sums);
  *prior = (pl_site){.n_runs = 0};
  for (int i = 0; i < N; i++)
    prior->covariance[i][i] = usual_variance(i);
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    prior->scatter_weight[g] = 1.0 / PL_SITE_SCATTERS;
  if (start != NULL) *prior = *start;
  int n_iterations = start != NULL ? MORE_ITERATIONS : ITERATIONS;
  for (int iteration = 0; iteration < n_iterations && n > 0; iteration++) {
    expected sum = {.mean = {0}};
    for (uint32_t s = 0; s < n; s++)
      expect(prior, &sums[s], &sum);
    maximise(&sum, n, prior);
  }
  PL_TRY(find_memory(rows, without, arena, prior, error));
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
