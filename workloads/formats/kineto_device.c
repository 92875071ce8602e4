/* A rank with GPU: the calls of its host threads and what they launch. See workloads/formats/kineto_rank.h.
 *
 * What a trace says: which call launched a kernel (correlation). What it says only in newer versions, if at all, is
 * taken from order and dates: a kernel whose thread called cudaStreamWaitEvent since its last launch waits for what had
 * then been launched last on each other stream, if that ended before the kernel began (else it cannot have waited for
 * it); a call that waits for the device waits for what ended last while it waited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/kineto_rank.h"

typedef struct launch {
  uint32_t correlation, call, task; /* places in the order; call PL_NONE: not recorded */
  int64_t date_ns;                  /* of the call */
  uint32_t thread;                  /* of the call */
} launch;

typedef struct device_work {
  launch *launches; /* of the device's tasks, by correlation, then by date */
  uint32_t n;
  uint32_t *latest; /* per thread: launch that came last on that stream; PL_NONE */
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

/* A call inside of another (the driver's inside of the runtime's) is part of that one. */
static bool add_calls(pl_kineto_rank *own, uint32_t thread) {
  uint32_t stream = PL_NONE, outer = PL_NONE;
  int64_t end = INT64_MIN;
  for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    if (!is_call(event)) continue;
    if (event->start_ns < end) {
      own->op[k] = outer;
      continue;
    }
    if (stream == PL_NONE) stream = add_stream(own, thread);
    bool waits = waits_for_device(own->trace->names[event->name]);
    pl_trace_op op = {event->start_ns,
                      event->duration_ns,
                      event->name,
                      stream,
                      PL_NONE,
                      PL_NONE,
                      (uint8_t)(waits ? PL_TRACE_WAIT : PL_TRACE_CALL)};
    outer = own->op[k] = stream == PL_NONE ? PL_NONE : pl_trace_add_op(own->trace, op);
    if (outer == PL_NONE) return false;
    end = pl_kineto_end(event);
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

static const launch *find_launch(const device_work *work, uint32_t correlation) {
  uint32_t low = 0, high = work->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (work->launches[middle].correlation < correlation)
      low = middle + 1;
    else
      high = middle;
  }
  return low < work->n && work->launches[low].correlation == correlation ? &work->launches[low] : NULL;
}

static bool add_tasks(pl_kineto_rank *own, const device_work *work, uint32_t thread) {
  uint32_t stream = add_stream(own, thread);
  for (uint32_t k = own->first_event[thread]; stream != PL_NONE && k < own->first_event[thread + 1]; k++) {
    const pl_kineto_event *event = pl_kineto_at(own, k);
    const char *name = own->trace->names[event->name];
    pl_trace_op op = {event->start_ns, event->duration_ns, event->name, stream, PL_NONE, PL_NONE, PL_TRACE_COMPUTE};
    if (event->category == PL_KINETO_COPY) op.kind = PL_TRACE_COPY;
    if (event->communication > 0 || contains(name, "ncclKernel", "ncclDevKernel") ||
        contains(name, "rcclK", "oneccl")) {
      const launch *by = event->correlation != 0 ? find_launch(work, event->correlation) : NULL;
      uint32_t around = by != NULL && by->call != PL_NONE ? message_around(own, by->thread, by->date_ns) : 0;
      pl_trace_op_kind kind;
      op.message = pl_kineto_message(own, name, event->communication, around, &kind);
      op.kind = (uint8_t)kind;
      if (op.message == PL_NONE) return false;
    }
    own->op[k] = pl_trace_add_op(own->trace, op);
    if (own->op[k] == PL_NONE) return false;
  }
  return stream != PL_NONE;
}

/* ---- who launched what ---- */

static int by_correlation(const void *a_, const void *b_) {
  const launch *a = a_, *b = b_;
  if (a->correlation != b->correlation) return a->correlation < b->correlation ? -1 : 1;
  return a->task < b->task ? -1 : a->task > b->task;
}

static int by_date(const void *a_, const void *b_) {
  const launch *a = a_, *b = b_;
  if (a->date_ns != b->date_ns) return a->date_ns < b->date_ns ? -1 : 1;
  return a->task < b->task ? -1 : a->task > b->task;
}

static void collect(const pl_kineto_rank *own, device_work *work) {
  for (uint32_t thread = 0; thread < own->kineto->n_threads; thread++) {
    if (!own->kineto->threads[thread].is_device) continue;
    for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
      uint32_t correlation = pl_kineto_at(own, k)->correlation;
      work->launches[work->n++] = (launch){correlation, PL_NONE, k, 0, 0};
    }
  }
  qsort(work->launches, work->n, sizeof *work->launches, by_correlation);
  for (uint32_t thread = 0; thread < own->kineto->n_threads; thread++)
    for (uint32_t k = own->first_event[thread]; k < own->first_event[thread + 1]; k++) {
      const pl_kineto_event *event = pl_kineto_at(own, k);
      if (!is_call(event) || event->correlation == 0) continue;
      launch *found = (launch *)find_launch(work, event->correlation);
      for (; found != NULL && found < work->launches + work->n && found->correlation == event->correlation; found++)
        if (found->call == PL_NONE) {
          found->call = k;
          found->date_ns = event->start_ns;
          found->thread = thread;
        }
    }
}

static bool add_edge(pl_kineto_rank *own, uint32_t before, uint32_t after, bool from_start) {
  if (before == PL_NONE || after == PL_NONE || before == after) return true;
  return pl_trace_add_edge(own->trace, before, after, from_start) != PL_NONE;
}

static bool has_wait_between(const pl_kineto_rank *own, uint32_t from, uint32_t to) {
  for (uint32_t k = to; k-- > from;)
    if (is_call(pl_kineto_at(own, k)) && is_stream_wait(own->trace->names[pl_kineto_at(own, k)->name])) return true;
  return false;
}

/* Launches in the order of their calls. */
static bool link_launches(pl_kineto_rank *own, device_work *work, uint32_t *last_call) {
  enum { TOLERANCE_NS = 1000 }; /* of the profiler's dates */
  uint32_t n_threads = own->kineto->n_threads;
  for (uint32_t t = 0; t < n_threads; t++) {
    work->latest[t] = PL_NONE;
    last_call[t] = own->first_event[t];
  }
  for (uint32_t l = 0; l < work->n; l++) {
    const launch *now = &work->launches[l];
    if (now->call == PL_NONE) continue;
    const pl_kineto_event *task = pl_kineto_at(own, now->task);
    if (!add_edge(own, own->op[now->call], own->op[now->task], true)) return false;
    if (has_wait_between(own, last_call[now->thread], now->call))
      for (uint32_t t = 0; t < n_threads; t++) {
        if (t == task->thread || work->latest[t] == PL_NONE) continue;
        uint32_t other = work->launches[work->latest[t]].task;
        if (pl_kineto_end(pl_kineto_at(own, other)) <= task->start_ns + TOLERANCE_NS &&
            !add_edge(own, own->op[other], own->op[now->task], false))
          return false;
      }
    last_call[now->thread] = now->call;
    work->latest[task->thread] = l;
  }
  return true;
}

typedef struct dated {
  int64_t end_ns;
  uint32_t launch;
} dated;

static int by_end(const void *a_, const void *b_) {
  const dated *a = a_, *b = b_;
  if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
  return a->launch < b->launch ? -1 : a->launch > b->launch;
}

/* A call that waits ends after the task that ended last while it waited. */
static bool link_wait(pl_kineto_rank *own, const device_work *work, const dated *ends, uint32_t place) {
  enum { TOLERANCE_NS = 1000 };
  const pl_kineto_event *call = pl_kineto_at(own, place);
  int64_t until = pl_kineto_end(call) + TOLERANCE_NS;
  uint32_t low = 0, high = work->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (ends[middle].end_ns <= until)
      low = middle + 1;
    else
      high = middle;
  }
  while (low-- > 0 && ends[low].end_ns > call->start_ns) {
    const launch *by = &work->launches[ends[low].launch];
    if (by->call == PL_NONE || by->date_ns > pl_kineto_end(call)) continue;
    return add_edge(own, own->op[by->task], own->op[place], false);
  }
  return true;
}

static bool link_waits(pl_kineto_rank *own, const device_work *work, dated *ends) {
  for (uint32_t l = 0; l < work->n; l++)
    ends[l] = (dated){pl_kineto_end(pl_kineto_at(own, work->launches[l].task)), l};
  qsort(ends, work->n, sizeof *ends, by_end);
  for (uint32_t t = 0; t < own->kineto->n_threads; t++) {
    if (own->kineto->threads[t].is_device) continue;
    for (uint32_t k = own->first_event[t]; k < own->first_event[t + 1]; k++) {
      uint32_t op = own->op[k];
      if (op == PL_NONE || !is_call(pl_kineto_at(own, k)) || own->trace->ops[op].kind != PL_TRACE_WAIT) continue;
      if (!link_wait(own, work, ends, k)) return false;
    }
  }
  return true;
}

static bool make(pl_kineto_rank *own, device_work *work, dated *ends, uint32_t *last_call) {
  collect(own, work);
  for (uint32_t thread = 0; thread < own->kineto->n_threads; thread++)
    if (!own->kineto->threads[thread].is_device && !add_calls(own, thread)) return false;
  for (uint32_t thread = 0; thread < own->kineto->n_threads; thread++)
    if (own->kineto->threads[thread].is_device && !add_tasks(own, work, thread)) return false;
  qsort(work->launches, work->n, sizeof *work->launches, by_date);
  uint32_t n_orphans = 0;
  for (uint32_t l = 0; l < work->n; l++)
    n_orphans += work->launches[l].call == PL_NONE;
  if (n_orphans > 0)
    pl_trace_add_note(own->trace, "%s: rank %lld: %u of %u device tasks have no call that launched them",
                      own->kineto->path, (long long)own->number, n_orphans, work->n);
  return link_launches(own, work, last_call) && link_waits(own, work, ends);
}

pl_code pl_kineto_device_ops(pl_kineto_rank *own, pl_error *error) {
  uint32_t n = 0, n_threads = own->kineto->n_threads;
  for (uint32_t t = 0; t < n_threads; t++)
    if (own->kineto->threads[t].is_device) n += own->first_event[t + 1] - own->first_event[t];
  device_work work = {.launches = calloc(n + 1, sizeof(launch)), .latest = calloc(n_threads + 1, sizeof(uint32_t))};
  dated *ends = calloc(n + 1, sizeof *ends);
  uint32_t *last_call = calloc(n_threads + 1, sizeof *last_call);
  bool good = work.launches != NULL && work.latest != NULL && ends != NULL && last_call != NULL &&
              make(own, &work, ends, last_call);
  free(work.launches);
  free(work.latest);
  free(ends);
  free(last_call);
  return good ? PL_OK : pl_fail_memory(error, "the ops of a trace");
}
