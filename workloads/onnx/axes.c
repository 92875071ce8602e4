/* See workloads/onnx/axes.h. */
#include "workloads/onnx/axes.h"

#include <string.h>

static bool grow(pl_axes *axes) {
  pl_axis *all = pl_arena_grown(axes->arena, axes->all, (size_t)axes->n, 1, sizeof *all, &axes->room);
  if (all == NULL) return false;
  axes->all = all;
  return true;
}

static int32_t put_parts(pl_axes *axes, int32_t n, const int32_t *parts) {
  int32_t *all =
      pl_arena_grown(axes->arena, axes->parts, (size_t)axes->n_parts, (size_t)n, sizeof *all, &axes->room_parts);
  if (all == NULL) return PL_AXIS_NONE;
  axes->parts = all;
  memcpy(axes->parts + axes->n_parts, parts, (size_t)n * sizeof(*parts));
  axes->n_parts += n;
  return axes->n_parts - n;
}

int32_t pl_axis_new(pl_axes *axes, int64_t extent) {
  if (!grow(axes)) return PL_AXIS_NONE;
  axes->all[axes->n] = (pl_axis){.extent = extent,
                                 .parent = axes->n,
                                 .copy_of = PL_AXIS_NONE,
                                 .first_apart = PL_AXIS_NONE,
                                 .last_apart = PL_AXIS_NONE,
                                 .group = axes->n};
  return axes->n++;
}

int32_t pl_axis_find(const pl_axes *axes, int32_t axis) {
  while (axis != PL_AXIS_NONE && axes->all[axis].parent != axis) {
    pl_axis *at = &axes->all[axis];
    at->parent = axes->all[at->parent].parent;
    axis = at->parent;
  }
  return axis;
}

int32_t pl_axis_group(const pl_axes *axes, int32_t leaf) {
  leaf = pl_axis_find(axes, leaf);
  while (axes->all[leaf].group != leaf) {
    pl_axis *at = &axes->all[leaf];
    at->group = axes->all[at->group].group;
    leaf = at->group;
  }
  return leaf;
}

int32_t pl_axis_of(pl_axes *axes, const pl_axis_list *list) {
  if (list->n == 0) return PL_AXIS_NONE;
  if (list->n == 1) return list->leaf[0];
  int64_t extent = 1;
  for (int32_t i = 0; i < list->n; i++)
    extent *= axes->all[list->leaf[i]].extent;
  int32_t made = pl_axis_new(axes, extent);
  if (made == PL_AXIS_NONE) return made;
  axes->all[made].first_part = put_parts(axes, list->n, list->leaf);
  axes->all[made].n_parts = list->n;
  return made;
}

bool pl_axis_leaves(const pl_axes *axes, int32_t axis, pl_axis_list *list) {
  axis = pl_axis_find(axes, axis);
  if (axis == PL_AXIS_NONE) return true;
  const pl_axis *at = &axes->all[axis];
  for (int32_t i = 0; i < at->n_parts; i++)
    if (!pl_axis_leaves(axes, axes->parts[at->first_part + i], list)) return false;
  if (at->n_parts > 0) return true;
  if (list->n == PL_AXIS_LEAVES_MAX) return false;
  list->leaf[list->n++] = axis;
  return true;
}

static void put_apart(pl_axes *axes, int32_t axis, int32_t other) {
  pl_apart *all = pl_arena_grown(axes->arena, axes->apart, (size_t)axes->n_apart, 1, sizeof *all, &axes->room_apart);
  if (all == NULL) return;
  axes->apart = all;
  pl_axis *at = &axes->all[axis];
  axes->apart[axes->n_apart] = (pl_apart){other, at->first_apart};
  at->first_apart = axes->n_apart++;
  if (at->last_apart == PL_AXIS_NONE) at->last_apart = at->first_apart;
  at->n_apart++;
}

void pl_axis_keep_apart(pl_axes *axes, int32_t a, int32_t b) {
  a = pl_axis_find(axes, a);
  b = pl_axis_find(axes, b);
  if (a == PL_AXIS_NONE || b == PL_AXIS_NONE || a == b) return;
  put_apart(axes, a, b);
  put_apart(axes, b, a);
}

void pl_axis_take_apart(pl_axes *axes, int32_t leaf, int64_t outer) {
  leaf = pl_axis_find(axes, leaf);
  int64_t extent = axes->all[leaf].extent;
  PL_ASSERT(axes->all[leaf].n_parts == 0 && extent % outer == 0);
  const int32_t parts[] = {pl_axis_new(axes, outer), pl_axis_new(axes, extent / outer)};
  int32_t first = put_parts(axes, 2, parts);
  if (axes->arena->failed) return;
  axes->all[leaf].first_part = first;
  axes->all[leaf].n_parts = 2;
  for (int32_t i = 0; i < 2; i++)
    for (int32_t at = axes->all[leaf].first_apart; at != PL_AXIS_NONE; at = axes->apart[at].next)
      put_apart(axes, parts[i], axes->apart[at].axis);
}

/* Whether `other` is one of those that the leaf is kept apart from, or a part of one. */
static bool lists(const pl_axes *axes, int32_t leaf, int32_t other) {
  for (int32_t at = axes->all[leaf].first_apart; at != PL_AXIS_NONE; at = axes->apart[at].next) {
    pl_axis_list of = {0};
    (void)pl_axis_leaves(axes, axes->apart[at].axis, &of);
    for (int32_t i = 0; i < of.n; i++)
      if (of.leaf[i] == other) return true;
  }
  return false;
}

static bool are_apart(const pl_axes *axes, int32_t a, int32_t b) {
  return axes->all[a].n_apart < axes->all[b].n_apart ? lists(axes, a, b) : lists(axes, b, a);
}

static void join_apart(pl_axes *axes, int32_t into, int32_t from) {
  pl_axis *a = &axes->all[into], *b = &axes->all[from];
  if (b->first_apart == PL_AXIS_NONE) return;
  if (a->last_apart == PL_AXIS_NONE)
    a->first_apart = b->first_apart;
  else
    axes->apart[a->last_apart].next = b->first_apart;
  a->last_apart = b->last_apart;
  a->n_apart += b->n_apart;
}

/* Two leaves; b lives on in a. */
static bool unite_leaves(pl_axes *axes, int32_t a, int32_t b) {
  if (a == b) return true;
  if (axes->all[a].extent != axes->all[b].extent || are_apart(axes, a, b)) return false;
  int32_t into = pl_axis_group(axes, a), from = pl_axis_group(axes, b);
  axes->all[b].parent = a;
  if (axes->all[a].copy_of == PL_AXIS_NONE) axes->all[a].copy_of = axes->all[b].copy_of;
  join_apart(axes, a, b);
  if (into == from) return true;
  axes->all[from].group = into;
  axes->all[into].roles |= axes->all[from].roles;
  return true;
}

/* Makes the lists nest: leaves of one that are too large for those of the other are taken apart. */
static bool align(pl_axes *axes, pl_axis_list *a, pl_axis_list *b) {
  for (int32_t i = 0; i < a->n && i < b->n; i++) {
    pl_axis_list *larger = axes->all[a->leaf[i]].extent > axes->all[b->leaf[i]].extent ? a : b;
    int64_t many = axes->all[larger->leaf[i]].extent, few = axes->all[(larger == a ? b : a)->leaf[i]].extent;
    if (many == few) continue;
    if (many % few != 0 || larger->n == PL_AXIS_LEAVES_MAX) return false;
    int32_t leaf = larger->leaf[i];
    pl_axis_take_apart(axes, leaf, few);
    if (axes->arena->failed) return false;
    memmove(&larger->leaf[i + 2], &larger->leaf[i + 1], (size_t)(larger->n - i - 1) * sizeof(int32_t));
    larger->leaf[i] = axes->parts[axes->all[leaf].first_part];
    larger->leaf[i + 1] = axes->parts[axes->all[leaf].first_part + 1];
    larger->n++;
  }
  return a->n == b->n;
}

/* Leaves of extent 1 are samples or tokens of which there is one: they matter to who has them only. */
static void drop_ones(const pl_axes *axes, pl_axis_list *list) {
  int32_t n = 0;
  for (int32_t i = 0; i < list->n; i++)
    if (axes->all[list->leaf[i]].extent > 1) list->leaf[n++] = list->leaf[i];
  list->n = n;
}

bool pl_axis_unite(pl_axes *axes, int32_t a, int32_t b) {
  pl_axis_list of_a = {0}, of_b = {0};
  a = pl_axis_find(axes, a);
  b = pl_axis_find(axes, b);
  if (a == b || a == PL_AXIS_NONE || b == PL_AXIS_NONE) return true;
  if (!pl_axis_leaves(axes, a, &of_a) || !pl_axis_leaves(axes, b, &of_b)) return false;
  if (of_a.n == 1 && of_b.n == 1) return unite_leaves(axes, of_a.leaf[0], of_b.leaf[0]);
  drop_ones(axes, &of_a);
  drop_ones(axes, &of_b);
  if (!align(axes, &of_a, &of_b)) return false;
  bool all = true;
  for (int32_t i = 0; i < of_a.n; i++)
    all = unite_leaves(axes, pl_axis_find(axes, of_a.leaf[i]), pl_axis_find(axes, of_b.leaf[i])) && all;
  return all;
}

int32_t pl_axis_copy(pl_axes *axes, int32_t axis) {
  pl_axis_list of = {0}, made = {0};
  if (!pl_axis_leaves(axes, axis, &of)) return PL_AXIS_NONE;
  for (int32_t i = 0; i < of.n; i++) {
    int32_t leaf = pl_axis_new(axes, axes->all[of.leaf[i]].extent);
    if (leaf == PL_AXIS_NONE) return leaf;
    axes->all[leaf].copy_of = of.leaf[i];
    pl_axis_keep_apart(axes, leaf, of.leaf[i]);
    made.leaf[made.n++] = leaf;
  }
  return pl_axis_of(axes, &made);
}

bool pl_axis_meets(const pl_axes *axes, int32_t axis, const pl_axis_list *list) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(axes, axis, &of);
  for (int32_t i = 0; i < of.n; i++)
    for (int32_t k = 0; k < list->n; k++)
      if (of.leaf[i] == list->leaf[k]) return true;
  return false;
}

void pl_axis_same_name(pl_axes *axes, int32_t leaf, int32_t other) {
  int32_t into = pl_axis_group(axes, leaf), from = pl_axis_group(axes, other);
  if (into == from) return;
  axes->all[from].group = into;
  axes->all[into].roles |= axes->all[from].roles;
}

void pl_axis_mark(pl_axes *axes, int32_t axis, int32_t roles) {
  pl_axis_list of = {0};
  (void)pl_axis_leaves(axes, axis, &of);
  for (int32_t i = 0; i < of.n; i++)
    axes->all[pl_axis_group(axes, of.leaf[i])].roles |= roles;
}

bool pl_axis_is(const pl_axes *axes, int32_t leaf, int32_t role) {
  return (axes->all[pl_axis_group(axes, leaf)].roles & role) != 0;
}
