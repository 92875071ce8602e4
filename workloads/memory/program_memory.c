/* See workloads/memory/program_memory.h. */
#include "workloads/memory/program_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/language/ir_alike.h"
#include "workloads/language/ir_table.h"
#include "workloads/memory/buffer_memory.h"
#include "workloads/memory/outlook.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/program/program.h"

enum { PATH_BYTES = 1024, DEPTH_MAX = 64 };

/* Memory of one or more values. */
typedef struct storage {
  double bytes;
  int32_t references;
} storage;

/* What a path keeps of the microbatch that is walked through; or that its state is counted. */
typedef struct entry {
  const char *path;
  int32_t kind; /* the chunk, or what is counted */
  storage *kept;
  bool is_counted, for_weights; /* for_weights: the weights function reads it */
} entry;

/* What a pass of a chunk does to the values on the device, and to those in its host: the same for every microbatch,
 * since it only sees what the passes of its own microbatch before it have kept. */
typedef struct pass_effect {
  double net, peak; /* bytes: what it leaves, and the most above what was there */
  double host_net, host_peak;
} pass_effect;

enum { PASSES = PL_IR_STEP_W + 1 };

/* The first pass of each kind is walked through, all others do what it did. */
typedef struct chunk_walk {
  bool is_known[PASSES];
  pass_effect effects[PASSES];
  double masks; /* bytes that the forward pass wrote */
} chunk_walk;

enum { COUNTED_PARAMETER = -1, COUNTED_GRADIENT = -2 };

/* What was found in the passes of a class and its update; lists that are alike (ir_alike.h) have it in common. */
typedef struct findings {
  const int32_t *order;    /* chunk of the class and kind of pass, as they come first in the list; PL_IR_NONE ends it.
                              NULL:    nothing is kept */
  pl_training_state bytes; /* that it was walked through with */
  const chunk_walk *chunks;
  double parameters, gradients, gradient_elements, elements;
  pl_buffer_facts buffers;
  bool gathers;
} findings;

typedef struct walk {
  const pl_ir_module *module;
  const pl_framework *framework;
  pl_training_state state;
  pl_arena *arena;
  pl_arena frames; /* values of the functions that are in the middle of it */
  pl_class_memory *made;
  pl_hash_index entries;
  uint32_t most_entries;      /* of a class so far */
  const pl_outlook *outlooks; /* per function */
  bool *is_counted;           /* per function: its parameters and gradients, in the class at hand */
  char path[PATH_BYTES];      /* of the calls that it is in */
  size_t path_length;
  storage **free_list;
  uint32_t n_free, room_free;
  double live, peak; /* of values */
  chunk_walk *chunks;
  int32_t chunk, depth;
  pl_ir_piece piece;
  pl_ir_step_kind kind;
  bool keeps_for_weights, counts;
  double elements; /* of optimizer states on the device */
  pl_buffer_facts buffers;
  double gradient_elements, block, block_before; /* parameters of the call of a chunk that it is in, and before */
  bool gathers;                                  /* parameters */
  double added;                                  /* bytes of gradients that stay until the pass is over */
  double host_elements, host_gradients, host_live, host_peak;
  /* On their way to the host or back: of the function that runs, and of the one before. */
  storage **moving[2];
  uint32_t n_moving[2], room_moving[2];
} walk;

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

/* ---- storage ---- */

static storage *take(walk *own, double bytes) {
  storage *made = own->n_free > 0 ? own->free_list[--own->n_free] : PL_TAKE(own->arena, storage, 1);
  if (made == NULL) return NULL;
  *made = (storage){.bytes = bytes, .references = 1};
  own->live += bytes;
  if (own->live > own->peak) own->peak = own->live;
  return made;
}

static storage *share(storage *is_one) {
  if (is_one != NULL) is_one->references++;
  return is_one;
}

static void drop(walk *own, storage *is_one) {
  if (is_one == NULL || --is_one->references > 0) return;
  own->live -= is_one->bytes;
  own->free_list = (storage **)pl_arena_grown(own->arena, (const void *)own->free_list, own->n_free, 1,
                                              sizeof(storage *), &own->room_free);
  if (own->free_list != NULL) own->free_list[own->n_free++] = is_one;
}

/* ---- on the way to the host and back ---- */

/* Stays on the device until the function that comes behind this one is through. */
static bool move(walk *own, storage *is_one) {
  own->moving[0] = (storage **)pl_arena_grown(own->arena, (const void *)own->moving[0], own->n_moving[0], 1,
                                              sizeof(storage *), &own->room_moving[0]);
  if (own->moving[0] == NULL) return false;
  own->moving[0][own->n_moving[0]++] = share(is_one);
  return true;
}

/* A function that moved some is through: what the one before moved has arrived. */
static void arrive(walk *own) {
  for (uint32_t i = 0; i < own->n_moving[1]; i++)
    drop(own, own->moving[1][i]);
  storage **list = own->moving[1];
  uint32_t room = own->room_moving[1];
  own->moving[1] = own->moving[0];
  own->n_moving[1] = own->n_moving[0];
  own->room_moving[1] = own->room_moving[0];
  own->moving[0] = list;
  own->n_moving[0] = 0;
  own->room_moving[0] = room;
}

static void count_in_host(walk *own, double bytes) {
  own->host_live += bytes;
  if (own->host_live > own->host_peak) own->host_peak = own->host_live;
}

/* ---- paths ---- */

/* Goes into a call, and to what is in it; `path_length` put back comes out. */
static void enter(walk *own, const char *segment) {
  size_t n = segment != NULL ? strlen(segment) : 0, at = own->path_length + (own->path_length > 0);
  if (n == 0 || at + 1 >= PATH_BYTES) return;
  if (at > 0) own->path[at - 1] = '.';
  own->path_length = at;
  if (n > PATH_BYTES - 1 - at) n = PATH_BYTES - 1 - at;
  memcpy(own->path + own->path_length, segment, n);
  own->path_length += n;
}

/* Of an op's path. */
static entry *find(walk *own, int32_t kind, const char *segment) {
  uint32_t probe = 0;
  size_t before = own->path_length;
  enter(own, segment);
  size_t n = own->path_length;
  own->path[n] = 0;
  own->path_length = before;
  uint64_t hash = pl_hash_characters(pl_hash_word(7, (uint64_t)(uint32_t)kind), own->path, n);
  for (const void *found; (found = pl_hash_index_find(&own->entries, hash, &probe)) != NULL;) {
    entry *known = (entry *)(uintptr_t)found; /* ours */
    if (known->kind == kind && strcmp(known->path, own->path) == 0) return known;
  }
  entry *made = PL_TAKE(own->arena, entry, 1);
  if (made == NULL) return NULL;
  made->kind = kind;
  made->path = pl_arena_strdup(own->arena, own->path);
  if (made->path == NULL || !pl_hash_index_put(&own->entries, hash, made, own->arena)) return NULL;
  return made;
}

/* True the first time. */
static bool is_new(walk *own, int32_t kind, const char *segment) {
  entry *known = find(own, kind, segment);
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

static double narrow_bytes(const walk *own, const pl_ir_function *f, const pl_ir_op *param, double n) {
  if (!own->framework->memory.caches_narrow_weights) return 0;
  pl_ir_element element = pl_memory_narrow_element(own->module, f, param->first_output);
  return element != PL_IR_ELEMENT_COUNT ? n * pl_ir_element_bytes(element) : 0;
}

static void count_parameter(walk *own, const pl_ir_function *f, const pl_ir_op *op, double n, double narrow) {
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
static void count_block(walk *own) {
  own->buffers.largest_block = fmax(own->buffers.largest_block, own->block);
  own->buffers.largest_pair = fmax(own->buffers.largest_pair, own->block_before + own->block);
  own->block_before = own->block;
  own->block = 0;
}

static void count_state(walk *own, const pl_ir_function *f, const pl_ir_op *op, double n, pl_memory_role does) {
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

static entry *kept_entry(walk *own, const char *path) {
  size_t outside = own->path_length;
  if (own->piece.of > 1) {
    char piece[24];
    snprintf(piece, sizeof piece, "#%lld", (long long)own->piece.index);
    enter(own, piece);
  }
  entry *known = find(own, own->chunk, path);
  own->path_length = outside;
  return known;
}

static bool make(walk *own, const pl_outlook *look, const pl_ir_op *op, storage **values) {
  for (int32_t value = op->first_output; value < op->first_output + op->n_outputs; value++) {
    int32_t over = look->over[value];
    values[value] = over != PL_IR_NONE ? share(values[over]) : take(own, look->bytes[value]);
    if (over == PL_IR_NONE && values[value] == NULL) return false;
  }
  return true;
}

static bool run_function(walk *own, int32_t function, storage **arguments, storage **results);

/* An argument that nobody reads behind the call is the callee's. */
static bool run_call(walk *own, const int32_t *last, int32_t index, const pl_ir_op *op, storage **values) {
  storage *arguments[PL_IR_OPERANDS_MAX], *results[PL_IR_OPERANDS_MAX];
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

static bool run_op(walk *own, const pl_ir_function *f, const pl_outlook *look, int32_t index, storage **values) {
  const pl_ir_op *op = &f->ops[index];
  pl_memory_role does = (pl_memory_role)look->roles[index];
  if (does >= PL_ROLE_IS_UPDATE || (does >= PL_ROLE_IS_PARAMETER && own->counts))
    count_state(own, f, op, look->elements[index], does);
  if (does == PL_ROLE_CALLS) return run_call(own, look->last, index, op, values);
  own->added += look->added[index] * own->buffers.bytes.pass_gradient_bytes;
  own->live += look->added[index] * own->buffers.bytes.pass_gradient_bytes;
  if (own->live > own->peak) own->peak = own->live;
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
    entry *known = kept_entry(own, op->path);
    if (known != NULL) known->kept = share(values[op->inputs[0]]);
    return known != NULL;
  }
  if (does == PL_ROLE_TAKES) { /* which lets go of it, where nobody else reads it later */
    entry *known = kept_entry(own, op->path);
    if (known == NULL) return false;
    bool stays = own->keeps_for_weights && known->for_weights;
    values[op->first_output] = stays ? share(known->kept) : known->kept;
    if (!stays) known->kept = NULL;
    return true;
  }
  if (does == PL_ROLE_READS || (does >= PL_ROLE_IS_PARAMETER && pl_memory_op_reads(op))) return true;
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

static bool run_function(walk *own, int32_t function, storage **arguments, storage **results) {
  const pl_ir_function *f = own->module->functions[function];
  const pl_outlook *look = &own->outlooks[function];
  if (++own->depth > DEPTH_MAX) return false;
  pl_arena_mark frame = pl_arena_mark_here(&own->frames);
  storage **values = PL_TAKE(&own->frames, storage *, f->n_values + 1);
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

/* What a weights function reads, through its calls, is there until then. */
static bool note_weights(walk *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  bool fits = ++own->depth <= DEPTH_MAX;
  for (int32_t i = 0; fits && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    pl_memory_role does = (pl_memory_role)own->outlooks[function].roles[i];
    if (does == PL_ROLE_TAKES) {
      entry *known = kept_entry(own, op->path);
      fits = known != NULL;
      if (fits) known->for_weights = true;
    }
    if (does != PL_ROLE_CALLS) continue;
    size_t outside = own->path_length;
    const pl_ir_piece piece = own->piece;
    own->piece = pl_ir_piece_inside(piece, op);
    enter(own, op->path);
    fits = note_weights(own, op->callee);
    own->path_length = outside;
    own->piece = piece;
  }
  own->depth--;
  return fits;
}

/* A function of a chunk or of the update; the next time that it is run there is nothing in it to be counted. */
static bool run_whole(walk *own, int32_t function) {
  own->counts = !own->is_counted[function];
  own->is_counted[function] = true;
  return run_function(own, function, NULL, NULL);
}

/* Up and down from what is there now. */
static void repeat(walk *own, const pass_effect *effect) {
  if (own->live + effect->peak > own->peak) own->peak = own->live + effect->peak;
  own->live += effect->net;
  if (own->host_live + effect->host_peak > own->host_peak) own->host_peak = own->host_live + effect->host_peak;
  own->host_live += effect->host_net;
}

/* Walks through a pass as if there were nothing else, and notes what it does. */
static bool walk_through(walk *own, int32_t function, pass_effect *effect) {
  const double live = own->live, peak = own->peak, host_live = own->host_live, host_peak = own->host_peak;
  own->live = own->peak = own->host_live = own->host_peak = 0;
  bool fits = run_whole(own, function);
  arrive(own);
  arrive(own);
  if (own->kind != PL_IR_STEP_F) {
    own->live -= own->chunks[own->chunk].masks;
    own->chunks[own->chunk].masks = 0;
  }
  own->live -= own->added;
  own->added = 0;
  effect->net = own->live;
  effect->peak = own->peak;
  effect->host_net = own->host_live;
  effect->host_peak = own->host_peak;
  own->live = live;
  own->peak = peak;
  own->host_live = host_live;
  own->host_peak = host_peak;
  return fits;
}

static bool run_step(walk *own, const pl_ir_class *class, const pl_ir_step *step) {
  const pl_ir_chunk *chunk = class->chunks;
  while (chunk->chunk != step->chunk)
    chunk++;
  chunk_walk *of = &own->chunks[step->chunk];
  pass_effect *effect = &of->effects[step->kind];
  own->chunk = step->chunk;
  own->kind = (pl_ir_step_kind)step->kind;
  own->keeps_for_weights = step->kind == PL_IR_STEP_B && chunk->weights != PL_IR_NONE;
  int32_t function = step->kind == PL_IR_STEP_F   ? chunk->forward
                     : step->kind == PL_IR_STEP_B ? chunk->backward
                                                  : chunk->weights;
  if (!of->is_known[step->kind] && !walk_through(own, function, effect)) return false;
  of->is_known[step->kind] = true;
  repeat(own, effect);
  return true;
}

/* What ZeRO shards, as parts show it. */
static int32_t zero_of(const walk *own) {
  const double least = 0.999; /* vectors may be whole */
  double whole = own->buffers.parameters;
  return own->gathers                                         ? 3
         : own->gradient_elements < least * whole             ? 2
         : own->elements + own->host_elements < least * whole ? 1
                                                              : 0;
}

/* Buffers of a static graph between forward and backward passes (pipeline_buffers): more than the schedule needs. */
static double pipeline_buffer_bytes(const walk *own, const pl_ir_class *class) {
  int32_t stage = (int32_t)(class - own->module->classes), pp = own->module->n_classes, n = own->module->n_microbatches;
  double buffers = own->framework->pipeline.pipeline_buffers * pp, needed = pp - stage < n ? pp - stage : n;
  if (buffers <= 0 || pp == 1 || stage == pp - 1 || n == 1 || class->n_chunks != 1) return 0;
  double saved = own->chunks[class->chunks[0].chunk].effects[PL_IR_STEP_F].net;
  return fmax(buffers - needed, 0) * saved + fmax(buffers - 1, 0) * own->buffers.parameters * own->state.cast_bytes;
}

/* Behind the walk. Of other levels than kernels nobody knows what a framework holds. */
static double buffers_of(walk *own, const pl_ir_class *class) {
  if (own->module->level != PL_IR_KERNELS) return 0;
  const pl_job job = {.dtype = pl_program_dtype(own->module), .framework = own->framework};
  own->buffers.zero = zero_of(own);
  bool whole = pl_framework_reduces_whole(own->framework, own->buffers.zero); /* without buckets */
  own->buffers.bytes = pl_training_state_of(&job, own->buffers.shares && !whole ? 2 : 1);
  own->buffers.sharded = own->elements + own->host_elements;
  return pl_copied_bytes(&own->buffers) + pipeline_buffer_bytes(own, class) + pl_unsharded_bytes(&own->buffers) +
         pl_narrow_copies_bytes(&own->buffers) + pl_extra_gradient_bytes(&own->buffers);
}

/* ---- classes that are alike ---- */

/* NULL: no memory. */
static int32_t *order_of(walk *own, const pl_ir_class *class) {
  int32_t n = class->n_chunks * PASSES, n_found = 0;
  int32_t *order = PL_TAKE(own->arena, int32_t, n + 1);
  bool *seen = PL_TAKE(own->arena, bool, n + 1);
  for (int32_t s = 0; order != NULL && seen != NULL && s < class->n_steps && n_found < n; s++) {
    int32_t c = 0;
    while (class->chunks[c].chunk != class->steps[s].chunk)
      c++;
    int32_t pass = c * PASSES + class->steps[s].kind;
    if (!seen[pass]) order[n_found++] = pass;
    seen[pass] = true;
  }
  if (order == NULL || seen == NULL) return NULL;
  order[n_found] = PL_IR_NONE;
  return order;
}

/* Behind the walk through a class; not where the host has a part in it, which is counted as it comes. */
static bool note_findings(walk *own, const pl_ir_class *class, const pl_training_state *bytes, findings *found) {
  if (own->host_elements > 0 || own->host_gradients > 0 || own->host_peak > 0) return true;
  *found = (findings){.order = order_of(own, class),
                      .bytes = *bytes,
                      .chunks = own->chunks,
                      .parameters = own->made->parameters,
                      .gradients = own->made->gradients,
                      .gradient_elements = own->gradient_elements,
                      .elements = own->elements,
                      .buffers = own->buffers,
                      .gathers = own->gathers};
  return found->order != NULL;
}

/* Puts what a walk through this class would find there; false: it has to be walked through. */
static bool take_over(walk *own, const pl_ir_class *class, const pl_ir_class *like, const findings *found) {
  if (found->order == NULL || memcmp(&found->bytes, &own->buffers.bytes, sizeof found->bytes) != 0) return false;
  const int32_t *order = order_of(own, class);
  int32_t i = 0;
  while (order != NULL && order[i] == found->order[i] && order[i] != PL_IR_NONE)
    i++;
  if (order == NULL || order[i] != found->order[i]) return false;
  for (int32_t c = 0; c < class->n_chunks; c++)
    own->chunks[class->chunks[c].chunk] = found->chunks[like->chunks[c].chunk];
  own->made->parameters = found->parameters;
  own->made->gradients = found->gradients;
  own->gradient_elements = found->gradient_elements;
  own->elements = found->elements;
  own->buffers = found->buffers;
  own->gathers = found->gathers;
  return true;
}

/* ---- a class ---- */

/* `like`: the class that it is like; itself. `found` per class. */
static bool run_class(walk *own, const pl_ir_class *class, const pl_ir_class *like, findings *found) {
  const pl_training_state bytes = own->buffers.bytes;
  uint32_t n_entries = own->entries.count > own->most_entries ? own->entries.count : own->most_entries;
  own->entries = (pl_hash_index){0};
  own->most_entries = n_entries;
  for (int32_t i = 0; i < own->module->n_functions; i++)
    own->is_counted[i] = false;
  own->live = own->peak = own->elements = own->gradient_elements = own->block = own->block_before = own->added = 0;
  own->gathers = false;
  own->buffers.parameters = own->buffers.largest_parameters = own->buffers.largest_block = own->buffers.largest_pair =
      own->buffers.narrow = 0;
  own->host_elements = own->host_gradients = own->host_live = own->host_peak = 0;
  int32_t n_chunks = 0;
  for (int32_t i = 0; i < class->n_chunks; i++)
    if (class->chunks[i].chunk >= n_chunks) n_chunks = class->chunks[i].chunk + 1;
  own->chunks = PL_TAKE(own->arena, chunk_walk, n_chunks + 1);
  if (own->chunks == NULL) return false;
  bool is_taken = like != class && take_over(own, class, like, &found[like - own->module->classes]);
  if (!is_taken && n_entries > 0 && !pl_hash_index_expect(&own->entries, n_entries, own->arena)) return false;
  for (int32_t i = 0; i < class->n_chunks && !is_taken; i++) {
    own->chunk = class->chunks[i].chunk;
    if (class->chunks[i].weights != PL_IR_NONE && !note_weights(own, class->chunks[i].weights)) return false;
  }
  for (int32_t s = 0; s < class->n_steps; s++)
    if (!run_step(own, class, &class->steps[s])) return false;
  double peak = own->peak; /* in the update its values are the optimizer's */
  own->kind = PL_IR_STEP_B;
  own->keeps_for_weights = false;
  if (class->update != PL_IR_NONE && !is_taken && !run_whole(own, class->update)) return false;
  own->made->values = peak;
  own->made->optimizer = own->elements * own->state.optimizer_bytes;
  own->made->host = own->host_elements * own->state.optimizer_bytes + own->host_gradients + own->host_peak;
  own->made->buffers = buffers_of(own, class);
  if (own->buffers.zero == 2 && own->state.cast_bytes > 0) /* FSDP's fp32 weights; what is computed with is a copy */
    own->made->parameters -= (own->buffers.parameters - own->buffers.sharded) * own->state.parameter_bytes;
  double update =
      own->elements * own->state.update_bytes * (own->framework->update.lists_update && own->buffers.zero == 0 ? 2 : 1);
  if (own->framework->update.holds_update) {
    own->made->buffers += update;
    update = 0;
  }
  double stays = own->made->parameters + own->made->gradients + own->made->optimizer + own->made->buffers;
  own->made->peak = stays + fmax(peak, update);
  return is_taken || note_findings(own, class, &bytes, &found[class - own->module->classes]);
}

/* Communicators that a device belongs to: one for each set of axes that collectives of the program go over, one with
 * each class that it exchanges messages with, and that of all. */
static int32_t communicators_of(const pl_ir_module *module) {
  uint32_t known[64], n = 0;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      uint32_t axes = 0, k = 0;
      if (pl_ir_row_at(op->row)->effect != PL_IR_COLLECTIVE || is(op, "cut")) continue;
      for (int32_t axis = 0; axis < module->mesh.n_axes; axis++)
        if (pl_ir_op_has_name(op, "over", module->mesh.axes[axis].name)) axes |= 1u << axis;
      while (k < n && known[k] != axes)
        k++;
      if (k == n && n < 64) known[n++] = axes;
    }
  return (int32_t)n + (module->n_classes > 1) + (pl_ir_mesh_devices(&module->mesh) > 1);
}

static double capacity_of(const walk *own, const pl_cluster *cluster, const pl_ir_class *class) {
  double least = HUGE_VAL;
  const pl_framework *framework = own->framework;
  int32_t communicators = communicators_of(own->module);
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&own->module->mesh) && d < cluster->n_devices; d++) {
    const pl_device_profile *profile = &cluster->profiles[cluster->devices[d].profile];
    if (!pl_ir_class_has(own->module, class, d)) continue;
    double outside = pl_memory_outside_bytes(framework, profile, communicators);
    least = fmin(least, (profile->memory_bytes - outside) / (1 + framework->memory.fragmentation) -
                            framework->memory.workspace_bytes);
  }
  return least;
}

/* The type that a program computes in: that of its narrowest parameter. */
pl_dtype pl_program_dtype(const pl_ir_module *module) {
  pl_dtype found = PL_DTYPE_COUNT;
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (!is(op, "param")) continue;
      pl_dtype dtype = (pl_dtype)module->functions[f]->values[op->first_output].type.element;
      if (found == PL_DTYPE_COUNT || pl_dtype_bytes(dtype) < pl_dtype_bytes(found)) found = dtype;
    }
  return found == PL_DTYPE_COUNT ? PL_DTYPE_FP32 : found;
}

/* Whether several devices hold the same parameters, as data and context ranks do. */
static bool shares(const pl_ir_module *module) {
  for (int32_t axis = 0; axis < module->mesh.n_axes; axis++) {
    const char *name = module->mesh.axes[axis].name.text;
    if ((strncmp(name, "dp", 2) == 0 || strncmp(name, "cp", 2) == 0) && module->mesh.axes[axis].extent > 1) return true;
  }
  return false;
}

pl_code pl_program_memory_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                               pl_arena *arena, pl_class_memory **memory, pl_error *error) {
  const pl_job job = {.dtype = pl_program_dtype(module), .framework = framework};
  *memory = PL_TAKE(arena, pl_class_memory, module->n_classes + 1);
  if (*memory == NULL) return pl_fail_memory(error, "what a program holds");
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  walk own = {.module = module,
              .framework = pl_framework_or_ideal(framework),
              .state = pl_training_state_of(&job, 1),
              .arena = &scratch};
  pl_arena_init(&own.frames, 0);
  own.buffers = (pl_buffer_facts){.framework = own.framework,
                                  .bytes = own.state,
                                  .made_bytes = pl_dtype_bytes(job.dtype),
                                  .bucket_bytes = own.framework->gradients.bucket_bytes,
                                  .shares = shares(module)};
  if (module->level != PL_IR_KERNELS) own.buffers.bytes.pass_gradient_bytes = 0;
  own.outlooks = pl_outlooks_take(module, own.framework, &scratch);
  own.is_counted = PL_TAKE(&scratch, bool, module->n_functions + 1);
  const int32_t *likes = pl_ir_alike_take(module, &scratch);
  findings *found = PL_TAKE(&scratch, findings, module->n_classes + 1);
  bool fits = own.outlooks != NULL && own.is_counted != NULL && likes != NULL && found != NULL;
  for (int32_t c = 0; fits && c < module->n_classes; c++) {
    own.made = &(*memory)[c];
    fits = run_class(&own, &module->classes[c], &module->classes[likes[c]], found);
    own.made->capacity = capacity_of(&own, cluster, &module->classes[c]);
  }
  pl_arena_release(&own.frames);
  pl_arena_release(&scratch);
  return fits ? PL_OK : pl_fail_memory(error, "what a program holds");
}
