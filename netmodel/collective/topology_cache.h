/* What simulations on one cluster ask again and again, kept from one to the next: the channels of a group, its
 * collectives as transfers, and the classes of a fold problem.
 *
 * The strategies of a sweep place their groups in few ways (a pipeline of 8 with tensor groups of 4 has the same groups
 * whatever its schedule, microbatch size, recomputation or ZeRO stage), and fold problems that differ in sizes only
 * have the same classes. Without the cache this was a tenth of the time of a sweep of 128 devices.
 *
 * Everything found in the cache equals what the functions that it stands for would have made, bit for bit: groups are
 * compared member by member, collectives by kind and size, fold problems by their whole content (colours up to
 * renaming, on which a partition does not depend). So results do not depend on what was simulated before.
 *
 * A cache belongs to one thread. It has an arena of its own, so that the simulations' arenas can be reset, and forgets
 * everything when that has grown beyond a limit: what is kept is cheap to make again. Rejected: one cache for all
 * threads (a lock or atomics, for what each thread learns within its first candidates of a placement), and keeping
 * whole communication plans (sizes differ in nearly every candidate).
 */
#ifndef PL_NETMODEL_TOPOLOGY_CACHE_H
#define PL_NETMODEL_TOPOLOGY_CACHE_H

#include "core/base/hash_index.h"
#include "netmodel/collective/collective.h"
#include "netmodel/fold/folding.h"

enum {
  PL_TOPOLOGY_CACHE_BYTES = 1 << 24
}; /* the limit of a sweep's threads: a few hundred placements of 128 devices */

typedef struct pl_topology_cache {
  pl_arena arena;
  size_t most_bytes;
  const pl_cluster *cluster; /* what the content holds for; NULL = nothing kept */
  pl_collective_options options;
  pl_hash_index groups, families, fluids, family_fluids, foldings;
  uint64_t n_found, n_made; /* for tests and curiosity */
} pl_topology_cache;

/* Groups of one size, as a program has them side by side. */
typedef struct pl_group_family {
  uint32_t n_groups, group_size;
  bool sends_alone;
  const uint32_t *members; /* [n_groups][group_size] */
  pl_collective_group *const *groups;
} pl_group_family;

/* Caller's storage; takes no memory yet. */
void pl_topology_cache_init(pl_topology_cache *cache, size_t most_bytes);
/* Safe on a zeroed or released cache. */
void pl_topology_cache_release(pl_topology_cache *cache);

/* To be called at the start of every simulation: forgets what was kept if it is for another cluster or other options,
 * or has grown beyond the limit. What the functions below have handed out is valid until the next call. */
void pl_topology_cache_begin(pl_topology_cache *cache, const pl_cluster *cluster, const pl_collective_options *options);
/* As pl_collective_group_take; `sends_alone` as in its options, whose own the cache leaves out of account. */
pl_code pl_topology_cache_group(pl_topology_cache *cache, const uint32_t *members, uint32_t n, bool sends_alone,
                                pl_collective_group **group, pl_error *error);
/* The groups of a family, asked for at once: on a thousand devices the questions one by one were a fifth of a sweep. */
pl_code pl_topology_cache_family(pl_topology_cache *cache, const uint32_t *members, uint32_t n_groups,
                                 uint32_t group_size, bool sends_alone, const pl_group_family **family,
                                 pl_error *error);
/* One collective of each of its groups; `fluids` has n_groups of them. */
pl_code pl_topology_cache_family_fluids(pl_topology_cache *cache, const pl_group_family *family,
                                        pl_collective_kind kind, double size_bytes,
                                        const pl_fluid_collective *const **fluids, pl_error *error);
/* As pl_collective_fluid and pl_fluid_collective_merge; `group` must come from this cache since it began. */
pl_code pl_topology_cache_fluid(pl_topology_cache *cache, pl_collective_group *group, pl_collective_kind kind,
                                double size_bytes, pl_fluid_collective *fluid, pl_error *error);
/* As pl_folding_take, but the problem is left as it is. Its uses lie one transfer after the other. Link colours and
 * capacities must be the cluster's, the same in every call since the cache began with this cluster. `scratch`: given
 * back. */
pl_code pl_topology_cache_folding(pl_topology_cache *cache, const pl_fold_problem *problem,
                                  const double *link_capacity_Bps, pl_arena *scratch, const pl_folding **folding,
                                  pl_error *error);

#endif
