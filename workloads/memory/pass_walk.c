/* See workloads/memory/pass_walk.h. */
#include "workloads/memory/pass_walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_table.h"

enum { DEPTH_MAX = 64 };

enum { COUNTED_PARAMETER = -1, COUNTED_GRADIENT = -2 };

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- storage ---- */

static pl_value_memory *take(pl_pass_walk *own, double bytes) {
  pl_value_memory *made = own->n_free > 0 ? own->free_list[--own->n_free] : PL_TAKE(own->arena, pl_value_memory, 1);
  if (made == NULL) return NULL;
  *made = (pl_value_memory){.bytes = bytes, .references = 1};
  own->live += bytes;
  if (own->live > own->peak) own->peak = own->live;
  return made;
}

static pl_value_memory *share(pl_value_memory *is_one) {
  if (is_one != NULL) is_one->references++;
  return is_one;
}

static void drop(pl_pass_walk *own, pl_value_memory *is_one) {
  if (is_one == NULL || --is_one->references > 0) return;
  own->live -= is_one->bytes;
  own->free_list = (pl_value_memory **)pl_arena_grown(own->arena, (const void *)own->free_list, own->n_free, 1,
                                                      sizeof(pl_value_memory *), &own->room_free);
  if (own->free_list != NULL) own->free_list[own->n_free++] = is_one;
}

/* ---- on the way to the host and back ---- */

/* Stays on the device until the function that comes behind this one is through. */
static bool move(pl_pass_walk *own, pl_value_memory *is_one) {
  own->moving[0] = (pl_value_memory **)pl_arena_grown(own->arena, (const void *)own->moving[0], own->n_moving[0], 1,
                                                      sizeof(pl_value_memory *), &own->room_moving[0]);
  if (own->moving[0] == NULL) return false;
  own->moving[0][own->n_moving[0]++] = share(is_one);
  return true;
}

/* A function that moved some is through: what the one before moved has arrived. */
static void arrive(pl_pass_walk *own) {
  for (uint32_t i = 0; i < own->n_moving[1]; i++)
    drop(own, own->moving[1][i]);
  pl_value_memory **list = own->moving[1];
  uint32_t room = own->room_moving[1];
  own->moving[1] = own->moving[0];
  own->n_moving[1] = own->n_moving[0];
  own->room_moving[1] = own->room_moving[0];
  own->moving[0] = list;
  own->n_moving[0] = 0;
  own->room_moving[0] = room;
}

static void count_in_host(pl_pass_walk *own, double bytes) {
  own->host_live += bytes;
  if (own->host_live > own->host_peak) own->host_peak = own->host_live;
}

/* ---- paths ---- */

/* Goes into a call, and to what is in it; `path_length` put back comes out. */
static void enter(pl_pass_walk *own, const char *segment) {
  size_t n = segment != NULL ? strlen(segment) : 0, at = own->path_length + (own->path_length > 0);
  if (n == 0) return;
  PL_ASSERT(at + n < PL_WALK_PATH_BYTES); /* pl_ir_check has looked, through all calls */
  if (at > 0) own->path[at - 1] = '.';
  memcpy(own->path + at, segment, n);
  own->path_length = at + n;
}

/* Of an op's path. */
static pl_path_memory *find(pl_pass_walk *own, int32_t kind, const char *segment) {
  uint32_t probe = 0;
  size_t before = own->path_length;
  enter(own, segment);
  size_t n = own->path_length;
  own->path[n] = 0;
  own->path_length = before;
  uint64_t hash = pl_hash_characters(pl_hash_word(7, (uint64_t)(uint32_t)kind), own->path, n);
  for (const void *found; (found = pl_hash_index_find(&own->entries, hash, &probe)) != NULL;) {
    pl_path_memory *known = (pl_path_memory *)(uintptr_t)found; /* ours */
    if (known->kind == kind && strcmp(known->path, own->path) == 0) return known;
  }
  pl_path_memory *made = PL_TAKE(own->arena, pl_path_memory, 1);
  if (made == NULL) return NULL;
  made->kind = kind;
  made->path = pl_arena_strdup(own->arena, own->path);
  if (made->path == NULL || !pl_hash_index_put(&own->entries, hash, made, own->arena)) return NULL;
  return made;
}

/* True the first time. */
static bool is_new(pl_pass_walk *own, int32_t kind, const char *segment) {
  pl_path_memory *known = find(own, kind, segment);
  if (known == NULL || known->is_counted) return false;
  known->is_counted = true;
  return true;
}

/* ---- what stays ---- */

/* Sharded parameters are gathered in the type that is computed in; others have a copy of it beside fp32 weights. The op
 * that gathers one; NULL: none. */
static const pl_ir_op *gather_of(const pl_ir_function *f, const pl_ir_op *param) {
  for (int32_t i = 0; i < f->n_ops; i++)
    if (is(&f->ops[i], "all_gather") && f->ops[i].inputs[0] == param->first_output) return &f->ops[i];
  return NULL;
}

static double narrow_bytes(const pl_pass_walk *own, const pl_ir_function *f, const pl_ir_op *param, double n) {
  if (!own->framework->memory.caches_narrow_weights) return 0;
  pl_ir_element element = pl_memory_narrow_element(own->module, f, param->first_output);
  return element != PL_IR_ELEMENT_COUNT ? n * pl_ir_element_bytes(element) : 0;
}

static void count_parameter(pl_pass_walk *own, const pl_ir_function *f, const pl_ir_op *op, double n, double narrow) {
  const pl_ir_op *gather = gather_of(f, op);
  own->made->parameters += n * (narrow < 4 ? own->state.parameter_bytes : narrow);
  if (narrow < 4 && gather == NULL) own->made->parameters += n * own->state.cast_bytes;
  if (gather != NULL) n = pl_ir_type_local_elements(&own->module->mesh, &f->values[gather->first_output].type);
  own->gathers = own->gathers || gather != NULL;
  own->buffers.parameters += n;
  own->buffers.largest_parameters = fmax(own->buffers.largest_parameters, n);
  own->buffers.narrow += narrow_bytes(own, f, op, n);
  own->block += n;
}

/* Behind a call of a chunk. */
static void count_block(pl_pass_walk *own) {
  own->buffers.largest_block = fmax(own->buffers.largest_block, own->block);
  own->buffers.largest_pair = fmax(own->buffers.largest_pair, own->block_before + own->block);
  own->block_before = own->block;
  own->block = 0;
}

static void count_state(pl_pass_walk *own, const pl_ir_function *f, const pl_ir_op *op, double n, pl_memory_role does) {
  const pl_ir_type *type = &f->values[op->first_output].type;
  double narrow = pl_ir_element_bytes((pl_ir_element)type->element);
  if (does == PL_ROLE_IS_UPDATE) {
    own->elements += n;
  } else if (does == PL_ROLE_IS_UPDATE_IN_HOST) {
    own->host_elements += n;
  } else if (does == PL_ROLE_IS_PARAMETER && is_new(own, COUNTED_PARAMETER, op->path)) {
    count_parameter(own, f, op, n, narrow);
  } else if (does == PL_ROLE_IS_GRADIENT && is_new(own, COUNTED_GRADIENT, op->path)) {
    own->made->gradients += n * fmax(narrow, own->state.gradient_bytes);
    own->gradient_elements += n;
  } else if (does == PL_ROLE_IS_GRADIENT_IN_HOST && is_new(own, COUNTED_GRADIENT, op->path)) {
    own->host_gradients += n * fmax(narrow, own->state.gradient_bytes);
  }
}

/* ---- ops ---- */

static pl_path_memory *kept_entry(pl_pass_walk *own, const char *path) {
  size_t outside = own->path_length;
  if (own->piece.of > 1) {
    char piece[24];
    snprintf(piece, sizeof piece, "#%lld", (long long)own->piece.index);
    enter(own, piece);
  }
  pl_path_memory *known = find(own, own->chunk, path);
  own->path_length = outside;
  return known;
}

static bool make(pl_pass_walk *own, const pl_outlook *look, const pl_ir_op *op, pl_value_memory **values) {
  for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
    int32_t over = look->over[value];
    values[value] = over != PL_IR_NONE ? share(values[over]) : take(own, look->bytes[value]);
    if (over == PL_IR_NONE && values[value] == NULL) return false;
  }
  return true;
}

static bool run_function(pl_pass_walk *own, int32_t function, pl_value_memory **arguments, pl_value_memory **results);

/* An argument that nobody reads behind the call is the callee's. */
static bool run_call(pl_pass_walk *own, const int32_t *last, int32_t index, const pl_ir_op *op,
                     pl_value_memory **values) {
  pl_value_memory *arguments[PL_IR_OPERANDS_MAX], *results[PL_IR_OPERANDS_MAX];
  size_t outside = own->path_length;
  for (int32_t i = 0; i < op->n_inputs; i++)
    arguments[i] = share(values[op->inputs[i]]);
  for (int32_t i = 0; i < op->n_inputs; i++) {
    if (last[op->inputs[i]] > index) continue;
    drop(own, values[op->inputs[i]]);
    values[op->inputs[i]] = NULL;
  }
  const pl_ir_piece piece = own->piece;
  own->piece = pl_ir_piece_inside(piece, op);
  enter(own, op->path);
  bool fits = run_function(own, op->callee, arguments, results);
  if (own->depth == 1 && own->counts && own->block > 0) count_block(own);
  own->path_length = outside;
  own->piece = piece;
  for (int32_t i = 0; fits && i < op->n_outputs; i++)
    values[op->first_output + i] = results[i];
  return fits;
}

/* ---- parts ---- */

static bool end_part(pl_pass_walk *own) {
  pl_pass_part *parts =
      (pl_pass_part *)pl_arena_grown(own->arena, own->parts, own->n_parts, 1, sizeof *parts, &own->room_parts);
  if (parts == NULL) return false;
  own->parts = parts;
  parts[own->n_parts++] = (pl_pass_part){own->live, own->peak};
  own->most = fmax(own->most, own->peak);
  own->peak = own->live;
  own->waits = false;
  return true;
}

/* As the graph parts passes that run beside each other (workloads/compile/ir_graph_pass.c): in front of the first work
 * behind an exchange of tokens. */
static bool part_at(pl_pass_walk *own, const pl_ir_function *f, const pl_ir_op *op) {
  bool exchanges = is(op, "all_to_all") && pl_ir_is_routed(&own->routing, &f->values[op->inputs[0]].type);
  bool works = is(op, "kernel") || (pl_ir_row_at(op->row)->effect == PL_IR_PURE && op->n_outputs > 0);
  if (works && own->waits && !end_part(own)) return false;
  own->waits = own->waits || exchanges;
  return true;
}

static bool run_op(pl_pass_walk *own, const pl_ir_function *f, const pl_outlook *look, int32_t index,
                   pl_value_memory **values) {
  const pl_ir_op *op = &f->ops[index];
  if (own->joins && !part_at(own, f, op)) return false;
  pl_memory_role does = (pl_memory_role)look->roles[index];
  if (does >= PL_ROLE_IS_UPDATE || (does >= PL_ROLE_IS_PARAMETER && own->counts))
    count_state(own, f, op, look->elements[index], does);
  if (does == PL_ROLE_CALLS) return run_call(own, look->last, index, op, values);
  if (look->added[index] > 0) {
    own->added += look->added[index] * own->buffers.bytes.pass_gradient_bytes;
    own->live += look->added[index] * own->buffers.bytes.pass_gradient_bytes;
    if (own->live > own->peak) own->peak = own->live;
  }
  if (does == PL_ROLE_READS) return true;
  if (does == PL_ROLE_SENDS_TO_HOST) {
    count_in_host(own, pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type));
    return move(own, values[op->inputs[0]]);
  }
  if (does == PL_ROLE_ADDS_IN_HOST) return move(own, values[op->inputs[0]]);
  if (does == PL_ROLE_TAKES_FROM_HOST) {
    double bytes = pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->first_output].type);
    values[op->first_output] = take(own, bytes);
    if (!own->keeps_for_weights) count_in_host(own, -bytes);
    return values[op->first_output] != NULL && move(own, values[op->first_output]);
  }
  if (does == PL_ROLE_KEEPS) {
    pl_path_memory *known = kept_entry(own, op->path);
    if (known != NULL) known->kept = share(values[op->inputs[0]]);
    return known != NULL;
  }
  if (does == PL_ROLE_TAKES) { /* which lets go of it, where nobody else reads it later */
    pl_path_memory *known = kept_entry(own, op->path);
    if (known == NULL) return false;
    bool stays = own->keeps_for_weights && known->for_weights;
    values[op->first_output] = stays ? share(known->kept) : known->kept;
    if (!stays) known->kept = NULL;
    return true;
  }
  if (does >= PL_ROLE_IS_PARAMETER && pl_memory_op_reads(op)) return true;
  if (does == PL_ROLE_SHARES) {
    values[op->first_output] = op->n_inputs > 0 ? share(values[op->inputs[0]]) : NULL;
    return true;
  }
  double masks = own->kind == PL_IR_STEP_F && !look->makes_again ? look->masks[index] : 0;
  own->live += masks;
  if (masks > 0) own->chunks[own->chunk].masks += masks;
  if (!make(own, look, op, values)) return false;
  if (own->live + look->beside[index] > own->peak) own->peak = own->live + look->beside[index];
  return true;
}

static bool run_function(pl_pass_walk *own, int32_t function, pl_value_memory **arguments, pl_value_memory **results) {
  const pl_ir_function *f = own->module->functions[function];
  const pl_outlook *look = &own->outlooks[function];
  if (++own->depth > DEPTH_MAX) return false;
  pl_arena_mark frame = pl_arena_mark_here(&own->frames);
  pl_value_memory **values = PL_TAKE(&own->frames, pl_value_memory *, f->n_values + 1);
  bool fits = values != NULL;
  PL_ASSERT((f->n_arguments == 0 || arguments != NULL) && (f->n_results == 0 || results != NULL));
  for (int32_t i = 0; fits && i < f->n_arguments; i++)
    values[i] = arguments[i];
  for (int32_t i = 0; fits && i < f->n_ops; i++) {
    fits = run_op(own, f, look, i, values);
    for (int32_t k = look->ends_at[i]; fits && k < look->ends_at[i + 1]; k++) {
      drop(own, values[look->ends[k]]);
      values[look->ends[k]] = NULL;
    }
  }
  for (int32_t i = 0; fits && i < f->n_results; i++)
    results[i] = share(values[f->results[i]]);
  for (int32_t k = look->ends_at[f->n_ops]; fits && k < look->ends_at[f->n_ops + 1]; k++)
    drop(own, values[look->ends[k]]);
  if (own->n_moving[0] > 0) arrive(own);
  pl_arena_release_to(&own->frames, frame);
  own->depth--;
  return fits;
}

/* ---- passes ---- */

bool pl_pass_walk_weights(pl_pass_walk *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  bool fits = ++own->depth <= DEPTH_MAX;
  for (int32_t i = 0; fits && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    pl_memory_role does = (pl_memory_role)own->outlooks[function].roles[i];
    if (does == PL_ROLE_TAKES) {
      pl_path_memory *known = kept_entry(own, op->path);
      fits = known != NULL;
      if (fits) known->for_weights = true;
    }
    if (does != PL_ROLE_CALLS) continue;
    size_t outside = own->path_length;
    const pl_ir_piece piece = own->piece;
    own->piece = pl_ir_piece_inside(piece, op);
    enter(own, op->path);
    fits = pl_pass_walk_weights(own, op->callee);
    own->path_length = outside;
    own->piece = piece;
  }
  own->depth--;
  return fits;
}

bool pl_pass_walk_whole(pl_pass_walk *own, int32_t function) {
  own->counts = !own->is_counted[function];
  own->is_counted[function] = true;
  return run_function(own, function, NULL, NULL);
}

bool pl_pass_walk_through(pl_pass_walk *own, int32_t function, pl_pass_effect *effect) {
  const double live = own->live, peak = own->peak, host_live = own->host_live, host_peak = own->host_peak;
  own->live = own->peak = own->host_live = own->host_peak = own->most = 0;
  own->parts = NULL;
  own->n_parts = own->room_parts = 0;
  own->waits = false;
  bool fits = pl_pass_walk_whole(own, function);
  arrive(own);
  arrive(own);
  if (own->kind != PL_IR_STEP_F) {
    own->live -= own->chunks[own->chunk].masks;
    own->chunks[own->chunk].masks = 0;
  }
  own->live -= own->added;
  own->added = 0;
  effect->exchanges = own->n_parts > 0 || own->waits;
  effect->ends_waiting = own->waits;
  effect->net = own->live;
  effect->peak = fmax(own->most, own->peak);
  if (own->joins) fits = end_part(own) && fits;
  effect->parts = own->parts;
  effect->n_parts = (int32_t)own->n_parts;
  effect->host_net = own->host_live;
  effect->host_peak = own->host_peak;
  own->live = live;
  own->peak = peak;
  own->host_live = host_live;
  own->host_peak = host_peak;
  return fits;
}
