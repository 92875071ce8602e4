/* What measured times of whole blocks (workloads/cost/op_profile.h) do to the costs of their ops.
 *
 * A pass of a block was measured once, at some tensor degree and microbatch, and is simulated at many. So a measurement
 * is split into what its device does and what its host does, and both are carried over:
 *
 *   scale  what the device's work takes beyond the cost model: (measured - collectives inside) / modelled. Measurements
 *          of one block at several tensor degrees have one scale in common, the least of theirs: device work cannot be
 *          slower than the least slow of them shows. It multiplies the cost of each op, at any microbatch.
 *   floor  the measured time itself: no pass of the block at this tensor degree is over earlier, however little the
 *          device has to do. What a measurement shows beyond its scaled work and its collectives is thereby the host's,
 *          which does not grow with the microbatch (workloads/compile/host_floor.h).
 *
 * At the tensor degree and microbatch of a measurement the two give back the time that was measured. Backward passes
 * have measurements of their own; where there are none the scale is the forward pass's (ops derived from the same
 * shapes on the same device) and the floor grows as the host's work does from one pass to the other, without a
 * framework as the device's work does. Recomputed ops are forward ops.
 *
 * Tensor collectives that ran inside a measurement are taken off with what they take alone in the simulated cluster,
 * which holds where the group is inside one node, as it was when it was measured; the network then charges them as
 * always, so that they are there once. For groups over several nodes, or in another form than was measured (sequence,
 * context or expert parallelism, chunked collectives), only measurements at tensor degree 1 count, and there is no
 * floor. The measurement with the nearest microbatch counts; of two equally near the larger.
 *
 * Rejected: times linear in the microbatch (AMP, section 3.3): with AMP's own profile and trials that is what makes its
 * error 47.6 %; and one factor on the whole pass, which would make a GPU slower because its host was late.
 */
#ifndef PL_WORKLOADS_BLOCK_SCALE_H
#define PL_WORKLOADS_BLOCK_SCALE_H

#include "workloads/compile/communication.h"
#include "workloads/cost/op_cost.h"
#include "workloads/program/measured_block.h"

/* Of a block's pass on a device. */
typedef struct pl_block_scale {
  double device;         /* on the cost of each op; 1 where nothing was measured */
  double floor_s;        /* of the pass, tensor collectives included; 0 = none */
  pl_cost_source source; /* of its ops' costs; PL_COST_TABLE: nothing was measured */
} pl_block_scale;

/* For the devices of a class. False, with `scales` untouched, where the job has no op profile. O(measurements * ops).
 */
bool pl_block_scales_of(const pl_cluster *cluster, const pl_program *program, const pl_communication_plan *plan,
                        const pl_device_class *device, pl_block_scale scales[PL_MODEL_CLASSES_MAX][2]);

/* The cost of an op of a block of this class under `scales` (NULL: as it is). */
pl_op_time pl_block_scaled_cost(pl_op_time cost, const pl_block_scale (*scales)[2], int32_t block_class,
                                const pl_op *op);

#endif
