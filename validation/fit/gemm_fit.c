/* See validation/fit/gemm_fit.h. */
#include "validation/fit/gemm_fit.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/hash_index.h"
#include "core/base/order.h"
#include "validation/fit/profile_store.h"
#include "validation/fit/residual_fit.h"
#include "workloads/cost/op_cost.h"

static const double BIG_FLOPS = 1e9, SMALL_WEIGHT = 0.2, HUBER = 0.1;
enum { HELD_OUT = 5, ROUNDS = 80 };

double pl_gemm_flops(const pl_gemm_shape *s) {
  return 2.0 * (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
}

pl_op pl_gemm_op_of(const pl_gemm_shape *shape) {
  return (pl_op){.kind = PL_OP_GEMM,
                 .category = PL_CATEGORY_FORWARD,
                 .dtype = (uint8_t)shape->dtype,
                 .batch = shape->batch,
                 .m = shape->m,
                 .n = shape->n,
                 .k = shape->k,
                 .flops = pl_gemm_flops(shape),
                 .bytes = pl_gemm_least_bytes(shape)};
}

static double weight_of(const pl_gemm_shape *shape) {
  return pl_gemm_flops(shape) >= BIG_FLOPS ? 1 : SMALL_WEIGHT;
}

bool pl_gemm_is_held_out(const pl_gemm_shape *s) {
  uint64_t hash = pl_hash_word(pl_hash_word(0, (uint64_t)s->batch), (uint64_t)s->m);
  return pl_hash_word(pl_hash_word(hash, (uint64_t)s->n), (uint64_t)s->k) % HELD_OUT == 0;
}

static bool is_pair_held_out(const pl_gemm_shape *s) {
  return pl_hash_word(pl_hash_word(0, (uint64_t)s->n), (uint64_t)s->k) % HELD_OUT == 0;
}

/* ---- the formula ---- */

typedef struct parameter {
  size_t offset; /* in pl_gemm_fit */
  double start, most, unit;
} parameter;

#define TILE(kind) offsetof(pl_gemm_fit, tile_efficiency) + (kind) * sizeof(double)

/* cache_rate starts at a multiple of the device's bandwidth. */
static const parameter parameters[PL_GEMM_PARAMETERS] = {
    {offsetof(pl_gemm_fit, overhead_s), 2e-6, 1e-3, 1e-6},
    {offsetof(pl_gemm_fit, split_overhead_s), 2e-6, 1e-3, 1e-6},
    {offsetof(pl_gemm_fit, tile_overhead_s), 1e-6, 1e-3, 1e-6},
    {offsetof(pl_gemm_fit, memory_efficiency), 0.85, 1, 1},
    {offsetof(pl_gemm_fit, cache_rate_Bps), 2.5, 1e18, 1e9},
    {offsetof(pl_gemm_fit, wave_quantisation), 0.7, 1, 1},
    {TILE(PL_GEMM_TILE_256X128), 0.9, 1, 1},
    {TILE(PL_GEMM_TILE_128X128), 0.85, 1, 1},
    {TILE(PL_GEMM_TILE_128X64), 0.7, 1, 1},
    {TILE(PL_GEMM_TILE_64X64), 0.55, 1, 1},
};

typedef struct problem {
  const pl_device_profile *device;
  const pl_gemm_sample *samples;
  uint32_t n;
  double pull; /* to the start */
  pl_gemm_fit start;
} problem;

static double *value_of(pl_gemm_fit *fit, int i) {
  void *at = (char *)fit + parameters[i].offset;
  return at;
}

static double read_value(const pl_gemm_fit *fit, int i) {
  const void *at = (const char *)fit + parameters[i].offset;
  return *(const double *)at;
}

static double huber(double x) {
  double a = fabs(x);
  return a < HUBER ? 0.5 * a * a / HUBER : a - 0.5 * HUBER;
}

static double loss_of(const problem *p, const pl_gemm_fit *fit) {
  double sum = 0, weights = 0, pull = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    double weight = weight_of(&p->samples[i].shape);
    double time_s = pl_gemm_formula(p->device, fit, &p->samples[i].shape).time_s;
    sum += weight * huber(log(time_s / p->samples[i].time_s));
    weights += weight;
  }
  for (int i = 0; i < PL_GEMM_PARAMETERS; i++) {
    double off = log(read_value(fit, i) / read_value(&p->start, i));
    pull += off * off;
  }
  return sum / weights + p->pull * pull;
}

/* Tries one parameter up, then down, by its step; true: it moved. */
static bool move(const problem *p, int i, double step, pl_gemm_fit *fit, double *loss) {
  double before = *value_of(fit, i);
  for (int sign = 1; sign >= -1; sign -= 2) {
    *value_of(fit, i) = fmin(before * exp(sign * step), parameters[i].most);
    double next = loss_of(p, fit);
    if (next < *loss - 1e-9) {
      *loss = next;
      return true;
    }
  }
  *value_of(fit, i) = before;
  return false;
}

static void descend(const problem *p, pl_gemm_fit *fit) {
  double steps[PL_GEMM_PARAMETERS], loss = loss_of(p, fit);
  for (int i = 0; i < PL_GEMM_PARAMETERS; i++)
    steps[i] = 0.2;
  for (int round = 0; round < ROUNDS; round++) {
    double largest = 0;
    for (int i = 0; i < PL_GEMM_PARAMETERS; i++) {
      steps[i] *= move(p, i, steps[i], fit, &loss) ? 1.3 : 0.5;
      largest = fmax(largest, steps[i]);
    }
    if (largest < 5e-3) return;
  }
}

static void start_at(const pl_device_profile *device, pl_gemm_fit *fit) {
  /* Unaligned: 8192 x 51200 x 14336 on an A100 with n or k not a multiple of 8, fp16 (EleutherAI/cookbook). */
  *fit = (pl_gemm_fit){.unaligned_time = {[PL_GEMM_ALIGNED_4] = 1.7, [PL_GEMM_ALIGNED_2] = 3.4}};
  for (int i = 0; i < PL_GEMM_PARAMETERS; i++)
    *value_of(fit, i) = parameters[i].start;
  fit->cache_rate_Bps *= device->bandwidth_Bps;
}

/* `samples` are the aligned ones to be fitted; at most PL_GEMM_FIT_SHAPES of them are looked at. */
static pl_code fit_formula(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n, pl_arena *arena,
                           pl_gemm_fit *fit, pl_error *error) {
  uint32_t n_chosen = n < PL_GEMM_FIT_SHAPES ? n : PL_GEMM_FIT_SHAPES;
  pl_gemm_sample *chosen = PL_TAKE(arena, pl_gemm_sample, n_chosen);
  if (chosen == NULL) return pl_fail_memory(error, "the fit of matrix products");
  for (uint32_t i = 0; i < n_chosen; i++)
    chosen[i] = samples[(uint64_t)i * n / n_chosen];
  problem p = {.device = device, .samples = chosen, .n = n_chosen, .pull = 1e-4 + 0.05 / n_chosen};
  start_at(device, &p.start);
  *fit = p.start;
  descend(&p, fit);
  for (int i = 0; i < PL_GEMM_PARAMETERS; i++)
    *value_of(fit, i) = pl_profile_rounded(*value_of(fit, i), parameters[i].unit);
  return PL_OK;
}

/* ---- unaligned ---- */

/* The smallest value that the share `q` of them does not exceed. Sorts. */
static double quantile(double *values, uint32_t n, double q) {
  if (n == 0) return NAN;
  qsort(values, n, sizeof *values, pl_by_double);
  uint32_t rank = (uint32_t)ceil(q * n);
  return values[rank > 0 ? rank - 1 : 0];
}

/* The factor on compute time with which the formula gives the measured time, by bisection; 1 if it is slower as it is.
 */
static double factor_of(const pl_device_profile *device, const pl_gemm_fit *fit, int alignment,
                        const pl_gemm_sample *sample) {
  pl_gemm_fit trial = *fit;
  double low = 1, high = 64;
  for (int i = 0; i < 30; i++) {
    double middle = sqrt(low * high);
    trial.unaligned_time[alignment] = middle;
    *(pl_gemm_formula(device, &trial, &sample->shape).time_s < sample->time_s ? &low : &high) = middle;
  }
  return low;
}

static pl_code fit_unaligned(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n,
                             pl_arena *arena, pl_gemm_fit *fit, pl_error *error) {
  double *factors = PL_TAKE(arena, double, n + 1);
  if (factors == NULL) return pl_fail_memory(error, "the fit of unaligned products");
  for (int alignment = 0; alignment < PL_GEMM_ALIGNMENT_COUNT; alignment++) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
      if (pl_gemm_alignment_of(&samples[i].shape) == alignment)
        factors[count++] = factor_of(device, fit, alignment, &samples[i]);
    if (count > 0) fit->unaligned_time[alignment] = pl_profile_rounded(quantile(factors, count, 0.5), 1);
  }
  return PL_OK;
}

/* ---- the residual ---- */

static void range_of(const pl_gemm_sample *samples, uint32_t n, pl_gemm_residual *residual) {
  int64_t least[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, most[3] = {0};
  for (uint32_t i = 0; i < n; i++) {
    const pl_gemm_shape *s = &samples[i].shape;
    const int64_t extents[3] = {s->m, s->n, s->k};
    for (int d = 0; d < 3; d++) {
      if (extents[d] < least[d]) least[d] = extents[d];
      if (extents[d] > most[d]) most[d] = extents[d];
    }
  }
  for (int d = 0; d < 3; d++) {
    residual->first[d] = (int32_t)floor(log2((double)least[d]));
    residual->last[d] = (int32_t)ceil(log2((double)most[d]));
    if (residual->last[d] == residual->first[d]) residual->last[d]++;
  }
}

static pl_code round_table(const double *table, uint32_t n_knots, pl_arena *arena, pl_gemm_residual *residual,
                           pl_error *error) {
  int16_t *milli = PL_TAKE(arena, int16_t, n_knots);
  if (milli == NULL) return pl_fail_memory(error, "the residuals of matrix products");
  for (uint32_t i = 0; i < n_knots; i++)
    milli[i] = (int16_t)fmin(fmax(rint(1e3 * table[i]), -PL_GEMM_RESIDUAL_MILLI_MAX), PL_GEMM_RESIDUAL_MILLI_MAX);
  residual->milli = milli;
  return PL_OK;
}

static pl_code fit_residual(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n, pl_arena *arena,
                            pl_gemm_fit *fit, pl_error *error) {
  pl_gemm_residual *residual = &fit->residual;
  *residual = (pl_gemm_residual){.milli = NULL};
  range_of(samples, n, residual);
  uint32_t size[3], n_knots = 1;
  for (int d = 0; d < 3; d++) {
    size[d] = (uint32_t)(residual->last[d] - residual->first[d] + 1);
    n_knots *= size[d];
  }
  pl_residual_row *rows = PL_TAKE(arena, pl_residual_row, n);
  double *table = PL_TAKE(arena, double, n_knots);
  if (rows == NULL || table == NULL) return pl_fail_memory(error, "the residuals of matrix products");
  for (uint32_t i = 0; i < n; i++)
    rows[i] =
        (pl_residual_row){.knots = pl_gemm_residual_knots(residual, &samples[i].shape),
                          .value = log(samples[i].time_s / pl_gemm_formula(device, fit, &samples[i].shape).time_s),
                          .weight = weight_of(&samples[i].shape)};
  PL_TRY(pl_residual_fit(rows, n, size, arena, table, error));
  return round_table(table, n_knots, arena, residual, error);
}

/* ---- together ---- */

typedef bool (*is_left_out)(const pl_gemm_shape *shape);

/* The fit to all samples that are not left out. *n_fitted: of these; *n_unaligned: of those. */
static pl_code fit_all(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n, is_left_out left_out,
                       pl_arena *arena, pl_gemm_fit *fit, uint32_t *n_fitted, uint32_t *n_unaligned, pl_error *error) {
  pl_gemm_sample *aligned = PL_TAKE(arena, pl_gemm_sample, n), *others = PL_TAKE(arena, pl_gemm_sample, n);
  if (aligned == NULL || others == NULL) return pl_fail_memory(error, "the fit of matrix products");
  uint32_t n_aligned = 0, n_others = 0, n_single = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (left_out(&samples[i].shape)) continue;
    if (pl_gemm_alignment_of(&samples[i].shape) >= 0)
      others[n_others++] = samples[i];
    else
      aligned[n_aligned++] = samples[i];
  }
  *n_fitted = n_aligned + n_others;
  *n_unaligned = n_others;
  if (n_aligned < PL_GEMM_LEAST_SHAPES)
    return pl_fail(error, PL_BAD_INPUT, "%u shapes of %s whose rows begin on 16 bytes: a fit needs at least %d",
                   n_aligned, pl_dtype_name(samples[0].shape.dtype), PL_GEMM_LEAST_SHAPES);
  PL_TRY(fit_formula(device, aligned, n_aligned, arena, fit, error));
  PL_TRY(fit_unaligned(device, others, n_others, arena, fit, error));
  /* The table is of single products: sorted by batch, they come first. */
  while (n_single < n_aligned && aligned[n_single].shape.batch == 1)
    n_single++;
  return n_single < PL_GEMM_RESIDUAL_SHAPES ? PL_OK : fit_residual(device, aligned, n_single, arena, fit, error);
}

/* ---- errors ---- */

typedef struct selection {
  const pl_gemm_sample *samples;
  uint32_t n;
  is_left_out left_out;
  bool held_out, big;
} selection;

static bool selects(const selection *s, const pl_gemm_shape *shape) {
  return s->left_out(shape) == s->held_out && (pl_gemm_flops(shape) >= BIG_FLOPS) == s->big;
}

typedef double (*predictor)(const pl_device_profile *device, const pl_gemm_fit *fit, const pl_gemm_shape *shape);

static double by_fit(const pl_device_profile *device, const pl_gemm_fit *fit, const pl_gemm_shape *shape) {
  return pl_gemm_cost(device, fit, shape).time_s;
}

static double by_formula(const pl_device_profile *device, const pl_gemm_fit *fit, const pl_gemm_shape *shape) {
  return pl_gemm_formula(device, fit, shape).time_s;
}

static double by_roofline(const pl_device_profile *device, const pl_gemm_fit *fit, const pl_gemm_shape *shape) {
  (void)fit;
  pl_device_profile bare = *device;
  bare.gemm.n_fits = bare.n_ops = 0;
  const pl_op op = pl_gemm_op_of(shape);
  return pl_op_cost(&bare, &op).time_s;
}

/* `scratch` has room for n numbers. */
static pl_gemm_error error_of(const pl_device_profile *device, const pl_gemm_fit *fit, predictor predict,
                              const selection *s, double *scratch) {
  pl_gemm_error e = {.n = 0};
  for (uint32_t i = 0; i < s->n; i++)
    if (selects(s, &s->samples[i].shape))
      scratch[e.n++] = predict(device, fit, &s->samples[i].shape) / s->samples[i].time_s - 1;
  e.bias = quantile(scratch, e.n, 0.5);
  for (uint32_t i = 0; i < e.n; i++)
    scratch[i] = fabs(scratch[i]);
  e.median = quantile(scratch, e.n, 0.5);
  e.p90 = quantile(scratch, e.n, 0.9);
  return e;
}

static double ratio_of(const pl_gemm_worst *w) {
  return fabs(log(w->predicted_s / w->sample.time_s));
}

static void find_worst(const pl_device_profile *device, const pl_gemm_fit *fit, const selection *s,
                       pl_gemm_fit_report *report) {
  for (uint32_t i = 0; i < s->n; i++) {
    if (!selects(s, &s->samples[i].shape)) continue;
    pl_gemm_worst next = {s->samples[i], by_fit(device, fit, &s->samples[i].shape)};
    uint32_t at = report->n_worst;
    while (at > 0 && ratio_of(&report->worst[at - 1]) < ratio_of(&next)) {
      if (at < PL_GEMM_WORST) report->worst[at] = report->worst[at - 1];
      at--;
    }
    if (at < PL_GEMM_WORST) report->worst[at] = next;
    if (report->n_worst < PL_GEMM_WORST) report->n_worst++;
  }
}

pl_code pl_gemm_fit_take(const pl_device_profile *device, const pl_gemm_sample *samples, uint32_t n, pl_arena *arena,
                         pl_gemm_fit *fit, pl_gemm_fit_report *report, pl_error *error) {
  *report = (pl_gemm_fit_report){.n_shapes = n};
  if (n > 0 && device->peak_flops[samples[0].shape.dtype] <= 0)
    return pl_fail(error, PL_BAD_INPUT, "%s has no peak for %s, of which there are timings", device->name,
                   pl_dtype_name(samples[0].shape.dtype));
  uint32_t n_pairs_fitted, n_pairs_unaligned;
  pl_gemm_fit pairs;
  double *scratch = PL_TAKE(arena, double, n + 1);
  if (scratch == NULL) return pl_fail_memory(error, "the errors of a fit");
  PL_TRY(fit_all(device, samples, n, pl_gemm_is_held_out, arena, fit, &report->n_fitted, &report->n_unaligned, error));
  if (fit->residual.milli != NULL) {
    report->n_knots = 1;
    for (int d = 0; d < 3; d++)
      report->n_knots *= (uint32_t)(fit->residual.last[d] - fit->residual.first[d] + 1);
  }
  selection s = {.samples = samples, .n = n, .left_out = pl_gemm_is_held_out, .held_out = true, .big = true};
  report->held_out = error_of(device, fit, by_fit, &s, scratch);
  report->formula = error_of(device, fit, by_formula, &s, scratch);
  report->roofline = error_of(device, fit, by_roofline, &s, scratch);
  find_worst(device, fit, &s, report);
  s.big = false;
  report->small = error_of(device, fit, by_fit, &s, scratch);
  s.big = true;
  s.held_out = false;
  report->fitted = error_of(device, fit, by_fit, &s, scratch);
  fit->n_held_out = report->held_out.n;
  fit->median_error = fit->n_held_out ? pl_profile_rounded(report->held_out.median, 1) : 0;
  fit->p90_error = fit->n_held_out ? pl_profile_rounded(report->held_out.p90, 1) : 0;
  if (fit_all(device, samples, n, is_pair_held_out, arena, &pairs, &n_pairs_fitted, &n_pairs_unaligned, NULL) != PL_OK)
    return PL_OK;
  s.left_out = is_pair_held_out;
  s.held_out = true;
  report->pairs = error_of(device, &pairs, by_fit, &s, scratch);
  return PL_OK;
}
