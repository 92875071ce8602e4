/* See netmodel/device/device_convolutions.h. */
#include "netmodel/device/device_convolutions.h"

#include <string.h>

#include "netmodel/device/profile_field.h"

static pl_code read_pass(const pl_document *document, const pl_node *entry, pl_convolution_pass *pass,
                         pl_error *error) {
  const char *name;
  PL_TRY(pl_node_string(document, entry, "pass", &name, error));
  for (int i = 0; i < PL_CONVOLUTION_PASS_COUNT; i++) {
    *pass = (pl_convolution_pass)i;
    if (strcmp(pl_convolution_pass_name(*pass), name) == 0) return PL_OK;
  }
  return pl_document_fail(document, pl_node_get(entry, "pass"), error,
                          "pass '%.32s' is none of forward, data and weight", name);
}

static pl_code read_tile(const pl_document *document, const pl_node *entry, pl_convolution_fit *fit, pl_error *error) {
  const pl_node *list = pl_node_get(entry, "tile");
  double sides[2] = {0, 0};
  if (list != NULL && pl_node_is_sequence(list) && pl_node_count(list) == 2)
    for (size_t i = 0; i < 2; i++)
      PL_TRY(pl_node_as_number(document, pl_node_at(list, i), &sides[i], error));
  fit->tile_m = sides[0];
  fit->tile_n = sides[1];
  if (sides[0] >= 1 && sides[0] <= 1024 && sides[1] >= 1 && sides[1] <= 1024) return PL_OK;
  return pl_document_fail(document, list ? list : entry, error, "'tile' must be two numbers from 1 to 1024");
}

static pl_code read_fit(const pl_document *document, const pl_node *entry, pl_convolution_fit *fit, pl_error *error) {
  static const char *const known[] = {"dtypes",     "pass",           "multiprocessors", "tile",
                                      "efficiency", "efficiency_3x3", "bandwidth",       "overhead",
                                      "depth",      "waves",          "held_out",        NULL};
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  PL_TRY(pl_profile_dtypes(document, entry, &fit->dtypes, error));
  PL_TRY(read_pass(document, entry, &fit->pass, error));
  PL_TRY(read_tile(document, entry, fit, error));
  PL_TRY(pl_profile_within(document, entry, "multiprocessors", 1, 65536, &fit->multiprocessors, error));
  PL_TRY(pl_profile_within(document, entry, "efficiency", 1e-3, 1, &fit->efficiency, error));
  PL_TRY(pl_profile_within(document, entry, "efficiency_3x3", 1e-3, 4, &fit->efficiency_3x3, error));
  PL_TRY(pl_profile_within(document, entry, "bandwidth", 1e-3, 1, &fit->bandwidth_efficiency, error));
  PL_TRY(pl_profile_duration(document, entry, "overhead", &fit->overhead_s, error));
  PL_TRY(pl_profile_within(document, entry, "depth", 0, 65536, &fit->depth, error));
  PL_TRY(pl_profile_within(document, entry, "waves", 0, 1, &fit->waves, error));
  return pl_profile_held_out(document, entry, "held_out", &fit->held_out, error);
}

pl_code pl_device_convolutions_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                                    pl_device_profile *profile, pl_error *error) {
  const pl_node *list = pl_node_get(root, "convolutions");
  if (list == NULL) return PL_OK;
  if (!pl_node_is_sequence(list)) return pl_document_fail(document, list, error, "'convolutions' must be a list");
  size_t n = pl_node_count(list);
  pl_convolution_fit *fits = PL_TAKE(arena, pl_convolution_fit, n);
  if (fits == NULL) return pl_fail_memory(error, "the convolutions of a device profile");
  for (size_t i = 0; i < n; i++) {
    fits[i] = (pl_convolution_fit){0};
    PL_TRY(read_fit(document, pl_node_at(list, i), &fits[i], error));
    for (size_t j = 0; j < i; j++)
      if (fits[j].pass == fits[i].pass && (fits[j].dtypes & fits[i].dtypes) != 0)
        return pl_document_fail(document, pl_node_at(list, i), error, "two fits of the pass '%s' in one data type",
                                pl_convolution_pass_name(fits[i].pass));
  }
  profile->convolutions = fits;
  profile->n_convolutions = (uint32_t)n;
  return PL_OK;
}
