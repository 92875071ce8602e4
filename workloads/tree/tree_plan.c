/* See workloads/tree/tree_plan.h: one pass after the other. */
#include "workloads/tree/tree_plan.h"

#include <string.h>

#include "workloads/tree/tree_planning.h"

/* ---- modules ---- */

static pl_code put_module(pl_tree_planning *own, int32_t index) {
  pl_tree_module_plan *module = &own->plan->modules[index];
  if (pl_tree_plan_module(own->plan, module->name) != NULL)
    return pl_fail(own->error, PL_UNSUPPORTED, "%s: two calls of @%s are called %s", own->model->name, own->main->name,
                   module->name);
  return pl_hash_index_put(&own->plan->names, pl_hash_text(0, module->name), module, own->arena)
             ? PL_OK
             : pl_fail_memory(own->error, "a strategy tree");
}

static pl_code take_modules(pl_tree_planning *own) {
  own->calls = PL_TAKE(own->scratch, pl_tree_calling, own->main->n_ops + 1);
  own->makers = PL_TAKE(own->scratch, int32_t, own->main->n_values + 1);
  own->plan->modules = PL_TAKE(own->arena, pl_tree_module_plan, own->main->n_ops + 1);
  if (own->calls == NULL || own->makers == NULL || own->plan->modules == NULL)
    return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < own->main->n_values; i++)
    own->makers[i] = -1;
  for (int32_t i = 0; i < own->main->n_ops; i++) {
    const pl_ir_op *op = &own->main->ops[i];
    int32_t module = own->plan->n_modules;
    own->plan->n_visits++;
    if (op->callee == PL_IR_NONE) { /* of whom its operand is */
      for (int32_t k = 0; k < op->n_outputs && op->n_inputs > 0; k++)
        own->makers[op->first_output + k] = own->makers[op->inputs[0]];
      continue;
    }
    bool bare = op->path == NULL || op->path[0] == 0;
    own->calls[module].call = op;
    own->plan->modules[module] =
        (pl_tree_module_plan){.name = bare ? own->model->functions[op->callee]->name : op->path, .from = PL_IR_NONE};
    PL_TRY(put_module(own, module));
    for (int32_t k = 0; k < op->n_outputs; k++)
      own->makers[op->first_output + k] = module;
    own->plan->n_modules++;
  }
  return PL_OK;
}

static pl_code check_model(const pl_tree_planning *own) {
  for (int32_t i = 0; i < own->model->n_functions; i++)
    for (int32_t k = 0; own->model->functions[i] != own->main && k < own->model->functions[i]->n_ops; k++)
      if (own->model->functions[i]->ops[k].callee != PL_IR_NONE)
        return pl_fail(own->error, PL_UNSUPPORTED, "@%s calls functions: a strategy tree is about the calls of @%s",
                       own->model->functions[i]->name, own->main->name);
  return PL_OK;
}

/* ---- all of it ---- */

static pl_code take(pl_tree_planning *own) {
  PL_TRY(check_model(own));
  PL_TRY(take_modules(own));
  PL_TRY(pl_tree_match(own));
  PL_TRY(pl_tree_check_pieces(own));
  PL_TRY(pl_tree_propagate(own));
  PL_TRY(pl_tree_take_stages(own));
  PL_TRY(pl_tree_take_mesh(own));
  PL_TRY(pl_tree_specialise(own));
  return pl_tree_check_fit(own);
}

pl_code pl_tree_plan_take(const pl_strategy_tree *tree, const pl_ir_module *model, pl_arena *arena, pl_tree_plan *plan,
                          pl_error *error) {
  PL_ASSERT(model->level == PL_IR_MODEL && model->n_classes == 1 && model->classes[0].n_chunks == 1);
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  *plan = (pl_tree_plan){.tree = tree, .n_microbatches = model->n_microbatches};
  pl_tree_planning own = {.tree = tree,
                          .model = model,
                          .main = model->functions[model->classes[0].chunks[0].forward],
                          .plan = plan,
                          .arena = arena,
                          .scratch = &scratch,
                          .error = error};
  pl_code code = take(&own);
  pl_arena_release(&scratch);
  return code;
}

pl_code pl_tree_microbatches(const pl_strategy_tree *tree, int64_t gbs, int32_t *n, pl_error *error) {
  const pl_tree_schedule *said = &tree->nodes[0].schedule;
  int64_t wanted = said->microbatches > 0 ? said->microbatches : 1;
  *n = (int32_t)wanted;
  if (gbs % wanted == 0) return PL_OK;
  if (wanted > gbs)
    return pl_tree_fail(said->microbatches_at, error, "%lld microbatches of a batch of %lld: at most that many",
                        (long long)wanted, (long long)gbs);
  int64_t below = wanted, above = wanted;
  while (gbs % below != 0)
    below--;
  while (gbs % above != 0)
    above++;
  return pl_tree_fail(said->microbatches_at, error, "%lld microbatches do not divide a batch of %lld; %lld and %lld do",
                      (long long)wanted, (long long)gbs, (long long)below, (long long)above);
}

/* ---- asking ---- */

pl_code pl_tree_check_devices(const pl_tree_plan *plan, uint32_t n_devices, pl_error *error) {
  uint32_t needed = plan->places != NULL ? (uint32_t)plan->n_places : pl_ir_mesh_devices(&plan->mesh);
  const pl_tree_node *nodes = plan->tree->nodes;
  pl_tree_place place = pl_tree_is_said(plan->tree->mesh_at) ? plan->tree->mesh_at : nodes[0].place;
  for (int32_t i = 0; plan->places != NULL && i < plan->n_places; i++)
    if (plan->places[i] >= needed) needed = plan->places[i] + 1; /* some are left out */
  if (needed <= n_devices) return PL_OK;
  for (int32_t i = 0; i < plan->tree->n_nodes; i++)
    for (int32_t r = 0; nodes[i].has_devices && r < nodes[i].n_ranges; r++)
      if (nodes[i].ranges[r].last >= n_devices)
        return pl_tree_fail(nodes[i].devices_at, error, "device %lld is missing: the platform has %u, 0 to %u",
                            (long long)(nodes[i].ranges[r].first > n_devices ? nodes[i].ranges[r].first : n_devices),
                            n_devices, n_devices - 1);
  return pl_tree_fail(place, error, "the tree is for %u devices (%d %s of %u); the platform has %u", needed,
                      plan->schedule.pp, plan->schedule.pp == 1 ? "stage" : "stages",
                      needed / (uint32_t)plan->schedule.pp, n_devices);
}

int32_t pl_tree_plan_function(const pl_tree_plan *plan, const char *name) {
  static const char *const endings[] = {".backward", ".weights", ".update"};
  char stem[256];
  size_t length = strlen(name);
  if (length >= sizeof(stem)) return PL_IR_NONE;
  memcpy(stem, name, length + 1);
  for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
    size_t ending = strlen(endings[i]);
    if (length > ending && strcmp(stem + length - ending, endings[i]) == 0) stem[length - ending] = 0;
  }
  return pl_ir_function_find(&plan->program, stem);
}

const pl_tree_module_plan *pl_tree_plan_module(const pl_tree_plan *plan, const char *name) {
  uint32_t probe = 0;
  for (const pl_tree_module_plan *at; (at = pl_hash_index_find(&plan->names, pl_hash_text(0, name), &probe)) != NULL;)
    if (strcmp(at->name, name) == 0) return at;
  return NULL;
}

/* Of parameters, gradients and state, the one that reads the parameter. */
static int32_t op_of_path(const pl_ir_function *model, const char *path) {
  for (int32_t i = 0; i < model->n_ops; i++)
    if (model->ops[i].path != NULL && strcmp(model->ops[i].path, path) == 0) return i;
  return PL_IR_NONE;
}

int32_t pl_tree_plan_op(const pl_tree_plan *plan, int32_t function, const pl_ir_function *from, const pl_ir_op *op) {
  const pl_ir_function *model = plan->program.functions[function];
  int32_t found = op->path != NULL ? op_of_path(model, op->path) : PL_IR_NONE;
  if (found != PL_IR_NONE) return found;
  const char *value = op->origin != NULL  ? op->origin
                      : op->n_outputs > 0 ? from->values[op->first_output].name
                                          : op->path;
  int32_t at = value != NULL ? pl_ir_value_find(model, value) : PL_IR_NONE;
  return at != PL_IR_NONE ? model->values[at].op : PL_IR_NONE;
}
