/* The engine against closed forms. All times in ticks.
 *
 * Pipeline of p equal stages, m microbatches, forward f and backward b per stage, sends that take no time:
 *   1F1B and GPipe: (m + p - 1) (f + b); 1F1B keeps at most min(p - s, m) microbatches on stage s, GPipe all m.
 * With sends of c ticks: see the test.
 * Overlap: compute of W ticks of work meets a gradient transfer of C ticks from its start on, with factors g and h.
 * While both run, compute does 1 / (1 + g) and the transfer 1 / (1 + h) of its work per tick. If C (1 + h) <= W (1 +
 * g), the transfer ends at C (1 + h), compute has then done C (1 + h) / (1 + g), and ends at C (1 + h) + W - C (1 + h)
 * / (1 + g) = W + C (1 + h) g / (1 + g). Otherwise compute ends first, at W (1 + g), and by the same algebra the
 * transfer ends at C + W (1 + g) h / (1 + h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "tests/support/arena_fixture.h"
#include "tests/support/fixed_network.h"

static pl_engine_result run(pl_graph_builder *builder) {
  static pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  pl_engine_result result;
  pl_code code = pl_graph_builder_freeze(builder, &graph, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  pl_network *network = fixed_network_take(&graph.transfers, 64, &arena);
  code = pl_engine_run(&graph, network, NULL, &arena, &result, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  return result;
}

static uint32_t add_segment(pl_graph_builder *builder, pl_ticks ticks, pl_category category) {
  pl_part part = {.ticks = ticks, .category = (uint8_t)category, .computes = true, .name = PL_NONE};
  return pl_graph_builder_segment(builder, &part, 1);
}

/* ---- pipelines ---- */

enum { FORWARD = 70, BACKWARD = 130, ACTIVATION = 1000, MOST_STAGES = 8, MOST_MICROBATCHES = 24 };

typedef struct pipeline {
  pl_graph_builder *builder;
  uint32_t n_stages, n_microbatches, forward, backward, take, give;
  pl_ticks send;
  uint32_t forwards[MOST_STAGES][MOST_MICROBATCHES], backwards[MOST_STAGES][MOST_MICROBATCHES];
} pipeline;

static uint32_t add_send(pipeline *line, uint32_t from, uint32_t to, uint32_t after) {
  if (line->send == 0) return after;
  uint32_t streams[] = {
      pl_graph_builder_stream(line->builder, from, from < to ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP),
      pl_graph_builder_stream(line->builder, to, from < to ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP)};
  uint32_t send = pl_graph_builder_delay(line->builder, line->send, PL_CATEGORY_PIPELINE, streams, 2, PL_NONE, 0);
  pl_graph_builder_edge(line->builder, after, send);
  return send;
}

static void add_pass(pipeline *line, uint32_t stage, uint32_t i, bool forward) {
  uint32_t stream = pl_graph_builder_stream(line->builder, stage, PL_STREAM_COMPUTE);
  uint32_t task = pl_graph_builder_work(line->builder, forward ? line->forward : line->backward, stream,
                                        forward ? line->take : line->give, PL_NONE, (int32_t)i);
  (forward ? line->forwards : line->backwards)[stage][i] = task;
}

/* The order of one stage; edges between stages are added when all tasks exist. */
static void add_stage(pipeline *line, uint32_t stage, bool one_f_one_b) {
  uint32_t m = line->n_microbatches, warm = line->n_stages - 1 - stage;
  if (!one_f_one_b || warm > m) warm = m;
  for (uint32_t i = 0; i < warm; i++)
    add_pass(line, stage, i, true);
  for (uint32_t i = warm; i < m; i++) {
    add_pass(line, stage, i, true);
    add_pass(line, stage, i - warm, false);
  }
  for (uint32_t i = m - warm; i < m; i++)
    add_pass(line, stage, i, false);
}

static pl_engine_result run_pipeline(uint32_t p, uint32_t m, pl_ticks send, bool one_f_one_b) {
  pipeline line = {
      .builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER), .n_stages = p, .n_microbatches = m, .send = send};
  line.forward = add_segment(line.builder, FORWARD, PL_CATEGORY_FORWARD);
  line.backward = add_segment(line.builder, BACKWARD, PL_CATEGORY_BACKWARD);
  line.take = pl_graph_builder_effect(line.builder, ACTIVATION, ACTIVATION);
  line.give = pl_graph_builder_effect(line.builder, 0, -ACTIVATION);
  for (uint32_t stage = 0; stage < p; stage++)
    pl_graph_builder_device(line.builder, &(pl_graph_device){.multiplicity = 1, .resident_bytes = 7});
  for (uint32_t stage = 0; stage < p; stage++)
    add_stage(&line, stage, one_f_one_b);
  for (uint32_t i = 0; i < m; i++) {
    for (uint32_t stage = 0; stage + 1 < p; stage++) {
      pl_graph_builder_edge(line.builder, add_send(&line, stage, stage + 1, line.forwards[stage][i]),
                            line.forwards[stage + 1][i]);
    }
    for (uint32_t stage = p - 1; stage > 0; stage--)
      pl_graph_builder_edge(line.builder, add_send(&line, stage, stage - 1, line.backwards[stage][i]),
                            line.backwards[stage - 1][i]);
    pl_graph_builder_edge(line.builder, line.forwards[p - 1][i], line.backwards[p - 1][i]);
  }
  return run(line.builder);
}

static void pipelines_without_sends(void **state) {
  (void)state;
  for (uint32_t p = 1; p <= MOST_STAGES; p++)
    for (uint32_t m = 1; m <= MOST_MICROBATCHES; m += 1 + m / 4)
      for (int one_f_one_b = 0; one_f_one_b < 2; one_f_one_b++) {
        pl_engine_result result = run_pipeline(p, m, 0, one_f_one_b == 1);
        assert_int_equal(result.makespan, (pl_ticks)(m + p - 1) * (FORWARD + BACKWARD));
        for (uint32_t stage = 0; stage < p; stage++) {
          uint32_t alive = one_f_one_b == 1 && p - stage < m ? p - stage : m;
          assert_int_equal(result.peak_bytes[stage], 7 + (int64_t)alive * ACTIVATION);
          const pl_ticks *spent = result.spent + stage * PL_CATEGORY_COUNT;
          assert_int_equal(spent[PL_CATEGORY_FORWARD], (pl_ticks)m * FORWARD);
          assert_int_equal(spent[PL_CATEGORY_BACKWARD], (pl_ticks)m * BACKWARD);
          assert_int_equal(result.idle[stage], (pl_ticks)(p - 1) * (FORWARD + BACKWARD));
        }
        pl_arena_reset(&arena);
      }
}

/* GPipe with sends: the last stage starts at (p - 1)(f + c), does m f and m b without a pause (each arrives while the
 * one before it is computed, as c <= f), and the last backward then travels up: (p - 1)(b + c). */
static void gpipe_with_sends(void **state) {
  (void)state;
  const uint32_t p = 4, m = 10;
  const pl_ticks c = 40;
  pl_engine_result result = run_pipeline(p, m, c, false);
  assert_int_equal(result.makespan, (p - 1) * (FORWARD + BACKWARD + 2 * c) + m * (FORWARD + BACKWARD));
  /* The last stage: one receive is exposed, the first. What it waited for before that receive began is bubble. */
  const pl_ticks *spent = result.spent + (p - 1) * PL_CATEGORY_COUNT;
  assert_int_equal(spent[PL_CATEGORY_PIPELINE], c);
}

/* ---- overlap ---- */

static const pl_transfer_spec spec = {.rate_cap_Bps = 0x1p40, /* one byte per tick */
                                      .share_weight = 1,
                                      .source = PL_NONE,
                                      .destination = PL_NONE};
static const pl_transfer_table table = {.specs = &spec, .n_specs = 1};

/* Work of `work` ticks in n_parts computing parts, and a gradient transfer of `bytes` that starts at `offset`. */
static pl_engine_result run_overlap(double g, double h, pl_ticks work, uint32_t n_parts, double bytes,
                                    pl_ticks offset) {
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(builder,
                          &(pl_graph_device){.multiplicity = 1, .overlap_compute = g, .overlap_communication = h});
  pl_graph_builder_transfers(builder, &table);
  pl_part parts[64];
  for (uint32_t part = 0; part < n_parts; part++)
    parts[part] =
        (pl_part){.ticks = work / n_parts, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE};
  uint32_t gradient = pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT);
  pl_graph_builder_work(builder, pl_graph_builder_segment(builder, parts, n_parts),
                        pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
  uint32_t wait = pl_graph_builder_delay(builder, offset, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  uint32_t reduce = pl_graph_builder_transfer(builder, 0, bytes, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, 0);
  pl_graph_builder_edge(builder, wait, reduce);
  return run(builder);
}

static void transfer_ends_first(void **state) {
  (void)state;
  const double g = 0.3, h = 0.2;
  const pl_ticks work = 1000000;
  const double bytes = 400000;
  pl_engine_result result = run_overlap(g, h, work, 1, bytes, 0);
  assert_int_equal(result.finish[2], 480000);                                 /* C (1 + h) */
  assert_int_equal(result.finish[0], llrint(1000000 + 480000 * g / (1 + g))); /* 1110769 */
  assert_int_equal(result.spent[PL_CATEGORY_BACKWARD], result.finish[0]);
}

static void compute_ends_first(void **state) {
  (void)state;
  const double g = 0.3, h = 0.2;
  pl_engine_result result = run_overlap(g, h, 100000, 1, 400000, 0);
  assert_int_equal(result.finish[0], 130000); /* W (1 + g) */
  assert_int_equal(result.finish[2], llrint(400000 + 130000 * h / (1 + h)));
  assert_int_equal(result.spent[PL_CATEGORY_DATA], result.finish[2] - result.finish[0]); /* the tail */
}

/* From `offset` on, the same algebra with what is left of the compute. */
static void overlap_begins_late(void **state) {
  (void)state;
  const double g = 0.5, h = 0;
  pl_engine_result result = run_overlap(g, h, 600000, 6, 150000, 250000);
  assert_int_equal(result.finish[2], 400000);
  assert_int_equal(result.finish[0],
                   600000 + 50000); /* C g / (1 + g); the six parts end where one would, all dates being whole */
}

static void no_factor_no_effect(void **state) {
  (void)state;
  pl_engine_result result = run_overlap(0, 0, 600000, 6, 150000, 250000);
  assert_int_equal(result.finish[0], 600000);
  assert_int_equal(result.finish[2], 400000);
  assert_int_equal(result.n_events, 3); /* nothing was walked */
}

/* Beside an exchange of experts what computing bounds has S - t of S multiprocessors: e = t / (S - t). Two parts of W
 * ticks, of which computing bounds the first or both, and an exchange of C ticks. If it bounds both and the exchange
 * ends first, the segment ends at 2 W + C e / (1 + e); if the first alone, at 2 W + W e once C passes W (1 + e). The
 * exchange keeps its pace. With gradients beside it as well the factors multiply. */
static void exchanges_take_multiprocessors(void **state) {
  (void)state;
  const double e = 132.0 / (132 - 20) - 1, g = 0.1;
  static const struct {
    bool second;
    double exchange, reduction;
  } cases[] = {{true, 700000, 0}, {false, 1800000, 0}, {true, 0, 0}, {true, 700000, 700000}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
    const pl_graph_device device = {.multiplicity = 1, .overlap_compute = g, .overlap_exchange = e};
    pl_part parts[] = {{.ticks = 1000000, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
                       {.ticks = 1000000, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE}};
    parts[0].is_crowded = true;
    parts[1].is_crowded = cases[i].second;
    pl_graph_builder_device(builder, &device);
    pl_graph_builder_transfers(builder, &table);
    uint32_t expert = pl_graph_builder_stream(builder, 0, PL_STREAM_EXPERT);
    uint32_t gradient = pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT);
    pl_graph_builder_work(builder, pl_graph_builder_segment(builder, parts, 2),
                          pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
    uint32_t exchange =
        pl_graph_builder_transfer(builder, 0, cases[i].exchange, PL_CATEGORY_EXPERT, &expert, 1, PL_NONE, 0);
    if (cases[i].reduction > 0)
      pl_graph_builder_transfer(builder, 0, cases[i].reduction, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, 0);
    pl_engine_result result = run(builder);
    double slowdown = (1 + e) * (cases[i].reduction > 0 ? 1 + g : 1);
    double ends = cases[i].second ? 2e6 + cases[i].exchange * (slowdown - 1) / slowdown : 2e6 + 1e6 * e;
    assert_int_equal(result.finish[exchange], llrint(cases[i].exchange));
    assert_in_range(result.finish[0], (uint64_t)llrint(ends) - 1, (uint64_t)llrint(ends) + 1);
    assert_int_equal(result.spent[PL_CATEGORY_FORWARD], result.finish[0]);
  }
}

/* Beside a collective of the tensor group likewise. Where thread blocks wait for a place, W ticks beside C take W + C
 * if C ends before the first of them do, and a second round of W else; the part behind it, which begins beside what is
 * left of C, likewise. With gradients beside it all the time a tick of work takes 1 + g. */
static void tensor_collectives_take_multiprocessors(void **state) {
  (void)state;
  const double w = 1000000, share = 132.0 / (132 - 24), g = 0.1;
  const struct {
    bool waits, second;
    double rounds, collective, reduction, ends;
  } cases[] = {
      {false, true, share, 0.7 * w, 0, 2 * w + 0.7 * w * (1 - 1 / share)},
      {false, true, share, 9 * w, 0, 2 * w * share},
      {true, true, 2, 0.7 * w, 0, 2 * w + 0.7 * w},
      {true, true, 2, 1.5 * w, 0, 3 * w},
      {true, true, 2, 2.3 * w, 0, 2 * w + 0.3 * w + w},
      {true, true, 2, 9 * w, 0, 4 * w},
      {true, false, 2, 9 * w, 0, 3 * w},
      {true, true, 2, 0.7 * w, 9 * w, 0.7 * w + 2 * w * (1 + g)},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
    const pl_graph_device device = {.multiplicity = 1,
                                    .overlap_compute = g,
                                    .overlap_tensor = cases[i].rounds - 1,
                                    .waits_for_place = cases[i].waits};
    pl_part parts[] = {{.ticks = 1000000, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE},
                       {.ticks = 1000000, .category = PL_CATEGORY_BACKWARD, .computes = true, .name = PL_NONE}};
    parts[0].is_crowded = true;
    parts[1].is_crowded = cases[i].second;
    pl_graph_builder_device(builder, &device);
    pl_graph_builder_transfers(builder, &table);
    uint32_t feature = pl_graph_builder_stream(builder, 0, PL_STREAM_FEATURE);
    uint32_t gradient = pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT);
    pl_graph_builder_work(builder, pl_graph_builder_segment(builder, parts, 2),
                          pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
    uint32_t collective =
        pl_graph_builder_transfer(builder, 0, cases[i].collective, PL_CATEGORY_TENSOR, &feature, 1, PL_NONE, 0);
    if (cases[i].reduction > 0)
      pl_graph_builder_transfer(builder, 0, cases[i].reduction, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, 0);
    pl_engine_result result = run(builder);
    assert_int_equal(result.finish[collective], llrint(cases[i].collective));
    assert_in_range(result.finish[0], (uint64_t)llrint(cases[i].ends) - 1, (uint64_t)llrint(cases[i].ends) + 1);
  }
}

/* While a part that does not compute runs, neither slows the other: compute 0..100, communication 100..300 inside
 * the segment, gradient 100 bytes from tick 150 on: it ends at 250 untouched, and the segment at 300 + 100. */
static void communication_parts_do_not_overlap(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(builder,
                          &(pl_graph_device){.multiplicity = 1, .overlap_compute = 1, .overlap_communication = 1});
  pl_graph_builder_transfers(builder, &table);
  const pl_part parts[] = {{.ticks = 100, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE},
                           {.ticks = 200, .category = PL_CATEGORY_TENSOR, .computes = false, .name = PL_NONE},
                           {.ticks = 100, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE}};
  uint32_t gradient = pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT);
  pl_graph_builder_work(builder, pl_graph_builder_segment(builder, parts, 3),
                        pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
  uint32_t wait = pl_graph_builder_delay(builder, 150, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  uint32_t reduce = pl_graph_builder_transfer(builder, 0, 100, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, 0);
  pl_graph_builder_edge(builder, wait, reduce);
  pl_engine_result result = run(builder);
  assert_int_equal(result.finish[reduce], 250);
  assert_int_equal(result.finish[0], 400);
  assert_int_equal(result.spent[PL_CATEGORY_TENSOR], 200);
  assert_int_equal(result.spent[PL_CATEGORY_FORWARD], 200);
}

/* The transfer goes as fast as its most disturbed member lets it: members with h = 0.25 (computing), 1 (computing) and
 * 3 (not computing); 120 bytes at 1 / 2 per tick. */
static void slowest_member_counts(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  const double factors[] = {0.25, 1, 3};
  uint32_t gradient[3];
  pl_graph_builder_transfers(builder, &table);
  for (uint32_t device = 0; device < 3; device++) {
    pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1, .overlap_communication = factors[device]});
    gradient[device] = pl_graph_builder_stream(builder, device, PL_STREAM_GRADIENT);
  }
  for (uint32_t device = 0; device < 2; device++)
    pl_graph_builder_work(builder, add_segment(builder, 1000, PL_CATEGORY_BACKWARD),
                          pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE), PL_NONE, PL_NONE, 0);
  uint32_t reduce = pl_graph_builder_transfer(builder, 0, 120, PL_CATEGORY_DATA, gradient, 3, PL_NONE, 0);
  assert_int_equal(run(builder).finish[reduce], 240);
}

/* ---- accounts ---- */

/* A collective of 20 devices on their gradient streams takes 8 ticks after a delay of 5; then each of 21 devices
 * computes 3. All stood still for DATA while it ran, the outsider too, and for nothing that has a name before. */
static void collectives_are_charged_to_whom_they_stop(void **state) {
  (void)state;
  enum { MEMBERS = 20 };
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  uint32_t streams[MEMBERS];
  for (uint32_t device = 0; device <= MEMBERS; device++)
    pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  for (uint32_t device = 0; device < MEMBERS; device++)
    streams[device] = pl_graph_builder_stream(builder, device, PL_STREAM_GRADIENT);
  uint32_t wait = pl_graph_builder_delay(builder, 5, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  uint32_t gather = pl_graph_builder_delay(builder, 8, PL_CATEGORY_DATA, streams, MEMBERS, PL_NONE, 0);
  pl_graph_builder_edge(builder, wait, gather);
  for (uint32_t device = 0; device <= MEMBERS; device++)
    pl_graph_builder_edge(builder, gather,
                          pl_graph_builder_work(builder, add_segment(builder, 3, PL_CATEGORY_FORWARD),
                                                pl_graph_builder_stream(builder, device, PL_STREAM_COMPUTE), PL_NONE,
                                                PL_NONE, 0));
  pl_engine_result result = run(builder);
  for (uint32_t device = 0; device <= MEMBERS; device++) {
    assert_int_equal(result.spent[device * PL_CATEGORY_COUNT + PL_CATEGORY_DATA], 8);
    assert_int_equal(result.spent[device * PL_CATEGORY_COUNT + PL_CATEGORY_FORWARD], 3);
    assert_int_equal(result.idle[device], 5);
  }
}

/* ---- ready streams ---- */

/* One stream, tasks of ids 0..3 that become ready at 30, 0, 10, 5 (delays without stream before them) and take 20 each:
 * 1 runs 0..20, then of the ready 2 and 3 the lower id: 2 at 20..40, then 0 (ready at 30, lower than 3), then 3. */
static void ready_streams_take_the_lowest_id(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_READY);
  pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  uint32_t stream = pl_graph_builder_stream(builder, 0, PL_STREAM_COMPUTE), task[4];
  const pl_ticks ready_at[] = {30, 0, 10, 5};
  for (uint32_t at = 0; at < 4; at++)
    task[at] =
        pl_graph_builder_work(builder, add_segment(builder, 20, PL_CATEGORY_FORWARD), stream, PL_NONE, PL_NONE, 0);
  for (uint32_t at = 0; at < 4; at++)
    pl_graph_builder_edge(
        builder, pl_graph_builder_delay(builder, ready_at[at], PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0), task[at]);
  pl_engine_result result = run(builder);
  assert_int_equal(result.start[task[1]], 0);
  assert_int_equal(result.start[task[2]], 20);
  assert_int_equal(result.start[task[0]], 40);
  assert_int_equal(result.start[task[3]], 60);
}

/* A task of two streams waits for both and holds back nobody: streams A, B; 0 on A (50), 1 on A and B (10), 2 on B
 * (30), 3 on B (100). 0 and 2 start at 0, 3 at 30 rather than waiting behind 1, which gets both at 130. */
static void waiting_task_holds_back_nobody(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_READY);
  pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  uint32_t streams[] = {pl_graph_builder_stream(builder, 0, PL_STREAM_FEATURE),
                        pl_graph_builder_stream(builder, 0, PL_STREAM_GRADIENT)};
  pl_graph_builder_delay(builder, 50, PL_CATEGORY_OTHER, &streams[0], 1, PL_NONE, 0);
  pl_graph_builder_delay(builder, 10, PL_CATEGORY_OTHER, streams, 2, PL_NONE, 0);
  pl_graph_builder_delay(builder, 30, PL_CATEGORY_OTHER, &streams[1], 1, PL_NONE, 0);
  pl_graph_builder_delay(builder, 100, PL_CATEGORY_OTHER, &streams[1], 1, PL_NONE, 0);
  pl_engine_result result = run(builder);
  assert_int_equal(result.start[2], 0);
  assert_int_equal(result.start[3], 30);
  assert_int_equal(result.start[1], 130);
  assert_int_equal(result.makespan, 140);
}

/* ---- edges of the domain ---- */

/* A chain of 200,000 barriers of no duration takes one tick and no stack. */
static void zero_durations_do_not_recurse(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  uint32_t previous = PL_NONE;
  for (uint32_t at = 0; at < 200000; at++) {
    uint32_t task = pl_graph_builder_delay(builder, 0, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
    if (previous != PL_NONE) pl_graph_builder_edge(builder, previous, task);
    previous = task;
  }
  pl_engine_result result = run(builder);
  assert_int_equal(result.makespan, 0);
  assert_int_equal(result.n_events, 200000);
}

static void empty_transfer_ends_at_once(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_transfers(builder, &table);
  uint32_t wait = pl_graph_builder_delay(builder, 5, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  uint32_t empty = pl_graph_builder_transfer(builder, 0, 0, PL_CATEGORY_PIPELINE, NULL, 0, PL_NONE, 0);
  uint32_t after = pl_graph_builder_delay(builder, 4, PL_CATEGORY_OTHER, NULL, 0, PL_NONE, 0);
  pl_graph_builder_edge(builder, wait, empty);
  pl_graph_builder_edge(builder, empty, after);
  pl_engine_result result = run(builder);
  assert_int_equal(result.finish[empty], 5);
  assert_int_equal(result.makespan, 9);
}

static void transfers_without_network_are_refused(void **state) {
  (void)state;
  pl_graph_builder *builder = pl_graph_builder_take(&arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_transfers(builder, &table);
  pl_graph_builder_transfer(builder, 0, 0, PL_CATEGORY_PIPELINE, NULL, 0, PL_NONE, 0);
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  pl_engine_result result;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  assert_int_equal(pl_engine_run(&graph, NULL, NULL, &arena, &result, &error), PL_UNSUPPORTED);
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENGINE_TEST(pipelines_without_sends),
      ENGINE_TEST(gpipe_with_sends),
      ENGINE_TEST(transfer_ends_first),
      ENGINE_TEST(compute_ends_first),
      ENGINE_TEST(overlap_begins_late),
      ENGINE_TEST(no_factor_no_effect),
      ENGINE_TEST(exchanges_take_multiprocessors),
      ENGINE_TEST(tensor_collectives_take_multiprocessors),
      ENGINE_TEST(communication_parts_do_not_overlap),
      ENGINE_TEST(slowest_member_counts),
      ENGINE_TEST(collectives_are_charged_to_whom_they_stop),
      ENGINE_TEST(ready_streams_take_the_lowest_id),
      ENGINE_TEST(waiting_task_holds_back_nobody),
      ENGINE_TEST(zero_durations_do_not_recurse),
      ENGINE_TEST(empty_transfer_ends_at_once),
      ENGINE_TEST(transfers_without_network_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
