/* Which part of the experts' rows is really there. A program of a mixture of experts is dense: every expert is given
 * every token, and the weights of those that a token does not go to are zero. Where its choice (`top_k`) says `sparse`,
 * kernels compute, devices hold and exchange only the k rows of each token: taken as evenly spread over the experts,
 * k of E of the rows that the program writes down. */
#ifndef PL_WORKLOADS_IR_ROUTING_H
#define PL_WORKLOADS_IR_ROUTING_H

#include "workloads/language/ir_table.h"

typedef struct pl_ir_routing {
  double share; /* k / E; 1: nothing in the program is sparse */
  int64_t k, groups, chosen_groups;
  pl_ir_type chosen; /* of what was chosen from: tokens and experts */
  pl_ir_name experts;
} pl_ir_routing;

/* Of the first sparse choice of the module. O(ops). */
pl_ir_routing pl_ir_routing_of(const pl_ir_module *module);
/* Rows of tokens and experts that have a width, whatever the share of them that there is. */
bool pl_ir_is_routed(const pl_ir_routing *routing, const pl_ir_type *type);
/* Of a value of this type: `share` if it is routed, else 1. */
double pl_ir_routed_share(const pl_ir_routing *routing, const pl_ir_type *type);
/* Of what a collective between those who hold experts moves, exchanges and gathers: of the weights of answers, a number
 * for each of those rows, as well. */
double pl_ir_moved_share(const pl_ir_routing *routing, const pl_ir_op *op, const pl_ir_type *type);
/* A device's part (pl_ir_type_local) with as many tokens as are there. */
pl_ir_type pl_ir_routed_part(const pl_ir_routing *routing, const pl_ir_type *part);

#endif
