/* One iteration of a distributed program (workloads/language), as it is written: its lists, its collectives, its order,
 * on the devices of a cluster. */
#ifndef PL_WORKLOADS_SIMULATE_PROGRAM_H
#define PL_WORKLOADS_SIMULATE_PROGRAM_H

#include <stdio.h>

#include "workloads/compile/ir_graph.h"
#include "workloads/memory/program_memory.h"
#include "workloads/run/simulate.h"

/* Why every one of many microbatches was played. */
typedef enum pl_whole_reason {
  PL_WHOLE_NO_REASON = 0, /* it was not, was asked for, or there are few */
  PL_WHOLE_LISTS,         /* steps of some list do not recur, or what is left of them waits for itself */
  PL_WHOLE_RUN            /* the state of no shorter run came back */
} pl_whole_reason;

typedef struct pl_program_report {
  double iter_time_s;
  double spent_s[PL_CATEGORY_COUNT], idle_s; /* means over the devices; add up to the iteration */
  uint32_t n_devices, n_classes;
  uint64_t n_kernels, n_collectives, n_sends, n_tasks, run_digest;
  int32_t n_played; /* microbatches of the module's; n_tasks and run_digest are of these */
  pl_whole_reason whole;
  uint64_t n_offloads; /* copies between devices and the memory of their hosts, and bytes by them */
  double offloaded_bytes;
  bool host_updates;             /* some of them for updates by the host's processors */
  double flops;                  /* of all devices */
  const pl_class_memory *memory; /* per class */
  const pl_stage_times *times;   /* likewise, of the device that is idle least; NULL: not asked for (program_times) */
  int32_t fullest;               /* class that has least left, or lacks most */
  bool fits;
  double remains_factor; /* that times were multiplied by; 1: nothing remains */
  pl_interval interval;
} pl_program_report;

/* `module` passed pl_ir_check. Of the options: network (flow or analytic), sharing, algorithm, collective_profile,
 * no_overlap_factor, leap, trace, diagram, stragglers, straggling, residuals with program_aspects, recurrence, remains
 * with program_configuration. Memory from `arena`.
 */
pl_code pl_simulate_program(const pl_cluster *cluster, const pl_ir_module *module, const pl_framework *framework,
                            const pl_simulate_options *options, pl_arena *arena, pl_program_report *report,
                            pl_error *error);
/* What the site's figures leave of the program of the options; 1: nothing. */
double pl_program_remains_factor(const pl_simulate_options *options);
/* Of all devices of the program, each type of the job at its own peak. */
double pl_program_peak_flops(const pl_cluster *cluster, const pl_program_report *report, const pl_job *job,
                             double narrow_share);

#endif
