/* Runs that go on from where those of a sibling were (workloads/run/siblings.h) equal those from the beginning, bit for
 * bit: every column of the row, what was played, the features, memory by stage and the busiest link. Random strategies,
 * each with all that is done with gradients, in random order, on random platforms, with the caches of a sweep.
 *
 * Every other family goes on without features, as a sweep does: then stages share the passes that they have in common
 * (pl_compile_options.shares_passes), which no run from the beginning does here.
 *
 * That runs do go on, of every kind, is counted. PACELINE_SEED chooses the first seed, PACELINE_CASES how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/collective_profile.h"
#include "tests/support/random.h"
#include "tests/support/random_program.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/run/siblings.h"
#include "workloads/run/simulate.h"

enum { MOST_STAGES = 64, N_NUMBERS = PL_N_FEATURES + PL_N_STAGE_FEATURES * MOST_STAGES, N_VARIANTS = 8 };

typedef struct thread {
  pl_topology_cache cache;
  pl_block_cache blocks;
  pl_siblings siblings;
} thread;

static void init(thread *own) {
  pl_topology_cache_init(&own->cache, 1 << 16); /* forgets often */
  pl_block_cache_init(&own->blocks, 1 << 24);
  pl_siblings_init(&own->siblings);
}

static void release(thread *own) {
  pl_siblings_release(&own->siblings);
  pl_block_cache_release(&own->blocks);
  pl_topology_cache_release(&own->cache);
}

typedef struct outcome {
  pl_arena arena;
  pl_simulate_report report;
  double features[N_NUMBERS];
} outcome;

typedef struct problem {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  pl_simulate_options options;
  bool sweeps_always; /* of rolled graphs dates are forgotten as soon as they can be */
  bool shares_passes; /* when going on: no features */
} problem;

typedef struct tally {
  uint32_t n_cases, n_wrong;
  uint32_t leapt, rolled, whole; /* simulations of which a run went on from another */
  uint64_t n_tasks, n_taken_over;
} tally;

static void simulate(const problem *own, const pl_strategy *strategy, thread *with, bool goes_on, outcome *out) {
  pl_error error = PL_ERROR_INIT;
  pl_simulate_options options = own->options;
  pl_arena_init(&out->arena, 0);
  memset(out->features, 0, sizeof out->features);
  options.features = goes_on && own->shares_passes ? NULL : out->features;
  options.n_feature_stages = (uint32_t)strategy->pp;
  options.cache = &with->cache;
  options.blocks = &with->blocks;
  options.siblings = goes_on ? &with->siblings : NULL;
  options.sweeps_always = goes_on && own->sweeps_always;
  if (pl_simulate(own->cluster, own->model, own->job, strategy, &options, &out->arena, &out->report, &error) != PL_OK)
    fail_msg("%s", error.message);
}

static const char *difference(const outcome *a, const outcome *b, bool shares_passes) {
  const char *first = (const char *)&a->report.row, *second = (const char *)&b->report.row;
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    const pl_column_info *column = &pl_result_columns[c];
    if (memcmp(first + column->offset, second + column->offset, column->size) != 0) return column->name;
  }
  const pl_simulate_report *one = &a->report, *other = &b->report;
  if (memcmp(one->stages, other->stages, (size_t)one->n_stages * sizeof *one->stages) != 0) return "memory of stages";
  if (memcmp(one->times, other->times, (size_t)one->n_stages * sizeof *one->times) != 0) return "times of stages";
  if (one->n_events != other->n_events) return "events";
  if (one->n_played != other->n_played) return "microbatches played";
  if (one->bottleneck_link != other->bottleneck_link || one->bottleneck_utilisation != other->bottleneck_utilisation)
    return "busiest link";
  return !shares_passes && memcmp(a->features, b->features, sizeof a->features) != 0 ? "features" : NULL;
}

static void try_variant(uint64_t seed, const problem *own, const pl_strategy *strategy, thread *alone, thread *beside,
                        tally *all) {
  uint64_t before = beside->siblings.n_taken_over;
  outcome *first = calloc(2, sizeof *first), *second = first + 1;
  assert_non_null(first);
  simulate(own, strategy, alone, false, first);
  simulate(own, strategy, beside, true, second);
  const char *found = difference(first, second, own->shares_passes);
  if (found != NULL) {
    char *text = pl_strategy_text(strategy, own->model);
    print_message("seed %" PRIu64 ": %s, %s\n", seed, found, text);
    free(text);
    all->n_wrong++;
  }
  const pl_simulate_report *report = &second->report;
  if (beside->siblings.n_taken_over > before) {
    all->rolled += report->n_rows < report->row.n_tasks;
    all->leapt += report->n_played < report->row.n_microbatches;
    all->whole += report->n_rows == report->row.n_tasks && report->n_played == report->row.n_microbatches;
  }
  pl_arena_release(&first->arena);
  pl_arena_release(&second->arena);
  free(first);
}

static void shuffle(uint64_t *random, int *order) {
  for (int i = 0; i < N_VARIANTS; i++) {
    int j = (int)random_below(random, (uint32_t)i + 1);
    order[i] = order[j];
    order[j] = i;
  }
}

/* The first strategies of a family are not always those that a sweep has first. */
static void try_family(uint64_t seed, uint64_t *random, const problem *own, pl_strategy *strategy, tally *all) {
  int order[N_VARIANTS];
  thread alone, beside;
  init(&alone);
  init(&beside);
  shuffle(random, order);
  for (int i = 0; i < N_VARIANTS; i++) {
    strategy->zero = order[i] / 2;
    strategy->overlap = order[i] % 2 == 1;
    if (strategy->zero >= 2 && (strategy->schedule == PL_SCHEDULE_DUALPIPE || seed % 4 > 0)) continue;
    try_variant(seed, own, strategy, &alone, &beside, all);
  }
  all->n_tasks += beside.siblings.n_tasks;
  all->n_taken_over += beside.siblings.n_taken_over;
  release(&alone);
  release(&beside);
}

static const pl_residuals *load_residuals(pl_arena *arena) {
  pl_error error = PL_ERROR_INIT;
  pl_residuals *residuals = PL_TAKE(arena, pl_residuals, 1);
  if (residuals == NULL || pl_residuals_load(arena, residuals, &error) != PL_OK) fail_msg("%s", error.message);
  return residuals;
}

static pl_simulate_options choose_options(uint64_t *random, pl_arena *arena) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.residuals = load_residuals(arena);
  options.sharing = random_below(random, 4) == 0 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  if (random_below(random, 2)) options.collective_profile = shipped_collective_profile(arena);
  if (random_below(random, 8) == 0) options.network = PL_NETWORK_ANALYTIC;
  options.fold = random_below(random, 4) > 0;
  options.fuse = random_below(random, 4) > 0;
  options.leap = random_below(random, 4) > 0;
  return options;
}

/* Of every third case microbatches are many. */
static void lengthen(uint64_t *random, pl_strategy *strategy, pl_job *job) {
  int32_t most = random_below(random, 3) == 0 ? 300 : 40;
  int32_t round = strategy->vpp > 1 ? strategy->pp : 1, more = (int32_t)random_below(random, (uint32_t)most);
  job->gbs += (int64_t)(more / round * round) * strategy->dp * strategy->mbs;
}

static void try_case(uint64_t seed, uint32_t most_devices, bool regular, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_cluster *cluster =
      regular ? synthetic_cluster_random_regular(seed, most_devices) : synthetic_cluster_random(seed, most_devices);
  pl_model model;
  random_program_model(&random, &arena, &model);
  pl_job job;
  pl_strategy strategy;
  if (random_program_strategy(&random, (int32_t)cluster->n_devices, &model, &job, &strategy, &arena) &&
      strategy.dp > 1) {
    if (seed % 3 == 0) job.framework = random_program_framework((uint32_t)(seed / 3), &arena);
    if (strategy.split == NULL) lengthen(&random, &strategy, &job);
    const problem own = {.cluster = cluster,
                         .model = &model,
                         .job = &job,
                         .options = choose_options(&random, &arena),
                         .sweeps_always = seed % 24 == 0,
                         .shares_passes = seed % 2 == 0};
    try_family(seed, &random, &own, &strategy, all);
    all->n_cases++;
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

static void run(uint32_t most_devices, bool regular, uint64_t n_cases, tally *all) {
  uint64_t first = test_number("PACELINE_SEED", 1);
  n_cases = test_cases(n_cases);
  tally own = {0};
  for (uint64_t i = 0; i < n_cases; i++)
    try_case(first + i, most_devices, regular, &own);
  print_message("seeds %" PRIu64 " to %" PRIu64 ": %u families, %" PRIu64 " of %" PRIu64
                " tasks taken over; %u leapt, %u rolled, %u played whole; %u differ\n",
                first, first + n_cases - 1, own.n_cases, own.n_taken_over, own.n_tasks, own.leapt, own.rolled,
                own.whole, own.n_wrong);
  assert_int_equal(own.n_wrong, 0);
  all->leapt += own.leapt;
  all->rolled += own.rolled;
  all->whole += own.whole;
}

static void test_regular(void **state) {
  run(32, true, 160, *state);
}

static void test_lopsided(void **state) {
  run(16, false, 120, *state);
}

static void test_runs_go_on(void **state) {
  const tally *all = *state;
  if (!TEST_IS_SANITIZED && test_number("PACELINE_CASES", 0) == 0)
    assert_true(all->leapt > 10 && all->rolled > 1 && all->whole > 10);
}

int main(void) {
  tally all = {0};
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_regular, &all),
                                     cmocka_unit_test_prestate(test_lopsided, &all),
                                     cmocka_unit_test_prestate(test_runs_go_on, &all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
