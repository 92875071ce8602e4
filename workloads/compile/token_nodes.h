/* To how many nodes the tokens of experts go, where a dispatcher sends a token once to each node that has some of its
 * experts and copies it there (DeepEP, HybridEP). */
#ifndef PL_WORKLOADS_TOKEN_NODES_H
#define PL_WORKLOADS_TOKEN_NODES_H

#include <stdint.h>

/* A token's k experts, out of chosen_groups of n_groups groups of neighbours; n_groups 0 or 1: out of all. */
typedef struct pl_token_choice {
  int64_t k, n_groups, chosen_groups;
} pl_token_choice;

/* Of the k (1 - 1/N) copies of a token that leave its node, where N nodes hold as many experts each and experts are
 * chosen evenly, the share that is left of them: those for different nodes. What else of the exchange stays inside
 * nodes, where the links are so much faster that it is not the bottleneck, is taken to shrink with it. 1 on one node.
 */
double pl_token_copies_sent(const pl_token_choice *choice, uint32_t n_nodes);

#endif
