/* See workloads/run/doubts.h. */
#include "workloads/run/doubts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/cost/attention_cost.h"
#include "workloads/cost/convolution_cost.h"

const char *const pl_doubt_names[PL_DOUBT_COUNT] = {[PL_DOUBT_GEMM] = "matrix products",
                                                    [PL_DOUBT_ATTENTION] = "attention",
                                                    [PL_DOUBT_KERNELS] = "memory-bound kernels",
                                                    [PL_DOUBT_HOST] = "host",
                                                    [PL_DOUBT_OVERLAP] = "overlap",
                                                    [PL_DOUBT_NVLINK] = "NVLink",
                                                    [PL_DOUBT_PCIE] = "PCIe",
                                                    [PL_DOUBT_NETWORK] = "network",
                                                    [PL_DOUBT_IDEAL] = "unpriced communication",
                                                    [PL_DOUBT_RUN] = "run to run",
                                                    [PL_DOUBT_SOURCE] = "source to source"};

pl_interval pl_interval_none(void) {
  return (pl_interval){.low_s = NAN, .high_s = NAN};
}

/* ---- what a run is like ---- */

void pl_aspects_add(pl_aspects *aspects, const char *what, const char *name) {
  char text[PL_ASPECT_BYTES];
  snprintf(text, sizeof text, "%s%s%.30s", what, name[0] != '\0' ? " " : "", name);
  for (uint32_t i = 0; i < aspects->n; i++)
    if (strcmp(aspects->text[i], text) == 0) return;
  if (aspects->n < PL_ASPECTS_MAX) memcpy(aspects->text[aspects->n++], text, sizeof text);
}

pl_aspects pl_aspects_of(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                         const pl_strategy *strategy) {
  pl_aspects aspects = {.n = 0};
  pl_aspects_add(&aspects, "framework", pl_framework_or_ideal(job->framework)->name);
  for (uint32_t p = 0; p < cluster->n_profiles && p < 4; p++)
    pl_aspects_add(&aspects, "architecture",
                   cluster->profiles[p].architecture != NULL ? cluster->profiles[p].architecture : "");
  if (strategy->pp > 1) pl_aspects_add(&aspects, "schedule", pl_schedule_name(strategy->schedule));
  if (strategy->tmp > 1) pl_aspects_add(&aspects, "tensor parallelism", "");
  if (pl_strategy_cp(strategy) > 1) pl_aspects_add(&aspects, "context parallelism", "");
  if (model->moe.n_experts > 0) pl_aspects_add(&aspects, "experts", "");
  if (job->fp8) pl_aspects_add(&aspects, job->fp4 ? "fp4" : "fp8", "");
  return aspects;
}

/* ---- one kernel, one collective ---- */

/* Held-out errors are reported as 90th percentiles of |error|; here it is 80 %, on a normal law. */
static double half_of_p90(double p90) {
  return log1p(p90) * 1.2816 / 1.6449;
}

/* From the profile, if it has enough to say so; else from all devices together. */
static double fitted_residual(const pl_residuals *residuals, const pl_held_out *held_out, pl_residual fitted,
                              pl_residual transferred) {
  enum { ENOUGH = 5 };
  if (held_out->n >= ENOUGH) return half_of_p90(held_out->p90_error);
  return residuals->half[held_out->n > 0 ? fitted : transferred];
}

static double attention_residual(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op) {
  const pl_attention_profile *curve = pl_op_attention(profile, op);
  if (curve == NULL) return residuals->half[PL_RESIDUAL_attention_roofline];
  return fitted_residual(residuals, &curve->held_out[op->category == PL_CATEGORY_BACKWARD],
                         PL_RESIDUAL_attention_fitted, PL_RESIDUAL_attention_transferred);
}

static double kernel_residual(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op,
                              pl_category category) {
  static const pl_kernel_kind kinds[PL_OP_KIND_COUNT] = {[PL_OP_NORM] = PL_KERNEL_NORM,
                                                         [PL_OP_SOFTMAX] = PL_KERNEL_SOFTMAX,
                                                         [PL_OP_ELEMENTWISE] = PL_KERNEL_ELEMENTWISE,
                                                         [PL_OP_EMBEDDING] = PL_KERNEL_EMBEDDING,
                                                         [PL_OP_CROSS_ENTROPY] = PL_KERNEL_CROSS_ENTROPY};
  pl_kernel_kind kind = op != NULL ? kinds[op->kind] : PL_KERNEL_OPTIMIZER;
  return fitted_residual(residuals, &profile->kernels[kind][category == PL_CATEGORY_BACKWARD].held_out,
                         PL_RESIDUAL_kernel_fitted, PL_RESIDUAL_kernel_transferred);
}

static double gemm_residual(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op) {
  const pl_gemm_fit *fit = NULL;
  for (uint32_t i = 0; i < profile->gemm.n_fits; i++)
    if (profile->gemm.fits[i].dtypes & 1u << op->dtype) fit = &profile->gemm.fits[i];
  if (fit == NULL) return residuals->half[PL_RESIDUAL_gemm_roofline];
  return fit->n_held_out > 0 ? half_of_p90(fit->p90_error) : residuals->half[PL_RESIDUAL_gemm_transferred];
}

/* Without rows of its own a convolution is as doubtful as a product by another device's fit. */
static double convolution_residual(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op) {
  const pl_convolution_fit *fit =
      pl_convolution_fit_for(profile, (pl_dtype)op->dtype, (pl_convolution_pass)op->convolution_pass);
  bool own = fit != NULL && fit->held_out.n > 0;
  return own ? half_of_p90(fit->held_out.p90_error) : residuals->half[PL_RESIDUAL_gemm_roofline];
}

static double residual_of(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op,
                          pl_category category, bool roofline, pl_doubt kind) {
  const double *half = residuals->half;
  if (kind == PL_DOUBT_GEMM && roofline) return half[PL_RESIDUAL_gemm_roofline];
  if (kind == PL_DOUBT_GEMM)
    return op->kind == PL_OP_GEMM ? gemm_residual(residuals, profile, op)
                                  : convolution_residual(residuals, profile, op);
  if (kind == PL_DOUBT_ATTENTION)
    return roofline ? half[PL_RESIDUAL_attention_roofline] : attention_residual(residuals, profile, op);
  return roofline ? half[PL_RESIDUAL_kernel_roofline] : kernel_residual(residuals, profile, op, category);
}

pl_doubt_of_one pl_doubt_of_kernel(const pl_residuals *residuals, const pl_device_profile *profile, const pl_op *op,
                                   pl_category category, pl_cost_source source) {
  static const pl_doubt kinds[PL_OP_KIND_COUNT] = {
      [PL_OP_GEMM] = PL_DOUBT_GEMM, [PL_OP_CONVOLUTION] = PL_DOUBT_GEMM, [PL_OP_ATTENTION] = PL_DOUBT_ATTENTION};
  pl_doubt_of_one found = {.kind = PL_DOUBT_HOST, .residual = residuals->half[PL_RESIDUAL_host]};
  if (category == PL_CATEGORY_HOST) return found;
  bool is_library =
      op != NULL && (op->kind == PL_OP_GEMM || op->kind == PL_OP_CONVOLUTION || op->kind == PL_OP_ATTENTION);
  found.kind = is_library ? kinds[op->kind] : PL_DOUBT_KERNELS;
  bool measured = source == PL_COST_TABLE || source == PL_COST_MEASURED_BLOCK;
  found.residual = measured ? 0 : residual_of(residuals, profile, op, category, source == PL_COST_ROOFLINE, found.kind);
  return found;
}

pl_code pl_doubt_of_collective(const pl_residuals *residuals, const pl_collective_group *group, pl_collective_kind kind,
                               double size_bytes, pl_arena *arena, pl_doubt_of_one *found, pl_error *error) {
  pl_collective_weighing weighing = {.n_works = 0};
  if (group != NULL) PL_TRY(pl_collective_weigh(group, kind, size_bytes, arena, &weighing, error));
  bool small = size_bytes < 1 << 20;
  pl_residual residual = PL_RESIDUAL_ideal;
  found->kind = PL_DOUBT_IDEAL;
  if (weighing.n_works > 0 && weighing.between != NULL) {
    found->kind = PL_DOUBT_NETWORK;
    residual = small ? PL_RESIDUAL_network_small : PL_RESIDUAL_network_large;
  } else if (weighing.n_works > 0 && weighing.inside != NULL && weighing.inside->nvlink) {
    found->kind = PL_DOUBT_NVLINK;
    residual = small ? PL_RESIDUAL_nvlink_small : PL_RESIDUAL_nvlink_large;
  } else if (weighing.n_works > 0) {
    found->kind = PL_DOUBT_PCIE;
    residual = small ? PL_RESIDUAL_pcie_small : PL_RESIDUAL_pcie_large;
  }
  found->residual = residuals->half[residual];
  return PL_OK;
}

/* ---- composition ---- */

static const double MILLION = 1e6;

void pl_doubts_add(pl_doubts *doubts, pl_doubt_of_one of, pl_device_ticks time) {
  doubts->sums[of.kind] += time * (uint64_t)llrint(of.residual * MILLION);
}

/* What lies between runs, and between people. */
static void add_training(const pl_residuals *residuals, const pl_aspects *aspects, pl_interval *interval) {
  for (uint32_t i = 0; i < aspects->n; i++)
    if (!pl_residuals_have_seen(residuals, aspects->text[i]))
      memcpy(interval->unseen.text[interval->unseen.n++], aspects->text[i], PL_ASPECT_BYTES);
  interval->half[PL_DOUBT_RUN] = residuals->half[PL_RESIDUAL_run];
  interval->half[PL_DOUBT_SOURCE] = residuals->half[PL_RESIDUAL_source] * sqrt(1.0 + interval->unseen.n);
}

void pl_doubts_compose(const pl_doubts *doubts, const pl_residuals *residuals, const pl_aspects *aspects, double time_s,
                       pl_interval *interval) {
  *interval = pl_interval_none();
  for (int kind = 0; doubts->busy > 0 && kind < PL_DOUBT_COUNT; kind++)
    interval->half[kind] = (double)doubts->sums[kind] / (double)doubts->busy / MILLION;
  add_training(residuals, aspects, interval);
  double square = 0;
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    square += interval->half[kind] * interval->half[kind];
  interval->low_s = time_s * exp(residuals->centre - sqrt(square));
  interval->high_s = time_s * exp(residuals->centre + sqrt(square));
}

const char *pl_interval_format(const pl_interval *interval, char text[PL_INTERVAL_TEXT_BYTES]) {
  bool is_long = interval->high_s >= 1;
  double unit = is_long ? 1 : 1e3, low = unit * interval->low_s, high = unit * interval->high_s;
  const char *form = low >= 999.5    ? "%.0f to %.0f %s"
                     : high >= 999.5 ? "%.3g to %.0f %s"
                                     : "%.3g to %.3g %s"; /* never 1.33e+03 */
  snprintf(text, PL_INTERVAL_TEXT_BYTES, form, low, high, is_long ? "s" : "ms");
  return text;
}
