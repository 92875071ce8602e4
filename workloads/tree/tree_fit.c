/* See workloads/tree/tree_planning.h: whether extents divide, and whether everybody who reads a parameter finds it. */
#include <inttypes.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/language/ir_table.h"
#include "workloads/tree/tree_planning.h"

enum { WORDS_MAX = 256, NOTES_MAX = 64 };

/* ---- dimensions that nobody has ---- */

static void note_dims(const pl_ir_module *model, const char *names[WORDS_MAX + 1], int32_t *n) {
  *n = 0;
  for (int32_t f = 0; f < model->n_functions; f++)
    for (int32_t v = 0; v < model->functions[f]->n_values; v++) {
      const pl_ir_type *type = &model->functions[f]->values[v].type;
      for (int32_t d = 0; d < type->rank; d++)
        if (*n < WORDS_MAX && (names[*n] = NULL, pl_words_find(names, type->dims[d].name.text)) < 0)
          names[(*n)++] = type->dims[d].name.text;
    }
  names[*n] = NULL;
}

static pl_code check_dims(const pl_tree_planning *own) {
  const char *names[WORDS_MAX + 1];
  int32_t n;
  note_dims(own->model, names, &n);
  for (int32_t i = 0; i < own->tree->n_nodes; i++)
    for (int32_t c = 0; c < own->tree->nodes[i].n_cuts; c++) {
      const pl_tree_cut *cut = &own->tree->nodes[i].cuts[c];
      bool known = cut->n_dims == 0 || !pl_tree_is_said(cut->place);
      for (int32_t d = 0; d < cut->n_dims; d++)
        known = known || pl_words_find(names, cut->dims[d].text) >= 0;
      if (known) continue;
      char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
      return pl_tree_fail(cut->place, own->error, "%s has no dimension '%s'; there are %s%s", own->model->name,
                          cut->dims[0].text, pl_words_list(names, list, sizeof(list)),
                          pl_words_hint(names, cut->dims[0].text, hint));
    }
  return PL_OK;
}

/* ---- degrees that do not divide ---- */

static const char *divisors(int64_t extent, char *text, size_t size) {
  pl_word_list list = pl_word_list_begin(text, size);
  for (int64_t i = 1; i <= extent && i <= 4096; i++) {
    char number[24];
    snprintf(number, sizeof(number), "%" PRId64, i);
    if (extent % i == 0) pl_word_list_add(&list, number);
  }
  return pl_word_list_end(&list);
}

/* Over `axis`: the first dimension that divides is taken; one that is there and does not, without any that does, is an
 * error. Returns the dimension that does not fit, -1. */
static int32_t lay_axis(const pl_layout_rules *rules, int32_t axis, pl_ir_type *type) {
  const pl_layout_use *use = &rules->on[axis];
  int32_t unfit = -1;
  for (int32_t i = 0; i < use->n_dims; i++) {
    int32_t dim = pl_ir_type_find(type, use->dims[i]);
    if (dim < 0) continue;
    int64_t parts = rules->mesh.axes[axis].extent;
    for (int32_t other = 0; other < axis; other++)
      if (type->on[other] == dim) parts *= rules->mesh.axes[other].extent;
    if (type->dims[dim].extent % parts == 0) {
      type->on[axis] = (int8_t)dim;
      return -1;
    }
    if (unfit < 0) unfit = dim;
  }
  return unfit;
}

static const pl_tree_cut *cut_of(const pl_tree_planning *own, int32_t node, pl_ir_name dim) {
  const pl_tree_node *at = pl_tree_node_at(own, node);
  for (int32_t i = 0; i < at->n_cuts; i++)
    for (int32_t d = 0; d < at->cuts[i].n_dims; d++)
      if (pl_ir_name_equal(at->cuts[i].dims[d], dim)) return &at->cuts[i];
  return NULL;
}

/* Of several dimensions to choose from one may stay whole, and is noted, if others are cut. */
static pl_code note_unfit(const pl_tree_planning *own, const pl_tree_note *note, int32_t module, int32_t op) {
  pl_tree_plan *plan = own->plan;
  char path[PL_TREE_PATH_BYTES];
  for (int32_t i = 0; i < plan->n_notes; i++)
    if (pl_ir_name_equal(plan->notes[i].dim.name, note->dim.name) && plan->notes[i].dim.extent == note->dim.extent &&
        plan->notes[i].parts == note->parts)
      return PL_OK;
  if (plan->n_notes == NOTES_MAX) return PL_OK;
  if (plan->notes == NULL) plan->notes = PL_TAKE(own->arena, pl_tree_note, NOTES_MAX);
  if (plan->notes == NULL) return pl_fail_memory(own->error, "a strategy tree");
  pl_tree_note *made = &plan->notes[plan->n_notes++];
  *made = *note;
  made->path = pl_arena_strdup(own->arena, pl_tree_op_path(own, module, op, path));
  return made->path != NULL ? PL_OK : pl_fail_memory(own->error, "a strategy tree");
}

static pl_code check_type(const pl_tree_planning *own, int32_t module, int32_t op, int32_t leaf, pl_ir_type type,
                          bool *cuts) {
  const pl_tree_leaf *at = &own->plan->leaves[leaf];
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    type.on[axis] = PL_IR_SAME;
  for (int32_t axis = 0; axis < own->plan->mesh.n_axes; axis++) {
    int32_t unfit = lay_axis(&at->rules, axis, &type);
    if (type.on[axis] >= 0) cuts[leaf * PL_IR_AXES_MAX + axis] = true;
    if (unfit < 0) continue;
    const pl_tree_cut *cut = cut_of(own, at->node, type.dims[unfit].name);
    char path[PL_TREE_PATH_BYTES], list[PL_WORDS_BYTES];
    pl_tree_note note = {.dim = type.dims[unfit],
                         .parts = own->plan->mesh.axes[axis].extent,
                         .place = cut != NULL ? cut->place : pl_tree_node_at(own, at->node)->partition_at};
    for (int32_t other = 0; other < axis; other++)
      if (type.on[other] == unfit) note.parts *= own->plan->mesh.axes[other].extent;
    if (cut == NULL || cut->n_dims > 1) {
      PL_TRY(note_unfit(own, &note, module, op));
      continue;
    }
    return pl_tree_fail(note.place, own->error, "%" PRId64 " parts do not divide %s = %" PRId64 " of %s; %s do",
                        note.parts, note.dim.name.text, note.dim.extent, pl_tree_op_path(own, module, op, path),
                        divisors(note.dim.extent, list, sizeof(list) / 2));
  }
  return PL_OK;
}

/* What was noted is not all that there is to cut. */
static pl_code check_notes(const pl_tree_planning *own, const bool *cuts) {
  for (int32_t i = 0; i < own->plan->n_notes; i++) {
    const pl_tree_note *note = &own->plan->notes[i];
    bool any = false;
    for (int32_t leaf = 0; leaf < own->plan->n_leaves; leaf++)
      for (int32_t axis = 0; axis < own->plan->mesh.n_axes; axis++)
        any = any || (cuts[leaf * PL_IR_AXES_MAX + axis] &&
                      pl_layout_may_cut(&own->plan->leaves[leaf].rules, axis, note->dim.name));
    char list[PL_WORDS_BYTES];
    if (!any)
      return pl_tree_fail(note->place, own->error,
                          "%" PRId64 " parts do not divide %s = %" PRId64 " of %s, and nothing else is cut; %s do",
                          note->parts, note->dim.name.text, note->dim.extent, note->path,
                          divisors(note->dim.extent, list, sizeof(list) / 2));
  }
  return PL_OK;
}

static pl_code check_function(const pl_tree_planning *own, int32_t function, bool *cuts) {
  const pl_tree_function_plan *plan = &own->plan->functions[function];
  const pl_ir_function *from = own->plan->program.functions[function];
  for (int32_t i = 0; i < from->n_ops; i++) {
    own->plan->n_visits++;
    for (int32_t k = 0; k < from->ops[i].n_outputs; k++)
      PL_TRY(
          check_type(own, plan->module, i, plan->ops[i].leaf, from->values[from->ops[i].first_output + k].type, cuts));
  }
  return PL_OK;
}

/* Context ranks hold two chunks of the sequence each. */
static pl_code check_context(const pl_tree_planning *own) {
  pl_ir_name s = pl_ir_name_of("s");
  for (int32_t f = 0; f < own->plan->program.n_functions && own->plan->zigzag > 1; f++)
    for (int32_t v = 0; v < own->plan->program.functions[f]->n_values; v++) {
      const pl_ir_type *type = &own->plan->program.functions[f]->values[v].type;
      int32_t dim = pl_ir_type_find(type, s);
      if (dim < 0 || type->dims[dim].extent % (2 * own->plan->zigzag) == 0) continue;
      for (int32_t i = 0; i < own->plan->n_leaves; i++)
        for (int32_t axis = 0; axis < own->plan->mesh.n_axes; axis++)
          if (own->plan->leaves[i].rules.on[axis].role == PL_AXIS_CONTEXT)
            return pl_tree_fail(cut_of(own, own->plan->leaves[i].node, s)->place, own->error,
                                "s = %" PRId64
                                " over %d context ranks, which hold two chunks each: a multiple of %d is "
                                "needed",
                                type->dims[dim].extent, own->plan->zigzag, 2 * own->plan->zigzag);
    }
  return PL_OK;
}

/* ---- parameters of several modules ---- */

typedef struct reader {
  const char *path;
  pl_ir_type type; /* as it lies */
  int32_t module, leaf;
} reader;

static pl_code note_reader(const pl_tree_planning *own, pl_hash_index *readers, const reader *made) {
  uint64_t hash = pl_hash_text(0, made->path);
  uint32_t probe = 0;
  for (const reader *at; (at = pl_hash_index_find(readers, hash, &probe)) != NULL;) {
    if (strcmp(at->path, made->path) != 0) continue;
    if (pl_ir_type_equal(&at->type, &made->type)) return PL_OK;
    char text[PL_TREE_PLACE_BYTES];
    int32_t here = own->plan->leaves[made->leaf].node, there = own->plan->leaves[at->leaf].node;
    pl_tree_place place = here >= 0 ? pl_tree_node_at(own, here)->partition_at : own->tree->nodes[0].place;
    pl_tree_place other = there >= 0 ? pl_tree_node_at(own, there)->partition_at : own->tree->nodes[0].place;
    return pl_tree_fail(
        place, own->error,
        "%s is read by %s, which is partitioned here, and by %s, partitioned at %s, and would lie in two "
        "ways; give both one partition",
        made->path, own->plan->modules[made->module].name, own->plan->modules[at->module].name,
        pl_tree_place_text(other, text));
  }
  reader *kept = PL_TAKE(own->scratch, reader, 1);
  if (kept == NULL) return pl_fail_memory(own->error, "a strategy tree");
  *kept = *made;
  return pl_hash_index_put(readers, hash, kept, own->scratch) ? PL_OK : pl_fail_memory(own->error, "a strategy tree");
}

/* As the parameters of a function lie, by op: the same in all modules that call it. NULL: no memory. */
static pl_ir_type *lay_parameters(const pl_tree_planning *own, int32_t index, int32_t param) {
  const pl_tree_function_plan *plan = &own->plan->functions[index];
  const pl_ir_function *function = own->plan->program.functions[index];
  pl_ir_type *types = PL_TAKE(own->scratch, pl_ir_type, function->n_ops + 1);
  for (int32_t k = 0; types != NULL && k < function->n_ops; k++) {
    const pl_ir_op *op = &function->ops[k];
    if (op->row != param) continue;
    types[k] = function->values[op->first_output].type;
    pl_layout_parameter(&own->plan->leaves[plan->ops[k].leaf].rules, op->path, &types[k]);
  }
  return types;
}

/* The paths below which modules have their parameters; NULL: below none. */
static const char *instance_of(const pl_tree_planning *own, int32_t module) {
  const char *instance = own->calls[module].call->path;
  return instance != NULL && instance[0] != 0 ? instance : NULL;
}

typedef struct instance {
  const char *path;
  bool is_shared; /* somebody else may have a parameter below it */
} instance;

/* The one that is called as the first `n` characters of `path`. */
static instance *find_instance(const pl_hash_index *instances, uint64_t hash, const char *path, size_t n) {
  uint32_t probe = 0;
  for (const void *at; (at = pl_hash_index_find(instances, hash, &probe)) != NULL;) {
    instance *known = (instance *)(uintptr_t)at; /* ours */
    if (strncmp(known->path, path, n) == 0 && known->path[n] == 0) return known;
  }
  return NULL;
}

/* `path`, or what is around it, is below these. Returns its hash. */
static uint64_t note_around(const pl_hash_index *instances, const char *path, bool *any) {
  uint64_t hash = 0;
  for (size_t n = 0; path[n] != 0; n++) {
    instance *around = path[n] == '.' ? find_instance(instances, hash, path, n) : NULL;
    if (around != NULL) around->is_shared = *any = true;
    hash = pl_hash_word(hash, (uint64_t)(unsigned char)path[n]);
  }
  return hash;
}

/* Modules whose parameters nobody else can have, as layers have theirs: no other is called as they are, as something
 * around them or below them. NULL: no memory. */
static const instance *find_instances(const pl_tree_planning *own, int32_t param) {
  const pl_tree_plan *plan = own->plan;
  pl_hash_index index = {0};
  instance *instances = PL_TAKE(own->scratch, instance, plan->n_modules + 1);
  for (int32_t i = 0; instances != NULL && i < plan->n_modules; i++) {
    instance *made = &instances[i], *known;
    if ((made->path = instance_of(own, i)) == NULL) continue;
    uint64_t hash = pl_hash_text(0, made->path);
    if ((known = find_instance(&index, hash, made->path, strlen(made->path))) != NULL)
      known->is_shared = made->is_shared = true;
    else if (!pl_hash_index_put(&index, hash, made, own->scratch))
      return NULL;
  }
  for (int32_t i = 0; instances != NULL && i < plan->n_modules; i++) {
    const pl_ir_function *function = plan->program.functions[plan->modules[i].function];
    if (instances[i].path != NULL) note_around(&index, instances[i].path, &instances[i].is_shared);
    for (int32_t k = 0; instances[i].path == NULL && k < function->n_ops; k++)
      if (function->ops[k].row == param) note_around(&index, function->ops[k].path, &instances[i].is_shared);
  }
  return instances;
}

static pl_code check_module(const pl_tree_planning *own, int32_t i, int32_t param, const pl_ir_type *laid,
                            pl_hash_index *readers) {
  const char *outside = instance_of(own, i);
  const pl_tree_function_plan *plan = &own->plan->functions[own->plan->modules[i].function];
  const pl_ir_function *function = own->plan->program.functions[own->plan->modules[i].function];
  for (int32_t k = 0; k < function->n_ops; k++) {
    const pl_ir_op *op = &function->ops[k];
    own->plan->n_visits++;
    if (op->row != param) continue;
    reader made = {.path = outside == NULL ? op->path : pl_arena_printf(own->scratch, "%s.%s", outside, op->path),
                   .type = laid[k],
                   .module = i,
                   .leaf = plan->ops[k].leaf};
    if (made.path == NULL) return pl_fail_memory(own->error, "a strategy tree");
    PL_TRY(note_reader(own, readers, &made));
  }
  return PL_OK;
}

/* Modules that may have a parameter with others, and of those that call one function the first. */
static pl_code check_parameters(const pl_tree_planning *own) {
  pl_hash_index readers = {0};
  int32_t param = pl_ir_row_of("param");
  pl_ir_type **laid = PL_TAKE(own->scratch, pl_ir_type *, own->plan->program.n_functions + 1);
  const instance *instances = find_instances(own, param);
  if (laid == NULL || instances == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    int32_t index = own->plan->modules[i].function;
    if (instances[i].path != NULL && !instances[i].is_shared && laid[index] != NULL) continue;
    if (laid[index] == NULL) laid[index] = lay_parameters(own, index, param);
    if (laid[index] == NULL) return pl_fail_memory(own->error, "a strategy tree");
    PL_TRY(check_module(own, i, param, laid[index], &readers));
  }
  return PL_OK;
}

pl_code pl_tree_check_fit(pl_tree_planning *own) {
  if (own->tree->strategy.pp > 0) return PL_OK; /* a recipe's own checks were made */
  PL_TRY(check_dims(own));
  PL_TRY(check_context(own));
  bool *cuts = PL_TAKE(own->scratch, bool, (int64_t)(own->plan->n_leaves + 1) * PL_IR_AXES_MAX);
  if (cuts == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i + 1 < own->plan->program.n_functions; i++)
    PL_TRY(check_function(own, i, cuts));
  PL_TRY(check_notes(own, cuts));
  return check_parameters(own);
}
