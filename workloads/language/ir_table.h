/* The table of ops: one row says all there is to know of an op. To add an op is to add a row (in the ir_rows_*.c of its
 * kind) and a test.
 *
 * Layouts. Operands have named dimensions, so one rule (ir_layout.h) serves nearly every op; per axis of the mesh, one
 * of these holds:
 *   same      every operand is the same on all devices of the axis;
 *   cut d     every operand that has dimension d is cut over the axis on d, the others are the same; outputs that lack
 * d hold what the row says of what is missing: terms of a sum, candidates for a maximum, or (NONE) it is not allowed.
 * Not for the row's opaque dimensions; partial   the op is linear: JOINT: every input is a partial sum (a sum of
 * partial sums), and so are the outputs; EACH: one input is a partial sum and the others are the same (a product with a
 * partial sum); FIRST, LAST: only that input may be the partial sum (divide; what is linear in dy). Collectives, sends
 * and state have rules of their own (`layout`).
 *
 * Shapes. `infer` gives the outputs' elements, names and whole extents from the inputs and attributes; layouts are
 * checked apart. Ops that bring something from outside (input, param, kept, receive ...) have their type written down
 * (`typed`): `infer` then finds it in `outputs`, whole, and only says whether it fits; NULL: any does.
 *
 * Values. `compute` works on what one device holds. Products go through OpenBLAS (workloads/blas).
 */
#ifndef PL_WORKLOADS_IR_TABLE_H
#define PL_WORKLOADS_IR_TABLE_H

#include <string.h>

#include "workloads/language/ir_module.h"
#include "workloads/language/ir_piece.h"

typedef enum pl_ir_missing { PL_IR_MISSING_NONE = 0, PL_IR_MISSING_SUM, PL_IR_MISSING_MAXIMUM } pl_ir_missing;
typedef enum pl_ir_linear {
  PL_IR_LINEAR_NONE = 0,
  PL_IR_LINEAR_JOINT,
  PL_IR_LINEAR_EACH,
  PL_IR_LINEAR_FIRST,
  PL_IR_LINEAR_LAST
} pl_ir_linear;

/* What an op does besides giving values; 0: nothing, it may be left out when nobody reads what it gives. */
typedef enum pl_ir_effect {
  PL_IR_PURE = 0,
  PL_IR_READS,      /* state, kept values or data */
  PL_IR_WRITES,     /* state or kept values */
  PL_IR_COLLECTIVE, /* all devices along the axes of `over` meet */
  PL_IR_SENDS,      /* to another class, or back from it */
  PL_IR_CALLS
} pl_ir_effect;

/* What an op launches by itself, where no framework's profile makes one kernel of it and others (workloads/fuse).
 * Rows with another effect than values launch nothing, but for accumulations and updates. */
typedef enum pl_ir_launches {
  PL_IR_LAUNCHES_SWEEP = 0, /* a kernel as fast as the memory; of products and scans what their shape says */
  PL_IR_LAUNCHES_NOTHING,   /* another name or view, what is read where it is used, what stays where it is */
  PL_IR_LAUNCHES_NORM,
  PL_IR_LAUNCHES_SOFTMAX,
  PL_IR_LAUNCHES_LOSS, /* among the kernels of a loss one of these; by itself a sweep */
  PL_IR_LAUNCHES_LOOK_UP,
  PL_IR_LAUNCHES_ATTENTION,
  PL_IR_LAUNCHES_CONVOLUTION
} pl_ir_launches;

typedef struct pl_ir_attribute_rule {
  const char *name;
  uint8_t kind; /* pl_ir_attribute_kind */
  bool required;
  const char *meaning;
} pl_ir_attribute_rule;

/* One device's part of a value: row-major over the type's dimensions with their local extents. */
typedef struct pl_ir_tensor {
  pl_ir_type type;
  int64_t extent[PL_IR_RANK_MAX]; /* local */
  int64_t origin[PL_IR_RANK_MAX]; /* of the whole value, where this part begins */
  int64_t n;                      /* elements here */
  double *data;                   /* i32 too */
} pl_ir_tensor;

typedef struct pl_ir_computing {
  const pl_ir_op *op;
  const pl_ir_tensor *inputs;
  pl_ir_tensor *outputs; /* data is there, zeroed */
  bool single;           /* fp32: products in single precision; what is computed is rounded behind the op */
  pl_arena *scratch;     /* given back behind the op */
  uint64_t iteration;    /* of dropout masks: by seed, iteration, microbatch and index in the whole value */
  pl_ir_turn turn;       /* microbatch */
  pl_ir_piece piece;     /* of the samples of the microbatch */
} pl_ir_computing;

struct pl_ir_differ;

typedef struct pl_ir_row {
  const char *name;
  const char *meaning;                         /* one line, with the equation */
  int8_t least_inputs, most_inputs, n_outputs; /* most_inputs -1: any number; n_outputs -1: as many as written */
  bool has_path, typed;                        /* typed: its outputs' types are written down, not inferred */
  uint8_t effect, missing, linear, launches;
  pl_ir_attribute_rule attributes[10]; /* one without a name ends them */
  /* What the outputs call dimension `dim` of the inputs (rename); NULL: the same. */
  pl_ir_name (*called)(const pl_ir_op *op, pl_ir_name dim);
  /* NULL: no dimension is opaque. */
  bool (*opaque)(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_name dim);
  /* Elements and whole shapes of the outputs, which are whole (`on` all same). Says what does not fit, without place.
   */
  pl_code (*infer)(const pl_ir_op *op, const pl_ir_type *inputs, pl_ir_type *outputs, pl_error *error);
  /* Instead of the one rule above. */
  pl_code (*layout)(const pl_ir_mesh *mesh, const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs,
                    pl_error *error);
  double (*flops)(const pl_ir_op *op, const pl_ir_type *inputs, const pl_ir_type *outputs); /* whole; NULL: one an
                                                                                              element of each output */
  pl_code (*compute)(const pl_ir_computing *computing, pl_error *error); /* NULL: the executor's own (state, sends) */
  /* Adds the gradients of the inputs (ir_differ.h). NULL: nothing is handed back, as of integers and maxima. */
  pl_code (*derive)(struct pl_ir_differ *differ, const pl_ir_op *op, pl_error *error);
  const char *onnx; /* "Gemm MatMul"; NULL: none */
} pl_ir_row;

/* How many rows each kind has: every ir_rows_*.c holds its own to it when it is compiled. */
#define PL_IR_N_ROWS_STATE      11
#define PL_IR_N_ROWS_PRODUCT    1
#define PL_IR_N_ROWS_POINTWISE  32
#define PL_IR_N_ROWS_NORM       6
#define PL_IR_N_ROWS_ATTENTION  6
#define PL_IR_N_ROWS_TOKEN      7
#define PL_IR_N_ROWS_COLLECTIVE 9
#define PL_IR_N_ROWS_UPDATE     2
#define PL_IR_N_ROWS_SHAPE      3
#define PL_IR_N_ROWS_PICTURE    9
#define PL_IR_N_ROWS_JOIN       7
#define PL_IR_N_ROWS_HALO       2
#define PL_IR_N_ROWS_SCAN       4
#define PL_IR_N_ROWS_MASK       1
enum {
  PL_IR_N_ROWS = PL_IR_N_ROWS_STATE + PL_IR_N_ROWS_PRODUCT + PL_IR_N_ROWS_POINTWISE + PL_IR_N_ROWS_NORM +
                 PL_IR_N_ROWS_ATTENTION + PL_IR_N_ROWS_TOKEN + PL_IR_N_ROWS_COLLECTIVE + PL_IR_N_ROWS_UPDATE +
                 PL_IR_N_ROWS_SHAPE + PL_IR_N_ROWS_PICTURE + PL_IR_N_ROWS_JOIN + PL_IR_N_ROWS_HALO + PL_IR_N_ROWS_SCAN +
                 PL_IR_N_ROWS_MASK
};
/* All rows, in one table: every pass asks of every op what it is. */
extern const pl_ir_row *const pl_ir_row_table[PL_IR_N_ROWS];

static inline int32_t pl_ir_n_rows(void) {
  return PL_IR_N_ROWS;
}
/* NULL: no row of this number. */
static inline const pl_ir_row *pl_ir_row_at(int32_t row) {
  return row >= 0 && row < PL_IR_N_ROWS ? pl_ir_row_table[row] : NULL;
}
/* Whether an op is of the row with this name. Asked of every op by every pass, nearly always of another one: their
 * first two letters tell most of them apart. */
static inline bool pl_ir_op_is(const pl_ir_op *op, const char *row) {
  const char *name = pl_ir_row_table[op->row]->name; /* never "" */
  return name[0] == row[0] && name[1] == row[1] && strcmp(name, row) == 0;
}

/* Attention around a ring of devices, or back: it computes while it communicates. */
static inline bool pl_ir_row_is_ring(const pl_ir_row *row) {
  return strncmp(row->name, "ring_", 5) == 0;
}

/* The ops that an op launches: those of the kernel that it calls, or itself. */
typedef struct pl_ir_launched_ops {
  const pl_ir_function *f;
  const pl_ir_op *ops;
  int32_t n;
} pl_ir_launched_ops;

static inline pl_ir_launched_ops pl_ir_launched_by(const pl_ir_module *module, const pl_ir_function *f,
                                                   const pl_ir_op *op) {
  if (!pl_ir_op_is(op, "kernel")) return (pl_ir_launched_ops){f, op, 1};
  const pl_ir_function *called = module->functions[op->callee];
  return (pl_ir_launched_ops){called, called->ops, called->n_ops};
}

/* Whether a product among them makes a weight's gradient, which has no batch. */
static inline bool pl_ir_launched_is_of_weights(const pl_ir_launched_ops *of, const pl_ir_op *product) {
  return pl_ir_type_find(&of->f->values[product->first_output].type, pl_ir_name_of("b")) < 0;
}
int32_t pl_ir_row_find(const char *name); /* -1 = none */
/* The first row that an ONNX op of this name becomes (`onnx`); -1 = none. */
int32_t pl_ir_row_of_onnx(const char *name);
/* The row of an op that is there: asserts. For makers. */
int32_t pl_ir_row_of(const char *name);

/* Appends an op whose outputs' whole types are inferred (they lie nowhere yet), named `name`, name.2 ...; returns its
 * first output, PL_IR_NONE without outputs or memory. Operands that do not fit are a maker's mistake: asserts. */
int32_t pl_ir_op_infer(pl_ir_module *module, pl_ir_function *function, const char *row, const char *name,
                       int32_t n_inputs, const int32_t *inputs, int32_t n_attributes,
                       const pl_ir_attribute *attributes);
/* The same of a row whose type is written down, with one output. */
int32_t pl_ir_op_typed(pl_ir_module *module, pl_ir_function *function, const char *row, const char *name,
                       const char *path, int32_t n_inputs, const int32_t *inputs, const pl_ir_type *type,
                       int32_t n_attributes, const pl_ir_attribute *attributes);

/* Rows by kind, each array ended by a row without a name. */
extern const pl_ir_row pl_ir_rows_state[], pl_ir_rows_product[], pl_ir_rows_pointwise[], pl_ir_rows_norm[],
    pl_ir_rows_attention[], pl_ir_rows_token[], pl_ir_rows_collective[], pl_ir_rows_update[], pl_ir_rows_shape[],
    pl_ir_rows_picture[], pl_ir_rows_join[], pl_ir_rows_halo[], pl_ir_rows_scan[], pl_ir_rows_mask[];

#endif
