/* `paceline simulate`: one strategy, its time, memory and bottleneck; a timeline on request. */
#include "workloads/command/cmd_simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/engine/timeline_perfetto.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "workloads/command/job_session.h"
#include "workloads/command/launched_job.h"
#include "workloads/command/simulate_program.h"
#include "workloads/command/simulate_report.h"
#include "workloads/command/simulate_request.h"
#include "workloads/command/trace_window.h"
#include "workloads/language/ir_text.h"
#include "workloads/launch/blame.h"
#include "workloads/tree/tree.h"

typedef struct session {
  pl_simulate_request *options;
  pl_job_session job;
  pl_launch launch;
  bool is_launched; /* by it, with the strategy that it makes */
  pl_residuals residuals;
  pl_simulate_report report;
  pl_vary_grid vary;
  pl_strategy given; /* as parsed, for the variations */
  pl_varied_run *varied;
  pl_sensitivity sensitivity;
  const char *command; /* as given, for the header of the timeline */
  pl_timeline_entry header[6];
  pl_timeline_view view;
  pl_trace recording;
} session;

/* ---- the timeline ---- */

/* "3" or "0-3". */
static pl_code check_window(const session *own, pl_error *error) {
  if (!own->view.is_window || own->view.first_microbatch < own->report.row.n_microbatches) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: there are microbatches 0 to %d",
                 own->options->microbatches, own->report.row.n_microbatches - 1);
}

static void take_view(session *own) {
  const pl_simulate_request *options = own->options;
  const pl_timeline_entry header[] = {{"program", "paceline " PACELINE_VERSION},
                                      {"command", own->command},
                                      {"model", own->job.model.name},
                                      {"platform", options->job.platform_path},
                                      {"strategy", options->strategy},
                                      {"microbatches", options->microbatches != NULL ? options->microbatches : "all"}};
  memcpy(own->header, header, sizeof header);
  own->view.header = own->header;
  own->view.n_header = sizeof header / sizeof header[0];
  own->view.is_perfetto = pl_timeline_is_perfetto(options->trace_path);
  own->options->job.simulate.view = &own->view;
}

static pl_beside_main main_of(session *own) {
  return (pl_beside_main){
      .cluster = own->job.cluster, .arena = &own->job.arena, .model = &own->job.model, .strategy = &own->job.strategy};
}

static pl_code load(session *own, pl_error *error) {
  pl_simulate_request *options = own->options;
  bool has_strategy = options->strategy != NULL;
  if (options->launch_path != NULL && options->job.error.code == PL_OK)
    PL_TRY(
        pl_launched_job_take(options->launch_path, &own->job, &options->job, &options->strategy, &own->launch, error));
  own->is_launched = options->launch_path != NULL && !has_strategy;
  PL_TRY(pl_job_options_check(&options->job, error));
  PL_TRY(pl_training_cost_check(&options->cost, error));
  if (options->strategy == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is missing (e.g. --strategy pp=4,dp=4,tmp=1,mbs=1)");
  if (options->microbatches != NULL && options->trace_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: of a timeline; add --trace FILE",
                   options->microbatches);
  if (options->trace_ops != NULL && (options->trace_path == NULL || options->format != PL_EXPORT_TIMELINE))
    return pl_fail(error, PL_BAD_INPUT, "--trace-ops %s: of a timeline; add --trace FILE", options->trace_ops);
  PL_TRY(pl_trace_windows_read(options->microbatches, options->trace_ops, &own->view, error));
  if (options->format != PL_EXPORT_TIMELINE) PL_TRY(pl_simulate_request_check_export(options, error));
  if (options->json && options->print_program)
    return pl_fail(error, PL_BAD_INPUT, "--print-program prints text; leave out --json");
  if (options->n_vary > 0 && options->sensitivity)
    return pl_fail(error, PL_BAD_INPUT, "--sensitivity is of one run; leave out --vary");
  if (options->n_vary > 0 && options->svg_path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--vary prints a table of runs; leave out --svg, which draws one");
  if (options->n_vary > 0 && (options->trace_path != NULL || options->print_program || options->digest))
    return pl_fail(error, PL_BAD_INPUT,
                   "--vary prints a table of runs; leave out --trace, --print-program and --digest, which are of one");
  if (options->n_vary > 0 && pl_straggler_options_are_given(&options->stragglers))
    return pl_fail(error, PL_BAD_INPUT, "--vary prints a table of runs; leave out --jitter, --draws and --slow");
  PL_TRY(pl_simulate_request_check_beside(options, error));
  PL_TRY(pl_simulate_request_check_executor(options, error));
  PL_TRY(pl_straggler_options_parse(&options->stragglers, &own->job.arena, error));
  PL_TRY(pl_vary_grid_parse(options->vary, options->n_vary, &own->job.arena, &own->vary, error));
  PL_TRY(pl_job_session_read(&own->job, &options->job, options->strategy, error));
  own->given = own->job.strategy;
  own->job.strategy.idle |= options->beside.n_paths > 0; /* the others have what it leaves */
  PL_TRY(pl_job_session_place(&own->job, &options->job, error));
  const pl_beside_main main = main_of(own);
  PL_TRY(pl_beside_options_read(&options->beside, &main, &options->job, error));
  return pl_straggler_options_place(&options->stragglers, own->job.cluster, &own->job.strategy, 0, &own->job.arena,
                                    &options->job.simulate, error);
}

static pl_code simulate_variations(session *own, pl_error *error) {
  own->varied = PL_TAKE(&own->job.arena, pl_varied_run, own->vary.n_points);
  if (own->varied == NULL) return pl_fail_memory(error, "the variations");
  return pl_vary_simulate(&own->job, &own->options->job, &own->given, &own->vary, own->varied, error);
}

static pl_code open_trace(session *own, pl_output_file *file, FILE **stream, pl_error *error) {
  const pl_simulate_request *options = own->options;
  *stream = NULL;
  if (options->trace_path == NULL || options->format != PL_EXPORT_TIMELINE) return PL_OK;
  PL_TRY(pl_command_refuse_input(options->trace_path, options->job.platform_path, error));
  PL_TRY(pl_command_refuse_input(options->trace_path, options->job.model_path, error));
  PL_TRY(pl_output_file_open(file, options->trace_path, options->force, error));
  *stream = pl_gzip_is_wanted(options->trace_path) ? pl_gzip_stream_open(file->stream) : file->stream;
  take_view(own);
  return *stream != NULL ? PL_OK : pl_output_file_close(file, pl_fail_memory(error, "a compressed file"), error);
}

static pl_code open_svg(session *own, pl_output_file *file, pl_error *error) {
  const pl_simulate_request *options = own->options;
  pl_simulate_options *simulate = &own->options->job.simulate;
  pl_arena *arena = &own->job.arena;
  if (options->svg_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(options->svg_path, options->job.platform_path, error));
  PL_TRY(pl_command_refuse_input(options->svg_path, options->job.model_path, error));
  simulate->diagram_title = pl_arena_printf(arena, "%s on %s", own->job.model.name, options->job.platform_path);
  simulate->diagram_subtitle = options->strategy;
  if (simulate->diagram_title == NULL) return pl_fail_memory(error, "the diagram");
  PL_TRY(pl_output_file_open(file, options->svg_path, options->force, error));
  simulate->diagram = file->stream;
  return PL_OK;
}

static pl_code run(session *own, FILE *trace, pl_error *error) {
  pl_simulate_request *options = own->options;
  const pl_cluster *cluster = own->job.cluster;
  options->job.simulate.platform = own->job.platform;
  options->job.simulate.trace = options->beside.n_paths > 0 ? NULL : trace;
  if (options->format != PL_EXPORT_TIMELINE) options->job.simulate.recording = &own->recording;
  if (options->print_program) options->job.simulate.print_program = stdout;
  PL_TRY(pl_simulate(cluster, &own->job.model, &options->job.job, &own->job.strategy, &options->job.simulate,
                     &own->job.arena, &own->report, error));
  options->job.simulate.recording = NULL; /* of this run only */
  if (options->format != PL_EXPORT_TIMELINE)
    PL_TRY(pl_export_store(options->trace_path, options->format, options->force, &own->recording, error));
  PL_TRY(check_window(own, error));
  const pl_beside_main main = main_of(own);
  PL_TRY(pl_beside_options_run(&options->beside, &main, &options->job, trace, error));
  PL_TRY(pl_job_session_interval(&own->job, &options->job, &own->report, error));
  if (own->vary.n_points > 0) PL_TRY(simulate_variations(own, error));
  if (!options->sensitivity) return PL_OK;
  return pl_sensitivity_take(cluster, &own->job.model, &options->job.job, &own->job.strategy, &options->job.simulate,
                             own->report.row.iter_time_s, &own->job.arena, &own->sensitivity, error);
}

static pl_code simulate(session *own, pl_error *error) {
  pl_simulate_request *options = own->options;
  PL_TRY(load(own, error));
  PL_TRY(pl_residuals_load(&own->job.arena, &own->residuals, error));
  options->job.simulate.residuals = &own->residuals;
  pl_output_file file = {0}, svg = {0};
  FILE *trace;
  PL_TRY(open_trace(own, &file, &trace, error));
  pl_code code = open_svg(own, &svg, error);
  if (code == PL_OK) code = run(own, trace, error);
  code = pl_output_file_close(&svg, code, error);
  if (trace != file.stream && fclose(trace) != 0 && code == PL_OK)
    code = pl_fail(error, PL_IO, "cannot write %s: %s", options->trace_path, strerror(errno));
  return pl_output_file_close(&file, code, error);
}

static pl_code print(session *own, pl_error *error) {
  const pl_simulate_request *options = own->options;
  pl_simulate_subject subject;
  PL_TRY(pl_job_session_subject(&own->job, &options->job, &own->report, &subject, error));
  subject.cost = &options->cost;
  subject.stragglers = &options->stragglers;
  subject.beside = &options->beside.result;
  if (options->launch_path != NULL) subject.launch = &own->launch;
  if (own->vary.n_points > 0) {
    (options->json ? pl_vary_json : pl_vary_print)(stdout, &subject, &own->report, &own->vary, own->varied);
  } else if (options->json) {
    pl_simulate_report_json(stdout, &subject, &own->report, &own->sensitivity);
  } else {
    pl_simulate_report_print(stdout, &subject, &own->report);
    pl_sensitivity_print(stdout, &own->sensitivity, own->report.row.iter_time_s);
    pl_stragglers_print(stdout, &options->stragglers, own->job.cluster);
    pl_beside_print(stdout, &options->beside.result);
    char text[PL_DIGEST_TEXT_BYTES];
    if (options->digest) printf("\nrun digest       %s\n", pl_digest_format(own->report.row.run_digest, text));
    if (options->trace_path != NULL && options->format == PL_EXPORT_TIMELINE)
      printf("\ntimeline         %s (open it in https://ui.perfetto.dev)\n", options->trace_path);
    if (options->trace_path != NULL && options->format != PL_EXPORT_TIMELINE)
      printf("\ntraces           %s (%u ranks, %s)\n", options->trace_path, own->recording.n_ranks,
             pl_export_format_names[options->format]);
    if (options->svg_path != NULL) printf("\ndrawing          %s\n", options->svg_path);
  }
  return pl_job_options_demand_fit(&options->job, &own->report.row, error);
}

/* What is said by the program, or of more runs than one, has no place beside it. */
static pl_code simulate_program(pl_simulate_request *options, const char *command, pl_error *error) {
  bool file = options->program_path != NULL, tree = !file && pl_simulate_request_is_of_tree(options);
  if ((file && (options->strategy != NULL || options->inference)) || options->n_vary > 0 || options->sensitivity ||
      options->print_program || options->trace_ops != NULL || options->cost.tokens > 0 ||
      (options->beside.n_paths > 0 && !tree) || options->format != PL_EXPORT_TIMELINE || options->launch_path != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: leave out %s--from, --vary, --sensitivity, --print-program, --trace-ops, "
                   "--trace-format%s and --tokens",
                   pl_simulate_request_why_by_program(options), file ? "--strategy, --inference, " : "",
                   tree ? "" : ", --beside");
  PL_TRY(pl_simulate_request_check_beside(options, error));
  const pl_program_request request = {.program_path = options->program_path,
                                      .tree_path = tree ? options->strategy : NULL,
                                      .strategy = file || tree ? NULL : options->strategy,
                                      .trace_path = options->trace_path,
                                      .trace_microbatches = options->microbatches,
                                      .command = command,
                                      .svg_path = options->svg_path,
                                      .force = options->force,
                                      .json = options->json,
                                      .digest = options->digest,
                                      .inference = options->inference,
                                      .beside = options->beside.n_paths > 0 ? &options->beside : NULL,
                                      .stragglers = &options->stragglers};
  return pl_simulate_program_command(&options->job, &request, error);
}

int pl_cmd_simulate(int argc, char **argv) {
  pl_simulate_request options = {0};
  pl_job_options_init(&options.job);
  session own = {.options = &options};
  pl_job_session_init(&own.job);
  pl_trace_init(&own.recording);
  pl_error error = PL_ERROR_INIT;
  int status = 0;
  own.command = pl_command_quote_all("paceline simulate", argc, argv, &own.job.arena);
  if (own.command == NULL) own.command = "";
  pl_code code = pl_command_line_parse("simulate", &pl_simulate_request_argp, argc, argv, false, &options, &error);
  if (code == PL_OK && pl_simulate_request_is_by_program(&options)) {
    code = simulate_program(&options, own.command, &error);
  } else {
    if (code == PL_OK) code = simulate(&own, &error);
    if (own.is_launched) pl_launch_blame(&own.launch, own.job.model.name, &error);
    if (code == PL_OK) code = print(&own, &error);
  }
  if (code != PL_OK) status = pl_command_report("simulate", &error);
  if (code != PL_OK && options.program_path != NULL) pl_ir_error_show(stderr, &error, options.program_path);
  if (code != PL_OK && pl_simulate_request_is_of_tree(&options)) pl_tree_error_show(stderr, &error);
  pl_trace_release(&own.recording);
  pl_beside_options_release(&options.beside);
  pl_job_session_release(&own.job);
  return pl_command_finish("simulate", status);
}
