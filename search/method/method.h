/* A search method: a proposer of strategies to simulate. One table lists them all (search/method/method.c); a method is
 * one file `search/method_NAME.c` and one line there.
 *
 * A method is deterministic and replicated: every MPI rank runs its own copy and all copies see the same calls, so it
 * never touches MPI, clocks or threads. The driver (search/method/search.h) runs rounds: it asks for a batch of
 * proposals, simulates them over ranks and threads, exchanges the rows, and tells the method the results in the order
 * in which it proposed. So the sequence of proposals, and with it the results file, is the same for any ranks x
 * threads; and a search that was killed is resumed by replaying the rows that are there.
 *
 * Rejected: asynchronous proposals (a rank asks when it is idle): the sequence would depend on timing. What the barrier
 * of a round costs is small as long as a round has several simulations per thread.
 */
#ifndef PL_SEARCH_METHOD_H
#define PL_SEARCH_METHOD_H

#include "core/base/arena.h"
#include "core/base/words.h"
#include "core/graph/result.h"
#include "search/space/space.h"
#include "workloads/run/simulate.h"

/* What is searched; const during a search and the same on all ranks. */
typedef struct pl_search_problem {
  const pl_cluster *cluster;
  const pl_model *model;
  const pl_job *job;
  const pl_simulate_options *options; /* how rows are simulated: network, collectives ... */
  const pl_space_choices *choices;    /* what the user allows per dimension */
  uint64_t seed;                      /* the only source of randomness */
  const pl_tree_space *trees;         /* in place of all that: its trees are the candidates; NULL: strategies */
  bool allow_idle;                    /* strategies may leave devices idle */
  uint32_t n_top;                     /* best rows that are wanted; 0 counts as 1 */
  uint64_t budget;                    /* simulations this search may take, UINT64_MAX = no limit: for cooling plans */
} pl_search_problem;

typedef struct pl_proposal {
  /* A whole strategy; its arrays live as long as the search (take them from open's arena). boundary NULL: the recipe
   * is assigned where it is simulated. */
  pl_strategy strategy;
  uint32_t tree;     /* of a strategy space: the candidate's number, in place of the strategy */
  double bound_s;    /* lower bound on the simulated iter_time_s; 0 = unknown */
  double estimate_s; /* what the method's own cost model says; NaN = it has none */
} pl_proposal;

/* Those that are estimated to be fast first, then those with a low bound; for qsort. */
static inline int pl_proposal_by_estimate(const void *left, const void *right) {
  const pl_proposal *a = left, *b = right;
  if (a->estimate_s != b->estimate_s) return a->estimate_s < b->estimate_s ? -1 : 1;
  return (a->bound_s > b->bound_s) - (a->bound_s < b->bound_s);
}

/* What a method knows beyond the rows. Counts are of candidates. */
typedef struct pl_search_account {
  uint64_t enumerated;   /* candidates that the method has looked at or will; 0 = it does not enumerate */
  uint64_t bounded_away; /* not simulated, as their bound is not below the best */
  uint64_t memory_away;  /* not simulated, as they certainly do not fit in memory */
  double bound_s;        /* no candidate that is not simulated yet is faster than this; NaN = not known */
  const pl_space *space; /* for what was dropped, and why; NULL = there is none. What bound_s holds for. */
  uint64_t placed;       /* strategies of other placements that were bounded too, whether or not simulated; 0 = none */
  bool placed_all;       /* and bound_s holds for all that were ranked of these */
  double anywhere_s;     /* whatever the placement, layers and split: nothing is faster; 0 = not known */
} pl_search_account;

typedef struct pl_method {
  const char *name, *description;
  /* `arena` lives as long as the search. An empty space is the method's to refuse (PL_BAD_INPUT, saying what kills it
   * and what would do; pl_space_refuse_empty does so for spaces). */
  pl_code (*open)(const pl_search_problem *problem, pl_arena *arena, void **state, pl_error *error);
  /* At most `max` proposals; *n = 0: nothing left to propose. Proposals may repeat earlier ones (they are simulated
   * again and count). */
  pl_code (*propose)(void *state, uint32_t max, pl_proposal *proposals, uint32_t *n, pl_error *error);
  /* Once per proposal, in order, all of a round before the next propose; row->status DONE (fits), OOM (its time is
   * known all the same) or FAILED (times are NaN). NULL: it does not care. */
  void (*learn)(void *state, const pl_proposal *proposal, const pl_result_row *row);
  /* `account` is zeroed with NaN for its bound; NULL: the method knows nothing more. */
  void (*account)(const void *state, pl_search_account *account);
} pl_method;

#define PL_SEARCH_DEFAULT_METHOD "bound"

/* By name; NULL ends them. */
extern const pl_method *const pl_methods[];
/* NULL when there is none of that name. */
const pl_method *pl_method_find(const char *name);

/* The names of all methods, for messages, in `text`. */
const char *pl_methods_list(char text[PL_WORDS_BYTES]);
/* As pl_words_hint, over the methods' names. */
const char *pl_methods_hint(const char *name, char text[PL_WORDS_HINT_BYTES]);

#endif
