/* The job: what is to be trained, whatever the strategy. */
#ifndef PL_WORKLOADS_JOB_H
#define PL_WORKLOADS_JOB_H

#include "workloads/framework/framework.h"

typedef struct pl_job {
  int64_t gbs; /* sequences per iteration */
  int64_t seq;
  pl_dtype dtype;
  bool fp8; /* the products of the layers' weights, of Transformer Engine's linear layers, are in fp8 */
  bool fp4; /* with fp8: these products are in NVFP4 instead */
  bool flash;
  int32_t norm_groups; /* of the pictures of an iteration, whose batch norms are apart, where no strategy says so; 0, 1:
                          all are together */
  double bucket_bytes; /* gradient bucket; 25 MB by default */
  bool split_sends;    /* each tensor rank sends its share of an activation, the receivers gather
                          (workloads/program/program.h) */
  const pl_framework *framework;          /* NULL = ideal; pl_framework_apply sets it and the three above */
  const struct pl_op_profile *op_profile; /* measured blocks (workloads/cost/op_profile.h); NULL = none */
} pl_job;

#endif
