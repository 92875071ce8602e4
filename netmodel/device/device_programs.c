/* See netmodel/device/device_programs.h. */
#include "netmodel/device/device_programs.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "netmodel/device/profile_field.h"

static pl_code read_op(const pl_document *document, const pl_node *entry, const char *name, pl_program_kernel *op,
                       pl_error *error) {
  static const char *const known[] = {"overhead", "flops", "bandwidth", "held_out", NULL};
  size_t length = strlen(name);
  if (length == 0 || length >= sizeof op->op)
    return pl_document_fail(document, entry, error, "'%.40s' is not the name of an op", name);
  *op = (pl_program_kernel){.overhead_s = 0};
  memcpy(op->op, name, length);
  PL_TRY(pl_profile_check_keys(document, entry, known, error));
  if (pl_node_get(entry, "overhead") != NULL)
    PL_TRY(pl_profile_duration(document, entry, "overhead", &op->overhead_s, error));
  if (pl_node_get(entry, "flops") != NULL)
    PL_TRY(pl_profile_positive(document, entry, "flops", pl_parse_flops, &op->flops_rate, error));
  if (pl_node_get(entry, "bandwidth") != NULL)
    PL_TRY(pl_profile_positive(document, entry, "bandwidth", pl_parse_rate, &op->bytes_rate, error));
  if (pl_node_get(entry, "overhead") == NULL && op->flops_rate <= 0 && op->bytes_rate <= 0)
    return pl_document_fail(document, entry, error, "'%s' needs an overhead, flops or a bandwidth", name);
  return pl_profile_held_out(document, entry, "held_out", &op->held_out, error);
}

pl_code pl_device_programs_read(const pl_document *document, const pl_node *root, pl_arena *arena,
                                pl_device_profile *profile, pl_error *error) {
  const pl_node *ops = pl_node_get(root, "programs");
  if (ops == NULL) return PL_OK;
  if (!pl_node_is_mapping(ops)) return pl_document_fail(document, ops, error, "'programs' must be an object");
  size_t n = pl_node_count(ops);
  pl_program_kernel *programs = PL_TAKE(arena, pl_program_kernel, n);
  if (programs == NULL) return pl_fail_memory(error, "the ops of a device profile");
  for (size_t i = 0; i < n; i++) {
    const char *name;
    const pl_node *entry = pl_node_entry(document, ops, i, &name);
    PL_TRY(read_op(document, entry, name, &programs[i], error));
  }
  if (n > 1) qsort(programs, n, sizeof *programs, pl_program_kernel_by_op);
  profile->programs = programs;
  profile->n_programs = (uint32_t)n;
  return PL_OK;
}
