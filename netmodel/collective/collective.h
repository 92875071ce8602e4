/* Collectives as transfers.
 *
 * A group is an ordered list of devices. pl_collective_group_take finds its channels once: for rings, one ring per NIC
 * or NVLink path that the topology offers (as NCCL builds them); members keep the order of the caller inside what the
 * topology prefers. A collective on that group is then lowered in one of two granularities: fluid    one transfer for
 * the whole collective: uses (weight = crossings of a link per byte of progress, summed over channels), bytes of
 * progress, latency of the algorithm. O(1) events. Default. chunked  every step a point-to-point transfer with its
 * dependencies, as a small list of steps that the compiler turns into tasks.
 *
 * Sizes. `size_bytes` is the size of the full buffer: what every rank holds before an all-reduce or a broadcast, the
 * sum of all shards for reduce-scatter and all-gather, what one rank sends in total (own part included) for all-to-all,
 * the message for send.
 *
 * Formulas, sources and the measured difference between the two granularities: README.md here.
 */
#ifndef PL_NETMODEL_COLLECTIVE_H
#define PL_NETMODEL_COLLECTIVE_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"
#include "core/cluster/transfer.h"
#include "netmodel/collective/collective_profile.h"
#include "netmodel/flow/networks.h"

typedef enum pl_collective_kind {
  PL_ALL_REDUCE = 0,
  PL_REDUCE_SCATTER,
  PL_ALL_GATHER,
  PL_BROADCAST, /* root = member 0 */
  PL_ALL_TO_ALL,
  PL_SEND, /* member 0 to member 1 */
  PL_COLLECTIVE_COUNT
} pl_collective_kind;

/* What is forced but has no meaning for a kind gives way: sends and all-to-all are always direct; reduce-scatter and
 * all-gather know no tree; hierarchical needs the same number of members, at least two, on each of at least two nodes
 * (and is never a broadcast). In these cases the ring runs. */
typedef enum pl_collective_algorithm {
  PL_ALGORITHM_AUTO =
      0, /* ring for reduce-scatter and all-gather, direct for all-to-all, ring or tree for the others by size and n */
  PL_ALGORITHM_RING,
  PL_ALGORITHM_TREE,
  PL_ALGORITHM_HIERARCHICAL, /* inside nodes, then across nodes with one shard per local rank, then inside nodes */
  PL_ALGORITHM_DIRECT,
  PL_ALGORITHM_NVLS, /* in-switch reduction, a tree across nodes; only all-reduce, and only where a profile knows it */
  PL_ALGORITHM_COUNT
} pl_collective_algorithm;

const char *pl_collective_name(pl_collective_kind kind);             /* "all_reduce" */
extern const char *const pl_algorithm_names[PL_ALGORITHM_COUNT + 1]; /* "hierarchical"; NULL ends them */

typedef struct pl_collective_options {
  pl_sharing sharing;
  pl_collective_algorithm algorithm;
  double step_overhead_s; /* software cost of one step of any algorithm, added to the links' latency */
  /* NULL: ideal, the links' own latencies and rates. Else fluid collectives cost what the profile says, and AUTO picks
   * the algorithm and protocol of the least time; chunked ones, hierarchical ones and the direct all-reduce stay ideal.
   * Must outlive the group. */
  const pl_collective_profile *profile;
  bool sends_alone; /* of two members that send each other messages, and do nothing else: what other collectives weigh
                       is not made */
} pl_collective_options;

typedef struct pl_collective_group pl_collective_group;

/* Members are distinct devices of the cluster; n >= 1. NULL out on failure. Cost O(n) routes on nodes whose devices
 * share a port or a bus, O(n^2 within a node) on nodes with direct links between devices. Like nodes get like rings:
 * what a ring does inside a node follows from the node's own links and the caller's order of its members, never from
 * the node's index. The cluster must outlive the group. */
pl_code pl_collective_group_take(const pl_cluster *cluster, const uint32_t *members, uint32_t n,
                                 const pl_collective_options *options, pl_arena *arena, pl_collective_group **group,
                                 pl_error *error);
/* Makes what collectives of a kind have in common, whatever their size: for the group's owner, who will ask for several
 * of them (of an all-to-all the n (n - 1) routes, else looked up for each). `arena` must live as long as the group. */
pl_code pl_collective_group_prepare(pl_collective_group *group, pl_collective_kind kind, pl_arena *arena,
                                    pl_error *error);
uint32_t pl_collective_group_channels(const pl_collective_group *group);
/* Hops of ring channel `channel`: order[i] -> order[(i + 1) % n]. Array of n devices, owned by the group. */
const uint32_t *pl_collective_group_ring(const pl_collective_group *group, uint32_t channel);
/* The algorithm that runs in fluid form for this kind and size: AUTO resolved, meaningless choices replaced. O(1), but
 * where AUTO has to weigh a tree without a profile: then as pl_collective_fluid of the tree. Scratch from `arena`,
 * given back. */
pl_code pl_collective_group_algorithm(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                                      pl_arena *arena, pl_collective_algorithm *algorithm, pl_error *error);

typedef struct pl_fluid_collective {
  pl_transfer_spec spec; /* first_use is 0; uses below */
  const pl_link_use
      *uses; /* over the cluster's links, FATPIPE links already folded into spec.rate_cap_Bps, sorted by link */
  double progress_bytes; /* bytes of progress for the size asked */
  /* Of a send, the part of spec.latency that the bytes are on the way when their sender is done with them: the sender's
   * next message follows at once. 0: the sender waits for the arrival. */
  pl_ticks flight;
  /* The phase that starts on all members when this one has ended; NULL = none. Only hierarchical collectives and the
   * direct all-reduce have phases: no single rate and weight describes links that are busy one after another. */
  const struct pl_fluid_collective *next;
} pl_fluid_collective;

/* n = 1 or size 0: no uses, no progress, no latency. Arrays live as long as the group and `arena` do. Cost: O(1) for
 * rings (all-reduce, reduce-scatter, all-gather); O(n) routes for broadcasts, trees and hierarchies; O(n^2) routes for
 * direct. */
pl_code pl_collective_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                            pl_arena *arena, pl_fluid_collective *fluid, pl_error *error);

/* What a group with a profile weighs for a collective, for calibration and reports: at most PL_TUNED_COUNT works, the
 * entries that price them (either may be NULL), and which of them runs. No works: ideal. */
typedef struct pl_collective_weighing {
  const pl_wiring *inside, *between;
  pl_tuned_work works[PL_TUNED_COUNT];
  uint32_t n_works, chosen;
  pl_tuned_time time; /* of the chosen */
} pl_collective_weighing;
pl_code pl_collective_weigh(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                            pl_arena *arena, pl_collective_weighing *weighing, pl_error *error);

/* The profile's entries that the nodes of kind number `kind` of a group have; both NULL: it is ideal. False: there are
 * fewer kinds. */
bool pl_collective_group_entries(const pl_collective_group *group, uint32_t kind, const pl_wiring **inside,
                                 const pl_wiring **between);

/* Makes one flow of several phases, for callers that want one transfer per collective: bytes per link and the time
 * alone stay exact (the flow's rate is capped at what the phases reach one after another), weights become averages over
 * the phases and are no integers any more. What is lost: a rival on one phase's links is felt only once it takes more
 * than the average leaves. No effect without phases. Arrays from `arena`. */
pl_code pl_fluid_collective_merge(const pl_cluster *cluster, pl_arena *arena, pl_fluid_collective *fluid,
                                  pl_error *error);

/* One step of the chunked form: a transfer with the links and the share of pl_route_spec(source, destination), but with
 * the latency given here. Steps are in topological order and run on no stream: a member sends and receives at once.
 * Whoever makes tasks of them holds the members' streams by what surrounds the steps.
 *
 * Messages of one channel cross a hop in order, one at a time, as on one connection, yet their latencies overlap: so a
 * message is two steps, first its latency (no bytes), then its bytes (no latency), which wait for the bytes of the
 * message before. Under RTT sharing, SimGrid's rule, a flow cannot be parted from its latency: there the bytes carry it
 * and the first step takes no time. */
typedef struct pl_collective_step {
  uint32_t source, destination; /* devices */
  double size_bytes;
  pl_ticks latency;                          /* step overhead included */
  uint32_t first_dependency, n_dependencies; /* into dependencies: earlier steps that must have finished */
} pl_collective_step;

typedef struct pl_chunked_collective {
  const pl_collective_step *steps;
  uint32_t n_steps;
  const uint32_t *dependencies;
  uint32_t n_dependencies;
} pl_chunked_collective;

/* `chunks`: into how many pieces each message of a ring or tree is cut for pipelining (1 = none; direct exchanges have
 * nothing to pipeline). Cost and memory O(steps): 4 n (n - 1) * channels * chunks for a ring all-reduce. PL_UNSUPPORTED
 * beyond 2^27 steps. */
pl_code pl_collective_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                              uint32_t chunks, pl_arena *arena, pl_chunked_collective *chunked, pl_error *error);

#endif
