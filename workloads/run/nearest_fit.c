/* See workloads/run/nearest_fit.h. */
#include "workloads/run/nearest_fit.h"

#include <math.h>
#include <stdlib.h>

#include "workloads/lower/block_program.h"
#include "workloads/memory/stage_memory.h"
#include "workloads/memory/stage_peak.h"

/* ---- memory of one strategy ---- */

typedef struct weighing {
  const pl_cluster *cluster;
  const pl_program *outline;
  const pl_program *whole; /* for the replay of the allocator; NULL: there is none */
  pl_arena *scratch;
  pl_error *error;
} weighing;

static pl_code weigh(const weighing *own, int32_t stage, const pl_device_profile *profile, double peak,
                     double *short_bytes) {
  pl_replayed_memory replayed;
  if (own->whole != NULL) {
    double limit = fmax(pl_allocator_limit(own->cluster, own->whole, stage, profile), 1);
    PL_TRY(pl_stage_replay(own->whole, stage, limit, own->scratch, &replayed, own->error));
  }
  *short_bytes =
      peak -
      pl_held_memory_of(own->cluster, own->outline, stage, profile, peak, own->whole != NULL ? &replayed : NULL).usable;
  return PL_OK;
}

static bool has_profile(const weighing *own, int32_t stage, uint32_t profile) {
  const pl_strategy *strategy = own->outline->strategy;
  if (own->cluster->n_profiles == 1) return true;
  for (int32_t replica = 0; replica < pl_strategy_replicas(strategy); replica++)
    for (int32_t tensor = 0; tensor < strategy->tmp; tensor++)
      if (own->cluster->devices[pl_strategy_device(strategy, stage, replica, tensor)].profile == profile) return true;
  return false;
}

static pl_code find_worst(const weighing *own, double *short_bytes, int32_t *stage) {
  *short_bytes = -INFINITY;
  for (int32_t s = 0; s < own->outline->strategy->pp; s++) {
    double peak = pl_stage_peak_bytes(own->outline, s, true);
    for (uint32_t p = 0; p < own->cluster->n_profiles; p++) {
      double short_here = -INFINITY;
      if (!has_profile(own, s, p)) continue;
      PL_TRY(weigh(own, s, &own->cluster->profiles[p], peak, &short_here));
      if (short_here <= *short_bytes) continue;
      *short_bytes = short_here;
      *stage = s;
    }
  }
  return PL_OK;
}

pl_code pl_strategy_shortfall(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                              const pl_strategy *strategy, pl_arena *scratch, double *short_bytes, int32_t *stage,
                              pl_error *error) {
  const pl_block_shard shard = pl_strategy_shard(strategy, job);
  pl_block_program blocks[PL_MODEL_CLASSES_MAX];
  pl_program outline, whole;
  for (int32_t c = 0; c < pl_model_n_classes(model); c++)
    PL_TRY(pl_block_class_program_take(model, c, &shard, scratch, &blocks[c], error));
  pl_program_making *making; /* never finished: memory needs no passes */
  PL_TRY(pl_program_outline_begin(model, job, strategy, blocks, scratch, &outline, &making, error));
  weighing own = {.cluster = cluster, .outline = &outline, .scratch = scratch, .error = error};
  *stage = 0;
  PL_TRY(find_worst(&own, short_bytes, stage));
  if (*short_bytes > 0 || pl_framework_or_ideal(job->framework)->memory.allocator == PL_ALLOCATOR_EXACT) return PL_OK;
  PL_TRY(pl_program_take(model, job, strategy, scratch, &whole, error));
  own.whole = &whole;
  return find_worst(&own, short_bytes, stage);
}

/* ---- those nearby ---- */

enum { MOST_TRIED = 4096 };

typedef struct neighbour {
  pl_strategy strategy;
  int32_t steps;
  uint32_t index;
} neighbour;

typedef struct neighbours {
  const pl_strategy *base;
  neighbour *list;
  uint32_t n;
} neighbours;

static void add(neighbours *own, const pl_strategy *strategy, int32_t steps) {
  if (steps == 0 || own->n == MOST_TRIED) return;
  own->list[own->n] = (neighbour){.strategy = *strategy, .steps = steps, .index = own->n};
  own->n++;
}

static void vary_recompute(neighbours *own, pl_strategy strategy, int32_t steps) {
  add(own, &strategy, steps);
  if (own->base->recompute == PL_RECOMPUTE_NONE) {
    strategy.recompute = PL_RECOMPUTE_SELECTIVE;
    add(own, &strategy, steps + 1);
  }
  if (own->base->recompute == PL_RECOMPUTE_FULL) return;
  strategy.recompute = PL_RECOMPUTE_FULL;
  add(own, &strategy, steps + 2);
}

static void vary_sequence(neighbours *own, pl_strategy strategy, int32_t steps) {
  vary_recompute(own, strategy, steps);
  if (strategy.sp || strategy.tmp == 1) return;
  strategy.sp = true;
  vary_recompute(own, strategy, steps + 1);
}

static void vary_zero(neighbours *own, pl_strategy strategy, int32_t steps) {
  int32_t most = pl_strategy_replicas(&strategy) == 1 ? strategy.zero : strategy.pp > 1 ? 1 : 3;
  vary_sequence(own, strategy, steps);
  while (strategy.zero < most) {
    strategy.zero++;
    vary_sequence(own, strategy, ++steps);
  }
}

static void vary_microbatch(neighbours *own, pl_strategy strategy, int32_t steps) {
  vary_zero(own, strategy, steps);
  while (strategy.mbs % 2 == 0 && strategy.split == NULL) {
    strategy.mbs /= 2;
    vary_zero(own, strategy, ++steps);
  }
}

/* Ranks that something else than the degrees has numbered stay as they are. */
static bool can_regroup(const pl_strategy *base) {
  return base->placement == NULL && base->split == NULL && base->shard == 0 && pl_strategy_cp(base) == 1 &&
         pl_strategy_ep(base) == 1;
}

static void vary_degrees(neighbours *own) {
  const pl_strategy *base = own->base;
  for (int32_t tmp = 1, tensor_steps = 0; tmp <= base->dp; tmp *= 2, tensor_steps += 2)
    for (int32_t pp = 1, steps = tensor_steps; (int64_t)pp * tmp <= base->dp; pp *= 2, steps += 2) {
      if (base->dp % (pp * tmp) != 0 || (steps > 0 && !can_regroup(base))) continue;
      pl_strategy strategy = *base;
      strategy.dp /= pp * tmp;
      strategy.tmp *= tmp;
      strategy.pp *= pp;
      if (pp > 1) {
        strategy.boundary = NULL;
        strategy.recipe = base->recipe == PL_ASSIGN_BALANCED ? PL_ASSIGN_BALANCED : PL_ASSIGN_UNIFORM;
        if (strategy.zero > 1) continue;
      }
      vary_microbatch(own, strategy, steps);
    }
}

static int compare(const void *left, const void *right) {
  const neighbour *a = left, *b = right;
  if (a->steps != b->steps) return a->steps < b->steps ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* ---- looking ---- */

/* False also where the strategy does not hold for this job at all. */
static bool fits(const pl_cluster *cluster, const pl_model *model, const pl_job *job, pl_strategy *strategy,
                 pl_arena *scratch) {
  double short_bytes;
  int32_t stage;
  if (pl_strategy_check(strategy, model, job, cluster->n_devices, NULL) != PL_OK) return false;
  if (strategy->boundary == NULL && pl_strategy_assign(strategy, model, job, cluster, scratch, NULL) != PL_OK)
    return false;
  return pl_strategy_shortfall(cluster, model, job, strategy, scratch, &short_bytes, &stage, NULL) == PL_OK &&
         short_bytes <= 0;
}

static const char *describe(const pl_strategy *base, const pl_strategy *found, pl_arena *arena) {
  const struct {
    const char *name;
    int32_t before, after;
  } numbers[] = {{"pp", base->pp, found->pp},    {"dp", base->dp, found->dp}, {"tmp", base->tmp, found->tmp},
                 {"mbs", base->mbs, found->mbs}, {"sp", base->sp, found->sp}, {"zero", base->zero, found->zero}};
  const char *text = "";
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && text != NULL; i++)
    if (numbers[i].before != numbers[i].after)
      text = pl_arena_printf(arena, "%s%s%s=%d", text, text[0] ? ", " : "", numbers[i].name, numbers[i].after);
  if (text != NULL && base->recompute != found->recompute)
    text = pl_arena_printf(arena, "%s%srecompute=%s", text, text[0] ? ", " : "", pl_recompute_names[found->recompute]);
  return text;
}

static pl_code report(const pl_model *model, const pl_strategy *base, const pl_strategy *found, pl_arena *arena,
                      pl_nearest_fit *fit, pl_error *error) {
  char *text = pl_strategy_text(found, model);
  fit->strategy = text != NULL ? pl_arena_strdup(arena, text) : NULL;
  free(text);
  fit->changes = describe(base, found, arena);
  return fit->strategy != NULL && fit->changes != NULL ? PL_OK
                                                       : pl_fail_memory(error, "the nearest strategy that fits");
}

pl_code pl_nearest_fit_find(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_simulate_options *options, pl_arena *arena,
                            pl_nearest_fit *fit, pl_error *error) {
  *fit = (pl_nearest_fit){.changes = NULL};
  if (options->streams == PL_STREAMS_READY || strategy->split != NULL) return PL_OK;
  neighbours own = {.base = strategy, .list = PL_TAKE(arena, neighbour, MOST_TRIED)};
  if (own.list == NULL) return pl_fail_memory(error, "the nearest strategy that fits");
  vary_degrees(&own);
  qsort(own.list, own.n, sizeof *own.list, compare);
  pl_arena scratch;
  pl_arena_init(&scratch, 0);
  pl_code code = PL_OK;
  for (uint32_t i = 0; i < own.n; i++) {
    pl_arena_reset(&scratch);
    if (!fits(cluster, model, job, &own.list[i].strategy, &scratch)) continue;
    code = report(model, strategy, &own.list[i].strategy, arena, fit, error);
    break;
  }
  pl_arena_release(&scratch);
  return code;
}
