/* See core/graph/graph_roll.h.
 *
 * In each phase of each lane one period is the repeated one: it stands for itself and for all that are put in behind
 * it. A task of the rolled graph is shifted, in each phase, by as many periods as were put in before it: none before
 * the repeated period, all behind it, k in its k-th repetition. Its successors are those of its row, shifted by as
 * much.
 */
#include "core/graph/graph_roll.h"

enum { FEWEST_PERIODS = 3 };

typedef enum side { BEFORE = 0, REPEATED, BEHIND } side;

typedef struct rolling {
  const pl_graph *graph;
  const pl_lanes *lanes;
  uint32_t n_more;
  pl_arena *arena;
  pl_rolled_lane *rolled;
  uint32_t *lane_of; /* per row */
  uint32_t n_tasks;
  pl_row_tasks *tasks;
  uint32_t *distances, *skews;
  bool is_skew;
} rolling;

static side side_of(const pl_rolled_phase *phase, uint32_t row) {
  if (row < phase->repeated) return BEFORE;
  return row < phase->repeated + phase->n_period ? REPEATED : BEHIND;
}

/* ---- lanes ---- */

static bool find_phase(const rolling *own, uint32_t lane, int p, pl_rolled_phase *phase) {
  const pl_lane_phase *steps = &own->lanes->lanes[lane].phases[p];
  const uint32_t *first_task = own->lanes->first_task + own->lanes->lanes[lane].first;
  uint32_t period = own->lanes->period[p], n_periods = period == 0 ? 0 : (steps->to - steps->from) / period;
  if (n_periods < FEWEST_PERIODS) return false;
  uint32_t step = steps->from + (n_periods - 1) / 2 * period;
  *phase = (pl_rolled_phase){.from = first_task[steps->from],
                             .to = first_task[steps->to],
                             .repeated = first_task[step],
                             .n_period = first_task[step + period] - first_task[step]};
  return phase->n_period > 0 && first_task[step + 2 * period] - first_task[step + period] == phase->n_period;
}

/* Where each lane's tasks will be, and how many there will be in all. */
static bool find_lanes(rolling *own) {
  uint64_t n_tasks = 0;
  for (uint32_t lane = 0; lane < own->lanes->n_lanes; lane++) {
    pl_rolled_lane *rolled = &own->rolled[lane];
    pl_lane_tasks rows = pl_lanes_tasks(own->lanes, lane);
    *rolled = (pl_rolled_lane){.first_row = rows.first, .end_row = rows.end, .first_task = (uint32_t)n_tasks};
    n_tasks += rows.end - rows.first;
    for (int p = 0; p < own->lanes->n_phases; p++) {
      if (!find_phase(own, lane, p, &rolled->phases[p])) return false;
      n_tasks += (uint64_t)own->n_more * rolled->phases[p].n_period;
    }
    if (n_tasks >= PL_NONE) return false;
    for (uint32_t row = rows.first; row < rows.end; row++)
      own->lane_of[row] = lane;
  }
  own->n_tasks = (uint32_t)n_tasks;
  return true;
}

/* ---- tasks ---- */

/* The task of `row` that is shifted as the k-th of `like` is. */
static uint32_t task_of(const rolling *own, uint32_t row, uint32_t like, uint32_t k) {
  const pl_rolled_lane *lane = &own->rolled[own->lane_of[row]], *other = &own->rolled[own->lane_of[like]];
  uint32_t task = lane->first_task + (row - lane->first_row);
  for (int p = 0; p < own->lanes->n_phases; p++) {
    side where = side_of(&other->phases[p], like);
    task += (where == BEFORE ? 0 : where == BEHIND ? own->n_more : k) * lane->phases[p].n_period;
  }
  return task;
}

static pl_row_tasks tasks_of(const rolling *own, uint32_t row) {
  const pl_rolled_lane *lane = &own->rolled[own->lane_of[row]];
  pl_row_tasks tasks = {.first = task_of(own, row, row, 0), .stride = 1, .n = 1};
  for (int p = 0; p < own->lanes->n_phases; p++)
    if (side_of(&lane->phases[p], row) == REPEATED) {
      tasks.stride = lane->phases[p].n_period;
      tasks.n = 1 + own->n_more;
    }
  return tasks;
}

/* ---- edges ---- */

/* Whether a task that is shifted as `row` is may have an edge with `other`: on either side of what is put in, lists are
 * those of the short graph up to the end of the phase, and from its beginning on. */
static bool may_meet(const rolling *own, uint32_t row, uint32_t other) {
  const pl_rolled_lane *lane = &own->rolled[own->lane_of[row]], *there = &own->rolled[own->lane_of[other]];
  for (int p = 0; p < own->lanes->n_phases; p++) {
    side where = side_of(&lane->phases[p], row);
    if (where != BEHIND && other >= there->phases[p].to) return false;
    if (where != BEFORE && other < there->phases[p].from) return false;
  }
  return true;
}

/* The row one period later is the same, and so are its successors. */
static bool recurs(const rolling *own, uint32_t row, int p) {
  const pl_graph *graph = own->graph;
  uint32_t later = row + own->rolled[own->lane_of[row]].phases[p].n_period;
  const pl_task *a = &graph->tasks[row], *b = &graph->tasks[later];
  if (!pl_graph_tasks_alike(graph, row, later) || a->n_successors != b->n_successors) return false;
  for (uint32_t at = 0; at < a->n_successors; at++) {
    uint32_t successor = graph->successors[a->first_successor + at];
    uint32_t shift = own->rolled[own->lane_of[successor]].phases[p].n_period;
    if (graph->successors[b->first_successor + at] != successor + shift) return false;
  }
  return true;
}

static bool put_successors(rolling *own, uint32_t row) {
  const pl_task *record = &own->graph->tasks[row];
  bool repeats = own->tasks[row].n > 1;
  for (uint32_t at = record->first_successor; at < record->first_successor + record->n_successors; at++) {
    uint32_t successor = own->graph->successors[at];
    if (!may_meet(own, row, successor) || !may_meet(own, successor, row)) return false;
    uint32_t first = task_of(own, successor, row, 0);
    own->distances[at] = first - own->tasks[row].first;
    own->skews[at] = repeats ? task_of(own, successor, row, 1) - first - own->tasks[row].stride : 0;
    own->is_skew |= own->skews[at] != 0;
  }
  for (int p = 0; p < own->lanes->n_phases; p++)
    if (side_of(&own->rolled[own->lane_of[row]].phases[p], row) == REPEATED && !recurs(own, row, p)) return false;
  return true;
}

/* ---- the whole ---- */

static bool take_arrays(rolling *own) {
  const pl_graph *graph = own->graph;
  own->rolled = PL_TAKE(own->arena, pl_rolled_lane, own->lanes->n_lanes);
  own->lane_of = pl_arena_take(own->arena, graph->n_tasks * sizeof(uint32_t), _Alignof(uint32_t));
  own->tasks = pl_arena_take(own->arena, graph->n_tasks * sizeof *own->tasks, _Alignof(pl_row_tasks));
  own->distances = pl_arena_take(own->arena, graph->n_edges * sizeof(uint32_t), _Alignof(uint32_t));
  own->skews = pl_arena_take(own->arena, graph->n_edges * sizeof(uint32_t), _Alignof(uint32_t));
  return !own->arena->failed;
}

static void count(const rolling *own, pl_graph *rolled) {
  uint64_t n_edges = 0;
  rolled->n_transfer_tasks = rolled->n_streamless_tasks = 0;
  for (uint32_t row = 0; row < own->graph->n_tasks; row++) {
    const pl_task *record = &own->graph->tasks[row];
    uint32_t n = own->tasks[row].n;
    n_edges += (uint64_t)n * record->n_successors;
    if (record->kind == PL_TASK_TRANSFER) rolled->n_transfer_tasks += n;
    if (record->n_streams == 0) rolled->n_streamless_tasks += n;
  }
  rolled->n_edges = n_edges < PL_NONE ? (uint32_t)n_edges : PL_NONE;
}

bool pl_graph_roll(const pl_graph *graph, const pl_lanes *lanes, uint64_t n_more, pl_arena *arena, pl_graph *rolled) {
  rolling own = {.graph = graph, .lanes = lanes, .n_more = (uint32_t)n_more, .arena = arena};
  PL_ASSERT(!pl_graph_is_rolled(graph));
  if (lanes->n_phases == 0 || n_more >= PL_NONE || !take_arrays(&own) || !find_lanes(&own)) return false;
  for (uint32_t row = 0; row < graph->n_tasks; row++)
    own.tasks[row] = tasks_of(&own, row);
  for (uint32_t row = 0; row < graph->n_tasks; row++)
    if (!put_successors(&own, row)) return false;
  *rolled = *graph;
  rolled->n_tasks = own.n_tasks;
  rolled->successors = own.distances;
  rolled->successor_offset = NULL;
  rolled->roll = (pl_graph_rows){.lanes = own.rolled,
                                 .n_lanes = lanes->n_lanes,
                                 .n_more = own.n_more,
                                 .n_phases = lanes->n_phases,
                                 .tasks = own.tasks,
                                 .n_rows = graph->n_tasks,
                                 .skews = own.skews,
                                 .is_skew = own.is_skew};
  count(&own, rolled);
  return true;
}

/* ---- where a task is ---- */

/* The last that begins at or before `task`: lanes without tasks begin where the next one does. */
static const pl_rolled_lane *lane_of_task(const pl_graph_rows *roll, uint32_t task) {
  uint32_t low = 0, high = roll->n_lanes;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (roll->lanes[middle].first_task <= task)
      low = middle;
    else
      high = middle;
  }
  return &roll->lanes[low];
}

uint32_t pl_graph_rolled_row(const pl_graph_rows *roll, uint32_t task) {
  uint32_t row;
  pl_graph_rolled_rows(roll, task, 1, &row);
  return row;
}

/* The rows [row, end) of the short graph, as far as there is room. */
static uint32_t put_rows(uint32_t row, uint32_t end, uint32_t n, uint32_t *rows) {
  uint32_t n_put = end - row < n ? end - row : n;
  for (uint32_t at = 0; at < n_put; at++)
    rows[at] = row + at;
  return n_put;
}

/* Those of one lane from `task` on; returns how many. */
static uint32_t put_lane(const pl_graph_rows *roll, const pl_rolled_lane *lane, uint32_t task, uint32_t n,
                         uint32_t *rows) {
  uint32_t row = lane->first_row + (task - lane->first_task), n_put = 0; /* with what was put in */
  for (int p = 0; p < roll->n_phases; p++) {
    const pl_rolled_phase *phase = &lane->phases[p];
    uint32_t first = phase->repeated, n_put_in = roll->n_more * phase->n_period;
    if (row < first) {
      uint32_t n_once = put_rows(row, first, n - n_put, rows + n_put);
      n_put += n_once;
      row += n_once;
    }
    if (n_put == n) return n;
    uint32_t place = row < first + n_put_in ? (row - first) % phase->n_period : 0;
    while (row < first + n_put_in && n_put < n) {
      rows[n_put++] = first + place;
      place = place + 1 == phase->n_period ? 0 : place + 1;
      row++;
    }
    if (n_put == n) return n;
    row -= n_put_in;
  }
  return n_put + put_rows(row, lane->end_row, n - n_put, rows + n_put);
}

void pl_graph_rolled_rows(const pl_graph_rows *roll, uint32_t task, uint32_t n, uint32_t *rows) {
  const pl_rolled_lane *lane = lane_of_task(roll, task);
  for (uint32_t n_put = 0; n_put < n; lane++)
    n_put += put_lane(roll, lane, task + n_put, n - n_put, rows + n_put);
}
