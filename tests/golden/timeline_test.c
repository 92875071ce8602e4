/* The timeline of one small training step, byte for byte, and read back as JSON.
 *
 * Two stages, two microbatches, 1F1B; the forward of stage 0 is a fused segment with a tensor-parallel part; sends and
 * a gradient all-reduce are transfers; overlap factors are on. After an intended change: PACELINE_UPDATE_GOLDEN=1
 * rewrites the file; look at the difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/timeline.h"
#include "core/text/document.h"
#include "tests/support/fixed_network.h"

#define GOLDEN PACELINE_SOURCE_DIR "/tests/golden/timeline_1f1b.json"

enum { US = 1 << 20 }; /* ticks in 2^-20 s, about a microsecond */

static const pl_transfer_spec spec = {
    .rate_cap_Bps = 1e9, .share_weight = 1, .latency = 2 * US, .source = PL_NONE, .destination = PL_NONE};
static const pl_transfer_table table = {.specs = &spec, .n_specs = 1};

typedef struct golden_step {
  pl_graph_builder *builder;
  uint32_t forward[2], backward;
} golden_step;

static uint32_t stream(golden_step *step, uint32_t device, pl_stream_kind kind) {
  return pl_graph_builder_stream(step->builder, device, kind);
}

static uint32_t add_pass(golden_step *step, uint32_t stage, bool forward, int32_t microbatch, uint32_t after) {
  uint32_t label = pl_graph_builder_name(step->builder, forward ? "forward \"s\"" : "backward\\");
  uint32_t task = pl_graph_builder_work(step->builder, forward ? step->forward[stage] : step->backward,
                                        stream(step, stage, PL_STREAM_COMPUTE), PL_NONE, label, microbatch);
  if (after != PL_NONE) pl_graph_builder_edge(step->builder, after, task);
  return task;
}

static uint32_t add_send(golden_step *step, uint32_t from, int32_t microbatch, uint32_t after) {
  uint32_t streams[] = {stream(step, from, from == 0 ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP),
                        stream(step, 1 - from, from == 0 ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP)};
  uint32_t send =
      pl_graph_builder_transfer(step->builder, 0, 3000, PL_CATEGORY_PIPELINE, streams, 2, PL_NONE, microbatch);
  pl_graph_builder_edge(step->builder, after, send);
  return send;
}

static void add_segments(golden_step *step) {
  uint32_t attention = pl_graph_builder_name(step->builder, "attention");
  pl_part parts[] = {
      {.ticks = 10 * US, .category = PL_CATEGORY_FORWARD, .computes = true, .name = attention},
      {.ticks = 3 * US, .category = PL_CATEGORY_TENSOR, .name = pl_graph_builder_name(step->builder, "all-reduce")},
      {.ticks = 7 * US, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE}};
  step->forward[0] = pl_graph_builder_segment(step->builder, parts, 3);
  step->forward[1] = pl_graph_builder_segment(step->builder, parts, 1);
  parts[0].ticks = 40 * US + 1;
  parts[0].category = PL_CATEGORY_BACKWARD;
  step->backward = pl_graph_builder_segment(step->builder, parts, 1);
}

static pl_graph build(pl_arena *arena) {
  golden_step step = {.builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER)};
  for (uint32_t stage = 0; stage < 2; stage++)
    pl_graph_builder_device(
        step.builder, &(pl_graph_device){.multiplicity = 1, .overlap_compute = 0.3, .overlap_communication = 0.1});
  pl_graph_builder_transfers(step.builder, &table);
  add_segments(&step);
  uint32_t send0 = add_send(&step, 0, 0, add_pass(&step, 0, true, 0, PL_NONE));
  uint32_t send1 = add_send(&step, 0, 1, add_pass(&step, 0, true, 1, PL_NONE));
  add_pass(&step, 1, true, 0, send0);
  uint32_t back0 = add_send(&step, 1, 0, add_pass(&step, 1, false, 0, PL_NONE));
  add_pass(&step, 1, true, 1, send1);
  uint32_t last = add_pass(&step, 1, false, 1, PL_NONE), back1 = add_send(&step, 1, 1, last);
  uint32_t gradient = stream(&step, 1, PL_STREAM_GRADIENT);
  uint32_t reduce = pl_graph_builder_transfer(step.builder, 0, 50000, PL_CATEGORY_DATA, &gradient, 1, PL_NONE, -1);
  pl_graph_builder_edge(step.builder, back0, reduce);
  add_pass(&step, 0, false, 0, back0);
  add_pass(&step, 0, false, 1, back1);
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(step.builder, &graph, &error), PL_OK);
  return graph;
}

/* The trace as text; the caller frees it. */
static char *write_trace(bool record_parts, size_t *size) {
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_graph graph = build(&arena);
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  pl_engine_options options = {.record_parts = record_parts};
  assert_int_equal(pl_engine_run(&graph, fixed_network_take(&table, 64, &arena), &options, &arena, &result, &error),
                   PL_OK);
  const char *names[] = {"stage 0 \xc2\xb7 node0/gpu0 x 8", "stage 1\t\"odd\" name"};
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  pl_timeline_write_chrome(stream, &graph, &result, &(pl_timeline_view){.device = names});
  fclose(stream);
  pl_arena_release(&arena);
  return text;
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = malloc(1 << 20);
  *size = fread(text, 1, 1 << 20, file);
  fclose(file);
  return text;
}

static void equals_golden_file(void **state) {
  (void)state;
  size_t size = 0, golden_size = 0;
  char *text = write_trace(true, &size);
  if (getenv("PACELINE_UPDATE_GOLDEN") != NULL) {
    FILE *file = fopen(GOLDEN, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
  }
  char *golden = read_file(GOLDEN, &golden_size);
  assert_non_null(golden);
  for (size_t at = 0, line = 1; at < size && at < golden_size; line += text[at] == '\n', at++)
    if (text[at] != golden[at]) fail_msg("%s:%zu differs", GOLDEN, line);
  assert_int_equal(size, golden_size);
  free(golden);
  free(text);
}

typedef struct trace_content {
  uint32_t processes, threads, sort_indices, events, parts, microbatches;
  double end_us;
} trace_content;

static void look_at_event(const pl_document *document, const pl_node *event, trace_content *found) {
  pl_error error = PL_ERROR_INIT;
  const char *phase, *name;
  assert_int_equal(pl_node_string(document, event, "ph", &phase, &error), PL_OK);
  assert_int_equal(pl_node_string(document, event, "name", &name, &error), PL_OK);
  found->processes += strcmp(name, "process_name") == 0;
  found->threads += strcmp(name, "thread_name") == 0;
  found->sort_indices += strstr(name, "sort_index") != NULL;
  if (strcmp(phase, "X") != 0) return;
  double ts, dur;
  assert_int_equal(pl_node_number(document, event, "ts", &ts, &error), PL_OK);
  assert_int_equal(pl_node_number(document, event, "dur", &dur, &error), PL_OK);
  assert_true(ts >= 0 && dur >= 0);
  if (ts + dur > found->end_us) found->end_us = ts + dur;
  const pl_node *arguments = pl_node_get(event, "args");
  assert_non_null(arguments);
  assert_non_null(pl_node_get(arguments, "category"));
  found->microbatches += pl_node_get(arguments, "microbatch") != NULL;
  found->parts += strcmp(name, "attention") == 0 || strcmp(name, "all-reduce") == 0;
  found->events++;
}

static trace_content read_back(bool record_parts) {
  size_t size = 0;
  char *text = write_trace(record_parts, &size);
  pl_document *document = NULL;
  pl_error error = PL_ERROR_INIT;
  pl_code code = pl_document_parse("trace", text, size, true, &document, &error);
  assert_string_equal(error.message, "");
  assert_int_equal(code, PL_OK);
  const pl_node *events = pl_node_get(pl_document_root(document), "traceEvents");
  trace_content found = {0};
  for (size_t at = 0; at < pl_node_count(events); at++)
    look_at_event(document, pl_node_at(events, at), &found);
  const char *name;
  assert_int_equal(pl_node_string(document, pl_node_get(pl_node_at(events, 2), "args"), "name", &name, &error), PL_OK);
  assert_string_equal(name, "stage 1\t\"odd\" name");
  pl_document_destroy(document);
  free(text);
  return found;
}

static void reads_back_as_json(void **state) {
  (void)state;
  trace_content whole = read_back(false), parts = read_back(true);
  assert_int_equal(whole.processes, 2);
  assert_int_equal(whole.threads, 7); /* of stage 1: compute, gradient, one send, one receive */
  assert_int_equal(whole.sort_indices, 9);
  assert_int_equal(whole.events, 8 + 2 * 4 + 1); /* compute, sends on both sides, all-reduce */
  assert_int_equal(whole.microbatches, 16);
  assert_int_equal(parts.events, whole.events + 2 * 3); /* two fused tasks, three parts in each */
  assert_int_equal(parts.parts, 4);
  assert_int_equal(whole.parts, 0);
  assert_true(whole.end_us == parts.end_us && whole.end_us > 150);
}

/* One task of every category, on a stream of every kind in turn. */
static pl_graph build_categories(pl_arena *arena) {
  pl_graph_builder *builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  pl_graph_builder_device(builder, &(pl_graph_device){.multiplicity = 1});
  pl_graph_builder_transfers(builder, &table);
  for (int category = 0; category < PL_CATEGORY_COUNT; category++) {
    uint32_t on = pl_graph_builder_stream(builder, 0, (pl_stream_kind)(category % PL_STREAM_KIND_COUNT));
    pl_graph_builder_transfer(builder, 0, 3000, (pl_category)category, &on, 1, PL_NONE, -1);
  }
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_graph_builder_freeze(builder, &graph, &error), PL_OK);
  return graph;
}

static void take_new_text(const pl_document *document, const pl_node *event, const char *key,
                          const char *seen[PL_CATEGORY_COUNT], uint32_t n_seen) {
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_node_string(document, event, key, &seen[n_seen], &error), PL_OK);
  assert_null(strchr(seen[n_seen], '(')); /* "(null)" */
  for (uint32_t other = 0; other < n_seen; other++)
    assert_string_not_equal(seen[n_seen], seen[other]);
}

static void every_category_has_a_name_and_a_colour_of_its_own(void **state) {
  (void)state;
  pl_arena arena;
  pl_arena_init(&arena, 0);
  pl_graph graph = build_categories(&arena);
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_engine_run(&graph, fixed_network_take(&table, 64, &arena), NULL, &arena, &result, &error), PL_OK);
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  pl_timeline_write_chrome(stream, &graph, &result, NULL);
  fclose(stream);
  pl_document *document = NULL;
  assert_int_equal(pl_document_parse("trace", text, size, true, &document, &error), PL_OK);
  const pl_node *events = pl_node_get(pl_document_root(document), "traceEvents");
  const char *names[PL_CATEGORY_COUNT], *colours[PL_CATEGORY_COUNT];
  uint32_t n = 0;
  for (size_t at = 0; at < pl_node_count(events); at++) {
    const pl_node *event = pl_node_at(events, at);
    if (pl_node_get(event, "cname") == NULL) continue;
    take_new_text(document, event, "cat", names, n);
    take_new_text(document, event, "cname", colours, n++);
  }
  assert_int_equal(n, PL_CATEGORY_COUNT);
  pl_document_destroy(document);
  free(text);
  pl_arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_category_has_a_name_and_a_colour_of_its_own),
      cmocka_unit_test(equals_golden_file),
      cmocka_unit_test(reads_back_as_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
