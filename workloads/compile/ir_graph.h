/* From a distributed program to an execution graph: what its lists do, device by device.
 *
 * A device computes its list's ops in order on its compute stream; what stands between two meetings with others is one
 * task. A collective starts when all devices along its axes have come to it, on the stream of its axes (data axes are
 * those whose names begin with dp: gradient streams, of experts their own, on which the profiles' overlap factor acts;
 * cp: context; the others: feature), and is waited for where its value is first read, as a framework that launches it
 * on another stream waits by an event. A send starts when its value is there; its receiver waits where it reads what
 * came.
 *
 * What a step does is noted once, act by act (ir_graph_pass.c), and done for every microbatch: O(devices * acts) tasks,
 * one per stretch of computing; a step's tasks are its own, so that each list is a lane (core/cluster/lanes.h), and
 * microbatches that recur can be left to the engine. Devices that are alike are folded (ir_graph_fold.c): O(classes of
 * devices * acts) tasks, the same dates; and there tensor collectives are parts of the work around them
 * (ir_graph_fuse.c), so that a pass is a task or two.
 * Device i of the mesh is device i of the cluster.
 */
#ifndef PL_WORKLOADS_IR_GRAPH_H
#define PL_WORKLOADS_IR_GRAPH_H

#include "core/cluster/lanes.h"
#include "core/graph/graph.h"
#include "workloads/compile/ir_transfers.h"
#include "workloads/cost/op_cost.h"
#include "workloads/framework/framework.h"
#include "workloads/language/ir_recurrence.h"

typedef struct pl_ir_graph_options {
  pl_collective_options collective;
  const pl_framework *framework; /* of a program of level kernels: what it says of its kernels; NULL: ideal */
  bool names;                    /* for timelines */
  bool fold;                     /* one device for each class of interchangeable ones, where there are some */
  bool fuse;                     /* where it is folded, tensor collectives become parts of work */
  const uint32_t *marks;         /* per device of the cluster: unlike ones are not alike; NULL: there are none */
  bool no_overlap_factor;        /* ignore the profiles' gamma */
  bool spendings;                /* says what devices compute, and of which collectives transfers are */
} pl_ir_graph_options;

/* What each device of a class computes in an iteration: so often this kernel; or the optimizer's one launch, or what
 * the host is late by, which have none. */
typedef struct pl_ir_spending {
  int32_t class;
  bool has_kernel;
  pl_op kernel;
  pl_category category;
  uint64_t n;
  const pl_ticks *ticks;  /* of one, per profile of the cluster */
  const uint8_t *sources; /* pl_cost_source, likewise */
} pl_ir_spending;

/* Collectives that are parts of work (ir_graph_fuse.c), so often one that takes so long. */
typedef struct pl_ir_within {
  uint32_t device, spec; /* of the graph */
  bool is_disturbed;     /* sometimes longer, then; of a device all that are are of one spec */
  uint64_t n;
  pl_ticks ticks;
} pl_ir_within;

/* What a part of work is, of whom names are asked: a kernel and what it takes alone, per profile of the cluster. */
typedef struct pl_ir_origin {
  pl_op kernel;
  const pl_ticks *ticks;
  const uint8_t *sources, *bounds; /* pl_cost_source, pl_cost_bound */
} pl_ir_origin;

typedef struct pl_ir_graph {
  pl_graph graph;
  pl_lanes lanes;                             /* where something is left out */
  uint64_t n_more;                            /* periods of it; 0: the phases are too short to tell */
  const uint32_t *device_class;               /* per device of the mesh that of the graph; NULL: the same */
  uint64_t n_kernels, n_collectives, n_sends; /* on all devices, over all microbatches */
  uint64_t n_offloads;                        /* copies between devices and their hosts */
  double offloaded_bytes;                     /* by them */
  bool host_updates;                          /* the host's processors update some parameters */
  double flops;                               /* of all devices */
  const pl_ir_spending *spendings;            /* NULL: not asked for */
  uint32_t n_spendings;
  const pl_ir_within *insides; /* likewise */
  uint32_t n_insides;
  const pl_ir_sent *sent; /* per transfer spec of the graph */
  /* Per part of the graph; NULL: names are not asked for. NULL of one: no kernel, as what a host is late by. */
  const pl_ir_origin *const *origins;
} pl_ir_graph;

/* What the processors of a node take to update a parameter of theirs with Adam, all of them at it: DeepSpeed's CPU-Adam
 * on the two Xeon Platinum 8168 of a DGX-2, 0.22, 0.51, 1.03, 2.41 and 2.57 s for 1, 2, 4, 8 and 10 thousand million
 * parameters (Ren et al., ZeRO-Offload, USENIX ATC 2021, tables 2 and 4): the median a parameter, which is also that of
 * the largest model. About 30 bytes are read and written for each (fp32 weight, both moments and gradient, and the
 * narrow weight), 117 GB/s. Hosts with other memory are taken for as fast. torch.optim.Adam took 5.8 times as long
 * there. Devices of a node share them. */
#define PL_HOST_UPDATE_S 0.257e-9

/* Makes graphs of one program, of all of it or of what is played; what they have in common (prices, transfers, which
 * devices are alike) is found once. */
typedef struct pl_ir_graph_maker pl_ir_graph_maker;

/* `module` passed pl_ir_check. Memory from `arena`, of this and of all graphs; `options` outlives the maker.
 * PL_BAD_INPUT: it has more devices than the cluster. */
pl_code pl_ir_graph_maker_take(const pl_cluster *cluster, const pl_ir_module *module,
                               const pl_ir_graph_options *options, pl_arena *arena, pl_ir_graph_maker **maker,
                               pl_error *error);

/* What a microbatch takes on the network alone: of the list that takes longest, and of its way through all lists and
 * back. Where the way is longer than that of as many as are under way at a time, a pipeline goes on by the way. */
typedef struct pl_ir_pace {
  bool is_known;
  pl_ticks busiest, way;
  bool carries; /* passes may hand something on to later ones on their device (PL_IR_CARRIED_PERIODS) */
} pl_ir_pace;

/* The first half of pl_ir_graph_make of the same, which need not follow: all that graphs have in common. The same is
 * told by its address: between the two, nothing else may be written to *played, nor be put where it was. */
pl_code pl_ir_graph_prepare(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_ir_pace *pace, pl_error *error);
/* NULL: of the whole program. Numbers are those of the whole in any case. PL_BAD_INPUT: a deadlock that only streams
 * make. */
pl_code pl_ir_graph_make(pl_ir_graph_maker *maker, const pl_ir_played *played, pl_ir_graph *made, pl_error *error);

/* The graph of a whole program: both in one. */
pl_code pl_ir_graph_take(const pl_cluster *cluster, const pl_ir_module *module, const pl_ir_graph_options *options,
                         pl_arena *arena, pl_ir_graph *made, pl_error *error);

#endif
