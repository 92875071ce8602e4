/* See workloads/run/explain_program.h. */
#include "workloads/run/explain_program.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/run/program_members.h"

typedef struct explaining {
  const pl_graph *graph;
  const uint32_t *device_class; /* per device of the mesh that of the graph; NULL: the same */
  const pl_engine_result *result;
  pl_arena *arena;
  pl_error *error;
  const pl_ir_graph *made;
  const pl_cluster *cluster;
  pl_program_members members;
  const char **patterns; /* per name of the graph; NULL: not yet asked for */
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
  const char *pattern = pl_category_name((pl_category)category);
  if (name != PL_NONE) {
    if (own->patterns[name] == NULL) own->patterns[name] = pattern_of(own->graph->names[name], own->arena);
    pattern = own->patterns[name];
  }
  if (pattern == NULL) return NULL;
  for (uint32_t i = 0; i < own->n_parts; i++)
    if (own->parts[i].category == category && own->parts[i].computes == computes &&
        strcmp(own->parts[i].name, pattern) == 0)
      return &own->parts[i];
  own->parts =
      (pl_program_part *)pl_arena_grown(own->arena, own->parts, own->n_parts, 1, sizeof(*own->parts), &own->room);
  if (own->parts == NULL) return NULL;
  own->parts[own->n_parts] = (pl_program_part){.name = pattern,
                                               .category = category,
                                               .computes = computes,
                                               .bound = PL_PROGRAM_PART_NONE,
                                               .source = PL_PROGRAM_PART_NONE,
                                               .kind = PL_PROGRAM_PART_NONE,
                                               .n_members = PL_PROGRAM_PART_NONE,
                                               .n_nodes = PL_PROGRAM_PART_NONE};
  return &own->parts[own->n_parts++];
}

/* One more call that is of this. */
static void join(int32_t *of_all, int32_t of_one) {
  if (*of_all == PL_PROGRAM_PART_NONE) *of_all = of_one;
  if (*of_all != of_one) *of_all = PL_PROGRAM_PART_MIXED;
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

static bool same_shape(const pl_op *a, const pl_op *b) {
  return a->kind == b->kind && a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k;
}

static void add_work(const explaining *own, uint32_t of, uint64_t times, pl_program_part *part) {
  const pl_ir_origin *origin = own->made->origins[of];
  if (origin == NULL) return;
  uint32_t profile = own->cluster->devices[own->graph->devices[own->device].device].profile;
  part->flops += (double)times * origin->kernel.flops;
  part->bytes += (double)times * origin->kernel.bytes;
  if (part->kernel == NULL) part->kernel = &origin->kernel;
  part->unlike = part->unlike || !same_shape(part->kernel, &origin->kernel);
  join(&part->bound, origin->bounds[profile]);
  join(&part->source, origin->sources[profile]);
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
    add_work(own, span->part, times, part);
  }
  return PL_OK;
}

/* In how many of those that a transfer stands for the device takes part. */
static uint32_t has_part_in(const explaining *own, const pl_task *task) {
  if (task->kind != PL_TASK_TRANSFER) return 0;
  return task->n_streams > 0 ? has_stream(own, task) : pl_program_members_times(&own->members, task, own->device);
}

static void add_exchange(const explaining *own, const pl_task *task, uint64_t times, pl_program_part *part) {
  const pl_ir_sent *sent = &own->made->sent[task->index];
  part->bytes += (double)times * (sent->group != NULL ? sent->size_bytes : task->size_bytes);
  if (sent->group == NULL) return;
  join(&part->kind, (int32_t)sent->kind);
  join(&part->n_members, (int32_t)sent->n_members);
  join(&part->n_nodes, (int32_t)pl_cluster_count_nodes(own->cluster, sent->members, sent->n_members));
}

static pl_code add_communication(explaining *own) {
  for (uint32_t i = 0; i < own->graph->n_tasks; i++) {
    const pl_task *task = &own->graph->tasks[i];
    uint64_t times = has_part_in(own, task);
    if (times == 0) continue;
    pl_program_part *part = part_of(own, task->label, (uint8_t)task->category, false);
    if (part == NULL) return no_memory(own);
    times *= times_of(own, i, own->result->finish[i]);
    part->calls += times;
    part->run += (own->result->finish[i] - own->result->start[i]) * (pl_ticks)times;
    add_exchange(own, task, times, part);
  }
  for (uint32_t i = 0; i < own->result->n_charges; i++) {
    const pl_charge *charge = &own->result->charges[i];
    if (charge->device != own->device) continue;
    const pl_task *task = &own->graph->tasks[charge->task];
    pl_program_part *part = part_of(own, task->label, (uint8_t)task->category, false);
    if (part == NULL) return no_memory(own);
    part->time += charge->ticks;
    if (has_part_in(own, task) == 0) part->foreign += charge->ticks;
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

pl_code pl_program_explanation_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                    const pl_engine_result *result, pl_arena *arena,
                                    pl_program_explanation *explanation, pl_error *error) {
  pl_program_list *lists = PL_TAKE(arena, pl_program_list, module->n_classes);
  if (lists == NULL) return pl_fail_memory(error, "the explanation of a program");
  explaining own = {.graph = &made->graph,
                    .device_class = made->device_class,
                    .result = result,
                    .arena = arena,
                    .error = error,
                    .made = made,
                    .cluster = cluster,
                    .patterns = PL_TAKE(arena, const char *, made->graph.n_names + 1)};
  if (own.patterns == NULL || !pl_program_members_take(cluster, module, made, arena, &own.members))
    return no_memory(&own);
  *explanation =
      (pl_program_explanation){.makespan = result->makespan, .n_lists = (uint32_t)module->n_classes, .lists = lists};
  for (int32_t c = 0; c < module->n_classes; c++) {
    PL_TRY(explain_list(&own, module, &module->classes[c], &lists[c]));
    if (lists[c].idle < lists[explanation->busiest].idle) explanation->busiest = (uint32_t)c;
  }
  return PL_OK;
}
