/* See workloads/language/ir_checking.h: what stays on devices between ops: parameters, gradients, optimizer state by
 * path, and what a forward function keeps for its backward functions. */
#include <string.h>

#include "core/base/digest.h"
#include "workloads/language/ir_checking.h"
#include "workloads/language/ir_place.h"
#include "workloads/language/ir_text.h"

/* What an op with a path holds or reads there; 0: nothing that is held by path. */
typedef enum hold_kind { HOLD_NONE = 0, HOLD_PARAMETER, HOLD_GRADIENT, HOLD_STATE, HOLD_KEEP, HOLD_KEPT } hold_kind;

/* The first op of each kind with this path, in the order that they came in. */
typedef struct use {
  hold_kind kind;
  const char *slot; /* of the optimizer's state; else "" */
  const pl_ir_type *type;
  const pl_ir_function *function;
  const pl_ir_op *op;
  struct use *next;
} use;

typedef struct holder {
  const char *path;
  use *first, **end;
} holder;

static holder *find(const pl_hash_index *index, uint64_t hash, const char *path) {
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(index, hash, &probe)) != NULL;) {
    holder *own = (holder *)(uintptr_t)found; /* ours */
    if (strcmp(own->path, path) == 0) return own;
  }
  return NULL;
}

static uint64_t hash_of(const char *path) {
  return pl_hash_bytes(path, strlen(path), 1);
}

/* What is held under this path, made if nobody had it before; NULL: no memory. */
static holder *hold(pl_ir_checking *checking, pl_hash_index *index, const char *path) {
  uint64_t hash = hash_of(path);
  holder *own = find(index, hash, path);
  if (own != NULL) return own;
  own = PL_TAKE(checking->scratch, holder, 1);
  if (own == NULL) return NULL;
  own->path = pl_arena_strdup(checking->scratch, path);
  own->end = &own->first;
  return own->path != NULL && pl_hash_index_put(index, hash, own, checking->scratch) ? own : NULL;
}

static bool add(pl_ir_checking *checking, holder *to, const use *made) {
  use *own = PL_TAKE(checking->scratch, use, 1);
  if (own == NULL) return false;
  *own = *made;
  *to->end = own;
  to->end = &own->next;
  return true;
}

static const use *find_use(const holder *own, const use *like) {
  for (const use *at = own->first; at != NULL; at = at->next)
    if (at->kind == like->kind && strcmp(at->slot, like->slot) == 0) return at;
  return NULL;
}

/* What an op with state brings or takes. */
static const pl_ir_type *type_of(const pl_ir_function *function, const pl_ir_op *op) {
  return &function->values[op->n_outputs > 0 ? op->first_output : op->inputs[0]].type;
}

/* By row, looked up once for all ops. */
typedef struct row_kinds {
  uint8_t of[PL_IR_N_ROWS];
} row_kinds;

static row_kinds row_kinds_of(void) {
  static const struct {
    const char *row;
    hold_kind kind;
  } rows[] = {
      {"param", HOLD_PARAMETER},   {"store", HOLD_PARAMETER}, {"state", HOLD_STATE}, {"accumulate", HOLD_GRADIENT},
      {"gradient", HOLD_GRADIENT}, {"keep", HOLD_KEEP},       {"kept", HOLD_KEPT}};
  row_kinds kinds = {{0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    kinds.of[pl_ir_row_of(rows[i].row)] = (uint8_t)rows[i].kind;
  return kinds;
}

/* What is stored under a slot is the optimizer's state, and without one nothing is. */
static void set_slot(use *own) {
  const pl_ir_attribute *named = pl_ir_attribute_find(own->op, "slot");
  own->slot = named != NULL && own->kind != HOLD_GRADIENT ? named->text : "";
  if (own->kind != HOLD_GRADIENT) own->kind = named != NULL ? HOLD_STATE : HOLD_PARAMETER;
}

static const char *kind_words(const use *own) {
  return own->kind == HOLD_STATE ? "state" : own->kind == HOLD_PARAMETER ? "the parameter" : "the gradient";
}

/* ---- paths ---- */

/* One gradient lies in one place. */
static pl_code check_place(pl_ir_checking *checking, const char *path, const use *own, const use *same) {
  char where[PL_IR_WHERE_BYTES];
  if (own->kind != HOLD_GRADIENT) return PL_OK;
  bool here = pl_ir_op_is_in_host(own->op), there = pl_ir_op_is_in_host(same->op);
  if (here == there) return PL_OK;
  return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                          "the gradient \"%s\" lies %s here and %s in %s: it lies in one place", path,
                          here ? "in=\"host\"" : "on the device", there ? "in=\"host\"" : "on the device",
                          pl_ir_where(same->function, same->op, where));
}

static pl_code check_path(pl_ir_checking *checking, pl_hash_index *index, const char *path, const use *own) {
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES], where[PL_IR_WHERE_BYTES];
  const pl_ir_mesh *mesh = &checking->module->mesh;
  holder *held = hold(checking, index, path);
  if (held == NULL) return pl_ir_check_no_memory(checking);
  const use *same = find_use(held, own), *first = held->first;
  if (same != NULL && pl_ir_type_equal(same->type, own->type)) return check_place(checking, path, own, same);
  if (same != NULL)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "%s \"%s\"%s%s is %s here and %s in %s: one path has one type", kind_words(own), path,
                            own->kind == HOLD_STATE ? " of slot " : "", own->slot, pl_ir_type_text(mesh, own->type, a),
                            pl_ir_type_text(mesh, same->type, b), pl_ir_where(same->function, same->op, where));
  pl_ir_type shape = *own->type;
  if (first != NULL) shape.element = first->type->element;
  if (first != NULL && !pl_ir_type_same_shape(&shape, first->type))
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "\"%s\" is %s here and %s in %s: a parameter, its gradient and its state have one shape",
                            path, pl_ir_type_text(mesh, own->type, a), pl_ir_type_text(mesh, first->type, b),
                            pl_ir_where(first->function, first->op, where));
  return add(checking, held, own) ? PL_OK : pl_ir_check_no_memory(checking);
}

/* ---- kept values ---- */

static pl_code check_keep(pl_ir_checking *checking, pl_hash_index *kept, const char *path, const use *own) {
  char where[PL_IR_WHERE_BYTES];
  holder *held = hold(checking, kept, path);
  if (held == NULL) return pl_ir_check_no_memory(checking);
  const use *before = held->first;
  if (before == NULL) return add(checking, held, own) ? PL_OK : pl_ir_check_no_memory(checking);
  return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                          "\"%s\" is kept twice in one pass: in %s too; give one of them, or the instance of one of "
                          "the calls, another name",
                          path, pl_ir_where(before->function, before->op, where));
}

static pl_code check_kept(pl_ir_checking *checking, const pl_hash_index *kept, const char *path, const use *own,
                          const char *reader) {
  char a[PL_IR_TYPE_TEXT_BYTES], b[PL_IR_TYPE_TEXT_BYTES], where[PL_IR_WHERE_BYTES];
  const holder *held = find(kept, hash_of(path), path);
  if (held == NULL)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op,
                            "nothing keeps \"%s\" before %s reads it: its forward function needs a keep of this name "
                            "in the same instance",
                            path, reader);
  const use *before = held->first;
  bool there = pl_ir_op_is_in_host(before->op), here = pl_ir_op_is_in_host(own->op);
  if (there != here)
    return pl_ir_check_fail(checking, own->op->place, own->function, own->op, "\"%s\" is kept %s, in %s, and read %s",
                            path, there ? "in=\"host\"" : "on the device",
                            pl_ir_where(before->function, before->op, where), here ? "in=\"host\"" : "on the device");
  if (pl_ir_type_equal(before->type, own->type)) return PL_OK;
  return pl_ir_check_fail(
      checking, own->op->place, own->function, own->op, "\"%s\" is kept as %s, in %s, and read as %s", path,
      pl_ir_type_text(&checking->module->mesh, before->type, a), pl_ir_where(before->function, before->op, where),
      pl_ir_type_text(&checking->module->mesh, own->type, b));
}

/* ---- functions of a class ---- */

/* What a program of one iteration goes through. */
typedef struct holding {
  pl_ir_checking *checking;
  const pl_ir_picked *picked;
  const pl_ir_alike *alike;
  row_kinds kinds;
  pl_hash_index paths;
  int64_t n_ops;
} holding;

static bool has_path(const pl_ir_row *row) {
  return row->has_path;
}

static pl_code check_op(holding *state, pl_hash_index *kept, pl_ir_inside *walk, const pl_ir_op *op,
                        const char *reader) {
  const pl_ir_function *function = walk->frames[walk->depth - 1].function;
  use own = {.kind = (hold_kind)state->kinds.of[op->row],
             .slot = "",
             .type = type_of(function, op),
             .function = function,
             .op = op};
  const pl_hash_index none = {0};
  switch (own.kind) {
  case HOLD_NONE:
    return PL_OK;
  case HOLD_KEEP:
    if (kept != NULL) return check_keep(state->checking, kept, pl_ir_inside_kept(walk, op), &own);
    return pl_ir_check_fail(state->checking, op->place, function, op, "%s keeps nothing: it belongs to no microbatch",
                            reader);
  case HOLD_KEPT:
    return check_kept(state->checking, kept != NULL ? kept : &none, pl_ir_inside_kept(walk, op), &own, reader);
  default:
    set_slot(&own);
    return check_path(state->checking, &state->paths, pl_ir_inside_path(walk, op), &own);
  }
}

static pl_code check_function(holding *state, pl_hash_index *kept, int32_t function, const char *reader) {
  pl_ir_checking *checking = state->checking;
  if (function == PL_IR_NONE) return PL_OK;
  state->n_ops += checking->n_expanded[function];
  if (state->n_ops > PL_IR_EXPANDED_MAX)
    return pl_ir_check_fail(checking, checking->module->functions[function]->place, NULL, NULL,
                            "up to here the functions of all classes have more than %d ops, those of the functions "
                            "that they call included",
                            PL_IR_EXPANDED_MAX);
  pl_ir_inside walk;
  pl_ir_inside_begin(&walk, checking->module, state->picked, function);
  walk.alike = state->alike;
  for (const pl_ir_op *op; (op = pl_ir_inside_next(&walk)) != NULL;)
    PL_TRY(check_op(state, kept, &walk, op, reader));
  return PL_OK;
}

pl_code pl_ir_check_state(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  holding state = {.checking = checking, .picked = pl_ir_inside_pick(checking, has_path), .kinds = row_kinds_of()};
  if (state.picked == NULL || (state.alike = pl_ir_check_alike(checking, state.picked)) == NULL)
    return pl_ir_check_no_memory(checking);
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_ir_class *own = &module->classes[c];
    for (int32_t i = 0; i < own->n_chunks; i++) {
      const pl_ir_chunk *chunk = &own->chunks[i];
      pl_hash_index kept = {0}; /* of one chunk and microbatch */
      PL_TRY(check_function(&state, &kept, chunk->forward, "the forward function"));
      PL_TRY(check_function(&state, &kept, chunk->backward, "the backward function"));
      PL_TRY(check_function(&state, &kept, chunk->weights, "the weights function"));
    }
    PL_TRY(check_function(&state, NULL, own->update, "the update function"));
  }
  return PL_OK;
}
