/* See netmodel/device/device_profile.h. */
#include "netmodel/device/device_profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "core/text/document.h"
#include "netmodel/device/device_convolutions.h"
#include "netmodel/device/device_kernels.h"
#include "netmodel/device/device_programs.h"
#include "netmodel/device/gemm_profile.h"
#include "netmodel/device/profile_field.h"

static pl_code read_peaks(const pl_document *document, const pl_node *root, pl_device_profile *profile,
                          pl_error *error) {
  const pl_node *peaks;
  PL_TRY(pl_profile_object(document, root, "peak_flops", &peaks, error));
  bool any = false;
  for (size_t i = 0; i < pl_node_count(peaks); i++) {
    const char *key;
    const pl_node *value = pl_node_entry(document, peaks, i, &key);
    int dtype = pl_dtype_from_name(key);
    if (dtype < 0) return pl_document_fail(document, value, error, "unknown key '%s' in peak_flops", key);
    PL_TRY(pl_profile_quantity(document, peaks, key, pl_parse_flops, &profile->peak_flops[dtype], error));
    any |= profile->peak_flops[dtype] > 0;
  }
  return any ? PL_OK : pl_document_fail(document, peaks, error, "peak_flops names no data type with a speed");
}

static pl_code read_efficiency(const pl_document *document, const pl_node *root, pl_device_profile *profile,
                               pl_error *error) {
  static const char *const known[] = {"compute", "attention", "bandwidth", NULL};
  const pl_node *efficiency;
  PL_TRY(pl_profile_object(document, root, "efficiency", &efficiency, error));
  PL_TRY(pl_profile_check_keys(document, efficiency, known, error));
  PL_TRY(pl_profile_ratio(document, efficiency, "compute", false, 1, &profile->compute_efficiency, error));
  PL_TRY(pl_profile_ratio(document, efficiency, "attention", false, 1, &profile->attention_efficiency, error));
  return pl_profile_ratio(document, efficiency, "bandwidth", false, 1, &profile->bandwidth_efficiency, error);
}

static pl_code read_overlap(const pl_document *document, const pl_node *root, pl_device_profile *profile,
                            pl_error *error) {
  static const char *const known[] = {"compute", "communication", "channels", "products_fill", NULL};
  const pl_node *overlap;
  PL_TRY(pl_profile_object(document, root, "overlap", &overlap, error));
  PL_TRY(pl_profile_check_keys(document, overlap, known, error));
  PL_TRY(pl_profile_ratio(document, overlap, "compute", true, 100, &profile->overlap_compute, error));
  PL_TRY(pl_profile_ratio(document, overlap, "communication", true, 100, &profile->overlap_communication, error));
  int64_t channels = 0;
  if (pl_node_get(overlap, "channels") != NULL)
    PL_TRY(pl_node_integer(document, overlap, "channels", 0, 65536, &channels, error));
  profile->channels = (uint32_t)channels;
  const pl_node *fills = pl_node_get(overlap, "products_fill");
  return fills == NULL ? PL_OK : pl_node_boolean(document, overlap, "products_fill", &profile->fills_device, error);
}

/* A section that has a figure of computing alone. Optional: nothing is known of it without the section. */
static pl_code read_compute(const pl_document *document, const pl_node *root, const char *key, bool may_be_zero,
                            double *value, pl_error *error) {
  static const char *const known[] = {"compute", NULL};
  if (pl_node_get(root, key) == NULL) return PL_OK;
  const pl_node *section;
  PL_TRY(pl_profile_object(document, root, key, &section, error));
  PL_TRY(pl_profile_check_keys(document, section, known, error));
  return pl_profile_ratio(document, section, "compute", may_be_zero, 1, value, error);
}

static pl_code check_provenance(const pl_document *document, const pl_node *root, pl_error *error) {
  const pl_node *provenance = pl_node_get(root, "provenance");
  if (provenance == NULL) return PL_OK;
  if (!pl_node_is_mapping(provenance))
    return pl_document_fail(document, provenance, error, "'provenance' must be an object");
  for (size_t i = 0; i < pl_node_count(provenance); i++) {
    const char *key, *text;
    pl_node_entry(document, provenance, i, &key);
    PL_TRY(pl_node_name(document, provenance, key, &text, error));
  }
  return PL_OK;
}

/* ---- measured ops ---- */

static pl_code read_short(const pl_document *document, const pl_node *op, const char *key, char *text, size_t size,
                          pl_error *error) {
  const char *value;
  PL_TRY(pl_node_name(document, op, key, &value, error));
  if (strlen(value) >= size)
    return pl_document_fail(document, pl_node_get(op, key), error, "%s '%.64s' is longer than %zu bytes", key, value,
                            size - 1);
  memcpy(text, value, strlen(value) + 1);
  return PL_OK;
}

static pl_code read_dims(const pl_document *document, const pl_node *op, pl_op_entry *entry, pl_error *error) {
  const pl_node *dims = pl_node_get(op, "dims");
  if (dims == NULL || !pl_node_is_sequence(dims) || pl_node_count(dims) == 0 || pl_node_count(dims) > 4)
    return pl_document_fail(document, dims ? dims : op, error, "'dims' must be a list of one to four integers");
  for (size_t i = 0; i < pl_node_count(dims); i++) {
    double value;
    PL_TRY(pl_node_as_number(document, pl_node_at(dims, i), &value, error));
    if (value < 0 || value > 0x1p53 || value != (double)(int64_t)value)
      return pl_document_fail(document, pl_node_at(dims, i), error, "dimension %g is not a whole number from 0 to 2^53",
                              value);
    entry->dims[i] = (int64_t)value;
  }
  return PL_OK;
}

static pl_code read_op(const pl_document *document, const pl_node *op, pl_op_entry *entry, pl_error *error) {
  static const char *const known[] = {"kind", "pass", "dtype", "dims", "time", NULL};
  PL_TRY(pl_profile_check_keys(document, op, known, error));
  PL_TRY(read_short(document, op, "kind", entry->kind, sizeof entry->kind, error));
  PL_TRY(read_short(document, op, "pass", entry->pass, sizeof entry->pass, error));
  if (strcmp(entry->pass, "") != 0 && strcmp(entry->pass, "forward") != 0 && strcmp(entry->pass, "backward") != 0)
    return pl_document_fail(document, pl_node_get(op, "pass"), error,
                            "pass '%s' is none of forward, backward and \"\" (any)", entry->pass);
  const char *dtype_name;
  PL_TRY(pl_node_name(document, op, "dtype", &dtype_name, error));
  int dtype = pl_dtype_from_name(dtype_name);
  if (dtype < 0)
    return pl_document_fail(document, pl_node_get(op, "dtype"), error, "unknown data type '%.32s'", dtype_name);
  entry->dtype = (pl_dtype)dtype;
  PL_TRY(read_dims(document, op, entry, error));
  return pl_profile_positive(document, op, "time", pl_parse_time, &entry->time_s, error);
}

/* The order of core/cluster/device_profile.h: kind, dtype, pass, dims. */
static int compare_ops(const void *left, const void *right) {
  const pl_op_entry *a = left, *b = right;
  int order = strcmp(a->kind, b->kind);
  if (order == 0) order = (a->dtype > b->dtype) - (a->dtype < b->dtype);
  if (order == 0) order = strcmp(a->pass, b->pass);
  for (int i = 0; order == 0 && i < 4; i++)
    order = (a->dims[i] > b->dims[i]) - (a->dims[i] < b->dims[i]);
  return order;
}

static pl_code read_ops(const pl_document *document, const pl_node *root, pl_arena *arena, pl_device_profile *profile,
                        pl_error *error) {
  const pl_node *list = pl_node_get(root, "ops");
  if (list == NULL) return PL_OK;
  if (!pl_node_is_sequence(list)) return pl_document_fail(document, list, error, "'ops' must be a list");
  size_t n = pl_node_count(list);
  pl_op_entry *ops = PL_TAKE(arena, pl_op_entry, n);
  if (ops == NULL) return pl_fail_memory(error, "the measured ops of a device profile");
  for (size_t i = 0; i < n; i++)
    PL_TRY(read_op(document, pl_node_at(list, i), &ops[i], error));
  if (n > 1) qsort(ops, n, sizeof *ops, compare_ops);
  for (size_t i = 1; i < n; i++)
    if (compare_ops(&ops[i - 1], &ops[i]) == 0)
      return pl_document_fail(document, list, error, "two entries for %s %s [%lld, %lld, %lld, %lld]", ops[i].kind,
                              pl_dtype_name(ops[i].dtype), (long long)ops[i].dims[0], (long long)ops[i].dims[1],
                              (long long)ops[i].dims[2], (long long)ops[i].dims[3]);
  profile->ops = ops;
  profile->n_ops = (uint32_t)n;
  return PL_OK;
}

/* ---- the whole ---- */

static pl_code read_name(const pl_document *document, const pl_node *root, const char *key, pl_arena *arena,
                         const char **name, pl_error *error) {
  const char *text;
  PL_TRY(pl_node_name(document, root, key, &text, error));
  if (text[0] == '\0') return pl_document_fail(document, pl_node_get(root, key), error, "%s is empty", key);
  *name = pl_arena_strdup(arena, text);
  return *name != NULL ? PL_OK : pl_fail_memory(error, "a device profile");
}

/* Products that add up in fp32 take no less time than those that do not, and not twice as long. */
static pl_code read_split_accumulation(const pl_document *document, const pl_node *root, pl_device_profile *profile,
                                       pl_error *error) {
  const pl_node *node = pl_node_get(root, "split_accumulation");
  PL_TRY(pl_node_number(document, root, "split_accumulation", &profile->split_accumulation, error));
  if (!(profile->split_accumulation >= 1) || profile->split_accumulation > 2)
    return pl_document_fail(document, node, error, "split_accumulation is %g; it is a time over a time, 1 to 2",
                            profile->split_accumulation);
  return PL_OK;
}

static pl_code read_profile(const pl_document *document, pl_arena *arena, pl_device_profile *profile, pl_error *error) {
  static const char *const known[] = {"name",
                                      "architecture",
                                      "memory",
                                      "reserved",
                                      "bandwidth",
                                      "peak_flops",
                                      "efficiency",
                                      "launch_overhead",
                                      "overlap",
                                      "provenance",
                                      "ops",
                                      "attention",
                                      "kernels",
                                      "gemm",
                                      "sustained",
                                      "convolutions",
                                      "power",
                                      "programs",
                                      "communicator",
                                      "switch_buffers",
                                      "spread",
                                      "split_accumulation",
                                      NULL};
  const pl_node *root = pl_document_root(document);
  *profile = (pl_device_profile){.digest = pl_document_digest(document)};
  PL_TRY(pl_profile_check_keys(document, root, known, error));
  PL_TRY(read_name(document, root, "name", arena, &profile->name, error));
  PL_TRY(read_name(document, root, "architecture", arena, &profile->architecture, error));
  PL_TRY(pl_profile_positive(document, root, "memory", pl_parse_bytes, &profile->memory_bytes, error));
  if (pl_node_get(root, "reserved") != NULL)
    PL_TRY(pl_profile_quantity(document, root, "reserved", pl_parse_bytes, &profile->reserved_bytes, error));
  if (pl_node_get(root, "communicator") != NULL)
    PL_TRY(pl_profile_quantity(document, root, "communicator", pl_parse_bytes, &profile->communicator_bytes, error));
  if (pl_node_get(root, "switch_buffers") != NULL)
    PL_TRY(pl_profile_quantity(document, root, "switch_buffers", pl_parse_bytes, &profile->switch_bytes, error));
  if (profile->reserved_bytes >= profile->memory_bytes)
    return pl_document_fail(document, pl_node_get(root, "reserved"), error, "reserved leaves nothing of memory");
  if (profile->communicator_bytes >= profile->memory_bytes)
    return pl_document_fail(document, pl_node_get(root, "communicator"), error,
                            "communicator leaves nothing of memory");
  if (profile->switch_bytes >= profile->memory_bytes)
    return pl_document_fail(document, pl_node_get(root, "switch_buffers"), error,
                            "switch_buffers leaves nothing of memory");
  PL_TRY(pl_profile_positive(document, root, "bandwidth", pl_parse_rate, &profile->bandwidth_Bps, error));
  PL_TRY(read_peaks(document, root, profile, error));
  PL_TRY(read_efficiency(document, root, profile, error));
  PL_TRY(pl_profile_quantity(document, root, "launch_overhead", pl_parse_time, &profile->launch_overhead_s, error));
  PL_TRY(read_overlap(document, root, profile, error));
  PL_TRY(read_compute(document, root, "sustained", false, &profile->sustained_compute, error));
  PL_TRY(read_compute(document, root, "spread", true, &profile->compute_spread, error));
  if (pl_node_get(root, "split_accumulation") != NULL) PL_TRY(read_split_accumulation(document, root, profile, error));
  if (pl_node_get(root, "power") != NULL)
    PL_TRY(pl_profile_positive(document, root, "power", pl_parse_power, &profile->power_W, error));
  PL_TRY(check_provenance(document, root, error));
  PL_TRY(pl_device_kernels_read(document, root, arena, profile, error));
  PL_TRY(pl_device_convolutions_read(document, root, arena, profile, error));
  PL_TRY(pl_device_programs_read(document, root, arena, profile, error));
  PL_TRY(pl_gemm_profile_read(document, root, arena, &profile->gemm, error));
  if (profile->gemm.multiprocessors > 0 && profile->channels >= profile->gemm.multiprocessors)
    return pl_document_fail(document, pl_node_get(pl_node_get(root, "overlap"), "channels"), error,
                            "channels is %u: a collective leaves none of the %u multiprocessors of gemm",
                            profile->channels, profile->gemm.multiprocessors);
  return read_ops(document, root, arena, profile, error);
}

pl_code pl_device_profile_parse(const char *name, const char *text, size_t size, pl_arena *arena,
                                pl_device_profile *profile, pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_parse(name, text, size, true, &document, error));
  pl_code code = read_profile(document, arena, profile, error);
  pl_document_destroy(document);
  return code;
}

pl_code pl_device_profile_load(const char *path, pl_arena *arena, pl_device_profile *profile, pl_error *error) {
  pl_document *document;
  PL_TRY(pl_document_load(path, &document, error));
  pl_code code = read_profile(document, arena, profile, error);
  pl_document_destroy(document);
  return code;
}
