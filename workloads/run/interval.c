/* See workloads/run/interval.h. */
#include "workloads/run/interval.h"

#include <math.h>
#include <string.h>

#include "core/base/units.h"
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

static void add_aspect(pl_aspects *aspects, const char *what, const char *name) {
  char text[PL_ASPECT_BYTES];
  snprintf(text, sizeof text, "%s%s%.30s", what, name[0] != '\0' ? " " : "", name);
  for (uint32_t i = 0; i < aspects->n; i++)
    if (strcmp(aspects->text[i], text) == 0) return;
  if (aspects->n < PL_ASPECTS_MAX) memcpy(aspects->text[aspects->n++], text, sizeof text);
}

pl_aspects pl_aspects_of(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                         const pl_strategy *strategy) {
  pl_aspects aspects = {.n = 0};
  add_aspect(&aspects, "framework", pl_framework_or_ideal(job->framework)->name);
  for (uint32_t p = 0; p < cluster->n_profiles && p < 4; p++)
    add_aspect(&aspects, "architecture",
               cluster->profiles[p].architecture != NULL ? cluster->profiles[p].architecture : "");
  if (strategy->pp > 1) add_aspect(&aspects, "schedule", pl_schedule_name(strategy->schedule));
  if (strategy->tmp > 1) add_aspect(&aspects, "tensor parallelism", "");
  if (pl_strategy_cp(strategy) > 1) add_aspect(&aspects, "context parallelism", "");
  if (model->n_experts > 0) add_aspect(&aspects, "experts", "");
  if (job->fp8) add_aspect(&aspects, job->fp4 ? "fp4" : "fp8", "");
  return aspects;
}

/* ---- composition ---- */

/* In integers sums do not depend on the order: folded and unfolded runs agree. */
typedef unsigned __int128 device_ticks;

static const double MILLION = 1e6;

typedef struct composing {
  const pl_explanation *explanation;
  const pl_residuals *residuals;
  pl_arena *arena;
  pl_error *error;
  device_ticks sums[PL_DOUBT_COUNT]; /* of ticks * residual in millionths, over devices */
  device_ticks busy;
} composing;

static bool is_tensor(const pl_explained_op *op) {
  return op->family != PL_NONE && op->category == PL_CATEGORY_TENSOR;
}

static void doubt(composing *state, pl_doubt kind, device_ticks time, double residual) {
  state->sums[kind] += time * (uint64_t)llrint(residual * MILLION);
}

/* Held-out errors are reported as 90th percentiles of |error|; here it is 80 %, on a normal law. */
static double half_of_p90(double p90) {
  return log1p(p90) * 1.2816 / 1.6449;
}

/* From the profile, if it has enough to say so; else from all devices together. */
static double fitted_residual(const composing *state, const pl_held_out *held_out, pl_residual fitted,
                              pl_residual transferred) {
  enum { ENOUGH = 5 };
  if (held_out->n >= ENOUGH) return half_of_p90(held_out->p90_error);
  return state->residuals->half[held_out->n > 0 ? fitted : transferred];
}

static double attention_residual(const composing *state, const pl_device_profile *profile, const pl_op *op) {
  const pl_attention_profile *curve = pl_attention_choose(profile, (pl_attention_kernel)op->attention_kernel);
  if (curve == NULL) return state->residuals->half[PL_RESIDUAL_attention_roofline];
  return fitted_residual(state, &curve->held_out[op->category == PL_CATEGORY_BACKWARD], PL_RESIDUAL_attention_fitted,
                         PL_RESIDUAL_attention_transferred);
}

static double kernel_residual(const composing *state, const pl_device_profile *profile, const pl_explained_op *op) {
  static const pl_kernel_kind kinds[PL_OP_KIND_COUNT] = {[PL_OP_NORM] = PL_KERNEL_NORM,
                                                         [PL_OP_SOFTMAX] = PL_KERNEL_SOFTMAX,
                                                         [PL_OP_ELEMENTWISE] = PL_KERNEL_ELEMENTWISE,
                                                         [PL_OP_EMBEDDING] = PL_KERNEL_EMBEDDING,
                                                         [PL_OP_CROSS_ENTROPY] = PL_KERNEL_CROSS_ENTROPY};
  pl_kernel_kind kind = op->op != NULL ? kinds[op->op->kind] : PL_KERNEL_OPTIMIZER;
  return fitted_residual(state, &profile->kernels[kind][op->category == PL_CATEGORY_BACKWARD].held_out,
                         PL_RESIDUAL_kernel_fitted, PL_RESIDUAL_kernel_transferred);
}

static double gemm_residual(const composing *state, const pl_device_profile *profile, const pl_op *op) {
  const pl_gemm_fit *fit = NULL;
  for (uint32_t i = 0; i < profile->gemm.n_fits; i++)
    if (profile->gemm.fits[i].dtypes & 1u << op->dtype) fit = &profile->gemm.fits[i];
  if (fit == NULL) return state->residuals->half[PL_RESIDUAL_gemm_roofline];
  return fit->n_held_out > 0 ? half_of_p90(fit->p90_error) : state->residuals->half[PL_RESIDUAL_gemm_transferred];
}

/* Without rows of its own a convolution is as doubtful as a product by another device's fit. */
static double convolution_residual(const composing *state, const pl_device_profile *profile, const pl_op *op) {
  const pl_convolution_fit *fit =
      pl_convolution_fit_for(profile, (pl_dtype)op->dtype, (pl_convolution_pass)op->convolution_pass);
  bool own = fit != NULL && fit->held_out.n > 0;
  return own ? half_of_p90(fit->held_out.p90_error) : state->residuals->half[PL_RESIDUAL_gemm_roofline];
}

static void add_computing(composing *state, const pl_device_profile *profile, const pl_explained_op *op,
                          const pl_explained_time *time, uint32_t share) {
  const double *half = state->residuals->half;
  bool roofline = time->cost.source == PL_COST_ROOFLINE;
  int kind = op->op != NULL ? op->op->kind : PL_OP_KIND_COUNT;
  device_ticks taken = (device_ticks)time->alone * share; /* what slows it down is a doubt of its own */
  if (op->category == PL_CATEGORY_HOST)
    doubt(state, PL_DOUBT_HOST, taken, half[PL_RESIDUAL_host]);
  else if (time->cost.source == PL_COST_TABLE || time->cost.source == PL_COST_MEASURED_BLOCK)
    return;
  else if (kind == PL_OP_GEMM)
    doubt(state, PL_DOUBT_GEMM, taken,
          roofline ? half[PL_RESIDUAL_gemm_roofline] : gemm_residual(state, profile, op->op));
  else if (kind == PL_OP_CONVOLUTION)
    doubt(state, PL_DOUBT_GEMM, taken,
          roofline ? half[PL_RESIDUAL_gemm_roofline] : convolution_residual(state, profile, op->op));
  else if (kind == PL_OP_ATTENTION)
    doubt(state, PL_DOUBT_ATTENTION, taken,
          roofline ? half[PL_RESIDUAL_attention_roofline] : attention_residual(state, profile, op->op));
  else
    doubt(state, PL_DOUBT_KERNELS, taken,
          roofline ? half[PL_RESIDUAL_kernel_roofline] : kernel_residual(state, profile, op));
}

/* A device may wait for a group that it is not in: any group of that family will do. */
static const pl_group_class *group_of(const pl_explanation *explanation, const pl_explained_op *op,
                                      const pl_explained_time *time) {
  if (time->group_class != PL_NONE) return &explanation->plan->group_classes[time->group_class];
  for (uint32_t g = 0; g < explanation->plan->n_group_classes; g++)
    if (explanation->plan->group_classes[g].family == op->family) return &explanation->plan->group_classes[g];
  return NULL;
}

typedef struct communication_doubt {
  pl_doubt kind;
  double residual;
} communication_doubt;

static pl_code doubt_of(composing *state, const pl_explained_op *op, const pl_explained_time *time,
                        communication_doubt *found) {
  const pl_explanation *explanation = state->explanation;
  const pl_communication *own = &explanation->program->families[op->family].ops[op->family_op];
  const pl_group_class *group = group_of(explanation, op, time);
  pl_collective_weighing weighing = {.n_works = 0};
  if (group != NULL)
    PL_TRY(pl_collective_weigh(group->channels, own->kind, own->size_bytes, state->arena, &weighing, state->error));
  bool small = own->size_bytes < 1 << 20;
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
  found->residual = state->residuals->half[residual];
  return PL_OK;
}

static pl_code add_communication(composing *state, const pl_explained_op *op, const pl_explained_time *time,
                                 uint32_t share) {
  communication_doubt found;
  PL_TRY(doubt_of(state, op, time, &found));
  doubt(state, found.kind, (device_ticks)time->exposed * share, found.residual);
  return PL_OK;
}

/* Tensor collectives may be parts of passes (workloads/compile/pieces.h), and of what contention makes of a part in the
 * run only the device's sum is known. So the sum is divided among a device's tensor collectives as their times alone,
 * wherever they are: the same for fused and unfused runs. */
static pl_code add_tensor(composing *state, uint32_t class, uint32_t share) {
  const pl_explanation *explanation = state->explanation;
  const pl_explained_time *times = pl_explained_times(explanation, class);
  device_ticks weighted[PL_DOUBT_COUNT] = {0}, all = 0;
  for (uint32_t i = 0; i < explanation->n_ops; i++) {
    if (!is_tensor(&explanation->ops[i]) || times[i].alone == 0) continue;
    communication_doubt found;
    PL_TRY(doubt_of(state, &explanation->ops[i], &times[i], &found));
    device_ticks alone = (device_ticks)times[i].alone;
    weighted[found.kind] += alone * (uint64_t)llrint(found.residual * MILLION);
    all += alone;
  }
  pl_ticks spent = explanation->spent[class * PL_CATEGORY_COUNT + PL_CATEGORY_TENSOR];
  for (int kind = 0; all > 0 && kind < PL_DOUBT_COUNT; kind++)
    state->sums[kind] += (device_ticks)spent * share * (weighted[kind] / all);
  return PL_OK;
}

static pl_code add_class(composing *state, uint32_t class) {
  const pl_explanation *explanation = state->explanation;
  const pl_device_class *own = &explanation->plan->device_classes[class];
  const pl_device_profile *profile = pl_cluster_profile(explanation->cluster, own->device);
  const pl_explained_time *times = pl_explained_times(explanation, class);
  uint32_t share = own->multiplicity;
  pl_ticks computing = 0, parts = 0;
  for (uint32_t i = 0; i < explanation->n_ops; i++) {
    const pl_explained_op *op = &explanation->ops[i];
    if (times[i].exposed == 0 || is_tensor(op)) continue;
    if (op->family != PL_NONE) {
      PL_TRY(add_communication(state, op, &times[i], share));
      continue;
    }
    add_computing(state, profile, op, &times[i], share);
    if (!pl_category_is_communication((pl_category)op->category)) parts += times[i].alone;
  }
  PL_TRY(add_tensor(state, class, share));
  for (int category = 0; category < PL_CATEGORY_COUNT; category++)
    if (!pl_category_is_communication((pl_category)category))
      computing += explanation->spent[class * PL_CATEGORY_COUNT + (uint32_t)category];
  if (computing > parts)
    doubt(state, PL_DOUBT_OVERLAP, (device_ticks)(computing - parts) * share,
          state->residuals->half[PL_RESIDUAL_overlap]);
  state->busy += (device_ticks)(explanation->makespan - explanation->idle[class]) * share;
  return PL_OK;
}

static void add_training(const composing *state, pl_interval *interval) {
  const pl_program *program = state->explanation->program;
  const pl_residuals *residuals = state->residuals;
  pl_aspects aspects = pl_aspects_of(state->explanation->cluster, program->model, program->job, program->strategy);
  for (uint32_t i = 0; i < aspects.n; i++)
    if (!pl_residuals_have_seen(residuals, aspects.text[i]))
      memcpy(interval->unseen.text[interval->unseen.n++], aspects.text[i], PL_ASPECT_BYTES);
  interval->half[PL_DOUBT_RUN] = residuals->half[PL_RESIDUAL_run];
  interval->half[PL_DOUBT_SOURCE] = residuals->half[PL_RESIDUAL_source] * sqrt(1.0 + interval->unseen.n);
}

pl_code pl_interval_take(const pl_explanation *explanation, const pl_residuals *residuals, pl_arena *arena,
                         pl_interval *interval, pl_error *error) {
  composing state = {.explanation = explanation, .residuals = residuals, .arena = arena, .error = error};
  *interval = (pl_interval){.low_s = NAN, .high_s = NAN};
  for (uint32_t class = 0; class < explanation->plan->n_device_classes; class ++)
    PL_TRY(add_class(&state, class));
  for (int kind = 0; state.busy > 0 && kind < PL_DOUBT_COUNT; kind++)
    interval->half[kind] = (double)state.sums[kind] / (double)state.busy / MILLION;
  add_training(&state, interval);
  double square = 0, time_s = pl_ticks_to_s(explanation->makespan);
  for (int kind = 0; kind < PL_DOUBT_COUNT; kind++)
    square += interval->half[kind] * interval->half[kind];
  interval->low_s = time_s * exp(residuals->centre - sqrt(square));
  interval->high_s = time_s * exp(residuals->centre + sqrt(square));
  return PL_OK;
}

const char *pl_interval_format(const pl_interval *interval, char text[PL_INTERVAL_TEXT_BYTES]) {
  bool is_long = interval->high_s >= 1;
  double unit = is_long ? 1 : 1e3;
  snprintf(text, PL_INTERVAL_TEXT_BYTES, "%.3g to %.3g %s", unit * interval->low_s, unit * interval->high_s,
           is_long ? "s" : "ms");
  return text;
}
