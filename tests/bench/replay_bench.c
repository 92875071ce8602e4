/* One replay of a recorded step of 236,800 ops: 16 ranks whose gradients go around a ring, chunk by chunk, the graph on
 * which dPRO's published replay took 14.7 s (validation/papers/dpro.md).
 *
 * The yardstick is a bare event loop over the same graph: durations, successors, predecessor counts and a heap of
 * (date, task), which is what such replays are made of. Both take turns, so that they see the same machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/bench.h"
#include "workloads/trace/replay.h"

enum { RANKS = 16, CHUNKS = 2 * (RANKS - 1), LAYERS = 238, SMALL_LAYERS = 8, REPEATS = 15 };
static const int64_t chunk_ns = 10000, backward_ns = 300000;
static const double published_s = 14.7, published_ops = 236800;

/* ---- the recording: all ranks in step ---- */

typedef struct recording {
  pl_trace trace;
  pl_trace_meetings meetings;
  pl_trace_clocks clocks;
  pl_trace_step_list steps;
} recording;

static uint32_t name_of(pl_trace *trace, const char *what, uint32_t layer, uint32_t chunk) {
  char text[48];
  int n = snprintf(text, sizeof text, "%s%u.%u", what, layer, chunk);
  return pl_trace_name(trace, text, (size_t)n);
}

static void add_rank(pl_trace *trace, uint32_t r, uint32_t layers) {
  uint32_t first_edge = trace->n_edges, received = PL_NONE;
  pl_trace_add_rank(trace, (pl_trace_rank){.number = r,
                                           .host = pl_trace_name(trace, "host", 4),
                                           .file = pl_trace_name(trace, "file", 4),
                                           .first_op = trace->n_ops,
                                           .first_step = trace->n_steps});
  uint32_t gpu = pl_trace_add_stream(trace, r, pl_trace_name(trace, "gpu", 3), PL_TRACE_DEVICE);
  uint32_t to = pl_trace_add_stream(trace, r, pl_trace_name(trace, "to", 2), PL_TRACE_NETWORK);
  uint32_t from = pl_trace_add_stream(trace, r, pl_trace_name(trace, "from", 4), PL_TRACE_NETWORK);
  int64_t ready = 0;
  for (uint32_t layer = 0; layer < layers; layer++) {
    uint32_t backward =
        pl_trace_add_op(trace, pl_trace_op_of(layer * backward_ns, backward_ns, name_of(trace, "backward", layer, 0),
                                              gpu, PL_NONE, PL_NONE, PL_TRACE_COMPUTE));
    if ((layer + 1) * backward_ns > ready) ready = (layer + 1) * backward_ns;
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++, ready += chunk_ns) {
      uint32_t tag = name_of(trace, "grad", layer, chunk);
      pl_trace_message message = {PL_TRACE_POINT_TO_POINT, PL_NONE, (int32_t)((r + 1) % RANKS), tag, -1, 100000};
      uint32_t sent =
          pl_trace_add_op(trace, pl_trace_op_of(ready, chunk_ns, tag, to, pl_trace_add_message(trace, message), PL_NONE,
                                                PL_TRACE_SEND));
      pl_trace_add_edge(trace, chunk == 0 ? backward : received, sent, false);
      message.peer = (int32_t)((r + RANKS - 1) % RANKS);
      received = pl_trace_add_op(trace, pl_trace_op_of(ready, chunk_ns, tag, from, pl_trace_add_message(trace, message),
                                                       PL_NONE, PL_TRACE_RECEIVE));
    }
  }
  pl_error error = PL_ERROR_INIT;
  PL_ASSERT(pl_trace_end_rank(trace, r, first_edge, &error) == PL_OK);
}

static void record(recording *job, uint32_t layers) {
  pl_error error = PL_ERROR_INIT;
  pl_trace_init(&job->trace);
  for (uint32_t r = 0; r < RANKS; r++)
    add_rank(&job->trace, r, layers);
  PL_ASSERT(pl_trace_is_valid(&job->trace));
  PL_ASSERT(pl_trace_meetings_make(&job->trace, &job->meetings, &error) == PL_OK);
  PL_ASSERT(pl_trace_clocks_make(&job->trace, &job->meetings, &job->clocks, &error) == PL_OK);
  PL_ASSERT(pl_trace_steps_make(&job->trace, &job->clocks, &job->steps, &error) == PL_OK);
}

/* ---- the yardstick ---- */

typedef struct loop {
  uint32_t *heap, *n_before;
  pl_ticks *date;
  uint32_t n;
} loop;

static bool is_earlier(const loop *own, uint32_t a, uint32_t b) {
  return own->date[a] != own->date[b] ? own->date[a] < own->date[b] : a < b;
}

static void push(loop *own, uint32_t task) {
  uint32_t at = own->n++;
  for (; at > 0 && is_earlier(own, task, own->heap[(at - 1) / 2]); at = (at - 1) / 2)
    own->heap[at] = own->heap[(at - 1) / 2];
  own->heap[at] = task;
}

static uint32_t pop(loop *own) {
  uint32_t first = own->heap[0], last = own->heap[--own->n], at = 0;
  for (uint32_t child; (child = 2 * at + 1) < own->n; at = child) {
    if (child + 1 < own->n && is_earlier(own, own->heap[child + 1], own->heap[child])) child++;
    if (!is_earlier(own, own->heap[child], last)) break;
    own->heap[at] = own->heap[child];
  }
  own->heap[at] = last;
  return first;
}

static pl_ticks play_bare(loop *own, const pl_trace_replay *replay) {
  const pl_graph *graph = &replay->graph;
  pl_ticks end = 0;
  own->n = 0;
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    own->n_before[t] = replay->pred_offset[t + 1] - replay->pred_offset[t];
    own->date[t] = replay->ticks[t];
  }
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    if (own->n_before[t] == 0) push(own, t);
  while (own->n > 0) {
    uint32_t task = pop(own);
    end = own->date[task];
    for (uint32_t e = graph->successor_offset[task]; e < graph->successor_offset[task + 1]; e++) {
      uint32_t next = graph->successors[e];
      if (--own->n_before[next] > 0) continue;
      own->date[next] = end + replay->ticks[next];
      push(own, next);
    }
  }
  return end;
}

int main(int argc, char **argv) {
  bench b = bench_begin("replay_bench", &argc, argv);
  uint32_t layers = b.is_small ? SMALL_LAYERS : LAYERS, repeats = b.is_small ? 2 : REPEATS;
  recording job;
  pl_arena arena;
  pl_trace_replay replay;
  pl_error error = PL_ERROR_INIT;
  record(&job, layers);
  pl_arena_init(&arena, 0);
  double start = bench_cpu_s();
  PL_ASSERT(pl_trace_replay_take(&job.trace, &job.meetings, &job.clocks, &job.steps, 0, &arena, &replay, &error) ==
            PL_OK);
  double made_s = bench_cpu_s() - start, against_bare[REPEATS], against_published[REPEATS];
  uint32_t n = replay.graph.n_tasks;
  pl_ticks *finish = calloc(n, sizeof *finish);
  loop bare = {calloc(n, sizeof(uint32_t)), calloc(n, sizeof(uint32_t)), calloc(n, sizeof(pl_ticks)), 0};
  PL_ASSERT(finish != NULL && bare.heap != NULL && bare.n_before != NULL && bare.date != NULL);
  for (uint32_t k = 0; k < repeats; k++) {
    start = bench_cpu_s();
    pl_ticks own = pl_trace_replay_run(&replay, replay.ticks, finish);
    double own_s = bench_cpu_s() - start;
    start = bench_cpu_s();
    PL_ASSERT(play_bare(&bare, &replay) == own);
    against_bare[k] = own_s / (bench_cpu_s() - start);
    against_published[k] = published_s / (own_s * published_ops / replay.n_ops);
  }
  printf("%u ops, %u tasks, graph made in %.3g s\n", replay.n_ops, n, made_s);
  bench_ratio(&b, "one replay of 236,800 ops", "bare event loop", against_bare, repeats);
  bench_ratio(&b, "dPRO's published replay, 14.7 s where it was measured", "one replay of 236,800 ops",
              against_published, repeats);
  free(finish);
  free(bare.heap);
  free(bare.n_before);
  free(bare.date);
  pl_arena_release(&arena);
  pl_trace_steps_release(&job.steps);
  pl_trace_clocks_release(&job.clocks);
  pl_trace_meetings_release(&job.meetings);
  pl_trace_release(&job.trace);
  return bench_end(&b);
}
