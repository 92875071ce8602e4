/* Names of axes (workloads/onnx/axes.h): one for each group, those of workloads/language/README.md where a group has
 * that meaning; groups that an op sees at once have different ones. Greedy, in the order in which groups first appear:
 * equal parts of a graph get equal names. */
#include <stdio.h>

#include "core/base/hash_index.h"
#include "workloads/onnx/axes.h"

typedef struct meeting {
  int32_t group, next; /* next meeting of the same group; PL_AXIS_NONE ends them */
} meeting;

typedef struct meetings {
  meeting *all;
  int32_t *first; /* by group */
  int32_t n;
  uint32_t room;
  pl_hash_index known;
  pl_arena *arena;
} meetings;

static bool push(meetings *own, int32_t of, int32_t group) {
  meeting *all = pl_arena_grown(own->arena, own->all, (size_t)own->n, 1, sizeof *all, &own->room);
  if (all == NULL) return false;
  own->all = all;
  own->all[own->n] = (meeting){group, own->first[of]};
  own->first[of] = own->n++;
  return true;
}

static bool meet(meetings *own, int32_t a, int32_t b) {
  uint64_t pair = pl_hash_word(pl_hash_word(13, (uint64_t)(a < b ? a : b)), (uint64_t)(a < b ? b : a));
  uint32_t probe = 0;
  if (pl_hash_index_find(&own->known, pair, &probe) != NULL) return true;
  return pl_hash_index_put(&own->known, pair, own, own->arena) && push(own, a, b) && push(own, b, a);
}

/* The first letter that fits, and behind it the number that makes it different. */
static const char *base_of(int32_t roles, bool copy) {
  static const struct {
    int32_t role;
    const char *base;
  } bases[] = {{PL_AXIS_BATCH, "b"}, {PL_AXIS_TOKENS, "s"},  {PL_AXIS_FILTER_ROWS, "i"}, {PL_AXIS_FILTER_COLUMNS, "j"},
               {PL_AXIS_ROWS, "y"},  {PL_AXIS_COLUMNS, "x"}, {PL_AXIS_CHANNELS, "c"},    {PL_AXIS_VOCABULARY, "v"},
               {PL_AXIS_TABLE, "p"}, {PL_AXIS_HIDDEN, "h"},  {PL_AXIS_HEADS, "g"},       {PL_AXIS_CUT, "f"},
               {PL_AXIS_DEPTH, "d"}, {PL_AXIS_VALUES, "e"},  {PL_AXIS_QUERIES, "r"}};
  if (copy) return "t";
  for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
    if ((roles & bases[i].role) != 0) return bases[i].base;
  return "n";
}

static bool is_taken(const pl_axes *axes, const meetings *own, int32_t group, pl_ir_name name) {
  PL_ASSERT(own->first != NULL && own->all != NULL);
  for (int32_t at = own->first[group]; at != PL_AXIS_NONE; at = own->all[at].next)
    if (pl_ir_name_equal(axes->all[own->all[at].group].name, name)) return true;
  return false;
}

static void name_group(pl_axes *axes, const meetings *own, int32_t group, bool copy) {
  const char *base = base_of(axes->all[group].roles, copy);
  pl_ir_name name = pl_ir_name_of(base);
  char text[PL_IR_NAME_MAX];
  for (int32_t i = 2; is_taken(axes, own, group, name); i++) {
    snprintf(text, sizeof(text), "%s%d", base, i);
    name = pl_ir_name_of(text);
  }
  axes->all[group].name = name;
}

static bool is_copied(const pl_axes *axes, int32_t leaf) {
  int32_t of = axes->all[leaf].copy_of;
  return of != PL_AXIS_NONE && pl_axis_is(axes, of, PL_AXIS_TOKENS);
}

void pl_axes_name_all(pl_axes *axes, int32_t n_lists, const pl_axis_list *lists) {
  meetings own = {.arena = axes->arena, .first = PL_TAKE(axes->arena, int32_t, axes->n + 1)};
  if (own.first == NULL) return;
  for (int32_t i = 0; i < axes->n; i++)
    own.first[i] = PL_AXIS_NONE;
  for (int32_t l = 0; l < n_lists; l++)
    for (int32_t i = 0; i < lists[l].n; i++)
      for (int32_t k = 0; k < i; k++) {
        int32_t a = pl_axis_group(axes, lists[l].leaf[i]), b = pl_axis_group(axes, lists[l].leaf[k]);
        if (a != b && !meet(&own, a, b)) return;
      }
  for (int32_t pass = 0; pass < 3; pass++) /* samples and tokens first, then all that have a meaning */
    for (int32_t l = 0; l < n_lists; l++)
      for (int32_t i = 0; i < lists[l].n; i++) {
        int32_t leaf = lists[l].leaf[i], group = pl_axis_group(axes, leaf), roles = axes->all[group].roles;
        int32_t due = (roles & (PL_AXIS_BATCH | PL_AXIS_TOKENS)) != 0 ? 0 : (roles & ~PL_AXIS_FIXED) != 0 ? 1 : 2;
        if (axes->all[group].name.text[0] == 0 && due <= pass) name_group(axes, &own, group, is_copied(axes, leaf));
      }
}
