/* Leaps whose marks fall into a run of parts which one event stands for (core/engine/engine_overlap.c): of the device
 * the state has where it was when it was looked at last, since that, and how fast it is, say where it is. What makes
 * the engine look are starts and ends of tasks, which recur where it leaps, so that no leap comes later for it.
 *
 * Two devices in steps; the first task of a step, 100 ticks on device 1, is its mark:
 *
 *   device 0   work of eight parts of 40 ticks, beside a gradient delay: at speed 1 / 1.5 a part takes 60 ticks
 *   device 1   mark (100), and a fuse (70) that a spark (10) on device 0's second gradient stream follows
 *
 * All of a step begin when the step before has ended, but the fuse of the first step, which is lit 200 ticks earlier.
 * So in the first step the spark is over before the work begins, and nobody looks at the work before the mark; from the
 * second step on it is looked at 70 and 80 ticks into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"

enum {
  PARTS = 8,
  PART = 40,
  MARK = 100,
  FUSE = 70,
  SPARK = 10,
  EARLIER = 200,
  AHEAD = 500,
  GRADIENT = 640,
  REST = 320,
  MOST_STEPS = 40
};

typedef struct steps {
  pl_arena arena;
  pl_graph_builder *builder;
  uint32_t segment, segment_of_mark, first_task[MOST_STEPS + 1], mark[MOST_STEPS];
  pl_lane lane;
  pl_graph graph;
  pl_lanes lanes;
} steps;

static uint32_t work_on(steps *own, uint32_t segment, uint32_t device, uint32_t behind) {
  uint32_t stream = pl_graph_builder_stream(own->builder, device, PL_STREAM_COMPUTE);
  uint32_t task = pl_graph_builder_work(own->builder, segment, stream, PL_NONE, PL_NONE, -1);
  if (behind != PL_NONE) pl_graph_builder_edge(own->builder, behind, task);
  return task;
}

static uint32_t segment_of(steps *own, int n, pl_ticks ticks) {
  pl_part parts[PARTS];
  for (int at = 0; at < n; at++)
    parts[at] = (pl_part){.ticks = ticks, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE};
  return pl_graph_builder_segment(own->builder, parts, (uint32_t)n);
}

static uint32_t delay(steps *own, pl_ticks ticks, uint32_t device, pl_stream_kind kind, uint32_t behind) {
  uint32_t stream = pl_graph_builder_stream(own->builder, device, kind);
  uint32_t task = pl_graph_builder_delay(own->builder, ticks, PL_CATEGORY_DATA, &stream, 1, PL_NONE, -1);
  if (behind != PL_NONE) pl_graph_builder_edge(own->builder, behind, task);
  return task;
}

/* *end: what the next step waits for; *light: what its fuse does. */
static void add_step(steps *own, uint32_t step, uint32_t *end, uint32_t *light) {
  own->first_task[step] = pl_graph_builder_n_tasks(own->builder);
  own->mark[step] = work_on(own, own->segment_of_mark, 1, *end);
  uint32_t fuse = delay(own, FUSE, 1, PL_STREAM_CONTEXT, *light);
  delay(own, SPARK, 0, PL_STREAM_EXPERT_GRADIENT, fuse);
  delay(own, GRADIENT, 0, PL_STREAM_GRADIENT, *end);
  uint32_t work = work_on(own, own->segment, 0, *end);
  *end = *light = delay(own, REST, 1, PL_STREAM_TIED, work);
}

static void make(steps *own, uint32_t n_steps) {
  pl_error error = PL_ERROR_INIT;
  *own = (steps){.segment = 0};
  pl_arena_init(&own->arena, 0);
  own->builder = pl_graph_builder_take(&own->arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(own->builder, &(pl_graph_device){.multiplicity = 1, .overlap_compute = 0.5});
  pl_graph_builder_device(own->builder, &(pl_graph_device){.multiplicity = 1});
  own->segment = segment_of(own, PARTS, PART);
  own->segment_of_mark = segment_of(own, 1, MARK);
  uint32_t ahead = segment_of(own, 1, AHEAD);
  own->first_task[0] = 0;
  uint32_t light = delay(own, AHEAD - EARLIER, 1, PL_STREAM_HOST, PL_NONE), end = work_on(own, ahead, 0, PL_NONE);
  for (uint32_t step = 1; step <= n_steps; step++)
    add_step(own, step, &end, &light);
  own->first_task[n_steps + 1] = pl_graph_builder_n_tasks(own->builder); /* what follows the list */
  delay(own, 1, 1, PL_STREAM_TIED, end);
  own->first_task[n_steps + 2] = pl_graph_builder_n_tasks(own->builder);
  own->lane = (pl_lane){.n_steps = n_steps + 2, .phases = {{1, n_steps + 1}}};
  own->lanes =
      (pl_lanes){.lanes = &own->lane, .n_lanes = 1, .first_task = own->first_task, .n_phases = 1, .period = {1}};
  assert_int_equal(pl_graph_builder_freeze(own->builder, &own->graph, &error), PL_OK);
}

static pl_engine_result run(steps *own, uint64_t n_more) {
  const pl_engine_options options = {.lanes = n_more > 0 ? &own->lanes : NULL, .n_more = n_more};
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_engine_run(&own->graph, NULL, &options, &own->arena, &result, &error), PL_OK);
  return result;
}

static void marks_in_runs(void **state) {
  enum { PLAYED = 6, MORE = 24 };
  const int slowed = PARTS * PART * 3 / 2;
  (void)state;
  steps few, all;
  make(&few, PLAYED);
  make(&all, PLAYED + MORE);
  const pl_engine_result leapt = run(&few, MORE), whole = run(&all, 0);
  assert_int_equal(whole.finish[all.mark[3]] - whole.finish[all.mark[2]], slowed + REST); /* the work was slowed */
  assert_true(MARK > PART * 3 / 2 && MARK < slowed);                                      /* and is in its run then */
  assert_true(leapt.is_whole);
  assert_int_equal(leapt.distance[0], 1);
  assert_int_equal(leapt.leaps.n, 1);
  assert_int_equal(leapt.leaps.leaps[0].to - leapt.leaps.leaps[0].from, slowed + REST);
  assert_int_equal(leapt.leaps.leaps[0].times, MORE);
  assert_int_equal(leapt.makespan, whole.makespan);
  assert_int_equal(leapt.n_events, whole.n_events);
  assert_memory_equal(leapt.spent, whole.spent, 2 * PL_CATEGORY_COUNT * sizeof *leapt.spent);
  assert_memory_equal(leapt.idle, whole.idle, 2 * sizeof *leapt.idle);
  pl_arena_release(&few.arena);
  pl_arena_release(&all.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(marks_in_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
