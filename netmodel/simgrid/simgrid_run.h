/* SimGrid's own event loop, for graphs played by the engine (netmodel/flow/simgrid_network.c). Part of the shared
 * library paceline_simgrid, beside netmodel/simgrid/simgrid_shim.h; the platform is the one that pl_shim_load has
 * loaded.
 *
 * A run changes SimGrid's settings and links and leaves its clock where it ended: call it in a child process that exits
 * afterwards.
 *
 * Dates are seconds of SimGrid's clock. `begin` is called once, at 0, from inside pl_simgrid_loop_run; then `complete`
 * for every task whose date has come or whose bytes have arrived, and `flush` when all of one instant are in. From
 * these three, and nowhere else, the other functions may be called. */
#ifndef PL_NETMODEL_SIMGRID_RUN_H
#define PL_NETMODEL_SIMGRID_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_simgrid_loop pl_simgrid_loop;

typedef struct pl_simgrid_loop_client {
  void (*begin)(void *data, pl_simgrid_loop *loop);
  void (*complete)(void *data, uint32_t task, double time_s);
  void (*flush)(void *data, double time_s);
  void *data;
} pl_simgrid_loop_client;

typedef struct pl_simgrid_loop_options {
  const char *const *hosts; /* names; the functions below take indices into it */
  uint32_t n_hosts, n_tasks;
  bool rtt; /* CM02's rule with latencies; false: plain max-min without latencies and without a window */
} pl_simgrid_loop_options;

/* Runs until nothing is under way. False: SimGrid refused, `message` says why. */
bool pl_simgrid_loop_run(const pl_simgrid_loop_options *options, const pl_simgrid_loop_client *client, char *message,
                         size_t message_bytes);

/* Completes `task` at `date_s` (not before now); a second call for a task that has not completed moves the date. */
void pl_simgrid_loop_timer(pl_simgrid_loop *loop, uint32_t task, double date_s);
/* After `delay_s`, which occupies nothing, sends size_bytes > 0 (to 2^-16 of a byte); completes `task` on arrival. */
void pl_simgrid_loop_send(pl_simgrid_loop *loop, uint32_t task, uint32_t source, uint32_t destination,
                          double size_bytes, double delay_s);

#ifdef __cplusplus
}
#endif

#endif
