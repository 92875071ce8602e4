/* See core/engine/timeline_perfetto.h.
 *
 * A trace is a row of packets; each belongs to a sequence. Every track has a sequence of its own, which opens with what
 * holds for all of its packets: the track, and a clock that counts from the packet before.
 */
#include "core/engine/timeline_perfetto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "core/engine/perfetto_fields.h"
#include "core/engine/timeline_memory.h"
#include "core/engine/timeline_slices.h"
#include "core/text/wire_writer.h"

/* What events say of themselves; a number is a name's identity. */
typedef enum annotation {
  SAYS_TASK = 1,
  SAYS_MICROBATCH,
  SAYS_FLOPS,
  SAYS_BYTES,
  SAYS_PEERS,
  ANNOTATION_COUNT
} annotation;
static const char *const annotations[ANNOTATION_COUNT] = {[SAYS_TASK] = "task",
                                                          [SAYS_MICROBATCH] = "microbatch",
                                                          [SAYS_FLOPS] = "flops",
                                                          [SAYS_BYTES] = "bytes",
                                                          [SAYS_PEERS] = "peers"};
/* Behind the categories of the graph. */
enum { CATEGORY_PASS = PL_CATEGORY_COUNT + 1, CATEGORY_BLOCK };

typedef struct pl_arrow {
  uint32_t receiver, send;
} pl_arrow;

typedef struct perfetto {
  FILE *stream;
  pl_timeline_source of;
  pl_wire_writer out;
  pl_timeline_slice *slices;
  uint32_t n_slices, slice_room;
  pl_arrow *arrows; /* by receiver */
  uint32_t n_arrows, arrow_room;
  uint32_t *said_in, n_said; /* per name: the last sequence that has it */
  bool failed;
  uint32_t sequence; /* the one that is written */
  int64_t now_ns;
} perfetto;

/* ---- packets ---- */

static uint32_t open_packet(perfetto *own) {
  return pl_wire_open(&own->out, TRACE_PACKET);
}

static void close_packet(perfetto *own, uint32_t packet, int flags) {
  pl_wire_put_varint(&own->out, PACKET_SEQUENCE, own->sequence);
  pl_wire_put_varint(&own->out, PACKET_FLAGS, (uint64_t)flags);
  pl_wire_close(&own->out, packet);
  own->failed |= own->out.failed;
  if (!own->failed) fwrite(own->out.bytes, 1, own->out.n, own->stream);
  own->out.n = 0;
}

/* Dates of a sequence do not go back. */
static void put_date(perfetto *own, int64_t time_ns) {
  if (time_ns < own->now_ns) time_ns = own->now_ns;
  pl_wire_put_varint(&own->out, PACKET_TIMESTAMP, (uint64_t)(time_ns - own->now_ns));
  own->now_ns = time_ns;
}

static void put_interned(pl_wire_writer *out, uint32_t field, uint64_t id, const char *text) {
  uint32_t entry = pl_wire_open(out, field);
  pl_wire_put_varint(out, INTERNED_ID, id);
  pl_wire_put_text(out, INTERNED_TEXT, text);
  pl_wire_close(out, entry);
}

static void put_clock(pl_wire_writer *out, uint64_t id, bool counts_on) {
  uint32_t clock = pl_wire_open(out, SNAPSHOT_CLOCK);
  pl_wire_put_varint(out, CLOCK_ID, id);
  pl_wire_put_varint(out, CLOCK_TIME, 0);
  if (counts_on) pl_wire_put_varint(out, CLOCK_COUNTS_ON, 1);
  pl_wire_close(out, clock);
}

/* What holds for all packets of a sequence, from time 0 on. */
static void open_sequence(perfetto *own, uint32_t sequence, uint64_t track) {
  pl_wire_writer *out = &own->out;
  own->sequence = sequence;
  own->now_ns = 0;
  uint32_t packet = open_packet(own);
  uint32_t defaults = pl_wire_open(out, PACKET_DEFAULTS), event = pl_wire_open(out, DEFAULTS_EVENT);
  pl_wire_put_varint(out, EVENT_TRACK, track);
  pl_wire_close(out, event);
  pl_wire_put_varint(out, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
  pl_wire_close(out, defaults);
  uint32_t snapshot = pl_wire_open(out, PACKET_CLOCK_SNAPSHOT);
  put_clock(out, CLOCK_OF_TRACE, false);
  put_clock(out, CLOCK_OF_SEQUENCE, true);
  pl_wire_close(out, snapshot);
  uint32_t interned = pl_wire_open(out, PACKET_INTERNED);
  for (uint32_t category = 0; category < PL_CATEGORY_COUNT; category++)
    put_interned(out, INTERNED_CATEGORY, category + 1, pl_category_name((pl_category)category));
  put_interned(out, INTERNED_CATEGORY, CATEGORY_PASS, "pass");
  put_interned(out, INTERNED_CATEGORY, CATEGORY_BLOCK, "block");
  for (uint32_t name = SAYS_TASK; name < ANNOTATION_COUNT; name++)
    put_interned(out, INTERNED_ANNOTATION, name, annotations[name]);
  pl_wire_close(out, interned);
  close_packet(own, packet, FLAG_STATE_CLEARED);
}

/* ---- tracks ---- */

static uint64_t process_track(uint32_t device) {
  return (uint64_t)device + 1; /* 0 is the trace's own */
}

static uint64_t memory_track(const perfetto *own, uint32_t device) {
  return process_track(own->of.graph->n_devices) + device;
}

static uint64_t stream_track(const perfetto *own, uint32_t stream) {
  return memory_track(own, own->of.graph->n_devices) + stream;
}

static uint64_t run_track(const perfetto *own) {
  return stream_track(own, own->of.graph->n_streams);
}

static uint32_t open_track(perfetto *own, uint64_t uuid, const char *name, uint32_t *packet) {
  *packet = open_packet(own);
  uint32_t track = pl_wire_open(&own->out, PACKET_TRACK);
  pl_wire_put_varint(&own->out, TRACK_UUID, uuid);
  if (name != NULL) pl_wire_put_text(&own->out, TRACK_NAME, name);
  return track;
}

static void close_track(perfetto *own, uint32_t track, uint32_t packet) {
  pl_wire_close(&own->out, track);
  close_packet(own, packet, FLAG_NEEDS_STATE);
}

static void put_process(perfetto *own, uint32_t device) {
  const pl_timeline_view *view = own->of.view;
  char number[32];
  snprintf(number, sizeof number, "device %u", device);
  uint32_t packet, track = open_track(own, process_track(device), NULL, &packet);
  uint32_t process = pl_wire_open(&own->out, TRACK_PROCESS);
  pl_wire_put_varint(&own->out, PROCESS_PID, (uint64_t)device + 1);
  pl_wire_put_text(&own->out, PROCESS_NAME, view != NULL && view->device != NULL ? view->device[device] : number);
  pl_wire_close(&own->out, process);
  pl_wire_put_varint(&own->out, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
  pl_wire_put_varint(&own->out, TRACK_RANK, device);
  close_track(own, track, packet);
}

static void put_stream(perfetto *own, uint32_t at) {
  const pl_stream *stream = &own->of.graph->streams[at];
  uint32_t packet;
  uint32_t track = open_track(own, stream_track(own, at), pl_stream_kind_name((pl_stream_kind)stream->kind), &packet);
  pl_wire_put_varint(&own->out, TRACK_PARENT, process_track(stream->device));
  pl_wire_put_varint(&own->out, TRACK_RANK, stream->kind);
  close_track(own, track, packet);
}

static void put_memory_track(perfetto *own, uint32_t device) {
  uint32_t packet, track = open_track(own, memory_track(own, device), "memory", &packet);
  pl_wire_put_varint(&own->out, TRACK_PARENT, process_track(device));
  pl_wire_put_varint(&own->out, TRACK_RANK, PL_STREAM_KIND_COUNT);
  uint32_t counter = pl_wire_open(&own->out, TRACK_COUNTER);
  pl_wire_put_varint(&own->out, COUNTER_UNIT, COUNTER_BYTES);
  pl_wire_close(&own->out, counter);
  close_track(own, track, packet);
}

/* What the run was of: an instant at its beginning on a track of its own. */
static void put_header(perfetto *own) {
  const pl_timeline_view *view = own->of.view;
  uint32_t packet, track = open_track(own, run_track(own), "run", &packet);
  close_track(own, track, packet);
  packet = open_packet(own);
  put_date(own, 0);
  uint32_t interned = pl_wire_open(&own->out, PACKET_INTERNED);
  put_interned(&own->out, INTERNED_NAME, 1, "run");
  pl_wire_close(&own->out, interned);
  uint32_t event = pl_wire_open(&own->out, PACKET_TRACK_EVENT);
  pl_wire_put_varint(&own->out, EVENT_TYPE, TYPE_INSTANT);
  pl_wire_put_varint(&own->out, EVENT_NAME_ID, 1);
  for (uint32_t at = 0; at < view->n_header; at++) {
    uint32_t entry = pl_wire_open(&own->out, EVENT_ANNOTATION);
    pl_wire_put_text(&own->out, ANNOTATION_NAME, view->header[at].key);
    pl_wire_put_text(&own->out, ANNOTATION_TEXT, view->header[at].value);
    pl_wire_close(&own->out, entry);
  }
  pl_wire_close(&own->out, event);
  close_packet(own, packet, FLAG_NEEDS_STATE);
}

static void put_tracks(perfetto *own) {
  const pl_graph *graph = own->of.graph;
  open_sequence(own, 1, run_track(own));
  uint32_t packet, track = open_track(own, 0, NULL, &packet);
  pl_wire_put_varint(&own->out, TRACK_PROCESS_ORDER, PROCESSES_EXPLICIT);
  close_track(own, track, packet);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    put_process(own, device);
  for (uint32_t stream = 0; stream < graph->n_streams; stream++)
    put_stream(own, stream);
  for (uint32_t device = 0; device < graph->n_devices; device++)
    put_memory_track(own, device);
  if (own->of.view != NULL && own->of.view->n_header > 0) put_header(own);
}

/* ---- slices ---- */

static void keep_slice(void *context, const pl_timeline_slice *slice) {
  perfetto *own = context;
  own->failed |= !PL_GROW(own->slices, own->n_slices, own->slice_room);
  if (!own->failed) own->slices[own->n_slices++] = *slice;
}

/* By stream and time. Of a task first the task, then by the order of its spans, a block before its first part. */
static int compare_slices(const void *left, const void *right, void *context) {
  const pl_timeline_slice *a = left, *b = right;
  const pl_engine_result *result = context;
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  if (a->task == b->task) return a->order != b->order ? (a->order < b->order ? -1 : 1) : (int)a->level - (int)b->level;
  if (result->start[a->task] != result->start[b->task]) return result->start[a->task] < result->start[b->task] ? -1 : 1;
  if (result->finish[a->task] != result->finish[b->task])
    return result->finish[a->task] < result->finish[b->task] ? -1 : 1;
  return a->task < b->task ? -1 : 1;
}

static int compare_arrows(const void *left, const void *right) {
  const pl_arrow *a = left, *b = right;
  if (a->receiver != b->receiver) return a->receiver < b->receiver ? -1 : 1;
  return (a->send > b->send) - (a->send < b->send);
}

static void list_arrows(perfetto *own) {
  for (uint32_t at = 0; at < own->of.graph->n_tasks && !own->failed; at++) {
    uint32_t receiver = pl_timeline_receiver(&own->of, at);
    if (receiver == PL_NONE) continue;
    own->failed |= !PL_GROW(own->arrows, own->n_arrows, own->arrow_room);
    if (!own->failed) own->arrows[own->n_arrows++] = (pl_arrow){pl_timeline_drawn_in(&own->of, receiver), at};
  }
  if (own->n_arrows > 0) qsort(own->arrows, own->n_arrows, sizeof *own->arrows, compare_arrows);
}

static uint32_t first_arrow(const perfetto *own, uint32_t receiver) {
  uint32_t low = 0, high = own->n_arrows;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (own->arrows[middle].receiver < receiver) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* A send leaves from its first stream, and ends at the compute stream of the pass that waited for it. */
static void put_flows(perfetto *own, const pl_timeline_slice *slice) {
  const pl_task *task = &own->of.graph->tasks[slice->task];
  if (slice->level != PL_TIMELINE_TASK || own->of.graph->task_streams[task->first_stream] != slice->stream) return;
  if (pl_timeline_receiver(&own->of, slice->task) != PL_NONE)
    pl_wire_put_fixed64(&own->out, EVENT_FLOW, (uint64_t)slice->task + 1);
  for (uint32_t at = first_arrow(own, slice->task); at < own->n_arrows && own->arrows[at].receiver == slice->task; at++)
    pl_wire_put_fixed64(&own->out, EVENT_LAST_FLOW, (uint64_t)own->arrows[at].send + 1);
}

static void put_annotation(pl_wire_writer *out, annotation name, int64_t value) {
  uint32_t entry = pl_wire_open(out, EVENT_ANNOTATION);
  pl_wire_put_varint(out, ANNOTATION_NAME_ID, name);
  pl_wire_put_varint(out, ANNOTATION_INTEGER, (uint64_t)value);
  pl_wire_close(out, entry);
}

/* The processes that take part in a communication beside the one that it is shown on. */
static void put_peers(perfetto *own, const pl_timeline_slice *slice) {
  const pl_task *task = &own->of.graph->tasks[slice->task];
  uint32_t own_device = own->of.graph->streams[slice->stream].device;
  if (task->kind != PL_TASK_TRANSFER || task->n_streams < 2) return;
  uint32_t list = pl_wire_open(&own->out, EVENT_ANNOTATION);
  pl_wire_put_varint(&own->out, ANNOTATION_NAME_ID, SAYS_PEERS);
  for (uint32_t member = 0; member < task->n_streams; member++) {
    uint32_t device = pl_timeline_stream(&own->of, slice->task, member)->device;
    if (device == own_device) continue;
    uint32_t element = pl_wire_open(&own->out, ANNOTATION_ELEMENT);
    pl_wire_put_varint(&own->out, ANNOTATION_INTEGER, (uint64_t)device + 1);
    pl_wire_close(&own->out, element);
  }
  pl_wire_close(&own->out, list);
}

/* Task and microbatch are of the task alone: its parts lie in it, and stay the same bytes in every microbatch. */
static void put_annotations(perfetto *own, const pl_timeline_slice *slice) {
  const pl_task *task = &own->of.graph->tasks[slice->task];
  pl_wire_writer *out = &own->out;
  if (slice->level == PL_TIMELINE_TASK) {
    put_annotation(out, SAYS_TASK, slice->task);
    if (task->microbatch >= 0) put_annotation(out, SAYS_MICROBATCH, task->microbatch);
    if (task->kind == PL_TASK_TRANSFER) put_annotation(out, SAYS_BYTES, llround(task->size_bytes));
    put_peers(own, slice);
  }
  if (slice->flops > 0) put_annotation(out, SAYS_FLOPS, llround(slice->flops));
  if (slice->bytes > 0) put_annotation(out, SAYS_BYTES, llround(slice->bytes));
}

/* Of names of the graph, of categories, of blocks. */
static uint64_t name_identity(const perfetto *own, const pl_timeline_slice *slice) {
  if (slice->level == PL_TIMELINE_BLOCK)
    return (uint64_t)own->of.graph->n_names + PL_CATEGORY_COUNT + 1 + (uint32_t)slice->block;
  return (slice->name == PL_NONE ? (uint64_t)own->of.graph->n_names + slice->category : slice->name) + 1;
}

/* Once in a sequence. */
static void put_name(perfetto *own, const pl_timeline_slice *slice, uint64_t identity) {
  if (own->said_in[identity] == own->sequence) return;
  own->said_in[identity] = own->sequence;
  uint32_t interned = pl_wire_open(&own->out, PACKET_INTERNED);
  put_interned(&own->out, INTERNED_NAME, identity, pl_timeline_slice_name(&own->of, slice));
  pl_wire_close(&own->out, interned);
}

static void begin_slice(perfetto *own, const pl_timeline_slice *slice, int64_t time_ns) {
  uint64_t identity = name_identity(own, slice);
  uint32_t packet = open_packet(own);
  put_date(own, time_ns);
  put_name(own, slice, identity);
  uint32_t event = pl_wire_open(&own->out, PACKET_TRACK_EVENT);
  pl_wire_put_varint(&own->out, EVENT_TYPE, TYPE_BEGIN);
  pl_wire_put_varint(&own->out, EVENT_NAME_ID, identity);
  if (slice->level == PL_TIMELINE_BLOCK) pl_wire_put_varint(&own->out, EVENT_CATEGORY_ID, CATEGORY_BLOCK);
  if (slice->is_pass) pl_wire_put_varint(&own->out, EVENT_CATEGORY_ID, CATEGORY_PASS);
  pl_wire_put_varint(&own->out, EVENT_CATEGORY_ID, (uint64_t)slice->category + 1);
  put_annotations(own, slice);
  put_flows(own, slice);
  pl_wire_close(&own->out, event);
  close_packet(own, packet, FLAG_NEEDS_STATE);
}

static void end_slice(perfetto *own, int64_t time_ns) {
  uint32_t packet = open_packet(own);
  put_date(own, time_ns);
  uint32_t event = pl_wire_open(&own->out, PACKET_TRACK_EVENT);
  pl_wire_put_varint(&own->out, EVENT_TYPE, TYPE_END);
  pl_wire_close(&own->out, event);
  close_packet(own, packet, FLAG_NEEDS_STATE);
}

static int64_t to_nanoseconds(pl_ticks ticks) {
  return (pl_timeline_ps(ticks) + 500) / 1000;
}

/* Slices that are open lie in one another; the first is a task, whose start others are rounded from. */
typedef struct open_slices {
  const pl_timeline_slice *slices[PL_TIMELINE_PART + 1];
  int n;
} open_slices;

static int64_t date_in(const open_slices *open, pl_ticks time) {
  if (open->n == 0) return to_nanoseconds(time);
  pl_ticks start = open->slices[0]->start;
  return to_nanoseconds(start) + to_nanoseconds(time - start);
}

/* Of the same task; behind a block there may be parts of none. */
static bool lies_in(const perfetto *own, const pl_timeline_slice *slice, const pl_timeline_slice *outer) {
  if (slice->task != outer->task || slice->level <= outer->level) return false;
  if (outer->level != PL_TIMELINE_BLOCK) return true;
  const char *const *names = own->of.view->block_names;
  return slice->block >= 0 && names[slice->block] == names[outer->block];
}

static void close_to(perfetto *own, open_slices *open, const pl_timeline_slice *next) {
  while (open->n > 0) {
    const pl_timeline_slice *last = open->slices[open->n - 1];
    if (next != NULL && lies_in(own, next, last)) break;
    end_slice(own, date_in(open, last->finish));
    open->n--;
  }
}

static void put_stream_slices(perfetto *own, uint32_t first, uint32_t end) {
  open_slices open = {.n = 0};
  uint32_t stream = own->slices[first].stream;
  open_sequence(own, stream + 2, stream_track(own, stream));
  for (uint32_t at = first; at < end && !own->failed; at++) {
    const pl_timeline_slice *slice = &own->slices[at];
    close_to(own, &open, slice);
    begin_slice(own, slice, date_in(&open, slice->start));
    open.slices[open.n++] = slice;
  }
  close_to(own, &open, NULL);
}

static void put_slices(perfetto *own) {
  pl_timeline_slices(&own->of, keep_slice, own);
  list_arrows(own);
  uint64_t most = own->of.graph->n_names + PL_CATEGORY_COUNT;
  for (uint32_t at = 0; at < own->n_slices; at++)
    if (name_identity(own, &own->slices[at]) > most) most = name_identity(own, &own->slices[at]);
  own->said_in = calloc(most + 1, sizeof *own->said_in);
  own->failed |= own->said_in == NULL;
  if (own->failed || own->n_slices == 0) return;
  qsort_r(own->slices, own->n_slices, sizeof *own->slices, compare_slices, (void *)(uintptr_t)own->of.result);
  for (uint32_t first = 0, end; first < own->n_slices; first = end) {
    for (end = first + 1; end < own->n_slices && own->slices[end].stream == own->slices[first].stream;)
      end++;
    put_stream_slices(own, first, end);
  }
}

/* ---- memory ---- */

static void put_balance(perfetto *own, pl_ticks time, int64_t balance) {
  uint32_t packet = open_packet(own);
  put_date(own, to_nanoseconds(time));
  uint32_t event = pl_wire_open(&own->out, PACKET_TRACK_EVENT);
  pl_wire_put_varint(&own->out, EVENT_TYPE, TYPE_COUNTER);
  pl_wire_put_varint(&own->out, EVENT_COUNTER, (uint64_t)balance);
  pl_wire_close(&own->out, event);
  close_packet(own, packet, FLAG_NEEDS_STATE);
}

static void put_memory(perfetto *own) {
  const pl_graph *graph = own->of.graph;
  size_t n;
  pl_memory_step *steps = pl_memory_steps_list(graph, own->of.result, &n);
  int64_t balance = 0;
  for (size_t at = 0; at < n && !own->failed; at++) {
    const pl_memory_step *step = &steps[at];
    if (at == 0 || steps[at - 1].device != step->device) {
      balance = graph->devices[step->device].resident_bytes;
      open_sequence(own, graph->n_streams + 2 + step->device, memory_track(own, step->device));
    }
    balance += step->bytes;
    bool is_last = at + 1 == n || steps[at + 1].device != step->device || steps[at + 1].time != step->time;
    if (is_last && pl_timeline_shows(&own->of, step->task)) put_balance(own, step->time, balance);
  }
  free(steps);
}

bool pl_timeline_is_perfetto(const char *path) {
  static const char *const ends[] = {".pftrace", ".pftrace.gz", ".perfetto-trace", ".perfetto-trace.gz"};
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    size_t end = strlen(ends[i]);
    if (length > end && strcmp(path + length - end, ends[i]) == 0) return true;
  }
  return false;
}

pl_code pl_timeline_write_perfetto(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                                   const pl_timeline_view *view, pl_error *error) {
  perfetto own = {.stream = stream, .of = {graph, result, view}};
  put_tracks(&own);
  put_slices(&own);
  put_memory(&own);
  free(own.out.bytes);
  free(own.slices);
  free(own.arrows);
  free(own.said_in);
  return own.failed ? pl_fail_memory(error, "the timeline") : PL_OK;
}

pl_code pl_timeline_write(FILE *stream, const pl_graph *graph, const pl_engine_result *result,
                          const pl_timeline_view *view, pl_error *error) {
  if (view != NULL && view->is_perfetto) return pl_timeline_write_perfetto(stream, graph, result, view, error);
  pl_timeline_write_chrome(stream, graph, result, view);
  return PL_OK;
}
