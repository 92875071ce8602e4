/* From what a rank of dPRO's recorded to ops and what they wait for. See workloads/formats/dpro.h.
 *
 * Order within the communication of a group of tensors follows from what it is (dPRO's Fig. 3): negotiation of each
 * tensor, copy in, chunk by chunk around the ring, copy out. What computing and communication wait for of each other
 * is concluded from dates: a negotiation began when the last op before it ended; an op that began after a pause waited
 * for the communication that ended last in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "workloads/formats/byteps.h"

enum { SHORTEST_GAP_NS = 2000, TOLERANCE_NS = 1000 };

typedef struct lane {
  uint8_t kind;
  int64_t which; /* thread, or channel */
  uint32_t stream;
  int64_t free_ns;
} lane;

typedef struct finishing {
  pl_dpro *own;
  pl_trace *trace;
  uint32_t index, first_edge, first_step;
  lane *lanes;
  uint32_t n_lanes, lane_room;
  uint32_t *order; /* of events: by what they are part of */
  uint32_t found;  /* place in it */
  bool chunks;     /* they are used: the rank's neighbours are known */
} finishing;

static int64_t end_of(const pl_dpro_event *event) {
  return event->start_ns + event->duration_ns;
}

/* ---- steps ---- */

static int by_step_and_start(const void *a_, const void *b_) {
  const pl_trace_step *a = a_, *b = b_;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* A step lasts until the next begins: its last messages and updates are of it. */
static bool add_steps(finishing *at) {
  const pl_dpro *own = at->own;
  pl_trace_step *all = malloc(((size_t)own->n_events + 1) * sizeof *all);
  if (all == NULL) return false;
  uint32_t n = 0, n_steps = 0;
  int64_t end = INT64_MIN;
  for (uint32_t k = 0; k < own->n_events; k++) {
    const pl_dpro_event *event = &own->events[k];
    if (end_of(event) > end) end = end_of(event);
    if (event->step >= 0 && (event->kind == PL_DPRO_COMPUTING || own->is_server))
      all[n++] = (pl_trace_step){at->index, event->step, event->start_ns, 0};
  }
  if (n > 1) qsort(all, n, sizeof *all, by_step_and_start);
  for (uint32_t k = 0; k < n; k++)
    if (k == 0 || all[k].number != all[k - 1].number) all[n_steps++] = all[k];
  if (n_steps > 1) qsort(all, n_steps, sizeof *all, pl_trace_step_by_start);
  bool good = true;
  for (uint32_t s = 0; s < n_steps && good; s++) {
    all[s].duration_ns = (s + 1 < n_steps ? all[s + 1].start_ns : end) - all[s].start_ns;
    good = pl_trace_add_step(at->trace, all[s]) != PL_NONE;
  }
  free(all);
  return good;
}

static uint32_t step_of(const finishing *at, const pl_dpro_event *event) {
  const pl_trace_step *steps = at->trace->steps;
  uint32_t low = at->first_step, high = at->trace->n_steps;
  if (event->step >= 0)
    for (uint32_t s = at->first_step; s < at->trace->n_steps; s++)
      if (steps[s].number == event->step) return s;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (steps[middle].start_ns <= event->start_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low > at->first_step ? low - 1 : PL_NONE;
}

/* ---- ops ---- */

static int64_t neighbour(const finishing *at, int32_t channel, bool next) {
  const pl_dpro *own = at->own;
  int64_t any = -1;
  for (uint32_t r = 0; r < own->n_rings; r++) {
    int64_t rank = next ? own->rings[r].next : own->rings[r].previous;
    if (own->rings[r].channel == channel && rank >= 0) return rank;
    if (any < 0) any = rank;
  }
  return any;
}

static const char *const lane_names[] = {"GPU", "negotiation", "fusion buffer", "send", "receive", "NCCL"};

/* Of one link in one direction, or one thread: the pieces of a lane. */
static uint8_t lane_kind(const pl_dpro_event *event) {
  if (event->kind == PL_DPRO_COPY_OUT) return PL_DPRO_COPY_IN;
  if (event->kind == PL_DPRO_WORK) return PL_DPRO_COMPUTING;
  if (event->kind >= PL_DPRO_PUSH) return event->sends ? PL_DPRO_PUSH : PL_DPRO_PULLED;
  return event->kind;
}

static void name_lane(const finishing *at, const pl_dpro_event *event, uint8_t kind, char *text, size_t room) {
  const char *to = kind == PL_DPRO_PUSH ? "to" : "from";
  if (kind == PL_DPRO_COMPUTING)
    snprintf(text, room, "%s %.40s", at->own->is_server ? "engine" : "GPU", at->trace->names[event->thread]);
  else if (kind >= PL_DPRO_PUSH)
    snprintf(text, room, "%s %s_%d", to, at->own->is_server ? "worker" : "server", event->channel);
  else if (kind == PL_DPRO_SEND || kind == PL_DPRO_RECEIVE)
    snprintf(text, room, "channel %d %s", event->channel, kind == PL_DPRO_SEND ? "send" : "receive");
  else
    snprintf(text, room, "%s", lane_names[kind]);
}

/* A stream of that kind that is free at the event's start. */
static bool find_lane(finishing *at, const pl_dpro_event *event, uint32_t *stream) {
  uint8_t kind = lane_kind(event);
  bool moves = pl_dpro_is_transfer(event);
  int64_t which = kind == PL_DPRO_COMPUTING ? (int64_t)event->thread : moves ? (int64_t)event->channel : 0;
  uint32_t n_alike = 0;
  for (uint32_t k = 0; k < at->n_lanes; k++) {
    lane *known = &at->lanes[k];
    if (known->kind != kind || known->which != which) continue;
    n_alike++;
    if (known->free_ns > event->start_ns) continue;
    known->free_ns = end_of(event);
    *stream = known->stream;
    return true;
  }
  char base[64], text[96];
  if (!PL_GROW(at->lanes, at->n_lanes, at->lane_room)) return false;
  name_lane(at, event, kind, base, sizeof base);
  int n =
      n_alike > 0 ? snprintf(text, sizeof text, "%s (%u)", base, n_alike + 1) : snprintf(text, sizeof text, "%s", base);
  uint32_t name = pl_trace_name(at->trace, text, (size_t)n);
  bool on_device = kind == PL_DPRO_COMPUTING || kind == PL_DPRO_COPY_IN;
  *stream = name == PL_NONE
                ? PL_NONE
                : pl_trace_add_stream(at->trace, at->index, name, on_device ? PL_TRACE_DEVICE : PL_TRACE_NETWORK);
  at->lanes[at->n_lanes++] = (lane){kind, which, *stream, end_of(event)};
  return *stream != PL_NONE;
}

static uint32_t name_of(finishing *at, const char *what, const pl_dpro_event *event, bool chunk) {
  size_t room = strlen(at->trace->names[event->tensors]) + 128;
  char *text = malloc(room);
  if (text == NULL) return PL_NONE;
  int n = snprintf(text, room, "%s%s", what, at->trace->names[event->tensors]);
  if (chunk)
    n += snprintf(text + n, room - (size_t)n, "~%d_%d_%d_%d", event->loop, event->channel, event->chunk, event->slice);
  uint32_t name = pl_trace_name(at->trace, text, (size_t)n);
  free(text);
  return name;
}

/* False: no memory. */
static bool add_message(finishing *at, const pl_dpro_event *event, pl_trace_op *op) {
  bool chunk = event->kind == PL_DPRO_SEND || event->kind == PL_DPRO_RECEIVE;
  pl_trace_message message = {PL_TRACE_POINT_TO_POINT, PL_NONE, -1, PL_NONE, -1, -1};
  if (pl_dpro_is_transfer(event)) {
    op->kind = pl_dpro_sends(event) ? PL_TRACE_SEND : PL_TRACE_RECEIVE;
    message.peer = event->peer >= 0 ? event->peer : (int32_t)neighbour(at, event->channel, event->kind == PL_DPRO_SEND);
    message.tag =
        name_of(at, event->kind == PL_DPRO_PULL || event->kind == PL_DPRO_PUSHED ? "request of " : "", event, chunk);
    if (message.tag == PL_NONE) return false;
  } else {
    op->kind = PL_TRACE_COLLECTIVE;
    message.kind = event->kind == PL_DPRO_SYNC ? PL_TRACE_BARRIER : PL_TRACE_ALL_REDUCE;
    uint32_t name = name_of(at, event->kind == PL_DPRO_SYNC ? "negotiation of " : "sum of ", event, false);
    message.group = name == PL_NONE ? PL_NONE : pl_trace_add_group(at->trace, name, NULL, 0);
    if (message.group == PL_NONE) return false;
  }
  op->message = pl_trace_add_message(at->trace, message);
  return op->message != PL_NONE;
}

static bool add_ops(finishing *at) {
  static const char *const prefixes[] = {"",          "Sync ",           "MEMCPY_IN ",  "SEND ",
                                         "RECV ",     "NCCL_ALLREDUCE ", "MEMCPY_OUT ", "PUSH_REQ ",
                                         "PUSH_RES ", "PULL_REQ ",       "PULL_RES "};
  pl_dpro *own = at->own;
  for (uint32_t k = 0; k < own->n_events; k++) {
    pl_dpro_event *event = &own->events[k];
    bool chunk = event->kind == PL_DPRO_SEND || event->kind == PL_DPRO_RECEIVE;
    event->step = step_of(at, event); /* from here on: of the trace */
    if (chunk ? !at->chunks : event->kind == PL_DPRO_ALL_REDUCE && at->chunks) continue;
    pl_trace_op op = {.start_ns = event->start_ns,
                      .duration_ns = event->duration_ns,
                      .message = PL_NONE,
                      .step = (uint32_t)event->step};
    bool computes = event->kind == PL_DPRO_COMPUTING || event->kind == PL_DPRO_WORK;
    uint32_t name = computes ? event->name : name_of(at, prefixes[event->kind], event, chunk);
    op.name = name & PL_TRACE_MOST_NAMES;
    op.kind = computes ? PL_TRACE_COMPUTE : PL_TRACE_COPY;
    bool meets = event->kind == PL_DPRO_SYNC || event->kind == PL_DPRO_ALL_REDUCE || pl_dpro_is_transfer(event);
    if (name == PL_NONE || !find_lane(at, event, &op.stream) || (meets && !add_message(at, event, &op))) return false;
    event->op = pl_trace_add_op(at->trace, op);
    if (event->op == PL_NONE) return false;
  }
  return true;
}

/* ---- edges ---- */

static bool add_edge(finishing *at, const pl_dpro_event *before, const pl_dpro_event *after) {
  if (before->op == PL_NONE || after->op == PL_NONE) return true;
  if (end_of(before) > after->start_ns + TOLERANCE_NS) {
    at->own->n_contradictions++;
    return true;
  }
  return pl_trace_add_edge(at->trace, before->op, after->op, false) != PL_NONE;
}

static int compare_parts(const pl_dpro_event *a, const pl_dpro_event *b) {
  if (a->tensors != b->tensors) return a->tensors < b->tensors ? -1 : 1;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->loop != b->loop) return a->loop < b->loop ? -1 : 1;
  if (a->channel != b->channel) return a->channel < b->channel ? -1 : 1;
  if (a->slice != b->slice) return a->slice < b->slice ? -1 : 1;
  return (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

static int by_part(const void *a_, const void *b_, void *events_) {
  const pl_dpro_event *events = events_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  int order = compare_parts(&events[a], &events[b]);
  return order != 0 ? order : (a > b) - (a < b);
}

/* The first event that is this part, at `found` in the order; NULL: none. */
static const pl_dpro_event *find(finishing *at, uint32_t n, const pl_dpro_event *part) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (compare_parts(&at->own->events[at->order[middle]], part) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  at->found = low;
  const pl_dpro_event *found = low < n ? &at->own->events[at->order[low]] : NULL;
  return found != NULL && compare_parts(found, part) == 0 ? found : NULL;
}

/* From the negotiation of each of the tensors. */
static bool wait_for_syncs(finishing *at, uint32_t n, const pl_dpro_event *after) {
  size_t at_text = 0;
  for (;;) {
    const char *text = at->trace->names[after->tensors] + at_text; /* interning may move the list of names */
    size_t size = strcspn(text, "+");
    bool more = text[size] == '+';
    pl_dpro_event part = {.tensors = pl_trace_name(at->trace, text, size), .step = after->step, .kind = PL_DPRO_SYNC};
    if (part.tensors == PL_NONE) return false;
    const pl_dpro_event *sync = find(at, n, &part);
    if (sync != NULL && !add_edge(at, sync, after)) return false;
    if (!more) return true;
    at_text += size + 1;
  }
}

static bool same_chain(const pl_dpro_event *a, const pl_dpro_event *b) {
  return a->kind == b->kind && a->loop == b->loop && a->channel == b->channel && a->slice == b->slice;
}

/* A copy out waits for the last chunk of each chain, and for the whole. */
static bool link_copy_out(finishing *at, uint32_t first, uint32_t end, const pl_dpro_event *copy_out) {
  const pl_dpro_event *events = at->own->events;
  for (uint32_t k = first; k < end; k++) {
    const pl_dpro_event *event = &events[at->order[k]];
    bool last = event->kind == PL_DPRO_RECEIVE && (k + 1 == end || !same_chain(event, &events[at->order[k + 1]]));
    if ((last || event->kind == PL_DPRO_ALL_REDUCE) && !add_edge(at, event, copy_out)) return false;
  }
  return true;
}

/* The receives of a tree that stand for `part`, up or down as asked. Returns how many. */
static bool wait_for_tree(finishing *at, uint32_t n, const pl_dpro_event *after, bool down, uint32_t *found) {
  pl_dpro_event part = *after;
  part.kind = PL_DPRO_RECEIVE;
  *found = 0;
  const pl_dpro_event *first = find(at, n, &part);
  for (uint32_t k = first != NULL ? at->found : n; k < n; k++) {
    const pl_dpro_event *event = &at->own->events[at->order[k]];
    if (compare_parts(event, &part) != 0) break;
    if (event->is_down != down) continue;
    ++*found;
    if (!add_edge(at, event, after)) return false;
  }
  return true;
}

/* A chunk goes up once all children's are there, and down once the parent's is, or at the root the children's. */
static bool link_tree(finishing *at, uint32_t n, const pl_dpro_event *send, const pl_dpro_event *copy_in) {
  uint32_t found = 0;
  if (!wait_for_tree(at, n, send, send->is_down, &found)) return false;
  if (found == 0 && send->is_down && !wait_for_tree(at, n, send, false, &found)) return false;
  return copy_in != NULL ? add_edge(at, copy_in, send) : wait_for_syncs(at, n, send);
}

/* Events first .. end of one group of tensors in one step, by kind and then by chain. */
static bool link_group(finishing *at, uint32_t n, uint32_t first, uint32_t end) {
  const pl_dpro_event *events = at->own->events, *copy_in = NULL;
  for (uint32_t k = first; k < end && copy_in == NULL; k++)
    if (events[at->order[k]].kind == PL_DPRO_COPY_IN) copy_in = &events[at->order[k]];
  for (uint32_t k = first; k < end; k++) {
    const pl_dpro_event *event = &events[at->order[k]];
    if (event->kind == PL_DPRO_COPY_IN && !wait_for_syncs(at, n, event)) return false;
    if (event->kind == PL_DPRO_COPY_OUT && !link_copy_out(at, first, end, event)) return false;
    if (event->kind == PL_DPRO_SEND && at->own->is_tree) {
      if (!link_tree(at, n, event, copy_in)) return false;
      continue;
    }
    bool begins = (event->kind == PL_DPRO_SEND && event->chunk == 0) || event->kind == PL_DPRO_ALL_REDUCE;
    if (begins && !(copy_in != NULL ? add_edge(at, copy_in, event) : wait_for_syncs(at, n, event))) return false;
    if (event->kind != PL_DPRO_SEND || event->chunk == 0) continue;
    pl_dpro_event part = *event;
    part.kind = PL_DPRO_RECEIVE;
    part.chunk--;
    const pl_dpro_event *received = find(at, n, &part);
    if (received != NULL && !add_edge(at, received, event)) return false;
  }
  return true;
}

static bool link_groups(finishing *at) {
  pl_dpro *own = at->own;
  uint32_t n = 0;
  for (uint32_t k = 0; k < own->n_events; k++)
    if (own->events[k].kind != PL_DPRO_COMPUTING && own->events[k].kind < PL_DPRO_PUSH) at->order[n++] = k;
  qsort_r(at->order, n, sizeof *at->order, by_part, own->events);
  for (uint32_t first = 0, end; first < n; first = end) {
    const pl_dpro_event *a = &own->events[at->order[first]];
    for (end = first + 1; end < n; end++) {
      const pl_dpro_event *b = &own->events[at->order[end]];
      if (a->tensors != b->tensors || a->step != b->step) break;
    }
    if (!link_group(at, n, first, end)) return false;
  }
  return true;
}

static int by_end(const void *a_, const void *b_, void *events_) {
  const pl_dpro_event *events = events_;
  int64_t a = end_of(&events[*(const uint32_t *)a_]), b = end_of(&events[*(const uint32_t *)b_]);
  if (a != b) return a < b ? -1 : 1;
  return (*(const uint32_t *)a_ > *(const uint32_t *)b_) - (*(const uint32_t *)a_ < *(const uint32_t *)b_);
}

/* Of events order[0 .. n), which stand by their ends: the last that ended in (after, until]. */
static const pl_dpro_event *ended_last(const finishing *at, uint32_t n, int64_t after, int64_t until) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (end_of(&at->own->events[at->order[middle]]) <= until)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return NULL;
  const pl_dpro_event *found = &at->own->events[at->order[low - 1]];
  return end_of(found) > after ? found : NULL;
}

/* Negotiations by the op that ended last before them; ops behind a pause by the communication that ended last in it. */
static bool link_by_dates(finishing *at, bool computing) {
  pl_dpro *own = at->own;
  uint32_t n = 0;
  for (uint32_t k = 0; k < own->n_events; k++) {
    uint8_t kind = own->events[k].kind;
    bool ends = kind == PL_DPRO_COPY_OUT || kind == PL_DPRO_ALL_REDUCE || kind == PL_DPRO_RECEIVE ||
                (kind == PL_DPRO_PULLED && !own->events[k].sends);
    if (own->events[k].op != PL_NONE && (computing ? ends : kind == PL_DPRO_COMPUTING)) at->order[n++] = k;
  }
  qsort_r(at->order, n, sizeof *at->order, by_end, own->events);
  int64_t last_end = INT64_MIN; /* of computing, over all threads: a pause of the whole device */
  for (uint32_t k = 0; k < own->n_events; k++) {
    const pl_dpro_event *event = &own->events[k];
    bool begins = event->kind == PL_DPRO_SYNC || (event->kind == PL_DPRO_PUSH && event->sends);
    if (event->op == PL_NONE || !(computing ? event->kind == PL_DPRO_COMPUTING : begins)) continue;
    bool pause = !computing || (last_end != INT64_MIN && event->start_ns - last_end >= SHORTEST_GAP_NS);
    const pl_dpro_event *before = pause ? ended_last(at, n, computing ? last_end : INT64_MIN, event->start_ns) : NULL;
    if (before != NULL && !add_edge(at, before, event)) return false;
    if (end_of(event) > last_end) last_end = end_of(event);
  }
  return true;
}

/* ---- the rank ---- */

static void note(const finishing *at) {
  const pl_dpro *own = at->own;
  pl_trace *trace = at->trace;
  long long number = own->number;
  if (own->is_cut)
    pl_trace_add_note(trace, "%s: rank %lld: a file ends too early; read as far as it goes", own->path, number);
  if (own->n_negative > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u events with negative durations, taken as 0", own->path, number,
                      own->n_negative);
  if (own->n_without_time + own->n_unpaired + own->n_open > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u events without a date, an end or a beginning, left out", own->path,
                      number, own->n_without_time + own->n_unpaired + own->n_open);
  if (own->has_chunks && !at->chunks)
    pl_trace_add_note(trace,
                      "%s: rank %lld: nccl_rank_graph.json names no ring or tree that its chunks fit, so they have no "
                      "other end; all-reduces are taken whole",
                      own->path, number);
  if (at->own->n_contradictions > 0)
    pl_trace_add_note(trace, "%s: rank %lld: %u dependencies against the dates, left out", own->path, number,
                      at->own->n_contradictions);
  pl_trace_add_note(trace, "%s: rank %lld: sizes of messages are not recorded", own->path, number);
}

static pl_code finish(finishing *at, pl_error *error) {
  pl_dpro *own = at->own;
  pl_trace *trace = at->trace;
  uint32_t file = pl_trace_name(trace, own->path, strlen(own->path)), host = pl_trace_name(trace, "", 0);
  pl_trace_rank rank = {
      .number = own->number, .host = host, .file = file, .first_op = trace->n_ops, .first_step = trace->n_steps};
  at->index = trace->n_ranks;
  at->first_edge = trace->n_edges;
  at->first_step = trace->n_steps;
  PL_TRY(pl_dpro_trees_follow(own, error));
  at->chunks = own->is_tree || (own->has_chunks && !own->along_trees && neighbour(at, -1, true) >= 0 &&
                                neighbour(at, -1, false) >= 0 && neighbour(at, -1, true) != own->number);
  at->order = malloc(((size_t)own->n_events + 1) * sizeof *at->order);
  if (file == PL_NONE || host == PL_NONE || pl_trace_add_rank(trace, rank) == PL_NONE || at->order == NULL ||
      !add_steps(at) || !add_ops(at) || !link_groups(at) || !link_by_dates(at, false) || !link_by_dates(at, true))
    return pl_fail_memory(error, own->path);
  if (own->is_byteps) PL_TRY(pl_byteps_link(own, error));
  note(at);
  return pl_trace_end_rank(trace, at->index, at->first_edge, error);
}

pl_code pl_dpro_finish(pl_dpro *own, pl_error *error) {
  finishing at = {.own = own, .trace = own->trace};
  if (own->n_events == 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: no op of a GPU (process '/device:GPU', thread 'TensorFlow Ops') and no message in it",
                   own->path);
  pl_code code = finish(&at, error);
  free(at.lanes);
  free(at.order);
  return code;
}
