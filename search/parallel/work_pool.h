/* The threads of one rank: the master claims blocks of candidates and delivers finished ones, every thread computes.
 *
 * Only the master calls `claim`, `deliver` and `tick` (MPI_THREAD_FUNNELED: it alone may talk to MPI and HDF5). It
 * computes as well, between two looks at the blocks, so that a rank with one thread needs no second one. Workers never
 * wait for the master as long as a block is open: the next one is claimed when fewer candidates than four per thread
 * are left, so that the others have work while the master computes a dear candidate, even if all blocks are of one. A
 * straggler keeps its block in flight while others go by: there are slots for those, and for what is finished and waits
 * for the master.
 *
 * Rejected: `omp taskloop` or a parallel for per block (a barrier per block: 20 % idle with candidates of unequal
 * cost); a thread of its own for I/O (takes a core from the computation, and wants MPI_THREAD_SERIALIZED).
 */
#ifndef PL_SEARCH_WORK_POOL_H
#define PL_SEARCH_WORK_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/graph/result.h"
#include "netmodel/collective/topology_cache.h"
#include "workloads/lower/block_cache.h"
#include "workloads/run/program_row.h"
#include "workloads/run/siblings.h"

typedef struct pl_work_block {
  uint32_t first, count; /* candidates first .. first + count - 1 */
} pl_work_block;

/* Of the memory of a large candidate a thread keeps so much for the next one, and the threads of a rank together no
 * more than that: with what the caches hold, a rank of four threads stays below 256 MiB. Half as much costs a candidate
 * of the demo's sweep 2 %, in pages that are touched anew. */
enum { PL_WORKER_KEPT_BYTES = 1 << 24, PL_WORKERS_KEPT_BYTES = 1 << 26 };

/* What a thread keeps from one candidate to the next; nothing that a row depends on. */
typedef struct pl_worker {
  pl_arena arena; /* reset before each candidate */
  pl_topology_cache cache;
  pl_block_cache blocks;
  pl_siblings siblings;
  pl_program_cache programs;
} pl_worker;

void pl_worker_init(pl_worker *worker);
void pl_worker_release(pl_worker *worker);

typedef struct pl_work_pool {
  uint32_t n_threads;
  uint32_t block_rows; /* no claimed block is larger */
  uint32_t n_features; /* numbers that row->features has room for; 0: it is NULL */
  pl_worker *workers;  /* one per thread, kept from pool to pool by the caller; NULL: the pool's own */
  void *context;
  /* Master: next block, or false when there is none left (not asked again). */
  bool (*claim)(void *context, pl_work_block *block);
  /* Any thread: how many candidates from this one on, of `most`, one thread had better compute one after the other. May
   * be NULL: one. */
  uint32_t (*together)(void *context, uint32_t index, uint32_t most);
  /* Any thread; `worker` is the calling thread's. row->features is set and must stay. */
  void (*compute)(void *context, uint32_t index, pl_worker *worker, pl_result_row *row);
  /* Master: all rows of a block, once. A failure stops the pool. */
  pl_code (*deliver)(void *context, const pl_work_block *block, const pl_result_row *rows, pl_error *error);
  /* Master: called often; may be NULL. */
  void (*tick)(void *context);
} pl_work_pool;

/* Returns when every claimed block is delivered, or after the first failure of deliver. */
pl_code pl_work_pool_run(const pl_work_pool *pool, pl_error *error);

#endif
