/* What frameworks call the kernels around a parameter or a sum. */
#ifndef PL_WORKLOADS_KERNEL_NAMES_H
#define PL_WORKLOADS_KERNEL_NAMES_H

#include "workloads/ir/model.h"

/* Literals for everything that one forward op can turn into. */
typedef struct pl_kernel_names {
  const char *forward, *backward, *wgrad, *bias, *bias_grad;
  const char *gather, *regather, *input_all_reduce, *input_reduce_scatter; /* column-parallel input */
  const char *all_reduce, *reduce_scatter, *grad_all_gather;               /* row-parallel output */
  const char *cast, *grad_cast, *cast_again; /* to fp8, of the input, the gradient, and the input for the weights' */
} pl_kernel_names;

#define PL_LINEAR_NAMES(name)                                                                                          \
  ((pl_kernel_names){name, name "_dgrad", name "_wgrad", name "_bias", name "_bias_grad", name "_input_all_gather",    \
                     name "_wgrad_all_gather", name "_dgrad_all_reduce", name "_dgrad_reduce_scatter",                 \
                     name "_all_reduce", name "_reduce_scatter", name "_grad_all_gather", name "_input_cast",          \
                     name "_grad_cast", name "_wgrad_cast"})
#define PL_OP_NAMES(name)                                                                                              \
  ((pl_kernel_names){.forward = name,                                                                                  \
                     .backward = name "_backward",                                                                     \
                     .wgrad = name "_wgrad",                                                                           \
                     .bias = name "_bias",                                                                             \
                     .bias_grad = name "_bias_grad",                                                                   \
                     .cast = name "_input_cast",                                                                       \
                     .grad_cast = name "_grad_cast",                                                                   \
                     .cast_again = name "_wgrad_cast"})

/* Of the module at `path` of a block of this kind; NULL: none of its own. */
const pl_kernel_names *pl_kernel_names_of(pl_block_kind kind, const char *path);

#endif
