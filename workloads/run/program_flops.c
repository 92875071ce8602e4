/* See workloads/run/program_flops.h. */
#include "workloads/run/program_flops.h"

#include <math.h>

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

pl_code pl_program_flops_take(const pl_model *model, const pl_job *job, pl_batch_cut cut, pl_arena *arena,
                              pl_program_flops *flops, pl_error *error) {
  pl_arena_mark mark = pl_arena_mark_here(arena);
  pl_ir_module *program = NULL;
  if (!pl_model_has_blocks(model)) {
    program = PL_TAKE(arena, pl_ir_module, 1);
    if (program == NULL) return pl_fail_memory(error, "a model program");
    PL_TRY(pl_model_program_of(model, job, cut, arena, program, error));
  }
  *flops = pl_program_flops_of(model, job, program, cut);
  pl_arena_release_to(arena, mark);
  return PL_OK;
}

double pl_job_narrow_share(const pl_model *model, const pl_job *job) {
  pl_arena arena;
  pl_error error = PL_ERROR_INIT;
  pl_program_flops flops;
  if (!job->fp8) return 0;
  if (pl_model_has_blocks(model)) return pl_model_narrow_share(model, job->dtype, job->fp4, job->seq);
  pl_arena_init(&arena, 0);
  pl_code code = pl_program_flops_take(model, job, pl_batch_cut_evenly(job, 1), &arena, &flops, &error);
  pl_arena_release(&arena);
  return code == PL_OK ? flops.narrow_share : (double)NAN;
}
