/* A rank with GPU: the calls of its host threads and what they launch. See workloads/formats/kineto_rank.h.
 *
 * What a trace says: which call launched a kernel (correlation). What it says only in newer versions, if at all, is
 * taken from order and dates: a kernel whose thread called cudaStreamWaitEvent since its last launch waits for what had
 * then been launched last on each other stream, if that ended before the kernel began (else it cannot have waited for
 * it); a call that waits for the device waits for what ended last while it waited.
 *
 * Events and ops of a dense trace would not both fit, so events are given back as they become ops; what links need of
 * them then is kept here, 28 bytes a task of the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "workloads/formats/kineto_rank.h"

/* A call that waits for the device, or one inside of it. */
typedef struct waiting {
  int64_t start_ns, end_ns;
  uint32_t op;
} waiting;

/* Arrays of `n` are of the device's tasks, by correlation, then by place, or, once they are ops, by the date of the
 * call. */
typedef struct device_work {
  uint64_t *keys;    /* correlation << 32 | place of the task; NULL from then on */
  uint32_t *tasks;   /* then: its op */
  uint32_t *calls;   /* place of the call that launched it; PL_NONE: not recorded */
  int64_t *dates_ns; /* of that call */
  uint32_t n;
  uint32_t *op_of_call; /* of the places of host threads: the op made of it */
  uint32_t n_calls;
  uint32_t *stream_waits; /* places of calls of cudaStreamWaitEvent */
  uint32_t n_stream_waits, stream_wait_room;
  waiting *waits;
  uint32_t n_waits, wait_room;
  uint32_t *latest;    /* per thread: task that came last on that stream; PL_NONE */
  uint32_t *last_call; /* per thread: place of its last launch */
} device_work;

static bool is_call(const pl_kineto_event *event) {
  return event->category == PL_KINETO_CALL;
}

static bool waits_for_device(const char *name) {
  return strstr(name, "Synchronize") != NULL || strcmp(name, "cudaMemcpy") == 0 || strcmp(name, "hipMemcpy") == 0 ||
         strcmp(name, "hipMemcpyWithStream") == 0;
}

static bool is_stream_wait(const char *name) {
  return strstr(name, "StreamWaitEvent") != NULL;
}

/* ---- ops ---- */

static uint32_t add_stream(pl_kineto_rank *own, uint32_t thread) {
  const pl_kineto_thread *t = &own->kineto->threads[thread];
  const char *process = t->process == PL_NONE ? "?" : own->trace->names[t->process];
  const char *id = t->thread == PL_NONE ? "?" : own->trace->names[t->thread];
  char text[128];
  int n = t->is_device ? snprintf(text, sizeof text, "GPU %.40s stream %.60s", process, id)
                       : snprintf(text, sizeof text, "thread %.60s", id);
  uint32_t name = pl_trace_name(own->trace, text, (size_t)n);
  if (name == PL_NONE) return PL_NONE;
  return pl_trace_add_stream(own->trace, own->rank, name, t->is_device ? PL_TRACE_DEVICE : PL_TRACE_HOST);
}

static bool keep_call(pl_kineto_rank *own, device_work *work, uint32_t place, uint32_t op) {
  const pl_kineto_event *event = pl_kineto_at(own, place);
  work->op_of_call[place] = op;
  if (is_stream_wait(own->trace->names[event->name])) {
    if (!PL_GROW(work->stream_waits, work->n_stream_waits, work->stream_wait_room)) return false;
    work->stream_waits[work->n_stream_waits++] = place;
  }
  if (own->trace->ops[op].kind != PL_TRACE_WAIT) return true;
  if (!PL_GROW(work->waits, work->n_waits, work->wait_room)) return false;
  work->waits[work->n_waits++] = (waiting){event->start_ns, pl_kineto_end(event), op};
  return true;
}

/* A call inside of another (the driver's inside of the runtime's) is part of that one. */
static bool add_calls(pl_kineto_rank *own, device_work *work, uint32_t thread) {
  uint32_t stream = PL_NONE, outer = PL_NONE;
  int64_t end = INT64_MIN;
  for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    if (!is_call(event)) continue;
    if (event->start_ns >= end) {
      if (stream == PL_NONE) stream = add_stream(own, thread);
      bool waits = waits_for_device(own->trace->names[event->name]);
      pl_trace_op op = pl_trace_op_of(event->start_ns, event->duration_ns, event->name, stream, PL_NONE, PL_NONE,
                                      waits ? PL_TRACE_WAIT : PL_TRACE_CALL);
      outer = stream == PL_NONE ? PL_NONE : pl_trace_add_op(own->trace, op);
      if (outer == PL_NONE) return false;
      end = pl_kineto_end(event);
    }
    if (!keep_call(own, work, k, outer)) return false;
    pl_kineto_forget_before(own, k);
  }
  return true;
}

/* The annotation of a message on the thread of the call around its date: the last that began before. */
static uint32_t message_around(const pl_kineto_rank *own, uint32_t thread, int64_t date_ns) {
  uint32_t low = own->first_event[thread], high = own->first_event[thread + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (pl_kineto_at(own, middle)->start_ns <= date_ns)
      low = middle + 1;
    else
      high = middle;
  }
  enum { FURTHEST = 512 }; /* events between record_param_comms and the launch in it */
  uint32_t found = 0;
  for (uint32_t k = low, looked = 0; k-- > own->first_event[thread] && looked < FURTHEST; looked++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    if (event->communication == 0 || pl_kineto_end(event) < date_ns) continue;
    if (found == 0) found = event->communication;
    if (own->kineto->communications[event->communication - 1].collective != PL_NONE) return event->communication;
  }
  return found;
}

static bool contains(const char *text, const char *a, const char *b) {
  return strstr(text, a) != NULL || strstr(text, b) != NULL;
}

static bool is_message(const pl_kineto_rank *own, const pl_kineto_event *event) {
  const char *name = own->trace->names[event->name];
  return event->communication > 0 || contains(name, "ncclKernel", "ncclDevKernel") || contains(name, "rcclK", "oneccl");
}

/* Of a task `correlation` is from here on what the host said around its launch (find_around). */
static bool add_tasks(pl_kineto_rank *own, uint32_t thread) {
  uint32_t stream = add_stream(own, thread);
  for (uint32_t k = own->first_event[thread]; stream != PL_NONE && k < own->first_event[thread + 1]; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    bool copies = event->category == PL_KINETO_COPY;
    pl_trace_op op = pl_trace_op_of(event->start_ns, event->duration_ns, event->name, stream, PL_NONE, PL_NONE,
                                    copies ? PL_TRACE_COPY : PL_TRACE_COMPUTE);
    if (is_message(own, event)) {
      pl_trace_op_kind kind;
      op.message =
          pl_kineto_message(own, own->trace->names[event->name], event->communication, event->correlation, &kind);
      op.kind = (unsigned)kind & 15;
      if (op.message == PL_NONE) return false;
    }
    if (pl_trace_add_op(own->trace, op) == PL_NONE) return false;
    pl_kineto_forget_before(own, k);
  }
  return stream != PL_NONE;
}

/* ---- who launched what ---- */

static uint32_t correlation_of(const device_work *work, uint32_t l) {
  return (uint32_t)(work->keys[l] >> 32);
}

static uint32_t place_of(const device_work *work, uint32_t l) {
  return (uint32_t)work->keys[l];
}

/* The first task with this correlation; work->n: none. */
static uint32_t find_task(const device_work *work, uint32_t correlation) {
  uint32_t low = 0, high = work->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (correlation_of(work, middle) < correlation)
      low = middle + 1;
    else
      high = middle;
  }
  return low < work->n && correlation_of(work, low) == correlation ? low : work->n;
}

static int by_key(const void *a_, const void *b_) {
  uint64_t a = *(const uint64_t *)a_, b = *(const uint64_t *)b_;
  return (a > b) - (a < b);
}

/* Of the threads, hosts first, the one that `place` is of. */
static uint32_t thread_of(const pl_kineto_rank *own, uint32_t place) {
  uint32_t low = 0, high = own->kineto->n_threads;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (own->first_event[middle] <= place)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void find_calls(const pl_kineto_rank *own, device_work *work) {
  for (uint32_t k = 0; k < work->n_calls; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    if (!is_call(event) || event->correlation == 0) continue;
    for (uint32_t l = find_task(work, event->correlation); l < work->n && correlation_of(work, l) == event->correlation;
         l++)
      if (work->calls[l] == PL_NONE) {
        work->calls[l] = k;
        work->dates_ns[l] = event->start_ns;
      }
  }
}

/* What the host said around the launch of each message, while its events are there. A message's kernel is the first one
 * of its correlation. */
static void find_around(pl_kineto_rank *own, const device_work *work) {
  for (uint32_t l = 0; l < work->n; l++) {
    pl_kineto_event *event = &own->kineto->events[place_of(work, l)];
    if (!is_message(own, event)) continue;
    uint32_t by = event->correlation != 0 ? find_task(work, correlation_of(work, l)) : work->n;
    bool known = by < work->n && work->calls[by] != PL_NONE;
    event->correlation = known ? message_around(own, thread_of(own, work->calls[by]), work->dates_ns[by]) : 0;
  }
}

static void collect(pl_kineto_rank *own, device_work *work) {
  for (uint32_t l = 0; l < work->n; l++) {
    uint32_t place = work->n_calls + l;
    work->keys[l] = (uint64_t)pl_kineto_at(own, place)->correlation << 32 | place;
    work->calls[l] = PL_NONE;
  }
  qsort(work->keys, work->n, sizeof *work->keys, by_key);
  find_calls(own, work);
  find_around(own, work);
}

static bool add_edge(pl_kineto_rank *own, uint32_t before, uint32_t after, bool from_start) {
  if (before == PL_NONE || after == PL_NONE || before == after) return true;
  return pl_trace_add_edge(own->trace, before, after, from_start) != PL_NONE;
}

/* A call of cudaStreamWaitEvent at a place in [from, to). */
static bool has_wait_between(const device_work *work, uint32_t from, uint32_t to) {
  uint32_t low = 0, high = work->n_stream_waits;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (work->stream_waits[middle] < from)
      low = middle + 1;
    else
      high = middle;
  }
  return low < work->n_stream_waits && work->stream_waits[low] < to;
}

static uint32_t stream_of(const pl_kineto_rank *own, uint32_t op) {
  return own->trace->ops[op].stream;
}

/* Tasks in the order of their calls. */
static bool link_launches(pl_kineto_rank *own, device_work *work) {
  enum { TOLERANCE_NS = 1000 }; /* of the profiler's dates */
  const pl_trace *trace = own->trace;
  uint32_t n_threads = own->kineto->n_threads;
  for (uint32_t t = 0; t < n_threads; t++) {
    work->latest[t] = PL_NONE;
    work->last_call[t] = own->first_event[t];
  }
  uint32_t first_stream = work->n > 0 ? stream_of(own, trace->n_ops - work->n) : 0; /* streams of tasks: from here */
  for (uint32_t l = 0; l < work->n; l++) {
    uint32_t call = work->calls[l], task = work->tasks[l];
    if (call == PL_NONE) continue;
    uint32_t thread = thread_of(own, call), stream = stream_of(own, task) - first_stream;
    if (!add_edge(own, work->op_of_call[call], task, true)) return false;
    for (uint32_t s = 0; has_wait_between(work, work->last_call[thread], call) && s < n_threads; s++) {
      if (s == stream || work->latest[s] == PL_NONE) continue;
      uint32_t other = work->latest[s];
      if (pl_trace_end_ns(&trace->ops[other]) <= trace->ops[task].start_ns + TOLERANCE_NS &&
          !add_edge(own, other, task, false))
        return false;
    }
    work->last_call[thread] = call;
    work->latest[stream] = task;
  }
  return true;
}

typedef struct ended {
  const pl_trace *trace;
  const device_work *work;
} ended;

static int by_date(const void *a_, const void *b_, void *work_) {
  const device_work *work = work_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  if (work->dates_ns[a] != work->dates_ns[b]) return work->dates_ns[a] < work->dates_ns[b] ? -1 : 1;
  return (work->tasks[a] > work->tasks[b]) - (work->tasks[a] < work->tasks[b]);
}

static int by_end(const void *a_, const void *b_, void *ended_) {
  const ended *own = ended_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  int64_t x = pl_trace_end_ns(&own->trace->ops[own->work->tasks[a]]);
  int64_t y = pl_trace_end_ns(&own->trace->ops[own->work->tasks[b]]);
  if (x != y) return x < y ? -1 : 1;
  return (a > b) - (a < b);
}

/* A call that waits ends after the task that ended last while it waited. */
static bool link_wait(pl_kineto_rank *own, const device_work *work, const uint32_t *ends, const waiting *wait) {
  enum { TOLERANCE_NS = 1000 };
  const pl_trace_op *ops = own->trace->ops;
  uint32_t low = 0, high = work->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (pl_trace_end_ns(&ops[work->tasks[ends[middle]]]) <= wait->end_ns + TOLERANCE_NS)
      low = middle + 1;
    else
      high = middle;
  }
  while (low-- > 0 && pl_trace_end_ns(&ops[work->tasks[ends[low]]]) > wait->start_ns) {
    uint32_t l = ends[low];
    if (work->calls[l] == PL_NONE || work->dates_ns[l] > wait->end_ns) continue;
    return add_edge(own, work->tasks[l], wait->op, false);
  }
  return true;
}

static bool link_waits(pl_kineto_rank *own, const device_work *work) {
  if (work->n_waits == 0) return true;
  uint32_t *ends = malloc(((size_t)work->n + 1) * sizeof *ends);
  if (ends == NULL) return false;
  for (uint32_t l = 0; l < work->n; l++)
    ends[l] = l;
  ended all = {own->trace, work};
  qsort_r(ends, work->n, sizeof *ends, by_end, &all);
  bool good = true;
  for (uint32_t w = 0; good && w < work->n_waits; w++)
    good = link_wait(own, work, ends, &work->waits[w]);
  free(ends);
  return good;
}

static void note_orphans(pl_kineto_rank *own, const device_work *work) {
  uint32_t n = 0;
  for (uint32_t l = 0; l < work->n; l++)
    n += work->calls[l] == PL_NONE;
  if (n > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u of %u device tasks have no call that launched them",
                      own->kineto->path, (long long)own->number, n, work->n);
}

/* From places to ops, from the order of correlations to that of calls. Each task is an op, in the order of places. */
static bool sort_by_date(pl_kineto_rank *own, device_work *work) {
  uint32_t first = own->trace->n_ops - work->n, *order = NULL;
  work->tasks = malloc(((size_t)work->n + 1) * sizeof *work->tasks);
  for (uint32_t l = 0; work->tasks != NULL && l < work->n; l++)
    work->tasks[l] = first + (place_of(work, l) - work->n_calls);
  free(work->keys);
  work->keys = NULL;
  if (work->tasks != NULL) order = malloc(((size_t)work->n + 1) * sizeof *order);
  if (order == NULL) return false;
  for (uint32_t l = 0; l < work->n; l++)
    order[l] = l;
  qsort_r(order, work->n, sizeof *order, by_date, work);
  uint32_t *copy = malloc(((size_t)work->n + 1) * sizeof *copy);
  bool good = copy != NULL;
  if (good) {
    memcpy(copy, order, work->n * sizeof *copy);
    pl_permute(work->tasks, work->n, sizeof *work->tasks, copy);
    memcpy(copy, order, work->n * sizeof *copy);
    pl_permute(work->calls, work->n, sizeof *work->calls, copy);
    pl_permute(work->dates_ns, work->n, sizeof *work->dates_ns, order);
  }
  free(copy);
  free(order);
  return good;
}

static bool make_ops(pl_kineto_rank *own, device_work *work, uint32_t n_hosts) {
  work->op_of_call = malloc(((size_t)work->n_calls + 1) * sizeof *work->op_of_call);
  bool good = work->op_of_call != NULL;
  for (uint32_t t = 0; good && t < own->kineto->n_threads; t++)
    good = t < n_hosts ? add_calls(own, work, t) : add_tasks(own, t);
  return good;
}

static bool make(pl_kineto_rank *own, device_work *work, uint32_t n_hosts) {
  size_t n = (size_t)work->n + 1, n_threads = (size_t)own->kineto->n_threads + 1;
  work->keys = malloc(n * sizeof *work->keys);
  work->calls = malloc(n * sizeof *work->calls);
  work->dates_ns = calloc(n, sizeof *work->dates_ns);
  work->latest = malloc(n_threads * sizeof *work->latest);
  work->last_call = malloc(n_threads * sizeof *work->last_call);
  if (work->keys == NULL || work->calls == NULL || work->dates_ns == NULL || work->latest == NULL ||
      work->last_call == NULL)
    return false;
  collect(own, work);
  if (!make_ops(own, work, n_hosts)) return false;
  note_orphans(own, work);
  return sort_by_date(own, work) && link_launches(own, work) && link_waits(own, work);
}

pl_code pl_kineto_device_ops(pl_kineto_rank *own, pl_error *error) {
  uint32_t n_hosts = 0;
  while (n_hosts < own->kineto->n_threads && !own->kineto->threads[n_hosts].is_device)
    n_hosts++;
  device_work work = {.n_calls = own->first_event[n_hosts], .n = own->kineto->n_events - own->first_event[n_hosts]};
  bool good = make(own, &work, n_hosts);
  free(work.keys);
  free(work.tasks);
  free(work.calls);
  free(work.dates_ns);
  free(work.op_of_call);
  free(work.stream_waits);
  free(work.waits);
  free(work.latest);
  free(work.last_call);
  return good ? PL_OK : pl_fail_memory(error, "the ops of a trace");
}
