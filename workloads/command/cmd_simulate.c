/* `paceline simulate`: one strategy, its time, memory and bottleneck; a timeline on request. */
#include "workloads/command/cmd_simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"
#include "core/base/words.h"
#include "core/engine/timeline_perfetto.h"
#include "core/system/command.h"
#include "core/system/command_line.h"
#include "core/system/gzip_stream.h"
#include "core/system/output_file.h"
#include "workloads/command/beside_jobs.h"
#include "workloads/command/job_session.h"
#include "workloads/command/launched_job.h"
#include "workloads/command/simulate_program.h"
#include "workloads/command/simulate_report.h"
#include "workloads/command/simulate_vary.h"
#include "workloads/command/trace_window.h"
#include "workloads/formats/export.h"
#include "workloads/import/model_file.h"
#include "workloads/language/ir_text.h"
#include "workloads/tree/tree.h"

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
  KEY_TRACE_OPS,
  KEY_READ_PROGRAM,
  KEY_SVG,
  KEY_FORMAT,
  KEY_FROM,
  KEY_INFERENCE,
  KEY_AS_PROGRAM,
  KEY_EXECUTOR
};

typedef struct simulate_options {
  pl_job_options job;
  const char *strategy, *trace_path, *microbatches, *trace_ops, *program_path, *launch_path, *svg_path;
  pl_export_format format; /* of trace_path: a file, or a folder */
  pl_training_cost cost;
  pl_straggler_options stragglers;
  pl_beside_options beside;
  bool force, json, print_program, digest, sensitivity, inference, as_program;
  const char *vary[PL_VARY_AXES_MAX];
  uint32_t n_vary; /* given; may exceed the room, which pl_vary_grid_parse refuses */
} simulate_options;

static const struct argp_option option_table[] = {
    {"strategy", KEY_STRATEGY, "TEXT", 0, "key=value,...: pp, dp, tmp, mbs and, if wanted, others (see below)", 0},
    {"program", KEY_READ_PROGRAM, "FILE", 0,
     "instead of a model and a strategy: a program as 'paceline program print' writes it, edited or not", 0},
    {"from", KEY_FROM, "FILE", 0,
     "job, model and strategy as a launch file has them: a script with Megatron-LM's arguments, torchtitan's TOML, "
     "YAML of NeMo or Primus, DeepSpeed's JSON; options beside it are stronger, and dp follows from the platform. Or a "
     "row of a sweep's or a search's results, as it was simulated: FILE.h5 (the fastest that fits), FILE.h5:N",
     0},
    {"inference", KEY_INFERENCE, NULL, 0,
     "the forward pass alone, as a program: op by op, nothing fused, unless --framework is given", 0},
    {"as-program", KEY_AS_PROGRAM, NULL, 0,
     "simulate the program that the strategy makes, in the framework's kernels: as offload and trees always are", 0},
    {"trace", KEY_TRACE, "FILE", 0,
     "write the timeline as a Chrome trace (Perfetto, chrome://tracing), or in Perfetto's own format, which is much "
     "smaller, if its name ends in .pftrace; compressed if it ends in .gz",
     0},
    {"trace-format", KEY_FORMAT, "FORMAT", 0,
     "of --trace: timeline (default), for looking at; or what 'paceline trace import' reads back, of all ranks and "
     "ops: "
     "perfetto (one file), or a folder with a file per rank: chakra (ASTRA-sim), kineto (HolisticTraceAnalysis)",
     0},
    {"trace-microbatches", KEY_MICROBATCHES, "A-B", 0,
     "of the timeline only these microbatches, from 0 on, and what belongs to none", 0},
    {"trace-ops", KEY_TRACE_OPS, "A-B", 0,
     "in the timeline the ops of microbatches A to B alone; passes and layers of all", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw the iteration: stages over time and their memory, for a slide", 0},
    {"force", KEY_FORCE, NULL, 0, "overwrite the files of --trace and --svg", 0},
    {"print-program", KEY_PROGRAM, NULL, 0, "print the program: one op list per pipeline stage", 0},
    {"json", KEY_JSON, NULL, 0, "print the result as JSON; names and units as the columns of a sweep's HDF5", 0},
    {"digest", KEY_DIGEST, NULL, 0, "print the digest of the run", 0},
    {"vary", KEY_VARY, "WHAT=VALUES", 0,
     "also on variations of the platform, e.g. link:nic.bandwidth=100Gbps,x2 (several make a grid; see below)", 0},
    {"executor", KEY_EXECUTOR, "NAME", 0,
     "engine (default), or proteus: the rules of Proteus's executor; proteus-plain, -overlap and -sharing leave rules "
     "out (unfolded, ready streams)",
     0},
    {"sensitivity", KEY_SENSITIVITY, NULL, 0,
     "also how far the time moves when all bandwidths change by one part in 10^9 (8 more simulations)", 0},
    {0},
};

static void read_executor(const char *value, pl_job_options *options) {
  char list[PL_WORDS_BYTES], hint[PL_WORDS_HINT_BYTES];
  int found = pl_words_find(pl_executor_names, value);
  if (found >= 0) {
    options->simulate.executor = (pl_executor)found;
    return;
  }
  pl_fail(&options->error, PL_BAD_INPUT, "--executor: '%s' is unknown; choose one of %s%s", value,
          pl_words_list(pl_executor_names, list, sizeof(list)), pl_words_hint(pl_executor_names, value, hint));
}

static error_t read_option(int key, char *value, struct argp_state *state) {
  simulate_options *options = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &options->job;
    state->child_inputs[1] = &options->cost;
    state->child_inputs[2] = &options->stragglers;
    state->child_inputs[3] = &options->beside;
    return 0;
  case KEY_STRATEGY:
    options->strategy = value;
    return 0;
  case KEY_TRACE:
    options->trace_path = value;
    return 0;
  case KEY_FORMAT:
    pl_export_format_parse(value, &options->format, &options->job.error);
    return 0;
  case KEY_SVG:
    options->svg_path = value;
    return 0;
  case KEY_TRACE_OPS:
    options->trace_ops = value;
    return 0;
  case KEY_MICROBATCHES:
    options->microbatches = value;
    return 0;
  case KEY_READ_PROGRAM:
    options->program_path = value;
    return 0;
  case KEY_FROM:
    options->launch_path = value;
    return 0;
  case KEY_INFERENCE:
    options->inference = true;
    return 0;
  case KEY_AS_PROGRAM:
    options->as_program = true;
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
  case KEY_EXECUTOR:
    read_executor(value, &options->job);
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
  pl_launch launch;
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
  own->view.is_perfetto = pl_timeline_is_perfetto(options->trace_path);
  own->options->job.simulate.view = &own->view;
}

/* A format of recordings. */
static pl_code check_export(const simulate_options *options, pl_error *error) {
  const pl_simulate_options *simulate = &options->job.simulate;
  if (options->trace_path == NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-format: of what? Add --trace FILE or FOLDER");
  if (options->microbatches != NULL)
    return pl_fail(error, PL_BAD_INPUT, "--trace-microbatches is of the format timeline; the others are whole");
  if (simulate->chunked || simulate->network == PL_NETWORK_SIMGRID)
    return pl_fail(error, PL_BAD_INPUT,
                   "--trace-format %s: has collectives whole, not in chunks; leave out --collectives chunked and "
                   "--network simgrid",
                   pl_export_format_names[options->format]);
  return pl_export_check(options->trace_path, options->format, options->force, error);
}

static pl_code check_executor(const simulate_options *options, pl_error *error) {
  const pl_simulate_options *simulate = &options->job.simulate;
  if (simulate->executor == PL_EXECUTOR_ENGINE) return PL_OK;
  if (!simulate->chunked && simulate->network != PL_NETWORK_SIMGRID && options->format == PL_EXPORT_TIMELINE)
    return PL_OK;
  return pl_fail(error, PL_BAD_INPUT,
                 "--executor %s: collectives are whole; leave out --collectives chunked, --network simgrid and "
                 "--trace-format",
                 pl_executor_names[simulate->executor]);
}

/* Runs of the one job, and drawings of it, have no neighbours. */
static pl_code check_beside(const simulate_options *options, pl_error *error) {
  if (options->beside.n_paths == 0) return PL_OK;
  if (options->n_vary > 0 || options->sensitivity || options->svg_path != NULL || options->job.site_path != NULL ||
      options->format != PL_EXPORT_TIMELINE || pl_straggler_options_are_given(&options->stragglers))
    return pl_fail(
        error, PL_BAD_INPUT,
        "--beside: leave out --vary, --sensitivity, --svg, --site, --trace-format, --slow and --jitter, which "
        "are of one job");
  return PL_OK;
}

static pl_beside_main main_of(session *own) {
  return (pl_beside_main){
      .cluster = own->job.cluster, .arena = &own->job.arena, .model = &own->job.model, .strategy = &own->job.strategy};
}

static pl_code load(session *own, pl_error *error) {
  simulate_options *options = own->options;
  if (options->launch_path != NULL && options->job.error.code == PL_OK)
    PL_TRY(
        pl_launched_job_take(options->launch_path, &own->job, &options->job, &options->strategy, &own->launch, error));
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
  if (options->format != PL_EXPORT_TIMELINE) PL_TRY(check_export(options, error));
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
  PL_TRY(check_beside(options, error));
  PL_TRY(check_executor(options, error));
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
  const simulate_options *options = own->options;
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

static bool is_of_tree(const simulate_options *options) {
  return options->strategy != NULL && pl_tree_is_file(options->strategy);
}

/* A tuple that says what only programs can. */
static bool is_of_programs(const simulate_options *options) {
  return options->strategy != NULL && pl_strategy_text_is_of_programs(options->strategy);
}

static bool is_by_program(const simulate_options *options) {
  return options->as_program || options->program_path != NULL || is_of_tree(options) || options->inference ||
         is_of_programs(options) ||
         (options->job.model_path != NULL && pl_model_is_program_alone(options->job.model_path));
}

static const char *why_by_program(const simulate_options *options) {
  if (options->program_path != NULL) return "--program is simulated as it is written";
  if (is_of_tree(options)) return "a strategy tree is simulated as the program that it makes";
  if (is_of_programs(options)) return "a strategy with offload, recompute_layers or dualpipe is simulated as a program";
  if (options->as_program) return "--as-program";
  return options->inference ? "--inference is simulated as a program"
                            : "a model without blocks is simulated as a program";
}

/* What is said by the program, or of more runs than one, has no place beside it. */
static pl_code simulate_program(simulate_options *options, pl_error *error) {
  bool file = options->program_path != NULL, tree = !file && is_of_tree(options);
  if ((file && (options->strategy != NULL || options->inference)) || options->n_vary > 0 || options->sensitivity ||
      options->print_program || options->microbatches != NULL || options->trace_ops != NULL ||
      options->cost.tokens > 0 || (options->beside.n_paths > 0 && !tree) || options->format != PL_EXPORT_TIMELINE ||
      options->launch_path != NULL)
    return pl_fail(error, PL_BAD_INPUT,
                   "%s: leave out %s--from, --vary, --sensitivity, --print-program, --trace-microbatches, --trace-ops, "
                   "--trace-format%s and --tokens",
                   why_by_program(options), file ? "--strategy, --inference, " : "", tree ? "" : ", --beside");
  PL_TRY(check_beside(options, error));
  const pl_program_request request = {.program_path = options->program_path,
                                      .tree_path = tree ? options->strategy : NULL,
                                      .strategy = file || tree ? NULL : options->strategy,
                                      .trace_path = options->trace_path,
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
  static const struct argp_child children[] = {{&pl_job_options_argp, 0, NULL, 0},
                                               {&pl_training_cost_argp, 0, NULL, 0},
                                               {&pl_straggler_options_argp, 0, NULL, 0},
                                               {&pl_beside_options_argp, 0, NULL, 0},
                                               {0}};
  static const struct argp argp = {
      .options = option_table,
      .parser = read_option,
      .doc =
          "Simulates one training iteration of a model on a platform under one strategy.\v"
          "A strategy has the degrees pp * dp * tmp = number of GPUs and the microbatch mbs. pp and tmp that are left "
          "out are 1, dp takes the GPUs that are left. Optional keys, first value is the default:\n"
          "  assign=uniform|balanced|optimal|amp-dp|0:9:15:21:30   layers (or blocks) of the stages\n"
          "    (balanced, optimal and amp-dp are best by a closed form, not by simulated time)\n"
          "  schedule=1f1b|gpipe|interleaved|fifo|breadth-first|zb-h1|zb-h2|zb-v|dualpipe-v|dualpipe|@FILE\n"
          "    vpp=2: chunks per stage (interleaved, breadth-first); FILE lists the passes of each stage\n"
          "  recompute=none|selective|full|alternate  activation recomputation\n"
          "  sp=0|1  zero=0|1|2|3  overlap=1|0      order=tdp: placement, innermost first\n"
          "  cp=1  ep=1  etp=1: ranks of a sequence, of experts; tensor ranks of each expert (1 or tmp)\n"
          "Or FILE.yaml, a strategy tree ('paceline strategy --help'): what its program takes, in --framework's "
          "kernels.\n\n"
          "What --vary may change: link:KIND.bandwidth and .latency (nvlink, pcie, cpu, nic, fabric, or a pattern of "
          "names; nic+fabric for both), device:TYPE.memory, .bandwidth, .peak and .power, device:TYPE=OTHER, nodes. "
          "Values "
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
  pl_trace_init(&own.recording);
  pl_error error = PL_ERROR_INIT;
  int status = 0;
  own.command = pl_command_quote_all("paceline simulate", argc, argv, &own.job.arena);
  if (own.command == NULL) own.command = "";
  pl_code code = pl_command_line_parse("simulate", &argp, argc, argv, false, &options, &error);
  if (code == PL_OK && is_by_program(&options)) {
    code = simulate_program(&options, &error);
  } else {
    if (code == PL_OK) code = simulate(&own, &error);
    if (code == PL_OK) code = print(&own, &error);
  }
  if (code != PL_OK) status = pl_command_report("simulate", &error);
  if (code != PL_OK && options.program_path != NULL) pl_ir_error_show(stderr, &error, options.program_path);
  if (code != PL_OK && is_of_tree(&options)) pl_tree_error_show(stderr, &error);
  pl_trace_release(&own.recording);
  pl_beside_options_release(&options.beside);
  pl_job_session_release(&own.job);
  return pl_command_finish("simulate", status);
}
