/* A recorded step, optimised: passes in their order, each checked by replay (see search/optimize/plan_search.h). */
#ifndef PL_SEARCH_OPTIMIZE_H
#define PL_SEARCH_OPTIMIZE_H

#include "search/optimize/memory_pass.h"
#include "search/optimize/pass_object.h"
#include "search/optimize/passes.h"
#include "search/optimize/plan_search.h"

typedef struct pl_optimize_options {
  pl_pass_list passes;
  pl_plan_options search;
  const pl_op_costs *costs;        /* NULL: none given */
  const pl_trace_fits *fits;       /* of the messages of all steps */
  const char *fuses;               /* shell pattern of the ops that op-fusion may fuse; NULL: all */
  const pl_device_profile *device; /* NULL: none given */
  pl_memory_options memory;
  const pl_pass_object *objects;
  uint32_t n_objects;
} pl_optimize_options;

typedef struct pl_framework_plan {
  int64_t cap_bytes; /* buckets are closed once they reach it; -1: no sizes */
  pl_ticks ticks;    /* of the step with buckets made so */
} pl_framework_plan;

/* The plan in a step. */
typedef struct pl_other_step {
  int64_t number;
  pl_ticks before, after;
  bool is_alike;  /* it has the same gradients and ops; else the times mean nothing */
  bool is_behind; /* it was played behind the step before, which has the plan as well */
} pl_other_step;

typedef struct pl_optimization {
  const pl_trace_replay *replay;
  pl_step_model whole, coarse;
  pl_step_costs costs;
  pl_memory_plan memory;
  pl_plan_search search;
  pl_ticks before;       /* with nothing changed */
  pl_ticks replayed;     /* by the replay of the recording */
  pl_framework_plan ddp; /* torch's DistributedDataParallel */
  pl_framework_plan horovod;
  pl_framework_plan byteps; /* bytes of a piece */
  pl_other_step *others;    /* all steps, that of the plan among them */
  uint32_t n_others;
} pl_optimization;

/* Everything from `arena`. PL_BAD_INPUT: a pass that was asked for has nothing to go by; the message says what is
 * missing. */
pl_code pl_optimize(const pl_trace_replay *replay, const pl_trace_step_list *steps, const pl_optimize_options *options,
                    pl_arena *arena, pl_optimization *job, pl_error *error);

/* What frameworks are told by one number: the best of those that make a difference, each replayed. */
pl_code pl_framework_plans_find(pl_optimization *job, const pl_optimize_options *options, pl_error *error);

#endif
