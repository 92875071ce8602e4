/* The engine as seen by the loop that drives it: what it is asked for, in which order, and what it says when it is
 * stuck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/arena_fixture.h"

static pl_graph graph;

/* Writes down every call. */
typedef struct call_protocol {
  char text[512];
} call_protocol;

static void note(void *data, const char *what, uint32_t task, double value) {
  call_protocol *protocol = data;
  size_t used = strlen(protocol->text);
  snprintf(protocol->text + used, sizeof protocol->text - used, "%s%u@%g ", what, task, value);
}

static void timer(void *data, uint32_t task, pl_ticks finish) {
  note(data, "t", task, (double)finish);
}

static void transfer(void *data, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes) {
  (void)spec;
  (void)size_bytes;
  note(data, "x", task, (double)now);
}

static void transfer_speed(void *data, pl_ticks now, uint32_t task, double speed) {
  (void)now;
  note(data, "s", task, speed);
}

static const pl_engine_host host = {.timer = timer, .transfer = transfer, .transfer_speed = transfer_speed};

static const pl_transfer_spec spec = {.rate_cap_Bps = 1, .share_weight = 1, .source = PL_NONE, .destination = PL_NONE};
static const pl_transfer_table table = {.specs = &spec, .n_specs = 1};

static pl_graph_builder *make_builder(double gamma) {
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(
      builder, &(pl_graph_device){.multiplicity = 1, .overlap_compute = gamma, .overlap_communication = gamma});
  pl_graph_builder_transfers(builder, &table);
  return builder;
}

static uint32_t add_delay(pl_graph_builder *builder, pl_ticks ticks) {
  return pl_graph_builder_delay(builder, ticks, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
}

static uint32_t add_transfer(pl_graph_builder *builder) {
  return pl_graph_builder_transfer(builder, 0, 8, PL_CATEGORY_DATA, NULL, 0, PL_NONE, 0);
}

static pl_engine *begin(pl_graph_builder *builder, call_protocol *protocol) {
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  pl_engine *engine = pl_engine_take(&graph, NULL, &host, protocol, &arena);
  assert_non_null(engine);
  pl_engine_begin(engine);
  return engine;
}

/* Delays 0 and 1 end at one tick and release 3 and 2: both starts come in the flush, the lower id first. */
static void starts_of_a_round_go_by_id(void **state) {
  (void)state;
  for (uint32_t reported = 0; reported < 2; reported++) {
    call_protocol protocol = {""};
    pl_graph_builder *builder = make_builder(0);
    uint32_t first = add_delay(builder, 5), second = add_delay(builder, 5);
    uint32_t low = add_transfer(builder), high = add_transfer(builder);
    pl_graph_builder_edge(builder, first, high);
    pl_graph_builder_edge(builder, second, low);
    pl_engine *engine = begin(builder, &protocol);
    assert_string_equal(protocol.text, "t0@5 t1@5 ");
    pl_engine_complete(engine, reported, 5);
    pl_engine_complete(engine, 1 - reported, 5);
    assert_string_equal(protocol.text, "t0@5 t1@5 ");
    pl_engine_flush(engine, 5);
    assert_string_equal(protocol.text, "t0@5 t1@5 x2@5 x3@5 ");
    assert_false(pl_engine_is_done(engine));
    pl_engine_complete(engine, high, 9);
    pl_engine_complete(engine, low, 9);
    pl_engine_flush(engine, 9);
    assert_true(pl_engine_is_done(engine));
  }
}

static void tasks_of_no_duration_stay_inside(void **state) {
  (void)state;
  call_protocol protocol = {""};
  pl_graph_builder *builder = make_builder(0);
  uint32_t before = add_delay(builder, 0), barrier = add_delay(builder, 0), after = add_delay(builder, 3);
  pl_graph_builder_edge(builder, before, barrier);
  pl_graph_builder_edge(builder, barrier, after);
  begin(builder, &protocol);
  assert_string_equal(protocol.text, "t2@3 ");
}

/* A segment of two parts (10 computing, 6 not) and a gradient transfer from tick 4 on, gamma 1: the first part has 6
 * left, hence ends at 16; the transfer runs at half speed until then; the second part is not slowed; when the transfer
 * ends, the rest of the segment keeps its date, and nothing more is asked for. */
static void parts_are_asked_for_one_by_one(void **state) {
  (void)state;
  call_protocol protocol = {""};
  pl_graph_builder *builder = make_builder(1);
  const pl_part parts[] = {{.ticks = 10, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
                           {.ticks = 6, .category = PL_CATEGORY_TENSOR, .computes = false, .name = PL_NONE}};
  uint32_t gradient = pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT);
  uint32_t work = pl_graph_builder_work(builder, pl_graph_builder_segment(builder, parts, 2),
                                        pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
  uint32_t wait = add_delay(builder, 4);
  uint32_t reduce = pl_graph_builder_transfer(builder, 0, 8, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, 0);
  pl_graph_builder_edge(builder, wait, reduce);
  pl_engine *engine = begin(builder, &protocol);
  assert_string_equal(protocol.text, "t0@16 t1@4 ");
  pl_engine_complete(engine, wait, 4);
  pl_engine_flush(engine, 4);
  assert_string_equal(protocol.text, "t0@16 t1@4 x2@4 s2@0.5 "); /* 4 + 2 * 6 = 16: by chance the date it had */
  pl_engine_complete(engine, work, 16);
  assert_false(pl_engine_is_done(engine));
  pl_engine_flush(engine, 16);
  assert_string_equal(protocol.text, "t0@16 t1@4 x2@4 s2@0.5 t0@22 s2@1 ");
  pl_engine_complete(engine, reduce, 18);
  pl_engine_flush(engine, 18);
  assert_string_equal(protocol.text, "t0@16 t1@4 x2@4 s2@0.5 t0@22 s2@1 ");
  pl_engine_complete(engine, work, 22);
  pl_engine_flush(engine, 22);
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_engine_finish(engine, &result, &error), PL_OK);
  assert_int_equal(result.makespan, 22);
  assert_int_equal(result.spent[PL_CATEGORY_FORWARD], 16);
  assert_int_equal(result.spent[PL_CATEGORY_TENSOR], 6);
}

static void unfinished_runs_are_reported(void **state) {
  (void)state;
  call_protocol protocol = {""};
  pl_graph_builder *builder = make_builder(0);
  uint32_t lost = add_transfer(builder), after = add_delay(builder, 1);
  pl_graph_builder_edge(builder, lost, after);
  pl_engine *engine = begin(builder, &protocol);
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_engine_finish(engine, &result, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "task 1 (unnamed), which waits for 1 others"));
}

/* `n` tasks one after the other. */
static pl_code run_chain(pl_ticks ticks, uint32_t n, pl_ticks *makespan, pl_error *error) {
  pl_graph_builder *builder = make_builder(0);
  uint32_t last = add_delay(builder, ticks);
  for (uint32_t i = 1; i < n; i++) {
    uint32_t next = add_delay(builder, ticks);
    pl_graph_builder_edge(builder, last, next);
    last = next;
  }
  PL_TRY(pl_graph_builder_freeze(builder, &graph, error));
  pl_engine_result result;
  PL_TRY(pl_engine_run(&graph, NULL, NULL, &arena, &result, error));
  *makespan = result.makespan;
  return PL_OK;
}

/* Sums over many tasks as well as single ones: what reaches the last date has no time. */
static void a_run_beyond_the_last_date_is_refused(void **state) {
  (void)state;
  const struct {
    pl_ticks ticks;
    uint32_t n;
    bool fits;
  } cases[] = {{PL_TICKS_MAX - 1, 1, true},       {PL_TICKS_MAX, 1, false},          {PL_TICKS_MAX / 4 - 1, 4, true},
               {PL_TICKS_MAX / 4, 4, false},      {PL_TICKS_MAX / 4, 64, false},     {PL_TICKS_MAX, 3, false},
               {PL_TICKS_MAX / 4096, 4095, true}, {PL_TICKS_MAX / 4096, 5000, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_ticks makespan = 0;
    pl_error error = PL_ERROR_INIT;
    pl_code code = run_chain(cases[i].ticks, cases[i].n, &makespan, &error);
    assert_int_equal(code, cases[i].fits ? PL_OK : PL_UNSUPPORTED);
    if (cases[i].fits) assert_true(makespan == cases[i].ticks * (pl_ticks)cases[i].n);
    if (!cases[i].fits) assert_non_null(strstr(error.message, "more than 48 days"));
  }
}

static void so_is_a_segment(void **state) {
  (void)state;
  pl_graph_builder *builder = make_builder(0);
  const pl_part parts[] = {{.ticks = PL_TICKS_MAX / 2 + 1, .computes = true, .name = PL_NONE},
                           {.ticks = PL_TICKS_MAX / 2, .computes = true, .name = PL_NONE}};
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_segment(builder, parts, 2), PL_NONE);
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "more than 48 days"));
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENGINE_TEST(starts_of_a_round_go_by_id),
      ENGINE_TEST(tasks_of_no_duration_stay_inside),
      ENGINE_TEST(parts_are_asked_for_one_by_one),
      ENGINE_TEST(unfinished_runs_are_reported),
      ENGINE_TEST(a_run_beyond_the_last_date_is_refused),
      ENGINE_TEST(so_is_a_segment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
