/* The frozen graph (core/graph/graph.h): names, validity, digest. The builder is in core/graph/graph_builder.c. */
#include "core/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"

static const char *const category_names[PL_CATEGORY_COUNT] = {
    [PL_CATEGORY_FORWARD] = "forward",     [PL_CATEGORY_BACKWARD] = "backward", [PL_CATEGORY_RECOMPUTE] = "recompute",
    [PL_CATEGORY_OPTIMIZER] = "optimizer", [PL_CATEGORY_TENSOR] = "tensor",     [PL_CATEGORY_PIPELINE] = "pipeline",
    [PL_CATEGORY_DATA] = "data",           [PL_CATEGORY_OTHER] = "other",       [PL_CATEGORY_HOST] = "host",
    [PL_CATEGORY_CONTEXT] = "context",     [PL_CATEGORY_EXPERT] = "expert"};

static const char *const stream_kind_names[PL_STREAM_KIND_COUNT] = {
    "compute",      "feature", "gradient", "send_down",       "receive_down", "send_up",        "receive_up",
    "tied",         "context", "expert",   "expert_gradient", "send_down_2",  "receive_down_2", "send_up_2",
    "receive_up_2", "host",    "heads"};

const char *pl_category_name(pl_category category) {
  return (uint32_t)category < PL_CATEGORY_COUNT ? category_names[category] : "unknown";
}

const char *pl_stream_kind_name(pl_stream_kind kind) {
  return (uint32_t)kind < PL_STREAM_KIND_COUNT ? stream_kind_names[kind] : "unknown";
}

/* ---- validity ---- */

static bool is_none_or_below(uint32_t index, uint32_t count) {
  return index == PL_NONE || index < count;
}

/* A joint segment: see core/graph/graph.h. */
static bool is_joint_valid(const pl_graph *graph, const pl_task *task) {
  const pl_segment *segment = &graph->segments[task->index];
  const pl_part *first = &graph->parts[segment->first_part], *last = first + segment->n_parts - 1;
  for (uint32_t at = 0; at < task->n_streams; at++) {
    uint32_t stream = graph->task_streams[task->first_stream + at];
    if (stream >= graph->n_streams || graph->streams[stream].kind != PL_STREAM_COMPUTE) return false;
  }
  return !first->computes && !last->computes;
}

static bool is_index_valid(const pl_graph *graph, const pl_task *task) {
  switch ((pl_task_kind)task->kind) {
  case PL_TASK_WORK:
    return task->index < graph->n_segments && task->n_streams >= 1 &&
           task->ticks == graph->segments[task->index].ticks && (task->n_streams == 1 || is_joint_valid(graph, task));
  case PL_TASK_TRANSFER:
    return task->index < graph->transfers.n_specs && task->size_bytes >= 0;
  case PL_TASK_DELAY:
    return task->ticks >= 0;
  }
  return false;
}

static bool is_task_valid(const pl_graph *graph, uint32_t id) {
  const pl_task *task = &graph->tasks[id];
  if (!is_index_valid(graph, task) || task->category >= PL_CATEGORY_COUNT) return false;
  if (task->first_stream > graph->n_task_streams || task->n_streams > graph->n_task_streams - task->first_stream)
    return false;
  for (uint32_t at = 0; at < task->n_streams; at++)
    if (graph->task_streams[task->first_stream + at] >= graph->n_streams) return false;
  if (task->memory != PL_NONE && (task->memory >= graph->n_effects || task->n_streams == 0)) return false;
  if (!is_none_or_below(task->label, graph->n_names)) return false;
  return task->first_successor == graph->successor_offset[id] &&
         task->n_successors == graph->successor_offset[id + 1] - graph->successor_offset[id];
}

static bool are_successors_valid(const pl_graph *graph) {
  if (graph->successor_offset[0] != 0 || graph->successor_offset[graph->n_tasks] != graph->n_edges) return false;
  for (uint32_t task = 0; task < graph->n_tasks; task++) {
    if (graph->successor_offset[task] > graph->successor_offset[task + 1]) return false;
    for (uint32_t at = graph->successor_offset[task]; at < graph->successor_offset[task + 1]; at++) {
      if (graph->successors[at] >= graph->n_tasks || graph->successors[at] == task) return false;
      if (at > graph->successor_offset[task] && graph->successors[at - 1] >= graph->successors[at]) return false;
    }
  }
  return true;
}

static bool are_segments_valid(const pl_graph *graph) {
  for (uint32_t at = 0; at < graph->n_segments; at++) {
    const pl_segment *segment = &graph->segments[at];
    if (segment->n_parts == 0 || segment->first_part > graph->n_parts ||
        segment->n_parts > graph->n_parts - segment->first_part)
      return false;
    pl_ticks ticks = 0;
    for (uint32_t part = 0; part < segment->n_parts; part++)
      ticks += graph->parts[segment->first_part + part].ticks;
    if (ticks != segment->ticks) return false;
  }
  for (uint32_t part = 0; part < graph->n_parts; part++)
    if (graph->parts[part].ticks < 0 || graph->parts[part].category >= PL_CATEGORY_COUNT ||
        !is_none_or_below(graph->parts[part].name, graph->n_names))
      return false;
  return true;
}

/* Predecessor counts agree with the edges, and counting them down visits every task. */
static bool is_order_valid(const pl_graph *graph) {
  uint32_t *pending = calloc((size_t)graph->n_tasks + 1, sizeof *pending);
  uint32_t *queue = calloc((size_t)graph->n_tasks + 1, sizeof *queue);
  bool valid = pending != NULL && queue != NULL;
  for (uint32_t at = 0; valid && at < graph->n_edges; at++)
    pending[graph->successors[at]]++;
  uint32_t n_queued = 0;
  for (uint32_t task = 0; valid && task < graph->n_tasks; task++) {
    valid = pending[task] == graph->n_predecessors[task];
    if (valid && pending[task] == 0) queue[n_queued++] = task;
  }
  for (uint32_t at = 0; valid && at < n_queued; at++)
    for (uint32_t to = graph->successor_offset[queue[at]]; to < graph->successor_offset[queue[at] + 1]; to++)
      if (--pending[graph->successors[to]] == 0) queue[n_queued++] = graph->successors[to];
  free(pending);
  free(queue);
  return valid && n_queued == graph->n_tasks;
}

bool pl_graph_is_valid(const pl_graph *graph) {
  for (uint32_t at = 0; at < graph->n_streams; at++)
    if (graph->streams[at].device >= graph->n_devices || graph->streams[at].kind >= PL_STREAM_KIND_COUNT) return false;
  for (uint32_t at = 0; at < graph->n_effects; at++)
    if (graph->effects[at].peak_bytes < 0 || graph->effects[at].peak_bytes < graph->effects[at].net_bytes) return false;
  if (!are_segments_valid(graph) || !are_successors_valid(graph)) return false;
  for (uint32_t task = 0; task < graph->n_tasks; task++)
    if (!is_task_valid(graph, task)) return false;
  return is_order_valid(graph);
}

/* ---- digest ----
 * Field by field: structures have padding, whose bytes are nobody's. */

static void digest_name(pl_digest *digest, const pl_graph *graph, uint32_t name) {
  pl_digest_text(digest, name == PL_NONE ? "" : graph->names[name]);
}

static void digest_tasks(pl_digest *digest, const pl_graph *graph) {
  for (uint32_t at = 0; at < graph->n_tasks; at++) {
    const pl_task *task = &graph->tasks[at];
    uint64_t bits;
    memcpy(&bits, &task->ticks, sizeof bits);
    pl_digest_u64(digest, (uint64_t)task->kind << 32 | task->category);
    pl_digest_u64(digest, (uint64_t)task->index << 32 | task->memory);
    pl_digest_u64(digest, bits);
    pl_digest_u64(digest, (uint64_t)(uint32_t)task->microbatch << 32 | task->n_streams);
    pl_digest_bytes(digest, graph->task_streams + task->first_stream, task->n_streams * sizeof *graph->task_streams);
    digest_name(digest, graph, task->label);
  }
}

static void digest_devices(pl_digest *digest, const pl_graph *graph) {
  for (uint32_t at = 0; at < graph->n_devices; at++) {
    const pl_graph_device *device = &graph->devices[at];
    pl_digest_u64(digest, (uint64_t)device->device << 32 | device->multiplicity);
    pl_digest_f64(digest, device->overlap_compute);
    pl_digest_f64(digest, device->overlap_communication);
    if (device->overlap_exchange > 0) pl_digest_f64(digest, device->overlap_exchange);
    if (device->overlap_tensor > 0)
      pl_digest_f64(digest, device->waits_for_place ? -device->overlap_tensor : device->overlap_tensor);
    pl_digest_u64(digest, (uint64_t)device->resident_bytes);
  }
  for (uint32_t at = 0; at < graph->n_streams; at++)
    pl_digest_u64(digest, (uint64_t)graph->streams[at].device << 32 | graph->streams[at].kind);
}

static void digest_tables(pl_digest *digest, const pl_graph *graph) {
  for (uint32_t at = 0; at < graph->n_segments; at++)
    pl_digest_u64(digest, (uint64_t)graph->segments[at].first_part << 32 | graph->segments[at].n_parts);
  for (uint32_t at = 0; at < graph->n_parts; at++) {
    pl_digest_u64(digest, (uint64_t)graph->parts[at].ticks);
    pl_digest_u64(digest, (uint64_t)graph->parts[at].category << 32 | graph->parts[at].computes |
                              (uint64_t)graph->parts[at].is_crowded << 1);
    if (graph->parts[at].transfers) {
      pl_digest_u64(digest, graph->parts[at].spec);
      pl_digest_f64(digest, graph->parts[at].size_bytes);
    }
    digest_name(digest, graph, graph->parts[at].name);
  }
  for (uint32_t at = 0; at < graph->n_effects; at++) {
    pl_digest_u64(digest, (uint64_t)graph->effects[at].peak_bytes);
    pl_digest_u64(digest, (uint64_t)graph->effects[at].net_bytes);
  }
}

static void digest_transfers(pl_digest *digest, const pl_transfer_table *table) {
  for (uint32_t at = 0; at < table->n_links; at++) {
    pl_digest_f64(digest, table->link_capacity_Bps[at]);
    pl_digest_u64(digest, table->link_policy[at]);
  }
  for (uint32_t at = 0; at < table->n_specs; at++) {
    const pl_transfer_spec *spec = &table->specs[at];
    pl_digest_u64(digest, (uint64_t)spec->first_use << 32 | spec->n_uses);
    pl_digest_f64(digest, spec->rate_cap_Bps);
    pl_digest_f64(digest, spec->share_weight);
    pl_digest_u64(digest, (uint64_t)spec->latency);
    pl_digest_u64(digest, (uint64_t)spec->source << 32 | spec->destination);
  }
  for (uint32_t at = 0; at < table->n_uses; at++) {
    pl_digest_u64(digest, table->uses[at].link);
    pl_digest_f64(digest, table->uses[at].weight);
  }
}

static void digest_rivals(pl_digest *digest, const pl_graph *graph) {
  if (graph->rivals == NULL) return;
  const uint32_t *offset = graph->rival_offset;
  pl_digest_bytes(digest, offset, ((size_t)graph->transfers.n_specs + 1) * sizeof *offset);
  pl_digest_bytes(digest, graph->rivals, offset[graph->transfers.n_specs] * sizeof *graph->rivals);
}

uint64_t pl_graph_digest(const pl_graph *graph) {
  pl_digest digest;
  pl_digest_init(&digest);
  pl_digest_u64(&digest, graph->policy);
  digest_tasks(&digest, graph);
  pl_digest_bytes(&digest, graph->successor_offset, ((size_t)graph->n_tasks + 1) * sizeof *graph->successor_offset);
  pl_digest_bytes(&digest, graph->successors, graph->n_edges * sizeof *graph->successors);
  digest_devices(&digest, graph);
  digest_tables(&digest, graph);
  digest_transfers(&digest, &graph->transfers);
  digest_rivals(&digest, graph);
  return digest.value;
}

bool pl_graph_tasks_alike(const pl_graph *graph, uint32_t task, uint32_t other) {
  const pl_task *a = &graph->tasks[task], *b = &graph->tasks[other];
  if (a->kind != b->kind || a->category != b->category || a->index != b->index || a->ticks != b->ticks ||
      a->n_streams != b->n_streams || a->memory != b->memory || a->label != b->label ||
      graph->n_predecessors[task] != graph->n_predecessors[other])
    return false;
  for (uint32_t member = 0; member < a->n_streams; member++)
    if (graph->task_streams[a->first_stream + member] != graph->task_streams[b->first_stream + member]) return false;
  return true;
}

pl_category pl_parts_category(const pl_part *parts, uint32_t n) {
  pl_ticks ticks[PL_CATEGORY_COUNT] = {0};
  uint8_t most = parts[0].category;
  for (uint32_t at = 0; at < n; at++) {
    if (!parts[at].computes) continue;
    ticks[parts[at].category] += parts[at].ticks;
    if (ticks[parts[at].category] > ticks[most]) most = parts[at].category;
  }
  return (pl_category)most;
}

pl_category pl_graph_segment_category(const pl_graph *graph, uint32_t segment) {
  const pl_segment *own = &graph->segments[segment];
  return pl_parts_category(&graph->parts[own->first_part], own->n_parts);
}
