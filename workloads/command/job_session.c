/* See workloads/command/job_session.h. */
#include "workloads/command/job_session.h"

#include "workloads/assign/assign.h"
#include "workloads/import/model_file.h"

void pl_job_session_init(pl_job_session *session) {
  *session = (pl_job_session){.platform = NULL};
  pl_arena_init(&session->arena, 0);
}

void pl_job_session_release(pl_job_session *session) {
  pl_platform_destroy(session->platform);
  pl_arena_release(&session->arena);
}

pl_code pl_job_session_read(pl_job_session *session, pl_job_options *options, const char *strategy, pl_error *error) {
  PL_TRY(pl_model_load(options->model_path, &session->arena, &session->model, error));
  PL_TRY(pl_job_options_adopt(options, &session->model, &session->arena, error));
  PL_TRY(pl_strategy_parse(strategy, &session->model, &session->arena, &session->strategy, error));
  pl_strategy_adopt(&session->strategy, &options->job);
  return PL_OK;
}

pl_code pl_job_session_place(pl_job_session *session, pl_job_options *options, pl_error *error) {
  PL_TRY(pl_platform_load(options->platform_path, NULL, &session->platform, error));
  const pl_cluster *cluster = pl_platform_cluster(session->platform);
  PL_TRY(pl_job_options_complete(options, &session->model, cluster, error));
  PL_TRY(pl_strategy_check(&session->strategy, &session->model, &options->job, cluster->n_devices, error));
  return pl_assign(&session->strategy, &session->model, &options->job, cluster, &options->simulate, &session->arena,
                   error);
}

pl_code pl_job_session_subject(pl_job_session *session, const pl_job_options *options, const pl_simulate_report *report,
                               pl_simulate_subject *subject, pl_error *error) {
  *subject = (pl_simulate_subject){.cluster = pl_platform_cluster(session->platform),
                                   .model = &session->model,
                                   .job = &options->job,
                                   .origin = &options->origin,
                                   .strategy = &session->strategy};
  if (report->row.fits) return PL_OK;
  return pl_nearest_fit_find(subject->cluster, subject->model, subject->job, subject->strategy, &options->simulate,
                             &session->arena, &subject->nearest, error);
}
