/* See workloads/command/beside_report.h. */
#include "workloads/command/beside_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/units.h"
#include "workloads/language/ir_module.h"

static uint32_t devices_of(const pl_beside_job *job) {
  return job->program != NULL ? pl_ir_module_devices(job->program) : pl_strategy_n_ranks(job->strategy);
}

void pl_beside_print(FILE *stream, const pl_beside_result *result) {
  char alone[PL_UNIT_TEXT_BYTES], beside[PL_UNIT_TEXT_BYTES], begin[PL_UNIT_TEXT_BYTES], end[PL_UNIT_TEXT_BYTES];
  if (result->n_jobs == 0) return;
  int width = 3;
  for (uint32_t j = 0; j < result->n_jobs; j++)
    if ((int)strlen(result->jobs[j].name) > width) width = (int)strlen(result->jobs[j].name);
  fprintf(stream,
          "\njobs beside each other (one run of %" PRIu32 " tasks, nothing folded; of an iteration, in the mean)\n",
          result->report.n_tasks);
  fprintf(stream, "  %-*s  devices  iterations      alone     beside    longer  from        to\n", width, "job");
  for (uint32_t j = 0; j < result->n_jobs; j++) {
    const pl_beside_job *job = &result->jobs[j];
    fprintf(stream, "  %-*s  %7" PRIu32 "  %10" PRIu32 " %10s %10s %+8.2f %%  %-10s  %s\n", width, job->name,
            devices_of(job), job->n_iterations, pl_format_time(job->alone_s, alone),
            pl_format_time(job->beside_s, beside), 100 * (job->beside_s / job->alone_s - 1),
            pl_format_time(job->begin_s, begin), pl_format_time(job->end_s, end));
  }
}

static void put_job(pl_json *json, const pl_beside_job *job) {
  char *text = job->strategy != NULL ? pl_strategy_text(job->strategy, job->model) : NULL;
  pl_json_open_object(json);
  pl_json_put_string(json, "name", job->name);
  pl_json_put_string(json, "model", job->model->name);
  pl_json_put_string(json, "strategy", text != NULL ? text : job->strategy_text != NULL ? job->strategy_text : "");
  pl_json_put_integer(json, "gbs", job->job->gbs);
  pl_json_put_integer(json, "n_devices", devices_of(job));
  pl_json_put_integer(json, "n_iterations", job->n_iterations);
  pl_json_put_number(json, "alone_s", job->alone_s);
  pl_json_put_number(json, "beside_s", job->beside_s);
  pl_json_put_number(json, "longest_s", job->longest_s);
  pl_json_put_number(json, "begin_s", job->begin_s);
  pl_json_put_number(json, "end_s", job->end_s);
  pl_json_close_object(json);
  free(text);
}

void pl_beside_json(pl_json *json, const pl_beside_result *result) {
  if (result->n_jobs == 0) return;
  pl_json_key(json, "beside");
  pl_json_open_object(json);
  pl_json_put_number(json, "makespan_s", result->report.makespan_s);
  pl_json_put_integer(json, "n_tasks", result->report.n_tasks);
  pl_json_key(json, "jobs");
  pl_json_open_array(json);
  for (uint32_t j = 0; j < result->n_jobs; j++)
    put_job(json, &result->jobs[j]);
  pl_json_close_array(json);
  pl_json_close_object(json);
}
