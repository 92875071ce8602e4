/* See workloads/trace/replay_links.h. */
#include "workloads/trace/replay_links.h"

#include <stdlib.h>
#include <string.h>

/* The message of this op goes over a link that others wait for. */
static bool is_on_link(const pl_trace_replay *replay, uint32_t op) {
  const pl_trace_op *o = &replay->trace->ops[op];
  return (o->kind == PL_TRACE_SEND || o->kind == PL_TRACE_RECEIVE) &&
         replay->trace->streams[o->stream].kind == PL_TRACE_NETWORK;
}

/* The edge is but the order on a link: of the op before on its stream, which it does not wait for otherwise. */
static bool is_order(const pl_trace_replay *replay, const uint8_t *says, uint32_t before, uint32_t after) {
  uint32_t op = replay->subject[after];
  if (replay->role[after] != PL_TRACE_GATE || !is_on_link(replay, op) || says[op]) return false;
  uint32_t previous = pl_trace_previous(replay->trace, op);
  return previous != PL_NONE && before == replay->body[previous];
}

/* Ops that the trace itself lets wait for the op before on their stream. */
static void mark_said(const pl_trace *trace, uint8_t *says) {
  for (uint32_t e = 0; e < trace->n_edges; e++)
    if (!trace->edges[e].from_start && pl_trace_previous(trace, trace->edges[e].after) == trace->edges[e].before)
      says[trace->edges[e].after] = 1;
}

static uint32_t list_links(const pl_trace_replay *replay, uint32_t *link_of_stream, uint32_t *claims, uint32_t *frees) {
  uint32_t n = 0;
  memset(link_of_stream, 0xff, replay->trace->n_streams * sizeof *link_of_stream);
  memset(claims, 0xff, replay->graph.n_tasks * sizeof *claims);
  memset(frees, 0xff, replay->graph.n_tasks * sizeof *frees);
  for (uint32_t op = 0; op < replay->trace->n_ops; op++) {
    if (replay->gate[op] == PL_NONE || !is_on_link(replay, op) || replay->trace->ops[op].kind != PL_TRACE_SEND)
      continue;
    uint32_t *link = &link_of_stream[replay->trace->ops[op].stream];
    if (*link == PL_NONE) *link = n++;
    claims[replay->gate[op]] = *link;
    frees[replay->body[op]] = *link;
  }
  return n;
}

/* A step's dates are half a tick off per task at most. */
static bool comes_back(const pl_trace_replay *replay, pl_trace_links *links, pl_ticks *finish) {
  pl_ticks ordered = pl_trace_replay_run(replay, replay->ticks, finish);
  pl_ticks served = pl_trace_links_run(replay, links, replay->ticks, finish);
  pl_ticks off = served > ordered ? served - ordered : ordered - served;
  return served >= 0 && served != PL_TICKS_NEVER && off <= ordered / 10000;
}

pl_code pl_trace_links_take(const pl_trace_replay *replay, pl_arena *arena, pl_trace_links *links, pl_error *error) {
  const pl_graph *graph = &replay->graph;
  *links = (pl_trace_links){.arena = arena};
  uint8_t *says = PL_TAKE(arena, uint8_t, (size_t)replay->trace->n_ops + 1);
  uint32_t *claims = PL_TAKE(arena, uint32_t, (size_t)graph->n_tasks + 1);
  uint32_t *frees = PL_TAKE(arena, uint32_t, (size_t)graph->n_tasks + 1);
  uint32_t *link_of_stream = PL_TAKE(arena, uint32_t, (size_t)replay->trace->n_streams + 1);
  pl_ticks *ticks = PL_TAKE(arena, pl_ticks, (size_t)graph->n_tasks + 1);
  pl_ticks *finish = PL_TAKE(arena, pl_ticks, (size_t)graph->n_tasks + 1);
  pl_step_arc *arcs = PL_TAKE(arena, pl_step_arc, (size_t)graph->n_edges + 1);
  if (says == NULL || claims == NULL || frees == NULL || link_of_stream == NULL || ticks == NULL || finish == NULL ||
      arcs == NULL)
    return pl_fail_memory(error, "the links of a step");
  mark_said(replay->trace, says);
  uint32_t n_arcs = 0, n_links = list_links(replay, link_of_stream, claims, frees);
  if (n_links == 0) return PL_OK;
  for (uint32_t t = 0; t < graph->n_tasks; t++)
    for (uint32_t e = graph->successor_offset[t]; e < graph->successor_offset[t + 1]; e++)
      if (!is_order(replay, says, t, graph->successors[e])) arcs[n_arcs++] = (pl_step_arc){t, graph->successors[e]};
  if (!pl_step_graph_take(graph->n_tasks, ticks, claims, frees, n_links, arcs, n_arcs, arena, &links->graph))
    return pl_fail_memory(error, "the links of a step");
  links->are_served = comes_back(replay, links, finish);
  return PL_OK;
}

pl_ticks pl_trace_links_run(const pl_trace_replay *replay, pl_trace_links *links, const pl_ticks *ticks,
                            pl_ticks *finish) {
  memcpy(links->graph.ticks, ticks, replay->graph.n_tasks * sizeof *ticks);
  return pl_step_graph_play(&links->graph, links->arena, finish, NULL);
}
