/* See workloads/language/ir_alike.h. */
#include "workloads/language/ir_alike.h"

#include <string.h>

#include "workloads/language/ir_table.h"

enum { FUNCTIONS_OF_CHUNK = 3 };

/* Of two calls. */
typedef struct path_pair {
  const char *first, *second;
} path_pair;

typedef struct comparison {
  const pl_ir_module *module;
  const bool *tells; /* per function: it, or one that it calls, sends or receives */
  int32_t send, receive, call;
  pl_arena *arena;
  pl_hash_index of_first, of_second; /* path_pair, of the two classes */
  int32_t n_dots;                    /* of all paths; -1: there is none yet */
} comparison;

static int32_t function_of(const pl_ir_chunk *chunk, int which) {
  return which == 0 ? chunk->forward : which == 1 ? chunk->backward : chunk->weights;
}

/* ---- ops ---- */

static int32_t count_dots(const char *path) {
  int32_t n = 0;
  for (const char *at = path; *at != 0; at++)
    n += *at == '.';
  return n;
}

static const path_pair *find_pair(const comparison *by, const char *path, bool of_first) {
  const pl_hash_index *index = of_first ? &by->of_first : &by->of_second;
  uint32_t probe = 0;
  const path_pair *pair;
  while ((pair = (const path_pair *)pl_hash_index_find(index, pl_hash_text(0, path), &probe)) != NULL)
    if (strcmp(of_first ? pair->first : pair->second, path) == 0) return pair;
  return NULL;
}

/* One to one, and none is the beginning of another: all have as many components. */
static bool paths_correspond(comparison *by, const char *a, const char *b) {
  const path_pair *known = find_pair(by, a, true);
  if (known != NULL) return strcmp(known->second, b) == 0;
  int32_t n_dots = count_dots(a);
  if (find_pair(by, b, false) != NULL || n_dots != count_dots(b) || (by->n_dots >= 0 && n_dots != by->n_dots))
    return false;
  path_pair *made = PL_TAKE(by->arena, path_pair, 1);
  if (made == NULL) return false;
  *made = (path_pair){a, b};
  by->n_dots = n_dots;
  return pl_hash_index_put(&by->of_first, pl_hash_text(0, a), made, by->arena) &&
         pl_hash_index_put(&by->of_second, pl_hash_text(0, b), made, by->arena);
}

static bool have_equal_numbers(const pl_ir_op *a, const pl_ir_op *b) {
  for (int32_t i = 0; i < a->n_attributes && a->n_attributes == b->n_attributes; i++)
    if (!pl_ir_name_equal(a->attributes[i].name, b->attributes[i].name) || a->attributes[i].kind != PL_IR_INTEGER ||
        b->attributes[i].kind != PL_IR_INTEGER || a->attributes[i].integer != b->attributes[i].integer)
      return false;
  return a->n_attributes == b->n_attributes;
}

static bool ops_correspond(comparison *by, const pl_ir_op *a, const pl_ir_op *b) {
  if (a->row != b->row || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->callee != b->callee ||
      (a->n_outputs > 0 && a->first_output != b->first_output))
    return false;
  for (int32_t i = 0; i < a->n_inputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  if (a->row == by->send || a->row == by->receive) return true;
  return a->row == by->call && !by->tells[a->callee] && a->path[0] != 0 && b->path[0] != 0 &&
         have_equal_numbers(a, b) && paths_correspond(by, a->path, b->path);
}

static bool functions_correspond(comparison *by, int32_t first, int32_t second) {
  if (first == PL_IR_NONE || second == PL_IR_NONE) return first == second;
  const pl_ir_function *a = by->module->functions[first], *b = by->module->functions[second];
  if (a->n_ops != b->n_ops || a->n_values != b->n_values || a->n_arguments + b->n_arguments > 0 ||
      a->n_results + b->n_results > 0)
    return false;
  for (int32_t i = 0; i < a->n_ops; i++)
    if (!ops_correspond(by, &a->ops[i], &b->ops[i])) return false;
  for (int32_t i = 0; i < a->n_values; i++)
    if (!pl_ir_type_equal(&a->values[i].type, &b->values[i].type)) return false;
  return true;
}

/* ---- classes ---- */

static bool classes_correspond(comparison *by, const pl_ir_class *a, const pl_ir_class *b) {
  by->of_first = by->of_second = (pl_hash_index){0};
  by->n_dots = -1;
  if (a->n_chunks != b->n_chunks || !functions_correspond(by, a->update, b->update)) return false;
  for (int32_t i = 0; i < a->n_chunks; i++)
    for (int which = 0; which < FUNCTIONS_OF_CHUNK; which++)
      if (!functions_correspond(by, function_of(&a->chunks[i], which), function_of(&b->chunks[i], which))) return false;
  return true;
}

/* Callees stand before callers. */
static const bool *find_who_tells(const pl_ir_module *module, pl_arena *arena) {
  bool *tells = PL_TAKE(arena, bool, module->n_functions + 1);
  for (int32_t f = 0; tells != NULL && f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops && !tells[f]; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      tells[f] = pl_ir_row_at(op->row)->effect == PL_IR_SENDS || (op->callee != PL_IR_NONE && tells[op->callee]);
    }
  return tells;
}

const int32_t *pl_ir_alike_take(const pl_ir_module *module, pl_arena *arena) {
  int32_t *like = PL_TAKE(arena, int32_t, module->n_classes + 1);
  comparison *by = PL_TAKE(arena, comparison, 1);
  if (like == NULL || by == NULL) return NULL;
  by->module = module;
  by->arena = arena;
  by->send = pl_ir_row_of("send");
  by->receive = pl_ir_row_of("receive");
  by->call = pl_ir_row_of("call");
  by->tells = module->n_classes > 2 ? find_who_tells(module, arena) : NULL;
  if (module->n_classes > 2 && by->tells == NULL) return NULL;
  for (int32_t c = 0; c < module->n_classes; c++) {
    like[c] = c;
    for (int32_t first = 0; first < c && like[c] == c && by->tells != NULL; first++)
      if (like[first] == first && classes_correspond(by, &module->classes[first], &module->classes[c])) like[c] = first;
  }
  return arena->failed ? NULL : like;
}

const pl_ir_op *pl_ir_alike_op(const pl_ir_module *module, const pl_ir_class *like, const pl_ir_class *class,
                               const pl_ir_telling *telling) {
  const char *row = telling->sends ? "send" : "receive", *other = telling->sends ? "to" : "from";
  for (int32_t c = 0; c < like->n_chunks; c++)
    for (int which = 0; which < FUNCTIONS_OF_CHUNK; which++) {
      int32_t function = function_of(&like->chunks[c], which);
      if (function == PL_IR_NONE) continue;
      const pl_ir_function *f = module->functions[function];
      for (int32_t i = 0; i < f->n_ops; i++)
        if (pl_ir_op_is(&f->ops[i], row) && strcmp(pl_ir_text_of(&f->ops[i], "tag"), telling->tag) == 0 &&
            strcmp(pl_ir_text_of(&f->ops[i], other), telling->other) == 0)
          return &module->functions[function_of(&class->chunks[c], which)]->ops[i];
    }
  return NULL;
}
