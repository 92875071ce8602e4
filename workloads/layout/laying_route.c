/* See workloads/layout/laying_change.h: the cheapest way from one layout to another, by Dijkstra's algorithm over the
 * layouts in between.
 *
 * Between two layouts lie those in which an axis that matters lies as in one of them, or is whole; an axis matters
 * where the two differ, and where it cuts a dimension that changes on another axis. An edge is one collective or cut
 * over some of the axes that lie alike. So 8 devices along two axes may be gathered at once or one axis after the
 * other, a partial sum may be scattered before it is added up along another axis, and a dimension may be handed over by
 * an all-to-all or gathered and cut: whichever is faster on this network. What is only added up, or only gathered,
 * along one axis leaves no choice: nobody asks for its price unless reasons tell it. */
#include <math.h>
#include <string.h>

#include "workloads/layout/laying_change.h"

enum { STATES_MAX = 512, SOURCES_MAX = PL_VARIANTS_MAX, AXES_MAX = 6 };

typedef struct state {
  int8_t on[PL_IR_AXES_MAX];
  double time_s;
  int32_t steps, before; /* state that it was reached from; PL_IR_NONE: a source */
  int32_t source;
  pl_layout_change change; /* that reached it */
  bool done;
} state;

typedef struct search {
  pl_laying *part;
  const pl_ir_mesh *mesh;
  pl_ir_type now; /* the shape, with the layout that is looked at */
  const pl_ir_type *wanted;
  bool matters[PL_IR_AXES_MAX];
  int32_t n_sources, n_states;
  int8_t source_on[SOURCES_MAX][PL_IR_AXES_MAX];
  state *states;
  /* A first step that is not taken. */
  const pl_layout_change *banned;
  int32_t banned_source;
  bool overflows;
  bool is_free; /* prices do not matter */
} search;

/* ---- what lies in between ---- */

static void find_axes(search *own) {
  bool changes[PL_IR_RANK_MAX] = {false};
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    for (int32_t s = 0; s < own->n_sources; s++) {
      int8_t is = own->source_on[s][axis], to = own->wanted->on[axis];
      if (is == to) continue;
      own->matters[axis] = true;
      if (is >= 0) changes[is] = true;
      if (to >= 0) changes[to] = true;
    }
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    for (int32_t s = 0; s < own->n_sources; s++)
      own->matters[axis] = own->matters[axis] || (own->source_on[s][axis] >= 0 && changes[own->source_on[s][axis]]);
}

static bool may_lie(const search *own, int32_t axis, int8_t on) {
  if (on == PL_IR_SAME || on == own->wanted->on[axis]) return true;
  for (int32_t s = 0; s < own->n_sources; s++)
    if (own->source_on[s][axis] == on) return true;
  return false;
}

static int32_t axes_that_matter(const search *own) {
  int32_t n = 0;
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    n += own->matters[axis];
  return n;
}

/* From one value along one axis, to where it is whole. */
static bool is_only_way(const search *own) {
  if (own->n_sources > 1 || axes_that_matter(own) > 1) return false;
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    if (own->matters[axis] && own->wanted->on[axis] != PL_IR_SAME) return false;
  return true;
}

/* ---- states ---- */

static bool is_better(double time_s, int32_t steps, const state *than) {
  return time_s < than->time_s || (time_s == than->time_s && steps < than->steps);
}

static void reach(search *own, const int8_t *on, double time_s, int32_t steps, int32_t before, int32_t source,
                  const pl_layout_change *change) {
  int32_t at = 0;
  while (at < own->n_states && memcmp(own->states[at].on, on, sizeof own->states[at].on) != 0)
    at++;
  if (at < own->n_states && (own->states[at].done || !is_better(time_s, steps, &own->states[at]))) return;
  if (at == STATES_MAX) {
    own->overflows = true;
    return;
  }
  if (at == own->n_states) own->n_states++;
  state *made = &own->states[at];
  *made = (state){.time_s = time_s, .steps = steps, .before = before, .source = source};
  memcpy(made->on, on, sizeof made->on);
  if (change != NULL) made->change = *change;
}

static int32_t next_state(const search *own) {
  int32_t best = PL_IR_NONE;
  for (int32_t i = 0; i < own->n_states; i++) {
    const state *is = &own->states[i];
    if (!is->done && (best == PL_IR_NONE || is_better(is->time_s, is->steps, &own->states[best]))) best = i;
  }
  return best;
}

static bool is_banned(const search *own, const state *from, const pl_layout_change *change) {
  return own->banned != NULL && from->before == PL_IR_NONE && from->source == own->banned_source &&
         change->from == own->banned->from && change->to == own->banned->to && change->n_axes == own->banned->n_axes &&
         memcmp(change->axis, own->banned->axis, (size_t)change->n_axes * sizeof *change->axis) == 0;
}

/* ---- edges ---- */

static void try_change(search *own, int32_t at, const pl_layout_change *change) {
  const state from = own->states[at];
  if (is_banned(own, &from, change) || from.steps + 1 > PL_LAYOUT_ROUTE_MAX) return;
  memcpy(own->now.on, from.on, sizeof from.on);
  if (!pl_layout_change_is_next(own->mesh, &own->now, change)) return;
  double price = own->is_free ? 0 : pl_layout_change_price(own->part, &own->now, change);
  int8_t on[PL_IR_AXES_MAX];
  memcpy(on, from.on, sizeof on);
  for (int32_t i = 0; i < change->n_axes; i++)
    on[change->axis[i]] = change->to;
  reach(own, on, from.time_s + price, from.steps + 1, at, from.source, change);
}

/* All sets of the axes that lie on `is` and may lie on `to`, the largest first. */
static void try_changes(search *own, int32_t at, int8_t is, int8_t to) {
  const char *row = pl_layout_row_between(is, to);
  int32_t axes[PL_IR_AXES_MAX], n = 0;
  if (row == NULL) return;
  for (int32_t axis = 0; axis < own->mesh->n_axes; axis++)
    if (own->matters[axis] && own->states[at].on[axis] == is && may_lie(own, axis, to)) axes[n++] = axis;
  for (uint32_t set = (1u << n) - 1; set > 0; set--) {
    pl_layout_change change = {.row = row, .from = is, .to = to};
    for (int32_t i = 0; i < n; i++)
      if ((set >> (n - 1 - i) & 1) != 0) change.axis[change.n_axes++] = axes[i];
    try_change(own, at, &change);
  }
}

static void leave(search *own, int32_t at) {
  for (int8_t is = PL_IR_MAXIMUM < PL_IR_PARTIAL ? PL_IR_MAXIMUM : PL_IR_PARTIAL; is < own->now.rank; is++)
    for (int8_t to = PL_IR_SAME; to < own->now.rank; to++)
      if (is != to) try_changes(own, at, is, to);
}

/* ---- the search ---- */

static bool search_from(search *own, const int32_t *values, pl_layout_route *route) {
  own->n_states = 0;
  for (int32_t s = 0; s < own->n_sources; s++)
    reach(own, own->source_on[s], 0, 0, PL_IR_NONE, s, NULL);
  int32_t at;
  while ((at = next_state(own)) != PL_IR_NONE && !own->overflows) {
    own->states[at].done = true;
    if (memcmp(own->states[at].on, own->wanted->on, sizeof own->states[at].on) == 0) break;
    leave(own, at);
  }
  *route = (pl_layout_route){.source = PL_IR_NONE};
  if (at == PL_IR_NONE || own->overflows) return false;
  route->source = values[own->states[at].source];
  route->time_s = own->states[at].time_s;
  route->n = own->states[at].steps;
  for (int32_t i = route->n; i-- > 0; at = own->states[at].before)
    route->changes[i] = own->states[at].change;
  return true;
}

bool pl_layout_route_find(pl_laying *part, int32_t n, const int32_t *values, const pl_ir_type *wanted,
                          pl_layout_route *route, pl_layout_route *other) {
  pl_arena_mark mark = pl_arena_mark_here(part->own->scratch);
  search own = {.part = part,
                .mesh = &part->own->rules->mesh,
                .now = part->to->values[values[0]].type,
                .wanted = wanted,
                .n_sources = n,
                .states = (state *)pl_arena_take(part->own->scratch, STATES_MAX * sizeof(state), _Alignof(state))};
  for (int32_t s = 0; s < n; s++)
    memcpy(own.source_on[s], part->to->values[values[s]].type.on, sizeof own.source_on[s]);
  find_axes(&own);
  bool tells = part->own->prices->tells;
  own.is_free = !tells && is_only_way(&own);
  bool found = own.states != NULL && axes_that_matter(&own) <= AXES_MAX && search_from(&own, values, route);
  *other = (pl_layout_route){.source = PL_IR_NONE};
  if (tells && found && route->n > 0) {
    own.banned = &route->changes[0];
    for (own.banned_source = 0; values[own.banned_source] != route->source;)
      own.banned_source++;
    search_from(&own, values, other);
  }
  pl_arena_release_to(part->own->scratch, mark);
  return found;
}
