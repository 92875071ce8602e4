/* The random numbers of programs: a hash of where a number is used, so that every device, order of devices and cut of a
 * value draws the same one, and so does a forward pass that is made again. */
#ifndef PL_WORKLOADS_IR_RANDOM_H
#define PL_WORKLOADS_IR_RANDOM_H

#include "workloads/language/ir_table.h"

/* Uniform in [0, 1). `index` is the place in the whole value, row-major. */
double pl_ir_hash_uniform(uint64_t seed, uint64_t iteration, int32_t microbatch, uint64_t index);

/* What dropout with probability p multiplies an element by: 0, or 1 / (1 - p). */
double pl_ir_dropout_factor(const pl_ir_computing *computing, double p, uint64_t seed, uint64_t index);

#endif
