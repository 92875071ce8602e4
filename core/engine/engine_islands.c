/* See core/engine/engine_islands.h. */
#include "core/engine/engine_islands.h"

#include <string.h>

/* Instead of the lane of a segment: it has no parts on links. */
static const uint32_t no_links = PL_NONE - 1;

/* Lanes are united as long as something joins two of them. */
typedef struct finding {
  const pl_graph *graph;
  const pl_lanes *lanes;
  uint32_t *parent, n_left; /* per lane; how many sets there are */
  /* The lane that came first (of segments: last); PL_NONE: none has. */
  uint32_t *device_lane, *link_lane, *segment_lane;
} finding;

static uint32_t root_of(const finding *own, uint32_t lane) {
  while (own->parent[lane] != lane)
    lane = own->parent[lane] = own->parent[own->parent[lane]];
  return lane;
}

static void unite(finding *own, uint32_t a, uint32_t b) {
  uint32_t first = root_of(own, a), second = root_of(own, b);
  if (first == second) return;
  own->parent[first > second ? first : second] = first > second ? second : first;
  own->n_left--;
}

static void claim(finding *own, uint32_t *owner, uint32_t lane) {
  if (*owner == PL_NONE) {
    *owner = lane;
  } else {
    unite(own, *owner, lane);
  }
}

static uint32_t lane_of(const pl_lanes *lanes, uint32_t task) {
  return lanes->lane_of[lanes->entry_of[task]];
}

static bool recurs(const pl_lanes *lanes, const pl_lane *lane, uint32_t step) {
  for (int phase = 0; phase < lanes->n_phases; phase++)
    if (step >= lane->phases[phase].from && step < lane->phases[phase].to) return true;
  return false;
}

static void claim_links(finding *own, uint32_t spec, uint32_t lane) {
  const pl_transfer_table *table = &own->graph->transfers;
  const pl_transfer_spec *record = &table->specs[spec];
  for (uint32_t use = record->first_use; use < record->first_use + record->n_uses; use++)
    claim(own, &own->link_lane[table->uses[use].link], lane);
}

static void claim_segment(finding *own, uint32_t segment, uint32_t lane) {
  const pl_segment *record = &own->graph->segments[segment];
  if (own->segment_lane[segment] == lane || own->segment_lane[segment] == no_links) return;
  own->segment_lane[segment] = no_links;
  for (uint32_t part = record->first_part; part < record->first_part + record->n_parts; part++) {
    if (!own->graph->parts[part].transfers) continue;
    claim_links(own, own->graph->parts[part].spec, lane);
    own->segment_lane[segment] = lane;
  }
}

static void claim_task(finding *own, uint32_t task, uint32_t lane) {
  const pl_graph *graph = own->graph;
  const pl_task *record = &graph->tasks[task];
  for (uint32_t member = 0; member < record->n_streams; member++)
    claim(own, &own->device_lane[graph->streams[graph->task_streams[record->first_stream + member]].device], lane);
  if (record->kind == PL_TASK_WORK) claim_segment(own, record->index, lane);
  if (record->kind != PL_TASK_TRANSFER) return;
  claim_links(own, record->index, lane);
  if (graph->rivals == NULL) return;
  for (uint32_t at = graph->rival_offset[record->index]; at < graph->rival_offset[record->index + 1]; at++)
    claim(own, &own->device_lane[graph->rivals[at]], lane);
}

/* Whoever waits for another lane in a phase is of its island; what waits for a phase from behind is not. */
static void follow_edges(finding *own, uint32_t task, uint32_t lane) {
  const pl_lanes *lanes = own->lanes;
  const pl_task *record = &own->graph->tasks[task];
  for (uint32_t at = record->first_successor; at < record->first_successor + record->n_successors; at++) {
    uint32_t next = own->graph->successors[at], entry = lanes->entry_of[next], other = lanes->lane_of[entry];
    if (other != lane && recurs(lanes, &lanes->lanes[other], entry - lanes->lanes[other].first))
      unite(own, lane, other);
  }
}

/* Step by step of all lanes: most meet soon. */
static void go_through(finding *own) {
  const pl_lanes *lanes = own->lanes;
  for (uint32_t step = 0, n_going = lanes->n_lanes; n_going > 0 && own->n_left > 1; step++) {
    n_going = 0;
    for (uint32_t lane = 0; lane < lanes->n_lanes; lane++) {
      const pl_lane *record = &lanes->lanes[lane];
      if (step >= record->n_steps) continue;
      n_going++;
      bool counts = recurs(lanes, record, step);
      const uint32_t *first = &lanes->first_task[record->first + step];
      for (uint32_t task = first[0]; task < first[1]; task++) {
        if (counts) claim_task(own, task, lane);
        follow_edges(own, task, lane);
      }
    }
  }
}

/* ---- the islands ---- */

static bool number_lanes(const finding *own, pl_islands *islands) {
  uint32_t n = 0;
  for (uint32_t lane = 0; lane < own->lanes->n_lanes; lane++) {
    uint32_t root = root_of(own, lane); /* the least of its set */
    if (root == lane && n == PL_ISLANDS_MAX) return false;
    islands->of_lane[lane] = root == lane ? (uint8_t)n++ : islands->of_lane[root];
  }
  islands->n = n;
  return true;
}

static void number_owned(const pl_islands *islands, const uint32_t *lane_of_item, uint32_t n, uint8_t unowned,
                         uint8_t *of_item) {
  for (uint32_t at = 0; at < n; at++)
    of_item[at] = lane_of_item[at] == PL_NONE ? unowned : islands->of_lane[lane_of_item[at]];
}

static void number_tasks(const finding *own, pl_islands *islands) {
  for (uint32_t task = 0; task < own->graph->n_tasks; task++)
    islands->of_task[task] = islands->of_lane[lane_of(own->lanes, task)];
}

static uint32_t *take_owners(pl_arena *arena, uint32_t n) {
  uint32_t *owners = pl_arena_take(arena, n * sizeof *owners, _Alignof(uint32_t));
  if (owners != NULL) memset(owners, 0xff, n * sizeof *owners); /* PL_NONE */
  return owners;
}

static bool find_several(finding *own, pl_arena *arena, pl_islands *islands) {
  const pl_graph *graph = own->graph;
  own->parent = PL_TAKE(arena, uint32_t, own->lanes->n_lanes);
  own->device_lane = take_owners(arena, graph->n_devices);
  own->link_lane = take_owners(arena, graph->transfers.n_links);
  own->segment_lane = take_owners(arena, graph->n_segments);
  if (arena->failed) return false;
  own->n_left = own->lanes->n_lanes;
  for (uint32_t lane = 0; lane < own->lanes->n_lanes; lane++)
    own->parent[lane] = lane;
  go_through(own);
  if (own->n_left == 1) return true;
  if (!number_lanes(own, islands)) {
    memset(islands->of_lane, 0, own->lanes->n_lanes);
    return true;
  }
  islands->of_task = pl_arena_take(arena, graph->n_tasks, 1);
  islands->of_link = pl_arena_take(arena, graph->transfers.n_links, 1);
  if (arena->failed) return false;
  number_owned(islands, own->device_lane, graph->n_devices, 0, islands->of_device);
  number_owned(islands, own->link_lane, graph->transfers.n_links, PL_ISLANDS_MAX, islands->of_link);
  number_tasks(own, islands);
  return true;
}

bool pl_islands_find(const pl_graph *graph, const pl_lanes *lanes, pl_arena *arena, pl_islands *islands) {
  finding own = {.graph = graph, .lanes = lanes};
  *islands = (pl_islands){.n = 1};
  islands->of_lane = PL_TAKE(arena, uint8_t, lanes->n_lanes);
  islands->of_device = PL_TAKE(arena, uint8_t, graph->n_devices);
  if (arena->failed) return false;
  return graph->policy != PL_STREAMS_IN_ORDER || find_several(&own, arena, islands);
}

bool pl_islands_touch(const pl_islands *islands, const pl_graph *graph, uint32_t task, uint32_t island) {
  const pl_task *record = &graph->tasks[task];
  for (uint32_t member = 0; member < record->n_streams; member++)
    if (islands->of_device[graph->streams[graph->task_streams[record->first_stream + member]].device] == island)
      return true;
  if (record->kind != PL_TASK_TRANSFER) return false;
  const pl_transfer_spec *spec = &graph->transfers.specs[record->index];
  for (uint32_t use = spec->first_use; use < spec->first_use + spec->n_uses; use++)
    if (islands->of_link[graph->transfers.uses[use].link] == island) return true;
  return false;
}
