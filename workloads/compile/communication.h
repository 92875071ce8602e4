/* From the families of a program to transfers of a graph: collectives are lowered to links, interchangeable devices are
 * folded, and what can never be contended is recognised.
 *
 * A group class stands for all communicators of one family that folding found interchangeable; a device class for all
 * such devices. Without folding each group and each device is a class of its own. A lowered op is one collective of a
 * group class: a transfer spec over link classes, its progress, and, when it has no rival, its fixed duration.
 */
#ifndef PL_WORKLOADS_COMMUNICATION_H
#define PL_WORKLOADS_COMMUNICATION_H

#include "core/graph/graph.h"
#include "netmodel/collective/collective.h"
#include "netmodel/collective/topology_cache.h"
#include "netmodel/fold/fold.h"
#include "netmodel/fold/quotient.h"
#include "workloads/program/program.h"

typedef struct pl_communication_options {
  pl_collective_options collective;
  bool fold;    /* merge interchangeable devices */
  bool prune;   /* find transfers without rivals (what fusing builds on) */
  bool alone;   /* no transfer feels another, of its own class neither (the analytic network) */
  bool chunked; /* keep the groups for pl_collective_chunked instead of lowering to fluid; implies !fold, !prune */
  pl_topology_cache *cache; /* of the calling thread; the plan lives until its next use. NULL = none */
  /* Per device of the cluster: devices with different marks compute at different paces, whatever their profiles say;
   * marks below n_marks. NULL: none do. n_marks * profiles of the cluster < 2^16 where devices are folded. */
  const uint32_t *marks;
  uint32_t n_marks;
} pl_communication_options;

typedef struct pl_lowered_op {
  uint32_t spec;           /* into table.specs */
  uint32_t transfer_class; /* into quotient.transfers */
  double progress_bytes;
  pl_ticks solo_ticks;  /* with all transfers of its class, which are under way at the same time */
  pl_ticks alone_ticks; /* with no other transfer at all */
  /* How long of either its bytes are on the way while streams are free again; its spec's latency is less by that. */
  pl_ticks flight_ticks;
  bool has_rivals; /* false: takes solo_ticks, always */
} pl_lowered_op;

typedef struct pl_participant {
  uint32_t device_class;
  uint8_t stream; /* pl_stream_kind */
} pl_participant;

typedef struct pl_group_class {
  uint32_t family, group;                     /* the representative's */
  uint32_t first_op;                          /* into ops; as many as the family has */
  uint32_t first_participant, n_participants; /* distinct (device class, stream) of the members */
  /* Its ops may be parts of fused passes (workloads/compile/rivals.h), of joint ones when there are several
   * participants; only with prune. */
  bool stays_inside;
  const pl_collective_group *channels;
} pl_group_class;

/* Places of a device in the program: which communicators it belongs to. */
enum {
  PL_SLOT_TENSOR = 0,
  PL_SLOT_DATA,
  PL_SLOT_SEND_DOWN, /* of each wire who sends, then who receives */
  PL_SLOT_RECEIVE_DOWN,
  PL_SLOT_SEND_UP,
  PL_SLOT_RECEIVE_UP,
  PL_SLOT_EMBEDDING,
  PL_SLOT_CONTEXT,
  PL_SLOT_EXPERT,
  PL_SLOT_EXPERT_DATA,
  PL_SLOT_COPIES,
  PL_SLOT_HEADS,
  PL_SLOT_SEND_DOWN_2,
  PL_SLOT_RECEIVE_DOWN_2,
  PL_SLOT_SEND_UP_2,
  PL_SLOT_RECEIVE_UP_2,
  PL_SLOT_COUNT
};

/* Of the communicator that runs a block's collectives of that group. */
int pl_communication_slot(pl_group_role role);

typedef struct pl_device_class {
  uint32_t device, multiplicity;       /* representative of the cluster, how many it stands for */
  int32_t stage, replica, tensor;      /* coordinates of the representative */
  uint32_t group_class[PL_SLOT_COUNT]; /* PL_NONE = takes no part */
} pl_device_class;

typedef struct pl_communication_plan {
  const pl_device_class *device_classes;
  uint32_t n_device_classes;
  const pl_group_class *group_classes;
  uint32_t n_group_classes;
  const pl_lowered_op *ops;
  const pl_participant *participants;
  pl_transfer_table table; /* of the graph; empty when chunked */
  pl_quotient quotient;
  const uint32_t *rival_offset, *rivals; /* as in pl_graph; device classes; NULL without prune */
  const uint32_t *link_of_class;         /* a link of the cluster for each link class */
  uint32_t n_transfer_classes, n_implied_links;
} pl_communication_plan;

/* Size of an op of a group as it is sent: the family's, but where the framework sends tokens once per node. O(n^2)
 * there.
 */
double pl_communication_bytes(const pl_cluster *cluster, const pl_program *program, uint32_t family, uint32_t group,
                              uint32_t op);

/* Memory from `arena`. Cost: O(members) routes and O(uses * rounds). */
pl_code pl_communication_plan_take(const pl_cluster *cluster, const pl_program *program,
                                   const pl_communication_options *options, pl_arena *arena,
                                   pl_communication_plan *plan, pl_error *error);

#endif
