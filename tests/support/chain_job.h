/* Recorded steps of data parallel jobs, made: ranks that compute op by op, each op's gradient reduced on a stream of
 * its own, one after the other. */
#ifndef PL_TESTS_SUPPORT_CHAIN_JOB_H
#define PL_TESTS_SUPPORT_CHAIN_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "search/optimize/plan_search.h"
#include "tests/support/random.h"

enum { CHAIN_MOST_RANKS = 4, CHAIN_MOST_OPS = 64 };

typedef struct chain_op {
  int64_t compute_ns;
  int64_t gap_ns;     /* in front of it */
  int64_t size_bytes; /* of its gradient; 0: it makes none */
  int64_t beside_ns;  /* of an op on another stream that waits for it; 0: none */
} chain_op;

typedef struct chain_job {
  uint32_t n_ranks, n_ops;
  chain_op ops[CHAIN_MOST_OPS];
  int64_t latency_ns, ns_per_kB;
  double slow[CHAIN_MOST_RANKS]; /* factor on a rank's computing */
  uint32_t waits;                /* bits: ranks whose last op waits for the first reduction, which must be through */
} chain_job;

typedef struct chain_step {
  pl_trace trace;
  pl_trace_meetings meetings;
  pl_trace_clocks clocks;
  pl_trace_step_list steps;
  pl_arena arena;
  pl_trace_fits fits;
  pl_trace_replay replay;
  pl_step_model whole, coarse;
  pl_step_costs costs;
} chain_step;

/* Ranks of unlike speed; two ops of three make gradients, the last one does. */
static inline chain_job chain_random_job(uint64_t *random, uint32_t least_ops, uint32_t most_ops) {
  chain_job job = {.n_ranks = random_between(random, 2, CHAIN_MOST_RANKS)};
  job.n_ops = random_between(random, least_ops, most_ops);
  job.latency_ns = (int64_t)random_below(random, 40000);
  job.ns_per_kB = 100;
  for (uint32_t r = 0; r < job.n_ranks; r++)
    job.slow[r] = 1 + 0.2 * random_unit(random);
  for (uint32_t k = 0; k < job.n_ops; k++) {
    job.ops[k].compute_ns = 1000 + (int64_t)random_below(random, 100000);
    job.ops[k].gap_ns = (int64_t)random_below(random, 3000);
    job.ops[k].size_bytes = random_below(random, 3) == 0 ? 0 : 1000 + (int64_t)random_below(random, 500000);
  }
  job.ops[job.n_ops - 1].size_bytes = 5000;
  return job;
}

static inline uint32_t chain_name(pl_trace *trace, const char *text) {
  return pl_trace_name(trace, text, strlen(text));
}

/* End of the k-th op of computing on a rank. */
static inline int64_t chain_computed(const chain_job *job, uint32_t rank, uint32_t k) {
  int64_t date = 0;
  for (uint32_t i = 0; i <= k; i++)
    date += job->ops[i].gap_ns + (int64_t)((double)job->ops[i].compute_ns * job->slow[rank]);
  return date;
}

static inline void chain_add_rank(chain_step *step, const chain_job *job, uint32_t r, uint32_t group) {
  pl_trace *trace = &step->trace;
  uint32_t first_edge = trace->n_edges;
  char name[32];
  pl_trace_add_rank(trace, (pl_trace_rank){.number = r,
                                           .host = chain_name(trace, "h"),
                                           .file = chain_name(trace, "f"),
                                           .first_op = trace->n_ops,
                                           .first_step = trace->n_steps});
  uint32_t gpu = pl_trace_add_stream(trace, r, chain_name(trace, "gpu"), PL_TRACE_DEVICE);
  uint32_t net = pl_trace_add_stream(trace, r, chain_name(trace, "net"), PL_TRACE_NETWORK);
  uint32_t side = pl_trace_add_stream(trace, r, chain_name(trace, "side"), PL_TRACE_DEVICE);
  uint32_t first = PL_NONE, op = PL_NONE;
  int64_t through[CHAIN_MOST_RANKS] = {0}, whole = 0; /* of each rank; when the last reduction ended */
  for (uint32_t k = 0; k < job->n_ops; k++) {
    const chain_op *o = &job->ops[k];
    int64_t length = (int64_t)((double)o->compute_ns * job->slow[r]), end = chain_computed(job, r, k);
    snprintf(name, sizeof name, "op%u", k);
    op = pl_trace_add_op(
        trace, pl_trace_op_of(end - length, length, chain_name(trace, name), gpu, PL_NONE, PL_NONE, PL_TRACE_COMPUTE));
    if (o->beside_ns > 0) {
      uint32_t other = pl_trace_add_op(trace, pl_trace_op_of(end, o->beside_ns, chain_name(trace, "beside"), side,
                                                             PL_NONE, PL_NONE, PL_TRACE_COMPUTE));
      pl_trace_add_edge(trace, op, other, false);
    }
    if (o->size_bytes == 0) continue;
    int64_t last = 0;
    for (uint32_t i = 0; i < job->n_ranks; i++) {
      through[i] = whole > chain_computed(job, i, k) ? whole : chain_computed(job, i, k);
      if (through[i] > last) last = through[i];
    }
    whole = last + job->latency_ns + o->size_bytes * job->ns_per_kB / 1000;
    pl_trace_message message = {PL_TRACE_ALL_REDUCE, group, -1, PL_NONE, -1, o->size_bytes};
    snprintf(name, sizeof name, "grad%u", k);
    uint32_t reduce =
        pl_trace_add_op(trace, pl_trace_op_of(through[r], whole - through[r], chain_name(trace, name), net,
                                              pl_trace_add_message(trace, message), PL_NONE, PL_TRACE_COLLECTIVE));
    pl_trace_add_edge(trace, op, reduce, false);
    if (first == PL_NONE) first = reduce;
  }
  if (job->waits >> r & 1) pl_trace_add_edge(trace, first, op, false);
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_trace_end_rank(trace, r, first_edge, &error), PL_OK);
}

static inline void chain_set_up(chain_step *step, const chain_job *job) {
  pl_error error = PL_ERROR_INIT;
  int64_t members[CHAIN_MOST_RANKS];
  pl_trace_init(&step->trace);
  pl_arena_init(&step->arena, 0);
  for (uint32_t r = 0; r < job->n_ranks; r++)
    members[r] = r;
  uint32_t group = pl_trace_add_group(&step->trace, chain_name(&step->trace, "all"), members, job->n_ranks);
  for (uint32_t r = 0; r < job->n_ranks; r++)
    chain_add_rank(step, job, r, group);
  assert_true(pl_trace_is_valid(&step->trace));
  assert_int_equal(pl_trace_meetings_make(&step->trace, &step->meetings, &error), PL_OK);
  assert_int_equal(pl_trace_clocks_make(&step->trace, &step->meetings, &step->clocks, &error), PL_OK);
  assert_int_equal(pl_trace_steps_make(&step->trace, &step->clocks, &step->steps, &error), PL_OK);
  assert_int_equal(pl_trace_replay_take(&step->trace, &step->meetings, &step->clocks, &step->steps, 0, &step->arena,
                                        &step->replay, &error),
                   PL_OK);
  assert_int_equal(pl_step_model_take(&step->replay, &step->steps, true, &step->arena, &step->whole, &error), PL_OK);
  assert_int_equal(pl_step_model_coarsen(&step->whole, &step->arena, &step->coarse, &error), PL_OK);
  step->fits.n = 0;
  pl_trace_fits_add(&step->replay, &step->fits);
  assert_int_equal(pl_step_costs_take(&step->whole, NULL, &step->fits, &step->arena, &step->costs, &error), PL_OK);
  for (uint32_t k = 0; k < step->whole.n_tensors; k++) /* exactly, where sizes of the case are all the same too */
    step->costs.latency[k] = pl_trace_ticks_from_ns(job->latency_ns);
}

static inline void chain_tear_down(chain_step *step) {
  pl_trace_steps_release(&step->steps);
  pl_trace_clocks_release(&step->clocks);
  pl_trace_meetings_release(&step->meetings);
  pl_trace_release(&step->trace);
  pl_arena_release(&step->arena);
}

#endif
