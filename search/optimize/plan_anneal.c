/* Annealing (see search/optimize/plan_search.h): runs with seeds of their own, so that threads decide nothing. */
#include <math.h>
#include <omp.h>

#include "core/base/split_mix.h"
#include "search/optimize/plan_search.h"

typedef struct run {
  pl_plan_search search; /* with an arena of its own */
  pl_arena arena;
  pl_step_plan now, trial;
  pl_ticks time;
  uint64_t random;
} run;

static uint32_t below(uint64_t *state, uint32_t n) {
  return (uint32_t)(((pl_split_mix(state) >> 32) * (uint64_t)n) >> 32);
}

static double unit(uint64_t *state) {
  return (double)(pl_split_mix(state) >> 11) * 0x1p-53;
}

/* False: nothing was changed. */
static bool change(run *own) {
  const pl_plan_search *search = &own->search;
  const pl_step_model *model = search->coarse;
  const pl_plan_options *options = &search->options;
  uint32_t kind = below(&own->random, 3);
  if (kind == 0 && options->op_fusion && model->n_units > 1) {
    uint32_t u = 1 + below(&own->random, model->n_units - 1);
    if (!model->units[u].follows) return false;
    own->trial.fuses[u] ^= 1;
    return true;
  }
  uint32_t k = below(&own->random, model->n_tensors);
  if (search->costs->latency[k] < 0) return false;
  if (kind == 1 && options->tensor_fusion) {
    if (!pl_plan_can_join(model, k)) return false;
    own->trial.joins[k] ^= 1;
    return true;
  }
  if (kind != 2 || !options->tensor_partition || own->trial.joins[k]) return false;
  uint32_t parts = pl_step_plan_parts(&own->trial, k), then = below(&own->random, 2) ? 2 * parts : parts / 2;
  if (then < 1 || then > PL_STEP_MOST_PARTS) return false;
  own->trial.parts[k] = (uint8_t)then;
  return true;
}

static void anneal(run *own) {
  pl_plan_search *search = &own->search;
  double heat = 0.01 * (double)search->best; /* a hundredth of the step, cooled to a hundred thousandth */
  double cool = pow(1e-3, 1.0 / search->options.n_tries);
  for (uint32_t k = 0; k < search->options.n_tries; k++, heat *= cool) {
    pl_step_plan_copy(search->coarse, &own->now, &own->trial);
    if (!change(own)) continue;
    pl_ticks time = pl_plan_search_play(search, &own->trial);
    double worse = (double)(time - own->time), chance = unit(&own->random);
    if (time < 0 || time == PL_TICKS_NEVER || (worse > 0 && chance >= exp(-worse / heat))) continue;
    own->time = time;
    pl_step_plan_copy(search->coarse, &own->trial, &own->now);
    if (time < search->best) {
      search->best = time;
      pl_step_plan_copy(search->coarse, &own->trial, &search->plan);
    }
  }
}

static bool begin(const pl_plan_search *search, run *own, uint32_t k) {
  const pl_step_model *model = search->coarse;
  pl_arena_init(&own->arena, 0);
  own->search = *search;
  own->search.arena = &own->arena;
  own->search.n_replays = 0;
  own->random = search->options.seed + k;
  own->random = pl_split_mix(&own->random); /* seeds next to each other are no runs next to each other */
  own->time = search->best;
  if (!pl_step_plan_take(model, &own->arena, &own->now) || !pl_step_plan_take(model, &own->arena, &own->trial) ||
      !pl_step_plan_take(model, &own->arena, &own->search.plan))
    return false;
  pl_step_plan_copy(model, &search->plan, &own->now);
  pl_step_plan_copy(model, &search->plan, &own->search.plan);
  return true;
}

pl_code pl_plan_search_anneal(pl_plan_search *search) {
  uint32_t n = search->options.n_runs;
  run *runs = PL_TAKE(search->arena, run, n + 1);
  if (runs == NULL || search->coarse->n_tensors == 0) return pl_fail_memory(search->error, "annealing");
  bool good = true;
  for (uint32_t k = 0; k < n; k++)
    good &= begin(search, &runs[k], k);
#pragma omp parallel for default(none) shared(runs) firstprivate(n) schedule(dynamic, 1)                               \
    num_threads(search->options.n_threads) if (good)
  for (uint32_t k = 0; k < n; k++)
    anneal(&runs[k]);
  uint32_t best = 0;
  for (uint32_t k = 0; k < n; k++) {
    search->n_replays += runs[k].search.n_replays;
    if (runs[k].search.best < runs[best].search.best) best = k;
  }
  pl_code code = good ? PL_OK : pl_fail_memory(search->error, "annealing");
  if (good) {
    pl_search_step step = {PL_MOVE_ANNEAL, best, search->options.n_tries, "the best of all runs", 0, 0};
    code = pl_plan_search_offer(search, &runs[best].search.plan, runs[best].search.best, step);
  }
  for (uint32_t k = 0; k < n; k++)
    pl_arena_release(&runs[k].arena);
  return code;
}
