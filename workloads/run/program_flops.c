/* See workloads/run/program_flops.h. */
#include "workloads/run/program_flops.h"

#include "workloads/language/ir_work.h"
#include "workloads/lower/block_program.h"

pl_program_flops pl_program_flops_of(const pl_model *model, const pl_job *job, const pl_ir_module *program,
                                     pl_batch_cut cut) {
  if (pl_model_has_blocks(model)) {
    double narrow = job->fp8 ? pl_model_narrow_share(model, job->dtype, job->fp4, job->seq) : 0;
    return (pl_program_flops){pl_model_flops_per_sequence(model, job->seq), narrow};
  }
  const pl_ir_work work = pl_ir_function_work(program, program->classes[0].chunks[0].forward);
  double n = cut.fewer ? (double)job->gbs / (double)cut.samples : program->n_microbatches;
  return (pl_program_flops){3 * (work.product_flops + work.attention_flops) * n / (double)job->gbs,
                            pl_ir_work_narrow_share(&work)};
}
