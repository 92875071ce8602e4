/* See workloads/tree/tree_planning.h: the axes of a stage, and every leaf on them.
 *
 * A partition of N devices, outermost first, has its cuts at running products of its degrees: {b: 2, f: 4} of 8 covers
 * (1, 2] and (2, 8]. The ends of all cuts of all partitions are boundaries; where each divides the next, the ratios are
 * axes, and every cut is a run of them. Where two do not, no axes say both. */
#include <stdlib.h>
#include <string.h>

#include "core/base/words.h"
#include "workloads/tree/tree_planning.h"

enum { BOUNDARIES_MAX = 64 };

/* Running products from `low` to `high`. */
typedef struct range {
  int64_t low, high;
} range;

typedef struct boundary {
  int64_t at;
  pl_tree_place place;
} boundary;

typedef struct meshing {
  pl_tree_planning *own;
  boundary boundaries[BOUNDARIES_MAX];
  int32_t n;
  range axes[PL_IR_AXES_MAX]; /* of the mesh that is made, without the pipeline's */
  int32_t n_axes;
  bool pictures; /* the model's: x is their width, else experts */
} meshing;

/* ---- where cuts lie ---- */

static range range_of_axis(const pl_strategy_tree *tree, int32_t axis) {
  range is = {.low = 1};
  for (int32_t i = 0; i < axis; i++)
    is.low *= tree->mesh.axes[i].extent;
  is.high = is.low * tree->mesh.axes[axis].extent;
  return is;
}

/* Ranges of cut `index` of a node: one, or one for each axis that it names. Returns how many. */
static int32_t ranges_of(const pl_strategy_tree *tree, const pl_tree_node *node, int32_t index,
                         range ranges[PL_IR_AXES_MAX]) {
  const pl_tree_cut *cut = &node->cuts[index];
  for (int32_t i = 0; i < cut->n_axes; i++)
    ranges[i] = range_of_axis(tree, pl_ir_mesh_find(&tree->mesh, cut->axes[i]));
  if (cut->n_axes > 0) return cut->n_axes;
  ranges[0].low = 1;
  for (int32_t i = 0; i < index; i++)
    ranges[0].low *= node->cuts[i].degree;
  ranges[0].high = ranges[0].low * cut->degree;
  return 1;
}

int64_t pl_tree_degree_of(const pl_strategy_tree *tree, int32_t node) {
  int64_t degree = 1;
  const pl_tree_node *at = node >= 0 ? &tree->nodes[node] : NULL;
  for (int32_t i = 0; at != NULL && i < at->n_cuts && degree < PL_TREE_DEGREE_MAX; i++)
    if (at->cuts[i].n_axes == 0) degree *= at->cuts[i].degree;
  return degree;
}

static pl_code check_degrees(const pl_tree_planning *own, const pl_tree_node *node) {
  int32_t named = 0;
  int64_t degree = 1;
  for (int32_t i = 0; i < node->n_cuts; i++) {
    const pl_tree_cut *cut = &node->cuts[i];
    named += cut->n_axes > 0;
    if (named > 0 && named != i + 1)
      return pl_tree_fail(cut->place, own->error,
                          "a partition says degrees or axes, not some of each: their order would say nothing");
    if (cut->n_axes > 0) continue;
    degree *= cut->degree;
    if (degree <= own->devices && own->devices % degree == 0) continue;
    return pl_tree_fail(cut->place, own->error, "a stage has %d devices: they cannot be cut into %lld", own->devices,
                        (long long)degree);
  }
  for (int32_t i = 0; i < node->n_cuts; i++)
    for (int32_t k = i + 1; k < node->n_cuts; k++)
      for (int32_t a = 0; a < node->cuts[i].n_axes; a++)
        for (int32_t b = 0; b < node->cuts[k].n_axes; b++)
          if (pl_ir_name_equal(node->cuts[i].axes[a], node->cuts[k].axes[b]))
            return pl_tree_fail(node->cuts[k].place, own->error, "axis %s is cut over already, at %s",
                                node->cuts[i].axes[a].text, node->cuts[i].dims[0].text);
  return PL_OK;
}

static void add_boundary(meshing *all, int64_t at, pl_tree_place place) {
  for (int32_t i = 0; i < all->n; i++)
    if (all->boundaries[i].at == at) return;
  if (all->n < BOUNDARIES_MAX) all->boundaries[all->n++] = (boundary){.at = at, .place = place};
}

/* ---- memory ---- */

static pl_code fail_over(const pl_tree_planning *own, const pl_tree_spread *spread, int32_t k,
                         const pl_tree_node *partition) {
  const char *names[PL_TREE_CUTS_MAX * PL_TREE_DIMS_MAX + PL_IR_AXES_MAX + 1];
  int32_t n = 0;
  for (int32_t i = 0; i < own->tree->mesh.n_axes; i++)
    names[n++] = own->tree->mesh.axes[i].name.text;
  for (int32_t i = 0; partition != NULL && i < partition->n_cuts; i++)
    for (int32_t d = 0; d < partition->cuts[i].n_dims; d++)
      names[n++] = partition->cuts[i].dims[d].text;
  names[n] = NULL;
  char hint[PL_WORDS_HINT_BYTES], list[PL_WORDS_BYTES];
  return pl_tree_fail(spread->place, own->error,
                      "'%s' is no dimension that the partition cuts and no axis; there are %s%s", spread->over[k].text,
                      pl_words_list(names, list, sizeof(list)), pl_words_hint(names, spread->over[k].text, hint));
}

/* Whether any partition of the tree cuts the dimension. */
static bool is_cut_somewhere(const pl_strategy_tree *tree, pl_ir_name dim) {
  for (int32_t i = 0; i < tree->n_nodes; i++)
    for (int32_t c = 0; c < tree->nodes[i].n_cuts; c++)
      for (int32_t d = 0; d < tree->nodes[i].cuts[c].n_dims; d++)
        if (pl_ir_name_equal(tree->nodes[i].cuts[c].dims[d], dim)) return true;
  return false;
}

/* Ranges that a tensor is spread over besides: none where the partition does not cut what others do. */
static pl_code spread_ranges(const pl_tree_planning *own, const pl_tree_spec *spec, pl_layout_tensor tensor,
                             range ranges[4 * PL_IR_AXES_MAX], int32_t *n) {
  *n = 0;
  if (spec->memory[tensor] < 0) return PL_OK;
  const pl_tree_spread *spread = &pl_tree_node_at(own, spec->memory[tensor])->memory[tensor];
  const pl_tree_node *partition = spec->partition >= 0 ? pl_tree_node_at(own, spec->partition) : NULL;
  for (int32_t k = 0; k < spread->n; k++) {
    int32_t axis = pl_ir_mesh_find(&own->tree->mesh, spread->over[k]), before = *n;
    if (axis >= 0) ranges[(*n)++] = range_of_axis(own->tree, axis);
    for (int32_t i = 0; axis < 0 && partition != NULL && i < partition->n_cuts; i++)
      for (int32_t d = 0; d < partition->cuts[i].n_dims && *n < 3 * PL_IR_AXES_MAX; d++)
        if (pl_ir_name_equal(partition->cuts[i].dims[d], spread->over[k]))
          *n += ranges_of(own->tree, partition, i, &ranges[*n]);
    if (*n == before && !is_cut_somewhere(own->tree, spread->over[k])) return fail_over(own, spread, k, partition);
    if (*n == before || spread->degree[k] == 0) continue;
    range *last = &ranges[*n - 1];
    if (*n != before + 1 || (last->high / last->low) % spread->degree[k] != 0)
      return pl_tree_fail(spread->place, own->error, "%s is cut over %lld devices: not the innermost %d of them",
                          spread->over[k].text, (long long)(last->high / last->low), spread->degree[k]);
    last->low = last->high / spread->degree[k];
  }
  return PL_OK;
}

/* ---- the axes ---- */

static pl_code take_boundaries(meshing *all) {
  const pl_tree_planning *own = all->own;
  add_boundary(all, 1, own->tree->nodes[0].place);
  for (int32_t i = 0; i < own->tree->mesh.n_axes; i++)
    add_boundary(all, range_of_axis(own->tree, i).high, own->tree->mesh_at);
  for (int32_t s = 0; s < own->n_specs; s++) {
    const pl_tree_spec *spec = &own->specs[s];
    const pl_tree_node *node = spec->partition >= 0 ? pl_tree_node_at(own, spec->partition) : NULL;
    range ranges[4 * PL_IR_AXES_MAX];
    if (node != NULL) PL_TRY(check_degrees(own, node));
    for (int32_t i = 0; node != NULL && i < node->n_cuts; i++)
      for (int32_t k = ranges_of(own->tree, node, i, ranges); k-- > 0;) {
        add_boundary(all, ranges[k].low, node->cuts[i].place);
        add_boundary(all, ranges[k].high, node->cuts[i].place);
      }
    for (int32_t tensor = 0; tensor < PL_LAYOUT_TENSOR_COUNT; tensor++) {
      int32_t n;
      PL_TRY(spread_ranges(own, spec, (pl_layout_tensor)tensor, ranges, &n));
      for (int32_t k = 0; k < n; k++)
        add_boundary(all, ranges[k].low, pl_tree_node_at(own, spec->memory[tensor])->memory[tensor].place);
    }
  }
  for (int32_t stage = 0; stage < own->plan->schedule.pp; stage++)
    add_boundary(all, own->plan->stage_devices[stage], own->tree->nodes[0].place);
  add_boundary(all, own->devices, own->tree->nodes[0].place);
  return PL_OK;
}

static int by_place(const void *a, const void *b) {
  const boundary *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

static pl_code refine(meshing *all) {
  const pl_tree_planning *own = all->own;
  char text[PL_TREE_PLACE_BYTES];
  qsort(all->boundaries, (size_t)all->n, sizeof(*all->boundaries), by_place);
  int32_t most = PL_IR_AXES_MAX - own->plan->has_pipeline_axis;
  for (int32_t i = 1; i < all->n; i++) {
    const boundary *before = &all->boundaries[i - 1], *at = &all->boundaries[i];
    if (at->at % before->at != 0)
      return pl_tree_fail(
          at->place, own->error,
          "the %d devices of a stage are cut into the first %lld here and into the first %lld at %s: no "
          "axes say both; let one divide the other",
          own->devices, (long long)at->at, (long long)before->at, pl_tree_place_text(before->place, text));
    if (all->n_axes == most)
      return pl_tree_fail(at->place, own->error,
                          "all partitions together cut the devices of a stage in more than %d ways; let more of them "
                          "agree",
                          most);
    all->axes[all->n_axes++] = (range){.low = before->at, .high = at->at};
  }
  return PL_OK;
}

static bool lies_in(range inner, range outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

/* What a partition calls the devices along an axis; NULL: it does not cut them. */
static const char *stem_in(const meshing *all, int32_t axis, int32_t partition) {
  const pl_tree_planning *own = all->own;
  const pl_tree_node *node = partition >= 0 ? pl_tree_node_at(own, partition) : NULL;
  range ranges[PL_IR_AXES_MAX];
  for (int32_t i = 0; node != NULL && i < node->n_cuts; i++) {
    const pl_tree_cut *cut = &node->cuts[i];
    ranges_of(own->tree, node, i, ranges);
    if (cut->n_dims == 0 || !lies_in(all->axes[axis], ranges[0])) continue;
    return strcmp(cut->dims[0].text, "b") == 0 ? "dp" : strcmp(cut->dims[0].text, "s") == 0 ? "cp" : "tp";
  }
  return NULL;
}

/* After the axis of the tree's mesh that it is or lies in; else after what the first module cuts over it, the next ...
 */
static const char *stem_of(const meshing *all, int32_t axis) {
  const pl_tree_planning *own = all->own;
  const char *stem = NULL;
  for (int32_t i = 0; i < own->tree->mesh.n_axes; i++)
    if (lies_in(all->axes[axis], range_of_axis(own->tree, i))) return own->tree->mesh.axes[i].name.text;
  for (int32_t i = 0; i < own->plan->n_modules && stem == NULL; i++)
    stem = stem_in(all, axis, own->specs[own->calls[i].spec].partition);
  for (int32_t i = 0; i < own->n_specs && stem == NULL; i++)
    stem = stem_in(all, axis, own->specs[i].partition);
  return stem != NULL ? stem : "rp";
}

static pl_ir_name name_of(const meshing *all, const pl_ir_mesh *mesh, int32_t axis) {
  const char *stem = stem_of(all, axis);
  char name[PL_IR_NAME_MAX];
  snprintf(name, sizeof(name), "%s", stem);
  for (int32_t i = 2; pl_ir_mesh_find(mesh, pl_ir_name_of(name)) >= 0; i++)
    snprintf(name, sizeof(name), "%.12s.%d", stem, i);
  return pl_ir_name_of(name);
}

static void take_axes(const meshing *all, pl_ir_mesh *mesh) {
  const pl_tree_plan *plan = all->own->plan;
  *mesh = (pl_ir_mesh){0};
  if (plan->has_pipeline_axis)
    mesh->axes[mesh->n_axes++] = (pl_ir_axis){.name = pl_ir_name_of("pp"), .extent = plan->schedule.pp};
  for (int32_t i = 0; i < all->n_axes; i++) {
    pl_ir_axis made = {.name = name_of(all, mesh, i), .extent = (int32_t)(all->axes[i].high / all->axes[i].low)};
    mesh->axes[mesh->n_axes++] = made;
  }
}

/* ---- leaves ---- */

static bool is(pl_ir_name name, const char *text) {
  return strcmp(name.text, text) == 0;
}

/* What modules hand each other lies as it is computed with; along a recipe's axes as frameworks have it. (Layers of
 * plain MLPs are split by outputs and by inputs in turn: what is between them stays cut.) */
static bool is_handed(pl_ir_name dim, bool recipe, pl_axis_role role) {
  if (is(dim, "t") || (recipe && is(dim, "x"))) return false;
  return !recipe || role != PL_AXIS_TENSOR || is(dim, "v") || is(dim, "g") || is(dim, "s") || is(dim, "f");
}

static void use_axis(const pl_tree_cut *cut, bool recipe, bool pictures, pl_layout_use *use) {
  if (cut->n_dims == 0) return;
  bool of_picture = is(cut->dims[0], "y") || (pictures && is(cut->dims[0], "x"));
  use->role = is(cut->dims[0], "b") || of_picture ? PL_AXIS_DATA
              : is(cut->dims[0], "s")             ? PL_AXIS_CONTEXT
                                                  : PL_AXIS_TENSOR;
  bool has_keys = false;
  for (int32_t i = 0; i < cut->n_dims; i++) {
    use->dims[use->n_dims++] = cut->dims[i];
    has_keys = has_keys || is(cut->dims[i], "t");
    if (is_handed(cut->dims[i], recipe, (pl_axis_role)use->role)) use->handed[use->n_handed++] = cut->dims[i];
  }
  if (use->role == PL_AXIS_CONTEXT && !has_keys) use->dims[use->n_dims++] = pl_ir_name_of("t");
}

static bool has_pictures(const pl_ir_module *model) {
  for (int32_t f = 0; f < model->n_functions; f++)
    for (int32_t i = 0; i < model->functions[f]->n_ops; i++)
      if (pl_ir_attribute_find(&model->functions[f]->ops[i], "window") != NULL) return true;
  return false;
}

/* Tokens may be in another order than they come only where nothing but attention, which compares positions, asks for
 * it.
 */
static bool may_reorder(const pl_ir_module *model) {
  bool attends = false;
  for (int32_t f = 0; f < model->n_functions; f++)
    for (int32_t i = 0; i < model->functions[f]->n_ops; i++) {
      const pl_ir_op *op = &model->functions[f]->ops[i];
      const char *row = pl_ir_row_at(op->row)->name;
      attends = attends || strcmp(row, "attention") == 0;
      if (strcmp(row, "triangle") == 0 || pl_ir_op_has_name(op, "window", pl_ir_name_of("s"))) return false;
    }
  return attends;
}

static pl_code take_rules(const meshing *all, const pl_tree_spec *spec, pl_layout_rules *rules) {
  const pl_tree_planning *own = all->own;
  const pl_tree_node *node = spec->partition >= 0 ? pl_tree_node_at(own, spec->partition) : NULL;
  int32_t first = own->plan->has_pipeline_axis;
  bool recipe = own->tree->strategy.pp > 0, context = false;
  range ranges[4 * PL_IR_AXES_MAX];
  memset(rules, 0, sizeof(*rules)); /* leaves are compared as bytes */
  rules->mesh = own->plan->mesh;
  rules->whole_experts = recipe && !pl_strategy_cuts_experts(&own->tree->strategy);
  rules->zero = recipe ? own->tree->strategy.zero : 0;
  for (int32_t axis = 0; axis < all->n_axes; axis++) {
    pl_layout_use *use = &rules->on[first + axis];
    use->role = PL_AXIS_REPLICATED;
    for (int32_t i = 0; node != NULL && i < node->n_cuts; i++)
      for (int32_t k = ranges_of(own->tree, node, i, ranges); k-- > 0;)
        if (lies_in(all->axes[axis], ranges[k])) use_axis(&node->cuts[i], recipe, all->pictures, use);
    context = context || use->role == PL_AXIS_CONTEXT;
    for (int32_t tensor = 0; tensor < PL_LAYOUT_TENSOR_COUNT; tensor++) {
      int32_t n;
      PL_TRY(spread_ranges(own, spec, (pl_layout_tensor)tensor, ranges, &n));
      for (int32_t k = 0; k < n; k++)
        use->extra[tensor] = use->extra[tensor] || lies_in(all->axes[axis], ranges[k]);
    }
  }
  for (int32_t tensor = 0; tensor < PL_LAYOUT_TENSOR_COUNT; tensor++)
    rules->host[tensor] = spec->memory[tensor] >= 0 && pl_tree_node_at(own, spec->memory[tensor])->memory[tensor].host;
  if (rules->host[PL_LAYOUT_GRADIENTS] && !rules->host[PL_LAYOUT_STATES]) {
    const pl_tree_spread *said = &pl_tree_node_at(own, spec->memory[PL_LAYOUT_GRADIENTS])->memory[PL_LAYOUT_GRADIENTS];
    return pl_tree_fail(said->place, own->error,
                        "gradients lie in the host for its processors to update with: say states: host too");
  }
  rules->ring = spec->ring >= 0 && pl_tree_node_at(own, spec->ring)->ring && context;
  return PL_OK;
}

static pl_code take_leaves(meshing *all) {
  pl_tree_planning *own = all->own;
  pl_tree_plan *plan = own->plan;
  plan->leaves = PL_TAKE(own->arena, pl_tree_leaf, own->n_specs + 1);
  if (plan->leaves == NULL) return pl_fail_memory(own->error, "a strategy tree");
  plan->zigzag = 1;
  all->pictures = has_pictures(own->model);
  bool reorders = may_reorder(own->model);
  for (int32_t s = 0; s < own->n_specs; s++) {
    pl_tree_spec *spec = &own->specs[s];
    pl_tree_leaf *made = &plan->leaves[plan->n_leaves];
    int32_t context = 1;
    made->node = spec->partition;
    PL_TRY(take_rules(all, spec, &made->rules));
    for (int32_t axis = 0; axis < plan->mesh.n_axes; axis++)
      if (made->rules.on[axis].role == PL_AXIS_CONTEXT) context *= plan->mesh.axes[axis].extent;
    if (context > plan->zigzag && reorders) plan->zigzag = context;
    spec->leaf = 0;
    while (memcmp(&plan->leaves[spec->leaf].rules, &made->rules, sizeof(made->rules)) != 0)
      spec->leaf++;
    plan->n_leaves += spec->leaf == plan->n_leaves;
  }
  for (int32_t i = 0; i < plan->n_leaves; i++)
    plan->leaves[i].rules.cp = plan->zigzag;
  return PL_OK;
}

/* Axes that a stage of fewer devices than others has no use for: it has their first place alone. */
static pl_code take_fixed_axes(const meshing *all) {
  pl_tree_plan *plan = all->own->plan;
  bool any = false;
  uint32_t *fixed = PL_TAKE(all->own->arena, uint32_t, plan->schedule.pp);
  if (fixed == NULL) return pl_fail_memory(all->own->error, "a strategy tree");
  for (int32_t stage = 0; stage < plan->schedule.pp; stage++)
    for (int32_t axis = 0; axis < all->n_axes; axis++)
      if (all->axes[axis].high > plan->stage_devices[stage]) {
        fixed[stage] |= 1u << (axis + plan->has_pipeline_axis);
        any = true;
      }
  if (any) plan->fixed_axes = fixed;
  return PL_OK;
}

pl_code pl_tree_take_mesh(pl_tree_planning *own) {
  meshing *all = PL_TAKE(own->scratch, meshing, 1);
  if (all == NULL) return pl_fail_memory(own->error, "a strategy tree");
  all->own = own;
  own->plan->has_pipeline_axis = own->plan->schedule.pp > 1;
  PL_TRY(take_boundaries(all));
  PL_TRY(refine(all));
  take_axes(all, &own->plan->mesh);
  PL_TRY(take_fixed_axes(all));
  return take_leaves(all);
}
