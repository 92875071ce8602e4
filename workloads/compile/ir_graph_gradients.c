/* See workloads/compile/ir_graph_state.h: of programs of level kernels, how gradients are reduced beside computing.
 *
 * An update's reductions begin where the last backward pass has added to the gradients, a bucket of the framework's
 * size at a time, not before their function is through (bucket_unit); or all behind the backward passes
 * (overlaps_gradients). Shards of gradients are added to their buffers by whoever reduces them: nothing of the pass
 * waits. They go out a bucket at a time, behind what the next function gathers, as FSDP orders its stream (backward
 * prefetch).
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_place.h"

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

static bool is_meeting(const pl_ir_op *op) {
  return is(op, "all_reduce") || is(op, "reduce_scatter") || is(op, "all_gather");
}

static uint64_t hash_of(const char *path) {
  return pl_hash_characters(5, path, strlen(path));
}

pl_ir_reduction *pl_ir_graph_reduction_of(const pl_ir_graphing *own, const char *path) {
  uint32_t probe = 0;
  uint64_t hash = hash_of(path);
  for (const void *found; (found = pl_hash_index_find(&own->reduced->index, hash, &probe)) != NULL;) {
    pl_ir_reduction *is_one = (pl_ir_reduction *)(uintptr_t)found; /* ours */
    if (strcmp(is_one->path, path) == 0) return is_one;
  }
  return NULL;
}

/* ---- what an update reduces ---- */

/* The collective that takes a gradient, perhaps cast; NULL: none, or several. */
static const pl_ir_op *meeting_of(pl_ir_graphing *own, int32_t function, int32_t value) {
  const pl_ir_function *f = own->module->functions[function];
  const int32_t *readers = pl_ir_graph_readers(own, function);
  if (readers == NULL) return NULL; /* the arena knows */
  while (readers[value] >= 0 && is(&f->ops[readers[value]], "cast"))
    value = f->ops[readers[value]].first_output;
  return readers[value] >= 0 && is_meeting(&f->ops[readers[value]]) ? &f->ops[readers[value]] : NULL;
}

/* What it is of every instance of the function: all but the path. */
static pl_ir_reduction reduction_of(pl_ir_graphing *own, int32_t function, const pl_ir_op *gradient) {
  const pl_ir_op *op = meeting_of(own, function, gradient->first_output);
  pl_ir_reduction made = {.in_host = pl_ir_op_is_in_host(gradient)};
  const pl_ir_function *f = own->module->functions[function];
  if (op != NULL) made.meeting = pl_ir_graph_meeting_of(own, f, op);
  if (op != NULL) made.meeting.axes &= ~pl_ir_graph_tensor_axes(own, f, op, made.meeting.axes);
  if (op != NULL && made.meeting.kind == PL_REDUCE_SCATTER && pl_framework_reduces_whole(own->framework, 1)) {
    made.meeting.kind = PL_ALL_REDUCE; /* of which each rank keeps its share */
    made.at_once = true;
  }
  return made;
}

/* The same, kept from call to call. What is gathered is of a stream that depends on where it is. */
static pl_ir_reduction known_reduction(pl_ir_graphing *own, int32_t function, int32_t gradient) {
  const pl_ir_function *f = own->module->functions[function];
  pl_ir_doing *doing = &own->doings[function];
  if (doing->reductions == NULL) doing->reductions = PL_TAKE(own->arena, pl_ir_reduction, f->n_ops + 1);
  if (doing->reductions == NULL) return (pl_ir_reduction){0}; /* the arena knows */
  pl_ir_reduction *known = &doing->reductions[gradient];
  if (known->path == NULL) *known = reduction_of(own, function, &f->ops[gradient]);
  if (known->meeting.axes == 0 || known->meeting.kind != PL_ALL_GATHER) known->path = f->ops[gradient].path;
  return *known;
}

static bool note(pl_ir_graphing *own, int32_t function, int32_t gradient, const char *prefix) {
  const char *path = pl_ir_graph_join(own, prefix, own->module->functions[function]->ops[gradient].path);
  pl_ir_reduction *made = PL_TAKE(own->arena, pl_ir_reduction, 1);
  if (path == NULL || made == NULL) return false;
  *made = known_reduction(own, function, gradient);
  made->path = path;
  pl_ir_reductions *all = own->reduced;
  all->sums_in_host = all->sums_in_host || made->in_host;
  all->list = (pl_ir_reduction **)pl_arena_grown(own->arena, (const void *)all->list, all->n, 1,
                                                 sizeof(pl_ir_reduction *), &all->room);
  if (all->list == NULL) return false;
  all->list[all->n++] = made;
  return pl_hash_index_put(&all->index, hash_of(path), made, own->arena);
}

static bool scan(pl_ir_graphing *own, int32_t function, const char *prefix) {
  const pl_ir_function *f = own->module->functions[function];
  const pl_ir_doing *doing = pl_ir_graph_doing(own, function);
  for (int32_t i = 0; doing != NULL && i < f->n_ops; i++) {
    if ((doing->ops[i] & PL_IR_DOES_READ_GRADIENT) != 0 && !note(own, function, i, prefix)) return false;
    if ((doing->ops[i] & PL_IR_DOES_CALL) == 0) continue;
    const char *inner = pl_ir_graph_join(own, prefix, f->ops[i].path);
    if (inner == NULL || !scan(own, f->ops[i].callee, inner)) return false;
  }
  return doing != NULL;
}

/* Behind the cast to the type of the buffer, the op of the kernel that makes what is added; PL_IR_NONE: another one. */
static int32_t maker_inside(const pl_ir_function *kernel, const pl_ir_op *accumulate) {
  int32_t maker = kernel->values[accumulate->inputs[0]].op;
  while (maker != PL_IR_NONE && is(&kernel->ops[maker], "cast"))
    maker = kernel->values[kernel->ops[maker].inputs[0]].op;
  return maker;
}

/* Gradients that one kernel adds up are of one tensor that parameters were packed into, unless one op makes them, as
 * those of a norm. */
static void find_packed(pl_ir_graphing *own, const pl_ir_function *kernel, const char *prefix) {
  int32_t first = PL_IR_NONE;
  for (int32_t i = 0; i < kernel->n_ops; i++) {
    if (!is(&kernel->ops[i], "accumulate")) continue;
    const char *path = pl_ir_graph_join(own, prefix, kernel->ops[i].path);
    pl_ir_reduction *reduction = path != NULL ? pl_ir_graph_reduction_of(own, path) : NULL;
    if (first == PL_IR_NONE) first = i;
    int32_t maker = maker_inside(kernel, &kernel->ops[i]), of_first = maker_inside(kernel, &kernel->ops[first]);
    if (reduction != NULL && first != i) reduction->is_packed = maker == PL_IR_NONE || maker != of_first;
  }
}

/* Who adds to gradients in the last pass of a chunk. */
static bool count_adds(pl_ir_graphing *own, int32_t function, const char *prefix) {
  if (function == PL_IR_NONE) return true;
  const pl_ir_function *f = own->module->functions[function];
  const pl_ir_doing *doing = pl_ir_graph_doing(own, function);
  for (int32_t i = 0; doing != NULL && i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if ((doing->ops[i] & (PL_IR_DOES_CALL | PL_IR_DOES_ADD)) == 0) continue;
    bool calls = (doing->ops[i] & PL_IR_DOES_CALL) != 0 || op->row == own->kernel;
    const char *path = pl_ir_graph_join(own, prefix, op->path);
    if (path == NULL || (calls && !count_adds(own, op->callee, path))) return false;
    if (op->row == own->kernel) find_packed(own, own->module->functions[op->callee], path);
    pl_ir_reduction *reduction = !calls ? pl_ir_graph_reduction_of(own, path) : NULL;
    if (reduction != NULL) reduction->n_adds++;
  }
  return doing != NULL;
}

pl_code pl_ir_graph_find_reductions(pl_ir_graphing *own) {
  own->reduced = &own->reductions[own->now - own->crews];
  own->n_buckets = 0;
  if (own->module->level != PL_IR_KERNELS || own->now->class->update == PL_IR_NONE) return PL_OK;
  const pl_ir_class *class = own->now->class;
  for (uint32_t i = 0; i < own->reduced->n; i++) {
    own->reduced->list[i]->tasks = NULL;
    own->reduced->list[i]->n_added = own->reduced->list[i]->n_passed = 0;
  }
  if (own->reduced->known) return PL_OK;
  own->reduced->known = true;
  bool fits = scan(own, class->update, "");
  for (int32_t c = 0; fits && c < class->n_chunks; c++) {
    const pl_ir_chunk *chunk = &class->chunks[c];
    fits = count_adds(own, chunk->backward, "") && count_adds(own, chunk->weights, "");
  }
  return fits ? PL_OK : pl_ir_graph_no_memory(own);
}

/* ---- buckets ---- */

static pl_code put(pl_ir_graphing *own, pl_ir_reduction *reduction) {
  uint32_t i = 0;
  while (i < own->n_buckets && (own->buckets[i].meeting.axes != reduction->meeting.axes ||
                                own->buckets[i].meeting.kind != reduction->meeting.kind))
    i++;
  if (i == PL_IR_BUCKETS_MAX) return PL_OK; /* it meets in the update */
  pl_ir_bucket *bucket = &own->buckets[i];
  if (i == own->n_buckets) {
    *bucket = (pl_ir_bucket){.meeting = reduction->meeting, .at_once = reduction->at_once};
    bucket->meeting.bytes = 0;
    own->n_buckets++;
  }
  bucket->members = (pl_ir_reduction **)pl_arena_grown(own->arena, (const void *)bucket->members, bucket->n, 1,
                                                       sizeof(pl_ir_reduction *), &bucket->room);
  if (bucket->members == NULL) return pl_ir_graph_no_memory(own);
  bucket->members[bucket->n++] = reduction;
  bucket->meeting.bytes += reduction->meeting.bytes;
  return PL_OK;
}

/* Gradients of all devices meet in the last step of any, which some may pass over: theirs are done since before. */
static pl_code meet_all(pl_ir_graphing *own, pl_ir_bucket *bucket) {
  pl_ir_arrival arrival;
  PL_TRY(pl_ir_graph_flush(own));
  own->everybody = true;
  PL_TRY(pl_ir_graph_meet(own, &bucket->meeting, PL_IR_BEHIND_WORK, NULL, &arrival));
  for (uint32_t k = 0; k < bucket->n; k++) {
    bucket->members[k]->tasks = arrival.tasks;
    PL_TRY(pl_ir_graph_offload_gradient(own, bucket->members[k]->path, arrival.tasks));
  }
  own->everybody = false;
  return PL_OK;
}

pl_code pl_ir_graph_send_buckets(pl_ir_graphing *own, bool all) {
  double full = own->framework->gradients.bucket_bytes > 0 ? own->framework->gradients.bucket_bytes : 1e300;
  for (uint32_t i = 0; i < own->n_buckets; i++) {
    pl_ir_bucket *bucket = &own->buckets[i];
    if (bucket->n == 0 || (!all && (bucket->at_once || bucket->meeting.bytes < full))) continue;
    PL_TRY(meet_all(own, bucket));
    bucket->n = bucket->room = 0;
    bucket->members = NULL;
    bucket->meeting.bytes = 0;
  }
  return PL_OK;
}

static pl_code put_shard(pl_ir_graphing *own, pl_ir_reduction *reduction, uint8_t shard) {
  pl_ir_bucket *shards = &own->shards[shard - 1];
  shards->members = (pl_ir_reduction **)pl_arena_grown(own->arena, (const void *)shards->members, shards->n, 1,
                                                       sizeof(pl_ir_reduction *), &shards->room);
  if (shards->members == NULL) return pl_ir_graph_no_memory(own);
  shards->members[shards->n++] = reduction;
  return PL_OK;
}

/* Whether a bucket of shards is full. One bucket for all is one a function: what is cut is let go of as it comes. Units
 * of their own are cut as such. As of tuples: workloads/program/program.c, pl_program_bucket_bytes. */
static bool is_full(const pl_ir_graphing *own, const pl_ir_bucket *shards) {
  const double full = own->framework->gradients.bucket_bytes;
  bool units = own->framework->gradients.gradient_path != PL_GRADIENTS_ADDED;
  return full > 0 ? shards->meeting.bytes >= full : !units;
}

/* Whether no other tensor comes into it: what is full goes behind the function. */
static bool closes_behind(const pl_ir_graphing *own, const pl_ir_bucket *shards) {
  return own->framework->gradients.bucket_unit != PL_BUCKET_LAYER && is_full(own, shards);
}

/* A vector that is not cut further, where all else is reduced in shards over the same devices: frameworks that lay
 * gradients side by side cut through what there is, so that it goes out with them. False: there are none. */
static bool joins_shards(const pl_ir_graphing *own, const pl_ir_meeting *meeting, uint32_t *at) {
  for (*at = 0; *at < own->n_shards; ++*at)
    if (own->shards[*at].meeting.axes == meeting->axes && !closes_behind(own, &own->shards[*at])) return true;
  return false;
}

static pl_code added(pl_ir_graphing *own, const pl_ir_op *accumulate, const pl_ir_arrival *shard) {
  if (!own->is_last && !own->reduced->sums_in_host && (shard == NULL || shard->tasks == NULL)) return PL_OK;
  const char *path = pl_ir_graph_path(own, accumulate->path);
  if (path == NULL) return pl_ir_graph_no_memory(own);
  pl_ir_reduction *reduction = pl_ir_graph_reduction_of(own, path);
  if (reduction == NULL) return PL_OK;
  bool whole = own->is_last && ++reduction->n_added >= reduction->n_adds;
  if (shard != NULL && shard->shard == PL_IR_SHARD_LATER) return PL_OK;
  if (shard != NULL && shard->shard > 0)
    return whole || reduction->in_host ? put_shard(own, reduction, shard->shard) : PL_OK;
  if (reduction->in_host) PL_TRY(pl_ir_graph_offload_sum(own, path, shard != NULL ? shard->tasks : NULL, whole));
  if (!own->is_last || !whole) return PL_OK;
  uint32_t at;
  if (shard != NULL && shard->tasks != NULL) {
    reduction->tasks = shard->tasks; /* reduced already */
  } else if (reduction->meeting.kind == PL_ALL_REDUCE && joins_shards(own, &reduction->meeting, &at)) {
    own->shards[at].meeting.bytes += reduction->meeting.bytes;
    return put_shard(own, reduction, (uint8_t)(at + 1));
  } else if (reduction->meeting.axes != 0) {
    return put(own, reduction);
  }
  return pl_ir_graph_offload_gradient(own, path, reduction->tasks);
}

/* At other levels reductions are the update's: nobody knows here when a gradient is whole, and the update sends it. */
static pl_code added_there(pl_ir_graphing *own, const pl_ir_op *op, const pl_ir_arrival *values) {
  if (!is(op, "accumulate") || !pl_ir_op_is_in_host(op)) return PL_OK;
  const char *path = pl_ir_graph_path(own, op->path);
  return path != NULL ? pl_ir_graph_offload_sum(own, path, values[op->inputs[0]].tasks, own->is_last)
                      : pl_ir_graph_no_memory(own);
}

pl_code pl_ir_graph_added(pl_ir_graphing *own, const pl_ir_op *op, const pl_ir_arrival *values) {
  if (own->module->level != PL_IR_KERNELS) return added_there(own, op, values);
  if (is(op, "accumulate")) PL_TRY(added(own, op, &values[op->inputs[0]]));
  if (op->row != own->kernel) return PL_OK;
  const pl_ir_function *f = own->module->functions[op->callee];
  bool any = false;
  for (int32_t i = 0; i < f->n_ops; i++) {
    if (!is(&f->ops[i], "accumulate")) continue;
    int32_t value = f->ops[i].inputs[0];
    while (f->values[value].op != PL_IR_NONE && is(&f->ops[f->values[value].op], "cast"))
      value = f->ops[f->values[value].op].inputs[0];
    bool outer = f->values[value].op == PL_IR_NONE; /* an argument */
    PL_TRY(added(own, &f->ops[i], outer ? &values[op->inputs[value]] : NULL));
    any = true;
  }
  bool at_once =
      own->framework->gradients.overlaps_gradients && own->framework->gradients.bucket_unit != PL_BUCKET_LAYER;
  return any && at_once ? pl_ir_graph_send_buckets(own, false) : PL_OK;
}

bool pl_ir_graph_adds_shards(const pl_ir_graphing *own, const pl_ir_op *op, uint16_t does,
                             const pl_ir_arrival *values) {
  if (own->module->level != PL_IR_KERNELS) return false;
  if ((does & PL_IR_DOES_STORE) != 0) return true; /* for the next iteration */
  if ((does & PL_IR_DOES_ONLY_ADD) == 0) return false;
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (values[op->inputs[i]].tasks == NULL && values[op->inputs[i]].shard == 0) return false;
  return true;
}

/* What the reader of a shard adds it to; NULL: nothing, or nothing that is reduced. */
static pl_ir_reduction *added_to(pl_ir_graphing *own, const pl_ir_op *reader, int32_t value) {
  const pl_ir_op *accumulate = is(reader, "accumulate") ? reader : NULL;
  if (reader->row == own->kernel) {
    const pl_ir_function *kernel = own->module->functions[reader->callee];
    for (int32_t i = 0; i < kernel->n_ops; i++) {
      if (!is(&kernel->ops[i], "accumulate")) continue;
      int32_t at = kernel->ops[i].inputs[0];
      while (kernel->values[at].op != PL_IR_NONE && is(&kernel->ops[kernel->values[at].op], "cast"))
        at = kernel->ops[kernel->values[at].op].inputs[0];
      if (kernel->values[at].op == PL_IR_NONE && reader->inputs[at] == value) accumulate = &kernel->ops[i];
    }
  }
  const char *path = accumulate != NULL ? pl_ir_graph_path(own, accumulate->path) : NULL;
  return path != NULL ? pl_ir_graph_reduction_of(own, path) : NULL;
}

/* A parameter that several functions read, as a table that embedding and head share, has one gradient: what comes of
 * all of them is added up before any of it is reduced (autograd's node that accumulates it has one input). */
static bool is_added_to_later(pl_ir_graphing *own, const pl_ir_op *reader, int32_t value) {
  if (own->now->class->n_chunks != 1) return false;
  pl_ir_reduction *reduction = added_to(own, reader, value);
  return reduction != NULL && ++reduction->n_passed % reduction->n_adds != 0;
}

pl_code pl_ir_graph_defer_shard(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values,
                                bool *deferred) {
  *deferred = false;
  if (own->module->level != PL_IR_KERNELS || !is(op, "reduce_scatter")) return PL_OK;
  const pl_ir_op *reader = pl_ir_graph_reader_of(own, f, op->first_output);
  if (values[op->inputs[0]].tasks != NULL || reader == NULL ||
      (own->doings[own->function].ops[reader - f->ops] & PL_IR_DOES_ONLY_ADD) == 0)
    return PL_OK;
  if (is_added_to_later(own, reader, op->first_output)) {
    values[op->first_output].shard = PL_IR_SHARD_LATER;
    *deferred = true;
    return PL_OK;
  }
  const pl_ir_meeting meeting = pl_ir_graph_meeting_of(own, f, op);
  uint32_t i = 0;
  while (i < own->n_shards && (own->shards[i].meeting.axes != meeting.axes || closes_behind(own, &own->shards[i])))
    i++;
  if (i == PL_IR_BUCKETS_MAX) return PL_OK;
  if (i == own->n_shards) own->shards[own->n_shards++] = (pl_ir_bucket){.meeting = {.axes = meeting.axes}};
  double bytes = own->shards[i].meeting.bytes + meeting.bytes;
  own->shards[i].meeting = meeting;
  own->shards[i].meeting.bytes = bytes;
  values[op->first_output].shard = (uint8_t)(i + 1);
  *deferred = true;
  return PL_OK;
}

/* Whoever reduces them has them now. */
static pl_code reduced(pl_ir_graphing *own, const pl_ir_bucket *shards, const pl_ir_arrival *arrival) {
  for (uint32_t i = 0; i < shards->n; i++) {
    pl_ir_reduction *member = shards->members[i];
    bool whole = member->n_added >= member->n_adds; /* they are counted in the last pass */
    if (member->in_host) PL_TRY(pl_ir_graph_offload_sum(own, member->path, arrival->tasks, whole));
    if (!whole) continue;
    member->tasks = arrival->tasks;
    PL_TRY(pl_ir_graph_offload_gradient(own, member->path, arrival->tasks));
  }
  return PL_OK;
}

pl_code pl_ir_graph_send_shards(pl_ir_graphing *own, bool all) {
  pl_ir_bucket shards[PL_IR_BUCKETS_MAX];
  pl_ir_arrival arrivals[PL_IR_BUCKETS_MAX] = {{.tasks = NULL}};
  bool waits = !own->framework->gradients.overlaps_gradients;
  uint32_t n = 0, n_left = 0;
  for (uint32_t i = 0; i < own->n_shards; i++) {
    if (all || is_full(own, &own->shards[i]))
      shards[n++] = own->shards[i];
    else
      own->shards[n_left++] = own->shards[i];
  }
  own->n_shards = n_left;
  if (n == 0) return PL_OK;
  PL_TRY(pl_ir_graph_flush(own));
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(pl_ir_graph_meet(own, &shards[i].meeting, PL_IR_BEHIND_WORK, NULL, &arrivals[i]));
  for (uint32_t i = 0; i < n; i++)
    PL_TRY(reduced(own, &shards[i], &arrivals[i]));
  for (uint32_t i = 0; i < n && waits; i++)
    PL_TRY(pl_ir_graph_await(own, &arrivals[i]));
  return waits && all ? pl_ir_graph_flush(own) : PL_OK; /* behind a step nothing is left to wait for */
}

void pl_ir_graph_gradient(pl_ir_graphing *own, const pl_ir_op *op, pl_ir_arrival *values) {
  if (own->module->level != PL_IR_KERNELS || !is(op, "gradient")) return;
  const char *path = pl_ir_graph_path(own, op->path);
  const pl_ir_reduction *reduction = path != NULL ? pl_ir_graph_reduction_of(own, path) : NULL;
  if (reduction == NULL || reduction->tasks == NULL) return;
  const pl_ir_op *meeting = meeting_of(own, own->function, op->first_output);
  values[meeting != NULL ? meeting->first_output : op->first_output].tasks = reduction->tasks;
}
