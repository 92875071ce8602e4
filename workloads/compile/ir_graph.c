/* See workloads/compile/ir_graph.h. */
#include "workloads/compile/ir_graph.h"

#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_product.h"

enum { DEPTH_MAX = 64 };

pl_code pl_ir_graph_no_memory(const pl_ir_graphing *own) {
  return pl_fail_memory(own->error, "the graph of the program");
}

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

static pl_code take_lanes(pl_ir_graphing *own) {
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
  if (own->now->class->update != PL_IR_NONE) PL_TRY(run_function(own, own->now->class->update, NULL, NULL));
  PL_TRY(add_step(own));
  PL_TRY(pl_ir_graph_send_gathers(own));
  return pl_ir_graph_flush(own);
}

static pl_code walk(pl_ir_graphing *own, int32_t step, bool is_last) {
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
    PL_TRY(walk(own, s, pl_ir_graph_is_last(places[s])));
  }
  return PL_OK;
}

static pl_code run_list(pl_ir_graphing *own) {
  begin_lane(own);
  if (!take_units(own)) return pl_ir_graph_no_memory(own);
  return own->passes != NULL ? pl_ir_graph_do_list(own, begin_step) : walk_list(own);
}

/* ---- all devices ---- */

static void add_device(pl_ir_graphing *own, uint32_t place, uint32_t multiplicity) {
  const pl_device_profile *profile = &own->cluster->profiles[own->cluster->devices[place].profile];
  bool ignore = own->options->no_overlap_factor;
  const pl_graph_device made = {.device = place,
                                .multiplicity = multiplicity,
                                .overlap_compute = ignore ? 0 : profile->overlap_compute,
                                .overlap_communication = ignore ? 0 : profile->overlap_communication,
                                .overlap_exchange =
                                    ignore || !own->is_crowded ? 0 : pl_framework_crowding(own->framework, profile)};
  pl_graph_builder_device(own->builder, &made);
}

static bool take_crew(pl_ir_graphing *own, const pl_ir_class *class, pl_ir_crew *made) {
  uint32_t n = pl_ir_mesh_devices(&own->module->mesh);
  *made = (pl_ir_crew){
      .class = class, .devices = PL_TAKE(own->arena, uint32_t, n), .last = PL_TAKE(own->arena, uint32_t, n)};
  made->numbers = made->devices;
  for (uint32_t device = 0; !own->arena->failed && device < n; device++) {
    made->last[device] = PL_NONE;
    if (pl_ir_class_has(own->module, class, device)) made->devices[made->n_devices++] = device;
  }
  return !own->arena->failed;
}

/* All devices of each class, as when nothing has been done yet. */
static pl_code take_whole_crews(pl_ir_graphing *own) {
  bool fresh = own->whole == NULL;
  if (fresh) own->whole = PL_TAKE(own->arena, pl_ir_crew, own->module->n_classes + 1);
  if (own->whole == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    pl_ir_crew *crew = &own->whole[c];
    if (fresh && !take_crew(own, &own->module->classes[c], crew)) return pl_ir_graph_no_memory(own);
    crew->class = &own->module->classes[c]; /* of what is played */
    for (uint32_t d = 0; d < crew->n_devices; d++)
      crew->last[d] = PL_NONE;
  }
  own->crews = own->whole;
  return PL_OK;
}

static void add_devices(pl_ir_graphing *own) {
  for (uint32_t device = 0; device < pl_ir_mesh_devices(&own->module->mesh); device++)
    add_device(own, own->places[device] != PL_IR_NOWHERE ? own->places[device] : 0, 1); /* 0: where nothing runs */
}

/* The first of each class of interchangeable ones, each in the crew of its list. */
static pl_code take_representatives(pl_ir_graphing *own) {
  const pl_partition *classes = &own->fold->folding.fold.devices;
  own->crews = PL_TAKE(own->arena, pl_ir_crew, own->module->n_classes + 1);
  own->fold->place_of = PL_TAKE(own->arena, uint32_t, classes->n_classes + 1);
  if (own->crews == NULL || own->fold->place_of == NULL) return pl_ir_graph_no_memory(own);
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    pl_ir_crew *crew = &own->crews[c];
    if (!take_crew(own, &own->module->classes[c], crew)) return pl_ir_graph_no_memory(own);
    crew->n_devices = 0;
    crew->numbers = PL_TAKE(own->arena, uint32_t, classes->n_classes + 1);
    if (crew->numbers == NULL) return pl_ir_graph_no_memory(own);
    for (uint32_t d = 0; d < classes->n_classes; d++) {
      if (!pl_ir_class_has(own->module, crew->class, classes->first[d])) continue;
      own->fold->place_of[d] = crew->n_devices;
      crew->numbers[crew->n_devices] = d;
      crew->devices[crew->n_devices++] = classes->first[d];
    }
  }
  for (uint32_t d = 0; d < classes->n_classes; d++)
    add_device(own, own->places[classes->first[d]], classes->size[d]);
  return PL_OK;
}

/* Builder, and what is found while lists run, anew. Notes go by the names of one builder. */
static pl_code begin(pl_ir_graphing *own) {
  const pl_ir_module *module = own->module;
  const pl_ir_graphing fresh = {.cluster = own->cluster,
                                .module = module,
                                .places = own->places,
                                .options = own->options,
                                .arena = own->arena,
                                .made = own->made,
                                .error = own->error,
                                .framework = own->framework,
                                .routing = own->routing,
                                .token_bytes = own->token_bytes,
                                .overlaps_tensor = own->overlaps_tensor,
                                .is_crowded = own->is_crowded,
                                .has_pairs = own->has_pairs,
                                .kernel = own->kernel,
                                .prices = own->prices,
                                .again = own->again,
                                .transfers = own->transfers,
                                .played = own->played,
                                .reductions = own->reductions,
                                .doings = own->doings,
                                .messages = own->messages,
                                .passes = own->passes,
                                .whole = own->whole,
                                .graph = own->graph + 1};
  *own = fresh;
  if (own->options->names && own->passes != NULL)
    memset(own->passes, 0, (size_t)module->n_classes * sizeof *own->passes);
  *own->made = (pl_ir_graph){0};
  own->builder = pl_graph_builder_take(own->arena, PL_STREAMS_IN_ORDER);
  own->loads = PL_TAKE(own->arena, pl_ir_load, 2 * (size_t)module->n_functions + 1);
  return own->builder == NULL || own->loads == NULL ? pl_ir_graph_no_memory(own) : take_lanes(own);
}

static pl_code run_lists(pl_ir_graphing *own) {
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    own->now = &own->crews[c];
    PL_TRY(run_list(own));
    PL_TRY(pl_ir_graph_spend(own, c));
    if (c == 0 && own->fold != NULL) pl_graph_builder_expect(own->builder, (uint32_t)own->module->n_classes - 1);
  }
  return PL_OK;
}

/* Whether something moves otherwise than in collectives and messages, or to and from a host. */
static bool moves_otherwise(const pl_ir_module *module) {
  static const char *const rows[] = {"shift", "halo", "halo_backward"};
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (pl_ir_graph_is_offloaded(module->functions[f], op)) return true;
      for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (pl_ir_op_is(op, rows[k])) return true;
    }
  return false;
}

/* Whether steps run beside each other, for which their exchanges must not be parts of their work. */
static bool joins_steps(const pl_ir_module *module) {
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t s = 0; s < module->classes[c].n_steps; s++)
      if (module->classes[c].steps[s].joined) return true;
  return false;
}

/* The type of the first of the products that are narrower than all else; PL_IR_ELEMENT_COUNT: there is none. */
static pl_ir_element narrow_element(const pl_ir_module *module) {
  pl_ir_element element = PL_IR_ELEMENT_COUNT;
  for (int32_t f = 0; f < module->n_functions && element == PL_IR_ELEMENT_COUNT; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops && element == PL_IR_ELEMENT_COUNT; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      if (pl_ir_attribute_find(op, PL_IR_PRODUCT_NARROW) != NULL)
        (void)pl_ir_element_of(pl_ir_text_of(op, PL_IR_PRODUCT_NARROW), &element);
    }
  return element;
}

/* ---- graphs of one program ---- */

struct pl_ir_graph_maker {
  pl_ir_graphing own;
  const pl_ir_module *module; /* the whole one */
  pl_ir_folding fold;
  bool has_tried, folds; /* to find devices that are alike; there are */
  bool is_prepared;
  const pl_ir_played *prepared; /* of what */
  pl_ir_graph begun;
};

static uint32_t count_devices(const pl_ir_graphing *own) {
  uint32_t n = 0;
  for (int32_t c = 0; c < own->module->n_classes; c++)
    n += own->whole[c].n_devices;
  return n;
}

/* Which devices are alike; not in a module where something stands in the way. */
static pl_code find_alike(pl_ir_graph_maker *maker) {
  pl_ir_graphing *own = &maker->own;
  uint32_t n = pl_ir_mesh_devices(&own->module->mesh);
  maker->has_tried = true;
  if (!own->options->fold || own->module->n_fewer > 0 || own->passes == NULL || n < 4 || count_devices(own) != n)
    return PL_OK;
  maker->fold = (pl_ir_folding){.arena = own->arena, .whole = own->whole};
  own->fold = &maker->fold;
  return pl_ir_graph_fold(own, &maker->folds);
}

pl_code pl_ir_graph_maker_take(const pl_cluster *cluster, const pl_ir_module *module,
                               const pl_ir_graph_options *options, pl_arena *arena, pl_ir_graph_maker **maker,
                               pl_error *error) {
  uint32_t n = pl_ir_mesh_devices(&module->mesh), last = 0;
  const uint32_t *places = pl_ir_places_take(module, arena);
  pl_ir_graph_maker *made = *maker = PL_TAKE(arena, pl_ir_graph_maker, 1);
  if (places == NULL || made == NULL) return pl_fail_memory(error, "the graph of a program");
  for (uint32_t device = 0; device < n; device++)
    if (places[device] != PL_IR_NOWHERE && places[device] > last) last = places[device];
  if (last >= cluster->n_devices)
    return pl_fail(error, PL_BAD_INPUT, "%s: the program is for %u devices, the platform has %u", module->name,
                   module->places != NULL ? last + 1 : n, cluster->n_devices);
  if (cluster->n_profiles > PL_IR_GRAPH_PROFILES_MAX)
    return pl_fail(error, PL_UNSUPPORTED, "programs run on at most %d types of devices", (int)PL_IR_GRAPH_PROFILES_MAX);
  made->module = module;
  pl_ir_graphing *own = &made->own;
  *own = (pl_ir_graphing){.cluster = cluster,
                          .places = places,
                          .options = options,
                          .arena = arena,
                          .error = error,
                          .framework = pl_framework_or_ideal(options->framework),
                          .kernel = pl_ir_row_of("kernel"),
                          .routing = pl_ir_routing_of(module)};
  own->prices = PL_TAKE(arena, pl_ir_price *, (size_t)module->n_functions * PL_IR_GRAPH_CATEGORIES);
  own->again = PL_TAKE(arena, const bool *, (size_t)module->n_functions + 1);
  own->doings = PL_TAKE(arena, pl_ir_doing, (size_t)module->n_functions + 1);
  own->reductions = PL_TAKE(arena, pl_ir_reductions, (size_t)module->n_classes + 1);
  if (!moves_otherwise(module)) own->passes = PL_TAKE(arena, pl_ir_passes, (size_t)module->n_classes + 1);
  if (arena->failed) return pl_ir_graph_no_memory(own);
  pl_ir_transfers_init(&own->transfers, cluster, &options->collective, arena);
  if (module->places != NULL) own->transfers.places = places;
  if (own->framework->pipeline.sends_tokens_per_node)
    own->transfers.tokens = (pl_token_choice){own->routing.k, own->routing.groups, own->routing.chosen_groups};
  pl_ir_element narrow = narrow_element(module);
  if (own->framework->pipeline.sends_tokens_fp8 && narrow != PL_IR_ELEMENT_COUNT) own->token_bytes = PL_FP8_TOKEN_BYTES;
  own->has_pairs = joins_steps(module);
  own->is_crowded = own->framework->pipeline.exchange_multiprocessors > 0 &&
                    (own->has_pairs || own->framework->pipeline.token_order != PL_TOKENS_AS_MADE);
  /* Not in NVFP4, as of tuples (workloads/lower/block_program.c). */
  own->overlaps_tensor =
      own->framework->pipeline.overlaps_tensor && module->level == PL_IR_KERNELS && narrow != PL_IR_F4;
  return PL_OK;
}

static pl_code prepare(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_error *error) {
  pl_ir_graphing *own = &maker->own;
  own->error = error;
  own->made = &maker->begun;
  own->played = played;
  maker->is_prepared = false;
  own->module = played != NULL ? &played->module : maker->module;
  PL_TRY(begin(own));
  PL_TRY(take_whole_crews(own));
  PL_TRY(pl_ir_graph_note_passes(own, walk));
  if (!maker->has_tried) PL_TRY(find_alike(maker));
  own->fold = maker->folds ? &maker->fold : NULL;
  if (!maker->folds) add_devices(own);
  if (maker->folds) PL_TRY(take_representatives(own));
  bool fuses = own->options->fuse && !own->options->names; /* who asks for names wants each collective's */
  if (maker->folds && fuses && !joins_steps(own->module)) PL_TRY(pl_ir_graph_fuse(own));
  maker->is_prepared = true;
  maker->prepared = played;
  return PL_OK;
}

pl_code pl_ir_graph_prepare(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_ir_pace *pace, pl_error *error) {
  PL_TRY(prepare(maker, played, error));
  pace->is_known = pl_ir_graph_pace_of(&maker->own, pace);
  pace->carries = pl_ir_graph_carries(&maker->own) || joins_steps(maker->own.module);
  return PL_OK;
}

pl_code pl_ir_graph_make(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_ir_graph *made, pl_error *error) {
  pl_ir_graphing *own = &maker->own;
  if (!maker->is_prepared || maker->prepared != played) PL_TRY(prepare(maker, played, error));
  maker->is_prepared = false;
  own->error = error;
  own->made = made;
  *made = maker->begun;
  PL_TRY(run_lists(own));
  pl_transfer_table *table = maker->folds ? maker->fold.table : PL_TAKE(own->arena, pl_transfer_table, 1);
  if (table == NULL) return pl_ir_graph_no_memory(own);
  if (!maker->folds) PL_TRY(pl_ir_transfers_table(&own->transfers, table, error));
  pl_graph_builder_transfers(own->builder, table);
  if (maker->folds && maker->fold.rivals != NULL)
    pl_graph_builder_rivals(own->builder, maker->fold.rival_offset, maker->fold.rivals);
  made->device_class = maker->folds ? maker->fold.folding.fold.devices.class_of : NULL;
  made->sent = maker->folds ? maker->fold.sent : own->transfers.sent;
  made->lanes = pl_lane_making_finish(&own->lanes, own->builder);
  made->n_more = own->lanes.n_more;
  PL_TRY(pl_graph_builder_freeze(own->builder, &made->graph, error));
  PL_ASSERT(!own->options->names || own->n_origins == made->graph.n_parts);
  return PL_OK;
}

pl_code pl_ir_graph_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph_options *options,
                         pl_arena *arena, pl_ir_graph *made, pl_error *error) {
  pl_ir_graph_maker *maker;
  PL_TRY(pl_ir_graph_maker_take(cluster, module, options, arena, &maker, error));
  return pl_ir_graph_make(maker, NULL, made, error);
}
