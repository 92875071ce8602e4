/* See workloads/stage_memory.h. */
#include "workloads/stage_memory.h"

#include <math.h>

/* Largest message that the stage receives from `sender`'s family. */
static double largest_message(const pl_program *program, pl_family_kind kind, int32_t stage) {
  if (program->strategy->pp == 1) return 0;
  uint32_t index = program->family_of[pl_program_sender(program, kind, stage)][kind];
  double largest = 0;
  for (uint32_t i = 0; index != PL_NONE && i < program->families[index].n_ops; i++)
    largest = fmax(largest, program->families[index].ops[i].size_bytes);
  return largest;
}

pl_resident_memory pl_resident_memory_of(const pl_program *program, int32_t stage) {
  const pl_strategy *strategy = program->strategy;
  const pl_stage_program *own = &program->stages[stage];
  pl_training_state bytes = pl_training_state_of(program->job, strategy->dp);
  double shards = strategy->dp;
  pl_resident_memory memory = {
      .parameters = own->parameters * bytes.parameter_bytes / (strategy->zero >= 3 ? shards : 1),
      .gradients = own->parameters * bytes.gradient_bytes / (strategy->zero >= 2 ? shards : 1),
      .optimizer = own->parameters * bytes.optimizer_bytes / (strategy->zero >= 1 ? shards : 1),
      .update = own->parameters * bytes.update_bytes / (strategy->zero >= 1 ? shards : 1),
  };
  memory.buffers =
      2 * (largest_message(program, PL_FAMILY_DOWN, stage) + largest_message(program, PL_FAMILY_UP, stage));
  if (strategy->dp > 1 && strategy->zero >= 3)
    memory.buffers += 2 * own->largest_block_parameters * bytes.parameter_bytes;
  if (strategy->dp > 1 && strategy->zero >= 2)
    memory.buffers += fmax(program->job->bucket_bytes, own->largest_block_parameters * bytes.gradient_bytes);
  return memory;
}

pl_memory_effect pl_block_effect(const pl_block_program *block, bool backward) {
  double peak = backward ? block->backward_peak_bytes : fmax(block->forward_peak_bytes, block->saved_bytes);
  double net = backward ? -block->saved_bytes : block->saved_bytes;
  return (pl_memory_effect){.peak_bytes = llrint(fmax(peak, 0)), .net_bytes = llrint(net)};
}
