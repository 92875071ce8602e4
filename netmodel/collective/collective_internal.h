/* What the files of the collectives share; nobody else includes this. Map:
 *
 *   collective.c               names, which algorithm runs, dispatch
 *   collective_tuned.c         what a collective profile makes of them: candidates, choice, cost
 *   collective_kinds.c         the same where a group has nodes of several kinds of wiring
 *   collective_group.c         members by node, channels across nodes, hops and latencies of the rings
 *   collective_local.c         the rings inside one node
 *   collective_chains.c        the hops of all channels inside nodes, of nodes that are copies looked up once
 *   collective_usage.c         hops -> links and integer weights, bounds by FATPIPE, latency; steps and their
 * dependencies collective_ring.c  collective_tree.c  collective_hierarchical.c  collective_direct.c    one algorithm
 * each, fluid and chunked
 */
#ifndef PL_NETMODEL_COLLECTIVE_INTERNAL_H
#define PL_NETMODEL_COLLECTIVE_INTERNAL_H

#include "netmodel/collective/collective.h"

/* ---- collective_usage.c ---- */

/* Links and weights of a set of hops that move at one rate. Of few hops a list that is sorted and merged; of many an
 * array over all links. */
typedef struct pl_usage {
  const pl_link_use *uses; /* sorted by link, SHARED links only */
  uint32_t n_uses;
  double rate_cap_Bps;  /* from FATPIPE links: each hop is a flow of its own, so capacity / crossings by ONE hop */
  double rate_Bps;      /* alone: the least of the cap and capacity / weight */
  pl_ticks slowest_hop; /* largest latency of a route, without step overhead */
} pl_usage;

typedef struct pl_usage_builder {
  const pl_cluster *cluster;
  pl_arena *arena;
  double *weight_of; /* per link; NULL: a list, appended unmerged, merged when full */
  pl_link_use *uses;
  uint32_t n_uses, capacity;
  double rate_cap_Bps;
  pl_ticks slowest_hop;
} pl_usage_builder;

/* `expected` sizes the first buffer (links in all, not hops). */
pl_code pl_usage_begin(pl_usage_builder *builder, const pl_cluster *cluster, uint32_t expected, pl_arena *arena,
                       pl_error *error);
/* `times` channels cross from source to destination. `latency` may be NULL. */
pl_code pl_usage_hop(pl_usage_builder *builder, uint32_t source, uint32_t destination, uint32_t times,
                     pl_ticks *latency, pl_error *error);
/* The hops of a usage once more, `times` each, over links that lie `shift` further (modulo 2^32). */
pl_code pl_usage_add(pl_usage_builder *builder, const pl_usage *usage, uint32_t shift, uint32_t times, pl_error *error);
/* The result is valid until the next hop of a builder; a builder of many links ends once. */
pl_code pl_usage_end(pl_usage_builder *builder, pl_usage *usage, pl_error *error);

/* Growing list of steps. */
typedef struct pl_step_builder {
  pl_arena *arena;
  pl_collective_step *steps;
  uint32_t *dependencies;
  uint32_t n_steps, step_capacity, n_dependencies, dependency_capacity;
  bool latency_with_bytes; /* as SimGrid's flows have it: the latency step of a message takes no time, its bytes carry
                              the latency */
  pl_ticks latency;        /* of the newest message */
} pl_step_builder;

pl_code pl_steps_begin(pl_step_builder *builder, double expected_steps, pl_arena *arena, pl_error *error);
/* The latency of a message. The steps that it waits for are named by pl_steps_after, before the next step is added. */
pl_code pl_steps_latency(pl_step_builder *builder, uint32_t source, uint32_t destination, pl_ticks latency,
                         pl_error *error);
/* The bytes of the message whose latency is the newest step; they also wait for the bytes step `previous` of the same
 * hop (PL_NONE: there is none). `step` (may be NULL): the index of the new step, which ends with the message's arrival.
 */
pl_code pl_steps_bytes(pl_step_builder *builder, double size_bytes, uint32_t previous, uint32_t *step, pl_error *error);
/* Latency and bytes in one step, for messages that nothing overtakes. */
pl_code pl_steps_single(pl_step_builder *builder, uint32_t source, uint32_t destination, double size_bytes,
                        pl_ticks latency, pl_error *error);
/* The newest step waits for `step`; PL_NONE = nothing. */
pl_code pl_steps_after(pl_step_builder *builder, uint32_t step, pl_error *error);

/* ---- collective_local.c ---- */

typedef struct pl_local_rings {
  uint32_t n_rings;
  const uint32_t *order; /* n_rings x n positions among the members given; order[0] of each ring need not be 0 */
} pl_local_rings;

/* Ring channels among devices of one node. They depend on the places of the devices in it and on how it is wired. */
pl_code pl_local_rings_take(const pl_cluster *cluster, const uint32_t *devices, uint32_t n, pl_arena *arena,
                            pl_local_rings *rings, pl_error *error);

/* ---- collective_group.c ---- */

typedef struct pl_group_node {
  uint32_t first, count; /* into group->devices */
  uint32_t copy_of; /* an earlier node that has the same members, rings and channels on the same wiring; or itself */
  uint32_t turned;  /* the first node with the same rings that channels pass the other way round; PL_NONE */
  bool is_copied;
  pl_local_rings rings;
} pl_group_node;

/* Rate alone by level: the least capacity / weight over the links inside nodes and over NICs and fabric. INFINITY:
 * none. */
typedef struct pl_level_rates {
  double inside_Bps, between_Bps;
  double nic_Bps; /* of the NICs alone, which are part of the way between nodes */
} pl_level_rates;

/* Nodes of a mixed group that have the same entries. */
typedef struct pl_group_kind {
  const pl_wiring *inside, *between;
  uint32_t n_nodes, n_hops; /* hops inside these nodes, of one channel */
  uint32_t most_per_node;
  double nic_GBps;
  pl_level_rates ring, tree;
} pl_group_kind;

enum { PL_GROUP_KINDS_MAX = 4 };

/* A link of a node of that kind; `between`: on the way between nodes. */
typedef struct pl_kind_link {
  uint32_t link, kind;
  bool between;
} pl_kind_link;

/* What a profile adds to a group. */
typedef struct pl_group_tuning {
  const pl_wiring *inside, *between; /* both NULL: ideal */
  uint32_t most_per_node;
  double nic_GBps;    /* slowest; 0: none */
  double known_share; /* of the routes' latency what the library's choice knows of, at most 1 */
  pl_level_rates ring, tree, nvls;
  pl_fluid_collective tree_fluid, nvls_fluid; /* all-reduces of one byte; no members: not made */
  bool has_tree, has_nvls;
  pl_group_kind *kinds; /* n_kinds >= 2, or 0: like nodes */
  uint32_t n_kinds;
  const pl_kind_link *links; /* with kinds: of all nodes, sorted */
  uint32_t n_links;
} pl_group_tuning;

struct pl_collective_group {
  const pl_cluster *cluster;
  pl_collective_options options;
  pl_ticks step_overhead;
  uint32_t n;
  uint32_t root;              /* member 0 */
  uint32_t second;            /* member 1, PL_NONE when n = 1 */
  const uint32_t *members;    /* in the caller's order */
  const uint32_t *devices;    /* grouped by node; nodes by first appearance, members in the caller's order */
  const pl_group_node *nodes; /* in every ring the members of node k are at positions first .. first + count - 1 */
  uint32_t n_nodes;
  uint32_t n_channels;
  const uint32_t *rings;                   /* n_channels x n devices */
  const pl_ticks *hop_latency;             /* n_channels x n: of ring[i] -> ring[i + 1], step overhead included */
  pl_usage ring;                           /* of all hops of all channels */
  pl_ticks once_round;                     /* largest sum of n - 1 consecutive hops of a channel */
  pl_ticks twice_round;                    /* of 2 (n - 1) */
  pl_ticks slowest_inside, slowest_across; /* hops within and between nodes, step overhead included */
  bool has_tree;                           /* made for every size of all-reduce at once */
  pl_usage tree;
  pl_ticks tree_latency;
  bool has_pairs; /* made for every size of direct exchanges at once */
  pl_usage pairs;
  pl_group_tuning tuning;
};

/* ---- collective_chains.c ---- */

/* Adds the hops of all channels between neighbours inside nodes, each `times`. latency[c * n + i] (NULL: not wanted) is
 * that of ring[i] -> ring[i + 1] of channel c, or of the way back, step overhead included; hops that leave a node are
 * not written. */
pl_code pl_chains_add(const pl_collective_group *group, bool backwards, uint32_t times, pl_arena *arena,
                      pl_usage_builder *builder, pl_ticks *latency, pl_error *error);

/* ---- collective.c ---- */

/* Makes what ideal collectives weigh again and again; no effect with a profile that prices the group. */
pl_code pl_ideal_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error);

/* Makes what all sizes of direct exchanges between all pairs have in common. */
pl_code pl_direct_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error);

/* ---- algorithms ---- */

/* Fills spec, uses and progress of `fluid` (next = NULL) under the group's sharing rule. */
void pl_fluid_from_usage(const pl_collective_group *group, const pl_usage *usage, pl_ticks latency,
                         double progress_bytes, pl_fluid_collective *fluid);
/* Rate of the flow alone on the cluster. */
double pl_fluid_alone_Bps(const pl_cluster *cluster, const pl_fluid_collective *fluid);
double pl_ring_progress_bytes(const pl_collective_group *group, pl_collective_kind kind, double size_bytes);
pl_code pl_ring_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                      pl_fluid_collective *fluid, pl_error *error);
/* Which steps a member waits for before it may take part in the next phase of a hierarchical collective: `width`
 * entries per slot, PL_NONE = unused; member p of the group at hand has slot base + stride * p. */
typedef struct pl_step_chain {
  uint32_t *steps;
  uint32_t width, base, stride;
} pl_step_chain;
/* `before`: awaited by the first step out of each member; `after`: receives the last steps into each member (width >= 2
 * * channels). Either may be NULL. */
pl_code pl_ring_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        pl_step_builder *steps, const pl_step_chain *before, const pl_step_chain *after,
                        pl_error *error);
/* The trees of an all-reduce, kept in the group where collectives will ask for them. */
pl_code pl_tree_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error);
pl_code pl_tree_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                      pl_fluid_collective *fluid, pl_error *error);
/* Parent of node `node` in all-reduce tree number `which` (0, 1) over nodes; PL_NONE at the root. */
uint32_t pl_tree_parent_node(uint32_t node, uint32_t n_nodes, uint32_t which);
/* floor(log2 nodes): the depth of those trees. */
uint32_t pl_tree_levels(uint32_t n_nodes);
pl_code pl_tree_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, uint32_t chunks,
                        pl_step_builder *steps, pl_error *error);
/* Whether the group has the shape that hierarchical collectives need. */
bool pl_hierarchical_applies(const pl_collective_group *group);
pl_code pl_hierarchical_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                              pl_arena *arena, pl_fluid_collective *fluid, pl_error *error);
pl_code pl_hierarchical_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                                uint32_t chunks, pl_step_builder *steps, pl_error *error);
pl_code pl_direct_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                        pl_fluid_collective *fluid, pl_error *error);
pl_code pl_direct_chunked(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                          pl_step_builder *steps, pl_error *error);

/* ---- collective_kinds.c ---- */

/* Whether a link of a node belongs to the way between nodes: `alone` where the node has one member. */
bool pl_link_is_between(const pl_link *link, bool has_nvlink, bool alone);
/* What the links are that `uses` names, by the figures of `links`, as far as entries are matched. */
void pl_facts_of_uses(const pl_link *links, const pl_link_use *uses, uint32_t n, pl_wiring_facts *facts);
/* Finds the kinds of nodes of a group over several, if there are several, and the rates of its rings. */
pl_code pl_kinds_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error);
/* The rates of each kind under `uses`: as many as there are kinds. */
void pl_kind_rates(const pl_collective_group *group, const pl_link_use *uses, uint32_t n, double cap_Bps,
                   pl_level_rates *rates);
/* Gives a work its kinds; `work` has its steps and bytes already. */
pl_code pl_kinds_of_ring(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                         const pl_fluid_collective *fluid, pl_arena *arena, pl_tuned_work *work, pl_error *error);
pl_code pl_kinds_of_tree(const pl_collective_group *group, const pl_fluid_collective *fluid, pl_arena *arena,
                         pl_tuned_work *work, pl_error *error);
pl_code pl_kinds_of_direct(const pl_collective_group *group, pl_collective_kind kind, double size_bytes,
                           const pl_fluid_collective *fluid, pl_arena *arena, pl_tuned_work *work, pl_error *error);

/* ---- collective_tuned.c ---- */

/* Matches the profile's entries and makes what the weighing needs again and again. No effect without a profile. */
pl_code pl_tuned_prepare(pl_collective_group *group, pl_arena *arena, pl_error *error);
/* The tuned form of a collective; *applies is false where the profile says nothing: then it is ideal. */
pl_code pl_tuned_fluid(const pl_collective_group *group, pl_collective_kind kind, double size_bytes, pl_arena *arena,
                       pl_fluid_collective *fluid, bool *applies, pl_error *error);

#endif
