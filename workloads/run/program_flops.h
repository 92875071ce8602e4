/* What the MFU of a job that is simulated as a program counts. */
#ifndef PL_WORKLOADS_PROGRAM_FLOPS_H
#define PL_WORKLOADS_PROGRAM_FLOPS_H

#include "workloads/passes/program_of.h"

typedef struct pl_program_flops {
  double of_sequence;  /* matrix products and attention, forward and twice that backward */
  double narrow_share; /* of these in the job's narrow type; 0: all are in one */
} pl_program_flops;

/* As of strategies in words, whatever a framework holds beside the model; of a model without blocks, and of it alone,
 * what `program`, its model program of microbatches that are cut so, multiplies. */
pl_program_flops pl_program_flops_of(const pl_model *model, const pl_job *job, const pl_ir_module *program,
                                     pl_batch_cut cut);

/* The same, with the model program made for it, of a model without blocks. Scratch in `arena`, given back. */
pl_code pl_program_flops_take(const pl_model *model, const pl_job *job, pl_batch_cut cut, pl_arena *arena,
                              pl_program_flops *flops, pl_error *error);
/* The narrow share of a job, however it is simulated; NaN: its program cannot be made. */
double pl_job_narrow_share(const pl_model *model, const pl_job *job);

#endif
