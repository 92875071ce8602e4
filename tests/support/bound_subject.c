/* See tests/support/bound_subject.h. */
#include "tests/support/bound_subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/random.h"
#include "workloads/command/job_options.h"

enum { SHOWN = 3 };

static void simulate(bound_subject *own, const pl_strategy *strategy, pl_result_row *row) {
  const pl_evaluation evaluation = {.cluster = own->problem.cluster,
                                    .model = own->problem.model,
                                    .job = own->problem.job,
                                    .options = own->problem.options};
  pl_error error = PL_ERROR_INIT;
  pl_arena_reset(&own->worker.arena);
  *row = (pl_result_row){.features = NULL};
  if (pl_evaluate_strategy(&evaluation, strategy, &own->worker, row, &error) != PL_OK) fail_msg("%s", error.message);
}

static void check_anywhere(pl_lower_bounds *bounds, const pl_strategy *strategy, double iter_time_s) {
  pl_error error = PL_ERROR_INIT;
  double time_s;
  assert_int_equal(pl_lower_bound_anywhere(bounds, strategy, &time_s, &error), PL_OK);
  assert_true(time_s > 0);
  if (!(time_s <= iter_time_s)) fail_msg("%.9g s, below %.9g s, which holds anywhere", iter_time_s, time_s);
}

/* Bounds that keep what earlier ones made say what new ones say, to the bit. */
static void check_kept(const pl_search_problem *p, pl_lower_bounds *bounds, const pl_strategy *strategy) {
  pl_arena arena;
  pl_lower_bound kept, made;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  pl_lower_bounds *fresh = pl_lower_bounds_take(p->cluster, p->model, p->job, p->options, &arena);
  assert_int_equal(pl_lower_bound_of(bounds, strategy, &kept, &error), PL_OK);
  assert_int_equal(pl_lower_bound_of(fresh, strategy, &made, &error), PL_OK);
  if (kept.time_s != made.time_s || kept.shortfall_bytes != made.shortfall_bytes || kept.stage != made.stage)
    fail_msg("%.17g s, %.17g bytes short; anew %.17g s, %.17g bytes", kept.time_s, kept.shortfall_bytes, made.time_s,
             made.shortfall_bytes);
  pl_lower_bounds_release(fresh);
  pl_arena_release(&arena);
}

/* A walk over what shares an outline: other ZeRO and overlap, the same again, and another cut at the same place. */
static void check_neighbours(const pl_search_problem *p, pl_lower_bounds *bounds, const pl_strategy *strategy,
                             pl_arena *scratch) {
  int32_t n = pl_strategy_n_chunks(strategy), *boundary = PL_TAKE(scratch, int32_t, n + 1);
  memcpy(boundary, strategy->boundary, ((size_t)n + 1) * sizeof *boundary);
  for (int step = 0; step < 6; step++) {
    pl_strategy near = *strategy;
    pl_error refused = PL_ERROR_INIT;
    near.boundary = boundary;
    near.zero = step / 2 == 1 ? (strategy->zero + 1) % 4 : strategy->zero;
    near.overlap = step % 2 == 1 ? !strategy->overlap : strategy->overlap;
    if (step == 4 && n > 1 && boundary[n - 1] - 1 > boundary[n - 2]) boundary[n - 1]--;
    if (pl_strategy_check(&near, p->model, p->job, p->cluster->n_devices, &refused) != PL_OK) continue;
    check_kept(p, bounds, &near);
  }
}

static void check_one(bound_subject *own, pl_lower_bounds *bounds, const pl_strategy *given, pl_arena *scratch) {
  pl_strategy strategy = *given;
  pl_lower_bound bound;
  pl_result_row row;
  pl_error error = PL_ERROR_INIT;
  const pl_search_problem *p = &own->problem;
  pl_arena_reset(scratch);
  if (strategy.boundary == NULL)
    assert_int_equal(pl_strategy_assign(&strategy, p->model, p->job, p->cluster, scratch, &error), PL_OK);
  assert_int_equal(pl_lower_bound_of(bounds, &strategy, &bound, &error), PL_OK);
  if (own->n_checked % 4 == 0) check_neighbours(p, bounds, &strategy, scratch);
  simulate(own, &strategy, &row);
  char *text = pl_strategy_text(&strategy, p->model);
  if (!(bound.time_s <= row.iter_time_s) && own->n_above++ < SHOWN)
    print_error("%s takes %.9g s, below its bound %.9g s (%+.3g %%; %s, network %s, %s collectives, streams %s, "
                "framework %s, buckets of %.3g)\n",
                text, row.iter_time_s, bound.time_s, 100 * (bound.time_s / row.iter_time_s - 1), p->model->name,
                pl_network_names[own->options.network], pl_collective_form_names[own->options.chunked],
                pl_stream_policy_names[own->options.streams], pl_framework_or_ideal(own->job.framework)->name,
                own->job.bucket_bytes);
  if (row.fits && bound.shortfall_bytes > 0)
    fail_msg("%s fits, %.0f of %.0f bytes at stage %d, but %.0f were said to be missing at stage %d", text,
             (double)row.peak_mem_bytes, (double)row.mem_capacity_bytes, row.peak_stage, bound.shortfall_bytes,
             bound.stage);
  free(text);
  if (own->ratios != NULL && bound.time_s > 0) own->ratios[own->n_ratios++] = bound.time_s / row.iter_time_s;
  check_anywhere(bounds, &strategy, row.iter_time_s);
  own->n_experts += p->model->moe.n_experts > 0 && strategy.overlap && pl_strategy_replicas(&strategy) > 1;
  own->n_checked++;
  own->n_oom += !row.fits;
  own->n_known_oom += !row.fits && bound.shortfall_bytes > 0;
  own->tightest = fmax(own->tightest, bound.time_s / row.iter_time_s);
}

/* ---- what no space has ---- */

/* Strictly rising, the same number of blocks for each or not. */
static void cut_anywhere(pl_strategy *strategy, const pl_model *model, uint64_t *random, pl_arena *arena) {
  int32_t n = pl_strategy_n_chunks(strategy), blocks = pl_model_n_blocks(model);
  int32_t *boundary = PL_TAKE(arena, int32_t, n + 1);
  boundary[n] = blocks;
  for (int32_t c = 1; c < n; c++) {
    int32_t lowest = boundary[c - 1] + 1, room = blocks - (n - c) - lowest + 1;
    boundary[c] = lowest + (int32_t)random_below(random, (uint32_t)room);
  }
  strategy->boundary = boundary;
}

static void place_anywhere(pl_strategy *strategy, uint32_t n_devices, uint64_t *random, pl_arena *arena) {
  uint32_t *devices = PL_TAKE(arena, uint32_t, n_devices);
  for (uint32_t d = 0; d < n_devices; d++)
    devices[d] = d;
  for (uint32_t d = n_devices - 1; d > 0; d--) {
    uint32_t other = random_below(random, d + 1), device = devices[d];
    devices[d] = devices[other];
    devices[other] = device;
  }
  strategy->placement = devices;
  strategy->idle = false;
}

static void split_anyhow(pl_strategy *strategy, const pl_job *job, uint64_t *random, pl_arena *arena) {
  int32_t unit = strategy->vpp > 1 ? strategy->pp : 1, left = (int32_t)(job->gbs / strategy->mbs / unit);
  int32_t *split = PL_TAKE(arena, int32_t, strategy->dp);
  if (left < strategy->dp) return;
  for (int32_t r = 0; r < strategy->dp; r++, left--)
    split[r] = unit;
  for (; left > 0; left--)
    split[random_below(random, (uint32_t)strategy->dp)] += unit;
  strategy->split = split;
}

/* Each change half the time; what is then none of this job's stays as the space has it. */
static void change(const pl_search_problem *p, uint64_t *random, pl_strategy *strategy, pl_arena *arena) {
  for (int kind = 0; kind < 5; kind++) {
    pl_strategy changed = *strategy;
    pl_error refused = PL_ERROR_INIT;
    if (random_below(random, 2) == 0) continue;
    if (kind == 0) cut_anywhere(&changed, p->model, random, arena);
    if (kind == 1) place_anywhere(&changed, p->cluster->n_devices, random, arena);
    if (kind == 2) split_anyhow(&changed, p->job, random, arena);
    if (kind == 3) changed.shard = random_divisor(random, pl_strategy_replicas(strategy));
    if (kind == 4) changed.cp_gather = true;
    if (pl_strategy_check(&changed, p->model, p->job, p->cluster->n_devices, &refused) == PL_OK) *strategy = changed;
  }
}

void bound_subject_check(bound_subject *own, uint64_t *random, const pl_space *space, uint32_t most, bool changes) {
  pl_arena scratch, kept, changed;
  pl_arena_init(&scratch, 0);
  pl_arena_init(&kept, 0);
  pl_arena_init(&changed, 0);
  const pl_search_problem *p = &own->problem;
  pl_lower_bounds *bounds = pl_lower_bounds_take(p->cluster, p->model, p->job, p->options, &kept);
  uint32_t n = space->n_candidates < most ? space->n_candidates : most;
  for (uint32_t i = 0; i < n; i++) {
    pl_strategy strategy;
    uint32_t index = n == space->n_candidates ? i : (uint32_t)random_below(random, space->n_candidates);
    pl_space_strategy(space, index, &strategy);
    if (changes && random_below(random, 2) == 0) change(p, random, &strategy, &changed);
    check_one(own, bounds, &strategy, &scratch);
    pl_arena_reset(&changed);
  }
  pl_lower_bounds_release(bounds);
  pl_arena_release(&changed);
  pl_arena_release(&kept);
  pl_arena_release(&scratch);
}

/* Runs a method to its end, without the driver. */
static double best_of(bound_subject *own, const char *name, uint32_t *n_rows) {
  const pl_method *method = pl_method_find(name);
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  void *state;
  pl_proposal proposals[32];
  double best_s = INFINITY;
  uint32_t n;
  *n_rows = 0;
  if (method->open(&own->problem, &arena, &state, &error) != PL_OK) fail_msg("%s", error.message);
  for (;;) {
    pl_result_row row;
    assert_int_equal(method->propose(state, 32, proposals, &n, &error), PL_OK);
    if (n == 0) break;
    for (uint32_t i = 0; i < n; i++) {
      simulate(own, &proposals[i].strategy, &row);
      row.status = row.fits ? PL_RESULT_DONE : PL_RESULT_OOM;
      if (row.fits) best_s = fmin(best_s, row.iter_time_s);
      if (method->learn != NULL) method->learn(state, &proposals[i], &row);
      (*n_rows)++;
    }
  }
  pl_arena_release(&arena);
  return best_s;
}

void bound_subject_compare_searches(bound_subject *own, uint32_t *n_all, uint32_t *n_bound) {
  uint32_t exhaustive, bound, placed;
  own->choices.order_is_given = true;
  double all_s = best_of(own, "exhaustive", &exhaustive), best_s = best_of(own, "bound", &bound);
  if (!(all_s == best_s)) fail_msg("exhaustive found %.17g s, bound %.17g s", all_s, best_s);
  own->choices.order_is_given = false;
  double placed_s = best_of(own, "bound", &placed);
  if (!(placed_s <= all_s)) fail_msg("exhaustive found %.17g s, bound with placements %.17g s", all_s, placed_s);
  *n_all += exhaustive;
  *n_bound += bound;
}

bool bound_subject_space(bound_subject *own, pl_space *space) {
  pl_error error = PL_ERROR_INIT;
  return pl_method_space_take(&own->problem, &own->arena, space, &error) == PL_OK;
}

void bound_subject_init(bound_subject *own, const pl_cluster *cluster) {
  *own = (bound_subject){.options = PL_SIMULATE_OPTIONS_DEFAULT};
  pl_arena_init(&own->arena, 0);
  pl_worker_init(&own->worker);
  pl_space_choices_init(&own->choices);
  own->problem = (pl_search_problem){.cluster = cluster,
                                     .model = &own->model,
                                     .job = &own->job,
                                     .options = &own->options,
                                     .choices = &own->choices,
                                     .seed = 1,
                                     .budget = UINT64_MAX};
}

void bound_subject_release(bound_subject *own) {
  pl_worker_release(&own->worker);
  pl_arena_release(&own->arena);
}
