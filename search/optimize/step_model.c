/* The model of a step (see search/optimize/step_model.h): its edges, and the coarsened view. */
#include "search/optimize/step_model.h"

#include <string.h>

#include "workloads/trace/what_if.h"

static bool has_explicit_edge(const pl_trace *trace, const pl_trace_step_list *steps, uint32_t before, uint32_t after) {
  for (uint32_t k = steps->first_edge[after]; k < steps->first_edge[after + 1]; k++) {
    const pl_trace_edge *edge = &trace->edges[steps->edges[k]];
    if (edge->before == before && !edge->from_start) return true;
  }
  return false;
}

bool pl_step_edge_is_order(const pl_trace_replay *replay, const pl_trace_step_list *steps, uint32_t before,
                           uint32_t after) {
  if (replay->role[before] != PL_TRACE_BODY || replay->role[after] != PL_TRACE_GATE) return false;
  uint32_t a = replay->subject[before], b = replay->subject[after];
  return pl_trace_previous(replay->trace, b) == a && !has_explicit_edge(replay->trace, steps, a, b);
}

/* Per stream: it serves who is ready, for messages of tensors travel on it, or a server sums there and does nothing
 * else. */
static bool find_links(const pl_step_model *model, bool *serves, pl_arena *arena) {
  const pl_trace_replay *replay = model->replay;
  const pl_trace *trace = replay->trace;
  bool *has_others = PL_TAKE(arena, bool, trace->n_streams + 1);
  if (has_others == NULL) return false;
  for (uint32_t t = 0; t < model->n; t++)
    if (replay->role[t] == PL_TRACE_GATE && model->tensor[t] == PL_NONE)
      has_others[trace->ops[replay->subject[t]].stream] = true;
  for (uint32_t s = 0; s < model->n_slots; s++) {
    uint32_t task = model->slots[s].task;
    const pl_trace_op *op = &trace->ops[pl_trace_task_op(replay, task)];
    if (!model->tensors[model->tensor[task]].is_sequence && (op->message != PL_NONE || !has_others[op->stream]))
      serves[op->stream] = true;
  }
  return true;
}

static void claim_links(pl_step_model *model, const bool *serves, uint32_t *link_of) {
  const pl_trace_replay *replay = model->replay;
  memset(link_of, 0xff, replay->trace->n_streams * sizeof *link_of);
  for (uint32_t t = 0; t < model->n; t++) {
    if (replay->role[t] != PL_TRACE_GATE) continue;
    const pl_trace_op *op = &replay->trace->ops[replay->subject[t]];
    if (!serves[op->stream] || op->kind == PL_TRACE_RECEIVE) continue;
    if (link_of[op->stream] == PL_NONE) link_of[op->stream] = model->n_links++;
    model->claims[t] = link_of[op->stream];
    model->frees[replay->body[replay->subject[t]]] = link_of[op->stream];
  }
}

static bool take_edges(pl_step_model *model, const pl_trace_step_list *steps, pl_arena *arena) {
  const pl_trace_replay *replay = model->replay;
  const pl_graph *graph = &replay->graph;
  bool *serves = PL_TAKE(arena, bool, replay->trace->n_streams + 1);
  uint32_t *link_of = PL_TAKE(arena, uint32_t, replay->trace->n_streams + 1);
  model->edges = PL_TAKE(arena, pl_step_edge, graph->n_edges + 1);
  if (serves == NULL || link_of == NULL || model->edges == NULL || !find_links(model, serves, arena)) return false;
  claim_links(model, serves, link_of);
  for (uint32_t t = 0; t < model->n; t++)
    for (uint32_t e = graph->successor_offset[t]; e < graph->successor_offset[t + 1]; e++) {
      uint32_t after = graph->successors[e];
      uint8_t kind = replay->role[t] == PL_TRACE_LATENCY ? PL_STEP_LAUNCH : PL_STEP_DATA;
      if (pl_step_edge_is_order(replay, steps, t, after)) {
        if (serves[replay->trace->ops[replay->subject[after]].stream]) continue;
        if (model->tensor[t] != PL_NONE || model->tensor[after] != PL_NONE) kind = PL_STEP_SEQUENCE;
      }
      model->edges[model->n_edges++] = (pl_step_edge){t, after, kind};
    }
  return true;
}

static bool take_tasks(pl_step_model *model, uint32_t n, pl_arena *arena) {
  model->n = n;
  model->ticks = PL_TAKE(arena, pl_ticks, n + 1);
  uint32_t **indices[] = {&model->tensor,   &model->slot,   &model->unit, &model->member,
                          &model->launches, &model->claims, &model->frees};
  for (size_t k = 0; k < sizeof indices / sizeof indices[0]; k++) {
    *indices[k] = pl_arena_take(arena, ((size_t)n + 1) * sizeof(uint32_t), _Alignof(uint32_t));
    if (*indices[k] == NULL) return false;
    memset(*indices[k], 0xff, ((size_t)n + 1) * sizeof(uint32_t));
  }
  return model->ticks != NULL;
}

pl_code pl_step_model_take(const pl_trace_replay *replay, const pl_trace_step_list *steps, bool units, pl_arena *arena,
                           pl_step_model *model, pl_error *error) {
  *model = (pl_step_model){.replay = replay};
  bool good = take_tasks(model, replay->graph.n_tasks, arena);
  if (good) memcpy(model->ticks, replay->ticks, model->n * sizeof *model->ticks);
  good = good && pl_step_tensors_find(model, steps, arena) && (!units || pl_step_units_find(model, arena)) &&
         take_edges(model, steps, arena);
  return good ? PL_OK : pl_fail_memory(error, "the model of a step");
}

/* ---- the coarsened view ---- */

static bool is_plain(const pl_step_model *model, uint32_t task) {
  return model->tensor[task] == PL_NONE && model->unit[task] == PL_NONE && model->launches[task] == PL_NONE &&
         model->claims[task] == PL_NONE && model->frees[task] == PL_NONE;
}

typedef struct coarsening {
  const pl_step_model *model;
  uint32_t *n_in, *n_out, *before; /* per task; the one before it if there is one */
  uint32_t *head, *now;            /* the first task of its row; what that one becomes */
} coarsening;

static bool find_rows(coarsening *own, pl_arena *arena) {
  const pl_step_model *model = own->model;
  uint32_t **arrays[] = {&own->n_in, &own->n_out, &own->before, &own->head, &own->now};
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
    if ((*arrays[k] = PL_TAKE(arena, uint32_t, model->n + 1)) == NULL) return false;
  for (uint32_t e = 0; e < model->n_edges; e++) {
    own->n_in[model->edges[e].after]++;
    own->n_out[model->edges[e].before]++;
    own->before[model->edges[e].after] = model->edges[e].before;
  }
  for (uint32_t t = 0; t < model->n; t++) { /* `now`: the one before it in its row, until heads are known */
    bool joins =
        own->n_in[t] == 1 && is_plain(model, t) && own->n_out[own->before[t]] == 1 && is_plain(model, own->before[t]);
    own->now[t] = joins ? own->before[t] : t;
    own->head[t] = PL_NONE;
  }
  for (uint32_t t = 0; t < model->n; t++) {
    uint32_t head = t;
    while (own->head[head] == PL_NONE && own->now[head] != head)
      head = own->now[head];
    if (own->head[head] != PL_NONE) head = own->head[head];
    for (uint32_t k = t; own->head[k] == PL_NONE; k = own->now[k])
      own->head[k] = head;
  }
  memset(own->now, 0, model->n * sizeof *own->now);
  return true;
}

static void copy_task(const pl_step_model *model, pl_step_model *coarse, uint32_t t, uint32_t now) {
  coarse->tensor[now] = model->tensor[t];
  coarse->slot[now] = model->slot[t];
  coarse->unit[now] = model->unit[t];
  coarse->member[now] = model->member[t];
  coarse->launches[now] = model->launches[t];
  coarse->claims[now] = model->claims[t];
  coarse->frees[now] = model->frees[t];
  if (model->unit[t] != PL_NONE) {
    pl_step_member *member = &coarse->members[model->member[t]];
    if (model->members[model->member[t]].gate == t)
      member->gate = now;
    else
      member->body = now;
  }
  if (model->slot[t] != PL_NONE) coarse->slots[model->tensors[model->tensor[t]].first_slot + model->slot[t]].task = now;
}

pl_code pl_step_model_coarsen(const pl_step_model *model, pl_arena *arena, pl_step_model *coarse, pl_error *error) {
  coarsening own = {.model = model};
  *coarse = *model;
  bool good = find_rows(&own, arena);
  uint32_t n = 0;
  for (uint32_t t = 0; t < model->n && good; t++)
    if (own.head[t] == t) own.now[t] = n++;
  coarse->edges = PL_TAKE(arena, pl_step_edge, model->n_edges + 1);
  coarse->slots = PL_TAKE(arena, pl_step_slot, model->n_slots + 1);
  coarse->members = PL_TAKE(arena, pl_step_member, model->n_members + 1);
  if (!good || coarse->edges == NULL || coarse->slots == NULL || coarse->members == NULL ||
      !take_tasks(coarse, n, arena))
    return pl_fail_memory(error, "the coarsened view of a step");
  memcpy(coarse->slots, model->slots, model->n_slots * sizeof *coarse->slots);
  if (model->n_members > 0) memcpy(coarse->members, model->members, model->n_members * sizeof *coarse->members);
  for (uint32_t t = 0; t < model->n; t++) {
    uint32_t now = own.now[own.head[t]];
    coarse->ticks[now] = pl_ticks_sum(coarse->ticks[now], model->ticks[t]);
    if (own.head[t] == t) copy_task(model, coarse, t, now);
  }
  coarse->n_edges = 0;
  for (uint32_t e = 0; e < model->n_edges; e++) {
    uint32_t before = own.head[model->edges[e].before], after = own.head[model->edges[e].after];
    if (before == after) continue;
    coarse->edges[coarse->n_edges++] = (pl_step_edge){own.now[before], own.now[after], model->edges[e].kind};
  }
  return PL_OK;
}
