/* Runs that leap over microbatches equal those that play them all, bit for bit: every column of the row but what says
 * what was played (that, too, if all was), the features, the explanation, memory by stage and the busiest link. Random
 * strategies with 1 to 500 microbatches on random platforms of up to 64 devices, alike, mixed and lopsided.
 *
 * That the cases hold what can go wrong is counted, not hoped for. PACELINE_SEED chooses the first seed, PACELINE_CASES
 * how many. */
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
#include "workloads/run/simulate.h"

typedef enum question { ASK_ROW = 0, ASK_FEATURES, ASK_EXPLANATION, N_QUESTIONS } question;

enum { MOST_STAGES = 64, N_NUMBERS = PL_N_FEATURES + PL_N_STAGE_FEATURES * MOST_STAGES };

typedef struct outcome {
  pl_arena arena;
  pl_simulate_report report;
  pl_explanation explanation;
  double features[N_NUMBERS];
} outcome;

typedef struct problem {
  uint64_t seed;
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;
  pl_simulate_options options;
  question asked;
  bool far; /* over sockets, a random time apart */
} problem;

static outcome *simulate(const problem *own, bool leap) {
  outcome *out = calloc(1, sizeof *out);
  assert_non_null(out);
  pl_arena_init(&out->arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_simulate_options options = own->options;
  options.leap = leap;
  if (own->asked == ASK_FEATURES) {
    options.features = out->features;
    options.n_feature_stages = (uint32_t)own->strategy->pp;
  }
  if (own->asked == ASK_EXPLANATION) options.explanation = &out->explanation;
  if (pl_simulate(own->cluster, own->model, own->job, own->strategy, &options, &out->arena, &out->report, &error) !=
      PL_OK)
    fail_msg("seed %" PRIu64 ": %s", own->seed, error.message);
  return out;
}

static void release(outcome *out) {
  pl_arena_release(&out->arena);
  free(out);
}

/* ---- equal bits ---- */

static const char *difference_of_rows(const outcome *a, const outcome *b) {
  const char *first = (const char *)&a->report.row, *second = (const char *)&b->report.row;
  bool leapt = a->report.n_played != b->report.n_played;
  for (uint32_t c = 0; c < pl_result_n_columns; c++) {
    const pl_column_info *column = &pl_result_columns[c];
    if (leapt && (strcmp(column->name, "n_tasks") == 0 || strcmp(column->name, "run_digest") == 0)) continue;
    if (memcmp(first + column->offset, second + column->offset, column->size) != 0) return column->name;
  }
  const pl_simulate_report *one = &a->report, *other = &b->report;
  if (memcmp(one->stages, other->stages, (size_t)one->n_stages * sizeof *one->stages) != 0) return "memory of stages";
  if (one->n_events != other->n_events) return "events";
  if (one->bottleneck_link != other->bottleneck_link || one->bottleneck_utilisation != other->bottleneck_utilisation)
    return "busiest link";
  return NULL;
}

static const char *difference_of_times(const pl_explained_time *a, const pl_explained_time *b) {
  if (a->calls != b->calls) return "calls";
  if (a->alone != b->alone) return "time alone";
  if (a->run != b->run) return "time in the run";
  if (a->exposed != b->exposed) return "exposed time";
  if (a->foreign != b->foreign) return "time of others";
  if (a->flops != b->flops || a->bytes != b->bytes) return "work";
  return a->cost.time_s != b->cost.time_s || a->group_class != b->group_class ? "cost" : NULL;
}

static const char *difference_of_explanations(const pl_explanation *a, const pl_explanation *b) {
  uint32_t n_classes = a->plan->n_device_classes;
  if (a->n_ops != b->n_ops || n_classes != b->plan->n_device_classes) return "ops";
  if (a->makespan != b->makespan || memcmp(a->idle, b->idle, n_classes * sizeof *a->idle) != 0) return "idle";
  if (memcmp(a->spent, b->spent, (size_t)n_classes * PL_CATEGORY_COUNT * sizeof *a->spent) != 0) return "spent";
  for (uint32_t op = 0; op < a->n_ops; op++)
    if (a->ops[op].category != b->ops[op].category || a->ops[op].family != b->ops[op].family ||
        a->ops[op].family_op != b->ops[op].family_op || strcmp(a->ops[op].name, b->ops[op].name) != 0)
      return "order of ops";
  for (size_t at = 0; at < (size_t)n_classes * a->n_ops; at++) {
    const char *found = difference_of_times(&a->times[at], &b->times[at]);
    if (found != NULL) return found;
  }
  return NULL;
}

static const char *difference(const problem *own, const outcome *a, const outcome *b) {
  const char *found = difference_of_rows(a, b);
  if (found == NULL && own->asked == ASK_EXPLANATION)
    found = difference_of_explanations(&a->explanation, &b->explanation);
  if (found == NULL && own->asked == ASK_FEATURES && memcmp(a->features, b->features, sizeof a->features) != 0)
    found = "features";
  return found;
}

/* ---- cases ---- */

enum feature {
  FEATURE_1F1B,
  FEATURE_INTERLEAVED,
  FEATURE_GPIPE,
  FEATURE_HALVES,
  FEATURE_V,
  FEATURE_ONE_STAGE,
  FEATURE_DEEP,
  FEATURE_OVERLAP,
  FEATURE_UNFUSED,
  FEATURE_UNFOLDED,
  FEATURE_READY,
  FEATURE_CHUNKED,
  FEATURE_ANALYTIC,
  FEATURE_ZERO_2,
  FEATURE_ZERO_3,
  FEATURE_CONTEXT,
  FEATURE_EXPERTS,
  FEATURE_SPLIT,
  FEATURE_LATE_HOST,
  FEATURE_EXPLAINED,
  FEATURE_IN_FLIGHT, /* messages are under way on nobody's stream */
  N_FEATURES
};

static const char *const feature_names[N_FEATURES] = {"1f1b",
                                                      "interleaved",
                                                      "gpipe",
                                                      "zero bubble",
                                                      "in a V",
                                                      "one stage",
                                                      "pipelines of 6 and more",
                                                      "overlap factor",
                                                      "unfused",
                                                      "unfolded",
                                                      "ready streams",
                                                      "chunked",
                                                      "analytic",
                                                      "zero 2",
                                                      "zero 3",
                                                      "context parallel",
                                                      "experts",
                                                      "uneven split",
                                                      "late host",
                                                      "explained",
                                                      "messages in flight"};

typedef struct tally {
  uint32_t n_cases, n_leapt, n_rolled, n_wrong;
  uint64_t n_microbatches, n_played;
  uint32_t cases[N_FEATURES], leapt[N_FEATURES];
} tally;

static void count(const problem *own, const outcome *leapt, tally *all) {
  const pl_strategy *strategy = own->strategy;
  const pl_device_profile *profile = pl_cluster_profile(own->cluster, 0);
  const pl_simulate_options *options = &own->options;
  bool exact = options->chunked || options->streams == PL_STREAMS_READY;
  const bool has[N_FEATURES] = {
      [FEATURE_1F1B] = strategy->schedule == PL_SCHEDULE_1F1B,
      [FEATURE_INTERLEAVED] = strategy->schedule == PL_SCHEDULE_INTERLEAVED,
      [FEATURE_GPIPE] = strategy->schedule == PL_SCHEDULE_GPIPE,
      [FEATURE_HALVES] = pl_strategy_splits_backward(strategy),
      [FEATURE_V] = pl_strategy_is_v(strategy),
      [FEATURE_ONE_STAGE] = strategy->pp == 1,
      [FEATURE_DEEP] = strategy->pp >= 6,
      [FEATURE_OVERLAP] = profile->overlap_compute > 0 && strategy->zero >= 2 && strategy->dp > 1,
      [FEATURE_UNFUSED] = !options->fuse || exact,
      [FEATURE_UNFOLDED] = !options->fold || exact,
      [FEATURE_READY] = options->streams == PL_STREAMS_READY,
      [FEATURE_CHUNKED] = options->chunked,
      [FEATURE_ANALYTIC] = options->network == PL_NETWORK_ANALYTIC,
      [FEATURE_ZERO_2] = strategy->zero == 2 && strategy->dp > 1,
      [FEATURE_ZERO_3] = strategy->zero == 3 && strategy->dp > 1,
      [FEATURE_CONTEXT] = strategy->cp > 1,
      [FEATURE_EXPERTS] = strategy->ep > 1,
      [FEATURE_SPLIT] = strategy->split != NULL && strategy->split[0] != strategy->split[strategy->dp - 1],
      [FEATURE_LATE_HOST] = own->job->framework != NULL && own->job->framework->launch.launch_s > 0,
      [FEATURE_EXPLAINED] = own->asked == ASK_EXPLANATION,
      [FEATURE_IN_FLIGHT] = own->far && options->collective_profile != NULL && !options->chunked && strategy->pp > 1 &&
                            own->cluster->n_nodes > 1};
  bool leaps = leapt->report.n_played < leapt->report.row.n_microbatches;
  for (int i = 0; i < N_FEATURES; i++) {
    all->cases[i] += has[i];
    all->leapt[i] += has[i] && leaps;
  }
  all->n_cases++;
  all->n_leapt += leaps;
  all->n_rolled += leapt->report.n_rows < leapt->report.row.n_tasks;
  all->n_microbatches += (uint64_t)leapt->report.row.n_microbatches;
  all->n_played += (uint64_t)leapt->report.n_played;
}

/* Up to 500 microbatches more for every replica; the few are often. */
static void lengthen(uint64_t *random, pl_strategy *strategy, pl_job *job, pl_arena *arena) {
  int32_t most = random_below(random, 3) == 0 ? 500 : 150;
  int32_t round = strategy->vpp > 1 ? strategy->pp : 1, more = (int32_t)random_below(random, (uint32_t)most);
  more = more / round * round;
  job->gbs += (int64_t)more * strategy->dp * strategy->mbs;
  if (strategy->split == NULL) return;
  int32_t *split = PL_TAKE(arena, int32_t, strategy->dp);
  for (int32_t d = 0; d < strategy->dp; d++)
    split[d] = strategy->split[d] + more;
  strategy->split = split;
}

static void report_difference(const problem *own, const char *what, const outcome *whole, const outcome *leapt) {
  char *text = pl_strategy_text(own->strategy, own->model);
  print_message("seed %" PRIu64 ": %s, %u devices, gbs %" PRId64
                ", asked %d, fold %d fuse %d streams %d chunked %d, %s\n",
                own->seed, what, own->cluster->n_devices, own->job->gbs, (int)own->asked, own->options.fold,
                own->options.fuse, (int)own->options.streams, own->options.chunked, text);
  free(text);
  print_message("  %d of %d microbatches played; %.17g instead of %.17g s\n", leapt->report.n_played,
                leapt->report.row.n_microbatches, leapt->report.row.iter_time_s, whole->report.row.iter_time_s);
}

typedef struct kind_of_case {
  uint32_t most_devices;
  bool regular, placed, slow; /* slow: chunked collectives and ready streams, too */
  bool drifting;              /* GPipe, whose lanes drift apart */
} kind_of_case;

static pl_simulate_options choose_options(uint64_t *random, const kind_of_case *kind, pl_arena *arena) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.sharing = random_below(random, 4) == 0 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  options.algorithm = (pl_collective_algorithm)random_below(random, PL_ALGORITHM_COUNT);
  if (random_below(random, 2)) options.collective_profile = shipped_collective_profile(arena);
  if (random_below(random, 8) == 0) options.network = PL_NETWORK_ANALYTIC;
  options.fold = random_below(random, 4) > 0;
  options.fuse = random_below(random, 4) > 0;
  if (!kind->slow) return options;
  options.chunked = random_below(random, 2) == 0;
  options.streams = random_below(random, 2) == 0 ? PL_STREAMS_READY : PL_STREAMS_IN_ORDER;
  return options;
}

static void try_case(uint64_t seed, const kind_of_case *kind, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_cluster *cluster = kind->regular ? synthetic_cluster_random_regular(seed, kind->most_devices)
                                      : synthetic_cluster_random(seed, kind->most_devices);
  bool far = seed % 4 == 1;
  if (far) synthetic_cluster_take_apart(cluster, 17e-6 * (double)(1 + seed % 500));
  pl_model model;
  random_program_model(&random, &arena, &model);
  pl_job job;
  pl_strategy strategy;
  if (kind->placed ? random_program_placed(&random, cluster, &model, &job, &strategy, &arena)
                   : random_program_strategy(&random, (int32_t)cluster->n_devices, &model, &job, &strategy, &arena)) {
    if (seed % 3 == 0) job.framework = random_program_framework((uint32_t)(seed / 3), &arena);
    if (kind->drifting && strategy.schedule == PL_SCHEDULE_1F1B) strategy.schedule = PL_SCHEDULE_GPIPE;
    if (!kind->drifting && strategy.schedule == PL_SCHEDULE_GPIPE && random_below(&random, 2) == 0)
      strategy.schedule = PL_SCHEDULE_1F1B;
    lengthen(&random, &strategy, &job, &arena);
    problem own = {.seed = seed,
                   .cluster = cluster,
                   .model = &model,
                   .job = &job,
                   .strategy = &strategy,
                   .options = choose_options(&random, kind, &arena),
                   .asked = (question)random_below(&random, N_QUESTIONS),
                   .far = far};
    outcome *whole = simulate(&own, false), *leapt = simulate(&own, true);
    const char *found = difference(&own, whole, leapt);
    if (found != NULL) {
      all->n_wrong++;
      report_difference(&own, found, whole, leapt);
    }
    count(&own, leapt, all);
    release(whole);
    release(leapt);
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

static void run(kind_of_case kind, uint64_t n_cases, tally *all) {
  uint64_t first = test_number("PACELINE_SEED", 1);
  n_cases = test_cases(n_cases);
  tally own = {0};
  for (uint64_t i = 0; i < n_cases; i++)
    try_case(first + i, &kind, &own);
  print_message("seeds %" PRIu64 " to %" PRIu64 ": %u cases, %u leapt, %u rolled, %" PRIu64 " of %" PRIu64
                " microbatches played, %u differ\n",
                first, first + n_cases - 1, own.n_cases, own.n_leapt, own.n_rolled, own.n_played, own.n_microbatches,
                own.n_wrong);
  assert_int_equal(own.n_wrong, 0);
  all->n_rolled += own.n_rolled;
  for (int i = 0; i < N_FEATURES; i++) {
    all->cases[i] += own.cases[i];
    all->leapt[i] += own.leapt[i];
  }
}

static void test_small_lopsided(void **state) {
  run((kind_of_case){.most_devices = 16}, 120, *state);
}

static void test_regular(void **state) {
  run((kind_of_case){.most_devices = 32, .regular = true}, 80, *state);
}

static void test_large_lopsided(void **state) {
  run((kind_of_case){.most_devices = 64}, 16, *state);
}

static void test_placed(void **state) {
  run((kind_of_case){.most_devices = 32, .placed = true}, 50, *state);
}

static void test_drifting(void **state) {
  run((kind_of_case){.most_devices = 32, .regular = true, .drifting = true}, 50, *state);
}

static void test_other_engines(void **state) {
  run((kind_of_case){.most_devices = 8, .regular = true, .slow = true}, 50, *state);
}

static void test_cases_hold_what_can_go_wrong(void **state) {
  const tally *all = *state;
  for (int i = 0; i < N_FEATURES; i++)
    print_message("%-26s in %u cases, %u of them leapt\n", feature_names[i], all->cases[i], all->leapt[i]);
  if (!TEST_IS_SANITIZED && test_number("PACELINE_CASES", 0) == 0)
    assert_true(all->leapt[FEATURE_IN_FLIGHT] > 0 && all->n_rolled > 0);
}

int main(void) {
  tally all = {0};
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_small_lopsided, &all),
                                     cmocka_unit_test_prestate(test_regular, &all),
                                     cmocka_unit_test_prestate(test_large_lopsided, &all),
                                     cmocka_unit_test_prestate(test_placed, &all),
                                     cmocka_unit_test_prestate(test_drifting, &all),
                                     cmocka_unit_test_prestate(test_other_engines, &all),
                                     cmocka_unit_test_prestate(test_cases_hold_what_can_go_wrong, &all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
