/* See workloads/passes/unlike_replicas.h. */
#include "workloads/passes/unlike_replicas.h"

#include "workloads/strategy/schedule.h"

/* Axes that count data-parallel replicas, outermost first (workloads/tree/tree_recipe.c). */
static const char *const replica_axes[] = {"dp", "dpe", "dps"};
enum { N_REPLICA_AXES = sizeof replica_axes / sizeof replica_axes[0] };

typedef struct replicas {
  const int32_t *split; /* of those at the first of the axes at 0, at 1 ... in turn */
  int32_t n_axes, axis[N_REPLICA_AXES];
  pl_ir_module *module;
  pl_ir_fewer *made;
} replicas;

static bool are_alike(const int32_t *split, int32_t n) {
  for (int32_t i = 1; i < n; i++)
    if (split[i] != split[0]) return false;
  return true;
}

/* A place for each run of replicas along the inner axes that are alike; of one outer axis alone where it decides. */
static void take_places(replicas *own, int32_t n, pl_ir_fewer *at) {
  const pl_ir_mesh *mesh = &own->module->mesh;
  int32_t n_axes = own->n_axes, each = 1;
  while (n_axes > 1) { /* the innermost says nothing */
    int32_t inner = each * mesh->axes[own->axis[n_axes - 1]].extent;
    bool alike = true;
    for (int32_t first = 0; first < n; first += inner)
      alike = alike && are_alike(own->split + first, inner);
    if (!alike) break;
    each = inner;
    n_axes--;
  }
  for (int32_t first = 0; first < n; first += each) {
    if (own->split[first] == own->module->n_microbatches) continue;
    int32_t place = first / each;
    for (int32_t i = n_axes; i-- > 0;) {
      at->at[own->axis[i]] = place % mesh->axes[own->axis[i]].extent;
      place /= mesh->axes[own->axis[i]].extent;
    }
    at->n_microbatches = own->split[first];
    own->made[own->module->n_fewer++] = *at;
  }
}

pl_code pl_unlike_replicas(const pl_strategy *strategy, pl_ir_module *module, pl_error *error) {
  replicas own = {.module = module, .split = strategy->split};
  pl_ir_fewer at = {0};
  int32_t n = 1;
  if (strategy->split == NULL || are_alike(strategy->split, strategy->dp)) return PL_OK;
  for (int32_t i = 0; i < N_REPLICA_AXES; i++) {
    int32_t axis = pl_ir_mesh_find(&module->mesh, pl_ir_name_of(replica_axes[i]));
    if (axis < 0) continue;
    own.axis[own.n_axes++] = axis;
    n *= module->mesh.axes[axis].extent;
  }
  PL_ASSERT(n == strategy->dp);
  own.made = PL_TAKE(module->arena, pl_ir_fewer, n);
  if (own.made == NULL) return pl_fail_memory(error, "a program of unlike replicas");
  for (int32_t axis = 0; axis < PL_IR_AXES_MAX; axis++)
    at.at[axis] = PL_IR_NONE;
  take_places(&own, n, &at);
  module->fewer = own.made;
  return PL_OK;
}

/* ---- orders ---- */

static bool is_left_out_of(const pl_strategy *strategy, int32_t stage, int32_t n, int32_t most) {
  pl_schedule few = pl_schedule_of(strategy, n, stage), all = pl_schedule_of(strategy, most, stage);
  pl_schedule_cursor at = {0}, of_all = {0};
  int64_t n_all = pl_schedule_n_steps(&all);
  for (int64_t i = 0; i < n_all; i++) {
    pl_schedule_step step = pl_schedule_next(&all, &of_all);
    if (step.microbatch >= n) continue;
    pl_schedule_step own = pl_schedule_next(&few, &at);
    if (own.kind != step.kind || own.chunk != step.chunk || own.microbatch != step.microbatch) return false;
  }
  return true;
}

bool pl_unlike_replicas_differ(const pl_strategy *strategy, int32_t *n) {
  const int32_t *split = strategy->split;
  int32_t most = 0;
  for (int32_t data = 0; split != NULL && data < strategy->dp; data++)
    if (split[data] > most) most = split[data];
  for (int32_t data = 0; split != NULL && data < strategy->dp; data++)
    for (int32_t stage = 0; split[data] < most && stage < strategy->pp; stage++) {
      *n = split[data];
      if (!is_left_out_of(strategy, stage, *n, most)) return true;
    }
  return false;
}
