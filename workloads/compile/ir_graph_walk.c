/* See workloads/compile/ir_graph_state.h: lists are gone through, step by step and function by function. */
#include <string.h>

#include "workloads/compile/ir_graph_state.h"

enum { DEPTH_MAX = 64 };

/* ---- functions ---- */

static pl_code run_function(pl_ir_graphing *own, int32_t function, const pl_ir_arrival *arguments,
                            pl_ir_arrival *results);

static pl_code run_call(pl_ir_graphing *own, const pl_ir_op *op, pl_ir_arrival *values) {
  pl_ir_prefix *outer = own->prefix, inner = {.outer = outer, .segment = op->path};
  pl_ir_arrival *arguments = PL_TAKE(own->arena, pl_ir_arrival, op->n_inputs + 1);
  pl_ir_arrival *results = PL_TAKE(own->arena, pl_ir_arrival, op->n_outputs + 1);
  if (arguments == NULL || results == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t i = 0; i < op->n_inputs; i++)
    arguments[i] = values[op->inputs[i]];
  const pl_ir_piece piece = own->piece;
  int32_t function = own->function;
  own->piece = pl_ir_piece_inside(piece, op);
  if (op->path[0] != 0) own->prefix = &inner;
  PL_TRY(run_function(own, op->callee, arguments, results));
  own->piece = piece;
  own->prefix = outer;
  own->function = function;
  PL_TRY(pl_ir_graph_wait_for_host(own, op->callee));
  for (int32_t i = 0; i < op->n_outputs; i++)
    values[op->first_output + i] = results[i];
  return PL_OK;
}

/* `does`: pl_ir_does. */
static pl_code run_op(pl_ir_graphing *own, const pl_ir_function *f, const pl_ir_op *op, uint16_t does,
                      pl_ir_arrival *values) {
  bool deferred = false;
  if ((does & PL_IR_DOES_CALL) != 0) return run_call(own, op, values);
  if ((does & PL_IR_DOES_REDUCE_SCATTER) != 0) PL_TRY(pl_ir_graph_defer_shard(own, f, op, values, &deferred));
  if ((does & PL_IR_DOES_ALL_GATHER) != 0) deferred = pl_ir_graph_defer_gather(own, f, op, values);
  if (deferred) return PL_OK;
  if ((does & PL_IR_DOES_BESIDE) != 0) return pl_ir_graph_begin_beside(own, f, op, values);
  if ((does & PL_IR_DOES_MOVE) != 0) return pl_ir_graph_move(own, f, op, values);
  if ((does & PL_IR_DOES_OFFLOAD) != 0) return pl_ir_graph_offload(own, f, op, values);
  if ((does & PL_IR_DOES_READ_GRADIENT) != 0) pl_ir_graph_gradient(own, op, values);
  if ((does & (PL_IR_DOES_STORE | PL_IR_DOES_ONLY_ADD)) != 0 && pl_ir_graph_adds_shards(own, op, does, values))
    return (does & PL_IR_DOES_ADD) != 0 ? pl_ir_graph_added(own, op, values) : PL_OK;
  if (pl_ir_graph_is_product(own, op)) {
    PL_TRY(pl_ir_graph_run_product(own, f, op, values));
    return (does & PL_IR_DOES_ADD) != 0 ? pl_ir_graph_added(own, op, values) : PL_OK;
  }
  for (int32_t i = 0; i < op->n_inputs; i++)
    if (values[op->inputs[i]].tasks != NULL) PL_TRY(pl_ir_graph_await(own, &values[op->inputs[i]]));
  if (!pl_ir_graph_compute(own, op)) return pl_ir_graph_no_memory(own);
  return (does & PL_IR_DOES_ADD) != 0 ? pl_ir_graph_added(own, op, values) : PL_OK;
}

/* Of those with an operand on its way, all others, and what nobody has asked yet. */
static pl_code run_ops(pl_ir_graphing *own, const pl_ir_function *f, uint16_t *does, pl_ir_arrival *values) {
  const uint16_t idle = (uint16_t)(PL_IR_DOES_IDLE << pl_ir_graph_pass(own));
  for (int32_t i = 0; i < f->n_ops; i++) {
    const pl_ir_op *op = &f->ops[i];
    bool waits = (does[i] & idle) == 0;
    for (int32_t k = 0; k < op->n_inputs && !waits; k++)
      waits = values[op->inputs[k]].tasks != NULL;
    if (!waits) continue;
    PL_TRY(run_op(own, f, op, does[i], values));
    const pl_ir_price *price = does[i] % PL_IR_DOES_IDLE == 0 ? pl_ir_graph_price(own, op) : NULL;
    if (price != NULL && !price->computes) does[i] |= idle;
  }
  return PL_OK;
}

static pl_code run_function(pl_ir_graphing *own, int32_t function, const pl_ir_arrival *arguments,
                            pl_ir_arrival *results) {
  const pl_ir_function *f = own->module->functions[function];
  const pl_ir_doing *doing = pl_ir_graph_doing(own, function);
  pl_ir_arrival *values = PL_TAKE(own->arena, pl_ir_arrival, f->n_values + 1);
  PL_ASSERT((f->n_arguments == 0 || arguments != NULL) && (f->n_results == 0 || results != NULL));
  if (values == NULL || doing == NULL) return pl_ir_graph_no_memory(own);
  if (++own->depth > DEPTH_MAX) return pl_fail(own->error, PL_BAD_INPUT, "calls nest deeper than %d", (int)DEPTH_MAX);
  own->function = function;
  for (int32_t i = 0; i < f->n_arguments; i++)
    values[i] = arguments[i];
  const bool ahead = own->framework->gathers.gathers_ahead; /* else what is gathered is asked for behind all else */
  if (!ahead) PL_TRY(pl_ir_graph_send_shards(own, false));
  if (doing->gathers_params) PL_TRY(pl_ir_graph_gather(own, f, values));
  if (ahead && (!doing->gathers_params || doing->gathers_matrices)) PL_TRY(pl_ir_graph_send_shards(own, false));
  if (doing->keeps_in_host || doing->reads_from_host) PL_TRY(pl_ir_graph_enter_offload(own, f, values));
  PL_TRY(run_ops(own, f, doing->ops, values));
  if (doing->keeps_in_host) pl_ir_graph_leave_offload(own);
  for (int32_t i = 0; i < f->n_results; i++)
    results[i] = values[f->results[i]];
  if (doing->gathers_params) PL_TRY(pl_ir_graph_use_params(own, function));
  own->n_beside = 0; /* whoever reads them waits for them */
  if (own->is_last && own->framework->gradients.overlaps_gradients) PL_TRY(pl_ir_graph_send_buckets(own, false));
  own->depth--;
  return PL_OK;
}

/* ---- lanes ---- */

pl_code pl_ir_graph_take_lanes(pl_ir_graphing *own) {
  const pl_ir_played *played = own->played;
  size_t n_steps = 0;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    n_steps += (size_t)own->module->classes[c].n_steps;
  if (!pl_lane_making_take(&own->lanes, (uint32_t)own->module->n_classes, n_steps, own->arena))
    return pl_ir_graph_no_memory(own);
  if (played == NULL) return PL_OK;
  own->lanes.n_phases = played->n_phases;
  own->lanes.n_more = played->n_more;
  memcpy(own->lanes.period, played->period, sizeof played->period);
  return PL_OK;
}

static void begin_lane(pl_ir_graphing *own) {
  const pl_ir_played *played = own->played;
  pl_lane *lane = pl_lane_begin(&own->lanes, (uint32_t)own->now->class->n_steps);
  for (int p = 0; played != NULL && p < played->n_phases; p++)
    lane->phases[p] = played->phases[own->now - own->crews][p];
}

/* The next step of the list, or what follows it. */
static void begin_step(pl_ir_graphing *own, int32_t step) {
  const pl_ir_played *played = own->played;
  pl_lane_begin_step(&own->lanes, own->builder);
  own->times = 1;
  if (played != NULL && step < own->now->class->n_steps)
    own->times = pl_ir_played_times(played, (int32_t)(own->now - own->crews), step);
}

/* ---- lists ---- */

static pl_code walk_step(pl_ir_graphing *own, const pl_ir_step *step, bool is_last) {
  int32_t c = 0;
  while (own->now->class->chunks[c].chunk != step->chunk)
    c++;
  const pl_ir_chunk *chunk = &own->now->class->chunks[c];
  own->microbatch = step->microbatch;
  own->chunk = step->chunk;
  own->is_last = is_last;
  own->n_units = 0;
  own->category = step->kind == PL_IR_STEP_F ? PL_CATEGORY_FORWARD : PL_CATEGORY_BACKWARD;
  PL_TRY(pl_ir_graph_begin_step(own, chunk, (pl_ir_step_kind)step->kind));
  pl_ir_graph_begin_uses(own, (pl_ir_step_kind)step->kind);
  PL_TRY(run_function(own,
                      step->kind == PL_IR_STEP_F   ? chunk->forward
                      : step->kind == PL_IR_STEP_B ? chunk->backward
                                                   : chunk->weights,
                      NULL, NULL));
  PL_TRY(pl_ir_graph_send_shards(own, true));
  return own->n_parts > 0 ? pl_ir_graph_flush(own) : PL_OK; /* a step's tasks are its own */
}

/* A site's constant per step, behind the optimizer of every device (workloads/framework/framework.h); forward passes
 * alone are no step. */
static pl_code add_step(pl_ir_graphing *own) {
  const pl_ticks step = pl_ticks_from_s(own->framework->launch.step_s);
  pl_ticks ticks[PL_IR_GRAPH_PROFILES_MAX];
  if (step == 0 || own->now->class->update == PL_IR_NONE) return PL_OK;
  for (uint32_t p = 0; p < own->cluster->n_profiles; p++)
    ticks[p] = step;
  return pl_ir_graph_part(own, PL_CATEGORY_HOST, ticks, NULL, pl_ir_graph_label(own, "step"), NULL)
             ? PL_OK
             : pl_ir_graph_no_memory(own);
}

static pl_code walk_update(pl_ir_graphing *own) {
  own->microbatch = PL_IR_NONE;
  own->is_last = own->is_late = false;
  PL_TRY(pl_ir_graph_send_buckets(own, true));
  own->category = PL_CATEGORY_OPTIMIZER;
  own->updates = false;
  PL_TRY(pl_ir_graph_send_sums(own));
  if (own->now->class->update != PL_IR_NONE) PL_TRY(run_function(own, own->now->class->update, NULL, NULL));
  PL_TRY(add_step(own));
  PL_TRY(pl_ir_graph_send_gathers(own));
  return pl_ir_graph_flush(own);
}

pl_code pl_ir_graph_walk(pl_ir_graphing *own, int32_t step, bool is_last) {
  const pl_ir_class *class = own->now->class;
  return step < class->n_steps ? walk_step(own, &class->steps[step], is_last) : walk_update(own);
}

static bool take_units(pl_ir_graphing *own) {
  own->unit = PL_TAKE(own->arena, uint32_t, own->now->n_devices + 1);
  own->unit_before = PL_TAKE(own->arena, uint32_t, own->now->n_devices + 1);
  for (uint32_t d = 0; !own->arena->failed && d < own->now->n_devices; d++)
    own->unit[d] = own->unit_before[d] = PL_NONE;
  return !own->arena->failed;
}

/* Step by step, each at once. */
static pl_code walk_list(pl_ir_graphing *own) {
  const pl_ir_class *class = own->now->class;
  const int32_t *places = pl_ir_graph_places(own, class);
  if (places == NULL) return pl_ir_graph_no_memory(own);
  PL_TRY(pl_ir_graph_find_reductions(own));
  PL_TRY(pl_ir_graph_begin_offload(own));
  for (int32_t s = 0; s <= class->n_steps; s++) {
    begin_step(own, s);
    if (own->module->n_fewer > 0) PL_TRY(pl_ir_graph_flush(own)); /* others may pass over the next */
    PL_TRY(pl_ir_graph_walk(own, s, pl_ir_graph_is_last(places[s])));
  }
  return PL_OK;
}

pl_code pl_ir_graph_run_list(pl_ir_graphing *own) {
  begin_lane(own);
  if (!take_units(own)) return pl_ir_graph_no_memory(own);
  return own->passes != NULL ? pl_ir_graph_do_list(own, begin_step) : walk_list(own);
}
