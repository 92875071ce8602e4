/* Devices that run fewer microbatches than others: `microbatches 1 at dp=1` says that those at this place of the mesh
 * pass over the steps of all microbatches but the first 1. Their lists are the others' with these steps left out, so
 * that whatever order is without deadlock stays so; gradients meet behind the steps, where everybody is.
 *
 * Samples (dimension b) are counted over what is run: microbatch by microbatch, in each those of the parts that are
 * there, in the order of the parts. A batch that is given out unevenly so has the samples of one that is not.
 */
#ifndef PL_WORKLOADS_IR_FEWER_H
#define PL_WORKLOADS_IR_FEWER_H

#include "workloads/language/ir_module.h"
#include "workloads/language/ir_piece.h"

/* Microbatches 0, 1 ... that a device of the mesh runs. */
int32_t pl_ir_microbatches_of(const pl_ir_module *module, uint32_t device);
/* Whether it runs this one; everybody runs what is behind the steps (PL_IR_NONE). */
bool pl_ir_runs(const pl_ir_module *module, uint32_t device, int32_t microbatch);
/* Axes along which devices run unlike numbers, one bit each. */
uint32_t pl_ir_fewer_axes(const pl_ir_module *module);
/* Of all places on the mesh and all microbatches the share that is run: 1 where no place has fewer. */
double pl_ir_share_run(const pl_ir_module *module);
/* Axes that cut b of data, one bit each. O(ops); 0 of programs in which no place has fewer. */
uint32_t pl_ir_sample_axes(const pl_ir_module *module);
/* A device's turn, by these axes. O(places along them). */
pl_ir_turn pl_ir_turn_of(const pl_ir_module *module, uint32_t sample_axes, uint32_t device, int32_t microbatch);

#endif
