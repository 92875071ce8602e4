/* What is known of each function of a program before it is run, which it is for every microbatch: what its ops do to
 * memory, and how long their values live. */
#ifndef PL_WORKLOADS_OUTLOOK_H
#define PL_WORKLOADS_OUTLOOK_H

#include "workloads/framework/framework.h"
#include "workloads/language/ir_module.h"

typedef enum pl_memory_role {
  PL_ROLE_MAKES = 0, /* memory of its own */
  PL_ROLE_CALLS,
  PL_ROLE_KEEPS, /* for a later function */
  PL_ROLE_TAKES, /* what an earlier one kept */
  PL_ROLE_SENDS_TO_HOST,
  PL_ROLE_TAKES_FROM_HOST,
  PL_ROLE_ADDS_IN_HOST, /* a gradient, to what is there */
  PL_ROLE_SHARES,       /* its operand's */
  PL_ROLE_READS,
  PL_ROLE_IS_PARAMETER,
  PL_ROLE_IS_GRADIENT,
  PL_ROLE_IS_GRADIENT_IN_HOST,
  PL_ROLE_IS_UPDATE,
  PL_ROLE_IS_UPDATE_IN_HOST
} pl_memory_role;

typedef struct pl_outlook {
  int32_t *last;    /* per value: the last op that reads it; n_ops: handed back */
  int32_t *ends;    /* values that nobody reads behind an op, op by op, those of op i from ends_at[i] on; then, from
                       ends_at[n_ops] on, those that are handed back */
  int32_t *ends_at; /* per op and for what is handed back, and behind */
  int32_t *over;    /* per value: the operand that it is written over; PL_IR_NONE: it is a value of its own */
  double *bytes;    /* per value that an op makes */
  double *masks;    /* per op: bytes of those that it writes */
  double *beside;   /* per op: bytes that are there while it runs, of no value */
  double *added;    /* per op: elements of gradients that it adds to their buffers */
  double *elements; /* per op of state: of its value, on one device */
  uint8_t *roles;   /* per op */
  bool makes_again; /* its dropouts are those of a forward pass that is made again */
} pl_outlook;

/* Per function, from the arena; NULL: no memory. O(ops). */
pl_outlook *pl_outlooks_take(const pl_ir_module *module, const pl_framework *framework, pl_arena *arena);
/* The type in which narrow products of function f read a parameter, perhaps gathered and copied; PL_IR_ELEMENT_COUNT:
 * none does. O(ops). */
pl_ir_element pl_memory_narrow_element(const pl_ir_module *module, const pl_ir_function *f, int32_t value);
/* What the op gives is no value that it makes. */
bool pl_memory_op_reads(const pl_ir_op *op);

#endif
