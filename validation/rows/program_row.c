/* See validation/rows/program_row.h. */
#include "validation/rows/program_row.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "workloads/language/ir_check.h"
#include "workloads/language/ir_text.h"
#include "workloads/run/program_interval.h"
#include "workloads/run/simulate_program.h"

pl_code pl_program_row_express(pl_case *c, const pl_case_options *options, pl_arena *arena, pl_error *error) {
  const pl_measured_row *row = c->row;
  if (options->platform_path == NULL && row->platform[0] == '\0')
    return pl_fail(error, PL_UNSUPPORTED, "not stated: platform (or --platform, for all rows)");
  c->program = pl_row_beside(row, row->program, arena);
  c->platform = options->platform_path != NULL ? options->platform_path : pl_row_beside(row, row->platform, arena);
  c->assumptions = "";
  if (c->program == NULL || c->platform == NULL) return pl_fail_memory(error, "the names of the programs");
  if (access(c->program, R_OK) != 0) return pl_fail(error, PL_UNSUPPORTED, "program: %s cannot be read", c->program);
  return PL_OK;
}

pl_code pl_program_row_simulate(pl_case *c, const pl_cluster *cluster, const pl_case_options *rules,
                                const pl_simulate_options *options, pl_arena *arena, pl_error *error) {
  pl_ir_module module;
  pl_program_report report;
  pl_simulate_options here = *options;
  pl_error why = PL_ERROR_INIT;
  pl_code code = pl_ir_load(c->program, arena, &module, &why);
  if (code == PL_OK) code = pl_ir_check(&module, &why);
  const pl_job job = {.framework = NULL};
  const pl_program_kind kind = {.job = &job, .schedule = "of a program", .trains = true};
  pl_aspects aspects = {.n = 0};
  if (code == PL_OK) aspects = pl_aspects_of_program(cluster, &module, &kind);
  here.program_aspects = rules->site == NULL ? &aspects : NULL; /* as simulate --program has it */
  if (code == PL_OK) code = pl_simulate_program(cluster, &module, NULL, &here, arena, &report, &why);
  if (code == PL_BAD_INPUT || code == PL_UNSUPPORTED) return pl_fail(error, code, "program: %s", why.message);
  if (code != PL_OK) return pl_fail(error, code, "%s", why.message);
  c->result = (pl_result_row){.iter_time_s = report.iter_time_s};
  const double *spent = report.spent_s;
  c->result.compute_s = spent[PL_CATEGORY_FORWARD] + spent[PL_CATEGORY_BACKWARD] + spent[PL_CATEGORY_OPTIMIZER];
  c->result.tensor_comm_s = spent[PL_CATEGORY_TENSOR];
  c->result.pipeline_comm_s = spent[PL_CATEGORY_PIPELINE];
  c->result.data_comm_s = spent[PL_CATEGORY_DATA];
  c->result.bubble_s = report.idle_s;
  const pl_class_memory *fullest = &report.memory[report.fullest];
  c->result.peak_mem_bytes = llrint(fullest->peak);
  c->result.mem_capacity_bytes = llrint(fullest->capacity);
  c->result.fits = report.fits;
  c->predicted_mem_bytes = fullest->peak;
  c->result.mfu = (double)NAN; /* a program's products may be of several types */
  c->flops = report.flops;
  c->interval = report.interval;
  return PL_OK;
}
