/* See workloads/language/ir_parameters.h. */
#include "workloads/language/ir_parameters.h"

#include <string.h>

#include "core/base/hash_index.h"
#include "workloads/language/ir_table.h"

const char *pl_ir_path_join(pl_arena *arena, const char *prefix, const char *last) {
  if (prefix[0] == '\0') return pl_arena_strdup(arena, last);
  if (last[0] == '\0') return pl_arena_strdup(arena, prefix);
  size_t n_prefix = strlen(prefix), n_last = strlen(last);
  char *path = pl_arena_take(arena, n_prefix + 1 + n_last + 1, 1);
  if (path == NULL) return NULL;
  memcpy(path, prefix, n_prefix);
  path[n_prefix] = '.';
  memcpy(path + n_prefix + 1, last, n_last);
  path[n_prefix + 1 + n_last] = '\0';
  return path;
}

typedef struct walk {
  const pl_ir_module *module;
  pl_arena *arena;
  pl_hash_index paths;
  pl_ir_parameter_list *list;
  int32_t param; /* row */
} walk;

static bool is_known(const walk *in, uint64_t hash, const char *path) {
  uint32_t probe = 0;
  for (const char *known; (known = (const char *)pl_hash_index_find(&in->paths, hash, &probe)) != NULL;)
    if (strcmp(known, path) == 0) return true;
  return false;
}

static bool make_room(walk *in) {
  pl_ir_parameter_list *list = in->list;
  void *items = pl_arena_grown(in->arena, list->items, (size_t)list->n, 1, sizeof *list->items, &list->room);
  if (items == NULL) return false;
  list->items = (pl_ir_parameter *)items;
  return true;
}

static bool note(walk *in, int32_t function, int32_t op, const char *instance) {
  const char *path = pl_ir_path_join(in->arena, instance, in->module->functions[function]->ops[op].path);
  if (path == NULL) return false;
  uint64_t hash = pl_hash_characters(0, path, strlen(path));
  if (is_known(in, hash, path)) return true;
  if (!make_room(in) || !pl_hash_index_put(&in->paths, hash, path, in->arena)) return false;
  in->list->items[in->list->n++] =
      (pl_ir_parameter){.path = path, .instance = instance, .function = function, .op = op};
  return true;
}

/* Callees come before callers: the depth is that of the calls. */
static bool visit(walk *in, int32_t function, const char *instance) {
  const pl_ir_function *is = in->module->functions[function];
  for (int32_t i = 0; i < is->n_ops; i++) {
    const pl_ir_op *op = &is->ops[i];
    if (op->row == in->param && !note(in, function, i, instance)) return false;
    if (op->callee == PL_IR_NONE) continue;
    PL_ASSERT(op->callee >= 0 && op->callee < function);
    const char *inner = pl_ir_path_join(in->arena, instance, op->path != NULL ? op->path : "");
    if (inner == NULL || !visit(in, op->callee, inner)) return false;
  }
  return true;
}

/* Of calls again and again. */
static uint32_t count(const walk *in, int32_t function) {
  const pl_ir_function *is = in->module->functions[function];
  uint32_t n = 0;
  for (int32_t i = 0; i < is->n_ops; i++)
    n += is->ops[i].callee != PL_IR_NONE ? count(in, is->ops[i].callee) : is->ops[i].row == in->param;
  return n;
}

enum { MOST_EXPECTED = 1 << 14 }; /* calls may be of the same parameters again and again */

/* Room for all, at once. */
static bool expect(walk *in, uint32_t n) {
  if (n > MOST_EXPECTED) n = MOST_EXPECTED;
  in->list->items = PL_TAKE(in->arena, pl_ir_parameter, n + 1);
  in->list->room = n + 1;
  return in->list->items != NULL && pl_hash_index_expect(&in->paths, n + 1, in->arena);
}

pl_code pl_ir_parameters_of(const pl_ir_module *module, int32_t function, pl_arena *arena, pl_ir_parameter_list *list,
                            pl_error *error) {
  *list = (pl_ir_parameter_list){0};
  walk in = {.module = module, .arena = arena, .list = list, .param = pl_ir_row_of("param")};
  return expect(&in, count(&in, function)) && visit(&in, function, "")
             ? PL_OK
             : pl_fail_memory(error, "the parameters of a program");
}

double pl_ir_parameters_count(const pl_ir_module *module, int32_t function, pl_arena *arena) {
  pl_ir_parameter_list list;
  double n = 0;
  if (pl_ir_parameters_of(module, function, arena, &list, NULL) != PL_OK) return 0;
  for (int32_t i = 0; i < list.n; i++) {
    const pl_ir_function *function_of = module->functions[list.items[i].function];
    n += pl_ir_type_elements(&function_of->values[function_of->ops[list.items[i].op].first_output].type);
  }
  return n;
}
