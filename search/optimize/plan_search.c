/* The walk along the critical path (see search/optimize/plan_search.h). */
#include "search/optimize/plan_search.h"

#include <string.h>

#include "search/optimize/theorems.h"

const char *const pl_search_move_names[] = {
    [PL_MOVE_COARSEN] = "coarsened view",
    [PL_MOVE_CAP] = "buckets by size",
    [PL_MOVE_PIECES] = "pieces by size",
    [PL_MOVE_BUCKETS] = "buckets",
    [PL_MOVE_FUSE_OPS] = "op-fusion",
    [PL_MOVE_FUSE_MAKERS] = "op-fusion of a bucket",
    [PL_MOVE_PART_OPS] = "ops parted",
    [PL_MOVE_FUSE_TENSORS] = "tensor-fusion",
    [PL_MOVE_PART_TENSORS] = "tensors parted",
    [PL_MOVE_CUT] = "tensor-partition",
    [PL_MOVE_ANNEAL] = "annealing",
    [PL_MOVE_PASS] = "pass",
    [PL_MOVE_NARROW] = "mixed-precision",
    [PL_MOVE_COUNT] = NULL,
};

pl_ticks pl_plan_search_play(pl_plan_search *search, const pl_step_plan *plan) {
  search->n_replays++;
  return pl_step_plan_play(search->coarse, search->costs, plan, search->arena);
}

pl_code pl_plan_search_offer(pl_plan_search *search, const pl_step_plan *plan, pl_ticks after, pl_search_step step) {
  if (after < 0) return pl_fail_memory(search->error, "a step with a plan");
  if (after >= search->best) return PL_OK;
  pl_ticks whole = pl_step_plan_play(search->whole, search->costs, plan, search->arena);
  search->n_whole_replays++;
  if (whole < 0) return pl_fail_memory(search->error, "a step with a plan");
  if (whole != after)
    return pl_fail(search->error, PL_UNSUPPORTED,
                   "the coarsened view of the step takes %.12g s and the whole graph %.12g s: this is a bug",
                   pl_ticks_to_s(after), pl_ticks_to_s(whole));
  step.before = search->best;
  step.after = after;
  if (search->n_steps < PL_SEARCH_MOST_STEPS) search->steps[search->n_steps++] = step;
  search->best = after;
  pl_step_plan_copy(search->coarse, plan, &search->plan);
  return PL_OK;
}

/* ---- what the walk looks at ---- */

typedef struct walk {
  pl_plan_search *search;
  const pl_step_model *model;
  pl_step_plan trial;
  pl_ticks *ready, *end;     /* per tensor */
  bool *tensor_on, *unit_on; /* on the critical path */
} walk;

/* Plays the best plan and notes what its critical path goes over. */
static bool read_path(walk *own) {
  pl_plan_search *search = own->search;
  pl_arena_mark mark = pl_arena_mark_here(search->arena);
  pl_step_graph graph;
  uint32_t *tensor, *unit;
  bool good = pl_step_rewrite(own->model, search->costs, &search->plan, search->arena, &graph, &tensor, &unit, NULL);
  pl_ticks *finish = good ? PL_TAKE(search->arena, pl_ticks, graph.n + 1) : NULL;
  uint32_t *cause = good ? PL_TAKE(search->arena, uint32_t, graph.n + 1) : NULL;
  uint32_t *path = good ? PL_TAKE(search->arena, uint32_t, graph.n + 1) : NULL;
  if (finish == NULL || cause == NULL || path == NULL) return false;
  search->n_replays++;
  memset(own->tensor_on, 0, own->model->n_tensors * sizeof *own->tensor_on);
  memset(own->unit_on, 0, own->model->n_units * sizeof *own->unit_on);
  pl_step_graph_play(&graph, search->arena, finish, cause);
  uint32_t n = pl_step_graph_path(&graph, finish, cause, path);
  for (uint32_t k = 0; k < n; k++) {
    if (tensor[path[k]] != PL_NONE) own->tensor_on[tensor[path[k]]] = true;
    if (unit[path[k]] != PL_NONE) own->unit_on[unit[path[k]]] = true;
  }
  pl_arena_release_to(search->arena, mark);
  return pl_plan_search_dates(search, &search->plan, own->ready, own->end);
}

static void reset(walk *own) {
  pl_step_plan_copy(own->model, &own->search->plan, &own->trial);
}

static pl_code offer(walk *own, pl_search_move move, uint32_t subject, uint32_t value, const char *why) {
  pl_ticks after = pl_plan_search_play(own->search, &own->trial);
  return pl_plan_search_offer(own->search, &own->trial, after,
                              (pl_search_step){(uint8_t)move, subject, value, why, 0, 0});
}

/* The least time of a fused unit's members and of its parts: ranks that are alike are changed alike, so the slowest
 * decides. */
static pl_ticks unit_time(walk *own, uint32_t first, uint32_t end) {
  pl_ticks most = 0;
  for (uint32_t k = 0; k < own->model->units[first].n_members; k++) {
    pl_ticks ticks = pl_step_unit_ticks(own->model, own->search->costs, &own->trial, first, end, k);
    if (ticks > most) most = ticks;
  }
  return most;
}

static uint32_t first_unit(const pl_step_plan *plan, uint32_t unit) {
  while (plan->fuses[unit])
    unit--;
  return unit;
}

/* The tensor that waits for one of these units; PL_NONE. */
static uint32_t made_by(const walk *own, uint32_t first, uint32_t end) {
  for (uint32_t u = end; u-- > first;)
    if (own->search->makes[u] != PL_NONE) return own->search->makes[u];
  return PL_NONE;
}

/* Fuses the tensors of the units before and behind the border `unit` too, if they stand next to each other. */
static void join_their_tensors(walk *own, uint32_t before, uint32_t unit, uint32_t end) {
  uint32_t a = made_by(own, before, unit), b = made_by(own, unit, end);
  if (!own->search->options.tensor_fusion || a == PL_NONE || b == PL_NONE || a == b) return;
  a = pl_step_plan_first(&own->trial, a);
  uint32_t next = pl_step_plan_end(own->model, &own->trial, a);
  if (next == pl_step_plan_first(&own->trial, b) && pl_plan_can_join(own->model, next)) own->trial.joins[next] = 1;
}

/* ---- the moves ---- */

static pl_code try_units(walk *own, uint32_t unit) {
  reset(own);
  if (own->trial.fuses[unit]) {
    own->trial.fuses[unit] = 0;
    return offer(own, PL_MOVE_PART_OPS, unit, 0, "replayed faster");
  }
  if (!own->model->units[unit].follows) return PL_OK;
  uint32_t before = first_unit(&own->trial, unit - 1), end = pl_step_plan_unit_end(own->model, &own->trial, unit);
  uint32_t tensor = made_by(own, before, unit);
  pl_ticks saved = unit_time(own, before, unit) + unit_time(own, unit, end) - unit_time(own, before, end);
  pl_ticks waits = 0; /* theorem 3: tensors that are fused too cost what the fused one takes longer */
  if (tensor != PL_NONE) {
    uint32_t first = pl_step_plan_first(&own->trial, tensor);
    waits = pl_plan_sync_time(own->search, first, pl_step_plan_end(own->model, &own->trial, first),
                              pl_step_plan_parts(&own->trial, first));
  }
  if (!pl_theorem_op_fusion(waits, saved, 0, 0) && !own->search->options.tensor_fusion) {
    own->search->n_ruled_out++;
    return PL_OK;
  }
  own->trial.fuses[unit] = 1;
  join_their_tensors(own, before, unit, end);
  return offer(own, PL_MOVE_FUSE_OPS, unit, 0,
               tensor == PL_NONE ? "no tensor waits for the first op" : "theorems 1 and 3");
}

/* Theorem 3: the ops between those that make the tensors of one bucket go together too. False: they do already. */
static bool fuse_makers(const walk *own, pl_step_plan *plan, uint32_t first) {
  const pl_step_model *model = own->model;
  uint32_t end = pl_step_plan_end(model, plan, first), last = PL_NONE;
  bool any = false;
  for (uint32_t u = 0; u < model->n_units; u++) {
    uint32_t tensor = own->search->makes[u];
    if (!model->units[u].follows) last = PL_NONE;
    if (tensor == PL_NONE || tensor < first || tensor >= end) continue;
    for (uint32_t k = last == PL_NONE ? u + 1 : last + 1; k <= u; k++) {
      any |= !plan->fuses[k];
      plan->fuses[k] = 1;
    }
    last = u;
  }
  return any;
}

static pl_code try_makers(walk *own, uint32_t tensor) {
  reset(own);
  if (own->trial.joins[tensor] || !fuse_makers(own, &own->trial, tensor)) return PL_OK;
  return offer(own, PL_MOVE_FUSE_MAKERS, tensor, 0, "theorem 3: their tensors are fused");
}

/* Of all buckets at once. */
static pl_code try_all_makers(walk *own) {
  bool any = false;
  reset(own);
  for (uint32_t k = 0; k < own->model->n_tensors; k++)
    if (!own->trial.joins[k]) any |= fuse_makers(own, &own->trial, k);
  return any ? offer(own, PL_MOVE_FUSE_MAKERS, 0, own->model->n_tensors, "theorem 3: their tensors are fused") : PL_OK;
}

static pl_code try_join(walk *own, uint32_t tensor) {
  pl_plan_search *search = own->search;
  reset(own);
  if (tensor == 0 || own->trial.joins[tensor] || !pl_plan_can_join(own->model, tensor)) return PL_OK;
  if (search->costs->latency[tensor] < 0) return PL_OK;
  uint32_t before = pl_step_plan_first(&own->trial, tensor - 1),
           end = pl_step_plan_end(own->model, &own->trial, tensor);
  uint32_t parts = pl_step_plan_parts(&own->trial, before), own_parts = pl_step_plan_parts(&own->trial, tensor);
  if (own_parts > parts) parts = own_parts;
  pl_ticks alone = pl_plan_sync_time(search, tensor, end, own_parts);
  pl_ticks both = pl_plan_sync_time(search, before, end, parts);
  if (alone < 0 || both < 0) return pl_fail_memory(search->error, "a partial replay");
  if (!pl_theorem_tensor_fusion(own->end[before], own->ready[tensor], both, alone)) {
    search->n_ruled_out++;
    return PL_OK;
  }
  own->trial.joins[tensor] = 1;
  own->trial.parts[before] = (uint8_t)parts;
  PL_TRY(offer(own, PL_MOVE_FUSE_TENSORS, tensor, 0, "theorem 2"));
  return PL_OK;
}

static pl_code try_part(walk *own, uint32_t tensor) {
  reset(own);
  if (!own->trial.joins[tensor]) return PL_OK;
  own->trial.joins[tensor] = 0;
  own->trial.parts[tensor] = own->trial.parts[pl_step_plan_first(&own->trial, tensor - 1)];
  PL_TRY(offer(own, PL_MOVE_PART_TENSORS, tensor, 0, "replayed faster"));
  /* the border between two fused tensors, one further */
  reset(own);
  uint32_t border = pl_step_plan_first(&own->trial, tensor);
  if (!own->trial.joins[tensor] || !pl_plan_can_join(own->model, border)) return PL_OK;
  own->trial.joins[border] = 1;
  own->trial.joins[tensor] = 0;
  own->trial.parts[tensor] = own->trial.parts[border];
  return offer(own, PL_MOVE_PART_TENSORS, tensor, 0, "the border of two buckets, moved; replayed faster");
}

/* The number of pieces goes up or down, by a factor first and then by one, as long as it pays. */
static pl_code try_parts(walk *own, uint32_t tensor) {
  static const int steps[] = {2, -2, 1, -1};
  pl_plan_search *search = own->search;
  if (search->plan.joins[tensor] || search->costs->latency[tensor] < 0) return PL_OK;
  for (size_t k = 0; k < sizeof steps / sizeof steps[0];) {
    reset(own);
    int now = (int)pl_step_plan_parts(&own->trial, tensor);
    int then = steps[k] == 2 ? 2 * now : steps[k] == -2 ? now / 2 : now + steps[k];
    pl_ticks best = search->best;
    if (then >= 1 && then <= PL_STEP_MOST_PARTS && then != now) {
      own->trial.parts[tensor] = (uint8_t)then;
      PL_TRY(offer(own, PL_MOVE_CUT, tensor, (uint32_t)then, "replayed faster than one step to either side"));
    }
    if (search->best == best) k++;
  }
  return PL_OK;
}

static pl_code walk_once(walk *own) {
  const pl_plan_options *options = &own->search->options;
  if (!read_path(own)) return pl_fail_memory(own->search->error, "a critical path");
  for (uint32_t u = 1; options->op_fusion && u < own->model->n_units; u++)
    if (own->unit_on[first_unit(&own->search->plan, u - 1)]) PL_TRY(try_units(own, u));
  for (uint32_t k = 0; k < own->model->n_tensors; k++) {
    if (!own->tensor_on[pl_step_plan_first(&own->search->plan, k)]) continue;
    if (options->tensor_fusion) PL_TRY(try_join(own, k));
    if (options->tensor_fusion) PL_TRY(try_part(own, k));
    if (options->op_fusion) PL_TRY(try_makers(own, k));
    if (options->tensor_partition) PL_TRY(try_parts(own, k));
  }
  return PL_OK;
}

/* ---- the coarsened view as a change ---- */

/* Ops that nothing but the next one waits for, and that is by itself what it waits for, go with it. */
static pl_code coarsen_units(walk *own) {
  const pl_step_model *model = own->model;
  pl_arena_mark mark = pl_arena_mark_here(own->search->arena);
  uint32_t *n_in = PL_TAKE(own->search->arena, uint32_t, model->n + 1);
  uint32_t *n_out = PL_TAKE(own->search->arena, uint32_t, model->n + 1);
  if (n_in == NULL || n_out == NULL) return pl_fail_memory(own->search->error, "a coarsened view");
  for (uint32_t e = 0; e < model->n_edges; e++) {
    n_out[model->edges[e].before]++;
    n_in[model->edges[e].after] += model->edges[e].kind != PL_STEP_LAUNCH;
  }
  reset(own);
  uint32_t n = 0;
  for (uint32_t u = 1; u < model->n_units; u++) {
    bool fuses = model->units[u].follows;
    for (uint32_t k = 0; k < model->units[u].n_members && fuses; k++)
      fuses = n_out[model->members[model->units[u - 1].first_member + k].body] == 1 &&
              n_in[model->members[model->units[u].first_member + k].gate] == 1;
    own->trial.fuses[u] = fuses;
    n += fuses;
  }
  pl_arena_release_to(own->search->arena, mark);
  if (n == 0) return PL_OK;
  return offer(own, PL_MOVE_COARSEN, 0, n, "ops that make no tensor go with the next one (theorem 3)");
}

static pl_code walk_path(pl_plan_search *search) {
  enum { MOST_QUIET = 5 };
  const pl_step_model *model = search->coarse;
  walk own = {.search = search, .model = model};
  own.ready = PL_TAKE(search->arena, pl_ticks, model->n_tensors + 1);
  own.end = PL_TAKE(search->arena, pl_ticks, model->n_tensors + 1);
  own.tensor_on = PL_TAKE(search->arena, bool, model->n_tensors + 1);
  own.unit_on = PL_TAKE(search->arena, bool, model->n_units + 1);
  if (own.ready == NULL || own.end == NULL || own.tensor_on == NULL || own.unit_on == NULL ||
      !pl_step_plan_take(model, search->arena, &own.trial))
    return pl_fail_memory(search->error, "a search");
  if (search->options.op_fusion) PL_TRY(coarsen_units(&own));
  if (search->options.tensor_fusion) PL_TRY(pl_plan_search_buckets(search));
  if (search->options.op_fusion) PL_TRY(try_all_makers(&own));
  for (uint32_t quiet = 0; quiet < MOST_QUIET;) { /* until five walks in a row gain less than 0.1 % each */
    pl_ticks before = search->best;
    PL_TRY(walk_once(&own));
    if (search->best == before) break;
    quiet = before - search->best < before / 1000 ? quiet + 1 : 0;
  }
  return PL_OK;
}

pl_code pl_plan_search_run(pl_plan_search *search) {
  PL_TRY(walk_path(search));
  return search->options.anneal ? pl_plan_search_anneal(search) : PL_OK;
}
