/* Lowering of a block's derivative (block_function.h, `backward`): the kernels of its backward pass.
 *
 * What the forward pass was lowered to is a list of groups of kernels (pl_tape_node), each of which belongs to an op of
 * the function, its head, and to the ops that were lowered with it (lowering.h, `head`). The backward pass runs the
 * groups in reverse, as autograd does. What runs is the derivative's: a group whose ops have none is left out, rows and
 * widths of products are those of the derivative's products, what is gathered again, summed and scattered follows from
 * where its values lie, and which parameters get a gradient says what it accumulates. The group says which tensors the
 * framework made of the values in between (packed queries, keys and values, masks, copies in other types).
 *
 * gradient[x] is the tensor that holds the gradient of tensor x, PL_NONE while none has arrived; users[g] counts the
 * tensors whose gradient g is (an addition hands the same gradient to both of its inputs without copying). When a
 * second gradient arrives the two are added, in place where one of them has no other user.
 */
#ifndef PL_WORKLOADS_LOWER_BACKWARD_H
#define PL_WORKLOADS_LOWER_BACKWARD_H

#include "workloads/lower/lowering.h"

typedef struct pl_back {
  pl_tape *tape;
  const pl_lowering *forward;
  pl_lowering own; /* the derivative, as lowering reads functions */
  /* Ops of the derivative by the head of their group: the first of each, and behind each op the next. */
  int32_t first[PL_LOWERING_VALUES], next[PL_LOWERING_VALUES];
  uint32_t gradient[PL_TAPE_TENSORS];
  uint8_t users[PL_TAPE_TENSORS];
  bool for_inputs[PL_LOWERING_VALUES]; /* per op of the derivative: what its results are made from */
  const pl_tape_node *node;            /* the group that is lowered */
  double unsharded;                    /* elements of gradients that go to their reduction in a tensor of their own */
} pl_back;

/* The first op of a group in the derivative that is of `row`; PL_IR_NONE: it has none. */
int32_t pl_back_find(const pl_back *d, const pl_tape_node *node, const char *row);
/* What is written from now on comes of this op of the derivative, PL_IR_NONE: of the gradient for a weight. */
void pl_back_write_for(pl_back *d, int32_t op);
/* ... of all ops of the group. */
void pl_back_write_for_group(pl_back *d);
/* Whether the derivative has anything of a group. */
bool pl_back_has(const pl_back *d, const pl_tape_node *node);

/* A new gradient tensor shaped like activation `of`. */
uint32_t pl_back_fresh(pl_back *d, uint32_t of);
/* `gradient` has arrived for `activation`: added up where another one was there before. */
void pl_back_arrive(pl_back *d, uint32_t activation, uint32_t gradient);
/* One memory-bound op from g and up to one kept tensor to the gradient of the node's input. */
void pl_back_sweep(pl_back *d, const pl_tape_node *node, pl_op_kind kind, double flops, uint32_t g, uint32_t kept);

/* The buffer that microbatches add the gradient of `parameter` into. */
uint32_t pl_back_parameter_gradient(pl_back *d, uint32_t parameter);
/* `bias` = PL_NONE: nothing. */
void pl_back_bias_gradient(pl_back *d, const char *name, uint32_t bias, uint32_t gradient);

/* What groups become: from the gradient `g` of the node's output to those of what it read. */
typedef void (*pl_backs)(pl_back *d, const pl_tape_node *node, uint32_t g);
void pl_back_linear(pl_back *d, const pl_tape_node *node, uint32_t g); /* backward_products.c */
void pl_back_reduce(pl_back *d, const pl_tape_node *node, uint32_t g);
void pl_back_convolution(pl_back *d, const pl_tape_node *node, uint32_t g);
void pl_back_norm(pl_back *d, const pl_tape_node *node, uint32_t g); /* backward_norm.c */

#endif
