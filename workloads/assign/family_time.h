/* How long a collective of a family takes when all the family's communicators run it at the same time and nothing else
 * is on the links: what a cost model needs before there is a plan (workloads/compile/communication.h). */
#ifndef PL_WORKLOADS_FAMILY_TIME_H
#define PL_WORKLOADS_FAMILY_TIME_H

#include "workloads/program/program.h"

typedef struct pl_family_time {
  const pl_cluster *cluster;
  pl_arena *arena;
  const pl_collective_options *options;
  double *load; /* per link of the cluster: uses per byte of progress, all zero between calls */
  const pl_family *family;
  pl_collective_group **groups;
  pl_fluid_collective *fluids;
} pl_family_time;

/* Storage that several families share: one at a time. */
pl_code pl_family_time_init(pl_family_time *time, const pl_cluster *cluster, const pl_collective_options *options,
                            pl_arena *arena, pl_error *error);
/* Takes up a family: O(members) routes. */
pl_code pl_family_time_begin(pl_family_time *time, const pl_family *family, pl_error *error);
/* Of the slowest communicator. Links are shared in proportion to use. O(uses); phases of an algorithm count as one
 * transfer (pl_fluid_collective_merge). */
pl_code pl_family_time_of(pl_family_time *time, pl_collective_kind kind, double size_bytes, double *time_s,
                          pl_error *error);

#endif
