/* See workloads/compile/ir_graph.h. */
#include "workloads/compile/ir_graph.h"

#include <string.h>

#include "core/base/hash_index.h"
#include "workloads/compile/ir_transfers.h"
#include "workloads/cost/ir_cost.h"

enum { PROFILES_MAX = 16, DEPTH_MAX = 64 };

/* A transfer that both sides know by a key, made by whoever comes first. */
typedef struct promised {
  const char *key;
  uint32_t *tasks; /* per position of a device in its crew */
} promised;

typedef struct crew {
  const pl_ir_class *class;
  uint32_t *devices; /* of the mesh; graph devices are numbered alike */
  uint32_t n_devices;
  uint32_t *last; /* per device: its last task on the compute stream; PL_NONE: none yet */
} crew;

typedef struct graphing {
  const pl_cluster *cluster;
  const pl_ir_module *module;
  const pl_ir_graph_options *options;
  pl_arena *arena;
  pl_graph_builder *builder;
  pl_ir_transfers transfers;
  crew *crews;
  crew *now;
  pl_ir_graph *made;
  pl_error *error;
  int32_t microbatch, depth;
  pl_category category;
  const char *prefix;
  /* What has been computed since the last task was made, as parts, per profile of the cluster. */
  pl_part *parts[PROFILES_MAX];
  uint32_t n_parts, room_parts;
  /* Tasks, per device, that what is computed next waits for. */
  uint32_t **awaited;
  uint32_t n_awaited, room_awaited;
  pl_hash_index promises;
} graphing;

/* A value: computed here, or on its way. NULL tasks: computed. */
typedef struct arrival {
  uint32_t *tasks; /* per device of the crew */
} arrival;

static pl_code no_memory(const graphing *own) {
  return pl_fail_memory(own->error, "the graph of the program");
}

static void *grown(pl_arena *arena, void *old, uint32_t n, uint32_t *room, size_t size) {
  if (n < *room) return old;
  uint32_t larger = *room > 0 ? 2 * *room : 64;
  void *made = pl_arena_take_zeroed(arena, larger, size, _Alignof(max_align_t));
  if (made == NULL) return NULL;
  if (n > 0) memcpy(made, old, (size_t)n * size);
  *room = larger;
  return made;
}

/* ---- stretches of computing ---- */

static bool add_part(graphing *own, const pl_ir_function *f, const pl_ir_op *op) {
  pl_op kernel;
  if (!pl_ir_kernel(&own->module->mesh, f, op, own->category, &kernel)) return true;
  uint32_t room = own->room_parts;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    own->room_parts = room;
    own->parts[p] = (pl_part *)grown(own->arena, own->parts[p], own->n_parts, &own->room_parts, sizeof(pl_part));
    if (own->parts[p] == NULL) return false;
    pl_op_time time = pl_op_cost(&own->cluster->profiles[p], &kernel);
    pl_part part = {.ticks = pl_ticks_from_s(time.time_s),
                    .category = (uint8_t)own->category,
                    .computes = true,
                    .name = PL_NONE,
                    .spec = PL_NONE};
    if (own->options->names) {
      const char *value = op->n_outputs > 0 ? f->values[op->first_output].name : op->path;
      const char *text = pl_arena_printf(own->arena, "%s%s%s", own->prefix, own->prefix[0] != 0 ? "." : "",
                                         value != NULL ? value : kernel.name);
      part.name = text != NULL ? pl_graph_builder_name(own->builder, text) : PL_NONE;
    }
    own->parts[p][own->n_parts] = part;
  }
  own->n_parts++;
  own->made->n_kernels += own->now->n_devices;
  own->made->flops += kernel.flops * own->now->n_devices;
  return true;
}

/* What was computed since becomes one task per device, behind all that it waits for. */
static void flush(graphing *own) {
  if (own->n_parts == 0 && own->n_awaited == 0) return;
  uint32_t segments[PROFILES_MAX];
  for (uint32_t p = 0; p < own->cluster->n_profiles && own->n_parts > 0; p++)
    segments[p] = pl_graph_builder_segment(own->builder, own->parts[p], own->n_parts);
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t device = own->now->devices[d];
    uint32_t stream = pl_graph_builder_stream(own->builder, device, PL_STREAM_COMPUTE);
    uint32_t task = own->n_parts > 0
                        ? pl_graph_builder_work(own->builder, segments[own->cluster->devices[device].profile], stream,
                                                PL_NONE, PL_NONE, own->microbatch)
                        : pl_graph_builder_delay(own->builder, 0, own->category, &stream, 1, PL_NONE, own->microbatch);
    for (uint32_t i = 0; i < own->n_awaited; i++)
      pl_graph_builder_edge(own->builder, own->awaited[i][d], task);
    own->now->last[d] = task;
  }
  own->n_parts = own->n_awaited = 0;
}

/* What is computed from here on waits for these tasks. */
static pl_code await(graphing *own, arrival *value) {
  if (value->tasks == NULL) return PL_OK;
  if (own->n_parts > 0) flush(own);
  own->awaited =
      (uint32_t **)grown(own->arena, (void *)own->awaited, own->n_awaited, &own->room_awaited, sizeof(*own->awaited));
  if (own->awaited == NULL) return no_memory(own);
  own->awaited[own->n_awaited++] = value->tasks;
  value->tasks = NULL;
  return PL_OK;
}

/* ---- communication ---- */

static pl_category category_of(const graphing *own, const pl_ir_op *op, pl_stream_kind *stream) {
  const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
  const char *axis = over != NULL && over->n_names > 0 ? over->names[0].text : "";
  (void)own;
  if (strcmp(pl_ir_row_at(op->row)->name, "all_to_all") == 0) {
    *stream = PL_STREAM_EXPERT;
    return PL_CATEGORY_EXPERT;
  }
  if (strncmp(axis, "dp", 2) == 0) {
    *stream = PL_STREAM_GRADIENT;
    return PL_CATEGORY_DATA;
  }
  *stream = strncmp(axis, "cp", 2) == 0 ? PL_STREAM_CONTEXT : PL_STREAM_FEATURE;
  return strncmp(axis, "cp", 2) == 0 ? PL_CATEGORY_CONTEXT : PL_CATEGORY_TENSOR;
}

static pl_collective_kind collective_of(const pl_ir_op *op) {
  const char *name = pl_ir_row_at(op->row)->name;
  return strcmp(name, "all_reduce") == 0       ? PL_ALL_REDUCE
         : strcmp(name, "reduce_scatter") == 0 ? PL_REDUCE_SCATTER
         : strcmp(name, "all_to_all") == 0     ? PL_ALL_TO_ALL
                                               : PL_ALL_GATHER;
}

/* Devices of the crew that differ from `first` along the axes of `over` only, in the order of the mesh. */
static uint32_t group_of(const graphing *own, const pl_ir_op *op, uint32_t first, uint32_t *members, bool *is_first) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  uint32_t n = 0;
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    if (!pl_ir_op_joins(mesh, op, own->now->devices[first], own->now->devices[d])) continue;
    if (n == 0) *is_first = d == first;
    members[n++] = d;
  }
  return n;
}

static uint32_t label_of(graphing *own, const char *text) {
  return own->options->names ? pl_graph_builder_name(own->builder, text) : PL_NONE;
}

static void depends(graphing *own, uint32_t task, uint32_t d, const arrival *input) {
  if (own->now->last[d] != PL_NONE) pl_graph_builder_edge(own->builder, own->now->last[d], task);
  if (input->tasks != NULL) pl_graph_builder_edge(own->builder, input->tasks[d], task);
}

/* One collective per group of devices; their tasks are the value's. */
static pl_code collective(graphing *own, const pl_ir_function *f, const pl_ir_op *op, double bytes,
                          pl_collective_kind kind, arrival *input, arrival *output) {
  flush(own);
  pl_stream_kind stream_kind;
  pl_category category = category_of(own, op, &stream_kind);
  (void)f;
  uint32_t n = own->now->n_devices;
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, n), *members = PL_TAKE(own->arena, uint32_t, n);
  uint32_t *streams = PL_TAKE(own->arena, uint32_t, n), *devices = PL_TAKE(own->arena, uint32_t, n);
  if (own->arena->failed) return no_memory(own);
  for (uint32_t d = 0; d < n; d++) {
    bool is_first = false;
    uint32_t n_members = group_of(own, op, d, members, &is_first), spec;
    if (!is_first) continue;
    for (uint32_t i = 0; i < n_members; i++) {
      devices[i] = own->now->devices[members[i]];
      streams[i] = pl_graph_builder_stream(own->builder, devices[i], stream_kind);
    }
    double progress;
    PL_TRY(pl_ir_transfers_collective(&own->transfers, kind, devices, n_members, bytes, &spec, &progress, own->error));
    uint32_t task = pl_graph_builder_transfer(own->builder, spec, progress, category, streams, n_members,
                                              label_of(own, pl_ir_row_at(op->row)->name), own->microbatch);
    for (uint32_t i = 0; i < n_members; i++) {
      tasks[members[i]] = task;
      depends(own, task, members[i], input);
    }
    own->made->n_collectives++;
  }
  output->tasks = tasks;
  return PL_OK;
}

/* Tasks under a key, one per device of a crew; *fresh: nobody had asked for them. */
static uint32_t *promise(graphing *own, const char *key, uint32_t n, bool *fresh) {
  uint64_t hash = pl_hash_text(3, key);
  uint32_t probe = 0;
  const promised *known;
  *fresh = false;
  while ((known = (const promised *)pl_hash_index_find(&own->promises, hash, &probe)) != NULL)
    if (strcmp(known->key, key) == 0) return known->tasks;
  promised *made = PL_TAKE(own->arena, promised, 1);
  uint32_t *tasks = PL_TAKE(own->arena, uint32_t, n);
  if (made == NULL || tasks == NULL) return NULL;
  *made = (promised){.key = key, .tasks = tasks};
  *fresh = true;
  return pl_hash_index_put(&own->promises, hash, made, own->arena) ? tasks : NULL;
}

static const crew *crew_named(const graphing *own, const char *name) {
  for (int32_t c = 0; c < own->module->n_classes; c++)
    if (strcmp(own->module->classes[c].name, name) == 0) return &own->crews[c];
  return NULL;
}

/* A message is one transfer per pair of devices. */
static pl_code message(graphing *own, const crew *from, const crew *to, const char *tag, double bytes,
                       uint32_t **tasks) {
  const char *key =
      pl_arena_printf(own->arena, "%s>%s %s %d", from->class->name, to->class->name, tag, own->microbatch);
  bool fresh;
  *tasks = key != NULL ? promise(own, key, from->n_devices, &fresh) : NULL;
  if (*tasks == NULL) return no_memory(own);
  for (uint32_t d = 0; d < from->n_devices && fresh; d++) {
    uint32_t pair[] = {from->devices[d], to->devices[d]}, spec;
    double progress;
    if (pair[0] == pair[1]) { /* two chunks of one stage */
      (*tasks)[d] = pl_graph_builder_delay(own->builder, 0, PL_CATEGORY_PIPELINE, NULL, 0, PL_NONE, own->microbatch);
      continue;
    }
    PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_SEND, pair, 2, bytes, &spec, &progress, own->error));
    (*tasks)[d] = pl_graph_builder_transfer(own->builder, spec, progress, PL_CATEGORY_PIPELINE, NULL, 0,
                                            label_of(own, tag), own->microbatch);
    own->made->n_sends++;
  }
  return PL_OK;
}

static pl_code send(graphing *own, const pl_ir_function *f, const pl_ir_op *op, arrival *input) {
  const crew *to = crew_named(own, pl_ir_text_of(op, "to"));
  uint32_t *tasks;
  flush(own);
  PL_TRY(message(own, own->now, to, pl_ir_text_of(op, "tag"),
                 pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type), &tasks));
  for (uint32_t d = 0; d < own->now->n_devices; d++)
    depends(own, tasks[d], d, input);
  return PL_OK;
}

static pl_code receive(graphing *own, const pl_ir_function *f, const pl_ir_op *op, arrival *output) {
  const crew *from = crew_named(own, pl_ir_text_of(op, "from"));
  return message(own, from, own->now, pl_ir_text_of(op, "tag"),
                 pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->first_output].type), &output->tasks);
}

/* An all-reduce between the devices of several classes. */
static pl_code sum_classes(graphing *own, const pl_ir_function *f, const pl_ir_op *op, arrival *input,
                           arrival *output) {
  const pl_ir_attribute *classes = pl_ir_attribute_find(op, "classes");
  const char *key = pl_arena_printf(own->arena, "sum %s %s", own->prefix, pl_ir_text_of(op, "tag"));
  bool fresh;
  flush(own);
  output->tasks = key != NULL ? promise(own, key, own->now->n_devices, &fresh) : NULL;
  if (output->tasks == NULL) return no_memory(own);
  for (uint32_t d = 0; d < own->now->n_devices; d++) {
    uint32_t members[PL_IR_AXES_MAX * 8], n = 0, spec;
    double progress;
    for (int32_t i = 0; fresh && i < classes->n_names && n < PL_IR_AXES_MAX * 8; i++)
      members[n++] = crew_named(own, classes->names[i].text)->devices[d];
    if (fresh) {
      PL_TRY(pl_ir_transfers_collective(&own->transfers, PL_ALL_REDUCE, members, n,
                                        pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[0]].type),
                                        &spec, &progress, own->error));
      output->tasks[d] = pl_graph_builder_transfer(own->builder, spec, progress, PL_CATEGORY_DATA, NULL, 0,
                                                   label_of(own, "sum_classes"), own->microbatch);
      own->made->n_collectives++;
    }
    depends(own, output->tasks[d], d, input);
  }
  return PL_OK;
}

/* Keys and values go round while attention works on those that came before: one gather beside it. */
static pl_code ring(graphing *own, const pl_ir_function *f, const pl_ir_op *op, arrival *outputs) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  double parts = 1, bytes = 0;
  arrival nothing = {NULL}, round;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++)
    if (pl_ir_op_has_name(op, "over", mesh->axes[axis].name)) parts *= mesh->axes[axis].extent;
  for (int32_t i = 1; i < 3; i++)
    bytes += parts * pl_ir_type_local_bytes(&own->module->mesh, &f->values[op->inputs[i]].type);
  if (op->n_outputs > 2) bytes *= 2; /* their gradients go with them */
  PL_TRY(collective(own, f, op, bytes, PL_ALL_GATHER, &nothing, &round));
  if (!add_part(own, f, op)) return no_memory(own);
  for (int32_t i = 0; i < op->n_outputs; i++)
    outputs[i] = round;
  return PL_OK;
}

/* ---- functions ---- */

static pl_code run_function(graphing *own, int32_t function, const char *prefix, const arrival *arguments,
                            arrival *results);

static pl_code run_call(graphing *own, const pl_ir_op *op, arrival *values) {
  const char *outer = own->prefix, *prefix = op->path;
  if (outer[0] != 0) prefix = op->path[0] != 0 ? pl_arena_printf(own->arena, "%s.%s", outer, op->path) : outer;
  arrival *arguments = PL_TAKE(own->arena, arrival, op->n_inputs + 1);
  arrival *results = PL_TAKE(own->arena, arrival, op->n_outputs + 1);
  if (prefix == NULL || arguments == NULL || results == NULL) return no_memory(own);
  for (int32_t i = 0; i < op->n_inputs; i++)
    arguments[i] = values[op->inputs[i]];
  PL_TRY(run_function(own, op->callee, prefix, arguments, results));
  own->prefix = outer;
  for (int32_t i = 0; i < op->n_outputs; i++)
    values[op->first_output + i] = results[i];
  return PL_OK;
}

static pl_code run_op(graphing *own, const pl_ir_function *f, const pl_ir_op *op, arrival *values) {
  const pl_ir_row *row = pl_ir_row_at(op->row);
  arrival *output = op->n_outputs > 0 ? &values[op->first_output] : NULL;
  if (row->effect == PL_IR_CALLS) return run_call(own, op, values);
  if (strcmp(row->name, "send") == 0) return send(own, f, op, &values[op->inputs[0]]);
  if (strcmp(row->name, "receive") == 0) return receive(own, f, op, output);
  if (strcmp(row->name, "sum_classes") == 0) return sum_classes(own, f, op, &values[op->inputs[0]], output);
  bool moves = row->effect == PL_IR_COLLECTIVE && strcmp(row->name, "cut") != 0;
  bool rings = strncmp(row->name, "ring_", 5) == 0;
  if (moves && !rings)
    return collective(own, f, op, pl_ir_collective_bytes(&own->module->mesh, f, op), collective_of(op),
                      &values[op->inputs[0]], output);
  for (int32_t i = 0; i < op->n_inputs; i++)
    PL_TRY(await(own, &values[op->inputs[i]]));
  if (rings) return ring(own, f, op, output);
  return add_part(own, f, op) ? PL_OK : no_memory(own);
}

static pl_code run_function(graphing *own, int32_t function, const char *prefix, const arrival *arguments,
                            arrival *results) {
  const pl_ir_function *f = own->module->functions[function];
  arrival *values = PL_TAKE(own->arena, arrival, f->n_values + 1);
  if (values == NULL) return no_memory(own);
  if (++own->depth > DEPTH_MAX) return pl_fail(own->error, PL_BAD_INPUT, "calls nest deeper than %d", (int)DEPTH_MAX);
  own->prefix = prefix;
  for (int32_t i = 0; i < f->n_arguments; i++)
    values[i] = arguments[i];
  for (int32_t i = 0; i < f->n_ops; i++) {
    own->prefix = prefix;
    PL_TRY(run_op(own, f, &f->ops[i], values));
  }
  for (int32_t i = 0; i < f->n_results; i++)
    results[i] = values[f->results[i]];
  own->depth--;
  return PL_OK;
}

static pl_code run_list(graphing *own) {
  const pl_ir_class *class = own->now->class;
  for (int32_t s = 0; s < class->n_steps; s++) {
    const pl_ir_step *step = &class->steps[s];
    int32_t c = 0;
    while (class->chunks[c].chunk != step->chunk)
      c++;
    const pl_ir_chunk *chunk = &class->chunks[c];
    own->microbatch = step->microbatch;
    own->category = step->kind == PL_IR_STEP_F ? PL_CATEGORY_FORWARD : PL_CATEGORY_BACKWARD;
    PL_TRY(run_function(own,
                        step->kind == PL_IR_STEP_F   ? chunk->forward
                        : step->kind == PL_IR_STEP_B ? chunk->backward
                                                     : chunk->weights,
                        "", NULL, NULL));
  }
  own->microbatch = -1;
  own->category = PL_CATEGORY_OPTIMIZER;
  if (class->update != PL_IR_NONE) PL_TRY(run_function(own, class->update, "", NULL, NULL));
  flush(own);
  return PL_OK;
}

/* ---- all devices ---- */

static pl_code take_devices(graphing *own) {
  uint32_t n = pl_ir_mesh_devices(&own->module->mesh);
  for (uint32_t device = 0; device < n; device++) {
    const pl_device_profile *profile = &own->cluster->profiles[own->cluster->devices[device].profile];
    bool ignore = own->options->no_overlap_factor;
    const pl_graph_device made = {.device = device,
                                  .multiplicity = 1,
                                  .overlap_compute = ignore ? 0 : profile->overlap_compute,
                                  .overlap_communication = ignore ? 0 : profile->overlap_communication};
    pl_graph_builder_device(own->builder, &made);
  }
  own->crews = PL_TAKE(own->arena, crew, own->module->n_classes + 1);
  if (own->crews == NULL) return no_memory(own);
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    crew *made = &own->crews[c];
    made->class = &own->module->classes[c];
    made->devices = PL_TAKE(own->arena, uint32_t, n);
    made->last = PL_TAKE(own->arena, uint32_t, n);
    if (made->devices == NULL || made->last == NULL) return no_memory(own);
    for (uint32_t device = 0; device < n; device++) {
      made->last[device] = PL_NONE;
      if (pl_ir_class_has(own->module, made->class, device)) made->devices[made->n_devices++] = device;
    }
  }
  return PL_OK;
}

pl_code pl_ir_graph_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph_options *options,
                         pl_arena *arena, pl_ir_graph *made, pl_error *error) {
  uint32_t n = pl_ir_mesh_devices(&module->mesh);
  *made = (pl_ir_graph){0};
  if (n > cluster->n_devices)
    return pl_fail(error, PL_BAD_INPUT, "%s: the program is for %u devices, the platform has %u", module->name, n,
                   cluster->n_devices);
  if (cluster->n_profiles > PROFILES_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "programs run on at most %d types of devices", (int)PROFILES_MAX);
  graphing own = {.cluster = cluster,
                  .module = module,
                  .options = options,
                  .arena = arena,
                  .made = made,
                  .error = error,
                  .prefix = ""};
  own.builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  if (own.builder == NULL) return no_memory(&own);
  pl_ir_transfers_init(&own.transfers, cluster, &options->collective, arena);
  PL_TRY(take_devices(&own));
  for (int32_t c = 0; c < module->n_classes; c++) {
    own.now = &own.crews[c];
    PL_TRY(run_list(&own));
  }
  pl_transfer_table *table = PL_TAKE(arena, pl_transfer_table, 1);
  if (table == NULL) return no_memory(&own);
  PL_TRY(pl_ir_transfers_table(&own.transfers, table, error));
  pl_graph_builder_transfers(own.builder, table);
  return pl_graph_builder_freeze(own.builder, &made->graph, error);
}
