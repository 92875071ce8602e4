/* A small random training step for tests of the engine: tasks in program order, each a single part, with their streams
 * and edges as plain lists; groups of consecutive tasks that may be fused into one, some of them joint segments. From a
 * plan one can
 *   - build the graph, unfused or fused, edges in any order;
 *   - simulate it naively, in time O(ticks * tasks^2), straight from the words of core/engine/engine.h and sharing no
 * code with the engine but the network. */
#ifndef PL_TESTS_SUPPORT_PLAN_H
#define PL_TESTS_SUPPORT_PLAN_H

#include "core/engine/engine.h"

enum { PLAN_TASKS = 160, PLAN_EDGES = 960, PLAN_DEVICES = 5, PLAN_SPECS = 4, PLAN_STREAMS = PLAN_DEVICES };

typedef struct plan_task {
  pl_task_kind kind;
  pl_category category;
  bool computes, is_crowded;
  pl_ticks ticks;
  double size_bytes;
  uint32_t spec;
  uint32_t n_streams;
  uint32_t device[PLAN_STREAMS];
  pl_stream_kind stream[PLAN_STREAMS];
  int64_t peak_bytes, net_bytes;
  uint32_t group; /* tasks of one group are fused into one; PL_NONE = on its own */
  uint32_t part;  /* which part of that it is: in a joint segment several devices have a task for one part */
} plan_task;

typedef struct test_plan {
  pl_stream_policy policy;
  uint32_t n_tasks, n_edges, n_devices;
  plan_task tasks[PLAN_TASKS];
  uint32_t before[PLAN_EDGES], after[PLAN_EDGES];
  pl_graph_device devices[PLAN_DEVICES];
  pl_transfer_spec specs[PLAN_SPECS];
  pl_transfer_table table;
  bool precedes[PLAN_TASKS][PLAN_TASKS]; /* [before][after]: by edge, or directly before it on a stream */
} test_plan;

typedef struct plan_options {
  pl_stream_policy policy;
  bool fusable;    /* groups, and nothing that could come between their tasks; no memory effects */
  bool on_compute; /* communication parts of groups are work on the compute stream, not delays on the feature stream */
  bool joint;      /* groups of several devices, too */
  bool overlap;    /* overlap factors above zero, collectives that take multiprocessors and what they slow */
  bool transfers;
} plan_options;

void plan_make(test_plan *plan, const plan_options *options, uint64_t *random);
/* Shuffles the edges with `shuffle` unless it is NULL. task_of: the graph's task of each task of the plan. */
pl_code plan_build(const test_plan *plan, bool fused, uint64_t *shuffle, pl_arena *arena, pl_graph *graph,
                   uint32_t *task_of, pl_error *error);

typedef struct plan_run {
  pl_ticks makespan;
  pl_ticks start[PLAN_TASKS], finish[PLAN_TASKS];
  int64_t peak_bytes[PLAN_DEVICES];
  pl_ticks spent[PLAN_DEVICES][PL_CATEGORY_COUNT], idle[PLAN_DEVICES];
} plan_run;

/* Fills all of `run` but spent and idle. */
void plan_simulate(const test_plan *plan, pl_arena *arena, plan_run *run);
/* Fills spent and idle, tick by tick from the rule in core/engine/engine.h; slow: for small plans. */
void plan_account(const test_plan *plan, plan_run *run);

#endif
