/* See workloads/compile/ir_graph_state.h: parameters that are there in a backward pass since the forward pass gathered
 * them. DeepSpeed lets go of none that is used again within `reuse_parameters` others, each counted as often as it is
 * used in between: forward, backward, and where a function makes forward values again of it. As of a tuple's blocks
 * (workloads/program/program_passes.c); others keep the last unit (`keeps_last`); not in pipelines, where other
 * microbatches come in between.
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

typedef struct use {
  const char *path;
  double used;   /* own->used, behind the function that used it forward */
  uint32_t unit; /* of the forward pass */
} use;

static bool keeps_some(const pl_ir_graphing *own) {
  const pl_ir_class *class = own->now->class;
  const bool some = own->framework->gathers.reuse_parameters > 0 || own->framework->gathers.keeps_last;
  return some && own->module->level == PL_IR_KERNELS && own->module->n_classes == 1 && class->n_chunks == 1 &&
         class->chunks[0].weights == PL_IR_NONE && own->microbatch != PL_IR_NONE;
}

/* Of a path of the parameter's own; NULL: no forward pass has used it. */
static use *find_use(const pl_ir_graphing *own, const char *path) {
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(&own->uses, pl_hash_text(11, path), &probe)) != NULL;) {
    use *known = (use *)(uintptr_t)found; /* ours */
    if (strcmp(known->path, path) == 0) return known;
  }
  return NULL;
}

static const char *path_of(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *gather) {
  return pl_ir_graph_path(own, f->ops[f->values[gather->inputs[0]].op].path);
}

bool pl_ir_graph_is_kept(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  if (own->module->level == PL_IR_KERNELS && pl_ir_graph_stays_whole(own->framework, f, op)) return true;
  if (own->category != PL_CATEGORY_BACKWARD || !keeps_some(own) || !pl_ir_graph_gathers_param(f, op)) return false;
  const char *path = path_of(own, f, op);
  const use *last = path != NULL ? find_use(own, path) : NULL;
  if (last == NULL) return false;
  if (own->framework->gathers.keeps_last) return last->unit == own->units_forward;
  return own->used - last->used < own->framework->gathers.reuse_parameters;
}

/* Whether a forward value is made again of what the op gives. */
static bool makes_again(const pl_ir_function *f, const bool *again, const pl_ir_op *op) {
  for (int32_t i = 0; i < f->n_ops; i++)
    for (int32_t k = 0; again[i] && k < f->ops[i].n_inputs; k++)
      if (f->ops[i].inputs[k] == op->first_output) return true;
  return false;
}

static bool note_use(pl_ir_graphing *own, const char *path, uint32_t unit) {
  use *known = path != NULL ? find_use(own, path) : NULL;
  if (known == NULL) {
    known = path != NULL ? PL_TAKE(own->arena, use, 1) : NULL;
    if (known == NULL || !pl_hash_index_put(&own->uses, pl_hash_text(11, path), known, own->arena)) return false;
    known->path = path;
  }
  known->used = own->used;
  known->unit = unit;
  return true;
}

void pl_ir_graph_begin_uses(pl_ir_graphing *own, pl_ir_step_kind kind) {
  own->used = kind == PL_IR_STEP_F ? 0 : own->used_forward;
}

pl_code pl_ir_graph_use_params(pl_ir_graphing *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  bool forward = own->category == PL_CATEGORY_FORWARD;
  if (!keeps_some(own)) return PL_OK;
  const bool *again = forward ? NULL : pl_ir_graph_again(own, function);
  if (!forward && again == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t i = 0; i < f->n_ops; i++) {
    if (!pl_ir_graph_gathers_param(f, &f->ops[i])) continue;
    double elements = pl_ir_type_local_elements(&own->module->mesh, &f->values[f->ops[i].first_output].type);
    own->used += again != NULL && makes_again(f, again, &f->ops[i]) ? 2 * elements : elements;
  }
  if (!forward) return PL_OK;
  own->used_forward = own->used;
  own->units_forward = own->n_units;
  /* A norm by itself is of the unit that comes next. */
  uint32_t unit = own->n_units + !own->doings[function].gathers_matrices;
  for (int32_t i = 0; i < f->n_ops; i++)
    if (pl_ir_graph_gathers_param(f, &f->ops[i]) && !note_use(own, path_of(own, f, &f->ops[i]), unit))
      return pl_ir_graph_no_memory(own);
  return PL_OK;
}
