/* Whether groups of devices are others on other links: what collectives of the ones take is known of the others then,
 * without making their channels. */
#ifndef PL_NETMODEL_GROUPS_ALIKE_H
#define PL_NETMODEL_GROUPS_ALIKE_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/cluster/cluster.h"

/* Groups side by side, as a program has them: members[n_groups][size], devices of the cluster. */
typedef struct pl_group_row {
  const uint32_t *members;
  uint32_t n_groups, size;
} pl_group_row;

/* What comparisons take, kept from one to the next; zeroed it is empty. */
typedef struct pl_groups_alike {
  uint32_t *there, *back;     /* per link that which stands for it in the other row, and the reverse; + 1 */
  uint32_t *mapped, n_mapped; /* links that have one */
} pl_groups_alike;

enum { PL_GROUPS_ALIKE_MOST = 64 };

/* `b` has as many groups of as many members as `a`. True: devices stand at the same places of nodes that are as large,
 * and links correspond one to one, with the same figures, so that each route between two members of a group crosses
 * those that correspond to its like's, in the same order; of nodes that are wired alike (pl_node_shape) all links do.
 * Groups are made of nothing else (collective_group.c), but for the numbers of links and nodes, which decide no figure:
 * all collectives, and all groups of a row at once, take the same to the last bit. False, too, where it is not looked
 * for: of groups of more than PL_GROUPS_ALIKE_MOST. O(n_groups * size * nodes of a group) routes between
 * nodes. Memory from `arena`,
 * which lives as long as `own` is used. */
pl_code pl_groups_are_alike(pl_groups_alike *own, const pl_cluster *cluster, const pl_group_row *a,
                            const pl_group_row *b, pl_arena *arena, bool *alike, pl_error *error);

#endif
