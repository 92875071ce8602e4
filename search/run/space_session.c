/* See search/run/space_session.h. */
#include "search/run/space_session.h"

#include <mpi.h>

#include "core/base/build_id.h"
#include "core/base/digest.h"
#include "core/system/command.h"
#include "workloads/command/simulate_program.h"
#include "workloads/import/model_file.h"
#include "workloads/run/program_flops.h"
#include "workloads/run/site_remains.h"

void pl_space_session_init(pl_space_session *session) {
  *session = (pl_space_session){0};
  pl_arena_init(&session->arena, 0);
}

void pl_space_session_release(pl_space_session *session) {
  pl_platform_destroy(session->platform);
  pl_tree_space_release(&session->trees);
  pl_arena_release(&session->arena);
}

/* Names of its choices, with commas between them. */
static pl_code take_columns(pl_space_session *session, pl_error *error) {
  const char *names = session->evaluation.by_programs ? "offload" : "";
  for (int32_t i = 0; names != NULL && i < session->trees.n_choices; i++)
    names = pl_arena_printf(&session->arena, "%s%s%s", names, i > 0 ? "," : "", session->trees.choices[i].name);
  if (names == NULL) return pl_fail_memory(error, "the columns of choices");
  pl_program_columns_fill(names, &session->program);
  session->choice_names = names;
  return PL_OK;
}

/* What is simulated as programs (workloads/run/program_row.h). */
static pl_code load_programs(pl_space_session *session, const pl_job_options *job, pl_space_options *space,
                             pl_error *error) {
  const char *what = space->trees != NULL                   ? "a strategy space"
                     : session->model.program.onnx != NULL  ? "an ONNX file"
                     : space->choices.offloads > 1          ? "--offload"
                     : pl_model_has_blocks(&session->model) ? "--schedule dualpipe"
                                                            : "a model without blocks";
  session->evaluation.by_programs = space->trees == NULL && pl_space_choices_are_programs(&space->choices);
  if (space->trees == NULL && !session->evaluation.by_programs && pl_model_has_blocks(&session->model)) return PL_OK;
  session->programs_of = what;
  PL_TRY(pl_program_options_check(job, what, error));
  if (space->trees != NULL) {
    PL_TRY(pl_tree_space_load(space->trees, &session->arena, &session->trees, error));
    session->evaluation.trees = &session->trees;
  } else {
    PL_TRY(pl_space_choices_for_programs(&space->choices, what, error));
  }
  return take_columns(session, error);
}

pl_code pl_space_session_load(pl_space_session *session, pl_job_options *job, pl_space_options *space,
                              pl_error *error) {
  PL_TRY(pl_space_options_check(space, error));
  PL_TRY(pl_model_load_any(job->model_path, &session->arena, &session->model, error));
  PL_TRY(load_programs(session, job, space, error));
  PL_TRY(pl_job_options_adopt(job, &session->model, &session->arena, error));
  pl_space_choices_adopt(&space->choices, &job->job);
  PL_TRY(pl_platform_load(job->platform_path, NULL, &session->platform, error));
  PL_TRY(pl_platform_check(session->platform, error));
  const pl_cluster *cluster = pl_platform_cluster(session->platform);
  PL_TRY(pl_job_options_complete(job, &session->model, cluster, error));
  PL_TRY(pl_job_options_visit(job, &cluster, &session->arena, error));
  /* A site's interval takes seven more simulations of each candidate: 'simulate --site' has it. */
  if (job->simulate.remains != NULL && pl_model_has_blocks(&session->model))
    job->simulate.remains_size = pl_configuration_size(&session->model, job->job.seq);
  PL_TRY(pl_residuals_load(&session->arena, &session->residuals, error));
  if (job->site_path == NULL) job->simulate.residuals = &session->residuals;
  session->evaluation.cluster = cluster;
  session->evaluation.model = &session->model;
  session->evaluation.job = &job->job;
  session->evaluation.options = &job->simulate;
  return PL_OK;
}

pl_code pl_space_session_enumerate(pl_space_session *session, const pl_space_choices *choices, pl_space *space,
                                   pl_error *error) {
  const pl_evaluation *e = &session->evaluation;
  if (e->trees != NULL) {
    pl_space_of_trees(e->trees, e->model, e->job, e->cluster->n_devices, space);
    return PL_OK;
  }
  PL_TRY(pl_evaluate_space(e, choices, &session->arena, space, error));
  return space->n_candidates > 0 ? PL_OK : pl_space_refuse_empty(space, e->cluster->n_devices, error);
}

/* ---- provenance ---- */

const char *pl_space_session_digest(pl_space_session *session, uint64_t value) {
  char text[PL_DIGEST_TEXT_BYTES];
  const char *copy = pl_arena_strdup(&session->arena, pl_digest_format(value, text));
  return copy != NULL ? copy : "";
}

static void describe_job(pl_space_session *session, const pl_job_origin *origin, pl_provenance *provenance) {
  const pl_job *job = session->evaluation.job;
  const pl_simulate_options *simulate = session->evaluation.options;
  pl_provenance_integer(provenance, "gbs", job->gbs, true);
  pl_provenance_integer(provenance, "seq", job->seq, true);
  pl_provenance_text(provenance, "dtype", pl_dtype_name(job->dtype), true);
  pl_provenance_text(provenance, "dtype_from", pl_job_source_names[origin->dtype], false);
  pl_provenance_text(provenance, "seq_from", pl_job_source_names[origin->seq], false);
  if (job->fp8) pl_provenance_integer(provenance, job->fp4 ? "fp4" : "fp8", 1, true);
  if (job->fp8) pl_provenance_number(provenance, "narrow_share", pl_job_narrow_share(&session->model, job), false);
  pl_provenance_text(provenance, "attention", job->flash ? "flash" : "unfused", true);
  pl_provenance_number(provenance, "bucket_bytes", job->bucket_bytes, true);
  pl_provenance_text(provenance, "pipeline_sends", pl_send_form_names[job->split_sends], true);
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  pl_provenance_text(provenance, "framework", framework->name, true);
  if (framework->pipeline.exchange_multiprocessors > 0)
    pl_provenance_number(provenance, "exchange_sms", framework->pipeline.exchange_multiprocessors, true);
  if (framework->memory.allocator != PL_ALLOCATOR_EXACT)
    pl_provenance_text(provenance, "allocator", pl_allocator_names[framework->memory.allocator], true);
  pl_provenance_text(provenance, "framework_digest", pl_space_session_digest(session, framework->digest), true);
  const pl_op_profile *measured = job->op_profile;
  pl_provenance_text(provenance, "op_profile", measured != NULL ? measured->path : "none", false);
  pl_provenance_text(provenance, "op_profile_digest",
                     pl_space_session_digest(session, measured != NULL ? measured->digest : 0), true);
  pl_provenance_text(provenance, "network", pl_network_names[simulate->network], true);
  pl_provenance_text(provenance, "sharing", pl_sharing_names[simulate->sharing], true);
  const pl_collective_profile *profile = simulate->collective_profile;
  pl_provenance_text(provenance, "collective_profile", profile != NULL ? profile->path : "ideal", false);
  pl_provenance_text(provenance, "collective_profile_digest",
                     pl_space_session_digest(session, profile != NULL ? profile->digest : 0), true);
  pl_provenance_text(provenance, "collectives", pl_collective_form_names[simulate->chunked], true);
  pl_provenance_text(provenance, "algorithm", pl_algorithm_names[simulate->algorithm], true);
  pl_provenance_text(provenance, "streams", pl_stream_policy_names[simulate->streams], true);
  pl_provenance_text(provenance, "residuals_digest", pl_space_session_digest(session, session->residuals.digest), true);
  pl_provenance_integer(provenance, "fold", simulate->fold, true);
  pl_provenance_integer(provenance, "fuse", simulate->fuse, true);
}

void pl_space_session_describe(pl_space_session *session, const pl_job_options *job, const char *command,
                               pl_provenance *provenance) {
  pl_provenance_text(provenance, "command", command, false);
  pl_provenance_text(provenance, "platform", job->platform_path, false);
  pl_provenance_text(provenance, "platform_digest",
                     pl_space_session_digest(session, session->evaluation.cluster->digest), true);
  pl_provenance_text(provenance, "model", job->model_path, false);
  pl_provenance_text(provenance, "model_digest", pl_space_session_digest(session, session->model.digest), true);
  if (job->site_path != NULL) {
    pl_provenance_text(provenance, "site", job->site_path, false);
    pl_provenance_text(provenance, "site_digest", pl_space_session_digest(session, job->site.digest), true);
  }
  if (pl_evaluates_programs(&session->evaluation)) {
    provenance->program = &session->program;
    pl_provenance_text(provenance, PL_PROGRAM_CHOICES, session->choice_names, true);
  }
  if (session->evaluation.trees != NULL) {
    pl_provenance_text(provenance, "strategy_space", session->trees.name, false);
    pl_provenance_text(provenance, "strategy_space_digest",
                       pl_space_session_digest(session, pl_tree_space_digest(&session->trees)), true);
  }
  describe_job(session, &job->origin, provenance);
}

pl_code pl_space_session_describe_versions(pl_space_session *session, pl_provenance *provenance, pl_error *error) {
  pl_results_versions *versions = PL_TAKE(&session->arena, pl_results_versions, 1);
  if (versions == NULL) return pl_fail_memory(error, "versions");
  PL_TRY(pl_results_versions_of(versions, error));
  pl_provenance_text(provenance, "paceline_version", PACELINE_VERSION, true);
  pl_provenance_text(provenance, PL_RESULTS_BUILD_NAME, pl_build_id(), true);
  pl_provenance_text(provenance, "simgrid_version", PACELINE_SIMGRID_VERSION, false);
  pl_provenance_text(provenance, "hdf5_version", versions->hdf5, false);
  pl_provenance_text(provenance, "mpi_version", versions->mpi, false);
  return PL_OK;
}
