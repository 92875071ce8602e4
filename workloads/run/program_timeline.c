/* See workloads/run/program_timeline.h. */
#include "workloads/run/program_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash_index.h"
#include "core/engine/timeline_perfetto.h"
#include "workloads/run/program_effects.h"

typedef struct drawing {
  const pl_ir_module *module;
  const pl_ir_graph *made;
  const pl_engine_result *result;
  pl_arena *arena;
  pl_program_members members;
} drawing;

/* ---- processes ---- */

/* "device 5: stage1", and of a class of devices that are alike its first, "(stands for 128 devices)". */
static const char *name_of_device(const drawing *own, uint32_t device) {
  const pl_graph_device *of = &own->made->graph.devices[device];
  const char *list = own->module->classes[own->members.list[device]].name;
  uint32_t first = own->made->device_class != NULL ? 0 : device;
  while (own->made->device_class != NULL && own->made->device_class[first] != device)
    first++;
  if (of->multiplicity == 1) return pl_arena_printf(own->arena, "device %u: %s", first, list);
  return pl_arena_printf(own->arena, "device %u: %s (stands for %u devices)", first, list, of->multiplicity);
}

/* ---- parts: their work, and layers ---- */

typedef struct known_block {
  const char *name;
  int32_t number;
} known_block;

/* "layer 12" of "h.12.mlp.up", "decoder layer 3" of "decoder.h.3.x", "head" of "head.logits". NULL: no block. */
static const char *block_of(const char *name, pl_arena *arena) {
  PL_ASSERT(name != NULL);
  for (const char *at = name; at != NULL; at = strchr(at, '.'), at = at != NULL ? at + 1 : NULL) {
    size_t digits = at[0] == 'h' && at[1] == '.' ? strspn(at + 2, "0123456789") : 0;
    if (digits == 0 || (at[2 + digits] != '.' && at[2 + digits] != 0)) continue;
    int before = at > name ? (int)(at - name) - 1 : 0;
    return pl_arena_printf(arena, "%.*s%slayer %.*s", before, name, before > 0 ? " " : "", (int)digits, at + 2);
  }
  size_t length = strcspn(name, ".");
  return name[length] == '.' ? pl_arena_printf(arena, "%.*s", (int)length, name) : NULL;
}

/* One number for each name of a block; -1: none, or no memory. */
static int32_t number_of(pl_hash_index *known, const char *name, const char **names, int32_t *n, pl_arena *arena) {
  uint64_t hash = pl_hash_text(3, name);
  uint32_t probe = 0;
  for (const known_block *at; (at = pl_hash_index_find(known, hash, &probe)) != NULL;)
    if (strcmp(at->name, name) == 0) return at->number;
  known_block *made = PL_TAKE(arena, known_block, 1);
  if (made == NULL || !pl_hash_index_put(known, hash, made, arena)) return -1;
  *made = (known_block){name, *n};
  names[*n] = name;
  return (*n)++;
}

/* What a host is late by behind a layer is of that layer. */
static void follow_blocks(const pl_graph *graph, pl_timeline_part *parts) {
  for (uint32_t s = 0; s < graph->n_segments; s++)
    for (uint32_t i = 1; i < graph->segments[s].n_parts; i++) {
      uint32_t at = graph->segments[s].first_part + i;
      if (graph->parts[at].category == PL_CATEGORY_HOST && parts[at].block < 0) parts[at].block = parts[at - 1].block;
    }
}

static void describe_parts(drawing *own, pl_timeline_view *view) {
  const pl_graph *graph = &own->made->graph;
  pl_timeline_part *parts = PL_TAKE(own->arena, pl_timeline_part, graph->n_parts + 1);
  int32_t *block = PL_TAKE(own->arena, int32_t, graph->n_names + 1), n_blocks = 0;
  const char **names = PL_TAKE(own->arena, const char *, graph->n_names + 1);
  pl_hash_index known = {0};
  if (own->arena->failed) return;
  for (uint32_t i = 0; i < graph->n_names; i++) {
    const char *name = block_of(graph->names[i], own->arena);
    block[i] = name != NULL ? number_of(&known, name, names, &n_blocks, own->arena) : -1;
  }
  for (uint32_t i = 0; i < graph->n_parts; i++) {
    const pl_ir_origin *origin = own->made->origins != NULL ? own->made->origins[i] : NULL;
    parts[i].block = graph->parts[i].name != PL_NONE ? block[graph->parts[i].name] : -1;
    if (origin == NULL) continue;
    parts[i].flops = origin->kernel.flops;
    parts[i].bytes = origin->kernel.bytes;
  }
  follow_blocks(graph, parts);
  view->parts = parts;
  view->block_names = names;
}

/* ---- passes ---- */

/* Which way a stretch of computing goes; PL_CATEGORY_COUNT: it does not say, as what a host is late by. */
static uint8_t way_of(const pl_graph *graph, const pl_task *task) {
  const pl_segment *segment = &graph->segments[task->index];
  for (uint32_t i = 0; i < segment->n_parts; i++)
    switch (graph->parts[segment->first_part + i].category) {
    case PL_CATEGORY_FORWARD:
      return PL_CATEGORY_FORWARD;
    case PL_CATEGORY_BACKWARD:
    case PL_CATEGORY_RECOMPUTE:
      return PL_CATEGORY_BACKWARD;
    case PL_CATEGORY_OPTIMIZER:
      return PL_CATEGORY_OPTIMIZER;
    default:
      break;
    }
  return PL_CATEGORY_COUNT;
}

static bool is_stretch(const pl_graph *graph, const pl_task *task) {
  return task->kind == PL_TASK_WORK && task->n_streams == 1 &&
         graph->streams[graph->task_streams[task->first_stream]].kind == PL_STREAM_COMPUTE;
}

/* What a device computes between two meetings is a task; those of a microbatch that go one way are a pass, as of a
 * tuple, whose communication lies inside of it. */
static void find_passes(drawing *own, pl_timeline_view *view) {
  const pl_graph *graph = &own->made->graph;
  pl_timeline_pass *passes = PL_TAKE(own->arena, pl_timeline_pass, graph->n_tasks + 1);
  uint32_t *pass_of = PL_TAKE(own->arena, uint32_t, graph->n_tasks + 1),
           *open = PL_TAKE(own->arena, uint32_t, graph->n_streams + 1), n = 0;
  if (own->arena->failed) return;
  memset(pass_of, 0xff, graph->n_tasks * sizeof *pass_of); /* PL_NONE */
  memset(open, 0xff, graph->n_streams * sizeof *open);
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    const pl_task *task = &graph->tasks[t];
    if (!is_stretch(graph, task)) continue;
    uint32_t *last = &open[graph->task_streams[task->first_stream]];
    uint8_t way = way_of(graph, task);
    pl_timeline_pass *pass = *last != PL_NONE ? &passes[*last] : NULL;
    bool goes_on = pass != NULL && graph->tasks[pass->first_task].microbatch == task->microbatch &&
                   (way == PL_CATEGORY_COUNT || pass->category == PL_CATEGORY_COUNT || way == pass->category);
    if (!goes_on) {
      *last = n++;
      pass = &passes[*last];
      *pass = (pl_timeline_pass){
          .first_task = t, .stream = graph->task_streams[task->first_stream], .category = PL_CATEGORY_COUNT};
    }
    if (pass->category == PL_CATEGORY_COUNT) pass->category = way;
    if (own->result->finish[t] > pass->finish) pass->finish = own->result->finish[t];
    pass_of[t] = *last;
  }
  for (uint32_t i = 0; i < n; i++)
    if (passes[i].category == PL_CATEGORY_COUNT) passes[i].category = graph->tasks[passes[i].first_task].category;
  view->passes = passes;
  view->n_passes = n;
  view->pass_of = pass_of;
}

/* ---- transfers that occupy no stream ---- */

typedef struct lane {
  pl_ticks free_at; /* PL_TICKS_MAX: it is a stream of the graph */
  uint32_t next;    /* of the same device and kind; PL_NONE: none */
} lane;

typedef struct lanes {
  pl_stream *streams; /* of the graph, and more */
  lane *each;
  uint32_t (*first)[PL_STREAM_KIND_COUNT]; /* per device; PL_NONE: none */
  uint32_t n, room_streams, room_lanes;
} lanes;

/* The first stream of such a kind on which nothing goes on; PL_NONE: no memory. */
static uint32_t stream_for(drawing *own, lanes *on, uint32_t device, pl_stream_kind kind, pl_ticks start) {
  uint32_t *link = &on->first[device][kind], n = 0;
  for (; *link != PL_NONE; link = &on->each[*link].next, n++)
    if (on->each[*link].free_at <= start || n == UINT8_MAX) return *link;
  *link = on->n; /* before there is another array of them */
  on->streams = (pl_stream *)pl_arena_grown(own->arena, on->streams, on->n, 1, sizeof *on->streams, &on->room_streams);
  on->each = (lane *)pl_arena_grown(own->arena, on->each, on->n, 1, sizeof *on->each, &on->room_lanes);
  if (own->arena->failed) return PL_NONE;
  on->streams[on->n] = (pl_stream){.device = device, .kind = (uint8_t)kind, .lane = (uint8_t)n};
  on->each[on->n] = (lane){.next = PL_NONE};
  return on->n++;
}

/* Those of the graph, which are in use. */
static bool take_lanes(const drawing *own, lanes *made) {
  const pl_graph *graph = &own->made->graph;
  *made = (lanes){.n = graph->n_streams, .room_streams = graph->n_streams + 1, .room_lanes = graph->n_streams + 1};
  made->first = pl_arena_take(own->arena, (graph->n_devices + 1) * sizeof *made->first, _Alignof(uint32_t));
  made->streams = PL_TAKE(own->arena, pl_stream, made->room_streams);
  made->each = PL_TAKE(own->arena, lane, made->room_lanes);
  if (own->arena->failed) return false;
  memset(made->first, 0xff, graph->n_devices * sizeof *made->first); /* PL_NONE */
  memcpy(made->streams, graph->streams, graph->n_streams * sizeof *made->streams);
  for (uint32_t s = 0; s < graph->n_streams; s++) {
    made->each[s] = (lane){.free_at = PL_TICKS_MAX, .next = PL_NONE};
    made->first[graph->streams[s].device][graph->streams[s].kind] = s;
  }
  return true;
}

static pl_stream_kind kind_of(const drawing *own, const pl_task *task, uint32_t member) {
  const pl_ir_sent *sent = &own->made->sent[task->index];
  switch ((pl_category)task->category) {
  case PL_CATEGORY_PIPELINE: {
    int32_t from = own->members.list[own->members.number[sent->members[0]]],
            to = own->members.list[own->members.number[sent->members[1]]];
    if (member == 0) return from < to ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP;
    return from < to ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP;
  }
  case PL_CATEGORY_DATA:
    return PL_STREAM_TIED;
  case PL_CATEGORY_CONTEXT:
    return PL_STREAM_CONTEXT;
  case PL_CATEGORY_OTHER:
    return PL_STREAM_HOST;
  default:
    return PL_STREAM_FEATURE;
  }
}

static int earlier(const void *left, const void *right, void *context) {
  const uint32_t *a = left, *b = right;
  const pl_ticks *start = context;
  if (start[*a] != start[*b]) return start[*a] < start[*b] ? -1 : 1;
  return *a < *b ? -1 : 1;
}

static bool is_streamless(const pl_task *task) {
  return task->kind == PL_TASK_TRANSFER && task->n_streams == 0;
}

/* On a thread of each device that takes part, in the order of their starts. */
static bool place(drawing *own, const uint32_t *tasks, uint32_t n_tasks, pl_task *drawn, uint32_t *task_streams,
                  uint32_t n_streams, lanes *on) {
  for (uint32_t i = 0; i < n_tasks; i++) {
    pl_task *task = &drawn[tasks[i]];
    const pl_ir_sent *sent = &own->made->sent[task->index];
    task->first_stream = n_streams;
    for (uint32_t m = 0; m < sent->n_members; m++) {
      uint32_t device = own->members.number[sent->members[m]], at = task->first_stream;
      while (at < n_streams && on->streams[task_streams[at]].device != device)
        at++;
      if (at < n_streams) continue; /* stands for another member too */
      uint32_t stream = stream_for(own, on, device, kind_of(own, task, m), own->result->start[tasks[i]]);
      if (stream == PL_NONE) return false;
      on->each[stream].free_at = own->result->finish[tasks[i]];
      task_streams[n_streams++] = stream;
    }
    task->n_streams = n_streams - task->first_stream;
  }
  return true;
}

/* A graph like the one that ran, for drawing alone. */
static bool take_drawn(drawing *own, const pl_class_memory *memory, pl_graph *made) {
  const pl_graph *graph = &own->made->graph;
  uint32_t n = 0, n_members = 0, *order = PL_TAKE(own->arena, uint32_t, graph->n_streamless_tasks + 1);
  if (!pl_program_effects_take(own->module, &own->members, memory, own->arena, made) || order == NULL) return false;
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    if (!is_streamless(&graph->tasks[t])) continue;
    n_members += own->made->sent[graph->tasks[t].index].n_members;
    order[n++] = t;
  }
  if (n == 0) return true;
  lanes on;
  pl_task *tasks = PL_TAKE(own->arena, pl_task, graph->n_tasks);
  uint32_t *task_streams = PL_TAKE(own->arena, uint32_t, graph->n_task_streams + n_members);
  if (!take_lanes(own, &on) || own->arena->failed) return false;
  memcpy(tasks, made->tasks, graph->n_tasks * sizeof *tasks);
  memcpy(task_streams, graph->task_streams, graph->n_task_streams * sizeof *task_streams);
  qsort_r(order, n, sizeof *order, earlier, (void *)(uintptr_t)own->result->start);
  if (!place(own, order, n, tasks, task_streams, graph->n_task_streams, &on)) return false;
  made->tasks = tasks;
  made->task_streams = task_streams;
  made->streams = on.streams;
  made->n_streams = on.n;
  return true;
}

pl_code pl_program_timeline_write(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                  const pl_engine_result *result, const pl_class_memory *memory,
                                  const pl_simulate_options *options, pl_arena *arena, pl_error *error) {
  drawing own = {.module = module, .made = made, .result = result, .arena = arena};
  uint32_t n = made->graph.n_devices;
  const char **names = PL_TAKE(arena, const char *, n);
  pl_timeline_view view = options->view != NULL ? *options->view : (pl_timeline_view){0};
  pl_graph drawn;
  if (!pl_program_members_take(cluster, module, made, arena, &own.members) || names == NULL ||
      !take_drawn(&own, memory, &drawn))
    return pl_fail_memory(error, "the timeline");
  for (uint32_t d = 0; d < n; d++)
    names[d] = name_of_device(&own, d);
  view.device = names;
  describe_parts(&own, &view);
  if (result->part_spans != NULL) find_passes(&own, &view);
  if (arena->failed) return pl_fail_memory(error, "the timeline");
  return pl_timeline_write(options->trace, &drawn, result, &view, error);
}
