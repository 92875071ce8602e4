/* The host's share in a pass: what it needs to launch the pass, beside what the device needs to run it.
 *
 * An eager framework launches kernels one by one from one thread, in order, ahead of the device. As long as it is
 * ahead its time does not show; when the device has run dry, the pace is the host's. Over a window in which nothing
 * makes the host wait for the device, the window takes max(device, host), whatever the order inside it: it is what a
 * queue of launches comes to in steady state. The window is the forward and the backward pass of a microbatch, or one
 * pass where the framework waits for the device at every send between stages (pl_framework.host_window). What the host
 * is late by is put behind the blocks of the passes, in proportion to what it has to launch for each; forward gets as
 * much as it lacks by itself, backward the rest; of a backward pass in halves likewise the one for inputs.
 *
 * Where passes of two microbatches run beside each other the window is a pair of them, in which the device is busy for
 * what both compute or for what both exchange, whichever is longer.
 *
 * Where a pass of a block was measured as a whole (workloads/program/measured_block.h) the host needs at least that
 * time for it.
 *
 * A host that is made to wait for every kernel (CUDA_LAUNCH_BLOCKING=1) launches nothing ahead: device and host take
 * turns, and all of the host's time shows.
 *
 * Not modelled: the depth of the launch queue (1,024 on CUDA), and what is lost at the start of the first window. A
 * stream of its own for the host in the graph was rejected: it would double the tasks and keep passes from being fused,
 * for what in steady state is the same sum.
 */
#ifndef PL_WORKLOADS_HOST_FLOOR_H
#define PL_WORKLOADS_HOST_FLOOR_H

#include "workloads/compile/pieces.h"

typedef struct pl_host_load {
  double device_s, host_s;
  double tokens_s; /* exchanges of tokens beside which another pass computes */
} pl_host_load;

/* No device ever waits for its host: no time of the host is known, and no pass was measured. */
bool pl_host_is_in_time(const pl_program *program);

/* Of one instruction, and of a pass. Collectives that computing waits for count on the device with what they take when
 * their group is alone on the network: what others do there at the same time, groups of the same class too, is found in
 * the run, and differs between a class's ways of being simulated. O(ops). */
pl_host_load pl_host_load_of_instruction(const pl_piece_context *context, const pl_instruction *instruction);
pl_host_load pl_host_load_of(const pl_piece_context *context, const pl_pass *pass);

/* What the host works for a collective of a group of so many, and for an op of a block that is none. */
double pl_host_s_of_collective(const pl_framework *framework, uint32_t n_ranks);
double pl_host_s_of_op(const pl_framework *framework, const pl_block_program *block, const pl_op *op, bool backward);

enum { PL_HOST_PASSES = 3 };

/* By how much the host is late in each of the passes of a chunk and microbatch: forward and backward, or forward and
 * the halves of the backward. `late_s`: `n` of them. */
void pl_host_floors(const pl_piece_context *context, const pl_pass *const *passes, int n, double *late_s);

#endif
