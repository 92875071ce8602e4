/* Profiles of a machine from what was measured on it (search/run/measure_machine.h).
 *
 * An op of programs takes overhead + flops / rate + bytes / rate, by the name of its row: on a processor, where an op
 * is loops and perhaps a product, its parts come one after another. Coefficients are not negative and least in the
 * squares of relative errors; one sample of four is kept out and says how far off they are. Moves between ranks
 * likewise: start, time per step of the algorithm, rate, for rings (reductions and gathers) and for what goes directly.
 */
#ifndef PL_VALIDATION_MACHINE_FIT_H
#define PL_VALIDATION_MACHINE_FIT_H

#include "core/cluster/device_profile.h"
#include "search/run/measure_machine.h"

/* time = start_s + steps * step_s + bytes / rate_Bps */
typedef struct pl_move_fit {
  double start_s, step_s, rate_Bps;
  uint32_t n; /* samples */
  pl_held_out held_out;
} pl_move_fit;

typedef struct pl_machine_fit {
  pl_program_kernel *ops; /* by name, rising */
  uint32_t n_ops;
  pl_move_fit ring, direct;                                    /* n = 0: nothing was measured */
  double peak_flops, compute_efficiency, attention_efficiency; /* of products: best; median of it; attention's */
  double bandwidth_Bps, bandwidth_efficiency;                  /* of the other ops, likewise */
  double overhead_s;                                           /* median over the ops */
} pl_machine_fit;

pl_code pl_machine_fit_take(const pl_machine_samples *samples, pl_arena *arena, pl_machine_fit *fit, pl_error *error);

/* least sum of (c0 x0 + c1 x1 + c2 x2 - 1)^2 over n rows of three, no c below 0. */
void pl_fit_three(const double (*rows)[3], uint32_t n, double c[3]);

#endif
