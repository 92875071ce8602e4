/* See workloads/language/ir_checking.h: classes by themselves: their chunks and steps, and the part of the mesh that
 * they are on. */
#include <inttypes.h>
#include <string.h>

#include "workloads/language/ir_checking.h"

/* ---- chunks ---- */

static pl_code check_bare(const pl_ir_checking *checking, pl_ir_place place, int32_t f, const char *what) {
  if (f == PL_IR_NONE) return PL_OK;
  const pl_ir_function *function = checking->module->functions[f];
  if (function->n_arguments == 0 && function->n_results == 0) return PL_OK;
  return pl_ir_check_fail(checking, place, NULL, NULL,
                          "@%.60s, the %s function, has %d arguments and %d results, and needs to have none: it gets "
                          "what it needs by input, param, receive and kept",
                          function->name, what, function->n_arguments, function->n_results);
}

static pl_code check_chunk(const pl_ir_checking *checking, const pl_ir_chunk *chunk) {
  if (chunk->forward == PL_IR_NONE)
    return pl_ir_check_fail(checking, chunk->place, NULL, NULL, "chunk %d has no forward function", chunk->chunk);
  if (chunk->weights != PL_IR_NONE && chunk->backward == PL_IR_NONE)
    return pl_ir_check_fail(checking, chunk->place, NULL, NULL, "chunk %d has a weights function and no backward one",
                            chunk->chunk);
  if (chunk->first_microbatch < 0 ||
      pl_ir_chunk_end(chunk, checking->module->n_microbatches) < chunk->first_microbatch ||
      pl_ir_chunk_end(chunk, checking->module->n_microbatches) > checking->module->n_microbatches)
    return pl_ir_check_fail(
        checking, chunk->place, NULL, NULL, "chunk %d has microbatches %d to %d: they are numbered from 0 to %d",
        chunk->chunk, chunk->first_microbatch, pl_ir_chunk_end(chunk, 0) - 1, checking->module->n_microbatches - 1);
  PL_TRY(check_bare(checking, chunk->place, chunk->forward, "forward"));
  PL_TRY(check_bare(checking, chunk->place, chunk->backward, "backward"));
  return check_bare(checking, chunk->place, chunk->weights, "weights");
}

/* Chunks 0, 1 ... are there once each. */
typedef struct chunk_owner {
  const pl_ir_class *own; /* NULL: nobody yet */
  const pl_ir_chunk *chunk;
} chunk_owner;

static pl_code own_chunk(const pl_ir_checking *checking, const pl_ir_class *own, const pl_ir_chunk *chunk, int64_t n,
                         chunk_owner *owners) {
  if (chunk->chunk < 0 || chunk->chunk >= n)
    return pl_ir_check_fail(checking, chunk->place, NULL, NULL,
                            "chunk %d of %" PRId64 ": they are numbered from 0, without a gap", chunk->chunk, n);
  chunk_owner *owner = &owners[chunk->chunk];
  if (owner->own != NULL)
    return pl_ir_check_fail(checking, chunk->place, NULL, NULL,
                            "chunk %d belongs to class %s and to class %s: it is run by one", chunk->chunk,
                            owner->own->name, own->name);
  *owner = (chunk_owner){own, chunk};
  return check_chunk(checking, chunk);
}

static pl_code check_chunks(const pl_ir_checking *checking, chunk_owner **owners, int64_t *n) {
  const pl_ir_module *module = checking->module;
  *n = 0;
  for (int32_t c = 0; c < module->n_classes; c++)
    *n += module->classes[c].n_chunks;
  *owners = PL_TAKE(checking->scratch, chunk_owner, *n + 1);
  if (*owners == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t i = 0; i < module->classes[c].n_chunks; i++)
      PL_TRY(own_chunk(checking, &module->classes[c], &module->classes[c].chunks[i], *n, *owners));
  return PL_OK;
}

/* Where chunks have some of them each, every microbatch is of some chunk. */
static pl_code check_all_run(const pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  bool *has = PL_TAKE(checking->scratch, bool, module->n_microbatches + 1);
  if (has == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t i = 0; i < module->classes[c].n_chunks; i++) {
      const pl_ir_chunk *chunk = &module->classes[c].chunks[i];
      if (chunk->n_microbatches == 0) return PL_OK;
      for (int32_t m = chunk->first_microbatch; m < pl_ir_chunk_end(chunk, 0); m++)
        has[m] = true;
    }
  for (int32_t m = 0; m < module->n_microbatches && module->n_classes > 0; m++)
    if (!has[m])
      return pl_ir_check_fail(checking, module->classes[0].place, NULL, NULL, "no chunk runs microbatch %d", m);
  return PL_OK;
}

/* ---- steps ---- */

static char letter(int kind) {
  return "FBW"[kind];
}

/* Steps of a class by kind, chunk and microbatch: a table where there are about as many as there have to be, else by
 * their hashes. */
typedef struct known_steps {
  const pl_ir_step **table; /* NULL: there is none */
  int32_t n_microbatches;
  const pl_ir_chunk *chunks;
  pl_hash_index index;
} known_steps;

static uint64_t hash_of(int kind, int32_t chunk, int32_t microbatch) {
  return pl_hash_word(pl_hash_word((uint64_t)kind + 1, (uint64_t)(uint32_t)chunk), (uint64_t)(uint32_t)microbatch);
}

static bool take_known(const pl_ir_checking *checking, const pl_ir_class *own, known_steps *made) {
  int64_t n = (int64_t)own->n_chunks * (PL_IR_STEP_W + 1) * checking->module->n_microbatches;
  *made = (known_steps){.n_microbatches = checking->module->n_microbatches, .chunks = own->chunks};
  if (n > 4 * (int64_t)own->n_steps) return true;
  made->table = PL_TAKE(checking->scratch, const pl_ir_step *, n + 1);
  return made->table != NULL;
}

/* `chunk` is of the class, the microbatch of the module. */
static const pl_ir_step **place_of(const known_steps *own, int kind, const pl_ir_chunk *chunk, int32_t microbatch) {
  return &own->table[((chunk - own->chunks) * (PL_IR_STEP_W + 1) + kind) * own->n_microbatches + microbatch];
}

static const pl_ir_step *find_hashed(const known_steps *own, int kind, const pl_ir_chunk *chunk, int32_t microbatch) {
  uint32_t probe = 0;
  uint64_t hash = hash_of(kind, chunk->chunk, microbatch);
  for (const pl_ir_step *step; (step = pl_hash_index_find(&own->index, hash, &probe)) != NULL;)
    if (step->kind == kind && step->chunk == chunk->chunk && step->microbatch == microbatch) return step;
  return NULL;
}

static inline const pl_ir_step *find_step(const known_steps *own, int kind, const pl_ir_chunk *chunk,
                                          int32_t microbatch) {
  return own->table != NULL ? *place_of(own, kind, chunk, microbatch) : find_hashed(own, kind, chunk, microbatch);
}

static bool put_step(known_steps *own, const pl_ir_step *step, const pl_ir_chunk *chunk, pl_arena *arena) {
  if (own->table == NULL)
    return pl_hash_index_put(&own->index, hash_of(step->kind, step->chunk, step->microbatch), step, arena);
  *place_of(own, step->kind, chunk, step->microbatch) = step;
  return true;
}

static int32_t function_of(const pl_ir_chunk *chunk, int kind) {
  return kind == PL_IR_STEP_F ? chunk->forward : kind == PL_IR_STEP_B ? chunk->backward : chunk->weights;
}

static pl_code check_step(const pl_ir_checking *checking, const pl_ir_class *own, const pl_ir_step *step,
                          const chunk_owner *owners, int64_t n_chunks, const known_steps *steps) {
  const pl_ir_module *module = checking->module;
  char kind = letter(step->kind);
  if (step->chunk < 0 || step->chunk >= n_chunks || owners[step->chunk].own != own)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d: class %s has no chunk %d", kind, step->chunk,
                            step->microbatch, own->name, step->chunk);
  if (step->microbatch < 0 || step->microbatch >= module->n_microbatches)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d: microbatches are numbered from 0 to %d", kind,
                            step->chunk, step->microbatch, module->n_microbatches - 1);
  const pl_ir_chunk *chunk = owners[step->chunk].chunk;
  if (step->microbatch < chunk->first_microbatch || step->microbatch >= pl_ir_chunk_end(chunk, module->n_microbatches))
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d: chunk %d has microbatches %d to %d alone",
                            kind, step->chunk, step->microbatch, step->chunk, chunk->first_microbatch,
                            pl_ir_chunk_end(chunk, module->n_microbatches) - 1);
  if (function_of(owners[step->chunk].chunk, step->kind) == PL_IR_NONE)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d: chunk %d has no %s function", kind,
                            step->chunk, step->microbatch, step->chunk,
                            step->kind == PL_IR_STEP_B ? "backward" : "weights");
  const pl_ir_step *before = find_step(steps, step->kind, chunk, step->microbatch);
  if (before != NULL)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d is run twice%s%.0d", kind, step->chunk,
                            step->microbatch, before->place.line > 0 ? ": before in line " : "", before->place.line);
  if (step->kind > PL_IR_STEP_F && find_step(steps, step->kind - 1, chunk, step->microbatch) == NULL)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d stands before its %c%d.%d", kind, step->chunk,
                            step->microbatch, letter(step->kind - 1), step->chunk, step->microbatch);
  return PL_OK;
}

/* A forward pass, and beside it what is none. */
static pl_code check_joined(const pl_ir_checking *checking, const pl_ir_class *own, int32_t i) {
  const pl_ir_step *step = &own->steps[i];
  bool is_beside = i > 0 && own->steps[i - 1].joined;
  if (is_beside && step->kind == PL_IR_STEP_F)
    return pl_ir_check_fail(checking, step->place, NULL, NULL,
                            "F%d.%d: what runs beside a forward pass is a backward one (F0.1+B0.0)", step->chunk,
                            step->microbatch);
  if (!step->joined) return PL_OK;
  if (i + 1 == own->n_steps)
    return pl_ir_check_fail(checking, step->place, NULL, NULL, "%c%d.%d is joined with no other step",
                            letter(step->kind), step->chunk, step->microbatch);
  if (!is_beside && step->kind != PL_IR_STEP_F)
    return pl_ir_check_fail(checking, step->place, NULL, NULL,
                            "%c%d.%d: of steps that run beside each other the first is a forward pass (F0.1+B0.0)",
                            letter(step->kind), step->chunk, step->microbatch);
  return PL_OK;
}

/* The first step that should be there and is not; ends after as many as there are. */
static pl_code check_missing(const pl_ir_checking *checking, const pl_ir_class *own, const known_steps *steps) {
  for (int32_t i = 0; i < own->n_chunks; i++)
    for (int kind = PL_IR_STEP_F; kind <= PL_IR_STEP_W; kind++)
      for (int32_t m = own->chunks[i].first_microbatch;
           m < pl_ir_chunk_end(&own->chunks[i], checking->module->n_microbatches) &&
           function_of(&own->chunks[i], kind) != PL_IR_NONE;
           m++)
        if (find_step(steps, kind, &own->chunks[i], m) == NULL)
          return pl_ir_check_fail(checking, own->place, NULL, NULL, "class %s lacks step %c%d.%d", own->name,
                                  letter(kind), own->chunks[i].chunk, m);
  return PL_OK;
}

static pl_code check_steps(const pl_ir_checking *checking, const pl_ir_class *own, const chunk_owner *owners,
                           int64_t n_chunks) {
  known_steps steps;
  if (!take_known(checking, own, &steps)) return pl_ir_check_no_memory(checking);
  for (int32_t i = 0; i < own->n_steps; i++) {
    const pl_ir_step *step = &own->steps[i];
    PL_TRY(check_step(checking, own, step, owners, n_chunks, &steps));
    PL_TRY(check_joined(checking, own, i));
    if (!put_step(&steps, step, owners[step->chunk].chunk, checking->scratch)) return pl_ir_check_no_memory(checking);
  }
  return check_missing(checking, own, &steps);
}

/* ---- where classes are ---- */

/* On to the next device of the class: a carry over the axes that it has all of. */
static bool next_device(const pl_ir_mesh *mesh, const pl_ir_class *own, int32_t at[PL_IR_AXES_MAX]) {
  for (int32_t axis = mesh->n_axes - 1; axis >= 0; axis--) {
    if (own->at[axis] != PL_IR_NONE) continue;
    if (++at[axis] < mesh->axes[axis].extent) return true;
    at[axis] = 0;
  }
  return false;
}

static pl_code cover(const pl_ir_checking *checking, const pl_ir_class *own, const pl_ir_class **holders) {
  const pl_ir_mesh *mesh = &checking->module->mesh;
  int32_t at[PL_IR_AXES_MAX] = {0};
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    if (own->at[axis] != PL_IR_NONE && (own->at[axis] < 0 || own->at[axis] >= mesh->axes[axis].extent))
      return pl_ir_check_fail(checking, own->place, NULL, NULL, "class %s is at %s=%d of %d", own->name,
                              mesh->axes[axis].name.text, own->at[axis], mesh->axes[axis].extent);
    if (own->at[axis] != PL_IR_NONE) at[axis] = own->at[axis];
  }
  do {
    uint32_t device = 0;
    for (int32_t axis = 0; axis < mesh->n_axes; axis++)
      device = device * (uint32_t)mesh->axes[axis].extent + (uint32_t)at[axis];
    if (holders[device] != NULL)
      return pl_ir_check_fail(checking, own->place, NULL, NULL,
                              "class %s and class %s both have device %u of the mesh: they differ in no coordinate",
                              holders[device]->name, own->name, device);
    holders[device] = own;
  } while (next_device(mesh, own, at));
  return PL_OK;
}

/* One of the platform for each device that some class has. */
static pl_code check_places(const pl_ir_checking *checking, int64_t used) {
  const pl_ir_module *module = checking->module;
  if (module->n_places != used)
    return pl_ir_check_fail(checking, (pl_ir_place){0}, NULL, NULL,
                            "`devices` names %d, and classes have %" PRId64 " devices of the mesh", module->n_places,
                            used);
  bool *taken = PL_TAKE(checking->scratch, bool, PL_IR_DEVICES_MAX);
  if (taken == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t i = 0; i < module->n_places; i++) {
    if (taken[module->places[i]])
      return pl_ir_check_fail(checking, (pl_ir_place){0}, NULL, NULL, "`devices` names device %u twice",
                              module->places[i]);
    taken[module->places[i]] = true;
  }
  return PL_OK;
}

static pl_code check_cover(const pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  int64_t n = 1;
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    n *= module->mesh.axes[axis].extent;
    if (module->mesh.axes[axis].extent < 1 || n > PL_IR_DEVICES_MAX)
      return pl_ir_check_fail(checking, (pl_ir_place){0}, NULL, NULL, "a mesh has 1 to %d devices", PL_IR_DEVICES_MAX);
  }
  const pl_ir_class **holders = (const pl_ir_class **)PL_TAKE(checking->scratch, pl_ir_class *, n);
  if (holders == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t c = 0; c < module->n_classes; c++)
    PL_TRY(cover(checking, &module->classes[c], holders));
  int64_t used = 0;
  for (int64_t device = 0; device < n; device++)
    used += holders[device] != NULL;
  if (module->places != NULL) return check_places(checking, used);
  for (int64_t device = 0; device < n; device++)
    if (holders[device] == NULL)
      return pl_ir_check_fail(checking, module->classes[0].place, NULL, NULL,
                              "device %" PRId64 " of %" PRId64 " on the mesh is in no class", device, n);
  return PL_OK;
}

/* ---- what their functions hold ---- */

/* Axes along which values of an op differ, or devices meet. */
static uint32_t axes_of(const pl_ir_module *module, const pl_ir_function *function, const pl_ir_op *op) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  bool meets = row->effect == PL_IR_COLLECTIVE || strcmp(row->name, "cut") == 0;
  uint32_t axes = 0;
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    for (int32_t i = 0; i < op->n_outputs; i++)
      if (function->values[op->first_output + i].type.on[axis] != PL_IR_SAME) axes |= 1u << axis;
    if (meets && pl_ir_op_has_name(op, "over", module->mesh.axes[axis].name)) axes |= 1u << axis;
  }
  return axes;
}

/* The op of a function, or of one that it calls, that has to do with one of these axes. */
static pl_code refuse_axes(const pl_ir_checking *checking, const pl_ir_class *own, int32_t f, uint32_t axes,
                           const uint32_t *used) {
  const pl_ir_module *module = checking->module;
  const pl_ir_function *function = module->functions[f];
  for (int32_t i = 0; i < function->n_ops;) {
    const pl_ir_op *op = &function->ops[i++];
    uint32_t direct = axes_of(module, function, op) & axes;
    if (direct != 0) {
      int32_t axis = 0;
      while (!(direct >> axis & 1))
        axis++;
      const char *name = module->mesh.axes[axis].name.text;
      return pl_ir_check_fail(checking, op->place, function, op,
                              "%s lies or meets along axis %s, of which class %s, that runs it, has %s=%d alone: what "
                              "others hold comes by receive",
                              pl_ir_row_at(op->row)->name, name, own->name, name, own->at[axis]);
    }
    if (op->callee != PL_IR_NONE && (used[op->callee] & axes) != 0) {
      function = module->functions[op->callee];
      i = 0;
    }
  }
  return pl_ir_check_fail(checking, function->place, function, NULL,
                          "it lies along an axis that class %s has not whole", own->name);
}

static pl_code check_axes(const pl_ir_checking *checking, const pl_ir_class *own, const uint32_t *used) {
  uint32_t fixed = 0;
  for (int32_t axis = 0; axis < checking->module->mesh.n_axes; axis++)
    if (own->at[axis] != PL_IR_NONE) fixed |= 1u << axis;
  for (int32_t i = 0; i < own->n_chunks; i++)
    for (int kind = PL_IR_STEP_F; kind <= PL_IR_STEP_W; kind++) {
      int32_t f = function_of(&own->chunks[i], kind);
      if (f != PL_IR_NONE && (used[f] & fixed) != 0) return refuse_axes(checking, own, f, fixed, used);
    }
  if (own->update != PL_IR_NONE && (used[own->update] & fixed) != 0)
    return refuse_axes(checking, own, own->update, fixed, used);
  return PL_OK;
}

/* By function, those that it calls included. */
static uint32_t *used_axes(const pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  uint32_t *used = PL_TAKE(checking->scratch, uint32_t, module->n_functions + 1);
  for (int32_t f = 0; used != NULL && f < module->n_functions; f++) {
    const pl_ir_function *function = module->functions[f];
    for (int32_t i = 0; i < function->n_ops; i++) {
      const pl_ir_op *op = &function->ops[i];
      used[f] |= axes_of(module, function, op) | (op->callee != PL_IR_NONE ? used[op->callee] : 0);
    }
  }
  return used;
}

/* ---- all of it ---- */

static pl_code check_level(const pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  pl_ir_place place = module->n_classes > 0 ? module->classes[module->n_classes - 1].place : (pl_ir_place){0};
  if (module->n_classes == 0)
    return pl_ir_check_fail(checking, (pl_ir_place){1, 1}, NULL, NULL,
                            "no class runs anything: a program needs 'class NAME { chunk 0 forward @f  steps F0.0 }'");
  if (module->level >= PL_IR_DISTRIBUTED) return PL_OK;
  if (module->n_classes > 1)
    return pl_ir_check_fail(checking, place, NULL, NULL, "a program of level %s has one class, not %d",
                            pl_ir_level_names[module->level], module->n_classes);
  if (module->mesh.n_axes > 0)
    return pl_ir_check_fail(checking, place, NULL, NULL, "a program of level %s has no mesh",
                            pl_ir_level_names[module->level]);
  return PL_OK;
}

pl_code pl_ir_check_classes(pl_ir_checking *checking) {
  const pl_ir_module *module = checking->module;
  chunk_owner *owners;
  int64_t n_chunks;
  PL_TRY(check_level(checking));
  PL_TRY(check_cover(checking));
  PL_TRY(check_chunks(checking, &owners, &n_chunks));
  if (n_chunks > 0) PL_TRY(check_all_run(checking));
  const uint32_t *used = used_axes(checking);
  if (used == NULL) return pl_ir_check_no_memory(checking);
  for (int32_t c = 0; c < module->n_classes; c++) {
    const pl_ir_class *own = &module->classes[c];
    PL_TRY(check_bare(checking, own->place, own->update, "update"));
    PL_TRY(check_axes(checking, own, used));
    PL_TRY(check_steps(checking, own, owners, n_chunks));
  }
  return PL_OK;
}
