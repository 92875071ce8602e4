/* Memory of a pipeline stage that does not move during an iteration (per device), and what each kind of it is.
 *
 * Parameters, gradients and optimizer state with ZeRO's sharding (Rajbhandari et al. 2020, figure 1): stage 1 shards
 * the optimizer state, stage 2 the gradients too, stage 3 the parameters too. Buffers: two receive buffers per
 * direction of the pipeline, ZeRO-3's gathered parameters (a window of two blocks, as PyTorch's FSDP around
 * transformer layers has; workloads/STAGES.md, "ZeRO-3"), the unsharded gradients of one bucket with ZeRO-2 and 3.
 * Activations come out of the simulation (memory effects of the tasks).
 */
#ifndef PL_WORKLOADS_STAGE_MEMORY_H
#define PL_WORKLOADS_STAGE_MEMORY_H

#include "workloads/memory/buffer_memory.h"
#include "workloads/memory/stage_replay.h"
#include "workloads/program/program.h"

typedef struct pl_resident_memory {
  double parameters, gradients, optimizer, buffers; /* bytes */
  double update;  /* of the optimizer while it runs, when no activation is left: gradients in fp32; not resident */
  double stepped; /* of update, gradients that are there no longer than the step needs them */
} pl_resident_memory;

pl_resident_memory pl_resident_memory_of(const pl_program *program, int32_t stage);
static inline double pl_resident_bytes(const pl_resident_memory *memory) {
  return memory->parameters + memory->gradients + memory->optimizer + memory->buffers;
}

/* What a rank of the stage has beside its tensors is made from. */
pl_buffer_facts pl_stage_buffer_facts(const pl_program *program, int32_t stage);

/* What lies around a peak of tensors: what the allocator holds for them (library workspaces, what it cannot use), what
 * is then taken of the device (context, communicators), and how large the peak of tensors may be. */
typedef struct pl_held_memory {
  double allocator, device, usable; /* bytes */
} pl_held_memory;

/* The communicators that a device belongs to. */
typedef struct pl_communicators {
  int32_t n, in_switch; /* in_switch: GPUs of its own node in those with three of them and more, all together */
} pl_communicators;
/* Counts one with so many members in the device's node. */
void pl_communicators_add(pl_communicators *all, uint32_t in_node);

/* What a device holds outside the allocator: context and libraries, and the buffers of its communicators. */
double pl_memory_outside_bytes(const pl_framework *framework, const pl_device_profile *profile, pl_communicators own);
/* What the device has for the allocator: without context and communicators. */
double pl_allocator_limit(const pl_cluster *cluster, const pl_program *program, int32_t stage,
                          const pl_device_profile *profile);
/* `replayed`: what the framework's allocator holds (workloads/memory/stage_replay.h); NULL: the tensors and what the
 * profile adds to them. */
pl_held_memory pl_held_memory_of(const pl_cluster *cluster, const pl_program *program, int32_t stage,
                                 const pl_device_profile *profile, double peak_bytes,
                                 const pl_replayed_memory *replayed);

/* What a block's pass does to the activations on its device, as a memory effect. */
pl_memory_effect pl_block_effect(const pl_block_program *block, pl_block_pass pass);

#endif
