/* A network for tests of the engine: every transfer alone, at the solo rate of its spec, after its latency; speeds are
 * obeyed to the letter. No contention, O(log active) per event. Memory from the arena; NULL: no memory. */
#ifndef PL_TESTS_SUPPORT_FIXED_NETWORK_H
#define PL_TESTS_SUPPORT_FIXED_NETWORK_H

#include "core/graph/network.h"

/* At most `most_active` transfers at a time. */
pl_network *fixed_network_take(const pl_transfer_table *table, uint32_t most_active, pl_arena *arena);

#endif
