/* Programs whose microbatches are leapt over equal those that play them all, bit for bit: times and their division,
 * what runs, FLOPs, memory, the interval, and every line of the explanation; and so do those whose devices are folded
 * and whose passes are fused. Programs of random strategies on random clusters, of random trees on shipped platforms,
 * and both with steps of their lists exchanged as by hand.
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

#include "netmodel/platform/platform.h"
#include "tests/support/collective_profile.h"
#include "tests/support/random.h"
#include "tests/support/random_program.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_check.h"
#include "workloads/passes/program_of.h"
#include "workloads/run/explain_program.h"
#include "workloads/run/launched_program.h"
#include "workloads/run/simulate_program.h"

typedef struct outcome {
  pl_program_report report;
  pl_straggling straggling;
  pl_program_explanation explanation;
} outcome;

typedef struct problem {
  uint64_t seed;
  const char *what;
  const pl_cluster *cluster;
  const pl_framework *framework;
  pl_ir_module module;
  pl_simulate_options options;
  bool asks; /* for an explanation */
  bool is_fused;
} problem;

/* ---- equal bits ---- */

static const char *difference_of_parts(const pl_program_part *a, const pl_program_part *b) {
  if (strcmp(a->name, b->name) != 0 || a->category != b->category || a->computes != b->computes) return "parts";
  if (a->calls != b->calls) return "calls";
  if (a->run != b->run) return "time in the run";
  return a->time != b->time ? "time of a part" : NULL;
}

static const char *difference_of_explanations(const pl_program_explanation *a, const pl_program_explanation *b) {
  if (a->makespan != b->makespan || a->n_lists != b->n_lists || a->busiest != b->busiest) return "explanation";
  for (uint32_t l = 0; l < a->n_lists; l++) {
    const pl_program_list *one = &a->lists[l], *other = &b->lists[l];
    if (one->device != other->device || one->idle != other->idle || one->n_parts != other->n_parts) return "a list";
    for (uint32_t p = 0; p < one->n_parts; p++) {
      const char *found = difference_of_parts(&one->parts[p], &other->parts[p]);
      if (found != NULL) return found;
    }
  }
  return NULL;
}

static const char *difference_of_reports(const pl_program_report *a, const pl_program_report *b) {
  if (a->iter_time_s != b->iter_time_s) return "time";
  if (a->idle_s != b->idle_s || memcmp(a->spent_s, b->spent_s, sizeof a->spent_s) != 0) return "shares";
  if (a->n_kernels != b->n_kernels) return "kernels";
  if (a->n_collectives != b->n_collectives) return "collectives";
  if (a->n_sends != b->n_sends) return "sends";
  if (a->n_offloads != b->n_offloads || a->offloaded_bytes != b->offloaded_bytes) return "offloads";
  if (a->host_updates != b->host_updates) return "updates by hosts";
  if (a->flops != b->flops) return "FLOPs";
  if (a->fits != b->fits || a->fullest != b->fullest) return "verdict";
  if (memcmp(a->memory, b->memory, a->n_classes * sizeof *a->memory) != 0) return "memory";
  return memcmp(&a->interval, &b->interval, sizeof a->interval) != 0 ? "interval" : NULL;
}

/* ---- one case ---- */

enum feature {
  FEATURE_ONE_LIST,
  FEATURE_DEEP,
  FEATURE_TWO_PHASES,
  FEATURE_FEWER,
  FEATURE_HALVES,
  FEATURE_CHUNKS,
  FEATURE_OFFLOADED,
  FEATURE_LATE_HOST,
  FEATURE_GATHERS_AHEAD,
  FEATURE_ANALYTIC,
  FEATURE_UNFOLDED,
  FEATURE_MIXED,
  FEATURE_OPS,
  FEATURE_EDITED,
  FEATURE_JOINED,
  FEATURE_EXPLAINED,
  FEATURE_SLOW,
  FEATURE_FUSED,
  N_FEATURES
};

static const char *const feature_names[N_FEATURES] = {
    "one list",           "6 lists and more",   "all forwards first",
    "fewer microbatches", "passes for weights", "several chunks a list",
    "offloaded",          "late host",          "gathers ahead",
    "analytic",           "unfolded",           "two kinds of devices",
    "ops, not kernels",   "steps exchanged",    "steps joined",
    "explained",          "slow devices",       "fused"};

typedef struct tally {
  uint32_t n_cases, n_leapt, n_wrong, n_refused;
  uint64_t n_microbatches, n_played;
  uint32_t cases[N_FEATURES], leapt[N_FEATURES];
} tally;

static bool has_weights(const pl_ir_module *module) {
  return module->classes[0].chunks[0].weights != PL_IR_NONE;
}

static bool has_two_phases(const pl_ir_module *module) {
  const pl_ir_class *class = &module->classes[0];
  int32_t half = class->n_steps / 2;
  for (int32_t s = 0; s < half; s++)
    if (class->steps[s].kind != PL_IR_STEP_F) return false;
  return module->n_microbatches > 8;
}

static bool joins(const pl_ir_module *module) {
  for (int32_t c = 0; c < module->n_classes; c++)
    for (int32_t s = 0; s < module->classes[c].n_steps; s++)
      if (module->classes[c].steps[s].joined) return true;
  return false;
}

static void count(const problem *own, bool edited, const pl_program_report *leapt, tally *all) {
  const pl_ir_module *module = &own->module;
  const bool has[N_FEATURES] = {[FEATURE_ONE_LIST] = module->n_classes == 1,
                                [FEATURE_DEEP] = module->n_classes >= 6,
                                [FEATURE_TWO_PHASES] = has_two_phases(module),
                                [FEATURE_FEWER] = module->n_fewer > 0,
                                [FEATURE_HALVES] = has_weights(module),
                                [FEATURE_CHUNKS] = module->classes[0].n_chunks > 1,
                                [FEATURE_OFFLOADED] = leapt->n_offloads > 0,
                                [FEATURE_LATE_HOST] = own->framework->launch.launch_s > 0,
                                [FEATURE_GATHERS_AHEAD] = own->framework->gathers.gathers_ahead,
                                [FEATURE_ANALYTIC] = own->options.network == PL_NETWORK_ANALYTIC,
                                [FEATURE_UNFOLDED] = !own->options.fold,
                                [FEATURE_MIXED] = own->cluster->n_profiles > 1,
                                [FEATURE_OPS] = module->level != PL_IR_KERNELS,
                                [FEATURE_EDITED] = edited,
                                [FEATURE_JOINED] = joins(module),
                                [FEATURE_EXPLAINED] = own->asks,
                                [FEATURE_SLOW] = own->options.stragglers != NULL,
                                [FEATURE_FUSED] = own->is_fused};
  bool leaps = leapt->n_played < module->n_microbatches;
  for (int i = 0; i < N_FEATURES; i++) {
    all->cases[i] += has[i];
    all->leapt[i] += has[i] && leaps;
  }
  all->n_cases++;
  all->n_leapt += leaps;
  all->n_microbatches += (uint64_t)module->n_microbatches;
  all->n_played += (uint64_t)leapt->n_played;
}

static bool simulate(const problem *own, bool leap, pl_arena *arena, outcome *out, pl_error *error) {
  pl_simulate_options options = own->options;
  options.leap = leap;
  if (own->asks) options.of_program = &out->explanation;
  if (options.stragglers != NULL) options.straggling = &out->straggling;
  return pl_simulate_program(own->cluster, &own->module, own->framework, &options, arena, &out->report, error) == PL_OK;
}

static pl_residuals unlike(void) {
  pl_residuals residuals = {.centre = 0};
  for (int i = 0; i < PL_RESIDUAL_COUNT; i++)
    residuals.half[i] = 0.01 * (i + 1);
  return residuals;
}

static const char *difference_of_straggling(const pl_straggling *a, const pl_straggling *b) {
  if (a->undisturbed_s != b->undisturbed_s || a->slowed_s != b->slowed_s) return "slowed";
  return a->without_s[0] != b->without_s[0] ? "without an entry" : NULL;
}

static void simulate_other(const problem *own, pl_arena *arena, outcome *out) {
  pl_error error = PL_ERROR_INIT;
  if (!simulate(own, true, arena, out, &error)) fail_msg("seed %" PRIu64 ": %s", own->seed, error.message);
}

/* What is leapt over is folded as well, and then passes are fused. */
static const char *difference_to_unfolded(problem *own, const outcome *folded) {
  pl_arena arena;
  problem other = *own;
  outcome unfolded, unfused;
  pl_arena_init(&arena, 0);
  other.options.fuse = false;
  simulate_other(&other, &arena, &unfused);
  own->is_fused = folded->report.n_tasks < unfused.report.n_tasks;
  const char *found = difference_of_reports(&unfused.report, &folded->report) != NULL ? "unfused" : NULL;
  other.options.fold = false;
  simulate_other(&other, &arena, &unfolded);
  if (difference_of_reports(&unfolded.report, &folded->report) != NULL ||
      (own->options.stragglers != NULL && difference_of_straggling(&unfolded.straggling, &folded->straggling) != NULL))
    found = "unfolded";
  pl_arena_release(&arena);
  return found;
}

static void compare(problem *own, bool edited, tally *all) {
  const pl_residuals residuals = unlike();
  const pl_aspects aspects = {0};
  outcome whole, leapt;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  own->options.residuals = &residuals;
  own->options.program_aspects = &aspects;
  own->is_fused = false;
  if (!simulate(own, false, &arena, &whole, &error)) {
    all->n_refused++;
  } else if (!simulate(own, true, &arena, &leapt, &error)) {
    fail_msg("seed %" PRIu64 ": %s", own->seed, error.message);
  } else {
    const char *found = difference_of_reports(&whole.report, &leapt.report);
    if (found == NULL && own->asks) found = difference_of_explanations(&whole.explanation, &leapt.explanation);
    if (found == NULL && own->options.stragglers != NULL)
      found = difference_of_straggling(&whole.straggling, &leapt.straggling);
    if (found == NULL && own->options.fold && !own->asks) found = difference_to_unfolded(own, &leapt);
    all->n_wrong += found != NULL;
    if (found != NULL) {
      print_message("seed %" PRIu64 ": %s, %u devices, %d lists, edited %d, fold %d, asks %d, framework %s\n%s\n",
                    own->seed, found, own->cluster->n_devices, own->module.n_classes, edited, own->options.fold,
                    own->asks, own->framework->name, own->what);
      print_message("  %d of %d microbatches played; %.17g instead of %.17g s\n", leapt.report.n_played,
                    own->module.n_microbatches, leapt.report.iter_time_s, whole.report.iter_time_s);
    }
    count(own, edited, &leapt.report, all);
  }
  pl_arena_release(&arena);
}

static pl_simulate_options choose_options(uint64_t *random, pl_arena *arena) {
  pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
  options.sharing = random_below(random, 4) == 0 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
  options.algorithm = (pl_collective_algorithm)random_below(random, PL_ALGORITHM_COUNT);
  if (random_below(random, 2)) options.collective_profile = shipped_collective_profile(arena);
  if (random_below(random, 8) == 0) options.network = PL_NETWORK_ANALYTIC;
  options.fold = random_below(random, 4) > 0;
  options.no_overlap_factor = random_below(random, 4) == 0;
  return options;
}

/* Some devices, by one entry of --slow. */
static const pl_stragglers *random_stragglers(uint64_t *random, uint32_t n_devices, pl_arena *arena) {
  pl_stragglers *made = PL_TAKE(arena, pl_stragglers, 1);
  uint32_t *marks = PL_TAKE(arena, uint32_t, n_devices), every = 1 + random_below(random, 4);
  for (uint32_t d = random_below(random, n_devices); d < n_devices; d += every)
    marks[d] = 1;
  *made = (pl_stragglers){.n_entries = 1, .marks = marks, .entry_of = marks, .n_marks = 2};
  made->entries[0].factor = 1.0 + 0.1 * random_between(random, 1, 5);
  return made;
}

/* Forward passes with a backward pass behind them run beside it. */
static bool join(pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  bool any = false;
  for (int32_t c = 0; c < module->n_classes; c++) {
    pl_ir_class *class = &module->classes[c];
    for (int32_t s = 0; s + 1 < class->n_steps; s++) {
      class->steps[s].joined = class->steps[s].kind == PL_IR_STEP_F && class->steps[s + 1].kind != PL_IR_STEP_F;
      any = any || class->steps[s].joined;
    }
  }
  return any && pl_ir_check(module, &error) == PL_OK;
}

/* Exchanges steps that stand beside each other, here and there or in every period alike. */
static bool edit(uint64_t *random, pl_ir_module *module) {
  pl_error error = PL_ERROR_INIT;
  uint32_t n = 1 + random_below(random, 3), every = random_below(random, 2) == 0 ? 0 : 2 + random_below(random, 3);
  for (uint32_t i = 0; i < n; i++) {
    pl_ir_class *class = &module->classes[random_below(random, (uint32_t)module->n_classes)];
    if (class->n_steps < 2) return false;
    for (int32_t s = (int32_t)random_below(random, (uint32_t) class->n_steps - 1); s + 1 < class->n_steps;
         s += (int32_t)every) {
      const pl_ir_step step = class->steps[s];
      class->steps[s] = class->steps[s + 1];
      class->steps[s + 1] = step;
      if (every == 0) break;
    }
  }
  return pl_ir_check(module, &error) == PL_OK;
}

/* Both as it was made, and edited, if that is still a program. */
static void try_module(uint64_t *random, problem *own, const pl_ir_module *made, pl_arena *arena, tally *all) {
  pl_error error = PL_ERROR_INIT;
  own->options = choose_options(random, arena);
  own->asks = random_below(random, 3) == 0;
  if (random_below(random, 6) == 0) own->options.stragglers = random_stragglers(random, own->cluster->n_devices, arena);
  own->module = *made;
  if (random_below(random, 4) > 0 &&
      pl_program_launched(own->cluster, made, own->framework, arena, &own->module, &error) != PL_OK)
    fail_msg("seed %" PRIu64 ": %s", own->seed, error.message);
  compare(own, false, all);
  if (random_below(random, 2) == 0 && edit(random, &own->module)) compare(own, true, all);
  if (random_below(random, 4) == 0 && join(&own->module)) compare(own, true, all);
}

/* ---- programs of strategies ---- */

/* Up to 200 microbatches more for every replica. */
static void lengthen(uint64_t *random, pl_strategy *strategy, pl_job *job, pl_arena *arena) {
  int32_t round = strategy->vpp > 1 ? strategy->pp : 1, more = 20 + (int32_t)random_below(random, 180);
  more = more / round * round;
  job->gbs += (int64_t)more * strategy->dp * strategy->mbs;
  if (strategy->split == NULL) return;
  int32_t *split = PL_TAKE(arena, int32_t, strategy->dp);
  for (int32_t d = 0; d < strategy->dp; d++)
    split[d] = strategy->split[d] + more;
  strategy->split = split;
}

static void try_strategy(uint64_t seed, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  bool regular = random_below(&random, 3) > 0;
  pl_cluster *cluster = regular ? synthetic_cluster_random_regular(seed, 12) : synthetic_cluster_random(seed, 12);
  pl_model model;
  random_program_model(&random, &arena, &model);
  pl_job job;
  pl_strategy strategy;
  pl_ir_module module;
  if (random_program_placed(&random, cluster, &model, &job, &strategy, &arena)) {
    problem own = {.seed = seed,
                   .cluster = cluster,
                   .framework = random_program_framework((uint32_t)(seed / 3 * (seed % 3 == 0)), &arena)};
    job.framework = own.framework;
    lengthen(&random, &strategy, &job, &arena);
    char *text = pl_strategy_text(&strategy, &model);
    own.what = text;
    if (pl_program_of(&model, &job, &strategy, PL_IR_DISTRIBUTED, &arena, &module, &error) == PL_OK &&
        pl_ir_check(&module, &error) == PL_OK)
      try_module(&random, &own, &module, &arena, all);
    else
      all->n_refused++;
    free(text);
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

/* ---- programs of trees ---- */

static const char *random_tree(uint64_t *random, int32_t n_microbatches, pl_arena *arena) {
  static const char *const kinds[] = {"1f1b", "1f1b",  "1f1b",  "gpipe",
                                      "fifo", "zb-h1", "zb-h2", "1f1b, max_ongoing: 3"};
  static const char *const memories[] = {"",
                                         "memory: {states: b}\n",
                                         "memory: {states: b, gradients: b}\n",
                                         "memory: {states: b, gradients: b, parameters: b}\n",
                                         "memory: {states: [b, host]}\n",
                                         "memory: {states: [b, host], gradients: host}\n",
                                         "memory: {kept: host}\n"};
  static const char *const children[] = {"", "children:\n  - {match: h.*, schedule: {recompute: full}}\n",
                                         "children:\n  - {match: h.1, memory: {kept: host}}\n",
                                         "children:\n  - {match: h.*, schedule: {microbatches: 2}}\n",
                                         "children:\n  - {match: h.0-1, schedule: {recompute: full}}\n"};
  static const char *const partitions[] = {"{b: dp, v|g|r|f: tp}", "{b: dp, v|g|r|f|s: tp}", "{b: dp, s: tp}"};
  uint32_t stages = 1u << random_below(random, 3), dp = 1u << random_below(random, 2),
           tp = 1u << random_below(random, 2);
  const char *kind = kinds[random_below(random, sizeof kinds / sizeof *kinds)];
  if (stages == 1) kind = random_below(random, 2) == 0 ? "1f1b" : "gpipe";
  const char *memory = memories[random_below(random, sizeof memories / sizeof *memories)];
  const char *child = children[random_below(random, sizeof children / sizeof *children)];
  return pl_arena_printf(arena,
                         "mesh: {dp: %u, tp: %u}\npipeline: {stages: %u}\nschedule: {microbatches: %d, kind: %s}\n"
                         "partition: %s\n%s%s",
                         dp, tp, stages, n_microbatches, kind,
                         partitions[random_below(random, sizeof partitions / sizeof *partitions)], memory, child);
}

static void try_tree(uint64_t seed, const pl_cluster *cluster, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_arena_init(&arena, 0);
  pl_model model;
  pl_strategy_tree tree;
  pl_tree_plan plan;
  pl_ir_module module;
  pl_job job = {.seq = 16, .dtype = PL_DTYPE_FP16, .flash = true};
  int32_t n = 10 + (int32_t)random_below(&random, 150);
  const char *text = random_tree(&random, n, &arena);
  problem own = {.seed = seed,
                 .what = text,
                 .cluster = cluster,
                 .framework = random_program_framework((uint32_t)(seed / 2 * (seed % 2)), &arena)};
  job.framework = own.framework;
  job.gbs = (int64_t)n * 4;
  pl_code code = pl_model_load("workloads/models/tiny-gpt2.json", &arena, &model, &error);
  if (code == PL_OK) code = pl_tree_parse("t.yaml", text, strlen(text), &arena, &tree, &error);
  if (code == PL_OK) code = pl_program_of_tree(&model, &job, &tree, PL_IR_DISTRIBUTED, &arena, &plan, &module, &error);
  if (code == PL_OK) code = pl_ir_check(&module, &error);
  if (code == PL_OK)
    try_module(&random, &own, &module, &arena, all);
  else if (all->n_refused++ < 3)
    print_message("%s%s\n", text, error.message);
  pl_arena_release(&arena);
}

/* ---- all ---- */

static void add(const tally *own, uint64_t first, uint64_t n, tally *all) {
  print_message("seeds %" PRIu64 " to %" PRIu64 ": %u cases, %u refused, %u leapt, %" PRIu64 " of %" PRIu64
                " microbatches played, %u differ\n",
                first, first + n - 1, own->n_cases, own->n_refused, own->n_leapt, own->n_played, own->n_microbatches,
                own->n_wrong);
  for (int i = 0; i < N_FEATURES; i++) {
    all->cases[i] += own->cases[i];
    all->leapt[i] += own->leapt[i];
  }
}

static void test_strategies(void **state) {
  uint64_t first = test_number("PACELINE_SEED", 1), n = test_cases(150);
  tally own = {0};
  for (uint64_t i = 0; i < n; i++)
    try_strategy(first + i, &own);
  add(&own, first, n, *state);
  assert_int_equal(own.n_wrong, 0);
}

static void test_trees(void **state) {
  static const char *const paths[] = {"platforms/dgx-a100-16.xml", "platforms/amp-hetero-cluster.xml",
                                      "platforms/hc2.xml"};
  uint64_t first = test_number("PACELINE_SEED", 1), n = test_cases(150);
  tally own = {0};
  for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
    pl_platform *platform = NULL;
    pl_error error = PL_ERROR_INIT;
    if (pl_platform_load(paths[p], NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
    for (uint64_t i = p; i < n; i += sizeof paths / sizeof *paths)
      try_tree(first + i, pl_platform_cluster(platform), &own);
    pl_platform_destroy(platform);
  }
  add(&own, first, n, *state);
  assert_int_equal(own.n_wrong, 0);
}

static void test_cases_hold_what_can_go_wrong(void **state) {
  const tally *all = *state;
  for (int i = 0; i < N_FEATURES; i++) {
    print_message("%-26s in %u cases, %u of them leapt\n", feature_names[i], all->cases[i], all->leapt[i]);
    assert_true(all->cases[i] == 0 || all->leapt[i] > 0 || all->cases[i] < 20);
  }
}

int main(void) {
  tally all = {0};
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_strategies, &all),
                                     cmocka_unit_test_prestate(test_trees, &all),
                                     cmocka_unit_test_prestate(test_cases_hold_what_can_go_wrong, &all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
