/* See workloads/compile/ir_graph.h. */
#include "workloads/compile/ir_graph.h"

#include <string.h>

#include "workloads/compile/ir_graph_state.h"
#include "workloads/language/ir_product.h"

pl_code pl_ir_graph_no_memory(const pl_ir_graphing *own) {
  return pl_fail_memory(own->error, "the graph of the program");
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
                                    ignore || !own->is_crowded ? 0 : pl_framework_crowding(own->framework, profile),
                                .overlap_tensor = ignore || !own->crowds_products ? 0 : pl_tensor_crowding(profile),
                                .waits_for_place = profile->fills_device};
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
                                .overlaps_split = own->overlaps_split,
                                .is_crowded = own->is_crowded,
                                .crowds_products = own->crowds_products,
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
  return own->builder == NULL || own->loads == NULL ? pl_ir_graph_no_memory(own) : pl_ir_graph_take_lanes(own);
}

static pl_code run_lists(pl_ir_graphing *own) {
  for (int32_t c = 0; c < own->module->n_classes; c++) {
    own->now = &own->crews[c];
    PL_TRY(pl_ir_graph_run_list(own));
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

/* Sequence parallelism: what goes over a tensor axis is scattered. */
static bool scatters_tensors(const pl_ir_module *module) {
  for (int32_t f = 0; f < module->n_functions; f++)
    for (int32_t i = 0; i < module->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &module->functions[f]->ops[i];
      const pl_ir_attribute *over = pl_ir_attribute_find(op, "over");
      if (pl_ir_op_is(op, "reduce_scatter") && over != NULL && over->n_names > 0 &&
          pl_ir_axis_is_of_tensors(over->names[0].text))
        return true;
    }
  return false;
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
  own->routing.gathers = own->framework->kernels.permutation == PL_PERMUTATION_GATHERED;
  if (own->framework->pipeline.send_wait_s > 0 || own->framework->launch.collective_rank_s > 0)
    return pl_fail(own->error, PL_UNSUPPORTED,
                   "programs do not know the framework's send_wait and collective_rank: set both to 0, or simulate the "
                   "strategy itself, as pp=...,dp=...,tmp=...");
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
  own->has_pairs = pl_ir_module_joins_steps(module);
  own->is_crowded = own->framework->pipeline.exchange_multiprocessors > 0 &&
                    (own->has_pairs || own->framework->pipeline.token_order != PL_TOKENS_AS_MADE);
  /* Not in NVFP4, as of tuples (workloads/lower/block_program.c). */
  own->overlaps_tensor =
      own->framework->pipeline.overlaps_tensor && module->level == PL_IR_KERNELS && narrow != PL_IR_F4;
  own->overlaps_split = own->framework->pipeline.overlaps_tensor_backward && module->level == PL_IR_KERNELS;
  own->crowds_products = own->overlaps_split && !(own->overlaps_tensor && scatters_tensors(module));
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
  PL_TRY(pl_ir_graph_note_passes(own, pl_ir_graph_walk));
  if (!maker->has_tried) PL_TRY(find_alike(maker));
  own->fold = maker->folds ? &maker->fold : NULL;
  if (!maker->folds) add_devices(own);
  if (maker->folds) PL_TRY(take_representatives(own));
  bool fuses = own->options->fuse && !own->options->names; /* who asks for names wants each collective's */
  if (maker->folds && fuses && !pl_ir_module_joins_steps(own->module)) PL_TRY(pl_ir_graph_fuse(own));
  maker->is_prepared = true;
  maker->prepared = played;
  return PL_OK;
}

pl_code pl_ir_graph_prepare(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_ir_pace *pace, pl_error *error) {
  PL_TRY(prepare(maker, played, error));
  pace->is_known = pl_ir_graph_pace_of(&maker->own, pace);
  pace->carries = pl_ir_graph_carries(&maker->own) || pl_ir_module_joins_steps(maker->own.module);
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
