/* Some devices of a cluster as a cluster of their own: what one of several jobs on the same fabric sees.
 *
 * Links, routes and profiles are the base's, under the same indices, so that what several parts put on the links adds
 * up; nodes are those that the devices are on, with the devices of theirs that are in the part. */
#ifndef PL_NETMODEL_PLATFORM_PART_H
#define PL_NETMODEL_PLATFORM_PART_H

#include "core/base/arena.h"
#include "core/cluster/cluster.h"

/* `devices`: `n` of the base's, each once, rising; they must outlive the part, and so must the base. Memory from
 * `arena`. */
pl_code pl_cluster_part_take(const pl_cluster *base, const uint32_t *devices, uint32_t n, pl_arena *arena,
                             const pl_cluster **part, pl_error *error);

#endif
