/* See validation/fit/site_evidence.h. */
#include "validation/fit/site_evidence.h"

#include <math.h>
#include <string.h>

#include "core/base/positive_definite.h"

enum { N = PL_SITE_COUNT, IMAGINARY = 2 };
static const double USUAL_VARIANCE = 0.15 * 0.15, USUAL_STEP_VARIANCE = 0.05 * 0.05;
static const double NEGLIGIBLE = 1e-8; /* a probability */

/* Weak beliefs: a Gaussian each. Lengths are powers of e: 1.6 of them, a fifth to nine. What remains is firmly 3, 9 and
 * 27 %, of which sites choose: left free, the runs are nearly as probable under twice of all three, and from one small
 * change of the tables to the next the fit is here or there. */
typedef struct belief_prior {
  double mean, sd;
} belief_prior;
static const belief_prior REMAINS = {-2.4, 0.1}, SHARED = {-1, 2}, LENGTH = {0.5, 1.5};

static double usual_variance(int figure) {
  return figure == PL_SITE_step ? USUAL_STEP_VARIANCE : USUAL_VARIANCE;
}

void pl_belief_begin(double belief[PL_BELIEF_COUNT]) {
  memset(belief, 0, PL_BELIEF_COUNT * sizeof *belief);
  for (int i = 0; i < N; i++)
    belief[PL_BELIEF_VARIANCE + i] = log(usual_variance(i));
  belief[PL_BELIEF_MEAN + PL_SITE_step] = log(0.01);
  belief[PL_BELIEF_REMAINS] = REMAINS.mean;
  belief[PL_BELIEF_SHARED] = SHARED.mean;
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    belief[PL_BELIEF_LENGTH + axis] = LENGTH.mean;
}

static void weights_of(const double *logs, int n, double *weights) {
  double most = -INFINITY, sum = 0;
  for (int i = 0; i < n; i++)
    most = fmax(most, logs[i]);
  for (int i = 0; i < n; i++)
    sum += weights[i] = exp(logs[i] - most);
  for (int i = 0; i < n; i++)
    weights[i] /= sum;
}

void pl_belief_site(const double belief[PL_BELIEF_COUNT], pl_site *site, pl_site_remains *remains) {
  *site = (pl_site){.shared = 1 / (1 + exp(-belief[PL_BELIEF_SHARED])), .remains = remains};
  *remains = (pl_site_remains){.sd = exp(belief[PL_BELIEF_REMAINS])};
  for (int i = 0; i < N; i++) {
    site->covariance[i][i] = exp(belief[PL_BELIEF_VARIANCE + i]);
    site->mean[i] = belief[PL_BELIEF_MEAN + i];
  }
  site->mean[PL_SITE_step] = exp(belief[PL_BELIEF_MEAN + PL_SITE_step]);
  weights_of(belief + PL_BELIEF_SCATTER, PL_SITE_SCATTERS, site->scatter_weight);
  weights_of(belief + PL_BELIEF_SCALE, PL_REMAINS_SCALES, remains->scale_weight);
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    remains->likeness.length[axis] = exp(belief[PL_BELIEF_LENGTH + axis]);
}

/* ---- one group ---- */

enum { HYPOTHESES = PL_REMAINS_SCALES * PL_SITE_SCATTERS };

typedef struct group_work {
  const pl_evidence_group *group;
  const pl_site *site;
  const pl_site_remains *remains;
  uint32_t n;
  double *figures, *mask, *likeness; /* n * n: by figures alone, how much parts share of them; of the size 1 */
  double *factor, *inverse;          /* n * n, of one hypothesis */
  double *left, *pull;               /* n: beside the prior's mean; of one hypothesis */
  double *slope, *slope_remains;     /* n * n: d log / d covariance, and of the part that remains */
  double *slope_mean;                /* n */
  double logs[HYPOTHESES];
} group_work;

static bool take_work(group_work *w, pl_arena *arena) {
  size_t n = w->n, square = n * n + 1;
  double **const squares[] = {&w->figures, &w->mask,  &w->likeness,     &w->factor,
                              &w->inverse, &w->slope, &w->slope_remains};
  double **const lines[] = {&w->left, &w->pull, &w->slope_mean};
  for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++)
    *squares[i] = PL_TAKE(arena, double, square);
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    *lines[i] = PL_TAKE(arena, double, n + 1);
  return !arena->failed;
}

static void fill(group_work *w) {
  uint32_t n = w->n;
  for (uint32_t i = 0; i < n; i++) {
    const pl_site_run *a = w->group->runs[i];
    w->left[i] = a->y;
    for (int f = 0; f < N; f++)
      w->left[i] -= w->site->mean[f] * a->x[f];
    for (uint32_t k = 0; k < n; k++) {
      const pl_site_run *b = w->group->runs[k];
      size_t at = (size_t)i * n + k;
      double sum = 0, square = 0;
      for (int f = 0; f < N; f++)
        sum += a->x[f] * w->site->covariance[f][f] * b->x[f];
      for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
        square += w->group->apart[axis][at] / pow(w->remains->likeness.length[axis], 2);
      w->figures[at] = sum;
      w->mask[at] = a->part == b->part ? 1 : w->site->shared;
      w->likeness[at] = exp(-square / 2);
    }
  }
}

static double remaining(const group_work *w, int h) {
  double sd = w->remains->sd * pl_remains_scales[h / PL_SITE_SCATTERS];
  return sd * sd;
}

/* Factor and pull of a hypothesis; returns the logarithm of its probability, without its weight. */
static double weigh(group_work *w, int h) {
  uint32_t n = w->n;
  double scatter = pl_site_scatters[h % PL_SITE_SCATTERS], remains = remaining(w, h), log_twice = 0;
  for (size_t at = 0; at < (size_t)n * n; at++)
    w->factor[at] = w->figures[at] * w->mask[at] + remains * w->likeness[at];
  for (uint32_t i = 0; i < n; i++)
    w->factor[(size_t)i * n + i] += scatter * scatter;
  bool good = pl_cholesky(w->factor, (int)n);
  PL_ASSERT(good);
  pl_cholesky_solve(w->factor, (int)n, w->left, w->pull);
  for (uint32_t i = 0; i < n; i++)
    log_twice -= w->left[i] * w->pull[i];
  return (log_twice - pl_cholesky_log_det(w->factor, (int)n)) / 2;
}

/* Of the hypothesis h, which has the probability p. */
static void add_slope(group_work *w, int h, double p) {
  uint32_t n = w->n;
  double scale = pow(pl_remains_scales[h / PL_SITE_SCATTERS], 2);
  weigh(w, h);
  pl_cholesky_invert(w->factor, (int)n, w->inverse);
  for (uint32_t i = 0; i < n; i++) {
    w->slope_mean[i] += p * w->pull[i];
    for (uint32_t k = 0; k < n; k++) {
      size_t at = (size_t)i * n + k;
      double slope = p * (w->pull[i] * w->pull[k] - w->inverse[at]) / 2;
      w->slope[at] += slope;
      w->slope_remains[at] += scale * slope;
    }
  }
}

static void slope_of_figures(const group_work *w, double *slope) {
  uint32_t n = w->n;
  double shared = w->site->shared;
  for (uint32_t i = 0; i < n; i++) {
    const double *x = w->group->runs[i]->x;
    for (int f = 0; f < N; f++)
      slope[PL_BELIEF_MEAN + f] += x[f] * w->slope_mean[i] * (f == PL_SITE_step ? w->site->mean[f] : 1);
    for (uint32_t k = 0; k < n; k++) {
      size_t at = (size_t)i * n + k;
      const double *z = w->group->runs[k]->x;
      for (int f = 0; f < N; f++)
        slope[PL_BELIEF_VARIANCE + f] += w->slope[at] * w->mask[at] * x[f] * z[f] * w->site->covariance[f][f];
      if (w->group->runs[i]->part != w->group->runs[k]->part)
        slope[PL_BELIEF_SHARED] += w->slope[at] * w->figures[at] * shared * (1 - shared);
    }
  }
}

static void slope_of_remains(const group_work *w, double *slope) {
  double variance = w->remains->sd * w->remains->sd;
  for (size_t at = 0; at < (size_t)w->n * w->n; at++) {
    double own = w->slope_remains[at] * variance * w->likeness[at];
    slope[PL_BELIEF_REMAINS] += 2 * own;
    for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
      slope[PL_BELIEF_LENGTH + axis] += own * w->group->apart[axis][at] / pow(w->remains->likeness.length[axis], 2);
  }
}

/* Adds to slope[PL_BELIEF_COUNT]; returns the logarithm of the group's probability. */
static double add_group(group_work *w, double *slope) {
  double most = -INFINITY, sum = 0;
  fill(w);
  for (int h = 0; h < HYPOTHESES; h++) {
    w->logs[h] = weigh(w, h) + log(w->site->scatter_weight[h % PL_SITE_SCATTERS]) +
                 log(w->remains->scale_weight[h / PL_SITE_SCATTERS]);
    most = fmax(most, w->logs[h]);
  }
  for (int h = 0; h < HYPOTHESES; h++)
    sum += exp(w->logs[h] - most);
  for (int h = 0; h < HYPOTHESES; h++) {
    double p = exp(w->logs[h] - most) / sum;
    slope[PL_BELIEF_SCATTER + h % PL_SITE_SCATTERS] += p;
    slope[PL_BELIEF_SCALE + h / PL_SITE_SCATTERS] += p;
    if (p > NEGLIGIBLE) add_slope(w, h, p);
  }
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    slope[PL_BELIEF_SCATTER + g] -= w->site->scatter_weight[g];
  for (int s = 0; s < PL_REMAINS_SCALES; s++)
    slope[PL_BELIEF_SCALE + s] -= w->remains->scale_weight[s];
  slope_of_figures(w, slope);
  slope_of_remains(w, slope);
  return most + log(sum);
}

pl_code pl_evidence_of_group(const pl_evidence_group *group, const pl_site *site, const pl_site_remains *remains,
                             pl_arena *arena, double logs[PL_REMAINS_SCALES][PL_SITE_SCATTERS], pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  group_work w = {.group = group, .site = site, .remains = remains, .n = group->n};
  if (!take_work(&w, arena)) return pl_fail_memory(error, "the runs of a site");
  fill(&w);
  for (int h = 0; h < HYPOTHESES; h++)
    logs[h / PL_SITE_SCATTERS][h % PL_SITE_SCATTERS] = weigh(&w, h);
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

/* ---- all of them, and what is believed of beliefs ---- */

static double add_gaussian(const belief_prior *prior, double belief, double *slope) {
  double off = (belief - prior->mean) / prior->sd;
  *slope -= off / prior->sd;
  return -off * off / 2;
}

/* Weights are a little more probable where none is nothing: Dirichlet's 1.5. */
static double add_weights(const double *weights, int n, double *slope) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    sum += log(weights[i]) / 2;
    slope[i] += 0.5 - 0.5 * n * weights[i];
  }
  return sum;
}

static double add_beliefs(const double *belief, const pl_site *site, const pl_site_remains *remains, double *slope) {
  double sum = 0;
  for (int i = 0; i < N; i++) {
    double variance = site->covariance[i][i], mean = site->mean[i];
    double square = (usual_variance(i) + mean * mean) / variance;
    sum -= IMAGINARY / 2.0 * (log(variance) + square);
    slope[PL_BELIEF_VARIANCE + i] -= IMAGINARY / 2.0 * (1 - square);
    slope[PL_BELIEF_MEAN + i] -= IMAGINARY * mean / variance * (i == PL_SITE_step ? mean : 1);
  }
  sum += add_weights(site->scatter_weight, PL_SITE_SCATTERS, slope + PL_BELIEF_SCATTER);
  sum += add_weights(remains->scale_weight, PL_REMAINS_SCALES, slope + PL_BELIEF_SCALE);
  sum += add_gaussian(&REMAINS, belief[PL_BELIEF_REMAINS], &slope[PL_BELIEF_REMAINS]);
  sum += add_gaussian(&SHARED, belief[PL_BELIEF_SHARED], &slope[PL_BELIEF_SHARED]);
  for (int axis = 0; axis < PL_LIKENESS_COUNT; axis++)
    sum += add_gaussian(&LENGTH, belief[PL_BELIEF_LENGTH + axis], &slope[PL_BELIEF_LENGTH + axis]);
  return sum;
}

double pl_evidence_against(const double *belief, double *slope, void *context) {
  pl_evidence *own = context;
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  pl_site site;
  pl_site_remains remains;
  uint32_t n_groups = own->n_groups, without = own->without;
  pl_belief_site(belief, &site, &remains);
  memset(slope, 0, PL_BELIEF_COUNT * sizeof *slope);
  double sum = add_beliefs(belief, &site, &remains, slope);
  group_work *works = PL_TAKE(own->arena, group_work, n_groups + 1);
  double *slopes = PL_TAKE(own->arena, double, (size_t)PL_BELIEF_COUNT *n_groups + 1);
  double *values = PL_TAKE(own->arena, double, n_groups + 1);
  for (uint32_t g = 0; g < n_groups && !own->arena->failed; g++) {
    works[g] = (group_work){.group = &own->groups[g], .site = &site, .remains = &remains, .n = own->groups[g].n};
    take_work(&works[g], own->arena);
  }
  if (own->arena->failed) {
    own->failed = true;
    return (double)NAN;
  }
#pragma omp parallel for num_threads((int)own->n_threads) default(none) shared(works, slopes, values)                  \
    firstprivate(n_groups, without) schedule(dynamic, 1)
  for (uint32_t g = 0; g < n_groups; g++)
    if (works[g].group->source != without) values[g] = add_group(&works[g], slopes + (size_t)g * PL_BELIEF_COUNT);
  for (uint32_t g = 0; g < n_groups; g++) {
    sum += own->groups[g].weight * values[g];
    for (int i = 0; i < PL_BELIEF_COUNT; i++)
      slope[i] += own->groups[g].weight * slopes[(size_t)g * PL_BELIEF_COUNT + (size_t)i];
  }
  for (int i = 0; i < PL_BELIEF_COUNT; i++)
    slope[i] = -slope[i];
  pl_arena_release_to(own->arena, mark);
  return -sum;
}
