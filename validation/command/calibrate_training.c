/* See validation/command/calibrate_training.h. */
#include "validation/command/calibrate_training.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "core/system/command.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "validation/fit/profile_store.h"
#include "validation/fit/sustained_fit.h"

static pl_code check_options(const pl_calibrate_training *o, pl_error *error) {
  if (o->n_rows > PL_CALIBRATE_TRAINING_MAX || o->n_sources > PL_CALIBRATE_TRAINING_MAX)
    return pl_fail(error, PL_BAD_INPUT, "--%s: more than %d",
                   o->n_rows > PL_CALIBRATE_TRAINING_MAX ? "training" : "source", PL_CALIBRATE_TRAINING_MAX);
  if (o->relative != NULL && o->n_rows > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "--sustained-like is for a device without such runs; leave it or --training out");
  if (o->n_sources > 0 && o->n_rows == 0) return pl_fail(error, PL_BAD_INPUT, "--source chooses rows of --training");
  if (o->base == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--base is missing: what kernels take is not fitted but taken from an existing profile");
  if (o->output == NULL) return PL_OK;
  for (uint32_t i = 0; i < o->n_rows; i++)
    PL_TRY(pl_command_refuse_input(o->output, o->rows[i], error));
  return PL_OK;
}

static bool is_chosen(const pl_calibrate_training *o, const pl_measured_row *row) {
  bool chosen = o->n_sources == 0;
  for (uint32_t i = 0; i < o->n_sources; i++)
    chosen |= pl_row_mentions(row->source, o->sources[i]);
  return chosen;
}

static pl_code load_cases(const pl_calibrate_training *o, const pl_case_options *options, pl_arena *arena,
                          pl_cases *cases, pl_error *error) {
  pl_csv known;
  pl_measured *tables = PL_TAKE(arena, pl_measured, o->n_rows);
  if (tables == NULL) return pl_fail_memory(error, "tables of measurements");
  PL_TRY(pl_row_known_load(arena, &known, error));
  for (uint32_t i = 0; i < o->n_rows; i++) {
    PL_TRY(pl_measured_load(o->rows[i], arena, &tables[i], error));
    PL_TRY(pl_measured_refuse_defects(&tables[i], error));
    uint32_t n = 0;
    for (uint32_t r = 0; r < tables[i].n_rows; r++)
      if (is_chosen(o, &tables[i].rows[r])) tables[i].rows[n++] = tables[i].rows[r];
    tables[i].n_rows = n;
  }
  PL_TRY(pl_cases_take(tables, o->n_rows, arena, cases, error));
  return pl_cases_express(cases, &known, options, arena, error);
}

static void print_errors(const char *what, pl_fit_error without, pl_fit_error with) {
  if (with.n_rows > 0)
    printf("  %s: %u runs, median %.1f %%, 90th percentile %.1f %%; without it %.1f %%, %.1f %%\n", what, with.n_rows,
           100 * with.median, 100 * with.p90, 100 * without.median, 100 * without.p90);
}

static pl_code fit_rows(const pl_calibrate_training *o, const pl_device_profile *device, pl_arena *arena,
                        double *compute, const char **provenance, pl_error *error) {
  pl_case_options options = {.n_threads = (uint32_t)omp_get_max_threads()};
  pl_cases cases;
  pl_sustained_fit fit;
  PL_TRY(load_cases(o, &options, arena, &cases, error));
  PL_TRY(pl_sustained_fit_take(&cases, o->base, device, &options, arena, &fit, error));
  *compute = fit.compute;
  printf("sustained: 1 parameter; tensor cores of %s do at most %.2f of their peak%s\n", device->name, fit.compute,
         fit.compute >= 1 ? ": no limit" : "");
  print_errors("fitted", fit.without, fit.fitted);
  print_errors("held out", fit.without_out, fit.held_out);
  printf("  predictions off by %+.1f %% in the median, without it %+.1f %%\n", 100 * fit.bias_fitted,
         100 * fit.bias_without);
  const char *slash = strrchr(o->rows[0], '/');
  *provenance = pl_arena_printf(arena, "paceline calibrate: %u runs on one machine in %s%s",
                                fit.fitted.n_rows + fit.held_out.n_rows, slash != NULL ? slash + 1 : o->rows[0],
                                o->n_rows > 1 ? " and others" : "");
  return PL_OK;
}

static pl_code transfer(const pl_calibrate_training *o, const pl_device_profile *device, pl_arena *arena,
                        double *compute, const char **provenance, pl_error *error) {
  pl_device_profile relative;
  PL_TRY(pl_device_profile_load(o->relative, arena, &relative, error));
  PL_TRY(pl_sustained_transfer(device, &relative, compute, error));
  printf("sustained: tensor cores of %s do at most %.2f of their peak, %s's %.2f\n", device->name, *compute,
         relative.name, relative.sustained_compute);
  *provenance =
      pl_arena_printf(arena, "no training run of this device was measured: transferred from %s", relative.name);
  return PL_OK;
}

static pl_code calibrate(const pl_calibrate_training *o, pl_arena *arena, pl_error *error) {
  pl_device_profile device;
  const char *provenance = NULL;
  double compute;
  PL_TRY(check_options(o, error));
  PL_TRY(pl_device_profile_load(o->base, arena, &device, error));
  PL_TRY((o->relative != NULL ? transfer : fit_rows)(o, &device, arena, &compute, &provenance, error));
  if (o->output == NULL) return PL_OK;
  if (o->provenance != NULL) provenance = o->provenance;
  if (provenance == NULL) return pl_fail_memory(error, "the provenance of a profile");
  const pl_profile_section section = {
      .key = "sustained", .write = pl_sustained_section_write, .content = &compute, .provenance = provenance};
  PL_TRY(pl_profile_store(o->base, &section, 1, o->output, o->force, error));
  pl_command_print_written(o->output, NULL);
  return PL_OK;
}

pl_code pl_calibrate_training_run(const pl_calibrate_training *options, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate(options, &arena, error);
  pl_arena_release(&arena);
  return code;
}
