/* The random numbers of programs: a hash of where a number is used, so that every device, order of devices and cut of a
 * value draws the same one, and so does a forward pass that is made again. */
#ifndef PL_WORKLOADS_IR_RANDOM_H
#define PL_WORKLOADS_IR_RANDOM_H

#include "workloads/language/ir_table.h"

/* Uniform in [0, 1). `index` is the place in the iteration. */
double pl_ir_hash_uniform(uint64_t seed, uint64_t iteration, uint64_t index);

/* What dropout with probability p multiplies an element by: 0, or 1 / (1 - p). `index` is its place in the whole value
 * of `n` elements, row-major, samples outermost: microbatches go on where the last one ended, so that the same samples
 * draw the same numbers however a batch is divided. `samples`: how many the value has. */
double pl_ir_dropout_factor(const pl_ir_computing *computing, double p, uint64_t seed, uint64_t index, double n,
                            int64_t samples);

/* The token at place `at` of a sequence of `n` that `ranks` context ranks hold in 2 `ranks` chunks, the first and the
 * last, the second and the last but one ... (as Megatron Core cuts sequences, so that causal attention is equal work).
 */
int64_t pl_ir_zigzag(int64_t at, int64_t n, int64_t ranks);

#endif
