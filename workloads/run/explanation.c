/* See workloads/run/explanation.h. The times are a full matrix over device classes and ops: both are few after folding,
 * and sums over either way of it are what the reports want. */
#include "workloads/run/explanation.h"

#include <math.h>
#include <string.h>

#include "core/base/hash_index.h"
#include "core/base/words.h"

/* Of a segment, the parts that are calls of one op: layers alike make them many. */
typedef struct segment_op {
  uint32_t op, n;
  pl_ticks ticks; /* of all of them */
  const pl_origin *last;
} segment_op;

typedef struct explaining {
  const pl_program *program;
  const pl_communication_plan *plan;
  const pl_graph *graph;
  const pl_origins *origins;
  const pl_engine_result *result;
  pl_arena *arena;
  pl_explained_op *ops;
  uint32_t n_ops, most_ops;
  pl_hash_index known;
  uint32_t *op_of_made;        /* per origin that was made for parts; PL_NONE: no part has it */
  uint32_t *op_of_task_origin; /* per entry of origins->tasks */
  uint32_t *like;              /* likewise: an entry before it, or itself, that is the same op of the same group */
  uint32_t *entry_of_row;      /* per row of the graph that is a communication: among origins->tasks */
  segment_op *segment_ops;     /* by segment */
  uint32_t *first_op;          /* per segment, and the end of all */
  pl_explained_time *times;
} explaining;

/* ---- the list of ops ---- */

/* Communication is told by what it does and what it is called, not by the op of the block, so that a collective inside
 * a fused pass and the same one outside are one. */
static bool same_op(const pl_explained_op *a, const pl_explained_op *b) {
  return a->op == b->op && a->block == b->block && a->family == b->family && a->family_op == b->family_op &&
         a->category == b->category && pl_texts_equal(a->name, b->name);
}

static uint64_t hash_op(const pl_explained_op *op) {
  uint64_t hash = pl_hash_word(op->family, op->family_op);
  hash = pl_hash_word(hash, (uint64_t)(uintptr_t)op->op);
  hash = pl_hash_word(hash, op->category);
  return pl_hash_text(hash, op->name != NULL ? op->name : "");
}

/* Index of the op, added if it is new. PL_NONE: no memory. */
static uint32_t find_op(explaining *state, const pl_explained_op *op) {
  uint64_t hash = hash_op(op);
  uint32_t probe = 0;
  for (const pl_explained_op *known; (known = pl_hash_index_find(&state->known, hash, &probe)) != NULL;)
    if (same_op(known, op)) return (uint32_t)(known - state->ops);
  PL_ASSERT(state->n_ops < state->most_ops);
  state->ops[state->n_ops] = *op;
  if (!pl_hash_index_put(&state->known, hash, &state->ops[state->n_ops], state->arena)) return PL_NONE;
  return state->n_ops++;
}

static pl_explained_op op_of(const pl_origin *origin) {
  return (pl_explained_op){.op = origin->op,
                           .block = origin->block,
                           .name = origin->name,
                           .category = origin->category,
                           .family = origin->family,
                           .family_op = origin->family_op};
}

static pl_explained_op op_of_communication(const explaining *state, const pl_task_origin *origin) {
  return (pl_explained_op){.block = -1,
                           .name = origin->label == PL_NONE ? NULL : state->graph->names[origin->label],
                           .category = origin->category,
                           .family = origin->family,
                           .family_op = origin->family_op};
}

static bool same_communication(const pl_task_origin *a, const pl_task_origin *b) {
  return a->label == b->label && a->category == b->category && a->family == b->family && a->family_op == b->family_op;
}

/* A communicator mostly does what it did last: only what is new is looked up. */
static void list_communication(explaining *state) {
  const pl_origins *origins = state->origins;
  uint32_t *last = PL_TAKE(state->arena, uint32_t, state->plan->n_group_classes); /* entry + 1 */
  for (uint32_t at = 0; at < origins->n_tasks && !state->arena->failed; at++) {
    const pl_task_origin *own = &origins->tasks[at];
    uint32_t before = last[own->group_class];
    last[own->group_class] = at + 1;
    if (before > 0 && same_communication(&origins->tasks[before - 1], own)) {
      state->op_of_task_origin[at] = state->op_of_task_origin[before - 1];
      state->like[at] = state->like[before - 1];
      continue;
    }
    state->like[at] = at;
    const pl_explained_op op = op_of_communication(state, own);
    state->op_of_task_origin[at] = find_op(state, &op);
  }
}

/* Room for as many ops as there can be is not touched before there are. */
static bool list_ops(explaining *state) {
  const pl_origins *origins = state->origins;
  PL_ASSERT(origins->n_parts == state->graph->n_parts);
  state->most_ops = origins->n_made + origins->n_tasks;
  state->ops = pl_arena_take(state->arena, state->most_ops * sizeof *state->ops, _Alignof(pl_explained_op));
  state->op_of_made = pl_arena_take(state->arena, origins->n_made * sizeof(uint32_t), _Alignof(uint32_t));
  state->op_of_task_origin = pl_arena_take(state->arena, origins->n_tasks * sizeof(uint32_t), _Alignof(uint32_t));
  state->like = pl_arena_take(state->arena, origins->n_tasks * sizeof(uint32_t), _Alignof(uint32_t));
  if (state->arena->failed) return false;
  memset(state->op_of_made, 0xff, origins->n_made * sizeof(uint32_t)); /* PL_NONE */
  for (uint32_t part = 0; part < origins->n_parts && !state->arena->failed; part++) {
    uint32_t made = origins->parts[part].origin;
    if (state->op_of_made[made] != PL_NONE) continue;
    const pl_explained_op op = op_of(&origins->made[made]);
    state->op_of_made[made] = find_op(state, &op);
  }
  list_communication(state);
  return !state->arena->failed;
}

static uint32_t op_of_part(const explaining *state, uint32_t part) {
  return state->op_of_made[state->origins->parts[part].origin];
}

static pl_explained_time *time_of(const explaining *state, uint32_t device, uint32_t op) {
  return &state->times[(size_t)device * state->n_ops + op];
}

static uint32_t device_of_member(const explaining *state, const pl_task *task, uint32_t member) {
  return state->graph->streams[state->graph->task_streams[task->first_stream + member]].device;
}

/* How often the tasks of a row come in the run, with what was leapt over. */
static uint64_t times_of(const explaining *state, uint32_t row) {
  if (state->result->rows != NULL) return state->result->rows[row].n;
  return pl_leaps_weight(&state->result->leaps, row, state->result->finish[row]);
}

/* ---- work: segments are counted first, then multiplied ---- */

/* Where the parts of one segment begin and end in `segment_ops`, in the order in which their ops come. */
static bool list_segment_ops(explaining *state) {
  const pl_graph *graph = state->graph;
  uint32_t n = 0, room = 0, *at_of_op = PL_TAKE(state->arena, uint32_t, state->n_ops);
  state->first_op = pl_arena_take(state->arena, (graph->n_segments + 1) * sizeof(uint32_t), _Alignof(uint32_t));
  if (state->arena->failed) return false;
  for (uint32_t segment = 0; segment < graph->n_segments; segment++) {
    uint32_t first = n, part = graph->segments[segment].first_part, end = part + graph->segments[segment].n_parts;
    state->first_op[segment] = first;
    for (; part < end; part++) {
      uint32_t op = op_of_part(state, part), at = at_of_op[op];
      if (at < first || at >= n || state->segment_ops[at].op != op) {
        segment_op *grown = pl_arena_grown(state->arena, state->segment_ops, n, 1, sizeof *grown, &room);
        if (grown == NULL) return false;
        state->segment_ops = grown;
        at = at_of_op[op] = n++;
        grown[at] = (segment_op){.op = op};
      }
      segment_op *own = &state->segment_ops[at];
      own->n++;
      own->ticks += graph->parts[part].ticks;
      own->last = pl_origins_part(state->origins, part);
    }
  }
  state->first_op[graph->n_segments] = n;
  return true;
}

static void add_calls(const explaining *state, uint32_t device, uint32_t segment, uint64_t n) {
  uint32_t tensor = state->plan->device_classes[device].group_class[PL_SLOT_TENSOR];
  for (uint32_t at = state->first_op[segment]; at < state->first_op[segment + 1]; at++) {
    const segment_op *own = &state->segment_ops[at];
    pl_explained_time *time = time_of(state, device, own->op);
    pl_ticks ticks = own->ticks;
    time->calls += n * own->n;
    if (state->result->part_spans == NULL) time->run += ticks * (pl_ticks)n;
    if (own->last->family != PL_NONE) {
      time->group_class = tensor;
      ticks = state->plan->ops[state->plan->group_classes[tensor].first_op + own->last->family_op].alone_ticks * own->n;
    }
    time->alone += ticks * (pl_ticks)n;
    time->cost = own->last->cost;
  }
}

static void add_loads(const explaining *state, uint32_t device, uint32_t segment, uint64_t n) {
  const pl_segment *own = &state->graph->segments[segment];
  for (uint32_t part = own->first_part; part < own->first_part + own->n_parts; part++) {
    const pl_origin *origin = pl_origins_part(state->origins, part);
    pl_explained_time *time = time_of(state, device, op_of_part(state, part));
    time->flops += origin->flops * (double)n;
    time->bytes += origin->bytes * (double)n;
  }
}

static bool add_work(explaining *state) {
  const pl_graph *graph = state->graph;
  uint64_t *counts = PL_TAKE(state->arena, uint64_t, (size_t)graph->n_devices * graph->n_segments);
  if (counts == NULL) return false;
  for (uint32_t row = 0; row < pl_graph_n_rows(graph); row++) {
    const pl_task *task = &graph->tasks[row];
    if (task->kind != PL_TASK_WORK) continue;
    uint64_t times = times_of(state, row);
    for (uint32_t member = 0; member < task->n_streams; member++)
      counts[(size_t)device_of_member(state, task, member) * graph->n_segments + task->index] += times;
  }
  for (uint32_t device = 0; device < graph->n_devices; device++)
    for (uint32_t segment = 0; segment < graph->n_segments; segment++) {
      uint64_t n = counts[(size_t)device * graph->n_segments + segment];
      if (n == 0) continue;
      add_calls(state, device, segment, n);
      if (!state->origins->times_only) add_loads(state, device, segment, n);
    }
  return true;
}

static void add_spans(explaining *state) {
  for (uint32_t at = 0; at < state->result->n_part_spans; at++) {
    const pl_part_span *span = &state->result->part_spans[at];
    uint32_t device = device_of_member(state, pl_graph_task(state->graph, span->task), span->member);
    time_of(state, device, op_of_part(state, span->part))->run +=
        (span->finish - span->start) * (pl_ticks)pl_leaps_weight(&state->result->leaps, span->task, span->finish);
  }
}

/* ---- communication ---- */

/* What the tasks of the origin take together; the last of them comes `times` times. */
static pl_ticks ticks_of(const explaining *state, const pl_task_origin *own, uint64_t times) {
  const pl_engine_result *result = state->result;
  if (result->rows != NULL)
    return (pl_ticks)(result->rows[own->last_task].finish - result->rows[own->first_task].start);
  return (result->finish[own->last_task] - result->start[own->first_task]) * (pl_ticks)times;
}

/* Calls of one op by one group, which takes `run` together. */
typedef struct communicated {
  uint64_t times;
  pl_ticks run;
} communicated;

static void add_communicated(const explaining *state, uint32_t entry, const communicated *all) {
  const pl_task_origin *own = &state->origins->tasks[entry];
  const pl_task *task = &state->graph->tasks[own->first_task];
  const pl_group_class *class = &state->plan->group_classes[own->group_class];
  pl_ticks alone = state->plan->ops == NULL ? -1 : state->plan->ops[class->first_op + own->family_op].alone_ticks;
  for (uint32_t member = 0; member < task->n_streams; member++) {
    pl_explained_time *time = time_of(state, device_of_member(state, task, member), state->op_of_task_origin[entry]);
    time->calls += all->times;
    time->alone = alone < 0 ? -1 : time->alone + alone * (pl_ticks)all->times;
    time->run += all->run;
    time->group_class = own->group_class;
  }
}

/* What a group does again and again is added up first; but chunks need not begin with the same members. */
static void add_communication(explaining *state) {
  communicated *sums = PL_TAKE(state->arena, communicated, state->origins->n_tasks);
  for (uint32_t at = 0; sums != NULL && at < state->origins->n_tasks; at++) {
    const pl_task_origin *own = &state->origins->tasks[at];
    communicated *sum = &sums[state->plan->ops == NULL ? at : state->like[at]];
    uint64_t times = times_of(state, own->last_task);
    sum->times += times;
    sum->run += ticks_of(state, own, times);
  }
  for (uint32_t at = 0; sums != NULL && at < state->origins->n_tasks; at++)
    if (state->like[at] == at || state->plan->ops == NULL) add_communicated(state, at, &sums[at]);
}

static bool has_part(const explaining *state, uint32_t device, uint32_t row) {
  const pl_task *record = &state->graph->tasks[row];
  for (uint32_t member = 0; member < record->n_streams; member++)
    if (device_of_member(state, record, member) == device) return true;
  return false;
}

/* A run has about as many charges as tasks: the table costs less than to search for each. */
static bool list_entries(explaining *state) {
  const pl_origins *origins = state->origins;
  uint32_t n_rows = pl_graph_n_rows(state->graph);
  state->entry_of_row = pl_arena_take(state->arena, n_rows * sizeof(uint32_t), _Alignof(uint32_t));
  if (state->entry_of_row == NULL) return false;
  memset(state->entry_of_row, 0xff, n_rows * sizeof(uint32_t)); /* PL_NONE */
  for (uint32_t at = 0; at < origins->n_tasks; at++)
    for (uint32_t task = origins->tasks[at].first_task; task <= origins->tasks[at].last_task; task++)
      state->entry_of_row[task] = at;
  return true;
}

static void add_charges(explaining *state) {
  for (uint32_t at = 0; at < state->result->n_charges; at++) {
    const pl_charge *charge = &state->result->charges[at];
    uint32_t entry = state->entry_of_row[pl_graph_row(state->graph, charge->task)];
    PL_ASSERT(entry != PL_NONE);
    pl_explained_time *time = time_of(state, charge->device, state->op_of_task_origin[entry]);
    time->exposed += charge->ticks;
    if (!has_part(state, charge->device, state->origins->tasks[entry].first_task)) time->foreign += charge->ticks;
  }
}

/* Parts stand on the compute stream: all their time is exposed. */
static void expose_parts(explaining *state) {
  bool *is_part = PL_TAKE(state->arena, bool, state->n_ops);
  if (is_part == NULL) return;
  for (uint32_t at = 0; at < state->first_op[state->graph->n_segments]; at++)
    is_part[state->segment_ops[at].op] = true;
  for (uint32_t device = 0; device < state->graph->n_devices; device++)
    for (uint32_t op = 0; op < state->n_ops; op++)
      if (is_part[op]) {
        pl_explained_time *time = time_of(state, device, op);
        time->exposed = time->run;
      }
}

static bool take_times(explaining *state) {
  size_t n = (size_t)state->graph->n_devices * state->n_ops;
  state->times = PL_TAKE(state->arena, pl_explained_time, n);
  if (state->times == NULL) return false;
  for (size_t at = 0; at < n; at++)
    state->times[at].group_class = PL_NONE;
  if (!list_segment_ops(state) || !add_work(state) || !list_entries(state)) return false;
  add_spans(state);
  expose_parts(state);
  add_communication(state);
  add_charges(state);
  return !state->arena->failed;
}

static bool adds_up(const pl_explanation *explanation, uint32_t device) {
  const pl_explained_time *times = pl_explained_times(explanation, device);
  pl_ticks sum = explanation->idle[device];
  for (uint32_t op = 0; op < explanation->n_ops; op++)
    sum += times[op].exposed;
  return sum == explanation->makespan;
}

pl_code pl_explanation_take(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                            const pl_graph *graph, const pl_origins *origins, const pl_engine_result *result,
                            pl_arena *arena, pl_explanation *explanation, pl_error *error) {
  explaining state = {
      .program = program, .plan = plan, .graph = graph, .origins = origins, .result = result, .arena = arena};
  if (arena->failed || !list_ops(&state) || !take_times(&state)) return pl_fail_memory(error, "the explanation");
  *explanation = (pl_explanation){.cluster = cluster,
                                  .program = program,
                                  .plan = plan,
                                  .ops = state.ops,
                                  .n_ops = state.n_ops,
                                  .times = state.times,
                                  .idle = result->idle,
                                  .spent = result->spent,
                                  .makespan = result->makespan,
                                  .exact = result->part_spans != NULL};
  for (uint32_t device = 0; explanation->exact && device < graph->n_devices; device++)
    PL_ASSERT(adds_up(explanation, device));
  return PL_OK;
}

/* ---- questions ---- */

uint32_t pl_explanation_busiest(const pl_explanation *explanation, int32_t stage) {
  uint32_t busiest = PL_NONE;
  for (uint32_t c = 0; c < explanation->plan->n_device_classes; c++)
    if (explanation->plan->device_classes[c].stage == stage &&
        (busiest == PL_NONE || explanation->idle[c] < explanation->idle[busiest]))
      busiest = c;
  PL_ASSERT(busiest != PL_NONE);
  return busiest;
}

int32_t pl_explanation_worst_stage(const pl_explanation *explanation) {
  int32_t worst = 0;
  for (int32_t stage = 1; stage < explanation->program->strategy->pp; stage++)
    if (explanation->idle[pl_explanation_busiest(explanation, stage)] <
        explanation->idle[pl_explanation_busiest(explanation, worst)])
      worst = stage;
  return worst;
}

static bool has_overlap_factor(const pl_explanation *explanation, const pl_family *family, const uint32_t *members) {
  if (family->kind != PL_FAMILY_DATA && family->kind != PL_FAMILY_EXPERT_DATA && family->kind != PL_FAMILY_COPIES)
    return false;
  for (uint32_t i = 0; i < family->group_size; i++)
    if (pl_cluster_profile(explanation->cluster, members[i])->overlap_communication > 0) return true;
  return false;
}

pl_code pl_explained_group_take(const pl_explanation *explanation, const pl_explained_op *op, uint32_t group_class,
                                pl_arena *arena, pl_explained_group *group, pl_error *error) {
  const pl_family *family = &explanation->program->families[op->family];
  const pl_communication *own = &family->ops[op->family_op];
  const pl_group_class *class = &explanation->plan->group_classes[group_class];
  *group = (pl_explained_group){.kind = own->kind, .size = family->group_size, .size_bytes = own->size_bytes};
  const uint32_t *members = family->members + (size_t) class->group * family->group_size;
  group->n_nodes = pl_cluster_count_nodes(explanation->cluster, members, family->group_size);
  group->overlaps = has_overlap_factor(explanation, family, members);
  if (explanation->plan->ops != NULL) {
    const pl_lowered_op *lowered = &explanation->plan->ops[class->first_op + op->family_op];
    group->contends = lowered->has_rivals || lowered->solo_ticks > lowered->alone_ticks;
  }
  return pl_explained_group_find_way(explanation->cluster, class->channels, arena, group, NULL, error);
}
