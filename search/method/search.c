/* See search/method/search.h. Rows travel as bytes between ranks: all of them run the same program. */
#include "search/method/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "search/method/search_progress.h"
#include "search/method/search_top.h"
#include "search/parallel/ranks.h"
#include "search/parallel/shared_counts.h"
#include "search/parallel/work_pool.h"
#include "search/run/evaluate.h"

enum { SHARED_CLAIMS = 0 }; /* the only one of pl_shared_counts */

const char *const pl_search_end_names[] = {"complete", "budget", "gap", NULL};

/* What is known of a proposal once it is simulated. */
typedef struct result {
  uint32_t index; /* in the round */
  pl_result_row row;
  char strategy[PL_RESULT_WIDEST_BYTES];
  char failure[PL_SEARCH_FAILURE_BYTES];
} result;

typedef struct search_state {
  const pl_search *search;
  MPI_Comm comm;
  int rank, n_ranks;
  void *method;
  pl_evaluation evaluation;
  pl_worker *workers;
  /* the round */
  pl_proposal *proposals;
  uint32_t n_proposals;
  uint32_t *pending, n_pending; /* proposals to simulate, dearest first */
  result *mine, *all;           /* by this rank, by all; room for a round */
  uint32_t n_mine;
  result *results; /* in order of proposal */
  pl_result_row *rows;
  pl_search_values *values;
  int *n_bytes, *offsets; /* per rank */
  pl_shared_counts counts;
  uint64_t claimed; /* the count of claims at the beginning of the round */
  /* the search */
  pl_arena *arena;    /* the caller's */
  pl_search_top *top; /* in it */
  pl_search_progress progress;
  pl_search_outcome *outcome;
  double start_s;
} search_state;

/* ---- one proposal ---- */

/* What does not fit ends in its digest, so that unlike strategies have unlike texts. */
static void write_strategy(const search_state *state, const pl_proposal *proposal, const pl_strategy *strategy,
                           result *r) {
  _Static_assert((int)PL_TREE_TAKEN_BYTES <= (int)PL_RESULT_WIDEST_BYTES, "what is taken of a strategy space fits");
  if (state->evaluation.trees != NULL) {
    pl_tree_space_format(state->evaluation.trees, proposal->tree, r->strategy, sizeof r->strategy);
    return;
  }
  char *text = pl_strategy_text(strategy, state->search->problem->model);
  char whole[PL_DIGEST_TEXT_BYTES];
  pl_digest digest;
  if (text == NULL) return; /* no text: out of memory, which simulate() reports */
  snprintf(r->strategy, sizeof r->strategy, "%s", text);
  if (strlen(text) >= sizeof r->strategy) {
    pl_digest_init(&digest);
    pl_digest_text(&digest, text);
    size_t room = 3 + strlen(pl_digest_format(digest.value, whole)) + 1;
    snprintf(r->strategy + sizeof r->strategy - room, room, "...%s", whole);
  }
  free(text);
}

static pl_code assign(const search_state *state, pl_strategy *strategy, pl_arena *arena, pl_error *error) {
  return state->evaluation.trees != NULL ? PL_OK : pl_evaluate_assign(&state->evaluation, strategy, arena, error);
}

static pl_code evaluate(const search_state *state, const pl_proposal *proposal, pl_strategy *strategy,
                        pl_worker *worker, pl_result_row *row, pl_error *error) {
  const pl_evaluation *e = &state->evaluation;
  if (e->trees != NULL) return pl_evaluate_tree(e, proposal->tree, worker, row, error);
  PL_TRY(assign(state, strategy, &worker->arena, error));
  return pl_evaluate_strategy(e, strategy, worker, row, error);
}

static void compute(void *context, uint32_t index, pl_worker *worker, pl_result_row *row) {
  search_state *state = context;
  result *r = &state->results[state->pending[index]]; /* its place is nobody else's */
  pl_error error = PL_ERROR_INIT;
  const pl_proposal *proposal = &state->proposals[state->pending[index]];
  pl_strategy strategy = proposal->strategy;
  (void)row;
  memset(r, 0, sizeof *r); /* the text columns' padding reaches the file */
  if (evaluate(state, proposal, &strategy, worker, &r->row, &error) == PL_OK) {
    write_strategy(state, proposal, &strategy, r);
    return;
  }
  if (state->evaluation.trees != NULL)
    pl_evaluate_failed_tree(state->evaluation.trees, proposal->tree, &error, &r->row);
  else
    pl_evaluate_failed_row(&strategy, state->search->problem->job, 0, &error, &r->row);
  write_strategy(state, proposal, &strategy, r);
  snprintf(r->failure, sizeof r->failure, "%.*s", (int)sizeof r->failure - 1, error.message);
  if (strlen(error.message) >= sizeof r->failure) memcpy(r->failure + sizeof r->failure - 4, "...", 4);
}

/* ---- a round over threads and ranks ---- */

static bool claim(void *context, pl_work_block *block) {
  search_state *state = context;
  uint64_t next = pl_shared_counts_add(&state->counts, SHARED_CLAIMS, 1) - state->claimed;
  if (next >= state->n_pending) return false;
  *block = (pl_work_block){.first = (uint32_t)next, .count = 1};
  return true;
}

static pl_code deliver(void *context, const pl_work_block *block, const pl_result_row *rows, pl_error *error) {
  search_state *state = context;
  (void)rows;
  (void)error;
  uint32_t index = state->pending[block->first];
  state->mine[state->n_mine] = state->results[index];
  state->mine[state->n_mine++].index = index;
  return PL_OK;
}

static void exchange(search_state *state) {
  if (state->comm == PL_ALONE) return; /* the results are at their places already */
  int mine = (int)(state->n_mine * sizeof *state->mine), offset = 0;
  MPI_Allgather(&mine, 1, MPI_INT, state->n_bytes, 1, MPI_INT, state->comm);
  for (int r = 0; r < state->n_ranks; r++) {
    state->offsets[r] = offset;
    offset += state->n_bytes[r];
  }
  MPI_Allgatherv(state->mine, mine, MPI_BYTE, state->all, state->n_bytes, state->offsets, MPI_BYTE, state->comm);
  for (uint32_t i = 0; i < state->n_pending; i++)
    state->results[state->all[i].index] = state->all[i];
}

/* A relative cost of simulating a strategy: passes, and what a pass of a tensor-parallel model has more. */
static double cost_of(const pl_search_problem *problem, const pl_strategy *strategy) {
  if (problem->trees != NULL) return 1;
  double microbatches = (double)problem->job->gbs / ((double)strategy->dp * strategy->mbs);
  return microbatches * pl_strategy_n_chunks(strategy) * (strategy->tmp > 1 ? 2 : 1);
}

static int dearer_first(const void *left, const void *right, void *context) {
  const search_state *state = context;
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  double cost_a = cost_of(state->search->problem, &state->proposals[a].strategy);
  double cost_b = cost_of(state->search->problem, &state->proposals[b].strategy);
  return cost_a != cost_b ? (cost_a < cost_b ? 1 : -1) : (a > b) - (a < b);
}

static pl_code simulate(search_state *state, pl_error *error) {
  state->n_mine = 0;
  qsort_r(state->pending, state->n_pending, sizeof *state->pending, dearer_first, state);
  const pl_work_pool pool = {.n_threads = state->search->n_threads,
                             .block_rows = 1,
                             .workers = state->workers,
                             .context = state,
                             .claim = claim,
                             .compute = compute,
                             .deliver = deliver};
  pl_work_pool_run(&pool, error);
  for (uint32_t i = 0; i < state->n_mine; i++)
    if (state->mine[i].strategy[0] == '\0') pl_fail_memory(error, "the text of a strategy");
  PL_TRY(pl_agree(state->comm, error));
  if (state->n_pending > 0) exchange(state);
  /* Everybody has stopped claiming, and nobody starts before ... */
  state->claimed = pl_shared_counts_read(&state->counts, SHARED_CLAIMS);
  if (state->comm != PL_ALONE) MPI_Barrier(state->comm);
  state->outcome->n_computed += state->n_pending;
  return PL_OK;
}

/* ---- rows that are known already ---- */

static bool is_row_of(const search_state *state, const pl_result_row *row, const char *strategy) {
  return row->search != NULL && strcmp(row->search->strategy.text, strategy) == 0 &&
         strcmp(row->search->method.text, state->search->method->name) == 0;
}

/* Takes the known rows among the proposals; the others are pending. */
static pl_code recall(search_state *state, pl_error *error) {
  const pl_search *search = state->search;
  state->n_pending = 0;
  for (uint32_t i = 0; i < state->n_proposals; i++) {
    uint32_t n = state->outcome->n_rows + i;
    if (n >= search->n_known) {
      state->pending[state->n_pending++] = i;
      continue;
    }
    pl_strategy strategy = state->proposals[i].strategy;
    result *r = &state->results[i];
    memset(r, 0, sizeof *r);
    pl_arena_reset(&state->workers[0].arena);
    pl_error refused = PL_ERROR_INIT; /* as when it was simulated: its row says that it failed */
    if (assign(state, &strategy, &state->workers[0].arena, &refused) == PL_NO_MEMORY)
      return pl_fail(error, PL_NO_MEMORY, "%s", refused.message);
    snprintf(r->failure, sizeof r->failure, "%.*s", (int)sizeof r->failure - 1, refused.message);
    write_strategy(state, &state->proposals[i], &strategy, r);
    if (r->strategy[0] == '\0') return pl_fail_memory(error, "the text of a strategy");
    if (!is_row_of(state, &search->known[n], r->strategy))
      return pl_fail(error, PL_BAD_INPUT,
                     "cannot be resumed: row %u is of another strategy than this search proposes there (%.200s); give "
                     "the same options, or another -o",
                     n, r->strategy);
    r->row = search->known[n];
  }
  return PL_OK;
}

/* ---- what a round leaves ---- */

static void describe(search_state *state, uint32_t i) {
  const pl_proposal *proposal = &state->proposals[i];
  pl_search_values *values = &state->values[i];
  memset(values, 0, sizeof *values);
  snprintf(values->method.text, sizeof values->method.text, "%s", state->search->method->name);
  values->found = (int64_t)state->outcome->n_rows + 1;
  values->bound_s = proposal->bound_s > 0 ? proposal->bound_s : (double)NAN;
  values->estimate_s = proposal->estimate_s;
  memcpy(values->strategy.text, state->results[i].strategy, sizeof values->strategy.text);
  state->rows[i] = state->results[i].row;
  state->rows[i].search = values;
}

/* Of a proposal, in the search's memory; NULL: it cannot be had. */
static const char *whole_strategy(search_state *state, uint32_t i) {
  pl_strategy strategy = state->proposals[i].strategy;
  pl_error ignored = PL_ERROR_INIT;
  pl_arena_reset(&state->workers[0].arena);
  if (assign(state, &strategy, &state->workers[0].arena, &ignored) != PL_OK) return NULL;
  char *text = pl_strategy_text(&strategy, state->search->problem->model);
  const char *copy = text != NULL ? pl_arena_strdup(state->arena, text) : NULL;
  free(text);
  return copy;
}

static void learn(search_state *state) {
  pl_search_outcome *outcome = state->outcome;
  const pl_method *method = state->search->method;
  for (uint32_t i = 0; i < state->n_proposals; i++) {
    const result *r = &state->results[i];
    describe(state, i);
    if (r->failure[0] != '\0' && outcome->first_failure[0] == '\0')
      memcpy(outcome->first_failure, r->failure, sizeof outcome->first_failure);
    bool is_cut = strlen(r->strategy) == sizeof r->strategy - 1;
    if (is_cut && pl_search_top_wants(state->top, &state->rows[i])) state->values[i].whole = whole_strategy(state, i);
    pl_search_top_add(state->top, &state->rows[i]);
    if (method->learn != NULL) method->learn(state->method, &state->proposals[i], &state->rows[i]);
    outcome->n_by_status[r->row.status]++;
    outcome->n_rows++;
  }
  outcome->account = (pl_search_account){.bound_s = (double)NAN};
  if (method->account != NULL) method->account(state->method, &outcome->account);
}

static pl_code record(search_state *state, pl_error *error) {
  const pl_search *search = state->search;
  uint32_t first = state->outcome->n_rows - state->n_proposals, known = search->n_known;
  uint32_t skip = known <= first ? 0 : known - first < state->n_proposals ? known - first : state->n_proposals;
  if (state->rank == 0 && search->log != NULL && skip < state->n_proposals)
    search->log->append(search->log->context, state->n_proposals - skip, state->rows + skip, error);
  return pl_agree(state->comm, error);
}

/* ---- the rounds ---- */

static double seconds(const search_state *state) {
  double now_s = pl_ranks_clock_s() - state->start_s; /* rank 0's clock decides */
  pl_ranks_broadcast(state->comm, &now_s, sizeof now_s, 0);
  return now_s;
}

static bool is_near(const search_state *state) {
  double bound_s = state->outcome->account.bound_s;
  const pl_result_row *best = pl_search_top_best(state->top);
  return state->search->gap > 0 && best != NULL && best->iter_time_s <= (1 + state->search->gap) * bound_s;
}

static uint32_t room(const search_state *state) {
  uint64_t left = state->search->problem->budget - state->outcome->n_rows;
  return left < PL_SEARCH_ROUND ? (uint32_t)left : PL_SEARCH_ROUND;
}

static pl_code run_round(search_state *state, pl_error *error) {
  recall(state, error);
  PL_TRY(pl_agree(state->comm, error));
  PL_TRY(simulate(state, error));
  learn(state);
  return record(state, error);
}

static pl_code run_rounds(search_state *state, pl_error *error) {
  pl_search_outcome *outcome = state->outcome;
  for (;;) {
    uint32_t max = room(state);
    outcome->end = PL_SEARCH_BUDGET;
    if (max == 0 || seconds(state) > state->search->budget_s) return PL_OK;
    state->search->method->propose(state->method, max, state->proposals, &state->n_proposals, error);
    PL_TRY(pl_agree(state->comm, error));
    PL_ASSERT(state->n_proposals <= max);
    outcome->end = PL_SEARCH_COMPLETE;
    if (state->n_proposals == 0) break;
    PL_TRY(run_round(state, error));
    if (state->search->progress && state->rank == 0)
      pl_search_progress_report(&state->progress, outcome, pl_search_top_best(state->top),
                                pl_ranks_clock_s() - state->start_s);
    outcome->end = PL_SEARCH_GAP;
    if (is_near(state)) return PL_OK;
  }
  /* What the method counted since the last round. */
  outcome->account = (pl_search_account){.bound_s = (double)NAN};
  if (state->search->method->account != NULL) state->search->method->account(state->method, &outcome->account);
  return PL_OK;
}

/* ---- memory ---- */

static bool take_memory(search_state *state, pl_arena *arena) {
  uint32_t n_threads = state->search->n_threads, n_ranks = (uint32_t)state->n_ranks;
  state->proposals = PL_TAKE(arena, pl_proposal, PL_SEARCH_ROUND);
  state->pending = PL_TAKE(arena, uint32_t, PL_SEARCH_ROUND);
  state->mine = PL_TAKE(arena, result, PL_SEARCH_ROUND);
  state->all = PL_TAKE(arena, result, PL_SEARCH_ROUND);
  state->results = PL_TAKE(arena, result, PL_SEARCH_ROUND);
  state->rows = PL_TAKE(arena, pl_result_row, PL_SEARCH_ROUND);
  state->values = PL_TAKE(arena, pl_search_values, PL_SEARCH_ROUND);
  state->n_bytes = PL_TAKE(arena, int, n_ranks);
  state->offsets = PL_TAKE(arena, int, n_ranks);
  state->workers = PL_TAKE(arena, pl_worker, n_threads);
  state->top = PL_TAKE(arena, pl_search_top, 1);
  bool good = !arena->failed && pl_search_top_init(state->top, state->search->n_top, arena);
  for (uint32_t i = 0; good && i < n_threads; i++)
    pl_worker_init(&state->workers[i]);
  return good;
}

static void run(search_state *state, pl_arena *arena, pl_error *error) {
  const pl_search *search = state->search;
  const pl_search_problem *problem = search->problem;
  state->evaluation =
      (pl_evaluation){.cluster = problem->cluster,
                      .model = problem->model,
                      .job = problem->job,
                      .options = problem->options,
                      .trees = problem->trees,
                      .by_programs = problem->trees == NULL && pl_space_choices_are_programs(problem->choices)};
  state->arena = arena;
  bool good = take_memory(state, arena);
  if (!good) pl_fail_memory(error, "a round of the search");
  if (error->code == PL_OK) search->method->open(problem, arena, &state->method, error);
  if (search->problem->budget < UINT32_MAX) state->progress.budget = (uint32_t)search->problem->budget;
  if (pl_agree(state->comm, error) == PL_OK) {
    pl_shared_counts_open(&state->counts, state->comm, (const uint64_t[PL_SHARED_COUNTS]){0});
    run_rounds(state, error);
    pl_progress_end(&state->progress.line);
    pl_shared_counts_close(&state->counts);
  }
  for (uint32_t i = 0; good && i < search->n_threads; i++)
    pl_worker_release(&state->workers[i]);
}

pl_code pl_search_run(const pl_search *search, MPI_Comm comm, pl_arena *arena, pl_search_outcome *outcome,
                      pl_error *error) {
  PL_ASSERT(search->n_threads > 0 && search->n_top > 0 && search->n_top <= PL_SEARCH_MOST_TOP);
  search_state state = {.search = search, .comm = comm, .outcome = outcome, .start_s = pl_ranks_clock_s()};
  *outcome = (pl_search_outcome){.account = {.bound_s = (double)NAN}};
  state.rank = pl_rank(comm);
  state.n_ranks = pl_rank_count(comm);
  run(&state, arena, error);
  if (state.top != NULL) {
    outcome->top = state.top->rows;
    outcome->n_top = state.top->n_rows;
    outcome->nearest_oom = state.top->has_oom ? &state.top->oom : NULL;
  }
  outcome->elapsed_s = seconds(&state);
  return error->code;
}
