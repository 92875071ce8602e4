/* See workloads/compile/meeting.h. */
#include "workloads/compile/meeting.h"

#include <string.h>

static uint32_t stream_count(const pl_communication_plan *plan) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < plan->n_group_classes; c++)
    n += plan->group_classes[c].n_participants;
  return n;
}

/* Lowered ops of the plan. */
static uint32_t count_ops(const pl_program *program, const pl_communication_plan *plan) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < plan->n_group_classes; c++) {
    uint32_t end = plan->group_classes[c].first_op + program->families[plan->group_classes[c].family].n_ops;
    n = end > n ? end : n;
  }
  return n;
}

void pl_meetings_add_bytes(const pl_meetings *meetings, double *transfer_bytes) {
  uint32_t n_ops = count_ops(meetings->program, meetings->plan);
  for (uint32_t op = 0; op < n_ops; op++) {
    const pl_lowered_op *lowered = &meetings->plan->ops[op];
    transfer_bytes[lowered->transfer_class] += (double)meetings->emitted[op] * lowered->progress_bytes;
  }
}

pl_code pl_meetings_init(pl_meetings *meetings, const pl_cluster *cluster, const pl_program *program,
                         const pl_communication_plan *plan, const pl_compile_options *options,
                         pl_graph_builder *builder, pl_arena *arena, pl_error *error) {
  *meetings = (pl_meetings){.cluster = cluster,
                            .program = program,
                            .plan = plan,
                            .options = options,
                            .builder = builder,
                            .arena = arena,
                            .times = 1,
                            .error = error};
  uint32_t n_streams = stream_count(plan);
  meetings->lists = PL_TAKE(arena, pl_meeting_list, plan->n_group_classes);
  meetings->streams = PL_TAKE(arena, uint32_t, n_streams);
  meetings->arrivals = pl_arena_take_zeroed(arena, plan->n_device_classes, sizeof *meetings->arrivals, 8);
  if (options->chunked) {
    meetings->chunked = pl_chunked_specs_take(meetings);
  } else {
    meetings->emitted = PL_TAKE(arena, uint64_t, count_ops(program, plan));
  }
  if (arena->failed) return pl_fail_memory(error, "the communicators of the graph");
  for (uint32_t i = 0; i < n_streams; i++)
    meetings->streams[i] = pl_graph_builder_stream(builder, plan->participants[i].device_class,
                                                   (pl_stream_kind)plan->participants[i].stream);
  return PL_OK;
}

static bool make_room(pl_meeting_list *list, pl_arena *arena) {
  pl_meeting *meetings = pl_arena_grown(arena, list->meetings, list->n, 1, sizeof *meetings, &list->capacity);
  if (meetings == NULL) return false;
  list->meetings = meetings;
  return true;
}

/* The overlap factor may re-time a gradient transfer even when it has no rival; everything else without rivals is a
 * fixed delay. */
static bool is_fixed(const pl_meetings *meetings, const pl_group_class *class, const pl_lowered_op *op) {
  if (op->has_rivals) return false;
  const pl_participant *members = &meetings->plan->participants[class->first_participant];
  bool is_gradient = members[0].stream == PL_STREAM_GRADIENT || members[0].stream == PL_STREAM_EXPERT_GRADIENT;
  if (!is_gradient || meetings->options->no_overlap_factor) return true;
  for (uint32_t i = 0; i < class->n_participants; i++) {
    uint32_t device = meetings->plan->device_classes[members[i].device_class].device;
    if (pl_cluster_profile(meetings->cluster, device)->overlap_communication > 0) return false;
  }
  return true;
}

/* What has left is on its way, on nobody's stream: the next message follows it. */
static uint32_t emit_flight(pl_meetings *meetings, uint32_t sent, const pl_lowered_op *lowered,
                            const pl_task_text *text) {
  uint32_t task = pl_graph_builder_delay(meetings->builder, lowered->flight_ticks, text->category, NULL, 0, text->name,
                                         text->microbatch);
  pl_graph_builder_edge(meetings->builder, sent, task);
  return task;
}

static pl_meeting emit_fluid(pl_meetings *meetings, const pl_group_class *class, uint32_t op,
                             const pl_task_text *text) {
  const pl_lowered_op *lowered = &meetings->plan->ops[class->first_op + op];
  const uint32_t *streams = &meetings->streams[class->first_participant];
  meetings->emitted[class->first_op + op] += meetings->times;
  uint32_t task;
  if (is_fixed(meetings, class, lowered)) {
    task = pl_graph_builder_delay(meetings->builder, lowered->solo_ticks - lowered->flight_ticks, text->category,
                                  streams, class->n_participants, text->name, text->microbatch);
  } else {
    task = pl_graph_builder_transfer(meetings->builder, lowered->spec, lowered->progress_bytes, text->category, streams,
                                     class->n_participants, text->name, text->microbatch);
  }
  return (pl_meeting){task, lowered->flight_ticks > 0 ? emit_flight(meetings, task, lowered, text) : task};
}

static void note_origin(pl_meetings *meetings, uint32_t class, uint32_t op, const pl_task_text *text, pl_meeting made) {
  const pl_task_origin origin = {.first_task = made.open,
                                 .last_task = made.close,
                                 .group_class = class,
                                 .label = text->name,
                                 .family = meetings->plan->group_classes[class].family,
                                 .family_op = op,
                                 .category = (uint8_t)text->category};
  if (meetings->code == PL_OK && made.open != PL_NONE) pl_origins_add_task(meetings->options->origins, &origin);
}

pl_meeting pl_meetings_arrive(pl_meetings *meetings, uint32_t device_class, int slot, uint32_t op,
                              const pl_task_text *text) {
  uint32_t index = meetings->plan->device_classes[device_class].group_class[slot];
  PL_ASSERT(index != PL_NONE);
  pl_meeting_list *list = &meetings->lists[index];
  uint32_t turn = meetings->arrivals[device_class][slot]++;
  if (turn < list->n) return list->meetings[turn];
  if (meetings->arena->failed || meetings->code != PL_OK) return (pl_meeting){0, 0}; /* turns no longer match */
  PL_ASSERT(turn == list->n);
  if (!make_room(list, meetings->arena)) return (pl_meeting){0, 0};
  const pl_group_class *class = &meetings->plan->group_classes[index];
  pl_meeting made =
      meetings->options->chunked ? pl_chunked_emit(meetings, class, op, text) : emit_fluid(meetings, class, op, text);
  note_origin(meetings, index, op, text, made);
  return list->meetings[list->n++] = made;
}

pl_code pl_meetings_finish(pl_meetings *meetings, pl_error *error) {
  if (meetings->code != PL_OK) return meetings->code;
  if (meetings->arena->failed) return pl_fail_memory(error, "the graph");
  if (!meetings->options->chunked) {
    pl_graph_builder_transfers(meetings->builder, &meetings->plan->table);
    return PL_OK;
  }
  pl_transfer_table *table = PL_TAKE(meetings->arena, pl_transfer_table, 1);
  if (table == NULL) return pl_fail_memory(error, "the transfers");
  pl_chunked_table(meetings, table);
  if (meetings->arena->failed) return pl_fail_memory(error, "the transfers");
  pl_graph_builder_transfers(meetings->builder, table);
  return PL_OK;
}
