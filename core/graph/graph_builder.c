/* The graph builder (core/graph/graph.h): append-only arrays. Freezing them is in core/graph/graph_freeze.c.
 *
 * A sweep builds graphs of 10^4 to 10^6 tasks thousands of times, so a call that adds a task is a range check, a store
 * and one edge per stream. Arrays double inside the arena (the old half stays behind until the arena is reset: at most
 * as much again); edges, which freeze only reads once in order, lie in a chain of chunks and are never copied.
 *
 * Stream order becomes an edge when the task is added, because only the last task of each stream has to be known then;
 * a pass over streams at freeze would have to find that out again.
 */
#include <math.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/graph/graph_builder_state.h"

enum { FIRST_CAPACITY = 64, FIRST_EDGES = 256, MOST_EDGES_IN_CHUNK = 1 << 20 };

static uint32_t refuse(pl_graph_builder *builder, const char *what, uint32_t index, uint32_t count) {
  if (!builder->failed)
    pl_fail(&builder->error, PL_BAD_INPUT, "graph: task %u refers to %s %u, but there are %u", builder->n_tasks, what,
            index, count);
  builder->failed = true;
  return PL_NONE;
}

static uint32_t refuse_value(pl_graph_builder *builder, const char *what) {
  if (!builder->failed) pl_fail(&builder->error, PL_BAD_INPUT, "graph: task %u %s", builder->n_tasks, what);
  builder->failed = true;
  return PL_NONE;
}

/* Room for `more` further items; the array may move. */
static bool make_room(pl_graph_builder *builder, void **items, uint32_t *room, uint32_t count, uint32_t more,
                      size_t item_bytes) {
  void *grown = pl_arena_grown(builder->arena, *items, count, more, item_bytes, room);
  if (grown == NULL) {
    builder->failed = true;
    return false;
  }
  *items = grown;
  return true;
}

/* make_room for an array of the builder whose count is n_NAME and whose room is NAME_room. */
#define ROOM(builder, name, count, more)                                                                               \
  (!(builder)->failed &&                                                                                               \
   make_room((builder), (void **)&(builder)->name, &(builder)->name##_room, (count), (more), sizeof *(builder)->name))

pl_graph_builder *pl_graph_builder_take(pl_arena *arena, pl_stream_policy policy) {
  pl_graph_builder *builder = PL_TAKE(arena, pl_graph_builder, 1);
  if (builder == NULL) return NULL;
  builder->arena = arena;
  builder->policy = policy;
  return builder;
}

/* Room for exactly so many; false: no memory. */
static bool widen(const pl_graph_builder *builder, void **items, uint32_t *room, uint32_t count, uint64_t wanted,
                  size_t item_bytes) {
  if (wanted <= *room || wanted >= PL_NONE) return true;
  void *wider = pl_arena_take(builder->arena, (size_t)wanted * item_bytes, 16);
  if (wider == NULL) return false;
  if (count > 0) memcpy(wider, *items, count * item_bytes);
  *items = wider;
  *room = (uint32_t)wanted;
  return true;
}

static uint32_t next_capacity(const pl_edge_chunk *last) {
  if (last == NULL) return FIRST_EDGES;
  return last->capacity < MOST_EDGES_IN_CHUNK ? 2 * last->capacity : last->capacity;
}

static bool add_edge_chunk(pl_graph_builder *builder, uint32_t capacity) {
  pl_edge_chunk *chunk =
      pl_arena_take(builder->arena, sizeof *chunk + capacity * sizeof(pl_edge), _Alignof(pl_edge_chunk));
  if (chunk == NULL) {
    builder->failed = true;
    return false;
  }
  chunk->next = NULL;
  chunk->count = 0;
  chunk->capacity = capacity;
  if (builder->last_edges == NULL) {
    builder->first_edges = chunk;
  } else {
    builder->last_edges->next = chunk;
  }
  builder->last_edges = chunk;
  return true;
}

/* In one chunk, which serves the engine when the edges are in their rows. */
static void expect_edges(pl_graph_builder *builder, uint32_t times) {
  uint64_t wanted = builder->n_raw_edges * times;
  const pl_edge_chunk *last = builder->last_edges;
  if (last == NULL || wanted <= last->capacity - last->count || wanted >= PL_NONE) return;
  add_edge_chunk(builder, (uint32_t)wanted);
}

/* widen for an array of the builder: `times` times more than there are. */
#define EXPECT(builder, name, times)                                                                                   \
  widen((builder), (void **)&(builder)->name, &(builder)->name##_room, (builder)->n_##name,                            \
        (builder)->n_##name *((times) + 1ULL), sizeof *(builder)->name)

void pl_graph_builder_expect(pl_graph_builder *builder, uint32_t times) {
  if (builder->failed) return;
  builder->failed = !EXPECT(builder, tasks, times) || !EXPECT(builder, task_streams, times) ||
                    !EXPECT(builder, parts, times) || !EXPECT(builder, segments, times);
  if (!builder->failed) expect_edges(builder, times);
}

uint32_t pl_graph_builder_n_tasks(const pl_graph_builder *builder) {
  return builder->n_tasks;
}

uint32_t pl_graph_builder_device(pl_graph_builder *builder, const pl_graph_device *device) {
  if (!ROOM(builder, devices, builder->n_devices, 1) || !ROOM(builder, device_streams, builder->n_devices, 1))
    return PL_NONE;
  const double factors[] = {device->overlap_compute, device->overlap_communication, device->overlap_exchange,
                            device->overlap_tensor};
  for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
    if (!(factors[i] >= 0) || isinf(factors[i]))
      return refuse_value(builder, "has yet to come, but a device before it has an overlap factor below zero");
  builder->devices[builder->n_devices] = *device;
  for (uint32_t kind = 0; kind < PL_STREAM_KIND_COUNT; kind++)
    builder->device_streams[builder->n_devices][kind] = PL_NONE;
  return builder->n_devices++;
}

uint32_t pl_graph_builder_stream(pl_graph_builder *builder, uint32_t device, pl_stream_kind kind) {
  if (device >= builder->n_devices) return refuse(builder, "device", device, builder->n_devices);
  if ((uint32_t)kind >= PL_STREAM_KIND_COUNT) return refuse(builder, "stream kind", kind, PL_STREAM_KIND_COUNT);
  uint32_t *stream = &builder->device_streams[device][kind];
  if (*stream != PL_NONE) return *stream;
  if (!ROOM(builder, streams, builder->n_streams, 1)) return PL_NONE;
  if (!make_room(builder, (void **)&builder->last_on_stream, &builder->last_room, builder->n_streams, 1,
                 sizeof *builder->last_on_stream))
    return PL_NONE;
  builder->streams[builder->n_streams] = (pl_stream){.device = device, .kind = (uint8_t)kind};
  builder->last_on_stream[builder->n_streams] = PL_NONE;
  return *stream = builder->n_streams++;
}

/* ---- names ---- */

static uint32_t *find_name(const pl_graph_builder *builder, const char *name) {
  uint32_t mask = builder->name_table_size - 1;
  uint32_t at = (uint32_t)pl_hash_bytes(name, strlen(name), 0) & mask;
  while (builder->name_table[at] != PL_NONE && strcmp(builder->names[builder->name_table[at]], name) != 0)
    at = (at + 1) & mask;
  return &builder->name_table[at];
}

static bool grow_name_table(pl_graph_builder *builder) {
  uint32_t size = builder->name_table_size == 0 ? FIRST_CAPACITY : 2 * builder->name_table_size;
  uint32_t *table = pl_arena_take(builder->arena, size * sizeof *table, _Alignof(uint32_t));
  if (table == NULL) return false;
  memset(table, 0xff, size * sizeof *table); /* PL_NONE */
  builder->name_table = table;
  builder->name_table_size = size;
  for (uint32_t name = 0; name < builder->n_names; name++)
    *find_name(builder, builder->names[name]) = name;
  return true;
}

uint32_t pl_graph_builder_name(pl_graph_builder *builder, const char *name) {
  if (!ROOM(builder, names, builder->n_names, 1)) return PL_NONE;
  if (2 * builder->n_names >= builder->name_table_size && !grow_name_table(builder)) {
    builder->failed = true;
    return PL_NONE;
  }
  uint32_t *slot = find_name(builder, name);
  if (*slot != PL_NONE) return *slot;
  const char *copy = pl_arena_strdup(builder->arena, name);
  if (copy == NULL) {
    builder->failed = true;
    return PL_NONE;
  }
  builder->names[builder->n_names] = copy;
  return *slot = builder->n_names++;
}

/* ---- what tasks refer to ---- */

static bool is_part_right(const pl_graph_builder *builder, const pl_part *part) {
  return part->ticks >= 0 && part->ticks <= PL_TICKS_MAX && part->category < PL_CATEGORY_COUNT &&
         (part->name == PL_NONE || part->name < builder->n_names);
}

uint32_t pl_graph_builder_segment(pl_graph_builder *builder, const pl_part *parts, uint32_t n_parts) {
  if (!ROOM(builder, segments, builder->n_segments, 1) || !ROOM(builder, parts, builder->n_parts, n_parts))
    return PL_NONE;
  if (n_parts == 0) return refuse_value(builder, "would run a segment without parts");
  pl_ticks ticks = 0;
  for (uint32_t part = 0; part < n_parts; part++) {
    if (!is_part_right(builder, &parts[part]))
      return refuse_value(builder, "would run a segment with a duration below zero or beyond 48 days, an unknown "
                                   "category, or a name that is not in the graph");
    if (ticks > PL_TICKS_MAX - parts[part].ticks)
      return refuse_value(builder, "would run a segment of more than 48 days (4.19e6 s), and dates reach no further; "
                                   "make the run shorter (a smaller batch or sequence, more devices)");
    ticks += parts[part].ticks;
  }
  memcpy(builder->parts + builder->n_parts, parts, n_parts * sizeof *parts);
  builder->segments[builder->n_segments] =
      (pl_segment){.first_part = builder->n_parts, .n_parts = n_parts, .ticks = ticks};
  builder->n_parts += n_parts;
  return builder->n_segments++;
}

const pl_part *pl_graph_builder_parts(const pl_graph_builder *builder, uint32_t segment, uint32_t *n_parts) {
  *n_parts = builder->segments[segment].n_parts;
  return builder->parts + builder->segments[segment].first_part;
}

uint32_t pl_graph_builder_effect(pl_graph_builder *builder, int64_t peak_bytes, int64_t net_bytes) {
  if (!ROOM(builder, effects, builder->n_effects, 1)) return PL_NONE;
  if (peak_bytes < 0 || peak_bytes < net_bytes)
    return refuse_value(builder, "would have a memory effect whose peak is below zero or below its net");
  builder->effects[builder->n_effects] = (pl_memory_effect){.peak_bytes = peak_bytes, .net_bytes = net_bytes};
  return builder->n_effects++;
}

/* ---- tasks and edges ---- */

/* Sender and receiver of one send after another say the same: a fifth of all edges. */
static inline bool was_last(const pl_edge_chunk *chunk, uint32_t before, uint32_t after) {
  if (chunk->count == 0) return false;
  const pl_edge *last = &chunk->edges[chunk->count - 1];
  return last->before == before && last->after == after;
}

static inline void append_edge(pl_graph_builder *builder, uint32_t before, uint32_t after) {
  pl_edge_chunk *chunk = builder->last_edges;
  if (chunk == NULL || chunk->count == chunk->capacity) {
    if (!add_edge_chunk(builder, next_capacity(chunk))) return;
    chunk = builder->last_edges;
  }
  if (was_last(chunk, before, after)) return;
  chunk->edges[chunk->count++] = (pl_edge){before, after};
  builder->n_raw_edges++;
}

void pl_graph_builder_edge(pl_graph_builder *builder, uint32_t before, uint32_t after) {
  if (builder->failed) return;
  if (before == PL_NONE || after == PL_NONE) {
    refuse(builder, "task", PL_NONE, builder->n_tasks);
    return;
  }
  if (before >= after) builder->has_backward_edge = true;
  append_edge(builder, before, after);
}

static bool enter_stream(pl_graph_builder *builder, uint32_t stream) {
  if (stream >= builder->n_streams) return refuse(builder, "stream", stream, builder->n_streams) != PL_NONE;
  uint32_t previous = builder->last_on_stream[stream], task = builder->n_tasks;
  if (previous == task) return refuse_value(builder, "names the same stream twice") != PL_NONE;
  if (previous != PL_NONE && builder->policy == PL_STREAMS_IN_ORDER) append_edge(builder, previous, task);
  builder->last_on_stream[stream] = task;
  builder->task_streams[builder->n_task_streams++] = stream;
  return true;
}

/* Takes over `task` but for its streams and successors. */
static uint32_t append_task(pl_graph_builder *builder, const pl_task *task, const uint32_t *streams,
                            uint32_t n_streams) {
  if (!ROOM(builder, tasks, builder->n_tasks, 1) || !ROOM(builder, task_streams, builder->n_task_streams, n_streams))
    return PL_NONE;
  if (task->memory != PL_NONE && task->memory >= builder->n_effects)
    return refuse(builder, "memory effect", task->memory, builder->n_effects);
  if (task->label != PL_NONE && task->label >= builder->n_names)
    return refuse(builder, "name", task->label, builder->n_names);
  if ((uint32_t)task->category >= PL_CATEGORY_COUNT)
    return refuse(builder, "category", task->category, PL_CATEGORY_COUNT);
  uint32_t first_stream = builder->n_task_streams;
  for (uint32_t member = 0; member < n_streams; member++)
    if (!enter_stream(builder, streams[member])) return PL_NONE;
  pl_task *added = &builder->tasks[builder->n_tasks];
  *added = *task;
  added->first_stream = first_stream;
  added->n_streams = n_streams;
  builder->n_streamless_tasks += n_streams == 0;
  return builder->n_tasks++;
}

static bool may_be_joint(const pl_graph_builder *builder, uint32_t segment, const uint32_t *streams,
                         uint32_t n_streams) {
  const pl_part *first = &builder->parts[builder->segments[segment].first_part];
  bool may = n_streams > 0 && !first->computes && !first[builder->segments[segment].n_parts - 1].computes;
  for (uint32_t at = 0; at < n_streams; at++)
    may &= streams[at] >= builder->n_streams || builder->streams[streams[at]].kind == PL_STREAM_COMPUTE;
  return may;
}

uint32_t pl_graph_builder_joint_work(pl_graph_builder *builder, uint32_t segment, const uint32_t *streams,
                                     uint32_t n_streams, uint32_t effect, uint32_t label, int32_t microbatch) {
  if (builder->failed) return PL_NONE;
  if (segment >= builder->n_segments) return refuse(builder, "segment", segment, builder->n_segments);
  const pl_segment *run = &builder->segments[segment];
  pl_task task = {.kind = PL_TASK_WORK,
                  .category = builder->parts[run->first_part].category & 63u,
                  .index = segment,
                  .ticks = run->ticks,
                  .memory = effect,
                  .label = label,
                  .microbatch = microbatch};
  if (n_streams != 1 && !may_be_joint(builder, segment, streams, n_streams))
    return refuse_value(builder, "is a joint segment off the compute streams, or one that does not begin and end with "
                                 "communication");
  return append_task(builder, &task, streams, n_streams);
}

uint32_t pl_graph_builder_work(pl_graph_builder *builder, uint32_t segment, uint32_t stream, uint32_t effect,
                               uint32_t label, int32_t microbatch) {
  return pl_graph_builder_joint_work(builder, segment, &stream, 1, effect, label, microbatch);
}

uint32_t pl_graph_builder_transfer(pl_graph_builder *builder, uint32_t spec, double size_bytes, pl_category category,
                                   const uint32_t *streams, uint32_t n_streams, uint32_t label, int32_t microbatch) {
  if (builder->failed) return PL_NONE;
  if (!(size_bytes >= 0) || isinf(size_bytes))
    return refuse_value(builder, "transfers a size below zero or not finite");
  pl_task task = {.kind = PL_TASK_TRANSFER,
                  .category = category & 63u,
                  .index = spec,
                  .size_bytes = size_bytes,
                  .memory = PL_NONE,
                  .label = label,
                  .microbatch = microbatch};
  if (builder->n_transfer_tasks++ == 0 || spec > builder->greatest_spec) builder->greatest_spec = spec;
  return append_task(builder, &task, streams, n_streams);
}

uint32_t pl_graph_builder_delay(pl_graph_builder *builder, pl_ticks ticks, pl_category category,
                                const uint32_t *streams, uint32_t n_streams, uint32_t label, int32_t microbatch) {
  if (builder->failed) return PL_NONE;
  if (ticks < 0 || ticks > PL_TICKS_MAX) return refuse_value(builder, "has a delay below zero or beyond 48 days");
  pl_task task = {.kind = PL_TASK_DELAY,
                  .category = category & 63u,
                  .index = PL_NONE,
                  .ticks = ticks,
                  .memory = PL_NONE,
                  .label = label,
                  .microbatch = microbatch};
  return append_task(builder, &task, streams, n_streams);
}

void pl_graph_builder_set_effect(pl_graph_builder *builder, uint32_t task, uint32_t effect) {
  if (builder->failed) return;
  if (task >= builder->n_tasks) {
    refuse(builder, "task", task, builder->n_tasks);
  } else if (effect != PL_NONE && effect >= builder->n_effects) {
    refuse(builder, "memory effect", effect, builder->n_effects);
  } else {
    builder->tasks[task].memory = effect;
  }
}

void pl_graph_builder_transfers(pl_graph_builder *builder, const pl_transfer_table *table) {
  builder->transfers = *table;
}

void pl_graph_builder_rivals(pl_graph_builder *builder, const uint32_t *rival_offset, const uint32_t *rivals) {
  if (builder == NULL) return;
  builder->rival_offset = rival_offset;
  builder->rivals = rivals;
}

void pl_graph_builder_is_acyclic(pl_graph_builder *builder) {
  builder->is_acyclic = true;
}
