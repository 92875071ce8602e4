/* The sweep: simulates every pending candidate of a space, over all ranks and their threads, into a results file.
 *
 * Ranks take blocks of neighbouring candidates from one shared counter in rank 0's memory (MPI one-sided: nobody has to
 * answer), the dearest blocks first and dear candidates in small blocks, so that what is left at the end is small; the
 * threads of a rank share a block (search/parallel/work_pool.h). A row lands at its candidate's index whoever computes
 * it, and depends on nothing but the candidate: the same bytes for any ranks x threads.
 */
#ifndef PL_SEARCH_SWEEP_H
#define PL_SEARCH_SWEEP_H

#include <stdio.h>

#include "core/graph/result.h"
#include "search/parallel/ranks.h"
#include "search/parallel/work_pool.h"
#include "search/space/space.h"

/* Simulates one candidate; called from many threads at once, each with a worker of its own. A failure becomes a row
 * with status FAILED; on success row->status is DONE or OOM. */
typedef pl_code (*pl_evaluate)(const void *context, const pl_space *space, uint32_t index, pl_worker *worker,
                               pl_result_row *row, pl_error *error);

typedef struct pl_sweep {
  const pl_space *space;
  const char *path;      /* of an existing results file of this space */
  const int32_t *status; /* per candidate, the same on all ranks: only PENDING ones are computed */
  pl_evaluate evaluate;
  const void *context;
  uint32_t n_threads; /* of this rank */
  uint32_t n_stages;  /* of the features in the file (core/graph/features.h); 0: none */
  bool progress;      /* the same on all ranks: rank 0 reports to stderr about once a second */
  int64_t fail_after; /* tests: see pl_results_fail_after; negative = never */
} pl_sweep;

typedef struct pl_sweep_outcome {
  uint32_t n_computed;   /* by all ranks in this run */
  uint32_t n_failed;     /* of these */
  uint32_t first_failed; /* lowest index of these, and why */
  char first_message[PL_ERROR_MESSAGE_BYTES];
  double elapsed_s;
  bool split; /* some ranks hold the file open and others could not open it: only MPI_Abort ends this without a hang */
  bool skips_oom; /* set by who asked for it: for summaries */
} pl_sweep_outcome;

/* Collective over `comm` (or PL_ALONE); MPI_THREAD_FUNNELED, by the thread that initialised MPI. All ranks return the
 * same code and outcome. Rows that were written before a failure stay valid. */
pl_code pl_sweep_run(const pl_sweep *sweep, MPI_Comm comm, pl_sweep_outcome *outcome, pl_error *error);

/* Threads for this rank when the user names no number: the cores that the ranks of this node may use, shared out
 * evenly. Collective. */
uint32_t pl_sweep_default_threads(MPI_Comm comm);

#endif
