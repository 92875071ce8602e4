/* Fit of memory-bound kernels; see validation/fit/kernel_fit.h.
 *
 * Per kind and pass: time = overhead + bytes / (bandwidth * efficiency). Where the host was the limit, a call took
 * max(floor, that): the floor is a fact about the host, so it is fitted and not shipped, and the overhead, which hides
 * behind it, is the profile's launch overhead. Other rows are times of the kernel alone: what they take on top of their
 * bytes is added to the launch overhead.
 */
#include "validation/fit/kernel_fit.h"

#include <math.h>
#include <string.h>

#include "validation/fit/fit_table.h"
#include "validation/statistics/nelder_mead.h"

enum { FEWEST_ROWS = 5, EVALUATIONS = 2000 };

typedef struct sample {
  double bytes, time_s;
  uint32_t kind, pass;
  bool host_bound, held_out;
} sample;

typedef struct problem {
  const sample *samples;
  uint32_t n_samples, kind, pass;
  bool host_bound;
  double bandwidth_Bps, launch_s;
} problem;

static pl_code read_samples(const pl_csv *csv, const char *device, sample *samples, uint32_t *n, pl_error *error) {
  static const char *const names[] = {"device", "kind", "pass", "bytes", "host_bound", "time_us"};
  static const char *const passes[] = {"forward", "backward"};
  const char *kinds[PL_KERNEL_KIND_COUNT];
  for (int kind = 0; kind < PL_KERNEL_KIND_COUNT; kind++)
    kinds[kind] = pl_kernel_kind_name((pl_kernel_kind)kind);
  uint32_t column[6];
  for (uint32_t i = 0; i < 6; i++)
    PL_TRY(pl_fit_column(csv, names[i], &column[i], error));
  *n = 0;
  for (uint32_t row = 0; row < csv->n_rows; row++) {
    if (strcmp(pl_csv_cell(csv, row, column[0]), device) != 0) continue;
    sample *s = &samples[(*n)++];
    double time_us, host_bound;
    *s = (sample){.held_out = pl_fit_holds_out(csv, row, column[5])};
    PL_TRY(pl_fit_choice(csv, row, column[1], kinds, PL_KERNEL_KIND_COUNT, &s->kind, error));
    PL_TRY(pl_fit_choice(csv, row, column[2], passes, 2, &s->pass, error));
    PL_TRY(pl_fit_number(csv, row, column[3], 1, &s->bytes, error));
    PL_TRY(pl_fit_number(csv, row, column[4], 0, &host_bound, error));
    PL_TRY(pl_fit_number(csv, row, column[5], 1e-3, &time_us, error));
    s->time_s = 1e-6 * time_us;
    s->host_bound = host_bound > 0;
  }
  return *n > 0 ? PL_OK : pl_fit_no_rows(csv, device, error);
}

/* Variables: logarithms of the efficiency and of either the host's floor or the overhead, in us. */
static double predict(const problem *p, const double *x, const sample *s) {
  double move_s = s->bytes / (p->bandwidth_Bps * fmin(exp(x[0]), 1)), other_s = 1e-6 * exp(x[1]);
  return p->host_bound ? fmax(other_s, p->launch_s + move_s) : other_s + move_s;
}

static bool belongs(const problem *p, const sample *s, bool held_out) {
  return s->kind == p->kind && s->pass == p->pass && s->held_out == held_out;
}

static double loss(const double *x, void *context) {
  const problem *p = context;
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_samples; i++) {
    if (!belongs(p, &p->samples[i], false)) continue;
    sum += fabs(log(predict(p, x, &p->samples[i]) / p->samples[i].time_s));
    n++;
  }
  return sum / n;
}

static pl_fit_error errors_of(const problem *p, const double *x, bool held_out, double *scratch) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_samples; i++)
    if (belongs(p, &p->samples[i], held_out))
      scratch[n++] = fabs(predict(p, x, &p->samples[i]) / p->samples[i].time_s - 1);
  return pl_fit_error_of(scratch, n);
}

/* False: too few rows. */
static bool fit_one(problem *p, pl_kernel_fit *fit, double *scratch) {
  uint32_t n = 0;
  p->host_bound = false;
  for (uint32_t i = 0; i < p->n_samples; i++)
    if (belongs(p, &p->samples[i], false)) {
      n++;
      p->host_bound |= p->samples[i].host_bound;
    }
  if (n < FEWEST_ROWS) return false;
  double x[2] = {log(0.6), log(p->host_bound ? 80 : 5)};
  pl_nelder_mead(loss, p, x, 2, 0.5, 1e-10, EVALUATIONS);
  pl_nelder_mead(loss, p, x, 2, 0.1, 1e-10, EVALUATIONS);
  double other_s = 1e-6 * exp(x[1]);
  *fit = (pl_kernel_fit){.kind = (pl_kernel_kind)p->kind,
                         .backward = p->pass == 1,
                         .profile = {.bandwidth_efficiency = fmin(exp(x[0]), 1),
                                     .overhead_s = p->launch_s + (p->host_bound ? 0 : other_s)},
                         .n_parameters = 2,
                         .host_floor_s = p->host_bound ? other_s : 0,
                         .fitted = errors_of(p, x, false, scratch),
                         .held_out = errors_of(p, x, true, scratch)};
  return true;
}

pl_code pl_kernel_fit_take(const pl_csv *csv, const pl_device_profile *base, pl_arena *arena,
                           const pl_kernel_fit **fits, uint32_t *n_fits, pl_error *error) {
  sample *samples = PL_TAKE(arena, sample, csv->n_rows);
  double *scratch = PL_TAKE(arena, double, csv->n_rows);
  pl_kernel_fit *list = PL_TAKE(arena, pl_kernel_fit, PL_KERNEL_FITS);
  if (samples == NULL || scratch == NULL || list == NULL) return pl_fail_memory(error, "a fit of kernels");
  problem p = {.samples = samples, .bandwidth_Bps = base->bandwidth_Bps, .launch_s = base->launch_overhead_s};
  PL_TRY(read_samples(csv, base->name, samples, &p.n_samples, error));
  *fits = list;
  *n_fits = 0;
  for (p.kind = 0; p.kind < PL_KERNEL_KIND_COUNT; p.kind++)
    for (p.pass = 0; p.pass < 2; p.pass++)
      *n_fits += fit_one(&p, &list[*n_fits], scratch);
  return PL_OK;
}
