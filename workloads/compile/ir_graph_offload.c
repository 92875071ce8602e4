/* See workloads/compile/ir_graph_state.h: what lies in the memory of the host, over the links between device and
 * socket.
 *
 * Activations: what a function keeps goes out behind the op that made it, beside what is computed next. A function that
 * keeps in the host begins when what the one before the last sent has left, so that at most two functions' values wait
 * on the device (as transformer engines' double buffers do). Backward a function's values are sent for when the
 * function before it begins.
 *
 * Gradients that lie in the host are added up on the device, as DeepSpeed does: from the second microbatch on what
 * there is of one comes back when the next is ready, and the sum goes out again.
 *
 * States: the host's processors update (ZeRO-Offload, Ren et al. 2021). Gradients go out as they are ready, a bucket
 * that was reduced or a gradient that the last backward pass has added up; behind the last of them the host updates one
 * parameter after the other, each of which goes back at once. What the host takes for it is
 * PL_HOST_UPDATE_S a parameter and node, shared by the node's devices.
 */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_place.h"

typedef struct kept_out {
  const char *key;
  uint32_t *tasks;
} kept_out;

/* A state of the host: by the path of its parameter. */
typedef struct hosted {
  const char *path;
  double gradient_bytes; /* of a device's part */
  uint32_t *out;         /* copies of the gradient; NULL: not yet */
  uint32_t *sum, *back;  /* of one that is added up in the host: the last copies of what there was of it; NULL: none */
} hosted;

static bool is(const pl_ir_op *op, const char *row) {
  return pl_ir_op_is(op, row);
}

static uint32_t *take_tasks(pl_ir_graphing *own) {
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, own->now->n_devices + 1);
  for (uint32_t d = 0; tasks != NULL && d < own->now->n_devices; d++)
    tasks[d] = PL_NONE;
  return tasks;
}

static void depends(pl_ir_graphing *own, uint32_t before, uint32_t task) {
  if (before != PL_NONE) pl_graph_builder_edge(own->builder, before, task);
}

/* One flow per device, behind the last in its direction, `after` and `arrival` (either may be NULL). */
static pl_code copy(pl_ir_graphing *own, bool out, double bytes, const uint32_t *after, const uint32_t *arrival,
                    uint32_t **made) {
  uint32_t *last = out ? own->offload.out : own->offload.back;
  uint32_t *tasks = *made = take_tasks(own);
  if (tasks == NULL) return pl_ir_graph_no_memory(own);
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t spec;
    if (pl_ir_graph_is_absent(own, own->now->devices[d])) continue;
    PL_TRY(pl_ir_transfers_host(&own->transfers, own->now->devices[d], out, &spec, own->error));
    tasks[d] = pl_graph_builder_transfer(own->builder, spec, bytes, PL_CATEGORY_OTHER, NULL, 0,
                                         pl_ir_graph_label(own, out ? "to_host" : "from_host"), own->microbatch);
    depends(own, last[d], tasks[d]);
    if (after != NULL) depends(own, after[d], tasks[d]);
    if (arrival != NULL) depends(own, arrival[d], tasks[d]);
    last[d] = tasks[d];
    own->made->n_offloads += own->times;
    own->made->offloaded_bytes += bytes * (double)own->times;
  }
  return PL_OK;
}

static double bytes_of(const pl_ir_graphing *own, const pl_ir_function *f, int32_t value) {
  return pl_ir_type_local_bytes(&own->module->mesh, &f->values[value].type);
}

/* ---- states ---- */

/* The state in the host that an update reads; NULL: none. */
static const pl_ir_op *state_of(const pl_ir_function *f, const pl_ir_op *op) {
  if (!is(op, "adam")) return NULL;
  for (int32_t i = 0; i < op->n_inputs; i++) {
    int32_t maker = f->values[op->inputs[i]].op;
    if (maker != PL_IR_NONE && is(&f->ops[maker], "state") && pl_ir_op_is_in_host(&f->ops[maker]))
      return &f->ops[maker];
  }
  return NULL;
}

static hosted *find(const pl_ir_graphing *own, const char *path) {
  uint32_t probe = 0;
  uint64_t hash = own->offload.states.count > 0 ? pl_hash_text(8, path) : 0;
  for (const void *found; (found = pl_hash_index_find(&own->offload.states, hash, &probe)) != NULL;) {
    hosted *state = (hosted *)(uintptr_t)found; /* ours */
    if (strcmp(state->path, path) == 0) return state;
  }
  return NULL;
}

static pl_code scan(pl_ir_graphing *own, int32_t function) {
  const pl_ir_function *f = own->module->functions[function];
  pl_ir_prefix *outer = own->prefix;
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i], *state = state_of(f, op);
    if (is(op, "call")) {
      pl_ir_prefix inner = {.outer = outer, .segment = op->path};
      if (op->path[0] != 0) own->prefix = &inner;
      PL_TRY(scan(own, op->callee));
      own->prefix = outer;
    }
    if (state == NULL) continue;
    hosted *made = PL_TAKE(own->arena, hosted, 1);
    const char *path = pl_ir_graph_path(own, state->path);
    if (made == NULL || path == NULL) return pl_ir_graph_no_memory(own);
    *made = (hosted){.path = path, .gradient_bytes = bytes_of(own, f, op->inputs[1])};
    if (!pl_hash_index_put(&own->offload.states, pl_hash_text(8, path), made, own->arena))
      return pl_ir_graph_no_memory(own);
  }
  return PL_OK;
}

pl_code pl_ir_graph_begin_offload(pl_ir_graphing *own) {
  pl_ir_offload *offload = &own->offload;
  *offload = (pl_ir_offload){.out = take_tasks(own),
                             .back = take_tasks(own),
                             .host = take_tasks(own),
                             .left = take_tasks(own),
                             .left_before = take_tasks(own),
                             .began = take_tasks(own),
                             .began_before = take_tasks(own)};
  if (own->arena->failed) return pl_ir_graph_no_memory(own);
  own->prefix = NULL;
  return own->now->class->update != PL_IR_NONE ? scan(own, own->now->class->update) : PL_OK;
}

pl_code pl_ir_graph_offload_gradient(pl_ir_graphing *own, const char *path, const uint32_t *ready) {
  hosted *state = find(own, path);
  if (state == NULL || state->out != NULL) return PL_OK;
  if (ready == NULL) PL_TRY(pl_ir_graph_flush(own));
  bool everybody = own->everybody;
  own->everybody = true; /* those that pass over this step as well: their gradient is done */
  pl_code code =
      copy(own, true, state->gradient_bytes, ready == NULL ? own->now->last : ready, state->back, &state->out);
  own->everybody = everybody;
  return code;
}

pl_code pl_ir_graph_offload_sum(pl_ir_graphing *own, const char *path, const uint32_t *ready, bool whole) {
  hosted *state = find(own, path);
  if (state == NULL || (whole && state->sum == NULL)) return PL_OK;
  if (ready == NULL) PL_TRY(pl_ir_graph_flush(own));
  const uint32_t *after = ready == NULL ? own->now->last : ready;
  state->back = NULL;
  if (state->sum != NULL) PL_TRY(copy(own, false, state->gradient_bytes, after, state->sum, &state->back));
  if (!whole) return copy(own, true, state->gradient_bytes, after, state->back, &state->sum);
  if (ready != NULL) return PL_OK;
  pl_ir_arrival back = {.tasks = state->back}; /* who reduces what was added up has it first */
  return pl_ir_graph_await(own, &back);
}

/* The host's part of the update: behind all gradients that are out, and what it updated before. */
static pl_code update(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values) {
  const char *path = pl_ir_graph_path(own, state_of(f, op)->path);
  uint32_t *tasks = take_tasks(own);
  if (path == NULL || tasks == NULL) return pl_ir_graph_no_memory(own);
  own->made->host_updates = true;
  PL_TRY(pl_ir_graph_offload_gradient(own, path, values[op->inputs[1]].tasks));
  double n = pl_ir_type_local_elements(&own->module->mesh, &f->values[op->inputs[0]].type);
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    const pl_device *device = &own->cluster->devices[own->places[own->now->devices[d]]];
    double time_s = n * PL_HOST_UPDATE_S * own->cluster->nodes[device->node].n_devices;
    tasks[d] = pl_graph_builder_delay(own->builder, pl_ticks_from_s(time_s), PL_CATEGORY_OPTIMIZER, NULL, 0,
                                      pl_ir_graph_label(own, "host_update"), own->microbatch);
    depends(own, own->offload.host[d], tasks[d]);
    depends(own, own->offload.out[d], tasks[d]);
    own->offload.host[d] = tasks[d];
  }
  return copy(own, false, bytes_of(own, f, op->inputs[0]), NULL, tasks, &values[op->first_output].tasks);
}

/* ---- what is kept ---- */

static const char *key_of(pl_ir_graphing *own, const pl_ir_op *op) {
  const char *path = pl_ir_graph_path(own, op->path);
  return path != NULL ? pl_arena_printf(own->arena, "%d %d %lld %s", own->chunk, own->microbatch,
                                        (long long)own->piece.index, path)
                      : NULL;
}

static const kept_out *find_kept(const pl_ir_graphing *own, const char *key) {
  uint32_t probe = 0;
  const kept_out *known;
  while ((known = (const kept_out *)pl_hash_index_find(&own->offload.kept, pl_hash_text(9, key), &probe)) != NULL)
    if (strcmp(known->key, key) == 0) return known;
  return NULL;
}

static pl_code keep(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, const pl_ir_arrival *input) {
  kept_out *made = PL_TAKE(own->arena, kept_out, 1);
  if (made == NULL || (made->key = key_of(own, op)) == NULL) return pl_ir_graph_no_memory(own);
  PL_TRY(pl_ir_graph_flush(own));
  PL_TRY(copy(own, true, bytes_of(own, f, op->inputs[0]), own->now->last, input->tasks, &made->tasks));
  return pl_hash_index_put(&own->offload.kept, pl_hash_text(9, made->key), made, own->arena)
             ? PL_OK
             : pl_ir_graph_no_memory(own);
}

/* Sends for everything that the function reads from the host. */
static pl_code fetch(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values) {
  pl_ir_offload *offload = &own->offload;
  PL_TRY(pl_ir_graph_flush(own));
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    if (!is(op, "kept") || !pl_ir_op_is_in_host(op)) continue;
    const char *key = key_of(own, op);
    const kept_out *sent = key != NULL ? find_kept(own, key) : NULL;
    if (key == NULL) return pl_ir_graph_no_memory(own);
    PL_ASSERT(sent != NULL);
    PL_TRY(copy(own, false, bytes_of(own, f, op->first_output), offload->began_before, sent->tasks,
                &values[op->first_output].tasks));
  }
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    offload->began_before[d] = offload->began[d];
    offload->began[d] = own->now->last[d];
  }
  return PL_OK;
}

pl_code pl_ir_graph_enter_offload(pl_ir_graphing *own, const pl_ir_function *f, pl_ir_arrival *values) {
  const pl_ir_doing *doing = &own->doings[own->function];
  if (doing->keeps_in_host && own->now->n_devices > 0 && own->offload.left_before[0] != PL_NONE) {
    pl_ir_arrival left = {.tasks = PL_TAKE(own->arena, uint32_t, own->now->n_devices)};
    if (left.tasks == NULL) return pl_ir_graph_no_memory(own);
    memcpy(left.tasks, own->offload.left_before, own->now->n_devices * sizeof *left.tasks);
    PL_TRY(pl_ir_graph_await(own, &left));
  }
  return doing->reads_from_host ? fetch(own, f, values) : PL_OK;
}

void pl_ir_graph_leave_offload(pl_ir_graphing *own) {
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    own->offload.left_before[d] = own->offload.left[d];
    own->offload.left[d] = own->offload.out[d];
  }
}

/* ---- ops ---- */

bool pl_ir_graph_is_offloaded(const pl_ir_function *f, const pl_ir_op *op) {
  return ((is(op, "keep") || is(op, "kept")) && pl_ir_op_is_in_host(op)) || state_of(f, op) != NULL;
}

pl_code pl_ir_graph_offload(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, pl_ir_arrival *values) {
  if (is(op, "keep")) return keep(own, f, op, &values[op->inputs[0]]);
  return is(op, "kept") ? PL_OK : update(own, f, op, values); /* what is read was sent for when the function began */
}
