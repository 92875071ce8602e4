/* Collectives played on a cluster for tests and benches: fluid by solo ticks, or chunked and fluid through the real
 * engine and the flow network, any number of them at once. */
#ifndef PL_TESTS_SUPPORT_COLLECTIVE_RUN_H
#define PL_TESTS_SUPPORT_COLLECTIVE_RUN_H

#include "netmodel/collective/collective.h"

typedef struct collective_job {
  const pl_collective_group *group;
  pl_collective_kind kind;
  double size_bytes;
  uint32_t chunks; /* 0 = fluid */
  pl_ticks start;  /* not before */
  pl_ticks finish; /* out */
} collective_job;

/* Time of a fluid collective alone: the sum over its phases. */
pl_ticks collective_solo_ticks(const pl_cluster *cluster, const pl_fluid_collective *fluid);
/* Runs all jobs together and fills in their finish ticks. Aborts the program on failure. */
void collective_run(const pl_cluster *cluster, collective_job *jobs, uint32_t n_jobs);

#endif
