/* A strategy tree for a platform: its layouts are chosen by what collectives take there. */
#ifndef PL_WORKLOADS_TREE_PRICES_H
#define PL_WORKLOADS_TREE_PRICES_H

#include "workloads/run/simulate.h"
#include "workloads/tree/tree.h"

/* As fluid collectives of a program are simulated. */
pl_collective_options pl_program_collectives(const pl_simulate_options *options);
/* Prices in `arena`, of the one program that the tree is made into next; `tells`: somebody reads the reasons of its
 * ops. PL_NO_MEMORY. */
pl_code pl_tree_prices_adopt(pl_strategy_tree *tree, const pl_cluster *cluster, const pl_simulate_options *options,
                             bool tells, pl_arena *arena, pl_error *error);

#endif
