/* What a program is run on: parameters and data made from a seed, the same for every program of a model whatever its
 * layouts, since each number is a function of its path and its place in the whole value.
 *
 * Inputs: `tokens`, `targets` (integers below `below`), `positions` (0, 1 ...), `relative_positions` of pairs
 * of tokens; other integers below `below`, or 0
 * without it; anything else real numbers in [-1, 1).
 * Dimension b counts samples, which go on from microbatch to microbatch; dimension s counts tokens, with zigzag=c in
 * the order in which c context ranks hold them: 2c chunks, the first and the last, the second and the last but one ...
 */
#ifndef PL_WORKLOADS_EXECUTE_DATA_H
#define PL_WORKLOADS_EXECUTE_DATA_H

#include "workloads/language/ir_table.h"

/* Numbers from elsewhere, by path: a weight, or an input of the one microbatch that there is. Fills the n elements of
 * the whole value; *given false: it has none of this path, and the seed makes them. */
typedef struct pl_data_source {
  pl_code (*parameter)(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error);
  pl_code (*input)(void *context, const char *path, int64_t n, double *whole, bool *given, pl_error *error);
  void *context; /* either function may be NULL */
} pl_data_source;

/* One device's part of a whole value, row-major. */
void pl_data_part_of(const double *whole, pl_ir_tensor *part);

/* Fills one device's part of the parameter with this whole path. */
void pl_data_parameter(uint64_t seed, const char *path, pl_ir_tensor *part);
/* Of the input op's value, in one turn of an iteration, for these of its samples. */
void pl_data_input(uint64_t seed, const pl_ir_op *op, int64_t iteration, pl_ir_turn turn, pl_ir_piece piece,
                   pl_ir_tensor *part);

#endif
