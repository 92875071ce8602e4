/* Joint segments against what is computed by hand: two devices, a head each of another length, then collective (5),
 * computation (100), collective (7) in step. All times in ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "core/engine/timeline.h"

enum { FIRST = 5, COMPUTE = 100, LAST = 7, RESIDENT = 1000, PEAK = 50, NET = 20 };

typedef struct step {
  pl_arena arena;
  pl_graph_builder *builder;
  pl_graph graph;
  pl_engine_result result;
  uint32_t compute[2], joint;
} step;

static uint32_t add_segment(step *own, pl_ticks ticks) {
  pl_part part = {.ticks = ticks, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE};
  return pl_graph_builder_segment(own->builder, &part, 1);
}

static void add_work(step *own, uint32_t device, pl_ticks ticks) {
  pl_graph_builder_work(own->builder, add_segment(own, ticks), own->compute[device], PL_NONE, PL_NONE, 0);
}

static void begin(step *own, double overlap_compute) {
  pl_arena_init(&own->arena, 0);
  own->builder = pl_graph_builder_take(&own->arena, PL_STREAMS_IN_ORDER);
  for (uint32_t device = 0; device < 2; device++) {
    pl_graph_builder_device(
        own->builder,
        &(pl_graph_device){.multiplicity = 1, .resident_bytes = RESIDENT, .overlap_compute = overlap_compute});
    own->compute[device] = pl_graph_builder_stream(own->builder, device, PL_STREAM_COMPUTE);
  }
}

static void add_joint(step *own) {
  const pl_part parts[] = {
      {.ticks = FIRST, .category = PL_CATEGORY_TENSOR, .name = PL_NONE},
      {.ticks = COMPUTE, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
      {.ticks = LAST, .category = PL_CATEGORY_TENSOR, .name = PL_NONE},
  };
  own->joint = pl_graph_builder_joint_work(own->builder, pl_graph_builder_segment(own->builder, parts, 3), own->compute,
                                           2, pl_graph_builder_effect(own->builder, PEAK, NET), PL_NONE, 0);
}

/* Something on the gradient stream of device 0, from the start on. */
static void add_gradient(step *own, pl_ticks ticks) {
  uint32_t stream = pl_graph_builder_stream(own->builder, 0, PL_STREAM_GRADIENT);
  pl_graph_builder_delay(own->builder, ticks, PL_CATEGORY_DATA, &stream, 1, PL_NONE, 0);
}

static void run(step *own) {
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_graph_builder_freeze(own->builder, &own->graph, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  assert_true(pl_graph_is_valid(&own->graph));
  const pl_engine_options options = {.record_parts = true};
  assert_int_equal(pl_engine_run(&own->graph, NULL, &options, &own->arena, &own->result, &error), PL_OK);
}

static void expect_spent(const step *own, uint32_t device, pl_ticks backward, pl_ticks forward, pl_ticks tensor,
                         pl_ticks idle) {
  const pl_ticks *spent = own->result.spent + (size_t)device * PL_CATEGORY_COUNT;
  assert_int_equal(spent[PL_CATEGORY_BACKWARD], backward);
  assert_int_equal(spent[PL_CATEGORY_FORWARD], forward);
  assert_int_equal(spent[PL_CATEGORY_TENSOR], tensor);
  assert_int_equal(own->result.idle[device], idle);
}

/* The segment starts when the later head is over; the heads' difference is idle time of the other device. */
static void begins_when_all_are_there(void **state) {
  (void)state;
  step own;
  begin(&own, 0);
  add_work(&own, 0, 10);
  add_work(&own, 1, 30);
  add_joint(&own);
  add_work(&own, 0, 1);
  run(&own);
  assert_int_equal(own.result.start[own.joint], 30);
  assert_int_equal(own.result.finish[own.joint], 30 + FIRST + COMPUTE + LAST);
  assert_int_equal(own.result.makespan, 30 + FIRST + COMPUTE + LAST + 1);
  expect_spent(&own, 0, 10 + 1, COMPUTE, FIRST + LAST, 20);
  expect_spent(&own, 1, 30, COMPUTE, FIRST + LAST, 1);
  for (uint32_t device = 0; device < 2; device++)
    assert_int_equal(own.result.peak_bytes[device], RESIDENT + PEAK);
  pl_arena_release(&own.arena);
}

/* With gamma = 1, 36 of device 0's ticks from 5 to 41 do the work of 18, so it computes until 41 + 82; device 1, done
 * at 105, waits 18 ticks for it. */
static void waits_for_a_member_that_overlap_slows(void **state) {
  (void)state;
  step own;
  begin(&own, 1);
  add_gradient(&own, 41);
  add_joint(&own);
  run(&own);
  assert_int_equal(own.result.finish[own.joint], 41 + 82 + LAST);
  expect_spent(&own, 0, 0, COMPUTE + 18, FIRST + LAST, 0);
  expect_spent(&own, 1, 0, COMPUTE, FIRST + LAST, 18);
  static const pl_part_span expected[] = {
      {.part = 0, .member = 0, .start = 0, .finish = 5},     {.part = 0, .member = 1, .start = 0, .finish = 5},
      {.part = 1, .member = 0, .start = 5, .finish = 123},   {.part = 1, .member = 1, .start = 5, .finish = 105},
      {.part = 2, .member = 0, .start = 123, .finish = 130}, {.part = 2, .member = 1, .start = 123, .finish = 130},
  };
  assert_int_equal(own.result.n_part_spans, 6);
  for (uint32_t at = 0; at < 6; at++) {
    assert_int_equal(own.result.part_spans[at].part, expected[at].part);
    assert_int_equal(own.result.part_spans[at].member, expected[at].member);
    assert_int_equal(own.result.part_spans[at].start, expected[at].start);
    assert_int_equal(own.result.part_spans[at].finish, expected[at].finish);
  }
  pl_arena_release(&own.arena);
}

/* Each part is drawn on every member's compute track, when that member ran it, inside the pass that it is of. */
static void is_drawn_member_by_member(void **state) {
  (void)state;
  step own;
  begin(&own, 1);
  add_gradient(&own, 41);
  add_joint(&own);
  run(&own);
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  assert_non_null(stream);
  pl_timeline_write_chrome(stream, &own.graph, &own.result, NULL);
  fclose(stream);
  uint32_t n[2][2] = {{0}};
  for (const char *at = text; (at = strstr(at, "\"ph\":\"X\",\"name\":\"forward\"")) != NULL; at++) {
    bool is_pass = strncmp(strstr(at, "\"cat\":"), "\"cat\":\"pass\"", 12) == 0;
    n[is_pass][0] += strncmp(strstr(at, "\"pid\":"), "\"pid\":1,", 8) == 0;
    n[is_pass][1] += strncmp(strstr(at, "\"pid\":"), "\"pid\":2,", 8) == 0;
  }
  for (int is_pass = 0; is_pass < 2; is_pass++)
    for (int member = 0; member < 2; member++)
      assert_int_equal(n[is_pass][member], 1);
  free(text);
  pl_arena_release(&own.arena);
}

static void refuses_what_is_not_joint(void **state) {
  (void)state;
  for (int variant = 0; variant < 3; variant++) {
    step own;
    pl_error error = PL_ERROR_INIT;
    begin(&own, 0);
    if (variant == 0) own.compute[1] = pl_graph_builder_stream(own.builder, 1, PL_STREAM_FEATURE);
    if (variant < 2) add_joint(&own);
    if (variant > 0)
      pl_graph_builder_joint_work(own.builder, add_segment(&own, 9), own.compute, variant == 1 ? 2 : 0, PL_NONE,
                                  PL_NONE, 0);
    assert_int_equal(pl_graph_builder_freeze(own.builder, &own.graph, &error), PL_BAD_INPUT);
    assert_non_null(strstr(error.message, "joint segment"));
    pl_arena_release(&own.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(begins_when_all_are_there),
      cmocka_unit_test(waits_for_a_member_that_overlap_slows),
      cmocka_unit_test(is_drawn_member_by_member),
      cmocka_unit_test(refuses_what_is_not_joint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
