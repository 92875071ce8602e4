/* See workloads/tree/tree_planning.h: a function for each way in which its calls are laid out and recomputed. The first
 * way keeps its name, so that a program in which all calls are alike stays as it is. */
#include <string.h>

#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_planning.h"

typedef struct variant {
  int32_t of;     /* function of the model */
  int32_t module; /* the first that calls it so */
  int32_t made;
  struct variant *next;
} variant;

typedef struct specialising {
  pl_tree_planning *own;
  variant **variants;  /* per function of the model */
  variant **of_module; /* per module */
} specialising;

static int32_t leaf_of(const pl_tree_planning *own, int32_t spec) {
  return own->specs[spec].leaf;
}

static uint8_t recompute_of(const pl_tree_planning *own, int32_t module) {
  int32_t node = own->calls[module].settings.node[PL_TREE_KEY_RECOMPUTE];
  return node >= 0 ? (uint8_t)pl_tree_node_at(own, node)->schedule.recompute : (uint8_t)PL_RECOMPUTE_NONE;
}

static int32_t leaf_of_op(const pl_tree_planning *own, int32_t module, int32_t op) {
  const pl_tree_calling *call = &own->calls[module];
  return leaf_of(own, call->ops != NULL ? call->ops[op].leaf : call->spec);
}

static uint8_t again_of(const pl_tree_planning *own, int32_t module, int32_t op) {
  const pl_tree_calling *call = &own->calls[module];
  return call->ops != NULL ? call->ops[op].again : PL_RECOMPUTE_OP_AS_FUNCTION;
}

static bool is_named(const pl_tree_planning *own, int32_t module, int32_t op) {
  const pl_tree_calling *call = &own->calls[module];
  return call->ops != NULL && call->ops[op].origin == PL_TREE_EXPLICIT;
}

static bool alike(pl_tree_planning *own, int32_t a, int32_t b) {
  int32_t n = pl_tree_callee(own, a)->n_ops;
  if (leaf_of(own, own->calls[a].spec) != leaf_of(own, own->calls[b].spec)) return false;
  if (recompute_of(own, a) != recompute_of(own, b)) return false;
  if (pl_tree_pieces_of(own, a) != pl_tree_pieces_of(own, b)) return false;
  if (own->calls[a].ops == NULL && own->calls[b].ops == NULL) return true;
  own->plan->n_visits += n;
  for (int32_t i = 0; i < n; i++)
    if (leaf_of_op(own, a, i) != leaf_of_op(own, b, i) || is_named(own, a, i) != is_named(own, b, i) ||
        again_of(own, a, i) != again_of(own, b, i))
      return false;
  return true;
}

static pl_code take_variants(specialising *all) {
  pl_tree_planning *own = all->own;
  for (int32_t module = 0; module < own->plan->n_modules; module++) {
    int32_t of = own->calls[module].call->callee;
    variant **at = &all->variants[of];
    while (*at != NULL && !alike(own, (*at)->module, module))
      at = &(*at)->next;
    if (*at == NULL) {
      if ((*at = PL_TAKE(own->scratch, variant, 1)) == NULL) return pl_fail_memory(own->error, "a strategy tree");
      **at = (variant){.of = of, .module = module};
    }
    all->of_module[module] = *at;
  }
  return PL_OK;
}

/* ---- the program ---- */

static const char *variant_name(const pl_tree_planning *own, const char *of, int32_t number) {
  if (number == 1) return of;
  for (;; number++) {
    const char *name = pl_arena_printf(own->arena, "%s_%d", of, number);
    if (name == NULL || pl_ir_function_find(own->model, name) == PL_IR_NONE) return name;
  }
}

/* It shares ops, and where it runs on whole batches values, with the model's. */
static pl_code add_function(pl_tree_planning *own, const variant *way, const char *name, int32_t *index) {
  pl_ir_function *made = PL_TAKE(own->arena, pl_ir_function, 1);
  if (made == NULL || name == NULL) return pl_fail_memory(own->error, "a strategy tree");
  *made = *own->model->functions[way->of];
  made->name = name;
  int64_t pieces = pl_tree_pieces_of(own, way->module);
  if (pieces > 1) PL_TRY(pl_tree_cut_function(own, way->module, pieces, made));
  *index = pl_ir_function_append(&own->plan->program, made);
  return *index != PL_IR_NONE ? PL_OK : pl_fail_memory(own->error, "a strategy tree");
}

static pl_code plan_function(specialising *all, const variant *way) {
  pl_tree_planning *own = all->own;
  pl_tree_function_plan *made = &own->plan->functions[way->made];
  const pl_ir_function *function = own->model->functions[way->of];
  const pl_tree_op_plan *from = own->calls[way->module].ops;
  made->leaf = leaf_of(own, own->calls[way->module].spec);
  made->recompute = recompute_of(own, way->module);
  made->module = way->module;
  made->pieces = pl_tree_pieces_of(own, way->module);
  made->ops = PL_TAKE(own->arena, pl_tree_op_plan, function->n_ops + 1);
  if (made->ops == NULL) return pl_fail_memory(own->error, "a strategy tree");
  own->plan->n_visits += function->n_ops;
  for (int32_t i = 0; i < function->n_ops; i++) {
    made->ops[i] = from != NULL ? from[i] : (pl_tree_op_plan){.from = PL_IR_NONE};
    made->ops[i].leaf = leaf_of_op(own, way->module, i);
    own->plan->named_ops = own->plan->named_ops || made->ops[i].leaf != made->leaf || is_named(own, way->module, i);
  }
  return PL_OK;
}

/* @main with its calls as they are now. */
static pl_code write_calls(specialising *all, pl_ir_function *made) {
  pl_tree_planning *own = all->own;
  pl_ir_op *ops = PL_TAKE(own->arena, pl_ir_op, own->main->n_ops + 1);
  if (ops == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0, module = 0; i < own->main->n_ops; i++) {
    ops[i] = own->main->ops[i];
    if (ops[i].callee != PL_IR_NONE) ops[i].callee = own->plan->modules[module++].function;
  }
  *made = *own->main;
  made->ops = ops;
  made->room_ops = 0;
  return PL_OK;
}

static pl_code add_main(specialising *all) {
  pl_tree_planning *own = all->own;
  pl_ir_function *made = PL_TAKE(own->arena, pl_ir_function, 1);
  int32_t *callees = PL_TAKE(own->scratch, int32_t, own->plan->n_modules + 1), *module_of = NULL;
  if (made == NULL || callees == NULL) return pl_fail_memory(own->error, "a strategy tree");
  bool pieces = false;
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    own->plan->modules[i].function = callees[i] = all->of_module[i]->made;
    pieces = pieces || pl_tree_pieces_of(own, i) > 1;
  }
  made->name = own->main->name;
  PL_TRY(pieces ? pl_tree_write_pieces(own, callees, made, &module_of) : write_calls(all, made));
  int32_t index = pl_ir_function_append(&own->plan->program, made);
  if (index == PL_IR_NONE) return pl_fail_memory(own->error, "a strategy tree");
  pl_tree_function_plan *plan = &own->plan->functions[index];
  *plan = (pl_tree_function_plan){.leaf = own->plan->n_modules > 0 ? leaf_of(own, own->calls[0].spec) : 0};
  plan->ops = PL_TAKE(own->arena, pl_tree_op_plan, made->n_ops + 1);
  if (plan->ops == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < made->n_ops; i++) {
    int32_t leaf = module_of != NULL ? leaf_of(own, own->calls[module_of[i]].spec) : plan->leaf;
    plan->ops[i] = (pl_tree_op_plan){.leaf = leaf, .from = PL_IR_NONE};
    own->plan->named_ops = own->plan->named_ops || leaf != plan->leaf;
  }
  return PL_OK;
}

static pl_code take_class(pl_tree_planning *own) {
  pl_ir_module *program = &own->plan->program;
  program->classes = PL_TAKE(own->arena, pl_ir_class, 1);
  pl_ir_chunk *chunk = PL_TAKE(own->arena, pl_ir_chunk, 1);
  if (program->classes == NULL || chunk == NULL) return pl_fail_memory(own->error, "a strategy tree");
  program->classes[0] = own->model->classes[0];
  *chunk = own->model->classes[0].chunks[0];
  chunk->forward = program->n_functions - 1;
  program->classes[0].chunks = chunk;
  program->n_classes = 1;
  return PL_OK;
}

static pl_code write_program(specialising *all) {
  pl_tree_planning *own = all->own;
  int32_t main = own->model->classes[0].chunks[0].forward, n = 0;
  pl_ir_module_init(&own->plan->program, own->arena, own->model->name, PL_IR_MODEL);
  own->plan->program.n_microbatches = own->model->n_microbatches;
  own->plan->program.source = own->model->source;
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    n++;
  own->plan->functions = PL_TAKE(own->arena, pl_tree_function_plan, n + own->model->n_functions + 1);
  if (own->plan->functions == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < own->model->n_functions; i++) {
    int32_t number = 1;
    if (i == main) continue;
    for (variant *way = all->variants[i]; way != NULL; way = way->next) {
      const char *name = variant_name(own, own->model->functions[i]->name, number++);
      PL_TRY(add_function(own, way, name, &way->made));
      PL_TRY(plan_function(all, way));
    }
  }
  PL_TRY(add_main(all));
  own->plan->n_functions = own->plan->program.n_functions;
  return take_class(own);
}

pl_code pl_tree_specialise(pl_tree_planning *own) {
  specialising all = {.own = own};
  all.variants = PL_TAKE(own->scratch, variant *, own->model->n_functions + 1);
  all.of_module = PL_TAKE(own->scratch, variant *, own->plan->n_modules + 1);
  if (all.variants == NULL || all.of_module == NULL) return pl_fail_memory(own->error, "a strategy tree");
  PL_TRY(take_variants(&all));
  return write_program(&all);
}
