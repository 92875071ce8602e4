/* The engine: runs a graph to a timeline. A state machine that reacts to completions; it never owns the clock.
 *
 * Two ways to drive it. The native loop (pl_engine_run) merges the engine's own event heap with the network's next
 * event. A foreign loop (SimGrid's) calls pl_engine_begin, then pl_engine_complete for each task that its timers and
 * transfers report, and pl_engine_flush once all completions of an instant are in; the engine answers through
 * pl_engine_host with what to start, stop or re-time.
 *
 * Semantics. All events of one tick are drained before rates change. Order inside a tick: (time, task id). A task starts
 * when its predecessors have finished (and, with ready streams, all its streams are free). Overlap factor: while at least
 * one task is running on a device's gradient stream, the computing parts of its compute stream progress at speed
 * 1 / (1 + overlap_compute); while a computing part runs on any member's compute stream, a transfer on gradient streams
 * progresses at the smallest 1 / (1 + overlap_communication) over those members. Fixed delays are never slowed.
 * Progress under a changed speed is kept in double and every finish date rounded to ticks when it is made.
 */
#ifndef PL_CORE_ENGINE_H
#define PL_CORE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/graph.h"
#include "core/network.h"
#include "core/status.h"
#include "core/ticks.h"

typedef struct pl_engine_options {
  bool record_parts; /* keep when each part of each work task ran (for timelines) */
} pl_engine_options;

/* One contiguous run of a part; only recorded on request. */
typedef struct pl_part_span {
  uint32_t task, part; /* index into graph->parts */
  pl_ticks start, finish;
} pl_part_span;

typedef struct pl_engine_result {
  pl_ticks makespan;
  const pl_ticks *start, *finish;   /* per task */
  const int64_t *peak_bytes;        /* per graph device, resident included */
  const pl_part_span *part_spans;   /* ordered by (start, task, part); NULL unless asked for */
  uint32_t n_part_spans;
  uint64_t n_events;                /* completions handled */
  uint64_t digest;                  /* over (start, finish) of every task and the peaks */
  /* How the makespan is spent on the compute stream of each graph device; row-major [n_devices][PL_CATEGORY_COUNT],
   * plus idle. For every device the sum over categories + idle_ticks = makespan, exactly.
   * Categories FORWARD..OPTIMIZER: busy computing (slow-down by overlap included). TENSOR, PIPELINE, DATA: the compute
   * stream stood still for communication of that kind: communication parts of its own segments; and of each gap before
   * a task, the part during which the predecessor that finished last was itself a running communication (ties: the
   * lowest task id). The tail after the device's last compute task is DATA while a gradient communication of this
   * device runs. Everything else is idle (pipeline bubble, waiting for unlike members). */
  const pl_ticks *spent;
  const pl_ticks *idle;
} pl_engine_result;

/* Runs `graph` on `network` (made for graph->transfers; NULL is allowed when the graph has no transfer). The result's
 * arrays are taken from `arena`. Cost O((tasks + edges) log tasks) plus the network's. Fails only on lack of memory or if
 * tasks remain that can never start. */
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
void pl_engine_begin(pl_engine *engine);                              /* starts at tick 0 */
void pl_engine_complete(pl_engine *engine, uint32_t task, pl_ticks now);
void pl_engine_flush(pl_engine *engine, pl_ticks now);
bool pl_engine_is_done(const pl_engine *engine);
pl_code pl_engine_finish(pl_engine *engine, pl_engine_result *result, pl_error *error);

#endif
