/* See workloads/tree/tree_planning.h: which devices a module is on, what is a stage, and who runs when. */
#include <stdlib.h>
#include <string.h>

#include "workloads/tree/tree_planning.h"

typedef struct staging {
  pl_tree_planning *own;
  pl_tree_group *groups; /* in the order in which the model comes to them */
  int32_t n_groups;
  int32_t *of_module; /* group, -1: not yet */
} staging;

/* ---- groups of devices ---- */

static pl_tree_place place_of(const staging *all, int32_t group) {
  return pl_tree_node_at(all->own, all->groups[group].node)->devices_at;
}

/* Modules that nobody gives devices run where what they read comes from, else where what they give is read. */
static pl_code place_modules(staging *all) {
  pl_tree_planning *own = all->own;
  int32_t n = own->plan->n_modules;
  for (int32_t i = 0; i < n; i++) {
    int32_t node = own->calls[i].settings.node[PL_TREE_KEY_DEVICES];
    all->of_module[i] = node >= 0 ? pl_tree_group_of(own, all->groups, all->n_groups, node) : -1;
    const pl_ir_op *call = own->calls[i].call;
    for (int32_t k = 0; k < call->n_inputs && all->of_module[i] < 0; k++)
      if (own->makers[call->inputs[k]] >= 0) all->of_module[i] = all->of_module[own->makers[call->inputs[k]]];
  }
  for (int32_t i = n; i-- > 0;) {
    const pl_ir_op *call = own->calls[i].call;
    for (int32_t k = 0; k < call->n_inputs; k++) {
      int32_t maker = own->makers[call->inputs[k]];
      if (maker >= 0 && all->of_module[maker] < 0) all->of_module[maker] = all->of_module[i];
    }
  }
  for (int32_t i = 0; i < n; i++)
    if (all->of_module[i] < 0)
      return pl_tree_fail(place_of(all, 0), own->error,
                          "%s has no devices, and nothing that it is joined to has any: say devices of it too",
                          own->plan->modules[i].name);
  return PL_OK;
}

/* Modules behind one another that no node gives devices, on the same ones. */
static pl_code remark_places(staging *all) {
  pl_tree_planning *own = all->own;
  const pl_tree_module_plan *modules = own->plan->modules;
  for (int32_t i = 0, end; i < own->plan->n_modules; i = end) {
    char text[PL_TREE_RANGES_BYTES];
    bool open = own->calls[i].settings.node[PL_TREE_KEY_DEVICES] < 0;
    for (end = i + 1; end < own->plan->n_modules && all->of_module[end] == all->of_module[i] &&
                      (own->calls[end].settings.node[PL_TREE_KEY_DEVICES] < 0) == open;)
      end++;
    const pl_tree_node *node = pl_tree_node_at(own, all->groups[all->of_module[i]].node);
    if (open)
      PL_TRY(pl_tree_remark(own, "placed    %s%s%s on devices %s, as what %s joined to; no node gives %s any",
                            modules[i].name,
                            end > i + 2   ? " ... "
                            : end > i + 1 ? ", "
                                          : "",
                            end > i + 1 ? modules[end - 1].name : "", pl_tree_devices_text(node, text),
                            end > i + 1 ? "they are" : "it is", end > i + 1 ? "them" : "it"));
  }
  return PL_OK;
}

/* ---- chunks ---- */

static pl_code check_chunks(const staging *all, const int32_t *group_of_chunk, const int32_t *first_module) {
  const pl_tree_planning *own = all->own;
  const pl_strategy *schedule = &own->plan->schedule;
  int32_t n_chunks = pl_strategy_n_chunks(schedule);
  for (int32_t chunk = 0; chunk < n_chunks; chunk++) {
    int32_t stage = pl_strategy_stage_of(schedule, chunk);
    if (stage == group_of_chunk[chunk]) continue;
    return pl_tree_fail(place_of(all, group_of_chunk[chunk]), own->error,
                        "%s is on stage %d, where schedule %s comes to stage %d: chunks of a model go round the stages "
                        "in one order%s",
                        own->plan->modules[first_module[chunk]].name, group_of_chunk[chunk],
                        pl_schedule_name(schedule->schedule), stage,
                        pl_strategy_is_v(schedule) ? ", down and back" : "");
  }
  return PL_OK;
}

/* Modules behind one another on the same devices are a chunk. */
static pl_code take_chunks(staging *all) {
  pl_tree_planning *own = all->own;
  int32_t n = own->plan->n_modules, n_chunks = 0;
  int32_t *group_of_chunk = PL_TAKE(own->scratch, int32_t, n + 1), *first = PL_TAKE(own->scratch, int32_t, n + 1);
  if (group_of_chunk == NULL || first == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < n; i++) {
    if (i == 0 || all->of_module[i] != all->of_module[i - 1]) {
      first[n_chunks] = i;
      group_of_chunk[n_chunks++] = all->of_module[i];
    }
    own->plan->modules[i].chunk = n_chunks - 1;
  }
  own->plan->schedule.pp = all->n_groups;
  own->plan->schedule.vpp = (n_chunks + all->n_groups - 1) / all->n_groups;
  if (n_chunks % all->n_groups != 0)
    return pl_tree_fail(place_of(all, 0), own->error,
                        "%d stretches of modules on %d stages: every stage has equally many", n_chunks, all->n_groups);
  if (!own->tree->nodes[0].schedule.has_kind && own->plan->schedule.vpp > 1)
    own->plan->schedule.schedule = PL_SCHEDULE_INTERLEAVED;
  return check_chunks(all, group_of_chunk, first);
}

static bool is_layer(const char *name) {
  return strncmp(name, "h.", 2) == 0 && name[2] >= '0' && name[2] <= '9';
}

/* `pipeline`: layers in equal parts or as `cut` says; what stands in front of them and behind goes with the ends. */
static pl_code cut_pipeline(pl_tree_planning *own) {
  const pl_tree_pipeline *pipeline = &own->tree->pipeline;
  int32_t n = own->plan->n_modules, n_layers = 0, n_chunks = pipeline->stages * pipeline->chunks;
  bool all = true;
  for (int32_t i = 0; i < n; i++)
    n_layers += is_layer(own->plan->modules[i].name);
  if (n_layers > 0) all = false;
  if (all) n_layers = n;
  if (n_chunks > n_layers)
    return pl_tree_fail(pipeline->place, own->error, "%d %s of %d %s need %d layers; %s has %d", pipeline->stages,
                        pipeline->stages == 1 ? "stage" : "stages", pipeline->chunks,
                        pipeline->chunks == 1 ? "chunk" : "chunks", n_chunks, own->model->name, n_layers);
  if (pipeline->cut != NULL && pipeline->cut[n_chunks] != n_layers)
    return pl_tree_fail(pipeline->cut_at, own->error, "the last number is that of layers, %d, not %d", n_layers,
                        pipeline->cut[n_chunks]);
  int32_t chunk = 0, layer = 0;
  for (int32_t i = 0; i < n; i++) {
    bool counts = all || is_layer(own->plan->modules[i].name);
    while (counts && chunk + 1 < n_chunks) {
      int32_t next = pipeline->cut != NULL ? pipeline->cut[chunk + 1]
                                           : (int32_t)(((int64_t)(chunk + 1) * n_layers + n_chunks - 1) / n_chunks);
      if (layer < next) break;
      chunk++;
    }
    layer += counts;
    own->plan->modules[i].chunk = chunk;
  }
  own->plan->schedule.pp = pipeline->stages;
  own->plan->schedule.vpp = pipeline->chunks;
  if (!own->tree->nodes[0].schedule.has_kind && pipeline->chunks > 1)
    own->plan->schedule.schedule = PL_SCHEDULE_INTERLEAVED;
  return PL_OK;
}

/* ---- the schedule ---- */

static pl_code check_schedule(const pl_tree_planning *own) {
  const pl_strategy *schedule = &own->plan->schedule;
  const pl_tree_schedule *said = &own->tree->nodes[0].schedule;
  const char *name = pl_schedule_name(schedule->schedule);
  pl_tree_place place = said->has_kind ? said->kind_at : own->tree->nodes[0].place;
  pl_tree_place counted = pl_tree_is_said(said->microbatches_at) ? said->microbatches_at : place;
  int32_t pp = schedule->pp, vpp = schedule->vpp, m = own->plan->n_microbatches;
  bool v = pl_strategy_is_v(schedule), chunked = pl_schedule_is_chunked(schedule->schedule);
  if (chunked && (vpp < 2 || pp < 2))
    return pl_tree_fail(place, own->error, "%s needs two stages and two chunks of each or more, not %d and %d", name,
                        pp, vpp);
  if (pl_strategy_splits_backward(schedule) && pp < 2)
    return pl_tree_fail(place, own->error, "%s needs two stages or more", name);
  if (v && vpp != 2) return pl_tree_fail(place, own->error, "%s has two chunks per stage, not %d", name, vpp);
  if (!chunked && !v && vpp > 1)
    return pl_tree_fail(place, own->error, "%d chunks per stage need schedule interleaved or breadth-first, not %s",
                        vpp, name);
  if (schedule->schedule == PL_SCHEDULE_INTERLEAVED && m % pp != 0)
    return pl_tree_fail(counted, own->error, "%d %s: %s needs a multiple of the %d stages, such as %d", m,
                        m == 1 ? "microbatch" : "microbatches", name, pp, (m / pp + 1) * pp);
  if (schedule->schedule == PL_SCHEDULE_DUALPIPE && (pp % 2 != 0 || m % 2 != 0 || m < 2 * pp))
    return pl_tree_fail(
        counted, own->error,
        "%s runs half of the microbatches from either end: an even number of stages, and of microbatches "
        "an even number of at least twice the stages, not %d and %d",
        name, pp, m);
  if (schedule->schedule == PL_SCHEDULE_DUALPIPE_V && m < 2 * pp)
    return pl_tree_fail(counted, own->error, "%d microbatches are too few: %s needs twice the stages, %d", m, name,
                        2 * pp);
  return PL_OK;
}

/* What the best node says of any module of the stage; of two that are as good the same. */
static pl_code note_max_ongoing(pl_tree_planning *own, int32_t module, int64_t *most, int32_t *who) {
  int32_t stage = own->calls[module].stage, node = own->calls[module].settings.node[PL_TREE_KEY_MAX_ONGOING];
  if (node < 0) return PL_OK;
  const pl_tree_schedule *said = &pl_tree_node_at(own, node)->schedule;
  if (own->plan->schedule.schedule != PL_SCHEDULE_1F1B)
    return pl_tree_fail(said->max_ongoing_at, own->error, "max_ongoing belongs to schedule 1f1b, not to %s",
                        pl_schedule_name(own->plan->schedule.schedule));
  const pl_tree_node *before = most[stage] > 0 ? pl_tree_node_at(own, who[stage]) : NULL;
  if (before != NULL && before->depth > pl_tree_node_at(own, node)->depth) return PL_OK;
  char text[PL_TREE_PLACE_BYTES];
  if (before != NULL && before->depth == pl_tree_node_at(own, node)->depth && most[stage] != said->max_ongoing)
    return pl_tree_fail(said->max_ongoing_at, own->error,
                        "stage %d has modules of max_ongoing %lld and %lld (%s): it is one number for a stage", stage,
                        (long long)said->max_ongoing, (long long)most[stage],
                        pl_tree_place_text(before->schedule.max_ongoing_at, text));
  most[stage] = said->max_ongoing;
  who[stage] = node;
  return PL_OK;
}

/* max_ongoing of each stage, no more than that of the stage in front. */
static pl_code take_max_ongoing(pl_tree_planning *own) {
  pl_tree_plan *plan = own->plan;
  int32_t pp = plan->schedule.pp;
  int64_t *most = PL_TAKE(own->arena, int64_t, pp);
  int32_t *who = PL_TAKE(own->scratch, int32_t, pp);
  bool any = false;
  if (most == NULL || who == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < plan->n_modules; i++)
    PL_TRY(note_max_ongoing(own, i, most, who));
  for (int32_t stage = 0; stage < pp; stage++)
    any = any || most[stage] > 0;
  if (!any) return PL_OK;
  for (int32_t stage = 0; stage < pp; stage++) {
    bool here = most[stage] > 0;
    if (!here) most[stage] = pp - stage;
    if (stage == 0 || most[stage] <= most[stage - 1]) continue;
    pl_tree_place place = pl_tree_node_at(own, who[here ? stage : stage - 1])->schedule.max_ongoing_at;
    return pl_tree_fail(place, own->error,
                        "stage %d may have %lld forward passes in flight and the stage in front of it %lld: it would "
                        "wait for the rest for ever; at most %lld",
                        stage, (long long)most[stage], (long long)most[stage - 1], (long long)most[stage - 1]);
  }
  plan->max_ongoing = most;
  return PL_OK;
}

/* A recipe's chunks are the root's children, first of all nodes. */
static int32_t chunk_of_node(const pl_strategy_tree *tree, int32_t node) {
  while (tree->nodes[node].parent > 0)
    node = tree->nodes[node].parent;
  return node - 1;
}

/* A recipe says chunks by its nodes. */
static void take_recipe(pl_tree_planning *own) {
  own->plan->schedule = own->tree->strategy;
  for (int32_t i = 0; i < own->plan->n_modules; i++)
    own->plan->modules[i].chunk = chunk_of_node(own->tree, own->plan->modules[i].node);
}

pl_code pl_tree_take_stages(pl_tree_planning *own) {
  staging all = {.own = own};
  int32_t n = own->plan->n_modules;
  const pl_tree_schedule *said = &own->tree->nodes[0].schedule;
  int32_t most = own->tree->n_nodes < PL_TREE_STAGES_MAX ? own->tree->n_nodes : PL_TREE_STAGES_MAX;
  all.groups = PL_TAKE(own->scratch, pl_tree_group, most + 1);
  all.of_module = PL_TAKE(own->scratch, int32_t, n + 1);
  if (all.groups == NULL || all.of_module == NULL) return pl_fail_memory(own->error, "a strategy tree");
  own->plan->schedule = (pl_strategy){.pp = 1, .vpp = 1, .schedule = said->has_kind ? said->kind : PL_SCHEDULE_1F1B};
  bool recipe = own->tree->strategy.pp > 0;
  if (!recipe) PL_TRY(pl_tree_take_groups(own, all.groups, &all.n_groups));
  if (recipe) {
    take_recipe(own);
  } else if (own->tree->pipeline.stages > 0) {
    PL_TRY(cut_pipeline(own));
  } else if (all.n_groups > 0) {
    PL_TRY(place_modules(&all));
    PL_TRY(remark_places(&all));
    PL_TRY(take_chunks(&all));
  }
  for (int32_t i = 0; i < n; i++)
    own->calls[i].stage = pl_strategy_stage_of(&own->plan->schedule, own->plan->modules[i].chunk);
  if (!recipe) PL_TRY(check_schedule(own));
  if (!recipe) PL_TRY(take_max_ongoing(own));
  return pl_tree_count_devices(own, all.groups, all.n_groups);
}
