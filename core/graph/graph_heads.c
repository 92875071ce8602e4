/* See core/graph/graph_heads.h. */
#include "core/graph/graph_heads.h"

#include <string.h>

/* ---- heads ---- */

static uint32_t first_task(const pl_graph *graph, uint32_t row) {
  return pl_graph_is_rolled(graph) ? graph->roll.tasks[row].first : row;
}

/* Tails are not rolled, so that they are as long in tasks as in rows. */
static bool place_lanes(const pl_graph *graph, const pl_lanes *lanes, const uint32_t *tails, pl_graph_heads *heads) {
  uint32_t behind = graph->n_tasks;
  for (uint32_t at = lanes->n_lanes; at-- > 0;) {
    const pl_lane *lane = &lanes->lanes[at];
    pl_lane_tasks rows = pl_lanes_tasks(lanes, at);
    uint32_t end_row = lanes->first_task[lane->first + tails[at]];
    if (rows.first == rows.end) return false;
    for (uint32_t row = end_row; row < rows.end; row++)
      if (pl_graph_row_count(graph, row) > 1) return false;
    heads->lanes[at] = (pl_lane_head){.first = first_task(graph, rows.first),
                                      .end = behind - (rows.end - end_row),
                                      .behind = behind,
                                      .first_row = rows.first,
                                      .end_row = end_row,
                                      .behind_row = rows.end};
    for (uint32_t row = rows.first; row < rows.end; row++)
      heads->lane_of[row] = at;
    behind = heads->lanes[at].first;
  }
  return behind == 0;
}

/* ---- edges ---- */

/* The `which`-th successor of the last task of a row; of tails, that of any other would be one, too. */
static uint32_t last_successor(const pl_graph *graph, uint32_t row, uint32_t which) {
  uint32_t task = row;
  if (pl_graph_is_rolled(graph)) {
    const pl_row_tasks *tasks = &graph->roll.tasks[row];
    task = tasks->first + (tasks->n - 1) * tasks->stride;
  }
  return pl_graph_successor(graph, task, which);
}

static bool is_of_tail(const pl_graph *graph, const pl_graph_heads *heads, uint32_t task) {
  return task >= heads->lanes[heads->lane_of[pl_graph_row(graph, task)]].end;
}

static bool leads_to_tail(const pl_graph *graph, const pl_graph_heads *heads, uint32_t row) {
  if (!pl_graph_is_rolled(graph)) {
    const uint32_t *next = &graph->successors[graph->tasks[row].first_successor];
    for (uint32_t which = 0; which < graph->tasks[row].n_successors; which++)
      if (next[which] >= heads->lanes[heads->lane_of[next[which]]].end) return true;
    return false;
  }
  for (uint32_t which = 0; which < graph->tasks[row].n_successors; which++)
    if (is_of_tail(graph, heads, last_successor(graph, row, which))) return true;
  return false;
}

static bool may_take_no_time(const pl_task *record) {
  return record->kind == PL_TASK_TRANSFER ? !(record->size_bytes > 0) : record->ticks == 0;
}

static bool leads_to_instant_edge(const pl_graph *graph, const pl_graph_heads *heads, uint32_t row) {
  for (uint32_t which = 0; which < graph->tasks[row].n_successors; which++) {
    uint32_t next = pl_graph_row(graph, last_successor(graph, row, which));
    if (heads->is_edge[next] != 0 && may_take_no_time(&graph->tasks[next])) return true;
  }
  return false;
}

static void mark_edges(const pl_graph *graph, pl_graph_heads *heads) {
  bool has_instant = false;
  for (uint32_t at = 0; at < heads->n_lanes; at++)
    for (uint32_t row = heads->lanes[at].first_row; row < heads->lanes[at].end_row; row++) {
      heads->is_edge[row] = leads_to_tail(graph, heads, row);
      has_instant |= heads->is_edge[row] != 0 && may_take_no_time(&graph->tasks[row]);
    }
  while (has_instant) {
    has_instant = false;
    for (uint32_t at = 0; at < heads->n_lanes; at++)
      for (uint32_t row = heads->lanes[at].end_row; row-- > heads->lanes[at].first_row;) {
        if (heads->is_edge[row] != 0 || !leads_to_instant_edge(graph, heads, row)) continue;
        heads->is_edge[row] = true;
        has_instant |= may_take_no_time(&graph->tasks[row]);
      }
  }
}

bool pl_graph_heads_take(const pl_graph *graph, const pl_lanes *lanes, const uint32_t *tails, pl_arena *arena,
                         pl_graph_heads *heads) {
  uint32_t n_rows = pl_graph_n_rows(graph);
  *heads = (pl_graph_heads){.n_lanes = lanes->n_lanes};
  heads->lanes = PL_TAKE(arena, pl_lane_head, lanes->n_lanes);
  heads->lane_of = pl_arena_take(arena, n_rows * sizeof *heads->lane_of, _Alignof(uint32_t));
  heads->is_edge = PL_TAKE(arena, uint8_t, n_rows);
  if (heads->lanes == NULL || heads->lane_of == NULL || heads->is_edge == NULL) return false;
  if (!place_lanes(graph, lanes, tails, heads)) return false;
  mark_edges(graph, heads);
  return true;
}

/* ---- likeness ---- */

typedef struct comparing {
  const pl_graph *a, *b;
  const pl_graph_heads *of_a, *of_b;
  /* What of b is known to be like what of a; PL_NONE: nothing yet. */
  uint32_t *stream, *segment, *spec;
} comparing;

static bool have_like_uses(const comparing *own, const pl_transfer_spec *a, const pl_transfer_spec *b) {
  const pl_link_use *use_a = &own->a->transfers.uses[a->first_use], *use_b = &own->b->transfers.uses[b->first_use];
  if (a->n_uses != b->n_uses) return false;
  for (uint32_t use = 0; use < a->n_uses; use++)
    if (use_a[use].link != use_b[use].link || use_a[use].weight != use_b[use].weight) return false;
  return true;
}

static bool have_like_rivals(const comparing *own, uint32_t a, uint32_t b) {
  if (own->a->rivals == NULL || own->b->rivals == NULL) return own->a->rivals == own->b->rivals;
  const uint32_t *offset_a = &own->a->rival_offset[a], *offset_b = &own->b->rival_offset[b];
  uint32_t n = offset_a[1] - offset_a[0];
  if (n != offset_b[1] - offset_b[0]) return false;
  return n == 0 || memcmp(&own->a->rivals[*offset_a], &own->b->rivals[*offset_b], n * sizeof(uint32_t)) == 0;
}

static bool are_specs_alike(comparing *own, uint32_t a, uint32_t b) {
  if (own->spec[a] == b) return true;
  const pl_transfer_spec *spec_a = &own->a->transfers.specs[a], *spec_b = &own->b->transfers.specs[b];
  if (spec_a->rate_cap_Bps != spec_b->rate_cap_Bps || spec_a->share_weight != spec_b->share_weight ||
      spec_a->latency != spec_b->latency || !have_like_uses(own, spec_a, spec_b) || !have_like_rivals(own, a, b))
    return false;
  own->spec[a] = b;
  return true;
}

static bool are_parts_alike(comparing *own, const pl_part *a, const pl_part *b) {
  if (a->ticks != b->ticks || a->category != b->category || a->computes != b->computes ||
      a->is_crowded != b->is_crowded || a->transfers != b->transfers)
    return false;
  return !a->transfers || (a->size_bytes == b->size_bytes && are_specs_alike(own, a->spec, b->spec));
}

static bool are_segments_alike(comparing *own, uint32_t a, uint32_t b) {
  if (own->segment[a] == b) return true;
  const pl_segment *segment_a = &own->a->segments[a], *segment_b = &own->b->segments[b];
  if (segment_a->n_parts != segment_b->n_parts || segment_a->ticks != segment_b->ticks) return false;
  for (uint32_t part = 0; part < segment_a->n_parts; part++)
    if (!are_parts_alike(own, &own->a->parts[segment_a->first_part + part],
                         &own->b->parts[segment_b->first_part + part]))
      return false;
  own->segment[a] = b;
  return true;
}

static bool have_like_effects(const comparing *own, uint32_t a, uint32_t b) {
  if (a == PL_NONE || b == PL_NONE) return a == b;
  const pl_memory_effect *effect_a = &own->a->effects[a], *effect_b = &own->b->effects[b];
  return effect_a->peak_bytes == effect_b->peak_bytes && effect_a->net_bytes == effect_b->net_bytes;
}

static bool have_like_streams(const comparing *own, const pl_task *a, const pl_task *b) {
  if (a->n_streams != b->n_streams) return false;
  for (uint32_t member = 0; member < a->n_streams; member++)
    if (own->stream[own->a->task_streams[a->first_stream + member]] != own->b->task_streams[b->first_stream + member])
      return false;
  return true;
}

/* Of rows of their own that lead to no tail: most are. */
static bool have_equal_successors(const comparing *own, const pl_task *a, const pl_task *b) {
  const uint32_t *next_a = &own->a->successors[a->first_successor], *next_b = &own->b->successors[b->first_successor];
  if (a->n_successors != b->n_successors) return false;
  for (uint32_t which = 0; which < a->n_successors; which++) {
    uint32_t lane = own->of_a->lane_of[next_a[which]];
    if (next_a[which] - own->of_a->lanes[lane].first != next_b[which] - own->of_b->lanes[lane].first) return false;
  }
  return true;
}

/* The first of the row's successors from `which` on that is not of a tail, seen from its first task. */
static uint32_t next_of_head(const pl_graph *graph, const pl_graph_heads *heads, uint32_t row, uint32_t *which) {
  uint32_t task = first_task(graph, row);
  for (; *which < graph->tasks[row].n_successors; (*which)++) {
    uint32_t next = pl_graph_successor(graph, task, *which);
    if (heads->is_edge[row] == 0 || !is_of_tail(graph, heads, next)) return next;
  }
  return PL_NONE;
}

static uint32_t skew_of(const pl_graph *graph, uint32_t row, uint32_t which) {
  return pl_graph_is_rolled(graph) ? graph->roll.skews[graph->tasks[row].first_successor + which] : 0;
}

static bool have_like_successors(const comparing *own, uint32_t a, uint32_t b) {
  if ((own->of_a->is_edge[a] | own->of_b->is_edge[b]) == 0 && !pl_graph_is_rolled(own->a))
    return have_equal_successors(own, &own->a->tasks[a], &own->b->tasks[b]);
  for (uint32_t at_a = 0, at_b = 0;; at_a++, at_b++) {
    uint32_t next_a = next_of_head(own->a, own->of_a, a, &at_a), next_b = next_of_head(own->b, own->of_b, b, &at_b);
    if (next_a == PL_NONE || next_b == PL_NONE) return next_a == next_b;
    if (pl_graph_heads_moved(own->a, own->of_a, own->of_b, next_a) != next_b ||
        skew_of(own->a, a, at_a) != skew_of(own->b, b, at_b))
      return false;
  }
}

static bool have_like_tasks(const comparing *own, uint32_t lane, uint32_t a, uint32_t b) {
  if (!pl_graph_is_rolled(own->a)) return true;
  const pl_row_tasks *tasks_a = &own->a->roll.tasks[a], *tasks_b = &own->b->roll.tasks[b];
  return tasks_a->n == tasks_b->n && tasks_a->stride == tasks_b->stride &&
         tasks_a->first - own->of_a->lanes[lane].first == tasks_b->first - own->of_b->lanes[lane].first;
}

static bool are_rows_alike(comparing *own, uint32_t lane, uint32_t a, uint32_t b) {
  const pl_task *task_a = &own->a->tasks[a], *task_b = &own->b->tasks[b];
  if (task_a->kind != task_b->kind || task_a->category != task_b->category || task_a->ticks != task_b->ticks ||
      own->a->n_predecessors[a] != own->b->n_predecessors[b] || !have_like_streams(own, task_a, task_b) ||
      !have_like_effects(own, task_a->memory, task_b->memory) || !have_like_tasks(own, lane, a, b) ||
      !have_like_successors(own, a, b))
    return false;
  if (task_a->kind == PL_TASK_WORK) return are_segments_alike(own, task_a->index, task_b->index);
  return task_a->kind != PL_TASK_TRANSFER || are_specs_alike(own, task_a->index, task_b->index);
}

static bool are_lanes_alike(comparing *own, uint32_t lane) {
  const pl_lane_head *a = &own->of_a->lanes[lane], *b = &own->of_b->lanes[lane];
  if (a->end - a->first != b->end - b->first || a->end_row - a->first_row != b->end_row - b->first_row) return false;
  for (uint32_t row = 0; row < a->end_row - a->first_row; row++)
    if (!are_rows_alike(own, lane, a->first_row + row, b->first_row + row)) return false;
  return true;
}

static bool are_devices_alike(const pl_graph *a, const pl_graph *b) {
  if (a->n_devices != b->n_devices) return false;
  for (uint32_t device = 0; device < a->n_devices; device++)
    if (a->devices[device].overlap_compute != b->devices[device].overlap_compute ||
        a->devices[device].overlap_communication != b->devices[device].overlap_communication ||
        a->devices[device].overlap_exchange != b->devices[device].overlap_exchange ||
        a->devices[device].overlap_tensor != b->devices[device].overlap_tensor ||
        a->devices[device].waits_for_place != b->devices[device].waits_for_place)
      return false;
  return true;
}

static bool are_links_alike(const pl_headed_graph *a, const pl_headed_graph *b) {
  uint32_t n = a->graph->transfers.n_links;
  if (n != b->graph->transfers.n_links) return false;
  return n == 0 || (memcmp(a->link_capacity_Bps, b->link_capacity_Bps, n * sizeof(double)) == 0 &&
                    memcmp(a->link_policy, b->link_policy, n) == 0);
}

static bool take_maps(comparing *own, pl_arena *arena) {
  const pl_graph *a = own->a;
  size_t n = (size_t)a->n_streams + a->n_segments + a->transfers.n_specs;
  own->stream = pl_arena_take(arena, n * sizeof(uint32_t), _Alignof(uint32_t));
  if (own->stream == NULL) return false;
  memset(own->stream, 0xff, n * sizeof(uint32_t)); /* PL_NONE */
  own->segment = own->stream + a->n_streams;
  own->spec = own->segment + a->n_segments;
  return true;
}

/* Streams by device and kind. */
static void map_streams(comparing *own) {
  for (uint32_t at = 0, guess = 0; at < own->a->n_streams; at++) {
    const pl_stream *stream = &own->a->streams[at];
    for (uint32_t tried = 0; tried < own->b->n_streams; tried++, guess++) {
      guess %= own->b->n_streams;
      if (own->b->streams[guess].device != stream->device || own->b->streams[guess].kind != stream->kind) continue;
      own->stream[at] = guess++;
      break;
    }
  }
}

bool pl_graph_heads_alike(const pl_headed_graph *a, const pl_headed_graph *b, pl_arena *arena) {
  comparing own = {.a = a->graph, .b = b->graph, .of_a = a->heads, .of_b = b->heads};
  if (own.a->policy != own.b->policy || own.of_a->n_lanes != own.of_b->n_lanes ||
      pl_graph_is_rolled(own.a) != pl_graph_is_rolled(own.b) || !are_devices_alike(own.a, own.b) ||
      !are_links_alike(a, b))
    return false;
  pl_arena_mark mark = pl_arena_mark_here(arena);
  bool alike = take_maps(&own, arena);
  if (alike) map_streams(&own);
  for (uint32_t lane = 0; alike && lane < own.of_a->n_lanes; lane++)
    alike = are_lanes_alike(&own, lane);
  pl_arena_release_to(arena, mark);
  return alike;
}
