/* `paceline sweep`. The phases, after each of which the ranks agree (search/parallel/ranks.h), so that they leave
 * together and rank 0 alone speaks: load and enumerate, create or check the file, sweep, summarise. Nothing is written
 * before the second. */
#include "search/command/cmd_sweep.h"

#include <unistd.h>

#include "core/system/command.h"
#include "search/command/results_vet.h"
#include "search/command/sweep_options.h"
#include "search/command/sweep_summary.h"
#include "search/parallel/mpi_command.h"
#include "search/parallel/ranks.h"
#include "search/results/results_file.h"
#include "search/run/space_session.h"
#include "search/run/sweep.h"
#include "workloads/run/program_flops.h"

typedef struct session {
  pl_space_session base;
  pl_sweep_options options;
  const char *command;
  pl_space space;
  int32_t *status; /* per candidate, as found in the file */
  pl_interrupt interrupt;
  pl_error damage; /* of the file to be resumed, found before MPI started */
  pl_sweep_outcome outcome;
} session;

/* ---- load and enumerate ---- */

static pl_code load(session *own, pl_error *error) {
  pl_evaluation *evaluation = &own->base.evaluation;
  PL_TRY(pl_space_session_load(&own->base, &own->options.job, &own->options.space, error));
  if (own->options.features && pl_evaluates_programs(evaluation))
    return pl_fail(error, PL_UNSUPPORTED, "--features: not known of programs yet; leave it out");
  if (own->options.skip_oom && pl_evaluates_programs(evaluation))
    return pl_fail(error, PL_UNSUPPORTED, "--skip-oom: not known of programs yet; leave it out");
  PL_TRY(pl_space_session_enumerate(&own->base, &own->options.space.choices, &own->space, error));
  for (uint32_t i = 0; own->options.features && i < own->space.n_candidates; i++)
    if ((uint32_t)own->space.candidates[i].pp > evaluation->n_stages)
      evaluation->n_stages = (uint32_t)own->space.candidates[i].pp;
  own->status = PL_TAKE(&own->base.arena, int32_t, own->space.n_candidates);
  return own->status == NULL ? pl_fail_memory(error, "the candidates' status") : PL_OK;
}

/* ---- the file ---- */

static pl_code describe(session *own, pl_provenance *provenance, pl_error *error) {
  pl_space_session *base = &own->base;
  *provenance = (pl_provenance){.n_stages = base->evaluation.n_stages};
  pl_space_session_describe(base, &own->options.job, own->command, provenance);
  pl_provenance_integer(provenance, "features", own->options.features, true);
  pl_provenance_integer(provenance, "skip_oom", own->options.skip_oom, true);
  pl_provenance_text(provenance, "space_digest", pl_space_session_digest(base, own->space.digest), true);
  pl_provenance_integer(provenance, "n_candidates", own->space.n_candidates, true);
  return pl_space_session_describe_versions(base, provenance, error);
}

/* Rank 0. A file to resume that is not there is a sweep that has not begun. */
static pl_code prepare(session *own, pl_error *error) {
  const char *path = own->options.run.output;
  pl_provenance provenance;
  PL_TRY(pl_command_refuse_input(path, own->options.job.platform_path, error));
  PL_TRY(pl_command_refuse_input(path, own->options.job.model_path, error));
  if (own->base.evaluation.trees != NULL) PL_TRY(pl_command_refuse_input(path, own->base.trees.path, error));
  if (own->damage.code != PL_OK) return pl_fail(error, own->damage.code, "%s", own->damage.message);
  PL_TRY(describe(own, &provenance, error));
  if (own->options.run.resume && access(path, F_OK) == 0) {
    if (access(path, W_OK) != 0)
      return pl_fail(error, PL_BAD_INPUT, "%s: cannot be resumed: it may not be written to", path);
    pl_partial_clean(path);
    return pl_results_check_resume(path, &provenance, own->space.n_candidates, own->status, error);
  }
  return pl_results_create(path, &provenance, own->space.n_candidates, own->options.run.force, error);
}

/* ---- the phases ---- */

static pl_code sweep(void *session_, MPI_Comm comm, pl_error *error) {
  session *own = session_;
  load(own, error);
  PL_TRY(pl_agree(comm, error));
  if (pl_rank(comm) == 0 && prepare(own, error) == PL_OK) atomic_store(&own->interrupt.has_rows, true);
  PL_TRY(pl_agree(comm, error));
  pl_ranks_broadcast(comm, own->status, own->space.n_candidates * sizeof *own->status, 0);
  uint32_t n_threads = (uint32_t)own->options.run.n_threads;
  if (n_threads == 0) n_threads = pl_sweep_default_threads(comm);
  const pl_sweep plan = {.space = &own->space,
                         .path = own->options.run.output,
                         .status = own->status,
                         .evaluate = pl_evaluate_simulate,
                         .context = &own->base.evaluation,
                         .n_threads = n_threads,
                         .n_stages = own->base.evaluation.n_stages,
                         .progress = pl_run_options_progress(&own->options.run),
                         .fail_after = -1};
  return pl_sweep_run(&plan, comm, &own->outcome, error);
}

static pl_code print(void *session_, pl_error *error) {
  session *own = session_;
  const pl_run_options *run = &own->options.run;
  uint32_t n_fit, n_failed;
  own->outcome.skips_oom = own->options.skip_oom;
  PL_TRY(pl_sweep_summary_print(run->quiet ? NULL : stdout, run->output, &own->space, &own->outcome,
                                &own->base.evaluation, run->json, &own->base.arena, &n_fit, &n_failed, error));
  if (!run->quiet && !run->json)
    pl_job_origin_print(stdout, 14, &own->base.model, &own->options.job.job, &own->options.job.origin,
                        pl_job_narrow_share(&own->base.model, &own->options.job.job));
  if (!run->quiet && !run->json && !pl_evaluates_programs(&own->base.evaluation))
    pl_job_options_print_memory(stdout, 14, &own->options.job);
  if (n_failed > 0 && n_failed == own->space.n_candidates)
    return pl_fail(error, PL_BAD_INPUT, "none of %u strategies could be simulated%s%s", n_failed,
                   own->outcome.n_failed > 0 ? "; the first: " : " when this file was written",
                   own->outcome.n_failed > 0 ? own->outcome.first_message : "");
  if (!own->options.job.must_fit || n_fit > 0) return PL_OK;
  return pl_fail(error, PL_DOES_NOT_FIT, "--must-fit: none of %u strategies fits in memory", own->space.n_candidates);
}

int pl_cmd_sweep(int argc, char **argv) {
  session own = {0};
  pl_space_session_init(&own.base);
  pl_error error = PL_ERROR_INIT;
  bool silent = pl_ranks_must_be_silent();
  own.command = pl_run_options_command("paceline sweep", argc, argv, &own.base.arena);
  const char *typed = pl_run_options_typed("paceline sweep", argc, argv, &own.base.arena);
  if (own.command == NULL || typed == NULL) pl_fail_memory(&error, "the command line");
  char name[] = "paceline sweep";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  int status;
  if (error.code == PL_OK) pl_sweep_options_parse(argc, argv, silent, &own.options, &error);
  if (error.code == PL_OK) pl_results_vet(&own.options.run, silent, &own.damage);
  own.interrupt = (pl_interrupt){.command = "sweep", .path = own.options.run.output, .silent = silent};
  if (error.code == PL_OK && own.interrupt.path != NULL)
    own.interrupt.again = pl_run_options_again(typed, own.interrupt.path, &own.base.arena);
  if (own.interrupt.path != NULL && own.interrupt.again == NULL) pl_fail_memory(&error, "the command line");
  if (error.code != PL_OK) {
    status = silent ? pl_code_exit_status(error.code) : pl_command_report("sweep", &error);
  } else {
    const pl_mpi_command command = {.name = "sweep",
                                    .session = &own,
                                    .run = sweep,
                                    .print = print,
                                    .split = &own.outcome.split,
                                    .interrupt = &own.interrupt};
    status = pl_mpi_command_run(&command);
  }
  pl_space_session_release(&own.base);
  return status;
}
