/* What the engine knows of networks: an ops table. netmodel/ has three of them (flow, analytic, simgrid).
 *
 * Contract. The engine calls `start` for each transfer that becomes ready at `now`, then once per tick, after all
 * events of that tick are drained (and if the network was touched in it at all), `settle`, which re-solves what was
 * touched and returns the tick of the network's next event (PL_TICKS_NEVER when nothing is under way). When the clock
 * reaches that tick the engine calls `advance` until it returns PL_NONE: each call gives the task of one transfer that
 * ends at `now`, in increasing order of task; internal events (a latency that is over) are handled inside. A transfer
 * of zero bytes ends after its latency, at `now` itself when that is zero. Instances are independent of each other: one
 * per simulation, no shared writable state. A network that
 * cannot get memory sets arena->failed and reports no further event; the engine, run in the same arena, then fails with
 * PL_NO_MEMORY.
 */
#ifndef PL_CORE_NETWORK_H
#define PL_CORE_NETWORK_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/base/ticks.h"
#include "core/cluster/transfer.h"
#include "core/graph/run_state.h"

typedef struct pl_network pl_network;

/* A transfer under way, as one network tells another of the same kind (core/engine/engine_fork.h). */
typedef struct pl_under_way {
  uint32_t task, spec;
  uint8_t phase; /* the network's own */
  pl_ticks date, since;
  double rest_bytes, pace_Bps, speed;
} pl_under_way;

typedef struct pl_under_way_list {
  const pl_under_way *flows;
  uint32_t n;
  int scales[2]; /* of the numbers that the network reckons with */
} pl_under_way_list;

typedef struct pl_network_ops {
  const char *name; /* "flow" */
  /* Returns a slot for set_speed, valid until the transfer ends. */
  uint32_t (*start)(pl_network *network, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes);
  /* As `start`, for a transfer that began at tick `begun` <= now, has been alone since and has not ended: from now on
   * it is there for others to contend with. May be NULL where no graph needs it. */
  uint32_t (*resume)(pl_network *network, pl_ticks now, uint32_t task, uint32_t spec, double size_bytes,
                     pl_ticks begun);
  /* From `now` on the transfer progresses at speed * (its share); 1 at the start. Used for the overlap factor: what it
   * occupies on the links does not change (as SimGrid's bandwidth factor). */
  void (*set_speed)(pl_network *network, pl_ticks now, uint32_t slot, double speed);
  pl_ticks (*settle)(pl_network *network, pl_ticks now);
  uint32_t (*advance)(pl_network *network, pl_ticks now);
  /* Writes out what decides the future of the transfers under way (core/graph/run_state.h), after `settle`. NULL:
   * cannot be told, and runs are played whole. */
  void (*write_state)(pl_network *network, pl_run_state *state);
  /* All dates of the transfers that `state` tells of become so much later, those that have begun go on from where they
   * are. Returns the tick of the network's next event. NULL where write_state is. */
  pl_ticks (*put_off)(pl_network *network, const pl_run_state *state, pl_ticks by);
  /* Lists the transfers under way, after `settle`; false: no memory. NULL: cannot be told. */
  bool (*list_under_way)(pl_network *network, pl_arena *arena, pl_under_way_list *list);
  /* Whether what another network has listed would go on here with the same rates, to the bit, if it goes over the same
   * links. NULL where list_under_way is. */
  bool (*shares_scales)(const pl_network *network, const pl_under_way_list *list);
  /* One of those goes on here, under a task and a spec of this network; `settle` follows. Of their bytes link_bytes
   * counts what is left. False: no memory. NULL where list_under_way is. */
  bool (*take_over)(pl_network *network, const pl_under_way *flow);
  /* Sum over the run of usage * bytes carried per link of the table (for the bottleneck report); array owned by the
   * network, valid until destroy. May be NULL. */
  const double *(*link_bytes)(pl_network *network);
  void (*destroy)(pl_network *network);
} pl_network_ops;

/* Implementations embed this as their first member. */
struct pl_network {
  const pl_network_ops *ops;
};

#endif
