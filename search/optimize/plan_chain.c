/* Buckets by dynamic programming, and the times that it and the theorems go by (see search/optimize/plan_search.h). */
#include <math.h>
#include <string.h>

#include "search/optimize/plan_search.h"

/* ---- what waits for what ---- */

static bool index_inner(pl_plan_search *search) {
  const pl_step_model *model = search->coarse;
  search->inner_offset = PL_TAKE(search->arena, uint32_t, model->n_tensors + 2);
  search->inner = PL_TAKE(search->arena, uint32_t, model->n_edges + 1);
  search->makes = PL_TAKE(search->arena, uint32_t, model->n_units + 1);
  if (search->inner_offset == NULL || search->inner == NULL || search->makes == NULL) return false;
  memset(search->makes, 0xff, model->n_units * sizeof *search->makes);
  uint32_t *n = search->inner_offset;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t e = 0; e < model->n_edges; e++) {
      const pl_step_edge *edge = &model->edges[e];
      uint32_t tensor = model->tensor[edge->after], unit = model->unit[edge->before];
      if (tensor == PL_NONE) continue;
      if (unit != PL_NONE) search->makes[unit] = tensor;
      if (model->tensor[edge->before] != tensor) continue;
      if (pass == 0)
        n[tensor + 1]++;
      else
        search->inner[n[tensor]++] = e;
    }
    for (uint32_t k = 0; k < model->n_tensors && pass == 0; k++)
      n[k + 1] += n[k];
  }
  for (uint32_t k = model->n_tensors; k > 0; k--)
    n[k] = n[k - 1];
  n[0] = 0;
  return true;
}

pl_code pl_plan_search_take(const pl_step_model *whole, const pl_step_model *coarse, const pl_step_costs *costs,
                            const pl_plan_options *options, pl_arena *arena, pl_plan_search *search, pl_error *error) {
  *search = (pl_plan_search){
      .whole = whole, .coarse = coarse, .costs = costs, .options = *options, .arena = arena, .error = error};
  search->steps = PL_TAKE(arena, pl_search_step, PL_SEARCH_MOST_STEPS);
  if (search->steps == NULL || !index_inner(search) || !pl_step_plan_take(coarse, arena, &search->plan))
    return pl_fail_memory(error, "a search");
  search->start = search->best = pl_plan_search_play(search, &search->plan);
  if (search->start < 0) return pl_fail_memory(error, "a search");
  if (search->start == PL_TICKS_NEVER)
    return pl_fail(error, PL_BAD_INPUT,
                   "messages of the step wait for each other where links serve who is ready first");
  return PL_OK;
}

/* ---- one tensor alone: partial replay ---- */

pl_ticks pl_plan_sync_time(pl_plan_search *search, uint32_t first, uint32_t end, uint32_t parts) {
  const pl_step_model *model = search->coarse;
  const pl_step_tensor *tensor = &model->tensors[first];
  pl_arena_mark mark = pl_arena_mark_here(search->arena);
  uint32_t n_inner = search->inner_offset[first + 1] - search->inner_offset[first], n = tensor->n_slots * parts, m = 0;
  pl_step_graph graph;
  pl_ticks *ticks = PL_TAKE(search->arena, pl_ticks, n + 1), *finish = PL_TAKE(search->arena, pl_ticks, n + 1);
  uint32_t *claims = PL_TAKE(search->arena, uint32_t, n + 1), *frees = PL_TAKE(search->arena, uint32_t, n + 1);
  pl_step_arc *arcs = PL_TAKE(search->arena, pl_step_arc, (n_inner + tensor->n_slots) * parts + 1);
  pl_ticks makespan = -1;
  if (ticks != NULL && finish != NULL && claims != NULL && frees != NULL && arcs != NULL) {
    for (uint32_t p = 0; p < parts; p++) {
      uint32_t base = p * tensor->n_slots;
      for (uint32_t s = 0; s < tensor->n_slots; s++) {
        uint32_t task = model->slots[tensor->first_slot + s].task;
        ticks[base + s] = pl_step_slot_ticks(model, search->costs, first, end, s, p, parts);
        claims[base + s] = model->claims[task];
        frees[base + s] = model->frees[task];
        if (p > 0 && tensor->is_sequence && s % 2 == 1)
          arcs[m++] = (pl_step_arc){base + s + 1 - tensor->n_slots, base + s};
      }
      for (uint32_t e = search->inner_offset[first]; e < search->inner_offset[first + 1]; e++) {
        const pl_step_edge *edge = &model->edges[search->inner[e]];
        arcs[m++] = (pl_step_arc){base + model->slot[edge->before], base + model->slot[edge->after]};
      }
    }
    if (pl_step_graph_take(n, ticks, claims, frees, model->n_links, arcs, m, search->arena, &graph))
      makespan = pl_step_graph_play(&graph, search->arena, finish, NULL);
  }
  pl_arena_release_to(search->arena, mark);
  return makespan;
}

/* ---- dates ---- */

bool pl_plan_search_dates(pl_plan_search *search, const pl_step_plan *plan, pl_ticks *ready, pl_ticks *end) {
  const pl_step_model *model = search->coarse;
  pl_arena_mark mark = pl_arena_mark_here(search->arena);
  pl_step_graph graph;
  uint32_t *tensor;
  bool good = pl_step_rewrite(model, search->costs, plan, search->arena, &graph, &tensor, NULL, NULL);
  pl_ticks *finish = good ? PL_TAKE(search->arena, pl_ticks, graph.n + 1) : NULL;
  search->n_replays++;
  good = finish != NULL && pl_step_graph_play(&graph, search->arena, finish, NULL) >= 0;
  memset(ready, 0, model->n_tensors * sizeof *ready);
  memset(end, 0, model->n_tensors * sizeof *end);
  for (uint32_t t = 0; good && t < graph.n; t++) {
    if (tensor[t] != PL_NONE && finish[t] > end[tensor[t]]) end[tensor[t]] = finish[t];
    for (uint32_t k = graph.next_offset[t]; k < graph.next_offset[t + 1]; k++) {
      uint32_t other = tensor[graph.next[k]];
      bool from_chain =
          other != PL_NONE && tensor[t] != PL_NONE && model->tensors[tensor[t]].chain == model->tensors[other].chain;
      if (other != PL_NONE && !from_chain && finish[t] > ready[other]) ready[other] = finish[t];
    }
  }
  pl_arena_release_to(search->arena, mark);
  for (uint32_t k = 0; k < model->n_tensors; k++)
    if (plan->joins[k]) {
      ready[k] = ready[k - 1]; /* the fused tensor's */
      end[k] = end[k - 1];
    }
  return good;
}

/* ---- buckets ---- */

enum { MOST_SAMPLES = 40 };

/* Time to synchronise tensors of this much to move, by a replay of some and a line between those. */
typedef struct curve {
  double x[MOST_SAMPLES], y[MOST_SAMPLES];
  uint8_t parts[MOST_SAMPLES];
  uint32_t n;
} curve;

static double weight_of(const pl_plan_search *search, uint32_t tensor) {
  const pl_step_model *model = search->coarse;
  const pl_step_tensor *t = &model->tensors[tensor];
  double sum = 0;
  for (uint32_t s = 0; s < t->n_slots; s++) {
    const pl_step_slot *slot = &model->slots[t->first_slot + s];
    if (slot->kind == PL_STEP_WAITS) continue;
    pl_ticks latency = pl_step_slot_latency(search->costs, tensor, slot->kind);
    if (model->ticks[slot->task] > latency) sum += (double)(model->ticks[slot->task] - latency);
  }
  return sum;
}

static pl_ticks best_parts(pl_plan_search *search, uint32_t first, uint32_t end, uint32_t *parts) {
  pl_ticks best = pl_plan_sync_time(search, first, end, *parts);
  while (search->options.tensor_partition && 2 * *parts <= PL_STEP_MOST_PARTS) {
    pl_ticks time = pl_plan_sync_time(search, first, end, 2 * *parts);
    if (time < 0 || time >= best) break;
    best = time;
    *parts *= 2;
  }
  return best;
}

/* From one tensor of the chain to all of them, twice as many each time. */
static bool sample(pl_plan_search *search, uint32_t a, uint32_t b, const double *weight, curve *out) {
  uint32_t least = a, parts = 1;
  for (uint32_t k = a; k < b; k++)
    if (weight[k] < weight[least]) least = k;
  out->n = 0;
  for (uint32_t width = 0, end; out->n < MOST_SAMPLES; width = width == 0 ? 1 : 2 * width) {
    uint32_t first = width == 0 ? least : a;
    end = width == 0 ? least + 1 : a + width < b ? a + width : b;
    double x = 0;
    for (uint32_t k = first; k < end; k++)
      x += weight[k];
    if (out->n == 0 || x > out->x[out->n - 1]) {
      pl_ticks time = best_parts(search, first, end, &parts);
      if (time < 0) return false;
      out->x[out->n] = x;
      out->y[out->n] = (double)time;
      out->parts[out->n++] = (uint8_t)parts;
    }
    if (end == b && width > 0) break;
  }
  return true;
}

static double time_of(const curve *c, double x, uint32_t *parts) {
  uint32_t k = 1;
  while (k + 1 < c->n && c->x[k] < x)
    k++;
  *parts = c->parts[k < c->n ? k : 0];
  if (c->n == 1) return c->y[0] * (c->x[0] > 0 ? x / c->x[0] : 1);
  double slope = (c->y[k] - c->y[k - 1]) / (c->x[k] - c->x[k - 1]);
  return c->y[k] + slope * (x - c->x[k]);
}

/* Tensors a..b-1 are a chain. Fills the trial's joins and parts. O(n^2). */
static bool cut_chain(pl_plan_search *search, uint32_t a, uint32_t b, const pl_ticks *ready, pl_step_plan *trial) {
  curve c;
  uint32_t n = b - a;
  double *weight = PL_TAKE(search->arena, double, b + 1), *until = PL_TAKE(search->arena, double, n + 1);
  uint32_t *from = PL_TAKE(search->arena, uint32_t, n + 1), *parts = PL_TAKE(search->arena, uint32_t, n + 1);
  if (weight == NULL || until == NULL || from == NULL || parts == NULL) return false;
  for (uint32_t k = a; k < b; k++)
    weight[k] = weight_of(search, k);
  if (!sample(search, a, b, weight, &c)) return false;
  for (uint32_t j = 1; j <= n; j++) {
    double x = 0, date = 0;
    until[j] = INFINITY;
    for (uint32_t i = j; i-- > 0;) {
      uint32_t p;
      x += weight[a + i];
      if ((double)ready[a + i] > date) date = (double)ready[a + i];
      double end = (until[i] > date ? until[i] : date) + time_of(&c, x, &p);
      if (end < until[j]) {
        until[j] = end;
        from[j] = i;
        parts[j] = p;
      }
    }
  }
  for (uint32_t j = n; j > 0; j = from[j]) {
    for (uint32_t k = from[j]; k < j; k++)
      trial->joins[a + k] = k > from[j];
    if (search->options.tensor_partition) trial->parts[a + from[j]] = (uint8_t)parts[j];
  }
  return true;
}

pl_code pl_plan_search_buckets(pl_plan_search *search) {
  const pl_step_model *model = search->coarse;
  pl_step_plan trial;
  pl_ticks *ready = PL_TAKE(search->arena, pl_ticks, model->n_tensors + 1);
  pl_ticks *end = PL_TAKE(search->arena, pl_ticks, model->n_tensors + 1);
  if (ready == NULL || end == NULL || !pl_step_plan_take(model, search->arena, &trial) ||
      !pl_plan_search_dates(search, &search->plan, ready, end))
    return pl_fail_memory(search->error, "the buckets of a chain");
  for (uint32_t a = 0, b; a < model->n_tensors; a = b) {
    for (b = a + 1; b < model->n_tensors && pl_plan_can_join(model, b);)
      b++;
    pl_arena_mark mark = pl_arena_mark_here(search->arena);
    if (b - a < 2 || search->costs->latency[a] < 0) continue;
    pl_step_plan_copy(model, &search->plan, &trial);
    if (!cut_chain(search, a, b, ready, &trial)) return pl_fail_memory(search->error, "the buckets of a chain");
    pl_arena_release_to(search->arena, mark);
    pl_search_step step = {PL_MOVE_BUCKETS, a, b - a, "dynamic program over the chain's tensors", 0, 0};
    PL_TRY(pl_plan_search_offer(search, &trial, pl_plan_search_play(search, &trial), step));
  }
  return PL_OK;
}
