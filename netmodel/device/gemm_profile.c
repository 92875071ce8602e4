/* See netmodel/device/gemm_profile.h. */
#include "netmodel/device/gemm_profile.h"

#include <string.h>

#include "core/base/units.h"
#include "core/cluster/device_profile.h"
#include "netmodel/device/profile_field.h"

static pl_code read_tiles(const pl_document *document, const pl_node *entry, pl_gemm_fit *fit, pl_error *error) {
  static const char *const alignments[] = {[PL_GEMM_ALIGNED_4] = "4B", [PL_GEMM_ALIGNED_2] = "2B", NULL};
  const char *known[PL_GEMM_TILE_COUNT + 1] = {NULL};
  for (int i = 0; i < PL_GEMM_TILE_COUNT; i++)
    known[i] = pl_gemm_tile_name((pl_gemm_tile)i);
  const pl_node *tiles, *unaligned;
  PL_TRY(pl_profile_object(document, entry, "tile_efficiency", &tiles, error));
  PL_TRY(pl_profile_check_keys(document, tiles, known, error));
  for (int i = 0; i < PL_GEMM_TILE_COUNT; i++)
    PL_TRY(pl_profile_ratio(document, tiles, known[i], false, 1, &fit->tile_efficiency[i], error));
  PL_TRY(pl_profile_object(document, entry, "unaligned_time", &unaligned, error));
  PL_TRY(pl_profile_check_keys(document, unaligned, alignments, error));
  for (int i = 0; i < PL_GEMM_ALIGNMENT_COUNT; i++)
    PL_TRY(pl_profile_ratio(document, unaligned, alignments[i], false, 1000, &fit->unaligned_time[i], error));
  return PL_OK;
}

/* ---- the table of residuals ---- */

static pl_code read_range(const pl_document *document, const pl_node *residual, const char *key, int32_t *first,
                          int32_t *last, pl_error *error) {
  const pl_node *list = pl_node_get(residual, key);
  double ends[2] = {-1, -1};
  if (list != NULL && pl_node_is_sequence(list) && pl_node_count(list) == 2)
    for (size_t i = 0; i < 2; i++)
      PL_TRY(pl_node_as_number(document, pl_node_at(list, i), &ends[i], error));
  *first = (int32_t)(ends[0] >= 0 && ends[0] <= PL_GEMM_LOG2_MAX ? ends[0] : -1);
  *last = (int32_t)(ends[1] >= 0 && ends[1] <= PL_GEMM_LOG2_MAX ? ends[1] : -1);
  if (*first >= 0 && *first < *last && *first == ends[0] && *last == ends[1]) return PL_OK;
  return pl_document_fail(document, list ? list : residual, error,
                          "'%s' must be two whole numbers, [first, last], from 0 to %d", key, PL_GEMM_LOG2_MAX);
}

static pl_code check_count(const pl_document *document, const pl_node *list, int32_t expected, const char *what,
                           pl_error *error) {
  if (pl_node_is_sequence(list) && pl_node_count(list) == (size_t)expected) return PL_OK;
  return pl_document_fail(document, list, error, "expected a list of %d %s", expected, what);
}

static pl_code read_value(const pl_document *document, const pl_node *node, int16_t *milli, pl_error *error) {
  double value;
  PL_TRY(pl_node_as_number(document, node, &value, error));
  if (!(value >= -PL_GEMM_RESIDUAL_MILLI_MAX && value <= PL_GEMM_RESIDUAL_MILLI_MAX) || value != (int16_t)value)
    return pl_document_fail(document, node, error, "residual %g is no whole number from -%d to %d", value,
                            PL_GEMM_RESIDUAL_MILLI_MAX, PL_GEMM_RESIDUAL_MILLI_MAX);
  *milli = (int16_t)value;
  return PL_OK;
}

static pl_code read_values(const pl_document *document, const pl_node *planes, const int32_t n[3], int16_t *milli,
                           pl_error *error) {
  PL_TRY(check_count(document, planes, n[0], "planes, one for each m", error));
  for (int32_t i = 0; i < n[0]; i++) {
    const pl_node *rows = pl_node_at(planes, (size_t)i);
    PL_TRY(check_count(document, rows, n[1], "rows, one for each n", error));
    for (int32_t j = 0; j < n[1]; j++) {
      const pl_node *row = pl_node_at(rows, (size_t)j);
      PL_TRY(check_count(document, row, n[2], "numbers, one for each k", error));
      for (int32_t k = 0; k < n[2]; k++)
        PL_TRY(read_value(document, pl_node_at(row, (size_t)k), milli++, error));
    }
  }
  return PL_OK;
}

static pl_code read_residual(const pl_document *document, const pl_node *entry, pl_arena *arena,
                             pl_gemm_residual *residual, pl_error *error) {
  static const char *const known[] = {"log2_m", "log2_n", "log2_k", "milli", NULL};
  const pl_node *node = pl_node_get(entry, "residual");
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  int32_t n[3];
  for (int i = 0; i < 3; i++) {
    PL_TRY(read_range(document, node, known[i], &residual->first[i], &residual->last[i], error));
    n[i] = residual->last[i] - residual->first[i] + 1;
  }
  const pl_node *planes = pl_node_get(node, "milli");
  if (planes == NULL) return pl_document_fail(document, node, error, "the key 'milli' is missing");
  int16_t *milli = PL_TAKE(arena, int16_t, (size_t)n[0] * (size_t)n[1] * (size_t)n[2]);
  if (milli == NULL) return pl_fail_memory(error, "the residuals of a device profile");
  residual->milli = milli;
  return read_values(document, planes, n, milli, error);
}

/* ---- fits ---- */

static pl_code read_held_out(const pl_document *document, const pl_node *entry, pl_gemm_fit *fit, pl_error *error) {
  static const char *const known[] = {"shapes", "median_error", "p90_error", NULL};
  const pl_node *node = pl_node_get(entry, "held_out");
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  int64_t n;
  PL_TRY(pl_node_integer(document, node, "shapes", 1, UINT32_MAX, &n, error));
  fit->n_held_out = (uint32_t)n;
  PL_TRY(pl_profile_ratio(document, node, "median_error", true, 100, &fit->median_error, error));
  return pl_profile_ratio(document, node, "p90_error", true, 100, &fit->p90_error, error);
}

static pl_code read_fit(const pl_document *document, const pl_node *entry, pl_arena *arena, pl_gemm_fit *fit,
                        pl_error *error) {
  static const char *const known[] = {"dtypes",
                                      "overhead",
                                      "split_overhead",
                                      "tile_overhead",
                                      "memory_efficiency",
                                      "cache_rate",
                                      "wave_quantisation",
                                      "tile_efficiency",
                                      "unaligned_time",
                                      "residual",
                                      "held_out",
                                      NULL};
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  PL_TRY(pl_profile_quantity(document, entry, "overhead", pl_parse_time, &fit->overhead_s, error));
  PL_TRY(pl_profile_quantity(document, entry, "split_overhead", pl_parse_time, &fit->split_overhead_s, error));
  PL_TRY(pl_profile_quantity(document, entry, "tile_overhead", pl_parse_time, &fit->tile_overhead_s, error));
  PL_TRY(pl_profile_ratio(document, entry, "memory_efficiency", false, 1, &fit->memory_efficiency, error));
  PL_TRY(pl_profile_positive(document, entry, "cache_rate", pl_parse_rate, &fit->cache_rate_Bps, error));
  PL_TRY(pl_profile_ratio(document, entry, "wave_quantisation", true, 1, &fit->wave_quantisation, error));
  PL_TRY(read_tiles(document, entry, fit, error));
  PL_TRY(read_residual(document, entry, arena, &fit->residual, error));
  return read_held_out(document, entry, fit, error);
}

pl_code pl_gemm_profile_read(const pl_document *document, const pl_node *root, pl_arena *arena, pl_gemm_profile *gemm,
                             pl_error *error) {
  static const char *const known[] = {"multiprocessors", "fits", NULL};
  *gemm = (pl_gemm_profile){.n_fits = 0};
  const pl_node *section = pl_node_get(root, "gemm");
  if (section == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, section, known, error));
  int64_t multiprocessors;
  PL_TRY(pl_node_integer(document, section, "multiprocessors", 1, 65536, &multiprocessors, error));
  const pl_node *list = pl_node_get(section, "fits");
  if (list == NULL || !pl_node_is_sequence(list) || pl_node_count(list) == 0)
    return pl_document_fail(document, list ? list : section, error, "'fits' must be a list of fits");
  size_t n = pl_node_count(list);
  pl_gemm_fit *fits = PL_TAKE(arena, pl_gemm_fit, n);
  if (fits == NULL) return pl_fail_memory(error, "the GEMM fits of a device profile");
  uint32_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t before = seen;
    PL_TRY(pl_profile_dtypes(document, pl_node_at(list, i), &seen, error));
    fits[i].dtypes = seen & ~before;
    PL_TRY(read_fit(document, pl_node_at(list, i), arena, &fits[i], error));
  }
  *gemm = (pl_gemm_profile){.multiprocessors = (uint32_t)multiprocessors, .n_fits = (uint32_t)n, .fits = fits};
  return PL_OK;
}
