/* See validation/command/calibrate_gemm.h. */
#include "validation/command/calibrate_gemm.h"

#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/system/command.h"
#include "core/system/output_file.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "validation/fit/convolution_fit.h"
#include "validation/fit/gemm_section.h"
#include "validation/fit/profile_store.h"
#include "validation/rows/row.h"

/* ---- what was asked for ---- */

static pl_code parse_dtypes(const char *list, uint32_t *dtypes, pl_error *error) {
  *dtypes = (1u << PL_DTYPE_COUNT) - 1;
  if (list == NULL) return PL_OK;
  *dtypes = 0;
  for (const char *at = list;;) {
    char name[16] = "";
    size_t length = strcspn(at, ",");
    if (length < sizeof name) memcpy(name, at, length);
    int dtype = pl_dtype_from_alias(name);
    if (dtype < 0)
      return pl_fail(error, PL_BAD_INPUT, "--dtype: '%.*s' is none of fp32, tf32, fp16, bf16 and fp8",
                     (int)(length < 64 ? length : 64), at);
    *dtypes |= 1u << dtype;
    if (at[length] == '\0') return PL_OK;
    at += length + 1;
  }
}

static pl_code check_options(const pl_calibrate_gemm *o, pl_error *error) {
  if (o->n_rows > PL_CALIBRATE_FILES_MAX)
    return pl_fail(error, PL_BAD_INPUT, "--gemm: more than %d files", PL_CALIBRATE_FILES_MAX);
  if (o->transfer != NULL && o->n_rows > 0)
    return pl_fail(error, PL_BAD_INPUT, "--transfer is for a device without timings; leave it or --gemm out");
  if (o->base == NULL && o->transfer != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--base is missing: peak and bandwidth are not fitted but taken from an existing profile");
  if (o->output == NULL) return PL_OK;
  for (uint32_t i = 0; i < o->n_rows; i++)
    PL_TRY(pl_command_refuse_input(o->output, o->rows[i], error));
  return pl_output_file_check(o->output, o->force, error);
}

/* `measured`: what the rows, or the relative, say; 0: nothing. */
static pl_code choose_multiprocessors(const pl_calibrate_gemm *o, uint32_t measured, pl_device_profile *device,
                                      pl_error *error) {
  int64_t n = measured > 0 ? measured : device->gemm.multiprocessors;
  if (o->multiprocessors != NULL)
    PL_TRY(pl_parse_integer(o->multiprocessors, "--multiprocessors", 1, 65536, &n, error));
  if (n == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "how many multiprocessors has the device? --multiprocessors N, or a column of that name (PyTorch: "
                   "torch.cuda.get_device_properties(0).multi_processor_count)");
  device->gemm.multiprocessors = (uint32_t)n;
  return PL_OK;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* ---- from rows ---- */

/* What is not fitted comes from the profile of the GPU that the timings are of, if that is one we know. */
static pl_code choose_base(const pl_calibrate_gemm *o, const char *gpu, pl_arena *arena, const char **base,
                           pl_error *error) {
  pl_profile_folders folders;
  *base = o->base;
  if (o->base != NULL) return PL_OK;
  PL_TRY(pl_profile_folders_take(NULL, "", arena, &folders, error));
  const char *device = pl_row_device_named(gpu);
  if (device != NULL) *base = pl_profile_folders_find(&folders, device, arena);
  if (*base == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--base is missing: peak and bandwidth are not fitted but taken from an existing profile, and the "
                   "timings %s%.60s%s",
                   gpu[0] != '\0' ? "are of '" : "do not say of which GPU they are", gpu,
                   gpu[0] != '\0' ? "', of which there is none" : "");
  printf("peak, bandwidth and everything else that is not fitted: %s\n", *base);
  return PL_OK;
}

static const char *list_files(const pl_calibrate_gemm *o, pl_arena *arena) {
  const char *files = base_name(o->rows[0]);
  for (uint32_t i = 1; i < o->n_rows && files != NULL; i++)
    files = pl_arena_printf(arena, "%s, %s", files, base_name(o->rows[i]));
  return files;
}

static pl_code fit_rows(const pl_calibrate_gemm *o, pl_device_profile *device, pl_arena *arena, pl_gemm_profile *gemm,
                        const char **base, const char **provenance, pl_error *error) {
  pl_gemm_filter filter = {.gpu = o->gpu};
  pl_gemm_samples samples;
  PL_TRY(parse_dtypes(o->dtypes, &filter.dtypes, error));
  PL_TRY(pl_gemm_samples_load(o->rows, o->n_rows, &filter, arena, &samples, error));
  PL_TRY(choose_base(o, samples.gpu, arena, base, error));
  PL_TRY(pl_device_profile_load(*base, arena, device, error));
  PL_TRY(choose_multiprocessors(o, samples.multiprocessors, device, error));
  printf("%u rows%s%s, %u of them with m below %d left out\n", samples.n_read, samples.gpu[0] ? " of " : "",
         samples.gpu, samples.n_small, PL_GEMM_LEAST_M);
  const char *files = list_files(o, arena);
  if (files != NULL)
    *provenance = pl_arena_printf(arena, "paceline calibrate: %u shapes in %s%s%s", samples.n, files,
                                  samples.gpu[0] ? ", " : "", samples.gpu);
  return pl_gemm_section_take(device, &samples, arena, stdout, gemm, error);
}

/* ---- from a relative ---- */

static pl_code transfer(const pl_calibrate_gemm *o, pl_device_profile *device, pl_arena *arena, pl_gemm_profile *gemm,
                        const char **base, const char **provenance, pl_error *error) {
  pl_device_profile from;
  *base = o->base;
  PL_TRY(pl_device_profile_load(*base, arena, device, error));
  PL_TRY(pl_device_profile_load(o->transfer, arena, &from, error));
  PL_TRY(choose_multiprocessors(o, 0, device, error));
  PL_TRY(pl_gemm_section_transfer(device, &from, arena, gemm, error));
  PL_TRY(pl_convolution_section_transfer(device, &from, arena, error));
  printf("%u fits of %s\n", gemm->n_fits, from.name);
  if (from.n_convolutions > 0) printf("and %u of its convolutions\n", from.n_convolutions);
  *provenance = pl_arena_printf(arena, "not measured on this device: transferred from %s", from.name);
  return PL_OK;
}

/* ---- all of it ---- */

static pl_code calibrate(const pl_calibrate_gemm *o, pl_arena *arena, pl_error *error) {
  pl_device_profile device = {0};
  pl_gemm_profile gemm = {0};
  const char *base = NULL, *provenance = NULL;
  PL_TRY(check_options(o, error));
  PL_TRY((o->transfer != NULL ? transfer : fit_rows)(o, &device, arena, &gemm, &base, &provenance, error));
  if (o->output == NULL) return PL_OK;
  if (o->provenance != NULL) provenance = o->provenance;
  if (provenance == NULL) return pl_fail_memory(error, "the provenance of a profile");
  const pl_profile_section sections[] = {
      {.key = "gemm", .write = pl_gemm_section_write, .content = &gemm, .provenance = provenance},
      {.key = "convolutions", .write = pl_convolution_section_write, .content = &device, .provenance = provenance}};
  uint32_t n_sections = o->transfer != NULL && device.n_convolutions > 0 ? 2 : 1;
  PL_TRY(pl_profile_store(base, sections, n_sections, o->output, o->force, error));
  pl_command_print_written(o->output, NULL);
  return PL_OK;
}

pl_code pl_calibrate_gemm_run(const pl_calibrate_gemm *options, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate(options, &arena, error);
  pl_arena_release(&arena);
  return code;
}
