/* How a communication runs on the group of a device, as `explain` prints it of tuples and of programs. */
#ifndef PL_WORKLOADS_EXPLAINED_GROUP_H
#define PL_WORKLOADS_EXPLAINED_GROUP_H

#include "core/base/ticks.h"
#include "netmodel/collective/collective.h"

typedef struct pl_explained_group {
  pl_collective_kind kind;
  pl_collective_algorithm algorithm;
  uint32_t size, n_nodes; /* members, and nodes that they are on */
  double size_bytes;      /* as netmodel/collective/collective.h defines it */
  double latency_s;       /* of the time alone */
  /* The shared link that limits it alone, of those it crosses, and that link's rate; NULL: none. `is_capped`: what else
   * allows less (FATPIPE links, phases, an algorithm's efficiency). */
  const char *link;
  double link_capacity_Bps;
  bool is_capped;
  /* What can make it slower in the run than alone: others on its links, of its own class too; the overlap factor. */
  bool contends, overlaps;
} pl_explained_group;

/* Fills in the way of a collective of group->kind and size_bytes over `channels`: algorithm, latency, link and whether
 * something else caps it. *alone (may be NULL): its time with nobody else on the links. Scratch and names from
 * `arena`. */
pl_code pl_explained_group_find_way(const pl_cluster *cluster, const pl_collective_group *channels, pl_arena *arena,
                                    pl_explained_group *group, pl_ticks *alone, pl_error *error);

/* "link" and "cap": the bytes take longer than the latency, on that link or because a FATPIPE link, the phases or the
 * efficiency of the algorithm allow less; "latency": the other way round; "unknown": alone is not known (negative). Of
 * so many calls. */
const char *pl_explained_group_bound(const pl_explained_group *group, pl_ticks alone, uint64_t calls);
/* Why calls take longer in the run than alone; NULL: they do not, or alone is not known. */
const char *pl_explained_group_slowed_by(const pl_explained_group *group, pl_ticks alone, pl_ticks run, uint64_t calls);

#endif
