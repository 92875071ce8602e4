/* Folded and fused runs equal the unfolded, unfused one bit for bit: iteration time, its interval, breakdown and memory
 * of random strategies, under every framework that is shipped, on random platforms of up to 64 devices, regular and
 * lopsided (a slow or FATPIPE link, another latency, an unlike device, groups that straddle leaves). Timelines of fused
 * runs show the same slices as those of unfused ones.
 *
 * That the cases hold what can go wrong is counted, not hoped for: see `features`. PACELINE_SEED chooses the first
 * seed, PACELINE_CASES how many. */
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

typedef struct outcome {
  pl_result_row row;
  double low_s, high_s;
  uint32_t n_classes;
} outcome;

static outcome simulate(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                        const pl_strategy *strategy, pl_simulate_options options, bool fold, bool fuse) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_simulate_report report;
  options.fold = fold;
  options.fuse = fuse;
  pl_residuals residuals;
  if (pl_residuals_load(&arena, &residuals, &error) != PL_OK) fail_msg("%s", error.message);
  options.residuals = &residuals;
  if (pl_simulate(cluster, model, job, strategy, &options, &arena, &report, &error) != PL_OK)
    fail_msg("%s", error.message);
  pl_arena_release(&arena);
  return (outcome){report.row, report.interval.low_s, report.interval.high_s, report.n_device_classes};
}

static bool equal_rows(const pl_result_row *a, const pl_result_row *b) {
  return a->iter_time_s == b->iter_time_s && a->compute_s == b->compute_s && a->tensor_comm_s == b->tensor_comm_s &&
         a->pipeline_comm_s == b->pipeline_comm_s && a->data_comm_s == b->data_comm_s &&
         a->context_comm_s == b->context_comm_s && a->expert_comm_s == b->expert_comm_s && a->bubble_s == b->bubble_s &&
         a->peak_mem_bytes == b->peak_mem_bytes && a->peak_stage == b->peak_stage &&
         a->mem_activations_bytes == b->mem_activations_bytes;
}

static void report_difference(uint64_t seed, const char *mode, const pl_model *model, const pl_strategy *strategy,
                              const pl_cluster *cluster, const outcome *expected, const outcome *made) {
  const pl_result_row *a = &expected->row, *b = &made->row;
  char *text = pl_strategy_text(strategy, model);
  print_message("seed %" PRIu64 ", %s, %u devices in %u nodes, %s\n", seed, mode, cluster->n_devices, cluster->n_nodes,
                text);
  free(text);
  print_message("  unfolded %.17g %.17g %.17g %.17g %.17g %.17g peak %.17g\n", a->iter_time_s, a->compute_s,
                a->tensor_comm_s, a->pipeline_comm_s, a->data_comm_s, a->bubble_s, (double)a->peak_mem_bytes);
  print_message("  intervals %.17g to %.17g and %.17g to %.17g\n", expected->low_s, expected->high_s, made->low_s,
                made->high_s);
  print_message("  this     %.17g %.17g %.17g %.17g %.17g %.17g peak %.17g\n", b->iter_time_s, b->compute_s,
                b->tensor_comm_s, b->pipeline_comm_s, b->data_comm_s, b->bubble_s, (double)b->peak_mem_bytes);
}

/* ---- timelines ---- */

/* A slice of a timeline without its track: communication inside fused passes is drawn on the compute track. */
typedef struct slice {
  uint32_t process;
  char start_us[32], duration_us[32], category[16];
} slice;

typedef struct slices {
  slice *slices;
  size_t n;
} slices;

static int compare_slices(const void *a, const void *b) {
  return memcmp(a, b, sizeof(slice));
}

static slices timeline_of(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                          const pl_strategy *strategy, pl_simulate_options options, bool fuse, pl_arena *arena) {
  char *text = NULL;
  size_t size = 0;
  options.trace = open_memstream(&text, &size);
  assert_non_null(options.trace);
  simulate(cluster, model, job, strategy, options, false, fuse);
  fclose(options.trace);
  slices found = {.slices = PL_TAKE(arena, slice, size / 64 + 1)};
  assert_non_null(found.slices);
  char *rest = NULL; /* line by line, as sscanf measures its text */
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    if (strncmp(line, "{\"ph\":\"X\"", 9) != 0) continue;
    /* What the ops of a fused pass lie in. */
    if (strstr(line, "\"cat\":\"pass\"") != NULL || strstr(line, "\"cat\":\"block\"") != NULL) continue;
    slice *own = &found.slices[found.n++];
    assert_int_equal(sscanf(strstr(line, "\"cat\":"),
                            "\"cat\":\"%15[a-z]\",\"pid\":%u,\"tid\":%*d,\"ts\":%31[0-9.],\"dur\":%31[0-9.]",
                            own->category, &own->process, own->start_us, own->duration_us),
                     4);
  }
  free(text);
  qsort(found.slices, found.n, sizeof *found.slices, compare_slices);
  return found;
}

/* The timeline shows every op when it ran, whether it was simulated on its own or inside a fused pass that others
 * disturbed. */
static bool equal_timelines(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_simulate_options *options, pl_arena *arena) {
  slices unfused = timeline_of(cluster, model, job, strategy, *options, false, arena);
  slices fused = timeline_of(cluster, model, job, strategy, *options, true, arena);
  return unfused.n == fused.n && memcmp(unfused.slices, fused.slices, fused.n * sizeof *fused.slices) == 0;
}

/* ---- what the cases hold ---- */

enum feature {
  FEATURE_OVERLAP,    /* gamma > 0 on both sides, and gradients reduced during the backward pass */
  FEATURE_FATPIPE,    /* on the route of a communicator */
  FEATURE_STRADDLING, /* a communicator has more members on one leaf or node than on another */
  FEATURE_UNLIKE_DEVICES,
  FEATURE_RING,
  FEATURE_TREE,
  FEATURE_HIERARCHICAL,
  FEATURE_DIRECT,
  FEATURE_UNEVEN,
  FEATURE_TIED_ACROSS_STAGES,
  FEATURE_ZERO_1,
  FEATURE_ZERO_2,
  FEATURE_ZERO_3_PREFETCH,
  FEATURE_INTERLEAVED,
  FEATURE_SEQUENCE_PARALLEL,
  FEATURE_SPLIT_SENDS,
  FEATURE_RTT,
  FEATURE_RING_ATTENTION,
  FEATURE_GATHERED_CONTEXT,
  FEATURE_EXPERTS,
  FEATURE_EXPERTS_ACROSS_TENSOR_GROUPS,
  FEATURE_EXPERT_GRADIENTS,
  FEATURE_PLACEMENT,
  FEATURE_IDLE,  /* some devices have nothing to do */
  FEATURE_SHARD, /* copies of what ZeRO shards */
  FEATURE_SPLIT, /* replicas with different numbers of microbatches */
  FEATURE_HALVES,
  FEATURE_V,
  N_FEATURES
};

static const char *const feature_names[N_FEATURES] = {"overlap factor",
                                                      "fatpipe",
                                                      "straddling groups",
                                                      "unlike devices",
                                                      "ring",
                                                      "tree",
                                                      "hierarchical",
                                                      "direct",
                                                      "uneven stages",
                                                      "tied embedding across stages",
                                                      "zero 1",
                                                      "zero 2",
                                                      "zero 3 prefetch",
                                                      "interleaved",
                                                      "sequence parallel",
                                                      "split sends",
                                                      "rtt sharing",
                                                      "ring attention",
                                                      "gathered context",
                                                      "expert parallel",
                                                      "experts across tensor groups",
                                                      "gradients of experts",
                                                      "placement",
                                                      "idle devices",
                                                      "copies of shards",
                                                      "uneven split",
                                                      "zero bubble",
                                                      "chunks in a V"};

static bool is_uneven(const pl_strategy *strategy) {
  for (int32_t c = 2; c < pl_strategy_n_chunks(strategy); c++) /* not the ends: embedding and head make them differ */
    if (strategy->boundary[c] - strategy->boundary[c - 1] != strategy->boundary[2] - strategy->boundary[1]) return true;
  return false;
}

static bool crosses_fatpipe(const pl_cluster *cluster, uint32_t source, uint32_t destination) {
  pl_route route;
  pl_error error = PL_ERROR_INIT;
  if (source == destination) return false;
  assert_int_equal(pl_cluster_route(cluster, source, destination, &route, &error), PL_OK);
  for (uint32_t i = 0; i < route.n_links; i++)
    if (cluster->links[route.links[i]].policy == PL_LINK_FATPIPE) return true;
  return false;
}

/* Ring neighbours of the tensor and data groups and of the pipeline. */
static bool any_fatpipe(const pl_cluster *cluster, const pl_strategy *strategy) {
  for (int32_t p = 0; p < strategy->pp; p++)
    for (int32_t d = 0; d < pl_strategy_replicas(strategy); d++)
      for (int32_t t = 0; t < strategy->tmp; t++) {
        uint32_t device = pl_strategy_device(strategy, p, d, t);
        if (crosses_fatpipe(cluster, device, pl_strategy_device(strategy, p, d, (t + 1) % strategy->tmp)) ||
            crosses_fatpipe(cluster, device,
                            pl_strategy_device(strategy, p, (d + 1) % pl_strategy_replicas(strategy), t)) ||
            crosses_fatpipe(cluster, device, pl_strategy_device(strategy, (p + 1) % strategy->pp, d, t)))
          return true;
      }
  return false;
}

/* Some tensor or data group with more members on one of its nodes than on another. */
static bool straddles(const pl_cluster *cluster, const pl_strategy *strategy) {
  for (int32_t kind = 0; kind < 2; kind++)
    for (int32_t p = 0; p < strategy->pp; p++)
      for (int32_t other = 0; other < (kind == 0 ? pl_strategy_replicas(strategy) : strategy->tmp); other++) {
        uint32_t members[64] = {0}, least = UINT32_MAX, most = 0;
        for (int32_t i = 0; i < (kind == 0 ? strategy->tmp : pl_strategy_replicas(strategy)); i++)
          members[cluster
                      ->devices[kind == 0 ? pl_strategy_device(strategy, p, other, i)
                                          : pl_strategy_device(strategy, p, i, other)]
                      .node]++;
        for (uint32_t node = 0; node < cluster->n_nodes; node++) {
          if (members[node] == 0) continue;
          least = members[node] < least ? members[node] : least;
          most = members[node] > most ? members[node] : most;
        }
        if (most > least) return true;
      }
  return false;
}

static bool has_unlike_devices(const pl_cluster *cluster) {
  for (uint32_t d = 1; d < cluster->n_devices; d++)
    if (cluster->devices[d].profile != cluster->devices[0].profile) return true;
  return false;
}

static void count_features(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                           const pl_strategy *strategy, const pl_simulate_options *options, uint32_t *count) {
  bool communicates = strategy->tmp > 1 || pl_strategy_replicas(strategy) > 1;
  const pl_device_profile *profile = pl_cluster_profile(cluster, 0);
  const bool has[N_FEATURES] = {
      [FEATURE_OVERLAP] = profile->overlap_compute > 0 && profile->overlap_communication > 0 && strategy->dp > 1 &&
                          strategy->overlap && job->bucket_bytes < 1e6,
      [FEATURE_FATPIPE] = any_fatpipe(cluster, strategy),
      [FEATURE_STRADDLING] = straddles(cluster, strategy),
      [FEATURE_UNLIKE_DEVICES] = has_unlike_devices(cluster),
      [FEATURE_RING] = communicates && options->algorithm == PL_ALGORITHM_RING,
      [FEATURE_TREE] = communicates && options->algorithm == PL_ALGORITHM_TREE,
      [FEATURE_HIERARCHICAL] = communicates && options->algorithm == PL_ALGORITHM_HIERARCHICAL && cluster->n_nodes > 1,
      [FEATURE_DIRECT] = communicates && options->algorithm == PL_ALGORITHM_DIRECT,
      [FEATURE_UNEVEN] = is_uneven(strategy),
      [FEATURE_TIED_ACROSS_STAGES] = model->ends.tied_embeddings && strategy->pp > 1,
      [FEATURE_ZERO_1] = strategy->zero == 1 && strategy->dp > 1,
      [FEATURE_ZERO_2] = strategy->zero == 2 && strategy->dp > 1,
      [FEATURE_ZERO_3_PREFETCH] = strategy->zero == 3 && strategy->dp > 1,
      [FEATURE_INTERLEAVED] = strategy->vpp > 1,
      [FEATURE_SEQUENCE_PARALLEL] = strategy->sp,
      [FEATURE_SPLIT_SENDS] = job->split_sends && strategy->pp > 1 && strategy->tmp > 1 && !strategy->sp,
      [FEATURE_RTT] = options->sharing == PL_SHARING_RTT,
      [FEATURE_RING_ATTENTION] = strategy->cp > 1 && !strategy->cp_gather,
      [FEATURE_GATHERED_CONTEXT] = strategy->cp > 1 && strategy->cp_gather,
      [FEATURE_EXPERTS] = strategy->ep > 1,
      [FEATURE_EXPERTS_ACROSS_TENSOR_GROUPS] = strategy->ep > strategy->tmp && strategy->tmp > 1,
      [FEATURE_PLACEMENT] = strategy->placement != NULL,
      [FEATURE_IDLE] = pl_strategy_n_ranks(strategy) < cluster->n_devices,
      [FEATURE_SHARD] = pl_strategy_copies(strategy) > 1,
      [FEATURE_SPLIT] = strategy->split != NULL && strategy->split[0] != strategy->split[strategy->dp - 1],
      [FEATURE_HALVES] = pl_strategy_splits_backward(strategy),
      [FEATURE_V] = pl_strategy_is_v(strategy),
      [FEATURE_EXPERT_GRADIENTS] = strategy->ep > 1 && pl_strategy_expert_replicas(strategy) > 1};
  for (int i = 0; i < N_FEATURES; i++)
    count[i] += has[i];
}

typedef struct tally {
  uint32_t n_cases, n_folded, n_timelines, n_wrong;
  uint32_t features[N_FEATURES]; /* cases that hold it and folded to fewer classes */
} tally;

typedef struct kind_of_case {
  uint32_t most_devices;
  bool regular, placed;
} kind_of_case;

/* One after the other, so that each has its cases; of every third the overlaps of tensor collectives and products, and
 * tokens sent once per node; of four of five multiprocessors that exchanges take; of every second all that follows from
 * it. */
static void choose_framework(uint64_t seed, const pl_strategy *strategy, pl_job *job, pl_arena *arena) {
  pl_framework *framework = PL_TAKE(arena, pl_framework, 1);
  assert_non_null(framework);
  *framework = *random_program_framework((uint32_t)(seed / 2), arena);
  if (seed % 3 == 0) framework->pipeline.overlaps_tensor = framework->pipeline.sends_tokens_per_node = true;
  if (seed % 3 == 1) framework->pipeline.overlaps_tensor_backward = true;
  framework->pipeline.exchange_multiprocessors = (double)(seed % 5) * 8;
  if (seed % 2 == 0) pl_framework_apply(framework, job);
  if (strategy->cp > 1) job->flash = true;
  job->framework = framework;
}

static void try_case(uint64_t seed, const kind_of_case *kind, tally *count) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_cluster *cluster = kind->regular ? synthetic_cluster_random_regular(seed, kind->most_devices)
                                      : synthetic_cluster_random(seed, kind->most_devices);
  if (seed % 4 == 1) synthetic_cluster_take_apart(cluster, 17e-6 * (double)(1 + seed % 500));
  pl_model model;
  random_program_model(&random, &arena, &model);
  pl_job job;
  pl_strategy strategy;
  if (kind->placed ? random_program_placed(&random, cluster, &model, &job, &strategy, &arena)
                   : random_program_strategy(&random, (int32_t)cluster->n_devices, &model, &job, &strategy, &arena)) {
    choose_framework(seed, &strategy, &job, &arena);
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    options.sharing = random_below(&random, 4) == 0 ? PL_SHARING_RTT : PL_SHARING_EQUAL;
    options.algorithm = (pl_collective_algorithm)random_below(&random, PL_ALGORITHM_COUNT);
    if (random_below(&random, 2)) options.collective_profile = shipped_collective_profile(&arena);
    outcome exact = simulate(cluster, &model, &job, &strategy, options, false, false);
    static const char *const names[] = {"fused", "folded", "folded and fused"};
    for (int mode = 0; mode < 3; mode++) {
      outcome made = simulate(cluster, &model, &job, &strategy, options, mode >= 1, mode != 1);
      if (!equal_rows(&exact.row, &made.row) || exact.low_s != made.low_s || exact.high_s != made.high_s) {
        count->n_wrong++;
        report_difference(seed, names[mode], &model, &strategy, cluster, &exact, &made);
      }
      if (mode != 1 || made.n_classes == pl_strategy_n_ranks(&strategy)) continue;
      count->n_folded++;
      count_features(cluster, &model, &job, &strategy, &options, count->features);
    }
    if (cluster->n_devices <= 16 && seed % 4 == 0) {
      count->n_timelines++;
      if (!equal_timelines(cluster, &model, &job, &strategy, &options, &arena)) {
        count->n_wrong++;
        report_difference(seed, "timeline", &model, &strategy, cluster, &exact, &exact);
      }
    }
    count->n_cases++;
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

static void run(kind_of_case kind, uint64_t n_cases, tally *all) {
  uint64_t first = test_number("PACELINE_SEED", 1);
  n_cases = test_cases(n_cases);
  tally count = {0};
  for (uint64_t i = 0; i < n_cases; i++)
    try_case(first + i, &kind, &count);
  print_message("seeds %" PRIu64 " to %" PRIu64 ": %u cases, %u folded to fewer classes, %u timelines, %u differ\n",
                first, first + n_cases - 1, count.n_cases, count.n_folded, count.n_timelines, count.n_wrong);
  assert_int_equal(count.n_wrong, 0);
  assert_true(count.n_folded > count.n_cases / 8); /* the test is about folding: enough must fold */
  for (int i = 0; i < N_FEATURES; i++)
    all->features[i] += count.features[i];
}

static void test_small_lopsided(void **state) {
  run((kind_of_case){.most_devices = 16}, 300, *state);
}

static void test_large_lopsided(void **state) {
  run((kind_of_case){.most_devices = 64}, 60, *state);
}

static void test_regular(void **state) {
  run((kind_of_case){.most_devices = 32, .regular = true}, 150, *state);
}

static void test_placed(void **state) {
  run((kind_of_case){.most_devices = 32, .placed = true}, 150, *state);
  run((kind_of_case){.most_devices = 32, .regular = true, .placed = true}, 100, *state);
}

static void test_cases_hold_what_can_go_wrong(void **state) {
  const tally *all = *state;
  for (int i = 0; i < N_FEATURES; i++)
    print_message("%-30s in %u folded cases\n", feature_names[i], all->features[i]);
  if (TEST_IS_SANITIZED || getenv("PACELINE_SEED") != NULL || getenv("PACELINE_CASES") != NULL) return;
  for (int i = 0; i < N_FEATURES; i++)
    if (all->features[i] < 5) fail_msg("%s: only %u folded cases", feature_names[i], all->features[i]);
}

int main(void) {
  tally all = {0};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_small_lopsided, &all), cmocka_unit_test_prestate(test_large_lopsided, &all),
      cmocka_unit_test_prestate(test_regular, &all), cmocka_unit_test_prestate(test_placed, &all),
      cmocka_unit_test_prestate(test_cases_hold_what_can_go_wrong, &all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
