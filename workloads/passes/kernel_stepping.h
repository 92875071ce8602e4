/* Writing a function in steps (kernel_steps.c), and what it keeps otherwise (kernel_kept.c): what both hold. Internal
 * to workloads/passes/kernel*.c. */
#ifndef PL_WORKLOADS_KERNEL_STEPPING_H
#define PL_WORKLOADS_KERNEL_STEPPING_H

#include "workloads/fuse/kernel_groups.h"
#include "workloads/passes/kernel_steps.h"

typedef struct pl_kernel_stepping {
  const pl_ir_module *from;
  pl_ir_module *to;
  const pl_kernels_options *options;
  pl_arena scratch;
  pl_kernel_live live;
  int32_t index;             /* of that function */
  pl_kernel_finding finding; /* of the function that is written */
  pl_ir_function *function;  /* that it becomes */
  int32_t *map;              /* per value of the old function */
  int32_t *wide;             /* per value of the old function: its fp32 copy, PL_IR_NONE: none yet */
  int16_t *gradients;        /* per value of the old function: a gradient that is cast as soon as it is there, to this
                                element (PL_IR_NONE: stays as it is) */
  bool *paths;               /* per value: that of a matrix, on its way to being cut (pl_gradient_path) */
} pl_kernel_stepping;

static inline bool pl_step_is(const pl_kernel_stepping *own, int32_t op, const char *row) {
  return pl_read_is(&own->finding.read, op, row);
}

/* An op of the function that is written, with a result of this type. Returns its output. */
int32_t pl_step_append(pl_kernel_stepping *own, const char *row, int32_t n_inputs, const int32_t *inputs,
                       const char *name, const pl_ir_type *type, const char *reason);
/* The fp32 copy of a value of the old function: made here before, kept, or made now. */
int32_t pl_step_wide(pl_kernel_stepping *own, int32_t value);

/* Of `keep` and `kept`: what a kernel makes again is not kept but what it makes it of. False: the op is to be copied as
 * it is. *made: the output of what stands for it, PL_IR_NONE: none. kernel_kept.c */
bool pl_step_keeps_otherwise(pl_kernel_stepping *own, int32_t index, int32_t *made);

#endif
