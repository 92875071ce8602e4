/* The parameters of <cluster> and <cabinet> (radical, topology, topo_parameters), checked and counted before SimGrid
 * expands them.
 *
 * SimGrid 3.32 takes them as they are: a radical of a hundred million hosts or a fat tree whose product overflows keeps
 * it busy for hours, "5-1" is a cluster of none, and a dragonfly with more groups than blades in a chassis makes it
 * index past the end of its tables (the router that leads to group j is blade j of the first chassis). Also refused: a
 * radical that names more hosts than the topology has places for, because the rest would be left out without a word.
 */
#ifndef PL_NETMODEL_PLATFORM_SHAPE_H
#define PL_NETMODEL_PLATFORM_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"
#include "netmodel/platform/platform_words.h"

enum {
  PL_PLATFORM_HOSTS_MAX = 1 << 20,    /* of a file; the largest machines announced have a fifth of it */
  PL_PLATFORM_SWITCHES_MAX = 1 << 18, /* of a fat tree or dragonfly */
  PL_PLATFORM_WIRES_MAX = 1 << 23,
  PL_TOPOLOGY_LEVELS_MAX = 16
};

/* topo_parameters of a fat tree: "LEVELS;DOWN,...;UP,...;PORTS,...". */
typedef struct pl_fat_tree_shape {
  uint32_t n_levels, down[PL_TOPOLOGY_LEVELS_MAX], up[PL_TOPOLOGY_LEVELS_MAX], ports[PL_TOPOLOGY_LEVELS_MAX];
} pl_fat_tree_shape;

/* Hosts that "0-7,9" stands for: more than none, at most PL_PLATFORM_HOSTS_MAX. */
pl_code pl_radical_count(const char *radical, uint32_t *n_hosts, char *why, size_t size);
/* The next number of a radical that pl_radical_count has accepted; *at moves on. False: no more. `state` starts zeroed.
 */
typedef struct pl_radical_state {
  uint32_t next, last;
  int is_inside;
} pl_radical_state;
int pl_radical_next(const char **at, pl_radical_state *state, uint32_t *number);

pl_code pl_fat_tree_parse(const char *parameters, pl_fat_tree_shape *shape, char *why, size_t size);

/* All of a <cluster>; *n_hosts as pl_radical_count. `why` as in platform_words.h. */
pl_code pl_cluster_shape_check(const pl_platform_element *cluster, uint32_t *n_hosts, char *why, size_t size);

#endif
