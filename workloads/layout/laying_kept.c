/* See workloads/layout/laying.h: what forward functions keep for their backward functions. */
#include <string.h>

#include "workloads/derive/differentiate.h"
#include "workloads/layout/laying_change.h"

static bool is_made_by(const pl_laying *part, int32_t value, const char *row) {
  int32_t op = part->from->values[value].op;
  return op != PL_IR_NONE && pl_ir_op_is(&part->from->ops[op], row);
}

/* "layer/norm1", of @layer and of @layer.backward. */
static const char *kept_name(const pl_laying *part, const pl_ir_op *op) {
  size_t length = strcspn(part->from->name, ".");
  return pl_arena_printf(part->own->scratch, "%.*s/%s", (int)length, part->from->name, op->path);
}

static bool is_whole(const pl_laying *part, const pl_ir_type *type) {
  for (int32_t axis = 0; axis < part->own->rules->mesh.n_axes; axis++)
    if (type->on[axis] == PL_IR_PARTIAL || type->on[axis] == PL_IR_MAXIMUM) return false;
  return true;
}

/* What is kept of a value: as it was made, or added up, if that was done here; and of what was exchanged for another
 * part of it as large, what came: it is what is computed with. What came to experts is kept as they read it, gathered
 * over tensor ranks too (Megatron Core's dispatcher hands it to them so). */
static int32_t kept_variant(const pl_laying *part, int32_t value) {
  const pl_variants *variants = &part->variants[value];
  const pl_ir_mesh *mesh = &part->own->rules->mesh;
  int32_t kept = PL_IR_NONE;
  double elements = 0;
  for (int32_t i = 0; i < variants->n; i++) {
    const pl_ir_type *type = &part->to->values[variants->value[i]].type;
    if (!is_whole(part, type)) continue;
    double own = pl_ir_type_local_elements(mesh, type);
    if (kept != PL_IR_NONE && own != elements && !pl_laying_is_by_expert(type)) continue;
    kept = variants->value[i];
    elements = own;
  }
  return kept != PL_IR_NONE ? kept : variants->value[0];
}

/* What of `first` tensor ranks gathered, to compute with; `first`: nothing. */
static int32_t gathered_variant(const pl_laying *part, int32_t value, int32_t first) {
  const pl_variants *variants = &part->variants[value];
  const pl_ir_mesh *mesh = &part->own->rules->mesh;
  for (int32_t i = 0; i < variants->n; i++) {
    bool is_gathered = false, differs = false;
    const pl_ir_type *is = &part->to->values[variants->value[i]].type, *was = &part->to->values[first].type;
    for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
      bool tensor = part->rules->on[axis].role == PL_AXIS_TENSOR;
      if (tensor && was->on[axis] >= 0 && is->on[axis] == PL_IR_SAME)
        is_gathered = true;
      else
        differs = differs || is->on[axis] != was->on[axis];
    }
    if (is_gathered && !differs) return variants->value[i];
  }
  return first;
}

static pl_code lay_kept_as(pl_laying *part, const pl_ir_op *op, bool keep, const char *name, int32_t input,
                           pl_error *error) {
  pl_ir_type type = keep ? part->to->values[input].type : part->from->values[op->first_output].type;
  if (keep) pl_layout_kept(part->rules, &type);
  bool host = keep && part->rules->host[PL_LAYOUT_KEPT];
  if (name == NULL || !pl_layout_agree(part->own, name, &type, &host))
    return pl_fail_memory(error, "the distributed program");
  if (keep) PL_TRY(pl_laying_convert_from(part, op->inputs[0], input, &type, "as it is kept", &input, error));
  return pl_laying_copy_placed(part, op, host, &input, &type, error);
}

/* Weights of experts' answers are kept where they were made, too, for the derivative of their choice. */
static pl_code lay_kept_beside(pl_laying *part, const pl_ir_op *op, bool keep, const char *name, pl_error *error) {
  const char *beside = pl_arena_printf(part->own->scratch, "%s.chosen", name);
  pl_ir_op own = *op;
  own.path = pl_arena_printf(part->own->to->arena, "%s.chosen", op->path);
  if (beside == NULL || own.path == NULL) return pl_fail_memory(error, "the distributed program");
  if (keep) return lay_kept_as(part, &own, true, beside, part->variants[op->inputs[0]].value[0], error);
  if (!pl_layout_is_agreed(part->own, beside)) return PL_OK;
  const pl_variants first = part->variants[op->first_output];
  PL_TRY(lay_kept_as(part, &own, false, beside, PL_IR_NONE, error));
  pl_variants *both = &part->variants[op->first_output];
  PL_ASSERT(both->n < PL_VARIANTS_MAX); /* of a kept value there are as few as were kept */
  both->again[both->n] = false;
  both->value[both->n++] = first.value[0];
  return PL_OK;
}

pl_code pl_laying_kept(pl_laying *part, const pl_ir_op *op, bool keep, pl_error *error) {
  const char *name = kept_name(part, op);
  int32_t input = keep ? kept_variant(part, op->inputs[0]) : PL_IR_NONE;
  if (name == NULL) return pl_fail_memory(error, "the distributed program");
  /* A gradient that was gathered is there for the weights' pass, which gathers only what the forward pass kept: zero
   * bubble's WeightGradStore holds what the linear's backward pass was handed (sail-sg/
   * zero-bubble-pipeline-parallelism). */
  if (keep && strstr(op->path, PL_BACKWARD_FOR_WEIGHTS) != NULL) input = gathered_variant(part, op->inputs[0], input);
  PL_TRY(lay_kept_as(part, op, keep, name, input, error));
  if (!keep) return lay_kept_beside(part, op, false, name, error);
  const pl_ir_type *type = &part->from->values[op->inputs[0]].type;
  bool of_choice = is_made_by(part, op->inputs[0], "top_k") && pl_laying_is_by_expert(type);
  bool moved = of_choice && input != part->variants[op->inputs[0]].value[0];
  return moved ? lay_kept_beside(part, op, true, name, error) : PL_OK;
}
