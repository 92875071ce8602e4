/* See validation/fit/gemm_section.h. */
#include "validation/fit/gemm_section.h"

#include <math.h>

#include "core/base/units.h"
#include "validation/fit/profile_store.h"

/* ---- what is said ---- */

static void print_error(FILE *out, const char *what, const pl_gemm_error *e) {
  if (e->n == 0) return;
  fprintf(out, "  %-44s %6u   %5.1f %%   %5.1f %%   %+5.1f %%\n", what, e->n, 100 * e->median, 100 * e->p90,
          100 * e->bias);
}

static void print_dtypes(FILE *out, uint32_t dtypes) {
  const char *separator = "";
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (dtypes & 1u << dtype) {
      fprintf(out, "%s%s", separator, pl_dtype_name((pl_dtype)dtype));
      separator = ", ";
    }
}

static void print_worst(FILE *out, const pl_gemm_fit_report *report) {
  if (report->n_worst > 0) fprintf(out, "  worst held out: batch x m x n x k, measured, predicted\n");
  for (uint32_t i = 0; i < report->n_worst; i++) {
    const pl_gemm_worst *w = &report->worst[i];
    char measured[PL_UNIT_TEXT_BYTES], predicted[PL_UNIT_TEXT_BYTES];
    fprintf(out, "    %lld x %lld x %lld x %lld   %s   %s   %+.0f %%\n", (long long)w->sample.shape.batch,
            (long long)w->sample.shape.m, (long long)w->sample.shape.n, (long long)w->sample.shape.k,
            pl_format_time(w->sample.time_s, measured), pl_format_time(w->predicted_s, predicted),
            100 * (w->predicted_s / w->sample.time_s - 1));
  }
}

static void print_report(FILE *out, const pl_gemm_fit *fit, const pl_gemm_fit_report *report) {
  fprintf(out, "gemm ");
  print_dtypes(out, fit->dtypes);
  fprintf(out, ": %u shapes, %u fitted (%u of them unaligned), %d parameters and %u knots\n", report->n_shapes,
          report->n_fitted, report->n_unaligned, PL_GEMM_PARAMETERS + PL_GEMM_ALIGNMENT_COUNT, report->n_knots);
  fprintf(out, "  %-44s %6s   %7s   %7s   %7s\n", "error of the predicted time", "shapes", "median", "p90", "bias");
  print_error(out, "fitted, from 1 GFLOP", &report->fitted);
  print_error(out, "held out, from 1 GFLOP", &report->held_out);
  print_error(out, "held out, from 1 GFLOP, formula only", &report->formula);
  print_error(out, "held out, from 1 GFLOP, roofline", &report->roofline);
  print_error(out, "held out, below 1 GFLOP", &report->small);
  print_error(out, "whole (n, k) pairs held out, from 1 GFLOP", &report->pairs);
  print_worst(out, report);
}

/* ---- fits ---- */

static bool sixteen_bits_alike(const pl_device_profile *device) {
  return device->peak_flops[PL_DTYPE_FP16] == device->peak_flops[PL_DTYPE_BF16];
}

/* The types that a fit of `dtype` holds for. */
static uint32_t served_by(const pl_device_profile *device, pl_dtype dtype) {
  const uint32_t both = 1u << PL_DTYPE_FP16 | 1u << PL_DTYPE_BF16;
  return both & 1u << dtype && sixteen_bits_alike(device) ? both : 1u << dtype;
}

pl_code pl_gemm_section_take(const pl_device_profile *device, pl_gemm_samples *samples, pl_arena *arena, FILE *out,
                             pl_gemm_profile *gemm, pl_error *error) {
  pl_gemm_fit *fits = PL_TAKE(arena, pl_gemm_fit, PL_DTYPE_COUNT + device->gemm.n_fits);
  if (fits == NULL) return pl_fail_memory(error, "the fits of matrix products");
  *gemm = (pl_gemm_profile){.multiprocessors = device->gemm.multiprocessors, .fits = fits};
  uint32_t seen = 0;
  if (sixteen_bits_alike(device)) pl_gemm_samples_rename(samples, PL_DTYPE_FP16, PL_DTYPE_BF16);
  for (uint32_t first = 0, end; first < samples->n; first = end) {
    pl_dtype dtype = samples->rows[first].shape.dtype;
    for (end = first + 1; end < samples->n && samples->rows[end].shape.dtype == dtype;)
      end++;
    pl_gemm_fit_report report;
    pl_gemm_fit *fit = &fits[gemm->n_fits++];
    PL_TRY(pl_gemm_fit_take(device, samples->rows + first, end - first, arena, fit, &report, error));
    fit->dtypes = served_by(device, dtype);
    seen |= fit->dtypes;
    print_report(out, fit, &report);
  }
  for (uint32_t i = 0; i < device->gemm.n_fits; i++) {
    fits[gemm->n_fits] = device->gemm.fits[i];
    fits[gemm->n_fits].dtypes &= ~seen;
    if (fits[gemm->n_fits].dtypes != 0) gemm->n_fits++;
  }
  return PL_OK;
}

static uint32_t computed_dtypes(const pl_device_profile *device) {
  uint32_t dtypes = 0;
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (device->peak_flops[dtype] > 0) dtypes |= 1u << dtype;
  return dtypes;
}

pl_code pl_gemm_section_transfer(const pl_device_profile *device, const pl_device_profile *from, pl_arena *arena,
                                 pl_gemm_profile *gemm, pl_error *error) {
  pl_gemm_fit *fits = PL_TAKE(arena, pl_gemm_fit, from->gemm.n_fits);
  if (fits == NULL) return pl_fail_memory(error, "the fits of matrix products");
  *gemm = (pl_gemm_profile){.multiprocessors = device->gemm.multiprocessors, .fits = fits};
  double ratio = (double)device->gemm.multiprocessors / from->gemm.multiprocessors;
  double reach = device->compute_efficiency / from->compute_efficiency;
  for (uint32_t i = 0; i < from->gemm.n_fits; i++) {
    pl_gemm_fit *fit = &fits[gemm->n_fits];
    *fit = from->gemm.fits[i];
    fit->dtypes &= computed_dtypes(device);
    if (fit->dtypes == 0) continue;
    gemm->n_fits++;
    fit->cache_rate_Bps *= ratio;
    for (int tile = 0; tile < PL_GEMM_TILE_COUNT; tile++)
      fit->tile_efficiency[tile] = fmin(1, fit->tile_efficiency[tile] * reach);
    fit->n_held_out = 0;
    if (ratio <= 0.5 || ratio >= 2) fit->residual = (pl_gemm_residual){.milli = NULL};
  }
  if (gemm->n_fits > 0) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s has no fit of matrix products in a type that %s computes in", from->name,
                 device->name);
}

/* ---- writing ---- */

static void write_flat_list(pl_json *json, const char *key, const double *values, uint32_t n) {
  bool pretty = json->pretty;
  if (key != NULL) pl_json_key(json, key);
  pl_json_open_array(json);
  json->pretty = false;
  for (uint32_t i = 0; i < n; i++)
    pl_json_number(json, values[i]);
  pl_json_close_array(json);
  json->pretty = pretty;
}

static void write_dtypes(pl_json *json, uint32_t dtypes) {
  bool pretty = json->pretty;
  pl_json_key(json, "dtypes");
  pl_json_open_array(json);
  json->pretty = false;
  for (int dtype = 0; dtype < PL_DTYPE_COUNT; dtype++)
    if (dtypes & 1u << dtype) pl_json_string(json, pl_dtype_name((pl_dtype)dtype));
  pl_json_close_array(json);
  json->pretty = pretty;
}

static void write_residual(pl_json *json, const pl_gemm_residual *residual) {
  static const char *const keys[3] = {"log2_m", "log2_n", "log2_k"};
  uint32_t n[3];
  pl_json_key(json, "residual");
  pl_json_open_object(json);
  for (int i = 0; i < 3; i++) {
    const double ends[2] = {residual->first[i], residual->last[i]};
    write_flat_list(json, keys[i], ends, 2);
    n[i] = (uint32_t)(residual->last[i] - residual->first[i] + 1);
  }
  pl_json_key(json, "milli");
  pl_json_open_array(json);
  const int16_t *milli = residual->milli;
  for (uint32_t i = 0; i < n[0]; i++) {
    pl_json_open_array(json);
    for (uint32_t j = 0; j < n[1]; j++, milli += n[2]) {
      double row[PL_GEMM_LOG2_MAX + 1];
      for (uint32_t k = 0; k < n[2]; k++)
        row[k] = milli[k];
      write_flat_list(json, NULL, row, n[2]);
    }
    pl_json_close_array(json);
  }
  pl_json_close_array(json);
  pl_json_close_object(json);
}

static void write_fit(pl_json *json, const pl_gemm_fit *fit) {
  pl_json_open_object(json);
  write_dtypes(json, fit->dtypes);
  pl_profile_put_quantity(json, "overhead", fit->overhead_s, 1e-6, "us");
  pl_profile_put_quantity(json, "split_overhead", fit->split_overhead_s, 1e-6, "us");
  pl_profile_put_quantity(json, "tile_overhead", fit->tile_overhead_s, 1e-6, "us");
  pl_profile_put_rounded(json, "memory_efficiency", fit->memory_efficiency);
  pl_profile_put_quantity(json, "cache_rate", fit->cache_rate_Bps, 1e9, "GBps");
  pl_profile_put_rounded(json, "wave_quantisation", fit->wave_quantisation);
  pl_json_key(json, "tile_efficiency");
  pl_json_open_object(json);
  for (int i = 0; i < PL_GEMM_TILE_COUNT; i++)
    pl_profile_put_rounded(json, pl_gemm_tile_name((pl_gemm_tile)i), fit->tile_efficiency[i]);
  pl_json_close_object(json);
  pl_json_key(json, "unaligned_time");
  pl_json_open_object(json);
  pl_profile_put_rounded(json, "4B", fit->unaligned_time[PL_GEMM_ALIGNED_4]);
  pl_profile_put_rounded(json, "2B", fit->unaligned_time[PL_GEMM_ALIGNED_2]);
  pl_json_close_object(json);
  if (fit->n_held_out > 0) {
    pl_json_key(json, "held_out");
    pl_json_open_object(json);
    pl_json_put_integer(json, "shapes", fit->n_held_out);
    pl_profile_put_rounded(json, "median_error", fit->median_error);
    pl_profile_put_rounded(json, "p90_error", fit->p90_error);
    pl_json_close_object(json);
  }
  if (fit->residual.milli != NULL) write_residual(json, &fit->residual);
  pl_json_close_object(json);
}

void pl_gemm_section_write(pl_json *json, const void *content) {
  const pl_gemm_profile *gemm = content;
  pl_json_open_object(json);
  pl_json_put_integer(json, "multiprocessors", gemm->multiprocessors);
  pl_json_key(json, "fits");
  pl_json_open_array(json);
  for (uint32_t i = 0; i < gemm->n_fits; i++)
    write_fit(json, &gemm->fits[i]);
  pl_json_close_array(json);
  pl_json_close_object(json);
}
