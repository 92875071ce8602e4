/* Whole programs played twice with chunked collectives: by the native loop with the flow network, and by SimGrid's own
 * event loop. Random strategies of a small model on platform files of the repository, both sharing rules, every task's
 * finish compared.
 *
 * Tolerance: 1e-9 of the date, or 4 ticks for each task on the longest chain of tasks before it, because each rounds
 * its date (ours to ticks; SimGrid lets go of what is left of a flow below its precision). Contention can magnify that:
 * where a program differs by more, the native loop plays it again with sizes changed by parts in 10^9 and latencies by
 * a tick, and the difference must lie within what such a change does to it anyway. How often that was needed is printed
 * and bounded. PACELINE_SEED and PACELINE_CASES as elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/play.h"
#include "tests/support/random.h"
#include "workloads/compile/compile.h"
#include "workloads/import/model_file.h"

enum { DEFAULT_CASES = 8 };

/* Some devices of `n_devices` in any order, and replicas with 1 to 4 microbatches each. */
static void append_placement(uint64_t *random, int32_t n_devices, int32_t n_used, int32_t dp, bool splits, char *text,
                             size_t size, int64_t *gbs) {
  size_t length = strlen(text);
  int64_t sum = 0;
  for (int32_t d = 0; d < dp && splits; d++) {
    int32_t m = (int32_t)random_between(random, 1, 4);
    length += (size_t)snprintf(text + length, size - length, "%s%d", d == 0 ? ",split=" : ":", m);
    sum += m;
  }
  if (splits) *gbs = sum;
  int32_t order[64] = {0};
  assert_in_range(n_devices, 1, 64);
  for (int32_t i = 0; i < n_devices; i++) {
    int32_t other = (int32_t)random_below(random, (uint32_t)i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  for (int32_t i = 0; i < n_used; i++)
    length += (size_t)snprintf(text + length, size - length, "%s%d", i == 0 ? ",placement=" : ":", order[i]);
}

/* A text, so that a failing case can be run by hand. */
static void random_strategy(uint64_t *random, int32_t n_all, char *text, size_t size, int64_t *gbs) {
  static const char *const orders[] = {"tdp", "tpd", "dtp", "dpt", "ptd", "pdt"};
  static const char *const recomputes[] = {"none", "selective", "full"};
  bool is_placed = random_below(random, 2) == 0;
  int32_t n_devices = is_placed ? (int32_t)random_between(random, 2, (uint32_t)n_all) : n_all;
  int32_t tmp = random_divisor(random, n_devices < 8 ? n_devices : 8), pp;
  while (n_devices % tmp != 0 || 8 % tmp != 0)
    tmp = random_divisor(random, 8);
  do
    pp = random_divisor(random, n_devices / tmp);
  while (pp > 6);
  int32_t dp = n_devices / tmp / pp, m = (int32_t)random_between(random, 1, 4), vpp = 1;
  if (pp == 2 && random_below(random, 3) == 0) {
    vpp = 2;
    m = 2 * (int32_t)random_between(random, 1, 2);
  }
  uint32_t recompute = random_below(random, 3), order = random_below(random, 6), overlap = random_below(random, 2),
           sp = tmp > 1 ? random_below(random, 2) : 0, zero = random_below(random, pp > 1 ? 2 : 4);
  int length = snprintf(text, size, "pp=%d,dp=%d,tmp=%d,mbs=1,vpp=%d,recompute=%s,order=%s,overlap=%u,sp=%u,zero=%u",
                        pp, dp, tmp, vpp, recomputes[recompute], orders[order], overlap, sp, zero);
  if (vpp == 1 && random_below(random, 2)) snprintf(text + length, size - (size_t)length, ",schedule=gpipe");
  *gbs = (int64_t)m * dp;
  if (is_placed) append_placement(random, n_all, n_devices, dp, vpp == 1 && zero < 2, text, size, gbs);
}

typedef struct subject {
  const pl_platform *platform;
  pl_model model;
  pl_job job;
  pl_strategy strategy;
} subject;

static void compile(const subject *own, pl_sharing sharing, pl_collective_algorithm algorithm, pl_arena *arena,
                    pl_graph *graph) {
  const pl_cluster *cluster = pl_platform_cluster(own->platform);
  const pl_communication_options communication = {.collective = {.sharing = sharing, .algorithm = algorithm},
                                                  .chunked = true};
  const pl_compile_options options = {.chunked = true, .chunks = 1, .sharing = sharing, .no_overlap_factor = true};
  pl_program *program = PL_TAKE(arena, pl_program, 1);
  pl_communication_plan *plan = PL_TAKE(arena, pl_communication_plan, 1);
  pl_compiled compiled;
  pl_error error = PL_ERROR_INIT;
  if (pl_program_take(&own->model, &own->job, &own->strategy, arena, program, &error) != PL_OK ||
      pl_communication_plan_take(cluster, program, &communication, arena, plan, &error) != PL_OK ||
      pl_compile(cluster, program, plan, &options, arena, &compiled, &error) != PL_OK)
    fail_msg("%s", error.message);
  *graph = compiled.graph;
}

static pl_engine_result play_in_simgrid(const subject *own, const pl_graph *graph, pl_sharing sharing,
                                        pl_arena *arena) {
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  const pl_engine_options options = {.record_parts = false};
  if (pl_simgrid_run(own->platform, graph, sharing, &options, arena, &result, &error) != PL_OK)
    fail_msg("%s", error.message);
  return result;
}

/* Tasks on the longest chain that ends with each task, itself included. */
static const uint32_t *depths(const pl_graph *graph, pl_arena *arena) {
  uint32_t *depth = PL_TAKE(arena, uint32_t, graph->n_tasks), *left = PL_TAKE(arena, uint32_t, graph->n_tasks);
  uint32_t *queue = PL_TAKE(arena, uint32_t, graph->n_tasks), n = 0;
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    left[task] = graph->n_predecessors[task];
    depth[task] = 1;
    if (left[task] == 0) queue[n++] = task;
  }
  for (uint32_t at = 0; at < n; at++)
    for (uint32_t e = graph->successor_offset[queue[at]]; e < graph->successor_offset[queue[at] + 1]; e++) {
      uint32_t after = graph->successors[e];
      if (depth[queue[at]] + 1 > depth[after]) depth[after] = depth[queue[at]] + 1;
      if (--left[after] == 0) queue[n++] = after;
    }
  assert_int_equal(n, graph->n_tasks);
  return depth;
}

typedef struct tally {
  double worst, worst_ticks_per_link; /* relative difference of the makespan; ticks per task of a chain */
  uint64_t n_tasks;
  uint32_t n_cases, n_magnified;
} tally;

static void compare(const subject *own, pl_sharing sharing, pl_collective_algorithm algorithm, const char *what,
                    uint64_t *random, tally *count) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_graph graph;
  compile(own, sharing, algorithm, &arena, &graph);
  pl_engine_result native = play(&graph, &arena), simgrid = play_in_simgrid(own, &graph, sharing, &arena);
  const uint32_t *depth = depths(&graph, &arena);
  double worst_s = 0, ticks_per_link = 0;
  bool within = true;
  for (uint32_t t = 0; t < graph.n_tasks; t++) {
    double ticks = fabs((double)(native.finish[t] - simgrid.finish[t]));
    within &= ticks <= fmax(1e-9 * (double)simgrid.finish[t], 4.0 * depth[t]);
    worst_s = fmax(worst_s, ticks / PL_TICKS_PER_S);
    ticks_per_link = fmax(ticks_per_link, ticks / depth[t]);
  }
  if (!within) {
    double sensitive_s = play_sensitivity_s(&graph, &native, random, &arena);
    print_message("%s: %.2e s apart; sizes changed by 2^-30 and latencies by a tick move it by %.2e s\n", what, worst_s,
                  sensitive_s);
    if (worst_s > 16 * sensitive_s) fail_msg("%s: flow and SimGrid differ", what);
    count->n_magnified++;
  } else {
    count->worst = fmax(count->worst, fabs(pl_ticks_to_s(native.makespan) / pl_ticks_to_s(simgrid.makespan) - 1));
    count->worst_ticks_per_link = fmax(count->worst_ticks_per_link, ticks_per_link);
  }
  for (uint32_t d = 0; d < graph.n_devices; d++)
    assert_true(native.peak_bytes[d] == simgrid.peak_bytes[d]);
  count->n_tasks += graph.n_tasks;
  count->n_cases++;
  pl_arena_release(&arena);
}

static void run_platform(const char *path, uint64_t *random, uint64_t n_cases, tally count[2]) {
  static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":256,\"n_layer\":12,\"n_head\":8,"
                               "\"n_positions\":128,\"vocab_size\":1000}";
  pl_platform *platform = NULL;
  pl_error error = PL_ERROR_INIT;
  if (pl_platform_load(path, NULL, &platform, &error) != PL_OK) fail_msg("%s", error.message);
  int32_t n_devices = (int32_t)pl_platform_cluster(platform)->n_devices;
  for (uint64_t i = 0; i < n_cases; i++) {
    pl_arena arena;
    pl_arena_init(&arena, 0);
    subject own = {.platform = platform,
                   .job = {.seq = 128, .dtype = PL_DTYPE_FP16, .flash = true, .bucket_bytes = 1e6}};
    assert_int_equal(pl_model_parse("m.json", config, sizeof config - 1, &arena, &own.model, &error), PL_OK);
    char text[512], what[768];
    random_strategy(random, n_devices, text, sizeof text, &own.job.gbs);
    if (pl_strategy_parse(text, &own.model, &arena, &own.strategy, &error) != PL_OK ||
        pl_strategy_check(&own.strategy, &own.model, &own.job, (uint32_t)n_devices, &error) != PL_OK ||
        pl_strategy_assign(&own.strategy, &own.model, &own.job, pl_platform_cluster(platform), &arena, &error) != PL_OK)
      fail_msg("%s: %s", text, error.message);
    pl_collective_algorithm algorithm = (pl_collective_algorithm)random_below(random, PL_ALGORITHM_COUNT);
    for (int sharing = PL_SHARING_EQUAL; sharing <= PL_SHARING_RTT; sharing++) {
      snprintf(what, sizeof what, "%s, gbs %lld, %s, %s sharing, %s", path, (long long)own.job.gbs, text,
               sharing == PL_SHARING_RTT ? "rtt" : "equal", pl_algorithm_names[algorithm]);
      compare(&own, (pl_sharing)sharing, algorithm, what, random, &count[sharing]);
    }
    pl_arena_release(&arena);
  }
  pl_platform_destroy(platform);
}

static void whole_programs(void **state) {
  (void)state;
  static const char *const paths[] = {
      PACELINE_SOURCE_DIR "/platforms/amp-homogeneous.xml", PACELINE_SOURCE_DIR "/platforms/amp-hetero-cluster.xml",
      PACELINE_SOURCE_DIR "/platforms/hc1.xml", PACELINE_SOURCE_DIR "/platforms/dgx-1v.xml",
      PACELINE_SOURCE_DIR "/platforms/dgx-a100.xml"};
  enum { N_PATHS = sizeof paths / sizeof *paths };
  uint64_t random = test_seed(1);
  const char *cases = getenv("PACELINE_CASES");
  uint64_t n_cases = cases != NULL ? strtoull(cases, NULL, 10) : DEFAULT_CASES;
  tally count[2];
  memset(count, 0, sizeof count);
  for (int i = 0; i < N_PATHS; i++)
    run_platform(paths[i], &random, n_cases, count);
  for (int sharing = 0; sharing < 2; sharing++) {
    const tally *own = &count[sharing];
    print_message("%s sharing: %u programs, %llu tasks, %u magnified by contention; of the others the iteration time "
                  "differs by at most %.1e, a date by %.2f ticks for each task on its chain\n",
                  sharing == PL_SHARING_RTT ? "rtt" : "equal", own->n_cases, (unsigned long long)own->n_tasks,
                  own->n_magnified, own->worst, own->worst_ticks_per_link);
    assert_true(own->n_magnified <= 1 + own->n_cases / 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
