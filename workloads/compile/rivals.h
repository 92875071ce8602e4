/* Which tensor-parallel collectives may stay inside a fused pass although others contend with them, and who those are.
 *
 * The engine can walk through a segment while rivals of its communication are under way (core/graph/graph.h, "Disturbed
 * segments"), as long as no two devices' segments contend with each other. So a tensor group class may stay inside when
 * its members are one device class, or several that compute at one pace and can have joint segments, and no other
 * tensor group class uses its contended links; its rivals are then all other transfers that cross one of these links.
 */
#ifndef PL_WORKLOADS_RIVALS_H
#define PL_WORKLOADS_RIVALS_H

#include "workloads/compile/communication.h"

/* Sets group_classes[].stays_inside and the plan's rivals. `marks`: of the communication options. O(uses of all specs).
 */
pl_code pl_rivals_find(const pl_cluster *cluster, const pl_program *program, const uint32_t *marks,
                       pl_group_class *group_classes, pl_communication_plan *plan, pl_arena *arena, pl_error *error);

#endif
