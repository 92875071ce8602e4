/* What a site's figures leave of a simulation (workloads/run/site_remains.h), on its times. */
#include <math.h>

#include "workloads/run/simulate_state.h"
#include "workloads/run/site_remains.h"

double pl_simulation_remains_factor(const pl_simulation *state) {
  const pl_simulate_options *options = state->options;
  if (options->remains == NULL) return 1;
  const pl_configuration at = pl_configuration_of(state->cluster->profiles[0].name,
                                                  pl_remains_size(options->remains_size, state->model, state->job->seq),
                                                  state->job, state->strategy);
  return exp(pl_remaining_at(options->remains, &at).mean);
}

pl_code pl_simulation_report_remains(const pl_simulation *state, pl_simulate_report *report) {
  if (state->options->remains == NULL) return PL_OK;
  const double factor = pl_simulation_remains_factor(state);
  pl_result_row *row = &report->row;
  double *const times[] = {&row->iter_time_s, &row->compute_s,      &row->tensor_comm_s, &row->pipeline_comm_s,
                           &row->data_comm_s, &row->context_comm_s, &row->expert_comm_s, &row->bubble_s};
  double *const speeds[] = {&row->samples_per_s, &row->tokens_per_s, &row->mfu};
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
    *times[i] *= factor;
  for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
    *speeds[i] /= factor;
  report->remains_factor = factor;
  pl_stage_times *stages = PL_TAKE(state->arena, pl_stage_times, report->n_stages);
  if (stages == NULL) return pl_fail_memory(state->error, "the times of the stages");
  for (int32_t s = 0; s < report->n_stages; s++)
    for (int part = 0; part < PL_STAGE_PARTS; part++)
      stages[s].part_s[part] = report->times[s].part_s[part] * factor;
  report->times = stages;
  return PL_OK;
}
