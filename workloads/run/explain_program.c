/* See workloads/run/explain_program.h. */
#include "workloads/run/explain_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/run/program_members.h"

/* Which way the transfers of a spec go. */
typedef struct way {
  bool is_known;
  const pl_explained_group
      *group;     /* the same one of specs that are alike; NULL: a copy between a device and its host */
  pl_ticks alone; /* of one; -1: not known */
} way;

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
  way *ways;             /* per transfer spec of the graph */
  uint32_t *users;       /* per link: specs that use it */
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

static pl_program_part *part_of(explaining *own, uint32_t name, uint8_t category, bool computes,
                                const pl_explained_group *group) {
  const char *pattern = pl_category_name((pl_category)category);
  if (name != PL_NONE) {
    if (own->patterns[name] == NULL) own->patterns[name] = pattern_of(own->graph->names[name], own->arena);
    pattern = own->patterns[name];
  }
  if (pattern == NULL) return NULL;
  for (uint32_t i = 0; i < own->n_parts; i++)
    if (own->parts[i].category == category && own->parts[i].computes == computes && own->parts[i].group == group &&
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
                                               .group = group};
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

static uint32_t profile_of(const explaining *own) {
  return own->cluster->devices[own->graph->devices[own->device].device].profile;
}

static pl_ticks ticks_alone(const explaining *own, uint32_t of) {
  return own->made->origins[of]->ticks[profile_of(own)];
}

static void add_work(const explaining *own, uint32_t of, uint64_t times, pl_program_part *part) {
  const pl_ir_origin *origin = own->made->origins[of];
  if (origin == NULL) return;
  uint32_t profile = profile_of(own);
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
    pl_program_part *part = part_of(own, of->name, of->category, true, NULL);
    if (part == NULL) return no_memory(own);
    uint64_t times = times_of(own, span->task, span->finish);
    pl_ticks time = (span->finish - span->start) * (pl_ticks)times;
    part->calls += times;
    part->time += time;
    part->alone += own->made->origins[span->part] != NULL ? ticks_alone(own, span->part) * (pl_ticks)times : time;
    add_work(own, span->part, times, part);
  }
  return PL_OK;
}

/* In how many of those that a transfer stands for the device takes part. */
static uint32_t has_part_in(const explaining *own, const pl_task *task) {
  if (task->kind != PL_TASK_TRANSFER) return 0;
  return task->n_streams > 0 ? has_stream(own, task) : pl_program_members_times(&own->members, task, own->device);
}

/* ---- ways ---- */

static bool has_overlap_factor(const explaining *own, const pl_ir_sent *sent) {
  for (uint32_t i = 0; i < sent->n_members; i++)
    if (pl_cluster_profile(own->cluster, sent->members[i])->overlap_communication > 0) return true;
  return false;
}

/* Whether another transfer uses one of its links, or more of its own class than it alone does. */
static bool has_rivals(const explaining *own, uint32_t of, pl_ticks alone, double progress_bytes) {
  const pl_transfer_table *table = &own->graph->transfers;
  const pl_transfer_spec *spec = &table->specs[of];
  double rate_Bps = spec->rate_cap_Bps;
  for (uint32_t i = 0; i < spec->n_uses; i++) {
    const pl_link_use *use = &table->uses[spec->first_use + i];
    if (own->users[use->link] > 1) return true;
    rate_Bps = fmin(rate_Bps, table->link_capacity_Bps[use->link] / use->weight);
  }
  return progress_bytes > 0 && spec->latency + pl_ticks_from_s(progress_bytes / rate_Bps) > alone + 1;
}

static bool is_same_way(const way *a, const pl_explained_group *group, pl_ticks alone) {
  const pl_explained_group *b = a->group;
  return b != NULL && a->alone == alone && b->kind == group->kind && b->algorithm == group->algorithm &&
         b->size == group->size && b->n_nodes == group->n_nodes && b->size_bytes == group->size_bytes &&
         b->contends == group->contends && b->overlaps == group->overlaps;
}

/* Specs that are alike but for where they are have one way, that of the first. */
static pl_code find_way(explaining *own, const pl_task *task, const way **found) {
  way *made = &own->ways[task->index];
  const pl_ir_sent *sent = &own->made->sent[task->index];
  *found = made;
  if (made->is_known) return PL_OK;
  *made = (way){.is_known = true, .alone = -1};
  if (sent->group == NULL) return PL_OK;
  pl_explained_group group = {.kind = sent->kind,
                              .size = sent->n_members,
                              .n_nodes = pl_cluster_count_nodes(own->cluster, sent->members, sent->n_members),
                              .size_bytes = sent->size_bytes};
  PL_TRY(pl_explained_group_find_way(own->cluster, sent->group, own->arena, &group, &made->alone, own->error));
  group.overlaps = task->category == PL_CATEGORY_DATA && has_overlap_factor(own, sent);
  group.contends = has_rivals(own, task->index, made->alone, task->size_bytes);
  for (uint32_t i = 0; i < own->graph->transfers.n_specs && made->group == NULL; i++)
    if (is_same_way(&own->ways[i], &group, made->alone)) made->group = own->ways[i].group;
  if (made->group == NULL) made->group = PL_COPY(own->arena, pl_explained_group, &group, 1);
  return made->group != NULL ? PL_OK : no_memory(own);
}

/* ---- communication ---- */

static pl_code part_of_task(explaining *own, const pl_task *task, pl_program_part **part, const way **is) {
  static const way none = {.is_known = true, .alone = -1}; /* a sum in passing, a delay */
  *is = &none;
  if (task->kind == PL_TASK_TRANSFER) PL_TRY(find_way(own, task, is));
  *part = part_of(own, task->label, (uint8_t)task->category, false, (*is)->group);
  return *part != NULL ? PL_OK : no_memory(own);
}

static void add_exchange(const explaining *own, const pl_task *task, uint64_t times, const way *is,
                         pl_program_part *part) {
  const pl_ir_sent *sent = &own->made->sent[task->index];
  part->bytes += (double)times * (sent->group != NULL ? sent->size_bytes : task->size_bytes);
  part->alone = is->alone < 0 || part->alone < 0 ? -1 : part->alone + is->alone * (pl_ticks)times;
}

static pl_code add_communication(explaining *own) {
  for (uint32_t i = 0; i < own->graph->n_tasks; i++) {
    const pl_task *task = &own->graph->tasks[i];
    uint64_t times = has_part_in(own, task);
    if (times == 0) continue;
    pl_program_part *part;
    const way *is;
    PL_TRY(part_of_task(own, task, &part, &is));
    times *= times_of(own, i, own->result->finish[i]);
    part->calls += times;
    part->run += (own->result->finish[i] - own->result->start[i]) * (pl_ticks)times;
    add_exchange(own, task, times, is, part);
  }
  for (uint32_t i = 0; i < own->result->n_charges; i++) {
    const pl_charge *charge = &own->result->charges[i];
    if (charge->device != own->device) continue;
    const pl_task *task = &own->graph->tasks[charge->task];
    pl_program_part *part;
    const way *is;
    PL_TRY(part_of_task(own, task, &part, &is));
    part->time += charge->ticks;
    if (has_part_in(own, task) == 0) part->foreign += charge->ticks;
  }
  return PL_OK;
}

static int longest_first(const void *left, const void *right) {
  const pl_program_part *a = left, *b = right;
  if (a->computes != b->computes) return a->computes ? -1 : 1;
  if (a->time != b->time) return a->time < b->time ? 1 : -1;
  pl_ticks hidden_a = a->run - a->time, hidden_b = b->run - b->time;
  if (!a->computes && hidden_a != hidden_b) return hidden_a < hidden_b ? 1 : -1;
  int order = strcmp(a->name, b->name);
  if (order != 0) return order;
  if (a->category != b->category) return (int)a->category - (int)b->category;
  return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
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
  uint32_t n_alike = own->device_class == NULL;
  for (uint32_t d = 0; own->device_class != NULL && d < pl_ir_mesh_devices(&module->mesh); d++)
    n_alike += own->device_class[d] == own->device;
  own->parts = NULL;
  own->n_parts = own->room = 0;
  PL_TRY(add_computing(own));
  PL_TRY(add_communication(own));
  if (own->n_parts > 0) qsort(own->parts, own->n_parts, sizeof(*own->parts), longest_first);
  *list = (pl_program_list){.name = class->name,
                            .device = own->graph->devices[own->device].device,
                            .n_alike = n_alike,
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
                    .patterns = PL_TAKE(arena, const char *, made->graph.n_names + 1),
                    .ways = PL_TAKE(arena, way, made->graph.transfers.n_specs + 1),
                    .users = PL_TAKE(arena, uint32_t, made->graph.transfers.n_links + 1)};
  if (arena->failed) return no_memory(&own);
  for (uint32_t i = 0; i < made->graph.transfers.n_uses; i++)
    own.users[made->graph.transfers.uses[i].link]++;
  if (!pl_program_members_take(cluster, module, made, arena, &own.members)) return no_memory(&own);
  *explanation =
      (pl_program_explanation){.makespan = result->makespan, .n_lists = (uint32_t)module->n_classes, .lists = lists};
  for (int32_t c = 0; c < module->n_classes; c++) {
    PL_TRY(explain_list(&own, module, &module->classes[c], &lists[c]));
    if (lists[c].idle < lists[explanation->busiest].idle) explanation->busiest = (uint32_t)c;
  }
  return PL_OK;
}
