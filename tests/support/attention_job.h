/* A small job of which nothing but attention takes time, for tests of whole programs against closed forms.
 *
 * Attention takes what its profile's table says (per layer and microbatch); everything else runs at 1e30 FLOP/s and
 * bytes/s, 0 ticks. Links have no latency unless a test says so, and a port that is not given is so wide that bytes
 * take no time. */
#ifndef PL_TESTS_SUPPORT_ATTENTION_JOB_H
#define PL_TESTS_SUPPORT_ATTENTION_JOB_H

#include "workloads/run/simulate.h"

enum { ATTENTION_HIDDEN = 256, ATTENTION_HEADS = 4, ATTENTION_SEQ = 128 };

typedef struct attention_job {
  pl_op_entry table[2]; /* backward, forward */
  pl_device_profile profile;
  pl_model model;
  pl_job job;
  pl_cluster *cluster;
  pl_arena arena;
  const pl_collective_profile *profile_of_collectives; /* NULL: ideal; set before it is simulated */
} attention_job;

typedef struct attention_shape {
  int n_layers;
  double forward_s, backward_s; /* per layer */
  uint32_t n_nodes, gpus_per_node;
  double port_Bps, nic_Bps; /* 0: so wide that bytes take no time */
  double nic_latency_s;     /* of the way out and of the way in, each */
  int64_t gbs;
  int32_t tmp;
} attention_shape;

void attention_job_build(attention_job *own, const attention_shape *given);
void attention_job_release(attention_job *own);
/* With ring collectives; fails the test when `text` is no strategy for the job. */
pl_simulate_report attention_job_simulate(attention_job *own, const char *text);

/* Within `ticks` of the grid: every task's date is rounded once. */
void expect_time(const char *what, double time_s, double formula_s, double ticks);

pl_block_program attention_job_block(attention_job *own, pl_block_kind kind, int32_t tmp);
/* Of one block, and of the whole model; in fp16. */
double attention_job_gradient_bytes(attention_job *own, pl_block_kind kind);
double attention_job_all_gradient_bytes(attention_job *own);
double ring_all_reduce_s(int32_t n, double size_bytes, double port_Bps);

#endif
