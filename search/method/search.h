/* The driver of a search: rounds of proposals of a method (search/method/method.h), simulated over ranks and threads.
 *
 * A round is a batch of proposals whose size depends on nothing but the method and the budget. Within it ranks take
 * single proposals from one shared counter, dear ones first, and threads from their rank's share
 * (search/parallel/work_pool.h); then everybody learns all rows, in the order of proposal. So what is proposed, and
 * what a log gets to see, is the same for any ranks x threads. Only a budget in seconds may end after different rounds.
 */
#ifndef PL_SEARCH_SEARCH_H
#define PL_SEARCH_SEARCH_H

#include "search/method/method.h"
#include "search/parallel/ranks.h"

enum { PL_SEARCH_ROUND = 256, PL_SEARCH_MOST_TOP = 1000, PL_SEARCH_FAILURE_BYTES = 256 };

typedef enum pl_search_end {
  PL_SEARCH_COMPLETE = 0, /* the method has nothing left to propose */
  PL_SEARCH_BUDGET,       /* spent */
  PL_SEARCH_GAP           /* the best is as near to the bound as was asked for */
} pl_search_end;
extern const char *const pl_search_end_names[];

/* Where the rows go: rank 0 only, rows and what the search knows of them (row->search) in order of discovery. */
typedef struct pl_search_log {
  void *context;
  pl_code (*append)(void *context, uint32_t count, const pl_result_row *rows, pl_error *error);
} pl_search_log;

typedef struct pl_search {
  const pl_search_problem *problem; /* problem->budget: simulations */
  const pl_method *method;
  double budget_s;            /* INFINITY = none; looked at between rounds */
  double gap;                 /* stop when best <= (1 + gap) * bound; 0 = only when none is left */
  const pl_result_row *known; /* rows of a search that was cut off, in order, the same on all ranks: not simulated again
                                 if they are of the strategies that are proposed, and not appended to the log */
  uint32_t n_known;
  uint32_t n_top; /* best rows to keep, at least 1 */
  uint32_t n_threads;
  const pl_search_log *log; /* NULL = none; looked at on rank 0 */
  bool progress;            /* rank 0 reports to stderr about once a second */
} pl_search;

typedef struct pl_search_outcome {
  pl_search_end end;
  uint32_t n_rows;                  /* proposals with a row, known ones included */
  uint32_t n_computed;              /* simulated in this run, by all ranks */
  uint32_t n_by_status[4];          /* of the rows, by pl_result_status */
  const pl_result_row *top;         /* the best that fit, in order of time and discovery, with row->search */
  uint32_t n_top;                   /* 0: none fits */
  const pl_result_row *nearest_oom; /* of those that do not fit the one that misses by least; NULL: there is none */
  pl_search_account account;
  char first_failure[PL_SEARCH_FAILURE_BYTES]; /* of a strategy that could not be simulated; "" = none */
  double elapsed_s;
} pl_search_outcome;

/* Collective over `comm` (or PL_ALONE); MPI_THREAD_FUNNELED, by the thread that initialised MPI. All ranks return the
 * same code and outcome; rows of the outcome are in `arena`. Of memory it takes a round and the top; the rest is the
 * method's. PL_BAD_INPUT: the method's open refuses, or `known` is of another search. */
pl_code pl_search_run(const pl_search *search, MPI_Comm comm, pl_arena *arena, pl_search_outcome *outcome,
                      pl_error *error);

#endif
