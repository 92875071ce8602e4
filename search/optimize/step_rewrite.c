/* The step with a plan in it (see search/optimize/step_plan.h): what is fused becomes one task per slot, what is cut
 * becomes several, edges follow. */
#include <string.h>

#include "search/optimize/step_plan.h"

typedef struct rewriting {
  const pl_step_model *model;
  const pl_step_costs *costs;
  const pl_step_plan *plan;
  pl_arena *arena;
  uint32_t *now;        /* per task what it becomes; of a tensor: its first piece */
  uint32_t *first;      /* per tensor the first one of those that it is fused with */
  uint32_t *unit_first; /* per unit likewise */
  uint32_t n;           /* tasks of the graph */
  pl_ticks *ticks;
  uint32_t *claims, *frees, *tensor, *unit;
  pl_step_arc *arcs;
  uint32_t n_arcs, room;
} rewriting;

static bool is_head(const rewriting *own, uint32_t unit) {
  return own->unit_first[unit] == unit;
}

/* The member of the first unit that the task's unit is fused with. */
static const pl_step_member *head_of(const rewriting *own, uint32_t task) {
  const pl_step_model *model = own->model;
  const pl_step_unit *unit = &model->units[model->unit[task]];
  return &model->members[model->units[own->unit_first[model->unit[task]]].first_member + model->member[task] -
                         unit->first_member];
}

static bool number_tasks(rewriting *own) {
  const pl_step_model *model = own->model;
  for (uint32_t k = 0; k < model->n_tensors; k++)
    own->first[k] = own->plan->joins[k] ? own->first[k - 1] : k;
  for (uint32_t u = 0; u < model->n_units; u++)
    own->unit_first[u] = own->plan->fuses[u] ? own->unit_first[u - 1] : u;
  for (uint32_t t = 0; t < model->n; t++)
    if (model->tensor[t] == PL_NONE && (model->unit[t] == PL_NONE || is_head(own, model->unit[t])))
      own->now[t] = own->n++;
  for (uint32_t t = 0; t < model->n; t++)
    if (model->unit[t] != PL_NONE && !is_head(own, model->unit[t])) {
      const pl_step_member *head = head_of(own, t);
      own->now[t] = own->now[model->members[model->member[t]].gate == t ? head->gate : head->body];
    }
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    const pl_step_tensor *tensor = &model->tensors[k];
    uint32_t parts = pl_step_plan_parts(own->plan, own->first[k]);
    for (uint32_t s = 0; s < tensor->n_slots; s++) {
      const pl_step_slot *slots = model->slots;
      uint32_t head = slots[model->tensors[own->first[k]].first_slot + s].task;
      own->now[slots[tensor->first_slot + s].task] = own->first[k] == k ? own->n + s : own->now[head];
    }
    if (own->first[k] == k) own->n += parts * tensor->n_slots;
  }
  return own->n < UINT32_MAX / 4;
}

static void fill_tensors(rewriting *own) {
  const pl_step_model *model = own->model;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    if (own->first[k] != k) continue;
    const pl_step_tensor *tensor = &model->tensors[k];
    uint32_t parts = pl_step_plan_parts(own->plan, k), end = pl_step_plan_end(model, own->plan, k);
    for (uint32_t s = 0; s < tensor->n_slots; s++) {
      uint32_t task = model->slots[tensor->first_slot + s].task;
      for (uint32_t p = 0; p < parts; p++) {
        uint32_t now = own->now[task] + p * tensor->n_slots;
        own->ticks[now] = pl_step_slot_ticks(model, own->costs, k, end, s, p, parts);
        own->claims[now] = model->claims[task];
        own->frees[now] = model->frees[task];
        own->tensor[now] = k;
      }
    }
  }
}

static void fill_others(rewriting *own) {
  const pl_step_model *model = own->model;
  for (uint32_t t = 0; t < model->n; t++) {
    uint32_t now = own->now[t], unit = model->unit[t];
    if (model->tensor[t] != PL_NONE || (unit != PL_NONE && !is_head(own, unit))) continue;
    bool is_saved = model->launches[t] != PL_NONE && !is_head(own, model->launches[t]);
    own->ticks[now] = is_saved ? 0 : model->ticks[t];
    own->claims[now] = model->claims[t];
    own->frees[now] = model->frees[t];
    own->tensor[now] = PL_NONE;
    own->unit[now] = unit;
    if (unit != PL_NONE && model->members[model->member[t]].body == t)
      own->ticks[now] =
          pl_step_unit_ticks(model, own->costs, own->plan, unit, pl_step_plan_unit_end(model, own->plan, unit),
                             model->member[t] - model->units[unit].first_member);
  }
}

/* ---- edges ---- */

static bool add_arc(rewriting *own, uint32_t before, uint32_t after) {
  pl_step_arc *arcs = pl_arena_grown(own->arena, own->arcs, own->n_arcs, 1, sizeof *arcs, &own->room);
  if (arcs == NULL) return false;
  own->arcs = arcs;
  own->arcs[own->n_arcs++] = (pl_step_arc){before, after};
  return true;
}

/* Pieces of a collective stand one behind the other on each of its streams. */
static bool line_up(rewriting *own) {
  const pl_step_model *model = own->model;
  for (uint32_t k = 0; k < model->n_tensors; k++) {
    const pl_step_tensor *tensor = &model->tensors[k];
    uint32_t parts = own->first[k] == k && tensor->is_sequence ? pl_step_plan_parts(own->plan, k) : 1;
    for (uint32_t s = 1; parts > 1 && s + 1 < tensor->n_slots; s += 2) { /* the join, then gates with their bodies */
      uint32_t gate = own->now[model->slots[tensor->first_slot + s].task];
      uint32_t body = own->now[model->slots[tensor->first_slot + s + 1].task];
      for (uint32_t p = 0; p + 1 < parts; p++)
        if (!add_arc(own, body + p * tensor->n_slots, gate + (p + 1) * tensor->n_slots)) return false;
    }
  }
  return true;
}

/* Both ends are of tensors that are fused with each other. */
static bool add_inner(rewriting *own, const pl_step_edge *edge) {
  const pl_step_model *model = own->model;
  uint32_t a = model->tensor[edge->before], b = model->tensor[edge->after], first = own->first[a];
  uint32_t n_slots = model->tensors[first].n_slots;
  if (a != b) /* their order on a stream has no meaning left; that one waits for the other cannot be */
    return edge->kind == PL_STEP_SEQUENCE || add_arc(own, own->now[edge->before], own->now[edge->after]);
  for (uint32_t p = 0; p < pl_step_plan_parts(own->plan, first); p++)
    if (!add_arc(own, own->now[edge->before] + p * n_slots, own->now[edge->after] + p * n_slots)) return false;
  return true;
}

typedef struct pieces {
  uint32_t from, to, stride; /* the range of pieces that an edge ties */
} pieces;

static pieces pieces_of(const rewriting *own, uint32_t task, bool only_one, bool last) {
  uint32_t tensor = own->model->tensor[task];
  if (tensor == PL_NONE) return (pieces){0, 1, 0};
  uint32_t parts = pl_step_plan_parts(own->plan, own->first[tensor]), stride = own->model->tensors[tensor].n_slots;
  if (!only_one) return (pieces){0, parts, stride};
  return last ? (pieces){parts - 1, parts, stride} : (pieces){0, 1, stride};
}

static bool add_edge(rewriting *own, const pl_step_edge *edge) {
  const pl_step_model *model = own->model;
  uint32_t a = model->tensor[edge->before], b = model->tensor[edge->after];
  uint32_t u = model->unit[edge->before], v = model->unit[edge->after];
  if (a != PL_NONE && b != PL_NONE && own->first[a] == own->first[b]) return add_inner(own, edge);
  if (v != PL_NONE && !is_head(own, v)) {
    if (edge->kind == PL_STEP_LAUNCH) return true; /* not launched any more */
    if (u != PL_NONE && u != v && own->unit_first[u] == own->unit_first[v]) return true;
    if (u == v) return true; /* as the first one's */
  }
  bool sequence = edge->kind == PL_STEP_SEQUENCE;
  pieces from = pieces_of(own, edge->before, sequence, true), to = pieces_of(own, edge->after, sequence, false);
  for (uint32_t p = from.from; p < from.to; p++)
    for (uint32_t q = to.from; q < to.to; q++)
      if (!add_arc(own, own->now[edge->before] + p * from.stride, own->now[edge->after] + q * to.stride)) return false;
  return true;
}

static bool take_arrays(rewriting *own) {
  size_t n = own->n + 1;
  own->ticks = pl_arena_take(own->arena, n * sizeof(pl_ticks), _Alignof(pl_ticks));
  uint32_t **arrays[] = {&own->claims, &own->frees, &own->tensor, &own->unit};
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++) {
    *arrays[k] = pl_arena_take(own->arena, n * sizeof(uint32_t), _Alignof(uint32_t));
    if (*arrays[k] == NULL) return false;
    memset(*arrays[k], 0xff, n * sizeof(uint32_t));
  }
  own->room = own->model->n_edges + own->model->n_edges / 4 + 64;
  own->arcs = pl_arena_take(own->arena, own->room * sizeof(pl_step_arc), _Alignof(pl_step_arc));
  return own->ticks != NULL && own->arcs != NULL;
}

bool pl_step_rewrite(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan, pl_arena *arena,
                     pl_step_graph *graph, uint32_t **tensor, uint32_t **unit, uint32_t **now) {
  rewriting own = {.model = model, .costs = costs, .plan = plan, .arena = arena};
  own.now = pl_arena_take(arena, ((size_t)model->n + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own.first = pl_arena_take(arena, ((size_t)model->n_tensors + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  own.unit_first = pl_arena_take(arena, ((size_t)model->n_units + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  if (own.now == NULL || own.first == NULL || own.unit_first == NULL || !number_tasks(&own) || !take_arrays(&own))
    return false;
  fill_tensors(&own);
  fill_others(&own);
  for (uint32_t e = 0; e < model->n_edges; e++)
    if (!add_edge(&own, &model->edges[e])) return false;
  if (tensor != NULL) *tensor = own.tensor;
  if (unit != NULL) *unit = own.unit;
  if (now != NULL) *now = own.now;
  return line_up(&own) && pl_step_graph_take(own.n, own.ticks, own.claims, own.frees, model->n_links, own.arcs,
                                             own.n_arcs, arena, graph);
}

pl_ticks pl_step_plan_play(const pl_step_model *model, const pl_step_costs *costs, const pl_step_plan *plan,
                           pl_arena *arena) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_step_graph graph;
  pl_ticks makespan = -1;
  if (pl_step_rewrite(model, costs, plan, arena, &graph, NULL, NULL, NULL)) {
    pl_ticks *finish = pl_arena_take(arena, ((size_t)graph.n + 1) * sizeof *finish, _Alignof(pl_ticks));
    if (finish != NULL) makespan = pl_step_graph_play(&graph, arena, finish, NULL);
  }
  pl_arena_release_to(arena, mark);
  return makespan;
}
