/* See validation/command/calibrate_kernels.h. */
#include "validation/command/calibrate_kernels.h"

#include <stdio.h>
#include <string.h>

#include "core/system/command.h"
#include "netmodel/device/device_profile.h"
#include "netmodel/platform/platform.h"
#include "validation/fit/convolution_fit.h"
#include "validation/fit/kernel_section.h"
#include "validation/fit/profile_store.h"

static pl_code check_options(const pl_calibrate_kernels *o, pl_error *error) {
  if (o->base == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--base is missing: peak and bandwidth are not fitted but taken from an existing profile");
  if (o->output == NULL) return PL_OK;
  const char *const inputs[] = {o->attention, o->kernels, o->convolutions};
  for (int i = 0; i < 3; i++)
    if (inputs[i] != NULL) PL_TRY(pl_command_refuse_input(o->output, inputs[i], error));
  return PL_OK;
}

static pl_code add_section(const pl_calibrate_kernels *o, const char *key, const char *path,
                           void (*write)(pl_json *, const void *), const pl_device_profile *device, pl_arena *arena,
                           pl_profile_section *section, pl_error *error) {
  const char *slash = strrchr(path, '/');
  *section = (pl_profile_section){.key = key, .write = write, .content = device, .provenance = o->provenance};
  if (o->provenance == NULL)
    section->provenance = pl_arena_printf(arena, "paceline calibrate: %s", slash != NULL ? slash + 1 : path);
  return section->provenance != NULL ? PL_OK : pl_fail_memory(error, "the provenance of a profile");
}

static pl_code calibrate(const pl_calibrate_kernels *o, pl_arena *arena, pl_error *error) {
  pl_device_profile device;
  pl_profile_section sections[3];
  uint32_t n = 0;
  PL_TRY(check_options(o, error));
  PL_TRY(pl_device_profile_load(o->base, arena, &device, error));
  if (o->attention != NULL) {
    PL_TRY(pl_attention_section_take(&device, o->attention, arena, stdout, error));
    PL_TRY(
        add_section(o, "attention", o->attention, pl_attention_section_write, &device, arena, &sections[n++], error));
  }
  if (o->kernels != NULL) {
    PL_TRY(pl_kernel_section_take(&device, o->kernels, arena, stdout, error));
    PL_TRY(add_section(o, "kernels", o->kernels, pl_kernel_section_write, &device, arena, &sections[n++], error));
  }
  if (o->convolutions != NULL) {
    PL_TRY(pl_convolution_section_take(&device, o->convolutions, arena, stdout, error));
    PL_TRY(add_section(o, "convolutions", o->convolutions, pl_convolution_section_write, &device, arena, &sections[n++],
                       error));
  }
  if (o->output == NULL) return PL_OK;
  PL_TRY(pl_profile_store(o->base, sections, n, o->output, o->force, error));
  pl_command_print_written(o->output, NULL);
  return PL_OK;
}

pl_code pl_calibrate_kernels_run(const pl_calibrate_kernels *options, pl_error *error) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_code code = calibrate(options, &arena, error);
  pl_arena_release(&arena);
  return code;
}
