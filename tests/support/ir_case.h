/* One op on random operands: what rows of the op table are tested with. */
#ifndef PL_TESTS_SUPPORT_IR_CASE_H
#define PL_TESTS_SUPPORT_IR_CASE_H

#include "workloads/language/ir_differ.h"
#include "workloads/language/ir_layout.h"

enum { IR_CASE_OPERANDS = 12, IR_CASE_ATTRIBUTES = 10 };

typedef struct ir_case {
  pl_arena *arena;
  uint64_t random;
  pl_ir_op op;
  pl_ir_attribute attributes[IR_CASE_ATTRIBUTES];
  pl_ir_type in[IR_CASE_OPERANDS], out[IR_CASE_OPERANDS]; /* whole */
  double *data[IR_CASE_OPERANDS];                         /* of the inputs */
  double *answer[IR_CASE_OPERANDS];
  char differs[768]; /* ir_case_differs' */
} ir_case;

/* fp32[...] of "b=2 s=4"; "" is one number. */
pl_ir_type ir_type(const char *dims);
/* What `device` holds of a value, zero. */
pl_ir_tensor ir_tensor(pl_arena *arena, const pl_ir_mesh *mesh, const pl_ir_type *type, uint32_t device);

/* An op without operands yet. `attributes` as in a program, texts without quotes: "over=(b, s), k=2, stride=2x1"; ""
 * for none. */
void ir_case_init(ir_case *one, pl_arena *arena, uint64_t seed, const char *row, const char *attributes);
/* Operands in order: numbers between -1 and 1; between `least` and `most`; integers below n; a permutation of 0, 1 ...
 */
double *ir_case_numbers(ir_case *one, const char *dims);
double *ir_case_between(ir_case *one, const char *dims, double least, double most);
double *ir_case_integers(ir_case *one, const char *dims, int32_t n);
double *ir_case_permutation(ir_case *one, const char *dims);
void ir_case_set(double *operand, int n, const double *values); /* instead */
/* The type of the result of a row whose type is written down. */
void ir_case_written(ir_case *one, const char *dims);

/* Infers and computes the whole op; fails the test if it cannot. `answer` is the k-th output of the last time. */
void ir_case_compute(ir_case *one);
/* Computes what was inferred before, in scratch memory of another arena, in single precision if asked for. */
pl_code ir_case_run(ir_case *one, pl_arena *scratch, bool single, pl_error *error);
void ir_case_expect(const ir_case *one, int n, const double *values); /* in the first answer, to 1e-15 */
/* The message with which infer, or then computing, refuses; fails the test if neither does. */
const char *ir_case_refused(ir_case *one, pl_error *error);

/* Each way of pl_ir_ways_of along an axis of 2 and one of 3 devices, and each pair of ways along two axes of 2, where
 * extents divide: what devices compute from their parts is the whole, put together as the way says. Returns how many
 * were tried. */
int32_t ir_case_check_ways(ir_case *one, double tolerance);
/* The layouts of `types` on one axis of n devices, inputs first: computing on the parts gives the whole. */
void ir_case_check_layout(ir_case *one, const pl_ir_mesh *mesh, double tolerance);
/* Lays all operands and results along an axis as the way says; false: extents do not divide. */
bool ir_case_lay(ir_case *one, const pl_ir_mesh *mesh, int32_t axis, const pl_ir_way *way);
/* Where computing on the parts gives something else than the whole, or fails; NULL: nowhere. */
const char *ir_case_differs(ir_case *one, const pl_ir_mesh *mesh, double tolerance);
/* The row's derivative: ops of `backward`, whose arguments are the op's operands, results and the results' gradients;
 * gradients[k] of operand k. Its allocations succeed `takes` times; -1: always. */
pl_code ir_case_differentiate(ir_case *one, int64_t takes, pl_ir_module *module, pl_ir_function **backward,
                              int32_t *gradients, pl_error *error);
/* The row's derivative against central differences of a random weighted sum of all outputs. */
void ir_case_check_gradients(ir_case *one, double tolerance);

#endif
