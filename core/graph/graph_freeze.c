/* From the builder's arrays to the frozen graph (core/graph/graph.h): one counting sort into compressed rows.
 *
 * Count edges per source, place, then sort each source's few successors and drop duplicates. Sorting by the target
 * first (a radix sort over both) was rejected: a second random pass over all edges, for lists of two or three. Edges
 * normally point from lower to higher ids, in which case there can be no cycle and nothing is searched for one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/order.h"
#include "core/graph/graph_builder_state.h"

static pl_code check_references(const pl_graph_builder *builder, pl_error *error) {
  if (builder->n_transfer_tasks > 0 && builder->greatest_spec >= builder->transfers.n_specs)
    return pl_fail(error, PL_BAD_INPUT, "graph: a transfer refers to spec %u, but there are %u", builder->greatest_spec,
                   builder->transfers.n_specs);
  for (uint32_t task = 0; task < builder->n_tasks; task++)
    if (builder->tasks[task].memory != PL_NONE && builder->tasks[task].n_streams == 0)
      return pl_fail(error, PL_BAD_INPUT, "graph: task %u has a memory effect but no stream, hence no device", task);
  return PL_OK;
}

/* How many edges leave each task, duplicates too. */
static pl_code count_edges(const pl_graph_builder *builder, uint32_t *n_edges, pl_error *error) {
  for (const pl_edge_chunk *chunk = builder->first_edges; chunk != NULL; chunk = chunk->next)
    for (uint32_t at = 0; at < chunk->count; at++) {
      pl_edge entry = chunk->edges[at];
      if (entry.before >= builder->n_tasks || entry.after >= builder->n_tasks)
        return pl_fail(error, PL_BAD_INPUT, "graph: an edge leads from task %u to task %u, but there are %u tasks",
                       entry.before, entry.after, builder->n_tasks);
      n_edges[entry.before]++;
    }
  return PL_OK;
}

/* Few as a rule: insertion sort; many (a barrier's): qsort. */
static void sort_ids(uint32_t *ids, uint32_t count) {
  enum { FEW = 24 };
  if (count > FEW) {
    qsort(ids, count, sizeof *ids, pl_by_uint32);
    return;
  }
  for (uint32_t at = 1; at < count; at++) {
    uint32_t id = ids[at], to = at;
    for (; to > 0 && ids[to - 1] > id; to--)
      ids[to] = ids[to - 1];
    ids[to] = id;
  }
}

/* From how many to offset[task] = end of the successors of `task` - 1, i.e. the start of those of `task`, duplicates
 * still in. */
static void place_edges(const pl_graph_builder *builder, uint32_t *offset, uint32_t *successors) {
  uint32_t total = 0;
  for (uint32_t task = 0; task < builder->n_tasks; task++)
    offset[task] = total += offset[task];
  offset[builder->n_tasks] = total;
  for (const pl_edge_chunk *chunk = builder->first_edges; chunk != NULL; chunk = chunk->next)
    for (uint32_t at = 0; at < chunk->count; at++)
      successors[--offset[chunk->edges[at].before]] = chunk->edges[at].after;
}

/* They are in the rows now. In the largest runs they are an eighth of the memory, which the engine takes next. */
static void give_edges(pl_graph_builder *builder) {
  for (pl_edge_chunk *chunk = builder->first_edges, *next; chunk != NULL; chunk = next) {
    next = chunk->next;
    pl_arena_give(builder->arena, chunk, sizeof *chunk + chunk->capacity * sizeof *chunk->edges);
  }
  builder->first_edges = builder->last_edges = NULL;
}

/* Sorts and dedupes each row in place, moving rows together. Returns the number of edges left. */
static uint32_t merge_duplicates(pl_graph_builder *builder, uint32_t *offset, uint32_t *successors,
                                 uint32_t *n_predecessors) {
  uint32_t kept = 0;
  for (uint32_t task = 0; task < builder->n_tasks; task++) {
    uint32_t first = offset[task], end = offset[task + 1], row = kept;
    sort_ids(successors + first, end - first);
    for (uint32_t at = first; at < end; at++) {
      uint32_t successor = successors[at];
      if (kept > row && successors[kept - 1] == successor) continue;
      successors[kept++] = successor;
      n_predecessors[successor]++;
    }
    offset[task] = row;
    builder->tasks[task].first_successor = row;
    builder->tasks[task].n_successors = kept - row;
  }
  offset[builder->n_tasks] = kept;
  return kept;
}

static const char *task_name(const pl_graph *graph, uint32_t task) {
  uint32_t label = graph->tasks[task].label;
  return label == PL_NONE ? "unnamed" : graph->names[label];
}

/* Every task that was not visited has a predecessor that was not: following those leads round a cycle. */
static pl_code report_cycle(const pl_graph *graph, const uint32_t *pending, uint32_t *backwards, pl_error *error) {
  uint32_t task = PL_NONE;
  for (uint32_t from = 0; from < graph->n_tasks; from++) {
    if (pending[from] == 0) continue;
    task = from;
    for (uint32_t at = graph->successor_offset[from]; at < graph->successor_offset[from + 1]; at++)
      backwards[graph->successors[at]] = from;
  }
  for (uint32_t step = 0; step < graph->n_tasks; step++)
    task = backwards[task];
  enum { SHOWN = 6 };
  char text[512] = "";
  size_t used = 0;
  uint32_t at = task, length = 0;
  do {
    if (length < SHOWN && used < sizeof text - 1)
      used += (size_t)snprintf(text + used, sizeof text - used, "%u (%.40s) after ", at, task_name(graph, at));
    at = backwards[at];
    length++;
  } while (at != task);
  return pl_fail(error, PL_BAD_INPUT, "graph: %u tasks wait for each other in a circle: %s%s%u", length, text,
                 length > SHOWN ? "... after " : "", task);
}

static pl_code check_acyclic(const pl_graph *graph, pl_arena *arena, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  uint32_t *pending = PL_COPY(arena, uint32_t, graph->n_predecessors, graph->n_tasks);
  uint32_t *queue = pl_arena_take(arena, graph->n_tasks * sizeof *queue, _Alignof(uint32_t));
  if (pending == NULL || queue == NULL) return pl_fail_memory(error, "the check for cycles of a graph");
  uint32_t n_queued = 0;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (pending[task] == 0) queue[n_queued++] = task;
  for (uint32_t at = 0; at < n_queued; at++)
    for (uint32_t to = graph->successor_offset[queue[at]]; to < graph->successor_offset[queue[at] + 1]; to++)
      if (--pending[graph->successors[to]] == 0) queue[n_queued++] = graph->successors[to];
  pl_code code = n_queued == graph->n_tasks ? PL_OK : report_cycle(graph, pending, queue, error);
  pl_arena_release_to(arena, mark);
  return code;
}

static void fill_graph(const pl_graph_builder *builder, pl_graph *graph) {
  *graph = (pl_graph){.tasks = builder->tasks,
                      .n_tasks = builder->n_tasks,
                      .task_streams = builder->task_streams,
                      .n_task_streams = builder->n_task_streams,
                      .n_transfer_tasks = builder->n_transfer_tasks,
                      .n_streamless_tasks = builder->n_streamless_tasks,
                      .streams = builder->streams,
                      .n_streams = builder->n_streams,
                      .devices = builder->devices,
                      .n_devices = builder->n_devices,
                      .segments = builder->segments,
                      .n_segments = builder->n_segments,
                      .parts = builder->parts,
                      .rival_offset = builder->rival_offset,
                      .rivals = builder->rivals,
                      .n_parts = builder->n_parts,
                      .effects = builder->effects,
                      .n_effects = builder->n_effects,
                      .names = builder->names,
                      .n_names = builder->n_names,
                      .transfers = builder->transfers,
                      .policy = builder->policy};
}

static bool may_have_circles(const pl_graph_builder *builder) {
#ifdef NDEBUG
  if (builder->is_acyclic) return false;
#endif
  return builder->has_backward_edge;
}

pl_code pl_graph_builder_freeze(pl_graph_builder *builder, pl_graph *graph, pl_error *error) {
  if (builder->error.code != PL_OK) return pl_fail(error, builder->error.code, "%s", builder->error.message);
  if (builder->failed || builder->n_raw_edges >= PL_NONE) return pl_fail_memory(error, "the execution graph");
  PL_TRY(check_references(builder, error));
  uint32_t n_tasks = builder->n_tasks;
  uint32_t *offset = PL_TAKE(builder->arena, uint32_t, (size_t)n_tasks + 1);
  uint32_t *n_predecessors = PL_TAKE(builder->arena, uint32_t, n_tasks);
  uint32_t *successors = pl_arena_take(builder->arena, builder->n_raw_edges * sizeof(uint32_t), _Alignof(uint32_t));
  if (offset == NULL || n_predecessors == NULL || successors == NULL)
    return pl_fail_memory(error, "the edges of the execution graph");
  PL_TRY(count_edges(builder, offset, error));
  place_edges(builder, offset, successors);
  fill_graph(builder, graph);
  graph->n_edges = merge_duplicates(builder, offset, successors, n_predecessors);
  graph->successor_offset = offset;
  graph->successors = successors;
  graph->n_predecessors = n_predecessors;
  if (may_have_circles(builder)) PL_TRY(check_acyclic(graph, builder->arena, error));
  give_edges(builder);
  return PL_OK;
}
