/* See workloads/command/job_session.h. */
#include "workloads/command/job_session.h"

#include <string.h>

#include "workloads/assign/assign.h"
#include "workloads/import/model_file.h"
#include "workloads/run/site_interval.h"

void pl_job_session_init(pl_job_session *session) {
  *session = (pl_job_session){.platform = NULL};
  pl_arena_init(&session->arena, 0);
}

void pl_job_session_release(pl_job_session *session) {
  pl_platform_destroy(session->platform);
  pl_arena_release(&session->arena);
}

static pl_code read_rest(pl_job_session *session, pl_job_options *options, const char *strategy, pl_error *error) {
  PL_TRY(pl_job_options_adopt(options, &session->model, &session->arena, error));
  PL_TRY(pl_strategy_parse(strategy, &session->model, &session->arena, &session->strategy, error));
  pl_strategy_adopt(&session->strategy, &options->job);
  return PL_OK;
}

pl_code pl_job_session_read(pl_job_session *session, pl_job_options *options, const char *strategy, pl_error *error) {
  if (options->model_text == NULL)
    PL_TRY(pl_model_load(options->model_path, &session->arena, &session->model, error));
  else
    PL_TRY(pl_model_parse(options->model_path, options->model_text, strlen(options->model_text), &session->arena,
                          &session->model, error));
  return read_rest(session, options, strategy, error);
}

pl_code pl_job_session_read_any(pl_job_session *session, pl_job_options *options, const char *strategy,
                                pl_error *error) {
  if (options->model_text != NULL) return pl_job_session_read(session, options, strategy, error);
  PL_TRY(pl_model_load_any(options->model_path, &session->arena, &session->model, error));
  return read_rest(session, options, strategy, error);
}

/* By shares of layers alone: nothing is priced. */
static pl_code assign_program(pl_job_session *session, const pl_job_options *options, pl_error *error) {
  return pl_strategy_assign_unplaced(
      &session->strategy, &session->model, &options->job,
      ": the layers of a model that is its program have no prices; give boundaries, uniform or ends", &session->arena,
      error);
}

pl_code pl_job_session_place(pl_job_session *session, pl_job_options *options, pl_error *error) {
  if (session->platform == NULL) PL_TRY(pl_platform_load(options->platform_path, NULL, &session->platform, error));
  return pl_job_session_place_on(session, options, pl_platform_cluster(session->platform), error);
}

pl_code pl_job_session_place_on(pl_job_session *session, pl_job_options *options, const pl_cluster *cluster,
                                pl_error *error) {
  PL_TRY(pl_job_options_complete(options, &session->model, cluster, error));
  PL_TRY(pl_job_options_visit(options, &cluster, &session->arena, error));
  session->cluster = cluster;
  PL_TRY(pl_strategy_spread(&session->strategy, cluster->n_devices, error));
  PL_TRY(pl_strategy_check(&session->strategy, &session->model, &options->job, cluster->n_devices, error));
  if (!pl_model_has_blocks(&session->model)) return assign_program(session, options, error);
  return pl_assign(&session->strategy, &session->model, &options->job, cluster, &options->simulate, &session->arena,
                   error);
}

pl_code pl_job_session_interval(pl_job_session *session, const pl_job_options *options, pl_simulate_report *report,
                                pl_error *error) {
  if (options->site_path == NULL) return PL_OK;
  double x[PL_SITE_COUNT], time_s = report->row.iter_time_s;
  PL_TRY(pl_site_sensitivities_take(session->cluster, &session->model, &options->job, &session->strategy,
                                    &options->simulate, time_s / report->remains_factor, &session->arena, x, error));
  const pl_configuration at =
      pl_configuration_of(session->cluster->profiles[0].name, pl_configuration_size(&session->model, options->job.seq),
                          &options->job, &session->strategy);
  const pl_remaining remaining = pl_remaining_at(options->site.remains, &at);
  const pl_interval interval = pl_site_interval(&options->site, x, &remaining, time_s);
  pl_simulate_report_mark(report, &interval);
  return PL_OK;
}

pl_code pl_job_session_subject(pl_job_session *session, const pl_job_options *options, const pl_simulate_report *report,
                               pl_simulate_subject *subject, pl_error *error) {
  *subject = (pl_simulate_subject){.cluster = session->cluster,
                                   .model = &session->model,
                                   .job = &options->job,
                                   .origin = &options->origin,
                                   .way = &options->simulate,
                                   .remains = options->simulate.remains,
                                   .strategy = &session->strategy};
  if (report->row.fits) return PL_OK;
  return pl_nearest_fit_find(subject->cluster, subject->model, subject->job, subject->strategy, &options->simulate,
                             &session->arena, &subject->nearest, error);
}
