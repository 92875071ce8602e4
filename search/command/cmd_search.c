/* `paceline search`. The phases, after each of which the ranks agree (search/parallel/ranks.h): load; look at the file,
 * if one is wanted; search; cut the file to its rows. Nothing is written before the first simulated round. */
#include "search/command/cmd_search.h"

#include "core/base/units.h"
#include "core/system/command.h"
#include "search/command/results_vet.h"
#include "search/command/search_file.h"
#include "search/command/search_options.h"
#include "search/command/search_summary.h"
#include "search/method/remedy.h"
#include "search/method/search.h"
#include "search/parallel/mpi_command.h"
#include "search/parallel/ranks.h"
#include "search/run/remaining_rows.h"
#include "search/run/space_session.h"
#include "search/run/sweep.h"
#include "workloads/run/program_flops.h"

typedef struct session {
  pl_space_session base;
  pl_search_options options;
  const char *command;
  pl_provenance provenance;
  pl_search_file *file; /* rank 0's; NULL = none */
  pl_interrupt interrupt;
  pl_error damage; /* of the file to be resumed, found before MPI started */
  pl_result_row *known;
  uint32_t n_known;
  pl_search_problem problem;
  pl_search_outcome outcome;
} session;

/* ---- the file ---- */

/* In the words of the options: what the proof of a method holds for. */
static const char *describe_space(session *own) {
  char text[512];
  pl_space_choices choices = own->options.space.choices;
  if (own->base.evaluation.trees != NULL) return own->base.trees.name;
  choices.allow_idle = own->options.allow_idle;
  pl_space_format_choices(&choices, text, sizeof text);
  const char *copy = pl_arena_strdup(&own->base.arena, text);
  return copy != NULL ? copy : "";
}

static pl_code describe(session *own, pl_error *error) {
  const pl_search_options *options = &own->options;
  own->provenance = (pl_provenance){.search = true};
  pl_provenance *provenance = &own->provenance;
  pl_space_session_describe(&own->base, &options->job, own->command, provenance);
  pl_provenance_text(provenance, "search_method", options->method->name, true);
  pl_provenance_integer(provenance, "seed", options->seed, true);
  pl_provenance_integer(provenance, "allow_idle", options->allow_idle, true);
  pl_provenance_text(provenance, "space", describe_space(own), false);
  return pl_space_session_describe_versions(&own->base, provenance, error);
}

/* Rank 0. */
static pl_code open_file(session *own, pl_error *error) {
  const pl_search_options *options = &own->options;
  const char *path = options->run.output;
  if (path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(path, options->job.platform_path, error));
  PL_TRY(pl_command_refuse_input(path, options->job.model_path, error));
  if (own->base.evaluation.trees != NULL) PL_TRY(pl_command_refuse_input(path, own->base.trees.path, error));
  if (own->damage.code != PL_OK) return pl_fail(error, own->damage.code, "%s", own->damage.message);
  PL_TRY(describe(own, error));
  pl_search_file_create(path, &own->provenance, options->run.force, options->run.resume, &own->base.arena, &own->file,
                        &own->known, &own->n_known, error);
  if (error->code == PL_OK && own->n_known > 0) atomic_store(&own->interrupt.has_rows, true);
  return error->code;
}

/* Rank 0's known rows, to all. */
static pl_code share_known(session *own, MPI_Comm comm, pl_error *error) {
  int rank = pl_rank(comm);
  pl_ranks_broadcast(comm, &own->n_known, sizeof own->n_known, 0);
  if (own->n_known == 0 || comm == PL_ALONE) return PL_OK;
  pl_search_values *values = PL_TAKE(&own->base.arena, pl_search_values, own->n_known);
  if (rank != 0) own->known = PL_TAKE(&own->base.arena, pl_result_row, own->n_known);
  bool good = values != NULL && own->known != NULL;
  if (!good) pl_fail_memory(error, "the rows of the file to be resumed");
  PL_TRY(pl_agree(comm, error));
  if (!good) return error->code;
  for (uint32_t i = 0; rank == 0 && i < own->n_known; i++)
    values[i] = *own->known[i].search;
  pl_ranks_broadcast(comm, own->known, own->n_known * sizeof *own->known, 0);
  pl_ranks_broadcast(comm, values, own->n_known * sizeof *values, 0);
  for (uint32_t i = 0; i < own->n_known; i++)
    own->known[i].search = &values[i];
  return PL_OK;
}

static pl_code append(void *context, uint32_t count, const pl_result_row *rows, pl_error *error) {
  session *own = context;
  PL_TRY(pl_search_file_append(own->file, count, rows, error));
  atomic_store(&own->interrupt.has_rows, true);
  return PL_OK;
}

/* ---- the phases ---- */

static pl_code run_search_or_table(session *own, const pl_search *search, MPI_Comm comm, pl_error *error) {
  if (own->options.is_table)
    return pl_search_table_run(&own->options.table, search, &own->base, &own->options.job, comm, error);
  return pl_search_run(search, comm, &own->base.arena, &own->outcome, error);
}

static pl_code run_search(session *own, MPI_Comm comm, pl_error *error) {
  const pl_search_options *options = &own->options;
  const pl_search_problem problem = {.cluster = own->base.evaluation.cluster,
                                     .model = &own->base.model,
                                     .job = &options->job.job,
                                     .options = &options->job.simulate,
                                     .choices = &options->space.choices,
                                     .trees = own->base.evaluation.trees,
                                     .seed = (uint64_t)options->seed,
                                     .allow_idle = options->allow_idle,
                                     .n_top = (uint32_t)options->n_top,
                                     .budget = options->budget};
  own->problem = problem;
  const pl_search_log log = {.context = own, .append = append};
  uint32_t n_threads = (uint32_t)options->run.n_threads;
  if (n_threads == 0) n_threads = pl_sweep_default_threads(comm);
  const pl_search search = {.problem = &problem,
                            .method = options->method,
                            .budget_s = options->budget_s,
                            .gap = options->gap,
                            .known = own->known,
                            .n_known = own->n_known,
                            .n_top = (uint32_t)options->n_top,
                            .n_threads = n_threads,
                            .log = own->file != NULL ? &log : NULL,
                            .progress = pl_run_options_progress(&options->run)};
  if (options->sizes.n > 0)
    return pl_search_sizes_run(&own->options.sizes, &search, &options->job, &options->space, &options->cost,
                               &own->base.arena, comm, error);
  return run_search_or_table(own, &search, comm, error);
}

static pl_code load(session *own, pl_error *error) {
  pl_search_options *options = &own->options;
  PL_TRY(pl_vary_grid_parse(options->vary, options->n_vary, &own->base.arena, &own->options.table.grid, error));
  PL_TRY(pl_space_session_load(&own->base, &own->options.job, &own->options.space, error));
  if (own->base.programs_of == NULL) return PL_OK;
  return pl_search_options_for_programs(&own->options, own->base.programs_of, error);
}

static pl_code run(void *session_, MPI_Comm comm, pl_error *error) {
  session *own = session_;
  int rank = pl_rank(comm);
  if (own->options.sizes.n > 0) return run_search(own, comm, error); /* loads a platform per size */
  load(own, error);
  PL_TRY(pl_agree(comm, error));
  if (rank == 0) open_file(own, error);
  PL_TRY(pl_agree(comm, error));
  PL_TRY(share_known(own, comm, error));
  run_search(own, comm, error);
  if (rank == 0 && own->file != NULL && error->code == PL_OK) pl_search_file_finish(own->file, error);
  pl_search_file_destroy(own->file);
  return pl_agree(comm, error);
}

/* The whole of a space was looked at, and nothing of it fits. */
static bool is_infeasible(const session *own) {
  const pl_search_outcome *outcome = &own->outcome;
  const pl_search_account *account = &outcome->account;
  uint64_t looked_at = account->memory_away + outcome->n_by_status[PL_RESULT_OOM];
  /* Other placements have rows beside those of the space. */
  bool whole = account->placed > 0 ? outcome->end == PL_SEARCH_COMPLETE : looked_at == account->enumerated;
  return !own->options.is_table && outcome->n_top == 0 && outcome->nearest_oom != NULL && whole;
}

/* Nothing of it could be simulated. */
static bool is_refused(const session *own) {
  const pl_search_outcome *outcome = &own->outcome;
  return !own->options.is_table && outcome->n_rows > 0 && outcome->n_by_status[PL_RESULT_FAILED] == outcome->n_rows &&
         outcome->first_failure[0] != '\0';
}

static pl_code refuse_infeasible(session *own, pl_error *error) {
  const pl_result_row *row = own->outcome.nearest_oom;
  char need[PL_UNIT_TEXT_BYTES], have[PL_UNIT_TEXT_BYTES], lack[PL_UNIT_TEXT_BYTES];
  char remedy[PL_REMEDY_BYTES] = "use more devices or ones with more memory, or another space of strategies";
  if (!pl_evaluates_programs(&own->base.evaluation)) PL_TRY(pl_remedy_find(&own->problem, remedy, error));
  return pl_fail(error, own->options.job.must_fit ? PL_DOES_NOT_FIT : PL_BAD_INPUT,
                 "none of %u strategies fits in memory: the nearest lacks %s, as stage %d needs %s of %s; %s",
                 (uint32_t)own->outcome.account.enumerated,
                 pl_format_bytes((double)(row->peak_mem_bytes - row->mem_capacity_bytes), lack), row->peak_stage,
                 pl_format_bytes((double)row->peak_mem_bytes, need),
                 pl_format_bytes((double)row->mem_capacity_bytes, have), remedy);
}

/* Of the best; none where its strategy's text is cut off, or where SimGrid simulates. */
static pl_code find_sensitivity(session *own, pl_sensitivity *sensitivity, pl_error *error) {
  const pl_search_outcome *outcome = &own->outcome;
  const pl_search_problem *problem = &own->problem;
  *sensitivity = (pl_sensitivity){.n_runs = 0};
  if (own->options.is_table || own->options.run.quiet || outcome->n_top < 2 ||
      problem->options->network == PL_NETWORK_SIMGRID || pl_evaluates_programs(&own->base.evaluation))
    return PL_OK;
  pl_strategy strategy;
  pl_error unread = PL_ERROR_INIT;
  const pl_result_row *best = &outcome->top[0];
  if (pl_strategy_parse(best->search->strategy.text, problem->model, &own->base.arena, &strategy, &unread) != PL_OK ||
      pl_strategy_check(&strategy, problem->model, problem->job, problem->cluster->n_devices, &unread) != PL_OK ||
      strategy.boundary == NULL)
    return PL_OK;
  return pl_sensitivity_take(problem->cluster, problem->model, problem->job, &strategy, problem->options,
                             best->iter_time_s, &own->base.arena, sensitivity, error);
}

static pl_code print(void *session_, pl_error *error) {
  session *own = session_;
  pl_sensitivity sensitivity;
  bool prints_text = !own->options.run.quiet && !own->options.run.json;
  if (own->options.sizes.n > 0) {
    if (!own->options.run.quiet)
      pl_search_sizes_print(stdout, &own->options.sizes, &own->options.cost, own->options.run.json);
    if (prints_text && own->options.job.site_path != NULL) pl_remaining_rows_note(stdout);
    return PL_OK;
  }
  PL_TRY(find_sensitivity(own, &sensitivity, error));
  if (own->options.is_table && !own->options.run.quiet)
    pl_search_table_print(stdout, &own->options.table, own->options.run.json);
  else if (!own->options.run.quiet)
    pl_search_summary_print(stdout, own->options.run.output, own->options.method->name, &own->outcome, &sensitivity,
                            &own->options.cost, &own->base.evaluation, own->options.run.json);
  if (prints_text && own->options.is_table && own->options.job.site_path != NULL) pl_remaining_rows_note(stdout);
  if (prints_text)
    pl_job_origin_print(stdout, 14, &own->base.model, &own->options.job.job, &own->options.job.origin,
                        pl_job_narrow_share(&own->base.model, &own->options.job.job));
  if (prints_text && !pl_evaluates_programs(&own->base.evaluation))
    pl_job_options_print_memory(stdout, 14, &own->options.job);
  if (is_infeasible(own)) return refuse_infeasible(own, error);
  if (is_refused(own))
    return pl_fail(error, PL_BAD_INPUT, "none of %u strategies could be simulated; the first: %s", own->outcome.n_rows,
                   own->outcome.first_failure);
  if (!own->options.job.must_fit || own->options.is_table || own->outcome.n_top > 0) return PL_OK;
  return pl_fail(error, PL_DOES_NOT_FIT, "--must-fit: nothing that was simulated fits in memory");
}

int pl_cmd_search(int argc, char **argv) {
  session own = {0};
  pl_space_session_init(&own.base);
  pl_error error = PL_ERROR_INIT;
  bool silent = pl_ranks_must_be_silent();
  own.command = pl_run_options_command("paceline search", argc, argv, &own.base.arena);
  const char *typed = pl_run_options_typed("paceline search", argc, argv, &own.base.arena);
  if (own.command == NULL || typed == NULL) pl_fail_memory(&error, "the command line");
  char name[] = "paceline search";
  if (argc > 0) argv[0] = name; /* what argp calls the program */
  int status;
  if (error.code == PL_OK) pl_search_options_parse(argc, argv, silent, &own.options, &error);
  if (error.code == PL_OK) pl_results_vet(&own.options.run, silent, &own.damage);
  own.interrupt = (pl_interrupt){.command = "search", .path = own.options.run.output, .silent = silent};
  if (error.code == PL_OK && own.interrupt.path != NULL)
    own.interrupt.again = pl_run_options_again(typed, own.interrupt.path, &own.base.arena);
  if (own.interrupt.path != NULL && own.interrupt.again == NULL) pl_fail_memory(&error, "the command line");
  if (error.code != PL_OK) {
    status = silent ? pl_code_exit_status(error.code) : pl_command_report("search", &error);
  } else {
    const pl_mpi_command command = {
        .name = "search", .session = &own, .run = run, .print = print, .interrupt = &own.interrupt};
    status = pl_mpi_command_run(&command);
  }
  pl_space_session_release(&own.base);
  return status;
}
