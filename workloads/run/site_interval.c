/* See workloads/run/site_interval.h. */
#include "workloads/run/site_interval.h"

#include <math.h>

bool pl_site_can_matter(const pl_cluster *cluster, const pl_job *job, int figure) {
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  if (figure == PL_SITE_host)
    return framework->launch.launch_s > 0 || framework->launch.backward_launch_s > 0 ||
           framework->launch.collective_s > 0 || framework->launch.collective_rank_s > 0 ||
           framework->launch.layer_s > 0;
  if (figure == PL_SITE_between_rate || figure == PL_SITE_between_latency) return cluster->n_nodes > 1;
  return cluster->n_devices > 1 || (figure != PL_SITE_inside_rate && figure != PL_SITE_inside_latency);
}

/* What is simulated once more, and how: a strategy, or a program. */
typedef struct subject {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  const pl_ir_module *module; /* NULL: a strategy */
  pl_arena *arena;
} subject;

static pl_code time_at(const subject *of, const pl_cluster *cluster, const pl_framework *framework,
                       const pl_simulate_options *options, double *time_s, pl_error *error) {
  if (of->module != NULL) {
    pl_program_report report;
    PL_TRY(pl_simulate_program(cluster, of->module, framework, options, of->arena, &report, error));
    *time_s = report.iter_time_s;
    return PL_OK;
  }
  pl_simulate_report report;
  pl_job job = *of->job;
  job.framework = framework;
  PL_TRY(pl_simulate(cluster, of->model, &job, of->strategy, options, of->arena, &report, error));
  *time_s = report.row.iter_time_s;
  return PL_OK;
}

/* Of all figures but the step. */
static pl_code take_sensitivities(const subject *of, const pl_simulate_options *options, double time_s,
                                  double x[PL_SITE_COUNT], pl_error *error) {
  pl_simulate_options own = pl_simulate_options_quiet(options);
  own.remains = NULL;
  for (int figure = 0; figure < PL_SITE_step; figure++) {
    x[figure] = 0;
    if (!pl_site_can_matter(of->cluster, of->job, figure)) continue;
    pl_arena_mark mark = pl_arena_mark_here(of->arena);
    pl_site moved = {.n_runs = 0};
    pl_site_view view;
    double moved_s;
    moved.mean[figure] = PL_SITE_STEP;
    PL_TRY(pl_site_view_take(&moved, of->cluster, options->collective_profile, of->arena, &view, error));
    own.collective_profile = view.collectives;
    const pl_framework framework = pl_site_framework(&moved, of->job->framework);
    PL_TRY(time_at(of, view.cluster, &framework, &own, &moved_s, error));
    x[figure] = log(moved_s / time_s) / PL_SITE_STEP;
    pl_arena_release_to(of->arena, mark);
  }
  return PL_OK;
}

pl_code pl_site_sensitivities_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                                   const pl_strategy *strategy, const pl_simulate_options *options, double time_s,
                                   pl_arena *arena, double x[PL_SITE_COUNT], pl_error *error) {
  const subject of = {.cluster = cluster, .model = model, .job = job, .strategy = strategy, .arena = arena};
  PL_TRY(take_sensitivities(&of, options, time_s, x, error));
  x[PL_SITE_step] = 1 / time_s;
  return PL_OK;
}

pl_code pl_site_sensitivities_of_program_take(const pl_cluster *cluster, const pl_ir_module *module,
                                              const pl_framework *framework, const pl_simulate_options *options,
                                              double time_s, pl_arena *arena, double x[PL_SITE_COUNT],
                                              pl_error *error) {
  const pl_job job = {.framework = framework};
  const subject of = {.cluster = cluster, .job = &job, .module = module, .arena = arena};
  PL_TRY(take_sensitivities(&of, options, time_s, x, error));
  x[PL_SITE_step] = 0;
  for (int32_t c = 0; c < module->n_classes; c++)
    if (module->classes[c].update != PL_IR_NONE) x[PL_SITE_step] = 1 / time_s;
  return PL_OK;
}

/* ---- the interval ---- */

/* parts[]: of the figures' share. */
static double variance_of(const pl_site *site, const double x[PL_SITE_COUNT], double parts[PL_SITE_COUNT]) {
  double sum = 0;
  for (int i = 0; i < PL_SITE_COUNT; i++) {
    double along = 0;
    for (int k = 0; k < PL_SITE_COUNT; k++)
      along += site->covariance[i][k] * x[k];
    parts[i] = fmax(0, x[i] * along);
    sum += x[i] * along;
  }
  return fmax(0, sum);
}

double pl_site_variance(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining) {
  double parts[PL_SITE_COUNT], sum = variance_of(site, x, parts) + remaining->variance;
  for (int i = 0; i < PL_SITE_COUNT; i++)
    sum += 2 * x[i] * remaining->figures[i];
  return fmax(0, sum);
}

/* Share of the mixture within +- half. */
static double share_within(const pl_site *site, double variance, double half) {
  double share = 0;
  for (int g = 0; g < PL_SITE_SCATTERS; g++)
    share += site->scatter_weight[g] * erf(half / sqrt(2 * (variance + pl_site_scatters[g] * pl_site_scatters[g])));
  return share;
}

double pl_site_half_of(const pl_site *site, double variance) {
  double low = 0,
         high = 8 * sqrt(variance + pl_site_scatters[PL_SITE_SCATTERS - 1] * pl_site_scatters[PL_SITE_SCATTERS - 1]);
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    if (share_within(site, variance, middle) < PL_INTERVAL_SHARE)
      low = middle;
    else
      high = middle;
  }
  return high;
}

double pl_site_half_width(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining) {
  return pl_site_half_of(site, pl_site_variance(site, x, remaining));
}

pl_interval pl_site_interval(const pl_site *site, const double x[PL_SITE_COUNT], const pl_remaining *remaining,
                             double time_s) {
  static const pl_doubt kinds[PL_SITE_COUNT] = {[PL_SITE_compute] = PL_DOUBT_GEMM,
                                                [PL_SITE_memory] = PL_DOUBT_KERNELS,
                                                [PL_SITE_host] = PL_DOUBT_HOST,
                                                [PL_SITE_inside_rate] = PL_DOUBT_NVLINK,
                                                [PL_SITE_inside_latency] = PL_DOUBT_NVLINK,
                                                [PL_SITE_between_rate] = PL_DOUBT_NETWORK,
                                                [PL_SITE_between_latency] = PL_DOUBT_NETWORK,
                                                [PL_SITE_step] = PL_DOUBT_HOST};
  double parts[PL_SITE_COUNT], variance = variance_of(site, x, parts), half, sum = 0;
  half = pl_site_half_of(site, pl_site_variance(site, x, remaining));
  pl_interval interval = {.low_s = time_s * exp(-half), .high_s = time_s * exp(half)};
  for (int i = 0; i < PL_SITE_COUNT; i++)
    sum += parts[i];
  /* Parts add up to the figures' share of the square, scatter and what remains have the rest. */
  double figures = sum > 0 ? fmin(half * half, PL_SITE_HALF * PL_SITE_HALF * variance) / sum : 0;
  for (int i = 0; i < PL_SITE_COUNT; i++)
    interval.half[kinds[i]] += parts[i] * figures;
  double rest = half * half;
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    rest -= interval.half[kind];
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    interval.half[kind] = sqrt(interval.half[kind]);
  interval.half[PL_DOUBT_RUN] = sqrt(fmax(0, rest));
  return interval;
}
