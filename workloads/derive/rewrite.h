/* A function of a module written again, some of its ops otherwise. */
#ifndef PL_WORKLOADS_REWRITE_H
#define PL_WORKLOADS_REWRITE_H

#include "workloads/language/ir_module.h"

typedef struct pl_rewriting {
  pl_ir_module *module;
  const pl_ir_function *from;
  pl_ir_function *to;
  int32_t *made; /* per value of `from` */
} pl_rewriting;

/* What is written otherwise, and how: all values that the op makes and others read have to be in `made` behind it. */
typedef struct pl_rewrite_rule {
  const void *context;
  bool (*chooses)(const void *context, const pl_ir_function *from, int32_t op);
  void (*write)(const void *context, pl_rewriting *own, const pl_ir_op *op);
} pl_rewrite_rule;

/* `*of`: per op of the new function, the op that it comes from; NULL: nothing was chosen, the function is as it was.
 */
pl_code pl_rewrite_function(pl_ir_module *module, int32_t function, const pl_rewrite_rule *rule, const int32_t **of,
                            pl_error *error);

#endif
