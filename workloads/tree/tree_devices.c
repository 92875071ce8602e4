/* See workloads/tree/tree_planning.h: devices that modules are given. */
#include <string.h>

#include "workloads/tree/tree_planning.h"

bool pl_tree_same_devices(const pl_tree_node *a, const pl_tree_node *b) {
  bool same = a->n_ranges == b->n_ranges;
  for (int32_t i = 0; i < a->n_ranges && same; i++)
    same = a->ranges[i].first == b->ranges[i].first && a->ranges[i].last == b->ranges[i].last;
  return same;
}

static int64_t count_of(const pl_tree_node *node) {
  int64_t n = 0;
  for (int32_t i = 0; i < node->n_ranges; i++)
    n += node->ranges[i].last - node->ranges[i].first + 1;
  return n;
}

const char *pl_tree_devices_text(const pl_tree_node *node, char text[PL_TREE_RANGES_BYTES]) {
  int length = 0;
  for (int32_t i = 0; i < node->n_ranges && length < PL_TREE_RANGES_BYTES; i++) {
    const pl_tree_devices *at = &node->ranges[i];
    const char *between = i > 0 ? ", " : "";
    size_t left = (size_t)(PL_TREE_RANGES_BYTES - length);
    length += at->first == at->last
                  ? snprintf(text + length, left, "%s%lld", between, (long long)at->first)
                  : snprintf(text + length, left, "%s%lld-%lld", between, (long long)at->first, (long long)at->last);
  }
  return text;
}

int32_t pl_tree_group_of(const pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups, int32_t node) {
  for (int32_t i = 0; i < n_groups; i++)
    if (pl_tree_same_devices(pl_tree_node_at(own, groups[i].node), pl_tree_node_at(own, node))) return i;
  return -1;
}

/* The devices that no group has, below the greatest that one has: left out on purpose, or by mistake. */
static pl_code remark_idle(pl_tree_planning *own, const int32_t *owner, int64_t n_numbers) {
  char text[PL_TREE_RANGES_BYTES] = "";
  int64_t n_idle = 0;
  size_t length = 0;
  for (int64_t d = 0; d < n_numbers; d++) {
    int64_t end = d;
    while (end < n_numbers && owner[end] == 0)
      end++;
    if (end == d) continue;
    int written = snprintf(text + length, sizeof text - length, end == d + 1 ? "%s%lld" : "%s%lld-%lld",
                           n_idle > 0 ? ", " : "", (long long)d, (long long)end - 1);
    if (length + (size_t)written < sizeof text) length += (size_t)written;
    n_idle += end - d;
    d = end;
  }
  if (n_idle == 0) return PL_OK;
  text[length] = '\0'; /* whole ranges only */
  return pl_tree_remark(own, "idle      %s %s: %lld of the devices 0 to %lld, which no node gives anything",
                        n_idle == 1 ? "device" : "devices", text, (long long)n_idle, (long long)n_numbers - 1);
}

/* No device is two groups'. */
static pl_code check_groups(pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups) {
  char mine[PL_TREE_RANGES_BYTES], other[PL_TREE_RANGES_BYTES], place[PL_TREE_PLACE_BYTES];
  int64_t n = 0, n_numbers = 0;
  for (int32_t i = 0; i < n_groups; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, groups[i].node);
    n += groups[i].n;
    for (int32_t r = 0; r < node->n_ranges; r++)
      if (node->ranges[r].last >= n_numbers) n_numbers = node->ranges[r].last + 1;
  }
  if (n > PL_TREE_DEGREE_MAX)
    return pl_tree_fail(pl_tree_node_at(own, groups[0].node)->devices_at, own->error, "%lld devices: at most %d",
                        (long long)n, PL_TREE_DEGREE_MAX);
  int32_t *owner = PL_TAKE(own->scratch, int32_t, n_numbers + 1); /* group, from 1 on */
  if (owner == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < n_groups; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, groups[i].node);
    for (int32_t r = 0; r < node->n_ranges; r++)
      for (int64_t d = node->ranges[r].first; d <= node->ranges[r].last; d++) {
        if (owner[d] != 0) {
          const pl_tree_node *first = pl_tree_node_at(own, groups[owner[d] - 1].node);
          return pl_tree_fail(node->devices_at, own->error,
                              "devices %s and %s (%s) share some: stages are on the same devices or on others",
                              pl_tree_devices_text(node, mine), pl_tree_devices_text(first, other),
                              pl_tree_place_text(first->devices_at, place));
        }
        owner[d] = i + 1;
      }
  }
  return n_groups > 0 ? remark_idle(own, owner, n_numbers) : PL_OK;
}

pl_code pl_tree_take_groups(pl_tree_planning *own, pl_tree_group *groups, int32_t *n_groups) {
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    int32_t node = own->calls[i].settings.node[PL_TREE_KEY_DEVICES];
    if (node < 0 || pl_tree_group_of(own, groups, *n_groups, node) >= 0) continue;
    const pl_tree_node *at = pl_tree_node_at(own, node);
    if (*n_groups == PL_TREE_STAGES_MAX)
      return pl_tree_fail(at->devices_at, own->error, "more than %d stages", PL_TREE_STAGES_MAX);
    groups[(*n_groups)++] = (pl_tree_group){.node = node, .n = count_of(at)};
  }
  return check_groups(own, groups, *n_groups);
}

/* ---- devices of a stage ---- */

/* The platform's devices, stage by stage; none where that is 0, 1 ... */
static pl_code take_places(pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups, bool unlike) {
  int64_t n = 0, at = 0;
  bool in_order = true;
  for (int32_t i = 0; i < n_groups; i++)
    n += groups[i].n;
  uint32_t *places = PL_TAKE(own->arena, uint32_t, n + 1);
  if (places == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < n_groups; i++) {
    const pl_tree_node *node = pl_tree_node_at(own, groups[i].node);
    for (int32_t r = 0; r < node->n_ranges; r++)
      for (int64_t d = node->ranges[r].first; d <= node->ranges[r].last; d++) {
        in_order = in_order && d == at;
        places[at++] = (uint32_t)d;
      }
  }
  if (in_order && !unlike) return PL_OK;
  own->plan->places = places;
  own->plan->n_places = (int32_t)n;
  return PL_OK;
}

/* No partition cuts more devices than the stage has. */
static pl_code check_spec(const pl_tree_planning *own, int32_t module, int32_t spec) {
  int32_t partition = own->specs[spec].partition;
  int64_t degree = pl_tree_degree_of(own->tree, partition);
  int32_t stage = own->calls[module].stage, n = own->plan->stage_devices[stage];
  if (degree <= n && n % degree == 0) return PL_OK;
  return pl_tree_fail(pl_tree_node_at(own, partition)->partition_at, own->error,
                      "%s is on stage %d, which has %d devices: they cannot be cut into %lld",
                      own->plan->modules[module].name, stage, n, (long long)degree);
}

static pl_code check_unlike(const pl_tree_planning *own) {
  if (own->tree->mesh.n_axes > 0)
    return pl_tree_fail(own->tree->mesh_at, own->error,
                        "a mesh names the devices of every stage, and stages have unlike numbers of them: give "
                        "partitions degrees instead");
  for (int32_t i = 0; i < own->plan->n_modules; i++) {
    PL_TRY(check_spec(own, i, own->calls[i].spec));
    for (int32_t k = 0; own->calls[i].ops != NULL && k < own->model->functions[own->calls[i].call->callee]->n_ops; k++)
      if (own->calls[i].ops[k].leaf >= 0) PL_TRY(check_spec(own, i, own->calls[i].ops[k].leaf));
  }
  return PL_OK;
}

/* As many as the partitions need, where no module is given any. */
static int64_t devices_needed(const pl_tree_planning *own) {
  const pl_strategy_tree *tree = own->tree;
  int64_t most = 1, of_mesh = 1;
  for (int32_t i = 0; i < tree->mesh.n_axes; i++)
    of_mesh *= tree->mesh.axes[i].extent;
  for (int32_t i = 0; i < own->n_specs; i++) {
    int64_t degree = pl_tree_degree_of(tree, own->specs[i].partition);
    if (degree > most) most = degree;
  }
  return tree->mesh.n_axes > 0 ? of_mesh : most;
}

pl_code pl_tree_count_devices(pl_tree_planning *own, const pl_tree_group *groups, int32_t n_groups) {
  const pl_strategy_tree *tree = own->tree;
  int32_t pp = own->plan->schedule.pp, stages = tree->pipeline.stages;
  int32_t *each = PL_TAKE(own->arena, int32_t, pp);
  int64_t most = n_groups == 0 ? devices_needed(own) : 0;
  bool unlike = false;
  if (each == NULL) return pl_fail_memory(own->error, "a strategy tree");
  for (int32_t i = 0; i < n_groups; i++) {
    unlike = unlike || groups[i].n != groups[0].n;
    if (groups[i].n > most) most = groups[i].n;
  }
  if (n_groups > 0 && stages > 0) {
    const pl_tree_node *whole = pl_tree_node_at(own, groups[0].node);
    if (most % stages != 0)
      return pl_tree_fail(whole->devices_at, own->error, "%d stages do not divide %lld devices", stages,
                          (long long)most);
    most /= stages;
  }
  if (n_groups > 0 && tree->mesh.n_axes > 0 && !unlike && most != devices_needed(own))
    return pl_tree_fail(tree->mesh_at, own->error, "the mesh has %lld devices, and a stage %lld",
                        (long long)devices_needed(own), (long long)most);
  if (most > PL_TREE_DEGREE_MAX)
    return pl_tree_fail(tree->nodes[0].place, own->error, "a stage of %lld devices: at most %d", (long long)most,
                        PL_TREE_DEGREE_MAX);
  own->devices = (int32_t)most;
  for (int32_t stage = 0; stage < pp; stage++)
    each[stage] = unlike ? (int32_t)groups[stage].n : (int32_t)most;
  own->plan->stage_devices = each;
  own->plan->places = tree->places;
  own->plan->n_places = tree->n_places;
  if (n_groups > 0) PL_TRY(take_places(own, groups, n_groups, unlike));
  return unlike ? check_unlike(own) : PL_OK;
}
