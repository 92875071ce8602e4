/* See workloads/compile/ir_graph_state.h: what devices compute between two meetings with others. */

#include "workloads/compile/ir_graph_state.h"
#include "workloads/cost/ir_kernel.h"
#include "workloads/language/ir_again.h"

static bool time_of(const pl_ir_graphing *own, const pl_device_profile *profile, const pl_ir_op *op,
                    pl_category category, pl_op *kernel, pl_op_time *time) {
  const pl_ir_function *f = own->module->functions[own->function];
  return own->module->level == PL_IR_KERNELS
             ? pl_ir_launched_time(profile, own->module, &own->routing, f, op, own->framework, category, kernel, time)
             : pl_ir_op_time(profile, &own->module->mesh, f, op, category, kernel, time);
}

const bool *pl_ir_graph_again(pl_ir_graphing *own, int32_t function) {
  if (own->again[function] == NULL)
    own->again[function] = pl_ir_again_take(own->module->functions[function], own->arena);
  return own->again[function];
}

/* Whether the op copies what was gathered to where it is used, which is neither computed again nor new. */
static bool copies_gathered(const pl_ir_graphing *own, const pl_ir_op *op) {
  if (pl_ir_op_is(op, "copy")) return pl_ir_attribute_find(op, "launches") != NULL;
  if (op->row != own->kernel) return false;
  const pl_ir_op *first = &own->module->functions[op->callee]->ops[0];
  return pl_ir_op_is(first, "copy") && pl_ir_attribute_find(first, "launches") != NULL;
}

/* Of an op that nobody has asked for before. */
static __attribute__((noinline)) pl_ir_price *find_price(pl_ir_graphing *own, const pl_ir_op *op, pl_ir_price *price) {
  pl_ticks *ticks = PL_TAKE(own->arena, pl_ticks, own->cluster->n_profiles);
  uint8_t *sources = PL_TAKE(own->arena, uint8_t, own->cluster->n_profiles);
  uint8_t *bounds = PL_TAKE(own->arena, uint8_t, own->cluster->n_profiles);
  pl_ir_origin *origin = NULL;
  if (own->options->names) origin = PL_TAKE(own->arena, pl_ir_origin, 1);
  if (own->arena->failed) return NULL;
  pl_category category = own->category;
  if (category == PL_CATEGORY_BACKWARD) {
    const bool *again = pl_ir_graph_again(own, own->function);
    if (again == NULL) return NULL;
    if (again[op - own->module->functions[own->function]->ops]) category = PL_CATEGORY_RECOMPUTE;
  }
  if (copies_gathered(own, op)) category = PL_CATEGORY_DATA; /* as of tuples: workloads/compile/pieces.c */
  const char *name = op->row == own->kernel ? own->module->functions[op->callee]->name : pl_ir_row_at(op->row)->name;
  *price = (pl_ir_price){.known = true,
                         .is_update = pl_ir_attribute_find(op, "moves") != NULL,
                         .name = name,
                         .ticks = ticks,
                         .sources = sources,
                         .bounds = bounds};
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    pl_op_time time;
    if (!time_of(own, &own->cluster->profiles[p], op, category, &price->kernel, &time)) continue;
    price->computes = true;
    price->flops = price->kernel.flops;
    ticks[p] = pl_ticks_from_s(time.time_s);
    sources[p] = (uint8_t)time.source;
    bounds[p] = (uint8_t)time.bound;
  }
  if (origin != NULL)
    *origin = (pl_ir_origin){.kernel = price->kernel, .ticks = ticks, .sources = sources, .bounds = bounds};
  price->origin = origin;
  return price;
}

/* An op of a function in a pass has one price per profile, whatever the microbatch and the instance. */
static pl_ir_price *price_of(pl_ir_graphing *own, const pl_ir_op *op) {
  const pl_ir_function *f = own->module->functions[own->function];
  pl_ir_price **of_pass = &own->prices[own->function * PL_IR_GRAPH_CATEGORIES + pl_ir_graph_pass(own)];
  if (*of_pass == NULL && (*of_pass = PL_TAKE(own->arena, pl_ir_price, f->n_ops)) == NULL) return NULL;
  pl_ir_price *price = &(*of_pass)[op - f->ops];
  return price->known ? price : find_price(own, op, price);
}

const pl_ir_price *pl_ir_graph_price(pl_ir_graphing *own, const pl_ir_op *op) {
  return price_of(own, op);
}

static uint32_t name_of(pl_ir_graphing *own, const pl_ir_op *op, const char *otherwise) {
  const pl_ir_function *f = own->module->functions[own->function];
  const char *value = op->n_outputs > 0 ? f->values[op->first_output].name : op->path;
  if (value != NULL && value[0] == 0) value = NULL;
  if (value == NULL && op->callee != PL_IR_NONE) value = own->module->functions[op->callee]->name;
  const char *prefix = pl_ir_graph_prefix(own, own->prefix);
  const char *text =
      pl_arena_printf(own->arena, "%s%s%s", prefix, prefix[0] != 0 ? "." : "", value != NULL ? value : otherwise);
  return text != NULL ? pl_graph_builder_name(own->builder, text) : PL_NONE;
}

/* One more part on every profile; `ticks` by profile. */
bool pl_ir_graph_part(pl_ir_graphing *own, pl_category category, const pl_ticks *ticks, const uint8_t *bounds,
                      uint32_t name, const pl_ir_origin *origin) {
  uint32_t room = own->room_parts;
  if (own->options->names) {
    own->origins = (const pl_ir_origin **)pl_arena_grown(own->arena, (const void *)own->origins, own->n_parts, 1,
                                                         sizeof *own->origins, &own->room_origins);
    if (own->origins == NULL) return false;
    own->origins[own->n_parts] = origin;
  }
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
    own->room_parts = room;
    own->parts[p] =
        (pl_part *)pl_arena_grown(own->arena, own->parts[p], own->n_parts, 1, sizeof(pl_part), &own->room_parts);
    if (own->parts[p] == NULL) return false;
    own->parts[p][own->n_parts] = (pl_part){.ticks = ticks[p],
                                            .category = (uint8_t)category,
                                            .computes = true,
                                            .is_crowded = (own->is_crowded || own->crowds_products) && bounds != NULL &&
                                                          bounds[p] == PL_BOUND_COMPUTE,
                                            .name = name,
                                            .spec = PL_NONE};
  }
  own->n_parts++;
  return true;
}

/* The launch that all steps of the optimizer share. */
static bool launch_update(pl_ir_graphing *own, uint32_t name) {
  pl_ticks *ticks = own->launch_ticks;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    ticks[p] = pl_ticks_from_s(pl_optimizer_cost(&own->cluster->profiles[p], 1, 0).time_s);
  own->updates = true;
  return pl_ir_graph_part(own, own->category, ticks, NULL, name, NULL);
}

bool pl_ir_graph_compute(pl_ir_graphing *own, const pl_ir_op *op) {
  pl_ir_price *price = price_of(own, op);
  if (price == NULL) return false;
  if (!price->computes) return true;
  uint32_t name = own->options->names ? name_of(own, op, price->name) : PL_NONE;
  if (price->is_update && !own->updates && !launch_update(own, name)) return false;
  if (!pl_ir_graph_part(own, (pl_category)price->kernel.category, price->ticks, price->bounds, name, price->origin))
    return false;
  if (own->noted != NULL) return pl_ir_graph_note_run(own, price);
  uint64_t n_on_all = pl_ir_graph_present(own) * own->times;
  own->made->n_kernels += n_on_all;
  price->n_on_all += n_on_all;
  price->n_runs += own->times;
  return true;
}

/* ---- stretches ---- */

/* The parts that were computed. */
static bool take_stretch(pl_ir_graphing *own, pl_ir_stretch *made) {
  *made = (pl_ir_stretch){.n_parts = own->n_parts, .n_kinds = own->cluster->n_profiles};
  made->parts = PL_TAKE(own->arena, const pl_part *, made->n_kinds);
  made->segments = PL_TAKE(own->arena, uint32_t, made->n_kinds);
  for (uint32_t p = 0; !own->arena->failed && p < made->n_kinds; p++) {
    made->parts[p] = PL_COPY(own->arena, pl_part, own->parts[p], own->n_parts);
  }
  if (own->options->names) made->origins = PL_COPY(own->arena, const pl_ir_origin *, own->origins, own->n_parts);
  return !own->arena->failed;
}

pl_code pl_ir_graph_flush(pl_ir_graphing *own) {
  if (own->n_parts == 0 && own->n_awaited == 0) return PL_OK;
  pl_ir_act act = {.kind = PL_IR_ACT_WORK, .category = (uint8_t)own->category, .n_awaited = own->n_awaited};
  uint32_t **awaited = PL_TAKE(own->arena, uint32_t *, own->n_awaited + 1);
  act.stretch = own->n_parts > 0 ? PL_TAKE(own->arena, pl_ir_stretch, 1) : NULL;
  if (own->arena->failed || (act.stretch != NULL && !take_stretch(own, act.stretch))) return pl_ir_graph_no_memory(own);
  for (uint32_t i = 0; i < own->n_awaited; i++)
    awaited[i] = own->awaited[i];
  act.awaited = awaited;
  own->n_parts = own->n_awaited = 0;
  return pl_ir_graph_act(own, &act);
}

/* Whether work in what follows the list has waited for these tasks before: then all that comes does. Gradients of many
 * parameters come in one bucket. */
static bool is_heard(pl_ir_graphing *own, const uint32_t *tasks) {
  uint64_t hash = pl_hash_word(13, (uint64_t)(uintptr_t)tasks);
  uint32_t probe = 0;
  const void *known;
  if (own->noted == NULL || own->microbatch != PL_IR_NONE || own->options->names) return false;
  while ((known = pl_hash_index_find(&own->heard, hash, &probe)) != NULL)
    if (known == tasks) return true;
  pl_hash_index_put(&own->heard, hash, tasks, own->arena); /* the arena knows */
  return false;
}

/* What is computed from here on waits for these tasks. */
pl_code pl_ir_graph_await(pl_ir_graphing *own, pl_ir_arrival *value) {
  if (value->tasks == NULL) return PL_OK;
  if (is_heard(own, value->tasks)) {
    value->tasks = NULL;
    return PL_OK;
  }
  if (own->n_parts > 0) PL_TRY(pl_ir_graph_flush(own));
  own->awaited = (uint32_t **)pl_arena_grown(own->arena, (const void *)own->awaited, own->n_awaited, 1,
                                             sizeof(*own->awaited), &own->room_awaited);
  if (own->awaited == NULL) return pl_ir_graph_no_memory(own);
  own->awaited[own->n_awaited++] = value->tasks;
  value->tasks = NULL;
  return PL_OK;
}
