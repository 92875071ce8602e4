/* Leaps over lanes that drift apart (core/engine/engine_drift.h), and over islands that have nothing to do with each
 * other (core/engine/engine_islands.h): what a run of few periods is extended to equals the run of the longer lists, in
 * every figure, or the run is not extended. Random lists: up to six lanes with work of a few ticks, so that dates often
 * fall together, communication on the feature stream, sends down in the first phase and up in the second that are
 * awaited some periods later, memory that stays or goes. Islands are neighbouring lanes that send to each other alone;
 * they meet in communication behind the phases.
 *
 * PACELINE_SEED chooses the first seed, PACELINE_CASES how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/random.h"

enum { MOST_LANES = 6, MOST_STEPS = 512, STEPS_PER_PERIOD = 2 };

/* A step: a wait for what a neighbour has sent, perhaps communication, work, perhaps a send. */
typedef struct step_kind {
  pl_ticks work, communication, send; /* 0: none */
  pl_ticks gradient;                  /* that runs beside what follows, and disturbs it */
  int64_t peak_bytes, net_bytes;
  uint32_t segment, effect;
  int delay; /* periods that what awaits the send comes later than its likeness */
} step_kind;

typedef struct problem {
  uint32_t n_lanes, n_ahead; /* steps before the first phase */
  uint32_t steps[2];         /* of a period */
  uint32_t island[MOST_LANES];
  bool meets;               /* islands, at the end */
  bool unasked[MOST_LANES]; /* the other one is not waited for */
  double overlap;           /* gamma of all devices */
  step_kind ahead[MOST_LANES], kinds[MOST_LANES][2][STEPS_PER_PERIOD], last[MOST_LANES];
} problem;

/* The lists with so many periods. */
typedef struct lists {
  problem *own;
  pl_graph_builder *builder;
  uint32_t n_periods[2], n_steps;
  uint32_t first_task[MOST_LANES * MOST_STEPS + 1], n_firsts;
  uint32_t first_of_step[MOST_LANES][MOST_STEPS], send_of_step[MOST_LANES][MOST_STEPS], meeting[MOST_LANES];
  pl_lane lanes[MOST_LANES];
} lists;

/* ---- problems ---- */

static step_kind choose_step(uint64_t *random, bool disturbed) {
  step_kind kind = {.work = random_between(random, 1, 6)};
  if (disturbed && random_below(random, 3) == 0) kind.gradient = random_between(random, 1, 5);
  if (random_below(random, 3) == 0) kind.communication = random_between(random, 1, 3);
  if (random_below(random, 4) > 0) kind.send = random_between(random, 1, 5);
  kind.delay = random_below(random, 3) == 0 ? (int)random_below(random, 9) - 3 : 0;
  kind.peak_bytes = random_below(random, 50);
  kind.net_bytes = kind.peak_bytes - (int64_t)random_below(random, 60);
  return kind;
}

static problem choose(uint64_t *random, bool islands) {
  problem own = {.n_lanes = random_between(random, islands ? 2 : 1, MOST_LANES),
                 .n_ahead = random_below(random, 3),
                 .meets = islands};
  for (int phase = 0; phase < 2; phase++)
    own.steps[phase] = random_between(random, 1, STEPS_PER_PERIOD);
  bool alike = random_below(random, 3) == 0;
  if (random_below(random, 2) == 0) own.overlap = 0.5;
  bool disturbed = !islands && own.overlap > 0;
  for (uint32_t lane = 0; lane < own.n_lanes; lane++) {
    own.ahead[lane] = choose_step(random, disturbed);
    own.last[lane] = choose_step(random, disturbed);
    own.unasked[lane] = islands && random_below(random, 3) == 0;
    if (islands && lane > 0) own.island[lane] = own.island[lane - 1] + random_below(random, 2);
    for (int phase = 0; phase < 2; phase++)
      for (uint32_t step = 0; step < own.steps[phase]; step++)
        own.kinds[lane][phase][step] = alike && lane > 0 ? own.kinds[0][phase][step] : choose_step(random, disturbed);
  }
  return own;
}

/* ---- lists ---- */

static const step_kind *kind_of(const lists *all, uint32_t lane, uint32_t step, int *phase) {
  const problem *own = all->own;
  *phase = -1;
  if (step < own->n_ahead) return &own->ahead[lane];
  step -= own->n_ahead;
  for (*phase = 0; *phase < 2; ++*phase) {
    uint32_t n = all->n_periods[*phase] * own->steps[*phase];
    if (step < n) return &own->kinds[lane][*phase][step % own->steps[*phase]];
    step -= n;
  }
  *phase = -1;
  return &own->last[lane];
}

static uint32_t delay(lists *all, pl_ticks ticks, pl_category category, const uint32_t *streams, uint32_t n) {
  return pl_graph_builder_delay(all->builder, ticks, category, streams, n, PL_NONE, -1);
}

/* With a lane of another island, and work behind it. */
static void add_meeting(lists *all, uint32_t lane, uint32_t work) {
  const step_kind *kind = &all->own->last[lane];
  uint32_t other = (lane + all->own->n_lanes / 2) % all->own->n_lanes;
  const uint32_t streams[2] = {pl_graph_builder_stream(all->builder, lane, PL_STREAM_GRADIENT),
                               pl_graph_builder_stream(all->builder, other, PL_STREAM_GRADIENT)};
  all->meeting[lane] = delay(all, kind->work, PL_CATEGORY_DATA, streams, other == lane ? 1 : 2);
  pl_graph_builder_edge(all->builder, work, all->meeting[lane]);
  work = pl_graph_builder_work(all->builder, kind->segment,
                               pl_graph_builder_stream(all->builder, lane, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, -1);
  pl_graph_builder_edge(all->builder, all->meeting[lane], work);
}

static void add_step(lists *all, uint32_t lane, uint32_t step) {
  pl_graph_builder *builder = all->builder;
  int phase;
  const step_kind *kind = kind_of(all, lane, step, &phase);
  uint32_t compute = pl_graph_builder_stream(builder, lane, PL_STREAM_COMPUTE);
  uint32_t feature = pl_graph_builder_stream(builder, lane, PL_STREAM_FEATURE);
  all->first_task[all->n_firsts++] = pl_graph_builder_n_tasks(builder);
  uint32_t work = pl_graph_builder_work(builder, kind->segment, compute, kind->effect, PL_NONE, -1);
  all->first_of_step[lane][step] = work;
  if (kind->communication > 0) {
    uint32_t task = delay(all, kind->communication, PL_CATEGORY_TENSOR, &feature, 1);
    pl_graph_builder_edge(builder, work, task);
    work = pl_graph_builder_work(builder, kind->segment, compute, PL_NONE, PL_NONE, -1);
    pl_graph_builder_edge(builder, task, work);
  }
  if (kind->gradient > 0) {
    uint32_t stream = pl_graph_builder_stream(builder, lane, PL_STREAM_GRADIENT);
    pl_graph_builder_edge(builder, work, delay(all, kind->gradient, PL_CATEGORY_DATA, &stream, 1));
  }
  all->send_of_step[lane][step] = PL_NONE;
  if (all->own->meets && step == all->n_steps - 1) add_meeting(all, lane, work);
  uint32_t to = phase == 1 ? lane - 1 : lane + 1;
  if (phase < 0 || kind->send == 0 || to >= all->own->n_lanes || all->own->island[to] != all->own->island[lane]) return;
  const uint32_t streams[2] = {
      pl_graph_builder_stream(builder, lane, phase == 0 ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP),
      pl_graph_builder_stream(builder, to, phase == 0 ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP)};
  uint32_t send = delay(all, kind->send, PL_CATEGORY_PIPELINE, streams, 2);
  pl_graph_builder_edge(builder, work, send);
  all->send_of_step[lane][step] = send;
}

/* Sends are awaited by the step with the same number, or some periods later; behind the phase by the last step. */
static void add_waits(lists *all) {
  const problem *own = all->own;
  for (uint32_t lane = 0; own->meets && lane < own->n_lanes; lane++)
    if (!own->unasked[lane])
      pl_graph_builder_edge(all->builder,
                            all->first_of_step[(lane + own->n_lanes / 2) % own->n_lanes][all->n_steps - 1],
                            all->meeting[lane]);
  for (uint32_t lane = 0; lane < own->n_lanes; lane++)
    for (uint32_t step = 0; step < all->n_steps; step++) {
      if (all->send_of_step[lane][step] == PL_NONE) continue;
      int phase, other = -1;
      const step_kind *kind = kind_of(all, lane, step, &phase);
      uint32_t to = phase == 1 ? lane - 1 : lane + 1, at = step + (uint32_t)(kind->delay * (int)own->steps[phase]);
      if ((int)at < 0) continue;
      if (at < all->n_steps) kind_of(all, to, at, &other);
      if (kind->delay < 0 && other != phase) continue;
      if (at >= all->n_steps || other != phase) at = all->n_steps - 1;
      pl_graph_builder_edge(all->builder, all->send_of_step[lane][step], all->first_of_step[to][at]);
    }
}

static void add_kind(pl_graph_builder *builder, step_kind *kind) {
  const pl_part parts[2] = {
      {.ticks = kind->work, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
      {.ticks = kind->work / 2, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE}};
  kind->segment = pl_graph_builder_segment(builder, parts, 2);
  kind->effect = pl_graph_builder_effect(builder, kind->peak_bytes, kind->net_bytes);
}

static void add_lane(lists *all, uint32_t lane) {
  problem *own = all->own;
  pl_graph_builder_device(
      all->builder, &(pl_graph_device){.multiplicity = 1, .overlap_compute = own->overlap, .resident_bytes = 100});
  add_kind(all->builder, &own->ahead[lane]);
  add_kind(all->builder, &own->last[lane]);
  for (int phase = 0; phase < 2; phase++)
    for (uint32_t step = 0; step < own->steps[phase]; step++)
      add_kind(all->builder, &own->kinds[lane][phase][step]);
}

static lists *make(problem *own, uint32_t n_periods, pl_arena *arena, pl_graph *graph, pl_lanes *lanes) {
  lists *all = PL_TAKE(arena, lists, 1);
  all->own = own;
  all->builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  all->n_periods[0] = n_periods;
  all->n_periods[1] = n_periods - 1;
  all->n_steps = own->n_ahead + all->n_periods[0] * own->steps[0] + all->n_periods[1] * own->steps[1] + 1;
  assert_true(all->n_steps <= MOST_STEPS);
  for (uint32_t lane = 0; lane < own->n_lanes; lane++)
    add_lane(all, lane);
  for (uint32_t lane = 0; lane < own->n_lanes; lane++) {
    uint32_t from = own->n_ahead, between = from + all->n_periods[0] * own->steps[0];
    all->lanes[lane] = (pl_lane){
        .first = all->n_firsts, .n_steps = all->n_steps, .phases = {{from, between}, {between, all->n_steps - 1}}};
    for (uint32_t step = 0; step < all->n_steps; step++)
      add_step(all, lane, step);
  }
  all->first_task[all->n_firsts] = pl_graph_builder_n_tasks(all->builder);
  add_waits(all);
  *lanes = (pl_lanes){.lanes = all->lanes,
                      .n_lanes = own->n_lanes,
                      .first_task = all->first_task,
                      .n_phases = 2,
                      .period = {own->steps[0], own->steps[1]}};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(all->builder, graph, &error), PL_OK);
  return all;
}

/* ---- runs ---- */

static pl_engine_result run(const pl_graph *graph, const pl_lanes *lanes, uint64_t n_more, bool drifts,
                            pl_arena *arena) {
  const pl_engine_options options = {.record_charges = true, .lanes = lanes, .n_more = n_more, .drifts = drifts};
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_engine_run(graph, NULL, &options, arena, &result, &error), PL_OK);
  return result;
}

static pl_ticks charged(const pl_graph *graph, const pl_engine_result *result, uint32_t device, pl_category category) {
  pl_ticks sum = 0;
  for (uint32_t at = 0; at < result->n_charges; at++)
    if (result->charges[at].device == device && graph->tasks[result->charges[at].task].category == category)
      sum += result->charges[at].ticks;
  return sum;
}

static const char *difference(uint32_t n_devices, const pl_graph *graph, const pl_engine_result *a,
                              const pl_graph *longer, const pl_engine_result *b) {
  if (a->makespan != b->makespan) return "makespan";
  if (a->n_events != b->n_events) return "events";
  if (memcmp(a->peak_bytes, b->peak_bytes, n_devices * sizeof *a->peak_bytes) != 0) return "peaks";
  if (memcmp(a->spent, b->spent, n_devices * PL_CATEGORY_COUNT * sizeof *a->spent) != 0) return "spent";
  if (memcmp(a->idle, b->idle, n_devices * sizeof *a->idle) != 0) return "idle";
  for (uint32_t device = 0; device < n_devices; device++)
    for (int category = 0; category < PL_CATEGORY_COUNT; category++)
      if (charged(graph, a, device, (pl_category)category) != charged(longer, b, device, (pl_category)category))
        return "charges";
  return NULL;
}

/* Something ran longer than it does by itself. */
static bool is_slowed(const pl_graph *graph, const pl_engine_result *result) {
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (graph->tasks[task].kind == PL_TASK_WORK &&
        result->finish[task] - result->start[task] > graph->tasks[task].ticks)
      return true;
  return false;
}

typedef struct tally {
  uint32_t n_extended, n_wrong, n_islands, n_disturbed;
} tally;

static void try_case(uint64_t seed, bool islands, tally *all) {
  uint64_t random = seed;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  problem own = choose(&random, islands);
  uint32_t played = random_between(&random, 5, 12), n_more = random_between(&random, 1, 60);
  pl_graph graph, longer;
  pl_lanes lanes, unused;
  make(&own, played, &arena, &graph, &lanes);
  pl_engine_result extended = run(&graph, &lanes, n_more, !islands, &arena);
  if (extended.is_whole) {
    make(&own, played + n_more, &arena, &longer, &unused);
    const pl_engine_result whole = run(&longer, NULL, 0, false, &arena);
    const char *found = difference(own.n_lanes, &graph, &extended, &longer, &whole);
    all->n_extended++;
    all->n_islands += extended.leaps.n_islands > 1;
    all->n_disturbed += is_slowed(&longer, &whole);
    all->n_wrong += found != NULL;
    if (found != NULL)
      print_message("seed %" PRIu64 ": %s differs; %u lanes, %u periods and %u more\n", seed, found, own.n_lanes,
                    played, n_more);
  }
  pl_arena_release(&arena);
}

static tally try_cases(uint64_t n, bool islands) {
  uint64_t first = test_seed(1);
  tally all = {0};
  n = test_number("PACELINE_CASES", n);
  for (uint64_t seed = first; seed < first + n; seed++)
    try_case(seed, islands, &all);
  print_message("%" PRIu64 " cases, %u extended (%u of several islands, %u disturbed), %u differ\n", n, all.n_extended,
                all.n_islands, all.n_disturbed, all.n_wrong);
  assert_int_equal(all.n_wrong, 0);
  assert_true(all.n_extended > n / 8);
  return all;
}

static void test_extended_runs_equal_longer_ones(void **state) {
  (void)state;
  tally all = try_cases(3000, false);
  assert_true(all.n_disturbed > all.n_extended / 16);
}

static void test_islands_leap_by_themselves(void **state) {
  (void)state;
  tally all = try_cases(3000, true);
  assert_true(all.n_islands > all.n_extended / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_extended_runs_equal_longer_ones),
                                     cmocka_unit_test(test_islands_leap_by_themselves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
