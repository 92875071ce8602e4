/* One function on its way to the devices. Internal to workloads/passes/partition*.c. */
#ifndef PL_WORKLOADS_PARTITION_FUNCTION_H
#define PL_WORKLOADS_PARTITION_FUNCTION_H

#include "workloads/passes/layout_rules.h"

enum { PL_VARIANTS_MAX = 8 };

/* A value of the training program, as it lies in the distributed function: as it was made, and converted since. */
typedef struct pl_variants {
  int32_t n;
  int32_t value[PL_VARIANTS_MAX];
} pl_variants;

/* Layouts that several functions must agree on, by name. */
typedef struct pl_agreed {
  const char *name; /* "layer/x" kept; "/path" of a gradient buffer */
  pl_ir_type type;
} pl_agreed;

typedef struct pl_partitioning {
  const pl_layout_rules *rules;
  const pl_ir_module *from;
  pl_ir_module *to;
  pl_agreed *agreed;
  int32_t n_agreed, room_agreed;
  int32_t *made; /* per function of `from`: that of `to`, PL_IR_NONE = not yet */
  pl_arena *scratch;
} pl_partitioning;

/* A function being made. */
typedef struct pl_laying {
  pl_partitioning *own;
  const pl_ir_function *from;
  pl_ir_function *to;
  pl_variants *variants;         /* per value of `from` */
  const char *const *fed;        /* per value of `from`: path of the parameter whose gradient it is; NULL: none */
  const pl_ir_op *const *stored; /* per value of `from`: the store that takes it; NULL: none */
  bool update;                   /* parameters change here: every dimension may be cut */
} pl_laying;

pl_code pl_laying_init(pl_laying *part, pl_partitioning *own, const pl_ir_function *from, pl_ir_function *to,
                       pl_error *error);
/* The op of `from`, laid out, with what its operands need before it. */
pl_code pl_laying_op(pl_laying *part, const pl_ir_op *op, pl_error *error);
/* The value as it was made; PL_IR_NONE: it was not, here. */
int32_t pl_laying_value(const pl_laying *part, int32_t value);
void pl_laying_set(pl_laying *part, int32_t value, int32_t made);
/* The same with another layout: converted if it is not there. `reason` begins "..."; */
pl_code pl_laying_convert(pl_laying *part, int32_t value, const pl_ir_type *wanted, const char *reason,
                          int32_t *converted, pl_error *error);
/* As functions hand it on. */
pl_code pl_laying_handed(pl_laying *part, int32_t value, int32_t *handed, pl_error *error);

/* The function of `from` made whole, once; index in own->to. */
pl_code pl_partition_function(pl_partitioning *own, int32_t function, int32_t *made, pl_error *error);

/* The layout under a name; *type is taken for it when it is new. False: no memory. */
bool pl_layout_agree(pl_partitioning *own, const char *name, pl_ir_type *type);

#endif
