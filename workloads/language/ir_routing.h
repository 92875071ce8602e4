/* Which part of the experts' rows is really there. A program of a mixture of experts is dense: every expert is given
 * every token, and the weights of those that a token does not go to are zero. Where its choice (`top_k`) says `sparse`,
 * kernels compute, devices hold and exchange only the k rows of each token: k of E of the rows that the program writes
 * down where they are evenly spread over the experts. Of how many more rows there are the choice says two things, which
 * no value depends on:
 *   capacity      rows over those of an even choice, whatever is chosen: above 1 frameworks pad, below 1 they drop
 *   load          tokens of the fullest device over the mean, where experts lie on several; or
 *   tokens        "6,2,1,1": of each expert, in any unit, of which the fullest of as many devices is found
 * All devices exchange with the fullest and wait for it: all are given its rows. */
#ifndef PL_WORKLOADS_IR_ROUTING_H
#define PL_WORKLOADS_IR_ROUTING_H

#include "workloads/language/ir_table.h"

typedef struct pl_ir_routing {
  double share; /* k / E times load: of the rows that are written down; 1 where nothing is sparse */
  double load;  /* rows over those of an even choice */
  bool gathers; /* all_gathers of rows move each token once, which is spread where it has come; whoever knows sets it */
  int64_t k /* 0: nothing is sparse */, groups, chosen_groups;
  pl_ir_type chosen; /* of what was chosen from: tokens and experts */
  pl_ir_name experts;
} pl_ir_routing;

/* Of the first sparse choice of the module; where layers lie on unlike numbers of devices, as full as on the most.
 * O(ops), and O(values) where the choice has `load` or `tokens`. */
pl_ir_routing pl_ir_routing_of(const pl_ir_module *module);
/* The same of an even choice, which is what the model itself computes: load 1. O(ops). */
pl_ir_routing pl_ir_routing_even(const pl_ir_module *module);
/* Rows of this choice over those of an even one, with the experts on so many devices. */
double pl_ir_choice_load(const pl_ir_op *op, int64_t n_experts, int64_t devices);
/* The next number of `tokens`; false: there is none. */
bool pl_ir_loads_next(const char **text, double *tokens);
/* Rows of tokens and experts that have a width: of them `share` are there. */
bool pl_ir_is_routed(const pl_ir_routing *routing, const pl_ir_type *type);
/* Tokens are copied for each expert that they go to. */
bool pl_ir_is_dispatch(const pl_ir_routing *routing, const pl_ir_function *function, const pl_ir_op *op);
/* Of a value of this type: `share` of what is routed, else 1. */
double pl_ir_routed_share(const pl_ir_routing *routing, const pl_ir_type *type);
/* Of what a collective between those who hold experts moves, exchanges and gathers: of the weights of answers, a number
 * for each of those rows, as well. */
double pl_ir_moved_share(const pl_ir_routing *routing, const pl_ir_op *op, const pl_ir_type *type);
/* A device's part (pl_ir_type_local) with as many tokens as are there. */
pl_ir_type pl_ir_routed_part(const pl_ir_routing *routing, const pl_ir_type *part);

#endif
