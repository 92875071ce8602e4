/* See search/optimize/pass_object.h. */
#include "search/optimize/pass_object.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

pl_code pl_pass_object_open(const char *path, pl_pass_object *object, pl_error *error) {
  *object = (pl_pass_object){.path = path};
  char *real = realpath(path, NULL); /* a name without '/' is no library of the system's */
  if (real == NULL) return pl_fail(error, PL_BAD_INPUT, "--pass %s: No such file", path);
  object->handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
  free(real);
  if (object->handle == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--pass %s: is no shared object: %s", path, dlerror());
  object->pass = dlsym(object->handle, "paceline_pass");
  if (object->pass == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--pass %s: has no symbol 'paceline_pass' (search/optimize/pass_interface.h)",
                   path);
  if (object->pass->version != PACELINE_PASS_VERSION)
    return pl_fail(error, PL_BAD_INPUT,
                   "--pass %s: is of version %u of the interface, this is version %d: compile it anew", path,
                   object->pass->version, PACELINE_PASS_VERSION);
  if (object->pass->name == NULL || object->pass->name[0] == '\0' || object->pass->propose == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--pass %s: has no name, or proposes nothing", path);
  return PL_OK;
}

void pl_pass_object_close(pl_pass_object *object) {
  if (object->handle != NULL) dlclose(object->handle);
  object->handle = NULL;
}

typedef struct showing {
  pl_plan_search *search;
  paceline_tensor *tensors;
  paceline_op *ops;
  pl_ticks *ready, *end;
} showing;

static bool show(showing *own, paceline_view *view) {
  pl_plan_search *search = own->search;
  const pl_step_model *model = search->coarse;
  const pl_step_plan *plan = &search->plan;
  if (!pl_plan_search_dates(search, plan, own->ready, own->end)) return false;
  for (uint32_t k = 0; k < model->n_tensors; k++)
    own->tensors[k] = (paceline_tensor){model->tensors[k].name,
                                        model->tensors[k].size_bytes,
                                        model->tensors[k].chain,
                                        pl_step_plan_parts(plan, pl_step_plan_first(plan, k)),
                                        plan->joins[k],
                                        pl_ticks_to_s(own->ready[k]),
                                        pl_ticks_to_s(own->end[k])};
  for (uint32_t u = 0; u < model->n_units; u++) {
    const pl_step_unit *unit = &model->units[u];
    pl_ticks ticks = model->ticks[model->members[unit->first_member].body];
    own->ops[u] = (paceline_op){model->replay->trace->names[unit->name], pl_ticks_to_s(ticks), unit->follows,
                                plan->fuses[u], search->makes[u]};
  }
  *view = (paceline_view){model->n_tensors, model->n_units, own->tensors, own->ops, pl_ticks_to_s(search->best)};
  return true;
}

static pl_code make_change(const pl_pass_object *object, const pl_step_model *model, const paceline_change *change,
                           pl_step_plan *plan, pl_error *error) {
  static const char *const words[] = {"join tensor", "cut tensor", "fuse op"};
  uint32_t k = change->subject, value = change->value;
  if (change->kind > PACELINE_FUSE_OP)
    return pl_fail(error, PL_BAD_INPUT, "--pass %s: proposes a change of kind %u, which there is not", object->path,
                   change->kind);
  bool op = change->kind == PACELINE_FUSE_OP;
  bool good = k < (op ? model->n_units : model->n_tensors);
  if (change->kind == PACELINE_CUT_TENSOR)
    good = good && value >= 1 && value <= PL_STEP_MOST_PARTS;
  else
    good = good && value <= 1 && (value == 0 || (op ? model->units[k].follows : pl_plan_can_join(model, k)));
  if (!good)
    return pl_fail(error, PL_BAD_INPUT,
                   "--pass %s: proposes to %s %u (value %u), which cannot be; there are %u of them", object->path,
                   words[change->kind], k, value, op ? model->n_units : model->n_tensors);
  if (change->kind == PACELINE_CUT_TENSOR)
    plan->parts[pl_step_plan_first(plan, k)] = (uint8_t)value;
  else
    (op ? plan->fuses : plan->joins)[k] = (uint8_t)value;
  return PL_OK;
}

/* A tensor whose latency is not known is left as it is. */
static bool is_known(const pl_plan_search *search, const pl_step_plan *plan) {
  for (uint32_t k = 0; k < search->coarse->n_tensors; k++)
    if (search->costs->latency[k] < 0 && (plan->joins[k] || pl_step_plan_parts(plan, k) > 1)) return false;
  return true;
}

pl_code pl_pass_object_run(const pl_pass_object *object, pl_plan_search *search) {
  const pl_step_model *model = search->coarse;
  pl_arena *arena = search->arena;
  showing own = {.search = search,
                 .tensors = PL_TAKE(arena, paceline_tensor, model->n_tensors + 1),
                 .ops = PL_TAKE(arena, paceline_op, model->n_units + 1),
                 .ready = PL_TAKE(arena, pl_ticks, model->n_tensors + 1),
                 .end = PL_TAKE(arena, pl_ticks, model->n_tensors + 1)};
  paceline_change *changes = PL_TAKE(arena, paceline_change, PL_PASS_MOST_CHANGES);
  pl_step_plan trial;
  paceline_view view;
  if (own.tensors == NULL || own.ops == NULL || own.ready == NULL || own.end == NULL || changes == NULL ||
      !pl_step_plan_take(model, arena, &trial))
    return pl_fail_memory(search->error, "a pass");
  for (uint32_t round = 0; round < PL_PASS_MOST_ROUNDS; round++) {
    if (!show(&own, &view)) return pl_fail_memory(search->error, "a pass");
    uint32_t n = object->pass->propose(&view, round, changes, PL_PASS_MOST_CHANGES);
    if (n == 0) return PL_OK;
    if (n > PL_PASS_MOST_CHANGES)
      return pl_fail(search->error, PL_BAD_INPUT, "--pass %s: says that it proposes %u changes, with room for %d",
                     object->path, n, PL_PASS_MOST_CHANGES);
    pl_step_plan_copy(model, &search->plan, &trial);
    for (uint32_t k = 0; k < n; k++)
      PL_TRY(make_change(object, model, &changes[k], &trial, search->error));
    if (!is_known(search, &trial)) continue;
    pl_search_step step = {PL_MOVE_PASS, round, n, object->pass->name, 0, 0};
    PL_TRY(pl_plan_search_offer(search, &trial, pl_plan_search_play(search, &trial), step));
  }
  return pl_fail(search->error, PL_BAD_INPUT, "--pass %s: proposes something for %d rounds and comes to no end",
                 object->path, PL_PASS_MOST_ROUNDS);
}
