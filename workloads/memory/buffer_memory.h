/* What a framework holds beside parameters, gradients, states and activations: buckets, copies of many tensors in one,
 * units of ZeRO that are whole for a while. Of a rank, be it of a stage of a tuple (workloads/memory/stage_memory.h) or
 * of a class of a program (workloads/memory/program_memory.h). */
#ifndef PL_WORKLOADS_BUFFER_MEMORY_H
#define PL_WORKLOADS_BUFFER_MEMORY_H

#include "workloads/framework/framework.h"
#include "workloads/program/program.h"

typedef struct pl_buffer_facts {
  const pl_framework *framework;
  pl_training_state bytes;
  double made_bytes;   /* of a gradient, as products make it */
  double bucket_bytes; /* as pl_program_bucket_bytes has it */
  int32_t zero;
  bool shares;     /* other ranks hold the same parameters */
  bool recomputes; /* layers are computed again in the backward pass */
  /* Parameters: of the rank where none are sharded, and where all are that it shares with others; of its largest
   * tensor, its largest block, and the two blocks in a row that have most. */
  double parameters, sharded, largest_parameters, largest_block, largest_pair;
  double narrow; /* bytes of the weights that narrow products read, in their type */
} pl_buffer_facts;

/* Parameters that ZeRO-3 has gathered and not let go of when a forward pass ends: the units under way, whose largest
 * has `largest`, or as many as are used again soon. Of those that pl_framework.gathers.reuse_parameters counts each is
 * counted as often as it is used on the way there and back, twice, or thrice where layers are computed again; and that
 * which is counted across the limit is whole. */
double pl_kept_gathered(const pl_framework *framework, double largest, bool recomputes);
/* Whether largest_pair counts. */
bool pl_buffer_counts_pairs(const pl_framework *framework);
/* Bytes. Copies of many tensors in one, and of one in a wider type. */
double pl_copied_bytes(const pl_buffer_facts *facts);
/* ZeRO's units that are whole at a time; 0: nobody shares. */
double pl_unsharded_bytes(const pl_buffer_facts *facts);
/* Of these, a bucket of gradients. */
double pl_unsharded_unit_bytes(const pl_buffer_facts *facts);
/* Gradients once more: in buckets, or the 16-bit ones of the last pass. */
double pl_extra_gradient_bytes(const pl_buffer_facts *facts);
/* Weights in the type of the products that read them, as they are and transposed, where the profile caches them. */
double pl_narrow_copies_bytes(const pl_buffer_facts *facts);

#endif
