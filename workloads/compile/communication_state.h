/* A communication plan while it is made: what communication.c hands from step to step. Internal to workloads. */
#ifndef PL_WORKLOADS_COMMUNICATION_STATE_H
#define PL_WORKLOADS_COMMUNICATION_STATE_H

#include "workloads/compile/communication.h"

/* One op of one group, before folding. */
typedef struct pl_raw_op {
  uint32_t pattern;         /* index of the fold transfer */
  pl_ticks latency, flight; /* flight: at the end of the latency, holding nobody (pl_fluid_collective) */
  double rate_cap_Bps, share_weight, progress_bytes;
  uint32_t source, destination;
} pl_raw_op;

typedef struct pl_pattern {
  uint32_t family, group;
  const pl_link_use *uses;
  uint32_t n_uses;
  uint64_t colour;
  double rate_bound_Bps;       /* the largest cap of its ops */
  double wires_Bps, wires_for; /* what its links allow one transfer alone, under this share weight; 0: not looked at */
} pl_pattern;

typedef struct pl_planning {
  const pl_cluster *cluster;
  const pl_program *program;
  const pl_communication_options *options;
  pl_arena *arena;
  pl_communication_plan *plan;
  pl_error *error;
  uint32_t *first_raw;   /* per family: index of its first raw op; op o of group g is first_raw + g * n_ops + o */
  uint32_t *first_group; /* per family: number of groups before it */
  uint32_t n_groups, n_raw;
  pl_raw_op *raw;
  pl_pattern *patterns;
  uint32_t n_patterns;
  pl_collective_group **channels; /* per group */
  pl_topology_cache *cache;       /* NULL = none */
  uint32_t *rank_of; /* per device of the cluster; what is folded are ranks, so idle devices play no part */
  pl_fold_problem problem;
  pl_folding folding;
  uint32_t *class_of_group;
  pl_group_class *group_classes; /* the plan's, while they are made */
} pl_planning;

/* The last step: specs and lowered ops of the group classes, over the quotient's links. */
pl_code pl_communication_make_specs(pl_planning *state);

#endif
