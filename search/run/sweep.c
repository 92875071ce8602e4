/* See search/run/sweep.h. */
#include "search/run/sweep.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "search/parallel/progress_line.h"
#include "search/parallel/ranks.h"
#include "search/parallel/shared_counts.h"
#include "search/parallel/work_pool.h"
#include "search/results/results_file.h"
#include "search/run/evaluate.h"

enum { MOST_BLOCK_ROWS = 64, BLOCKS_PER_RANK = 16, SHARES_PER_RANK = 64 };

/* What the ranks share (pl_shared_counts). */
enum { SHARED_NEXT = 0, SHARED_ROWS, SHARED_COST, SHARED_BEST };

typedef struct sweep_state {
  const pl_sweep *sweep;
  pl_results_file *file;
  pl_work_block *blocks; /* dearest first */
  uint32_t n_blocks, block_rows, n_pending;
  double total_cost, block_cost;
  pl_shared_counts shared;
  int rank;
  double start_s;
  pl_progress_line line;
  uint64_t last_best; /* reported */
  omp_lock_t lock;    /* over the failures */
  uint32_t n_computed, n_failed, first_failed;
  char first_message[PL_ERROR_MESSAGE_BYTES];
} sweep_state;

/* ---- blocks ---- */

static double cost_of(const pl_space *space, const pl_work_block *block) {
  double cost = 0;
  for (uint32_t i = 0; i < block->count; i++)
    cost += pl_space_cost(space, block->first + i);
  return cost;
}

typedef struct dated_block {
  pl_work_block block;
  double cost;
} dated_block;

static int dearest_first(const void *left, const void *right) {
  const dated_block *a = left, *b = right;
  if (a->cost != b->cost) return a->cost < b->cost ? 1 : -1;
  return a->block.first < b->block.first ? -1 : a->block.first > b->block.first;
}

/* Candidates from `index` on, of `most`, that are of one family: they go on from each other's runs. */
static uint32_t count_siblings(const pl_space *space, uint32_t index, uint32_t most) {
  pl_strategy first, next;
  uint32_t n = 1;
  if (space->trees != NULL) return 1;
  pl_space_strategy(space, index, &first);
  for (; n < most; n++) {
    pl_space_strategy(space, index + n, &next);
    if (!pl_siblings_are(&first, &next)) break;
  }
  return n;
}

static uint32_t siblings_together(void *context, uint32_t index, uint32_t most) {
  return count_siblings(((const sweep_state *)context)->sweep->space, index, most);
}

/* The block that starts at a pending candidate: at most block_rows, and more than one only if together they cost no
 * more than block_cost, or are siblings. */
static dated_block cut_block(const sweep_state *state, uint32_t first) {
  const pl_space *space = state->sweep->space;
  dated_block cut = {.block = {.first = first, .count = 1}, .cost = pl_space_cost(space, first)};
  uint32_t behind = first + count_siblings(space, first, space->n_candidates - first); /* the last family so far */
  for (uint32_t next = first + 1; next < space->n_candidates && cut.block.count < state->block_rows; next++) {
    double cost = cut.cost + pl_space_cost(space, next);
    if (state->sweep->status[next] != PL_RESULT_PENDING || (cost > state->block_cost && next >= behind)) break;
    if (next >= behind) behind = next + count_siblings(space, next, space->n_candidates - next);
    cut.cost = cost;
    cut.block.count++;
  }
  return cut;
}

/* Cuts runs of pending candidates into blocks. `blocks` NULL: only counts. */
static uint32_t cut_blocks(const sweep_state *state, dated_block *blocks) {
  uint32_t n_blocks = 0;
  for (uint32_t first = 0; first < state->sweep->space->n_candidates;) {
    if (state->sweep->status[first] != PL_RESULT_PENDING) {
      first++;
      continue;
    }
    dated_block cut = cut_block(state, first);
    if (blocks != NULL) blocks[n_blocks] = cut;
    n_blocks++;
    first += cut.block.count;
  }
  return n_blocks;
}

static pl_code plan(sweep_state *state, int n_ranks, pl_error *error) {
  for (uint32_t i = 0; i < state->sweep->space->n_candidates; i++) {
    if (state->sweep->status[i] != PL_RESULT_PENDING) continue;
    state->n_pending++;
    state->total_cost += pl_space_cost(state->sweep->space, i);
  }
  uint32_t even = state->n_pending / ((uint32_t)n_ranks * BLOCKS_PER_RANK);
  state->block_rows = even < 1 ? 1 : even > MOST_BLOCK_ROWS ? MOST_BLOCK_ROWS : even;
  state->block_cost = state->total_cost / ((double)n_ranks * SHARES_PER_RANK);
  state->n_blocks = cut_blocks(state, NULL);
  dated_block *dated = calloc(state->n_blocks + 1u, sizeof *dated);
  state->blocks = calloc(state->n_blocks + 1u, sizeof *state->blocks);
  if (dated != NULL && state->blocks != NULL) {
    cut_blocks(state, dated);
    qsort(dated, state->n_blocks, sizeof *dated, dearest_first);
    for (uint32_t b = 0; b < state->n_blocks; b++)
      state->blocks[b] = dated[b].block;
  } else {
    pl_fail_memory(error, "the blocks of the sweep");
  }
  free(dated);
  return error->code;
}

/* ---- what the ranks share ---- */

/* Positive floats compare as their bits do: one MIN keeps the best time, and the lowest index among equals. */
static uint64_t pack_best(const pl_result_row *row, uint32_t index) {
  float time_s = (float)row->iter_time_s;
  uint32_t bits;
  memcpy(&bits, &time_s, sizeof bits);
  return (uint64_t)bits << 32 | index;
}

static void share_progress(sweep_state *state, const pl_work_block *block, const pl_result_row *rows) {
  uint64_t best = UINT64_MAX;
  for (uint32_t i = 0; i < block->count; i++)
    if (rows[i].status == PL_RESULT_DONE && rows[i].iter_time_s > 0) {
      uint64_t packed = pack_best(&rows[i], block->first + i);
      if (packed < best) best = packed;
    }
  pl_shared_counts_add(&state->shared, SHARED_ROWS, block->count);
  pl_shared_counts_add(&state->shared, SHARED_COST, (uint64_t)cost_of(state->sweep->space, block));
  if (best != UINT64_MAX) pl_shared_counts_lower(&state->shared, SHARED_BEST, best);
}

/* ": pp=4,...", the first time that it is the best; on a terminal always, as the line before is gone. */
static const char *format_best(sweep_state *state, uint64_t best, char *text, size_t size) {
  text[0] = '\0';
  if (best == UINT64_MAX) return text;
  float time_s;
  uint32_t bits = (uint32_t)(best >> 32);
  memcpy(&time_s, &bits, sizeof time_s);
  char time[PL_UNIT_TEXT_BYTES], strategy[256] = "";
  bool is_new = best != state->last_best || pl_progress_on_terminal();
  if (is_new) pl_space_format_candidate(state->sweep->space, (uint32_t)best, strategy, sizeof strategy);
  snprintf(text, size, "; best %s%s%s", pl_format_time((double)time_s, time), is_new ? ": " : "", strategy);
  state->last_best = best;
  return text;
}

static void report(sweep_state *state) {
  double elapsed_s = pl_ranks_clock_s() - state->start_s;
  if (state->rank != 0 || !pl_progress_is_due(&state->line, elapsed_s)) return;
  uint64_t rows = pl_shared_counts_read(&state->shared, SHARED_ROWS);
  if (rows == 0) return;
  double share = (double)pl_shared_counts_read(&state->shared, SHARED_COST) / state->total_cost;
  char text[512], left[64] = "", best[384];
  if (share > 0) snprintf(left, sizeof left, ", about %.0f s left", elapsed_s * (1 - share) / share);
  format_best(state, pl_shared_counts_read(&state->shared, SHARED_BEST), best, sizeof best);
  snprintf(text, sizeof text, "paceline sweep: %llu of %u strategies, %.0f per second%s%s", (unsigned long long)rows,
           state->n_pending, (double)rows / elapsed_s, left, best);
  pl_progress_say(&state->line, text);
}

/* ---- the pool's callbacks ---- */

static bool claim(void *context, pl_work_block *block) {
  sweep_state *state = context;
  uint64_t next = pl_shared_counts_add(&state->shared, SHARED_NEXT, 1);
  if (next >= state->n_blocks) return false;
  *block = state->blocks[next];
  return true;
}

static uint32_t n_features(const pl_sweep *sweep) {
  return sweep->n_stages == 0 ? 0 : PL_N_FEATURES + PL_N_STAGE_FEATURES * sweep->n_stages;
}

static void note_failure(sweep_state *state, uint32_t index, const pl_error *error) {
  omp_set_lock(&state->lock);
  state->n_failed++;
  if (index < state->first_failed) {
    state->first_failed = index;
    snprintf(state->first_message, sizeof state->first_message, "%.*s", (int)sizeof state->first_message - 1,
             error->message);
  }
  omp_unset_lock(&state->lock);
}

static void compute(void *context, uint32_t index, pl_worker *worker, pl_result_row *row) {
  sweep_state *state = context;
  const pl_sweep *sweep = state->sweep;
  pl_error error = PL_ERROR_INIT;
  double *features = row->features;
  memset(row, 0, sizeof *row); /* the text columns' padding reaches the file */
  row->features = features;
  if (sweep->evaluate(sweep->context, sweep->space, index, worker, row, &error) == PL_OK) {
    PL_ASSERT(row->status == PL_RESULT_DONE || row->status == PL_RESULT_OOM);
    return;
  }
  pl_strategy strategy;
  if (sweep->space->trees != NULL) {
    pl_evaluate_failed_tree(sweep->space->trees, index, &error, row);
  } else {
    pl_space_strategy(sweep->space, index, &strategy);
    pl_evaluate_failed_row(&strategy, sweep->space->job, n_features(sweep), &error, row);
  }
  note_failure(state, index, &error);
}

static pl_code deliver(void *context, const pl_work_block *block, const pl_result_row *rows, pl_error *error) {
  sweep_state *state = context;
  PL_TRY(pl_results_write(state->file, block->first, block->count, rows, error));
  state->n_computed += block->count;
  if (state->sweep->progress) share_progress(state, block, rows);
  return PL_OK;
}

static void tick(void *context) {
  sweep_state *state = context;
  if (state->sweep->progress) report(state);
}

/* ---- the run ---- */

static pl_code run_pool(sweep_state *state, pl_error *error) {
  const pl_work_pool pool = {.n_threads = state->sweep->n_threads,
                             .block_rows = state->block_rows,
                             .n_features = n_features(state->sweep),
                             .context = state,
                             .claim = claim,
                             .together = siblings_together,
                             .compute = compute,
                             .deliver = deliver,
                             .tick = tick};
  pl_code code = pl_work_pool_run(&pool, error);
  if (code != PL_OK)
    pl_shared_counts_add(&state->shared, SHARED_NEXT, state->n_blocks); /* the others stop at their next claim */
  return code;
}

static void gather(const sweep_state *state, MPI_Comm comm, pl_sweep_outcome *outcome) {
  *outcome = (pl_sweep_outcome){.n_computed = state->n_computed,
                                .n_failed = state->n_failed,
                                .first_failed = state->n_failed ? state->first_failed : INT32_MAX,
                                .elapsed_s = pl_ranks_clock_s() - state->start_s};
  memcpy(outcome->first_message, state->first_message, sizeof outcome->first_message);
  if (comm == PL_ALONE) return;
  const uint32_t mine[2] = {state->n_computed, state->n_failed};
  uint32_t all[2];
  MPI_Allreduce(mine, all, 2, MPI_UINT32_T, MPI_SUM, comm);
  outcome->n_computed = all[0];
  outcome->n_failed = all[1];
  struct {
    int index, rank;
  } first, lowest; /* MPI_2INT; indices above INT_MAX do not occur: the space would not fit in memory */
  first.index = (int)outcome->first_failed;
  first.rank = state->rank;
  MPI_Allreduce(&first, &lowest, 1, MPI_2INT, MPI_MINLOC, comm);
  outcome->first_failed = (uint32_t)lowest.index;
  pl_ranks_broadcast(comm, outcome->first_message, sizeof outcome->first_message, lowest.rank);
  pl_ranks_broadcast(comm, &outcome->elapsed_s, sizeof outcome->elapsed_s, 0);
}

static void run(sweep_state *state, MPI_Comm comm, pl_sweep_outcome *outcome, pl_error *error) {
  const pl_sweep *sweep = state->sweep;
  if (pl_results_open(sweep->path, comm, sweep->space->n_candidates, state->block_rows, &state->file, &outcome->split,
                      error) != PL_OK)
    return;
  pl_results_fail_after(state->file, sweep->fail_after);
  const uint64_t start[PL_SHARED_COUNTS] = {[SHARED_BEST] = UINT64_MAX};
  pl_shared_counts_open(&state->shared, comm, start);
  run_pool(state, error);
  pl_shared_counts_close(&state->shared);
  pl_agree(comm, error);
  pl_error closing = PL_ERROR_INIT;
  pl_results_close(state->file, &closing);
  pl_agree(comm, &closing);
  if (closing.code != PL_OK) pl_fail(error, closing.code, "%s", closing.message);
}

pl_code pl_sweep_run(const pl_sweep *sweep, MPI_Comm comm, pl_sweep_outcome *outcome, pl_error *error) {
  sweep_state state = {
      .sweep = sweep, .first_failed = UINT32_MAX, .start_s = pl_ranks_clock_s(), .last_best = UINT64_MAX};
  int n_ranks = pl_rank_count(comm);
  state.rank = pl_rank(comm);
  *outcome = (pl_sweep_outcome){0};
  plan(&state, n_ranks, error);
  if (pl_agree(comm, error) == PL_OK) {
    omp_init_lock(&state.lock);
    run(&state, comm, outcome, error);
    pl_progress_end(&state.line);
    omp_destroy_lock(&state.lock);
    if (!outcome->split) gather(&state, comm, outcome);
  }
  free(state.blocks);
  return error->code;
}

uint32_t pl_sweep_default_threads(MPI_Comm comm) {
  if (getenv("OMP_NUM_THREADS") != NULL) return (uint32_t)omp_get_max_threads();
  cpu_set_t mine, all;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  if (comm == PL_ALONE) return (uint32_t)CPU_COUNT(&mine);
  MPI_Comm node;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int n_ranks = pl_rank_count(node);
  MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, node);
  MPI_Comm_free(&node);
  int n_threads = CPU_COUNT(&all) / n_ranks;
  return n_threads < 1 ? 1 : (uint32_t)n_threads;
}
