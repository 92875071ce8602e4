/* See workloads/language/ir_checking.h: which calls of a class's functions are as others.
 *
 * Layers of a model are calls of the same functions under other paths: forward, backward and update of layer 3 call
 * what those of layer 2 do. What such functions hold under their paths is then the same but for the path in front, and
 * one of the layers speaks for all. Not where a path is in use elsewhere: by another class or chunk, twice in a
 * function, by pieces of the samples, or as the beginning of another path. */
#include <string.h>

#include "core/base/digest.h"
#include "workloads/language/ir_checking.h"

enum { FORWARD = 0, BACKWARD, WEIGHTS, UPDATE, KINDS };

/* A path that calls of a class's own functions have. */
typedef struct instance {
  const char *path;
  size_t length;
  int32_t class, chunk; /* of the first call that is no update; PL_IR_NONE: there is none yet */
  int32_t callee[KINDS];
  bool is_only; /* nothing else has it */
} instance;

/* Instances that call the same. The one with the longest path speaks for all: where paths are cut off, its are. */
typedef struct likeness {
  const instance *speaker;
} likeness;

typedef struct search {
  const pl_ir_checking *checking;
  const pl_ir_picked *picked;
  pl_hash_index instances, likenesses;
  int64_t n_ops; /* that were looked at */
  bool gives_up; /* there are too many */
  bool failed;   /* no memory */
} search;

/* Where an op is. */
typedef struct position {
  int32_t class, chunk;
  int kind;
  bool is_inside; /* of a call without a path, whose ops hold what they hold as if they were the function's own */
} position;

/* ---- paths ---- */

static instance *find(const search *own, const char *path, size_t length) {
  uint32_t probe = 0;
  for (const void *found;
       (found = pl_hash_index_find(&own->instances, pl_hash_bytes(path, length, 3), &probe)) != NULL;) {
    instance *known = (instance *)(uintptr_t)found; /* ours */
    if (known->length == length && memcmp(known->path, path, length) == 0) return known;
  }
  return NULL;
}

static instance *find_or_make(search *own, const char *path, int32_t class) {
  size_t length = strlen(path);
  instance *known = find(own, path, length);
  if (known != NULL) return known;
  instance *made = PL_TAKE(own->checking->scratch, instance, 1);
  if (made == NULL) return NULL;
  *made = (instance){.path = path,
                     .length = length,
                     .class = class,
                     .chunk = PL_IR_NONE,
                     .callee = {PL_IR_NONE, PL_IR_NONE, PL_IR_NONE, PL_IR_NONE},
                     .is_only = length > 0};
  return pl_hash_index_put(&own->instances, pl_hash_bytes(path, length, 3), made, own->checking->scratch) ? made : NULL;
}

/* ---- the functions of all classes ---- */

static void note_call(search *own, const pl_ir_op *op, position at) {
  instance *made = find_or_make(own, op->path, at.class);
  if (made == NULL) {
    own->failed = true;
    return;
  }
  if (made->chunk == PL_IR_NONE && at.kind != UPDATE) made->chunk = at.chunk;
  made->is_only = made->is_only && !at.is_inside && made->class == at.class &&
                  (at.kind == UPDATE || made->chunk == at.chunk) && made->callee[at.kind] == PL_IR_NONE &&
                  pl_ir_piece_inside((pl_ir_piece){0, 1}, op).of <= 1;
  made->callee[at.kind] = op->callee;
}

/* Those whose paths this one begins with; and that of a call itself then. */
static void part_from(search *own, const pl_ir_op *op) {
  for (const char *dot = strchr(op->path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
    instance *outer = find(own, op->path, (size_t)(dot - op->path));
    if (outer == NULL) continue;
    outer->is_only = false;
    if (op->callee != PL_IR_NONE) find(own, op->path, strlen(op->path))->is_only = false;
  }
}

typedef void (*look)(search *own, const pl_ir_op *op, position at);

static void each_of(search *own, int32_t function, position at, look look_at) {
  const pl_ir_function *f = own->checking->module->functions[function];
  for (int32_t k = 0; k < own->picked[function].n && !own->failed && !own->gives_up; k++) {
    const pl_ir_op *op = &f->ops[own->picked[function].ops[k]];
    own->gives_up = ++own->n_ops > PL_IR_EXPANDED_MAX;
    if (op->callee == PL_IR_NONE || op->path[0] != 0) {
      look_at(own, op, at);
      continue;
    }
    position inside = at;
    inside.is_inside = true;
    each_of(own, op->callee, inside, look_at);
  }
}

/* Every op of the classes' own functions that is picked. */
static void each(search *own, look look_at) {
  const pl_ir_module *module = own->checking->module;
  for (int32_t c = 0; c < module->n_classes; c++) {
    for (int32_t i = 0; i < module->classes[c].n_chunks; i++) {
      const pl_ir_chunk *chunk = &module->classes[c].chunks[i];
      const int32_t functions[] = {chunk->forward, chunk->backward, chunk->weights};
      for (int kind = FORWARD; kind <= WEIGHTS; kind++)
        if (functions[kind] != PL_IR_NONE)
          each_of(own, functions[kind], (position){.class = c, .chunk = chunk->chunk, .kind = kind}, look_at);
    }
    if (module->classes[c].update != PL_IR_NONE)
      each_of(own, module->classes[c].update, (position){.class = c, .chunk = PL_IR_NONE, .kind = UPDATE}, look_at);
  }
}

static void note(search *own, const pl_ir_op *op, position at) {
  if (op->callee != PL_IR_NONE) note_call(own, op, at);
}

static void part(search *own, const pl_ir_op *op, position at) {
  (void)at;
  if (op->path == NULL) return;
  part_from(own, op);
  instance *same = op->callee == PL_IR_NONE ? find(own, op->path, strlen(op->path)) : NULL;
  if (same != NULL) same->is_only = false;
}

/* ---- who speaks ---- */

static uint64_t hash_of(const instance *own) {
  return pl_hash_bytes(own->callee, sizeof own->callee, 4);
}

static likeness *likeness_of(search *own, const instance *is) {
  uint32_t probe = 0;
  for (const void *found; (found = pl_hash_index_find(&own->likenesses, hash_of(is), &probe)) != NULL;) {
    likeness *known = (likeness *)(uintptr_t)found; /* ours */
    if (memcmp(known->speaker->callee, is->callee, sizeof is->callee) == 0) return known;
  }
  likeness *made = PL_TAKE(own->checking->scratch, likeness, 1);
  if (made == NULL) return NULL;
  made->speaker = is;
  return pl_hash_index_put(&own->likenesses, hash_of(is), made, own->checking->scratch) ? made : NULL;
}

static void choose(search *own, const pl_ir_op *op, position at) {
  (void)at;
  const instance *is = op->callee != PL_IR_NONE ? find(own, op->path, strlen(op->path)) : NULL;
  if (is == NULL || !is->is_only) return;
  likeness *of = likeness_of(own, is);
  if (of == NULL)
    own->failed = true;
  else if (is->length > of->speaker->length)
    of->speaker = is;
}

const pl_ir_alike *pl_ir_check_alike(const pl_ir_checking *checking, const pl_ir_picked *picked) {
  search *own = PL_TAKE(checking->scratch, search, 1);
  pl_ir_alike *made = PL_TAKE(checking->scratch, pl_ir_alike, 1);
  if (own == NULL || made == NULL) return NULL;
  own->checking = checking;
  own->picked = picked;
  each(own, note);
  each(own, part);
  each(own, choose);
  made->search = own;
  return own->failed ? NULL : made;
}

bool pl_ir_is_spoken_for(const pl_ir_alike *alike, const pl_ir_op *call) {
  search *own = alike->search;
  const instance *is = own->gives_up ? NULL : find(own, call->path, strlen(call->path));
  return is != NULL && is->is_only && likeness_of(own, is)->speaker != is;
}
