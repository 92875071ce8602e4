/* See netmodel/device_kernels.h. */
#include "netmodel/device_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "netmodel/profile_field.h"

/* A number from `lowest` to `highest`. */
static pl_code read_within(const pl_document *document, const pl_node *mapping, const char *key, double lowest,
                           double highest, double *value, pl_error *error) {
  PL_TRY(pl_node_number(document, mapping, key, value, error));
  if (*value >= lowest && *value <= highest) return PL_OK;
  return pl_document_fail(document, pl_node_get(mapping, key), error, "%s is %g: it must lie between %g and %g", key,
                          *value, lowest, highest);
}

/* "8us", or a bare number of seconds. */
static pl_code read_duration(const pl_document *document, const pl_node *mapping, const char *key, double *value,
                             pl_error *error) {
  const pl_node *node = pl_node_get(mapping, key);
  if (node == NULL || pl_node_as_number(document, node, value, NULL) != PL_OK) {
    const char *text;
    PL_TRY(pl_node_string(document, mapping, key, &text, error));
    pl_error cause = PL_ERROR_INIT;
    if (pl_parse_time(text, key, value, &cause) != PL_OK)
      return pl_document_fail(document, node, error, "%s", cause.message);
  }
  if (*value >= 0 && *value <= 1) return PL_OK;
  return pl_document_fail(document, node, error, "%s is %g s: it must lie between 0 and 1 s", key, *value);
}

static pl_code read_efficiencies(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                                 pl_error *error) {
  const pl_node *list = pl_node_get(entry, "efficiency");
  if (list == NULL || !pl_node_is_mapping(list) || pl_node_count(list) == 0 || pl_node_count(list) > PL_HEAD_SIZES)
    return pl_document_fail(document, list ? list : entry, error,
                            "'efficiency' must be an object of one to %d head sizes, {\"128\": 0.6}", PL_HEAD_SIZES);
  for (size_t i = 0; i < pl_node_count(list); i++) {
    const char *key;
    char *end;
    const pl_node *value = pl_node_entry(document, list, i, &key);
    double size = strtod(key, &end);
    if (*end != '\0' || !(size > (i > 0 ? attention->head_size[i - 1] : 0)) || size > 4096)
      return pl_document_fail(document, value, error, "head size '%s': sizes are numbers that ascend, at most 4096",
                              key);
    PL_TRY(read_within(document, list, key, 1e-3, 1, &attention->efficiency[i], error));
    attention->head_size[i] = size;
  }
  attention->n_head_sizes = (uint32_t)pl_node_count(list);
  return PL_OK;
}

/* The closed form of the causal case counts whole key tiles, of which each query tile must hold a whole number. */
static pl_code read_tiles(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                          pl_error *error) {
  PL_TRY(read_within(document, entry, "query_tile", 1, 65536, &attention->query_tile, error));
  PL_TRY(read_within(document, entry, "key_tile", 1, 65536, &attention->key_tile, error));
  if (fmod(attention->query_tile, attention->key_tile) == 0 && fmod(attention->key_tile, 1) == 0) return PL_OK;
  return pl_document_fail(document, pl_node_get(entry, "key_tile"), error,
                          "key_tile %g: it must be whole and divide query_tile %g", attention->key_tile,
                          attention->query_tile);
}

static pl_code read_backward(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                             pl_error *error) {
  static const char *const known[] = {"ratio", "prologue_keys", "overhead", NULL};
  const pl_node *backward = pl_node_get(entry, "backward");
  if (backward == NULL) return pl_document_fail(document, entry, error, "the key 'backward' is missing");
  PL_TRY(pl_profile_check_keys(document, backward, known, error));
  PL_TRY(read_within(document, backward, "ratio", 0.1, 100, &attention->backward_ratio, error));
  PL_TRY(read_within(document, backward, "prologue_keys", 0, 65536, &attention->backward_prologue_keys, error));
  return read_duration(document, backward, "overhead", &attention->backward_overhead_s, error);
}

static pl_code read_held_out(const pl_document *document, const pl_node *mapping, const char *key,
                             pl_held_out *held_out, pl_error *error) {
  static const char *const known[] = {"calls", "median_error", "p90_error", NULL};
  const pl_node *node = pl_node_get(mapping, key);
  int64_t n;
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, known, error));
  PL_TRY(pl_node_integer(document, node, "calls", 1, UINT32_MAX, &n, error));
  held_out->n = (uint32_t)n;
  PL_TRY(pl_profile_ratio(document, node, "median_error", true, 100, &held_out->median_error, error));
  return pl_profile_ratio(document, node, "p90_error", true, 100, &held_out->p90_error, error);
}

static pl_code read_held_out_passes(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                                    pl_error *error) {
  static const char *const passes[] = {"forward", "backward", NULL};
  const pl_node *node = pl_node_get(entry, "held_out");
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, passes, error));
  for (int pass = 0; pass < 2; pass++)
    PL_TRY(read_held_out(document, node, passes[pass], &attention->held_out[pass], error));
  return PL_OK;
}

static pl_code read_attention(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                              pl_error *error) {
  static const char *const known[] = {"kernel",     "multiprocessors", "query_tile", "key_tile",
                                      "efficiency", "prologue_keys",   "tail",       "overhead",
                                      "backward",   "held_out",        NULL};
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  const char *name;
  PL_TRY(pl_node_string(document, entry, "kernel", &name, error));
  int kernel = pl_attention_kernel_from_name(name);
  if (kernel <= PL_ATTENTION_ANY)
    return pl_document_fail(document, pl_node_get(entry, "kernel"), error,
                            "kernel '%.32s' is none of flash1, flash2, flash3 and cudnn", name);
  attention->kernel = (pl_attention_kernel)kernel;
  PL_TRY(read_within(document, entry, "multiprocessors", 1, 65536, &attention->multiprocessors, error));
  PL_TRY(read_tiles(document, entry, attention, error));
  PL_TRY(read_efficiencies(document, entry, attention, error));
  PL_TRY(read_within(document, entry, "prologue_keys", 0, 65536, &attention->prologue_keys, error));
  PL_TRY(read_within(document, entry, "tail", 0, 10, &attention->tail, error));
  PL_TRY(read_duration(document, entry, "overhead", &attention->overhead_s, error));
  PL_TRY(read_held_out_passes(document, entry, attention, error));
  return read_backward(document, entry, attention, error);
}

static pl_code read_attentions(const pl_document *document, const pl_node *list, pl_arena *arena,
                               pl_device_profile *profile, pl_error *error) {
  if (!pl_node_is_sequence(list)) return pl_document_fail(document, list, error, "'attention' must be a list");
  size_t n = pl_node_count(list);
  pl_attention_profile *attention = PL_TAKE(arena, pl_attention_profile, n);
  if (attention == NULL) return pl_fail_memory(error, "the attention kernels of a device profile");
  for (size_t i = 0; i < n; i++) {
    attention[i] = (pl_attention_profile){.kernel = PL_ATTENTION_ANY};
    PL_TRY(read_attention(document, pl_node_at(list, i), &attention[i], error));
    for (size_t j = 0; j < i; j++)
      if (attention[j].kernel == attention[i].kernel)
        return pl_document_fail(document, pl_node_at(list, i), error, "two entries for the kernel '%s'",
                                pl_attention_kernel_name(attention[i].kernel));
  }
  profile->attention = attention;
  profile->n_attention = (uint32_t)n;
  return PL_OK;
}

static pl_code read_kernels(const pl_document *document, const pl_node *kinds, pl_device_profile *profile,
                            pl_error *error) {
  static const char *const passes[] = {"forward", "backward", NULL};
  static const char *const known[] = {"bandwidth", "overhead", "held_out", NULL};
  if (!pl_node_is_mapping(kinds)) return pl_document_fail(document, kinds, error, "'kernels' must be an object");
  for (size_t i = 0; i < pl_node_count(kinds); i++) {
    const char *key;
    const pl_node *kind = pl_node_entry(document, kinds, i, &key);
    int index = pl_kernel_kind_from_name(key);
    if (index < 0) return pl_document_fail(document, kind, error, "unknown kind of kernel '%.32s'", key);
    PL_TRY(pl_profile_check_keys(document, kind, passes, error));
    for (int pass = 0; pass < 2; pass++) {
      const pl_node *entry = pl_node_get(kind, passes[pass]);
      if (entry == NULL) continue;
      pl_kernel_profile *kernel = &profile->kernels[index][pass];
      PL_TRY(pl_profile_check_keys(document, entry, known, error));
      PL_TRY(read_within(document, entry, "bandwidth", 1e-3, 1, &kernel->bandwidth_efficiency, error));
      PL_TRY(read_duration(document, entry, "overhead", &kernel->overhead_s, error));
      PL_TRY(read_held_out(document, entry, "held_out", &kernel->held_out, error));
    }
  }
  return PL_OK;
}

pl_code pl_device_kernels_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                               pl_device_profile *profile, pl_error *error) {
  const pl_node *attention = pl_node_get(root, "attention"), *kernels = pl_node_get(root, "kernels");
  if (attention != NULL) PL_TRY(read_attentions(document, attention, arena, profile, error));
  return kernels != NULL ? read_kernels(document, kernels, profile, error) : PL_OK;
}
