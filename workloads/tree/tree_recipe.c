/* See workloads/tree/tree_plan.h: the tuple (pp, dp, cp, ep, tmp ...) as a tree. The mesh names its degrees; axes are
 * split where experts or few key-value heads need it (8 = 2 x 4). Chunks of the pipeline are the root's children. */
#include <stdlib.h>
#include <string.h>

#include "core/base/multiple.h"
#include "workloads/tree/tree_plan.h"

typedef struct filling {
  pl_strategy_tree *tree;
  const pl_strategy *strategy;
  const pl_model *model;
  pl_tree_cut *cuts;
  int32_t n_cuts;
} filling;

/* ---- the mesh ---- */

/* dims: "b", "s", "vgrf" ... by letter. */
static void add_axis(filling *own, const char *name, int32_t extent, const char *dims, bool expert, bool shard) {
  if (extent == 1) return;
  pl_ir_mesh *mesh = &own->tree->mesh;
  PL_ASSERT(mesh->n_axes < PL_IR_AXES_MAX && own->n_cuts < PL_TREE_CUTS_MAX);
  mesh->axes[mesh->n_axes++] = (pl_ir_axis){.name = pl_ir_name_of(name), .extent = extent};
  pl_tree_cut *cut = &own->cuts[own->n_cuts++];
  *cut = (pl_tree_cut){.n_axes = 1, .axes = {pl_ir_name_of(name)}};
  for (; *dims != 0; dims++) {
    const char letter[] = {*dims, 0};
    cut->dims[cut->n_dims++] = pl_ir_name_of(letter);
  }
  if (expert) cut->dims[cut->n_dims++] = pl_ir_name_of("x");
  for (int32_t i = PL_LAYOUT_STATES; shard && i <= PL_LAYOUT_PARAMETERS; i++) {
    pl_tree_spread *spread = &own->tree->nodes[0].memory[i];
    if (own->strategy->zero <= i) continue;
    spread->is_said = true;
    spread->over[spread->n++] = pl_ir_name_of(name);
  }
}

/* An axis of `extent`, the inner `inner` of it under a name of its own. */
static void add_split(filling *own, const char *name, const char *inner_name, int32_t extent, int32_t inner,
                      const char *dims, bool expert_inner, bool shard) {
  add_axis(own, name, extent / inner, dims, false, shard);
  add_axis(own, inner_name, inner, dims, expert_inner, shard);
}

static int32_t greatest_common(int64_t a, int64_t b) {
  return (int32_t)pl_common_divisor((uint64_t)a, (uint64_t)b);
}

/* Of dp * cp replicas, context ranks innermost, neighbours share one copy of what ZeRO shards. */
static pl_code add_sharers(filling *own, int32_t sharers, pl_error *error) {
  int32_t cp = pl_strategy_cp(own->strategy), dp = own->strategy->dp;
  if (pl_strategy_ep(own->strategy) > 1)
    return pl_fail(error, PL_UNSUPPORTED, "shard=%d with expert parallelism has no program yet", sharers);
  if (sharers % cp == 0) {
    add_axis(own, "dp", dp / (sharers / cp), "b", false, false);
    add_axis(own, "dps", sharers / cp, "b", false, true);
    add_axis(own, "cp", cp, "st", false, true);
    return PL_OK;
  }
  if (cp % sharers != 0)
    return pl_fail(error, PL_UNSUPPORTED, "shard=%d takes a part of the %d context ranks of several replicas", sharers,
                   cp);
  add_axis(own, "dp", dp, "b", false, false);
  add_axis(own, "cp", cp / sharers, "st", false, false);
  add_axis(own, "cps", sharers, "st", false, true);
  return PL_OK;
}

static pl_code take_mesh(filling *own, pl_error *error) {
  const pl_strategy *strategy = own->strategy;
  int32_t cp = pl_strategy_cp(strategy), ep = pl_strategy_ep(strategy), tmp = strategy->tmp, dp = strategy->dp;
  int32_t kv = own->model->attention.n_kv_heads > 0 ? greatest_common(own->model->attention.n_kv_heads, tmp)
                                                    : tmp; /* ranks with heads of their own */
  bool cuts_experts = pl_strategy_cuts_experts(strategy);  /* over the tensor axis, as dense layers */
  PL_ASSERT(kv > 0 && tmp > 0);
  int32_t tensor_experts = ep > 1 && !cuts_experts ? greatest_common(ep, tmp) : 1;
  if (ep > 1 && kv != tmp && tensor_experts != 1 && tensor_experts != tmp && tensor_experts != tmp / kv)
    return pl_fail(error, PL_UNSUPPORTED,
                   "ep=%d and %lld key-value heads over tmp=%d: %d tensor ranks with experts of their own are neither "
                   "those that share a head nor all of them",
                   ep, (long long)own->model->attention.n_kv_heads, tmp, tensor_experts);
  int32_t outer = ep > 1 ? ep / tensor_experts : 1; /* of experts, over context and data ranks */
  if (ep > 1 && !cuts_experts && tensor_experts != tmp && outer > 1)
    return pl_fail(error, PL_UNSUPPORTED, "ep=%d: groups that take a part of the tensor ranks and several replicas",
                   ep);
  int32_t context_experts = greatest_common(outer, cp), data_experts = outer / context_experts;
  if (context_experts != cp && data_experts > 1)
    return pl_fail(error, PL_UNSUPPORTED, "ep=%d: groups that take a part of the context ranks and several replicas",
                   ep);
  int32_t sharers = strategy->zero > 0 ? pl_strategy_sharers(strategy) : dp * cp;
  if (sharers < dp * cp) {
    PL_TRY(add_sharers(own, sharers, error));
  } else {
    add_split(own, "dp", "dpe", dp, data_experts, "b", true, true);
    add_split(own, "cp", "cpe", cp, context_experts, "st", true, true);
  }
  const char *tensor = strategy->sp ? "vgrfs" : "vgrf", *rest = strategy->sp ? "vrfdes" : "vrfde";
  if (ep > 1 && kv == tmp) {
    add_split(own, "tp", "tpe", tmp, tensor_experts, tensor, true, false);
  } else { /* tpr: ranks that share a key-value head */
    add_axis(own, "tp", kv, tensor, tensor_experts == tmp && tmp > 1, false);
    add_axis(own, "tpr", tmp / kv, rest, tensor_experts > 1, false);
  }
  return PL_OK;
}

/* The mesh numbers its devices tcdp; orders and placements say where each of them is. */
static pl_code take_places(filling *own, pl_error *error) {
  const pl_strategy *strategy = own->strategy;
  int32_t replicas = pl_strategy_replicas(strategy), at = 0;
  bool in_order = true;
  uint32_t *places = PL_TAKE(own->tree->arena, uint32_t, pl_strategy_n_ranks(strategy));
  if (places == NULL) return pl_fail_memory(error, "a strategy tree");
  for (int32_t stage = 0; stage < strategy->pp; stage++)
    for (int32_t replica = 0; replica < replicas; replica++)
      for (int32_t tensor = 0; tensor < strategy->tmp; tensor++, at++) {
        places[at] = pl_strategy_device(strategy, stage, replica, tensor);
        in_order = in_order && places[at] == (uint32_t)at;
      }
  if (in_order) return PL_OK;
  own->tree->places = places;
  own->tree->n_places = at;
  return PL_OK;
}

/* ---- chunks ---- */

/* Block of layer `layer` of a program: of a model of unlike blocks those that do nothing, and the loss, have no number.
 */
static int32_t block_of_layer(const pl_model *model, int32_t layer) {
  if (model->unlike.parts == NULL) return PL_MODEL_BLOCKS_BEFORE_LAYERS + layer;
  for (int32_t block = 0; block < pl_model_n_blocks(model); block++) {
    pl_block_kind kind = pl_model_block_kind(model, block);
    if (kind != PL_BLOCK_IDENTITY && kind != PL_BLOCK_MEAN && layer-- == 0) return block;
  }
  return pl_model_n_blocks(model) - 1;
}

/* The block that a call stands for, by its callee and instance (workloads/import/program_build.h). */
static int32_t block_of(const filling *own, const char *callee, const char *instance) {
  static const char *const ends[] = {"final_norm", "head", "loss"};
  int32_t behind = PL_MODEL_BLOCKS_BEFORE_LAYERS + own->model->n_layers;
  for (int32_t i = 0; i < 3; i++)
    if (strcmp(callee, ends[i]) == 0) return behind + 1 + i;
  if (strncmp(callee, "mtp", 3) == 0 || strncmp(instance, "mtp.", 4) == 0) return behind + 3; /* beside the loss */
  if (strncmp(instance, "h.", 2) != 0) return 0;
  return block_of_layer(own->model, (int32_t)strtol(instance + 2, NULL, 10));
}

static int32_t chunk_of_block(const filling *own, int32_t block) {
  int32_t chunk = 0;
  while (chunk + 1 < pl_strategy_n_chunks(own->strategy) && own->strategy->boundary[chunk + 1] <= block)
    chunk++;
  return chunk;
}

/* A chunk's first layers, by their instances, are recomputed where not all are. */
static pl_code recompute_first(filling *own, int32_t chunk_node, pl_error *error) {
  int32_t n = own->strategy->recompute_layers, at = 0;
  if (n == 0) return PL_OK;
  const pl_tree_node *of = &own->tree->nodes[chunk_node];
  while (at < of->n_patterns && strncmp(of->patterns[at].text, "h.", 2) != 0)
    at++;
  if (at == of->n_patterns) return PL_OK;
  pl_tree_node *node = pl_tree_add(own->tree, chunk_node);
  if (node == NULL) return pl_fail_memory(error, "a strategy tree");
  of = &own->tree->nodes[chunk_node];
  node->patterns = of->patterns + at;
  while (node->n_patterns < n && at + node->n_patterns < of->n_patterns &&
         strncmp(node->patterns[node->n_patterns].text, "h.", 2) == 0)
    node->n_patterns++;
  node->schedule.has_recompute = true;
  node->schedule.recompute = own->strategy->recompute;
  return PL_OK;
}

/* Cuts of the loss under sequence parallelism: ranks that have a part of the vocabulary have all tokens, as what comes
 * out of the logits is one number a token; cut on s it would take the logits' derivative, v times as large, from parts
 * of v to parts of s and back. */
static pl_tree_cut *cuts_of_loss(const filling *own) {
  pl_tree_cut *cuts = PL_TAKE(own->tree->arena, pl_tree_cut, PL_TREE_CUTS_MAX);
  const pl_ir_name v = pl_ir_name_of("v"), s = pl_ir_name_of("s");
  for (int32_t i = 0; cuts != NULL && i < own->n_cuts; i++) {
    const pl_tree_cut *from = &own->cuts[i];
    bool of_vocabulary = false;
    cuts[i] = *from;
    cuts[i].n_dims = 0;
    for (int32_t d = 0; d < from->n_dims; d++)
      of_vocabulary = of_vocabulary || pl_ir_name_equal(from->dims[d], v);
    for (int32_t d = 0; d < from->n_dims; d++)
      if (!of_vocabulary || !pl_ir_name_equal(from->dims[d], s)) cuts[i].dims[cuts[i].n_dims++] = from->dims[d];
  }
  return cuts;
}

static bool is_loss(const char *name) {
  size_t length = strlen(name);
  return strcmp(name, "loss") == 0 || (strncmp(name, "mtp", 3) == 0 && strcmp(name + length - 5, "_loss") == 0);
}

static pl_code lay_out_losses(filling *own, int32_t chunk_node, pl_error *error) {
  int32_t n = own->tree->nodes[chunk_node].n_patterns;
  pl_tree_cut *cuts = NULL;
  for (int32_t i = 0; i < n; i++) {
    const pl_tree_pattern *pattern = &own->tree->nodes[chunk_node].patterns[i];
    if (!is_loss(pattern->text)) continue;
    if (cuts == NULL) cuts = cuts_of_loss(own);
    pl_tree_node *node = pl_tree_add(own->tree, chunk_node);
    if (node == NULL || cuts == NULL) return pl_fail_memory(error, "a strategy tree");
    node->patterns = pattern;
    node->n_patterns = 1;
    node->cuts = cuts;
    node->n_cuts = own->n_cuts;
  }
  return PL_OK;
}

static pl_code add_chunks(filling *own, const pl_ir_module *program, pl_error *error) {
  const pl_ir_function *main = program->functions[program->classes[0].chunks[0].forward];
  int32_t n_chunks = pl_strategy_n_chunks(own->strategy);
  pl_arena *arena = own->tree->arena;
  int32_t *chunk_of = PL_TAKE(arena, int32_t, main->n_ops + 1), *n = PL_TAKE(arena, int32_t, n_chunks);
  pl_tree_pattern *patterns = PL_TAKE(arena, pl_tree_pattern, main->n_ops + 1);
  if (chunk_of == NULL || n == NULL || patterns == NULL) return pl_fail_memory(error, "a strategy tree");
  for (int32_t i = 0; i < main->n_ops; i++) {
    const pl_ir_op *op = &main->ops[i];
    chunk_of[i] = op->callee == PL_IR_NONE ? -1
                                           : chunk_of_block(own, block_of(own, program->functions[op->callee]->name,
                                                                          op->path != NULL ? op->path : ""));
  }
  for (int32_t chunk = 0; chunk < n_chunks; chunk++) {
    pl_tree_node *node = pl_tree_add(own->tree, 0);
    if (node == NULL) return pl_fail_memory(error, "a strategy tree");
    node->patterns = patterns;
    for (int32_t i = 0; i < main->n_ops; i++) {
      const pl_ir_op *op = &main->ops[i];
      if (chunk_of[i] != chunk) continue;
      bool bare = op->path == NULL || op->path[0] == 0;
      patterns[node->n_patterns++] = (pl_tree_pattern){.text = bare ? program->functions[op->callee]->name : op->path};
    }
    patterns += node->n_patterns;
  }
  for (int32_t chunk = 0; chunk < n_chunks; chunk++)
    PL_TRY(recompute_first(own, 1 + chunk, error));
  for (int32_t chunk = 0; own->strategy->sp && own->strategy->tmp > 1 && chunk < n_chunks; chunk++)
    PL_TRY(lay_out_losses(own, 1 + chunk, error));
  return PL_OK;
}

pl_code pl_tree_of_strategy(const pl_strategy *strategy, const pl_model *model, const pl_ir_module *program,
                            pl_arena *arena, pl_strategy_tree *tree, pl_error *error) {
  PL_TRY(pl_tree_init(tree, "the recipe", arena, error));
  filling own = {.tree = tree, .strategy = strategy, .model = model};
  own.cuts = PL_TAKE(arena, pl_tree_cut, PL_TREE_CUTS_MAX);
  if (own.cuts == NULL) return pl_fail_memory(error, "a strategy tree");
  PL_TRY(take_mesh(&own, error));
  PL_TRY(take_places(&own, error));
  pl_tree_node *root = &tree->nodes[0];
  root->cuts = own.cuts;
  root->n_cuts = own.n_cuts;
  root->has_ring = true;
  root->ring = !strategy->cp_gather;
  root->schedule.has_recompute = true;
  root->schedule.recompute = strategy->recompute_layers > 0 ? PL_RECOMPUTE_NONE : strategy->recompute;
  for (int32_t i = 0; i < PL_LAYOUT_TENSOR_COUNT; i++) {
    bool host = (i == PL_LAYOUT_STATES && strategy->offload_states) ||
                (i == PL_LAYOUT_GRADIENTS && strategy->offload_gradients) ||
                (i == PL_LAYOUT_KEPT && strategy->offload_kept);
    root->memory[i].host = host;
    root->memory[i].is_said = root->memory[i].is_said || host;
  }
  tree->strategy = *strategy;
  return add_chunks(&own, program, error);
}
