/* A distributed program run for real: every MPI rank is one device of its mesh, and computes, sends and waits. */
#ifndef PL_SEARCH_RUN_PROGRAM_H
#define PL_SEARCH_RUN_PROGRAM_H

#include "search/parallel/interrupt.h"
#include "search/parallel/ranks.h"
#include "workloads/language/ir_module.h"

typedef struct pl_run_program_options {
  uint64_t seed;
  int32_t iterations, warmup; /* counted; run in front of them */
  bool single;                /* fp32 */
  double patience_s;          /* a rank that does nothing for so long has failed; 0: waited for without end */
} pl_run_program_options;

/* Seconds: the median of the iterations, its quartiles, least and most. */
typedef struct pl_run_spread {
  double median_s, low_s, high_s, least_s, most_s;
} pl_run_spread;

typedef struct pl_run_program_times {
  int32_t n_ranks, n_ops;       /* ops of all functions */
  int32_t *first_op;            /* per function */
  pl_run_spread iteration;      /* from where all ranks have met to where the last one is through */
  double *iteration_s, *losses; /* per iteration, those in front too */
  pl_run_spread *ops;           /* rank 0: [rank][op]; all runs of an iteration together */
  int32_t *runs;                /* rank 0: [rank][op]; of an iteration */
} pl_run_program_times;

/* Whether the program can be run by the ranks of `comm`. PL_BAD_INPUT: it is for more, or for fewer. */
pl_code pl_run_program_check(const pl_ir_module *module, MPI_Comm comm, pl_error *error);
/* Collective. A failure of one rank ends all of them there and then (MPI_Abort), with one message of the command of
 * `interrupt`; that of a process that is alone is returned. */
pl_code pl_run_program(const pl_ir_module *module, const pl_run_program_options *options, MPI_Comm comm,
                       pl_interrupt *interrupt, pl_arena *arena, pl_run_program_times *times, pl_error *error);

#endif
