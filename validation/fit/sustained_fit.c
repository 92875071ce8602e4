/* See validation/fit/sustained_fit.h. */
#include "validation/fit/sustained_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/digest.h"
#include "core/system/temporary_folder.h"
#include "validation/fit/fit_table.h"
#include "validation/fit/profile_store.h"
#include "validation/statistics/statistics.h"
#include "workloads/cost/op_cost.h"

enum { GRID = 100, COARSE = 5, LOWEST = 20 }; /* hundredths */

typedef struct search {
  pl_cases *cases;
  const char *profile; /* of the device, without the candidate */
  pl_case_options options;
  pl_arena *arena;
  pl_error *error;
  const char *file; /* of the candidate, in options.profile_folder */
  double loss[GRID + 1];
} search;

/* ---- which runs ---- */

static const char *device_of(const pl_case *c) {
  return c->plan.device != NULL ? c->plan.device : c->plan.parts[0].kind->device;
}

static uint32_t choose(pl_cases *cases, const char *device) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    pl_case *c = &cases->cases[i];
    if (c->reason == NULL && (!pl_case_is_timed(c) || strcmp(device_of(c), device) != 0)) c->reason = "another GPU";
    if (c->reason == NULL && (c->plan.n_parts != 1 || c->plan.parts[0].n_nodes != 1)) c->reason = "several machines";
    n += c->reason == NULL;
  }
  return n;
}

static bool holds_out(const pl_case *c) {
  pl_digest digest;
  pl_digest_init(&digest);
  const pl_measured_row *row = c->row;
  pl_digest_text(&digest, row->model);
  pl_digest_text(&digest, row->precision);
  pl_digest_text(&digest, row->recompute);
  const int64_t counts[] = {row->n_layers, row->hidden, row->seq_len, row->n_gpus, row->mbs, row->gbs, row->vocab};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    pl_digest_u64(&digest, (uint64_t)counts[i]);
  return digest.value % 5 == 0;
}

/* ---- one share ---- */

void pl_sustained_section_write(pl_json *json, const void *content) {
  const double *compute = content;
  pl_json_open_object(json);
  pl_json_put_number(json, "compute", *compute);
  pl_json_close_object(json);
}

static pl_code simulate(search *s, double compute) {
  const pl_profile_section section = {
      .key = "sustained", .write = pl_sustained_section_write, .content = &compute, .provenance = "a trial"};
  PL_TRY(pl_profile_store(s->profile, &section, 1, s->file, true, s->error));
  return pl_cases_simulate(s->cases, &s->options, s->arena, s->error);
}

static double loss_of(const pl_cases *cases) {
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++) {
    const pl_case *c = &cases->cases[i];
    if (c->reason != NULL || holds_out(c)) continue;
    sum += fabs(log(c->result.iter_time_s / c->measured_s));
    n++;
  }
  return n > 0 ? sum / n : 0;
}

static pl_code try_share(search *s, int hundredths) {
  if (hundredths < LOWEST || hundredths > GRID || s->loss[hundredths] >= 0) return PL_OK;
  PL_TRY(simulate(s, (double)hundredths / GRID));
  s->loss[hundredths] = loss_of(s->cases);
  return PL_OK;
}

/* The largest of the best. */
static int best_of(const search *s) {
  int best = GRID;
  for (int i = GRID; i >= LOWEST; i--)
    if (s->loss[i] >= 0 && s->loss[i] < s->loss[best]) best = i;
  return best;
}

/* Every fifth hundredth, then all around the best one. */
static pl_code search_share(search *s, double *compute) {
  for (int i = 0; i <= GRID; i++)
    s->loss[i] = -1;
  for (int i = LOWEST; i <= GRID; i += COARSE)
    PL_TRY(try_share(s, i));
  int coarse = best_of(s);
  for (int i = coarse - COARSE + 1; i < coarse + COARSE; i++)
    PL_TRY(try_share(s, i));
  *compute = (double)best_of(s) / GRID;
  return PL_OK;
}

/* ---- errors ---- */

static pl_code errors_of(const pl_cases *cases, pl_arena *arena, pl_fit_error parts[2], double *bias, pl_error *error) {
  double *values = PL_TAKE(arena, double, cases->n_cases);
  if (values == NULL) return pl_fail_memory(error, "the residuals of a fit");
  uint32_t n = 0;
  for (int out = 0; out < 2; out++) {
    n = 0;
    for (uint32_t i = 0; i < cases->n_cases; i++)
      if (cases->cases[i].reason == NULL && holds_out(&cases->cases[i]) == (out == 1))
        values[n++] = fabs(pl_case_error(&cases->cases[i]));
    parts[out] = pl_fit_error_of(values, n);
  }
  n = 0;
  for (uint32_t i = 0; i < cases->n_cases; i++)
    if (cases->cases[i].reason == NULL) values[n++] = pl_case_error(&cases->cases[i]);
  *bias = pl_median(values, n);
  return PL_OK;
}

static pl_code fit_share(search *s, pl_sustained_fit *fit) {
  pl_fit_error parts[2];
  PL_TRY(search_share(s, &fit->compute));
  PL_TRY(simulate(s, 1));
  PL_TRY(errors_of(s->cases, s->arena, parts, &fit->bias_without, s->error));
  fit->without = parts[0];
  fit->without_out = parts[1];
  PL_TRY(simulate(s, fit->compute));
  PL_TRY(errors_of(s->cases, s->arena, parts, &fit->bias_fitted, s->error));
  fit->fitted = parts[0];
  fit->held_out = parts[1];
  return PL_OK;
}

pl_code pl_sustained_fit_take(pl_cases *cases, const char *profile, const pl_device_profile *base,
                              const pl_case_options *options, pl_arena *arena, pl_sustained_fit *fit, pl_error *error) {
  uint32_t n = choose(cases, base->name);
  if (n < PL_SUSTAINED_RUNS_MIN)
    return pl_fail(error, PL_BAD_INPUT,
                   "%u timed runs on one machine of %s that can be expressed; a fit needs at least %d (paceline "
                   "validate says why others cannot)",
                   n, base->name, PL_SUSTAINED_RUNS_MIN);
  const char *folder;
  PL_TRY(pl_temporary_folder_make(arena, &folder, error));
  search s = {.cases = cases, .profile = profile, .options = *options, .arena = arena, .error = error};
  s.options.profile_folder = folder;
  s.file = pl_arena_printf(arena, "%s/%s.json", folder, base->name);
  pl_code code = s.file != NULL ? fit_share(&s, fit) : pl_fail_memory(error, "the name of a file");
  if (s.file != NULL) unlink(s.file);
  rmdir(folder);
  return code;
}

/* ---- from a relative ---- */

/* Share of the 16-bit peak of a product of 16,384 cubed by the profile's fit; 0: it has none. */
static double longest_share(const pl_device_profile *device) {
  const int64_t n = 16384;
  pl_dtype dtype = device->peak_flops[PL_DTYPE_BF16] > 0 ? PL_DTYPE_BF16 : PL_DTYPE_FP16;
  pl_device_profile timed = *device;
  timed.sustained_compute = 0;
  timed.n_ops = 0;
  const pl_op op = {.kind = PL_OP_GEMM,
                    .dtype = (uint8_t)dtype,
                    .batch = 1,
                    .m = n,
                    .n = n,
                    .k = n,
                    .flops = 2 * (double)n * (double)n * (double)n,
                    .bytes = 3 * 2 * (double)n * (double)n};
  pl_op_time time = pl_op_cost(&timed, &op);
  return time.source == PL_COST_FIT ? op.flops / (time.time_s * device->peak_flops[dtype]) : 0;
}

pl_code pl_sustained_transfer(const pl_device_profile *device, const pl_device_profile *relative, double *compute,
                              pl_error *error) {
  if (relative->sustained_compute <= 0)
    return pl_fail(error, PL_BAD_INPUT, "%s has no section 'sustained' to transfer", relative->name);
  double own = longest_share(device), theirs = longest_share(relative);
  if (!(own > 0) || !(theirs > 0))
    return pl_fail(error, PL_BAD_INPUT, "%s has no fit of matrix products in 16 bits (paceline calibrate --gemm)",
                   own > 0 ? relative->name : device->name);
  *compute = fmin(1, round(GRID * relative->sustained_compute * own / theirs) / GRID);
  return PL_OK;
}
