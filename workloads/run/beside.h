/* Jobs beside each other on one fabric: each on devices of its own, all on the same links, in one run.
 *
 * Every job is compiled by itself, from a tuple or as the program that a strategy tree makes, on its part of the
 * cluster (netmodel/platform/platform_part.h), unfolded and with every transfer on the network, and the graphs are
 * joined (core/graph/graph_join.h). Alone it is simulated as ever. What a job loses beside the others is contention for
 * links and nothing else: hosts, memory and power are its own. */
#ifndef PL_WORKLOADS_BESIDE_H
#define PL_WORKLOADS_BESIDE_H

#include "workloads/run/simulate.h"

enum { PL_BESIDE_JOBS_MAX = 64, PL_BESIDE_ITERATIONS_MAX = 10000 };

typedef struct pl_beside_job {
  const char *name;
  const pl_model *model;
  const pl_job *job;
  const pl_strategy *strategy;        /* checked against `part`; NULL: `program` */
  const struct pl_ir_module *program; /* of a strategy tree: as it is launched, on as many devices as the part has */
  const char *strategy_text;          /* the tree's file */
  const pl_cluster *part;
  const uint32_t *devices; /* of the cluster, per device of the part */
  const pl_collective_profile *collectives;
  double offset_s;
  uint32_t n_iterations; /* 0: as many as fit into the first job's iteration alone, at least one */
  /* Filled by pl_beside_run. Means over the iterations; the dates of the whole. */
  double alone_s, beside_s, longest_s, begin_s, end_s;
} pl_beside_job;

typedef struct pl_beside_report {
  double makespan_s;
  uint32_t n_devices, n_tasks;
  uint64_t run_digest;
} pl_beside_report;

/* The first job is the one that the others are beside. Of the options: network, sharing, algorithm, chunked, fuse,
 * streams, no_overlap_factor, platform, trace with its header (jobs and devices are its processes). `cluster`: of all.
 * Memory from `arena`. */
pl_code pl_beside_run(const pl_cluster *cluster, pl_beside_job *jobs, uint32_t n_jobs,
                      const pl_simulate_options *options, pl_arena *arena, pl_beside_report *report, pl_error *error);

#endif
