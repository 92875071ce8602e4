/* The engine against a bare event loop over the same graph of about 500,000 tasks.
 *
 * The yardstick knows durations, successors and predecessor counts, and a heap of (date, task): no streams, memory,
 * network, overlap factor, start dates, accounts or digests. Printed are ratios of the best of several repeats, taken
 * in turns so that both see the same machine. The graph is a 1F1B pipeline; its sends are fixed delays in one case and
 * transfers on a network without contention in the other. With ready streams the yardstick runs the same graph without
 * its stream edges: not the same work, only a scale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/engine.h"
#include "tests/support/fixed_network.h"

enum { STAGES = 16, MICROBATCHES = 5300, LAYERS = 2, REPEATS = 9 };

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the graph ---- */

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
static void add_tasks(pipeline *line) {
  uint32_t(*forward)[STAGES] = malloc(MICROBATCHES * sizeof *forward);
  uint32_t(*backward)[STAGES] = malloc(MICROBATCHES * sizeof *backward);
  for (int32_t slot = 0; slot < 2 * (MICROBATCHES + STAGES); slot++)
    for (uint32_t stage = 0; stage < STAGES; stage++) {
      int32_t f = slot - (int32_t)stage, b = slot - (2 * STAGES - 1 - (int32_t)stage);
      if (f >= 0 && f % 2 == 0 && f / 2 < MICROBATCHES) {
        uint32_t *row = forward[f / 2], done = add_pass(line, stage, true, stage > 0 ? row[stage - 1] : PL_NONE);
        row[stage] = stage + 1 < STAGES ? add_send(line, stage, stage + 1, done) : done;
      }
      if (b >= 0 && b % 2 == 0 && b / 2 < MICROBATCHES) {
        uint32_t *row = backward[b / 2], arrived = stage + 1 < STAGES ? row[stage + 1] : forward[b / 2][stage];
        uint32_t done = add_pass(line, stage, false, arrived);
        row[stage] = stage > 0 ? add_send(line, stage, stage - 1, done) : done;
      }
    }
  free(forward);
  free(backward);
}

static pl_graph build(bool transfers, pl_stream_policy policy, double gamma, pl_arena *arena) {
  pipeline line = {.builder = pl_graph_builder_take(arena, policy), .transfers = transfers};
  for (uint32_t stage = 0; stage < STAGES; stage++) {
    pl_graph_builder_device(line.builder,
                            &(pl_graph_device){.device = stage, .multiplicity = 1, .overlap_compute = gamma});
    for (uint32_t kind = 0; kind < PL_STREAM_KIND_COUNT; kind++)
      line.streams[stage][kind] = pl_graph_builder_stream(line.builder, stage, (pl_stream_kind)kind);
  }
  pl_part part = {.ticks = 1099511628, .category = PL_CATEGORY_FORWARD, .computes = true, .name = PL_NONE};
  line.forward = pl_graph_builder_segment(line.builder, &part, 1);
  part.ticks *= 2;
  part.category = PL_CATEGORY_BACKWARD;
  line.backward = pl_graph_builder_segment(line.builder, &part, 1);
  line.take = pl_graph_builder_effect(line.builder, 3 << 20, 2 << 20);
  line.give = pl_graph_builder_effect(line.builder, 1 << 20, -(2 << 20));
  pl_graph_builder_transfers(line.builder, &table);
  add_tasks(&line);
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

static void keep_best(double *best_s, double begin_s) {
  double time_s = now_s() - begin_s;
  if (time_s < *best_s) *best_s = time_s;
}

static void measure(bool transfers, pl_stream_policy policy, double gamma) {
  pl_arena arena, run_arena;
  pl_arena_init(&arena, 0);
  pl_arena_init(&run_arena, 0);
  double build_s = 1e9, engine_s = 1e9, bare_s = 1e9;
  yardstick bare = {0};
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    pl_arena_reset(&arena);
    double begin_s = now_s();
    pl_graph graph = build(transfers, policy, gamma, &arena);
    keep_best(&build_s, begin_s);
    if (repeat == 0) {
      take_yardstick(&bare, &graph);
      printf("1F1B, %s streams, sends as %s%s: %u tasks, %u edges\n", policy == PL_STREAMS_READY ? "ready" : "in-order",
             transfers ? "transfers" : "delays", gamma > 0 ? ", overlap factor that never acts" : "", graph.n_tasks,
             graph.n_edges);
    }
    begin_s = now_s();
    pl_ticks bare_makespan = run_yardstick(&bare, &graph);
    keep_best(&bare_s, begin_s);
    begin_s = now_s();
    pl_ticks makespan = run_engine(&graph, &run_arena);
    keep_best(&engine_s, begin_s);
    if (policy == PL_STREAMS_IN_ORDER && makespan != bare_makespan)
      fprintf(stderr, "the engine and the yardstick disagree\n");
  }
  printf("  engine / bare event loop, time per task: %.2f\n", engine_s / bare_s);
  printf("  build and freeze / bare event loop:      %.2f\n", build_s / bare_s);
  if (getenv("PACELINE_BENCH_SECONDS") != NULL)
    printf("  bare %.4f s, engine %.4f s, build %.4f s\n", bare_s, engine_s, build_s);
  free(bare.ticks);
  free(bare.finish);
  free(bare.pending);
  free(bare.heap);
  pl_arena_release(&arena);
  pl_arena_release(&run_arena);
}

int main(void) {
  measure(false, PL_STREAMS_IN_ORDER, 0);
  measure(true, PL_STREAMS_IN_ORDER, 0);
  measure(true, PL_STREAMS_IN_ORDER, 0.3);
  measure(true, PL_STREAMS_READY, 0);
  return 0;
}
