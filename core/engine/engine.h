/* The engine: runs a graph to a timeline. A state machine that reacts to completions; it never owns the clock.
 *
 * Two ways to drive it. The native loop (pl_engine_run) merges the engine's own event heap with the network's next
 * event. A foreign loop (SimGrid's) calls pl_engine_begin, then pl_engine_complete for each task that its timers and
 * transfers report, and pl_engine_flush once all completions of an instant are in; the engine answers through
 * pl_engine_host with what to start, stop or re-time. A timer that fires may be the end of a part only: the loop calls
 * pl_engine_complete all the same, and flush asks for the next date of that task. Tasks of no duration never reach the
 * host. Only the native loop runs graphs with joint or disturbed segments: they have more dates than tasks, or take
 * back one.
 *
 * Semantics. All events of one tick are drained before rates change, in rounds: first every completion by increasing
 * task id, memory given back; then every start that became possible, by increasing task id, memory taken; tasks of no
 * duration complete in the next round of the same tick. Dates that the network or the overlap factor then set to the
 * tick itself are drained likewise before the clock moves. The members of a joint segment go through its parts each
 * by itself and wait for each other where communication begins; that wait is idle time. A task starts when its
 * predecessors have finished (and, with ready streams, all its streams are free: each round goes through the waiting
 * tasks by increasing id and starts those whose streams are all free; one that has to wait holds back no other).
 *
 * Overlap factor: while at least one task is running on a device's gradient stream, the computing parts of its
 * compute stream progress at speed 1 / (1 + overlap_compute); while a computing part runs on any member's compute
 * stream, a transfer on gradient streams progresses at the smallest 1 / (1 + overlap_communication) over those members.
 * While a task runs on a device's stream of experts, the crowded parts of its compute stream (pl_part.is_crowded) take
 * 1 + overlap_exchange times as long, on top of that; the exchange keeps its pace. Likewise overlap_tensor and the
 * stream of the tensor group's collectives. With `waits_for_place` such a part is of thread blocks that take a place
 * each for as long as it takes: beside a collective some have none, begin when it ends, or when the others do, and need
 * the whole time then. A part of W ticks that has begun beside a collective of C <= W ends at W + C, beside a longer
 * one at W (1 + overlap_tensor), a whole number of rounds. Fixed delays are never slowed.
 * Progress under a changed speed is kept in double and every finish date rounded to ticks when it is made.
 *
 * Leaps. Who made the graph from lists of steps that recur (core/cluster/lanes.h) may ask for the result of the graph
 * of longer lists: with `n_more` periods more in each phase. The native loop looks whether the state of the run,
 * relative to now, comes back (core/graph/run_state.h), that of each island of lanes by itself
 * (core/engine/engine_islands.h). Where it does, the run of the longer lists is this one with the time in between
 * repeated: the loop puts off what is under way by the time of the repetitions and goes on, and everything that adds up
 * is extended: makespan, events, accounts, charges, peaks of memory. What is told by task (start, finish, parts) stays
 * in the time of the shorter run, as the task's island counts it: how often a stretch or a task counts is said by
 * pl_leaps_weight of the task and the tick at which it ends. Where lanes of an island run at paces of their own the
 * state never comes back; with `drifts` each is extended by itself (core/engine/engine_drift.h).
 */
#ifndef PL_CORE_ENGINE_H
#define PL_CORE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/base/ticks.h"
#include "core/cluster/lanes.h"
#include "core/graph/graph.h"
#include "core/graph/network.h"

struct pl_graph_heads;                        /* core/graph/graph_heads.h */
typedef struct pl_engine_fork pl_engine_fork; /* core/engine/engine_fork.h */

typedef struct pl_engine_options {
  bool record_parts;     /* keep when each part of each work task ran (for timelines) */
  bool record_charges;   /* keep for which communication the gaps of the compute streams are accounted */
  const pl_lanes *lanes; /* of the graph: the result is that of longer lists; NULL: that of the graph */
  uint64_t n_more;       /* periods by which each phase of the lists is longer */
  bool drifts;           /* every lane may have a pace of its own; else the state of the whole run has to come back */
  bool plays_on;         /* tests: also when it is known that the state does not come back */
  uint64_t left_out;     /* tests: fields of the state (core/graph/run_state.h) that are not compared */
  bool sweeps_always;    /* tests: dates of rolled graphs are forgotten as soon as they can be */
  /* Native loop only; NULL: begins at tick 0, and keeps nothing. `from` is of another graph, of which it is not known
   * whether its heads are alike; `heads` are those of this graph, and those that `keeps` was made with. */
  const struct pl_graph_heads *heads;
  const pl_engine_fork *from;
  pl_engine_fork *keeps;
} pl_engine_options;

/* The time (from, to] comes `times` times more. */
typedef struct pl_leap {
  pl_ticks from, to;
  uint64_t times;
} pl_leap;

typedef struct pl_leaps {
  const pl_leap *leaps;     /* n per island, in order */
  uint32_t n, n_islands;    /* n = 0: nothing was leapt over in this way */
  const uint8_t *island_of; /* per task; NULL: there is one island */
  /* Where lanes drift: per task whether it comes `n_copies` times more; else NULL. */
  const bool *is_copied;
  uint64_t n_copies;
} pl_leaps;

/* How often that of `task` which ends at `date` comes in the extended run. */
static inline uint64_t pl_leaps_weight(const pl_leaps *leaps, uint32_t task, pl_ticks date) {
  uint64_t weight = 1;
  if (leaps->is_copied != NULL) return leaps->is_copied[task] ? 1 + leaps->n_copies : 1;
  const pl_leap *own = leaps->island_of == NULL ? leaps->leaps : leaps->leaps + leaps->island_of[task] * leaps->n;
  for (uint32_t at = 0; at < leaps->n; at++)
    if (date > own[at].from && date <= own[at].to) weight += own[at].times;
  return weight;
}

/* What adds up over the tasks of a row of a rolled graph. */
typedef struct pl_row_sums {
  uint64_t start, finish; /* ticks, modulo 2^64 */
  uint64_t hash, summand; /* pl_hash_pair, pl_digest_summand of the dates */
  uint32_t n;             /* that have finished */
} pl_row_sums;

/* One contiguous run of a part; only recorded on request. */
typedef struct pl_part_span {
  uint32_t task, part; /* index into graph->parts */
  uint32_t member;     /* which of the task's streams */
  pl_ticks start, finish;
} pl_part_span;

/* Time in which the compute stream of `device` stood still, accounted for communication `task`, or several that share
 * its row: by rule 2 or 3 of `spent` below. Only recorded on request. */
typedef struct pl_charge {
  uint32_t device, task;
  pl_ticks ticks; /* > 0 */
} pl_charge;

/* Why lanes that drift could not be extended. */
typedef enum pl_drift_doubt {
  PL_DRIFT_NO_DOUBT = 0,
  PL_DRIFT_IRREGULAR, /* a lane was not regular yet */
  PL_DRIFT_UNORDERED, /* some that wait for each other have not found their order yet: a longer run often shows it */
  PL_DRIFT_CONTENDED  /* lanes of different pace contend: a longer run seldom helps */
} pl_drift_doubt;

typedef struct pl_engine_result {
  /* With lanes: false if no recurrence was found that allows to extend the run; then nothing else in here holds but
   * these. */
  bool is_whole;
  int n_phases;
  /* Periods after which the state came back, by phase; 0: it did not, and the run may have been broken off there. */
  uint32_t distance[PL_LANE_PHASES];
  bool runs_apart; /* it did not, and the lanes are regular at different paces: it will not for long */
  double lag;      /* it did not: how much slower, per period, the slowest lane was than the fastest one, as a share */
  pl_drift_doubt doubt; /* with `drifts`: why not */
  pl_leaps leaps;
  pl_ticks makespan;
  /* Per task. Of a rolled graph NULL, for dates are not kept, and `rows` is there. */
  const pl_ticks *start, *finish;
  const pl_row_sums *rows;        /* per row of the graph */
  const int64_t *peak_bytes;      /* per graph device, resident included */
  const pl_part_span *part_spans; /* ordered by (start, task, part, member); NULL unless asked for */
  uint32_t n_part_spans;
  uint64_t n_events;     /* completions handled */
  uint32_t n_dates;      /* of a rolled graph: tasks whose dates were kept at a time, at most */
  uint32_t n_taken_over; /* tasks that had finished where the run went on from another one */
  uint64_t digest;       /* over (start, finish) of every task and the peaks */
  /* How the makespan is spent on the compute stream of each graph device; row-major [n_devices][PL_CATEGORY_COUNT],
   * plus idle. For every device the sum over categories + idle = makespan, exactly. Each moment goes to the first that
   * holds:
   *  1. A task or part runs on the compute stream: its category. Slow-down by overlap is included; TENSOR, PIPELINE and
   *     DATA are the communication parts of segments, during which the compute stream stands still.
   *  2. A communication (a transfer or delay of such a category) runs on the device's feature stream: its category.
   *  3. In the gap before the next task of the compute stream or communication of the feature stream: go back from it
   * to the predecessor that finished last (ties: the communication that started first) as long as that is a
   *     communication and not one on the feature streams of other devices alone; the one that runs at the moment gives
   *     its category. After the last of them: DATA while a communication runs on the device's gradient stream.
   *  4. Idle: pipeline bubble, waiting for the other members of a collective.
   * The same for a fused segment with a computing part and for its parts as tasks of their own. */
  const pl_ticks *spent;
  const pl_ticks *idle;
  /* What of `spent` is not in a work task, by task; in no order that means anything. A device's parts (part_spans) and
   * charges and idle are its makespan, exactly. NULL unless asked for. */
  const pl_charge *charges;
  uint32_t n_charges;
} pl_engine_result;

/* Runs `graph` on `network` (made for graph->transfers; NULL is allowed when the graph has no transfer). The result's
 * arrays are taken from `arena`. Cost O((tasks + edges) log tasks) plus the network's. Fails only on lack of memory or
 * if tasks remain that can never start; PL_UNSUPPORTED if it ends at PL_TICKS_MAX or later. */
pl_code pl_engine_run(const pl_graph *graph, pl_network *network, const pl_engine_options *options, pl_arena *arena,
                      pl_engine_result *result, pl_error *error);

/* ---- for a foreign loop ---- */
typedef struct pl_engine pl_engine;

typedef struct pl_engine_host {
  /* Report completion of `task` at tick `finish`; called again with another date when it moves. */
  void (*timer)(void *host, uint32_t task, pl_ticks finish);
  void (*transfer)(void *host, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes);
  /* Overlap factor of a running transfer. A host that cannot re-time transfers refuses graphs with
   * overlap_communication > 0 beforehand. */
  void (*transfer_speed)(void *host, pl_ticks now, uint32_t task, double speed);
} pl_engine_host;

pl_engine *pl_engine_take(const pl_graph *graph, const pl_engine_options *options, const pl_engine_host *host,
                          void *host_data, pl_arena *arena); /* NULL: no memory */
void pl_engine_begin(pl_engine *engine);                     /* starts at tick 0 */
void pl_engine_complete(pl_engine *engine, uint32_t task, pl_ticks now);
void pl_engine_flush(pl_engine *engine, pl_ticks now);
bool pl_engine_is_done(const pl_engine *engine);
pl_code pl_engine_finish(pl_engine *engine, pl_engine_result *result, pl_error *error);

#endif
