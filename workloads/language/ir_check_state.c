/* See workloads/language/ir_checking.h: what stays on devices between ops: parameters, gradients, optimizer state by
 * path, and what a forward function keeps for its backward functions. */
#include <string.h>

#include "core/base/digest.h"
#include "workloads/language/ir_checking.h"
#include "workloads/language/ir_place.h"
#include "workloads/language/ir_text.h"

/* The first op with this path of this kind. */
typedef struct entry {
  const char *path, *kind;
  const pl_ir_type *type;
  const pl_ir_function *function;
  const pl_ir_op *op;
} entry;

static uint64_t hash_of(const char *path, const char *kind) {
  return pl_hash_bytes(path, strlen(path), pl_hash_bytes(kind, strlen(kind), 1));
}

static entry *find(const pl_hash_index *index, const char *path, const char *kind) {
  uint32_t probe = 0;
  uint64_t hash = hash_of(path, kind);
  for (const void *found; (found = pl_hash_index_find(index, hash, &probe)) != NULL;) {
    entry *own = (entry *)(uintptr_t)found; /* ours */
    if (strcmp(own->path, path) == 0 && strcmp(own->kind, kind) == 0) return own;
  }
  return NULL;
}

static bool put(pl_ir_checking *checking, pl_hash_index *index, const entry *made) {
  entry *own = PL_TAKE(checking->scratch, entry, 1);
  if (own == NULL) return false;
  *own = *made;
  own->path = pl_arena_strdup(checking->scratch, made->path);
  return own->path != NULL && pl_hash_index_put(index, hash_of(own->path, own->kind), own, checking->scratch);
}

/* What an op with state brings or takes. */
static const pl_ir_type *type_of(const pl_ir_function *function, const pl_ir_op *op) {
  return &function->values[op->n_outputs > 0 ? op->first_output : op->inputs[0]].type;
}

/* "param", "gradient" or the slot of optimizer state ("m" as a kind of its own, ':' in front); NULL: not by path. */
static const char *kind_of(const pl_ir_op *op, char slot[PL_IR_TEXT_MAX + 2]) {
  const char *row = pl_ir_row_at(op->row)->name;
  const pl_ir_attribute *named = pl_ir_attribute_find(op, "slot");
  bool state = strcmp(row, "state") == 0;
  if (strcmp(row, "accumulate") == 0 || strcmp(row, "gradient") == 0) return "gradient";
  if (strcmp(row, "param") != 0 && strcmp(row, "store") != 0 && !state) return NULL;
  if (named == NULL) return "param";
  size_t length = strlen(named->text);
  if (length > PL_IR_TEXT_MAX) length = PL_IR_TEXT_MAX;
  slot[0] = ':';
  memcpy(slot + 1, named->text, length);
  slot[length + 1] = '\0';
  return slot;
}

static const char *kind_words(const char *kind) {
  return *kind == ':' ? "state" : strcmp(kind, "param") == 0 ? "the parameter" : "the gradient";
}

/* ---- paths ---- */

/* One gradient lies in one place. */
static pl_code check_place(pl_ir_checking *checking, const entry *own, const entry *same) {
  char where[PL_IR_WHERE_BYTES];
  if (same == NULL || strcmp(own->kind, "gradient") != 0) return PL_OK;
  bool here = pl_ir_op_is_in_host(own->op), there = pl_ir_op_is_in_host(same->op);
  if (here == there) return PL_OK;
  return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                          "the gradient \"%s\" lies %s here and %s in %s: it lies in one place", own->path,
                          here ? "in=\"host\"" : "on the device", there ? "in=\"host\"" : "on the device",
                          pl_ir_where(same->function, same->op, where));
}

static pl_code check_path(pl_ir_checking *checking, pl_hash_index *index, const entry *own) {
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES], where[PL_IR_WHERE_BYTES];
  const pl_ir_mesh *mesh = &checking->module->mesh;
  const entry *same = find(index, own->path, own->kind), *first = find(index, own->path, "");
  if (same != NULL && pl_ir_type_equal(same->type, own->type)) return check_place(checking, own, same);
  if (same != NULL)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "%s \"%s\"%s%s is %s here and %s in %s: one path has one type", kind_words(own->kind),
                            own->path, *own->kind == ':' ? " of slot " : "", *own->kind == ':' ? own->kind + 1 : "",
                            pl_ir_type_text(mesh, own->type, a), pl_ir_type_text(mesh, same->type, b),
                            pl_ir_where(same->function, same->op, where));
  pl_ir_type shape = *own->type;
  if (first != NULL) shape.element = first->type->element;
  if (first != NULL && !pl_ir_type_same_shape(&shape, first->type))
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "\"%s\" is %s here and %s in %s: a parameter, its gradient and its state have one shape",
                            own->path, pl_ir_type_text(mesh, own->type, a), pl_ir_type_text(mesh, first->type, b),
                            pl_ir_where(first->function, first->op, where));
  entry any = *own;
  any.kind = "";
  entry kept = *own;
  kept.kind = pl_arena_strdup(checking->scratch, own->kind);
  if (kept.kind == NULL || !put(checking, index, &kept) || (first == NULL && !put(checking, index, &any)))
    return pl_ir_check_no_memory(checking);
  return PL_OK;
}

/* ---- kept values ---- */

static pl_code check_keep(pl_ir_checking *checking, pl_hash_index *kept, const entry *own) {
  char where[PL_IR_WHERE_BYTES];
  const entry *before = find(kept, own->path, "");
  if (before == NULL) return put(checking, kept, own) ? PL_OK : pl_ir_check_no_memory(checking);
  return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                          "\"%s\" is kept twice in one pass: in %s too; give one of them, or the instance of one of "
                          "the calls, another name",
                          own->path, pl_ir_where(before->function, before->op, where));
}

static pl_code check_kept(pl_ir_checking *checking, const pl_hash_index *kept, const entry *own, const char *reader) {
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES], where[PL_IR_WHERE_BYTES];
  const entry *before = find(kept, own->path, "");
  if (before == NULL)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "nothing keeps \"%s\" before %s reads it: its forward function needs a keep of this name "
                            "in the same instance",
                            own->path, reader);
  bool there = pl_ir_op_is_in_host(before->op), here = pl_ir_op_is_in_host(own->op);
  if (there != here)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op, "\"%s\" is kept %s, in %s, and read %s",
                            own->path, there ? "in=\"host\"" : "on the device",
                            pl_ir_where(before->function, before->op, where), here ? "in=\"host\"" : "on the device");
  if (pl_ir_type_equal(before->type, own->type)) return PL_OK;
  return pl_ir_check_fail(
      checking, own->op->place, own->function, own->op, "\"%s\" is kept as %s, in %s, and read as %s", own->path,
      pl_ir_type_text(&checking->module->mesh, before->type, a), pl_ir_where(before->function, before->op, where),
      pl_ir_type_text(&checking->module->mesh, own->type, b));
}

/* ---- functions of a class ---- */

static pl_code check_op(pl_ir_checking *checking, pl_hash_index *paths, pl_hash_index *kept, pl_ir_inside *walk,
                        const pl_ir_op *op, const char *reader) {
  char slot[PL_IR_TEXT_MAX + 2];
  const pl_ir_row *row = pl_ir_row_at(op->row);
  const pl_ir_function *function = walk->frames[walk->depth - 1].function;
  if (!row->has_path) return PL_OK;
  entry own = {
      .path = pl_ir_inside_path(walk, op), .kind = "", .type = type_of(function, op), .function = function, .op = op};
  bool keeps = strcmp(row->name, "keep") == 0, reads = strcmp(row->name, "kept") == 0;
  if (keeps || reads) own.path = pl_ir_inside_kept(walk, op);
  if (keeps) {
    if (kept == NULL)
      return pl_ir_check_fail(checking, op->place, function, op, "%s keeps nothing: it belongs to no microbatch",
                              reader);
    return check_keep(checking, kept, &own);
  }
  if (reads) {
    const pl_hash_index none = {0};
    return check_kept(checking, kept != NULL ? kept : &none, &own, reader);
  }
  own.kind = kind_of(op, slot);
  return own.kind != NULL ? check_path(checking, paths, &own) : PL_OK;
}

static pl_code check_function(pl_ir_checking *checking, pl_hash_index *paths, pl_hash_index *kept, int32_t function,
                              const char *reader, int64_t *n_ops) {
  if (function == PL_IR_NONE) return PL_OK;
  *n_ops += checking->n_expanded[function];
  if (*n_ops > PL_IR_EXPANDED_MAX)
    return pl_ir_check_fail(checking, checking->module->functions[function]->place, NULL, NULL,
                            "up to here the functions of all classes have more than %d ops, those of the functions "
                            "that they call included",
                            PL_IR_EXPANDED_MAX);
  pl_ir_inside walk;
  pl_ir_inside_begin(&walk, checking->module, function);
  for (const pl_ir_op *op; (op = pl_ir_inside_next(&walk)) != NULL;)
    PL_TRY(check_op(checking, paths, kept, &walk, op, reader));
  return PL_OK;
}

pl_code pl_ir_check_state(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  pl_hash_index paths = {0};
  int64_t n_ops = 0;
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_ir_class *own = &module->classes[c];
    for (int32_t i = 0; i < own->n_chunks; i++) {
      const pl_ir_chunk *chunk = &own->chunks[i];
      pl_hash_index kept = {0}; /* of one chunk and microbatch */
      PL_TRY(check_function(checking, &paths, &kept, chunk->forward, "the forward function", &n_ops));
      PL_TRY(check_function(checking, &paths, &kept, chunk->backward, "the backward function", &n_ops));
      PL_TRY(check_function(checking, &paths, &kept, chunk->weights, "the weights function", &n_ops));
    }
    PL_TRY(check_function(checking, &paths, NULL, own->update, "the update function", &n_ops));
  }
  return PL_OK;
}
