/* See validation/fit/site_posterior.h. */
#include "validation/fit/site_posterior.h"

#include <math.h>
#include <string.h>

#include "core/base/positive_definite.h"

enum { N = PL_SITE_COUNT, HYPOTHESES = PL_SITE_SCATTERS * PL_REMAINS_SCALES };
enum { ROUNDS = 5 };
static const double NEGLIGIBLE = 1e-7; /* a probability */

/* A scatter and a size of what remains, given the runs. */
typedef struct hypothesis {
  int scatter, scale;
  double remains, weight; /* variance of what remains; probability */
  double *factor;         /* of the runs' covariance */
  double *pull;           /* that, times what the prior leaves of the runs */
} hypothesis;

struct pl_site_knowledge {
  pl_site prior; /* its step has no variance where the runs would have it negative */
  const pl_site_remains *remains;
  pl_site_remains none;
  const pl_site_run **runs;
  uint32_t n, n_hypotheses;
  hypothesis hypotheses[HYPOTHESES];
  double scatter_weight[PL_SITE_SCATTERS], scale_weight[PL_REMAINS_SCALES];
};

/* ---- how runs vary together ---- */

static double by_figures(const pl_site *prior, const double *x, const double *z) {
  double sum = 0;
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      sum += x[i] * prior->covariance[i][k] * z[k];
  return sum;
}

static double share_of(const pl_site *prior, uint32_t part, uint32_t other) {
  return part == other ? 1 : prior->shared;
}

static double alike(const pl_site_remains *remains, const pl_configuration *a, const pl_configuration *b) {
  return remains->sd > 0 ? pl_likeness_of(&remains->likeness, a, b) : 0;
}

static double middle_of(const pl_site *prior, const double *x) {
  double sum = 0;
  for (int i = 0; i < N; i++)
    sum += prior->mean[i] * x[i];
  return sum;
}

double pl_site_together(const pl_site *prior, const pl_site_run *a, const pl_site_run *b) {
  double sum = share_of(prior, a->part, b->part) * by_figures(prior, a->x, b->x);
  if (prior->remains != NULL) sum += pl_remains_variance(prior->remains) * alike(prior->remains, &a->at, &b->at);
  return sum;
}

/* ---- learning ---- */

/* Room for one hypothesis after the other. */
typedef struct workspace {
  double *figures, *likeness; /* n * n: together by figures, by what remains of the size 1 */
  double *noise, *column;     /* n: variance of each run's scatter */
} workspace;

/* Given each run's scatter: factor and pull; returns the logarithm of the runs' probability but for what is the same
 * for all. */
static double solve(const pl_site_knowledge *own, const workspace *work, hypothesis *h) {
  uint32_t n = own->n;
  double log_twice = 0;
  for (size_t at = 0; at < (size_t)n * n; at++)
    h->factor[at] = work->figures[at] + h->remains * work->likeness[at];
  for (uint32_t i = 0; i < n; i++) {
    h->factor[(size_t)i * n + i] += work->noise[i];
    h->pull[i] = own->runs[i]->y - middle_of(&own->prior, own->runs[i]->x);
  }
  bool good = pl_cholesky(h->factor, (int)n);
  PL_ASSERT(good);
  pl_cholesky_solve_half(h->factor, (int)n, h->pull, h->pull);
  for (uint32_t i = 0; i < n; i++)
    log_twice -= h->pull[i] * h->pull[i];
  log_twice -= pl_cholesky_log_det(h->factor, (int)n);
  for (uint32_t i = n; i-- > 0;) {
    h->pull[i] /= h->factor[(size_t)i * n + i];
    for (uint32_t k = 0; k < i; k++)
      h->pull[k] -= h->factor[(size_t)i * n + k] * h->pull[i];
  }
  return log_twice / 2;
}

/* Each run's scatter anew, by how far it is from the others' word; returns what the evidence's bound has beside a
 * Gaussian's with these. A run's precision is w / scatter^2, w of a Gamma of (degrees / 2, degrees / 2) before it was
 * made and of (a, b) after. */
static double scatter_anew(const pl_site_knowledge *own, const workspace *work, const hypothesis *h) {
  const double half = own->prior.degrees / 2, a = half + 0.5, variance = pow(pl_site_scatters[h->scatter], 2);
  double sum = 0;
  for (uint32_t i = 0; i < own->n; i++) {
    double noise = work->noise[i], off = noise * h->pull[i], inverse = 0; /* of the runs' covariance, at i, i */
    memset(work->column, 0, own->n * sizeof *work->column);
    work->column[i] = 1;
    pl_cholesky_solve_half(h->factor, (int)own->n, work->column, work->column);
    for (uint32_t k = i; k < own->n; k++)
      inverse += work->column[k] * work->column[k];
    double doubt = fmax(0, noise - noise * noise * inverse);
    double b = half + (off * off + doubt) / variance / 2, w = a / b;
    sum += lgamma(a) - a * log(b) + half * log(half) - lgamma(half) - log(w) / 2 + (b - half) * w;
    work->noise[i] = variance / w;
  }
  return sum;
}

/* Of one hypothesis; returns the logarithm of its probability (a bound of it), but for what is the same for all. */
static double weigh(const pl_site_knowledge *own, const workspace *work, hypothesis *h) {
  double beside = 0;
  for (uint32_t i = 0; i < own->n; i++)
    work->noise[i] = pow(pl_site_scatters[h->scatter], 2);
  double log_runs = solve(own, work, h);
  for (int round = 0; round < ROUNDS && own->prior.degrees > 0; round++) {
    beside = scatter_anew(own, work, h);
    log_runs = solve(own, work, h);
  }
  return log(own->prior.scatter_weight[h->scatter]) + log(own->remains->scale_weight[h->scale]) + log_runs + beside;
}

/* Drops what is negligible. */
static void normalise(pl_site_knowledge *own, const double *logs) {
  double most = -INFINITY, sum = 0;
  uint32_t kept = 0;
  for (uint32_t h = 0; h < own->n_hypotheses; h++)
    most = fmax(most, logs[h]);
  for (uint32_t h = 0; h < own->n_hypotheses; h++) {
    hypothesis one = own->hypotheses[h];
    one.weight = exp(logs[h] - most);
    if (one.weight < NEGLIGIBLE) continue;
    sum += one.weight;
    own->hypotheses[kept++] = one;
  }
  own->n_hypotheses = kept;
  memset(own->scatter_weight, 0, sizeof own->scatter_weight);
  memset(own->scale_weight, 0, sizeof own->scale_weight);
  for (uint32_t h = 0; h < kept; h++) {
    hypothesis *one = &own->hypotheses[h];
    one->weight /= sum;
    own->scatter_weight[one->scatter] += one->weight;
    own->scale_weight[one->scale] += one->weight;
  }
}

static pl_code weigh_all(pl_site_knowledge *own, pl_arena *arena, pl_error *error) {
  size_t n = own->n;
  const workspace work = {.figures = PL_TAKE(arena, double, n *n + 1),
                          .likeness = PL_TAKE(arena, double, n *n + 1),
                          .noise = PL_TAKE(arena, double, n + 1),
                          .column = PL_TAKE(arena, double, n + 1)};
  double logs[HYPOTHESES];
  if (arena->failed) return pl_fail_memory(error, "the runs of a site");
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k <= i; k++) {
      const pl_site_run *a = own->runs[i], *b = own->runs[k];
      work.figures[i * n + k] = work.figures[k * n + i] =
          share_of(&own->prior, a->part, b->part) * by_figures(&own->prior, a->x, b->x);
      work.likeness[i * n + k] = work.likeness[k * n + i] = alike(own->remains, &a->at, &b->at);
    }
  own->n_hypotheses = 0;
  for (int scale = 0; scale < PL_REMAINS_SCALES; scale++)
    for (int scatter = 0; scatter < PL_SITE_SCATTERS; scatter++) {
      if (!(own->remains->scale_weight[scale] > 0) || !(own->prior.scatter_weight[scatter] > 0)) continue;
      double sd = own->remains->sd * pl_remains_scales[scale];
      hypothesis *h = &own->hypotheses[own->n_hypotheses];
      *h = (hypothesis){.scatter = scatter,
                        .scale = scale,
                        .remains = sd * sd,
                        .factor = PL_TAKE(arena, double, n *n + 1),
                        .pull = PL_TAKE(arena, double, n + 1)};
      if (arena->failed) return pl_fail_memory(error, "the runs of a site");
      logs[own->n_hypotheses++] = weigh(own, &work, h);
    }
  normalise(own, logs);
  return PL_OK;
}

/* By how much the runs move a figure of a part. */
static double moved_by(const pl_site_knowledge *own, const hypothesis *h, uint32_t part, int figure) {
  double sum = 0;
  for (uint32_t i = 0; i < own->n; i++) {
    double along = 0;
    for (int k = 0; k < N; k++)
      along += own->prior.covariance[figure][k] * own->runs[i]->x[k];
    sum += share_of(&own->prior, own->runs[i]->part, part) * along * h->pull[i];
  }
  return sum;
}

/* The mean over the runs' parts. */
static double step_of(const pl_site_knowledge *own) {
  double sum = 0;
  for (uint32_t h = 0; h < own->n_hypotheses; h++)
    for (uint32_t i = 0; i < own->n; i++)
      sum += own->hypotheses[h].weight * moved_by(own, &own->hypotheses[h], own->runs[i]->part, PL_SITE_step) / own->n;
  return own->prior.mean[PL_SITE_step] + sum;
}

static pl_site without_step(const pl_site *prior) {
  pl_site without = *prior;
  without.mean[PL_SITE_step] = 0;
  for (int i = 0; i < N; i++)
    without.covariance[i][PL_SITE_step] = without.covariance[PL_SITE_step][i] = 0;
  return without;
}

pl_code pl_site_learn(const pl_site *prior, const pl_site_run *const *runs, uint32_t n, pl_arena *arena,
                      pl_site_knowledge **knowledge, pl_error *error) {
  uint32_t n_learnt = n < PL_SITE_RUNS ? n : PL_SITE_RUNS;
  pl_site_knowledge *own = PL_TAKE(arena, pl_site_knowledge, 1);
  const pl_site_run **list = PL_TAKE(arena, const pl_site_run *, n_learnt + 1);
  if (arena->failed) return pl_fail_memory(error, "the runs of a site");
  for (uint32_t i = 0; i < n_learnt; i++)
    list[i] = runs[(uint64_t)i * n / n_learnt];
  *own = (pl_site_knowledge){.prior = *prior, .remains = prior->remains, .runs = list, .n = n_learnt};
  own->none.scale_weight[0] = 1;
  if (own->remains == NULL) own->remains = &own->none;
  PL_TRY(weigh_all(own, arena, error));
  if (own->n > 0 && step_of(own) < 0) {
    own->prior = without_step(prior);
    PL_TRY(weigh_all(own, arena, error));
  }
  *knowledge = own;
  return PL_OK;
}

const double *pl_site_scatter_known(const pl_site_knowledge *knowledge) {
  return knowledge->scatter_weight;
}

/* ---- another run ---- */

/* A Gaussian under each hypothesis, mixed. */
typedef struct mixture {
  double mean, square;
} mixture;

double pl_site_predict(const pl_site_knowledge *own, const pl_site_run *run, double *variance) {
  double figures[PL_SITE_RUNS], likeness[PL_SITE_RUNS], with[PL_SITE_RUNS] = {0};
  double alone = by_figures(&own->prior, run->x, run->x);
  mixture sum = {0, 0};
  for (uint32_t i = 0; i < own->n; i++) {
    const pl_site_run *known = own->runs[i];
    figures[i] = share_of(&own->prior, known->part, run->part) * by_figures(&own->prior, known->x, run->x);
    likeness[i] = alike(own->remains, &known->at, &run->at);
  }
  for (uint32_t g = 0; g < own->n_hypotheses; g++) {
    const hypothesis *h = &own->hypotheses[g];
    double mean = 0, square = alone + h->remains;
    for (uint32_t i = 0; i < own->n; i++) {
      with[i] = figures[i] + h->remains * likeness[i];
      mean += with[i] * h->pull[i];
    }
    pl_cholesky_solve_half(h->factor, (int)own->n, with, with);
    for (uint32_t i = 0; i < own->n; i++)
      square -= with[i] * with[i];
    sum.mean += h->weight * mean;
    sum.square += h->weight * (fmax(0, square) + mean * mean);
  }
  *variance = fmax(0, sum.square - sum.mean * sum.mean);
  return middle_of(&own->prior, run->x) + sum.mean;
}

/* ---- a site ---- */

/* Of the runs those that a file has points for: all, or those farthest from the ones before them. */
static uint32_t choose_points(const pl_site_knowledge *own, const pl_site_run **points) {
  double nearest[PL_SITE_RUNS] = {0};
  uint32_t n = 0;
  if (own->remains->sd <= 0) return 0;
  for (uint32_t next = 0; n < own->n && n < PL_REMAINS_POINTS;) {
    points[n++] = own->runs[next];
    double least = INFINITY;
    for (uint32_t i = 0; i < own->n; i++) {
      nearest[i] = fmax(nearest[i], i == next ? INFINITY : alike(own->remains, &own->runs[i]->at, &points[n - 1]->at));
      if (nearest[i] < least) {
        least = nearest[i];
        next = i;
      }
    }
    if (isinf(least)) break;
  }
  return n;
}

/* Mean and covariance of the figures and of what remains at the points, m = N + n_points of them. */
typedef struct joint {
  uint32_t m;
  double *mean, *covariance;
  double *with, *solved; /* m * n: with the runs */
  double *mean_given;
} joint;

static void add_hypothesis(const pl_site_knowledge *own, const hypothesis *h, uint32_t part,
                           const pl_site_run *const *points, joint *sum) {
  uint32_t n = own->n, m = sum->m;
  for (uint32_t a = 0; a < m; a++) {
    double *with = sum->with + (size_t)a * n, *solved = sum->solved + (size_t)a * n;
    sum->mean_given[a] = a < N ? own->prior.mean[a] : 0;
    for (uint32_t i = 0; i < n; i++) {
      const pl_site_run *run = own->runs[i];
      with[i] = 0;
      for (int k = 0; k < N && a < N; k++)
        with[i] += share_of(&own->prior, run->part, part) * own->prior.covariance[a][k] * run->x[k];
      if (a >= N) with[i] = h->remains * alike(own->remains, &points[a - N]->at, &run->at);
      sum->mean_given[a] += with[i] * h->pull[i];
    }
    pl_cholesky_solve_half(h->factor, (int)n, with, solved);
    sum->mean[a] += h->weight * sum->mean_given[a];
  }
  for (uint32_t a = 0; a < m; a++)
    for (uint32_t b = 0; b < m; b++) {
      double together = 0;
      if (a < N && b < N) together = own->prior.covariance[a][b];
      if (a >= N && b >= N) together = h->remains * alike(own->remains, &points[a - N]->at, &points[b - N]->at);
      for (uint32_t i = 0; i < n; i++)
        together -= sum->solved[(size_t)a * n + i] * sum->solved[(size_t)b * n + i];
      sum->covariance[(size_t)a * m + b] += h->weight * (together + sum->mean_given[a] * sum->mean_given[b]);
    }
}

static pl_code write_remains(const pl_site_knowledge *own, const pl_site_run *const *points, const joint *sum,
                             pl_arena *arena, pl_site *site, pl_error *error) {
  uint32_t n = sum->m - N;
  pl_site_remains *remains = PL_TAKE(arena, pl_site_remains, 1);
  pl_configuration *places = PL_TAKE(arena, pl_configuration, n + 1);
  double *mean = PL_TAKE(arena, double, n + 1), *covariance = PL_TAKE(arena, double, (size_t)n *n + 1);
  double *figures = PL_TAKE(arena, double, (size_t)n *N + 1);
  if (arena->failed) return pl_fail_memory(error, "what remains at the site's runs");
  *remains = *own->remains;
  memcpy(remains->scale_weight, own->scale_weight, sizeof remains->scale_weight);
  remains->n = n;
  remains->points = places;
  remains->mean = mean;
  remains->covariance = covariance;
  remains->figures = figures;
  for (uint32_t i = 0; i < n; i++) {
    const double *row = sum->covariance + (size_t)(N + i) * sum->m;
    places[i] = points[i]->at;
    mean[i] = sum->mean[N + i];
    memcpy(figures + (size_t)i * N, row, N * sizeof *figures);
    memcpy(covariance + (size_t)i * n, row + N, n * sizeof *covariance);
  }
  site->remains = remains;
  return pl_remains_prepare(remains, arena, error);
}

pl_code pl_site_posterior(const pl_site_knowledge *own, uint32_t part, pl_arena *arena, pl_site *site,
                          pl_error *error) {
  const pl_site_run *points[PL_REMAINS_POINTS];
  uint32_t m = N + choose_points(own, points);
  size_t n = own->n;
  joint sum = {.m = m,
               .mean = PL_TAKE(arena, double, m),
               .covariance = PL_TAKE(arena, double, (size_t)m *m),
               .with = PL_TAKE(arena, double, m *n + 1),
               .solved = PL_TAKE(arena, double, m *n + 1),
               .mean_given = PL_TAKE(arena, double, m)};
  if (arena->failed) return pl_fail_memory(error, "the site");
  for (uint32_t h = 0; h < own->n_hypotheses; h++)
    add_hypothesis(own, &own->hypotheses[h], part, points, &sum);
  for (uint32_t a = 0; a < m; a++)
    for (uint32_t b = 0; b < m; b++)
      sum.covariance[(size_t)a * m + b] -= sum.mean[a] * sum.mean[b];
  *site = own->prior;
  memcpy(site->scatter_weight, own->scatter_weight, sizeof site->scatter_weight);
  for (int i = 0; i < N; i++) {
    site->mean[i] = sum.mean[i];
    for (int k = 0; k < N; k++)
      site->covariance[i][k] = sum.covariance[(size_t)i * m + (size_t)k];
  }
  site->mean[PL_SITE_step] = fmax(0, site->mean[PL_SITE_step]);
  for (uint32_t i = 0; i < own->n; i++)
    site->n_runs += own->runs[i]->part == part;
  site->remains = NULL;
  return own->remains->sd > 0 ? write_remains(own, points, &sum, arena, site, error) : PL_OK;
}

/* ---- which runs ---- */

/* The scatter in the middle of its distribution: what a new run is taken to stray by. */
static double usual_scatter(const pl_site *prior) {
  double sum = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++) {
    sum += prior->scatter_weight[g];
    if (sum >= 0.5) return pl_site_scatters[g];
  }
  return pl_site_scatters[PL_SITE_SCATTERS - 1];
}

static double gain_of(const double *row, double own, double noise, uint32_t n_targets) {
  double gain = 0;
  for (uint32_t t = 0; t < n_targets; t++)
    gain += row[t] * row[t];
  return gain / (own + noise);
}

pl_code pl_site_suggest(const pl_site *prior, const pl_site_run *candidates, uint32_t n, uint32_t n_targets,
                        uint32_t n_chosen, pl_arena *arena, uint32_t *chosen, double *variance, uint32_t *found,
                        pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  double *together = PL_TAKE(arena, double, (size_t)n *n + 1), *along = PL_TAKE(arena, double, n + 1);
  double noise = pow(usual_scatter(prior), 2);
  if (arena->failed) return pl_fail_memory(error, "the runs that could be made");
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k <= i; k++)
      together[(size_t)i * n + k] = together[(size_t)k * n + i] =
          pl_site_together(prior, &candidates[i], &candidates[k]);
  *found = 0;
  while (*found < n_chosen) {
    uint32_t best = UINT32_MAX;
    double most = -1;
    for (uint32_t c = 0; c < n; c++) {
      bool taken = false;
      for (uint32_t i = 0; i < *found; i++)
        taken |= chosen[i] == c;
      double gain = taken ? -1 : gain_of(together + (size_t)c * n, together[(size_t)c * n + c], noise, n_targets);
      if (gain <= most) continue;
      most = gain;
      best = c;
    }
    if (best == UINT32_MAX) break;
    memcpy(along, together + (size_t)best * n, n * sizeof *along);
    double all = along[best] + noise;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < n; k++)
        together[(size_t)i * n + k] -= along[i] * along[k] / all;
    for (uint32_t t = 0; t < n_targets && variance != NULL; t++)
      variance[*found * n_targets + t] = fmax(0, together[(size_t)t * n + t]);
    chosen[(*found)++] = best;
  }
  pl_arena_release_to(arena, mark);
  return PL_OK;
}
