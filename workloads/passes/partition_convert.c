/* See workloads/passes/partition_function.h: what brings a value from one layout to another. */
#include "workloads/passes/partition_function.h"

#include <string.h>

typedef struct change {
  const char *row;
  int8_t from, to; /* `on` along the axes; a dimension, PL_IR_SAME ... */
  int32_t n_axes;
  pl_ir_name axes[PL_IR_AXES_MAX];
  int32_t axis[PL_IR_AXES_MAX];
} change;

/* What takes `from` to `to` along one axis; NULL: nothing does. */
static const char *row_between(int8_t from, int8_t to) {
  if (from == PL_IR_MAXIMUM) return to == PL_IR_SAME ? "all_reduce" : NULL;
  if (from == PL_IR_PARTIAL) return to == PL_IR_SAME ? "all_reduce" : to >= 0 ? "reduce_scatter" : NULL;
  if (from == PL_IR_SAME) return to >= 0 ? "cut" : NULL;
  return to == PL_IR_SAME ? "all_gather" : to >= 0 ? "all_to_all" : NULL;
}

static int32_t changes_of(const pl_ir_mesh *mesh, const pl_ir_type *from, const pl_ir_type *to, change *changes) {
  int32_t n = 0;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (from->on[axis] == to->on[axis]) continue;
    const char *row = row_between(from->on[axis], to->on[axis]);
    if (row == NULL) return -1;
    int32_t i = 0;
    while (i < n && (changes[i].from != from->on[axis] || changes[i].to != to->on[axis]))
      i++;
    if (i == n) changes[n++] = (change){.row = row, .from = from->on[axis], .to = to->on[axis]};
    changes[i].axis[changes[i].n_axes] = axis;
    changes[i].axes[changes[i].n_axes++] = mesh->axes[axis].name;
  }
  return n;
}

static bool takes_part(const change *made, int32_t axis) {
  for (int32_t i = 0; i < made->n_axes; i++)
    if (made->axis[i] == axis) return true;
  return false;
}

/* Whether it can be made now: no axis further in than the first of its own cuts a dimension that it gives up or takes
 * on (parts of devices along an axis are neighbours only where it is the innermost one). */
static bool is_next(const pl_ir_mesh *mesh, const pl_ir_type *now, const change *made) {
  for (int32_t axis = made->axis[0] + 1; axis < mesh->n_axes; axis++)
    if (!takes_part(made, axis) && now->on[axis] >= 0 && (now->on[axis] == made->from || now->on[axis] == made->to))
      return false;
  return true;
}

/* The op of one change; returns its output. */
static int32_t change_made(pl_laying *part, int32_t value, const change *made, const char *reason) {
  pl_ir_type type = part->to->values[value].type;
  pl_ir_attribute attributes[3];
  int32_t n = 0;
  attributes[n++] = pl_ir_names("over", made->n_axes, made->axes);
  if (strcmp(made->row, "all_to_all") == 0) {
    attributes[n++] = pl_ir_names("from", 1, &type.dims[made->from].name);
    attributes[n++] = pl_ir_names("to", 1, &type.dims[made->to].name);
  } else if (made->to >= 0) {
    attributes[n++] = pl_ir_names("dim", 1, &type.dims[made->to].name);
  } else if (made->from >= 0) {
    attributes[n++] = pl_ir_names("dim", 1, &type.dims[made->from].name);
  }
  for (int32_t i = 0; i < made->n_axes; i++)
    type.on[made->axis[i]] = made->to;
  const char *name = part->to->values[value].name;
  return pl_ir_op_add(part->own->to, part->to,
                      &(pl_ir_making){.row = pl_ir_row_of(made->row),
                                      .n_inputs = 1,
                                      .inputs = &value,
                                      .n_outputs = 1,
                                      .output_names = &name,
                                      .output_types = &type,
                                      .n_attributes = n,
                                      .attributes = attributes,
                                      .reason = reason,
                                      .callee = PL_IR_NONE});
}

static int32_t known(const pl_laying *part, const pl_variants *variants, const pl_ir_type *wanted) {
  for (int32_t i = 0; i < variants->n; i++)
    if (memcmp(part->to->values[variants->value[i]].type.on, wanted->on, sizeof(wanted->on)) == 0)
      return variants->value[i];
  return PL_IR_NONE;
}

static void remember(pl_variants *variants, int32_t value) {
  if (variants->n < PL_VARIANTS_MAX) variants->value[variants->n++] = value;
}

pl_code pl_laying_convert(pl_laying *part, int32_t value, const pl_ir_type *wanted, const char *reason,
                          int32_t *converted, pl_error *error) {
  pl_variants *variants = &part->variants[value];
  *converted = known(part, variants, wanted);
  if (*converted != PL_IR_NONE) return PL_OK;
  int32_t at = variants->value[0];
  change changes[PL_IR_AXES_MAX];
  int32_t n = changes_of(&part->own->rules->mesh, &part->to->values[at].type, wanted, changes);
  if (n < 0)
    return pl_fail(error, PL_UNSUPPORTED, "@%s: nothing brings %%%s to the layout that %s needs", part->from->name,
                   part->from->values[value].name, reason);
  for (int32_t left = n; left > 0; left--) {
    int32_t i = 0;
    while (i < left && !is_next(&part->own->rules->mesh, &part->to->values[at].type, &changes[i]))
      i++;
    if (i == left) i = 0; /* none: the check names it */
    at = change_made(part, at, &changes[i], reason);
    if (at == PL_IR_NONE) return pl_fail_memory(error, "the distributed program");
    remember(variants, at);
    for (; i + 1 < left; i++)
      changes[i] = changes[i + 1];
  }
  *converted = at;
  return PL_OK;
}

int32_t pl_laying_value(const pl_laying *part, int32_t value) {
  return part->variants[value].n > 0 ? part->variants[value].value[0] : PL_IR_NONE;
}

void pl_laying_set(pl_laying *part, int32_t value, int32_t made) {
  part->variants[value] = (pl_variants){.n = 1, .value = {made}};
}

pl_code pl_laying_handed(pl_laying *part, int32_t value, int32_t *handed, pl_error *error) {
  pl_ir_type type = part->to->values[pl_laying_value(part, value)].type;
  pl_layout_handed(part->own->rules, &type);
  return pl_laying_convert(part, value, &type, "as functions hand it on", handed, error);
}
