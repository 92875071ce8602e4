/* How many GPUs: `paceline search --gpus 64-4096 --deadline 14d --tokens 15T`. The same search on one machine at
 * several numbers of nodes, each the search that `--platform NAME:NODES` makes alone, and which size trains so many
 * tokens in time for the least money (of one price: the fewest GPU hours). */
#ifndef PL_SEARCH_SEARCH_SIZES_H
#define PL_SEARCH_SEARCH_SIZES_H

#include <stdio.h>

#include "search/method/search.h"
#include "search/run/space_session.h"
#include "workloads/command/training_cost.h"

enum { PL_SEARCH_MOST_SIZES = 64, PL_SIZE_REASON_BYTES = 256 };

typedef struct pl_search_size {
  uint32_t n_devices, n_nodes;
  bool fits;
  char reason[PL_SIZE_REASON_BYTES]; /* where nothing fits */
  pl_result_row best;                /* with best.search = &values, if something fits */
  pl_search_values values;
  pl_training_bill bill;
} pl_search_size;

typedef struct pl_search_sizes {
  uint32_t n;
  int64_t gpus[PL_SEARCH_MOST_SIZES];
  double deadline_s; /* 0: none */
  pl_search_size *sizes;
  const char *origin; /* of type and sequence length, as lines; the same at all sizes */
} pl_search_sizes;

/* "64-4096" (doubled from 64 on, and 4096), "64,96,128", or both. */
pl_code pl_search_sizes_read(pl_search_sizes *sizes, const char *text, pl_error *error);
/* "14d", "36h", "2w". */
pl_code pl_search_sizes_read_deadline(pl_search_sizes *sizes, const char *text, pl_error *error);

/* Runs them with the budget, gap, threads and top of `search`, whose problem is replaced; `job` and `choices` as
 * parsed, job->platform_path a machine without its number of nodes. Collective. */
pl_code pl_search_sizes_run(pl_search_sizes *sizes, const pl_search *search, const pl_job_options *job,
                            const pl_space_options *space, const pl_training_cost *cost, pl_arena *arena, MPI_Comm comm,
                            pl_error *error);

void pl_search_sizes_print(FILE *stream, const pl_search_sizes *sizes, const pl_training_cost *cost, bool json);

#endif
