/* See netmodel/device/device_kernels.h. */
#include "netmodel/device/device_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "netmodel/device/profile_field.h"

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
    PL_TRY(pl_profile_within(document, list, key, 1e-3, 1, &attention->efficiency[i], error));
    attention->head_size[i] = size;
  }
  attention->n_head_sizes = (uint32_t)pl_node_count(list);
  return PL_OK;
}

/* The closed form of the causal case counts whole key tiles, of which each query tile must hold a whole number. */
static pl_code read_tiles(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                          pl_error *error) {
  PL_TRY(pl_profile_within(document, entry, "query_tile", 1, 65536, &attention->query_tile, error));
  PL_TRY(pl_profile_within(document, entry, "key_tile", 1, 65536, &attention->key_tile, error));
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
  PL_TRY(pl_profile_within(document, backward, "ratio", 0.1, 100, &attention->backward_ratio, error));
  PL_TRY(pl_profile_within(document, backward, "prologue_keys", 0, 65536, &attention->backward_prologue_keys, error));
  return pl_profile_duration(document, backward, "overhead", &attention->backward_overhead_s, error);
}

static pl_code read_held_out_passes(const pl_document *document, const pl_node *entry, pl_attention_profile *attention,
                                    pl_error *error) {
  static const char *const passes[] = {"forward", "backward", NULL};
  const pl_node *node = pl_node_get(entry, "held_out");
  if (node == NULL) return PL_OK;
  PL_TRY(pl_profile_check_keys(document, node, passes, error));
  for (int pass = 0; pass < 2; pass++)
    PL_TRY(pl_profile_held_out(document, node, passes[pass], &attention->held_out[pass], error));
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
  PL_TRY(pl_profile_within(document, entry, "multiprocessors", 1, 65536, &attention->multiprocessors, error));
  PL_TRY(read_tiles(document, entry, attention, error));
  PL_TRY(read_efficiencies(document, entry, attention, error));
  PL_TRY(pl_profile_within(document, entry, "prologue_keys", 0, 65536, &attention->prologue_keys, error));
  PL_TRY(pl_profile_within(document, entry, "tail", 0, 10, &attention->tail, error));
  PL_TRY(pl_profile_duration(document, entry, "overhead", &attention->overhead_s, error));
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
      PL_TRY(pl_profile_within(document, entry, "bandwidth", 1e-3, 1, &kernel->bandwidth_efficiency, error));
      PL_TRY(pl_profile_duration(document, entry, "overhead", &kernel->overhead_s, error));
      PL_TRY(pl_profile_held_out(document, entry, "held_out", &kernel->held_out, error));
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
