/* Pushes, pulls and sums as what a rank of dPRO's recorded, and what they wait for. See workloads/formats/byteps.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/growing.h"
#include "workloads/formats/byteps.h"

enum { TOLERANCE_NS = 1000 };

static bool to_server(uint8_t kind) {
  return kind == PL_DPRO_PUSH || kind == PL_DPRO_PULL;
}

static pl_dpro_event event_of(const pl_byteps *own, const pl_byteps_message *m, bool at_server) {
  int64_t flight = m->end_ns - m->start_ns - (to_server(m->kind) ? m->ahead_ns : -m->ahead_ns);
  bool sends = to_server(m->kind) != at_server;
  if (flight < 0) flight = 0;
  return (pl_dpro_event){.start_ns = sends ? m->start_ns : m->end_ns - flight,
                         .duration_ns = flight,
                         .step = m->step,
                         .name = m->tensor,
                         .tensors = m->tensor,
                         .channel = at_server ? m->worker : m->server,
                         .peer = (int32_t)(at_server ? m->worker : own->first_server + m->server),
                         .op = PL_NONE,
                         .kind = m->kind,
                         .sends = sends};
}

static bool add(pl_dpro *rank, const pl_dpro_event *event) {
  if (!PL_GROW(rank->events, rank->n_events, rank->event_room)) return false;
  rank->events[rank->n_events++] = *event;
  return true;
}

/* ---- workers ---- */

typedef struct span {
  int64_t number, start_ns, end_ns;
} span;

static int by_date(const void *a_, const void *b_) {
  const span *a = a_, *b = b_;
  return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Of each step from its first op of computing to that of the next; the last ends with all. NULL: no memory. */
static span *steps_of(const pl_dpro *rank, uint32_t *n) {
  span *all = malloc(((size_t)rank->n_events + 1) * sizeof *all);
  int64_t last = INT64_MIN;
  *n = 0;
  for (uint32_t k = 0; all != NULL && k < rank->n_events; k++) {
    const pl_dpro_event *event = &rank->events[k];
    uint32_t s = 0;
    if (event->start_ns + event->duration_ns > last) last = event->start_ns + event->duration_ns;
    if (event->step < 0) continue;
    for (s = *n; s > 0 && all[s - 1].number != event->step;) /* the last ones are found first */
      s--;
    if (s == 0) all[(*n)++] = (span){event->step, event->start_ns, 0};
    if (s > 0 && event->start_ns < all[s - 1].start_ns) all[s - 1].start_ns = event->start_ns;
  }
  if (all == NULL) return NULL;
  if (*n > 1) qsort(all, *n, sizeof *all, by_date);
  for (uint32_t s = 0; s < *n; s++)
    all[s].end_ns = s + 1 < *n ? all[s + 1].start_ns : last;
  return all;
}

pl_code pl_byteps_add_worker(pl_byteps *own, int32_t worker, pl_dpro *rank, pl_error *error) {
  uint32_t n_steps, n_outside = 0;
  span *steps = steps_of(rank, &n_steps);
  bool good = steps != NULL;
  for (uint32_t k = 0; good && k < own->n_messages; k++) {
    pl_byteps_message *m = &own->messages[k];
    if (m->worker != worker) continue;
    m->is_placed = true;
    int64_t date = to_server(m->kind) ? m->start_ns : m->end_ns; /* by the worker's clock */
    uint32_t s = n_steps;
    while (s > 0 && steps[s - 1].start_ns > date)
      s--;
    bool inside = n_steps == 0 || (s > 0 && date < steps[s - 1].end_ns);
    m->step = inside ? (n_steps > 0 ? steps[s - 1].number : -1) : PL_BYTEPS_OUTSIDE;
    n_outside += !inside;
    if (!inside) continue;
    const pl_dpro_event event = event_of(own, m, false);
    good = add(rank, &event);
  }
  free(steps);
  if (!good) return pl_fail_memory(error, rank->path);
  rank->is_byteps = true;
  if (n_outside > 0)
    pl_trace_add_note(rank->trace, "%s: rank %lld: %u messages outside of its steps, left out", rank->path,
                      (long long)rank->number, n_outside);
  return PL_OK;
}

/* ---- servers ---- */

/* Sums that are pulled, by tensor and date, of one server. */
static int by_tensor_and_date(const void *a_, const void *b_, void *messages_) {
  const pl_byteps_message *messages = messages_;
  const pl_byteps_message *a = &messages[*(const uint32_t *)a_], *b = &messages[*(const uint32_t *)b_];
  if (a->tensor != b->tensor) return a->tensor < b->tensor ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a > b) - (a < b);
}

/* The step whose sum is pulled next after the work. */
static int64_t step_of_work(const pl_byteps *own, const uint32_t *pulls, uint32_t n, const pl_byteps_work *work) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const pl_byteps_message *m = &own->messages[pulls[middle]];
    if (m->tensor < work->tensor || (m->tensor == work->tensor && m->start_ns + TOLERANCE_NS < work->end_ns))
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < n && own->messages[pulls[low]].tensor == work->tensor;
  return found ? own->messages[pulls[low]].step : PL_BYTEPS_OUTSIDE;
}

static bool add_works(const pl_byteps *own, int32_t server, const uint32_t *pulls, uint32_t n, pl_dpro *rank) {
  for (uint32_t k = 0; k < own->n_works; k++) {
    const pl_byteps_work *work = &own->works[k];
    int64_t step = work->server == server ? step_of_work(own, pulls, n, work) : PL_BYTEPS_OUTSIDE;
    if (step == PL_BYTEPS_OUTSIDE) continue;
    const pl_dpro_event event = {.start_ns = work->start_ns,
                                 .duration_ns = work->end_ns - work->start_ns,
                                 .step = step,
                                 .name = work->name,
                                 .tensors = work->tensor,
                                 .thread = work->thread != PL_NONE ? work->thread : work->name,
                                 .peer = -1,
                                 .op = PL_NONE,
                                 .kind = PL_DPRO_WORK};
    if (!add(rank, &event)) return false;
  }
  return true;
}

/* Messages first .. end are the server's. */
static bool fill_server(const pl_byteps *own, uint32_t first, uint32_t end, pl_dpro *rank) {
  uint32_t *pulls = malloc(((size_t)(end - first) + 1) * sizeof *pulls), n = 0;
  bool good = pulls != NULL;
  for (uint32_t k = first; good && k < end; k++) {
    const pl_byteps_message *m = &own->messages[k];
    if (m->kind == PL_DPRO_PULLED) pulls[n++] = k;
    if (!m->is_placed || m->step == PL_BYTEPS_OUTSIDE) continue;
    const pl_dpro_event event = event_of(own, m, true);
    good = add(rank, &event);
  }
  if (good && n > 1) qsort_r(pulls, n, sizeof *pulls, by_tensor_and_date, own->messages);
  good = good && add_works(own, own->messages[first].server, pulls, n, rank);
  free(pulls);
  return good;
}

static pl_code add_server(const pl_byteps *own, uint32_t first, uint32_t end, const char *path, pl_trace *trace,
                          pl_error *error) {
  int32_t server = own->messages[first].server;
  pl_dpro rank = {
      .path = path, .number = own->first_server + server, .trace = trace, .is_byteps = true, .is_server = true};
  pl_code code = fill_server(own, first, end, &rank) ? PL_OK : pl_fail_memory(error, path);
  if (code == PL_OK && rank.n_events > 0) {
    char text[32];
    int n = snprintf(text, sizeof text, "server_%d", server);
    code = pl_dpro_finish(&rank, error);
    uint32_t host = pl_trace_name(trace, text, (size_t)n);
    if (code == PL_OK && host == PL_NONE) code = pl_fail_memory(error, path);
    if (code == PL_OK) trace->ranks[trace->n_ranks - 1].host = host;
    pl_trace_add_note(trace, "%s: %s is rank %lld", path, text, (long long)rank.number);
  }
  free(rank.events);
  return code;
}

pl_code pl_byteps_add_servers(const pl_byteps *own, const char *path, pl_trace *trace, pl_error *error) {
  if (own->is_cut) pl_trace_add_note(trace, "%s: BytePS' timelines end too early; read as far as they go", path);
  if (own->n_unpaired > 0)
    pl_trace_add_note(trace, "%s: BytePS' timelines: %u begins without an end, or ends without a begin, left out", path,
                      own->n_unpaired);
  uint32_t n_strangers = 0;
  for (uint32_t k = 0; k < own->n_messages; k++)
    n_strangers += !own->messages[k].is_placed;
  if (n_strangers > 0)
    pl_trace_add_note(trace, "%s: %u messages of workers that were not recorded, left out", path, n_strangers);
  for (uint32_t a = 0, b; a < own->n_messages; a = b) {
    for (b = a; b < own->n_messages && own->messages[b].server == own->messages[a].server;)
      b++;
    PL_TRY(add_server(own, a, b, path, trace, error));
  }
  return PL_OK;
}

/* ---- what waits for what ---- */

static int by_tensor(const void *a_, const void *b_, void *events_) {
  const pl_dpro_event *events = events_;
  uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
  const pl_dpro_event *x = &events[a], *y = &events[b];
  if (x->tensors != y->tensors) return x->tensors < y->tensors ? -1 : 1;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return (a > b) - (a < b); /* by start */
}

static int64_t end_of(const pl_dpro_event *event) {
  return event->start_ns + event->duration_ns;
}

/* Of a tensor in a step: whom `after` waits for. A sum takes in what came last before it. */
static bool waits_for(const pl_dpro_event *before, const pl_dpro_event *after, const pl_dpro_event *last_push,
                      bool has_works) {
  bool same = before->peer == after->peer;
  switch (after->kind) {
  case PL_DPRO_PUSHED: /* the server acknowledges what this worker pushed */
    return after->sends && before->kind == PL_DPRO_PUSH && same;
  case PL_DPRO_PULL: /* a worker asks once it is acknowledged */
    return after->sends && before->kind == PL_DPRO_PUSHED && same;
  case PL_DPRO_WORK:
    return before->kind == PL_DPRO_WORK || before == last_push;
  case PL_DPRO_PULLED:
    return after->sends && ((before->kind == PL_DPRO_PULL && same) || before->kind == PL_DPRO_WORK ||
                            (before->kind == PL_DPRO_PUSH && !has_works));
  default:
    return false;
  }
}

static bool link_one(pl_dpro *rank, const uint32_t *order, uint32_t first, uint32_t end, uint32_t k, bool has_works) {
  const pl_dpro_event *events = rank->events, *after = &events[order[k]], *last_push = NULL;
  for (uint32_t o = first; o < end; o++) {
    const pl_dpro_event *other = &events[order[o]];
    if (other->kind != PL_DPRO_PUSH || other->sends || end_of(other) > after->start_ns + TOLERANCE_NS) continue;
    if (last_push == NULL || end_of(other) > end_of(last_push)) last_push = other;
  }
  for (uint32_t o = first; o < end; o++) {
    const pl_dpro_event *before = &events[order[o]];
    if (o == k || !waits_for(before, after, last_push, has_works)) continue;
    if (before->kind == PL_DPRO_WORK && after->kind == PL_DPRO_WORK && o > k) continue;
    if (end_of(before) > after->start_ns + TOLERANCE_NS) {
      rank->n_contradictions++;
      continue;
    }
    if (pl_trace_add_edge(rank->trace, before->op, after->op, false) == PL_NONE) return false;
  }
  return true;
}

pl_code pl_byteps_link(pl_dpro *rank, pl_error *error) {
  uint32_t *order = malloc(((size_t)rank->n_events + 1) * sizeof *order), n = 0;
  bool good = order != NULL;
  for (uint32_t k = 0; good && k < rank->n_events; k++)
    if (rank->events[k].kind >= PL_DPRO_PUSH && rank->events[k].op != PL_NONE) order[n++] = k;
  if (good && n > 1) qsort_r(order, n, sizeof *order, by_tensor, rank->events);
  for (uint32_t first = 0, end; good && first < n; first = end) {
    const pl_dpro_event *a = &rank->events[order[first]];
    bool has_works = false;
    for (end = first;
         end < n && rank->events[order[end]].tensors == a->tensors && rank->events[order[end]].step == a->step; end++)
      has_works |= rank->events[order[end]].kind == PL_DPRO_WORK;
    for (uint32_t k = first; good && k < end; k++)
      good = link_one(rank, order, first, end, k, has_works);
  }
  free(order);
  return good ? PL_OK : pl_fail_memory(error, rank->path);
}
