/* See workloads/run/program_effects.h. */
#include "workloads/run/program_effects.h"

#include <math.h>
#include <string.h>

#include "workloads/language/ir_module.h"

typedef struct work {
  uint32_t first, last; /* tasks of the step at hand on the device's compute stream; PL_NONE: none yet */
} work;

typedef struct putting {
  const pl_graph *graph;
  pl_task *tasks;
  pl_memory_effect *effects;
  uint32_t n_effects;
  work *works;      /* per device of the graph */
  uint32_t *worked; /* devices that have some in this step */
  uint32_t n_worked;
} putting;

static bool is_work(const pl_graph *graph, const pl_task *task) {
  return task->kind != PL_TASK_TRANSFER && task->n_streams == 1 &&
         graph->streams[graph->task_streams[task->first_stream]].kind == PL_STREAM_COMPUTE;
}

static void find_work(putting *own, uint32_t first, uint32_t end) {
  own->n_worked = 0;
  for (uint32_t t = first; t < end; t++) {
    const pl_task *task = &own->graph->tasks[t];
    if (!is_work(own->graph, task)) continue;
    uint32_t device = own->graph->streams[own->graph->task_streams[task->first_stream]].device;
    if (own->works[device].first == PL_NONE) {
      own->works[device].first = t;
      own->worked[own->n_worked++] = device;
    }
    own->works[device].last = t;
  }
}

static uint32_t effect(putting *own, double peak, double net) {
  own->effects[own->n_effects] = (pl_memory_effect){.peak_bytes = llrint(peak), .net_bytes = llrint(net)};
  return own->n_effects++;
}

/* To a step's one task, or to its first and its last. */
static void put_step(putting *own, const pl_step_memory *memory, uint32_t first, uint32_t end) {
  if (memory->peak == 0 && memory->net == 0) return;
  find_work(own, first, end);
  uint32_t whole = effect(own, memory->peak, memory->net), begin = effect(own, memory->peak, memory->peak),
           over = effect(own, 0, memory->net - memory->peak);
  for (uint32_t i = 0; i < own->n_worked; i++) {
    work *at = &own->works[own->worked[i]];
    own->tasks[at->first].memory = at->first == at->last ? whole : begin;
    if (at->first != at->last) own->tasks[at->last].memory = over;
    *at = (work){PL_NONE, PL_NONE};
  }
}

static void put_class(putting *own, const pl_ir_class *class, const pl_lanes *lanes, const pl_lane *lane,
                      const pl_step_memory *steps) {
  const uint32_t *first_task = &lanes->first_task[lane->first];
  for (int32_t s = 0, end; s <= class->n_steps; s = end) {
    end = s + 1;
    while (end <= class->n_steps && class->steps[end - 1].joined)
      end++;
    put_step(own, &steps[s], first_task[s], first_task[end]);
  }
}

static const pl_graph_device *devices_of(const pl_program_members *members, const pl_class_memory *memory,
                                         pl_arena *arena) {
  const pl_graph *graph = &members->made->graph;
  pl_graph_device *devices = PL_TAKE(arena, pl_graph_device, graph->n_devices + 1);
  for (uint32_t d = 0; devices != NULL && d < graph->n_devices; d++) {
    devices[d] = graph->devices[d];
    devices[d].resident_bytes = llrint(pl_class_stays_bytes(&memory[members->list[d]]));
  }
  return devices;
}

bool pl_program_effects_take(const pl_ir_module *module, const pl_program_members *members,
                             const pl_class_memory *memory, pl_arena *arena, pl_graph *with) {
  const pl_ir_graph *made = members->made;
  size_t n_steps = 0;
  for (int32_t c = 0; c < module->n_classes; c++)
    n_steps += (size_t)module->classes[c].n_steps + 1;
  putting own = {.graph = &made->graph,
                 .tasks = PL_TAKE(arena, pl_task, made->graph.n_tasks + 1),
                 .effects = PL_TAKE(arena, pl_memory_effect, 3 * n_steps),
                 .works = PL_TAKE(arena, work, made->graph.n_devices + 1),
                 .worked = PL_TAKE(arena, uint32_t, made->graph.n_devices + 1)};
  *with = made->graph;
  with->devices = devices_of(members, memory, arena);
  if (arena->failed) return false;
  PL_ASSERT(made->lanes.n_lanes == (uint32_t)module->n_classes && !pl_graph_is_rolled(&made->graph));
  memcpy(own.tasks, made->graph.tasks, made->graph.n_tasks * sizeof *own.tasks);
  memset(own.works, 0xff, made->graph.n_devices * sizeof *own.works); /* PL_NONE */
  for (int32_t c = 0; c < module->n_classes; c++)
    put_class(&own, &module->classes[c], &made->lanes, &made->lanes.lanes[c], memory[c].steps);
  with->tasks = own.tasks;
  with->effects = own.effects;
  with->n_effects = own.n_effects;
  return true;
}
