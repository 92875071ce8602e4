/* The engine against a bare event loop over the same graph of about 500,000 tasks.
 *
 * The yardstick knows durations, successors and predecessor counts, and a heap of (date, task): no streams, memory,
 * network, overlap factor, start dates, accounts or digests. Both take turns, so that they see the same machine. The
 * graph is a 1F1B pipeline; its sends are fixed delays in one case and transfers on a network without contention in the
 * other. With ready streams the yardstick runs the same graph without its stream edges: not the same work, only a
 * scale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/engine.h"
#include "tests/support/bench.h"
#include "tests/support/fixed_network.h"

enum { STAGES = 16, MICROBATCHES = 5300, SMALL_MICROBATCHES = 100, LAYERS = 2, REPEATS = 9 };

/* ---- the graph ---- */

typedef struct graph_case {
  const char *name;
  bool transfers; /* sends are transfers, not delays */
  pl_stream_policy policy;
  double gamma; /* overlap factor; it never acts here */
} graph_case;

typedef struct pipeline {
  pl_graph_builder *builder;
  uint32_t streams[STAGES][PL_STREAM_KIND_COUNT];
  uint32_t forward, backward, take, give; /* segments and memory effects */
  bool transfers;
} pipeline;

static const pl_transfer_spec spec = {
    .rate_cap_Bps = 36e9, .share_weight = 1, .latency = 3000000, .source = PL_NONE, .destination = PL_NONE};
static const pl_transfer_table table = {.specs = &spec, .n_specs = 1};

static uint32_t add_send(pipeline *line, uint32_t from, uint32_t to, uint32_t after) {
  uint32_t streams[2] = {line->streams[from][from < to ? PL_STREAM_SEND_DOWN : PL_STREAM_SEND_UP],
                         line->streams[to][from < to ? PL_STREAM_RECEIVE_DOWN : PL_STREAM_RECEIVE_UP]};
  uint32_t send = line->transfers
                      ? pl_graph_builder_transfer(line->builder, 0, 1e6, PL_CATEGORY_PIPELINE, streams, 2, PL_NONE, 0)
                      : pl_graph_builder_delay(line->builder, 33000000, PL_CATEGORY_PIPELINE, streams, 2, PL_NONE, 0);
  pl_graph_builder_edge(line->builder, after, send);
  return send;
}

/* LAYERS tasks of one stage and microbatch behind `arrived`; returns the last. */
static uint32_t add_pass(pipeline *line, uint32_t stage, bool forward, uint32_t arrived) {
  uint32_t task = PL_NONE;
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    task =
        pl_graph_builder_work(line->builder, forward ? line->forward : line->backward,
                              line->streams[stage][PL_STREAM_COMPUTE], forward ? line->take : line->give, PL_NONE, 0);
    if (layer == 0 && arrived != PL_NONE) pl_graph_builder_edge(line->builder, arrived, task);
  }
  return task;
}

/* Stage s runs forward i at slot s + 2i and backward i at slot 2p - 1 - s + 2i. */
static void add_tasks(pipeline *line, int32_t microbatches) {
  uint32_t(*forward)[STAGES] = malloc((size_t)microbatches * sizeof *forward);
  uint32_t(*backward)[STAGES] = malloc((size_t)microbatches * sizeof *backward);
  for (int32_t slot = 0; slot < 2 * (microbatches + STAGES); slot++)
    for (uint32_t stage = 0; stage < STAGES; stage++) {
      int32_t f = slot - (int32_t)stage, b = slot - (2 * STAGES - 1 - (int32_t)stage);
      if (f >= 0 && f % 2 == 0 && f / 2 < microbatches) {
        uint32_t *row = forward[f / 2], done = add_pass(line, stage, true, stage > 0 ? row[stage - 1] : PL_NONE);
        row[stage] = stage + 1 < STAGES ? add_send(line, stage, stage + 1, done) : done;
      }
      if (b >= 0 && b % 2 == 0 && b / 2 < microbatches) {
        uint32_t *row = backward[b / 2], arrived = stage + 1 < STAGES ? row[stage + 1] : forward[b / 2][stage];
        uint32_t done = add_pass(line, stage, false, arrived);
        row[stage] = stage > 0 ? add_send(line, stage, stage - 1, done) : done;
      }
    }
  free(forward);
  free(backward);
}

static pl_graph build(const graph_case *kind, int32_t microbatches, pl_arena *arena) {
  pipeline line = {.builder = pl_graph_builder_take(arena, kind->policy), .transfers = kind->transfers};
  for (uint32_t stage = 0; stage < STAGES; stage++) {
    pl_graph_builder_device(line.builder,
                            &(pl_graph_device){.device = stage, .multiplicity = 1, .overlap_compute = kind->gamma});
    for (uint32_t stream = 0; stream < PL_STREAM_KIND_COUNT; stream++)
      line.streams[stage][stream] = pl_graph_builder_stream(line.builder, stage, (pl_stream_kind)stream);
  }
  pl_part part = {.ticks = 1099511628, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  line.forward = pl_graph_builder_segment(line.builder, &part, 1);
  part.ticks *= 2;
  part.category = PL_CATEGORY_BACKWARD;
  line.backward = pl_graph_builder_segment(line.builder, &part, 1);
  line.take = pl_graph_builder_effect(line.builder, 3 << 20, 2 << 20);
  line.give = pl_graph_builder_effect(line.builder, 1 << 20, -(2 << 20));
  pl_graph_builder_transfers(line.builder, &table);
  add_tasks(&line, microbatches);
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  if (pl_graph_builder_freeze(line.builder, &graph, &error) != PL_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  return graph;
}

/* ---- the yardstick ---- */

typedef struct bare_event {
  pl_ticks time;
  uint32_t task;
} bare_event;

typedef struct yardstick {
  pl_ticks *ticks, *finish;
  uint32_t *pending;
  bare_event *heap;
  uint32_t count;
} yardstick;

static bool is_before(bare_event a, bare_event b) {
  return a.time < b.time || (a.time == b.time && a.task < b.task);
}

static void push(yardstick *bare, bare_event event) {
  uint32_t at = bare->count++;
  for (; at > 0 && is_before(event, bare->heap[(at - 1) / 2]); at = (at - 1) / 2)
    bare->heap[at] = bare->heap[(at - 1) / 2];
  bare->heap[at] = event;
}

static bare_event pop(yardstick *bare) {
  bare_event *heap = bare->heap, first = heap[0], last = heap[--bare->count];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < bare->count; at = child) {
    if (child + 1 < bare->count && is_before(heap[child + 1], heap[child])) child++;
    if (!is_before(heap[child], last)) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return first;
}

static void take_yardstick(yardstick *bare, const pl_graph *graph) {
  *bare = (yardstick){.ticks = malloc(graph->n_tasks * sizeof *bare->ticks),
                      .finish = malloc(graph->n_tasks * sizeof *bare->finish),
                      .pending = malloc(graph->n_tasks * sizeof *bare->pending),
                      .heap = malloc(graph->n_tasks * sizeof *bare->heap)};
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    bare->ticks[task] = graph->tasks[task].kind == PL_TASK_TRANSFER
                            ? pl_transfer_solo_ticks(&table, 0, graph->tasks[task].size_bytes)
                            : graph->tasks[task].ticks;
}

static pl_ticks run_yardstick(yardstick *bare, const pl_graph *graph) {
  pl_ticks now = 0;
  memcpy(bare->pending, graph->n_predecessors, graph->n_tasks * sizeof *bare->pending);
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (bare->pending[task] == 0) push(bare, (bare_event){bare->ticks[task], task});
  while (bare->count > 0) {
    bare_event event = pop(bare);
    now = bare->finish[event.task] = event.time;
    for (uint32_t at = graph->successor_offset[event.task]; at < graph->successor_offset[event.task + 1]; at++) {
      uint32_t next = graph->successors[at];
      if (--bare->pending[next] == 0) push(bare, (bare_event){now + bare->ticks[next], next});
    }
  }
  return now;
}

/* ---- measuring ---- */

static pl_ticks run_engine(const pl_graph *graph, pl_arena *arena) {
  pl_arena_reset(arena);
  pl_network *network = fixed_network_take(&table, 1024, arena);
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  if (pl_engine_run(graph, network, NULL, arena, &result, &error) != PL_OK) exit(1);
  return result.makespan;
}

static void measure(bench *b, const graph_case *kind) {
  pl_arena arena, run_arena;
  pl_arena_init(&arena, 0);
  pl_arena_init(&run_arena, 0);
  double run[REPEATS], build_ratio[REPEATS];
  yardstick bare = {0};
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    pl_arena_reset(&arena);
    double begin_s = bench_cpu_s();
    pl_graph graph = build(kind, b->is_small ? SMALL_MICROBATCHES : MICROBATCHES, &arena);
    double built_s = bench_cpu_s();
    if (repeat == 0) {
      take_yardstick(&bare, &graph);
      printf("%s: %u tasks, %u edges\n", kind->name, graph.n_tasks, graph.n_edges);
    }
    double start_s = bench_cpu_s();
    pl_ticks bare_makespan = run_yardstick(&bare, &graph);
    double bare_s = bench_cpu_s() - start_s;
    start_s = bench_cpu_s();
    pl_ticks makespan = run_engine(&graph, &run_arena);
    run[repeat] = (bench_cpu_s() - start_s) / bare_s;
    build_ratio[repeat] = (built_s - begin_s) / bare_s;
    if (kind->policy == PL_STREAMS_IN_ORDER && makespan != bare_makespan) {
      fprintf(stderr, "the engine and the yardstick disagree\n");
      exit(1);
    }
  }
  char what[128];
  snprintf(what, sizeof what, "engine, %s", kind->name);
  bench_ratio(b, what, "bare event loop", run, REPEATS);
  snprintf(what, sizeof what, "build and freeze, %s", kind->name);
  bench_ratio(b, what, "bare event loop", build_ratio, REPEATS);
  free(bare.ticks);
  free(bare.finish);
  free(bare.pending);
  free(bare.heap);
  pl_arena_release(&arena);
  pl_arena_release(&run_arena);
}

int main(int argc, char **argv) {
  static const graph_case cases[] = {
      {"sends as delays", false, PL_STREAMS_IN_ORDER, 0},
      {"sends as transfers", true, PL_STREAMS_IN_ORDER, 0},
      {"overlap factor that never acts", true, PL_STREAMS_IN_ORDER, 0.3},
      {"ready streams", true, PL_STREAMS_READY, 0},
  };
  bench b = bench_begin("engine_bench", &argc, argv);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    measure(&b, &cases[i]);
  return bench_end(&b);
}
