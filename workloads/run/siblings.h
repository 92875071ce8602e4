/* Families: strategies that differ in what becomes of their gradients alone, in ZeRO and in overlap, and so play the
 * same run up to the last backward pass. A sweep has them side by side. Of the first of a family that is simulated its
 * runs are kept, and those of the others go on from where they were when that pass began (core/engine/engine_fork.h).
 *
 * Nothing that is told of a simulation depends on it: whether two runs are alike so far is asked of their graphs, and
 * a run goes on as it would have from the beginning. Of one thread, kept between simulations.
 */
#ifndef PL_WORKLOADS_SIBLINGS_H
#define PL_WORKLOADS_SIBLINGS_H

#include "core/engine/engine_fork.h"
#include "workloads/strategy/strategy.h"

/* Runs of a simulation of which more are not kept. */
enum { PL_SIBLING_RUNS = 8 };
/* What is kept stands beside the simulations that go on from it: a first one that has taken more when it has run is not
 * kept. So much stays for the next family, and nothing while there is none. */
enum { PL_SIBLING_MOST_BYTES = 24 << 20, PL_SIBLING_KEPT_BYTES = 16 << 20 };

/* The k-th run that the first of the family needed. */
typedef struct pl_sibling_run {
  pl_graph graph;
  pl_graph_heads heads;
  pl_engine_fork *fork; /* NULL: nothing was kept */
} pl_sibling_run;

typedef struct pl_siblings {
  pl_arena arena; /* all memory of the simulation whose runs are kept */
  bool is_open;   /* there is one */
  bool is_large;  /* there was one, but it took too much */
  pl_strategy strategy;
  uint64_t boundaries; /* digest of them */
  pl_sibling_run runs[PL_SIBLING_RUNS];
  uint64_t n_tasks, n_taken_over; /* of all runs, and what others had done: for tests and curiosity */
} pl_siblings;

/* Caller's storage; takes no memory yet. */
void pl_siblings_init(pl_siblings *siblings);
void pl_siblings_release(pl_siblings *siblings);
/* Whether two strategies are of one family; their boundaries may still be to be found. */
bool pl_siblings_are(const pl_strategy *a, const pl_strategy *b);
/* Whether the strategy is of the family that is open, but not its first. */
bool pl_siblings_have(const pl_siblings *siblings, const pl_strategy *strategy);
/* Forgets the family that is open, and opens one with its first strategy if there can be others: then the simulation is
 * to take its memory from siblings->arena. */
bool pl_siblings_begin(pl_siblings *siblings, const pl_strategy *strategy);
/* The first has run once more. False: it has taken too much, and is forgotten. */
bool pl_siblings_keep(pl_siblings *siblings);
/* Forgets the first; `is_large`: of the family none is to be kept. */
void pl_siblings_drop(pl_siblings *siblings, bool is_large);
/* What the k-th run of `graph` is to keep or to go on from, into `engine`. `begins`: it is the family's first that
 * runs. `lanes` and `tails` as pl_graph_heads_take has them; scratch and what is kept from `arena`, which has failed if
 * there is no memory. */
void pl_siblings_meet(pl_siblings *siblings, bool begins, int k, const pl_graph *graph, const pl_lanes *lanes,
                      const uint32_t *tails, pl_arena *arena, pl_engine_options *engine);

#endif
