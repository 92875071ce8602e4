/* The backward pass of a block while it is derived from its tape. Internal to block_backward.c, which goes through the
 * nodes, and block_products.c, which has the rules for matrix products.
 */
#ifndef PL_WORKLOADS_BLOCK_DIFFER_H
#define PL_WORKLOADS_BLOCK_DIFFER_H

#include "workloads/block/block_tape.h"

typedef struct pl_differ {
  pl_tape *tape;
  uint32_t gradient[PL_TAPE_TENSORS];
  uint8_t users[PL_TAPE_TENSORS];
  bool core_repeated;
  uint32_t queries; /* gradient of tape->queries */
  double unsharded; /* elements of gradients that go to their reduction in a tensor of their own */
} pl_differ;

/* A new gradient tensor shaped like activation `of`. */
uint32_t pl_differ_fresh(pl_differ *d, uint32_t of);
/* `gradient` has arrived for `activation`: added up where another one was there before. */
void pl_differ_arrive(pl_differ *d, uint32_t activation, uint32_t gradient);

/* The buffer that microbatches add the gradient of `parameter` into. */
uint32_t pl_differ_parameter_gradient(pl_differ *d, uint32_t parameter);
/* A gradient that becomes part of its block's flat tensor. Of a weight with two uses autograd adds the two first. */
void pl_differ_hand_over(pl_differ *d, uint32_t weight, uint32_t dw);
/* `bias` = PL_NONE: nothing. */
void pl_differ_bias_gradient(pl_differ *d, const char *name, uint32_t bias, uint32_t gradient);

/* Rules: from the gradient `g` of the node's output to those of what it read. */
void pl_differ_linear(pl_differ *d, const pl_tape_node *node, uint32_t g);
void pl_differ_reduce(pl_differ *d, const pl_tape_node *node, uint32_t g);
void pl_differ_grouped(pl_differ *d, const pl_tape_node *node, uint32_t g);
void pl_differ_convolution(pl_differ *d, const pl_tape_node *node, uint32_t g);

#endif
