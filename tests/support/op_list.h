/* Sums over lists of ops. */
#ifndef PL_TESTS_SUPPORT_OP_LIST_H
#define PL_TESTS_SUPPORT_OP_LIST_H

#include "workloads/ir/op.h"

/* To and from device memory, of all ops. */
static inline double op_list_bytes(const pl_op_list *list) {
  double sum = 0;
  for (uint32_t i = 0; i < list->n_ops; i++)
    sum += list->ops[i].bytes;
  return sum;
}

#endif
