/* The parameters that a function reads, through its calls, by whole path. */
#ifndef PL_WORKLOADS_IR_PARAMETERS_H
#define PL_WORKLOADS_IR_PARAMETERS_H

#include "workloads/language/ir_module.h"

typedef struct pl_ir_parameter {
  const char *path;     /* whole: "h.3.mlp.up.weight" */
  const char *instance; /* prefix of the function that reads it first, "h.3"; "" = none */
  int32_t function, op; /* that function, and its op `param` */
} pl_ir_parameter;

typedef struct pl_ir_parameter_list {
  pl_ir_parameter *items;
  int32_t n;
  uint32_t room;
} pl_ir_parameter_list;

/* In program order of their first readers, each path once. Memory is from `arena`. */
pl_code pl_ir_parameters_of(const pl_ir_module *module, int32_t function, pl_arena *arena, pl_ir_parameter_list *list,
                            pl_error *error);
/* Their elements; 0 without memory (arena->failed). */
double pl_ir_parameters_count(const pl_ir_module *module, int32_t function, pl_arena *arena);

/* `last` behind `prefix` and a dot; one of them where the other is empty. NULL: no memory. */
const char *pl_ir_path_join(pl_arena *arena, const char *prefix, const char *last);

#endif
