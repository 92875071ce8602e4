/* Devices at paces of their own: folded, fused and leapt runs with them equal those that play every device, op and
 * microbatch, bit for bit, and so do all runs of a straggler report: undisturbed, named, without each named entry,
 * draws. Random strategies on random platforms.
 *
 * PACELINE_SEED chooses the first seed, PACELINE_CASES how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/collective_profile.h"
#include "tests/support/random.h"
#include "tests/support/random_program.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/run/simulate.h"

typedef struct problem {
  uint64_t seed;
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  pl_simulate_options options;
} problem;

typedef struct outcome {
  pl_arena arena;
  pl_simulate_report report;
  pl_straggling straggling;
} outcome;

static void simulate(const problem *own, bool small, outcome *out) {
  pl_error error = PL_ERROR_INIT;
  pl_simulate_options options = own->options;
  options.fold = options.fuse = options.leap = small;
  if (options.stragglers != NULL) options.straggling = &out->straggling;
  pl_arena_init(&out->arena, 0);
  if (pl_simulate(own->cluster, own->model, own->job, own->strategy, &options, &out->arena, &out->report, &error) !=
      PL_OK)
    fail_msg("seed %" PRIu64 ": %s", own->seed, error.message);
}

static const char *difference(const pl_stragglers *stragglers, const outcome *a, const outcome *b) {
  const pl_straggling *one = &a->straggling, *other = &b->straggling;
  if (a->report.row.iter_time_s != b->report.row.iter_time_s) return "iteration";
  if (a->report.row.compute_s != b->report.row.compute_s) return "computing";
  if (a->report.row.bubble_s != b->report.row.bubble_s) return "bubble";
  if (one->undisturbed_s != other->undisturbed_s) return "undisturbed";
  if (one->slowed_s != other->slowed_s || one->slowed_s != a->report.row.iter_time_s) return "slowed";
  for (uint32_t e = 0; e < stragglers->n_entries; e++)
    if (one->without_s[e] != other->without_s[e]) return "without an entry";
  for (uint32_t i = 0; i < stragglers->n_draws; i++)
    if (one->draws[i].time_s != other->draws[i].time_s || one->draws[i].without_s != other->draws[i].without_s ||
        one->draws[i].slowest != other->draws[i].slowest)
      return "a draw";
  return NULL;
}

typedef struct tally {
  uint32_t n_cases, n_folded, n_fused, n_leapt, n_wrong;
} tally;

/* Up to four entries, devices or nodes, that work. */
static void name_devices(uint64_t *random, const problem *own, char *text, size_t size) {
  size_t length = 0;
  for (uint32_t e = 0, n = 1 + random_below(random, 4); e < n && length < size; e++) {
    uint32_t rank = random_below(random, pl_strategy_n_ranks(own->strategy));
    const pl_device *device = &own->cluster->devices[pl_strategy_device_of_rank(own->strategy, rank)];
    const char *node = own->cluster->nodes[device->node].name;
    bool whole = node != NULL && random_below(random, 3) == 0;
    length += (size_t)snprintf(text + length, size - length, "%s%s=%g", e > 0 ? "," : "", whole ? node : device->name,
                               0.8 + 0.05 * random_below(random, 20));
  }
}

static void compare(problem *own, const pl_stragglers *stragglers, const char *what, tally *all) {
  outcome small, whole, plain;
  own->options.stragglers = stragglers;
  simulate(own, true, &small);
  simulate(own, false, &whole);
  const char *found = difference(stragglers, &small, &whole);
  own->options.stragglers = NULL;
  simulate(own, true, &plain);
  if (found == NULL && plain.report.row.iter_time_s != small.straggling.undisturbed_s) found = "no factors at all";
  if (found != NULL) {
    char *text = pl_strategy_text(own->strategy, own->model);
    print_message("seed %" PRIu64 ": %s of %s differs, %u devices, gbs %" PRId64 ", %s\n", own->seed, found, what,
                  own->cluster->n_devices, own->job->gbs, text);
    free(text);
    all->n_wrong++;
  }
  all->n_cases++;
  all->n_folded += small.report.n_device_classes < small.report.n_devices;
  all->n_fused += small.report.row.n_tasks < whole.report.row.n_tasks;
  all->n_leapt += small.report.n_played < small.report.row.n_microbatches;
  pl_arena_release(&small.arena);
  pl_arena_release(&whole.arena);
  pl_arena_release(&plain.arena);
}

static void try_case(uint64_t seed, tally *named, tally *drawn) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_cluster *cluster = seed % 2 ? synthetic_cluster_random_regular(seed, 32) : synthetic_cluster_random(seed, 16);
  pl_model model;
  pl_job job;
  pl_strategy strategy;
  random_program_model(&random, &arena, &model);
  if (random_program_placed(&random, cluster, &model, &job, &strategy, &arena)) {
    if (seed % 3 == 0) job.framework = random_program_framework((uint32_t)(seed / 3), &arena);
    int64_t more = (int64_t)random_below(&random, 40) / strategy.pp * strategy.pp;
    if (strategy.split == NULL) job.gbs += more * strategy.dp * strategy.mbs;
    problem own = {.seed = seed,
                   .cluster = cluster,
                   .model = &model,
                   .job = &job,
                   .strategy = &strategy,
                   .options = PL_SIMULATE_OPTIONS_DEFAULT};
    if (random_below(&random, 2)) own.options.collective_profile = shipped_collective_profile(&arena);
    if (random_below(&random, 6) == 0) own.options.network = PL_NETWORK_ANALYTIC;
    char text[512];
    pl_stragglers stragglers;
    pl_error error = PL_ERROR_INIT;
    name_devices(&random, &own, text, sizeof(text));
    bool *works = PL_TAKE(&arena, bool, cluster->n_devices);
    for (uint32_t rank = 0; rank < pl_strategy_n_ranks(&strategy); rank++)
      works[pl_strategy_device_of_rank(&strategy, rank)] = true;
    assert_int_equal(pl_stragglers_parse(text, NULL, NULL, &arena, &stragglers, &error), PL_OK);
    assert_int_equal(pl_stragglers_find(&stragglers, cluster, works, &arena, &error), PL_OK);
    compare(&own, &stragglers, text, named);
    assert_int_equal(pl_stragglers_parse(text, "7,0.05", "2", &arena, &stragglers, &error), PL_OK);
    assert_int_equal(pl_stragglers_find(&stragglers, cluster, works, &arena, &error), PL_OK);
    compare(&own, &stragglers, "jitter", drawn);
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

static void reduced_runs_equal_whole_ones(void **state) {
  (void)state;
  uint64_t first = test_number("PACELINE_SEED", 1), n_cases = test_number("PACELINE_CASES", 16);
  tally named = {0}, drawn = {0};
  for (uint64_t i = 0; i < n_cases; i++)
    try_case(first + i, &named, &drawn);
  print_message("named: %u cases, %u folded, %u fused, %u leapt, %u differ\n", named.n_cases, named.n_folded,
                named.n_fused, named.n_leapt, named.n_wrong);
  print_message("drawn: %u cases, %u folded, %u fused, %u leapt, %u differ\n", drawn.n_cases, drawn.n_folded,
                drawn.n_fused, drawn.n_leapt, drawn.n_wrong);
  assert_int_equal(named.n_wrong + drawn.n_wrong, 0);
  assert_int_equal(drawn.n_folded, 0);
  if (n_cases >= 16) assert_true(named.n_folded > 0 && named.n_leapt > 0 && drawn.n_leapt > 0);
}

/* ln of the factors: mean 0, deviation sigma. 20,000 of them: five deviations of either estimate. */
static void factors_are_log_normal(void **state) {
  (void)state;
  enum { DRAWS = 200, DEVICES = 100, N = DRAWS * DEVICES };
  const pl_stragglers stragglers = {.seed = 3, .sigma = 0.1};
  double sum = 0, squares = 0;
  for (uint32_t draw = 0; draw < DRAWS; draw++)
    for (uint32_t device = 0; device < DEVICES; device++) {
      double z = log(pl_jitter_factor(&stragglers, draw, device)) / stragglers.sigma;
      sum += z;
      squares += z * z;
    }
  assert_true(fabs(sum / N) < 5 / sqrt(N));
  assert_true(fabs(squares / N - 1) < 5 * sqrt(2. / N));
  assert_true(pl_jitter_factor(&stragglers, 1, 2) != pl_jitter_factor(&stragglers, 2, 1));
  const pl_stragglers none = {.seed = 3, .sigma = 0};
  assert_true(pl_jitter_factor(&none, 1, 2) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reduced_runs_equal_whole_ones),
                                     cmocka_unit_test(factors_are_log_normal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
