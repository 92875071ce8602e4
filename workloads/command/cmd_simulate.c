/* `paceline simulate`: one strategy, its time, memory and bottleneck; a timeline on request. */
#include "workloads/command/cmd_simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "workloads/command/job_session.h"
#include "workloads/command/simulate_program.h"
#include "workloads/command/simulate_report.h"
#include "workloads/command/simulate_vary.h"
#include "workloads/language/ir_text.h"

enum {
  KEY_STRATEGY = 'S',
  KEY_TRACE = 't',
  KEY_FORCE = 'f',
  KEY_JSON = 'j',
  KEY_PROGRAM = 0x300,
  KEY_DIGEST,
  KEY_VARY,
  KEY_SENSITIVITY,
  KEY_MICROBATCHES,
  KEY_READ_PROGRAM,
  KEY_SVG
};

typedef struct simulate_options {
  pl_job_options job;
  const char *strategy, *trace_path, *microbatches, *program_path, *svg_path;
  pl_training_cost cost;
  bool force, json, print_program, digest, sensitivity;
  const char *vary[PL_VARY_AXES_MAX];
  uint32_t n_vary; /* given; may exceed the room, which pl_vary_grid_parse refuses */
} simulate_options;

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: pp, dp, tmp, mbs and, if wanted, others (see below)", 0},
    {"program", KEY_READ_PROGRAM, "FILE", 0,
     "instead of a model and a strategy: a program as 'paceline program print' writes it, edited or not", 0},
    {"trace", KEY_TRACE, "FILE", 0,
     "write the timeline as a Chrome trace (Perfetto, chrome://tracing), compressed if its name ends in .gz", 0},
    {"trace-microbatches", KEY_MICROBATCHES, "A-B", 0,
     "of the timeline only these microbatches, from 0 on, and what belongs to none", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw the iteration: stages over time, for a slide", 0},
    {"force", KEY_FORCE, NULL, 0, "overwrite the files of --trace and --svg", 0},
    {"print-program", KEY_PROGRAM, NULL, 0, "print the program: one op list per pipeline stage", 0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON; names and units as the columns of a sweep's HDF5", 0},
    {"digest", KEY_DIGEST, NULL, 0, "print the digest of the run", 0},
    {"vary", KEY_VARY, "WHAT=VALUES", 0,
     "also on variations of the platform, e.g. link:nic.bandwidth=100Gbps,x2 (several make a grid; see below)", 0},
    {"sensitivity", KEY_SENSITIVITY, NULL, 0,
     "also how far the time moves when all bandwidths change by one part in 10^9 (8 more simulations)", 0},
    {0},
};

static error_t read_option(int key, char *value, struct argp_state *state) {
  simulate_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->cost;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_TRACE:
    options->trace_path = value;
    return 0;
  case KEY_SVG:
    options->svg_path = value;
    return 0;
  case KEY_MICROBATCHES:
    options->microbatches = value;
    return 0;
  case KEY_READ_PROGRAM:
    options->program_path = value;
    return 0;
  case KEY_FORCE:
    options->force = true;
    return 0;
  case KEY_JSON:
    options->json = true;
    return 0;
  case KEY_PROGRAM:
    options->print_program = true;
    return 0;
  case KEY_DIGEST:
    options->digest = true;
    return 0;
  case KEY_SENSITIVITY:
    options->sensitivity = true;
    return 0;
  case KEY_VARY:
    if (options->n_vary < PL_VARY_AXES_MAX) options->vary[options->n_vary] = value;
    options->n_vary++;
    return 0;
  case ARGP_KEY_ARG:
    pl_command_line_refuse_argument(value, &options->job.error);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the command ---- */

typedef struct session {
  simulate_options *options;
  pl_job_session job;
  pl_residuals residuals;
  pl_simulate_report report;
  pl_vary_grid vary;
  pl_strategy given; /* as parsed, for the variations */
  pl_varied_run *varied;
  pl_sensitivity sensitivity;
  const char *command; /* as given, for the header of the timeline */
  pl_timeline_entry header[6];
  pl_timeline_view view;
} session;

/* ---- the timeline ---- */

/* "3" or "0-3". */
static pl_code read_window(const char *text, pl_timeline_view *view, pl_error *error) {
  int first = 0, last = 0, end = 0;
  bool good = sscanf(text, "%d-%d%n", &first, &last, &end) == 2 && text[end] == '\0';
  if (!good) {
    good = sscanf(text, "%d%n", &first, &end) == 1 && text[end] == '\0';
    last = first;
  }
  if (!good || first < 0 || last < first)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches: '%.64s' is neither a microbatch (3) nor a range (0-3)",
                   text);
  view->is_window = true;
  view->first_microbatch = first;
  view->last_microbatch = last;
  return PL_OK;
}

static pl_code check_window(const session *own, pl_error *error) {
  if (!own->view.is_window || own->view.first_microbatch < own->report.row.n_microbatches) return PL_OK;
  return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: there are microbatches 0 to %d",
                 own->options->microbatches, own->report.row.n_microbatches - 1);
}

static void take_view(session *own) {
  const simulate_options *options = own->options;
  const pl_timeline_entry header[] = {{"program", "paceline " PACELINE_VERSION},
                                      {"command", own->command},
                                      {"model", own->job.model.name},
                                      {"platform", options->job.platform_path},
                                      {"strategy", options->strategy},
                                      {"microbatches", options->microbatches != NULL ? options->microbatches : "all"}};
  memcpy(own->header, header, sizeof header);
  own->view.header = own->header;
  own->view.n_header = sizeof header / sizeof header[0];
  own->options->job.simulate.view = &own->view;
}

static pl_code load(session *own, pl_error *error) {
  simulate_options *options = own->options;
  PL_TRY(pl_job_options_check(&options->job, error));
  PL_TRY(pl_training_cost_check(&options->cost, error));
  if (options->strategy == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--strategy is missing (e.g. --strategy pp=4,dp=4,tmp=1,mbs=1)");
  if (options->microbatches != NULL && options->trace_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches %s: of a timeline; add --trace FILE",
                   options->microbatches);
  if (options->microbatches != NULL) PL_TRY(read_window(options->microbatches, &own->view, error));
  if (options->json && options->print_program)
    return pl_fail(error, PL_BAD_INPUT, "--print-program prints text; leave out --json");
  if (options->n_vary > 0 && options->sensitivity)
    return pl_fail(error, PL_BAD_INPUT, "--sensitivity is of one run; leave out --vary");
  if (options->n_vary > 0 && options->svg_path != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--vary prints a table of runs; leave out --svg, which draws one");
  if (options->n_vary > 0 && (options->trace_path != NULL || options->print_program || options->digest))
    return pl_fail(error, PL_BAD_INPUT,
                   "--vary prints a table of runs; leave out --trace, --print-program and --digest, which are of one");
  PL_TRY(pl_vary_grid_parse(options->vary, options->n_vary, &own->job.arena, &own->vary, error));
  PL_TRY(pl_job_session_read(&own->job, &options->job, options->strategy, error));
  own->given = own->job.strategy;
  return pl_job_session_place(&own->job, &options->job, error);
}

static pl_code simulate_variations(session *own, pl_error *error) {
  own->varied = PL_TAKE(&own->job.arena, pl_varied_run, own->vary.n_points);
  if (own->varied == NULL) return pl_fail_memory(error, "the variations");
  return pl_vary_simulate(&own->job, &own->options->job, &own->given, &own->vary, own->varied, error);
}

static pl_code open_trace(session *own, pl_output_file *file, FILE **stream, pl_error *error) {
  const simulate_options *options = own->options;
  *stream = NULL;
  if (options->trace_path == NULL) return PL_OK;
  PL_TRY(pl_command_refuse_input(options->trace_path, options->job.platform_path, error));
  PL_TRY(pl_command_refuse_input(options->trace_path, options->job.model_path, error));
  PL_TRY(pl_output_file_open(file, options->trace_path, options->force, error));
  *stream = pl_gzip_is_wanted(options->trace_path) ? pl_gzip_stream_open(file->stream) : file->stream;
  take_view(own);
  return *stream != NULL ? PL_OK : pl_output_file_close(file, pl_fail_memory(error, "a compressed file"), error);
}

static pl_code open_svg(session *own, pl_output_file *file, pl_error *error) {
  const simulate_options *options = own->options;
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
  simulate_options *options = own->options;
  const pl_cluster *cluster = pl_platform_cluster(own->job.platform);
  options->job.simulate.platform = own->job.platform;
  options->job.simulate.trace = trace;
  if (options->print_program) options->job.simulate.print_program = stdout;
  PL_TRY(pl_simulate(cluster, &own->job.model, &options->job.job, &own->job.strategy, &options->job.simulate,
                     &own->job.arena, &own->report, error));
  PL_TRY(check_window(own, error));
  if (own->vary.n_points > 0) PL_TRY(simulate_variations(own, error));
  if (!options->sensitivity) return PL_OK;
  return pl_sensitivity_take(cluster, &own->job.model, &options->job.job, &own->job.strategy, &options->job.simulate,
                             own->report.row.iter_time_s, &own->job.arena, &own->sensitivity, error);
}

static pl_code simulate(session *own, pl_error *error) {
  simulate_options *options = own->options;
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
  const simulate_options *options = own->options;
  pl_simulate_subject subject;
  PL_TRY(pl_job_session_subject(&own->job, &options->job, &own->report, &subject, error));
  subject.cost = &options->cost;
  if (own->vary.n_points > 0) {
    (options->json ? pl_vary_json : pl_vary_print)(stdout, &subject, &own->report, &own->vary, own->varied);
  } else if (options->json) {
    pl_simulate_report_json(stdout, &subject, &own->report, &own->sensitivity);
  } else {
    pl_simulate_report_print(stdout, &subject, &own->report);
    pl_sensitivity_print(stdout, &own->sensitivity, own->report.row.iter_time_s);
    char text[PL_DIGEST_TEXT_BYTES];
    if (options->digest) printf("\nrun digest       %s\n", pl_digest_format(own->report.row.run_digest, text));
    if (options->trace_path != NULL)
      printf("\ntimeline         %s (open it in https://ui.perfetto.dev)\n", options->trace_path);
    if (options->svg_path != NULL) printf("\ndrawing          %s\n", options->svg_path);
  }
  return pl_job_options_demand_fit(&options->job, &own->report.row, error);
}

/* What is said by the program, or of more runs than one, has no place beside it. */
static pl_code simulate_program(simulate_options *options, pl_error *error) {
  if (options->strategy != NULL || options->n_vary > 0 || options->sensitivity || options->print_program ||
      options->microbatches != NULL || options->svg_path != NULL || options->cost.tokens > 0)
    return pl_fail(error, PL_BAD_INPUT,
                   "--program is simulated as it is written: leave out --strategy, --vary, --sensitivity, "
                   "--print-program, --trace-microbatches, --svg and --tokens");
  const pl_program_request request = {.program_path = options->program_path,
                                      .trace_path = options->trace_path,
                                      .force = options->force,
                                      .json = options->json,
                                      .digest = options->digest};
  return pl_simulate_program_command(&options->job, &request, error);
}

int pl_cmd_simulate(int argc, char **argv) {
  static const struct argp_child children[] = {
      {&pl_job_options_argp, 0, NULL, 0}, {&pl_training_cost_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc =
          "Simulates one training iteration of a model on a platform under one strategy.\v"
          "A strategy needs the degrees pp * dp * tmp = number of GPUs and the microbatch mbs. Optional keys, first "
          "value is the default:\n"
          "  assign=uniform|balanced|optimal|amp-dp|0:9:15:21:30   layers (or blocks) of the stages\n"
          "    (balanced, optimal and amp-dp are best by a closed form, not by simulated time)\n"
          "  schedule=1f1b|gpipe|interleaved|fifo|breadth-first|zb-h1|zb-h2|zb-v|dualpipe-v|@FILE\n"
          "    vpp=2: chunks per stage (interleaved, breadth-first); FILE lists the passes of each stage\n"
          "  recompute=none|selective|full|alternate  activation recomputation\n"
          "  sp=0|1  zero=0|1|2|3  overlap=1|0      order=tdp: placement, innermost first\n\n"
          "What --vary may change: link:KIND.bandwidth and .latency (nvlink, pcie, cpu, nic, fabric, or a pattern of "
          "names; nic+fabric for both), device:TYPE.memory, .bandwidth and .peak, device:TYPE=OTHER, nodes. Values "
          "have a unit, or are a factor: x2.\n\n"
          "Example:\n"
          "  paceline simulate --platform dgx-a100-16 \\\n"
          "    --model gpt3-175b --gbs 1536 --seq 2048 \\\n"
          "    --strategy pp=8,dp=2,tmp=8,mbs=1,recompute=full",
      .children = children};
  simulate_options options = {0};
  pl_job_options_init(&options.job);
  session own = {.options = &options};
  pl_job_session_init(&own.job);
  pl_error error = PL_ERROR_INIT;
  int status = 0;
  own.command = pl_command_quote_all("paceline simulate", argc, argv, &own.job.arena);
  if (own.command == NULL) own.command = "";
  pl_code code = pl_command_line_parse("simulate", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK && options.program_path != NULL) {
    code = simulate_program(&options, &error);
  } else {
    if (code == PL_OK) code = simulate(&own, &error);
    if (code == PL_OK) code = print(&own, &error);
  }
  if (code != PL_OK) status = pl_command_report("simulate", &error);
  if (code != PL_OK && options.program_path != NULL) pl_ir_error_show(stderr, &error, options.program_path);
  pl_job_session_release(&own.job);
  return pl_command_finish("simulate", status);
}
