/* `paceline sweep`. The phases, after each of which the ranks agree (search/agree.h), so that they leave together and
 * rank 0 alone speaks: load and enumerate, create or check the file, sweep, summarise. Nothing is written before the
 * second. */
#include "search/cmd_sweep.h"

#include <hdf5.h>
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/command.h"
#include "core/digest.h"
#include "netmodel/platform.h"
#include "search/agree.h"
#include "search/evaluate.h"
#include "search/results_file.h"
#include "search/sweep.h"
#include "search/sweep_options.h"
#include "search/sweep_summary.h"

typedef struct session {
  pl_sweep_options options;
  const char *command;
  pl_arena arena;
  pl_platform *platform;
  pl_model model;
  pl_space space;
  pl_evaluation evaluation;
  int32_t *status; /* per candidate, as found in the file */
  int rank;
  pl_sweep_outcome outcome;
} session;

/* Whether this process is the one that may print, as far as can be known before MPI runs. */
static bool is_silent_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *rank = getenv(names[i]);
    if (rank != NULL) return strcmp(rank, "0") != 0;
  }
  return false;
}

/* ---- load and enumerate ---- */

static pl_code refuse_empty(const session *own, pl_error *error) {
  char text[PL_ERROR_MESSAGE_BYTES] = "", reason[128];
  for (int r = 0; r < PL_DROP_COUNT; r++) {
    if (own->space.dropped[r] == 0) continue;
    pl_space_format_reason(&own->space, (pl_space_reason)r, reason, sizeof reason);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s (%" PRIu64 " dropped)", used ? "; " : ": ", reason,
             own->space.dropped[r]);
  }
  return pl_fail(
      error, PL_BAD_INPUT, "no candidate is left for %u devices%s; loosen the restrictions or change --gbs",
      own->evaluation.cluster->n_devices,
      text[0] ? text
              : ": no pp, dp and tmp that are allowed multiply to them, or every mbs that is allowed exceeds gbs");
}

static pl_code load(session *own, pl_error *error) {
  pl_sweep_options *options = &own->options;
  PL_TRY(pl_model_load(options->job.model_path, &own->arena, &own->model, error));
  PL_TRY(pl_job_options_adopt(&options->job, &own->arena, error));
  pl_space_choices_adopt(&options->choices, &options->job.job);
  PL_TRY(pl_platform_load(options->job.platform_path, NULL, &own->platform, error));
  PL_TRY(pl_platform_check(own->platform, error));
  const pl_cluster *cluster = pl_platform_cluster(own->platform);
  PL_TRY(pl_job_options_complete(&options->job, &own->model, cluster, error));
  own->evaluation = (pl_evaluation){
      .cluster = cluster, .model = &own->model, .job = &options->job.job, .options = &options->job.simulate};
  const pl_space_rules rules = {.balanced_differs = pl_evaluate_balanced_differs, .context = &own->evaluation};
  PL_TRY(pl_space_take(&own->model, &options->job.job, cluster->n_devices, &options->choices, &rules, &own->arena,
                       &own->space, error));
  if (own->space.n_candidates == 0) return refuse_empty(own, error);
  for (uint32_t i = 0; options->features && i < own->space.n_candidates; i++)
    if ((uint32_t)own->space.candidates[i].pp > own->evaluation.n_stages)
      own->evaluation.n_stages = (uint32_t)own->space.candidates[i].pp;
  own->status = PL_TAKE(&own->arena, int32_t, own->space.n_candidates);
  return own->status == NULL ? pl_fail_memory(error, "the candidates' status") : PL_OK;
}

/* ---- the file ---- */

static const char *digest_text(session *own, uint64_t value) {
  char text[PL_DIGEST_TEXT_BYTES];
  const char *copy = pl_arena_strdup(&own->arena, pl_digest_format(value, text));
  return copy != NULL ? copy : "";
}

static void describe_versions(pl_provenance *provenance, session *own) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  unsigned major, minor, release;
  MPI_Get_library_version(mpi, &length);
  H5get_libversion(&major, &minor, &release);
  const char *hdf5 = pl_arena_printf(&own->arena, "%u.%u.%u", major, minor, release);
  const char *copy = pl_arena_strdup(&own->arena, mpi);
  pl_provenance_text(provenance, "paceline_version", PACELINE_VERSION, true);
  pl_provenance_text(provenance, "simgrid_version", PACELINE_SIMGRID_VERSION, false);
  pl_provenance_text(provenance, "hdf5_version", hdf5 ? hdf5 : "", false);
  pl_provenance_text(provenance, "mpi_version", copy ? copy : "", false);
}

static void describe_job(pl_provenance *provenance, session *own) {
  const pl_job *job = own->evaluation.job;
  const pl_simulate_options *simulate = own->evaluation.options;
  pl_provenance_integer(provenance, "gbs", job->gbs, true);
  pl_provenance_integer(provenance, "seq", job->seq, true);
  pl_provenance_text(provenance, "dtype", pl_dtype_name(job->dtype), true);
  if (job->fp8) pl_provenance_integer(provenance, "fp8", 1, true);
  pl_provenance_text(provenance, "attention", job->flash ? "flash" : "unfused", true);
  pl_provenance_number(provenance, "bucket_bytes", job->bucket_bytes, true);
  pl_provenance_text(provenance, "pipeline_sends", pl_send_form_names[job->split_sends], true);
  const pl_framework *framework = pl_framework_or_ideal(job->framework);
  pl_provenance_text(provenance, "framework", framework->name, true);
  pl_provenance_text(provenance, "framework_digest", digest_text(own, framework->digest), true);
  pl_provenance_text(provenance, "network", pl_network_names[simulate->network], true);
  pl_provenance_text(provenance, "sharing", pl_sharing_names[simulate->sharing], true);
  const pl_collective_profile *profile = simulate->collective_profile;
  pl_provenance_text(provenance, "collective_profile", profile != NULL ? profile->path : "ideal", false);
  pl_provenance_text(provenance, "collective_profile_digest", digest_text(own, profile != NULL ? profile->digest : 0),
                     true);
  pl_provenance_text(provenance, "collectives", pl_collective_form_names[simulate->chunked], true);
  pl_provenance_text(provenance, "algorithm", pl_algorithm_names[simulate->algorithm], true);
  pl_provenance_text(provenance, "streams", pl_stream_policy_names[simulate->streams], true);
  pl_provenance_integer(provenance, "fold", simulate->fold, true);
  pl_provenance_integer(provenance, "fuse", simulate->fuse, true);
  pl_provenance_integer(provenance, "features", own->options.features, true);
}

static void describe(session *own, pl_provenance *provenance) {
  *provenance = (pl_provenance){.n_stages = own->evaluation.n_stages};
  pl_provenance_text(provenance, "command", own->command, false);
  pl_provenance_text(provenance, "platform", own->options.job.platform_path, false);
  pl_provenance_text(provenance, "platform_digest", digest_text(own, own->evaluation.cluster->digest), true);
  pl_provenance_text(provenance, "model", own->options.job.model_path, false);
  pl_provenance_text(provenance, "model_digest", digest_text(own, own->model.digest), true);
  describe_job(provenance, own);
  pl_provenance_text(provenance, "space_digest", digest_text(own, own->space.digest), true);
  pl_provenance_integer(provenance, "n_candidates", own->space.n_candidates, true);
  describe_versions(provenance, own);
}

/* Rank 0. A file to resume that is not there is a sweep that has not begun. */
static pl_code prepare(session *own, pl_error *error) {
  const char *path = own->options.output;
  pl_provenance provenance;
  PL_TRY(pl_command_refuse_input(path, own->options.job.platform_path, error));
  PL_TRY(pl_command_refuse_input(path, own->options.job.model_path, error));
  describe(own, &provenance);
  if (own->options.resume && access(path, F_OK) == 0) {
    if (access(path, W_OK) != 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: cannot be resumed: it may not be written to", path);
    return pl_results_check_resume(path, &provenance, own->space.n_candidates, own->status, error);
  }
  return pl_results_create(path, &provenance, own->space.n_candidates, own->options.force, error);
}

/* ---- the phases ---- */

static pl_code sweep(session *own, pl_error *error) {
  load(own, error);
  PL_TRY(pl_agree(MPI_COMM_WORLD, error));
  if (own->rank == 0) prepare(own, error);
  PL_TRY(pl_agree(MPI_COMM_WORLD, error));
  MPI_Bcast(own->status, (int)own->space.n_candidates, MPI_INT32_T, 0, MPI_COMM_WORLD);
  uint32_t n_threads = (uint32_t)own->options.n_threads;
  if (n_threads == 0) n_threads = pl_sweep_default_threads(MPI_COMM_WORLD);
  const pl_sweep plan = {.space = &own->space,
                         .path = own->options.output,
                         .status = own->status,
                         .evaluate = pl_evaluate_simulate,
                         .context = &own->evaluation,
                         .n_threads = n_threads,
                         .n_stages = own->evaluation.n_stages,
                         .progress = own->options.progress,
                         .fail_after = -1};
  return pl_sweep_run(&plan, MPI_COMM_WORLD, &own->outcome, error);
}

static int finish(session *own, pl_error *error) {
  int status = pl_code_exit_status(error->code);
  if (own->rank == 0) {
    if (error->code == PL_OK && !own->options.quiet)
      pl_sweep_summary_print(stdout, own->options.output, &own->space, &own->outcome, own->options.json, &own->arena,
                             error);
    if (error->code != PL_OK) status = pl_command_report("sweep", error);
    status = pl_command_finish("sweep", status);
  }
  if (own->outcome.split) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return status;
}

static int run_under_mpi(session *own) {
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &own->rank);
  pl_error error = PL_ERROR_INIT;
  if (provided < MPI_THREAD_FUNNELED)
    pl_fail(&error, PL_UNSUPPORTED, "this MPI does not allow threads (MPI_THREAD_FUNNELED)");
  if (error.code == PL_OK) sweep(own, &error);
  int status = finish(own, &error);
  pl_platform_destroy(own->platform);
  MPI_Finalize();
  return status;
}

int pl_cmd_sweep(int argc, char **argv) {
  session own = {0};
  pl_arena_init(&own.arena, 0);
  pl_error error = PL_ERROR_INIT;
  bool silent = is_silent_rank();
  own.command = pl_sweep_options_command(argc, argv, &own.arena);
  if (own.command == NULL) pl_fail_memory(&error, "the command line");
  char name[] = "paceline sweep";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  int status;
  if (error.code == PL_OK) pl_sweep_options_parse(argc, argv, silent, &own.options, &error);
  if (error.code != PL_OK) {
    status = silent ? pl_code_exit_status(error.code) : pl_command_report("sweep", &error);
  } else {
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of a write, not a death */
    status = run_under_mpi(&own);
  }
  pl_arena_release(&own.arena);
  return status;
}
