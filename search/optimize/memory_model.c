/* Models of steps in which something is run several times (see search/optimize/memory_pass.h). */
#include <string.h>

#include "search/optimize/memory_pass.h"

/* A copy with room for more tasks and edges; the arrays of tensors stay the model's. */
static bool widen(const pl_step_model *model, uint32_t tasks, uint32_t edges, pl_arena *arena, pl_step_model *out) {
  *out = *model;
  size_t n = (size_t)tasks + 1;
  out->ticks = PL_TAKE(arena, pl_ticks, n);
  out->edges = PL_TAKE(arena, pl_step_edge, (size_t)edges + 1);
  if (out->ticks == NULL || out->edges == NULL) return false;
  memcpy(out->ticks, model->ticks, model->n * sizeof *out->ticks);
  memcpy(out->edges, model->edges, model->n_edges * sizeof *out->edges);
  uint32_t *const *from[] = {&model->tensor,   &model->slot,   &model->unit, &model->member,
                             &model->launches, &model->claims, &model->frees};
  uint32_t **to[] = {&out->tensor, &out->slot, &out->unit, &out->member, &out->launches, &out->claims, &out->frees};
  for (size_t k = 0; k < sizeof to / sizeof to[0]; k++) {
    *to[k] = pl_arena_take(arena, n * sizeof(uint32_t), _Alignof(uint32_t));
    if (*to[k] == NULL) return false;
    memset(*to[k], 0xff, n * sizeof(uint32_t));
    memcpy(*to[k], *from[k], model->n * sizeof(uint32_t));
  }
  out->n = tasks;
  return true;
}

static void add_edge(pl_step_model *model, uint32_t before, uint32_t after, uint8_t kind) {
  model->edges[model->n_edges++] = (pl_step_edge){before, after, kind};
}

/* ---- in front of a task ---- */

bool pl_step_model_insert(const pl_step_model *model, const pl_step_insertion *insertions, uint32_t n, pl_arena *arena,
                          pl_step_model *out) {
  uint32_t *in_front = PL_TAKE(arena, uint32_t, model->n + 1); /* per gate: its insertion, from 1 */
  if (in_front == NULL || !widen(model, model->n + n, 2 * model->n_edges + n, arena, out)) return false;
  for (uint32_t k = 0; k < n; k++) {
    in_front[insertions[k].gate] = k + 1;
    out->ticks[model->n + k] = insertions[k].ticks;
    add_edge(out, model->n + k, insertions[k].gate, PL_STEP_DATA);
  }
  for (uint32_t e = 0; e < model->n_edges; e++)
    if (in_front[model->edges[e].after] > 0)
      add_edge(out, model->edges[e].before, model->n + in_front[model->edges[e].after] - 1, model->edges[e].kind);
  return true;
}

/* ---- several times ---- */

typedef struct repeating {
  const pl_step_model *model;
  const pl_step_costs *costs;
  pl_step_model *out;
  uint32_t n;      /* times */
  uint32_t *place; /* per task that is repeated: its place among them; PL_NONE: it is done once */
  uint32_t n_again;
} repeating;

/* All that a gradient waits for. */
static bool find_again(repeating *own, pl_arena *arena) {
  const pl_step_model *model = own->model;
  uint32_t *offset = PL_TAKE(arena, uint32_t, model->n + 3), *before = PL_TAKE(arena, uint32_t, model->n_edges + 1);
  uint32_t *queue = PL_TAKE(arena, uint32_t, model->n + 1), n = 0;
  bool *seen = PL_TAKE(arena, bool, model->n + 1);
  own->place = pl_arena_take(arena, ((size_t)model->n + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  if (offset == NULL || before == NULL || queue == NULL || seen == NULL || own->place == NULL) return false;
  for (uint32_t e = 0; e < model->n_edges; e++)
    offset[model->edges[e].after + 2]++;
  for (uint32_t t = 2; t <= model->n; t++)
    offset[t + 1] += offset[t];
  for (uint32_t e = 0; e < model->n_edges; e++)
    before[offset[model->edges[e].after + 1]++] = model->edges[e].before;
  for (uint32_t t = 0; t < model->n; t++)
    if (model->tensor[t] != PL_NONE) {
      seen[t] = true;
      queue[n++] = t;
    }
  for (uint32_t head = 0; head < n; head++)
    for (uint32_t e = offset[queue[head]]; e < offset[queue[head] + 1]; e++)
      if (!seen[before[e]]) {
        seen[before[e]] = true;
        queue[n++] = before[e];
      }
  for (uint32_t t = 0; t < model->n; t++)
    own->place[t] = seen[t] && model->tensor[t] == PL_NONE ? own->n_again++ : PL_NONE;
  return true;
}

/* Where time k of the task is; the last time is the task itself. */
static uint32_t at_time(const repeating *own, uint32_t task, uint32_t k) {
  return k + 1 == own->n ? task : own->model->n + k * own->n_again + own->place[task];
}

/* What is by the size of the batch is shared among the times; a step before is over once the first has begun. */
static pl_ticks ticks_at(const repeating *own, uint32_t task, uint32_t k) {
  const pl_trace_replay *replay = own->model->replay;
  pl_ticks ticks = own->model->ticks[task];
  if (replay->role[task] == PL_TRACE_RELEASE) return k == 0 ? ticks : 0;
  uint8_t kind = replay->trace->ops[pl_trace_task_op(replay, task)].kind;
  bool works = replay->role[task] == PL_TRACE_BODY && (kind == PL_TRACE_COMPUTE || kind == PL_TRACE_COPY);
  if (!works && !pl_trace_task_moves_data(replay, task)) return ticks;
  pl_ticks fixed = works && own->costs->launch_given ? own->costs->launch : 0;
  if (fixed > ticks) fixed = ticks;
  return fixed + (ticks - fixed) / own->n + (k < (uint32_t)((ticks - fixed) % own->n));
}

static void copy_tasks(repeating *own) {
  const pl_step_model *model = own->model;
  for (uint32_t t = 0; t < model->n; t++)
    for (uint32_t k = 0; own->place[t] != PL_NONE && k < own->n; k++) {
      uint32_t now = at_time(own, t, k);
      own->out->ticks[now] = ticks_at(own, t, k);
      own->out->unit[now] = model->unit[t];
      own->out->launches[now] = model->launches[t];
      own->out->claims[now] = model->claims[t];
      own->out->frees[now] = model->frees[t];
    }
}

/* A unit's members are those of all times; times of one op stand next to each other. */
static bool copy_members(repeating *own, pl_arena *arena) {
  const pl_step_model *model = own->model;
  pl_step_model *out = own->out;
  out->units = PL_TAKE(arena, pl_step_unit, model->n_units + 1);
  out->members = PL_TAKE(arena, pl_step_member, (size_t)model->n_members * own->n + 1);
  if (out->units == NULL || out->members == NULL) return false;
  out->n_members = 0;
  for (uint32_t u = 0; u < model->n_units; u++) {
    out->units[u] = model->units[u];
    out->units[u].first_member = out->n_members;
    for (uint32_t m = 0; m < model->units[u].n_members; m++) {
      const pl_step_member *member = &model->members[model->units[u].first_member + m];
      for (uint32_t k = own->place[member->body] != PL_NONE ? 0 : own->n - 1; k < own->n; k++) {
        pl_step_member now = {member->op, at_time(own, member->gate, k), at_time(own, member->body, k)};
        out->member[now.gate] = out->member[now.body] = out->n_members;
        out->members[out->n_members++] = now;
      }
    }
    out->units[u].n_members = out->n_members - out->units[u].first_member;
    /* fused with the one before only if that is done as often */
    if (u > 0 && out->units[u].n_members != out->units[u - 1].n_members) out->units[u].follows = false;
  }
  return true;
}

static void copy_edges(repeating *own) {
  const pl_step_model *model = own->model;
  for (uint32_t e = 0; e < model->n_edges; e++) {
    const pl_step_edge *edge = &model->edges[e];
    if (own->place[edge->before] == PL_NONE || own->place[edge->after] == PL_NONE) continue;
    for (uint32_t k = 0; k + 1 < own->n; k++)
      add_edge(own->out, at_time(own, edge->before, k), at_time(own, edge->after, k), edge->kind);
  }
}

/* On each stream the first op of the next time comes behind the last one of this. */
static void line_up(repeating *own) {
  const pl_trace_replay *replay = own->model->replay;
  const pl_trace *trace = replay->trace;
  for (uint32_t op = 0, first = PL_NONE, last = PL_NONE; op < trace->n_ops; op++) {
    bool again = replay->gate[op] != PL_NONE && own->place[replay->body[op]] != PL_NONE;
    if (again && first == PL_NONE) first = op;
    if (again) last = op;
    if (op + 1 < trace->n_ops && trace->ops[op + 1].stream == trace->ops[op].stream) continue;
    for (uint32_t k = 0; first != PL_NONE && k + 1 < own->n; k++)
      add_edge(own->out, at_time(own, replay->body[last], k), at_time(own, replay->gate[first], k + 1), PL_STEP_DATA);
    first = last = PL_NONE;
  }
}

bool pl_step_model_repeat(const pl_step_model *model, const pl_step_costs *costs, uint32_t n, pl_arena *arena,
                          pl_step_model *out) {
  repeating own = {.model = model, .costs = costs, .out = out, .n = n};
  if (!find_again(&own, arena)) return false;
  uint64_t tasks = model->n + (uint64_t)(n - 1) * own.n_again;
  uint64_t edges = (uint64_t)n * (model->n_edges + model->replay->trace->n_streams);
  if (tasks > UINT32_MAX / 4 || edges > UINT32_MAX / 4 || !widen(model, (uint32_t)tasks, (uint32_t)edges, arena, out))
    return false;
  copy_tasks(&own);
  copy_edges(&own);
  line_up(&own);
  return copy_members(&own, arena);
}
