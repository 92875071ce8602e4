/* See search/parallel/work_pool.h. All shared state is behind one lock, taken twice per candidate (well under a
 * microsecond against the milliseconds that a candidate takes). Idle threads nap instead of spinning: on a shared
 * machine the cycles belong to those who still have work. */
#include "search/parallel/work_pool.h"

#include <omp.h>
#include <stdlib.h>
#include <time.h>

enum { AHEAD = 4 }; /* candidates per thread that are open when the master turns to one of its own */

typedef struct slot {
  pl_work_block block;
  uint64_t sequence; /* claimed as number ...; blocks are worked on in this order */
  uint32_t n_taken, n_done;
  bool used;
  pl_result_row *rows;
} slot;

typedef struct pool_state {
  const pl_work_pool *pool;
  omp_lock_t lock;
  slot *slots;
  uint32_t n_slots;
  uint64_t n_claimed;
  bool exhausted; /* claim said no */
  bool stopped;   /* deliver failed */
  pl_error *error;
} pool_state;

typedef enum take_outcome { TAKE_CANDIDATE, TAKE_LATER, TAKE_NEVER } take_outcome;

static void nap(void) {
  const struct timespec pause = {.tv_nsec = 50000};
  nanosleep(&pause, NULL);
}

/* The used slot with candidates left that was claimed first. */
static slot *oldest_open(pool_state *state) {
  slot *oldest = NULL;
  for (uint32_t i = 0; i < state->n_slots; i++) {
    slot *s = &state->slots[i];
    if (s->used && s->n_taken < s->block.count && (oldest == NULL || s->sequence < oldest->sequence)) oldest = s;
  }
  return oldest;
}

static uint32_t together(const pool_state *state, const slot *from) {
  const pl_work_pool *pool = state->pool;
  uint32_t first = from->block.first + from->n_taken, most = from->block.count - from->n_taken;
  return pool->together == NULL ? 1 : pool->together(pool->context, first, most);
}

/* `n` candidates from `offset` on. */
static take_outcome take(pool_state *state, slot **from, uint32_t *offset, uint32_t *n) {
  take_outcome outcome = TAKE_CANDIDATE;
  omp_set_lock(&state->lock);
  *from = state->stopped ? NULL : oldest_open(state);
  if (*from != NULL) {
    *offset = (*from)->n_taken;
    *n = together(state, *from);
    (*from)->n_taken += *n;
  } else {
    outcome = state->exhausted || state->stopped ? TAKE_NEVER : TAKE_LATER;
  }
  omp_unset_lock(&state->lock);
  return outcome;
}

static size_t kept_bytes(const pool_state *state) {
  size_t share = PL_WORKERS_KEPT_BYTES / state->pool->n_threads;
  return share < PL_WORKER_KEPT_BYTES ? share : PL_WORKER_KEPT_BYTES;
}

static void compute(pool_state *state, slot *from, uint32_t offset, pl_worker *worker) {
  pl_arena_reset(&worker->arena);
  pl_arena_trim(&worker->arena, kept_bytes(state));
  state->pool->compute(state->pool->context, from->block.first + offset, worker, &from->rows[offset]);
  omp_set_lock(&state->lock);
  from->n_done++;
  omp_unset_lock(&state->lock);
}

static void compute_all(pool_state *state, slot *from, uint32_t offset, uint32_t n, pl_worker *worker) {
  for (uint32_t i = 0; i < n; i++)
    compute(state, from, offset + i, worker);
}

static void work(pool_state *state, pl_worker *worker) {
  for (;;) {
    slot *from;
    uint32_t offset, n;
    take_outcome outcome = take(state, &from, &offset, &n);
    if (outcome == TAKE_NEVER) return;
    if (outcome == TAKE_LATER) {
      nap();
    } else {
      compute_all(state, from, offset, n, worker);
    }
  }
}

/* ---- the master's side ---- */

static slot *finished_slot(pool_state *state) {
  slot *finished = NULL;
  omp_set_lock(&state->lock);
  for (uint32_t i = 0; i < state->n_slots && finished == NULL; i++)
    if (state->slots[i].used && state->slots[i].n_done == state->slots[i].block.count) finished = &state->slots[i];
  omp_unset_lock(&state->lock);
  return finished;
}

/* Nobody else touches a finished slot, so it is delivered outside the lock. */
static void deliver_finished(pool_state *state) {
  for (slot *s = finished_slot(state); s != NULL; s = finished_slot(state)) {
    pl_code code = state->pool->deliver(state->pool->context, &s->block, s->rows, state->error);
    omp_set_lock(&state->lock);
    s->used = false;
    if (code != PL_OK) state->stopped = true;
    omp_unset_lock(&state->lock);
    if (code != PL_OK) return;
  }
}

static bool wants_more(pool_state *state, slot **free_slot) {
  uint64_t left = 0;
  *free_slot = NULL;
  omp_set_lock(&state->lock);
  for (uint32_t i = 0; i < state->n_slots; i++) {
    slot *s = &state->slots[i];
    if (s->used) {
      left += s->block.count - s->n_taken;
    } else {
      *free_slot = s;
    }
  }
  bool wants =
      !state->exhausted && !state->stopped && *free_slot != NULL && left < AHEAD * (uint64_t)state->pool->n_threads;
  omp_unset_lock(&state->lock);
  return wants;
}

static void claim_more(pool_state *state) {
  slot *s;
  while (wants_more(state, &s)) {
    pl_work_block block;
    bool more = state->pool->claim(state->pool->context, &block);
    PL_ASSERT(!more || (block.count > 0 && block.count <= state->pool->block_rows));
    omp_set_lock(&state->lock);
    if (more) {
      *s = (slot){.block = block, .sequence = state->n_claimed++, .used = true, .rows = s->rows};
    } else {
      state->exhausted = true;
    }
    omp_unset_lock(&state->lock);
  }
}

static bool is_done(pool_state *state) {
  omp_set_lock(&state->lock);
  bool done = state->exhausted;
  for (uint32_t i = 0; i < state->n_slots; i++)
    done = done && !state->slots[i].used;
  done = done || state->stopped;
  omp_unset_lock(&state->lock);
  return done;
}

static void direct(pool_state *state, pl_worker *worker) {
  while (!is_done(state)) {
    deliver_finished(state);
    claim_more(state);
    if (state->pool->tick != NULL) state->pool->tick(state->pool->context);
    slot *from;
    uint32_t offset, n;
    if (take(state, &from, &offset, &n) == TAKE_CANDIDATE) {
      compute_all(state, from, offset, n, worker);
    } else if (finished_slot(state) == NULL) {
      nap();
    }
  }
}

void pl_worker_init(pl_worker *worker) {
  pl_arena_init(&worker->arena, 0);
  pl_topology_cache_init(&worker->cache, PL_TOPOLOGY_CACHE_BYTES);
  pl_block_cache_init(&worker->blocks, PL_BLOCK_CACHE_BYTES);
  pl_siblings_init(&worker->siblings);
  pl_program_cache_init(&worker->programs);
}

void pl_worker_release(pl_worker *worker) {
  pl_program_cache_release(&worker->programs);
  pl_siblings_release(&worker->siblings);
  pl_block_cache_release(&worker->blocks);
  pl_topology_cache_release(&worker->cache);
  pl_arena_release(&worker->arena);
}

static void run(pool_state *state) {
  omp_init_lock(&state->lock);
#pragma omp parallel num_threads((int)state->pool->n_threads) default(none) shared(state)
  {
    pl_worker own, *worker = &own;
    int thread = omp_get_thread_num();
    if (state->pool->workers != NULL) {
      worker = &state->pool->workers[thread];
    } else {
      pl_worker_init(&own);
    }
    if (thread == 0) {
      direct(state, worker);
    } else {
      work(state, worker);
    }
    if (worker == &own) pl_worker_release(&own);
  }
  omp_destroy_lock(&state->lock);
}

pl_code pl_work_pool_run(const pl_work_pool *pool, pl_error *error) {
  PL_ASSERT(pool->n_threads > 0 && pool->block_rows > 0);
  pl_error cause = PL_ERROR_INIT;
  /* Per thread one block in work, AHEAD that are open, and as many that are finished. */
  pool_state state = {.pool = pool, .n_slots = (2 * AHEAD + 1) * pool->n_threads + 2, .error = &cause};
  state.slots = calloc(state.n_slots, sizeof *state.slots);
  pl_result_row *rows = calloc((size_t)state.n_slots * pool->block_rows, sizeof *rows);
  size_t n_rows = (size_t)state.n_slots * pool->block_rows;
  double *features = pool->n_features > 0 ? calloc(n_rows * pool->n_features, sizeof *features) : NULL;
  for (size_t i = 0; features != NULL && rows != NULL && i < n_rows; i++)
    rows[i].features = features + i * pool->n_features;
  if (state.slots != NULL && rows != NULL && (features != NULL || pool->n_features == 0)) {
    for (uint32_t i = 0; i < state.n_slots; i++)
      state.slots[i].rows = rows + (size_t)i * pool->block_rows;
    run(&state);
  } else {
    pl_fail_memory(&cause, "the rows of the blocks in flight");
  }
  free(features);
  free(rows);
  free(state.slots);
  return cause.code == PL_OK ? PL_OK : pl_fail(error, cause.code, "%s", cause.message);
}
