/* See workloads/trace/replay_network.h. The graph of the step is made once more, task by task, with transfers in place
 * of the delays in which data moves. */
#include "workloads/trace/replay_network.h"

#include <string.h>

#include "core/base/hash_index.h"
#include "core/engine/engine.h"
#include "netmodel/collective/collective.h"
#include "workloads/trace/what_if.h"

typedef struct lowered {
  uint8_t kind; /* pl_collective_kind */
  uint32_t group, source, destination;
  int64_t size_bytes;
  uint32_t spec;
  double progress_bytes;
} lowered;

typedef struct lowering {
  const pl_trace_replay *replay;
  const pl_trace *trace;
  const pl_trace_network_options *options;
  pl_arena *arena;
  pl_hash_index known;                /* lowered */
  const pl_collective_group **groups; /* per group of the trace */
  pl_transfer_spec *specs;
  const pl_link_use **uses; /* per spec */
  uint32_t n_specs, most_specs, n_uses;
  pl_error *error;
} lowering;

static const int8_t kinds[PL_TRACE_MESSAGE_KIND_COUNT] = {[PL_TRACE_ALL_REDUCE] = PL_ALL_REDUCE,
                                                          [PL_TRACE_REDUCE_SCATTER] = PL_REDUCE_SCATTER,
                                                          [PL_TRACE_ALL_GATHER] = PL_ALL_GATHER,
                                                          [PL_TRACE_BROADCAST] = PL_BROADCAST,
                                                          [PL_TRACE_ALL_TO_ALL] = PL_ALL_TO_ALL,
                                                          [PL_TRACE_REDUCE] =
                                                              PL_BROADCAST, /* the same bytes the other way */
                                                          [PL_TRACE_BARRIER] = -1,
                                                          [PL_TRACE_OTHER_COLLECTIVE] = -1,
                                                          [PL_TRACE_POINT_TO_POINT] = PL_SEND};

/* ---- which tasks ---- */

/* The largest that a member says; -1: none does. */
static int64_t size_of(const lowering *own, uint32_t m) {
  const pl_trace_meeting *meeting = &own->replay->meetings->meetings[m];
  int64_t size = -1;
  for (uint32_t k = 0; k < meeting->n; k++) {
    uint32_t op = own->replay->meetings->ops[meeting->first + k];
    int64_t says = own->trace->messages[own->trace->ops[op].message].size_bytes;
    if (says > size) size = says;
  }
  return size;
}

/* The meeting whose data moves in this task: a join, a flight, or where messages wait for their receiver the body of
 * the receive. PL_NONE: none. */
static uint32_t meeting_of(const lowering *own, uint32_t task) {
  const pl_trace_replay *replay = own->replay;
  uint32_t subject = replay->subject[task], role = replay->role[task];
  if (role == PL_TRACE_JOIN) return subject;
  bool receives = own->trace->ops[subject].kind == PL_TRACE_RECEIVE;
  if (!receives || (role != PL_TRACE_FLIGHT && role != PL_TRACE_BODY)) return PL_NONE;
  uint32_t m = replay->meetings->of_op[subject];
  const pl_trace_meeting *meeting = m != PL_NONE ? &replay->meetings->meetings[m] : NULL;
  if (meeting == NULL || meeting->n != 2) return PL_NONE;
  uint32_t send = replay->meetings->ops[meeting->first];
  if (replay->gate[send] == PL_NONE) return PL_NONE;
  if (role == PL_TRACE_FLIGHT) return m;
  for (uint32_t e = replay->pred_offset[task]; e < replay->pred_offset[task + 1]; e++)
    if (replay->preds[e] == replay->gate[send]) return m; /* it begins with the send: there is no flight */
  return PL_NONE;
}

static const pl_trace_message *message_of(const lowering *own, uint32_t m) {
  const pl_trace_meetings *meetings = own->replay->meetings;
  return &own->trace->messages[own->trace->ops[meetings->ops[meetings->meetings[m].first]].message];
}

/* ---- other numbers of ranks ---- */

static int64_t recorded_world(const pl_trace *trace) {
  int64_t world = trace->n_ranks > 0 ? trace->ranks[trace->n_ranks - 1].number + 1 : 0;
  for (uint32_t r = 0; r < trace->n_ranks; r++)
    if (trace->ranks[r].world_size > world) world = trace->ranks[r].world_size;
  return world;
}

static pl_code check_stretch(const lowering *own, uint32_t m) {
  const pl_trace_message *message = message_of(own, m);
  long long n = own->options->n_ranks, world = recorded_world(own->trace);
  const char *what = pl_trace_message_kind_names[message->kind];
  if (own->options->n_ranks == 0 || n == world) return PL_OK;
  if (message->kind == PL_TRACE_POINT_TO_POINT)
    return pl_fail(
        own->error, PL_BAD_INPUT,
        "--ranks %lld: the job sends messages from rank to rank, and no recording says how %lld ranks would; "
        "only jobs whose messages are collectives of all ranks can have another number",
        n, n);
  if (message->kind == PL_TRACE_ALL_TO_ALL || message->kind == PL_TRACE_OTHER_COLLECTIVE)
    return pl_fail(own->error, PL_BAD_INPUT,
                   "--ranks %lld: what a rank gives to an %s depends on their number, which no recording of %lld says",
                   n, what, world);
  uint32_t members = own->trace->groups[message->group].n_members;
  if (members != 0 && members != world)
    return pl_fail(own->error, PL_BAD_INPUT,
                   "--ranks %lld: the job has an %s of %u of its %lld ranks, and no recording says how %lld would be "
                   "grouped",
                   n, what, members, world, n);
  return PL_OK;
}

/* ---- transfers ---- */

static pl_code take_group(lowering *own, const uint32_t *devices, uint32_t n, const pl_collective_group **group) {
  const pl_collective_options options = {.profile = own->options->profile};
  pl_collective_group *made;
  PL_TRY(pl_collective_group_take(own->options->cluster, devices, n, &options, own->arena, &made, own->error));
  *group = made;
  return PL_OK;
}

static pl_code check_device(const lowering *own, int64_t rank) {
  if (rank >= 0 && rank < (int64_t)own->options->cluster->n_devices) return PL_OK;
  return pl_fail(own->error, PL_BAD_INPUT, "%s has %u devices; the job has a rank %lld", own->options->platform,
                 own->options->cluster->n_devices, (long long)rank);
}

/* Members of a collective as devices: those of its group, of all ranks where it does not say. */
static pl_code group_of(lowering *own, uint32_t g, const pl_collective_group **group) {
  const pl_trace_group *said = &own->trace->groups[g];
  if ((*group = own->groups[g]) != NULL) return PL_OK;
  int64_t world = own->options->n_ranks > 0 ? own->options->n_ranks : recorded_world(own->trace);
  bool of_all = said->n_members == 0 || own->options->n_ranks > 0;
  uint32_t n = of_all ? (uint32_t)world : said->n_members;
  uint32_t *devices = PL_TAKE(own->arena, uint32_t, n);
  if (devices == NULL) return pl_fail_memory(own->error, "the groups of a step");
  for (uint32_t k = 0; k < n; k++) {
    int64_t rank = of_all ? k : own->trace->members[said->first_member + k];
    PL_TRY(check_device(own, rank));
    devices[k] = (uint32_t)rank;
  }
  PL_TRY(take_group(own, devices, n, group));
  own->groups[g] = *group;
  return PL_OK;
}

static pl_code lower(lowering *own, lowered *message) {
  const pl_collective_group *group;
  if (message->group != PL_NONE) {
    PL_TRY(group_of(own, message->group, &group));
  } else {
    const uint32_t ends[] = {message->source, message->destination};
    PL_TRY(check_device(own, message->source));
    PL_TRY(check_device(own, message->destination));
    PL_TRY(take_group(own, ends, 2, &group));
  }
  pl_fluid_collective fluid;
  PL_TRY(pl_collective_fluid(group, (pl_collective_kind)message->kind, (double)message->size_bytes, own->arena, &fluid,
                             own->error));
  PL_TRY(pl_fluid_collective_merge(own->options->cluster, own->arena, &fluid, own->error));
  PL_ASSERT(own->n_specs < own->most_specs);
  message->spec = own->n_specs;
  message->progress_bytes = fluid.progress_bytes;
  own->specs[own->n_specs] = fluid.spec;
  own->specs[own->n_specs].first_use = own->n_uses;
  own->uses[own->n_specs++] = fluid.uses;
  own->n_uses += fluid.spec.n_uses;
  return PL_OK;
}

/* Equal messages share a spec. */
static pl_code find_lowered(lowering *own, uint32_t m, const lowered **out) {
  const pl_trace_message *says = message_of(own, m);
  const pl_trace_meetings *meetings = own->replay->meetings;
  lowered message = {.kind = (uint8_t)kinds[says->kind], .group = PL_NONE, .size_bytes = size_of(own, m)};
  if (says->kind == PL_TRACE_POINT_TO_POINT) {
    uint32_t send = meetings->ops[meetings->meetings[m].first];
    message.source = (uint32_t)own->trace->ranks[pl_trace_rank_of(own->trace, send)].number;
    message.destination = (uint32_t)says->peer;
  } else {
    message.group = says->group;
  }
  uint64_t hash = pl_hash_word(pl_hash_word(message.kind, message.group), (uint64_t)message.size_bytes);
  hash = pl_hash_word(pl_hash_word(hash, message.source), message.destination);
  uint32_t probe = 0;
  for (const lowered *known; (known = pl_hash_index_find(&own->known, hash, &probe)) != NULL;)
    if (known->kind == message.kind && known->group == message.group && known->size_bytes == message.size_bytes &&
        known->source == message.source && known->destination == message.destination) {
      *out = known;
      return PL_OK;
    }
  lowered *added = PL_TAKE(own->arena, lowered, 1);
  if (added == NULL) return pl_fail_memory(own->error, "the messages of a step");
  *added = message;
  PL_TRY(lower(own, added));
  *out = added;
  return pl_hash_index_put(&own->known, hash, added, own->arena) ? PL_OK
                                                                 : pl_fail_memory(own->error, "the messages of a step");
}

/* ---- the graph ---- */

/* A send that flew with its message: it ends when the message is there. PL_NONE: it does not. */
static uint32_t flight_of_send(const lowering *own, const uint32_t *transfer_of, uint32_t task) {
  const pl_trace_replay *replay = own->replay;
  uint32_t op = replay->subject[task];
  if (replay->role[task] != PL_TRACE_BODY || own->trace->ops[op].kind != PL_TRACE_SEND) return PL_NONE;
  uint32_t m = replay->meetings->of_op[op], flight = m != PL_NONE ? transfer_of[m] : PL_NONE;
  return flight != PL_NONE && replay->ticks[task] >= replay->ticks[flight] / 2 ? flight : PL_NONE;
}

/* It is of the step that the replay is of, not of the one before (replay_window.h). */
static bool is_counted(const lowering *own, uint32_t m) {
  const pl_trace_meetings *meetings = own->replay->meetings;
  uint32_t step = own->trace->ops[meetings->ops[meetings->meetings[m].first]].step;
  return step == PL_NONE || own->trace->steps[step].number == own->replay->span.number;
}

static pl_code add_tasks(lowering *own, const pl_ticks *ticks, pl_graph_builder *builder, uint32_t *transfer_of,
                         pl_trace_network_played *played) {
  const pl_trace_replay *replay = own->replay;
  for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
    uint32_t m = meeting_of(own, t);
    const lowered *message = NULL;
    if (m != PL_NONE) {
      PL_TRY(check_stretch(own, m));
      if (kinds[message_of(own, m)->kind] >= 0 && size_of(own, m) >= 0) PL_TRY(find_lowered(own, m, &message));
      played->n_timed += message != NULL && is_counted(own, m);
      played->n_kept += message == NULL && is_counted(own, m);
    }
    if (message != NULL) {
      transfer_of[m] = t;
      pl_graph_builder_transfer(builder, message->spec, message->progress_bytes, PL_CATEGORY_OTHER, NULL, 0, PL_NONE,
                                -1);
    } else {
      pl_graph_builder_delay(builder, ticks[t], PL_CATEGORY_OTHER, NULL, 0, PL_NONE, -1);
    }
  }
  return PL_OK;
}

/* Ends of sends that fly with their messages are no delays of their own: `ticks` gets 0 for them. */
static void tie_sends(const lowering *own, const uint32_t *transfer_of, pl_ticks *ticks) {
  for (uint32_t t = 0; t < own->replay->graph.n_tasks; t++)
    if (flight_of_send(own, transfer_of, t) != PL_NONE) ticks[t] = 0;
}

static void add_edges(const lowering *own, const uint32_t *transfer_of, pl_graph_builder *builder) {
  const pl_graph *graph = &own->replay->graph;
  for (uint32_t t = 0; t < graph->n_tasks; t++) {
    for (uint32_t e = graph->successor_offset[t]; e < graph->successor_offset[t + 1]; e++)
      pl_graph_builder_edge(builder, t, graph->successors[e]);
    uint32_t flight = flight_of_send(own, transfer_of, t);
    if (flight != PL_NONE) pl_graph_builder_edge(builder, flight, t);
  }
}

static bool fill_table(const lowering *own, pl_transfer_table *table) {
  const pl_cluster *cluster = own->options->cluster;
  double *capacity = PL_TAKE(own->arena, double, cluster->n_links + 1);
  uint8_t *policy = PL_TAKE(own->arena, uint8_t, cluster->n_links + 1);
  pl_link_use *uses = PL_TAKE(own->arena, pl_link_use, own->n_uses + 1);
  if (capacity == NULL || policy == NULL || uses == NULL) return false;
  for (uint32_t l = 0; l < cluster->n_links; l++) {
    capacity[l] = cluster->links[l].capacity_Bps;
    policy[l] = (uint8_t)cluster->links[l].policy;
  }
  for (uint32_t s = 0; s < own->n_specs; s++)
    if (own->specs[s].n_uses > 0)
      memcpy(uses + own->specs[s].first_use, own->uses[s], own->specs[s].n_uses * sizeof *uses);
  *table = (pl_transfer_table){capacity, policy, cluster->n_links, own->specs, own->n_specs, uses, own->n_uses};
  return true;
}

static pl_code run(lowering *own, pl_graph_builder *builder, pl_ticks *finish, pl_trace_network_played *played) {
  pl_transfer_table *table = PL_TAKE(own->arena, pl_transfer_table, 1);
  pl_graph graph;
  if (table == NULL || !fill_table(own, table)) return pl_fail_memory(own->error, "a network");
  PL_ASSERT(pl_transfer_table_is_valid(table));
  pl_graph_builder_transfers(builder, table);
  PL_TRY(pl_graph_builder_freeze(builder, &graph, own->error));
  pl_network *network = pl_flow_network_take(&graph.transfers, own->arena);
  if (network == NULL) return pl_fail_memory(own->error, "a network");
  const pl_engine_options options = {.record_parts = false};
  pl_engine_result result;
  pl_code code = pl_engine_run(&graph, network, &options, own->arena, &result, own->error);
  network->ops->destroy(network);
  PL_TRY(code);
  memcpy(finish, result.finish, graph.n_tasks * sizeof *finish);
  played->makespan = result.makespan;
  return PL_OK;
}

pl_code pl_trace_network_play(const pl_trace_replay *replay, const pl_ticks *given,
                              const pl_trace_network_options *options, pl_arena *arena, pl_ticks *finish,
                              pl_trace_network_played *played, pl_error *error) {
  uint32_t n = replay->graph.n_tasks, n_meetings = replay->meetings->n;
  lowering own = {.replay = replay,
                  .trace = replay->trace,
                  .options = options,
                  .arena = arena,
                  .most_specs = n_meetings + 1,
                  .error = error};
  *played = (pl_trace_network_played){.n_timed = 0};
  own.groups = PL_TAKE(arena, const pl_collective_group *, replay->trace->n_groups + 1);
  own.specs = PL_TAKE(arena, pl_transfer_spec, own.most_specs);
  own.uses = PL_TAKE(arena, const pl_link_use *, own.most_specs);
  uint32_t *transfer_of = PL_TAKE(arena, uint32_t, n_meetings + 1);
  pl_ticks *ticks = PL_TAKE(arena, pl_ticks, n + 1);
  if (own.groups == NULL || own.specs == NULL || own.uses == NULL || transfer_of == NULL || ticks == NULL)
    return pl_fail_memory(error, "a replay");
  memcpy(ticks, given, n * sizeof *ticks);
  memset(transfer_of, 0xff, n_meetings * sizeof *transfer_of);
  /* Which sends fly with their message is known once all messages are: the second pass has their ends. */
  for (uint32_t t = 0; t < n; t++) {
    uint32_t m = meeting_of(&own, t);
    if (m != PL_NONE && kinds[message_of(&own, m)->kind] >= 0 && size_of(&own, m) >= 0) transfer_of[m] = t;
  }
  tie_sends(&own, transfer_of, ticks);
  pl_graph_builder *builder = pl_graph_builder_take(arena, PL_STREAMS_IN_ORDER);
  if (builder == NULL) return pl_fail_memory(error, "a replay");
  PL_TRY(add_tasks(&own, ticks, builder, transfer_of, played));
  add_edges(&own, transfer_of, builder);
  return run(&own, builder, finish, played);
}
