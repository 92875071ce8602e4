/* See workloads/passes/partition_stages.h: what of an update is a stage's own, and gradients that two stages add up. */
#include <string.h>

#include "workloads/passes/partition_stages.h"

static pl_code no_memory(pl_error *error) {
  return pl_fail_memory(error, "the distributed program");
}

static const char *const table = "table"; /* of the embedding, which a tied head reads too */

/* The gradient that `op` gives becomes the sum of those of two stages. */
static pl_code add_up(pl_stages *own, pl_laying *part, const pl_ir_op *op, int32_t first, int32_t second,
                      const char *tag, const char *reason, pl_error *error) {
  const pl_ir_name classes[] = {pl_stages_class_name(first), pl_stages_class_name(second)};
  const pl_ir_attribute attributes[] = {pl_ir_names("classes", 2, classes), pl_ir_text("tag", tag)};
  int32_t value = pl_laying_value(part, op->first_output);
  const char *name = part->from->values[op->first_output].name;
  const pl_ir_type type = part->to->values[value].type;
  int32_t sum = pl_ir_op_add(own->own->to, part->to,
                             &(pl_ir_making){.row = pl_ir_row_of("sum_classes"),
                                             .n_inputs = 1,
                                             .inputs = &value,
                                             .n_outputs = 1,
                                             .output_names = &name,
                                             .output_types = &type,
                                             .n_attributes = 2,
                                             .attributes = attributes,
                                             .callee = PL_IR_NONE,
                                             .reason = reason});
  if (sum == PL_IR_NONE) return no_memory(error);
  pl_laying_set(part, op->first_output, sum);
  return PL_OK;
}

/* The embedding's update where the head is on another stage: the two gradients of the table are added up. `whole`: with
 * the embedding's other parameters, which the head's stage does not have. */
static pl_code tied_update(pl_stages *own, int32_t function, bool whole, int32_t other, int32_t mine, int32_t *made,
                           pl_error *error) {
  pl_partitioning *p = own->own;
  const pl_ir_function *from = p->from->functions[function];
  pl_ir_function *to = PL_TAKE(p->to->arena, pl_ir_function, 1);
  if (to != NULL) to->name = pl_arena_printf(p->to->arena, "%s.stage%d", from->name, mine);
  pl_laying part;
  PL_TRY(pl_laying_init(&part, p, from, to, error));
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    bool mine_too = whole || (op->path != NULL ? strcmp(op->path, table) == 0 : op->n_inputs > 0);
    for (int32_t k = 0; k < op->n_inputs; k++)
      mine_too = mine_too && pl_laying_value(&part, op->inputs[k]) != PL_IR_NONE;
    if (!mine_too) continue;
    PL_TRY(pl_laying_op(&part, op, error));
    bool reads = op->path != NULL && pl_ir_op_is(op, "gradient") && strcmp(op->path, table) == 0;
    if (!reads) continue;
    PL_TRY(add_up(own, &part, op, mine < other ? mine : other, mine < other ? other : mine, table,
                  "tied: head and embedding have one table", error));
  }
  *made = pl_ir_function_append(p->to, to);
  return *made != PL_IR_NONE ? PL_OK : no_memory(error);
}

/* The update of what two stages have a copy of each: the gradients of both are added up. */
static pl_code copied_update(pl_stages *own, int32_t function, int32_t stage, int32_t *made, pl_error *error) {
  pl_partitioning *p = own->own;
  const pl_ir_function *from = p->from->functions[function];
  int32_t other = own->plan->schedule.pp - 1 - stage, first = stage < other ? stage : other;
  const char *name = pl_arena_printf(p->to->arena, "%s.copies%d", from->name, first);
  if (name == NULL) return no_memory(error);
  *made = pl_ir_function_find(p->to, name);
  if (*made != PL_IR_NONE) return PL_OK;
  pl_ir_function *to = PL_TAKE(p->to->arena, pl_ir_function, 1);
  if (to != NULL) to->name = name;
  pl_laying part;
  PL_TRY(pl_laying_init(&part, p, from, to, error));
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    PL_TRY(pl_laying_op(&part, op, error));
    if (op->path != NULL && pl_ir_op_is(op, "gradient"))
      PL_TRY(add_up(own, &part, op, first, other > stage ? other : stage, op->path, "two copies of the model", error));
  }
  *made = pl_ir_function_append(p->to, to);
  return *made != PL_IR_NONE ? PL_OK : no_memory(error);
}

static void call_update(pl_stages *own, pl_ir_function *to, int32_t callee, const char *instance) {
  pl_ir_op_add(own->own->to, to, &(pl_ir_making){.row = pl_ir_row_of("call"), .path = instance, .callee = callee});
}

pl_code pl_stages_update(pl_stages *own, int32_t update, int32_t stage, int32_t *function, pl_error *error) {
  pl_partitioning *p = own->own;
  const pl_ir_function *from = p->from->functions[update];
  pl_ir_function *to = PL_TAKE(p->to->arena, pl_ir_function, 1);
  if (to == NULL) return no_memory(error);
  to->name = pl_arena_printf(p->to->arena, "update%d", stage);
  int32_t head = own->other, embedding = pl_stages_stage_of_module(own, "embedding");
  bool tied = own->tied && head != embedding && !own->twice; /* with two copies both of these stages have both */
  if (tied && own->plan->fixed_axes != NULL)
    return pl_fail(error, PL_UNSUPPORTED,
                   "the embedding's table is read on another stage too: programs add up its gradients only where all "
                   "stages have as many devices");
  for (int32_t i = 0; i < from->n_ops; i++) {
    const pl_ir_op *op = &from->ops[i];
    if (op->callee == PL_IR_NONE)
      return pl_fail(error, PL_UNSUPPORTED, "@%s: only calls can be given to stages", from->name);
    int32_t at = pl_stages_stage_of(own, pl_stages_chunk_of_call(own, p->from, op)), made;
    bool of_table = tied && strcmp(op->path, "embedding") == 0;
    if (of_table && (stage == embedding || stage == head)) {
      PL_TRY(
          tied_update(own, op->callee, stage == embedding, stage == embedding ? head : embedding, stage, &made, error));
    } else if (own->twice && (at == stage || at == own->plan->schedule.pp - 1 - stage)) {
      PL_TRY(copied_update(own, op->callee, stage, &made, error));
    } else if (at == stage) {
      PL_TRY(pl_partition_function(p, op->callee, &made, error));
    } else {
      continue;
    }
    call_update(own, to, made, op->path);
  }
  *function = pl_ir_function_append(p->to, to);
  return *function != PL_IR_NONE && !p->to->arena->failed ? PL_OK : no_memory(error);
}
