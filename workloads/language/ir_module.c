/* See workloads/language/ir_module.h. */
#include "workloads/language/ir_module.h"

#include <string.h>

const char *const pl_ir_level_names[] = {"model", "training", "distributed", "kernels", NULL};

const char *const pl_ir_token_orders[] = {"as-made", "delayed", "shared", NULL};

void pl_ir_module_init(pl_ir_module *module, pl_arena *arena, const char *name, pl_ir_level level) {
  *module = (pl_ir_module){.level = level, .launcher = {.overlap = PL_IR_NONE}, .n_microbatches = 1, .arena = arena};
  module->name = pl_arena_strdup(arena, name);
}

void pl_ir_module_init_like(pl_ir_module *module, pl_arena *arena, const pl_ir_module *like, pl_ir_level level) {
  pl_ir_module_init(module, arena, like->name, level);
  module->source = like->source;
  module->launcher = like->launcher;
  module->mesh = like->mesh;
  module->places = like->places;
  module->n_places = like->n_places;
  module->n_microbatches = like->n_microbatches;
  module->fewer = like->fewer;
  module->n_fewer = like->n_fewer;
}

static void *copied(pl_arena *arena, const void *from, int32_t n, size_t size) {
  return n == 0 ? NULL : pl_arena_copy(arena, from, (size_t)n * size, _Alignof(max_align_t));
}

/* ---- names ---- */

/* What an index of names finds. */
typedef struct named {
  const char *name;
  int32_t at;          /* the function or value of this name */
  int32_t last_number; /* name.2 ... name.last_number have been given out */
} named;

static uint64_t hash_of(const char *name) {
  return pl_hash_characters(0, name, strlen(name));
}

static named *find_hashed(const pl_hash_index *names, uint64_t hash, const char *name) {
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(names, hash, &probe)) != NULL;) {
    named *record = (named *)(uintptr_t)found; /* ours: the index hands out what was put in */
    if (strcmp(record->name, name) == 0) return record;
  }
  return NULL;
}

static named *find_named(const pl_hash_index *names, const char *name) {
  return find_hashed(names, hash_of(name), name);
}

static bool put_hashed(pl_hash_index *names, uint64_t hash, const char *name, int32_t at, pl_arena *arena) {
  named *record = pl_arena_take(arena, sizeof *record, _Alignof(named));
  if (record == NULL) return false;
  *record = (named){.name = name, .at = at, .last_number = 1};
  return pl_hash_index_put(names, hash, record, arena);
}

int32_t pl_ir_function_append(pl_ir_module *module, pl_ir_function *function) {
  pl_ir_function **functions =
      (pl_ir_function **)pl_arena_grown(module->arena, (const void *)module->functions, (size_t)module->n_functions, 1,
                                        sizeof(*functions), &module->room_functions);
  if (functions == NULL || function->name == NULL) return PL_IR_NONE;
  module->functions = functions;
  if (find_named(&module->function_names, function->name) == NULL &&
      !put_hashed(&module->function_names, hash_of(function->name), function->name, module->n_functions, module->arena))
    return PL_IR_NONE;
  module->functions[module->n_functions] = function;
  return module->n_functions++;
}

pl_ir_function *pl_ir_function_add(pl_ir_module *module, const char *name) {
  pl_ir_function *function = PL_TAKE(module->arena, pl_ir_function, 1);
  if (function == NULL) return NULL;
  function->name = pl_arena_strdup(module->arena, name);
  return pl_ir_function_append(module, function) != PL_IR_NONE ? function : NULL;
}

int32_t pl_ir_function_find(const pl_ir_module *module, const char *name) {
  const named *found = find_named(&module->function_names, name);
  return found != NULL ? found->at : PL_IR_NONE;
}

/* ---- values ---- */

int32_t pl_ir_value_find(const pl_ir_function *function, const char *name) {
  const named *found = find_named(&function->names, name);
  return found != NULL ? found->at : PL_IR_NONE;
}

/* `name`, or the first of name.2, name.3 ... that is free, and its hash. */
static const char *free_name(pl_ir_module *module, const pl_ir_function *function, const char *name, uint64_t *hash) {
  *hash = hash_of(name);
  named *taken = find_hashed(&function->names, *hash, name);
  if (taken == NULL) return pl_arena_strdup(module->arena, name);
  for (;;) {
    const char *numbered = pl_arena_printf(module->arena, "%s.%d", name, ++taken->last_number);
    if (numbered == NULL) return NULL;
    *hash = hash_of(numbered);
    if (find_hashed(&function->names, *hash, numbered) == NULL) return numbered;
  }
}

/* Room for one more behind `n`. Values and ops are large, so none is cleared before it is there, and most functions
 * get room for all of theirs at once. The array, longer; NULL: no memory. */
enum { FIRST_ROOM = 64 };
static void *with_room(pl_arena *arena, void *array, int32_t n, size_t size, uint32_t *room) {
  if ((uint32_t)n < *room) return array;
  uint32_t wanted = *room > 0 ? 2 * *room : FIRST_ROOM;
  while (wanted <= (uint32_t)n) /* of a function that another one was made from */
    wanted *= 2;
  void *made = pl_arena_take(arena, wanted * size, _Alignof(max_align_t));
  if (made == NULL) return NULL;
  if (n > 0) memcpy(made, array, (size_t)n * size);
  *room = wanted;
  return made;
}

void pl_ir_function_expect(pl_ir_module *module, pl_ir_function *function, int32_t n_ops, int32_t n_values) {
  PL_ASSERT(function->n_ops == 0 && function->n_values == 0);
  pl_ir_op *ops = pl_arena_take(module->arena, ((size_t)n_ops + 1) * sizeof *ops, _Alignof(max_align_t));
  pl_ir_value *values = pl_arena_take(module->arena, ((size_t)n_values + 1) * sizeof *values, _Alignof(max_align_t));
  if (ops == NULL || values == NULL) return; /* the arena knows */
  function->ops = ops;
  function->values = values;
  function->room_ops = (uint32_t)n_ops + 1;
  function->room_values = (uint32_t)n_values + 1;
  pl_hash_index_expect(&function->names, (uint32_t)n_values + 1, module->arena);
}

static int32_t value_add(pl_ir_module *module, pl_ir_function *function, const char *name, const pl_ir_type *type,
                         int32_t op) {
  uint64_t hash;
  const char *own = free_name(module, function, name, &hash);
  pl_ir_value *values = (pl_ir_value *)with_room(module->arena, function->values, function->n_values, sizeof *values,
                                                 &function->room_values);
  if (own == NULL || values == NULL) return PL_IR_NONE;
  function->values = values;
  function->values[function->n_values] = (pl_ir_value){.name = own, .type = *type, .op = op};
  if (!put_hashed(&function->names, hash, own, function->n_values, module->arena)) return PL_IR_NONE;
  return function->n_values++;
}

int32_t pl_ir_argument(pl_ir_module *module, pl_ir_function *function, const char *name, const pl_ir_type *type) {
  PL_ASSERT(function->n_ops == 0);
  int32_t value = value_add(module, function, name, type, PL_IR_NONE);
  if (value != PL_IR_NONE) function->n_arguments++;
  return value;
}

void pl_ir_results_set(pl_ir_module *module, pl_ir_function *function, int32_t n, const int32_t *values) {
  function->results = (const int32_t *)copied(module->arena, values, n, sizeof(*values));
  function->n_results = function->results != NULL ? n : 0;
}

/* ---- ops ---- */

static const pl_ir_attribute *attributes_copied(pl_arena *arena, int32_t n, const pl_ir_attribute *attributes) {
  pl_ir_attribute *made = (pl_ir_attribute *)copied(arena, attributes, n, sizeof(*made));
  for (int32_t i = 0; made != NULL && i < n; i++) {
    if (made[i].kind == PL_IR_NAMES)
      made[i].names = (const pl_ir_name *)copied(arena, made[i].names, made[i].n_names, sizeof(pl_ir_name));
    if (made[i].kind == PL_IR_TEXT) made[i].text = pl_arena_strdup(arena, made[i].text);
  }
  return made;
}

pl_ir_making pl_ir_making_like(const pl_ir_function *from, const pl_ir_op *op, const char **names, pl_ir_type *types) {
  for (int32_t i = 0; i < op->n_outputs; i++) {
    names[i] = from->values[op->first_output + i].name;
    types[i] = from->values[op->first_output + i].type;
  }
  return (pl_ir_making){.row = op->row,
                        .n_inputs = op->n_inputs,
                        .n_outputs = op->n_outputs,
                        .n_attributes = op->n_attributes,
                        .attributes = op->attributes,
                        .output_names = names,
                        .output_types = types,
                        .path = op->path,
                        .reason = op->reason,
                        .origin = op->origin,
                        .callee = op->callee,
                        .place = op->place};
}

int32_t pl_ir_op_add(pl_ir_module *module, pl_ir_function *function, const pl_ir_making *making) {
  pl_arena *arena = module->arena;
  pl_ir_op *ops = (pl_ir_op *)with_room(arena, function->ops, function->n_ops, sizeof *ops, &function->room_ops);
  if (ops == NULL) return PL_IR_NONE;
  function->ops = ops;
  int32_t index = function->n_ops;
  ops[index] = (pl_ir_op){.row = (uint16_t)making->row,
                          .n_inputs = (uint16_t)making->n_inputs,
                          .n_outputs = (uint16_t)making->n_outputs,
                          .n_attributes = (uint16_t)making->n_attributes,
                          .inputs = (const int32_t *)copied(arena, making->inputs, making->n_inputs, sizeof(int32_t)),
                          .first_output = making->n_outputs > 0 ? function->n_values : PL_IR_NONE,
                          .attributes = attributes_copied(arena, making->n_attributes, making->attributes),
                          .path = making->path != NULL ? pl_arena_strdup(arena, making->path) : NULL,
                          .reason = making->reason != NULL ? pl_arena_strdup(arena, making->reason) : NULL,
                          .origin = making->origin != NULL ? pl_arena_strdup(arena, making->origin) : NULL,
                          .callee = making->callee,
                          .place = making->place};
  for (int32_t i = 0; i < making->n_outputs; i++) {
    const char *name = making->output_names != NULL ? making->output_names[i] : "v";
    if (value_add(module, function, name, &making->output_types[i], index) == PL_IR_NONE) return PL_IR_NONE;
  }
  function->n_ops++;
  return arena->failed ? PL_IR_NONE : function->ops[index].first_output;
}

/* ---- attributes ---- */

pl_ir_attribute pl_ir_integer(const char *name, int64_t value) {
  return (pl_ir_attribute){.name = pl_ir_name_of(name), .kind = PL_IR_INTEGER, .integer = value};
}

pl_ir_attribute pl_ir_real(const char *name, double value) {
  return (pl_ir_attribute){.name = pl_ir_name_of(name), .kind = PL_IR_REAL, .real = value};
}

pl_ir_attribute pl_ir_text(const char *name, const char *text) {
  return (pl_ir_attribute){.name = pl_ir_name_of(name), .kind = PL_IR_TEXT, .text = text};
}

pl_ir_attribute pl_ir_names(const char *name, int32_t n, const pl_ir_name *names) {
  return (pl_ir_attribute){.name = pl_ir_name_of(name), .kind = PL_IR_NAMES, .n_names = (uint8_t)n, .names = names};
}

const pl_ir_attribute *pl_ir_attribute_find(const pl_ir_op *op, const char *name) {
  for (int32_t i = 0; i < op->n_attributes && name[0] != 0; i++) {
    const char *known = op->attributes[i].name.text;
    if (known[0] == name[0] && known[1] == name[1] && strcmp(known, name) == 0) return &op->attributes[i];
  }
  return NULL;
}

int64_t pl_ir_integer_of(const pl_ir_op *op, const char *name, int64_t otherwise) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, name);
  return found != NULL ? found->integer : otherwise;
}

double pl_ir_real_of(const pl_ir_op *op, const char *name, double otherwise) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, name);
  if (found == NULL) return otherwise;
  return found->kind == PL_IR_INTEGER ? (double)found->integer : found->real;
}

bool pl_ir_op_has_name(const pl_ir_op *op, const char *attribute, pl_ir_name name) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, attribute);
  for (int32_t i = 0; found != NULL && i < found->n_names; i++)
    if (pl_ir_name_equal(found->names[i], name)) return true;
  return false;
}

const char *pl_ir_text_of(const pl_ir_op *op, const char *name) {
  const pl_ir_attribute *found = pl_ir_attribute_find(op, name);
  if (found == NULL) return "";
  return found->kind == PL_IR_TEXT ? found->text : found->n_names > 0 ? found->names[0].text : "";
}

/* ---- devices ---- */

bool pl_ir_mesh_is_at(const pl_ir_mesh *mesh, const int32_t *at, uint32_t device) {
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (at[axis] != PL_IR_NONE && at[axis] != pl_ir_mesh_coordinate(mesh, device, axis)) return false;
  return true;
}

bool pl_ir_class_has(const pl_ir_module *module, const pl_ir_class *class, uint32_t device) {
  return pl_ir_mesh_is_at(&module->mesh, class->at, device);
}

bool pl_ir_module_joins_steps(const pl_ir_module *module) {
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t s = 0; s < module->classes[c].n_steps; s++)
      if (module->classes[c].steps[s].joined) return true;
  return false;
}

bool pl_ir_op_joins(const pl_ir_mesh *mesh, const pl_ir_op *op, uint32_t device, uint32_t other) {
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (!pl_ir_op_has_name(op, "over", mesh->axes[axis].name) &&
        pl_ir_mesh_coordinate(mesh, device, axis) != pl_ir_mesh_coordinate(mesh, other, axis))
      return false;
  return true;
}

uint32_t pl_ir_class_partner(const pl_ir_module *module, const pl_ir_class *of, uint32_t device) {
  const pl_ir_mesh *mesh = &module->mesh;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (of->at[axis] == PL_IR_NONE) continue;
    uint32_t stride = pl_ir_mesh_stride(mesh, axis);
    device = device - (uint32_t)pl_ir_mesh_coordinate(mesh, device, axis) * stride + (uint32_t)of->at[axis] * stride;
  }
  return device;
}

uint32_t pl_ir_module_devices(const pl_ir_module *module) {
  return module->places != NULL ? (uint32_t)module->n_places : pl_ir_mesh_devices(&module->mesh);
}

const uint32_t *pl_ir_places_take(const pl_ir_module *module, pl_arena *arena) {
  uint32_t n = pl_ir_mesh_devices(&module->mesh);
  uint32_t *places = PL_TAKE(arena, uint32_t, n);
  int32_t at = 0;
  if (places == NULL) return NULL;
  for (uint32_t device = 0; device < n; device++) {
    bool has = module->places == NULL;
    for (int32_t c = 0; c < module->n_classes && !has; c++)
      has = pl_ir_class_has(module, &module->classes[c], device);
    places[device] = !has ? PL_IR_NOWHERE : module->places == NULL ? device : module->places[at++];
  }
  return places;
}
