/* What a program is run on: parameters and data made from a seed, the same for every program of a model whatever its
 * layouts, since each number is a function of its path and its place in the whole value.
 *
 * Inputs: `tokens`, `targets` (integers below `below`), `positions` (0, 1 ...); other integers below `below`, or 0
 * without it; anything else real numbers in [-1, 1).
 * Dimension b counts samples, which go on from microbatch to microbatch; dimension s counts tokens, with zigzag=c in
 * the order in which c context ranks hold them: 2c chunks, the first and the last, the second and the last but one ...
 */
#ifndef PL_WORKLOADS_EXECUTE_DATA_H
#define PL_WORKLOADS_EXECUTE_DATA_H

#include "workloads/language/ir_table.h"

/* Fills one device's part of the parameter with this whole path. */
void pl_data_parameter(uint64_t seed, const char *path, pl_ir_tensor *part);
/* Of the input op's value, in one microbatch and iteration. */
void pl_data_input(uint64_t seed, const pl_ir_op *op, int64_t iteration, int64_t microbatch, pl_ir_tensor *part);

#endif
