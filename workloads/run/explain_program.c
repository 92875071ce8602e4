/* See workloads/run/explain_program.h. */
#include "workloads/run/explain_program.h"

#include <stdlib.h>
#include <string.h>

typedef struct explaining {
  const pl_graph *graph;
  const uint32_t *device_class; /* per device of the mesh that of the graph; NULL: the same */
  const pl_engine_result *result;
  pl_arena *arena;
  pl_error *error;
  /* of the list in hand */
  uint32_t device;
  pl_program_part *parts;
  uint32_t n_parts, room;
} explaining;

/* "h.12.mlp.up" is "h.*.mlp.up". NULL: no memory. */
static const char *pattern_of(const char *name, pl_arena *arena) {
  char *text = pl_arena_strdup(arena, name), *to = text;
  bool of_layer = false;
  for (const char *at = text; at != NULL && *at != 0;) {
    size_t length = strcspn(at, "."), digits = strspn(at, "0123456789");
    if (digits == length && length > 0 && of_layer)
      *to++ = '*';
    else
      for (size_t i = 0; i < length; i++)
        *to++ = at[i];
    of_layer = length == 1 && *at == 'h';
    at += length;
    if (*at == '.') *to++ = *at++;
  }
  if (to != NULL) *to = 0;
  return text;
}

static pl_program_part *part_of(explaining *own, uint32_t name, uint8_t category, bool computes) {
  const char *text = name != PL_NONE ? own->graph->names[name] : pl_category_name((pl_category)category);
  const char *pattern = pattern_of(text, own->arena);
  if (pattern == NULL) return NULL;
  for (uint32_t i = 0; i < own->n_parts; i++)
    if (own->parts[i].category == category && own->parts[i].computes == computes &&
        strcmp(own->parts[i].name, pattern) == 0)
      return &own->parts[i];
  own->parts =
      (pl_program_part *)pl_arena_grown(own->arena, own->parts, own->n_parts, 1, sizeof(*own->parts), &own->room);
  if (own->parts == NULL) return NULL;
  own->parts[own->n_parts] = (pl_program_part){.name = pattern, .category = category, .computes = computes};
  return &own->parts[own->n_parts++];
}

static bool has_stream(const explaining *own, const pl_task *task) {
  for (uint32_t i = 0; i < task->n_streams; i++)
    if (own->graph->streams[own->graph->task_streams[task->first_stream + i]].device == own->device) return true;
  return false;
}

/* How often that of a task which ends at this date comes in the run, with what was leapt over. */
static uint64_t times_of(const explaining *own, uint32_t task, pl_ticks date) {
  return pl_leaps_weight(&own->result->leaps, task, date);
}

static pl_code no_memory(const explaining *own) {
  return pl_fail_memory(own->error, "the explanation of a program");
}

static pl_code add_computing(explaining *own) {
  for (uint32_t i = 0; i < own->result->n_part_spans; i++) {
    const pl_part_span *span = &own->result->part_spans[i];
    const pl_task *task = &own->graph->tasks[span->task];
    const pl_part *of = &own->graph->parts[span->part];
    if (own->graph->streams[own->graph->task_streams[task->first_stream + span->member]].device != own->device)
      continue;
    pl_program_part *part = part_of(own, of->name, of->category, true);
    if (part == NULL) return no_memory(own);
    uint64_t times = times_of(own, span->task, span->finish);
    part->calls += times;
    part->time += (span->finish - span->start) * (pl_ticks)times;
  }
  return PL_OK;
}

static pl_code add_communication(explaining *own) {
  for (uint32_t i = 0; i < own->graph->n_tasks; i++) {
    const pl_task *task = &own->graph->tasks[i];
    if (task->kind != PL_TASK_TRANSFER || !has_stream(own, task)) continue;
    pl_program_part *part = part_of(own, task->label, (uint8_t)task->category, false);
    if (part == NULL) return no_memory(own);
    uint64_t times = times_of(own, i, own->result->finish[i]);
    part->calls += times;
    part->run += (own->result->finish[i] - own->result->start[i]) * (pl_ticks)times;
  }
  for (uint32_t i = 0; i < own->result->n_charges; i++) {
    const pl_charge *charge = &own->result->charges[i];
    if (charge->device != own->device) continue;
    const pl_task *task = &own->graph->tasks[charge->task];
    pl_program_part *part = part_of(own, task->label, (uint8_t)task->category, false);
    if (part == NULL) return no_memory(own);
    part->time += charge->ticks;
  }
  return PL_OK;
}

static int longest_first(const void *left, const void *right) {
  const pl_program_part *a = left, *b = right;
  if (a->computes != b->computes) return a->computes ? -1 : 1;
  if (a->time != b->time) return a->time < b->time ? 1 : -1;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : (int)a->category - (int)b->category;
}

static pl_code explain_list(explaining *own, const pl_ir_module *module, const pl_ir_class *class,
                            pl_program_list *list) {
  own->device = PL_NONE;
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&module->mesh); d++) {
    uint32_t number = own->device_class != NULL ? own->device_class[d] : d;
    if (!pl_ir_class_has(module, class, d)) continue;
    if (own->device == PL_NONE || own->result->idle[number] < own->result->idle[own->device]) own->device = number;
  }
  PL_ASSERT(own->device != PL_NONE);
  own->parts = NULL;
  own->n_parts = own->room = 0;
  PL_TRY(add_computing(own));
  PL_TRY(add_communication(own));
  if (own->n_parts > 0) qsort(own->parts, own->n_parts, sizeof(*own->parts), longest_first);
  *list = (pl_program_list){.name = class->name,
                            .device = own->graph->devices[own->device].device,
                            .idle = own->result->idle[own->device],
                            .n_parts = own->n_parts,
                            .parts = own->parts};
  return PL_OK;
}

pl_code pl_program_explanation_take(const pl_ir_module *module, const pl_ir_graph *made, const pl_engine_result *result,
                                    pl_arena *arena, pl_program_explanation *explanation, pl_error *error) {
  pl_program_list *lists = PL_TAKE(arena, pl_program_list, module->n_classes);
  if (lists == NULL) return pl_fail_memory(error, "the explanation of a program");
  explaining own = {
      .graph = &made->graph, .device_class = made->device_class, .result = result, .arena = arena, .error = error};
  *explanation =
      (pl_program_explanation){.makespan = result->makespan, .n_lists = (uint32_t)module->n_classes, .lists = lists};
  for (int32_t c = 0; c < module->n_classes; c++) {
    PL_TRY(explain_list(&own, module, &module->classes[c], &lists[c]));
    if (lists[c].idle < lists[explanation->busiest].idle) explanation->busiest = (uint32_t)c;
  }
  return PL_OK;
}
