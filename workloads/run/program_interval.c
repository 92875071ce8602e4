/* See workloads/run/program_interval.h. */
#include "workloads/run/program_interval.h"

#include <string.h>

static int64_t extent_of(const pl_ir_mesh *mesh, bool context) {
  int64_t n = 1;
  for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
    const char *name = mesh->axes[axis].name.text;
    bool is_context = strncmp(name, "cp", 2) == 0,
         other = strncmp(name, "dp", 2) == 0 || strcmp(name, "pp") == 0 || strcmp(name, "ep") == 0;
    if (!other && is_context == context) n *= mesh->axes[axis].extent;
  }
  return n;
}

pl_aspects pl_aspects_of_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_program_kind *kind) {
  const pl_model model = {.moe.n_experts = kind->experts};
  const pl_strategy strategy = {
      .pp = 1, .tmp = (int32_t)extent_of(&module->mesh, false), .cp = (int32_t)extent_of(&module->mesh, true)};
  pl_aspects aspects = pl_aspects_of(cluster, &model, kind->job, &strategy);
  if (module->n_classes > 1) pl_aspects_add(&aspects, "schedule", kind->schedule);
  if (!kind->trains) pl_aspects_add(&aspects, "inference", "");
  return aspects;
}

typedef struct composing {
  const pl_cluster *cluster;
  const pl_ir_module *module;
  const pl_ir_graph *made;
  const pl_engine_result *result;
  const pl_residuals *residuals;
  const uint32_t *places; /* per device of the mesh */
  pl_arena *arena;
  pl_error *error;
  pl_doubts doubts;
} composing;

/* Devices of a class that are of a profile. */
static uint32_t count_devices(const composing *own, int32_t class, uint32_t profile) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&own->module->mesh); d++)
    n += own->places[d] != PL_IR_NOWHERE && own->cluster->devices[own->places[d]].profile == profile &&
         pl_ir_class_has(own->module, &own->module->classes[class], d);
  return n;
}

/* What is computed, as if nothing slowed it down. Returns the sum of it. */
static pl_device_ticks add_computing(composing *own) {
  const pl_ir_graph *made = own->made;
  pl_device_ticks all = 0;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    int32_t class = -1;
    uint32_t n_devices = 0;
    for (uint32_t i = 0; i < made->n_spendings; i++) {
      const pl_ir_spending *spending = &made->spendings[i];
      if (spending->class != class) n_devices = count_devices(own, spending->class, p);
      class = spending->class;
      if (n_devices == 0) continue;
      pl_device_ticks time = (pl_device_ticks)spending->ticks[p] * spending->n * n_devices;
      const pl_op *kernel = spending->has_kernel ? &spending->kernel : NULL;
      pl_doubts_add(&own->doubts,
                    pl_doubt_of_kernel(own->residuals, &own->cluster->profiles[p], kernel, spending->category,
                                       (pl_cost_source)spending->sources[p]),
                    time);
      all += time;
    }
  }
  return all;
}

/* Collectives that are parts of work are waited for, too; what rivals cost them is all of a device's time for such that
 * is neither theirs nor charged. */
static pl_code add_inside(composing *own, const pl_doubt_of_one *known) {
  const pl_graph *graph = &own->made->graph;
  pl_ticks *rest = PL_TAKE(own->arena, pl_ticks, graph->n_devices);
  const pl_ir_within **disturbed = PL_TAKE(own->arena, const pl_ir_within *, graph->n_devices);
  if (rest == NULL || disturbed == NULL) return pl_fail_memory(own->error, "an interval");
  for (uint32_t d = 0; d < graph->n_devices; d++)
    rest[d] = own->result->spent[(size_t)d * PL_CATEGORY_COUNT + PL_CATEGORY_TENSOR];
  for (uint32_t i = 0; i < own->result->n_charges; i++) {
    const pl_charge *charge = &own->result->charges[i];
    if (graph->tasks[charge->task].category == PL_CATEGORY_TENSOR) rest[charge->device] -= charge->ticks;
  }
  for (uint32_t i = 0; i < own->made->n_insides; i++) {
    const pl_ir_within *inside = &own->made->insides[i];
    pl_ticks ticks = inside->ticks * (pl_ticks)inside->n;
    pl_doubts_add(&own->doubts, known[inside->spec], (uint64_t)ticks * graph->devices[inside->device].multiplicity);
    rest[inside->device] -= ticks;
    if (inside->is_disturbed) disturbed[inside->device] = inside;
  }
  for (uint32_t d = 0; d < graph->n_devices; d++)
    if (disturbed[d] != NULL)
      pl_doubts_add(&own->doubts, known[disturbed[d]->spec], (uint64_t)rest[d] * graph->devices[d].multiplicity);
  return PL_OK;
}

static pl_code add_waiting(composing *own) {
  const pl_graph *graph = &own->made->graph;
  pl_doubt_of_one *known = PL_TAKE(own->arena, pl_doubt_of_one, graph->transfers.n_specs + 1);
  if (known == NULL) return pl_fail_memory(own->error, "an interval");
  for (uint32_t i = 0; i < graph->transfers.n_specs; i++) {
    const pl_ir_sent *sent = &own->made->sent[i];
    PL_TRY(pl_doubt_of_collective(own->residuals, sent->group, sent->kind, sent->size_bytes, own->arena, &known[i],
                                  own->error));
  }
  const pl_doubt_of_one other = {.kind = PL_DOUBT_IDEAL, .residual = own->residuals->half[PL_RESIDUAL_ideal]};
  for (uint32_t i = 0; i < own->result->n_charges; i++) {
    const pl_charge *charge = &own->result->charges[i];
    const pl_task *task = &graph->tasks[charge->task];
    uint64_t n_devices = graph->devices[charge->device].multiplicity;
    pl_doubts_add(&own->doubts, task->kind == PL_TASK_TRANSFER ? known[task->index] : other,
                  (uint64_t)charge->ticks * n_devices);
  }
  return add_inside(own, known);
}

/* What computing took longer than by itself; and how long devices were busy. */
static void add_overlap(composing *own, pl_device_ticks alone) {
  const pl_engine_result *result = own->result;
  pl_device_ticks computing = 0;
  for (uint32_t d = 0; d < pl_ir_mesh_devices(&own->module->mesh); d++) {
    uint32_t number = own->made->device_class != NULL ? own->made->device_class[d] : d;
    if (own->places[d] == PL_IR_NOWHERE) continue;
    own->doubts.busy += (uint64_t)(result->makespan - result->idle[number]);
    for (int category = 0; category < PL_CATEGORY_COUNT; category++)
      if (!pl_category_is_communication((pl_category)category))
        computing += (uint64_t)result->spent[(size_t)number * PL_CATEGORY_COUNT + (size_t)category];
  }
  const pl_doubt_of_one overlap = {.kind = PL_DOUBT_OVERLAP, .residual = own->residuals->half[PL_RESIDUAL_overlap]};
  if (computing > alone) pl_doubts_add(&own->doubts, overlap, computing - alone);
}

pl_code pl_program_interval_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                 const pl_engine_result *result, const pl_residuals *residuals,
                                 const pl_aspects *aspects, pl_arena *arena, pl_interval *interval, pl_error *error) {
  composing own = {.cluster = cluster,
                   .module = module,
                   .made = made,
                   .result = result,
                   .residuals = residuals,
                   .places = pl_ir_places_take(module, arena),
                   .arena = arena,
                   .error = error};
  *interval = pl_interval_none();
  if (own.places == NULL) return pl_fail_memory(error, "an interval");
  pl_device_ticks alone = add_computing(&own);
  PL_TRY(add_waiting(&own));
  add_overlap(&own, alone);
  pl_doubts_compose(&own.doubts, residuals, aspects, pl_ticks_to_s(result->makespan), interval);
  return PL_OK;
}
