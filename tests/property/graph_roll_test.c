/* Graphs of few microbatches, rolled to all of them, are the graphs of all: task by task and edge by edge, and run
 * alike. Random strategies of every schedule on random platforms. PACELINE_SEED chooses the first seed, PACELINE_CASES
 * how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/graph/graph_roll.h"
#include "tests/support/random.h"
#include "tests/support/random_program.h"
#include "tests/support/synthetic_cluster.h"
#include "workloads/run/simulate_state.h"

enum { MOST_MORE = 60, FEW_TASKS = 20000 /* of runs in which dates are forgotten as soon as they can be */ };

typedef struct tally {
  uint32_t n_cases, n_short, n_rolled, n_skew, n_shorter, n_refused, n_failed, n_lagging, n_forgotten;
  uint64_t n_tasks, n_dates;
  uint32_t schedules[PL_SCHEDULE_COUNT], shorts[PL_SCHEDULE_COUNT];
} tally;

static void compile(pl_simulation *own, int32_t leapt) {
  own->leaps.leapt = leapt;
  if (pl_simulation_compile(own) != PL_OK) fail_msg("%s", own->error->message);
}

static void assert_same_task(const pl_graph *rolled, const pl_graph *whole, uint32_t id) {
  const pl_task *a = pl_graph_task(rolled, id), *b = pl_graph_task(whole, id);
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->category, b->category);
  assert_int_equal(a->index, b->index);
  assert_int_equal(a->ticks, b->ticks); /* or the bits of the bytes */
  assert_int_equal(a->n_streams, b->n_streams);
  assert_int_equal(a->memory, b->memory);
  for (uint32_t member = 0; member < a->n_streams; member++)
    assert_int_equal(rolled->task_streams[a->first_stream + member], whole->task_streams[b->first_stream + member]);
  assert_int_equal(pl_graph_n_predecessors(rolled, id), pl_graph_n_predecessors(whole, id));
  assert_int_equal(a->n_successors, b->n_successors);
  for (uint32_t which = 0; which < a->n_successors; which++)
    assert_int_equal(pl_graph_successor(rolled, id, which), pl_graph_successor(whole, id, which));
}

static void assert_same_graph(const pl_graph *rolled, const pl_graph *whole) {
  assert_int_equal(rolled->n_tasks, whole->n_tasks);
  assert_int_equal(rolled->n_edges, whole->n_edges);
  assert_int_equal(rolled->n_transfer_tasks, whole->n_transfer_tasks);
  assert_int_equal(rolled->n_streamless_tasks, whole->n_streamless_tasks);
  for (uint32_t task = 0; task < whole->n_tasks; task++)
    assert_same_task(rolled, whole, task);
}

/* Whoever goes by rows finds each task once. */
static void assert_rows_right(const pl_graph *rolled, pl_arena *arena) {
  bool *is_found = PL_TAKE(arena, bool, rolled->n_tasks);
  assert_non_null(is_found);
  uint32_t n = 0;
  for (uint32_t row = 0; row < pl_graph_n_rows(rolled); row++)
    for (uint32_t k = 0; k < pl_graph_row_count(rolled, row); k++, n++) {
      uint32_t task = rolled->roll.tasks[row].first + k * rolled->roll.tasks[row].stride;
      assert_true(task < rolled->n_tasks && !is_found[task]);
      assert_int_equal(pl_graph_row(rolled, task), row);
      is_found[task] = true;
    }
  assert_int_equal(n, rolled->n_tasks);
}

static pl_engine_result run(const pl_simulation *own, const pl_graph *graph, bool sweeps_always) {
  const pl_engine_options engine = {.record_charges = true, .sweeps_always = sweeps_always};
  pl_engine_result result;
  if (pl_simulate_graph(graph, own->options, &engine, own->arena, &result, own->error) != PL_OK)
    fail_msg("%s", own->error->message);
  return result;
}

/* By device and row; each device has one entry of a row of a rolled graph. */
static void assert_same_charges(const pl_simulation *own, const pl_graph *rolled, const pl_engine_result *a,
                                const pl_engine_result *b) {
  uint32_t n_rows = pl_graph_n_rows(rolled);
  pl_ticks *sums = PL_TAKE(own->arena, pl_ticks, (size_t)rolled->n_devices * n_rows);
  assert_non_null(sums);
  for (uint32_t at = 0; at < a->n_charges; at++) {
    pl_ticks *sum = &sums[(size_t)a->charges[at].device * n_rows + pl_graph_row(rolled, a->charges[at].task)];
    assert_int_equal(*sum, 0);
    *sum = a->charges[at].ticks;
  }
  for (uint32_t at = 0; at < b->n_charges; at++)
    sums[(size_t)b->charges[at].device * n_rows + pl_graph_row(rolled, b->charges[at].task)] -= b->charges[at].ticks;
  for (size_t at = 0; at < (size_t)rolled->n_devices * n_rows; at++)
    assert_int_equal(sums[at], 0);
}

static void assert_right_sums(const pl_graph *rolled, const pl_engine_result *a, const pl_engine_result *b) {
  for (uint32_t row = 0; row < pl_graph_n_rows(rolled); row++) {
    uint64_t start = 0, finish = 0;
    for (uint32_t k = 0; k < pl_graph_row_count(rolled, row); k++) {
      start += (uint64_t)b->start[pl_graph_row_task(rolled, row, k)];
      finish += (uint64_t)b->finish[pl_graph_row_task(rolled, row, k)];
    }
    assert_int_equal(a->rows[row].n, pl_graph_row_count(rolled, row));
    assert_int_equal(a->rows[row].start, start);
    assert_int_equal(a->rows[row].finish, finish);
  }
}

static void assert_same_run(const pl_simulation *own, const pl_graph *rolled, const pl_graph *whole, bool sweeps_always,
                            tally *all) {
  const pl_engine_result a = run(own, rolled, sweeps_always), b = run(own, whole, false);
  all->n_tasks += rolled->n_tasks;
  all->n_dates += a.n_dates;
  all->n_forgotten += a.n_dates < rolled->n_tasks;
  assert_int_equal(a.makespan, b.makespan);
  assert_int_equal(a.n_events, b.n_events);
  assert_true(a.digest == b.digest);
  assert_memory_equal(a.idle, b.idle, whole->n_devices * sizeof *a.idle);
  assert_memory_equal(a.spent, b.spent, (size_t)whole->n_devices * PL_CATEGORY_COUNT * sizeof *a.spent);
  assert_same_charges(own, rolled, &a, &b);
  assert_right_sums(rolled, &a, &b);
}

/* Lists that may be too short to be rolled. */
static void try_short(pl_simulation *own, int32_t more, tally *all) {
  pl_graph rolled;
  const pl_leap_search search = pl_leap_search_begin(&own->program, true);
  int32_t leapt = search.leapt + more * search.round;
  if (search.leapt == 0 || leapt >= search.fewest) return;
  compile(own, leapt);
  const pl_compiled few = own->compiled;
  if (few.n_more == 0) return;
  bool is_rolled = pl_graph_roll(&few.graph, &few.lanes, few.n_more, own->arena, &rolled);
  all->n_shorter++;
  all->n_refused += !is_rolled;
  if (!is_rolled) return;
  compile(own, 0);
  assert_same_graph(&rolled, &own->compiled.graph);
}

/* Runs whose state does not come back are broken off; what is told of them is that of the whole run. */
static void assert_same_failure(const pl_simulation *own, const pl_compiled *few, tally *all) {
  pl_engine_options engine = {.lanes = &few->lanes, .n_more = few->n_more, .plays_on = true};
  pl_engine_result whole, broken_off;
  assert_int_equal(pl_simulate_graph(&few->graph, own->options, &engine, own->arena, &whole, own->error), PL_OK);
  engine.plays_on = false;
  assert_int_equal(pl_simulate_graph(&few->graph, own->options, &engine, own->arena, &broken_off, own->error), PL_OK);
  assert_int_equal(broken_off.is_whole, whole.is_whole);
  assert_true(broken_off.lag == whole.lag);
  assert_int_equal(broken_off.runs_apart, whole.runs_apart);
  bool recurs = true, recurred = true;
  for (int phase = 0; phase < whole.n_phases; phase++) {
    recurs &= whole.distance[phase] > 0;
    recurred &= broken_off.distance[phase] > 0;
  }
  assert_int_equal(recurred, recurs);
  for (int phase = 0; phase < whole.n_phases && recurs; phase++)
    assert_int_equal(broken_off.distance[phase], whole.distance[phase]);
  all->n_failed += !whole.is_whole;
  all->n_lagging += whole.lag > 0;
}

static void compare(pl_simulation *own, tally *all) {
  pl_graph rolled;
  int32_t leapt = pl_leap_search_rolled(&own->program);
  all->n_cases++;
  if (leapt == 0) return;
  compile(own, leapt);
  const pl_compiled few = own->compiled;
  if (few.n_more == 0) return;
  all->n_short++;
  all->shorts[own->strategy->schedule]++;
  assert_same_failure(own, &few, all);
  if (!pl_graph_roll(&few.graph, &few.lanes, few.n_more, own->arena, &rolled)) return;
  all->n_rolled++;
  all->n_skew += rolled.roll.is_skew;
  all->schedules[own->strategy->schedule]++;
  compile(own, 0);
  assert_same_graph(&rolled, &own->compiled.graph);
  assert_rows_right(&rolled, own->arena);
  assert_same_run(own, &rolled, &own->compiled.graph, false, all);
  if (rolled.n_tasks < FEW_TASKS) assert_same_run(own, &rolled, &own->compiled.graph, true, all);
}

static void try_case(uint64_t seed, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_error error = PL_ERROR_INIT;
  pl_cluster *cluster = seed % 2 == 0 ? synthetic_cluster_random_regular(seed, 32) : synthetic_cluster_random(seed, 16);
  pl_model model;
  random_program_model(&random, &arena, &model);
  pl_job job;
  pl_strategy strategy;
  if (random_program_strategy(&random, (int32_t)cluster->n_devices, &model, &job, &strategy, &arena)) {
    int32_t round = strategy.vpp > 1 ? strategy.pp : 1;
    if (strategy.split == NULL)
      job.gbs +=
          (int64_t)(random_below(&random, MOST_MORE) / (uint32_t)round * (uint32_t)round) * strategy.dp * strategy.mbs;
    pl_simulate_options options = PL_SIMULATE_OPTIONS_DEFAULT;
    options.fold = random_below(&random, 4) > 0;
    options.fuse = random_below(&random, 4) > 0;
    pl_simulation own = {.cluster = cluster,
                         .model = &model,
                         .job = &job,
                         .strategy = &strategy,
                         .options = &options,
                         .arena = &arena,
                         .error = &error};
    if (pl_simulation_build(&own) != PL_OK) fail_msg("seed %" PRIu64 ": %s", seed, error.message);
    compare(&own, all);
    for (int32_t more = 0; more < 6; more++)
      try_short(&own, more, all);
  }
  synthetic_cluster_release(cluster);
  pl_arena_release(&arena);
}

static void test_rolled_graphs_are_the_whole_ones(void **state) {
  (void)state;
  uint64_t first = test_number("PACELINE_SEED", 1), n_cases = test_cases(600);
  tally all = {0};
  for (uint64_t i = 0; i < n_cases; i++)
    try_case(first + i, &all);
  print_message(
      "%u cases, %u with microbatches left out, %u of them rolled, %u with lanes of unlike numbers of tasks\n",
      all.n_cases, all.n_short, all.n_rolled, all.n_skew);
  print_message("%u shorter ones, %u of them refused\n", all.n_shorter, all.n_refused);
  print_message("%u whose state did not come back, %u with lanes that lag\n", all.n_failed, all.n_lagging);
  print_message("%u runs forgot dates; of %" PRIu64 " tasks %" PRIu64 " were kept at a time\n", all.n_forgotten,
                all.n_tasks, all.n_dates);
  for (int schedule = 0; schedule < PL_SCHEDULE_COUNT; schedule++)
    print_message("%s: %u of %u\n", pl_schedule_name((pl_schedule_kind)schedule), all.schedules[schedule],
                  all.shorts[schedule]);
  if (TEST_IS_SANITIZED || test_number("PACELINE_CASES", 0) > 0) return;
  assert_int_equal(all.n_rolled, all.n_short);
  assert_in_range(all.n_refused, 1, all.n_shorter - 1);
  assert_true(all.n_failed > 0 && all.n_lagging > 0 && all.n_forgotten > 100);
  assert_true(all.n_skew > 0 && all.schedules[PL_SCHEDULE_1F1B] > 0 && all.schedules[PL_SCHEDULE_GPIPE] > 0 &&
              all.schedules[PL_SCHEDULE_INTERLEAVED] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rolled_graphs_are_the_whole_ones)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
