/* See search/optimize/other_steps.h. */
#include "search/optimize/other_steps.h"

typedef struct playing {
  const pl_replay_session *session;
  const pl_optimization *job;
  const pl_optimize_options *options;
  bool units;
  pl_arena *arena; /* of one step */
} playing;

static pl_code take_model(const playing *own, const pl_trace_replay *replay, pl_step_model *model, pl_error *error) {
  return pl_step_model_take(replay, &own->session->steps, own->units, own->arena, model, error);
}

/* What the plan speaks of is there. */
static bool are_alike(const pl_step_model *a, const pl_step_model *b) {
  bool same = a->n_tensors == b->n_tensors && a->n_units == b->n_units;
  for (uint32_t k = 0; same && k < a->n_tensors; k++)
    same = a->tensors[k].chain == b->tensors[k].chain && a->tensors[k].n_slots == b->tensors[k].n_slots &&
           a->tensors[k].size_bytes == b->tensors[k].size_bytes;
  for (uint32_t u = 0; same && u < a->n_units; u++)
    same = a->units[u].name == b->units[u].name && a->units[u].n_members == b->units[u].n_members;
  return same;
}

static pl_code take_costs(const playing *own, const pl_step_model *model, pl_step_costs *costs, pl_error *error) {
  PL_TRY(pl_step_costs_take(model, own->options->costs, own->options->fits, own->arena, costs, error));
  costs->half_matrix = own->job->costs.half_matrix;
  costs->half_other = own->job->costs.half_other;
  return PL_OK;
}

/* ---- a step by itself ---- */

static pl_code play_alone(const playing *own, const pl_step_model *model, pl_other_step *out, pl_error *error) {
  pl_step_costs costs;
  pl_step_plan nothing;
  PL_TRY(take_costs(own, model, &costs, error));
  if (!pl_step_plan_take(model, own->arena, &nothing)) return pl_fail_memory(error, "another step");
  out->before = pl_step_plan_play(model, &costs, &nothing, own->arena);
  out->after = pl_step_plan_play(model, &costs, &own->job->search.plan, own->arena);
  if (out->before < 0 || out->after < 0) return pl_fail_memory(error, "another step");
  out->is_alike = out->before != PL_TICKS_NEVER && out->after != PL_TICKS_NEVER;
  return PL_OK;
}

/* ---- behind the one before ---- */

/* Tensor and unit of the model of both steps that are those of the model of one; PL_NONE: there is none. */
static uint32_t tensor_in(const pl_step_model *both, const pl_step_model *one, uint32_t tensor) {
  const pl_step_tensor *t = &one->tensors[tensor];
  for (uint32_t s = t->first_slot; s < t->first_slot + t->n_slots; s++) {
    uint32_t task = one->slots[s].task;
    if (one->replay->role[task] == PL_TRACE_GATE) return both->tensor[both->replay->gate[one->replay->subject[task]]];
  }
  return PL_NONE;
}

static uint32_t unit_in(const pl_step_model *both, const pl_step_model *one, uint32_t unit) {
  return both->unit[both->replay->gate[one->members[one->units[unit].first_member].op]];
}

/* The plan of `one` in the model of both steps. False: what it speaks of is not there as it is in the one. */
static bool map_plan(const pl_step_model *both, const pl_step_model *one, const pl_step_plan *plan, pl_step_plan *out) {
  uint32_t last = PL_NONE;
  for (uint32_t k = 0; k < one->n_tensors; k++) {
    uint32_t now = tensor_in(both, one, k);
    if (now == PL_NONE || both->tensors[now].n_slots != one->tensors[k].n_slots) return false;
    if (plan->joins[k] && (last == PL_NONE || now != last + 1)) return false;
    out->joins[now] = plan->joins[k];
    out->parts[now] = plan->parts[k];
    last = now;
  }
  last = PL_NONE;
  for (uint32_t u = 0; u < one->n_units; u++) {
    uint32_t now = unit_in(both, one, u);
    if (now == PL_NONE || both->units[now].n_members != one->units[u].n_members) return false;
    if (plan->fuses[u] && (last == PL_NONE || now != last + 1)) return false;
    out->fuses[now] = plan->fuses[u];
    out->narrows[now] = plan->narrows[u];
    last = now;
  }
  return true;
}

/* The second step from its first start to the end of all; as pl_step_plan_play. */
static pl_ticks play_second(const playing *own, const pl_trace_window *window, const pl_step_model *both,
                            const pl_step_costs *costs, const pl_step_plan *plan) {
  pl_arena_mark mark = pl_arena_mark_here(own->arena);
  pl_step_graph graph;
  uint32_t *now;
  pl_ticks time = -1;
  if (pl_step_rewrite(both, costs, plan, own->arena, &graph, NULL, NULL, &now)) {
    pl_ticks *finish = PL_TAKE(own->arena, pl_ticks, (size_t)graph.n + 1), start = PL_TICKS_NEVER;
    if (finish != NULL) time = pl_step_graph_play(&graph, own->arena, finish, NULL);
    for (uint32_t k = 0; time >= 0 && time != PL_TICKS_NEVER && k < window->n_ops; k++) {
      pl_ticks begins = finish[now[window->replay.gate[window->ops[k]]]];
      if (begins < start) start = begins;
    }
    if (time >= 0 && time != PL_TICKS_NEVER) time -= start;
  }
  pl_arena_release_to(own->arena, mark);
  return time;
}

static pl_code play_behind(const playing *own, uint32_t step, const pl_step_model *model, pl_other_step *out,
                           pl_error *error) {
  pl_trace_replay first_replay;
  pl_trace_window window;
  pl_step_model first, both;
  pl_step_costs costs;
  pl_step_plan plan, nothing;
  PL_TRY(pl_replay_session_take(own->session, step - 1, own->arena, &first_replay, error));
  PL_TRY(take_model(own, &first_replay, &first, error));
  if (!are_alike(&own->job->whole, &first)) return PL_OK;
  PL_TRY(pl_replay_session_window(own->session, step, own->arena, &window, error));
  PL_TRY(take_model(own, &window.replay, &both, error));
  PL_TRY(take_costs(own, &both, &costs, error));
  if (!pl_step_plan_take(&both, own->arena, &plan) || !pl_step_plan_take(&both, own->arena, &nothing))
    return pl_fail_memory(error, "another step");
  if (!map_plan(&both, &first, &own->job->search.plan, &plan) || !map_plan(&both, model, &own->job->search.plan, &plan))
    return PL_OK;
  pl_ticks before = play_second(own, &window, &both, &costs, &nothing);
  pl_ticks after = play_second(own, &window, &both, &costs, &plan);
  if (before < 0 || after < 0) return pl_fail_memory(error, "another step");
  if (before == PL_TICKS_NEVER || after == PL_TICKS_NEVER) return PL_OK;
  out->before = before;
  out->after = after;
  out->is_behind = true;
  return PL_OK;
}

static pl_code play(const playing *own, uint32_t step, pl_other_step *out, pl_error *error) {
  pl_trace_replay replay;
  pl_step_model model;
  PL_TRY(pl_replay_session_take(own->session, step, own->arena, &replay, error));
  PL_TRY(take_model(own, &replay, &model, error));
  *out = (pl_other_step){.number = replay.span.number};
  if (!are_alike(&own->job->whole, &model)) return PL_OK;
  PL_TRY(play_alone(own, &model, out, error));
  return step > 0 && out->is_alike ? play_behind(own, step, &model, out, error) : PL_OK;
}

pl_code pl_other_steps_play(const pl_replay_session *session, const pl_optimize_options *options, pl_arena *arena,
                            pl_optimization *job, pl_error *error) {
  if (job->memory.way != PL_MEMORY_AS_IS) return PL_OK;
  job->others = PL_TAKE(arena, pl_other_step, session->steps.n + 1);
  if (job->others == NULL) return pl_fail_memory(error, "the steps of a job");
  pl_arena scratch;
  pl_code code = PL_OK;
  pl_arena_init(&scratch, 0);
  const playing own = {session, job, options, job->whole.n_units > 0, &scratch};
  for (uint32_t s = 0; s < session->steps.n && code == PL_OK; s++) {
    pl_arena_reset(&scratch);
    code = play(&own, s, &job->others[job->n_others++], error);
  }
  pl_arena_release(&scratch);
  return code;
}
