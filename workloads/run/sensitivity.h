/* How far a predicted time moves under a change that means nothing: all bandwidths a little above or below, by one part
 * in 10^9 at most.
 *
 * Some programs are chaotic. Whether a transfer starts just before or just after another decides which of them waits,
 * and in a pipeline the order of two may hand on a delay from microbatch to microbatch: about 1 of 100 random programs
 * moves by some tenths of a per cent, up to 1.5 %. Times that differ by less than that do not tell strategies apart.
 */
#ifndef PL_WORKLOADS_SENSITIVITY_H
#define PL_WORKLOADS_SENSITIVITY_H

#include "workloads/run/simulate.h"

enum { PL_SENSITIVITY_RUNS = 8 };

typedef struct pl_sensitivity {
  uint32_t n_runs;      /* 0: nobody asked */
  double low_s, high_s; /* over the runs and the prediction */
} pl_sensitivity;

/* Eight more simulations, with the strategy's boundaries as they are. `options` without outputs. Memory is given back
 * to `arena`. PL_UNSUPPORTED for --network simgrid, which has the file's figures only. */
pl_code pl_sensitivity_take(const pl_cluster *cluster, const pl_model *model, const pl_job *job,
                            const pl_strategy *strategy, const pl_simulate_options *options, double predicted_s,
                            pl_arena *arena, pl_sensitivity *sensitivity, pl_error *error);

/* "sensitivity      -0.3 to +1.5 % ...", a line; nothing when nobody asked. */
void pl_sensitivity_print(FILE *stream, const pl_sensitivity *sensitivity, double predicted_s);
/* "sensitivity": {"n_runs", "bandwidth_change", "iter_time_low_s", "iter_time_high_s"}; nothing when nobody asked. */
void pl_sensitivity_json(pl_json *json, const pl_sensitivity *sensitivity);

#endif
