/* Runs a graph on the flow network, in memory of `arena`; a failure ends the test. */
#ifndef PL_TESTS_SUPPORT_PLAY_H
#define PL_TESTS_SUPPORT_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine.h"
#include "netmodel/networks.h"

static inline pl_engine_result play(const pl_graph *graph, pl_arena *arena) {
  pl_engine_result result;
  pl_error error = PL_ERROR_INIT;
  pl_network *network = pl_flow_network_take(&graph->transfers, arena);
  if (pl_engine_run(graph, network, NULL, arena, &result, &error) != PL_OK) fail_msg("%s", error.message);
  network->ops->destroy(network);
  return result;
}

/* The same for a graph that is finished only here. */
static inline pl_engine_result freeze_and_play(pl_graph_builder *builder, pl_arena *arena) {
  pl_graph graph;
  pl_error error = PL_ERROR_INIT;
  if (pl_graph_builder_freeze(builder, &graph, &error) != PL_OK) fail_msg("%s", error.message);
  return play(&graph, arena);
}

#endif
