/* A launch file for a job that has been simulated: what starts the winner of a sweep. Reading it back
 * (workloads/launch/launch.h) gives the same job and strategy. */
#ifndef PL_WORKLOADS_LAUNCH_WRITE_H
#define PL_WORKLOADS_LAUNCH_WRITE_H

#include <stdio.h>

#include "workloads/launch/launch.h"

typedef struct pl_launched {
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy; /* with boundaries */
  uint32_t n_nodes, gpus_per_node;
  const char *comment; /* a line on where this comes from */
} pl_launched;

/* PL_UNSUPPORTED names what the framework has no setting for; nothing is written then. What Paceline has no say in,
 * data, tokenizer and learning rate above all, is left to be filled in, and a comment says so. */
pl_code pl_launch_write(FILE *stream, pl_launch_form form, const pl_launched *launched, pl_error *error);

#endif
