/* Runs a graph on the flow network, in memory of `arena`; a failure ends the test. */
#ifndef PL_TESTS_SUPPORT_PLAY_H
#define PL_TESTS_SUPPORT_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "core/engine/engine.h"
#include "netmodel/flow/networks.h"
#include "tests/support/random.h"

static inline pl_engine_result play(const pl_graph *graph, pl_arena *arena) {
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  pl_network *network = pl_flow_network_take(&graph->transfers, arena);
  if (pl_engine_run(graph, network, NULL, arena, &result, &error) != PL_OK) fail_msg("%s", error.message);
  network->ops->destroy(network);
  return result;
}

/* By how much the finish dates of `played` move when every size changes by at most 2^-30 of itself, every latency by a
 * tick, and the latency that a share is weighted by under rtt sharing, which SimGrid has from the file and we rounded,
 * by half a tick: the most of eight tries. Contention magnifies such changes, now and then by millions; two engines
 * that round differently may then be as far apart. */
static inline double play_sensitivity_s(const pl_graph *graph, const pl_engine_result *played, uint64_t *random,
                                        pl_arena *arena) {
  double most = 0;
  pl_task *tasks = pl_arena_take(arena, graph->n_tasks * sizeof *tasks, _Alignof(pl_task));
  pl_transfer_spec *specs = PL_TAKE(arena, pl_transfer_spec, graph->transfers.n_specs);
  pl_graph other = *graph;
  other.tasks = tasks;
  other.transfers.specs = specs;
  for (int i = 0; i < 8; i++) {
    memcpy(tasks, graph->tasks, graph->n_tasks * sizeof *tasks);
    for (uint32_t t = 0; t < graph->n_tasks; t++)
      if (tasks[t].kind == PL_TASK_TRANSFER) tasks[t].size_bytes *= 1 + 0x1p-30 * (2 * random_unit(random) - 1);
    memcpy(specs, graph->transfers.specs, graph->transfers.n_specs * sizeof *specs);
    for (uint32_t s = 0; s < graph->transfers.n_specs; s++) {
      if (specs[s].latency == 0) continue;
      if (specs[s].share_weight != 1)
        specs[s].share_weight *= 1 + (random_unit(random) - 0.5) / (double)specs[s].latency;
      specs[s].latency += (pl_ticks)random_below(random, 3) - 1;
    }
    pl_engine_result moved = play(&other, arena);
    for (uint32_t t = 0; t < graph->n_tasks; t++)
      most = fmax(most, fabs(pl_ticks_to_s(moved.finish[t] - played->finish[t])));
  }
  return most;
}

/* play() for a graph that is finished only here. */
static inline pl_engine_result freeze_and_play(pl_graph_builder *builder, pl_arena *arena) {
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  if (pl_graph_builder_freeze(builder, &graph, &error) != PL_OK) fail_msg("%s", error.message);
  return play(&graph, arena);
}

#endif
