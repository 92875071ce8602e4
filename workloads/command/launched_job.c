/* See workloads/command/launched_job.h. */
#include "workloads/command/launched_job.h"

#include <string.h>

#include "workloads/import/model_file.h"
#include "workloads/launch/blame.h"

static pl_code adopt_model(pl_job_session *session, pl_job_options *options, pl_launch *launch, pl_error *error) {
  const char *text;
  if (options->model_path != NULL) {
    if (launch->has_model) return pl_launch_assume(launch, error, "the model of --model, not the file's");
    return PL_OK;
  }
  PL_TRY(pl_launch_model_text(launch, &session->arena, &text, error));
  options->model_path = launch->model_name;
  if (text != NULL) {
    options->model_text = text;
    options->model_path = launch->path;
  }
  if (options->model_path != NULL) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "%s (%s) does not say what is trained; name it with --model", launch->path,
                 launch->title);
}

static void adopt_job(pl_job_options *options, const pl_launch *launch) {
  pl_job *job = &options->job;
  if (!options->origin.seq_is_given && launch->seq > 0) {
    job->seq = launch->seq;
    options->origin.seq_is_given = true;
  }
  if (!options->origin.products_are_given && launch->fp8) job->fp8 = options->origin.products_are_given = true;
  if (!options->origin.dtype_is_given && launch->dtype_is_stated) {
    job->dtype = launch->dtype;
    options->origin.dtype_is_given = true;
  }
  if (!options->attention_is_given && launch->flash >= 0) {
    job->flash = launch->flash == 1;
    options->attention_is_given = true;
  }
  if (options->exchange_sms < 0) options->exchange_sms = launch->exchange_sms;
  options->sends_tokens_per_node = launch->sends_tokens_per_node;
  options->permutation = launch->permutation;
  options->experts = launch->experts;
  if (options->framework_choice == NULL) options->framework_choice = launch->framework;
}

/* Layers of the model, which says how many chunks a stage has. */
static pl_code count_layers(pl_job_session *session, const pl_job_options *options, const pl_launch *launch,
                            int64_t *n_layers, pl_error *error) {
  pl_model model;
  const char *path = options->model_path, *text = options->model_text;
  if (text == NULL) {
    PL_TRY(pl_model_load(path, &session->arena, &model, error));
  } else if (pl_model_parse(path, text, strlen(text), &session->arena, &model, error) != PL_OK) {
    pl_launch_blame_model(launch, error);
    return error->code;
  }
  *n_layers = model.n_layers;
  return PL_OK;
}

pl_code pl_launched_job_take(const char *path, pl_job_session *session, pl_job_options *options, const char **strategy,
                             pl_launch *launch, pl_error *error) {
  int64_t n_layers = 0, gbs = options->job.gbs;
  PL_TRY(pl_launch_load(path, &session->arena, launch, error));
  if (options->platform_path == NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "--platform is missing: %s says how a job is started, not on what ('paceline list platforms')",
                   path);
  PL_TRY(adopt_model(session, options, launch, error));
  adopt_job(options, launch);
  PL_TRY(count_layers(session, options, launch, &n_layers, error));
  PL_TRY(pl_platform_load(options->platform_path, NULL, &session->platform, error));
  if (gbs > 0) launch->gbs = gbs;
  const char *own;
  uint32_t n_devices = pl_platform_cluster(session->platform)->n_devices;
  PL_TRY(pl_launch_strategy(launch, n_devices, n_layers, &session->arena, &own, error));
  options->job.gbs = launch->gbs;
  if (*strategy == NULL) *strategy = own;
  return PL_OK;
}
