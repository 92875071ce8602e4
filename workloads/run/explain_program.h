/* Where each second of a program's iteration goes: what each device computed, by the names of kernels, and what it
 * waited for. On every device computing, waiting for communication and idling add up to the iteration exactly. */
#ifndef PL_WORKLOADS_EXPLAIN_PROGRAM_H
#define PL_WORKLOADS_EXPLAIN_PROGRAM_H

#include "core/engine/engine.h"
#include "workloads/compile/ir_graph.h"
#include "workloads/run/explained_group.h"

/* Kernels of one name and pass, or communication of one name, kind, size and group; whatever the layer:
 * "h.*.mlp.up". */
typedef struct pl_program_part {
  const char *name;
  uint8_t category; /* pl_category */
  bool computes;
  uint64_t calls;      /* communication: 0, where the device waited for what it had no part in */
  pl_ticks time;       /* computing: as it ran; communication: what the device waited for it */
  pl_ticks alone;      /* of all calls, each by itself on the machine; what no kernel has is its time; -1: not known */
  pl_ticks run;        /* communication: from start to end, of all calls */
  pl_ticks foreign;    /* communication: of `time`, for calls that the device has no part in */
  double flops, bytes; /* of all calls: work, and traffic to device memory; communication: sizes */
  const pl_op *kernel; /* of a call; NULL: none of the calls is a kernel's, as what a host is late by */
  bool unlike;         /* their shapes differ */
  /* Of calls of a kernel pl_cost_bound and pl_cost_source; PL_PROGRAM_PART_MIXED: they differ; PL_PROGRAM_PART_NONE:
   * there is none. */
  int32_t bound, source;
  const pl_explained_group *group; /* of communication, which way it goes; NULL: a copy between a device and its host */
} pl_program_part;

enum { PL_PROGRAM_PART_NONE = -1, PL_PROGRAM_PART_MIXED = -2 };

static inline pl_ticks pl_program_part_hidden(const pl_program_part *part) {
  return part->run - (part->time - part->foreign);
}

/* Of one list of the program the device that is idle least. */
typedef struct pl_program_list {
  const char *name; /* of the class */
  uint32_t device;  /* of the cluster */
  uint32_t n_alike; /* devices that it stands for */
  pl_ticks idle;
  uint32_t n_parts;
  const pl_program_part *parts; /* longest first; those of computing in front */
} pl_program_list;

typedef struct pl_program_explanation {
  pl_ticks makespan;
  uint32_t n_lists, busiest;
  const pl_program_list *lists; /* by class */
} pl_program_explanation;

/* Of a run of the module's graph, which may be folded and has names, with parts and charges recorded. Memory from
 * `arena`. */
pl_code pl_program_explanation_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph *made,
                                    const pl_engine_result *result, pl_arena *arena,
                                    pl_program_explanation *explanation, pl_error *error);

#endif
