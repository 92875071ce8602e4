/* One function on its way to the devices. Internal to workloads/layout/laying*.c and workloads/passes/partition.c. */
#ifndef PL_WORKLOADS_LAYING_H
#define PL_WORKLOADS_LAYING_H

#include "workloads/layout/layout_prices.h"
#include "workloads/layout/layout_rules.h"

enum { PL_VARIANTS_MAX = 8 };

/* A value of the training program, as it lies in the distributed function: as it was made, and converted since. What is
 * gathered when a forward pass is made again is that pass's own: a gradient that reads the same value has it gathered
 * once more, as frameworks do, which keep a rank's part in between. */
typedef struct pl_variants {
  int32_t n;
  int32_t value[PL_VARIANTS_MAX];
  bool again[PL_VARIANTS_MAX]; /* made for an op of such a pass, of a value that it makes */
} pl_variants;

/* Layouts that several functions must agree on, by name. */
typedef struct pl_agreed {
  const char *name; /* "layer/x" kept; "/path" of a gradient buffer */
  pl_ir_type type;
  bool host; /* of what is kept */
} pl_agreed;

/* Rules by op, for programs whose ops are not all cut alike. Functions are those of `from`, by name. */
typedef struct pl_laying_leaves {
  const void *context;
  /* Of what it hands in and out. */
  const pl_layout_rules *(*of_function)(const void *context, const pl_ir_function *function);
  /* *named: somebody chose this op, so that it is cut as its rules say wherever it can be. */
  const pl_layout_rules *(*of_op)(const void *context, const pl_ir_function *function, const pl_ir_op *op, bool *named);
  /* Of a parameter, its gradient and its state. */
  const pl_layout_rules *(*of_path)(const void *context, const pl_ir_function *function, const char *path);
} pl_laying_leaves;

typedef struct pl_partitioning {
  const pl_layout_rules *rules;   /* of every op; with leaves: the mesh */
  const pl_laying_leaves *leaves; /* NULL: none */
  const pl_ir_module *from;
  pl_ir_module *to;
  pl_hash_index agreed; /* pl_agreed, by name */
  int32_t *made;        /* per function of `from`: that of `to`, PL_IR_NONE = not yet */
  /* Per function of `from`: it hands partial sums on as they are, for who reads them to scatter or add up. NULL: none.
   */
  const bool *hands_sums;
  const pl_layout_prices *prices; /* NULL: bytes on the wire are counted */
  pl_error unpriced;              /* the first that prices could not say */
  pl_arena *scratch;
} pl_partitioning;

/* A function being made. */
typedef struct pl_laying {
  pl_partitioning *own;
  const pl_ir_function *from;
  pl_ir_function *to;
  const pl_layout_rules *handing; /* of what it hands in and out */
  const pl_layout_rules *rules;   /* of the op that is being laid out */
  bool named;                     /* which was chosen by name */
  pl_variants *variants;          /* per value of `from` */
  const char *const *fed;         /* per value of `from`: path of the parameter whose gradient it is; NULL: none */
  const pl_ir_op *const *stored;  /* per value of `from`: the store that takes it; NULL: none */
  bool update;                    /* parameters change here: every dimension may be cut */
  const bool *again;              /* per op of `from`: it makes a forward value again, which no gradient has part in */
  bool lays_again;                /* that of the op that is being laid out */
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
/* The same from `at`, one of its variants. */
pl_code pl_laying_convert_from(pl_laying *part, int32_t value, int32_t at, const pl_ir_type *wanted, const char *reason,
                               int32_t *converted, pl_error *error);
/* What bringing a value along one axis from one layout to another costs: seconds by the partitioning's prices, without
 * them bytes on the wire of a device; `whole_bytes`: what a device holds of it when it is whole along the axis;
 * HUGE_VAL: nothing does. */
double pl_laying_cost(const pl_laying *part, int8_t from, int8_t to, int32_t axis, double whole_bytes);

/* Rows of tokens by expert, or a number for each; pictures have a dimension x as well. */
bool pl_laying_is_by_expert(const pl_ir_type *type);

/* As functions hand it on; `sums`: partial sums stay such. */
pl_code pl_laying_handed(pl_laying *part, int32_t value, bool sums, int32_t *handed, pl_error *error);

/* As it lies, partial sums added up. */
pl_code pl_laying_settled(pl_laying *part, int32_t value, int32_t *settled, pl_error *error);

/* The function of `from` made whole, once; index in own->to. */
pl_code pl_partition_function(pl_partitioning *own, int32_t function, int32_t *made, pl_error *error);

/* The layout under a name; *type is taken for it when it is new, as *host is (NULL: on the device). False: no memory.
 */
bool pl_layout_agree(pl_partitioning *own, const char *name, pl_ir_type *type, bool *host);
bool pl_layout_is_agreed(pl_partitioning *own, const char *name);

#endif
