/* The engine's own state, shared by its files and by nobody else: engine.c (the state machine and the native loop),
 * engine_overlap.c, engine_walk.c and engine_concerns.c (the overlap factor), engine_ready.c (ready streams),
 * engine_spent.c (where the time went).
 *
 * What every task touches is in the graph's packed task record (48 bytes), pl_wait (8 bytes) and one start and one
 * finish; all else is per stream or per device and stays in the first-level cache. Of a rolled graph, whose tasks may
 * be millions, dates are kept as long as somebody looks at them (core/engine/engine_dates.h), and accounts are made
 * while the run goes on. Tasks under way have no record of their own: a stream runs one task at a time, so the slot of
 * a task in the event heap is its first stream, and only tasks without a stream borrow one of the slots behind those.
 */
#ifndef PL_CORE_ENGINE_STATE_H
#define PL_CORE_ENGINE_STATE_H

#include "core/engine/engine.h"
#include "core/engine/engine_dates.h"
#include "core/engine/engine_drift.h"
#include "core/engine/engine_watch.h"
#include "core/engine/event_heap.h"

/* What a task waits for. `last` is the predecessor that finished last so far, of several at one tick the one that
 * explains best (engine.c). */
typedef struct pl_wait {
  uint32_t pending, last;
} pl_wait;

typedef struct pl_balance {
  int64_t bytes, peak_bytes;
} pl_balance;

/* Gradients of all but experts, and of experts: they may travel at once. */
enum { PL_GRADIENT_STREAMS = 2 };

/* Whose collectives take multiprocessors from what computes: experts' exchanges and the tensor group's. */
enum { PL_CROWDING_EXPERT = 0, PL_CROWDING_TENSOR, PL_CROWDING_STREAMS };

/* The compute stream of a device whose segments can be disturbed: by the overlap factor, while something runs on its
 * gradient streams, or by rivals of the communication in its segments. While `walked` is false only `task`, `gradient`,
 * `crowd`, `n_rivals` and the flags mean anything: nothing has been disturbed and no part looked at. */
typedef struct pl_walker {
  uint32_t task;                          /* work on the compute stream, PL_NONE = none */
  uint32_t stream;                        /* the compute stream; holds while there is a task */
  uint32_t gradient[PL_GRADIENT_STREAMS]; /* tasks on the gradient streams, PL_NONE = none */
  uint32_t crowd[PL_CROWDING_STREAMS];    /* tasks on those streams, where they take something; else PL_NONE */
  uint32_t n_rivals;                      /* transfers under way that contend with the communication in its segments */
  bool acts;                              /* a gamma of this device is above zero */
  bool is_crowded[PL_CROWDING_STREAMS];   /* its overlap_exchange, overlap_tensor is */
  bool is_held;  /* the current part is beside a collective of the tensor group, for a place on the device */
  bool contends; /* segments of this device have communication with rivals */
  bool flows;    /* the current part is on the network; said of the first member of a joint segment */
  bool waits;    /* of a joint segment: has got to the current part, a communication that others have not */
  bool walked;   /* the fields below hold */
  bool dirty;    /* in the list of devices to be looked at when the tick ends */
  bool slows[PL_GRADIENT_STREAMS]; /* counted in n_slowing of the gradient transfer */
  uint8_t run_beside;              /* what was beside the run */
  uint32_t part, end_part;
  uint32_t run_end; /* if above `part`: the parts up to it compute and keep the slowdown, and `key` is their end */
  pl_ticks part_start, part_finish;
  pl_ticks rest;    /* ticks of the parts behind the current one */
  pl_ticks key;     /* date that the loop was told; PL_TICKS_NEVER = none */
  pl_ticks updated; /* `remaining` holds as of this tick ... */
  double remaining; /* ticks left at speed 1 */
  double slowdown;  /* ... and shrinks by 1 / slowdown per tick from it */
  /* Of the first member of a joint segment: how many wait for the others, and since when the last of them. */
  uint32_t n_waiting;
  pl_ticks last_arrival;
} pl_walker;

/* A transfer on gradient streams, by its first stream. */
typedef struct pl_gradient_transfer {
  uint32_t task;
  uint32_t network_slot;
  uint32_t n_slowing; /* members whose compute stream runs a computing part */
  bool changed;       /* in the list of those whose speed is to be looked at */
  double speed;
} pl_gradient_transfer;

/* What of the overlap factor and rivals a task has to do with; most have nothing. */
enum {
  PL_CONCERN_WORK = 1,     /* work on the compute stream of a device whose segments can be disturbed */
  PL_CONCERN_GRADIENT = 2, /* is on a gradient stream of a device whose factor acts */
  PL_CONCERN_RIVAL = 4,    /* a transfer that contends with segments */
  PL_CONCERN_CROWD = 8     /* is on a stream of a device that it crowds */
};

typedef struct pl_overlap {
  uint8_t *concerns;               /* per row of the graph */
  pl_walker *walkers;              /* per device */
  pl_gradient_transfer *transfers; /* per stream */
  uint32_t *dirty, n_dirty;        /* devices */
  uint32_t *changed, n_changed;    /* tasks */
  bool uniform;                    /* one overlap_communication for all devices */
  double uniform_speed;
  pl_ticks *extra;   /* [n_devices][PL_CATEGORY_COUNT]: actual minus nominal ticks of parts of many-part segments */
  pl_ticks *waiting; /* [n_devices]: for other members of joint segments */
  /* Per part of the graph, and one more: */
  uint64_t *elapsed;       /* ticks of all parts before it, modulo 2^64 */
  uint32_t *next_transfer; /* the first part from it on that rivals can send to the network */
} pl_overlap;

/* Tasks that are ready but whose streams are not all free, per stream in order of task id. A node is an entry of
 * graph->task_streams. */
typedef struct pl_ready_streams {
  bool *busy;                       /* per stream */
  uint32_t *head, *tail;            /* per stream */
  uint32_t *next, *previous, *task; /* per node */
  uint32_t *freed, n_freed;         /* streams freed since the last round */
  bool *is_freed;
  pl_event_heap cursors; /* per stream, ordered by task: what to look at in this round */
  uint32_t *cursor;      /* per stream: node */
} pl_ready_streams;

struct pl_engine {
  const pl_graph *graph;
  const pl_task *tasks; /* rows */
  const uint32_t *successors;
  pl_ticks *start, *finish;         /* per task; NULL where the graph is rolled ... */
  pl_wait *wait;                    /* ... likewise ... */
  pl_dates *dates;                  /* ... and these are there ... */
  struct pl_running_account *spent; /* ... and this ... */
  const uint8_t *accounted;         /* ... and this, per row: PL_IS_COMPUTED, PL_IS_LISTED */
  pl_balance *balance;              /* per device */
  uint32_t *ready, n_ready;         /* became ready in this round */
  uint32_t *instant, n_instant;     /* tasks of no duration that were started in this round */
  uint32_t n_left;
  bool sorts_ready; /* the order of starts inside a round can be seen */
  bool is_native;
  bool network_touched;
  pl_event_heap heap; /* native loop only */
  pl_network *network;
  pl_ticks network_next;
  uint32_t *free_slot, n_free_slots; /* for tasks without streams */
  pl_overlap *overlap;               /* NULL: no gamma above zero and no rivals */
  pl_ready_streams *streams;         /* NULL: in order */
  pl_watch *watch;                   /* NULL: not told of lanes, or of such that drift */
  pl_drift *drift;                   /* NULL: lanes that drift are not leapt over */
  pl_drift_doubt doubt;              /* why not */
  pl_drift_notes notes;              /* where lanes may drift: what added up, by task */
  pl_part_span *spans;               /* NULL: not asked for */
  uint32_t n_spans;
  const uint8_t *is_edge; /* per row: when one has started, what was asked for is kept; NULL: nothing is to be kept */
  bool keep_is_due;
  bool has_failed; /* it was broken off: the state of an island has not come back */
  uint32_t n_taken_over;
  pl_leaps leaps;    /* that the results tell of */
  pl_ticks makespan; /* so far */
  uint64_t n_events;
  pl_engine_options options;
  pl_engine_host host;
  void *host_data;
  pl_arena *arena;
};

static inline pl_ticks pl_later(pl_ticks now, pl_ticks ticks) {
  return pl_ticks_sum(now, ticks);
}

/* What follows is asked, of rolled graphs, of tasks whose dates are kept. */
static inline uint32_t pl_engine_row(const pl_engine *engine, uint32_t task) {
  return engine->dates == NULL ? task : pl_dates_at(engine->dates, task)->row;
}

static inline const pl_task *pl_engine_task(const pl_engine *engine, uint32_t task) {
  return &engine->tasks[pl_engine_row(engine, task)];
}

/* What a task that has started waited for last; PL_NONE: nothing. */
static inline uint32_t pl_engine_cause(const pl_engine *engine, uint32_t task) {
  return engine->dates == NULL ? engine->wait[task].last : pl_dates_at(engine->dates, task)->last;
}

static inline pl_ticks pl_engine_start(const pl_engine *engine, uint32_t task) {
  return engine->dates == NULL ? engine->start[task] : pl_dates_at(engine->dates, task)->start;
}

static inline pl_ticks pl_engine_finish_of(const pl_engine *engine, uint32_t task) {
  return engine->dates == NULL ? engine->finish[task] : pl_dates_at(engine->dates, task)->finish;
}

/* How many a task waits for; of any. */
static inline uint32_t pl_engine_pending(const pl_engine *engine, uint32_t task) {
  return engine->dates == NULL ? engine->wait[task].pending : pl_dates_pending(engine->dates, task);
}

static inline const uint32_t *pl_task_streams(const pl_engine *engine, const pl_task *task) {
  return engine->graph->task_streams + task->first_stream;
}

/* Ticks in which compute streams stood still, by the communication they are accounted for. */
enum { PL_RECENT_CHARGES = 8 };

typedef struct pl_charges {
  pl_charge *charges;
  uint32_t n, capacity;
  uint32_t (*recent)[PL_RECENT_CHARGES]; /* per device, by row: entry + 1, which the next task of the row adds to */
  /* Of rolled graphs instead, so that there is one of a row and device: entry + 1 by row, and by entry of the next. */
  uint32_t *of_row, *next, next_capacity;
} pl_charges;

/* Ascending; for the short lists of one tick. */
void pl_sort_tasks(uint32_t *tasks, uint32_t count);

/* Tells the loop when `task`, a work, is due; of a joint segment, for the member that has `stream` (which of a foreign
 * loop is the first: such a loop knows no joint segments). */
void pl_engine_set_member_timer(pl_engine *engine, uint32_t task, uint32_t stream, pl_ticks finish);
/* Forgets the date of the task on `stream`; native loop only. */
void pl_engine_clear_timer(pl_engine *engine, uint32_t stream);
/* A communication that no fused task can hide: one that is not on a feature stream. */
static inline bool pl_engine_communicates(const pl_engine *engine, uint32_t task) {
  const pl_task *record = pl_engine_task(engine, task);
  if (record->kind == PL_TASK_WORK || !pl_category_is_communication((pl_category)record->category)) return false;
  if (record->n_streams == 0) return true;
  return engine->graph->streams[engine->graph->task_streams[record->first_stream]].kind != PL_STREAM_FEATURE;
}

/* Starts `task` now: all that it waits for is there. Puts it into engine->instant when it takes no time. */
void pl_engine_start_task(pl_engine *engine, uint32_t task, pl_ticks now);

/* ---- engine_concerns.c ---- */
/* Which of the gradient streams; -1: another one. */
static inline int pl_gradient_stream(const pl_stream *stream) {
  return stream->kind == PL_STREAM_GRADIENT ? 0 : stream->kind == PL_STREAM_EXPERT_GRADIENT ? 1 : -1;
}
/* Which of the streams whose collectives crowd a device; -1: another one. */
static inline int pl_crowding_stream(const pl_stream *stream) {
  return stream->kind == PL_STREAM_EXPERT    ? PL_CROWDING_EXPERT
         : stream->kind == PL_STREAM_FEATURE ? PL_CROWDING_TENSOR
                                             : -1;
}
/* engine->overlap. False: no memory. */
bool pl_overlap_take(pl_engine *engine);

/* In engine_drift.c. While the run goes on, if its lanes may drift: `task` has added to a sum of the device. */
void pl_drift_note(pl_engine *engine, uint32_t task, uint32_t device, uint8_t kind, pl_ticks ticks);

/* An event of `task`; its last one if it ends. */
static inline void pl_engine_count_event(pl_engine *engine, uint32_t task, bool ends) {
  engine->n_events++;
  if (engine->watch != NULL) pl_watch_note_event(engine->watch, task, ends);
  if (!ends && engine->options.drifts) pl_drift_note(engine, task, 0, PL_DRIFT_EVENT, 1);
}

/* ---- engine_overlap.c; all of it needs engine->overlap ---- */
/* `record` is the task's. */
void pl_overlap_note_start(pl_engine *engine, const pl_task *record, uint32_t task, uint32_t network_slot);
void pl_overlap_note_finish(pl_engine *engine, const pl_task *record, uint32_t task);
/* An event of a work task is due. False: only a part of it has ended, and a further date follows when the tick ends. */
bool pl_overlap_is_over(pl_engine *engine, const pl_task *record, uint32_t task, pl_ticks now);
/* The network is through with the current part of a work task. False: as above. */
bool pl_overlap_flow_is_over(pl_engine *engine, uint32_t task, pl_ticks now);
/* All events of the tick are in: new speeds and new dates. */
void pl_overlap_settle(pl_engine *engine, pl_ticks now);

/* ---- engine_ready.c; all but take need engine->streams ---- */
bool pl_ready_streams_take(pl_engine *engine);
void pl_ready_streams_free(pl_engine *engine, uint32_t task);
/* Starts what can be started of engine->ready (sorted) and of those that wait; empties engine->ready. */
void pl_ready_streams_start(pl_engine *engine, pl_ticks now);

/* ---- engine_watch.c; all but take need engine->watch ---- */
bool pl_watch_take(pl_engine *engine);
/* The tick is drained. */
void pl_watch_look(pl_engine *engine, pl_ticks now);
/* Where watch->is_missed: the first phase of an island has shown no recurrence at all, and all that is told of such
 * runs (pl_watch_lag, pl_watch_runs_apart) is known, so that the rest of the run would be in vain. */
bool pl_watch_has_failed(pl_engine *engine);
/* In engine_words.c. */
void pl_watch_write_state(pl_engine *engine, pl_run_state *state);
/* The run is over: of the islands that did not leap the greatest difference in pace between two lanes when their first
 * phase ended, as a share of the slower one's. */
double pl_watch_lag(const pl_engine *engine);
/* The run is over: in an island that did not leap each lane was regular when its first phase ended, at a pace that
 * others do not have. */
bool pl_watch_runs_apart(const pl_engine *engine);

/* ---- engine_leap.c; all need engine->watch ---- */
/* At the tick `leap->to`, when it is drained: puts off what is under way in the island by the time that is leapt over.
 * `state` is the island's at that tick. False, and nothing done: what was looked back on does not allow it. */
bool pl_watch_leap(pl_engine *engine, uint32_t island, uint32_t distance, const pl_run_state *state,
                   const pl_island_leap *leap);
/* The run is over. Puts the dates of tasks and parts back into the time of the shorter run, each as its own island
 * counts, and fills engine->leaps. False: this was not the run with engine->options.n_more periods more. */
bool pl_watch_finish(pl_engine *engine);
/* By how much what ends at `date` was put off in the island. */
pl_ticks pl_watch_put_off(const pl_watched *island, pl_ticks date);
/* Periods after which the state of every island came back; 0: that of one did not. */
uint32_t pl_watch_distance(const pl_engine *engine, int phase);
void pl_watch_take_peaks(const pl_engine *engine, int64_t *peaks); /* per device */

/* ---- engine_drift.c ---- */
/* The run is over. Sets engine->drift; false: lanes that drift cannot be extended by engine->options.n_more periods. */
bool pl_drift_leap(pl_engine *engine);
/* The rest needs engine->drift. */
pl_ticks pl_drift_makespan(const pl_engine *engine);
uint64_t pl_drift_events(const pl_engine *engine); /* that are put in */
/* What the copies of disturbed tasks add. */
void pl_drift_add_notes(const pl_engine *engine, pl_ticks *spent, pl_ticks *idle);
bool pl_drift_take_peaks(const pl_engine *engine, int64_t *peaks); /* per device; false: no memory */
/* In engine_rivals.c. False also where there are too many to be sure. */
bool pl_drift_rivals_keep_apart(const pl_engine *engine, const pl_drift *drift);

/* ---- engine_fork.c ---- */
/* The tick is drained: keeps the state in engine->options.keeps, if it is of use. */
void pl_fork_keep(pl_engine *engine, pl_ticks now);
/* In place of the beginning, from engine->options.from. False: it is of no use, and nothing was done. */
bool pl_fork_go_on(pl_engine *engine);

/* ---- engine_spent.c, engine_running.c ---- */
/* spent: [n_devices][PL_CATEGORY_COUNT] and idle: [n_devices], zeroed. False: no memory. `charges` NULL: not asked for.
 */
bool pl_engine_account(pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle, pl_charges *charges);

/* Where the time goes, found out while the run goes on; needs engine->dates. All but take need engine->spent. */
bool pl_running_take(pl_engine *engine);
enum { PL_IS_COMPUTED = 1 /* on a compute stream */, PL_IS_LISTED = 2 /* a communication that gaps are charged to */ };
void pl_running_note_listed(pl_engine *engine, uint32_t task, const pl_dated *dated);   /* that starts */
void pl_running_note_computed(pl_engine *engine, uint32_t task, const pl_dated *dated); /* that has finished */
/* The clock moves: all of the tick before is known. Forgets dates that nobody will look at. */
void pl_running_settle(pl_engine *engine);
/* The run is over; arguments as above. */
bool pl_running_finish(pl_engine *engine, pl_ticks makespan, pl_ticks *spent, pl_ticks *idle, pl_charges *charges);

#endif
